"""The data as differential privacy may see them: columns that were declared, and every value within what was declared.

Which columns are used, and whether there is an answer, must not depend on what is in a single record. So a column is
used if its range, its levels or its edges are declared, and not because it holds numbers; a value that is missing, no
number or outside is moved, or counted nowhere, instead of being refused. How many these are is for the owner.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from leakbound.core.checks import one_of
from leakbound.core.types import Points
from leakbound.data.declared_content import columns_as_levels, columns_as_numbers, missing_in, text_of
from leakbound.plans.bounds import GROUPED, as_levels
from leakbound.plans.promises import Anyone
from leakbound.plans.protects import CalibrationPlan
from leakbound.releases.statistics.counts_and_sums import ColumnCountsAndSums, CountAndProducts, middle_and_half
from leakbound.releases.statistics.features import Cells, Columns, Histogram, SecondMoments, columns_of
from leakbound.releases.statistics.group_means import GroupCountsAndSums
from leakbound.releases.statistics.of_plan import statistic_of
from leakbound.releases.statistics.statistic import Covariance, Linear, Statistic

Array = np.ndarray
OTHERS = "others"  # the level that takes every value of a column that has none of its own
COUNT_AND_SUM = "count and sum"
# what becomes of values that are outside of what was declared, or that are missing
_MOVED = (
    "were moved to the nearer end: correct them in the file, or declare another range, from a codebook and not from "
    "the file",
    "are in no count and no sum",
)
_IN_NO_BIN = (
    "are in no bin: correct them in the file, or declare more edges, from a codebook and not from the file",
    "are in no bin",
)


def declared_statistic(plan: CalibrationPlan, points: Points) -> Statistic:
    """Make the statistic of a plan from what it declares, whatever the values are."""
    if plan.statistic != "table" and not (plan.statistic == GROUPED and plan.by):
        return with_counts_and_sums(statistic_of(plan, points), plan, points)
    for name in plan.by:
        one_of("column of a table", name, columns_of(points.x))
        if name not in plan.levels:
            raise ValueError(
                f"differential privacy counts declared levels: those of {name} are missing, {as_levels(name)}"
            )
    levels = tuple(_levels_of(plan, name) for name in plan.by)
    if plan.statistic == GROUPED:
        ranges = _ranges_in_order(plan, columns_of(points.x))
        sums = GroupCountsAndSums(tuple(plan.by), levels, tuple(ranges), tuple(ranges.values()))
        return Linear(COUNT_AND_SUM, sums, "sum")
    return Linear("count", Cells(tuple(plan.by), levels), "sum")


def _levels_of(plan: CalibrationPlan, name: str) -> tuple[str, ...]:
    """Return the declared levels of a column as texts, and the level that takes all other values if one does."""
    levels = tuple(text_of(level) for level in plan.levels[name])
    repeated = [level for place, level in enumerate(levels) if level in levels[:place]]
    if repeated:
        raise ValueError(f"the level {repeated[0]!r} of column {name} is declared twice")
    return (*levels, OTHERS) if name in plan.under(Anyone).others else levels


def with_counts_and_sums(statistic: Statistic, plan: CalibrationPlan, points: Points) -> Statistic:
    """Make a mean, second moments or a covariance of noisy counts and sums; all other statistics stay as they are."""
    match statistic:
        case Linear(features=Columns(), statistic="mean"):
            ranges = _ranges_in_order(plan, columns_of(points.x))
            return Linear(COUNT_AND_SUM, ColumnCountsAndSums(tuple(ranges), tuple(ranges.values())), "sum")
        case Linear(features=SecondMoments(centre=given), statistic="mean"):
            ranges = _ranges_in_order(plan, columns_of(points.x))
            centre = (0.0,) * len(ranges) if given is None else given
            if len(centre) != len(ranges):
                raise ValueError(f"centre has {len(centre)} numbers, and {len(ranges)} columns have a declared range")
            moments = CountAndProducts(tuple(ranges), tuple(ranges.values()), tuple(centre))
            return Linear(COUNT_AND_SUM, moments, "sum")
        case Covariance():
            ranges = _ranges_in_order(plan, columns_of(points.x))
            middle, _ = middle_and_half(tuple(ranges.values()))
            moments = CountAndProducts(tuple(ranges), tuple(ranges.values()), tuple(middle.tolist()), True)
            return Linear(COUNT_AND_SUM, moments, "sum")
    return statistic


def declared_view(statistic: Statistic, plan: CalibrationPlan, points: Points) -> tuple[Points, list[str]]:
    """Return the columns that a statistic is of, with every value as it was declared to be."""
    features = statistic.features if isinstance(statistic, Linear) else None
    match features:
        case Cells():
            return _levels_view(features, plan.under(Anyone).others, points)
        case GroupCountsAndSums():
            return _groups_view(features, plan, points)
        case Histogram():
            edges = {name: (of[0], of[-1]) for name, of in zip(features.columns, features.edges, strict=True)}
            return _bins_view(plan, points, edges)
        case ColumnCountsAndSums() | CountAndProducts():
            is_complete = isinstance(features, CountAndProducts)
            return _ranges_view(plan, points, is_complete=is_complete)
        case Columns():  # a total, to which a missing value adds nothing
            view, notes = _ranges_view(plan, points)
            return _with_values(view, np.nan_to_num(view.x.to_numpy(), nan=0.0)), notes
    return points, []


def _levels_view(cells: Cells, others: Sequence[str], points: Points) -> tuple[Points, list[str]]:
    """Read the columns of a table as declared levels; a value without one is in no cell, or in that of all others."""
    leveled = columns_as_levels(points, dict(zip(cells.columns, cells.levels, strict=True)), others)
    counted = cells.repeated(leveled.x)
    n_unknown = int(counted.count[~counted.rows.any(axis=1)].sum())
    if not n_unknown:
        return leveled, []
    by_column, unknown = [], []
    for name, levels in zip(cells.columns, cells.levels, strict=True):
        is_unknown = Cells((name,), (levels,)).places(leveled.x) < 0
        n_missing = int((missing_in(points, name) & is_unknown).sum())
        if is_unknown.any():
            missing = f", of these {n_missing:,} missing" if n_missing else ""
            by_column.append(f"{name} {int(is_unknown.sum()):,}{missing}")
            unknown.append(name)
    note = (
        f"{n_unknown:,} of {len(points):,} records have a value that no level was declared for, and are in no cell "
        f"({'; '.join(by_column)}): declare these levels too, or one that takes all other and missing values "
        f"(--others {','.join(unknown)}; in Python others={unknown}); rows that are left out would change n, which "
        "is public"
    )
    return leveled, [note]


def _ranges_view(plan: CalibrationPlan, points: Points, *, is_complete: bool = False) -> tuple[Points, list[str]]:
    """Take the columns whose ranges are declared, in the order of the data, and move values into their ranges."""
    names = columns_of(points.x)
    ranges = _ranges_in_order(plan, names)
    numbers, _ = columns_as_numbers(points, tuple(ranges), plan.decimal)
    low, high = _ends(ranges)
    values = numbers.x.to_numpy()
    notes = _notes_of_ends(values, ranges, *_MOVED)
    n_incomplete = int(np.isnan(values).any(axis=1).sum())
    if is_complete and n_incomplete and len(ranges) > 1:
        notes.append(
            f"{n_incomplete:,} of {len(values):,} records have no value in one of {', '.join(ranges)}, and are in no "
            "number: release the columns one by one, as several statistics, if each should have its own records"
        )
    unused = [name for name in names if name not in (*ranges, *plan.by)]
    if unused:
        notes = [*notes, f"columns without a declared range are not used: {', '.join(unused[:6])}"]
    return _with_values(numbers, np.clip(values, low, high)), notes


def _ranges_in_order(plan: CalibrationPlan, names: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return the declared ranges in the order of the columns."""
    used = [name for name in names if name not in plan.by]
    if not plan.under(Anyone).ranges:
        example = used[0] if used else "wage"
        raise ValueError(
            "differential privacy needs the range of each column that is used, declared and not taken from the file, "
            f"as --range {example}=0:100 (in Python Anyone(ranges={{{example!r}: (0, 100)}}))"
        )
    for name in plan.under(Anyone).ranges:
        one_of("column of ranges", name, used)
    return {name: plan.under(Anyone).ranges[name] for name in used if name in plan.under(Anyone).ranges}


def _groups_view(groups: GroupCountsAndSums, plan: CalibrationPlan, points: Points) -> tuple[Points, list[str]]:
    """Read the columns of the groups as levels, and move the values of the others into their ranges."""
    leveled, notes_of_levels = _levels_view(groups.means.cells, plan.under(Anyone).others, points)
    moved, notes_of_ranges = _ranges_view(plan, points, is_complete=True)
    frame = moved.x.copy()
    for name in groups.by:
        frame[name] = leveled.x[name]
    view = Points(frame, points.y, points.group, points.digest, points.names)
    return view, [*notes_of_levels, *notes_of_ranges]


def _bins_view(
    plan: CalibrationPlan, points: Points, edges: dict[str, tuple[float, float]]
) -> tuple[Points, list[str]]:
    """Read the columns of a histogram as numbers; what is no number is below the first edge, and so in no bin."""
    numbers, _ = columns_as_numbers(points, tuple(edges), plan.decimal)
    low, _ = _ends(edges)
    values = numbers.x.to_numpy()
    notes = _notes_of_ends(values, edges, *_IN_NO_BIN)
    return _with_values(numbers, np.where(np.isnan(values), low - 1, values)), notes


def _ends(ranges: dict[str, tuple[float, float]]) -> tuple[Array, Array]:
    """Return the lower and the upper ends of ranges."""
    ends = np.array(list(ranges.values()), dtype=float)
    return ends[:, 0], ends[:, 1]


def _with_values(points: Points, values: Array) -> Points:
    frame = points.x.copy()
    frame[:] = values
    return Points(frame, points.y, points.group, points.digest, points.names)


def _notes_of_ends(values: Array, ends: dict[str, tuple[float, float]], outside: str, missing: str) -> list[str]:
    """Say how many values of each column lie outside of what was declared or are missing, and what becomes of them."""
    notes = []
    n = len(values)
    for column, (name, (low, high)) in zip(values.T, ends.items(), strict=True):
        n_outside, n_missing = _n_outside_and_missing(column, low, high)
        if n_outside:
            notes.append(f"{n_outside:,} of {n:,} values of {name} lie outside of {low:g} to {high:g}, and {outside}")
        if n_missing:
            notes.append(f"{n_missing:,} of {n:,} values of {name} are missing or no numbers, and {missing}")
    return notes


def _n_outside_and_missing(values: Array, low: float, high: float) -> tuple[int, int]:
    """Count the values of a column that are outside of a range, and those that are missing."""
    return int(((values < low) | (values > high)).sum()), int(np.isnan(values).sum())
