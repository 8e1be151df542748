"""Rules of thumb of statistics offices, checked on the exact numbers of all records: for the owner alone.

They are habits and not proofs: a table that passes them may reveal who is in it, and one that fails may not. They are
checked in addition to the promise, because offices have to.

* Minimum frequency: no cell of a table, and no group of a mean, has 1 to ``minimum - 1`` records; a mean of the whole
  file has ``minimum`` records or more.
* Dominance, the (n, k) rule: the n largest contributions to a sum or mean are at most the fraction k of it.
* p %: nobody who knows the second largest contribution learns the largest one to within p, that is, the others together
  are at least p times the largest.
* Degrees of freedom: a regression has at least ``minimum`` records more than coefficients.

Hundepool et al. (2012), Statistical Disclosure Control, chapters 4 and 6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float

from leakscope.core.types import Points
from leakscope.plans.protects import CalibrationPlan
from leakscope.plans.statistics import REGRESSIONS
from leakscope.releases.statistics.counts_and_sums import ColumnCountsAndSums, with_missing
from leakscope.releases.statistics.features import Cells, Columns, Histogram, columns_of
from leakscope.releases.statistics.group_means import GroupCountsAndSums, GroupMeans
from leakscope.releases.statistics.statistic import Fit, Linear, Statistic
from leakscope.reports.about import OfficeRule

Array = np.ndarray


def check_office_rules(plan: CalibrationPlan, statistic: Statistic, points: Points) -> tuple[OfficeRule, ...]:
    """Check the rules that there are for a statistic.

    Parameters
    ----------
    plan : CalibrationPlan
        With the thresholds.
    statistic : Statistic
    points : Points
        All records.

    Returns
    -------
    tuple of OfficeRule
        Empty for a statistic without rules.
    """
    thresholds = plan.thresholds
    if isinstance(statistic, Linear) and isinstance(statistic.features, Cells | Histogram):
        counted = statistic.features.repeated(points.x)  # a row a cell, and not one for each record
        counts = np.rint(counted.count @ counted.rows)
        return (_minimum_frequency(counts, statistic.features.labels(points.x), thresholds),)
    if isinstance(statistic, Linear) and isinstance(statistic.features, GroupCountsAndSums):
        complete = np.isfinite(with_missing(points.x, statistic.features.columns)).all(axis=1)
        return _rules_of_groups(statistic.features.means, points.take(np.flatnonzero(complete)), thresholds)
    if isinstance(statistic, Fit) and isinstance(statistic.algorithm, GroupMeans):
        return _rules_of_groups(statistic.algorithm, points, thresholds)
    if isinstance(statistic, Linear) and isinstance(statistic.features, Columns | ColumnCountsAndSums):
        names = columns_of(points.x)
        table = with_missing(points.x, names)
        rows = [np.flatnonzero(np.isfinite(column)) for column in table.T]
        counted = np.array([len(of_column) for of_column in rows], dtype=float)
        return (
            _minimum_frequency(counted, names, thresholds),
            *_shares(list(table.T), rows, names, thresholds),
        )
    if plan.statistic in REGRESSIONS:
        return (_degrees_of_freedom(len(points), len(statistic.labels(points)), plan.statistic, thresholds),)
    return ()


def _rules_of_groups(groups: GroupMeans, points: Points, thresholds: Mapping[str, float]) -> tuple[OfficeRule, ...]:
    """Check the counts of groups, and the contributions to each mean."""
    place, table = groups.cells.places(points.x), groups.table(points.x)
    labels = groups.cells.labels(points.x)
    counts = np.bincount(place[place >= 0], minlength=len(labels)).astype(float)
    rows = [np.flatnonzero(place == group) for group in range(len(labels))]
    names = [f"mean of {column} in {label}" for column in groups.columns for label in labels]
    columns = [column for column in table.T for _ in labels]
    return (
        _minimum_frequency(counts, labels, thresholds),
        *_shares(columns, rows * len(groups.columns), names, thresholds),
    )


def _minimum_frequency(counts: Float[Array, " m"], names: Sequence[str], thresholds: Mapping[str, float]) -> OfficeRule:
    minimum = thresholds["minimum"]
    small = (counts > 0) & (counts < minimum)
    return OfficeRule(
        rule="minimum_frequency",
        thresholds={"minimum": minimum},
        checked=len(names),
        failing=tuple(name for name, is_small in zip(names, small, strict=True) if is_small),
    )


def _shares(
    columns: Sequence[Float[Array, " N"]],
    rows: Sequence[Array],
    names: Sequence[str],
    thresholds: Mapping[str, float],
) -> tuple[OfficeRule, OfficeRule]:
    """Check the largest contributions to each sum, of a column in some rows; negative values count by their sizes."""
    n_largest, share, p = int(thresholds["dominance_n"]), thresholds["dominance_k"], thresholds["p"]
    dominated, close = [], []
    for column, of_rows, name in zip(columns, rows, names, strict=True):
        sizes = np.abs(column[of_rows])
        total = float(sizes.sum())
        if total == 0:
            continue
        largest = _largest(sizes, max(2, n_largest))
        if largest[:n_largest].sum() > share * total:
            dominated.append(name)
        if total - largest[:2].sum() < p * largest[0]:
            close.append(name)
    n_checked = len(names)
    return (
        OfficeRule(
            rule="dominance",
            thresholds={"n": float(n_largest), "k": share},
            checked=n_checked,
            failing=tuple(dominated),
        ),
        OfficeRule(rule="p_percent", thresholds={"p": p}, checked=n_checked, failing=tuple(close)),
    )


def _largest(sizes: Float[Array, " m"], n: int) -> Float[Array, " k"]:
    """Return the n largest numbers, the largest first; all of them where there are fewer."""
    if len(sizes) > n:
        sizes = np.partition(sizes, len(sizes) - n)[len(sizes) - n :]
    return np.sort(sizes)[::-1]


def _degrees_of_freedom(n: int, n_coefficients: int, name: str, thresholds: Mapping[str, float]) -> OfficeRule:
    minimum = thresholds["minimum"]
    enough = n - n_coefficients >= minimum
    return OfficeRule(
        rule="degrees_of_freedom",
        thresholds={"minimum": minimum},
        checked=1,
        failing=() if enough else (f"{name}: {n:,} records, {n_coefficients:,} coefficients",),
    )
