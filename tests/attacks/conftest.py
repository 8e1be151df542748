"""Random games of every kind, and the double loop over targets and points that naive twins share."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from leakbound.core.types import Game, Signals
from tests.marks import nightly

Array = np.ndarray
N_POINTS, N_ASIDE, N_JUDGED = 30, 7, 11


def random_signals(n_models: int, leave_one_out: bool, own_points: bool, population: bool, seed: int = 0) -> Signals:
    """Arrays of noise: references fixed or leave one out, target points (N,) or (T, N), with or without population."""
    rng = np.random.default_rng([seed, n_models, leave_one_out, own_points, population])
    member = rng.random((n_models, N_POINTS)) < 0.5
    playing = np.arange(N_POINTS) < N_POINTS - N_ASIDE * population
    member[:, ~playing] = False
    n_targets = n_models if leave_one_out else 3
    is_target_point = playing
    if own_points:
        is_target_point = np.zeros((n_targets, N_POINTS), dtype=bool)
        for row in is_target_point:
            row[rng.choice(np.flatnonzero(playing), N_JUDGED, replace=False)] = True
    if not population:
        member[0] |= ~member.any(axis=0)
    log_prob = rng.normal(scale=3, size=(n_models, N_POINTS, 4)) + 3 * rng.normal(size=(N_POINTS, 4))
    log_prob -= np.log(np.exp(log_prob).sum(axis=2, keepdims=True))
    labels = rng.integers(4, size=N_POINTS)
    log_p = log_prob[:, np.arange(N_POINTS), labels]
    arrays = {
        "loss": -log_p,
        "log_odds": log_p - np.log1p(-np.exp(log_p)),
        "correct": (log_prob.argmax(axis=2) == labels).astype(float),
        "log_prob": log_prob,
    }
    return Signals(Game("half_split", member, is_target_point, n_targets), None, arrays, labels)


DESIGNS = list(product((7, 40), (False, True), (False, True), (False, True)))


@pytest.fixture(
    params=[design if design[0] < 40 else nightly(design) for design in DESIGNS],
    ids=lambda d: f"{d[0]}-{'loo' if d[1] else 'fixed'}-{'own' if d[2] else 'all'}{'-population' * d[3]}",
)
def signals(request: pytest.FixtureRequest) -> Signals:
    return random_signals(*request.param)


@pytest.fixture
def references() -> Callable[[Game, int], list[int]]:
    """The reference rows of a target."""

    def rows(game: Game, target: int) -> list[int]:
        if game.n_targets == game.n_models:
            return [m for m in range(game.n_models) if m != target]
        return list(range(game.n_targets, game.n_models))

    return rows


@pytest.fixture
def targets_of() -> Callable[[Game, int], Array]:
    """The points that a target judges."""

    def points(game: Game, target: int) -> Array:
        return np.flatnonzero(game.is_target_point if game.is_target_point.ndim == 1 else game.is_target_point[target])

    return points


@pytest.fixture
def loop(references, targets_of) -> Callable[[Signals, Callable[[int, int, list[int]], float]], Array]:
    """Score every target at every target point from a function of target, point and reference rows."""

    def scores(signals: Signals, score: Callable[[int, int, list[int]], float]) -> Array:
        game = signals.game
        return np.array(
            [[score(t, i, references(game, t)) for i in targets_of(game, t)] for t in range(game.n_targets)]
        )

    return scores
