"""Explanatory columns of a regression in units of their own, where it is decided whether they are dependent.

Numbers of different units (a percentage, a time in milliseconds) have no common size below which one of them is
rounding: so every column is centred and divided by its deviation before anything is solved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
from jaxtyping import Float
from scipy.linalg import qr, solve_triangular

Array = np.ndarray
SMALLEST = 1e-6  # of a coefficient of a dependence, where the columns have length 1


@dataclass(frozen=True, eq=False)
class StandardColumns:
    """Columns as ``(x - centre - rest)/width``."""

    values: Float[Array, "n p"]
    centre: Float[Array, " p"]
    rest: Float[Array, " p"]
    width: Float[Array, " p"]
    # The largest root of a column's mean square over its mean squared deviation: by so much more than its deviation the
    # rounding errors of a column count.
    roundest: float

    @classmethod
    def of(cls, x: Float[Array, "n p"]) -> StandardColumns:
        """Centre and scale columns; one whose deviations are rounding errors of its values has none."""
        centre = x.mean(axis=0)
        centred = x - centre
        rest = centred.mean(axis=0)  # the rounding error of the mean
        centred -= rest
        largest = np.abs(centred).max(axis=0, initial=0.0)
        constant = ~(largest > _tolerance(x) * np.abs(x).max(axis=0, initial=0.0))
        largest[constant] = 1.0
        centred /= largest  # no square overflows, none is lost
        centred[:, constant] = 0.0
        root = np.sqrt(np.square(centred).mean(axis=0))
        root[constant] = 1.0
        centred /= root
        width = largest * root
        size = np.abs(centre + rest)[~constant] / width[~constant]
        return cls(centred, centre, rest, width, float(np.hypot(1.0, size.max(initial=0.0))))

    @cached_property
    def dependence(self) -> Float[Array, " p"] | None:
        """Coefficients with which the columns of `values` add up to zero; None if they are independent."""
        n_columns = self.values.shape[1]
        constant = ~self.values.any(axis=0)
        if constant.any():
            return (np.arange(n_columns) == constant.argmax()).astype(float)
        triangle, order = cast("tuple[Array, Array]", qr(self.values, mode="r", pivoting=True))
        triangle = triangle[:n_columns] / math.sqrt(len(self.values))  # of columns of length 1
        # its diagonal decreases
        is_dependent = np.abs(np.diag(triangle)) <= _tolerance(self.values) * self.roundest
        is_dependent = np.append(is_dependent, [True] * (n_columns - len(is_dependent)))
        if not is_dependent.any():
            return None
        rank = int(is_dependent.argmax())
        of_others = solve_triangular(triangle[:rank, :rank], triangle[:rank, rank])
        found = np.zeros(n_columns)
        found[order[:rank]] = np.where(np.abs(of_others) > SMALLEST, -of_others, 0)
        found[order[rank]] = 1
        return found

    def check(self) -> None:
        """Refuse dependent columns, whose coefficients are not determined."""
        if self.are_dependent:
            raise ValueError("the columns are linearly dependent, so that their coefficients are not determined")

    @property
    def are_dependent(self) -> bool:
        """Whether no or several combinations of the columns fit best: too few records, or a dependence."""
        n_records, n_columns = self.values.shape
        return n_records <= n_columns or self.dependence is not None

    def of_rows(self, x: Float[Array, "b p"]) -> Float[Array, "b p"]:
        """Move and scale other records as these."""
        return (x - self.centre - self.rest) / self.width

    def coefficients(self, intercept: Float[Array, "*b"], slopes: Float[Array, "*b p"]) -> Float[Array, "*b d"]:
        """Return the coefficients of the columns as they were given, the intercept first."""
        slopes = slopes / self.width
        intercept = intercept - slopes @ self.centre - slopes @ self.rest
        return np.concatenate([intercept[..., None], slopes], axis=-1)


def _tolerance(x: Float[Array, "n p"]) -> float:
    """Return the relative error of a column's length that rounding can make."""
    n_records, n_columns = x.shape
    return 8 * max(math.sqrt(n_records), n_columns) * float(np.finfo(float).eps)
