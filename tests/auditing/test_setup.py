"""What a plan and its attacks ask for."""

from __future__ import annotations

import numpy as np
import pytest

import leakbound as ls
from leakbound.attacks import find
from leakbound.auditing.setup import POPULATION, draw, population_share, wanted
from leakbound.data import from_arrays

POINTS = from_arrays(np.zeros((50, 2)), np.arange(50) % 2)


@pytest.mark.parametrize(
    ("asked", "kind", "n_target_points", "references"),
    [
        (ls.HalfSplit(), "half_split", 50, 0),
        (ls.Fresh(3, 10), "fresh", 3, 0),
        (ls.PerDatum(3, references=4), "per_datum", 1, 4),
        (ls.AverageDatum(references=4), "average_datum", 1, 4),
        (ls.Canaries(targets=(1, 2, 3), references=2), "canaries", 3, 2),
    ],
)
def test_every_game_is_drawn(asked, kind, n_target_points, references) -> None:
    game = draw(asked, 6, POINTS, find("loss"), 0)
    assert (game.kind, game.n_targets, game.n_target_points) == (kind, 6, n_target_points)
    assert game.n_models == 6 + references


def test_how_many_models_a_game_needs() -> None:
    games = (ls.HalfSplit(), ls.PerDatum(3), ls.AverageDatum(), ls.Attribute("sex"), ls.Canaries(targets=[3, 8]))
    assert {game.default_models for game in games} == {64}
    assert ls.Canaries(n=2000).default_models == 1
    assert ls.Fresh(20, 200).default_models == 128


def test_points_are_set_aside_only_for_attacks_that_ask() -> None:
    assert population_share(find("loss")) == 0
    assert population_share(find("rmia")) == POPULATION
    assert len(draw(ls.HalfSplit(), 4, POINTS, find("rmia"), 0).population) == 5
    assert draw(ls.Fresh(2, 10), 40, POINTS, find("rmia"), 0).pool == 50 - 2 - 5


def test_groups_play_half_splits_and_fresh_data_sets() -> None:
    points = from_arrays(np.zeros((50, 2)), np.arange(50) % 2, np.arange(50) // 2)
    assert draw(ls.HalfSplit(), 4, points, find("loss"), 0).member.sum() % 2 == 0
    game = draw(ls.Fresh(2, 5), 4, points, find("loss"), 0)
    assert game.member.sum(axis=1).tolist() == [10] * 4
    with pytest.raises(ValueError, match="is played by single records; use half_split, fresh or forg"):
        draw(ls.AverageDatum(), 4, points, find("loss"), 0)


def test_signals_of_all_attacks_together() -> None:
    assert wanted(find(["gap", "loss"])) == ["correct", "log_odds", "loss"]
