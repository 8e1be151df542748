"""What a plan and its attacks ask for."""

from __future__ import annotations

import numpy as np
import pytest

from leakbound.attacks import find
from leakbound.auditing.setup import POPULATION, draw, population_share, wanted
from leakbound.data import from_arrays
from leakbound.plans import AuditPlan

POINTS = from_arrays(np.zeros((50, 2)), np.arange(50) % 2)


@pytest.mark.parametrize(
    ("words", "kind", "targets", "n_target_points"),
    [
        ({"n_models": 6}, "half_split", 6, 50),
        ({"n_models": 6, "game": "per_datum", "target": (3,), "references": 4}, "per_datum", 6, 1),
        ({"n_models": 6, "game": "average_datum", "references": 4}, "average_datum", 6, 1),
        ({"n_models": 6, "game": "canaries", "target": (1, 2, 3)}, "canaries", 6, 3),
    ],
)
def test_every_game_of_a_plan_is_drawn(words, kind, targets, n_target_points) -> None:
    game = draw(AuditPlan(**words), POINTS, find("loss"))
    assert (game.kind, game.n_targets, game.n_target_points) == (kind, targets, n_target_points)
    assert game.n_models == targets + words.get("references", 0)


def test_points_are_set_aside_only_for_attacks_that_ask() -> None:
    assert population_share(find("loss")) == 0
    assert population_share(find("rmia")) == POPULATION
    assert len(draw(AuditPlan(n_models=4), POINTS, find("rmia")).population) == 5


def test_groups_play_half_splits_only() -> None:
    points = from_arrays(np.zeros((50, 2)), np.arange(50) % 2, np.arange(50) // 2)
    assert draw(AuditPlan(n_models=4), points, find("loss")).member.sum() % 2 == 0
    with pytest.raises(ValueError, match="is played by single records"):
        draw(AuditPlan(n_models=4, game="average_datum"), points, find("loss"))


def test_signals_of_all_attacks_together() -> None:
    assert wanted(find(["gap", "loss"])) == ["correct", "log_odds", "loss"]
