"""Rows in chunks, chunks in a store: a row is found again only for the very same work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier

from leakbound import data
from leakbound.core import games, seeds
from leakbound.releases.estimator import Estimator
from leakbound.runtime import fits as fits_module
from leakbound.runtime.observe import Execution, observe, read_signals
from leakbound.runtime.store import Store

N = 40
RNG = np.random.default_rng(0)
POINTS = data.from_arrays(RNG.normal(size=(N, 3)), np.arange(N) % 2)
MEMBER = games.half_split(N, 10).member
WANT = ("loss", "log_prob", "correct")
TREE = Estimator(DecisionTreeClassifier(max_depth=3), "tree")


@dataclass(frozen=True)
class Plain:
    """A release whose signals say which row they are of; it counts what it was asked for."""

    log: list[Any]
    name: str = "plain"
    chunk: int = 3
    parameters: tuple[int, ...] = (1,)

    def describe(self) -> Mapping[str, Any] | None:
        return {"parameters": self.parameters}

    def observe(self, points: Any, member: Any, seeds: Any, want: Any) -> Mapping[str, Any]:
        self.log.append(len(member))
        rows = np.asarray(seeds, dtype=float)[:, None] + member / 2
        return {"loss": rows, "log_prob": np.repeat(rows[..., None], 2, axis=2)}


def test_each_row_is_made_with_its_own_members_and_seed():
    arrays = observe(Plain([]), POINTS, MEMBER, ("loss", "log_prob"), seed=7, execution=Execution(n_jobs=1))
    expected = np.array([[seeds.integer(7, "train", m) + MEMBER[m, i] / 2 for i in range(N)] for m in range(10)])
    np.testing.assert_array_equal(arrays["loss"], expected.astype(np.float32))
    np.testing.assert_array_equal(arrays["log_prob"][..., 1], expected.astype(np.float32))


def test_signals_are_float32_and_point_major():
    arrays = observe(TREE, POINTS, MEMBER, WANT, execution=Execution(n_jobs=1))
    assert {name: array.shape for name, array in arrays.items()} == {
        "loss": (10, N), "log_prob": (10, N, 2), "correct": (10, N),
    }  # fmt: skip
    for array in arrays.values():
        assert array.dtype == np.float32
        assert array.swapaxes(0, 1).flags.c_contiguous


def test_chunks_go_by_row_number_alone(tmp_path):
    log: list[int] = []
    observe(Plain(log), POINTS, MEMBER, ("loss",), execution=Execution(tmp_path, 1))
    assert log == [3, 3, 3, 1]
    next(tmp_path.glob("*.npz")).unlink()
    log.clear()
    observe(Plain(log), POINTS, MEMBER, ("loss",), execution=Execution(tmp_path, 1))
    assert log in ([3], [1])  # what is missing, and in the same chunk as before


def test_more_models_go_on_where_fewer_ended(tmp_path):
    log: list[int] = []
    member = games.half_split(N, 12).member
    observe(Plain(log), POINTS, member[:6], ("loss",), execution=Execution(tmp_path, 1))
    more = observe(Plain(log), POINTS, member, ("loss",), execution=Execution(tmp_path, 1))
    assert log == [3, 3, 3, 3]
    np.testing.assert_array_equal(
        more["loss"], observe(Plain([]), POINTS, member, ("loss",), execution=Execution(n_jobs=1))["loss"]
    )


OTHER = {
    "another seed": {"seed": 1},
    "other data": {"points": data.from_arrays(np.asarray(POINTS.x) + 1e-9, POINTS.y)},
    "another label": {"points": data.from_arrays(POINTS.x, 1 - np.asarray(POINTS.y))},
    "another target": {"member": np.where(np.arange(N) == 3, ~MEMBER, MEMBER)},
    "another parameter": {"release": Plain([], parameters=(2,))},
    "other signals": {"want": ("log_prob", "loss")},
}


@pytest.mark.parametrize("change", OTHER, ids=str)
def test_no_row_is_reused_for(change, tmp_path):
    words = {"release": Plain([]), "points": POINTS, "member": MEMBER, "want": ("loss",), "seed": 0, **OTHER[change]}
    observe(Plain([]), POINTS, MEMBER, ("loss",), seed=0, execution=Execution(tmp_path, 1))
    words["release"] = replace(words["release"], log=[])
    observe(**words, execution=Execution(tmp_path, 1))
    assert words["release"].log == [3, 3, 3, 1]
    assert len(list(tmp_path.glob("*.npz"))) == 8


def test_no_row_is_reused_for_another_version(tmp_path, monkeypatch):
    log: list[int] = []
    for version in ("0.1.0", "0.1.1", "0.1.0"):
        monkeypatch.setattr(fits_module, "__version__", version)
        observe(Plain(log), POINTS, MEMBER, ("loss",), execution=Execution(tmp_path, 1))
    assert log == [3, 3, 3, 1] * 2


def test_the_order_of_the_wanted_signals_and_the_name_do_not_matter(tmp_path):
    log: list[int] = []
    for want, name in ((("loss", "log_prob"), "one"), (("log_prob", "loss"), "two")):
        observe(Plain(log, name=name), POINTS, MEMBER, want, execution=Execution(tmp_path, 1))
    assert log == [3, 3, 3, 1]


def test_an_estimator_is_known_again_by_its_parameters(tmp_path):
    one, same, other = (Estimator(LogisticRegression(C=c)) for c in (1.0, 1.0, 2.0))
    counts = []
    for release in (one, same, other):
        observe(release, POINTS, MEMBER, ("loss",), execution=Execution(tmp_path, 1))
        counts.append(len(list(tmp_path.glob("*.npz"))))
    assert counts == [3, 3, 6]


@pytest.mark.slow
def test_one_worker_and_two_give_the_same_bytes(tmp_path):
    one, two = (
        observe(TREE, POINTS, MEMBER, WANT, execution=Execution(tmp_path / str(n_jobs), n_jobs)) for n_jobs in (1, 2)
    )
    assert {name: array.tobytes() for name, array in one.items()} == {name: two[name].tobytes() for name in two}
    files = [{path.name: path.read_bytes() for path in (tmp_path / n_jobs).iterdir()} for n_jobs in "12"]
    assert files[0] == files[1]
    assert len(files[0]) == 3


def test_what_is_read_from_the_store_is_what_was_seen(tmp_path):
    seen, read = (observe(TREE, POINTS, MEMBER, WANT, execution=Execution(tmp_path, 1)) for _ in range(2))
    assert {name: array.tobytes() for name, array in seen.items()} == {name: read[name].tobytes() for name in read}


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04 not a chunk", None])
def test_a_damaged_chunk_is_made_again(damage, tmp_path):
    log: list[int] = []
    first = observe(Plain(log), POINTS, MEMBER, ("loss",), execution=Execution(tmp_path, 1))["loss"]
    path = max(tmp_path.glob("*.npz"), key=lambda each: each.stat().st_size)
    whole = path.read_bytes()
    path.write_bytes(whole[:-40] if damage is None else damage)
    second = observe(Plain(log), POINTS, MEMBER, ("loss",), execution=Execution(tmp_path, 1))["loss"]
    np.testing.assert_array_equal(first, second)
    assert log == [3, 3, 3, 1, 3]
    assert path.read_bytes() == whole


def test_the_chunk_of_another_key_is_made_again(tmp_path):
    log: list[int] = []
    first = observe(Plain(log), POINTS, MEMBER, ("loss",), execution=Execution(tmp_path, 1))["loss"]
    one, other = sorted(tmp_path.glob("*.npz"))[:2]
    one.write_bytes(other.read_bytes())
    second = observe(Plain(log), POINTS, MEMBER, ("loss",), execution=Execution(tmp_path, 1))["loss"]
    np.testing.assert_array_equal(first, second)
    assert len(log) == 5


SHAPED_OTHERWISE = {
    "fewer rows": {"loss": np.zeros((1, N), np.float32)},
    "fewer points": {"loss": np.zeros((3, 1), np.float32)},
    "another dtype": {"loss": np.zeros((3, N))},
    "a scalar": {"loss": np.zeros((), np.float32)},
    "no arrays": {},
}


@pytest.mark.parametrize("arrays", SHAPED_OTHERWISE.values(), ids=SHAPED_OTHERWISE)
def test_a_chunk_of_another_shape_is_never_used(arrays, tmp_path):
    """Whole, under its own key and digest, as another version might have written it."""
    log: list[int] = []
    first = observe(Plain(log), POINTS, MEMBER, ("loss",), execution=Execution(tmp_path, 1))["loss"]
    path = max(tmp_path.glob("*.npz"), key=lambda each: each.stat().st_size)
    path.unlink()
    Store(tmp_path).save(path.stem, arrays)
    second = observe(Plain(log), POINTS, MEMBER, ("loss",), execution=Execution(tmp_path, 1))["loss"]
    np.testing.assert_array_equal(first, second)
    assert log == [3, 3, 3, 1, 3]


@dataclass(frozen=True)
class Forgetful(Plain):
    """It gives a signal less of some rows."""

    def observe(self, points: Any, member: Any, seeds: Any, want: Any) -> Mapping[str, Any]:
        seen = dict(super().observe(points, member, seeds, want))
        if len(member) == 1:
            del seen["log_prob"]
        return seen


@dataclass(frozen=True)
class Flat(Plain):
    """One number for all points of a row."""

    def observe(self, points: Any, member: Any, seeds: Any, want: Any) -> Mapping[str, Any]:
        return {"loss": np.zeros((len(member), 1))}


def test_a_signal_that_some_models_lack_stops_the_audit():
    """Their rows are never 0."""
    with pytest.raises(ValueError) as caught:
        observe(Forgetful([]), POINTS, MEMBER, ("loss", "log_prob"), execution=Execution(n_jobs=1))
    assert str(caught.value) == (
        "plain: the signal 'log_prob' is missing of 1 of 10 models; a release must give the same signals of every model"
    )


def test_a_release_that_gives_another_shape_stops_the_audit():
    with pytest.raises(ValueError) as caught:
        observe(Flat([]), POINTS, MEMBER, ("loss",), execution=Execution(n_jobs=1))
    assert str(caught.value) == "plain gives arrays of shape loss (3, 1); they must begin with (3, 40)"


def test_a_release_without_a_canonical_description_is_not_stored(tmp_path):
    doubled = make_pipeline(FunctionTransformer(lambda x: 2 * x), LogisticRegression())
    arrays = observe(Estimator(doubled), POINTS, MEMBER, ("loss",), execution=Execution(tmp_path / "store", 1))
    assert arrays["loss"].shape == (10, N)
    assert not (tmp_path / "store").exists()


def test_signals_that_a_release_cannot_give_are_left_out():
    arrays = observe(TREE, POINTS, MEMBER[:2], ("loss", "step_dot"), execution=Execution(n_jobs=1))
    assert set(arrays) == {"loss"}


class TestReadSignals:
    member = np.array([[0, 1, 1, 0], [1, 0, 1, 0], [1, 1, 1, 0]])
    loss = np.arange(12.0).reshape(3, 4)

    def read(self, folder: Path, **arrays: Any) -> Any:
        path = folder / "signals.npz"
        np.savez(path, **arrays)
        return read_signals(str(path))

    def test_points_that_are_in_all_models_or_in_none_are_no_target_points(self, tmp_path):
        signals = self.read(tmp_path, member=self.member, loss=self.loss)
        assert signals.game.is_target_point.tolist() == [True, True, False, False]
        assert signals.game.n_targets == 3
        assert signals.game.leave_one_out
        assert signals.game.prior == pytest.approx(4 / 6)
        assert signals.points is None
        np.testing.assert_array_equal(signals.array("loss"), self.loss.astype(np.float32))
        assert signals.array("loss").dtype == np.float32

    def test_target_points_and_the_number_of_targets_can_be_given(self, tmp_path):
        is_target_point = [0, 1, 1, 1]
        signals = self.read(tmp_path, member=self.member, loss=self.loss, is_target_point=is_target_point, n_targets=1)
        assert signals.game.target_points.tolist() == [1, 2, 3]
        assert signals.game.n_references == 2
        assert signals.game.prior == pytest.approx(2 / 3)

    def test_each_target_may_judge_points_of_its_own(self, tmp_path):
        is_target_point = np.eye(3, 4)
        signals = self.read(tmp_path, member=self.member, loss=self.loss, is_target_point=is_target_point)
        assert signals.game.target_member.tolist() == [[False], [False], [True]]
        assert signals.game.prior == pytest.approx(1 / 3)

    def test_one_model_may_be_a_row(self, tmp_path):
        signals = self.read(tmp_path, member=[True, False, True], loss=[[0.1, 0.2, 0.3]])
        assert signals.game.member.shape == (1, 3)
        assert signals.game.n_target_points == 3
        assert signals.game.prior == pytest.approx(2 / 3)

    def test_whole_numbers_and_truths_are_numbers(self, tmp_path):
        signals = self.read(tmp_path, member=self.member, loss=self.loss.astype(int), correct=self.loss > 3)
        assert signals.array("correct").tolist() == (self.loss > 3).astype(float).tolist()

    # bad files: tests/test_bad_input.py
