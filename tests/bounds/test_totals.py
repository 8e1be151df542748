import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from leakbound.bounds import cycle, totals
from leakbound.bounds.exact import exact_eta, subsets
from leakbound.bounds.quadrature import panel_integrals
from leakbound.bounds.totals import WholeNoise, exact_eta_total, on_grid
from leakbound.core.seeds import stream
from leakbound.noise import BallNoise, GaussianNoise, LaplaceNoise
from tests.marks import nightly, nightly_but

EIGHT = [0, 1, 3, 3, 7, 2, 9, 4]


def all_subsets(n, prior):
    member = subsets(n)
    size = member.sum(axis=1)
    return member, prior**size * (1 - prior) ** (n - size)


def counted(values, size=None):
    """Ways to each total >= 0 (of so many records), by whole numbers."""
    ways = np.zeros((len(values) + 1, sum(values) + 1), dtype=object)
    ways[0, 0] = 1
    for value in values:
        shifted = np.zeros_like(ways)
        shifted[1:, value:] = ways[:-1, : ways.shape[1] - value]
        ways = ways + shifted
    return ways.sum(axis=0) if size is None else ways[size]


def by_fractions(values, record, k=None):
    """eta of one record without a rounding error."""
    others = values[:record] + values[record + 1 :]
    outside = np.append(counted(others, k), np.zeros(values[record], dtype=object))
    inside = np.zeros_like(outside)
    inside[values[record] :] = counted(others, None if k is None else k - 1)
    total = int(inside.sum() + outside.sum())
    prior = Fraction(int(inside.sum()), total)
    return Fraction(int(np.maximum(inside, outside).sum()), total) - max(prior, 1 - prior)


def test_eight_records():
    expected = [0.0, 0.15625, 0.09375, 0.09375, 0.21875, 0.1875, 0.3125, 0.15625]
    np.testing.assert_allclose(exact_eta_total(EIGHT), expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("case", nightly_but(range(500), *range(100)))
def test_totals_agree_with_enumeration(case):
    rng = stream(0, "totals", case)
    n = int(rng.integers(2, 10))
    values = rng.integers(-9, 10, size=n) * int(rng.integers(1, 4))
    k, prior = int(rng.integers(1, n)), float(rng.choice([0.5, 0.25, rng.random()]))
    drawn = subsets(n, k)
    np.testing.assert_allclose(
        exact_eta_total(values, "fixed", k=k), exact_eta(drawn @ values, drawn), rtol=0, atol=1e-12
    )
    coins, weights = all_subsets(n, prior)
    np.testing.assert_allclose(
        exact_eta_total(values, prior=prior), exact_eta(coins @ values, coins, weights=weights), rtol=0, atol=1e-12
    )


@pytest.mark.by_day("7")
@pytest.mark.parametrize("k", [None, 30, 7])
def test_sixty_records_without_a_rounding_error(k):
    values = stream(0, "sixty").integers(0, 40, size=60).tolist()
    found = exact_eta_total(values, "poisson" if k is None else "fixed", k=k)
    for record in (0, 20, int(np.argmax(values))):
        assert found[record] == pytest.approx(float(by_fractions(values, record, k)), abs=1e-13)


@pytest.mark.parametrize("prior", [0.5, 0.07])
def test_two_thousand_records_by_convolution(prior):
    # sums of positive terms alone: no rounding error to speak of
    values = stream(0, "two thousand").geometric(0.1, size=2000)
    found = exact_eta_total(values, prior=prior)
    for record in (int(np.argmin(values)), int(np.argmax(values))):
        law = np.zeros(values.sum() + 1)
        law[0] = 1
        for value in np.delete(values, record):
            law *= 1 - prior
            law[value:] += prior / (1 - prior) * law[:-value]
        inside = np.append(np.zeros(values[record]), law)[: len(law)]
        naive = np.maximum(prior * inside, (1 - prior) * law).sum() - max(prior, 1 - prior)
        assert found[record] == pytest.approx(naive, abs=1e-12)


def test_the_cycle_may_be_shorter_than_the_range(monkeypatch):
    # what is folded has less than e^-42 of the mass: a cycle that folds nothing gives the same
    values = stream(0, "folded").integers(0, 30, size=300)
    folded = exact_eta_total(values), exact_eta_total(values, "fixed", k=100)
    monkeypatch.setattr(cycle, "_bernstein", lambda variance, largest, tail: 10_000)
    monkeypatch.setattr(cycle, "_TAIL", 1e6)
    for one, other in zip(folded, (exact_eta_total(values), exact_eta_total(values, "fixed", k=100)), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-13)


def test_a_value_that_no_other_hides():
    # all others are even: the parity of the total tells the odd one
    values = np.append(2 * stream(0, "even").integers(1, 20, size=400), [7])
    found, fixed = exact_eta_total(values), exact_eta_total(values, "fixed", k=200)
    assert found[-1] == pytest.approx(0.5, abs=1e-12)
    assert fixed[-1] == pytest.approx(200 / 401, abs=1e-12)
    assert max(found[:-1].max(), fixed[:-1].max()) < 0.1


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=12), st.floats(0.05, 0.95), st.integers(1, 1000))
def test_units_order_and_side_change_nothing(values, prior, unit):
    eta = exact_eta_total(values, prior=prior)
    np.testing.assert_allclose(exact_eta_total(values[::-1], prior=prior)[::-1], eta, atol=1e-12)
    np.testing.assert_allclose(exact_eta_total([-unit * v for v in values], prior=prior), eta, atol=1e-12)
    np.testing.assert_allclose(exact_eta_total(values, prior=1 - prior), eta, atol=1e-12)
    k = 1 + len(values) // 3
    fixed = exact_eta_total(values, "fixed", k=k)
    np.testing.assert_allclose(exact_eta_total([v + unit for v in values], "fixed", k=k), fixed, atol=1e-12)
    np.testing.assert_allclose(exact_eta_total(values, "fixed", k=len(values) - k), fixed, atol=1e-12)


def test_equal_values():
    # a total of equal values is the size of D
    np.testing.assert_allclose(exact_eta_total([7] * 6, "fixed", k=2), 0, atol=1e-14)
    by_coins = sum(math.comb(6, j) * max(j, 6 - j) for j in range(7)) / (6 * 64) - 0.5
    np.testing.assert_allclose(exact_eta_total([7] * 6), by_coins, atol=1e-14)
    np.testing.assert_allclose(exact_eta_total([0, 0]), 0, atol=1e-14)
    np.testing.assert_allclose(exact_eta_total([5]), 0.5, atol=1e-14)
    np.testing.assert_allclose(exact_eta_total([0, 10**6], "fixed"), 0.5, atol=1e-14)


# -- noise --


def rounded_gaussian(scale, radius):
    edges = np.arange(-radius, radius + 2) - 0.5
    chance = np.diff(stats.norm.cdf(edges / scale))
    return (chance + chance[::-1]) / (2 * chance.sum())


@pytest.mark.parametrize("k", [None, 3])
def test_whole_noise_is_a_larger_enumeration(k):
    pmf = rounded_gaussian(1.5, 8)
    member, weights = all_subsets(8, 0.5) if k is None else (subsets(8, k), np.ones(56))
    outputs = (member @ EIGHT)[:, None] + np.arange(-8, 9)
    joint = weights[:, None] * pmf
    expected = exact_eta(outputs.ravel(), np.repeat(member, 17, axis=0), weights=joint.ravel())
    found = exact_eta_total(EIGHT, "poisson" if k is None else "fixed", k=k, noise=WholeNoise(pmf))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("noise", [GaussianNoise(2.0), LaplaceNoise(1.3), nightly(GaussianNoise(0.9))])
@pytest.mark.parametrize("k", [None, 3])
def test_continuous_noise_is_the_integral_of_the_mixtures(noise, k):
    member, weights = all_subsets(8, 0.5) if k is None else (subsets(8, k), None)
    values = 3 * np.array(EIGHT)
    found = exact_eta_total(values, "poisson" if k is None else "fixed", k=k, noise=noise)
    np.testing.assert_allclose(found, exact_eta(member @ values, member, noise, weights), rtol=0, atol=1e-12)


@pytest.mark.slow
def test_noise_with_jumps():
    member, weights = all_subsets(4, 0.5)
    found = exact_eta_total([1, 2, 2, 4], noise=BallNoise(1.3, 1))
    expected = exact_eta(member @ [1, 2, 2, 4], member, BallNoise(1.3, 1), weights)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("noise", [GaussianNoise(1e-6), LaplaceNoise(1e-6), GaussianNoise(0.04)])
@pytest.mark.parametrize("sampling", ["fixed", "poisson"])
def test_noise_that_reaches_no_other_total_hides_nothing(noise, sampling):
    found = exact_eta_total(EIGHT, sampling, noise=noise)
    np.testing.assert_array_equal(found, exact_eta_total(EIGHT, sampling))
    member, weights = all_subsets(8, 0.5) if sampling == "poisson" else (subsets(8, 4), None)
    np.testing.assert_allclose(found, exact_eta(member @ EIGHT, member, noise, weights), rtol=0, atol=1e-12)


def test_rounding_is_no_reason_to_cut(monkeypatch):
    # most totals are impossible: what the transform leaves there is rounding, in panels of any width
    calls = []

    def counting(*given):
        calls.append(given)
        return panel_integrals(*given)

    monkeypatch.setattr(totals, "panel_integrals", counting)
    member, weights = all_subsets(2, 0.5)
    found = exact_eta_total([1, 10_003], noise=GaussianNoise(10.0))
    expected = exact_eta(member @ [1, 10_003], member, GaussianNoise(10.0), weights)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)
    assert found[0] == pytest.approx(stats.norm.cdf(0.05) - 0.5, abs=1e-13)
    assert len(calls) < 10


# -- real data --


@pytest.fixture(scope="module")
def hours(real_data):
    return pd.read_parquet(real_data / "adult.parquet")["hours-per-week"].to_numpy()


def test_the_total_of_the_hours_of_adult(hours):
    # with 48,842 records the law is normal but for its steps of 1 hour: TV/2 of a shift of 99 hours
    found = exact_eta_total(hours)
    variance = (hours.astype(float) ** 2).sum() / 4
    for value in (1, 40, 99):
        normal = stats.norm.cdf(value / 2 / math.sqrt(variance - value**2 / 4)) - 0.5
        assert found[np.argmax(hours == value)] == pytest.approx(normal, rel=2e-4)
    assert found.max() < 0.005


@pytest.mark.slow
def test_a_fixed_size_hides_the_common_part_of_the_hours(hours):
    found = exact_eta_total(hours, "fixed")
    deviation = hours - hours.mean()
    spread = math.sqrt(len(hours) * deviation.var() / 4)
    for value in (1, 60, 99):
        normal = stats.norm.cdf(abs(value - hours.mean()) / 2 / spread) - 0.5
        assert found[np.argmax(hours == value)] == pytest.approx(normal, rel=1e-2)
    # an hour near the mean is told by nothing but the rounding
    assert found[np.argmax(hours == 40)] == found.min()


# -- bad input --


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda: exact_eta_total([]), "values must have shape (n,), at least one; got (0,)"),
        (lambda: exact_eta_total([[1, 2]]), "values must have shape (n,), at least one; got (1, 2)"),
        (lambda: exact_eta_total([1, 2.5]), "values must be whole numbers, got 2.5; on_grid rounds them"),
        (lambda: exact_eta_total([1, math.nan]), "values must be finite, got nan"),
        (lambda: exact_eta_total([1, -math.inf]), "values must be finite, got -inf"),
        (
            lambda: exact_eta_total([1.0, 1e17]),
            "values reach 1e+17 steps of the grid; the limit is 4,503,599,627,370,496",
        ),
        (
            lambda: exact_eta_total([1, 2**40]),
            "a cycle of 1,107,376,897,725 totals has 553,688,448,863 frequencies; the limit is 33,554,432: "
            "round the values to a coarser grid",
        ),
        (lambda: exact_eta_total([1], "fixed"), "number of records must be >= 2, got 1"),
        (lambda: exact_eta_total([1, 2], "fixed", k=2), "k must be < the 2 records, got 2"),
        (
            lambda: exact_eta_total([1, 2], k=1),
            "k = 1 belongs to sampling='fixed'; sampling='poisson' takes a prior",
        ),
        (lambda: exact_eta_total([1, 2], prior=0.0), "prior must be > 0 and < 1, got 0"),
        (
            lambda: exact_eta_total([1, 2], noise=GaussianNoise(1e6)),
            "totals and noise range over 47,258,883 steps; the limit is 2,097,152: round the values to a coarser grid",
        ),
        (
            lambda: exact_eta_total([1, 10**6], noise=GaussianNoise(0.5)),
            "2 distinct values, totals over 1,058,841 steps and the density of noise of 0.5 steps take about "
            "135,531,648 numbers; the limit is 33,554,432: round the values to a coarser grid, "
            "or add noise of 64 steps",
        ),
        (
            lambda: exact_eta_total([1, 10**6], noise=BallNoise(300.0, 1)),
            "2 distinct values, totals over 1,058,841 steps and a jump of the density of noise of 173 steps take about "
            "135,531,648 numbers; the limit is 33,554,432: round the values to a coarser grid",
        ),
        (lambda: on_grid([1.0], 0), "grid must be > 0, got 0"),
        (lambda: on_grid([1.0], -1), "grid must be > 0, got -1"),
        (lambda: on_grid([1e300], 1e-300), "values reach inf steps of the grid; the limit is 4,503,599,627,370,496"),
        (lambda: WholeNoise([0.5, 0.5]), "probability must have shape (2 r + 1,), for -r ... r; got (2,)"),
        (lambda: WholeNoise([[0.5, 0.5]]), "probability must have shape (2 r + 1,), for -r ... r; got (1, 2)"),
        (lambda: WholeNoise([0.5, 0.5, 0.5]), "probability must be >= 0 with sum 1, got the sum 1.5"),
        (lambda: WholeNoise([0.5, 0.25, 0.25]), "probability must be symmetric"),
    ],
)
def test_bad_input_is_one_line(call, line):
    with pytest.raises(ValueError) as refused:
        call()
    assert str(refused.value) == line


def test_many_distinct_values_on_a_long_cycle_are_refused():
    values = 2 ** stream(0, "distinct").integers(0, 17, size=2000) + np.arange(2000)
    with pytest.raises(ValueError, match=r"^1,716 distinct values on a cycle of [0-9,]+ totals are [0-9,]+ numbers; "):
        exact_eta_total(values)


def test_real_values_on_a_grid():
    assert on_grid([0.24, 0.26, -0.26, 1e6], 0.5).tolist() == [0, 1, -1, 2_000_000]
