"""What a reader of a released statistic must know of it: the response, the scale of the columns, a penalty.

All of it is public: the parameters follow from the plan, the names of the columns and the values of a response of two
classes. What a regression read from the data, such as the mean of a column, is not published; that it was read is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from leakbound.core.types import Points
from leakbound.plans.protects import CalibrationPlan
from leakbound.releases.statistics.algorithms import LeastSquares, Quantiles, design, explaining
from leakbound.releases.statistics.correlation import Correlation
from leakbound.releases.statistics.counts_and_sums import ColumnCountsAndSums, CountAndProducts
from leakbound.releases.statistics.features import Histogram, SecondMoments, columns_of
from leakbound.releases.statistics.group_means import GroupCountsAndSums
from leakbound.releases.statistics.logistic import Logistic
from leakbound.releases.statistics.ratio import Ratio
from leakbound.releases.statistics.regressions import Huber, Poisson, Ridge
from leakbound.releases.statistics.standard_errors import StandardErrors
from leakbound.releases.statistics.statistic import Covariance, Fit, Linear, Statistic
from leakbound.reports.about import ColumnScale, StatisticParameters


def parameters_of(plan: CalibrationPlan, statistic: Statistic, points: Points) -> StatisticParameters | None:
    """Describe a statistic to a reader of its numbers.

    >>> from leakbound.releases.statistics.statistic import named
    >>> points = Points(np.array([[3.0], [5.0]]), np.array([0, 1]))
    >>> plan = CalibrationPlan(data="people.csv", statistic="logistic", label="ill", eta=0.1)
    >>> facts = parameters_of(plan, named("logistic", centre=(4.0,), spread=(2.0,)), points)
    >>> facts.response, facts.modelled_class, facts.scales[0].centre
    ('ill', '1', 4.0)
    """
    if isinstance(statistic, Covariance):
        return StatisticParameters(kind="covariance")
    if isinstance(statistic, Linear):
        if plan.chosen == "dp" and plan.statistic == "sum":
            return StatisticParameters(kind="sum", of_values=True)
        return _of_features(statistic, points)
    if not isinstance(statistic, Fit):
        return None
    if isinstance(statistic.algorithm, LeastSquares | Ridge | Poisson | Huber | Logistic):
        return _of_regression(plan, statistic.algorithm, points)
    match statistic.algorithm:
        case StandardErrors():
            return StatisticParameters(kind="standard_errors", response=_response(plan, points))
        case Correlation():
            return StatisticParameters(kind="correlation")
        case Ratio() as ratio:
            return StatisticParameters(kind="ratio", denominator=ratio.columns(points.x)[1])
        case Quantiles():
            return StatisticParameters(kind="quantiles", interpolation="linear")
    return None


def _of_regression(
    plan: CalibrationPlan, regression: LeastSquares | Ridge | Poisson | Huber | Logistic, points: Points
) -> StatisticParameters:
    """Describe a regression: its response, and what else its objective has."""
    response = _response(plan, points)
    match regression:
        case LeastSquares():
            return StatisticParameters(kind="ols", response=response)
        case Ridge(penalty=penalty):
            return StatisticParameters(kind="ridge", response=response, penalty=float(penalty))
        case Poisson(penalty=penalty):
            return StatisticParameters(kind="poisson", response=response, penalty=float(penalty))
        case Huber(threshold=threshold, penalty=penalty):
            return StatisticParameters(
                kind="huber", response=response, threshold=float(threshold), penalty=float(penalty)
            )
        case Logistic():
            return _of_logistic(response, regression, points)


def _of_features(statistic: Linear, points: Points) -> StatisticParameters | None:
    """Describe mean products and histograms; the labels of other sums and means say all."""
    match statistic.features:
        case ColumnCountsAndSums() | GroupCountsAndSums():
            return StatisticParameters(kind="mean", of_values=True)
        case CountAndProducts(is_covariance=True):
            return StatisticParameters(kind="covariance", of_values=True)
        case CountAndProducts(columns=names, centre=centre):
            scales = _scales(names, centre if any(centre) else None, None)
            return StatisticParameters(kind="second_moment", scales=scales, of_values=True)
        case SecondMoments(centre=centre):
            return StatisticParameters(kind="second_moment", scales=_scales(columns_of(points.x), centre, None))
        case Histogram():
            return StatisticParameters(kind="histogram")
    return None


def _of_logistic(response: str, logistic: Logistic, points: Points) -> StatisticParameters:
    """Describe a logistic regression: without class and scale, its coefficients have neither sign nor unit."""
    classes = np.unique(np.asarray(design(points)[1]))
    is_read = logistic.read_from_data
    return StatisticParameters(
        kind="logistic",
        response=response,
        modelled_class=_class_name(classes[-1]),
        scales=() if is_read else _scales(explaining(points), logistic.centre, logistic.spread),
        scales_of_data=is_read,
        penalty=float(logistic.penalty),
    )


def _class_name(value: object) -> str:
    """Write a class as it is in the file: 1 and not 1.0."""
    number = isinstance(value, float | np.floating) and float(value).is_integer()
    return str(int(float(str(value)))) if number else str(value)


def _scales(
    names: Sequence[str], centre: Sequence[float] | None, spread: Sequence[float] | None
) -> tuple[ColumnScale, ...]:
    """List centre and spread of each column; nothing where all are used as they are."""
    if centre is None and spread is None:
        return ()
    centres = centre or [0.0] * len(names)
    spreads = spread or [1.0] * len(names)
    return tuple(
        ColumnScale(column=name, centre=float(middle), spread=float(width))
        for name, middle, width in zip(names, centres, spreads, strict=True)
    )


def _response(plan: CalibrationPlan, points: Points) -> str:
    """Name the response of a regression: the label, or the last column; an array has no name."""
    if plan.label is not None:
        return plan.label
    return columns_of(points.x)[-1] if points.y is None else ""
