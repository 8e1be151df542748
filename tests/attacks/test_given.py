"""Scores that were computed elsewhere: the rows of the targets, with who was in."""

from __future__ import annotations

import numpy as np
import pytest

from leakbound.attacks.given import Given
from leakbound.core.types import Game, Signals

MEMBER = np.array([[True, True, False, False], [False, True, True, False], [True, False, False, True]])


def signals(n_targets: int, is_target_point: np.ndarray) -> Signals:
    return Signals(Game("half_split", MEMBER, is_target_point, n_targets), None, {"loss": np.ones(MEMBER.shape)})


def test_the_rows_of_the_targets_are_taken(as_users_run_it):
    value = np.arange(12.0).reshape(3, 4)
    scores = Given("theirs", value)(signals(2, np.ones(4, dtype=bool)))
    assert scores.value.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert scores.member.tolist() == [[True, True, False, False], [False, True, True, False]]
    assert (scores.attack, scores.source) == ("theirs", "given by the user")


def test_memberships_are_those_of_the_target_points():
    is_target_point = np.array([[True, False, False, True], [False, True, True, False], [True, True, False, False]])
    scores = Given("theirs", np.zeros((3, 2)))(signals(3, is_target_point))
    assert scores.member.tolist() == [[True, False], [True, True], [True, False]]


def test_scores_of_other_points_are_refused(as_users_run_it):
    given = Given("theirs", np.zeros((3, 5)))
    with pytest.raises(ValueError, match=r"^scores have shape \(3, 5\), memberships \(3, 4\); both must be \(T, J\)$"):
        given(signals(3, np.ones(4, dtype=bool)))
    with pytest.raises(ValueError, match=r"^theirs: scores have NaN or infinite values$"):
        Given("theirs", np.full((3, 4), np.nan))(signals(3, np.ones(4, dtype=bool)))
