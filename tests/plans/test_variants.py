"""Variants of one model: a grid of its parameters."""

from __future__ import annotations

import pytest

from leakbound.plans.audits import AuditPlan
from leakbound.plans.plan import read
from leakbound.plans.variants import parsed, variants


def test_a_grid_has_every_combination():
    found = variants({"max_depth": [3, None], "criterion": ["gini", "entropy"]})
    assert [variant.name for variant in found] == [
        "max_depth=3, criterion=gini",
        "max_depth=3, criterion=entropy",
        "max_depth=none, criterion=gini",
        "max_depth=none, criterion=entropy",
    ]
    assert found[2].set == {"max_depth": None, "criterion": "gini"}


def test_a_name_may_say_its_table():
    (first, _) = variants({"train.epochs": [1, 2]})
    assert (first.set, first.train) == ({}, {"epochs": 1})
    (first, _) = variants({"noise_multiplier": [1.0, 2.0]}, private=True)
    assert first.dpsgd == {"noise_multiplier": 1.0}
    (first, _) = variants({"set.width": [8, 16]}, private=True)
    assert first.set == {"width": 8}


def test_names_tell_close_values_apart():
    names = [variant.name for variant in variants({"alpha": [0.01234567, 0.01234568, 0.5]})]
    assert names == ["alpha=0.01234567", "alpha=0.01234568", "alpha=0.5"]


def test_names_leave_out_the_steps_of_a_pipeline_where_they_are_not_needed():
    long = "histgradientboostingclassifier__max_iter"
    first, second = variants({long: [10, 50]})
    assert (first.name, second.name) == ("max_iter=10", "max_iter=50")
    assert first.set == {long: 10}
    first, *_ = variants({"a__alpha": [1, 2], "b__alpha": [3, 4], "tree__max_depth": [5, 6]})
    assert first.name == "a__alpha=1, b__alpha=3, max_depth=5"


def test_the_training_of_dpsgd_has_no_recipe():
    with pytest.raises(ValueError, match="vary changes epochs of train, and the model is trained by DP-SGD"):
        variants({"train.epochs": [1, 2]}, private=True)


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"a": [1]}, "vary needs at least 2 different values of a, got"),
        ({"a": [1, 1]}, "vary needs at least 2 different values of a, got"),
        ({"a": "12"}, "vary needs a list of values of a, got '12'"),
        ({"a": 3}, "vary needs a list of values of a, got 3"),
        ({"a": [1, 1.0]}, "vary needs at least 2 different values of a, got"),
        ({"a": [object(), None]}, "vary takes numbers, truth values, texts and None, got a object of a"),
        ({"dpsgd.clip": [1, 2]}, "vary changes clip of DP-SGD, and the model is trained without it"),
        ({"a": range(9), "b": range(9)}, "vary has 81 combinations, each with its own models; allowed: at most 32"),
        ({"model.x": [1, 2]}, "table of vary"),
    ],
)
def test_what_is_no_grid_is_refused(grid, message):
    with pytest.raises(ValueError, match=message):
        variants(grid)


def test_flags_are_read_like_constants():
    assert parsed(["a=1,2.5,none", "b=true,x"]) == {"a": (1, 2.5, None), "b": (True, "x")}
    with pytest.raises(ValueError, match="--vary gives a twice; write all of its values at once"):
        parsed(["a=1,2", "a=3,4"])


def test_a_plan_has_a_release_for_each_variant():
    content = {
        "model": [{"spec": "sklearn.tree:DecisionTreeClassifier", "set": {"criterion": "entropy", "max_depth": 9}}],
        "vary": {"max_depth": [3, "none"]},
    }
    releases = read(AuditPlan, content, "plan").releases
    assert [release.name for release in releases] == ["max_depth=3", "max_depth=none"]
    assert releases[1].set == {"criterion": "entropy", "max_depth": None}
    content["model"] = [*content["model"], {"spec": "sklearn.naive_bayes:GaussianNB"}]
    with pytest.raises(ValueError, match="vary is of one model, and there are 2"):
        read(AuditPlan, content, "plan")
