import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from leakbound.attacks import shadow as module
from leakbound.attacks.shadow import shadow
from leakbound.core.types import Game, NotApplicable, Signals


def naive_shadow(signals, others_of):
    """Features and classifier by hand: standardise, fit, decide, target by target."""
    game, arrays, labels = signals.game, signals.arrays, signals.labels
    first = arrays.get("log_odds", -arrays["loss"])
    features = np.array(
        [
            [
                [
                    first[m, i],
                    arrays["correct"][m, i],
                    *sorted(np.delete(arrays["log_prob"][m, i], labels[i]), reverse=True),
                ]
                for i in range(game.member.shape[1])
            ]
            for m in range(game.n_models)
        ]
    )
    points = np.flatnonzero(np.atleast_2d(game.is_target_point).any(axis=0))
    scores = []
    for t in range(game.n_targets):
        known = features[np.ix_(others_of(t), points)].reshape(-1, features.shape[2])
        centre, spread = known.mean(axis=0), known.std(axis=0)
        learner = LogisticRegression(max_iter=1000)
        learner.fit((known - centre) / spread, game.member[np.ix_(others_of(t), points)].ravel())
        is_target_point = game.is_target_point if game.is_target_point.ndim == 1 else game.is_target_point[t]
        scores.append(learner.decision_function((features[t, is_target_point] - centre) / spread))
    return np.array(scores)


@pytest.mark.by_day("7-fixed-all-population-log_odds", "7-loo-all-population-")
@pytest.mark.parametrize("without", ["", "log_odds"])
def test_shadow_equals_its_naive_twin(signals, without):
    game = signals.game
    arrays = {name: array for name, array in signals.arrays.items() if name != without}
    signals = Signals(game, None, arrays, signals.labels, checked=True)  # else the log-odds would be computed

    def others_of(t):
        if game.n_targets < game.n_models:
            return np.arange(game.n_targets, game.n_models)
        return np.array([m for m in range(game.n_models) if m % 5 != t % 5])

    if game.n_targets == 40:  # eight twins of each fold would be the same
        expected = naive_shadow(signals, others_of)[:2]
        np.testing.assert_allclose(shadow(signals)[:2], expected, rtol=1e-6, atol=1e-8)
    else:
        np.testing.assert_allclose(shadow(signals), naive_shadow(signals, others_of), rtol=1e-6, atol=1e-8)


def test_a_target_never_learns_from_its_own_row():
    """Changing a target's membership changes no score of its own fold."""
    rng = np.random.default_rng(0)
    member = rng.random((10, 20)) < 0.5
    loss = rng.gamma(1, size=(10, 20))
    is_target_point = np.ones(20, dtype=bool)
    before = shadow(Signals(Game("half_split", member, is_target_point, 10), None, {"loss": loss}))
    other = member.copy()
    other[3] = ~other[3]
    after = shadow(Signals(Game("half_split", other, is_target_point, 10), None, {"loss": loss}))
    np.testing.assert_array_equal(after[[3, 8]], before[[3, 8]])
    assert (after[0] != before[0]).any()


def test_large_games_are_learned_from_a_draw(monkeypatch):
    rng = np.random.default_rng(0)
    member = rng.random((6, 400)) < 0.5
    loss = rng.gamma(1, size=(6, 400)) + ~member
    signals = Signals(Game("half_split", member, np.ones(400, dtype=bool), 2), None, {"loss": loss})
    whole = shadow(signals)
    monkeypatch.setattr(module, "_LARGEST", 500)
    drawn = shadow(signals)
    assert (drawn != whole).any()
    np.testing.assert_array_equal(drawn, shadow(signals))
    assert np.corrcoef(drawn.ravel(), whole.ravel())[0, 1] > 0.99


def test_one_kind_of_references_teaches_nothing():
    member = np.array([[True, False], [True, True], [True, True]])
    game = Game("half_split", member, np.array([True, True]), 1)
    with pytest.raises(NotApplicable, match="all are of one kind"):
        shadow(Signals(game, None, {"loss": np.ones((3, 2))}))
