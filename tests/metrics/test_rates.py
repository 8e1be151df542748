from functools import partial

import numpy as np
import pytest
from scipy import stats

from leakbound.core.types import NotApplicable, Scores
from leakbound.metrics.rates import fpr_at_tpr, ppv, precision_at_recall, randomised_tpr, roc_band, tpr_at_fpr
from leakbound.metrics.rows import rows
from tests.levels import FULL, allowed, sizes
from tests.marks import nightly


def naive_tpr(value, member, fpr):
    """Largest TPR over all thresholds whose FPR is at most fpr."""
    false = np.array([(value[~member] >= cut).mean() for cut in np.unique(value)])
    true = np.array([(value[member] >= cut).mean() for cut in np.unique(value)])
    return true[false <= fpr].max(), false[false <= fpr].max()


@pytest.mark.parametrize("shape", [(1, 60), (5, 24), (60, 1)])
@pytest.mark.parametrize("decimals", [1, 9])
@pytest.mark.parametrize("fpr", [0.1, 0.25, 0.5, 0.9])
def test_value_is_its_naive_twin(shape, decimals, fpr):
    rng = np.random.default_rng(5)
    member = rng.random(shape) < 0.5
    value = (rng.normal(size=shape) + member).round(decimals)
    found = tpr_at_fpr(Scores("any", value, member), fpr)
    tpr, realised = naive_tpr(value, member, fpr)
    assert found.value == pytest.approx(tpr)
    assert found.detail["fpr"] == pytest.approx(realised)
    assert found.detail["false_alarms"] == round(realised * np.count_nonzero(~member))
    assert found.detail["games"] == np.count_nonzero(~member)
    assert (value[member] >= found.detail["threshold"]).mean() == pytest.approx(tpr)


def naive_fpr(value, member, tpr):
    """FPR and TPR of the highest threshold whose TPR is at least tpr."""
    cut = max(cut for cut in np.unique(value) if (value[member] >= cut).mean() >= tpr - 1e-12)
    return (value[~member] >= cut).mean(), (value[member] >= cut).mean()


@pytest.mark.parametrize("shape", [(1, 60), (5, 24), (60, 1)])
@pytest.mark.parametrize("decimals", [0, 1, 9])
@pytest.mark.parametrize("tpr", [0.1, 0.5, 0.75, 0.9])
def test_fpr_at_tpr_is_its_naive_twin(shape, decimals, tpr):
    rng = np.random.default_rng(5)
    member = rng.random(shape) < 0.5
    value = (rng.normal(size=shape) + member).round(decimals)
    found = fpr_at_tpr(Scores("any", value, member), tpr)
    fpr, realised = naive_fpr(value, member, tpr)
    assert found.value == pytest.approx(fpr)
    assert found.detail["tpr"] == pytest.approx(realised)
    assert found.detail["missed"] == round((1 - realised) * np.count_nonzero(member))
    assert found.detail["games"] == np.count_nonzero(member)
    called = value >= found.detail["threshold"]
    assert (called[member].mean(), called[~member].mean()) == (pytest.approx(realised), pytest.approx(fpr))
    assert found.low <= found.value <= found.high


def test_where_many_members_share_the_lowest_score_only_who_calls_everybody_finds_most():
    value, member = np.repeat([0.0, 1.0, 2.0], [20, 60, 20])[None, :], np.tile([True, False], 50)[None, :]
    found = fpr_at_tpr(Scores("coarse", value, member), 0.9)
    assert (found.value, found.low, found.high, found.detail["tpr"]) == (1, 0, 1, 1)
    assert precision_at_recall(Scores("coarse", value, member), 0.9, prior=0.3).value == pytest.approx(0.3)


def test_a_recall_that_allows_no_member_to_be_missed_is_refused(audits):
    (scores,) = audits(1, 1, 200, 1.0)
    assert fpr_at_tpr(scores, 0.99).detail["missed"] == 1
    with pytest.raises(NotApplicable, match=r"^100 members reach TPR 99 %$"):
        fpr_at_tpr(scores, 0.991)


@pytest.mark.parametrize("tpr", [0.0, 1.0, 99.0])
def test_recalls_are_checked(audits, tpr):
    (scores,) = audits(1, 2, 10, 1.0)
    with pytest.raises(ValueError, match="tpr"):
        fpr_at_tpr(scores, tpr)


def test_precision_at_recall_by_its_definition(audits):
    (scores,) = audits(1, 6, 400, 1.0)
    fpr, precision = fpr_at_tpr(scores, 0.8), precision_at_recall(scores, 0.8, prior=0.3)
    for end, other in (("value", "value"), ("low", "high"), ("high", "low")):
        rate = getattr(fpr, other)
        assert getattr(precision, end) == pytest.approx(0.3 * 0.8 / (0.3 * 0.8 + 0.7 * rate))
    assert precision.low < precision.value < precision.high


@pytest.mark.by_day("1-2000-0.0")
@pytest.mark.statistics
@pytest.mark.parametrize(("n_models", "n_points", "spread"), [(1, 2000, 0.0), (8, 200, 0.3)])
def test_the_fpr_at_the_true_quantile_is_covered(audits, covered, n_models, n_points, spread):
    # as for the rate of members below: false alarm below 1e-4, 400 audits find a coverage of .897
    truth = stats.norm.sf(stats.norm.isf(0.9) + 1 / np.hypot(1, spread))
    misses = 400 - covered(partial(fpr_at_tpr, tpr=0.9), audits(400, n_models, n_points, 1.0, spread), truth)
    assert misses <= allowed(400)


def test_a_rate_below_one_game_is_refused(audits):
    (scores,) = audits(1, 64, 1500, 1.0)
    with pytest.raises(NotApplicable, match=r"^48,000 games reach FPR 0\.021 %$"):
        tpr_at_fpr(scores, 1e-5)


def test_one_game_is_enough_at_its_own_rate(audits):
    (scores,) = audits(1, 1, 200, 1.0)
    assert tpr_at_fpr(scores, 0.01).detail["false_alarms"] == 1
    with pytest.raises(NotApplicable, match="100 games"):
        tpr_at_fpr(scores, 0.0099)


def test_a_strictest_threshold_too_coarse_is_refused():
    value, member = np.repeat([0.0, 1.0, 2.0], [20, 60, 20])[None, :], np.tile([True, False], 50)[None, :]
    with pytest.raises(NotApplicable, match=r"^strictest threshold gives FPR 20\.0 %$"):
        tpr_at_fpr(Scores("coarse", value, member), 0.1)
    assert tpr_at_fpr(Scores("coarse", value, member), 0.2).detail["threshold"] == 2


def test_one_point_is_named():
    member = np.tile([True, False], 30)[None, :]
    value = np.ones((1, 60))
    value[0, 1] = 0.0
    with pytest.raises(NotApplicable, match=r"^one point, at FPR 96\.7 %$"):
        tpr_at_fpr(Scores("gap", value, member), 0.1)
    with pytest.raises(NotApplicable, match=r"^strictest threshold gives FPR 100\.0 %$"):
        tpr_at_fpr(Scores("constant", np.ones((1, 60)), member), 0.1)


def test_members_above_all_others_are_found_without_a_false_alarm():
    value, member = np.array([[3.0, 3.0, 1.0, 1.0, 0.0, 1.0]]), np.array([[1, 1, 1, 0, 0, 0]], dtype=bool)
    found = tpr_at_fpr(Scores("apart", value, member), 0.4)
    assert (found.value, found.detail["fpr"]) == (pytest.approx(2 / 3), 0)
    assert found.low <= found.value <= found.high


@pytest.mark.parametrize("n_models", [1, 6])
def test_a_perfect_score_is_not_a_point(n_models):
    member = np.tile(np.arange(200) % 2 == 0, (n_models, 1))
    value = member + np.random.default_rng(0).random(member.shape) / 2
    found = tpr_at_fpr(Scores("perfect", value, member), 0.1)
    assert (found.value, found.high) == (1, 1)
    assert 0.9 < found.low < 1


@pytest.mark.parametrize("n_models", [1, 6])
def test_the_band_is_the_interval_at_each_rate(audits, n_models):
    (scores,) = audits(1, n_models, 400, 1.0)
    value, low, high = roc_band(scores, [0.02, 0.3], 0.9)
    for i, fpr in enumerate((0.02, 0.3)):
        found = tpr_at_fpr(scores, fpr, 0.9)
        assert (value[i], low[i], high[i]) == (found.value, found.low, found.high)


def test_ppv_by_its_definition(audits):
    (scores,) = audits(1, 6, 400, 1.0)
    tpr, share = tpr_at_fpr(scores, 0.1), ppv(scores, 0.1, prior=0.02)
    for end in ("value", "low", "high"):
        rate = getattr(tpr, end)
        assert getattr(share, end) == pytest.approx(0.02 * rate / (0.02 * rate + 0.98 * 0.1))
    assert share.detail == tpr.detail


@pytest.mark.parametrize("n_models", [1, 6])
def test_a_threshold_that_is_used_now_and_then_by_its_definition(n_models):
    """120 of 200 members and 40 of 200 others have the score 1: used in 1 of 4 cases at FPR 5 %, that finds 15 %."""
    member = np.tile(np.arange(400) < 200, (n_models, 1))
    value = np.tile(np.r_[np.ones(120), np.zeros(80), np.ones(40), np.zeros(160)], (n_models, 1))
    found = randomised_tpr(Scores("labels", value, member), 0.05, 0.95, "population")
    assert found.value == pytest.approx(0.05 * 120 / 40)
    assert found.low < found.value < found.high
    if n_models == 1:
        called, false = stats.binomtest(120, 200).proportion_ci(), stats.binomtest(40, 200).proportion_ci()
        down = np.hypot(np.log(0.6 / called.low), np.log(false.high / 0.2))
        up = np.hypot(np.log(called.high / 0.6), np.log(0.2 / false.low))
        assert (found.low, found.high) == (pytest.approx(0.15 / np.exp(down)), pytest.approx(0.15 * np.exp(up)))


@pytest.mark.parametrize("fpr", [0.0, 1.0, -0.1])
def test_rates_are_checked(audits, fpr):
    (scores,) = audits(1, 2, 10, 1.0)
    with pytest.raises(ValueError, match="fpr must be"):
        tpr_at_fpr(scores, fpr)


@pytest.mark.by_day("1-2000-0.0-0.0-400-0.01")
@pytest.mark.statistics
@pytest.mark.parametrize("fpr", [0.01, 0.1])
@pytest.mark.parametrize(
    ("n_models", "n_points", "distance", "spread", "n_audits"),
    [
        *sizes(400, 1, 2000, 0.0, 0.0),
        *sizes(400, 1, 2000, 1.0, 0.0),
        *sizes(400, 8, 200, 1.0, 0.3),
        *sizes(400, 8, 200, 2.5, 0.3),
        nightly(64, 200, 1.0, 0.3, FULL),
    ],
)
def test_the_rate_at_the_true_quantile_is_covered(audits, covered, fpr, n_models, n_points, distance, spread, n_audits):
    # the true coverage lies between .96 and .99; false alarm below 1e-4; 400 audits find a coverage of .897
    truth = stats.norm.cdf(stats.norm.ppf(fpr) + distance / np.hypot(1, spread))
    simulated = audits(n_audits, n_models, n_points, distance, spread)
    misses = n_audits - covered(partial(tpr_at_fpr, fpr=fpr), simulated, truth)
    assert misses <= allowed(n_audits)


@pytest.mark.parametrize("fpr", [0.01, 0.1])
def test_few_models_that_shift_their_scores_have_no_interval(audits, fpr):
    (scores,) = audits(1, 16, 200, 1.0, 2.0)
    found = tpr_at_fpr(scores, fpr)
    assert (found.refused, found.low, found.high) == ("too_few_models", 0, 1)
    assert found.detail["models"] == 16
    assert found.detail["between_model_spread"] == pytest.approx(2.0, rel=0.5)
    assert ppv(scores, fpr).refused == "too_few_models"
    these = tpr_at_fpr(scores, fpr, target="these_models")
    assert (these.refused, these.value, these.interval_over) == ("", found.value, "points")
    assert these.low < these.value < these.high


def test_models_that_do_not_shift_their_scores_have_an_interval(audits):
    (scores,) = audits(1, 8, 200, 1.0)
    found = tpr_at_fpr(scores, 0.01)
    assert (found.refused, found.interval_over) == ("", "models")
    assert found.detail["between_model_spread"] < 0.2


def test_so_many_models_that_any_spread_is_covered(audits):
    (scores,) = audits(1, 40, 200, 1.0, 2.0)
    assert tpr_at_fpr(scores, 0.1).refused == ""
    assert tpr_at_fpr(scores, 0.09).refused == "too_few_models"


def test_the_band_has_no_ends_where_there_is_no_interval(audits):
    (scores,) = audits(1, 40, 200, 1.0, 2.0)
    value, low, high = roc_band(scores, [0.01, 0.2])
    assert np.isfinite(value).all()
    assert np.isfinite(low).tolist() == np.isfinite(high).tolist() == [False, True]


def test_one_model_has_one_target(audits):
    (scores,) = audits(1, 1, 400, 1.0)
    assert tpr_at_fpr(scores, 0.1) == tpr_at_fpr(scores, 0.1, target="these_models")


@pytest.mark.parametrize(("spread", "few"), [(0.05, True), (2.0, False)])
def test_a_refused_interval_says_how_many_models_would_have_one(audits, spread, few):
    """At 1 % either 4/.01 models, or as many as make the limit of the measured spread small enough."""
    (scores,) = audits(1, 2, 400, 1.0, spread)
    found = tpr_at_fpr(scores, 0.01)
    assert found.refused == "too_few_models"
    assert found.detail["models_needed_at_any_spread"] == 400
    shifts = rows(scores).shifts
    measured = np.std(shifts.shift, ddof=1) / shifts.noise
    n_models = np.arange(2, 401)
    upper = measured * np.sqrt((n_models - 1) / stats.chi2.ppf(0.05, n_models - 1))
    enough = n_models[upper <= 0.35]
    assert found.detail["models_needed"] == (enough[0] if len(enough) else 400)
    assert (found.detail["models_needed"] < 400) == few
