"""Accuracy is balanced unless asked otherwise, and its baseline is a row of table, page and JSON."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest

import leakbound as ls

N = 1000
ROWS = np.random.default_rng(1).normal(size=(N, 3))
LABELS = np.random.default_rng(2).integers(2, size=N)


def answers(x):
    """A model that was trained on nothing of this: a logistic function of the first feature."""
    positive = 1 / (1 + np.exp(-x[:, 0]))
    return np.column_stack([1 - positive, positive])


@cache
def without_a_leak(**words):
    """The same report for all tests that ask for the same."""
    members, others = np.arange(N) < 800, np.arange(N) >= 800
    sides = ((ROWS[side], LABELS[side]) for side in (members, others))
    return ls.audit_model(answers, *sides, classes=[0, 1], **words)


def of(report, quantity):
    return [each for each in report.findings if each.quantity == quantity and each.value is not None]


def test_a_model_without_a_leak_is_guessed_in_50_of_100_cases():
    """80 members to 20 others: the bound of 57 has a false alarm below 1e-2 for these fixed seeds, seen to hold."""
    report = without_a_leak()
    for each in of(report, "accuracy"):
        assert each.operating_point["prior"] == 0.5
        assert each.value == pytest.approx(0.5, abs=0.07)
    (baseline,) = of(report, "baseline_accuracy")
    assert (baseline.value, baseline.operating_point["prior"], baseline.status) == (0.5, 0.5, "certified")


@pytest.mark.slow
def test_another_prior_on_request_comes_with_its_baseline():
    report = without_a_leak(prior=0.8)
    of_all_records = [each for each in of(report, "accuracy") if each.scope.kind != "group"]  # of groups it is 1/2
    assert {each.operating_point["prior"] for each in of_all_records} == {0.8}
    (baseline,) = of(report, "baseline_accuracy")
    assert baseline.value == 0.8
    assert max(each.value for each in of(report, "accuracy")) == pytest.approx(0.8, abs=0.02)
    quantities = [each["quantity"] for each in json.loads(report.to_json())["findings"]]
    assert quantities.count("baseline_accuracy") == 1
    (row,) = [line for line in report.table().splitlines() if "guessing from the prior" in line]
    assert row.split()[-3] == "80"
    page = report.to_html()
    assert "Baseline accuracy, without any attack" in page
    assert "the axis starts at the baseline, 80" in page


@pytest.mark.slow
def test_the_page_of_a_balanced_audit_starts_at_50():
    page = without_a_leak().to_html()
    assert "the axis starts at the baseline, 50" in page


@pytest.mark.parametrize("kind", ["signals", "scores", "audit"])
def test_every_kind_of_audit_takes_the_prior(kind):
    rng = np.random.default_rng(0)
    if kind == "signals":
        game = ls.games.half_split(200, 8)
        report = ls.audit_signals(ls.Signals(game, None, {"loss": rng.exponential(size=game.member.shape)}), prior=0.3)
    elif kind == "scores":
        report = ls.audit_scores(rng.normal(size=200), np.arange(200) < 40, prior=0.3)
    else:
        from sklearn.tree import DecisionTreeClassifier

        tree = DecisionTreeClassifier(max_depth=2)
        report = ls.audit(
            tree, ROWS[:100], LABELS[:100], n_models=4, attacks=["loss"], game=ls.HalfSplit(prior=0.3), n_jobs=1
        )
    assert {each.operating_point["prior"] for each in of(report, "accuracy") if not each.scope.is_part} == {0.3}
    assert of(report, "baseline_accuracy")[0].value == 0.7


@pytest.mark.slow
def test_a_claim_keeps_the_prior_of_its_game():
    """800 of 1,000 are members: a guess is right in 80 of 100 cases, and eta is counted from there."""
    report = without_a_leak(claims="eta=0.05")
    (curve,) = (each for each in report.curves if each.role == "claimed")
    assert curve.tradeoff.accuracy(0.8) == pytest.approx(0.85)
    assert "in more than 85 of 100 cases" in report.to_html()


def test_an_attribute_has_no_prior_of_membership():
    with pytest.raises(TypeError, match=r"^attribute has no prior; it has: column, bins$"):
        ls.Attribute("age", prior=0.3)  # pyright: ignore[reportCallIssue] -- the point of the test
