"""Scores in place of predictions: each attack that reads one, against a naive twin."""

import numpy as np
import pytest
from scipy.stats import norm, rankdata

from leakbound.attacks import ATTACKS, find
from leakbound.attacks.scores import pooled_deviation
from leakbound.core.games import half_split
from leakbound.core.signals import SCORES
from leakbound.core.types import Game, NotApplicable, Signals

GAME = half_split(20, 9, seed=3)
SCORE = np.random.default_rng(0).normal(size=(9, 20)) * np.arange(1, 21) + 100 * GAME.member - 40
READERS = ("mast", "lira", "lira_offline", "rmia", "rmia_offline")


def signals_of(values: np.ndarray, name: str = "score", game: Game = GAME) -> Signals:
    return Signals(game, None, {name: values})


def deviation_by_hand(score, member, target):
    """The pooled standard deviation of the references without the record, one point after another."""
    squares, degrees = 0.0, 0
    for point in range(score.shape[1]):
        outside = [score[r, point] for r in range(len(score)) if r != target and not member[r, point]]
        if len(outside) > 1:
            squares += (len(outside) - 1) * np.var(outside, ddof=1)
            degrees += len(outside) - 1
    return (squares / degrees) ** 0.5


def naive_log_p(score, member, target):
    """Scores of all models in deviations, around the mean of the target's references at each point."""
    others = np.delete(np.arange(len(score)), target)
    return (score - score[others].mean(axis=0)) / deviation_by_hand(score, member, target)


def naive_mast(score, member, target):
    log_p = naive_log_p(score, member, target)
    found = []
    for point in range(score.shape[1]):
        outside = [log_p[r, point] for r in range(len(score)) if r != target and not member[r, point]]
        found.append(log_p[target, point] - np.log(np.mean(np.exp(outside))))
    return np.array(found)


def naive_rmia(score, member, target, a=None):
    """The rank of each point's ratio among those of all points, ties broken by the ratio."""
    p = np.exp(naive_log_p(score, member, target))
    ratio = []
    for point in range(score.shape[1]):
        others = [r for r in range(len(score)) if r != target and (a is None or not member[r, point])]
        mean = p[others, point].mean()
        ratio.append(p[target, point] / (mean if a is None else ((1 + a) * mean + 1 - a) / 2))
    log_ratio = np.log(ratio)
    count = (np.array(ratio)[:, None] >= np.array(ratio)).sum(axis=1)
    return (count + 0.5 + 0.5 * log_ratio / (1 + np.abs(log_ratio))) / (len(ratio) + 1) - 1


def with_two_on_each_side(target):
    """Points that at least two references have, and two have not."""
    n_in = np.delete(GAME.member, target, 0).sum(axis=0)
    return np.minimum(n_in, 8 - n_in) > 1


def naive_lira(phi, member, target):
    others = np.delete(np.arange(len(phi)), target)
    found = []
    for point in range(phi.shape[1]):
        inside, outside = (phi[[r for r in others if member[r, point] == side], point] for side in (True, False))
        own = phi[target, point]
        found.append(norm.logpdf(own, inside.mean(), inside.std()) - norm.logpdf(own, outside.mean(), outside.std()))
    return np.array(found)


@pytest.mark.parametrize("name", SCORES)
def test_a_score_is_an_attack_with_one_threshold(name: str):
    values = (SCORE > 0).astype(float) if name == "matches" else SCORE
    found = ATTACKS[name](signals_of(values, name))
    assert np.array_equal(found.value, values)
    assert (found.attack, found.variance_inflation) == (name, 1.0)


def test_the_pooled_deviation_is_the_one_by_hand():
    for target in range(9):
        rows = np.delete(np.arange(9), target)
        found = pooled_deviation(SCORE[rows], ~GAME.member[rows])
        assert found == pytest.approx(deviation_by_hand(SCORE, GAME.member, target), rel=1e-12)


@pytest.mark.parametrize("target", [0, 4, 8])
def test_attacks_with_references_agree_with_their_naive_twins(target: int):
    signals = signals_of(SCORE)
    mast, rmia = ATTACKS["mast"](signals).value, ATTACKS["rmia"](signals).value
    offline = ATTACKS["rmia_offline"].with_parameters(a=0.3)(signals).value
    lira = ATTACKS["lira"].with_parameters(variance="point")(signals).value
    assert mast[target] == pytest.approx(naive_mast(SCORE, GAME.member, target), abs=1e-8)
    assert rmia[target] == pytest.approx(naive_rmia(SCORE, GAME.member, target), abs=1e-8)
    assert offline[target] == pytest.approx(naive_rmia(SCORE, GAME.member, target, a=0.3), abs=1e-8)
    enough = with_two_on_each_side(target)
    expected = naive_lira(SCORE[:, enough], GAME.member[:, enough], target)
    assert lira[target, enough] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", ["nearest", "nearest5"])
def test_lira_reads_normal_scores_of_the_ranks_of_distances(name: str):
    distances = -np.random.default_rng(1).exponential(1.5 - GAME.member)
    phi = norm.ppf((rankdata(distances, axis=1) - 0.5) / 20)
    lira = ATTACKS["lira"].with_parameters(variance="point", signal=name)
    enough = with_two_on_each_side(2)
    found = lira(signals_of(distances, name)).value[2, enough]
    assert found == pytest.approx(naive_lira(phi[:, enough], GAME.member[:, enough], 2), rel=1e-6)
    assert lira.signals == (name,)


@pytest.mark.parametrize("name", READERS)
def test_no_own_score_changes_with_the_own_membership(name: str):
    """Leave one out: only the membership of target 4 is changed, at half of the points."""
    member = GAME.member.copy()
    member[4, ::2] ^= True
    changed = Game(GAME.kind, member, GAME.is_target_point, GAME.n_targets)
    before, after = (ATTACKS[name](signals_of(SCORE, game=game)).value for game in (GAME, changed))
    np.testing.assert_allclose(after[4], before[4], rtol=1e-9, atol=1e-9)
    assert not np.allclose(after[[0, 1, 2]], before[[0, 1, 2]])


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(("scale", "origin"), [(1e-9, 0), (1e9, 3e12), (1, -1e5)])
def test_unit_and_origin_of_a_score_do_not_matter(name: str, scale: float, origin: float):
    expected = ATTACKS[name](signals_of(SCORE)).value
    found = ATTACKS[name](signals_of(scale * SCORE + origin)).value
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["score", *READERS])
def test_a_score_that_tells_nothing_is_no_weak_leak(name: str):
    of_the_models = np.broadcast_to(np.arange(9.0)[:, None], (9, 20))
    for constant in (np.full((9, 20), 0.1), of_the_models):
        with pytest.raises(NotApplicable, match="the same at every record of each model"):
            ATTACKS[name](signals_of(constant))
    with pytest.raises(NotApplicable, match="the same in every model"):
        ATTACKS[name](signals_of(np.broadcast_to(SCORE[:1], (9, 20))))


def test_no_match_at_all_is_a_result():
    assert not ATTACKS["matches"](signals_of(np.zeros((9, 20)), "matches")).value.any()


@pytest.mark.parametrize("name", READERS)
def test_predictions_come_first_unless_a_score_is_named(name: str):
    rng = np.random.default_rng(5)
    predictions = {"loss": rng.exponential(size=(9, 20))}
    both = Signals(GAME, None, {**predictions, "score": SCORE})
    np.testing.assert_array_equal(ATTACKS[name](both).value, ATTACKS[name](Signals(GAME, None, predictions)).value)
    named = ATTACKS[name].with_parameters(signal="score")
    np.testing.assert_array_equal(named(both).value, ATTACKS[name](signals_of(SCORE)).value)
    with pytest.raises(NotApplicable, match="needs the signal score"):
        named(Signals(GAME, None, predictions))
    with pytest.raises(ValueError, match="unknown signal 'scores'"):
        ATTACKS[name].with_parameters(signal="scores")(both)


def test_groups_of_attacks_are_those_that_read_what_is_given():
    assert [row.name for row in find("default", ["score"])] == ["score", "mast", "lira", "rmia"]
    assert [row.name for row in find("default", ["loss"])] == ["loss", "mast", "lira", "rmia"]
    of_score = {"score", "mast", "lira", "lira_offline", "rmia", "rmia_offline"}
    assert {row.name for row in find("all", ["score"])} == of_score
    assert not {row.name for row in find("all")} & set(SCORES)


def test_matches_are_0_or_1():
    with pytest.raises(ValueError, match="'matches' must hold 0 and 1"):
        signals_of(SCORE, "matches")
