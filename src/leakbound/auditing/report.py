"""Assemble the audit report from observed releases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from leakbound.auditing.evaluate import Judgement, judge
from leakbound.auditing.observed import ObservedRelease
from leakbound.auditing.policy import Levels, decision, left_out_of_default, with_claims
from leakbound.core.types import Attack
from leakbound.plans.audits import AuditPlan, GivenPlan, refuse_unknown
from leakbound.reports import Observation, Report
from leakbound.reports.about import AuditAbout, DecisionFacts, TheoremFacts, envelope
from leakbound.reports.below_chance import below_chance
from leakbound.reports.report import MOST_RECORDS, joined_tables
from leakbound.runtime.progress import progress

PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas")  # whose versions a report prints


def assemble(
    plan: AuditPlan | GivenPlan,
    attacks: Sequence[Attack],
    releases: Sequence[ObservedRelease],
    notes: Sequence[str] = (),
    command: str = "",
    failed: Mapping[str, str] | None = None,
) -> Report:
    """Judge each release and combine the results in one report."""
    refuse_unknown(plan, [*(observed.name for observed in releases), *(failed or {})])
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
        left_out = left_out_of_default(attacks)
        decisions = [
            decision(policy, observed, judgement.ends, below_chance(judgement.findings), judgement.groups, left_out)
            for observed, judgement in zip(releases, judgements, strict=True)
        ]
    report = Report(
        _about(plan, attacks, judgements, decisions, notes, command, failed or {}),
        tuple(finding for judgement in judgements for finding in judgement.findings),
        tuple(curve for judgement in judgements for curve in judgement.curves),
        joined_tables([table for judgement in judgements if (table := judgement.records(MOST_RECORDS))]),
        {
            observed.name: Observation(observed.signals, attacks, judgement.records)
            for observed, judgement in zip(releases, judgements, strict=True)
        },
    )
    return with_claims(report)


def _about(
    plan: AuditPlan | GivenPlan,
    attacks: Sequence[Attack],
    judgements: Sequence[Judgement],
    decisions: Sequence[DecisionFacts],
    notes: Sequence[str],
    command: str,
    failed: Mapping[str, str],
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
        failed=dict(failed),
    )


def described(attack: Attack) -> TheoremFacts:
    """Describe an attack as the report does."""
    return TheoremFacts(title=attack.title, source=attack.source, summary=attack.summary)
