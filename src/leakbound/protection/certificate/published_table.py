"""Tables for publication: released counts as whole numbers with margins, made from the release alone.

Everything here is post-processing: it reads the released counts, the printed noise and what was declared public, so
that it costs no privacy. The counts of all cells were released together, and margins are their sums; so a table adds
up, and nobody has to release its margins once more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import brentq

from leakbound.plans.promises import Anyone
from leakbound.plans.protects import CalibrationPlan, ProtectionPlan
from leakbound.releases.statistics.counts_and_sums import OF_95_PERCENT, ROUNDING
from leakbound.releases.statistics.features import Cells
from leakbound.releases.statistics.group_means import GroupCountsAndSums, GroupMeans
from leakbound.releases.statistics.statistic import Fit, Linear, Statistic
from leakbound.reports.about import PublishedCell, PublishedTable
from leakbound.reports.numbers import noise_interval, outward, rounded_to_noise

Array = np.ndarray
_LARGEST_WHOLE = 2.0**53  # above it not every whole number is a double
_MOST_CELLS = 20_000  # of a table that is written out, its margins among them


@dataclass(frozen=True, eq=False)
class Counts:
    """Released counts in the cells of a table, as an array with an axis for each column."""

    by: tuple[str, ...]
    levels: tuple[tuple[str, ...], ...]
    values: Float[Array, "*cells"]
    unit: float
    # of the noise in each cell, in units of the square of ``unit``; independent from cell to cell
    variance: Float[Array, "*cells"]

    @classmethod
    def of(cls, cells: Cells, values: Float[Array, " d"], deviations: Float[Array, " d"]) -> Counts:
        """Arrange the numbers of a release, whose cells come with the level of the last column fastest."""
        levels = tuple(tuple(str(level) for level in of_column) for of_column in cells.levels)
        shape = tuple(len(of_column) for of_column in levels)
        unit = float(deviations.max(initial=0.0)) or 1.0
        variance = np.square(deviations / unit)
        return cls(cells.columns, levels, values.reshape(shape), unit, variance.reshape(shape))

    def merged(self, ranges: Mapping[str, Sequence[tuple[int, int]]]) -> Counts:
        """Add up neighbouring levels."""
        levels, values, variance = list(self.levels), self.values, self.variance
        for name, of_column in ranges.items():
            axis, last_of = self.by.index(name), dict(of_column)
            inside = {place for first, last in of_column for place in range(first + 1, last + 1)}
            starts = [place for place in range(len(levels[axis])) if place not in inside]
            values = np.add.reduceat(values, starts, axis=axis)
            variance = np.add.reduceat(variance, starts, axis=axis)
            old = levels[axis]
            levels[axis] = tuple(
                f"{old[start]} to {old[last_of[start]]}" if start in last_of else old[start] for start in starts
            )
        return Counts(self.by, tuple(levels), values, self.unit, variance)


def table_for_publication(
    plan: CalibrationPlan,
    statistic: Statistic,
    values: Float[Array, " d"],
    deviations: Float[Array, " d"],
    *,
    n_in_use: int,
    is_gaussian: bool = True,
) -> PublishedTable | None:
    """Make the table of a release: of counts with margins, of means of groups without."""
    if not plan.by or not (np.abs(values) < _LARGEST_WHOLE).all():
        return None
    is_release = isinstance(plan, ProtectionPlan)  # a calibration has no choices of publication
    non_negative = is_release and plan.non_negative
    if isinstance(statistic, Fit) and isinstance(statistic.algorithm, GroupMeans):
        return _table_of_means(statistic.algorithm, values, deviations, is_gaussian, non_negative)
    if isinstance(statistic, Linear) and isinstance(statistic.features, GroupCountsAndSums):
        return _table_of_groups(statistic.features, values, deviations, non_negative)
    if plan.statistic != "table" or not isinstance(statistic, Linear) or not isinstance(statistic.features, Cells):
        return None
    counts = Counts.of(statistic.features, values, deviations).merged(plan.merged_levels if is_release else {})
    if np.prod([size + 1 for size in counts.values.shape]) > _MOST_CELLS:
        return None
    # How many records a person has is secret, and so is their number without one person.
    n_records = None if plan.group is not None else n_in_use
    # With differential privacy records of other levels are in no cell, unless a declared level takes them.
    is_everybody_in = plan.chosen != "dp" or set(plan.by) == set(plan.under(Anyone).others)
    total = n_records if is_everybody_in else None
    return published_table(counts, total=total, n_records=n_records, non_negative=non_negative, is_gaussian=is_gaussian)


def published_table(
    counts: Counts,
    *,
    total: int | None,
    n_records: int | None,
    non_negative: bool = False,
    is_gaussian: bool = True,
) -> PublishedTable:
    """Make counts whole, let them add up to a public total, and add the margins.

    Where the total is public, the noise that it shows is taken out: of the noise with variances V the estimate is

        v + (total - sum of v) V / (sum of V),

    generalised least squares under the constraint. Whole numbers are rounded by largest remainders, so that they keep
    the total. With ``non_negative`` the counts are the nearest ones >= 0 in the same metric, which makes small counts
    too large on average.
    """
    variance = counts.variance
    estimate = counts.values
    if total is not None and variance.sum() > 0:
        estimate = estimate + (total - estimate.sum()) * variance / variance.sum()
    if non_negative:
        estimate = nearest_non_negative(estimate, variance, total)
    whole = rounded_to_total(estimate, total) if total is not None else np.rint(estimate)
    cells = []
    for axes in _margins(whole.ndim):
        values = whole.sum(axis=axes, keepdims=True)
        n_cells = whole.size // values.size
        noise = variance.sum(axis=axes, keepdims=True)
        if total is not None and variance.sum() > 0:
            noise = noise - np.square(noise) / variance.sum()
        if total is None or n_cells < whole.size:
            noise = noise + n_cells * ROUNDING / counts.unit / counts.unit
        deviations = counts.unit * np.sqrt(np.maximum(noise, 0.0))
        names = [(None,) if axis in axes else counts.levels[axis] for axis in range(whole.ndim)]
        for levels, value, deviation in zip(product(*names), values.flat, deviations.flat, strict=True):
            cell = _count(levels, float(value), float(deviation), is_gaussian)
            if non_negative and cell.low is not None:
                cell = cell.model_copy(update={"low": max(cell.low, 0.0)})
            # The total of a file has no such error; of a count that noise took out of (0, n) none can be computed.
            is_total = len(axes) == whole.ndim
            # the sampling error of a count c is sqrt(c (1 - c/n)); the total has none
            if n_records is not None and not is_total and 0 < value < n_records:
                error = float(np.sqrt(value * (1 - value / n_records)))
                cell = cell.model_copy(update={"sampling_std": error})
            cells.append(cell)
    return PublishedTable(by=counts.by, cells=tuple(cells), total=total, non_negative=non_negative)


def nearest_non_negative(
    values: Float[Array, "*cells"], variance: Float[Array, "*cells"], total: int | None
) -> Float[Array, "*cells"]:
    """Find the numbers >= 0 that are nearest to the given ones, each distance in units of its noise."""
    if total is None or not variance.any():
        return np.maximum(values, 0.0)

    # the minimum of sum of (u - v)^2 / V over u >= 0 is max(0, v - c V), where c gives the total
    def excess(shift: float) -> float:
        return float(np.maximum(values - shift * variance, 0.0).sum() - total)

    # the larger the shift, the less is left: all of the total and more at one end, nothing at the other
    most = float(np.abs(values).max()) + total + 1
    per_shift = float(variance[variance > 0].min())
    shift = float(brentq(excess, -most / per_shift, most / per_shift, xtol=1e-12, rtol=1e-12))  # pyright: ignore[reportArgumentType] -- a float unless full_output is asked for
    return np.maximum(values - shift * variance, 0.0)


def rounded_to_total(values: Float[Array, "*cells"], total: int) -> Int[Array, "*cells"]:
    """Round numbers to whole ones with a given sum: down, and the largest remainders up.

    >>> rounded_to_total(np.array([1.2, 2.5, 3.3]), 7).tolist()
    [1, 3, 3]
    """
    whole = np.floor(values).astype(int)
    missing = total - int(whole.sum())
    everywhere, n_up = divmod(missing, whole.size)  # of numbers with this sum nothing goes everywhere
    whole += everywhere
    remainders = (values - np.floor(values)).ravel()
    largest = np.argsort(-remainders, kind="stable")[:n_up]
    whole.ravel()[largest] += 1
    return whole


def counts_below_0(tables: Iterable[PublishedTable | None]) -> list[str]:
    """Say, where the noise took counts below 0, why they are left as they are; nothing where there are none."""
    cells = [cell for table in tables if table is not None for cell in table.cells]
    if any(cell.quantity == "count" and (cell.value or 0.0) < 0 for cell in cells):
        return ["counts below 0 come from the noise; left as they are, counts are right on average"]
    return []


def _table_of_means(
    groups: GroupMeans,
    values: Float[Array, " d"],
    deviations: Float[Array, " d"],
    is_gaussian: bool,
    non_negative: bool,
) -> PublishedTable:
    """Make the table of the means of groups and of their counts, which were released with them."""
    of_group = list(product(*([str(level) for level in levels] for levels in groups.cells.levels)))
    n_groups = len(of_group)
    cells = []
    for place, (value, deviation) in enumerate(zip(values.tolist(), deviations.tolist(), strict=True)):
        levels = of_group[place % n_groups]
        if place < n_groups:
            cell = _count(levels, float(np.rint(value)), float(np.sqrt(deviation**2 + ROUNDING)), is_gaussian)
            cells.append(_not_below_0(cell) if non_negative else cell)
        else:
            quantity = f"mean of {groups.columns[place // n_groups - 1]}"
            cells.append(_cell(levels, quantity, value, deviation, is_gaussian))
    return PublishedTable(by=groups.cells.columns, cells=tuple(cells), total=None, non_negative=non_negative)


def _table_of_groups(
    groups: GroupCountsAndSums, values: Float[Array, " d"], deviations: Float[Array, " d"], non_negative: bool
) -> PublishedTable:
    """Make the table of the means of groups that are made of noisy counts and sums."""
    finished, cells = groups.finished(values, deviations), groups.means.cells
    of_group = list(product(*([str(level) for level in levels] for levels in cells.levels)))
    n_groups = len(of_group)
    rows = []
    columns = (finished.value, finished.noise_std, finished.low, finished.high)
    for place, numbers in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
        value, noise_std, low, high = numbers
        # the counts of all groups come first, then the means of each column
        is_count = place < n_groups
        if not np.isfinite(value):
            value = noise_std = low = high = None
        elif not is_count:
            value, (low, high) = rounded_to_noise(value, noise_std), outward(low, high, noise_std)
        cell = PublishedCell(
            levels=of_group[place % n_groups],
            quantity="count" if is_count else f"mean of {groups.columns[place // n_groups - 1]}",
            value=value,
            noise_std=noise_std,
            low=low,
            high=high,
            sampling_std=None,
        )
        rows.append(_not_below_0(cell) if is_count and non_negative else cell)
    return PublishedTable(by=cells.columns, cells=tuple(rows), total=None, non_negative=non_negative)


def _not_below_0(cell: PublishedCell) -> PublishedCell:
    """Set a count below 0, and the lower end of its interval, to 0; each count of a group is by itself."""
    low = None if cell.low is None else max(cell.low, 0.0)
    return cell.model_copy(update={"value": max(cell.value or 0.0, 0.0), "low": low})


def _count(levels: tuple[str | None, ...], value: float, deviation: float, is_gaussian: bool) -> PublishedCell:
    """Make the cell of a count; the ends of its interval are whole numbers too, and it holds at least 95 %."""
    cell = _cell(levels, "count", value, deviation, is_gaussian)
    if cell.low is None or cell.high is None:
        return cell.model_copy(update={"value": value})
    ends = {"low": float(np.floor(cell.low)), "high": float(np.ceil(cell.high))}
    return cell.model_copy(update={"value": value, **ends})  # whole, whatever its noise


def _cell(
    levels: tuple[str | None, ...], quantity: str, value: float, deviation: float, is_gaussian: bool
) -> PublishedCell:
    value = rounded_to_noise(value, deviation)
    low, high = noise_interval(value, deviation, OF_95_PERCENT) if is_gaussian else (None, None)
    return PublishedCell(
        levels=levels,
        quantity=quantity,
        value=value,
        noise_std=deviation,
        low=low,
        high=high,
        sampling_std=None,
    )


def _margins(n_columns: int) -> list[tuple[int, ...]]:
    """List which columns are added up: none of them first, all of them last."""
    subsets = [tuple(np.flatnonzero(summed).tolist()) for summed in product((False, True), repeat=n_columns)]
    return sorted(subsets, key=len)
