import numpy as np
import pytest
from scipy import stats

from leakbound.core.types import Scores
from leakbound.metrics.ranked import RankedScores
from leakbound.metrics.rows import ranked
from leakbound.metrics.spread import Shifts


def drawn(n_models, n_records, spread, decimals=9, seed=0):
    rng = np.random.default_rng(seed)
    member = np.tile(np.arange(n_records) % 2 == 0, (n_models, 1))
    value = rng.normal(size=member.shape) + spread * rng.normal(size=(n_models, 1)) + member
    return Scores("drawn", value.round(decimals), member)


@pytest.mark.parametrize("decimals", [0, 9])
def test_normal_scores_are_those_of_mid_ranks(decimals):
    scores = drawn(5, 40, 0.5, decimals)
    ranks = stats.rankdata(scores.value).reshape(scores.value.shape)
    expected = stats.norm.ppf((ranks - 0.5) / scores.value.size)
    ordered = ranked(scores)
    for model in range(5):
        for side in (0, 1):
            of_class = np.sort(expected[model][scores.member[model] == bool(side)])
            assert ordered.normal_scores(ordered.columns[2 * model + side]) == pytest.approx(of_class)


def test_an_increasing_transform_of_the_scores_changes_nothing():
    scores = drawn(6, 50, 1.0)
    transformed = Scores("transformed", np.exp(3 * scores.value), scores.member)
    first, second = (Shifts(ranked(each)) for each in (scores, transformed))
    assert first.spread == pytest.approx(second.spread)
    assert first.shift == pytest.approx(second.shift)


@pytest.mark.parametrize("spread", [0.0, 0.3, 1.0, 2.0])
def test_the_spread_is_found(spread):
    # 400 models: the standard error of the estimate is 4 % of it
    assert Shifts(ranked(drawn(400, 200, spread))).spread == pytest.approx(spread, rel=0.15, abs=0.05)


def test_upper_limits_are_those_of_a_standard_deviation():
    shifts = Shifts(ranked(drawn(9, 200, 1.0)))
    measured = np.std(shifts.shift, ddof=1) / shifts.noise
    assert shifts.spread_upper(0.05) == pytest.approx(measured * np.sqrt(8 / stats.chi2.ppf(0.05, 8)))
    assert shifts.dilation(0.05) == pytest.approx(np.sqrt(4 / stats.chi2.ppf(0.05, 4)))


@pytest.mark.parametrize("piece", [0, 4])
@pytest.mark.parametrize("decimals", [0, 9])
@pytest.mark.parametrize("factor", [1.0, 3.0])
def test_the_largest_gain_is_that_of_the_best_threshold_of_dilated_scores(factor, decimals, piece):
    scores = drawn(4, 30, 1.0, decimals)
    shifts = Shifts(RankedScores(scores.value, scores.member, piece))
    normal = stats.norm.ppf((stats.rankdata(scores.value).reshape(4, 30) - 0.5) / 120)
    dilated = normal + (factor - 1) * (shifts.shift - shifts.shift.mean())[:, None]
    weight = np.random.default_rng(1).normal(size=(4, 2))
    of_each = np.where(scores.member, weight[:, 1:], weight[:, :1])
    # equal sums in another order of addition may differ in the last digit, so that ties are found by a margin
    expected = max(of_each[dilated >= cut - 1e-9].sum() for cut in [*dilated.ravel(), 10.0])
    assert shifts.largest_gain(factor, weight) == pytest.approx(expected)


def test_scores_without_noise_have_a_finite_spread():
    member = np.tile(np.arange(20) % 2 == 0, (4, 1))
    assert Shifts(ranked(Scores("perfect", member * 1.0, member))).spread == 0
    apart = Shifts(ranked(Scores("apart", member * 0.0 + np.arange(4.0)[:, None], member)))
    assert 1e3 < apart.spread < np.inf
