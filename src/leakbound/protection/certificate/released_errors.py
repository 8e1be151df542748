"""Sampling errors that are functions of released numbers alone, and so may be published beside them.

The standard error of a mean is ``sqrt(variance/n)``. Where the variance was released together with the mean, as a
covariance or as a second moment, it costs nothing to publish the error; where it was not, it would be an exact function
of the file. The standard errors of a regression are published where they were released themselves, together with its
coefficients.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from jaxtyping import Float

from leakbound.plans.protects import ProtectionPlan
from leakbound.protection.setting.prepared import Prepared
from leakbound.releases.statistics.algorithms import LeastSquares
from leakbound.releases.statistics.counts_and_sums import ColumnCountsAndSums, CountAndProducts
from leakbound.releases.statistics.features import Columns, SecondMoments, columns_of
from leakbound.releases.statistics.standard_errors import StandardErrors
from leakbound.releases.statistics.statistic import Covariance, Fit, Linear

Array = np.ndarray


def sampling_from_released(prepared: Prepared, value: Float[Array, " d"]) -> Float[Array, " d"]:
    """Find the standard errors of released means and regressions whose variances or errors were released with them."""
    of_all = zip(prepared.statistics, prepared.split(value), strict=True)
    of_part = [(part, part.finished(coordinates).value) for part, coordinates in of_all]
    errors = np.full(sum(len(released) for _, released in of_part), np.nan)
    plan = prepared.request.plan
    # How many records a mean is of is not public where a person has several, and the errors of a regression are those
    # of independent records.
    if not isinstance(plan, ProtectionPlan) or plan.group is not None:
        return errors
    means = [_means(part, released) for part, released in of_part]
    start = 0
    for (part, released), own_means in zip(of_part, means, strict=True):
        counts = released[len(own_means) :]  # of noisy counts and sums; otherwise all have a value
        for place, column in enumerate(own_means):
            n_values = counts[place] if len(counts) else part.k
            for other, numbers in of_part:
                variance = _variances(other, numbers, own_means).get(column, 0.0)
                if variance > 0 and n_values > 0:
                    errors[start + place] = np.sqrt(variance / n_values)
        for other, numbers in of_part:
            if _are_errors_of(other, part):
                errors[start : start + len(released)] = np.where(numbers > 0, numbers, np.nan)
        start += len(released)
    return errors


def _are_errors_of(part: Prepared, regression: Prepared) -> bool:
    """Tell whether a part is the standard errors of a part that is the coefficients of the same least squares."""
    errors, coefficients = part.request.statistic, regression.request.statistic
    return (
        isinstance(errors, Fit)
        and isinstance(errors.algorithm, StandardErrors)
        and isinstance(coefficients, Fit)
        and isinstance(coefficients.algorithm, LeastSquares)
        and _columns(part) == _columns(regression)
        and part.request.plan.label == regression.request.plan.label
    )


def _means(part: Prepared, released: Float[Array, " e"]) -> Mapping[str, float]:
    """Return the released mean of each column, in order; nothing for other statistics."""
    match part.request.statistic:
        case Linear(features=Columns(), statistic="mean"):
            return dict(zip(_columns(part), released.tolist(), strict=True))
        case Linear(features=ColumnCountsAndSums(columns=columns)):  # whose counts follow
            return dict(zip(columns, released[: len(columns)].tolist(), strict=True))
    return {}


def _variances(part: Prepared, released: Float[Array, " e"], means: Mapping[str, float]) -> Mapping[str, float]:
    """Return the variances of columns that follow from released numbers; nothing for other statistics."""
    match part.request.statistic:
        case Covariance() | Linear(features=CountAndProducts(is_covariance=True)):
            return dict(_diagonal(part, released))
        case Linear(features=SecondMoments(centre=centre) | CountAndProducts(centre=centre)):
            names = _columns(part)
            middle = dict(zip(names, centre or np.zeros(len(names)), strict=True))
            moments = dict(_diagonal(part, released))
            return {name: moments[name] - (means[name] - middle[name]) ** 2 for name in names if name in means}
    return {}


def _diagonal(part: Prepared, released: Float[Array, " e"]) -> Iterator[tuple[str, float]]:
    """Yield the products of each column with itself, of an upper triangle that is listed row by row."""
    names = _columns(part)
    row, column = np.triu_indices(len(names))
    return zip(names, released[: len(row)][row == column].tolist(), strict=True)


def _columns(part: Prepared) -> list[str]:
    """Name the columns that the statistic is of."""
    return list(columns_of(part.points.x))
