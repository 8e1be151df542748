"""From what was observed to the report: each release is judged, and the report is built of the judgements, once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from leakbound.auditing.evaluate import Judgement, judge
from leakbound.auditing.observed import ObservedRelease
from leakbound.auditing.policy import Levels, decision, left_out_of_default
from leakbound.auditing.private_training import PrivateTraining
from leakbound.core.types import Attack
from leakbound.plans.audits import AuditPlan, GivenPlan, JudgedPlan, refuse_unknown
from leakbound.plans.policies import PolicyPlan
from leakbound.reports import Observation, Report
from leakbound.reports.about import AuditAbout, DecisionFacts, ExecutionFacts, TheoremFacts, envelope
from leakbound.reports.below_chance import below_chance, is_reversed
from leakbound.reports.report import MOST_RECORDS, joined_tables
from leakbound.runtime.progress import progress

PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas")  # whose versions a report prints


@dataclass(frozen=True)
class Criteria:
    """What the releases of an audit are measured at, and judged by."""

    fpr: Sequence[float]
    confidence: float
    prior: float = 0.5
    policy: PolicyPlan | None = None

    @classmethod
    def of(cls, plan: AuditPlan | GivenPlan) -> Criteria:
        """Take them from a plan."""
        return cls(plan.fpr, plan.confidence, plan.prior, plan.policy)


@dataclass(frozen=True)
class AuditRun:
    """The releases of an audit as they were observed, and what else its report says of how they were made."""

    releases: Sequence[ObservedRelease]
    # by release: those that were trained by DP-SGD
    trainings: Mapping[str, PrivateTraining] = field(default_factory=dict)
    notes: Sequence[str] = ()
    owner_notes: Sequence[str] = ()
    execution: ExecutionFacts | None = None
    # by release: the error of one that could not be fitted
    failed: Mapping[str, str] = field(default_factory=dict)


def judge_all(criteria: Criteria, attacks: Sequence[Attack], run: AuditRun) -> list[Judgement]:
    """Judge each release of an audit."""
    policy = criteria.policy
    limits = () if policy is None else policy.parsed_limits
    # the level of a policy is shared by all releases, so that no verdict of the audit is wrong
    levels = None if policy is None else Levels.shared(policy.confidence, len(run.releases), len(attacks), len(limits))
    judgements = []
    with progress("attacks", len(run.releases) if len(run.releases) > 1 else None) as advance:
        for observed in run.releases:
            training = run.trainings.get(observed.name)
            judgements.append(
                judge(observed, attacks, criteria.fpr, criteria.confidence, criteria.prior, limits, levels, training)
            )
            advance()
    return judgements


def assemble(
    plan: JudgedPlan,
    criteria: Criteria,
    attacks: Sequence[Attack],
    run: AuditRun,
    judgements: Sequence[Judgement],
    command: str = "",
) -> Report:
    """Build the report of an audit."""
    # A policy decides from intervals, groups and verdicts, which are all known by now.
    decisions: list[DecisionFacts] = []
    if criteria.policy is not None:
        left_out = left_out_of_default(attacks)
        for judgement in judgements:
            verdicts = [curve.verdict for curve in judgement.curves if curve.verdict is not None]
            below = below_chance(judgement.findings)
            decisions.append(
                decision(
                    criteria.policy, judgement.observed, judgement.ends, below, judgement.groups, left_out, verdicts
                )
            )
    about = AuditAbout(
        kind="audit",
        **envelope(
            plan.model_dump(),
            PACKAGES,
            seed=plan.seed,
            confidence=criteria.confidence,
            command=command,
            notes=(*run.notes, *_notes_of_sign(judgements)),
        ),
        owner_notes=tuple(run.owner_notes),
        fpr=tuple(criteria.fpr),
        attacks={attack.name: described(attack) for attack in attacks},
        execution=run.execution,
        releases=tuple(judgement.facts for judgement in judgements),
        decisions=tuple(decisions),
        failed=dict(run.failed),
    )
    # the signals stay with the report for `records()`; they are not written
    observations = {
        judgement.observed.name: Observation(judgement.observed.signals, attacks, judgement.records)
        for judgement in judgements
    }
    return Report(
        about,
        tuple(finding for judgement in judgements for finding in judgement.findings),
        tuple(curve for judgement in judgements for curve in judgement.curves),
        joined_tables([table for judgement in judgements if (table := judgement.records(MOST_RECORDS))]),
        observations,
    )


def _notes_of_sign(judgements: Sequence[Judgement]) -> Iterator[str]:
    """Say of which releases the members have the lower scores."""
    for judgement in judgements:
        if is_reversed(judgement.findings, "score"):
            yield (
                f"{judgement.observed.name}: members have the lower scores, beyond chance, and a higher score must "
                "mean that a record is more likely in. MAST, RMIA and the threshold read it so: return minus the score"
            )


def reported(plan: AuditPlan | GivenPlan, attacks: Sequence[Attack], run: AuditRun, command: str = "") -> Report:
    """Judge what was observed, and report it."""
    refuse_unknown(plan, [*(observed.name for observed in run.releases), *run.failed])
    criteria = Criteria.of(plan)
    return assemble(plan, criteria, attacks, run, judge_all(criteria, attacks, run), command)


def described(attack: Attack) -> TheoremFacts:
    """Describe an attack as the report does."""
    return TheoremFacts(title=attack.title, source=attack.source, summary=attack.summary)
