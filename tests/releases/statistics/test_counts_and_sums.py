"""Noisy counts and sums: what one record can move, by enumeration, and the numbers that are made of them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq

from leakbound.core.types import Points
from leakbound.protection.promises.anyone.sensitivity import sensitivity
from leakbound.protection.setting.mechanism import Mechanism
from leakbound.releases.statistics.counts_and_sums import ColumnCountsAndSums, CountAndProducts, means_of
from leakbound.releases.statistics.group_means import CountsAndSums, GroupCountsAndSums
from leakbound.releases.statistics.statistic import Linear

MU = 0.25132269  # 2 Phi^-1(.55)
Z = 1.959964
LOW, HIGH = -1.0, 5.0  # of every column; half of the width is 3
COUNT_OF_ONE = 2 / (np.sqrt(3) * MU)


def records(n_columns: int, values: list[float], groups: list[str]) -> pd.DataFrame:
    """All combinations of values of the columns, a missing one among them, in every group and in none."""
    names = [f"c{place}" for place in range(n_columns)]
    rows = [
        (*row, group) for row in product([*values, np.nan], repeat=n_columns) for group in [*groups, "another group"]
    ]
    return pd.DataFrame(rows, columns=[*names, "g"])


def scales_and_largest_shift(features: CountsAndSums, table: pd.DataFrame) -> tuple[np.ndarray, float]:
    """Return the noise of each coordinate at mu, and how far two records are apart in it at most."""
    bound = sensitivity(Mechanism(Linear("count and sum", features, "sum"), Points(table), len(table)))
    scales = bound.l2 * bound.unit / MU
    moved = features(table) / scales
    apart = moved[:, None] - moved[None]
    in_units = features(table) / bound.unit
    assert np.abs(in_units[:, None] - in_units[None]).sum(axis=2).max() <= bound.l1 + 1e-9
    return scales, float(np.linalg.norm(apart, axis=2).max())


class TestSensitivity:
    @pytest.mark.parametrize("n_columns", [1, 2, 3])
    @pytest.mark.parametrize("n_groups", [1, 2, 3])
    def test_of_groups(self, n_columns: int, n_groups: int) -> None:
        """The noise is that of the theory, and no two records are further apart than mu, which is attained."""
        groups = [f"g{place}" for place in range(n_groups)]
        names = tuple(f"c{place}" for place in range(n_columns))
        features = GroupCountsAndSums(("g",), (tuple(groups),), names, ((LOW, HIGH),) * n_columns)
        scales, largest = scales_and_largest_shift(features, records(n_columns, [LOW, HIGH], groups))
        of_count = COUNT_OF_ONE if n_groups == 1 else 2 / MU
        assert scales[:n_groups] == pytest.approx(of_count)
        assert scales[n_groups:] == pytest.approx(2 * 3 * np.sqrt(n_columns) / MU)
        assert largest == pytest.approx(MU, rel=1e-9)

    @pytest.mark.parametrize("n_columns", [1, 2, 3])
    def test_of_columns(self, n_columns: int) -> None:
        """Each column has a count of its own."""
        features = ColumnCountsAndSums(tuple(f"c{place}" for place in range(n_columns)), ((LOW, HIGH),) * n_columns)
        scales, largest = scales_and_largest_shift(features, records(n_columns, [LOW, HIGH], []))
        assert scales[:n_columns] == pytest.approx(COUNT_OF_ONE * np.sqrt(n_columns))
        assert scales[n_columns:] == pytest.approx(2 * 3 * np.sqrt(n_columns) / MU)
        assert largest == pytest.approx(MU, rel=1e-9)

    @pytest.mark.parametrize("n_columns", [1, 2, 3])
    @pytest.mark.parametrize("ends", [(LOW, HIGH), (2.0, 5.0), (-3.0, 3.0)])
    @pytest.mark.parametrize("is_covariance", [False, True])
    def test_of_products(self, n_columns: int, ends: tuple[float, float], is_covariance: bool) -> None:
        """Not only corners: a product of two columns is no convex function of both."""
        columns = tuple(f"c{place}" for place in range(n_columns))
        centre = sum(ends) / 2 if is_covariance else 0.0
        features = CountAndProducts(columns, (ends,) * n_columns, (centre,) * n_columns, is_covariance)
        values = np.linspace(*ends, 7 if n_columns < 3 else 5).tolist()  # 0 is among them where it is in the range
        _, largest = scales_and_largest_shift(features, records(n_columns, values, []))
        assert largest <= MU * (1 + 1e-9)
        if n_columns == 1 and not is_covariance:
            assert largest == pytest.approx(MU, rel=1e-9)

    def test_the_noise_of_one_square(self) -> None:
        """From 2 to 5 a square moves by 21, and the count costs nothing: by hand."""
        features = CountAndProducts(("c0",), ((2.0, 5.0),), (0.0,))
        scales, _ = scales_and_largest_shift(features, records(1, [2.0, 5.0], []))
        assert scales == pytest.approx([COUNT_OF_ONE, 21 / MU])


class TestIntervals:
    @pytest.mark.parametrize(("total", "count"), [(-300.0, 40.0), (1000.0, 31.0), (12.0, 900.0), (5.0, 3.5)])
    def test_the_ends_are_where_the_test_turns(self, total: float, count: float) -> None:
        """The ends solve |S - (m - middle) N| = z sqrt(s^2 + (m - middle)^2 t^2), found by bisection."""
        s, t, low, high = 80.0, 1.7, -100.0, 140.0
        value, std, lower, upper = (
            float(each[0])
            for each in means_of(np.array([total]), np.array([count]), np.array([s]), np.array([t]), [(low, high)])
        )
        assert value == pytest.approx(20 + total / count)
        assert std == pytest.approx(np.sqrt(s**2 + (total / count) ** 2 * t**2) / count)

        def excess(mean: float) -> float:
            return abs(total - (mean - 20) * count) - Z * np.sqrt(s**2 + (mean - 20) ** 2 * t**2)

        for end, of_range in ((lower, low), (upper, high)):
            if end in (low, high):
                assert excess(of_range) <= 0
            else:
                assert end == pytest.approx(brentq(excess, value, of_range), rel=1e-9)

    def test_none_where_the_count_says_too_little(self) -> None:
        made = means_of(np.array([3.0, 3.0]), np.array([9.0, 9.9]), np.ones(2), np.full(2, 5.0), [(0.0, 1.0)] * 2)
        assert [np.isnan(each).tolist() for each in made] == [[True, False]] * 4

    def test_outside_of_the_range_the_nearer_end(self) -> None:
        """A sum of 900 over 100 records of at most 5 from the middle: far above the range."""
        value, _, low, high = means_of(np.array([900.0]), np.array([100.0]), np.ones(1), np.ones(1), [(0.0, 10.0)])
        assert (value[0], low[0], high[0]) == (10.0, 10.0, 10.0)


def test_a_covariance_without_noise() -> None:
    """Against numpy, of the complete records; the middle of the ranges does not matter."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.uniform(0, 10, (200, 3)), columns=["a", "b", "c"])
    table.loc[[3, 8], "a"] = np.nan
    table.loc[5, "c"] = np.nan
    features = CountAndProducts(("a", "b", "c"), ((0.0, 10.0), (-2.0, 12.0), (0.0, 99.0)), (5.0, 5.0, 49.5), True)
    made = features.finished(features(table).sum(axis=0), np.zeros(10))
    wanted = np.cov(table.dropna().to_numpy().T, bias=True)[np.triu_indices(3)]
    assert made.value[:-1] == pytest.approx(wanted, rel=1e-9)
    assert (made.value[-1], made.labels[1], made.labels[-1]) == (197, "covariance of a b", "records with a and b and c")


COVERAGE = [(7760, "one"), (300, "one"), (30, "one"), (30, "groups")]


def _coverage(n_answers: int, kind: str, n_releases: int, seed: int) -> float:
    """Draw noise for the mean of lognormal incomes, and return how often the interval holds the mean.

    Whoever is not printed counts as held: what is exact is the mean over all releases.
    """
    rng = np.random.default_rng(seed)
    income = np.minimum(rng.lognormal(7.7, 0.6, n_answers), 20_000)
    s, t = 20_000 / MU, COUNT_OF_ONE if kind == "one" else 2 / MU
    sums = (income - 10_000).sum() + s * rng.standard_normal(n_releases)
    counts = n_answers + t * rng.standard_normal(n_releases)
    _, _, low, high = means_of(sums[:, None], counts[:, None], np.array([s]), np.array([t]), [(0.0, 20_000.0)])
    misses = (low > income.mean()) | (high < income.mean())  # not where they are NaN
    return 1 - float(misses.mean())


@pytest.mark.parametrize(("n_answers", "kind"), COVERAGE)
def test_coverage(n_answers: int, kind: str) -> None:
    """4,000 releases: outside of .95 -+ .0175 with probability 4e-7; a coverage of .91 is seen with .99999."""
    covered = _coverage(n_answers, kind, 4_000, seed=n_answers)
    assert covered > 0.9325
    if n_answers > 100:
        assert covered < 0.9675


@pytest.mark.parametrize("n", [150, 2000])
def test_coverage_of_covariances(n: int) -> None:
    """4,000 releases of three covariances: to first order, which holds above 20 deviations of the count's noise.

    At a coverage of .95 one of six is below .9325 with probability 1e-6.
    """
    rng = np.random.default_rng(n)
    table = pd.DataFrame({"age": rng.uniform(18, 99, n), "income": np.minimum(rng.lognormal(7.7, 0.6, n), 20_000)})
    features = CountAndProducts(("age", "income"), ((0.0, 100.0), (0.0, 20_000.0)), (50.0, 10_000.0), True)
    bound = sensitivity(Mechanism(Linear("count and sum", features, "sum"), Points(table), n))
    deviations = bound.l2 * bound.unit / MU
    noise = deviations * rng.standard_normal((4_000, 6))
    made = features.finished(features(table).sum(axis=0) + noise, deviations)
    wanted = np.cov(table.to_numpy().T, bias=True)[np.triu_indices(2)]
    held = (made.low[:, :3] <= wanted) & (wanted <= made.high[:, :3])
    assert held.mean(axis=0).min() > 0.9325


@pytest.mark.nightly
@pytest.mark.parametrize(("n_answers", "kind"), COVERAGE)
def test_coverage_of_many(n_answers: int, kind: str) -> None:
    """40,000 releases, as the docstring of the short one: outside of .95 -+ .0055 with probability 5e-7."""
    covered = _coverage(n_answers, kind, 40_000, seed=n_answers)
    assert covered > 0.9445
    if n_answers > 100:
        assert covered < 0.9555
