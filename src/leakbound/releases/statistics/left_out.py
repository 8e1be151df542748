"""Statistics of all records but one unit, for each unit, without a fit of their own.

A unit is a record, or a person with several of them. Sums, means, ratios, covariances, correlations, quantiles and
regressions without it follow from those of all records and its own, so that all n of them cost little more than one
fit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import sparse

from leakbound.core.repeated_rows import RepeatedRows, Table, rows_of
from leakbound.core.types import Points
from leakbound.releases.statistics.algorithms import LeastSquares, Quantiles
from leakbound.releases.statistics.correlation import Correlation, centred
from leakbound.releases.statistics.features import Cells, Histogram, numbers, products
from leakbound.releases.statistics.group_means import GroupMeans, left_out_group_means
from leakbound.releases.statistics.leave_one_out import Solution, fit_without, records_of
from leakbound.releases.statistics.logistic import Logistic
from leakbound.releases.statistics.losses import LogisticLoss
from leakbound.releases.statistics.newton import left_out_minimisers
from leakbound.releases.statistics.ratio import Ratio
from leakbound.releases.statistics.regressions import Huber, PenalisedRegression, Poisson, Ridge
from leakbound.releases.statistics.rounding import ARITHMETIC, arithmetic_error
from leakbound.releases.statistics.standard_errors import LeftOutErrors, StandardErrors
from leakbound.releases.statistics.statistic import Covariance, Fit, Linear, Statistic
from leakbound.releases.statistics.units import Units

Array = np.ndarray
Values = tuple[Float[Array, " d"], Float[Array, "n d"]]
_ROUGHEST = 1e-5  # part of a variance that stays without a unit, with which no digits are lost


class LeftOutValues(NamedTuple):
    """A statistic of all N records, and of all but those of one unit for each of n units."""

    of_all: Float[Array, " d"]
    without: Table
    # how far each number of ``without`` is at most from the statistic as it is computed from the other records alone
    error: Float[Array, "_ d"]


def left_out_values(
    statistic: Statistic, points: Points, unit: Int[Array, " N"] | None = None
) -> tuple[Float[Array, " d"], Table] | None:
    """Compute a statistic of all N records, and of all but those of one unit for each of n units.

    With z a record's deviation from the mean of all, and N' the number of records that are left,

    * a sum without a unit is ``sum - sum of its own``, a mean ``mean - sum of its z/N'``;
    * the covariance is ``(sum of z z^T - sum of its own)/N' - s s^T/N'^2``, s the sum of its z, and the correlations
      follow from it; where next to nothing is left of a variance, a fit is made;
    * a ratio of totals r = A/B is ``r - (sum of its a - r b)/(B - sum of its b)``; where next to nothing is left of B,
      a fit is made;
    * the counts and means of groups by `left_out_group_means`;
    * a quantile lies between two of the sorted values: the k-th of those that are left is the (k + i)-th of all, where
      i of the unit's own are before it;
    * the coefficients of least squares change by ``-(X^T X - A^T A)^-1 A^T r``, A the rows of the unit and r their
      residuals; where the columns or what is left of them are so small that digits would be lost, a fit is made, as in
      `swapped`; their standard errors by `LeftOutErrors`;
    * the coefficients of other regressions by `left_out_minimisers`.

    >>> from leakbound.releases.statistics.statistic import named
    >>> points = Points(np.array([[1.0], [2.0], [6.0]]))
    >>> of_all, without = left_out_values(named("mean"), points)
    >>> of_all.tolist(), without.ravel().tolist()
    ([3.0], [4.0, 3.5, 1.5])
    >>> left_out_values(named("mean"), points, unit=np.array([0, 1, 0]))[1].ravel().tolist()
    [2.0, 3.5]
    """
    # NaN where the statistic cannot be computed, as a mean of no record. Quantiles and sums of whole numbers equal
    # those of a fit bit by bit, others to rounding; logistic, Poisson and Huber ones to 1e-4 of a standard error.
    found = left_out_values_with_error(statistic, points, unit)
    return None if found is None else (found.of_all, found.without)


def left_out_values_with_error(
    statistic: Statistic, points: Points, unit: Int[Array, " N"] | None = None
) -> LeftOutValues | None:
    """Compute the values of `left_out_values`, and what they err by at most."""
    units = Units.single(len(points)) if unit is None else Units.of(unit)
    more_error: Float[Array, "*n d"] = np.zeros(1)  # that differs from unit to unit
    with np.errstate(all="ignore"):  # what overflows becomes NaN below
        match statistic:
            case Linear(features=(Cells() | Histogram()) as counted, statistic="sum"):
                of_all, without = _counts(counted.repeated(points.x), units)
                return LeftOutValues(of_all, without, np.zeros_like(rows_of(without)))  # whole numbers have no error
            case Linear():
                values = _linear(statistic.features(points.x), statistic.statistic, units)
            case Covariance():
                table = numbers(points.x)
                values = _covariance(table - table.mean(axis=0), units)
            case Fit(algorithm=GroupMeans() as groups):
                values = left_out_group_means(groups, points, units)
            case Fit(algorithm=Correlation()):
                values = _correlation(statistic, points, units)
            case Fit(algorithm=Quantiles() as quantiles):
                values = _quantiles(numbers(points.x), quantiles.probabilities, units)
            case Fit(algorithm=LeastSquares()):
                values = _least_squares(statistic, points, units)
            case Fit():
                found = _with_error(statistic, points, units)
                if found is None:
                    return None
                *values, more_error = found
    of_all, without = values
    without[~np.isfinite(without).all(axis=1)] = np.nan
    largest = np.fmax(np.abs(of_all), np.fmax.reduce(np.abs(without), axis=0))
    error = np.broadcast_to(arithmetic_error(statistic, points, largest) + more_error, without.shape)
    return LeftOutValues(of_all, without, error)


def _with_error(
    statistic: Fit, points: Points, units: Units
) -> tuple[Float[Array, " d"], Float[Array, "n d"], Float[Array, "*n d"]] | None:
    """Compute the values of statistics whose error differs from unit to unit; None for functions."""
    match statistic.algorithm:
        case Ratio() as ratio:
            return _ratio(statistic, ratio, points, units)
        case StandardErrors():
            return _standard_errors(statistic, points, units)
        case Logistic() | Ridge() | Poisson() | Huber() as regression:
            return _regression(statistic, regression, points, units)
        case _:
            return None


def _counts(features: RepeatedRows, units: Units) -> tuple[Float[Array, " d"], RepeatedRows]:
    """Count records: without a unit its own cells have less, and units with the same cells have the same row.

    Without single records there are no more distinct rows than cells.
    """
    total = features.count @ features.rows
    own = features if units.order is None else _own_counts(features, units)
    return total, own.with_rows(total - own.rows)


def _own_counts(features: RepeatedRows, units: Units) -> RepeatedRows:
    """Count the records of each unit; those that have the same numbers of the same rows are counted once.

    Units are told apart by their first distinct row and its count, then those alike by the second one, and so on.
    """
    n_kinds = len(features.rows)
    is_counted = np.asarray(features.rows.any(axis=1))[features.which]  # records that are in no cell make no difference
    kind_of_record = features.which[is_counted].astype(np.int64)
    # the kinds of records of each unit, in order, with how many it has of each
    pair, count = np.unique(units.of_row[is_counted] * n_kinds + kind_of_record, return_counts=True)
    of_unit, kind = np.divmod(pair, n_kinds)
    n_kinds_of_unit = np.bincount(of_unit, minlength=units.n)
    first = np.cumsum(n_kinds_of_unit) - n_kinds_of_unit
    what, code = np.unique(kind * (int(count.max(initial=0)) + 1) + count, return_inverse=True)
    alike, n_groups = np.zeros(units.n, dtype=np.int64), 1  # 0: no record
    for place in range(int(n_kinds_of_unit.max(initial=0))):
        longer = np.flatnonzero(n_kinds_of_unit > place)
        key = alike[longer] * len(what) + code[first[longer] + place]
        _, group = np.unique(key, return_inverse=True)
        alike[longer] = n_groups + group.reshape(-1)
        n_groups += int(group.max()) + 1
    _, example, which = np.unique(alike, return_index=True, return_inverse=True)
    # the counts of one unit of each group
    of_example = np.repeat(np.arange(len(example)), n_kinds_of_unit[example])
    places = _ranges(first[example], n_kinds_of_unit[example])
    counts = sparse.csr_array((count[places].astype(float), (of_example, kind[places])), (len(example), n_kinds))
    return RepeatedRows(counts @ features.rows, which.reshape(-1))


def _ranges(start: Int[Array, " g"], length: Int[Array, " g"]) -> Int[Array, " n"]:
    """Return the numbers from each start on, so many of them."""
    before = np.cumsum(length) - length
    return np.repeat(start - before, length) + np.arange(length.sum())


def _linear(features: Float[Array, "N d"], form: str, units: Units) -> Values:
    if form == "sum":
        total = features.sum(axis=0)
        return total, total - units.sums(features)
    centre = features.mean(axis=0)
    deviations = features - centre
    rest = deviations.mean(axis=0)  # what the mean lost by rounding
    deviations -= rest
    removed = units.sums(deviations)
    removed /= -units.left
    removed += rest
    removed += centre
    return centre + rest, removed


def _covariance(deviations: Float[Array, "N c"], units: Units) -> Values:
    deviations -= deviations.mean(axis=0)  # what the first mean lost by rounding
    squares = products(deviations)
    total = squares.sum(axis=0)
    without = total - units.sums(squares)
    without /= units.left
    without -= products(units.sums(deviations) / units.left)
    return total / units.n_rows, without


def _correlation(statistic: Fit, points: Points, units: Units) -> Values:
    table = centred(numbers(points.x))
    c = table.shape[1]
    covariances, without = _covariance(table, units)
    row, column = np.triu_indices(c)
    variance = np.flatnonzero(row == column)
    pairs = np.flatnonzero(row != column)

    def correlations(covariance: Float[Array, "m q"]) -> Float[Array, "m p"]:
        spread = np.sqrt(covariance[:, variance])
        return np.clip(covariance[:, pairs] / spread[:, row[pairs]] / spread[:, column[pairs]], -1, 1)

    accurate = np.all(without[:, variance] > _ROUGHEST * covariances[variance], axis=1)
    values = _completed(correlations(without), accurate, statistic, points, units)
    return correlations(covariances[None])[0], values


def _ratio(
    statistic: Fit, ratio: Ratio, points: Points, units: Units
) -> tuple[Float[Array, " d"], Float[Array, "n d"], Float[Array, "n d"]]:
    """Return also what the rounding of the totals can change, which counts more the less of the denominator is left."""
    above, below = ratio.table(points.x)
    total = below.sum()
    of_all = above.sum(axis=0) / total
    residual = above - of_all * below[:, None]
    rest = residual.sum(axis=0)  # 0 up to rounding
    left = total - units.sums(below[:, None])
    without = of_all + (rest - units.sums(residual)) / left
    accurate = np.abs(left[:, 0]) > _ROUGHEST * np.abs(below).sum()
    without = _completed(without, accurate, statistic, points, units)
    size = np.abs(above).sum(axis=0) + np.abs(without) * np.abs(below).sum()
    return of_all, without, ARITHMETIC * size / np.abs(left)


def _quantiles(table: Float[Array, "N c"], probabilities: tuple[float, ...], units: Units) -> Values:
    of_all = np.quantile(table, probabilities, axis=0).ravel()
    n_left = units.n_rows - units.count
    last = np.maximum(n_left - 1, 0)
    without = np.empty((units.n, len(probabilities), table.shape[1]))
    for column, values in enumerate(table.T):
        ordered = np.append(np.sort(values), np.nan)  # behind the last, for a unit that has all records
        unit, n_before = _ranks(values, units)
        for number, probability in enumerate(probabilities):
            place = last * probability
            first = np.minimum(np.floor(place).astype(int), last)
            second = np.minimum(first + 1, last)
            low = ordered[first + _n_up_to(first, unit, n_before)]
            high = ordered[second + _n_up_to(second, unit, n_before)]
            # rounded as in numpy.quantile
            weight, gap = place - first, high - low
            without[:, number, column] = np.where(weight < 0.5, low + gap * weight, high - gap * (1 - weight))
    without[n_left == 0] = np.nan
    return of_all, without.reshape(units.n, -1)


def _ranks(values: Float[Array, " N"], units: Units) -> tuple[Int[Array, " N"], Int[Array, " N"]]:
    """Return the unit of each of the sorted values, and how many of the others are before it."""
    unit = units.of_row[np.argsort(values, kind="stable")]
    rank = np.arange(len(values))
    if units.order is None:
        return unit, rank
    grouped = np.argsort(unit, kind="stable")
    own = np.empty(len(values), dtype=int)  # values of the same unit that are before it
    own[grouped] = rank - np.repeat(np.cumsum(units.count) - units.count, units.count)
    return unit, rank - own


def _n_up_to(place: Int[Array, " n"], unit: Int[Array, " N"], n_before: Int[Array, " N"]) -> Int[Array, " n"]:
    """Count the values of each unit that are before a place among the values of the others."""
    return np.bincount(unit[n_before <= place[unit]], minlength=len(place))


def _least_squares(statistic: Fit, points: Points, units: Units) -> Values:
    table = records_of(statistic, points)
    assert table is not None  # it is one of least squares
    solution = Solution.of(table)
    without = np.empty((units.n, table.shape[1]))
    accurate = np.zeros(units.n, dtype=bool)
    if solution is None:
        of_all = _of_everybody(statistic, points)
    else:
        of_all = solution.of_all
        d = table.shape[1]
        for block in units.blocks(d if units.order is None else d * d):
            without[block.units], accurate[block.units] = solution.without(table[block.rows], block)
    return of_all, _completed(without, accurate, statistic, points, units)


def _standard_errors(
    statistic: Fit, points: Points, units: Units
) -> tuple[Float[Array, " d"], Float[Array, "n d"], Float[Array, "n d"]]:
    """Return also what rounding can change of the values that are no fits."""
    found = LeftOutErrors.of(points)
    n_numbers = len(statistic.labels(points))
    without, error = np.empty((units.n, n_numbers)), np.zeros((units.n, n_numbers))
    accurate = np.zeros(units.n, dtype=bool)
    if found is None:
        of_all = _of_everybody(statistic, points)
    else:
        of_all = found.of_all
        for block in units.blocks(n_numbers if units.order is None else n_numbers**2):
            without[block.units], size, accurate[block.units] = found.without(block)
            error[block.units] = ARITHMETIC * size
    error[~accurate] = 0.0
    return of_all, _completed(without, accurate, statistic, points, units), error


def _regression(
    statistic: Fit, regression: PenalisedRegression, points: Points, units: Units
) -> tuple[Float[Array, " d"], Float[Array, "n d"], Float[Array, "*n d"]]:
    """Return the errors of the minimisers as well; a fit has none."""
    x, response = regression.table(points)
    try:
        of_all, without, error = left_out_minimisers(x, response, regression.loss, regression.ridge, units)
    except np.linalg.LinAlgError:  # dependent columns
        of_all = _of_everybody(statistic, points)
        return of_all, fit_without(statistic, points, np.arange(units.n), units), np.zeros(len(of_all))
    accurate = np.asarray(np.isfinite(error).all(axis=1))
    error[~accurate] = 0.0
    if isinstance(regression.loss, LogisticLoss):  # it has no minimum where one class is left
        one_class = units.sums(np.column_stack([response, 1 - response])) == [response.sum(), (1 - response).sum()]
        without[one_class.any(axis=1)], accurate[one_class.any(axis=1)] = np.nan, True
    return of_all, _completed(without, accurate, statistic, points, units), error


def _of_everybody(statistic: Statistic, points: Points) -> Float[Array, " d"]:
    """Fit all records; NaN where that fails."""
    everybody = np.ones((1, len(points)), dtype=bool)
    return statistic.observe(points, everybody, np.zeros(1, dtype=int))["output"][0]


def _completed(
    without: Float[Array, "n d"], accurate: Bool[Array, " n"], statistic: Statistic, points: Points, units: Units
) -> Float[Array, "n d"]:
    """Make a fit where the formula is not accurate."""
    to_fit = np.flatnonzero(~accurate)
    if len(to_fit):
        without[to_fit] = fit_without(statistic, points, to_fit, units)
    return without
