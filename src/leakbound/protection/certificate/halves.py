"""Both halves of the certificate of a design that uses all records, or all but one.

The public half holds what was declared public (n, the plan, the names of the columns), the printed noise, the released
values and what follows from these. The owner's half also holds exact functions of the data.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from leakbound.core.findings import Finding
from leakbound.core.lengths import p_norm
from leakbound.core.tradeoff import TradeOff
from leakbound.plans.protects import WeightedPlan
from leakbound.plans.several import SeveralPlan, several_content
from leakbound.protection.certificate.counted_twice import counted_twice
from leakbound.protection.certificate.curves import for_publication, gaussian_curve
from leakbound.protection.certificate.facts import (
    FAILED,
    Audience,
    about_release,
    next_command,
    noise_facts,
    rows_of_values,
)
from leakbound.protection.certificate.office_rules import check_office_rules, check_told_by_noise
from leakbound.protection.certificate.planned import of_statistic_named, planned_numbers
from leakbound.protection.certificate.published_table import counts_below_0, table_for_publication
from leakbound.protection.certificate.released_errors import sampling_from_released
from leakbound.protection.certificate.statistic_parameters import parameters_of
from leakbound.protection.setting.prepared import Prepared
from leakbound.releases.statistics.group_means import CountsAndSums
from leakbound.releases.statistics.statistic import Linear
from leakbound.reports import Curve, Report
from leakbound.reports.about import (
    CertificateFacts,
    DesignsCompared,
    LedgerEntryFacts,
    NoiseFacts,
    OfficeRule,
    PlannedNumber,
    ProtectedAbout,
    PublishedTable,
    ReleasedValue,
    StatisticFacts,
    StatisticParameters,
    term_facts,
)

Array = np.ndarray
_MOST_ASKED = 3  # statistics that the question of a page names


@dataclass(frozen=True)
class Joint:
    """What all releases of a ledger promise together, fixed before the first one."""

    release: str
    eta: float
    curve: TradeOff | None
    limits: Mapping[float, float]
    findings: Sequence[Finding]


def public_half(
    prepared: Prepared,
    value: Float[Array, " d"],
    entry: LedgerEntryFacts | None,
    joint: Joint | None = None,
    notes: Sequence[str] = (),
) -> Report:
    """Build the half of the certificate that is published."""
    curve = _public_curve(prepared, prepared.curve, prepared.eta, prepared.request.plan.limits)
    findings = [*_promised(prepared, curve), *prepared.public_findings, *_noise_size(prepared)]
    curves = [Curve("certified", "", "certified", curve)]
    if joint is not None:
        of_all = _public_curve(prepared, joint.curve, joint.eta, joint.limits)
        findings += _together(prepared, joint, of_all)
        curves += _second_curve(prepared, joint, of_all)
    about = _about(prepared, "public", value, entry, [*prepared.public_notes, *notes])
    return Report(about, findings, curves)


def owner_half(
    prepared: Prepared,
    value: Float[Array, " d"] | None = None,
    entry: LedgerEntryFacts | None = None,
    joint: Joint | None = None,
    spent: Sequence[Finding] = (),
    notes: Sequence[str] = (),
    designs: DesignsCompared | None = None,
) -> Report:
    """Build the owner's half of the certificate, or the report of a calibration where there is no value."""
    curve = gaussian_curve(prepared.eta) if prepared.curve is None else prepared.curve
    findings = [*_proved(prepared, curve), *prepared.public_findings, *prepared.owner_findings, *_noise_size(prepared)]
    curves = [Curve("certified", "", "certified", curve)]
    if joint is not None:
        of_all = gaussian_curve(joint.eta) if joint.curve is None else joint.curve
        findings += _together(prepared, joint, of_all)
        curves += _second_curve(prepared, joint, of_all)
    findings += spent
    of_owner = (*prepared.request.owner_notes, *prepared.owner_notes)
    about = _about(prepared, "owner", value, entry, [*prepared.public_notes, *of_owner, *notes], designs)
    return Report(about, findings, curves)


def _public_curve(prepared: Prepared, curve: TradeOff | None, eta: float, limits: Mapping[float, float]) -> TradeOff:
    """Return what of a curve may be published: where limits or the noise were declared, nothing that tells of data."""
    if curve is None:
        return gaussian_curve(eta)
    plan = prepared.request.plan
    is_declared = prepared.declared or bool(plan.limits)
    return for_publication(curve, eta, plan.rates, limits if is_declared else None)


def _promised(prepared: Prepared, curve: TradeOff) -> list[Finding]:
    """List what is promised of this release."""
    eta, common = prepared.eta, prepared.common
    return [
        Finding("accuracy", 0.5 + eta, operating_point={"prior": 0.5}, **common),
        Finding("eta", eta, operating_point={"prior": 0.5}, **common),
        *_rates(prepared, curve),
    ]


def _rates(prepared: Prepared, curve: TradeOff, release: str = "") -> list[Finding]:
    """List the true positive rates that a curve allows at the false positive rates of interest."""
    findings = []
    for rate in prepared.request.plan.rates:
        tpr = round(float(curve.tpr_at(rate)), 15)  # 1 - (1 - 0.005) is not 0.005
        findings.append(Finding("tpr", tpr, operating_point={"fpr": rate}, release=release, **prepared.common))
    return findings


def _together(prepared: Prepared, joint: Joint, curve: TradeOff) -> list[Finding]:
    """List what is promised of all releases of the ledger together."""
    common: dict[str, Any] = prepared.common | {"release": joint.release}
    at: dict[str, float] = {"prior": 0.5}
    return [
        Finding("accuracy", 0.5 + joint.eta, operating_point=at, **common),
        Finding("eta", joint.eta, operating_point=at, **common),
        *_rates(prepared, curve, joint.release),
        *joint.findings,
    ]


def _second_curve(prepared: Prepared, joint: Joint, curve: TradeOff) -> list[Curve]:
    """Return the curve of all releases where the ledger has room for more than this one."""
    return [Curve("certified", joint.release, "certified", curve)] if joint.eta != prepared.eta else []


def _proved(prepared: Prepared, curve: TradeOff) -> list[Finding]:
    """List the promise and, for the owner, what is proved beyond it."""
    promised = _promised(prepared, curve)
    if prepared.accuracy is None:
        return promised
    proved = min(prepared.accuracy, 0.5 + prepared.eta)
    common, at = prepared.common, {"prior": 0.5}
    return [
        Finding("accuracy", proved, operating_point=at, **common),
        Finding("eta", proved - 0.5, operating_point=at, **common),
        *promised[2:],
    ]


def _noise_size(prepared: Prepared) -> tuple[Finding, ...]:
    """Report the noise over all coordinates, root mean square; nothing where numbers are made of counts and sums."""
    statistics = [part.request.statistic for part in prepared.statistics]
    if any(isinstance(each, Linear) and isinstance(each.features, CountsAndSums) for each in statistics):
        return ()
    rms = float(p_norm(prepared.rms)) / math.sqrt(len(prepared.rms))
    return (Finding("noise_rms", rms, status="certified", source=prepared.source),)


def _about(
    prepared: Prepared,
    audience: Audience,
    value: Float[Array, " d"] | None,
    entry: LedgerEntryFacts | None,
    notes: Sequence[str],
    designs: DesignsCompared | None = None,
) -> ProtectedAbout:
    request, is_public = prepared.request, audience == "public"
    plan = request.plan
    statistics = _statistics(prepared, value, is_public)
    tables = {statistic.name: statistic.table for statistic in statistics if statistic.table is not None}
    table = None if prepared.parts else _table(prepared, value)
    of_counts = [*counts_below_0([table, *tables.values()]), *counted_twice(tables)]
    failed = [FAILED] if value is not None and not np.isfinite(value).all() else []
    all_notes = [*request.notes, *failed, *of_counts, *notes]
    command = ""
    if value is None and not is_public and not prepared.parts:
        command, refused = next_command(plan)
        all_notes += refused
    return about_release(
        request,
        audience,
        _certificate(prepared, entry, value is not None),
        all_notes,
        asked=_asked_for(prepared),
        more_of_plan=_several_content(prepared),
        values=_values_of_all(prepared, value, is_public),
        planned=_planned(prepared) if value is None and not is_public else (),
        statistics=statistics,
        parameters=None if prepared.parts else _parameters(prepared),
        release_command=command,
        table=table,
        rules=() if is_public or prepared.parts else _rules(prepared),
        designs=designs,
    )


def _certificate(prepared: Prepared, entry: LedgerEntryFacts | None, has_ledger: bool) -> CertificateFacts:
    return CertificateFacts(
        promise=prepared.promise,
        design=prepared.design,
        eta=prepared.eta,
        about="every",
        prior=0.5,
        k=prepared.k,
        n=prepared.units.n,
        coupling="",
        noise=_noise_facts(prepared),
        exact=True,
        confidence=1.0,
        pairs=None,
        fits=None,
        failures=None,
        assumptions=term_facts(prepared.assumptions),
        ledger=has_ledger,
        entry=entry,
        no_noise=prepared.no_noise,
    )


def _noise_facts(prepared: Prepared) -> NoiseFacts:
    """Describe the noise as it is printed, so that it can be drawn again, and the promise checked."""
    if prepared.parts:
        return _noise_of_all(prepared)
    return noise_facts(
        prepared.noise,
        prepared.rms,
        prepared.grid,
        prepared.noisy_coords,
        divisor=prepared.divisor,
        shape=prepared.shape,
        declared=prepared.declared,
    )


def _noise_of_all(prepared: Prepared) -> NoiseFacts:
    """Describe the noise of several statistics; the correlations are with each of them."""
    of_parts = [_noise_facts(part) for part in prepared.parts]
    grids = [noise.grid or [None] * len(noise.rms) for noise in of_parts]
    is_noisy = not prepared.no_noise
    return NoiseFacts(
        family="gaussian" if is_noisy else "none",
        scale=1.0 if is_noisy else 0.0,
        deviations=prepared.rms[prepared.noisy_coords].tolist() if is_noisy else None,
        correlations=None,
        rms=prepared.rms.tolist(),
        grid=tuple(step for grid in grids for step in grid) if is_noisy else None,
        declared=prepared.declared,
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
            noise=_noise_facts(part),
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
    if not prepared.parts or value is None:
        return _values(prepared, value, is_public)
    rows = [
        row.model_copy(update={"statistic": part.request.name})
        for part, of_part in zip(prepared.parts, prepared.split(value), strict=True)
        for row in _values(part, of_part, is_public)
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
        table = table_for_publication(request.plan, request.statistic, exact, part.rms, n_in_use=part.k)
        of_part = planned_numbers(table, finished, part.sampling_std)
        numbers += of_statistic_named(request.name, of_part)
    return tuple(numbers)


def _table(prepared: Prepared, value: Float[Array, " d"] | None) -> PublishedTable | None:
    """Make the table for publication; nothing before a release."""
    if value is None:
        return None
    request = prepared.request
    return table_for_publication(
        request.plan, request.statistic, value, prepared.rms, n_in_use=prepared.k, is_gaussian=True
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


def _values(prepared: Prepared, value: Float[Array, " d"] | None, is_public: bool) -> tuple[ReleasedValue, ...]:
    if value is None:
        return ()
    return rows_of_values(prepared.finished(value), prepared.k, None if is_public else prepared.sampling_std)
