"""Models that scale, round or rank the records that they keep: found before and after pickling, by no coincidence."""

from __future__ import annotations

import io
import pickle
import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, QuantileTransformer, StandardScaler
from sklearn.svm import SVC

import leakbound as ls
from leakbound.core.types import Points
from leakbound.releases.kept_records import search
from leakbound.releases.structure import structure_of

X, Y = load_breast_cancer(return_X_y=True)
X, Y = X[:300], Y[:300]
MEMBERS = Points(X, Y)
RANDOM = np.random.default_rng(5)


class Attention(ClassifierMixin, BaseEstimator):
    """Softmax attention to the standardised records, which it keeps in 16 bits."""

    def fit(self, x, y):
        self.mean_, self.deviation_ = x.mean(axis=0), x.std(axis=0)
        self.keys_ = self.scaled(x)
        self.classes_, code = np.unique(y, return_inverse=True)
        self.values_ = np.eye(len(self.classes_))[code]
        return self

    def scaled(self, x):
        return ((x - self.mean_) / self.deviation_).astype(np.float16)

    def predict_proba(self, x):
        keys, queries = self.keys_.astype(float), self.scaled(x).astype(float)
        weights = np.exp(-((queries[:, None] - keys) ** 2).sum(axis=2))
        return (weights @ self.values_ + 1e-9) / (weights.sum(axis=1, keepdims=True) + 2e-9)


def pickled(model):
    """Return a model of this file as another process would read it."""
    return pickle.load(io.BytesIO(pickle.dumps(model)))  # its own object, written one line above


def rows_in(model, members=MEMBERS):
    """Count the rows of members that are found in a model."""
    return max((held.n for held in search(model, members).held if held.kind == "rows"), default=0)


@pytest.mark.parametrize("again", [lambda model: model, pickled], ids=["fitted", "pickled"])
def test_rows_of_models_that_keep_them(again):
    assert rows_in(again(Attention().fit(X, Y))) == 300
    assert rows_in(again(KNeighborsClassifier().fit(X, Y))) == 300
    support = SVC().fit(X, Y)
    assert rows_in(again(support)) == len(support.support_vectors_) < 300
    inside = make_pipeline(StandardScaler(), SVC()).fit(X, Y)
    found = structure_of(again(inside), MEMBERS)
    assert max(held.n for held in found.kept.held if held.kind == "rows") == len(inside[-1].support_vectors_)


@pytest.mark.parametrize("again", [lambda model: model, pickled], ids=["fitted", "pickled"])
@pytest.mark.parametrize("scale", [lambda x: x, StandardScaler().fit_transform], ids=["plain", "standardised"])
def test_no_rows_in_models_that_keep_none(again, scale):
    for model in (NearestCentroid(), RandomForestClassifier(20, random_state=0)):
        assert search(again(model.fit(scale(X), Y)), MEMBERS).held == ()


def bfloat16(x):
    """Cut 32 bits to the first 16."""
    return (np.asarray(x, dtype=np.float32).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


SCALED = {
    "as they are": X,
    "standardised": StandardScaler().fit_transform(X),
    "to 0 and 1": MinMaxScaler().fit_transform(X),
    "ranks": stats.rankdata(X, axis=0),
    "normal scores of ranks": QuantileTransformer(n_quantiles=300, output_distribution="normal").fit_transform(X),
    "logarithms": np.log1p(X),
}
ROUNDED = {
    "64 bits": lambda x: x,
    "32 bits": lambda x: x.astype(np.float32),
    "float16": lambda x: x.astype(np.float16),
    "bfloat16": bfloat16,
}
PLACED = {
    "an array": lambda x: x,
    "permuted": lambda x: x[RANDOM.permutation(len(x))],
    "some columns": lambda x: x[RANDOM.permutation(len(x))][:, [21, 3, 14, 8, 0, 27]],
    "beside noise": lambda x: np.column_stack([RANDOM.normal(size=len(x)), x[RANDOM.permutation(len(x))]]),
    "transposed": lambda x: x.T,
    "a batch of one": lambda x: x[None],
    "nested": lambda x: {"a": [{"b": (x[::-1],)}]},
    "lists": lambda x: x[::-1].tolist(),
    "a frame": lambda x: pd.DataFrame(x).sample(frac=1, random_state=0),
}


@pytest.mark.by_day("some columns-float16-standardised", "permuted-bfloat16-to 0 and 1", "nested-64 bits-ranks")
@pytest.mark.parametrize("scale", SCALED)
@pytest.mark.parametrize("bits", ROUNDED)
@pytest.mark.parametrize("place", PLACED)
def test_scaled_and_rounded_rows_are_found(place, bits, scale):
    model = NearestCentroid().fit(X, Y)
    model.buffer_ = PLACED[place](ROUNDED[bits](SCALED[scale]))
    assert rows_in(model) >= 0.95 * len(X)


@pytest.mark.parametrize("bits", ["64 bits", "float16"])
@pytest.mark.parametrize("scale", ["standardised", "to 0 and 1"])
def test_some_of_the_rows_scaled_by_all_of_them(scale, bits):
    """No increasing map is known from a part of the rows: only these scales are."""
    model = NearestCentroid().fit(X, Y)
    model.buffer_ = ROUNDED[bits](SCALED[scale])[RANDOM.permutation(len(X))[:80]]
    assert 60 <= rows_in(model) <= 80


@pytest.mark.slow
def test_the_page_and_the_terminal_say_it_first():
    """A model of the test's own class, with and without a policy: the same rows, in the first sentence."""
    model = Attention().fit(X, Y)
    others = load_breast_cancer().data[300:], load_breast_cancer().target[300:]
    policy = {"limits": ["auc=0.9"], "structure": {"stored_records": True}}
    said = "model contains 300 of your rows, as they are, or scaled or rounded"
    for given in (None, policy):
        report = ls.audit_model(model, (X, Y), others, attacks="loss", accept_shift=True, policy=given, n_jobs=1)
        assert said in " ".join(str(report).split("\n\n")[1].split())
        page = " ".join(re.sub("<[^>]*>", "", report.to_html()).split())
        assert page.index(said) < page.index("attacker")
        assert {f.quantity: f.detail.get("rows") for f in report.findings}["stores_records"] == 300
        assert said not in report.to_html(publish=True)
    forest = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X, Y)
    report = ls.audit_model(forest, (X, Y), others, attacks="loss", accept_shift=True, n_jobs=1)
    assert "of your rows" not in str(report)


def population(kind, n, d, rng):
    """Draw records of one of several populations."""
    z = rng.normal(size=(n, d))
    return {
        "normal": z,
        "one decimal": z.round(1),
        "few values": rng.poisson(4, size=(n, d)).astype(float),
        "rare categories": (z > 1.8).astype(float),
        "mixed": np.where(np.arange(d) % 2, z, z > 1),
        "nearly the same": z * 0.003 + rng.normal(size=(n, 1)),
        "years": rng.integers(1900, 2020, size=(n, d)).astype(float),
    }[kind]


def unrelated(kind, x, y, rng):
    """Yield contents of models that hold no record of x: of other records, weights, and numbers for groups."""
    n, d = x.shape
    other, few = population(kind, n, d, rng), population(kind, n // 3, d, rng)
    yield from (other, few, other[0], StandardScaler().fit_transform(other), stats.rankdata(other, axis=0))
    yield from (StandardScaler().fit_transform(part).astype(np.float16) for part in (other, few))
    yield bfloat16(StandardScaler().fit_transform(other))
    yield from (np.array([middle(x[y == label], axis=0) for label in (0, 1)]) for middle in (np.mean, np.median))
    yield from ((rng.normal(size=(64, d)) * 3).astype(np.float16), np.sort(other, axis=0))
    yield np.column_stack([np.arange(n), np.cumsum(rng.random(n))])


def coincidences(repeats, seed):
    """Count what is found in contents that hold nothing, and how many were searched."""
    n_found = n_searched = 0
    for repeat in range(repeats):
        for kind in ("normal", "one decimal", "few values", "rare categories", "mixed", "nearly the same", "years"):
            rng = np.random.default_rng([seed, repeat, len(kind)])
            n, d = int(rng.choice([12, 40, 150])), int(rng.choice([2, 3, 6]))
            x, y = population(kind, n, d, rng), np.arange(n) % 2
            for content in unrelated(kind, x, y, rng):
                model = NearestCentroid()
                model.content_ = content
                n_found += len(search(model, Points(x, y)).held) > 0
                n_searched += 1
    return n_found, n_searched


def test_coincidences_are_rare():
    """At a chance of .01 each, more are found with a probability below .001; seen are 0 of 91."""
    n_found, n_searched = coincidences(1, 3)
    assert n_found <= stats.binom.isf(1e-3, n_searched, 0.01)


@pytest.mark.nightly
def test_coincidences_are_rare_in_many_repeats():
    """At a chance of .01 each, more are found with a probability below .001."""
    n_found, n_searched = coincidences(60, 4)
    assert n_found <= stats.binom.isf(1e-3, n_searched, 0.01)
