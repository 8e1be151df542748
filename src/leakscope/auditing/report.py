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
    """Judge each release and combine the results in one report.

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
    judgements = [judge(observed, attacks, plan.fpr, plan.confidence, plan.prior) for observed in releases]
    return Report(
        _about(plan, attacks, judgements, notes, command),
        tuple(finding for judgement in judgements for finding in judgement.findings),
        tuple(curve for judgement in judgements for curve in judgement.curves),
        _joined([judgement.records for judgement in judgements if judgement.records]),
    )


def _about(
    plan: AuditPlan, attacks: Sequence[Attack], judgements: Sequence[Judgement], notes: Sequence[str], command: str
) -> AuditAbout:
    common = envelope(
        plan.model_dump(), PACKAGES, seed=plan.seed, confidence=plan.confidence, command=command, notes=notes
    )
    return AuditAbout(
        kind="audit",
        **common,
        fpr=plan.fpr,
        attacks={attack.name: described(attack) for attack in attacks},
        execution=None,  # of signals from elsewhere; an audit that trained models sets it afterwards
        releases=tuple(judgement.facts for judgement in judgements),
    )


def described(attack: Attack) -> TheoremFacts:
    """Describe an attack as the report does."""
    return TheoremFacts(title=attack.title, source=attack.source, summary=attack.summary)


def _joined(tables: Sequence[Mapping[str, Sequence[Any]]]) -> dict[str, list[Any]]:
    """Tables with the same columns, one below the other."""
    if not tables:
        return {}
    return {name: [item for table in tables for item in table[name]] for name in tables[0]}
