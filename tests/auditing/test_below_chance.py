"""Attacks that are wrong more often than a guess: members and others exchanged, or a score of the wrong sign."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import leakbound as ls
from leakbound.cli.gates import exit_code, failures
from leakbound.core.findings import Finding, Scope, Term
from leakbound.reports.below_chance import below_chance

X, Y = load_breast_cancer(return_X_y=True)
X, Y = (part[np.random.default_rng(1).permutation(569)] for part in (X, Y))
IN, OUT = (X[:280], Y[:280]), (X[280:560], Y[280:560])
POLICY = {"limits": ["accuracy=0.6", "auc=0.6", "tpr@0.01=0.05"]}
MEMBER = np.arange(400) % 2 == 0
SCORES = np.random.default_rng(0).normal(np.where(MEMBER, 1.0, 0.0))


def area(value: float, half: float, attack: str = "loss", game: str = "scores", **other) -> Finding:
    return Finding("auc", value, value - half, value + half, attack=attack, game=Term(game), **other)


@pytest.mark.parametrize(
    ("findings", "id"),
    [
        ([area(0.25, 0.03)], "exchanged_or_sign"),
        ([area(0.25, 0.03), area(0.3, 0.03, "gap")], "exchanged"),
        ([area(0.25, 0.03), area(0.5, 0.03, "gap")], "wrong_sign"),
        ([area(0.25, 0.03), area(0.7, 0.03, "gap")], None),  # that one shows the leak
        ([area(0.47, 0.02)], None),  # may be chance, of so many attacks
        ([area(0.4995, 0.0001)], None),  # too small for an exchange
        ([area(0.25, 0.03, scope=Scope("slice", name="age"))], None),
        ([area(0.48, 0.005)], "exchanged_or_sign"),
        ([area(0.48, 0.005, game="half_split")], None),  # references may be biased, and nothing can be exchanged
        ([area(0.3, 0.02, game="half_split")], "exchanged_or_sign"),
        ([Finding("auc", 0.2, attack="loss", game=Term("scores"))], None),
        ([], None),
    ],
)
def test_what_is_below_chance(findings, id):
    found = below_chance(findings)
    assert (None if found is None else found.id) == id


@pytest.fixture(scope="module")
def exchanged():
    """Audit a tree whose members and others are exchanged."""
    tree = DecisionTreeClassifier(random_state=0).fit(*IN)
    return ls.audit_model(tree, OUT, IN, attacks=["gap", "loss"], policy=POLICY, claims="eta=0.4", name="tree")


@pytest.mark.slow
def test_no_limit_is_kept_and_nothing_is_called_safe(exchanged):
    (decision,) = exchanged.about.decisions
    assert decision.verdict == "ask"
    checks = {check.check: check for check in decision.checks}
    for name in ("accuracy", "auc", "tpr"):
        assert checks[name].outcome == "open", name
        assert checks[name].reason.id in ("exchanged", "wrong_sign")
    for text in (" ".join(str(exchanged).split()), exchanged.to_html()):
        assert "below 0.5 beyond chance" in text
        assert "there is no verdict until this is cleared up" in text
        assert "found no leak" not in text
        assert "no reason to change" not in text


def test_no_gate_is_passed(exchanged):
    assert any(line.endswith("the policy says ask") for line in failures(exchanged))
    assert exit_code(exchanged) == 3


def test_no_claim_agrees(exchanged):
    (curve,) = [curve for curve in exchanged.curves if curve.verdict is not None]
    assert curve.verdict.word == "cannot_be_tested"
    assert curve.verdict.reason.id in ("exchanged", "wrong_sign")


@pytest.mark.slow
def test_no_comparison_calls_the_other_one_leakier(exchanged):
    tree = DecisionTreeClassifier(random_state=0).fit(*IN)
    right = ls.audit_model(tree, IN, OUT, attacks=["loss"], name="tree")
    assert right.about.decisions == ()
    headline = ls.compare(exchanged, right).headline
    assert "wrong more often than a guess" in headline
    assert "reveals more" not in headline


def test_given_scores_of_the_wrong_sign():
    right = ls.audit_scores(SCORES, MEMBER, policy=POLICY)
    wrong = ls.audit_scores(-SCORES, MEMBER, policy=POLICY)
    assert right.about.decisions[0].verdict == "do_not_release"
    assert wrong.about.decisions[0].verdict == "ask"
    assert "or the attack's score has the wrong sign" in " ".join(str(wrong).split())
    assert exit_code(wrong) == 3


@pytest.mark.slow
def test_an_own_attack_of_the_wrong_sign():
    def sure_of_members(signals):
        return -signals.targets("loss")

    def sure_of_others(signals):
        return signals.targets("loss")

    tree = DecisionTreeClassifier(random_state=0).fit(*IN)
    report = ls.audit_model(tree, IN, OUT, attacks=[sure_of_others], policy=POLICY)
    assert report.about.decisions[0].verdict == "ask"
    both = ls.audit_model(tree, IN, OUT, attacks=[sure_of_others, sure_of_members], policy=POLICY)
    assert "cleared up" not in str(both)  # the other one shows the leak


@pytest.mark.slow
def test_a_model_that_leaks_nothing_is_not_called_exchanged():
    model = make_pipeline(StandardScaler(), LogisticRegression(C=1e-3)).fit(*IN)
    report = ls.audit_model(model, IN, OUT, policy={"limits": ["auc=0.65"]})
    assert report.about.decisions[0].verdict == "release"


@pytest.mark.slow
def test_references_of_another_class_leave_the_required_attack_open():
    model = DecisionTreeClassifier(random_state=0).fit(*IN)
    policy = {"limits": ["auc=0.99"], "attacks": ["lira", "loss"]}
    reports = [
        ls.audit_model(model, IN, OUT, references=ls.Fitted(references, n=4), policy=policy, attacks=["lira", "loss"])
        for references in (LogisticRegression(max_iter=10, tol=1.0), DecisionTreeClassifier(max_depth=2))
    ]
    checks = [
        {check.attack: check for check in report.about.decisions[0].checks if check.check == "attack"}
        for report in reports
    ]
    assert [(found["lira"].outcome, found["loss"].outcome) for found in checks] == [("open", "kept"), ("kept", "kept")]
    assert checks[0]["lira"].reason.id == "references_of_another_class"
    notes = [" ".join(report.about.notes) for report in reports]
    assert "The references are of another class than the audited model: LogisticRegression, not Decision" in notes[0]
    assert "The references have other parameters than the audited model: max_depth=2, not None" in notes[1]
