import numpy as np
import pytest
from scipy import stats

from leakscope.metrics.accuracy import advantage, halves, success
from leakscope.types import NotApplicable, Scores


def test_a_perfect_score_is_always_right():
    member = np.tile(np.arange(40) % 2 == 0, (6, 1))
    interval = success(Scores("perfect", member * 1.0, member))
    assert (interval.value, interval.high, interval.averages) == (1, 1, "models")
    assert 0.95 < interval.low < 1


def test_a_constant_score_has_no_advantage():
    member = np.tile(np.arange(400) % 2 == 0, (6, 1))
    for rows in (6, 1):
        interval = advantage(Scores("constant", np.zeros((rows, 400)), member[:rows]))
        assert interval.value == 0
        assert interval.low < 0 < interval.high


def test_halves_split_each_label_in_two():
    member = np.random.default_rng(0).random(101) < 0.3
    half = halves(member)
    for side in (member, ~member):
        assert abs(2 * np.count_nonzero(half & side) - np.count_nonzero(side)) <= 1
    assert (half == halves(member)).all()


def test_thresholds_come_from_the_other_half_of_the_models():
    # within each half the classes are apart, but the halves lie on different levels
    member = np.tile(np.arange(10) % 2 == 0, (4, 1))
    level = np.where(halves(np.zeros(4, dtype=bool)), 100.0, 0.0)[:, None]
    interval = advantage(Scores("levels", member + level, member))
    assert interval.value == 0  # everybody or nobody is called


def test_advantage_is_success_at_one_half(audits):
    for n_models, n_points in ((9, 60), (1, 300)):
        (scores,) = audits(1, n_models, n_points, 1.0)
        half, gain = success(scores), advantage(scores)
        expected = [2 * end - 1 for end in (half.value, half.low, half.high)]
        assert [gain.value, gain.low, gain.high] == pytest.approx(expected)


def test_one_point_a_model_averages_models(audits):
    (scores,) = audits(1, 1, 200, 1.0)
    turned = Scores("turned", scores.value.T, scores.member.T)
    assert advantage(turned).value == advantage(scores).value
    assert (advantage(turned).averages, advantage(scores).averages) == ("models", "points")


def test_two_of_each_class_are_needed():
    with pytest.raises(NotApplicable, match="at least 2 members"):
        success(Scores("short", np.arange(3.0)[None, :], np.array([[True, False, False]])))


def test_prior_is_checked(audits):
    (scores,) = audits(1, 2, 10, 1.0)
    with pytest.raises(ValueError, match="prior must be > 0 and < 1"):
        success(scores, prior=1.0)


@pytest.mark.statistics
@pytest.mark.parametrize("n", [100, 1000])
@pytest.mark.parametrize("distance", [0.0, 0.3, 1.0, 2.5])
def test_the_largest_advantage_is_covered_over_points(audits, covered, n, distance):
    # the true coverage lies between .955 and .99; false alarm below 1e-4
    truth = 2 * stats.norm.cdf(distance / 2) - 1
    assert covered(advantage, audits(4000, 1, 2 * n, distance), truth) >= 3760


@pytest.mark.statistics
@pytest.mark.parametrize(("n_models", "distance", "spread"), [(8, 0.0, 0.0), (8, 2.5, 0.5), (64, 1.0, 0.5)])
def test_the_largest_advantage_is_covered_over_models(audits, covered, n_models, distance, spread):
    # the true coverage lies between .952 and .985; false alarm below 1e-3
    truth = 2 * stats.norm.cdf(distance / 2 / np.hypot(1, spread)) - 1
    assert covered(advantage, audits(4000, n_models, 200, distance, spread), truth) >= 3760


@pytest.mark.statistics
def test_success_at_a_prior_is_covered(audits, covered):
    # the true coverage is above .96; false alarm below 1e-4
    prior, distance = 0.2, 1.5
    cut = distance / 2 + np.log((1 - prior) / prior) / distance
    truth = prior * stats.norm.sf(cut - distance) + (1 - prior) * stats.norm.cdf(cut)
    metric = lambda scores: success(scores, prior)  # noqa: E731
    assert covered(metric, audits(4000, 1, 200, distance), truth) >= 3760
