"""The difference of two attacks on the same models and records."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import leakbound as ls
from leakbound.attacks import ATTACKS
from leakbound.core.types import Scores


def scores(value, member, inflation: float = 1.0) -> Scores:
    return Scores("x", np.asarray(value, dtype=float), np.asarray(member), variance_inflation=inflation)


def test_it_is_the_mean_of_the_differences_of_the_models():
    rng = np.random.default_rng(0)
    member = rng.random((6, 80)) < 0.5
    one, two = rng.normal(size=(2, 6, 80)) + member
    found = ls.metrics.difference(scores(one, member), scores(two, member))
    areas = [roc_auc_score(m, a) - roc_auc_score(m, b) for m, a, b in zip(member, one, two, strict=True)]
    assert found.value == pytest.approx(np.mean(areas))
    half = 2.5705818356 * np.std(areas, ddof=1) / np.sqrt(6)  # the 97.5 % quantile of t with 5 degrees of freedom
    assert (found.low, found.high) == pytest.approx((np.mean(areas) - half, np.mean(areas) + half))
    wider = ls.metrics.difference(scores(one, member, 4.0), scores(two, member))
    assert wider.high - wider.low == pytest.approx(4 * half)


def test_the_rate_is_that_of_a_threshold_for_each_model():
    member = np.repeat([[True, False]], 10, axis=1).reshape(1, 20).repeat(2, axis=0)
    good = np.where(member, 2.0, 0.0) + np.arange(20) / 100
    bad = -good
    found = ls.metrics.difference(scores(good, member), scores(bad, member), "tpr", 0.1)
    # no spread to measure: Clopper and Pearson for 2 of 2, whose lower end is sqrt(.025), of (1 + difference)/2
    assert (found.value, found.low, found.high) == pytest.approx((1.0, 2 * np.sqrt(0.025) - 1, 1.0))
    with pytest.raises(ValueError, match=r"fpr must be >= 0\.1 for 10 non-members a model, got 0\.01"):
        ls.metrics.difference(scores(good, member), scores(bad, member), "tpr", 0.01)


def test_scores_of_other_games_are_refused():
    member = np.arange(8).reshape(1, 8) % 2 == 0
    value = np.arange(8.0).reshape(1, 8)
    with pytest.raises(ValueError, match=r"the same models and records; got .*, with other members"):
        ls.metrics.difference(scores(value, member), scores(value, ~member))
    with pytest.raises(ValueError, match="of shapes"):
        ls.metrics.difference(scores(value, member), scores(value[:, :4], member[:, :4]))
    with pytest.raises(ValueError, match="needs at least 2 attacked models"):
        ls.metrics.difference(scores(value, member), scores(value, member), "tpr", 0.25)


def test_an_attack_is_no_better_than_itself():
    rng = np.random.default_rng(1)
    member = rng.random((1, 60)) < 0.5
    value = rng.normal(size=(1, 60)) + member
    found = ls.metrics.difference(scores(value, member), scores(2 * value + 1, member))
    assert (found.value, found.low, found.high) == (0.0, 0.0, 0.0)
    several = np.repeat(member, 3, axis=0), np.repeat(value, 3, axis=0)
    found = ls.metrics.difference(scores(several[1], several[0]), scores(2 * several[1] + 1, several[0]), "tpr", 0.2)
    assert (found.value, found.low, found.high) == (0.0, 0.0, 0.0)


def test_two_perfect_attacks_that_rank_others_differently_are_no_point():
    member = np.arange(20).reshape(1, 20) < 10
    good = np.arange(20.0)[::-1].reshape(1, 20)
    one_wrong = good.copy()
    one_wrong[0, 9] = 9.5  # the lowest member falls below the highest non-member
    one_wrong[0, 10] = 9.7
    found = ls.metrics.difference(scores(good, member), scores(one_wrong, member))
    assert found.value == pytest.approx(0.01)
    assert found.low < -0.3
    assert 0.3 < found.high <= 1


def noisy(rng, n_models: int, n_points: int, spread: float = 0.3):
    """Two attacks that see the same signal with noise of their own; models differ in how much they reveal."""
    member = rng.random((n_models, n_points)) < 0.5
    seen = rng.normal(size=member.shape) + member * (1 + spread * rng.normal(size=(n_models, 1)))
    one, two = seen + 0.5 * rng.normal(size=(2, *member.shape))
    return scores(one, member), scores(two, member)


@pytest.mark.slow
@pytest.mark.parametrize(("n_models", "of", "fpr"), [(1, "auc", 0.1), (4, "auc", 0.1), (16, "tpr", 0.05)])
def test_coverage(n_models, of, fpr):
    """Both attacks are equally good, so that 0 must be covered: in at least 930 of 1,000 of 95 % (950 - 3 s.d.)."""
    rng = np.random.default_rng(2)
    found = [ls.metrics.difference(*noisy(rng, n_models, 200), of, fpr) for _ in range(1000)]
    covered = sum(each.low <= 0 <= each.high for each in found)
    assert 930 <= covered <= 975
    if of == "auc":  # and the interval is narrower than those of the attacks themselves suggest
        pair = noisy(rng, n_models, 200)
        alone = [ls.metrics.auc(each) for each in pair]
        apart = np.hypot(*[each.high - each.low for each in alone])
        own = ls.metrics.difference(*pair)
        assert own.high - own.low < apart


@pytest.mark.slow
@pytest.mark.statistics
def test_coverage_where_the_models_are_each_others_references():
    """On noise 0 is covered: of 100 intervals of 95 % at most 12 may miss it, of which the probability is .0015.

    A t-test over the models, which takes them for independent, finds differences more often than it says.
    """
    missed = {"auc": 0, "tpr": 0}
    for seed in range(100):
        game = ls.games.half_split(300, 16, seed=seed)
        noise = np.random.default_rng(1000 + seed).normal(size=game.member.shape)
        signals = ls.Signals(game, None, {"log_odds": noise})
        lira = ATTACKS["lira"](signals)
        plain = scores(signals.targets("log_odds"), lira.member)
        for of in ("auc", "tpr"):
            found = ls.metrics.difference(lira, plain, of, 0.05)
            missed[of] += not found.low <= 0 <= found.high
    assert max(missed.values()) <= 12
