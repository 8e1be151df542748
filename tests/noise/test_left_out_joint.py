"""What several releases of one left-out record tell together, and what room is left: against plain loops."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from leakbound.noise import (
    GaussianNoise,
    LeftOut,
    calibrate_left_out,
    joint_advantage,
    largest_distance,
    largest_reserve,
    left_out_joint,
)

KINDS = (
    "normal",
    "heavy tails",
    "ties",
    "many equal",
    "all equal",
    "sphere",
    "far from zero",
    "one outlier",
    "two ends",
)


def table(kind: str, n: int, n_columns: int, rng: np.random.Generator) -> np.ndarray:
    """A whitened table of some kind, with distances around 1."""
    normal = rng.normal(size=(n, n_columns))
    if kind == "heavy tails":
        return 0.1 * rng.standard_t(1.5, size=(n, n_columns))
    if kind == "ties":
        return normal.round()
    if kind == "many equal":
        return np.where(np.arange(n)[:, None] < n - 2, 0.0, normal)
    if kind == "all equal":
        return np.full((n, n_columns), 0.7)
    if kind == "sphere":
        return normal / np.linalg.norm(normal, axis=1, keepdims=True)
    if kind == "far from zero":
        return normal + 1e9
    if kind == "one outlier":
        return np.vstack([normal[1:], np.full((1, n_columns), 1e6)])
    if kind == "two ends":
        return np.where(np.arange(n)[:, None] % 2, 1.0, -1.0) * np.ones(n_columns)
    return normal


def squared_distances(rows: np.ndarray) -> np.ndarray:
    """By a loop over all pairs."""
    squares = np.zeros((len(rows), len(rows)))
    for x, j in combinations(range(len(rows)), 2):
        squares[x, j] = squares[j, x] = sum((a - b) ** 2 for a, b in zip(rows[x], rows[j], strict=True))
    return squares


def means_over_pairs(rows: np.ndarray, reserve: float) -> np.ndarray:
    """For each record, by a loop over the others."""
    squares, n = squared_distances(rows), len(rows)
    means = np.zeros(n)
    for x in range(n):
        lengths = [math.sqrt(squares[x, j] + reserve**2) for j in range(n) if j != x]
        means[x] = np.mean([2 * stats.norm.cdf(length / 2) - 1 for length in lengths])
    return means


@pytest.mark.by_day(
    "2-1-all equal",
    "2-1-one outlier",
    "3-2-one outlier",
    "9-1-sphere",
    "9-3-all equal",
    "24-2-two ends",
)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "n_columns"), [(2, 1), (3, 2), (9, 1), (9, 3), (24, 2)])
def test_they_are_what_loops_over_all_pairs_give(kind, n, n_columns) -> None:
    rng = np.random.default_rng([n, n_columns])
    for _ in range(3):
        rows = table(kind, n, n_columns, rng)
        for reserve in (0.0, 0.3, 2.0):
            means = means_over_pairs(rows, reserve)
            worst = joint_advantage(rows, reserve)
            assert worst.advantage == pytest.approx(means.max(), rel=1e-12, abs=1e-15)
            assert means[worst.record] == pytest.approx(means.max(), rel=1e-12, abs=1e-15)
        largest = math.sqrt(squared_distances(rows).max())
        assert largest_distance(rows) == pytest.approx(largest, rel=1e-12)


def test_of_three_records_a_search_that_is_cut_short_is_on_the_safe_side(monkeypatch) -> None:
    """All three pairs of an equilateral triangle have one distance: the bound without pairs is attained."""
    triangle = np.array([[0.0, 0.0], [0.5, 0.0], [0.25, 0.25 * math.sqrt(3)]])
    monkeypatch.setattr(left_out_joint, "_MOST_DISTANCES", 0)
    for reserve in (0.0, 0.4):
        exact = 2 * stats.norm.cdf(math.hypot(0.5, reserve) / 2) - 1
        assert joint_advantage(triangle, reserve).advantage == pytest.approx(exact, rel=1e-12)
    left = largest_reserve(triangle, 0.2)
    assert left == pytest.approx(math.sqrt((2 * stats.norm.ppf(0.7)) ** 2 - 0.25), rel=1e-8)


@pytest.mark.by_day("0.01-normal", "0.01-one outlier", "0.1-one outlier", "0.4-one outlier")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("eta", [0.01, 0.1, 0.4])
def test_the_reserve_is_the_largest_one_on_the_safe_side(kind, eta) -> None:
    rng = np.random.default_rng(3)
    for n in (2, 5, 17):
        rows = table(kind, n, 2, rng) * rng.choice([0.05, 0.5])
        reserve = largest_reserve(rows, eta)
        nothing = means_over_pairs(rows, 0.0).max()
        if nothing > 2 * eta:
            assert reserve == 0
        else:
            assert joint_advantage(rows, reserve).advantage <= 2 * eta
            assert means_over_pairs(rows, reserve * (1 + 1e-8) + 1e-11).max() > 2 * eta


@pytest.mark.parametrize("n", [2, 3, 1000])
def test_without_releases_the_reserve_is_that_of_one_pair(n) -> None:
    nothing = np.zeros((n, 0))
    assert joint_advantage(nothing).advantage == 0
    assert largest_distance(nothing) == 0
    for eta in (0.001, 0.05, 0.3, 0.49):
        assert largest_reserve(nothing, eta) == pytest.approx(2 * stats.norm.ppf(0.5 + eta), rel=2e-9)
        assert joint_advantage(nothing, largest_reserve(nothing, eta)).advantage <= 2 * eta


def test_a_release_that_takes_all_leaves_nothing() -> None:
    """The noise is at most 1e-9 above the least one, and so is what it leaves."""
    values = np.random.default_rng(0).lognormal(size=(200, 1))
    white = values / calibrate_left_out(values, 0.05).scale
    assert largest_reserve(white, 0.05) < 1e-4
    assert largest_reserve(white * 1.001, 0.05) == 0
    half = largest_reserve(white, 0.1)
    assert 0 < half < 2 * stats.norm.ppf(0.6)
    assert joint_advantage(white, half).advantage == pytest.approx(0.2, rel=1e-8)


def test_without_a_reserve_it_is_the_mean_over_pairs_of_one_release() -> None:
    rows = np.random.default_rng(1).normal(size=(300, 1))
    lengths = np.abs(rows - rows.T)
    means = GaussianNoise(1.0).shift_tv(lengths).sum(axis=1) / 299
    assert joint_advantage(rows).advantage == pytest.approx(means.max(), rel=1e-12)
    assert joint_advantage(rows).advantage >= LeftOut(rows).worst(GaussianNoise(1.0)).advantage * (1 - 1e-12)


class TestManyRecords:
    """A hundred thousand records: what is found is checked, and how many rows were compared with all others."""

    @pytest.fixture
    def visited(self, monkeypatch) -> list[int]:
        places: list[int] = []
        squares_from = left_out_joint._Rows._squares_from

        def counted(rows, place: int):
            places.append(place)
            return squares_from(rows, place)

        monkeypatch.setattr(left_out_joint._Rows, "_squares_from", counted)
        return places

    @pytest.mark.by_day("ties")
    @pytest.mark.parametrize("kind", ["normal", "heavy tails", "ties", "far from zero", "one outlier"])
    def test_few_records_are_compared_with_all(self, visited, kind) -> None:
        rows = table(kind, 100_000, 2, np.random.default_rng(0)) * 0.1
        worst = joint_advantage(rows, 0.2)
        assert len(visited) <= 20
        squares = np.square(rows - rows[worst.record]).sum(axis=1) + 0.04
        of_others = np.delete(GaussianNoise(1.0).shift_tv(np.sqrt(squares)), worst.record)
        assert worst.advantage == pytest.approx(of_others.mean(), rel=1e-9)
        visited.clear()
        largest_reserve(rows, min(worst.advantage, 0.8) / 2)
        assert len(visited) <= 20
        visited.clear()
        distance = largest_distance(rows)
        assert len(visited) == 2
        farthest = np.abs(rows - np.median(rows, axis=0)).max(axis=1).argsort()[-1000:]
        assert distance >= math.sqrt(squared_distances(rows[farthest[-200:]]).max()) * (1 - 1e-12)

    def test_a_search_that_takes_too_long_ends_with_a_larger_bound(self, monkeypatch) -> None:
        rows = table("sphere", 400, 20, np.random.default_rng(0))
        exact = joint_advantage(rows, 0.1), largest_reserve(rows, 0.45), largest_distance(rows)
        monkeypatch.setattr(left_out_joint, "_MOST_DISTANCES", 2000)
        worst, reserve, distance = joint_advantage(rows, 0.1), largest_reserve(rows, 0.45), largest_distance(rows)
        assert exact[0].advantage < worst.advantage <= 1.05 * exact[0].advantage
        assert exact[1] > reserve >= 0.8 * exact[1]
        assert exact[2] < distance <= 2 * np.linalg.norm(rows - rows.mean(axis=0), axis=1).max()
        assert joint_advantage(rows, reserve).advantage <= 0.9


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda: joint_advantage(np.zeros((1, 2))), r"must have shape \(n, D\), n >= 2; got \(1, 2\)$"),
        (lambda: largest_distance(np.array([[np.nan], [1.0]])), r"must be finite, and no value above 1e\+140$"),
        (lambda: largest_reserve(np.array([[1e141], [1.0]]), 0.1), r"must be finite, and no value above 1e\+140$"),
        (lambda: joint_advantage(np.zeros((2, 1)), -1.0), r"^reserve must be >= 0, got -1$"),
        (lambda: joint_advantage(np.zeros((2, 1)), math.nan), r"^reserve must be finite, got nan$"),
        (lambda: largest_reserve(np.zeros((2, 1)), 0.5), r"^eta must be > 0 and < 0.5, the smaller prior; got 0.5$"),
        (lambda: largest_reserve(np.zeros((2, 1)), 5), r"eta is a fraction: 5 is out of range; did you mean 0.05\?"),
    ],
)
def test_bad_values_are_one_line(call, line) -> None:
    with pytest.raises(ValueError, match=line) as error:
        call()
    assert "\n" not in str(error.value)


def test_large_and_small_values() -> None:
    assert joint_advantage(np.array([[0.0], [1e140]])).advantage == 1
    assert joint_advantage(np.array([[0.0], [1.0]]), 1e300).advantage == 1
    assert largest_distance(np.array([[-1e140], [1e140]])) == pytest.approx(2e140)
    assert largest_distance(np.array([[0.0], [1e-150]])) == pytest.approx(1e-150)
