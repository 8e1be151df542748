import numpy as np
import pytest
from scipy import stats

from leakbound.core.tradeoff import EpsilonDelta, Gaussian
from leakbound.core.types import Scores
from leakbound.metrics.counting import Guesses, coins, pairs
from leakbound.metrics.one_run import Tangents, one_run_p_value
from tests.levels import allowed, sizes


def test_several_rules_are_paid_for():
    guesses = Guesses("coins", 100, np.array([100, 20]), np.array([[60, 19]]))
    single = [stats.binom.sf(59, 100, 0.5), stats.binom.sf(18, 20, 0.5)]
    assert guesses.p_value(0.0, 0.0) == pytest.approx(2 * min(single))
    assert guesses.detail(EpsilonDelta(0.0))["guesses"] == 20


def test_pairs_count_the_largest_differences_first():
    # 10 pairs: whatever the matching, members 90 to 99 lie above non-members 0 to 9
    member = np.arange(20) < 10
    value = np.where(member, 90.0 + np.arange(20), np.arange(20) - 10.0)
    gathered = pairs(Scores("apart", value[None, :], member[None, :]))
    assert (gathered.coins, gathered.n_guesses.tolist(), gathered.n_correct.tolist()) == (10, [10], [[10]])
    flipped = pairs(Scores("apart", -value[None, :], member[None, :]))
    assert flipped.n_correct.tolist() == [[0]]


def test_coins_guess_the_highest_in_and_the_lowest_out():
    member = np.tile(np.r_[np.ones(30, bool), np.zeros(70, bool)], (2, 1))
    value = np.tile(-np.arange(100.0), (2, 1))
    gathered = coins(Scores("sorted", value, member))
    assert gathered.coins == 100
    assert gathered.n_guesses.tolist() == 2 * [100, 30, 10, 3, 1][: len(gathered.n_guesses) // 2]
    assert gathered.n_correct[:, :3].tolist() == 2 * [[30, 30, 10]]
    half = len(gathered.n_guesses) // 2
    assert gathered.n_correct[:, half : half + 3].tolist() == 2 * [[30 + 50, 30, 10]]


def test_models_are_joined_as_one_game_or_by_fisher():
    right = np.array([[30], [29], [28]])
    guesses = Guesses("coins", 40, np.array([30]), right)
    for claim in (EpsilonDelta(1.0, 1e-3), Gaussian(0.7)):
        promise = Tangents.of(claim)
        each = [one_run_p_value(int(row[0]), 30, 40, promise) for row in right]
        fisher = stats.chi2.sf(-2 * np.log(each).sum(), 6)
        joint = one_run_p_value(87, 90, 120, promise)
        assert guesses.curve_p_value(claim) == pytest.approx(2 * min(joint, fisher), rel=1e-6)
    assert guesses.p_value(1.0, 0.0) == pytest.approx(stats.binom.sf(86, 90, np.e / (1 + np.e)), rel=1e-6)


def test_guesses_among_more_values_are_harder():
    """One of 5 values is guessed right by chance once in five times."""
    guesses = Guesses("dice", 100, np.array([100]), np.array([[35]]), choices=5)
    assert guesses.p_value(0.0, 0.0) == pytest.approx(stats.binom.sf(34, 100, 0.2))


@pytest.mark.slow
@pytest.mark.statistics
@pytest.mark.parametrize("n_runs", sizes(400))
def test_level_under_rare_disasters(n_runs):
    """Each of 4 models tells all its coins with probability delta, else nothing: (0, delta)-DP exactly.

    At a 5 % level at most 33 of 400 may be rejected, and 240 of 4,000; more has probability .22 % at most. The 400
    find a level of 10.3 %, the 4,000 one of 6.5 %.
    """
    rng, delta, rejected = np.random.default_rng(0), 0.02, 0
    for _ in range(n_runs):
        member = rng.random((4, 40)) < 0.5
        told = rng.random((4, 1)) < delta
        value = np.where(told, member, rng.random((4, 40)))
        rejected += coins(Scores("disaster", value.astype(float), member)).p_value(0.0, delta) < 0.05
    assert rejected <= allowed(n_runs)
