"""Means of groups, with the number of records in each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from jaxtyping import Bool, Float, Int

from leakbound.core.types import Points
from leakbound.releases.statistics.counts_and_sums import (
    OF_95_PERCENT,
    ColumnCountsAndSums,
    CountAndProducts,
    Finished,
    means_of,
    middle_and_half,
    with_counts,
    with_missing,
)
from leakbound.releases.statistics.features import Cells, columns_of, numbers
from leakbound.releases.statistics.units import Units

Array = np.ndarray


@final
@dataclass(frozen=True)
class GroupMeans:
    """The number of records of each group, and the means of the other columns in it.

    >>> points = Points(np.array([[0, 10.0], [0, 20.0], [1, 40.0]]))
    >>> means = GroupMeans.of(points.x, Cells.of(points.x, ["x0"]))
    >>> means.labels(points), means(points, np.random.default_rng(0)).tolist()
    (['records in 0.0', 'records in 1.0', 'mean of x1 in 0.0', 'mean of x1 in 1.0'], [2.0, 1.0, 15.0, 40.0])
    """

    by: tuple[str, ...]
    levels: tuple[tuple[Any, ...], ...]
    columns: tuple[str, ...]

    @property
    def cells(self) -> Cells:
        """The groups."""
        return Cells(self.by, self.levels)

    @classmethod
    def of(cls, x: Any, cells: Cells) -> GroupMeans:
        """Take the means of all columns that make no groups."""
        columns = tuple(name for name in columns_of(x) if name not in cells.columns)
        if not columns:
            raise ValueError(f"a mean of groups needs a column beside {', '.join(cells.columns)}")
        return cls(cells.columns, cells.levels, columns)

    def labels(self, points: Points) -> list[str]:
        """Name the counts of all groups, then the means of the first column, and so on."""
        groups = self.cells.labels(points.x)
        counts = [f"records in {group}" for group in groups]
        return counts + [f"mean of {column} in {group}" for column in self.columns for group in groups]

    def __call__(self, points: Points, rng: np.random.Generator) -> Float[Array, " d"]:
        """Compute counts and means."""
        everybody = np.ones((1, len(points)), dtype=bool)
        (values,) = self.of_sets(points, everybody)
        if np.isnan(values).any():
            group = self.cells.places(points.x)
            count = np.bincount(group[group >= 0], minlength=self.cells.n_cells)
            raise ValueError(_no_mean(self, points, int(np.argmin(count)), 0))
        return values

    def of_sets(self, points: Points, member: Bool[Array, "m N"]) -> Float[Array, "m d"]:
        """Compute counts and means of many sets of the same records, which are read once."""
        group = self.cells.places(points.x)
        n_groups = self.cells.n_cells
        centre, deviations = self.deviations(points.x, group)
        values = np.full((len(member), n_groups * (1 + len(self.columns))), np.nan)
        for row, inside in enumerate(member & (group >= 0)):
            count = np.bincount(group[inside], minlength=n_groups)
            if count.all():
                values[row, :n_groups] = count
                for place, column in enumerate(deviations.T):
                    total = np.bincount(group[inside], weights=column[inside], minlength=n_groups)
                    values[row, (place + 1) * n_groups : (place + 2) * n_groups] = centre[:, place] + total / count
        return values

    def deviations(self, x: Any, group: Int[Array, " N"]) -> tuple[Float[Array, "g c"], Float[Array, "N c"]]:
        """Return the first value of each group in each column, and what the values differ from that of their group.

        So the means of a group of equal values are exactly that value, whoever is in use. In no group the difference
        is 0.
        """
        table = self.table(x)
        centre = np.zeros((self.cells.n_cells, table.shape[1]))
        known, first = np.unique(group, return_index=True)
        centre[known[known >= 0]] = table[first[known >= 0]]
        return centre, np.where((group >= 0)[:, None], table - centre[group], 0.0)

    def table(self, x: Any) -> Float[Array, "N c"]:
        """Return the columns whose means are taken."""
        place_of = {name: place for place, name in enumerate(columns_of(x))}
        places = [place_of[name] for name in self.columns]
        return numbers(x[:, places] if isinstance(x, np.ndarray) else x.iloc[:, places])


@final
@dataclass(frozen=True)
class GroupCountsAndSums:
    """Membership of groups, and in the own group the distance of columns from the middle of their declared range.

    Their sums are the counts of the groups, and what their means are made of: ``middle + sum/count``. One record moves
    each of them by a bounded amount, which it does not move a mean by. A record without a value in one of the columns
    is in no count and no sum, so that one count serves the means of all columns.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"sector": ["care", "care", "trade", "care"], "wage": [10.0, 30.0, 40.0, None]})
    >>> sums = GroupCountsAndSums(("sector",), (("care", "trade"),), ("wage",), ((0.0, 80.0),))
    >>> sums(frame).sum(axis=0).tolist(), sums.labels(frame)[2]
    ([2.0, 1.0, -40.0, 0.0], 'sum of wage - 40 in care')
    """

    by: tuple[str, ...]
    levels: tuple[tuple[Any, ...], ...]
    columns: tuple[str, ...]
    ranges: tuple[tuple[float, float], ...]  # least and largest value of each column

    @property
    def means(self) -> GroupMeans:
        """The means of the same groups."""
        return GroupMeans(self.by, self.levels, self.columns)

    def labels(self, x: Any) -> list[str]:
        """Name the counts of all groups, then the sums of the first column, and so on."""
        groups = self.means.cells.labels(x)
        middle, _ = middle_and_half(self.ranges)
        sums = [
            f"sum of {column} - {centre:g} in {group}"
            for column, centre in zip(self.columns, middle, strict=True)
            for group in groups
        ]
        return [f"records in {group}" for group in groups] + sums

    def __call__(self, x: Any) -> Float[Array, "N d"]:
        """Return 1 for the group of the record and 0 elsewhere, and so for each column."""
        table = with_missing(x, self.columns)
        is_complete = np.isfinite(table).all(axis=1, keepdims=True)
        inside = self.means.cells(x) * is_complete
        middle, _ = middle_and_half(self.ranges)
        deviations = np.where(is_complete, table - middle, 0.0)
        return np.hstack([inside, *(inside * column[:, None] for column in deviations.T)])

    def least_count(self, deviations: Float[Array, " d"]) -> float:
        """Return the noisy count that is not enough for a mean."""
        return OF_95_PERCENT * float(deviations[0])

    def finished(self, sums: Float[Array, "*batch d"], deviations: Float[Array, " d"]) -> Finished:
        """Turn noisy counts and sums into the counts of the groups, and the mean of each column in each of them."""
        n_groups, c = self.means.cells.n_cells, len(self.columns)
        counts, count_std = sums[..., :n_groups], deviations[:n_groups]
        of_each = np.concatenate([counts] * c, axis=-1)
        ranges = [ends for ends in self.ranges for _ in range(n_groups)]
        means = means_of(sums[..., n_groups:], of_each, deviations[n_groups:], np.tile(count_std, c), ranges)
        groups = self.means.cells.labels(None)
        labels = [f"mean of {column} in {group}" for column in self.columns for group in groups]
        of_all = with_counts(labels, means, [f"records in {group}" for group in groups], counts, count_std)
        # the counts come first, as in `GroupMeans`
        columns = (of_all.value, of_all.noise_std, of_all.low, of_all.high)
        value, noise_std, low, high = (np.roll(column, n_groups, axis=-1) for column in columns)
        return Finished([*of_all.labels[-n_groups:], *of_all.labels[:-n_groups]], value, noise_std, low, high)


CountsAndSums = ColumnCountsAndSums | CountAndProducts | GroupCountsAndSums


def left_out_group_means(
    groups: GroupMeans, points: Points, units: Units
) -> tuple[Float[Array, " d"], Float[Array, "n d"]]:
    """Compute counts and means of groups of all records, and without the records of each unit.

    With z a record's deviation from the first value v of its group, the mean of a group with c records without m of
    them is ``v + (sum of z - sum of their z)/(c - m)``; the other groups stay as they are.
    """
    group, unit_of = groups.cells.places(points.x), units.of_row
    n_groups = groups.cells.n_cells
    first, deviations = groups.deviations(points.x, group)
    of_all = np.empty(n_groups * (1 + deviations.shape[1]))
    changes = []  # of each group, the units that have records in it, and what they change
    for place in range(n_groups):
        rows = np.flatnonzero(group == place)
        unit, of_row = np.unique(unit_of[rows], return_inverse=True)
        if len(unit) < 2:
            raise ValueError(_no_mean(groups, points, place, len(unit)))
        at = place + n_groups * np.arange(1 + deviations.shape[1])  # the count of the group, and its means
        own_count = np.bincount(of_row)
        own_sums = np.column_stack([np.bincount(of_row, weights=column) for column in deviations[rows].T])
        total = deviations[rows].sum(axis=0)
        of_all[at] = [len(rows), *(first[place] + total / len(rows))]
        left = len(rows) - own_count
        changes.append((unit, at, np.column_stack([left, first[place] + (total - own_sums) / left[:, None]])))
    without = np.tile(of_all, (units.n, 1))
    for unit, at, values in changes:
        without[unit[:, None], at] = values
    return of_all, without


def _no_mean(groups: GroupMeans, points: Points, place: int, n_units: int) -> str:
    """Say that a group has too few units, and what to do."""
    has = "has no records" if n_units == 0 else "has the records of one alone"
    name = groups.cells.labels(points.x)[place]
    return f"the group {name} {has}, so that there is no mean without them; join its level with another one in the file"
