"""Guesses of an attribute by attacks on membership."""

from __future__ import annotations

import numpy as np
import pytest

from leakbound.attacks import ATTACKS, Attack, find
from leakbound.attacks.attribute import DEFAULT, OFFLINE, STRATEGIES, candidate_scores, strategies
from leakbound.core.games import candidates, half_split
from leakbound.core.signals import SCORES
from leakbound.core.types import Game, NotApplicable, Signals
from leakbound.metrics.attribute import right

N, V, M, K = 30, 4, 12, 3
OF = np.r_[np.arange(N), np.repeat(np.arange(N - 5), V)]  # the last five records are not attacked
OWN = np.arange(len(OF)) < N
TRUTH = np.random.default_rng(1).integers(V, size=N - 5)
GAME = candidates(half_split(N, M, seed=3), OF, OWN)
SEEN = {"log_prob", "loss", "log_odds", "correct", "gradient_norm"}
NO_REFERENCES = [
    name
    for name, attack in {**ATTACKS, **STRATEGIES}.items()
    if not attack.needs_references and set(attack.signals) <= SEEN
]


def true_rows() -> np.ndarray:
    return N + np.arange(N - 5) * V + TRUTH


def signals(rng: np.random.Generator, *, memory: float = 0.0, ignores: bool = False) -> Signals:
    """Models whose loss is lower at what they have been trained on; the true candidate is the record itself."""
    shape = GAME.member.shape
    probability = rng.dirichlet(np.ones(K), size=shape)
    known = GAME.member.copy()
    known[:, true_rows()] = GAME.member[:, OF[true_rows()]]
    probability[..., 0] += memory * known
    if ignores:
        probability = probability[:, OF]
    probability /= probability.sum(axis=2, keepdims=True)
    log_prob = np.log(probability)
    odds = log_prob[..., 0] - np.log1p(-probability[..., 0])
    arrays = {
        "log_prob": log_prob,
        "loss": -log_prob[..., 0],
        "log_odds": odds,
        "correct": (log_prob.argmax(axis=2) == 0).astype(float),
        "gradient_norm": 1 - probability[..., 0],
    }
    return Signals(GAME, None, arrays, np.zeros(GAME.member.shape[1], dtype=int))


@pytest.mark.parametrize("name", sorted({*NO_REFERENCES, *OFFLINE}))
def test_a_memory_is_found(name) -> None:
    scores = candidate_scores(strategies(name)[0], signals(np.random.default_rng(0), memory=50.0))
    guessed = right(scores, TRUTH)
    member = GAME.member[:, : N - 5]
    assert scores.shape == (M, N - 5, V)
    assert guessed[member].mean() > 0.55
    assert abs(guessed[~member].mean() - 1 / V) < 0.15


@pytest.mark.parametrize("name", sorted({*NO_REFERENCES, *OFFLINE}))
def test_a_release_that_ignores_the_attribute_is_guessed_at_chance_exactly(name) -> None:
    scores = candidate_scores(strategies(name)[0], signals(np.random.default_rng(0), memory=50.0, ignores=True))
    assert (right(scores, TRUTH) == 1 / V).all()


@pytest.mark.parametrize("name", ["lira", "rmia", "mast_threshold", "shadow"])
def test_references_that_were_told_the_answer_are_refused(name) -> None:
    with pytest.raises(NotApplicable, match="they would tell its true value"):
        candidate_scores(strategies(name)[0], signals(np.random.default_rng(0)))


def test_such_references_would_tell_the_answer() -> None:
    # Only true rows are ever in: the models that know a record tell its value, and are refused as references.
    given = signals(np.random.default_rng(0), memory=50.0, ignores=True)
    member = GAME.member.copy()
    member[:, true_rows()] = GAME.member[:, OF[true_rows()]]
    told = Signals(Game("told", member, GAME.is_target_point, M), None, given.arrays, given.labels)
    with pytest.raises(NotApplicable, match="tell who was in the data of the attacked one"):
        find("lira")[0](told)


@pytest.mark.parametrize("name", sorted(OFFLINE))
def test_references_are_the_models_without_the_record(name) -> None:
    given = signals(np.random.default_rng(0), memory=3.0)
    scores = candidate_scores(strategies(name)[0], given)
    arrays = {each: array.copy() for each, array in given.arrays.items()}
    # what other models that know record 0 say of its candidates changes nothing about model 0
    inside = np.flatnonzero(GAME.member[:, 0])
    others = inside[inside != 0]
    for array in arrays.values():
        array[others, N : N + V] = array[others[::-1], N : N + V][:, ::-1]
    again = candidate_scores(strategies(name)[0], Signals(GAME, None, arrays, given.labels))
    np.testing.assert_allclose(again[0, 0], scores[0, 0], rtol=1e-6)
    for each in ("loss", "log_odds"):
        arrays[each][np.flatnonzero(~GAME.member[:, 0])[1:], N] += 10.0
    moved = candidate_scores(strategies(name)[0], Signals(GAME, None, arrays, given.labels, checked=True))
    assert moved[0, 0, 0] != scores[0, 0, 0]


@pytest.mark.parametrize("name", sorted({*NO_REFERENCES, *OFFLINE} - {"rmia_offline"}))
def test_the_order_of_records_and_of_values_changes_nothing(name) -> None:
    rng = np.random.default_rng(5)
    given = signals(rng, memory=1.0)
    scores = candidate_scores(strategies(name)[0], given)
    record, value = rng.permutation(N - 5), rng.permutation(V)
    rows = N + (record[:, None] * V + value).ravel()
    rows = np.r_[record, np.arange(N - 5, N), rows]
    game = candidates(
        Game("half_split", half_split(N, M, seed=3).member[:, rows[:N]], np.ones(N, dtype=bool), M), OF, OWN
    )
    arrays = {each: array[:, rows] for each, array in given.arrays.items()}
    turned = Signals(game, None, arrays, given.labels)  # 0 for every row
    again = candidate_scores(strategies(name)[0], turned)
    np.testing.assert_allclose(again, scores[:, record][:, :, value], rtol=1e-5)
    moved = np.argsort(value)[TRUTH[record]]
    np.testing.assert_allclose(right(again, moved), right(scores, TRUTH)[:, record])


def population_size(signals: Signals) -> np.ndarray:
    """An attack that scores nothing but how many draws from the population it is given."""
    return np.full(signals.game.target_member.shape, float(len(signals.game.population)))


def test_rows_as_they_are_are_no_population() -> None:
    # a record that is attacked, and by chance in no model, must not stand for the population; one set aside does
    member = np.ones((3, 4), dtype=bool)
    member[:, [0, 3]] = False
    records = Game("half_split", member, np.array([True, True, True, False]), 3)
    game = candidates(records, np.r_[np.arange(4), np.repeat([0, 1, 2], 2)], np.arange(10) < 4)
    spy = Attack("spy", "Spy", f"{__name__}:population_size", (), "", "")
    assert (candidate_scores(spy, Signals(game, None, {})) == 1).all()


def test_accuracy_prefers_a_sure_right_answer_to_all_and_ties_wrong_ones() -> None:
    game = candidates(half_split(2, 2, seed=0), np.array([0, 1, 0, 0, 0]), np.array([True, True, False, False, False]))
    log_prob = np.log(np.array([[0.9, 0.1], [0.9, 0.1], [0.6, 0.4], [0.1, 0.9], [0.4, 0.6]]))[None].repeat(2, axis=0)
    correct = np.array([1.0, 1, 1, 0, 0])[None].repeat(2, axis=0)
    signals = Signals(game, None, {"log_prob": log_prob, "correct": correct}, np.zeros(5, dtype=int))
    (score, _) = candidate_scores(strategies("accuracy")[0], signals)
    assert score[0, 0] > score[0, 1] == score[0, 2]
    (score, _) = candidate_scores(strategies("likelihood")[0], signals)
    assert score[0].argmax() == 1


def test_names() -> None:
    assert [each.name for each in strategies("default")] == list(DEFAULT)
    assert {each.name for each in strategies("all")} == {*(set(ATTACKS) - set(SCORES)), *STRATEGIES}
    own = ATTACKS["mast"].with_parameters(temperature=2.0)
    assert strategies([own, "loss", "loss"]) == (own, ATTACKS["loss"])
    assert candidate_scores(own, signals(np.random.default_rng(0))).shape == (M, N - 5, V)
    with pytest.raises(ValueError, match=r"unknown attack 'likelyhood' \(did you mean 'likelihood'\?\)"):
        strategies("likelyhood")
    with pytest.raises(ValueError, match="no attack is asked for"):
        strategies(())


def test_a_game_without_candidates_is_refused() -> None:
    with pytest.raises(NotApplicable, match="needs a game of candidates"):
        candidate_scores(strategies("loss")[0], Signals(half_split(4, 2), None, {"loss": np.zeros((2, 4))}))
