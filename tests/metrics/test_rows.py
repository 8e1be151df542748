import numpy as np
import pytest

from leakscope.core.types import NotApplicable, Scores
from leakscope.metrics.rows import rows


def scores(member):
    member = np.array(member, dtype=bool)
    return Scores("any", np.arange(member.size, dtype=float).reshape(member.shape), member)


def test_a_target_is_a_row():
    judged = rows(scores([[0, 1, 1], [1, 0, 0]]))
    assert judged.value.shape == (2, 3)
    assert (judged.interval_over, judged.single) == ("models", False)
    assert (judged.n_members, judged.n_others) == (3, 3)


def test_one_target_averages_points():
    judged = rows(scores([[0, 1, 1]]))
    assert (judged.interval_over, judged.single) == ("points", True)


def test_one_point_a_target_is_one_row_over_models():
    judged = rows(scores([[0], [1], [1], [0]]))
    assert judged.value.tolist() == [[0, 1, 2, 3]]
    assert (judged.interval_over, judged.single) == ("models", True)


def test_rows_of_one_class_are_left_out():
    judged = rows(scores([[0, 1], [1, 1], [1, 0]]))
    assert judged.value.tolist() == [[0, 1], [4, 5]]
    assert judged.interval_over == "models"


def test_the_last_row_left_averages_points():
    assert rows(scores([[0, 1], [1, 1], [0, 0]])).interval_over == "points"


@pytest.mark.parametrize("member", [[[1, 1]], [[0, 0], [1, 1]], [[1], [1]]])
def test_without_both_classes_nothing_applies(member):
    with pytest.raises(NotApplicable, match="both members and non-members"):
        rows(scores(member))
