"""What the values of a statistic without each unit err by because of the rounding of floating point.

Formulas add numbers in another order than the statistic itself does. The sum of n doubles errs by at most ``(528 +
n/8192) 2^-53`` times the sum of their sizes where it is made in blocks of 8,192, and by ``n 2^-53`` times that where it
is not, so that ``2^-36`` covers 100,000 records in any order and a billion in blocks. What is left of it covers least
squares, whose columns are orthonormal: others are so nearly dependent that fits are made.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from leakbound.core.types import Points
from leakbound.releases.statistics.algorithms import LeastSquares, design
from leakbound.releases.statistics.correlation import Correlation
from leakbound.releases.statistics.features import Cells, Histogram, numbers
from leakbound.releases.statistics.group_means import GroupMeans
from leakbound.releases.statistics.logistic import Logistic
from leakbound.releases.statistics.ratio import Ratio
from leakbound.releases.statistics.regressions import Huber, Poisson, Ridge
from leakbound.releases.statistics.standard_errors import StandardErrors
from leakbound.releases.statistics.statistic import Covariance, Fit, Linear, Statistic

Array = np.ndarray
ARITHMETIC = 2.0**-36


def arithmetic_error(statistic: Statistic, points: Points, largest: Float[Array, " d"]) -> Float[Array, " d"]:
    """Bound what each number of a statistic errs by, whether of all records or without some of them.

    >>> from leakbound.releases.statistics.statistic import named
    >>> points = Points(np.array([[-1.0], [1.0]]))
    >>> (arithmetic_error(named("mean"), points, np.zeros(1)) * 2**36).tolist()
    [1.0]
    """
    # 0 where the values equal those of a fit bit by bit (counts, quantiles, functions); infinite where sizes overflow
    return size_added_up(statistic, points, largest) * ARITHMETIC


def size_added_up(statistic: Statistic, points: Points, largest: Float[Array, " d"]) -> Float[Array, " d"]:
    """Compute the size of what is added up for each number, of which rounding changes a part of at most 2^-36."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        size = _size(statistic, points, largest)
    return np.where(np.isnan(size), np.inf, size)


def _size(statistic: Statistic, points: Points, largest: Float[Array, " d"]) -> Float[Array, " d"]:
    """Compute the size of what is added for each number."""
    match statistic:
        case Linear(features=(Cells() | Histogram()), statistic="sum"):
            return np.zeros(len(largest))
        case Linear():
            total = np.abs(statistic.features(points.x)).sum(axis=0)
            return total if statistic.statistic == "sum" else total / len(points)
        case Covariance():
            spread = numbers(points.x).std(axis=0)
            row, column = np.triu_indices(len(spread))
            return spread[row] * spread[column]
        case Fit(algorithm=Correlation()):
            return np.ones(len(largest))
        case Fit(algorithm=Ratio() as ratio):
            above, below = ratio.table(points.x)
            return (np.abs(above).sum(axis=0) + largest * np.abs(below).sum()) / np.abs(below.sum())
        case Fit(algorithm=GroupMeans() as groups):
            return _of_groups(groups, points)
        case Fit():
            return _of_regression(statistic, points, largest)


def _of_regression(statistic: Fit, points: Points, largest: Float[Array, " d"]) -> Float[Array, " d"]:
    """Compute the size of what is added for each coefficient; 0 for other fits."""
    match statistic:
        case Fit(algorithm=LeastSquares()):
            x, response = design(points)
            return _of_coefficients(x, largest, _spread(response))
        case Fit(algorithm=StandardErrors()):
            x, response = design(points)
            return _of_coefficients(x, np.zeros(len(largest)), _spread(response) / math.sqrt(len(x)))
        case Fit(algorithm=(Ridge() | Huber()) as regression):
            x, response = regression.table(points)
            return _of_coefficients(x, largest, _spread(response), regression.ridge)
        case Fit(algorithm=(Logistic() | Poisson()) as regression):
            x, _ = regression.table(points)
            return _of_coefficients(x, largest, 1.0, regression.ridge)
        case _:
            return np.zeros(len(largest))


def _of_groups(groups: GroupMeans, points: Points) -> Float[Array, " d"]:
    """Compute the largest deviation from the first value of each group; 0 for the counts."""
    group = groups.cells.places(points.x)
    _, deviations = groups.deviations(points.x, group)
    largest = np.zeros((groups.cells.n_cells, deviations.shape[1]))
    np.maximum.at(largest, group[group >= 0], np.abs(deviations[group >= 0]))
    return np.append(np.zeros(len(largest)), largest.T.ravel())


def _spread(response: Float[Array, " n"]) -> float:
    """Compute the deviation of a response; of equal numbers what rounding leaves of it."""
    values = numbers(response[:, None])
    return float(values.std() + np.finfo(float).eps / ARITHMETIC * abs(values.mean()))


def _of_coefficients(
    x: Float[Array, "n p"], largest: Float[Array, " d"], spread: float, ridge: float | Float[Array, " p"] = 0.0
) -> Float[Array, " d"]:
    """Compute the sizes of an intercept and slopes, which are found in centred columns of spread 1."""
    centre, width = np.abs(x.mean(axis=0)), x.std(axis=0)
    constant = width <= 4 * np.finfo(float).eps * centre  # up to rounding: its slope is of no spread
    width = np.where(constant, np.where(centre > 0, centre, 1.0), width)
    predictor = spread + largest[1:] @ width
    slopes = predictor * width / (np.square(width) + ridge / len(x))
    return np.append(largest[0] + predictor + slopes @ centre, slopes)
