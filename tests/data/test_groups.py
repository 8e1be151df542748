"""Groups by default: who is in which, and what is joined."""

from __future__ import annotations

import numpy as np
import pytest

from leakbound.data.groups import Group, groups_by_columns, groups_by_label, joined, least_size, models_for


def sizes(groups) -> list[tuple[str, int, bool]]:
    return [(group.name, len(group), group.is_judged) for group in groups]


def of_sizes(*counts: int) -> list[Group]:
    """Groups a, b, c, ... of these sizes, with different units."""
    ends = np.cumsum(counts)
    return [
        Group(f"class {name}", np.arange(end - n, end)) for name, n, end in zip("abcdefgh", counts, ends, strict=False)
    ]


@pytest.mark.parametrize(
    ("n_models", "least"),
    [(1, 800), (2, 3300), (4, 1650), (7, 943), (8, 313), (64, 40), (63, 40), (125, 20), (1000, 20)],
)
def test_a_group_that_is_judged_has_2500_records_over_all_models_and_more_over_few(n_models, least) -> None:
    assert least_size(n_models) == least


def test_models_for_a_group() -> None:
    assert [models_for(n) for n in (3300, 2500, 1250, 500, 100, 20, 19)] == [2, 3, 6, 8, 25, 125, None]
    for n in range(20, 3301):
        assert least_size(models_for(n)) <= n  # it is judged by itself then


@pytest.mark.parametrize(
    ("counts", "least", "found"),
    [
        # nothing to join
        ((50, 40), 40, [("class a", 50, True), ("class b", 40, True)]),
        # the smallest first, until there are 40; what is left over goes to the last one
        # 5 + 12 + 20 + 30 = 67
        ((100, 5, 38, 30, 12, 20), 40, [("class a", 100, True), ("joined group 1", 105, True)]),
        # what is left over and has no other is a group by itself; a large one is never joined with
        ((100, 12), 40, [("class a", 100, True), ("class b", 12, True)]),
        ((100, 12, 13), 40, [("class a", 100, True), ("joined group 1", 25, True)]),
    ],
)
def test_small_groups_are_joined(counts, least, found) -> None:
    judged = [row for row in sizes(joined(of_sizes(*counts), least)) if row[2]]
    assert judged == found


def test_joined_groups_are_named_and_stay_by_themselves() -> None:
    groups = joined(of_sizes(100, 25, 30), 40)
    assert sizes(groups) == [
        ("class a", 100, True), ("joined group 1", 55, True), ("class b", 25, False), ("class c", 30, False),
    ]  # fmt: skip
    assert (groups[1].joined, groups[1].models_needed) == (("class b", "class c"), 100)
    assert joined(of_sizes(100, 5, 39), 40)[1].models_needed is None


def test_all_classes_are_groups_not_the_most_frequent_alone() -> None:
    label = np.repeat([f"c{number:02}" for number in range(30)], 50)
    assert sizes(groups_by_label(label, None, 64, True)) == [(f"class c{number:02}", 50, True) for number in range(30)]


def test_tenths_of_a_response_have_equal_values_together() -> None:
    value = np.r_[np.zeros(450), np.arange(1, 551)].astype(float)
    groups = groups_by_label(value, None, 64, False)
    assert len(groups[0]) == 450
    assert groups[0].ends == (0.0, 0.0)
    assert sum(len(group) for group in groups) == 1000
    for group in groups:
        own = value[group.units]
        assert (own.min(), own.max()) == group.ends
        assert np.isin(value, own).sum() == len(group)  # no value is in two groups


def test_tenths_are_fewer_where_they_would_be_too_small() -> None:
    value = np.random.default_rng(0).permutation(200).astype(float)
    assert sizes(groups_by_label(value, None, 64, False)) == [
        (f"part {number} of 5 of response", 40, True) for number in range(1, 6)
    ]
    assert len(groups_by_label(value, None, 125, False)) == 10
    assert sizes(groups_by_label(value, None, 2, False)) == [("part 1 of 1 of response", 200, True)]


def test_labels_and_several_responses() -> None:
    has = np.zeros((300, 3), dtype=int)
    has[:100, 0] = has[50:200, 1] = has[190:, 2] = 1
    groups = groups_by_label(has, None, 64, True)
    assert sizes(groups) == [("label 0", 100, True), ("label 1", 150, True), ("label 2", 110, True)]
    responses = np.random.default_rng(0).normal(size=(400, 2))
    groups = groups_by_label(responses, None, 64, False)
    assert [len(group) for group in groups] == [40] * 20
    tokens = np.random.default_rng(0).integers(0, 500, (400, 64))
    assert groups_by_label(tokens, None, 64, False) == []


def test_a_unit_with_several_classes_is_a_group_of_its_own_kind() -> None:
    unit = np.repeat(np.arange(150), 2)
    label = np.where(np.arange(300) < 100, "a", "b").astype(object)
    label[200::2] = "a"
    assert sizes(groups_by_label(label.astype(str), unit, 64, True)) == [
        ("class a", 50, True), ("class b", 50, True), ("several classes", 50, True),
    ]  # fmt: skip


def test_without_labels_the_columns_of_the_user_are_groups() -> None:
    groups = groups_by_columns({"town": np.repeat(["Bern", "Chur"], [60, 50])}, None, 64)
    assert sizes(groups) == [("town = Bern", 60, True), ("town = Chur", 50, True)]
