import numpy as np
import pytest
from scipy import stats

from leakbound.core.types import NotApplicable, Scores
from leakbound.metrics.best_guess import accuracy, advantage, effective_trials, halves
from tests.levels import FULL, allowed, sizes
from tests.marks import nightly


def unequal(n_audits: int, n_models: int, n_points: int, distance: float, spread: float = 0.0) -> list[Scores]:
    """Audits with 80 members to 20 others in each model, scores of unit variance and a mean that members exceed."""
    rng = np.random.default_rng(4)
    n_members = round(0.8 * n_points)
    made = []
    for _ in range(n_audits):
        member = rng.permuted(np.tile(np.arange(n_points) < n_members, (n_models, 1)), axis=1)
        level = spread * rng.normal(size=(n_models, 1))
        made.append(Scores("unequal", rng.normal(size=member.shape) + distance * member + level, member))
    return made


def test_a_perfect_score_is_always_right():
    member = np.tile(np.arange(40) % 2 == 0, (6, 1))
    interval = accuracy(Scores("perfect", member * 1.0, member))
    assert (interval.value, interval.high, interval.interval_over) == (1, 1, "models")
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


def test_the_lower_end_of_a_perfect_score_of_one_model():
    """Of 20 + 20 points none is wrong: each rate is above (tail/2)^(1/20), and both errors are joined."""
    member = np.arange(40)[None] % 2 == 0
    interval = accuracy(Scores("perfect", member * 1.0, member), confidence=0.9)
    assert interval.low == pytest.approx(1 - np.sqrt(2) / 2 * (1 - 0.05 ** (1 / 20)), rel=1e-9)


def test_thresholds_come_from_the_other_half_of_the_models():
    # within each half the classes are apart, but the halves lie on different levels
    member = np.tile(np.arange(10) % 2 == 0, (4, 1))
    level = np.where(halves(np.zeros(4, dtype=bool)), 100.0, 0.0)[:, None]
    interval = advantage(Scores("levels", member + level, member))
    assert interval.value == 0  # everybody or nobody is called


def test_advantage_is_success_at_one_half(audits):
    for n_models, n_points in ((9, 60), (1, 300)):
        (scores,) = audits(1, n_models, n_points, 1.0)
        half, gain = accuracy(scores), advantage(scores)
        expected = [2 * end - 1 for end in (half.value, half.low, half.high)]
        assert [gain.value, gain.low, gain.high] == pytest.approx(expected)


def test_one_point_a_model_averages_models(audits):
    (scores,) = audits(1, 1, 200, 1.0)
    turned = Scores("turned", scores.value.T, scores.member.T)
    assert advantage(turned).value == advantage(scores).value
    assert (advantage(turned).interval_over, advantage(scores).interval_over) == ("models", "points")


def test_two_of_each_class_are_needed():
    with pytest.raises(NotApplicable, match="at least 2 members"):
        accuracy(Scores("short", np.arange(3.0)[None, :], np.array([[True, False, False]])))


def test_prior_is_checked(audits):
    (scores,) = audits(1, 2, 10, 1.0)
    with pytest.raises(ValueError, match="prior must be > 0 and < 1"):
        accuracy(scores, prior=1.0)


@pytest.mark.by_day("1.0-100-400")
@pytest.mark.statistics
@pytest.mark.parametrize("n_audits", sizes(400))
@pytest.mark.parametrize("n", [100, 1000])
@pytest.mark.parametrize("distance", [0.0, 0.3, 1.0, 2.5])
def test_the_largest_advantage_is_covered_over_points(audits, covered, n, distance, n_audits):
    # the true coverage lies between .955 and .99; false alarm below 4e-4; 400 audits find a coverage of .897
    truth = 2 * stats.norm.cdf(distance / 2) - 1
    misses = n_audits - covered(advantage, audits(n_audits, 1, 2 * n, distance), truth)
    assert misses <= allowed(n_audits)


@pytest.mark.by_day("8-2.5-0.5-400")
@pytest.mark.statistics
@pytest.mark.parametrize(
    ("n_models", "distance", "spread", "n_audits"),
    [*sizes(400, 8, 0.0, 0.0), *sizes(400, 8, 2.5, 0.5), nightly(64, 1.0, 0.5, FULL)],
)
def test_the_largest_advantage_is_covered_over_models(audits, covered, n_models, distance, spread, n_audits):
    # the true coverage lies between .952 and .985; false alarm below 2e-3; 400 audits find a coverage of .897
    truth = 2 * stats.norm.cdf(distance / 2 / np.hypot(1, spread)) - 1
    misses = n_audits - covered(advantage, audits(n_audits, n_models, 200, distance, spread), truth)
    assert misses <= allowed(n_audits)


@pytest.mark.statistics
@pytest.mark.parametrize("n_audits", sizes(400))
def test_success_at_a_prior_is_covered(audits, covered, n_audits):
    # the true coverage is above .96; false alarm below 1e-4; 400 audits find a coverage of .897
    prior, distance = 0.2, 1.5
    cut = distance / 2 + np.log((1 - prior) / prior) / distance
    truth = prior * stats.norm.sf(cut - distance) + (1 - prior) * stats.norm.cdf(cut)
    metric = lambda scores: accuracy(scores, prior)  # noqa: E731
    misses = n_audits - covered(metric, audits(n_audits, 1, 200, distance), truth)
    assert misses <= allowed(n_audits)


@pytest.mark.parametrize(("n_models", "n_points"), [(1, 4000), (16, 500)])
def test_many_members_do_not_inflate_the_accuracy(n_models, n_points):
    """80 members to 20 others, and scores that know nothing: everybody called a member is right 80 times of 100."""
    (scores,) = unequal(1, n_models, n_points, 0.0)
    found = accuracy(scores)
    assert found.low <= 0.5 <= found.high
    assert found.value == pytest.approx(0.5, abs=0.03)
    assert accuracy(scores, prior=0.8).value == pytest.approx(0.8, abs=0.01)


def test_effective_trials_have_the_variance_of_a_balanced_accuracy():
    """Of independent guesses that are right with probability p: p (1 - p)/n, worked out by hand for 80 to 20."""
    member = np.arange(100) < 80
    by_hand = 0.25 / 80 + 0.25 / 20  # variance over p (1 - p)
    n_in = np.full(4, member.sum())
    assert effective_trials(n_in, len(member) - n_in, 0.5) == int(4 / by_hand)
    assert effective_trials(np.full(4, 50), np.full(4, 50), 0.5) == 400


@pytest.mark.by_day("1-250-0.0-0.0-400")
@pytest.mark.statistics
@pytest.mark.parametrize("n_audits", sizes(400))
@pytest.mark.parametrize(
    ("n_models", "n_points", "distance", "spread"),
    [(1, 250, 0.0, 0.0), (1, 1000, 1.0, 0.0), (1, 1000, 3.0, 0.0), (8, 100, 0.0, 0.0), (8, 100, 1.0, 0.3)],
)
def test_balanced_accuracy_is_covered_with_unequal_sides(covered, n_models, n_points, distance, spread, n_audits):
    # the true coverage lies between .965 and .995; false alarm below 1e-5; 400 audits find a coverage of .897
    truth = stats.norm.cdf(distance / 2 / np.hypot(1, spread))
    misses = n_audits - covered(accuracy, unequal(n_audits, n_models, n_points, distance, spread), truth)
    assert misses <= allowed(n_audits)
