"""Means, second moments and covariances of the records that have a value, made of noisy counts and noisy sums.

Whether a record has a value is a secret of that record, so how many have one gets noise, too. Each column is measured
from a declared middle: a record without a value adds 0 to the count and to the sums, and one with a value 1 and at most
half of the declared range. With the noisy sum S, the noisy count N and the deviations s and t of their noise

    mean = middle + S/N,    |S - (m - middle) N| <= z sqrt(s^2 + (m - middle)^2 t^2),

where the second is a quadratic in m: for the true mean m the left side is normal with just that deviation, so that the
m that fulfil it are an exact interval, however few records have a value (Fieller 1954).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from jaxtyping import Float

from leakbound.releases.statistics.features import columns_of, pairs_of, products

Array = np.ndarray
OF_95_PERCENT = 1.959964  # standard deviations on either side of a normal variable's mean
_FIRST_ORDER = 20.0  # deviations of the count's noise from which on an error to first order says enough
ROUNDING = 1 / 12  # variance of a number that is rounded to a whole one


@dataclass(frozen=True, eq=False)
class Finished:
    """Numbers as they are published, with the noise of each."""

    labels: Sequence[str]
    value: Float[Array, "*batch e"]
    noise_std: Float[Array, "*batch e"]
    # ends of a 95 % interval of the noise; NaN where it is value -/+ 1.96 noise_std
    low: Float[Array, "*batch e"]
    high: Float[Array, "*batch e"]
    n_counts: int = 0


@final
@dataclass(frozen=True)
class ColumnCountsAndSums:
    """Of each column, whether a record has a value, and its distance from the middle of the declared range.

    >>> import pandas as pd
    >>> answers = ColumnCountsAndSums(("wage",), ((0.0, 80.0),))
    >>> frame = pd.DataFrame({"wage": [10.0, None, 40.0]})
    >>> answers(frame).sum(axis=0).tolist(), answers.labels(frame)
    ([2.0, -30.0], ['records with wage', 'sum of wage - 40'])
    """

    columns: tuple[str, ...]
    ranges: tuple[tuple[float, float], ...]  # least and largest value of each column

    def labels(self, x: Any) -> list[str]:
        """Name the counts of all columns, then the sums."""
        middle, _ = middle_and_half(self.ranges)
        sums = [f"sum of {name} - {centre:g}" for name, centre in zip(self.columns, middle, strict=True)]
        return [f"records with {name}" for name in self.columns] + sums

    def __call__(self, x: Any) -> Float[Array, "N d"]:
        """Return 1 for a value and its distance from the middle, 0 and 0 for a missing one."""
        table = with_missing(x, self.columns)
        has_value = np.isfinite(table)
        middle, _ = middle_and_half(self.ranges)
        return np.hstack([has_value, np.where(has_value, table - middle, 0.0)])

    def least_count(self, deviations: Float[Array, " d"]) -> float:
        """Return the noisy count that is not enough for a mean."""
        return OF_95_PERCENT * float(deviations[0])

    def finished(self, sums: Float[Array, "*batch d"], deviations: Float[Array, " d"]) -> Finished:
        """Turn noisy counts and sums into the mean of each column, and the number of its values."""
        c = len(self.columns)
        means = means_of(sums[..., c:], sums[..., :c], deviations[c:], deviations[:c], self.ranges)
        labels = [f"mean of {name}" for name in self.columns]
        return with_counts(labels, means, self.labels(None)[:c], sums[..., :c], deviations[:c])


@final
@dataclass(frozen=True)
class CountAndProducts:
    """Whether a record has a value in all columns, and if so the products of their distances from public centres.

    >>> import pandas as pd
    >>> squares = CountAndProducts(("wage",), ((0.0, 80.0),), (0.0,))
    >>> frame = pd.DataFrame({"wage": [10.0, None, 40.0]})
    >>> squares(frame).sum(axis=0).tolist(), squares.middle.tolist()  # 100 - 3200 and 1600 - 3200
    ([2.0, -4700.0], [3200.0])
    """

    columns: tuple[str, ...]
    ranges: tuple[tuple[float, float], ...]
    centre: tuple[float, ...]
    is_covariance: bool = False

    @property
    def ends(self) -> tuple[Float[Array, " c"], Float[Array, " c"]]:
        """The least and the largest distance of each column from its centre."""
        ends = np.asarray(self.ranges, dtype=float) - np.asarray(self.centre)[:, None]
        return ends[:, 0], ends[:, 1]

    @property
    def product_ends(self) -> tuple[Float[Array, " p"], Float[Array, " p"]]:
        """The least and the largest value of each product; a square is not below 0."""
        low, high = self.ends
        first, second = np.triu_indices(len(low))
        corners = [one[first] * other[second] for one in (low, high) for other in (low, high)]
        least, largest = np.min(corners, axis=0), np.max(corners, axis=0)
        return np.where(first == second, np.maximum(least, 0.0), least), largest

    @property
    def middle(self) -> Float[Array, " p"]:
        """The middle of each product, which is subtracted from it."""
        least, largest = self.product_ends
        return (least + largest) / 2

    def labels(self, x: Any) -> list[str]:
        """Name the count, of a covariance the sums of the columns, and the products."""
        sums = [f"sum of {name}" for name in self.columns] if self.is_covariance else []
        return [f"records with {' and '.join(self.columns)}", *sums, *pairs_of(self.columns)]

    def __call__(self, x: Any) -> Float[Array, "N d"]:
        """Compute the features of each record; all are 0 where a value is missing."""
        table = with_missing(x, self.columns) - np.asarray(self.centre)
        is_complete = np.isfinite(table).all(axis=1, keepdims=True)
        table = np.where(is_complete, table, 0.0)
        sums = [table] if self.is_covariance else []
        return np.hstack([is_complete, *sums, np.where(is_complete, products(table) - self.middle, 0.0)])

    def least_count(self, deviations: Float[Array, " d"]) -> float:
        """Return the noisy count that is not enough for a number."""
        return (_FIRST_ORDER if self.is_covariance else OF_95_PERCENT) * float(deviations[0])

    def finished(self, sums: Float[Array, "*batch d"], deviations: Float[Array, " d"]) -> Finished:
        """Turn the noisy count and sums into mean products or covariances, and the number of complete records."""
        count, count_std = sums[..., :1], deviations[:1]
        p = len(self.middle)
        of_products, products_std = sums[..., -p:], deviations[-p:]
        if self.is_covariance:
            means = self._covariances(sums, deviations)
        else:
            ends = list(zip(*self.product_ends, strict=True))
            means = means_of(of_products, count, products_std, count_std, ends)
        name = "covariance" if self.is_covariance else "second_moment"
        labels = [f"{name} of {pair}" for pair in pairs_of(self.columns)]
        return with_counts(labels, means, self.labels(None)[:1], count, count_std)

    def _covariances(self, sums: Float[Array, "*batch d"], deviations: Float[Array, " d"]) -> Estimates:
        """Compute ``E v_i v_j - E v_i E v_j`` of the distances v, with errors to first order.

        With a and b the means of v_i and v_j, q that of their product less its middle, and N the count, the error is

            (e_ij - b e_i - a e_j - (q - 2 a b) e_N)/N,    e the noises, and twice b e_i where i = j.

        Nothing is shown where N is less than 20 deviations of its noise.
        """
        c = len(self.columns)
        first, second = np.triu_indices(c)
        count = sums[..., :1]
        known = count > self.least_count(deviations)
        divisor = np.where(known, count, np.nan)
        means, of_products = sums[..., 1 : c + 1] / divisor, sums[..., c + 1 :] / divisor
        a, b = means[..., first], means[..., second]
        # the largest covariance of columns within these ranges, and the largest variance
        largest = np.prod(middle_and_half(self.ranges)[1][np.stack([first, second])], axis=0)
        least = np.where(first == second, 0.0, -largest)
        value = np.clip(self.middle + of_products - a * b, least, largest)
        of_first, of_second = np.square(b * deviations[1 + first]), np.square(a * deviations[1 + second])
        of_columns = np.where(first == second, 4 * of_first, of_first + of_second)
        of_count = np.square((of_products - 2 * a * b) * deviations[0])
        std = np.sqrt(np.square(deviations[c + 1 :]) + of_columns + of_count) / divisor
        low, high = value - OF_95_PERCENT * std, value + OF_95_PERCENT * std
        return value, std, np.clip(low, least, largest), np.clip(high, least, largest)


Estimates = tuple[
    Float[Array, "*batch e"], Float[Array, "*batch e"], Float[Array, "*batch e"], Float[Array, "*batch e"]
]


def means_of(
    sums: Float[Array, "*batch e"],
    counts: Float[Array, "*batch f"],
    sum_std: Float[Array, " e"],
    count_std: Float[Array, " f"],
    ranges: Sequence[tuple[float, float]],
) -> Estimates:
    """Divide noisy sums of distances from the middle of a range by noisy counts.

    >>> found = means_of(np.array([-30.0]), np.array([20.0]), np.array([2.0]), np.array([1.0]), [(0.0, 80.0)])
    >>> [round(float(number[0]), 3) for number in found]
    [38.5, 0.125, 38.239, 38.732]
    """
    low, high = np.asarray(ranges, dtype=float).T
    middle, _ = middle_and_half(ranges)
    z = OF_95_PERCENT
    # no mean where the count is not above 1.96 deviations of its noise
    divisor = np.where(counts > z * count_std, counts, np.nan)
    value = np.clip(middle + sums / divisor, low, high)
    noise_std = np.hypot(sum_std, (value - middle) * count_std) / divisor
    # the roots of (m - middle)^2 (N^2 - z^2 t^2) - 2 (m - middle) S N + S^2 - z^2 s^2
    leading = np.square(divisor) - np.square(z * count_std)
    root = z * np.sqrt(np.square(sums * count_std) + np.square(sum_std) * leading)
    lower, upper = (middle + (sums * divisor + sign * root) / leading for sign in (-1, 1))
    # where nothing of the exact interval is inside of the range, both ends are the nearer end
    return value, noise_std, np.clip(lower, low, high), np.clip(upper, low, high)


def with_counts(
    labels: Sequence[str],
    means: Estimates,
    of_counts: Sequence[str],
    counts: Float[Array, "*batch f"],
    count_std: Float[Array, " f"],
) -> Finished:
    """Put counts behind the numbers that were divided by them, as whole numbers with whole ends of their interval."""
    whole = np.rint(counts)
    std = np.broadcast_to(np.sqrt(np.square(count_std) + np.where(count_std > 0, ROUNDING, 0.0)), counts.shape)
    ends = np.floor(whole - OF_95_PERCENT * std), np.ceil(whole + OF_95_PERCENT * std)
    joined = (np.concatenate(pair, axis=-1) for pair in zip(means, (whole, std, *ends), strict=True))
    return Finished([*labels, *of_counts], *joined, n_counts=len(of_counts))


def middle_and_half(ranges: Sequence[tuple[float, float]]) -> tuple[Float[Array, " c"], Float[Array, " c"]]:
    """Return the middle of each range, and half of its width."""
    low, high = np.asarray(ranges, dtype=float).T
    return (low + high) / 2, (high - low) / 2


def with_missing(x: Any, columns: Sequence[str]) -> Float[Array, "N c"]:
    """Return columns of numbers, NaN for what is missing."""
    names = columns_of(x)
    places = [names.index(name) for name in columns]
    return np.asarray(x[:, places] if isinstance(x, np.ndarray) else x.iloc[:, places], dtype=float)
