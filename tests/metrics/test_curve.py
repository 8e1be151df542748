import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

from leakbound.core.types import NotApplicable, Scores
from leakbound.metrics.curve import auc, average_precision, roc
from tests.levels import allowed, sizes


def drawn(shape, decimals, seed=0):
    rng = np.random.default_rng(seed)
    member = rng.random(shape) < 0.5
    return Scores("any", (rng.normal(size=shape) + member).round(decimals), member)


@pytest.mark.parametrize("decimals", [0, 1, 9])
@pytest.mark.parametrize("shape", [(1, 50), (4, 30), (40, 1)])
def test_roc_is_that_of_scikit_learn(shape, decimals):
    scores = drawn(shape, decimals)
    fpr, tpr, _ = roc_curve(scores.member.ravel(), scores.value.ravel(), drop_intermediate=False)
    curve = roc(scores)
    corners = {(round(a, 12), round(1 - b, 12)) for a, b in zip(curve.at, curve.value, strict=True)}
    assert corners == {(round(a, 12), round(b, 12)) for a, b in zip(fpr, tpr, strict=True)}


def test_a_long_roc_is_thinned_to_exact_corners_with_both_ends():
    scores = drawn((1, 40_000), 9)
    fpr, tpr, _ = roc_curve(scores.member[0], scores.value[0], drop_intermediate=False)
    curve = roc(scores)
    assert len(curve.at) <= 1010
    exact = {(round(a, 12), round(b, 12)) for a, b in zip(fpr, tpr, strict=True)}
    assert {(round(a, 12), round(1 - b, 12)) for a, b in zip(curve.at, curve.value, strict=True)} <= exact
    assert np.abs(curve.tpr_at(fpr) - np.maximum.accumulate(tpr)).max() < 0.006
    assert curve.at[1] <= 1 / np.count_nonzero(~scores.member)


@pytest.mark.parametrize("decimals", [0, 9])
def test_auc_of_each_model_is_that_of_scikit_learn_and_averaged(decimals):
    scores = drawn((5, 40), decimals)
    each = [roc_auc_score(m, v) for m, v in zip(scores.member, scores.value, strict=True)]
    interval = auc(scores, 0.9)
    expected = stats.t.interval(0.9, 4, np.mean(each), stats.sem(each))
    assert interval.value == pytest.approx(np.mean(each))
    assert (interval.low, interval.high) == pytest.approx(expected)
    assert interval.interval_over == "models"


def test_auc_of_one_model_averages_points_and_of_one_point_each_models():
    scores = drawn((1, 80), 9)
    turned = Scores("turned", scores.value.T, scores.member.T)
    assert auc(scores).value == pytest.approx(roc_auc_score(scores.member[0], scores.value[0]))
    assert (auc(scores).low, auc(scores).high) == (auc(turned).low, auc(turned).high)
    assert (auc(scores).interval_over, auc(turned).interval_over) == ("points", "models")


def test_auc_of_separated_models_is_not_a_point():
    member = np.tile(np.arange(20) % 2 == 0, (8, 1))
    interval = auc(Scores("perfect", member * 1.0, member))
    assert (interval.value, interval.high) == (1, 1)
    assert 0.9 < interval.low < 1


def test_one_class_only_does_not_apply():
    with pytest.raises(NotApplicable):
        auc(Scores("members", np.zeros((2, 3)), np.ones((2, 3), dtype=bool)))


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("decimals", [0, 9])
def test_average_precision_is_that_of_scikit_learn(inside, decimals):
    scores = drawn((5, 40), decimals)
    sign = 1 if inside else -1
    each = [average_precision_score(m == inside, sign * v) for m, v in zip(scores.member, scores.value, strict=True)]
    interval = average_precision(scores, inside=inside)
    assert interval.value == pytest.approx(np.mean(each))
    assert interval.low < interval.value < interval.high
    one = Scores("one", scores.value[:1], scores.member[:1])
    assert average_precision(one, inside=inside).value == pytest.approx(each[0])


@pytest.mark.slow
@pytest.mark.statistics
@pytest.mark.parametrize("n_audits", sizes(400))
@pytest.mark.parametrize("distance", [0.0, 1.0, 2.5])
def test_average_precision_of_one_model_is_covered(audits, covered, distance, n_audits):
    # truth by one large sample; the true coverage is above .96, false alarm below 1e-4; 400 audits find one of .897
    (large,) = audits(1, 1, 2_000_000, distance, seed=1)
    truth = average_precision(large).value
    misses = n_audits - covered(average_precision, audits(n_audits, 1, 400, distance), truth)
    assert misses <= allowed(n_audits)


@pytest.mark.by_day("1-0.0-0.0-400")
@pytest.mark.statistics
@pytest.mark.parametrize("n_audits", sizes(400))
@pytest.mark.parametrize(
    ("n_models", "distance", "spread"),
    [(1, 0.0, 0.0), (1, 1.0, 0.0), (8, 0.0, 0.5), (8, 2.5, 0.5), (8, 4.5, 0.5), (32, 1.0, 0.5)],
)
def test_the_area_is_covered(audits, covered, n_models, distance, spread, n_audits):
    # a shift of the whole model does not change its area; true coverage .948 or more, false alarm below .01; 400 audits
    # find a coverage of .897
    truth = stats.norm.cdf(distance / np.sqrt(2))
    misses = n_audits - covered(auc, audits(n_audits, n_models, 200, distance, spread), truth)
    assert misses <= allowed(n_audits)
