"""The designs side by side: the total error of each for the same accuracy of an attacker, and what each promises.

The errors are exact functions of the data, for their owner alone; the recommendation follows from public facts (the
kind of statistic, what was declared), so that following it tells nothing of the data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from leakbound.core.types import NotApplicable, Points
from leakbound.data.declared_content import columns_as_levels, columns_as_numbers
from leakbound.noise.discrete_gaussian import discrete_std, dp_discrete_scale
from leakbound.noise.left_out import jackknife_std
from leakbound.plans.bounds import GROUPED
from leakbound.plans.promises import NAME_OF, PROMISE_OF, Anyone, Design, Drawn, File
from leakbound.plans.protects import NO_DROP_MISSING, CalibrationPlan
from leakbound.protection.certificate.office_rules import check_office_rules
from leakbound.protection.certificate.release_command import release_command
from leakbound.protection.promises.anyone import prepare as anyone
from leakbound.protection.promises.anyone.sensitivity import sensitivity
from leakbound.protection.promises.drawn.jobs import Job
from leakbound.protection.promises.drawn.noise_search import search_noise
from leakbound.protection.promises.drawn.spread import Spread, izzo_noise, pac_least_noise, total_error
from leakbound.protection.promises.file import prepare as file
from leakbound.protection.promises.file.prepare import counts_records, settled
from leakbound.protection.setting.declared_data import declared_statistic, with_counts_and_sums
from leakbound.protection.setting.mechanism import Mechanism
from leakbound.protection.setting.prepared import Prepared
from leakbound.protection.setting.request import Request
from leakbound.releases.statistics.features import columns_of
from leakbound.releases.statistics.of_plan import statistic_of
from leakbound.releases.statistics.statistic import Linear
from leakbound.reports.about import DesignErrors, DesignsCompared, OfficeRule
from leakbound.reports.render.document import terminal
from leakbound.reports.results.release.designs import designs_page
from leakbound.runtime.all_but_one import values_of

Array = np.ndarray
Why = Literal["counts", "ranges", "no_ranges", "no_levels", "quantiles", "no_bound", "drop_missing"]
_MOST_NAMED = 6  # numbers
OtherMethod = Literal["", "discrete_gaussian", "pac_least_noise", "izzo_gamma"]


@dataclass(frozen=True, eq=False)
class DesignTable:
    """All designs for a statistic, for the owner of the data alone."""

    # errors are root mean squares against the statistic of all records: of records that are not used, and of the noise
    facts: DesignsCompared
    owner_notes: Sequence[str] = ()  # what a statistic does not count as it is: exact functions of the data
    release_command: str = ""
    rules: Sequence[OfficeRule] = ()

    def __repr__(self) -> str:
        """Show the errors, number by number, in units of the standard error, and the recommendation."""
        return self.table()

    def table(self, width: int = 80, full: bool = False) -> str:
        """Return the same in lines of at most ``width`` columns: of many numbers the first, or all of them."""
        page = designs_page(self.facts, self.release_command, self.rules, full)
        return terminal("designs.md.jinja", page, width, full)


def cost_of_designs(request: Request) -> DesignTable:
    """Compute what each design would cost for the statistic of a request; nothing is drawn or released."""
    if request.parts:
        raise ValueError("costs of promises are those of one statistic; several are released under a promise of choice")
    if request.plan.chosen == "dp" and not request.from_python:  # fields of a file are texts there
        request = replace(request, data=replace(request.data, points=_as_declared(request)))
        # and the statistic is one of noisy counts and sums
        request = replace(request, statistic=statistic_of(request.plan, request.data.points))
    points = request.data.points
    statistic = settled(request.statistic, points)
    of_all, without = values_of(statistic, points, None, request.plan.under(File).seed, execution=request.execution)
    owner_notes = list(request.owner_notes)
    told = replace(request, tell_owner=owner_notes.append)
    rows = [
        _row(told, design, method, of_all)
        for design, method in _ERRORS
        if method != "discrete_gaussian" or counts_records(statistic)
    ]
    recommended, why = recommendation(request)
    standard_errors = [float(error) if np.isfinite(error) else None for error in jackknife_std(without)]
    facts = DesignsCompared(
        labels=tuple(statistic.labels(points)),
        standard_errors=tuple(standard_errors),
        designs=tuple(rows),
        recommended=recommended,
        why=why,
    )
    command, _ = release_command(_promising(request.plan, recommended))
    rules = check_office_rules(request.plan, statistic, points)
    return DesignTable(facts, tuple(dict.fromkeys(owner_notes)), command, rules)


def _as_declared(request: Request) -> Points:
    """Read the columns that are used as numbers or levels, as differential privacy does, without moving any value."""
    plan, points = request.plan, request.data.points
    levels = {name: plan.levels[name] for name in plan.by if name in plan.levels}
    counted = plan.by if plan.statistic == "histogram" else ()
    of_numbers = [name for name in columns_of(points.x) if name in plan.under(Anyone).ranges or name in counted]
    numbers, _ = columns_as_numbers(points, of_numbers, plan.decimal)
    frame = numbers.x.assign(**columns_as_levels(points, levels).x)
    return replace(points, x=frame[[name for name in columns_of(points.x) if name in frame]])


def recommendation(request: Request) -> tuple[Design, Why]:
    """Recommend a design from public facts alone, and say from which.

    Counts, and columns whose ranges are declared, have differential privacy, which promises the most; a scale that was
    declared beforehand always answers; all else is left to leave-one-out.
    """
    plan, statistic = request.plan, request.statistic
    if plan.drop_missing:
        return "leave-one-out", "drop_missing"
    if counts_records(statistic):
        return "dp", "counts"
    if plan.statistic == "quantiles":
        return "leave-one-out", "quantiles"
    # of groups the counts and sums are released, whose noise follows from levels and ranges
    is_grouped = plan.statistic == GROUPED and bool(plan.by)
    if not is_grouped and not anyone.is_known(statistic):
        return "leave-one-out", "no_bound"
    if not plan.under(Anyone).ranges:
        return "leave-one-out", "no_ranges"
    if is_grouped and not set(plan.by) <= set(plan.levels):
        return "leave-one-out", "no_levels"
    return "dp", "ranges"


def _row(request: Request, design: Design, method: OtherMethod, of_all: Float[Array, " d"]) -> DesignErrors:
    """Compute the errors of a design, or say why it has none."""
    errors, why_none = None, ""
    try:
        found = _ERRORS[design, method](_with_design(request, design), of_all)
        errors = tuple(found.tolist())
    except (ValueError, NotApplicable) as reason:
        why_none = str(reason)
    # what leaving out half of the records costs is known from the features of sums and means alone
    is_estimated = errors is not None and design == "half" and not isinstance(request.statistic, Linear)
    return DesignErrors(
        name=design,
        promise=NAME_OF[design],
        errors=errors,
        reason=why_none,
        method=method,
        is_estimated=is_estimated,
    )


def _with_design(request: Request, design: Design) -> Request:
    """Ask for another design."""
    return replace(request, plan=_promising(request.plan, design))


def _promising(plan: CalibrationPlan, design: Design) -> CalibrationPlan:
    """Promise what a design keeps, and attack nothing."""
    promise = plan.under(PROMISE_OF[design])
    if not isinstance(promise, Anyone):
        promise = replace(promise, games=0)
    changes: dict[str, Any] = {"promise": promise, "compare": False}
    if not isinstance(promise, File):
        changes["group"] = None
    if isinstance(promise, Drawn):
        changes["budget"] = None
    return plan.model_copy(update=changes)


def _dp(request: Request, of_all: Float[Array, " d"]) -> Float[Array, " d"]:
    """Return the noise and what moving values into their ranges changes: all records are used."""
    if request.plan.drop_missing:
        raise ValueError(NO_DROP_MISSING)
    plan, points = request.plan, request.data.points
    if plan.statistic == GROUPED and plan.by:
        statistic = declared_statistic(plan, points)
    else:
        statistic = with_counts_and_sums(request.statistic, plan, points)
    prepared = anyone.prepare(replace(request, statistic=statistic))
    for note in prepared.owner_notes:  # which values are moved or counted nowhere
        request.tell_owner(note)
    finished = prepared.finished(prepared.value_of(0) / prepared.divisor)
    if len(finished.labels) - finished.n_counts != len(of_all):
        raise ValueError(
            "columns without a declared range are not used: declare theirs, or leave them out of all promises"
        )
    value, noise_std = finished.value[: len(of_all)], finished.noise_std[: len(of_all)]
    if not np.isfinite(value).all():
        of_all_numbers = zip(finished.labels, value.tolist(), strict=False)  # without the counts behind them
        small = [label for label, number in of_all_numbers if not np.isfinite(number)]
        more = f" and {len(small) - _MOST_NAMED:,} more" if len(small) > _MOST_NAMED else ""
        raise ValueError(
            f"{len(small):,} of {len(of_all):,} numbers would be left out, because the noise of their counts is too "
            f"large ({', '.join(small[:_MOST_NAMED])}{more}); the others would be published"
        )
    return np.hypot(noise_std, value - of_all)


def _dp_discrete(request: Request, of_all: Float[Array, " d"]) -> Float[Array, " d"]:
    """Return the noise of counts whose discrete Gaussian noise is calibrated by its own total variation."""
    if request.plan.drop_missing:
        raise ValueError(NO_DROP_MISSING)
    prepared = anyone.prepare(request)
    points = request.data.points
    counts = Mechanism(settled(request.statistic, points), points, len(points), request.execution)
    # a record that is replaced by another moves so many counts by one each
    n_moved = round(sensitivity(counts, n_records=counts.n).l1)
    deviation = discrete_std(dp_discrete_scale(request.plan.eta, n_moved)) / prepared.divisor
    moved = prepared.value_of(0) / prepared.divisor - of_all
    return np.hypot(deviation, moved)


def _leave_one_out(request: Request, of_all: Float[Array, " d"]) -> Float[Array, " d"]:
    prepared: Prepared = file.prepare(request)
    n = prepared.n
    squares = np.zeros(len(of_all))
    for unit in range(n):
        squares += np.square(prepared.value_of(unit) - of_all)
    return np.hypot(prepared.rms, np.sqrt(squares / n))


def _half(request: Request, of_all: Float[Array, " d"]) -> Float[Array, " d"]:
    """Add the error of the records that are not drawn."""
    job, spread = _drawn(request)
    return total_error(job.mechanism, spread, search_noise(job.mechanism, job.target).rms)


def _half_by_pac(request: Request, of_all: Float[Array, " d"]) -> Float[Array, " d"]:
    job, spread = _drawn(request)
    return total_error(job.mechanism, spread, pac_least_noise(spread, job.target.eta, job.mechanism.prior))


def _half_by_izzo(request: Request, of_all: Float[Array, " d"]) -> Float[Array, " d"]:
    job, spread = _drawn(request)
    return total_error(job.mechanism, spread, izzo_noise(spread, job.target.eta))


def _drawn(request: Request) -> tuple[Job, Spread]:
    """Draw half of the records, and see how their statistic spreads."""
    job = Job.of(request)
    return job, Spread.over_subsets(job.mechanism, max(2, job.target.fits // 2), job.target.seed)


# In the order of the table: each design with the noise of `protect`, then with that of other methods.
_ERRORS: Mapping[tuple[Design, OtherMethod], Callable[[Request, Float[Array, " d"]], Float[Array, " d"]]] = {
    ("dp", ""): _dp,
    ("dp", "discrete_gaussian"): _dp_discrete,
    ("leave-one-out", ""): _leave_one_out,
    ("half", ""): _half,
    ("half", "pac_least_noise"): _half_by_pac,
    ("half", "izzo_gamma"): _half_by_izzo,
}
