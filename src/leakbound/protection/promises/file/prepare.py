"""Design leave-one-out: one record is left out in secret, for the life of the data, and all others are used.

The n leave-one-out values of the statistic are computed, and noise is calibrated for all of them (`left_out_noise`).
The ledger says which record is left out; its value is a row of the table that was certified.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from leakbound.core.findings import EVERY, Finding, Term
from leakbound.core.repeated_rows import Table, of_records, rows_of, side_by_side
from leakbound.core.tradeoff import TradeOff
from leakbound.core.types import Points
from leakbound.noise.left_out import WorstLeftOut, jackknife_std
from leakbound.plans.promises import File
from leakbound.plans.protects import ProtectionPlan
from leakbound.protection.certificate.curves import curve_of_left_out, for_publication
from leakbound.protection.certificate.office_rules import check_told_by_noise, refuse_told_by_noise
from leakbound.protection.promises.file.attack import attack_left_out
from leakbound.protection.promises.file.noise import (
    LeftOutNoise,
    search_joint_noise,
    search_left_out_noise,
    told_together,
)
from leakbound.protection.setting.prepared import Prepared
from leakbound.protection.setting.request import Request, of_statistic
from leakbound.protection.setting.several import etas_of, joined
from leakbound.protection.setting.units import Units
from leakbound.releases.statistics.features import Cells, Histogram
from leakbound.releases.statistics.group_means import GroupMeans
from leakbound.releases.statistics.rounding import size_added_up
from leakbound.releases.statistics.statistic import Fit, Linear, Statistic
from leakbound.runtime.all_but_one import values_of
from leakbound.runtime.progress import progress

Array = np.ndarray
_MOST_NAMED = 3  # of those without whom a statistic fails
SOURCE = "ours: joint convexity over the values without each record"


def prepare(request: Request) -> Prepared:
    """Compute the values without each unit, and the least noise that hides which one is missing."""
    units = Units.of(request)
    if request.parts:
        return _several(request, units)
    table = _table_of(request, units)
    found = _least_noise(request, table, request.plan.eta, request.plan.limits)
    return _with_findings(_prepared(request, units, table, found), found.worst)


def _several(request: Request, units: Units) -> Prepared:
    """Find the least noise with which several statistics together hide which unit is missing."""
    # each statistic alone first: the joint search begins with its noise
    tables: list[_Table] = []
    alone: list[LeftOutNoise] = []
    for part, eta in zip(request.parts, etas_of(request), strict=True):
        with of_statistic(part.name):
            tables.append(_table_of(part, units))
            alone.append(_least_noise(part, tables[-1], eta, {}))
    with progress("search for the noise of all statistics"):
        found = search_joint_noise(
            [table.values for table in tables],
            [table.labels for table in tables],
            alone,
            request.plan.eta,
            request.plan.limits,
        )
    parts = [
        _prepared(part, units, table, noise) for part, table, noise in zip(request.parts, tables, found, strict=True)
    ]
    # the unit that all statistics together tell best
    worst = told_together(found)
    whitened = side_by_side([noise.whitened for noise in found])
    prepared = joined(request, units, parts, per_unit=whitened)
    return _with_findings(prepared, worst)


@dataclass(frozen=True, eq=False)
class _Table:
    """The values without each unit."""

    values: Table
    labels: Sequence[str]
    counts: bool
    sizes: Float[Array, " d"]  # of what was added up for each coordinate: a small part of it is rounding


def _table_of(request: Request, units: Units) -> _Table:
    """Compute the values of a statistic without each unit."""
    points, execution = request.data.points, request.execution
    statistic = settled(request.statistic, points)
    with progress("values without each record"):
        _, values = values_of(statistic, points, units.index, request.plan.under(File).seed, execution=execution)
    _check_failures(statistic, values, units)
    sizes = size_added_up(statistic, points, np.abs(rows_of(values)).max(axis=0))
    return _Table(values, statistic.labels(points), counts_records(statistic), sizes)


def _n_groups(statistic: Statistic) -> int:
    """Return the number of groups of a table of means, 1 for other statistics."""
    if isinstance(statistic, Fit) and isinstance(statistic.algorithm, GroupMeans):
        return statistic.algorithm.cells.n_cells
    return 1


def _least_noise(request: Request, table: _Table, eta: float, limits: Mapping[float, float]) -> LeftOutNoise:
    """Find the least noise for one statistic."""
    promise = request.plan.under(File)
    with progress("search for the noise"):
        return search_left_out_noise(
            table.values,
            eta,
            table.labels,
            noise=promise.noise,
            counts=table.counts,
            declared=promise.scale,
            allow_exact=promise.allow_exact,
            limits=limits,
            sizes=table.sizes,
            n_groups=_n_groups(request.statistic),
        )


def _prepared(request: Request, units: Units, table: _Table, found: LeftOutNoise) -> Prepared:
    """Collect what a statistic with its noise promises."""
    n, plan = units.n, request.plan
    # noise that was computed from the data must not tell what the rules of an office hide
    if isinstance(plan, ProtectionPlan) and plan.rules and not found.declared and plan.group is None:
        refuse_told_by_noise(
            check_told_by_noise(plan, request.statistic, request.data.points, found.rms), asked=plan.rules
        )
    return Prepared(
        request,
        request.data.points,
        "leave-one-out",
        n,
        k=n - 1,
        labels=table.labels,
        noise=found.noise,
        shape=found.shape,
        noisy_coords=found.noisy_coords,
        grid=found.grid,
        rms=found.rms,
        declared=found.declared,
        scope=EVERY,
        game=Term("left_out", n=n),
        assumptions=(
            Term("left_out_in_secret", n=n),
            Term("knows_all_but_left_out", n=n),
            Term("function_of_the_others"),
            Term("ledger_keeps_left_out"),
            Term("ledger_not_rolled_back"),
            *request.signed_for,
            *request.assumptions,
            Term("on_a_grid"),
        ),
        source=SOURCE,
        units=units,
        per_unit=found.whitened,
        value_of=found.table.__getitem__,
        sampling_std=jackknife_std(table.values),
    )


def _with_findings(prepared: Prepared, worst: WorstLeftOut) -> Prepared:
    """Add how well the record left out can be named, the whole curve, and an attack on the unit that is told best."""
    eta, plan = prepared.eta, prepared.request.plan
    with progress("trade-off curve"):
        curve = curve_of_left_out(prepared.per_unit, min(eta, worst.advantage / 2), plan)
    with progress("attack on simulated releases"):
        attacks = _attacks(prepared, worst.record)
    return replace(
        prepared,
        public_findings=(named_right(prepared, eta),),
        attacks=attacks,
        proved_eta=min(0.5 + worst.advantage / 2, 0.5 + eta) - 0.5,
        curve=curve,
        public_curve=published_curve(prepared, curve, eta, plan.limits),
    )


def published_curve(prepared: Prepared, curve: TradeOff, eta: float, limits: Mapping[float, float]) -> TradeOff:
    """Return what of a curve may be published: where limits or the noise were declared, nothing that tells of data."""
    plan = prepared.request.plan
    is_declared = prepared.declared or bool(plan.limits)
    return for_publication(curve, eta, plan.rates, limits if is_declared else None)


def _check_failures(statistic: Statistic, values: Table, units: Units) -> None:
    """Refuse a statistic that fails without some record: a failure has no noise, and would tell who is left out."""
    is_failure = np.asarray(~np.isfinite(rows_of(values)).all(axis=1))
    (failed,) = np.nonzero(of_records(values, is_failure))
    if not len(failed):
        return
    named = ", ".join(units.shown(int(unit)) for unit in failed[:_MOST_NAMED])
    more = f" and {len(failed) - _MOST_NAMED:,} more" if len(failed) > _MOST_NAMED else ""
    raise ValueError(
        f"{statistic.name} cannot be computed without {named}{more}, and a failure tells who is left out, which no "
        "noise hides: leave these out of the data, or change what fails (fewer columns, a penalty, larger groups)"
    )


def named_right(prepared: Prepared, eta: float, release: str = "") -> Finding:
    """Bound the probability that somebody names the record left out: ``1/n + (1 - 1/n) 2 eta``, which is proved.

    A guess without the release is right with probability 1/n, and each record adds the total variation by which it is
    told, at most 2 eta, over n.
    """
    n = prepared.n
    return Finding("named_right", min(1.0, 1 / n + (1 - 1 / n) * 2 * eta), release=release, **prepared.common)


def settled(statistic: Statistic, points: Points) -> Statistic:
    """Return the statistic with the shape of its output known: a function shows it on all records."""
    if isinstance(statistic, Fit):
        return statistic.settled(points, np.ones((1, len(points)), dtype=bool))
    return statistic


def counts_records(statistic: Statistic) -> bool:
    """Tell whether a statistic counts records: the cells of a table, or the bins of a histogram."""
    return isinstance(statistic, Linear) and isinstance(statistic.features, Cells | Histogram)


def _attacks(prepared: Prepared, record: int) -> tuple[Finding, ...]:
    """Attack the unit that is told best on simulated releases."""
    promise = prepared.request.plan.under(File)
    if prepared.no_noise or not promise.games:
        return ()
    return (
        attack_left_out(
            prepared.per_unit,
            record,
            promise.games,
            confidence=promise.confidence,
            seed=promise.seed,
            game=prepared.game,
        ),
    )
