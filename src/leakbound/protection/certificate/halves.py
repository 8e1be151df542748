"""Both halves of the certificate of a release, whatever its promise.

The public half holds what was declared public (n, the plan, the names of the columns), the printed noise, the released
values and what follows from these. The owner's half also holds exact functions of the data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from leakbound.core.findings import Finding, Term
from leakbound.core.lengths import p_norm
from leakbound.core.tradeoff import TradeOff
from leakbound.plans.promises import PROMISE_OF
from leakbound.plans.protects import WeightedPlan, printed
from leakbound.plans.several import SeveralPlan, several_content
from leakbound.protection.certificate.counted_twice import counted_twice
from leakbound.protection.certificate.facts import family_of, noise_facts, rows_of_values
from leakbound.protection.certificate.office_rules import check_office_rules, check_told_by_noise
from leakbound.protection.certificate.planned import of_statistic_named, planned_numbers
from leakbound.protection.certificate.published_table import counts_below_0, table_for_publication
from leakbound.protection.certificate.release_command import NO_RELEASE, release_command
from leakbound.protection.certificate.released_errors import sampling_from_released
from leakbound.protection.certificate.statistic_parameters import parameters_of
from leakbound.protection.setting.prepared import Counted, Joint, Prepared
from leakbound.protection.setting.results import Protected
from leakbound.protection.setting.several import statistics_of
from leakbound.releases.statistics.group_means import CountsAndSums
from leakbound.releases.statistics.statistic import Linear
from leakbound.reports import Curve, Report
from leakbound.reports.about import (
    CertificateFacts,
    DataFacts,
    DesignsCompared,
    OfficeRule,
    OtherReleaseFacts,
    PlannedNumber,
    ProtectedAbout,
    PublishedTable,
    ReleasedValue,
    StatisticFacts,
    StatisticParameters,
    envelope,
    term_facts,
)
from leakbound.reports.results.release.result import question_of

Array = np.ndarray
Audience = Literal["public", "owner"]
FAILED = "the statistic failed on the draw; that it did is all that is released"
_MOST_ASKED = 3  # statistics that the question of a page names


def certified(counted: Counted, designs: DesignsCompared | None = None, notes: Sequence[str] = ()) -> Protected:
    """Write both halves of the certificate of a release; what promises would cost is for the owner."""
    prepared, value = counted.prepared, counted.value
    public, owner = public_half(counted), owner_half(prepared, counted, designs, notes)
    return Protected(prepared.finished(value).value, prepared.noise, public, owner, statistics_of(prepared, value))


def public_half(counted: Counted) -> Report:
    """Build the half of the certificate that is published."""
    prepared, joint = counted.prepared, counted.joint
    if prepared.public_source:
        prepared = replace(prepared, source=prepared.public_source)
    findings = [*_promised(prepared, prepared.eta, prepared.public_curve), *prepared.public_findings]
    findings += _noise_size(prepared)
    curves = _certified_curve(prepared.public_curve)
    if joint is not None:
        findings += [*_promised(prepared, joint.eta, joint.public_curve, joint.release), *joint.findings]
        curves += _second_curve(prepared, joint, joint.public_curve)
    about = _about(prepared, "public", counted, [*prepared.public_notes, *counted.public_notes])
    return Report(about, findings, curves)


def owner_half(
    prepared: Prepared,
    counted: Counted | None = None,
    designs: DesignsCompared | None = None,
    notes: Sequence[str] = (),
) -> Report:
    """Build the owner's half of the certificate, or the report of a calibration where nothing was released."""
    # the owner reads what is proved beyond the promise
    proved = prepared.eta if prepared.proved_eta is None else prepared.proved_eta
    findings = [*_promised(prepared, proved, prepared.curve), *prepared.public_findings, *prepared.owner_findings]
    findings += [*_noise_size(prepared), *prepared.attacks]
    curves = [*_certified_curve(prepared.curve), *prepared.attack_curves]
    of_owner = [*prepared.public_notes, *prepared.request.owner_notes, *prepared.owner_notes]
    if counted is not None:
        joint = counted.joint
        if joint is not None:
            findings += [*_promised(prepared, joint.eta, joint.curve, joint.release), *joint.findings]
            curves += _second_curve(prepared, joint, joint.curve)
        findings += counted.owner_findings
        of_owner += counted.owner_notes
    about = _about(prepared, "owner", counted, [*of_owner, *notes], designs)
    return Report(about, findings, curves)


def _certified_curve(curve: TradeOff | None) -> list[Curve]:
    """Return what no attacker exceeds; nothing where no curve is proved."""
    return [] if curve is None else [Curve("certified", "", "certified", curve)]


def _promised(prepared: Prepared, eta: float, curve: TradeOff | None, release: str = "") -> list[Finding]:
    """List what no attacker exceeds who sees this release, or all releases of the ledger."""
    common: dict[str, Any] = prepared.common | {"release": release}
    at: dict[str, float] = {"prior": prepared.prior}
    findings = [
        Finding("accuracy", prepared.prior_accuracy + eta, operating_point=at, **common),
        Finding("eta", eta, operating_point=at, **common),
    ]
    if curve is not None:
        for rate in prepared.request.plan.rates:
            tpr = round(float(curve.tpr_at(rate)), 15)  # 1 - (1 - 0.005) is not 0.005
            findings.append(Finding("tpr", tpr, operating_point={"fpr": rate}, **common))
    return findings


def _second_curve(prepared: Prepared, joint: Joint, curve: TradeOff) -> list[Curve]:
    """Return the curve of all releases where the ledger has room for more than this one."""
    return [Curve("certified", joint.release, "certified", curve)] if joint.eta != prepared.eta else []


def _noise_size(prepared: Prepared) -> list[Finding]:
    """Report the noise over all coordinates, root mean square; nothing where numbers are made of counts and sums."""
    statistics = [part.request.statistic for part in prepared.statistics]
    if any(isinstance(each, Linear) and isinstance(each.features, CountsAndSums) for each in statistics):
        return []
    rms = float(p_norm(prepared.rms)) / math.sqrt(len(prepared.rms))
    return [Finding("noise_rms", rms, status="certified", source=prepared.source)]


def _about(
    prepared: Prepared,
    audience: Audience,
    counted: Counted | None,
    notes: Sequence[str],
    designs: DesignsCompared | None = None,
) -> ProtectedAbout:
    request, is_public = prepared.request, audience == "public"
    plan, promise = request.plan, request.plan.under(PROMISE_OF[prepared.design])
    value = None if counted is None else counted.value
    statistics = _statistics(prepared, value, is_public)
    tables = {statistic.name: statistic.table for statistic in statistics if statistic.table is not None}
    table = None if prepared.parts else _table(prepared, value)
    of_counts = [*counts_below_0([table, *tables.values()]), *counted_twice(tables)]
    failed = [FAILED] if value is not None and not np.isfinite(value).all() else []
    command = ""
    if value is None and not prepared.parts:
        command, refusal = release_command(plan)
        notes = [*notes, NO_RELEASE.format(reason=refusal)] if refusal else notes
    head = envelope(
        printed(plan) | _several_content(prepared),
        seed=promise.seed,
        confidence=promise.confidence,
        notes=[*request.notes, *failed, *of_counts, *notes],
    )
    # published is the number of people, and not of their rows, which depends on each of them
    data = DataFacts(name=request.data.name, digest="", records=prepared.n)
    if not is_public:
        points = request.data.points
        head["command"] = request.command
        data = DataFacts(name=request.data.name, digest=points.digest[:16], records=len(points))
    return ProtectedAbout(
        kind="protected",
        audience=audience,
        **head,
        question=question_of(prepared.promise, _asked_for(prepared)),
        insecure_seed=request.insecure_seed is not None,
        fpr=plan.fpr,
        data=data,
        certificate=_certificate(prepared, audience, counted),
        values=_values_of_all(prepared, value, is_public),
        planned=_planned(prepared) if value is None else (),
        statistics=statistics,
        parameters=None if prepared.parts else _parameters(prepared),
        release_command=command,
        table=table,
        rules=() if is_public or prepared.parts else _rules(prepared),
        designs=designs,
    )


def _certificate(prepared: Prepared, audience: Audience, counted: Counted | None) -> CertificateFacts:
    """State the promise, and what it rests on."""
    assumptions = list(prepared.assumptions)
    others: tuple[OtherReleaseFacts, ...] = ()
    # what the ledger knows of earlier releases is a part of the promise
    if counted is not None:
        assumptions += [Term("known_people")] if counted.knows_people else []
        others = tuple(OtherReleaseFacts(**asdict(other)) for other in counted.others)
    facts: dict[str, Any] = {"eta": prepared.eta, "coupling": "", "pairs": None, "fits": None, "failures": None}
    facts |= prepared.public_facts if audience == "public" else prepared.owner_facts
    return CertificateFacts(
        **facts,
        promise=prepared.promise,
        design=prepared.design,
        about=prepared.about,
        prior=prepared.prior,
        k=prepared.k,
        n=prepared.n,
        noise=noise_facts(prepared),
        exact=prepared.confidence is None,
        confidence=1.0 if prepared.confidence is None else prepared.confidence,
        assumptions=term_facts(assumptions),
        ledger=prepared.request.ledger_path is not None,
        entry=None if counted is None else counted.entry,
        no_noise=prepared.no_noise,
        others=others,
    )


def _statistics(prepared: Prepared, value: Float[Array, " d"] | None, is_public: bool) -> tuple[StatisticFacts, ...]:
    """List the statistics that are released together; none for a single one."""
    if not prepared.parts:
        return ()
    values = [None] * len(prepared.parts) if value is None else prepared.split(value)
    return tuple(
        StatisticFacts(
            name=part.request.name,
            weight=_weight(part),
            noise=noise_facts(part),
            parameters=_parameters(part),
            table=_table(part, of_part),
            rules=() if is_public else _rules(part),
        )
        for part, of_part in zip(prepared.parts, values, strict=True)
    )


def _weight(part: Prepared) -> float:
    plan = part.request.plan
    return plan.weight if isinstance(plan, WeightedPlan) else 1.0


def _several_content(prepared: Prepared) -> dict[str, Any]:
    """Return the tables of several statistics, as the plan has them; nothing for a single one."""
    plans = [part.request.plan for part in prepared.parts]
    weighted = tuple(plan for plan in plans if isinstance(plan, WeightedPlan))
    return several_content(SeveralPlan(weighted, prepared.request.plan.promise)) if weighted else {}


def _asked_for(prepared: Prepared) -> str:
    """Name what is released, for the question of the page."""
    if not prepared.parts:
        return prepared.request.plan.statistic
    names = [part.request.name for part in prepared.parts]
    return " and the ".join(names) if len(names) <= _MOST_ASKED else f"{len(names)} statistics"


def _values_of_all(prepared: Prepared, value: Float[Array, " d"] | None, is_public: bool) -> tuple[ReleasedValue, ...]:
    """Make the rows of all statistics, each with the name of its own."""
    if value is None:
        return ()
    if not prepared.parts:
        return rows_of_values(prepared, value, is_public=is_public)
    rows = [
        row.model_copy(update={"statistic": part.request.name})
        for part, of_part in zip(prepared.parts, prepared.split(value), strict=True)
        for row in rows_of_values(part, of_part, is_public=is_public)
    ]
    if not is_public:
        return tuple(rows)
    errors = sampling_from_released(prepared, value)
    return tuple(
        row.model_copy(update={"sampling_std": float(error)}) if np.isfinite(error) else row
        for row, error in zip(rows, errors, strict=True)
    )


def _planned(prepared: Prepared) -> tuple[PlannedNumber, ...]:
    """List the noise of each number of a calibration."""
    numbers: list[PlannedNumber] = []
    for part in prepared.statistics:
        request = part.request
        exact = part.value_of(0) / part.divisor
        finished = part.finished(exact)
        table = _table(part, exact)
        of_part = planned_numbers(table, finished, part.sampling_std, family_of(part.noise))
        numbers += of_statistic_named(request.name, of_part)
    return tuple(numbers)


def _table(prepared: Prepared, value: Float[Array, " d"] | None) -> PublishedTable | None:
    """Make the table for publication; nothing before a release."""
    if value is None:
        return None
    request = prepared.request
    is_gaussian = family_of(prepared.noise) == "gaussian"
    return table_for_publication(
        request.plan, request.statistic, value, prepared.rms, n_in_use=prepared.k, is_gaussian=is_gaussian
    )


def _parameters(prepared: Prepared) -> StatisticParameters | None:
    """Describe the statistic to a reader of its numbers."""
    plan, statistic = prepared.request.plan, prepared.request.statistic
    facts = parameters_of(plan, statistic, prepared.points)
    if facts is None or not isinstance(statistic, Linear) or not isinstance(statistic.features, CountsAndSums):
        return facts
    least = float(statistic.features.least_count(prepared.rms))
    return facts.model_copy(update={"least_count": least})


def _rules(prepared: Prepared) -> tuple[OfficeRule, ...]:
    """Check the rules of statistics offices, for the owner."""
    plan, statistic, points = prepared.request.plan, prepared.request.statistic, prepared.points
    by_noise: tuple[OfficeRule, ...] = ()
    if prepared.design == "leave-one-out" and not prepared.declared and plan.group is None:
        by_noise = check_told_by_noise(plan, statistic, points, prepared.rms)
    return (*check_office_rules(plan, statistic, points), *by_noise)
