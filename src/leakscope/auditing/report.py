"""Assemble the audit report from observed releases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leakscope.auditing.evaluate import Judgement, judge
from leakscope.auditing.observed import ObservedRelease
from leakscope.core.types import Attack
from leakscope.plans.audits import AuditPlan, refuse_unknown
from leakscope.reports import Report
from leakscope.reports.about import AuditAbout, TheoremFacts, envelope

PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas")  # whose versions a report prints


def assemble(
    plan: AuditPlan,
    attacks: Sequence[Attack],
    releases: Sequence[ObservedRelease],
    notes: Sequence[str] = (),
    command: str = "",
) -> Report:
    """Judge each release and put the results side by side.

    Parameters
    ----------
    plan : AuditPlan
    attacks : sequence of Attack
    releases : sequence of ObservedRelease
        Releases that have been observed.
    notes : sequence of str
        What a reader should know of the data and the run.
    command : str
        That makes this report again.

    Returns
    -------
    Report

    Raises
    ------
    ValueError
        If a claim is about a release that is not there.
    """
    refuse_unknown(plan, [observed.name for observed in releases])
    made = [judge(observed, attacks, plan.fpr, plan.confidence, plan.prior) for observed in releases]
    return Report(
        _about(plan, attacks, made, notes, command),
        tuple(finding for each in made for finding in each.findings),
        tuple(curve for each in made for curve in each.curves),
        _joined([each.records for each in made if each.records]),
    )


def _about(
    plan: AuditPlan, attacks: Sequence[Attack], made: Sequence[Judgement], notes: Sequence[str], command: str
) -> AuditAbout:
    said = envelope(
        plan.model_dump(), PACKAGES, seed=plan.seed, confidence=plan.confidence, command=command, notes=notes
    )
    return AuditAbout(
        kind="audit",
        **said,
        fpr=plan.fpr,
        attacks={attack.name: described(attack) for attack in attacks},
        execution=None,
        releases=tuple(each.facts for each in made),
    )


def described(attack: Attack) -> TheoremFacts:
    """Describe an attack as the report does."""
    return TheoremFacts(title=attack.title, source=attack.source, summary=attack.summary)


def _joined(tables: Sequence[Mapping[str, Sequence[Any]]]) -> dict[str, list[Any]]:
    """Tables with the same columns, one below the other."""
    return {name: [item for table in tables for item in table[name]] for name in (tables[0] if tables else {})}
