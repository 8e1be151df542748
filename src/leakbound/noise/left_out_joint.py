"""Several releases of one secret left-out record: what they tell together, and what room later ones have.

The releases of a ledger side by side are one table: the leave-one-out values of each, multiplied by ``S^(-1/2)/s`` of
its Gaussian noise ("whitened"). Squared Euclidean distances of its rows are ``S_xj = sum over releases t of mu_t^2``,
``mu_t`` the distance of the values without x and without j in units of the noise of release t. With

    F(u) = 2 Phi(u/2) - 1,

declared releases tell record x with a total variation of at most ``mean over j != x of F(sqrt(S_xj))``. A release that
is chosen after an output is in no such table. It has the *reserve* R: as long as the later releases have distances of
at most R, for every pair of records, all releases together tell x with at most ``mean over j != x of
F(sqrt(S_xj + R^2))``, however the later ones were chosen from what came before. The limit must be kept pair by pair;
one on the mean over pairs can be exceeded by a choice of queries.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from jaxtyping import Float, Num
from numpy.typing import ArrayLike
from scipy.special import erf, ndtri

from leakbound.core.checks import gain_over_prior, non_negative
from leakbound.core.numerics import bisect
from leakbound.core.repeated_rows import RepeatedRows, rows_of
from leakbound.noise.left_out import Distinct, LeftOut, WorstLeftOut

Array = np.ndarray
LARGEST_VALUE = 1e140  # of a table: sums of squares of distances do not overflow
_FAR = 100.0  # where F is 1
_PRECISION = 1e-9  # relative, of a reserve
_NOTHING = 1e-12  # a reserve below it is of no use
_ROUNDING = 1e-12  # relative error of a bound that may stop a search
_BLOCK = 1 << 20  # numbers that are computed at once
_MOST_ROWS = 256  # rows of a block of distances
_MOST_DISTANCES = 100_000_000  # that are computed for one number; beyond it a larger bound takes their place


def joint_advantage(table: Num[Array, "n D"] | RepeatedRows, reserve: float = 0.0) -> WorstLeftOut:
    """Bound the total variation of the record that all releases together tell best.

    Records are visited in decreasing order of their distance from the mean. F(sqrt(t + R^2)) is concave in t, so the
    mean over pairs is at most its value at the mean of ``S_xj``, which is ``n/(n - 1) (||z_x - mean||^2 + mean of
    ||z_j - mean||^2)`` and needs no pairs; the search ends where that is below the largest mean found.

    Parameters
    ----------
    table : array of shape (n, D), or RepeatedRows
        The whitened table, row i without record i; n >= 2. Without releases D = 0.
    reserve : float
        R >= 0, the largest distance that later releases may have for any pair of records, in units of their noises.

    Returns
    -------
    WorstLeftOut
        The largest of ``mean over j != x of F(sqrt(S_xj + R^2))``, and its record x. At even odds nobody is right
        about that record, or any other, more often than ``1/2 + advantage/2``. Where the search would need more than
        100,000,000 distances the advantage is a larger bound.

    Raises
    ------
    ValueError
        For fewer than two records, values that are not finite or above 1e140, or a reserve that is not finite or
        negative.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.noise import joint_advantage
    >>> wages = np.array([18.0, 20.0, 22.0, 25.0, 60.0])
    >>> means, largest = (wages.sum() - wages) / 4, np.array([60.0, 60.0, 60.0, 60.0, 25.0])
    >>> table = np.column_stack([means / 40, largest / 150])
    >>> joint_advantage(table).record, round(0.5 + joint_advantage(table).advantage / 2, 4)
    (4, 0.5668)
    >>> round(0.5 + joint_advantage(table, reserve=0.5).advantage / 2, 4)
    0.6184
    """
    return _Rows(table).worst(min(non_negative("reserve", reserve), _FAR))


def largest_reserve(table: Num[Array, "n D"] | RepeatedRows | LeftOut, eta: float) -> float:
    """Return the largest reserve with which the joint promise is kept.

    Parameters
    ----------
    table : array of shape (n, D), RepeatedRows, or LeftOut
        The whitened table of all releases that were declared beforehand, as in `joint_advantage`.
    eta : float
        Accuracy above 1/2 that all releases together may allow, > 0 and < 1/2.

    Returns
    -------
    float
        R, at most 1e-9 (relative) or 1e-12 below the largest one with ``joint_advantage(table, R).advantage <= 2 eta``;
        0 if the declared releases leave nothing, or need more. Without declared releases it is ``2 Phi^-1(1/2 +
        eta)``.

    Raises
    ------
    ValueError
        As in `joint_advantage`; for an eta out of its range.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.noise import joint_advantage, largest_reserve
    >>> table = np.array([[0.1], [0.2], [0.3], [0.7]])
    >>> reserve = largest_reserve(table, eta=0.1)
    >>> round(reserve, 4), bool(joint_advantage(table, reserve).advantage <= 0.2)
    (0.0835, True)
    """
    limit = 2 * gain_over_prior(eta, 0.5)
    if isinstance(table, LeftOut) and table.is_told_by_pairs(limit):
        return 0.0
    return _Rows(table).reserve(limit)


def largest_distance(table: Num[Array, "n D"] | RepeatedRows) -> float:
    """Return the largest distance between two rows.

    Rows are visited in decreasing order of their distance r from the mean. Two of them are at most ``r_x + r_j``
    apart, so the search looks only at pairs that may be farther apart than the farthest found, and ends where there
    are none.

    Parameters
    ----------
    table : array of shape (n, D), or RepeatedRows
        As in `joint_advantage`.

    Returns
    -------
    float
        Where the search would need more than 100,000,000 distances, an upper bound, at most twice the largest distance
        from the mean and so at most twice the distance itself.

    Raises
    ------
    ValueError
        As in `joint_advantage`.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.noise import largest_distance
    >>> largest_distance(np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]]))
    5.0
    """
    return _Rows(table).diameter()


class _Rows:
    """The distinct rows of a whitened table around their mean, farthest first."""

    def __init__(self, of: Num[Array, "n D"] | RepeatedRows | LeftOut) -> None:
        given = of.values if isinstance(of, LeftOut) else of
        table = given if isinstance(given, RepeatedRows) else np.asarray(given, dtype=float)
        if table.ndim != 2 or len(table) < 2:
            raise ValueError(f"a whitened table must have shape (n, D), n >= 2; got {table.shape}")
        values = rows_of(table)
        if not (np.abs(values) <= LARGEST_VALUE).all():
            raise ValueError(f"a whitened table must be finite, and no value above {LARGEST_VALUE:g}")
        self.n = len(table)
        distinct = of.distinct if isinstance(of, LeftOut) else Distinct.of(table)
        # Differences to the first row lose no digits of values that are far from zero.
        rows = distinct.rows - distinct.rows[:1]
        rows -= distinct.count @ rows / self.n
        rows -= distinct.count @ rows / self.n  # what the first mean lost by rounding
        radius = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        order = np.argsort(-radius, kind="stable")
        self.rows, self.radius, self.count = rows[order], radius[order], distinct.count[order]
        self.order, self.which = order, distinct.which
        self.mean_square = float(self.count @ np.square(self.radius)) / self.n

    def worst(self, reserve: float) -> WorstLeftOut:
        """Find the largest mean over pairs, as `joint_advantage` says."""
        best, record = 0.0, 0
        for place in range(len(self.rows)):
            ceiling = self._ceiling(place, reserve)
            if ceiling * (1 + _ROUNDING) <= best or best >= 1 - _ROUNDING:
                break
            too_many = (place + 1) * len(self.rows) > _MOST_DISTANCES
            advantage = ceiling if too_many else self._mean(self._squares_from(place), reserve)
            if advantage > best:
                best, record = advantage, int(np.flatnonzero(self.which == self.order[place])[0])
            if too_many:  # the ceilings of all others are lower
                break
        return WorstLeftOut(min(best, 1.0), record)

    def reserve(self, limit: float) -> float:
        """Find the largest reserve that keeps the mean over pairs of every row below a limit.

        Rows are visited as by `worst`, with the least of the reserves of those that came before; one that keeps the
        limit with it needs no reserve of its own.
        """
        least = _largest(lambda reserve: float(_told(reserve**2)) <= limit, float(2 * ndtri(0.5 + limit / 2)))
        for place in range(len(self.rows)):
            if least == 0 or self._ceiling(place, least) * (1 + _ROUNDING) <= limit:
                break
            if (place + 1) * len(self.rows) > _MOST_DISTANCES:
                least = _largest(partial(self._keeps_by_ceiling, place, limit), least)
                break
            squares = self._squares_from(place)
            if self._mean(squares, least) > limit:
                least = _largest(partial(self._keeps, squares, limit), least)
        return least

    def _keeps(self, squares: Float[Array, " m"], limit: float, reserve: float) -> bool:
        return self._mean(squares, reserve) <= limit

    def _keeps_by_ceiling(self, place: int, limit: float, reserve: float) -> bool:
        return self._ceiling(place, reserve) * (1 + _ROUNDING) <= limit

    def _ceiling(self, place: int, reserve: float) -> float:
        """Bound the mean over pairs of a row without its pairs; it falls from row to row."""
        squares = self.n / (self.n - 1) * (self.radius[place] ** 2 + self.mean_square)
        return float(_told(squares + reserve**2))

    def _mean(self, squares: Float[Array, " m"], reserve: float) -> float:
        """Compute the mean over pairs of a row: all rows but itself, its equals included."""
        told = self.count @ _told(squares + reserve**2) - _told(reserve**2)
        return float(told) / (self.n - 1)

    def _squares_from(self, place: int) -> Float[Array, " m"]:
        """Compute the squared distances of all rows from one."""
        squares = np.empty(len(self.rows))
        size = max(1, _BLOCK // max(1, self.rows.shape[1]))
        for start in range(0, len(self.rows), size):
            differences = self.rows[start : start + size] - self.rows[place]
            squares[start : start + size] = np.square(differences).sum(axis=1)
        return squares

    def diameter(self) -> float:
        """Find the largest distance, as `largest_distance` says."""
        # the row farthest from the first one, and the row farthest from that, are nearly always the pair
        from_first = self._squares_from(0)
        across = self._squares_from(int(from_first.argmax()))
        best = math.sqrt(max(from_first.max(), across.max()))
        n_distances, start = 2 * len(self.rows), 0
        while start + 1 < len(self.rows) and self.radius[start] + self.radius[start + 1] > best:
            # rows that may be farther from the first one of this block than the farthest pair found
            n_near = int(np.searchsorted(-self.radius, self.radius[start] - best, side="right"))
            end = min(start + max(1, min(_MOST_ROWS, _BLOCK // n_near)), len(self.rows))
            n_distances += (end - start) * (n_near - start)
            if n_distances > _MOST_DISTANCES:
                return float(self.radius[start] + self.radius[start + 1])
            best = max(best, self._largest_between(start, end, n_near))
            start = end
        return best

    def _largest_between(self, start: int, end: int, n_near: int) -> float:
        """Compute the largest distance between rows of a block and the rows from its start up to ``n_near``."""
        block, others = self.rows[start:end], self.rows[start:n_near]
        # a product loses digits of small distances alone, and these are none
        squares = np.square(self.radius[start:end, None]) + np.square(self.radius[start:n_near])
        squares -= 2 * (block @ others.T)
        return math.sqrt(max(float(squares.max()), 0.0))


def _told(squares: ArrayLike) -> Float[Array, "*shape"]:
    """Compute F of the roots of squared distances, ``2 Phi(u/2) - 1 = erf(u/sqrt(8))``."""
    return np.asarray(erf(np.sqrt(np.asarray(squares) / 8)))


def _largest(keeps: Callable[[float], bool], end: float) -> float:
    """Find the largest reserve that keeps a condition, below an end that does not; 0 if none does."""
    if keeps(end):  # but for rounding
        return end
    return bisect(keeps, 0.0, end, rtol=_PRECISION, atol=_NOTHING) if keeps(0.0) else 0.0
