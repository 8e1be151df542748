"""The statistics that can be released by name. A row is all that a plan and the command line need of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal


@dataclass(frozen=True)
class Kind:
    """A row of ``STATISTICS``.

    >>> STATISTICS["mean"].summary
    'mean of each column'
    """

    summary: str
    path: str
    form: Literal["mean", "sum", "fit", "covariance"]
    regression: bool = False


_HERE = "leakbound.releases.statistics"
STATISTICS: Mapping[str, Kind] = MappingProxyType(
    {
        "mean": Kind("mean of each column", f"{_HERE}.features:Columns", "mean"),
        "sum": Kind("sum of each column", f"{_HERE}.features:Columns", "sum"),
        "second_moment": Kind("mean products of columns", f"{_HERE}.features:SecondMoments", "mean"),
        "covariance": Kind("covariance of the columns", "", "covariance"),
        "correlation": Kind("correlations of the columns", f"{_HERE}.correlation:Correlation", "fit"),
        "ratio": Kind("total of each column over that of one of them", f"{_HERE}.ratio:Ratio", "fit"),
        "histogram": Kind("counts in bins of columns", f"{_HERE}.features:Histogram", "sum"),
        "table": Kind("counts in the cells of a table", f"{_HERE}.features:Cells", "sum"),
        "quantiles": Kind("quantiles of each column", f"{_HERE}.algorithms:Quantiles", "fit"),
        "ols": Kind("coefficients of least squares", f"{_HERE}.algorithms:LeastSquares", "fit", regression=True),
        "standard_errors": Kind(
            "standard errors of those coefficients", f"{_HERE}.standard_errors:StandardErrors", "fit", regression=True
        ),
        "ridge": Kind("least squares with a penalty", f"{_HERE}.regressions:Ridge", "fit", regression=True),
        "logistic": Kind("coefficients of a logistic regression", f"{_HERE}.logistic:Logistic", "fit", regression=True),
        "poisson": Kind("coefficients of a Poisson regression", f"{_HERE}.regressions:Poisson", "fit", regression=True),
        "huber": Kind("coefficients of a Huber regression", f"{_HERE}.regressions:Huber", "fit", regression=True),
    }
)
REGRESSIONS = tuple(name for name, kind in STATISTICS.items() if kind.regression)
