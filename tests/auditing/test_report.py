"""Observed releases side by side in one report."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.tree import DecisionTreeClassifier

import leakbound as ls
from leakbound.attacks import find
from leakbound.auditing.observed import ObservedRelease
from leakbound.auditing.report import AuditRun, reported
from leakbound.core import games
from leakbound.core.types import Signals
from leakbound.plans import AuditPlan, ClaimPlan


def _subject(name: str, seed: int) -> ObservedRelease:
    game = games.half_split(80, 8, seed=seed)
    loss = np.random.default_rng(seed).exponential(np.where(game.member, 0.5, 1.0))
    return ObservedRelease(name, Signals(game, None, {"loss": loss}))


def test_records_of_all_releases_stand_in_one_table() -> None:
    report = reported(
        AuditPlan(), find(["loss"]), AuditRun([_subject("a", 0), _subject("b", 1)], notes=["a note"]), "leakbound audit"
    )
    assert report.records()["release"].tolist() == ["a"] * 80 + ["b"] * 80
    assert report.about.notes == ("a note",)
    assert report.about.command == "leakbound audit"
    assert set(report.to_frame()["release"]) == {"a", "b"}


def test_no_path_and_no_clock() -> None:
    plan = AuditPlan(data="/somewhere/private/people.csv", label="income")
    text = reported(plan, find(["loss"]), AuditRun([_subject("a", 0)])).to_json()
    assert "somewhere" not in text
    assert json.loads(text)["about"]["plan"]["data"] == "people.csv"


def test_claim_about_nobody() -> None:
    plan = AuditPlan(claim=(ClaimPlan(eta=0.1, model="forest"),))
    with pytest.raises(ValueError, match="a claim is about 'forest', which is no model here: a"):
        reported(plan, find(["loss"]), AuditRun([_subject("a", 0)]))


@pytest.mark.slow
def test_attacks_that_did_not_run_have_no_row_of_dashes():
    """One trained model without references: the table has what was measured, and the reasons are below it."""
    x, y = load_breast_cancer(return_X_y=True)
    model = DecisionTreeClassifier(max_depth=3).fit(x[::2], y[::2])
    report = ls.audit_model(model, (x[::2], y[::2]), (x[1::2], y[1::2]), n_jobs=1)
    rows = [line.strip().split("  ")[0] for line in report.table(full=True).splitlines()]
    assert "Loss (MALT)" in rows
    assert not {"LiRA", "RMIA", "MAST"} & set(rows)
    assert "Not run: RMIA: needs at least 1 reference model" in " ".join(report.table(full=True).split())
    assert "RMIA" in report.to_html()  # among all findings, with the reason
