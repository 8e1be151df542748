"""Assemble the audit report from observed releases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leakscope.auditing.evaluate import Judgement, judge
from leakscope.auditing.observed import ObservedRelease
from leakscope.auditing.policy import Levels, decision, with_claims
from leakscope.core.types import Attack
from leakscope.plans.audits import AuditPlan, refuse_unknown
from leakscope.reports import Observation, Report
from leakscope.reports.about import AuditAbout, DecisionFacts, TheoremFacts, envelope
from leakscope.runtime.progress import progress

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
    policy = plan.policy
    limits = () if policy is None else policy.parsed_limits
    levels = None if policy is None else Levels.shared(policy.confidence, len(releases), len(attacks), len(limits))
    with progress("attacks", len(releases) if len(releases) > 1 else None) as advance:
        judgements = []
        for observed in releases:
            judgements.append(judge(observed, attacks, plan.fpr, plan.confidence, plan.prior, limits, levels))
            advance()
    decisions: list[DecisionFacts] = []
    if policy is not None:
        decisions = [
            decision(policy, observed, judgement.ends) for observed, judgement in zip(releases, judgements, strict=True)
        ]
    report = Report(
        _about(plan, attacks, judgements, decisions, notes, command),
        tuple(finding for judgement in judgements for finding in judgement.findings),
        tuple(curve for judgement in judgements for curve in judgement.curves),
        _joined([judgement.records for judgement in judgements if judgement.records]),
        {observed.name: Observation(observed.signals, attacks) for observed in releases},
    )
    return with_claims(report)


def _about(
    plan: AuditPlan,
    attacks: Sequence[Attack],
    judgements: Sequence[Judgement],
    decisions: Sequence[DecisionFacts],
    notes: Sequence[str],
    command: str,
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
        decisions=tuple(decisions),
    )


def described(attack: Attack) -> TheoremFacts:
    """Describe an attack as the report does."""
    return TheoremFacts(title=attack.title, source=attack.source, summary=attack.summary)


def _joined(tables: Sequence[Mapping[str, Sequence[Any]]]) -> dict[str, list[Any]]:
    """Join tables, one below the other; a table without names of records gets empty ones where another has some."""
    columns = dict.fromkeys(name for table in tables for name in table)
    joined: dict[str, list[Any]] = {name: [] for name in columns}
    for table in tables:
        n_rows = len(table["record"])
        for name, values in joined.items():
            values += table.get(name, [""] * n_rows)
    return joined
