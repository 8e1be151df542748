"""Rules of thumb of statistics offices, checked on the exact numbers of all records: for the owner alone.

They are habits and not proofs: a table that passes them may reveal who is in it, and one that fails may not. They are
checked in addition to the promise, because offices have to.

* Minimum frequency: no cell of a table, and no group of a mean, has 1 to ``minimum - 1`` records; a mean of the whole
  file has ``minimum`` records or more.
* Dominance, the (n, k) rule: the n largest contributions to a sum or mean are at most the fraction k of it.
* p %: nobody who knows the second largest contribution learns the largest one to within p, that is, the others together
  are at least p times the largest.
* p % by the noise: what the printed noise of leave one out tells of the largest contribution, which is ``mean +- 2
  Phi^-1(1/2 + eta) noise_std count`` for a mean and without the count for a sum, is at least p from it.
* Dominance by the noise: dominance holds, too, with what the noise tells in place of that contribution.
* Degrees of freedom: a regression has at least ``minimum`` records more than coefficients.

Hundepool et al. (2012), Statistical Disclosure Control, chapters 4 and 6.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from jaxtyping import Float
from scipy.special import ndtri

from leakbound.core.types import Points
from leakbound.plans.protects import CalibrationPlan
from leakbound.plans.statistics import REGRESSIONS
from leakbound.releases.statistics.counts_and_sums import ColumnCountsAndSums, with_missing
from leakbound.releases.statistics.features import Cells, Columns, Histogram, columns_of, numbers
from leakbound.releases.statistics.group_means import GroupCountsAndSums, GroupMeans
from leakbound.releases.statistics.statistic import Fit, Linear, Statistic
from leakbound.reports.about import OfficeRule

Array = np.ndarray
# The thresholds of the rules that are applied to what the noise tells.
RULES_BY_NOISE = {"told_by_noise": ("p",), "dominance_by_noise": ("dominance_n", "dominance_k")}


def check_office_rules(plan: CalibrationPlan, statistic: Statistic, points: Points) -> tuple[OfficeRule, ...]:
    """Check the rules that there are for a statistic."""
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


def check_told_by_noise(
    plan: CalibrationPlan, statistic: Statistic, points: Points, noise_std: Float[Array, " d"]
) -> tuple[OfficeRule, ...]:
    """Check what the printed noise tells of the largest contribution to a sum or a mean: p % and dominance."""
    if isinstance(statistic, Fit) and isinstance(statistic.algorithm, GroupMeans):
        groups = statistic.algorithm
        place, table = groups.cells.places(points.x), groups.table(points.x)
        labels = groups.cells.labels(points.x)
        noise_std = noise_std[len(labels) :]  # behind that of the counts
        of_mean = [column[place == group] for column in table.T for group in range(len(labels))]
        names = [f"mean of {column} in {label}" for column in groups.columns for label in labels]
        factors = [float(len(values)) for values in of_mean]
    elif isinstance(statistic, Linear) and isinstance(statistic.features, Columns):
        of_mean = list(numbers(points.x).T)
        names = statistic.labels(points)
        factors = [float(len(points)) if statistic.statistic == "mean" else 1.0] * len(names)
    else:
        return ()
    shift = 2 * float(ndtri(0.5 + plan.eta))
    told, dominated = [], []
    # the noise was computed from these records with one of them left out
    for values, name, factor, deviation in zip(of_mean, names, factors, noise_std.tolist(), strict=True):
        if not deviation:
            continue
        mean = float(values.mean())
        farthest = int(np.abs(values - mean).argmax())
        # The record that is farthest from the mean decides the noise, so that the noise tells its distance.
        distance = abs(float(values[farthest]) - mean)
        told_distance = shift * deviation * factor
        if abs(told_distance - distance) < plan.thresholds["p"] * abs(float(values[farthest])):
            told.append(name)
        told_values = values.copy()
        told_values[farthest] = mean + math.copysign(told_distance, values[farthest] - mean)
        if _is_dominated(np.abs(told_values), float(np.abs(values).sum()), plan.thresholds):
            dominated.append(name)
    n, k, p = (plan.thresholds[name] for name in ("dominance_n", "dominance_k", "p"))
    by_p = OfficeRule(rule="told_by_noise", thresholds={"p": p}, checked=len(names), failing=tuple(told))
    by_dominance = OfficeRule(
        rule="dominance_by_noise", thresholds={"n": n, "k": k}, checked=len(names), failing=tuple(dominated)
    )
    return (by_p, by_dominance)


def refuse_told_by_noise(rules: Sequence[OfficeRule], asked: Iterable[str]) -> None:
    """Refuse a release whose noise tells what one of the rules that were asked for by name rules out."""
    for rule in rules:
        if not rule.failing or not set(RULES_BY_NOISE[rule.rule]) & set(asked):
            continue
        failing = rule.failing[0]
        if len(rule.failing) > 1:
            failing += f" and {len(rule.failing) - 1:,} more"
        tells = f"the largest contribution to {failing} to within p = {rule.thresholds.get('p', 0):g}"
        if rule.rule == "dominance_by_noise":
            n, k = rule.thresholds["n"], rule.thresholds["k"]
            tells = f"that the {n:g} largest contributions are more than dominance_k = {k:g} of the total of {failing}"
        raise ValueError(
            f"the printed noise would tell {tells}, which rules (--rules) asks to rule out: take promise = anyone, "
            "declare a "
            f"scale, or leave {' and '.join(RULES_BY_NOISE[rule.rule])} out of the rules"
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
        # an empty sum says nothing about anybody
        if total == 0:
            continue
        # dominance: the n largest contributions make more than a share k of the sum
        if _is_dominated(sizes, total, thresholds):
            dominated.append(name)
        largest = _largest(sizes, 2)
        # p per cent rule: the second largest can compute the largest up to a part p of it
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


def _is_dominated(sizes: Float[Array, " m"], total: float, thresholds: Mapping[str, float]) -> bool:
    """Tell whether the n largest contributions are more than the fraction k of a total."""
    largest = _largest(sizes, int(thresholds["dominance_n"]))
    return float(largest.sum()) > thresholds["dominance_k"] * total


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
