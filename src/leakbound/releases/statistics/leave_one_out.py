"""Statistics of a data set after the swap of one record for another, without a fit of their own.

Covariances, least squares and quantiles of D - x + x' follow from those of D and the two records: a swap takes O(d^2)
operations, a fit O(n d^2). So a round of matched swaps, one pair for every record, costs little more than one fit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from leakbound.core.checks import same_length
from leakbound.core.types import Points
from leakbound.releases.statistics.algorithms import LeastSquares, Quantiles, design
from leakbound.releases.statistics.features import numbers, products
from leakbound.releases.statistics.standard_columns import StandardColumns
from leakbound.releases.statistics.statistic import Covariance, Fit, Statistic
from leakbound.releases.statistics.units import Block, Units

Array = np.ndarray
_Rows = Float[Array, "b c"]  # records that leave, or enter
_After = Callable[[_Rows, _Rows], tuple[Float[Array, "b d"], Bool[Array, " b"]]]
_NUMBERS = 2**20  # outputs that are computed at once
_REFITTED = 2**22  # membership values of data sets that are fitted at once
_LARGEST = 1e300  # beyond it a sum may overflow in another order: a fit decides
_ROUGHEST = 1e-5  # squared inverse condition number of the scaled columns: the error is 2^-53 over it


def swapped(
    statistic: Statistic,
    points: Points,
    inside: Bool[Array, " N"],
    leaving: Int[Array, " s"],
    entering: Int[Array, " s"],
) -> Float[Array, "s d"] | None:
    """Compute a statistic of the data sets D - x + x', one for each pair (x, x').

    With z = x - mean(D), z' = x' - mean(D) and |D| = k,

    * the covariance is ``cov(D) + (z' z'^T - z z^T)/k - (z' - z)(z' - z)^T/k^2``;
    * least squares change by the formula of Sherman, Morrison & Woodbury: in columns that are orthonormal on D, with
      rows a of x and b of x' (the intercept is one column) and their residuals r and r' on D, the coefficients change
      by ``(I - a a^T + b b^T)^-1 (b r' - a r)``, where the inverse only needs a 2 x 2 system;
    * the j-th of the sorted values without x, t, is the j-th or the next one of D; with x' it is
      ``min(max(x', t_(j-1)), t_j)``.

    A fit is made where the formula would lose digits: where the squared inverse condition number of the centred and
    scaled columns is below 1e-5, before or after the swap; where x' outweighs all of D as much; and for outputs beyond
    1e300. It fails, and its row is NaN, where the columns after the swap are linearly dependent.

    >>> from leakbound.releases.statistics.statistic import named
    >>> points, inside = Points(np.array([[1.0], [2.0], [6.0], [9.0]])), np.array([True, True, True, False])
    >>> swapped(named("covariance"), points, inside, np.array([0, 2]), np.array([3, 3])).round(9).tolist()
    [[8.222222222], [12.666666667]]
    >>> swapped(named("quantiles", probabilities=(0.5,)), points, inside, np.array([0, 2]), np.array([3, 3])).tolist()
    [[6.0], [2.0]]
    """
    # Quantiles equal those of a fit bit by bit. Others err by less than 1e-9 of the spread of the records of D and x':
    # for a covariance s_i s_j, s the standard deviations; for a coefficient s_y/s_j, for the intercept
    # s_y + |m_y| + sum_j |m_j| s_y/s_j, m the means.
    table = records_of(statistic, points)
    if table is None:
        return None
    same_length(leaving=leaving, entering=entering)
    if not inside[leaving].all() or inside[entering].any():
        raise ValueError("a swap takes a record of D out and one from outside in; got others")
    outputs = np.empty((len(leaving), len(statistic.labels(points))))
    size = max(1, _NUMBERS // outputs.shape[1])
    with np.errstate(all="ignore"):  # overflows are detected below, and fitted
        after = _after(statistic, table[inside])
        for start in range(0, len(outputs), size):
            out, into = leaving[start : start + size], entering[start : start + size]
            accurate = np.zeros(len(out), dtype=bool)
            if after is not None:
                outputs[start : start + size], accurate = after(table[out], table[into])
                accurate &= (np.abs(outputs[start : start + size]) < _LARGEST).all(axis=1)
            to_fit = np.flatnonzero(~accurate)
            outputs[start + to_fit] = _fit_each(statistic, points, inside, out[to_fit], into[to_fit])
    return outputs


def records_of(statistic: Statistic, points: Points) -> Float[Array, "N c"] | None:
    """Return the numbers of each record that a statistic uses; None if `swapped` does not apply to it."""
    match statistic:
        case Covariance() | Fit(algorithm=Quantiles()):
            return numbers(points.x)
        case Fit(algorithm=LeastSquares()):
            return numbers(np.column_stack(design(points)))
        case _:
            return None


def exact(statistic: Statistic) -> bool:
    """Tell whether `swapped` equals a fit bit by bit: for quantiles, which depend on order statistics alone."""
    return isinstance(statistic, Fit) and isinstance(statistic.algorithm, Quantiles)


def _after(statistic: Statistic, rows: Float[Array, "k c"]) -> _After | None:
    """Return a function that computes the statistic after swaps; None if each swap needs a fit."""
    if isinstance(statistic, Fit) and isinstance(statistic.algorithm, Quantiles):
        return _OrderStatistics.of(rows, statistic.algorithm.probabilities).after
    if isinstance(statistic, Covariance):
        return _Moments.of(rows).after
    solution = Solution.of(rows)
    return None if solution is None else solution.after


@dataclass(frozen=True, eq=False)
class _OrderStatistics:
    """The values below, at and above two places of the sorted columns, for each quantile."""

    near: Float[Array, "3 two q c"]
    weight: Float[Array, "q c"]

    @classmethod
    def of(cls, rows: Float[Array, "k c"], probabilities: tuple[float, ...]) -> _OrderStatistics:
        k = len(rows)
        place = (k - 1) * np.array(probabilities)
        first = np.minimum(np.floor(place), k - 1).astype(int)
        places = np.array([first, np.minimum(first + 1, k - 1)])
        near = np.clip(places + np.array([-1, 0, 1])[:, None, None], 0, k - 1)
        values = np.partition(rows, np.unique(near), axis=0)[near]
        values[0, places == 0] = -np.inf
        values[2, places == k - 1] = np.inf
        return cls(values, np.broadcast_to((place - first)[:, None], values.shape[2:]))

    def after(self, leaving: _Rows, entering: _Rows) -> tuple[Float[Array, "b d"], Bool[Array, " b"]]:
        below, at, above = self.near[..., None, :, :]
        out, into = leaving[None, :, None], entering[None, :, None]
        upper = np.where(at < out, at, above)  # the first of equal values leaves: later ones move up
        lower = np.where(below < out, below, at)
        low, high = np.minimum(np.maximum(into, lower), upper)
        t, gap = self.weight, high - low
        quantiles = np.where(t < 0.5, low + gap * t, high - gap * (1 - t))  # rounded as in numpy.quantile
        return quantiles.reshape(len(leaving), -1), np.ones(len(leaving), dtype=bool)


@dataclass(frozen=True, eq=False)
class _Moments:
    """Size, mean and covariance; the mean is ``centre + rest``, its rounded value and the remainder."""

    k: int
    centre: Float[Array, " c"]
    rest: Float[Array, " c"]
    covariance: Float[Array, " d"]

    @classmethod
    def of(cls, rows: Float[Array, "k c"]) -> _Moments:
        centre = rows.mean(axis=0)
        centred = rows - centre
        rest = centred.mean(axis=0)
        covariance = centred.T @ centred / len(rows) - np.outer(rest, rest)
        return cls(len(rows), centre, rest, covariance[np.triu_indices(len(rest))])

    def after(self, leaving: _Rows, entering: _Rows) -> tuple[Float[Array, "b d"], Bool[Array, " b"]]:
        out, into = leaving - self.centre - self.rest, entering - self.centre - self.rest
        change = (products(into) - products(out)) / self.k - products(into - out) / self.k**2
        return self.covariance + change, np.ones(len(leaving), dtype=bool)


@dataclass(frozen=True, eq=False)
class Solution:
    """Least squares in columns that are centred and orthonormal on D; the intercept is a column ``1/sqrt(k)``.

    Made by `Solution.of`.
    """

    k: int
    columns: StandardColumns
    response_mean: tuple[float, float]  # its rounded value, and the remainder
    whiten: Float[Array, "p p"]  # from standardised columns to orthonormal ones
    slopes: Float[Array, " p"]  # of the orthonormal columns
    roughest: float  # least eigenvalue of I - a a^T + b b^T, or of its inverse, with which no digits are lost

    @classmethod
    def of(cls, rows: Float[Array, "k c"]) -> Solution | None:
        """Solve least squares; None if columns are dependent, or nearly."""
        columns = StandardColumns.of(rows[:, :-1])
        if columns.are_dependent:
            return None
        triangle = np.linalg.qr(columns.values, mode="r")
        _, singular, axes = np.linalg.svd(triangle)
        roughest = _ROUGHEST * float(singular[0] / singular[-1]) ** 2 if len(singular) else _ROUGHEST
        if not roughest < 1:
            return None
        whiten = axes.T / singular
        x = columns.values @ whiten
        centre = float(rows[:, -1].mean())
        rest = float((rows[:, -1] - centre).mean())  # the rounding error of the mean
        y = rows[:, -1] - centre - rest
        slopes = x.T @ y
        slopes = slopes + x.T @ (y - x @ slopes)  # refinement: the residual of the normal equations
        return cls(len(rows), columns, (centre, rest), whiten, slopes, roughest)

    def after(self, leaving: _Rows, entering: _Rows) -> tuple[Float[Array, "b d"], Bool[Array, " b"]]:
        """Compute the coefficients after each swap of a record of D for another, and whether no digits are lost."""
        a, r_a = self._orthonormal(leaving)
        b, r_b = self._orthonormal(entering)
        aa, ab, bb = ((u * v).sum(axis=1) for u, v in ((a, a), (a, b), (b, b)))
        determinant = (1 - aa) * (1 + bb) + ab**2
        # The 2 x 2 system: the change is a combination of a and b.
        weight_a = (ab * r_b - (1 + bb) * r_a) / determinant
        weight_b = (ab * r_a + (1 - aa) * r_b) / determinant
        change = a * weight_a[:, None] + b * weight_b[:, None]
        # The smallest eigenvalue of I - a a^T + b b^T
        least = 2 * determinant / (2 - aa + bb + np.sqrt(np.maximum((aa + bb) ** 2 - 4 * ab**2, 0)))
        well_conditioned = (least > self.roughest) & ((1 + bb) * self.roughest < 1)  # neither record outweighs D
        return self._of_columns(change), well_conditioned

    @property
    def of_all(self) -> Float[Array, " p1"]:
        """The coefficients of all of D, the intercept first."""
        return self._of_columns(np.zeros((1, len(self.slopes) + 1)))[0]

    def without(self, leaving: _Rows, block: Block) -> tuple[Float[Array, "m d"], Bool[Array, " m"]]:
        """Compute the coefficients of D without each unit, and whether no digits are lost."""
        a, residual = self._orthonormal(leaving)
        if block.alone:
            left = 1 - np.square(a).sum(axis=1)  # the smallest eigenvalue of I - a a^T
            change = -a * (residual / left)[:, None]
        else:
            e = a.shape[1]
            matrices = np.eye(e) - block.sums((a[:, :, None] * a[:, None, :]).reshape(-1, e * e)).reshape(-1, e, e)
            left = np.linalg.eigvalsh(matrices)[:, 0]
            matrices[left <= self.roughest] = np.eye(e)  # a fit is made
            change = -np.linalg.solve(matrices, block.sums(a * residual[:, None])[:, :, None])[:, :, 0]
        return self._of_columns(change), left > self.roughest

    def _of_columns(self, change: Float[Array, "b e"]) -> Float[Array, "b d"]:
        """Return the coefficients of the raw columns after a change of those of the orthonormal ones."""
        centre, rest = self.response_mean
        slopes = (self.slopes + change[:, 1:]) @ self.whiten.T
        return self.columns.coefficients(centre + (rest + change[:, 0] / np.sqrt(self.k)), slopes)

    def _orthonormal(self, rows: _Rows) -> tuple[Float[Array, "b e"], Float[Array, " b"]]:
        """Return records in the orthonormal columns, that of the intercept first, and their residuals."""
        centre, rest = self.response_mean
        x = self.columns.of_rows(rows[:, :-1]) @ self.whiten
        residual = rows[:, -1] - centre - rest - x @ self.slopes
        return np.column_stack([np.full(len(x), 1 / np.sqrt(self.k)), x]), residual


def _fit_each(
    statistic: Statistic,
    points: Points,
    inside: Bool[Array, " N"],
    leaving: Int[Array, " s"],
    entering: Int[Array, " s"],
) -> Float[Array, "s d"]:
    """Compute the statistic itself on each of the swapped data sets."""
    outputs = np.empty((len(leaving), len(statistic.labels(points))))
    size = max(1, _REFITTED // len(inside))
    for start in range(0, len(outputs), size):
        out, into = leaving[start : start + size], entering[start : start + size]
        member, row = np.repeat(inside[None], len(out), axis=0), np.arange(len(out))
        member[row, out], member[row, into] = False, True
        outputs[start : start + size] = statistic.observe(points, member, np.zeros(len(out), dtype=int))["output"]
    return outputs


def fit_without(statistic: Statistic, points: Points, left_out: Int[Array, " s"], units: Units) -> Float[Array, "s d"]:
    """Compute the statistic itself without each of these units."""
    outputs = np.empty((len(left_out), len(statistic.labels(points))))
    unit = units.of_row
    size = max(1, _REFITTED // len(points))
    for start in range(0, len(outputs), size):
        member = unit != left_out[start : start + size, None]
        outputs[start : start + size] = statistic.observe(points, member, np.zeros(len(member), dtype=int))["output"]
    return outputs
