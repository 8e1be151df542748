"""Statistics of all records but one, for each record, without a fit of their own.

Sums, means, covariances, quantiles, least squares and logistic regressions without record i follow from those of all
records and record i, so that all n of them cost little more than one fit.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import linalg

from leakscope.core.types import Points
from leakscope.releases.statistics.algorithms import LeastSquares, Quantiles, design
from leakscope.releases.statistics.features import numbers, products
from leakscope.releases.statistics.leave_one_out import Solution, fit_without, records_of
from leakscope.releases.statistics.logistic import Logistic
from leakscope.releases.statistics.newton import left_out_minimisers
from leakscope.releases.statistics.statistic import Covariance, Fit, Linear, Statistic

Array = np.ndarray
Values = tuple[Float[Array, " d"], Float[Array, "n d"]]
_NUMBERS = 2**20  # outputs that are computed at once


def left_out_values(statistic: Statistic, points: Points) -> Values | None:
    """Compute a statistic of all n records, and of all but one for each of them.

    With m the mean and z = x - m,

    * a sum without x is ``sum - x``, a mean ``m - z/(n - 1)``;
    * the covariance, divisor n - 1, is ``sum of z z^T/(n - 1) - n/(n - 1)^2 z z^T``;
    * a quantile lies between two of the sorted values, of which those behind x move up by one;
    * the coefficients of least squares change by ``-(X^T X)^-1 x r/(1 - h)``, r the residual and h the leverage of the
      record; where 1 - h or the columns are so small that digits would be lost, a fit is made, as in `swapped`;
    * those of a penalised logistic regression by `left_out_minimisers`.

    Parameters
    ----------
    statistic : Statistic
    points : Points

    Returns
    -------
    of_all : array of shape (d,)
        The statistic of all records, by the same formulas.
    without : array of shape (n, d)
        Row i without record i; NaN where the statistic cannot be computed, as a mean of no record. Quantiles equal
        those of a fit bit by bit, as do sums of whole numbers; the others to rounding, logistic regressions to 1e-4 of
        a standard error. None for other statistics, which take a fit for each record.

    Raises
    ------
    ValueError
        If the records are not finite numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.core.types import Points
    >>> from leakscope.releases.statistics.left_out import left_out_values
    >>> from leakscope.releases.statistics.statistic import named
    >>> of_all, without = left_out_values(named("mean"), Points(np.array([[1.0], [2.0], [6.0]])))
    >>> of_all.tolist(), without.ravel().tolist()
    ([3.0], [4.0, 3.5, 1.5])
    """
    with np.errstate(all="ignore"):  # what overflows becomes NaN below
        match statistic:
            case Linear():
                found = _linear(statistic.features(points.x), statistic.statistic)
            case Covariance():
                found = _covariance(numbers(points.x))
            case Fit(algorithm=Quantiles() as quantiles):
                found = _quantiles(numbers(points.x), quantiles.probabilities)
            case Fit(algorithm=LeastSquares()):
                found = _least_squares(statistic, points)
            case Fit(algorithm=Logistic() as logistic):
                found = _logistic(statistic, logistic, points)
            case _:
                return None
    of_all, without = found
    without[~np.isfinite(without).all(axis=1)] = np.nan
    return of_all, without


def _linear(features: Float[Array, "n d"], form: str) -> Values:
    n = len(features)
    if form == "sum":
        total = features.sum(axis=0)
        return total, total - features
    centre = features.mean(axis=0)
    deviations = features - centre
    rest = deviations.mean(axis=0)  # what the mean lost by rounding
    mean = centre + rest
    if n == 1:
        return mean, np.full_like(features, np.nan)
    return mean, centre + (rest - (deviations - rest) / (n - 1))


def _covariance(table: Float[Array, "n c"]) -> Values:
    n = len(table)
    centred = table - table.mean(axis=0)
    centred -= centred.mean(axis=0)
    squares = products(centred)
    total = squares.sum(axis=0)
    if n == 1:
        return total, np.full_like(squares, np.nan)
    squares *= -n / (n - 1) ** 2
    squares += total / (n - 1)
    return total / n, squares


def _quantiles(table: Float[Array, "n c"], probabilities: tuple[float, ...]) -> Values:
    n, n_columns = table.shape
    of_all = np.quantile(table, probabilities, axis=0).ravel()
    without = np.empty((n, len(probabilities), n_columns))
    if n == 1:
        without[:] = np.nan
        return of_all, without.reshape(n, -1)
    for column in range(n_columns):
        order = np.argsort(table[:, column], kind="stable")
        ordered, rank = table[order, column], np.empty(n, dtype=int)
        rank[order] = np.arange(n)
        for number, probability in enumerate(probabilities):
            place = (n - 2) * probability
            first = min(int(np.floor(place)), n - 2)
            second = min(first + 1, n - 2)
            # of the others, those behind the record move up by one
            low = np.where(rank > first, ordered[first], ordered[first + 1])
            high = np.where(rank > second, ordered[second], ordered[second + 1])
            weight, gap = place - first, high - low
            # rounded as in numpy.quantile
            without[:, number, column] = low + gap * weight if weight < 0.5 else high - gap * (1 - weight)
    return of_all, without.reshape(n, -1)


def _least_squares(statistic: Fit, points: Points) -> Values:
    table = records_of(statistic, points)
    assert table is not None  # it is one of least squares
    x, y = table[:, :-1], table[:, -1]
    of_all = np.linalg.lstsq(np.column_stack([np.ones(len(x)), x]), y, rcond=None)[0]
    solution = Solution.of(table) if len(table) > 1 else None
    without = np.empty((len(table), table.shape[1]))
    accurate = np.zeros(len(table), dtype=bool)
    if solution is not None:
        of_all = solution.of_all
        size = max(1, _NUMBERS // table.shape[1])
        for start in range(0, len(table), size):
            block = slice(start, start + size)
            without[block], accurate[block] = solution.without(table[block])
    return of_all, _completed(without, accurate, statistic, points)


def _logistic(statistic: Fit, logistic: Logistic, points: Points) -> Values:
    x, y = design(points)
    classes, label = np.unique(np.asarray(y), return_inverse=True)
    if len(classes) != 2:
        raise ValueError(f"a logistic regression needs 2 classes, got {len(classes)}")
    x = logistic.standard(numbers(x))
    try:
        of_all, without, accurate = left_out_minimisers(x, label.astype(float), logistic.penalty)
    except linalg.LinAlgError:  # dependent columns
        everybody = np.ones((1, len(x)), dtype=bool)
        of_all = statistic.observe(points, everybody, np.zeros(1, dtype=int))["output"][0]
        return of_all, fit_without(statistic, points, np.arange(len(x)))
    alone = np.bincount(label, minlength=2)[label] == 1
    without[alone], accurate[alone] = np.nan, True  # the others have one class
    return of_all, _completed(without, accurate, statistic, points)


def _completed(
    without: Float[Array, "n d"], accurate: Bool[Array, " n"], statistic: Statistic, points: Points
) -> Float[Array, "n d"]:
    """Make a fit where the formula is not accurate."""
    to_fit: Int[Array, " m"] = np.flatnonzero(~accurate)
    if len(to_fit):
        without[to_fit] = fit_without(statistic, points, to_fit)
    return without
