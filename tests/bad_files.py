"""The bad files: what each one is called and how it is made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

N = 60
FRAME = pd.DataFrame(
    {
        "a": np.random.default_rng(0).normal(size=N).round(3),
        "b": np.random.default_rng(1).normal(size=N).round(3),
        "label": np.arange(N) % 2,
    }
)
MEMBER = np.random.default_rng(0).random((8, 20)) < 0.5
LOSS = np.random.default_rng(1).random((8, 20))
X, Y = np.zeros((10, 2)), np.arange(10) % 2
FIFTH = np.arange(N) == 4
MODULE = """
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

number = 3
def flat(x): return np.full((len(x), 2), 0.5)
def logits(x): return np.tile([4.0, -4.0], (len(x), 1))
def short(x): return np.full((3, 2), 0.5)
def nans(x): return np.full((len(x), 2), np.nan)
def text(x): return ["no"] * len(x)
def nothing(x): return None
def raises(x): raise KeyError("age")

class NoFit: pass
class NeedsArguments:
    def __init__(self, size): pass
class Mute(BaseEstimator):
    def fit(self, x, y): return self
class Wrong(ClassifierMixin, BaseEstimator):
    def fit(self, x, y):
        self.classes_ = np.unique(y)
        return self
    def predict_proba(self, x): return np.full((len(x), 2), 3.0)
class Short(Wrong):
    def predict_proba(self, x): return np.full((3, 2), 0.5)
class Breaks(Wrong):
    def predict_proba(self, x): raise ZeroDivisionError("no answer")
class Lost(RegressorMixin, BaseEstimator):
    def fit(self, x, y): return self
    def predict(self, x): return np.full(len(x), np.nan)
"""


def text(content: str, encoding: str = "utf-8") -> Callable[[Path], Any]:
    return lambda path: path.write_bytes(content.encode(encoding))


def table(**changed: Any) -> Callable[[Path], Any]:
    return lambda path: FRAME.assign(**changed).to_csv(path, index=False)


def arrays(**named: Any) -> Callable[[Path], Any]:
    return lambda path: np.savez(path, **named)


def single(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, X)


def cut(path: Path) -> None:
    FRAME.to_parquet(path)
    path.write_bytes(path.read_bytes()[:400])


FILES: dict[str, Callable[[Path], Any]] = {
    "fine.csv": table(),
    "empty.csv": text(""),
    "header.csv": text("a,b,label\n"),
    "ragged.csv": text("a,b,label\n1,2,0\n1,2,3,4,5\n"),
    "prose.csv": text("Dear all,\nplease find attached\nthe data.\n"),
    "no_text.csv": text("gr\x81\xf6\xdfe,b,label\n1,2,0\n3,4,1\n", "latin-1"),  # in no known encoding
    "garbage.csv": text("".join(map(chr, range(256))) * 4, "latin-1"),
    "garbage.npz": text("".join(map(chr, range(256))) * 4, "latin-1"),
    "cut.parquet": cut,
    "folder.csv": Path.mkdir,
    "objects.npz": arrays(x=np.array([{}, {}], dtype=object), y=np.arange(2)),
    "single.npz": single,
    "inf.csv": table(a=np.where(FIFTH, np.inf, 1.0)),
    "huge.csv": table(a=np.where(np.arange(N) % 2, 1e308, -1e308)),
    "nan_array.npz": arrays(x=np.where(np.arange(2 * N).reshape(N, 2) % 3, 1.0, np.nan), y=np.arange(N) % 2),
    "nan.csv": table(a=np.where(np.arange(N) % 2, np.nan, 1.0)),
    "only.csv": lambda path: FRAME[["label"]].to_csv(path, index=False),
    "narrow.csv": lambda path: FRAME[["a", "label"]].to_csv(path, index=False),
    "one.csv": lambda path: FRAME.head(1).to_csv(path, index=False),
    "two.csv": lambda path: FRAME.head(2).to_csv(path, index=False),
    "household.csv": table(household=1),
    "lost_household.csv": table(household=np.where(FIFTH, np.nan, 1.0)),
    "one_class.csv": table(label=1),
    "lost_label.csv": table(label=np.where(FIFTH, np.nan, 1.0)),
    "infinite_label.csv": table(label=np.where(FIFTH, np.inf, 1.0)),
    "words.csv": table(label=np.where(FRAME.label == 1, "yes", "no")),
    "floats.csv": table(label=np.linspace(0.1, 0.9, N)),
    "level.csv": table(label=3.5),
    "line.npz": arrays(x=np.arange(10.0), y=Y),
    "short.npz": arrays(x=X, y=Y[:9]),
    "no_x.npz": arrays(X=X, y=Y),
    "no_y.npz": arrays(x=X, labels=Y),
    "deep_y.npz": arrays(x=X, y=np.zeros((10, 3, 2))),
    "text_x.npz": arrays(x=np.full((10, 2), "a"), y=Y),
    "unknown.npz": arrays(member=MEMBER, los=LOSS),
    "shape.npz": arrays(member=MEMBER, loss=LOSS[:, :5]),
    "nans.npz": arrays(member=MEMBER, loss=np.where(LOSS > 0.9, np.nan, LOSS)),
    "large.npz": arrays(member=MEMBER, loss=LOSS * 1e300),
    "logits.npz": arrays(member=MEMBER, logits=np.zeros((8, 20, 3))),
    "raw.npz": arrays(member=MEMBER, log_prob=np.ones((8, 20, 3)), labels=np.zeros(20, dtype=int)),
    "unlabelled.npz": arrays(member=MEMBER, log_prob=np.log(np.full((8, 20, 2), 0.5))),
    "mislabelled.npz": arrays(member=MEMBER, log_prob=np.log(np.full((8, 20, 2), 0.5)), labels=np.full(20, 2)),
    "other_loss.npz": arrays(
        member=MEMBER, log_prob=np.log(np.full((8, 20, 2), 0.5)), labels=np.zeros(20, dtype=int), loss=LOSS + 3
    ),
    "complex.npz": arrays(member=MEMBER, loss=LOSS * 1j),
    "twos.npz": arrays(member=MEMBER * 2, loss=LOSS),
    "alone.npz": arrays(member=MEMBER),
    "no_member.npz": arrays(loss=LOSS),
    "deep.npz": arrays(member=np.ones((2, 3, 4)), loss=LOSS),
    "all_in.npz": arrays(member=np.ones((8, 20)), loss=LOSS),
    "is_target_point.npz": arrays(member=MEMBER, loss=LOSS, is_target_point=np.ones(3)),
    "targets.npz": arrays(member=MEMBER, loss=LOSS, n_targets=99),
    "half_targets.npz": arrays(member=MEMBER, loss=LOSS, n_targets=2.5),
    "broken.py": text("def f(:\n"),
    "mine.py": text(MODULE),
    "syntax.toml": text("n_models = = 3\n"),
    "latin.toml": text("title = 'größe'\n", "latin-1"),
    "key.toml": text("dataset = 'wine'\nmodles = 8\n"),
    "deep_key.toml": text("[[model]]\nspec = 'a:b'\nsett = {}\n"),
    "type.toml": text("n_models = 'many'\n"),
    "game.toml": text("game = 'halfsplit'\n"),
    "no_spec.toml": text("[[model]]\nname = 'm'\n"),
    "names.toml": text("[[model]]\nname = 'm'\nspec = 'a:b'\n[[model]]\nname = 'm'\nspec = 'a:c'\n"),
    "no_adjacency.toml": text("[[claim]]\nepsilon = 3\n"),
    "two_promises.toml": text("[[claim]]\nepsilon = 3\nmu = 1\nadjacency = 'add_remove'\n"),
    "negative.toml": text("[[claim]]\nepsilon = -1\nadjacency = 'add_remove'\n"),
    "infinite.toml": text("[[claim]]\nepsilon = inf\nadjacency = 'add_remove'\n"),
    "delta.toml": text("[[claim]]\nepsilon = 1\ndelta = 2\nadjacency = 'add_remove'\n"),
    "who.toml": text(
        "dataset = 'wine'\n[[model]]\nname = 'tree'\nspec = 'sklearn.tree:DecisionTreeClassifier'\n"
        "[[claim]]\neta = 0.1\nmodel = 'forest'\n"
    ),
    "no_target.toml": text("game = 'per_datum'\n"),
    "far_target.toml": text("dataset = 'wine'\n[game.per_datum]\ntarget = 999\n"),
    "twice.toml": text("dataset = 'wine'\n[game.canaries]\ntargets = [1, 1]\n"),
    "taken": text("kept"),
    "empty.json": text("{}"),
    "cut.json": text("{"),
    "hollow.json": text('{"schema": 1}'),
}
