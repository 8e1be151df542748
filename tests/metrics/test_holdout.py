"""Fractions of members against those of a control group: published examples, exact coverage, refusals."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import binom, binomtest, chi2

from leakbound.core.types import NotApplicable
from leakbound.metrics.holdout import Counted, disclosed_fraction, excess

SIZES = ((10, 10), (40, 15), (100, 100))
RATES = (0.001, 0.01, 0.1, 0.35, 0.5, 0.75, 0.95)


def test_the_score_interval_is_that_of_koopman():
    # Koopman (1984), Biometrics 40, p. 515: 36 of 40 against 16 of 80, a ratio of 4.5, 95 %: 2.94 to 7.15
    interval = disclosed_fraction(Counted(members=4, controls=64, of_members=40, of_controls=80))
    assert 1 - interval.value == pytest.approx(4.5)
    assert 1 - interval.high == pytest.approx(2.94, abs=0.005)
    assert 1 - interval.low == pytest.approx(7.15, abs=0.005)


@pytest.mark.parametrize("counted", [Counted(30, 10, 60, 50), Counted(0, 3, 20, 30), Counted(25, 1, 25, 40)])
def test_its_ends_are_where_a_chi_squared_test_begins_to_reject(counted):
    interval = disclosed_fraction(counted)
    missed = counted.of_members - counted.members, counted.of_controls - counted.controls

    def smallest_chi_squared(ratio):
        """The nuisance parameter by maximum likelihood, found by search."""

        def negative_log_likelihood(p):
            return -(
                binom.logpmf(missed[0], counted.of_members, ratio * p) + binom.logpmf(missed[1], counted.of_controls, p)
            )

        p = minimize_scalar(
            negative_log_likelihood, bounds=(1e-9, min(1, 1 / ratio) - 1e-9), method="bounded", options={"xatol": 1e-12}
        ).x
        parts = ((missed[0], counted.of_members, ratio * p), (missed[1], counted.of_controls, p))
        return sum((x - n * rate) ** 2 / (n * rate * (1 - rate)) for x, n, rate in parts)

    ends = [1 - interval.low] + ([1 - interval.high] if missed[0] else [])
    for ratio in ends:
        assert smallest_chi_squared(ratio) == pytest.approx(chi2.ppf(0.95, 1), rel=1e-4)
    assert missed[0] or interval.high == interval.value == 1


def test_the_difference_is_joined_by_squares():
    # Newcombe (1998), Statistics in Medicine 17, p. 873, example (a): 56 of 70 against 48 of 80; by Wilson's limits
    # .0524 to .3339, here by exact ones
    of_members, of_controls = (binomtest(k, n).proportion_ci(method="exact") for k, n in ((56, 70), (48, 80)))
    interval = excess(Counted(56, 48, 70, 80))
    assert interval.value == pytest.approx(0.2)
    assert interval.low == pytest.approx(0.2 - np.hypot(0.8 - of_members.low, of_controls.high - 0.6))
    assert interval.high == pytest.approx(0.2 + np.hypot(of_members.high - 0.8, 0.6 - of_controls.low))
    assert interval.low < 0.0524 < 0.3339 < interval.high


@pytest.mark.parametrize("sizes", SIZES)
def test_both_intervals_cover_at_all_rates(sizes):
    """By enumeration of all counts: no simulation, so no false alarm. The score interval is approximate."""
    n_members, n_controls = sizes
    a, h = np.arange(n_members + 1), np.arange(n_controls + 1)
    low, high = np.full((2, len(a), len(h)), np.nan)
    low_disclosed, high_disclosed = np.full_like(low, -np.inf), np.full_like(high, np.inf)
    for i in a.tolist():
        for j in h.tolist():
            counted = Counted(i, j, n_members, n_controls)
            low[i, j], high[i, j] = excess(counted).low, excess(counted).high
            if j < n_controls:
                disclosed = disclosed_fraction(counted)
                low_disclosed[i, j], high_disclosed[i, j] = disclosed.low, disclosed.high
    covered_disclosed = []
    for p in RATES:
        for q in RATES:
            weight = binom.pmf(a, n_members, p)[:, None] * binom.pmf(h, n_controls, q)
            assert weight[(low <= p - q) & (p - q <= high)].sum() > 0.949
            if p == q:  # a false accusation
                assert weight[low > 0].sum() < 0.025
                assert weight[low_disclosed > 0].sum() < 0.05
            fraction = 1 - (1 - p) / (1 - q)
            is_covered = (low_disclosed <= fraction + 1e-9) & (fraction - 1e-9 <= high_disclosed)
            covered_disclosed.append(weight[is_covered].sum())
    assert min(covered_disclosed) > 0.91
    assert np.mean(covered_disclosed) > 0.95


def test_nothing_is_said_where_every_control_is_matched():
    with pytest.raises(NotApplicable) as reason:
        disclosed_fraction(Counted(5, 20, 20, 20))
    assert reason.value.reason.id == "every_control_matched"
