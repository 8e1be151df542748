"""Standard errors of the coefficients of least squares, which can be released beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Bool, Float

from leakbound.core.types import Points
from leakbound.releases.statistics.algorithms import design, explaining
from leakbound.releases.statistics.features import numbers
from leakbound.releases.statistics.standard_columns import StandardColumns
from leakbound.releases.statistics.units import Block

Array = np.ndarray
_ROUGHEST = 1e-5  # part of a direction, or of the squared residuals, that stays without a unit: no digits are lost


@final
@dataclass(frozen=True)
class StandardErrors:
    """Standard errors of least squares: that of the intercept, then one for each column.

    They are the classical ones, for errors of equal variance: the square roots of the diagonal of ``s^2 (X^T X)^-1``,
    where ``s^2`` is the sum of the squared residuals over the number of records less the number of coefficients. The
    response is the label, or the last column if there is no label.

    >>> x = np.array([[0.0, 1.0], [1.0, 3.0], [2.0, 4.0], [3.0, 7.0]])
    >>> StandardErrors()(Points(x), np.random.default_rng(0)).round(4).tolist()
    [0.495, 0.2646]
    """

    def labels(self, points: Points) -> list[str]:
        """Name the coefficients, as ``"standard error of age"``."""
        return [f"standard error of {name}" for name in ["intercept", *explaining(points)]]

    def __call__(self, points: Points, rng: np.random.Generator) -> Float[Array, " d"]:
        """Compute the standard errors."""
        return LeftOutErrors.solved(points).of_all


@dataclass(frozen=True, eq=False)
class LeftOutErrors:
    """Least squares of all N records in orthonormal columns, from which the standard errors without a unit follow.

    Made by `LeftOutErrors.of`.
    """

    rows: Float[Array, "N p"]
    residual: Float[Array, " N"]
    to_coefficients: Float[Array, "p p"]
    roughest: float
    centre: Float[Array, " c"]
    spread: float

    @classmethod
    def of(cls, points: Points) -> LeftOutErrors | None:
        """Solve least squares; None if the columns are dependent or nearly so, or too many."""
        try:
            solution = cls.solved(points)
        except ValueError:
            return None
        return solution if solution.roughest < 1 else None

    @classmethod
    def solved(cls, points: Points) -> LeftOutErrors:
        """Solve least squares in standardised columns."""
        x, y = design(points)
        columns, response = StandardColumns.of(x), StandardColumns.of(numbers(y[:, None]))
        n, n_columns = x.shape
        if n <= n_columns + 1:
            raise ValueError(f"{n:,} records do not determine {n_columns + 1:,} coefficients and their errors")
        columns.check()
        basis, triangle = np.linalg.qr(columns.values)
        singular = np.linalg.svd(triangle, compute_uv=False)
        rows = np.column_stack([np.full(n, 1 / np.sqrt(n)), basis])
        residual = response.values[:, 0]
        for _ in range(2):  # the second time takes out what the first one lost by rounding
            residual = residual - rows @ (rows.T @ residual)
        slopes = np.linalg.inv(triangle) / columns.width[:, None]
        centre = columns.centre + columns.rest
        intercept = np.append(1 / np.sqrt(n), -centre @ slopes)
        to_coefficients = np.vstack([intercept, np.column_stack([np.zeros(n_columns), slopes])])
        spread = float(response.width[0])
        roughest = _ROUGHEST * float(singular[0] / singular[-1]) ** 2
        return cls(rows, spread * residual, to_coefficients, roughest, centre, spread)

    @property
    def of_all(self) -> Float[Array, " p"]:
        """The standard errors of all records."""
        n, p = self.rows.shape
        deviation = np.sqrt(np.square(self.residual).sum() / (n - p))
        return deviation * np.linalg.norm(self.to_coefficients, axis=1)

    def without(self, block: Block) -> tuple[Float[Array, "m p"], Float[Array, "m p"], Bool[Array, " m"]]:
        """Compute the standard errors without each unit of a block.

        With A the rows of a unit in orthonormal columns, r their residuals and ``M = I - A^T A``, the squared residuals
        become ``RSS - r^T r - (A^T r)^T M^-1 A^T r``, and the variances of the coefficients over s^2 the diagonal of
        ``T M^-1 T^T``, T the change of columns.
        """
        n, p = self.rows.shape
        rows, residual = self.rows[block.rows], self.residual[block.rows]
        removed = block.sums(rows * residual[:, None])
        if block.alone:
            left = 1 - np.square(rows).sum(axis=1)
            image = rows @ self.to_coefficients.T
            variance = np.square(self.to_coefficients).sum(axis=1) + np.square(image) / left[:, None]
            of_removed = np.square(residual) * (1 - left) / left
        else:
            outer = (rows[:, :, None] * rows[:, None, :]).reshape(-1, p * p)
            matrices = np.eye(p) - block.sums(outer).reshape(-1, p, p)
            left = np.linalg.eigvalsh(matrices)[:, 0]
            matrices[left <= self.roughest] = np.eye(p)  # a fit is made
            solved = np.linalg.solve(matrices, np.broadcast_to(self.to_coefficients.T, matrices.shape))
            variance = np.einsum("jp,mpj->mj", self.to_coefficients, solved)
            of_removed = (removed * np.linalg.solve(matrices, removed[:, :, None])[:, :, 0]).sum(axis=1)
        all_squares = float(np.square(self.residual).sum())
        squares = all_squares - block.sums(np.square(residual)[:, None])[:, 0] - of_removed
        free = n - block.count - p
        accurate = (left > self.roughest) & (squares > _ROUGHEST * all_squares) & (free > 0)
        per_deviation = np.sqrt(variance)
        values = np.sqrt(squares / free)[:, None] * per_deviation
        size = values * (all_squares / squares)[:, None] + self.spread * per_deviation
        size /= left[:, None]  # rounding counts more the less of a direction is left
        # the intercept is the sum of what the slopes add at the mean of the columns
        size[:, 0] += size[:, 1:] @ np.abs(self.centre)
        return values, size, accurate
