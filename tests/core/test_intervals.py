"""Intervals against scipy.stats, naive twins, closed forms and their own promise."""

import math

import numpy as np
import pytest
from scipy import stats

from leakbound.core.intervals import (
    chernoff_kl_upper,
    clopper_pearson,
    clopper_pearson_lower,
    clopper_pearson_upper,
    cluster_t,
    delong,
    dkw,
    korn_graubard,
    placements,
    sampling_error,
)
from tests.marks import nightly


@pytest.mark.parametrize(("k", "n"), [(0, 1), (1, 1), (0, 40), (40, 40), (3, 20), (7, 1000), (999, 1000)])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_clopper_pearson_is_that_of_scipy(k, n, confidence):
    expected = stats.binomtest(k, n).proportion_ci(confidence, method="exact")
    interval = clopper_pearson(k, n, confidence)
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert interval.value == k / n


def test_one_sided_limits_solve_the_binomial_tails():
    k, n = np.arange(1, 20), 20
    low = clopper_pearson_lower(k, n, 0.01)
    high = clopper_pearson_upper(k - 1, n, 0.01)
    np.testing.assert_allclose(stats.binom.sf(k - 1, n, low), 0.01, rtol=1e-9)
    np.testing.assert_allclose(stats.binom.cdf(k - 1, n, high), 0.01, rtol=1e-9)


def test_one_sided_limits_without_trials_say_nothing():
    assert clopper_pearson_lower(0, 0, 0.05) == 0
    assert clopper_pearson_upper(0, 0, 0.05) == 1


@pytest.mark.parametrize("p", [0.003, 0.1, 0.37, 0.5, 0.98])
def test_clopper_pearson_covers_by_enumeration(p):
    intervals = [clopper_pearson(k, 30) for k in range(31)]
    inside = [interval.low <= p <= interval.high for interval in intervals]
    assert stats.binom.pmf(np.arange(31), 30, p)[inside].sum() >= 0.95


def test_chernoff_kl_reference_values():
    assert chernoff_kl_upper(0.15, 200, 0.05) == pytest.approx(0.218458235, abs=1e-9)
    assert chernoff_kl_upper(0.0, 100, 0.05) == pytest.approx(0.029513050, abs=1e-9)
    assert chernoff_kl_upper(0.0, 100, 0.05) == pytest.approx(1 - 0.05 ** (1 / 100), abs=1e-12)
    assert chernoff_kl_upper(1.0, 100, 0.05) == 1


def test_chernoff_kl_is_a_root():
    q = float(chernoff_kl_upper(0.3, 50, 0.025))
    kl = 0.3 * math.log(0.3 / q) + 0.7 * math.log(0.7 / (1 - q))
    assert 50 * kl == pytest.approx(math.log(40), rel=1e-9)


def test_chernoff_kl_is_never_wider_than_hoeffding():
    half_width = math.sqrt(math.log(1 / 0.025) / (2 * 80))
    for mean in (0.0, 0.2, 0.5, 0.9):
        assert chernoff_kl_upper(mean, 80, 0.025) <= min(mean + half_width, 1) + 1e-12


@pytest.mark.statistics
def test_dkw_band_holds_everywhere_at_once():
    # the band is conservative at n = 50 (true coverage about .96); false alarm below 1e-3
    assert dkw(50) == pytest.approx(math.sqrt(math.log(2 / 0.05) / 100))
    draws = np.sort(np.random.default_rng(0).random((4000, 50)), axis=1)
    upper, lower = np.arange(1, 51) / 50 - draws, draws - np.arange(50) / 50
    distance = np.maximum(upper, lower).max(axis=1)
    assert np.count_nonzero(distance <= dkw(50)) >= 3760


@pytest.mark.by_day("0.8-1-30", "0.95-12-30")
@pytest.mark.parametrize(("n", "n_all"), [(1, 30), (12, 30), (40, 60), (59, 60), (60, 60), (100, 400)])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_the_mean_of_a_sample_is_as_near_to_that_of_all_as_promised(n, n_all, confidence):
    """Exact, for any number of ones among zeros: the hypergeometric distribution."""
    most = sampling_error(n, n_all, confidence)
    for n_ones in range(n_all + 1):
        sampled = np.arange(n + 1)
        is_far = np.abs(sampled / n - n_ones / n_all) > most + 1e-12
        assert stats.hypergeom(n_all, n_ones, n).pmf(sampled)[is_far].sum() <= 1 - confidence


def test_a_sample_of_few_of_many_is_as_good_as_independent_draws():
    assert sampling_error(100, 10**12) == pytest.approx(math.sqrt(math.log(2 / 0.05) / 200))
    assert sampling_error(1, 2, 0.99999) == 1.0
    with pytest.raises(ValueError, match="n_all must be >= 5, got 4"):
        sampling_error(5, 4)


def test_cluster_t_is_that_of_scipy():
    values = np.array([0.52, 0.61, 0.55, 0.49, 0.58], dtype=np.float32).astype(float)
    expected = stats.t.interval(0.9, 4, values.mean(), stats.sem(values))
    interval = cluster_t(values, 0.9)
    assert (interval.low, interval.high) == pytest.approx(expected, rel=1e-12)
    assert interval.interval_over == "models"


def test_cluster_t_is_cut_to_its_range():
    interval = cluster_t(np.array([0.05, 1.0, 0.95]))
    assert (interval.low, interval.high) == (0, 1)


def test_models_that_overlap_count_less():
    values = np.array([0.52, 0.61, 0.55, 0.49, 0.58])
    alone, together = cluster_t(values), cluster_t(values, variance_inflation=4.0)
    assert together.high - together.value == pytest.approx(2 * (alone.high - alone.value))


@pytest.mark.parametrize(("value", "low", "high"), [(1.0, 0.025 ** (1 / 6), 1.0), (0.0, 0.0, 1 - 0.025 ** (1 / 6))])
def test_cluster_t_of_equal_models_is_not_a_point(value, low, high):
    interval = cluster_t(np.full(6, value))
    assert (interval.low, interval.high) == pytest.approx((low, high))


def test_korn_graubard_by_its_definition():
    p, variance, n, clusters = 0.03, 2e-5, 5000, 12
    ratio = stats.t.ppf(0.975, n - 1) / stats.t.ppf(0.975, clusters - 1)
    effective = p * (1 - p) / variance * ratio**2
    low = stats.beta.ppf(0.025, p * effective, effective * (1 - p) + 1)
    high = stats.beta.ppf(0.975, p * effective + 1, effective * (1 - p))
    interval = korn_graubard(p, variance, n, clusters)
    assert (interval.low, interval.high) == pytest.approx((low, high), rel=1e-10)


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_korn_graubard_at_the_ends_is_not_a_point(p):
    interval = korn_graubard(p, 0.0, 400, 8)
    exact = clopper_pearson(400 * p, 400)
    assert interval.low <= exact.low
    assert interval.high >= exact.high
    assert interval.high - interval.low < 0.02


def test_korn_graubard_never_claims_more_trials_than_there_were():
    interval, exact = korn_graubard(0.5, 1e-9, 100, 10**6), clopper_pearson(50, 100)
    assert interval.low >= exact.low - 1e-3
    assert interval.low <= exact.low + 1e-12


def naive_delong(positive, negative, confidence):
    """Structural components by the kernel of all pairs."""
    kernel = (positive[:, None] > negative) + 0.5 * (positive[:, None] == negative)
    area = kernel.mean()
    se = math.sqrt(kernel.mean(axis=1).var(ddof=1) / len(positive) + kernel.mean(axis=0).var(ddof=1) / len(negative))
    half = stats.norm.ppf((1 + confidence) / 2) * se / (area * (1 - area))
    centre = math.log(area / (1 - area))
    return area, 1 / (1 + math.exp(half - centre)), 1 / (1 + math.exp(-half - centre))


@pytest.mark.parametrize("decimals", [1, 12])
def test_delong_is_its_naive_twin_with_and_without_ties(decimals):
    rng = np.random.default_rng(3)
    positive = (rng.normal(size=70) + 0.8).round(decimals)
    negative = rng.normal(size=45).round(decimals)
    interval = delong(positive, negative, 0.9)
    assert (interval.value, interval.low, interval.high) == pytest.approx(naive_delong(positive, negative, 0.9))
    mirrored = delong(-positive, -negative, 0.9)
    assert (mirrored.low, mirrored.high) == pytest.approx((1 - interval.high, 1 - interval.low))


def test_placements_average_to_the_area():
    above, below = placements(np.array([1.0, 2.0, 2.0]), np.array([2.0, 0.0]))
    assert above.tolist() == [0.5, 0.75, 0.75]
    assert below.tolist() == [1.0, pytest.approx(1 / 3)]
    assert above.mean() == pytest.approx(below.mean())


def test_delong_of_separated_samples_is_not_a_point():
    interval = delong(np.arange(10.0, 30), np.arange(8.0))
    assert (interval.value, interval.high) == (1, 1)
    assert interval.low == pytest.approx(0.025 ** (1 / 8))
    assert delong(np.arange(8.0), np.arange(10.0, 30)).low == 0


def test_delong_of_a_constant_score_holds_one_half_widely():
    interval = delong(np.zeros(20), np.zeros(30))
    assert interval.value == 0.5
    assert interval.low < 0.3 < 0.7 < interval.high


@pytest.mark.by_day("0.0-20")
@pytest.mark.statistics
@pytest.mark.parametrize("n", [20, 100])
@pytest.mark.parametrize("distance", [0.0, nightly(1.0), nightly(2.5), 4.0])
def test_delong_covers(n, distance):
    # the true coverage lies between .945 and 1; false alarm below .01
    rng = np.random.default_rng(7)
    truth = stats.norm.cdf(distance / math.sqrt(2))
    positive, negative = rng.normal(distance, 1, (4000, n)), rng.normal(size=(4000, n))
    intervals = [delong(*pair) for pair in zip(positive, negative, strict=True)]
    assert sum(interval.low <= truth <= interval.high for interval in intervals) >= 3760


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: clopper_pearson(3, 2), "0 <= successes <= trials"),
        (lambda: clopper_pearson(0, 0), "trials must be > 0"),
        (lambda: clopper_pearson(1, 2, 1.0), "confidence must be > 0 and < 1"),
        (lambda: clopper_pearson_lower(1, 2, 0.0), "alpha must be > 0 and < 1"),
        (lambda: chernoff_kl_upper(1.2, 10, 0.05), "means in"),
        (lambda: cluster_t(np.array([0.5])), "models must be >= 2"),
        (lambda: korn_graubard(0.5, -1.0, 10, 3), "variance must be >= 0"),
        (lambda: delong(np.array([]), np.array([1.0])), "positive scores must be >= 1"),
    ],
)
def test_bad_numbers_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
