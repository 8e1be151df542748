"""Gates: claims, verdicts of policies, and the exit code that follows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from leakbound.cli.gates import exit_code, failures, refuted, remarks
from leakbound.core.findings import Finding, Term
from leakbound.core.tradeoff import EpsilonDelta
from leakbound.core.tradeoff.claims import Claim
from leakbound.reports import Curve, Report, Verdict
from tests.reports.abouts import changed
from tests.reports.made import made

CLAIM = Claim("epsilon", 4.0, adjacency="add_remove")


def report(*findings: Finding, words: tuple[Any, ...] = (), names: tuple[str, ...] = ("forest",)) -> Report:
    """Findings of releases, and a verdict a word on the first of them."""
    curves = [
        Curve(f"claim {word}", names[0], "claimed", EpsilonDelta(1.0, 0.0), verdict=Verdict(CLAIM, word))
        for word in words
    ]
    (release,) = made().about.releases
    releases = [release.model_dump() | {"name": name} for name in names]
    return Report(changed(made().about, releases=releases), findings, curves)


def auc(value: float | None, attack: str, release: str = "forest", reason: Term | None = None) -> Finding:
    return Finding("auc", value, release=release, attack=attack, reason=reason)


def judged(report: Report, verdict: str) -> Report:
    """The report with the verdict of a policy on the forest."""
    decision = {"release": "forest", "verdict": verdict, "checks": []}
    return replace(report, about=changed(report.about, decisions=[decision]))


@pytest.mark.parametrize(("verdict", "code"), [("release", 0), ("ask", 3), ("do_not_release", 3)])
def test_a_policy_stops_a_pipeline_unless_it_says_release(verdict, code):
    assert exit_code(judged(report(), verdict)) == code


def test_a_refuted_claim_wins_over_a_limit():
    found = judged(report(auc(0.9, "lira"), words=("not_refuted", "refuted")), "do_not_release")
    assert refuted(found) == ["forest: epsilon = 4, add/remove"]
    assert failures(found) == ["forest: the policy says do not release"]
    assert exit_code(found) == 2


@pytest.mark.parametrize("word", ["not_refuted", "cannot_be_tested"])
def test_other_verdicts_do_not_stop_a_pipeline(word):
    assert exit_code(report(words=(word,))) == 0


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("cannot_hold", "cannot hold: the training as declared gives more"),
        ("not_supported", "is not supported: the accountant shows more for the training as declared"),
    ],
)
def test_a_claim_that_the_accountant_denies_stops_a_pipeline(word, says):
    found = report(words=(word,))
    assert refuted(found) == []  # nothing was measured
    assert failures(found) == [f"forest: epsilon = 4, add/remove {says}"]
    assert exit_code(found) == 3
    assert exit_code(report(words=(word, "refuted"))) == 2


def of_one_model(*findings: Finding, shared: int = 0) -> Report:
    """The report of a trained model."""
    (release,) = made().about.releases
    facts = release.model_dump() | {"name": "forest", "game": "one_model", "shared": shared}
    return Report(changed(made().about, releases=[facts]), findings, [])


def test_a_policy_says_which_attacks_it_does_not_know_of():
    missing = [auc(None, name, reason=Term("no_reference", n=0)) for name in ("lira", "rmia")]
    found = of_one_model(auc(0.55, "loss"), auc(0.52, "gap"), *missing)
    (said,) = remarks(judged(found, "release"))
    assert said.startswith("forest: compared with what loss and gap reached; LiRA and rmia did not run")
    assert "no reference models to compare with" in said
    assert remarks(found) == []
    assert remarks(judged(of_one_model(auc(0.55, "loss"), auc(0.5, "lira")), "release")) == []
