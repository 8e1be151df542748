"""Rows that can be the highest: no mean of a growing function is larger among those that are left out."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import beta

from leakbound.core.ranks import rank_limits, undominated
from leakbound.noise import GaussianNoise, Shifts, eta_bound, worst_eta

TABLES = arrays(float, st.tuples(st.integers(1, 9), st.integers(1, 6)), elements=st.sampled_from([0.0, 1.0, 2.0, 5.0]))


@given(TABLES)
def test_every_row_that_is_left_out_lies_below_one_that_is_kept(table):
    ordered = np.sort(table, axis=1)
    kept = undominated(ordered)
    assert len(np.unique(ordered[kept], axis=0)) == len(kept)  # of equal rows one
    for row in ordered:
        assert any((row <= ordered[one]).all() for one in kept)


@given(TABLES, st.floats(0.1, 10))
def test_the_worst_eta_is_the_largest_of_all_rows(table, scale):
    shifts = Shifts(table, "swap", d=1)
    assert abs(worst_eta(shifts, GaussianNoise(scale)) - eta_bound(shifts, GaussianNoise(scale)).max()) < 1e-12


@given(TABLES, st.floats(0.1, 10), st.integers(0, 9))
def test_weights_that_differ_are_heeded(table, scale, seed):
    weights = np.random.default_rng(seed).dirichlet(np.ones(table.shape[1]))
    for values in (table, np.sort(table, axis=1)):
        shifts = Shifts(values, "swap", d=1, weights=weights)
        assert abs(worst_eta(shifts, GaussianNoise(scale)) - eta_bound(shifts, GaussianNoise(scale)).max()) < 1e-12


def test_many_lengths_are_grouped_upwards_and_hardly_cost_noise():
    values = np.abs(np.random.default_rng(0).standard_cauchy(size=(1, 300_000)))
    shifts, noise = Shifts(values, "swap", d=1), GaussianNoise(3.0)
    exact, grouped = eta_bound(shifts, noise).max(), worst_eta(shifts, noise)
    assert exact <= grouped <= exact + 1e-4
    assert shifts.highest().values.shape[1] <= 1 << 14


def test_more_rows_than_champions_are_kept():
    """Rows (i, 200 - i) dominate each other in no pair."""
    ordered = np.array([[i, 200.0 - i] for i in range(100)])
    assert len(undominated(ordered)) == 100


def test_limits_of_ranks_are_quantiles_of_beta_laws():
    for n in (1, 7, 500, 501, 20_000):
        ranks, limits = rank_limits(n, 0.05)
        assert len(ranks) == len(limits) <= 500
        assert ranks[-1] == n - 1
        assert (np.diff(limits) > 0).all()
        np.testing.assert_allclose(beta.cdf(limits, ranks + 1, n - ranks), 0.05 / len(ranks), rtol=1e-6)
        assert abs(limits[-1] - (0.05 / len(ranks)) ** (1 / n)) < 1e-9


def test_all_limits_hold_at_once():
    """95 %: at least 3,760 of 4,000 samples of uniform numbers lie nowhere below their limits."""
    drawn = np.sort(np.random.default_rng(0).uniform(size=(4000, 60)), axis=1)
    ranks, limits = rank_limits(60, 0.05)
    assert (drawn[:, ranks] >= limits).all(axis=1).sum() >= 3760
