"""Plans of bounds: what is missing, too much or out of range is one line."""

from __future__ import annotations

import pytest

from leakbound.bounds import BOUNDS
from leakbound.plans.bounds import BOUND_PLANS
from leakbound.plans.plan import read


def test_every_bound_has_a_plan_and_every_plan_a_bound() -> None:
    assert list(BOUND_PLANS) == list(BOUNDS) or set(BOUND_PLANS) == set(BOUNDS)


@pytest.mark.parametrize("kind", BOUND_PLANS.values(), ids=list(BOUND_PLANS))
def test_every_field_says_what_it_is(kind) -> None:
    assert all(field.description for field in kind.model_fields.values())


@pytest.mark.parametrize(
    ("name", "words", "line"),
    [
        ("dp", {}, "give epsilon, or at_most to find it; got neither"),
        ("dp", {"epsilon": 1, "at_most": "eta=0.1"}, "give epsilon, or at_most to find it; got both"),
        ("dp", {"epsilon": -1}, "epsilon: Input should be greater than or equal to 0, got -1"),
        ("dp", {"epsilon": "much"}, "epsilon: Input should be a valid number, unable to parse string as a number, got"),
        ("dp", {"epsilon": 1, "delta": 1}, "delta must be >= 0 and < 1, got 1"),
        ("dp", {"epsilon": 1, "prior": 0}, "prior must be > 0 and < 1, got 0"),
        ("dp", {"epsilon": 1, "prior": 1}, "prior must be > 0 and < 1, got 1"),
        ("dp", {"epsilon": 1, "adjacency": "swap"}, "adjacency: Input should be 'add_remove' or 'replace_one', got"),
        ("dp", {"epsilon": 1, "fpr": (0.0,)}, "fpr must be > 0 and < 1, got 0"),
        ("dp", {"epsilom": 1}, "unknown key 'epsilom' (did you mean 'epsilon'?); known: "),
        ("dp", {"at_most": "auc=0.6"}, "at_most takes QUANTITY[@AT]=VALUE, as tpr@0.01=0.05, got 'auc=0.6'"),
        ("dp", {"at_most": "tpr=0.6"}, "tpr needs a false-alarm rate, as tpr@0.01=0.05; got 'tpr=0.6'"),
        ("gaussian", {}, "give mu, or at_most to find it; got neither"),
        (
            "dpsgd",
            {"noise_multiplier": 1, "sample_rate": 0.1},
            "give sample_rate and steps, or epochs, batch_size and records; got",
        ),
        (
            "dpsgd",
            {"noise_multiplier": 0, "sample_rate": 0.1, "steps": 1},
            "noise_multiplier: Input should be greater than 0, got 0",
        ),
        (
            "dpsgd",
            {"noise_multiplier": 1, "sample_rate": 2, "steps": 1},
            "sample_rate is a fraction: 2 is out of range; did you mean 0.02? It must be > 0 and <= 1",
        ),
        ("pmp", {"data": "a.csv", "clip": 1}, "the mechanism mean takes scale, and no epsilon or at_most"),
        (
            "pmp",
            {"data": "a.csv", "clip": 1, "mechanism": "exponential", "scale": 1},
            "the mechanism exponential takes epsilon or at_most, and no scale",
        ),
        (
            "pmp",
            {"data": "a.csv", "clip": 1, "mechanism": "exponential", "at_most": "tpr@0.1=0.2"},
            "at_most takes QUANTITY[@AT]=VALUE",
        ),
        ("table", {"data": "a.csv", "by": ()}, "by: name at least one column, as a,b; got ()"),
        ("table", {"data": "a.csv", "by": ""}, "by: name at least one column, as a,b; got ''"),
        ("table", {"data": "a.csv", "by": [" , "]}, "by: name at least one column, as a,b; got [' , ']"),
        ("table", {"data": "a.csv", "by": '"a'}, "by: write columns as a,b and a name with a comma in double quotes, "),
        ("table", {"data": "a.csv", "by": "a", "k": 3, "sampling": "poisson"}, "k is for sampling = fixed, in place"),
        ("table", {"data": "a.csv", "by": "a", "k": 3, "prior": 0.3}, "k is for sampling = fixed, in place of prior"),
        ("table", {"data": "a.csv", "by": "a", "eta": 0.5}, "eta must be > 0 and < 0.5, got 0.5"),
        ("total", {"data": "a.csv", "column": "c", "round": 0}, "round: Input should be greater than 0, got 0"),
        ("leakage", {"data": "a.csv", "covariance": "low"}, "covariance: Input should be 'diagonal', 'full' or 'ledoi"),
        ("gap", {}, "the key 'gap' is missing"),
        ("information", {"information": -1}, "information: Input should be greater than or equal to 0, got -1"),
    ],
)
def test_the_line_that_a_bad_plan_gets(name: str, words: dict, line: str) -> None:
    with pytest.raises(ValueError) as caught:
        read(BOUND_PLANS[name], words, f"bound {name}")
    text = str(caught.value)
    assert text.startswith(f"bound {name}: {line}")
    assert "\n" not in text


def test_columns_are_given_one_by_one_or_joined_by_commas() -> None:
    plans = [read(BOUND_PLANS["table"], {"data": "a.csv", "by": by}, "") for by in ("a,b", ("a", "b"), ["a,b"])]
    assert [plan.by for plan in plans] == [("a", "b")] * 3  # pyright: ignore[reportAttributeAccessIssue]


def test_a_column_with_a_comma_stands_in_double_quotes() -> None:
    plan = read(BOUND_PLANS["table"], {"data": "a.csv", "by": '"pay, net",sex'}, "")
    assert plan.model_dump()["by"] == ("pay, net", "sex")
