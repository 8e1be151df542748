import numpy as np
import pytest

from leakbound.core.types import NotApplicable, Scores
from leakbound.metrics.rows import rows


def scores(member):
    member = np.array(member, dtype=bool)
    return Scores("any", np.arange(member.size, dtype=float).reshape(member.shape), member)


def test_a_target_is_a_row():
    scored = rows(scores([[0, 1, 1], [1, 0, 0]]))
    assert scored.value.shape == (2, 3)
    assert (scored.interval_over, scored.single) == ("models", False)
    assert (scored.n_members, scored.n_others) == (3, 3)


def test_one_target_averages_points():
    scored = rows(scores([[0, 1, 1]]))
    assert (scored.interval_over, scored.single) == ("points", True)


def test_one_point_a_target_is_one_row_over_models():
    scored = rows(scores([[0], [1], [1], [0]]))
    assert scored.value.tolist() == [[0, 1, 2, 3]]
    assert (scored.interval_over, scored.single) == ("models", True)


def test_rows_of_one_class_are_left_out():
    scored = rows(scores([[0, 1], [1, 1], [1, 0]]))
    assert scored.value.tolist() == [[0, 1], [4, 5]]
    assert scored.interval_over == "models"


def test_the_last_row_left_averages_points():
    assert rows(scores([[0, 1], [1, 1], [0, 0]])).interval_over == "points"


@pytest.mark.parametrize("member", [[[1, 1]], [[0, 0], [1, 1]], [[1], [1]]])
def test_without_both_classes_nothing_applies(member):
    with pytest.raises(NotApplicable, match="both members and non-members"):
        rows(scores(member))
