"""What the values of a statistic without each unit err by because of the rounding of floating point.

Formulas add numbers in another order than the statistic itself does. The sum of n doubles errs by at most ``(528 +
n/8192) 2^-53`` times the sum of their sizes where it is made in blocks of 8,192, and by ``n 2^-53`` times that where it
is not, so that ``2^-36`` covers 100,000 records in any order and a billion in blocks. What is left of it covers least
squares, whose columns are orthonormal: others are so nearly dependent that fits are made.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from leakscope.core.types import Points
from leakscope.releases.statistics.algorithms import LeastSquares, design
from leakscope.releases.statistics.correlation import Correlation
from leakscope.releases.statistics.features import Cells, Histogram, numbers
from leakscope.releases.statistics.logistic import Logistic
from leakscope.releases.statistics.regressions import Huber, Poisson, Ridge
from leakscope.releases.statistics.statistic import Covariance, Fit, Linear, Statistic

Array = np.ndarray
ARITHMETIC = 2.0**-36


def arithmetic_error(statistic: Statistic, points: Points, largest: Float[Array, " d"]) -> Float[Array, " d"]:
    """Bound what each number of a statistic errs by, whether of all records or without some of them.

    Parameters
    ----------
    statistic : Statistic
    points : Points
        All records.
    largest : array of shape (d,)
        The largest absolute value of each number, of all records and without each unit.

    Returns
    -------
    array of shape (d,)
        0 where the values equal those of a fit bit by bit: of counts, quantiles, and functions, which are fitted. 0 for
        ratios, too, whose error differs from unit to unit and is computed with them.
        Infinite where sizes overflow.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.core.types import Points
    >>> from leakscope.releases.statistics.rounding import arithmetic_error
    >>> from leakscope.releases.statistics.statistic import named
    >>> points = Points(np.array([[-1.0], [1.0]]))
    >>> (arithmetic_error(named("mean"), points, np.zeros(1)) * 2**36).tolist()
    [1.0]
    """
    with np.errstate(over="ignore", invalid="ignore"):
        size = _size(statistic, points, largest)
    return np.where(np.isnan(size), np.inf, size) * ARITHMETIC


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
        case Fit(algorithm=LeastSquares()):
            x, response = design(points)
            return _of_coefficients(x, largest, float(np.std(numbers(response[:, None]))))
        case Fit(algorithm=(Logistic() | Ridge() | Poisson() | Huber()) as regression):
            x, _ = regression.table(points)
            return _of_coefficients(x, largest, 0.0)
        case _:
            return np.zeros(len(largest))


def _of_coefficients(x: Float[Array, "n p"], largest: Float[Array, " d"], spread: float) -> Float[Array, " d"]:
    """Compute the sizes of an intercept and slopes, which are found in centred columns of spread 1.

    Parameters
    ----------
    x : array of shape (n, p)
    largest : array of shape (p + 1,)
    spread : float
        Of the response.
    """
    centre, width = np.abs(x.mean(axis=0)), x.std(axis=0)
    constant = width <= 4 * np.finfo(float).eps * centre  # up to rounding, as in `Solution`: its slope is of no spread
    width = np.where(constant, np.where(centre > 0, centre, 1.0), width)
    predictor = spread + largest[1:] @ width
    slopes = predictor / width
    return np.append(largest[0] + predictor + slopes @ centre, slopes)
