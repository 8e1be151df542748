"""Means and standard deviations over references, compared with a double loop over targets and points."""

import numpy as np
import pytest

import leakbound as ls
from leakbound.attacks import in_moments, out_moments
from leakbound.core.types import Game, NotApplicable, Signals


def double_loop(signals: Signals, values: np.ndarray, inside: bool) -> tuple[np.ndarray, np.ndarray]:
    """The same, one target and one point at a time."""
    game = signals.game
    shape = (game.n_targets, game.n_target_points)
    mean, variance = np.empty(shape), np.full(shape, np.nan)
    points = np.broadcast_to(game.target_points, shape)
    for target in range(game.n_targets):
        for place, point in enumerate(points[target]):
            first = 0 if game.leave_one_out else game.n_targets
            others = [row for row in range(first, game.n_models) if row != target]
            side = [float(values[row, point]) for row in others if game.member[row, point] == inside]
            mean[target, place] = np.mean(side) if side else values[target, point]
            if len(side) > 1:
                variance[target, place] = np.var(side, ddof=1)
    typical = np.nanmean(variance, axis=1, keepdims=True)
    filled = np.where(np.isnan(variance), typical, np.maximum(variance, 1e-6 * typical))
    return mean, np.sqrt(filled)


GAMES = {
    "leave one out": ls.games.half_split(60, 8),
    "few models, so that some points lack a side": ls.games.half_split(200, 4, sampling="poisson"),
    "fixed references": ls.games.half_split(60, 12).split(),
    "a target point of each model": ls.games.average_datum(40, 12, references=8, seed=1),
    "some points are no target points": ls.games.half_split(60, 8, population=0.3),
}


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("game", GAMES.values(), ids=GAMES)
def test_they_are_those_of_a_double_loop(game, dtype, inside):
    values = np.random.default_rng(3).normal(5.0, 2.0, game.member.shape).astype(dtype)
    signals = Signals(game, None, {"mine": values})
    found = (in_moments if inside else out_moments)(signals, "mine")
    mean, std = double_loop(signals, values, inside)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-9)
    np.testing.assert_allclose(found.std, std, rtol=1e-6)


def test_an_array_that_was_computed_is_taken_as_well():
    game = GAMES["leave one out"]
    loss = np.random.default_rng(0).exponential(size=game.member.shape)
    signals = Signals(game, None, {"loss": loss})
    computed = out_moments(signals, np.log(loss))
    np.testing.assert_array_equal(computed.mean, out_moments(Signals(game, None, {"mine": np.log(loss)}), "mine").mean)


def test_the_moments_of_many_blocks_are_those_of_one(monkeypatch):
    game = GAMES["leave one out"]
    signals = Signals(game, None, {"loss": np.random.default_rng(0).exponential(size=game.member.shape)})
    whole = out_moments(signals, "loss")
    monkeypatch.setattr("leakbound.attacks.blocks._ENTRIES", 3 * game.n_models)
    for one, other in zip(whole, out_moments(signals, "loss"), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("moments", [out_moments, in_moments])
@pytest.mark.parametrize("n_models", [4, 16, 63])
def test_rounding_does_not_tell_who_was_in(n_models, moments):
    """Where all models agree on a point the distance is exactly 0 and std the same, whichever row was left out."""
    game = ls.games.half_split(300, n_models)
    values = np.broadcast_to(np.random.default_rng(1).normal(1e3, 1.0, 300), game.member.shape)
    signals = Signals(game, None, {"mine": values})
    mean, std = moments(signals, "mine")
    np.testing.assert_array_equal(mean, signals.targets("mine"))
    assert np.ptp(std) == 0


@pytest.mark.parametrize("moments", [out_moments, in_moments])
def test_ties_do_not_tell_who_was_in(moments):
    """Two values, independent of who was in: the targets that are equally far from their mean tie exactly."""
    game = ls.games.half_split(400, 16)
    values = np.where(np.random.default_rng(2).random(game.member.shape) < 0.5, 0.1, np.log(2.0))
    signals = Signals(game, None, {"mine": values})
    distance = moments(signals, "mine").mean - signals.targets("mine")
    for means in moments(signals, "mine").mean.T:  # no two means at a point that differ by rounding alone
        assert (np.diff(np.unique(means)) > 1e-4).all()
    auc = ls.metrics.auc(ls.Scores("distance", distance, game.target_member)).value
    assert 0.47 < auc < 0.53  # 6,400 guesses; its standard error is at most 0.01, twice as much as references tie


@pytest.mark.parametrize(
    ("moments", "member", "reason"),
    [
        (out_moments, [[True], [True], [True]], "needs reference models without a target point, and there are none"),
        (in_moments, [[True], [False], [False]], "needs reference models with a target point, and there are none"),
        (out_moments, [[True], [False]], "needs at least 2 reference models, and there are 1"),
    ],
)
def test_without_references_they_do_not_apply(moments, member, reason):
    game = Game("signals", np.array(member), np.array([True]), 1)
    with pytest.raises(NotApplicable, match=f"^{reason}$"):
        moments(Signals(game, None, {"loss": np.ones(game.member.shape)}), "loss")


def test_a_signal_with_more_axes_has_no_moments():
    game = GAMES["leave one out"]
    signals = Signals(game, None, {"mine": np.zeros((*game.member.shape, 2))})
    with pytest.raises(ValueError, match=r"^signal 'mine' has shape \(8, 60, 2\); moments need one number a model and"):
        out_moments(signals, "mine")
