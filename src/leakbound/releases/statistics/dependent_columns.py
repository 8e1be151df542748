"""Which columns of a regression are linearly dependent, so that its coefficients are not determined."""

from __future__ import annotations

import numpy as np

from leakbound.core.types import Points
from leakbound.releases.statistics.algorithms import LeastSquares, design, explaining
from leakbound.releases.statistics.features import numbers
from leakbound.releases.statistics.standard_columns import SMALLEST, StandardColumns
from leakbound.releases.statistics.standard_errors import StandardErrors
from leakbound.releases.statistics.statistic import Fit, Statistic

_MOST_NAMES = 8


def check_determined(statistic: Statistic, points: Points) -> None:
    """Refuse least squares of columns that are linearly dependent in all records.

    >>> from leakbound.releases.statistics.statistic import named
    >>> x = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    >>> try:
    ...     check_determined(named("ols"), Points(x, np.arange(4.0)))
    ... except ValueError as reason:
    ...     print(str(reason).partition(":")[0])
    the columns x0, x1 and the intercept are linearly dependent, so that the coefficients are not determined
    """
    if not (isinstance(statistic, Fit) and isinstance(statistic.algorithm, LeastSquares | StandardErrors)):
        return
    x = numbers(design(points)[0])
    names = explaining(points)
    n_records, n_columns = x.shape
    if n_records <= n_columns:
        raise ValueError(
            f"{n_records:,} records do not determine {n_columns + 1:,} coefficients (the intercept and one for each "
            "column): leave columns out"
        )
    if isinstance(statistic.algorithm, StandardErrors) and n_records <= n_columns + 2:
        raise ValueError(
            f"{n_records:,} records leave no residual, without one of them, for the standard errors of "
            f"{n_columns + 1:,} coefficients (the intercept and one for each column): leave columns out"
        )
    columns = StandardColumns.of(x)
    if columns.dependence is None:
        return
    dependence = columns.dependence / columns.width
    named = [name for name, coefficient in zip(names, dependence, strict=True) if coefficient]
    if len(named) == 1:
        raise ValueError(
            f"the column {named[0]} is the same for all records, like the intercept, so that its coefficient is not "
            "determined: leave it out"
        )
    more = f" and {len(named) - _MOST_NAMES:,} more" if len(named) > _MOST_NAMES else ""
    # a combination of columns that is zero up to its mean, which is that of the intercept
    largest = np.abs(x).max(axis=0)
    has_intercept = abs(dependence @ columns.centre) > SMALLEST * (np.abs(dependence) @ largest)
    intercept = " and the intercept" if has_intercept else ""
    raise ValueError(
        f"the columns {', '.join(named[:_MOST_NAMES])}{more}{intercept} are linearly dependent, so that the "
        "coefficients are not determined: leave one of these columns out"
    )
