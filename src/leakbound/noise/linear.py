"""Swap of one record for sums and means of features: the distribution of the shift without a single fit.

x leaves D and a record x' from outside comes in. Whatever the others are, a sum moves by ``f(x) - f(x')`` and a mean
by a k-th of it, with x' uniform on the other n - 1 records (proposition 12 of lowy2024 with Gaussian noise).

All pairs cost ``O(n^2 d)``. Of many records the outermost get their own row, and one row covers all others. Every
divergence of a shift grows with its length, so a row bounds each record for which, rank by rank, its lengths are not
below those of the record. For x at most R away from a centre c two such rows are known, and the lesser of the two is
taken at each rank:

* ``||x - x'|| <= R + ||x' - c||``, in any norm;
* in a Euclidean norm, Cantelli's inequality for the squared lengths of x, with mean m and variance v over x': a
  fraction ``(n-r)/(n-1)`` of them is at least the r-th smallest one, which is hence at most
  ``m + sqrt(v (r-1)/(n-r))``. Both m and v follow from the moments of the features, in ``O(n d^2)`` for all records.

For d = 1, neighbours in the sorted list share a row, with the largest distance between two bins.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from jaxtyping import Float, Int, Num

from leakbound.core.checks import count, one_of
from leakbound.core.lengths import p_norm
from leakbound.core.seeds import stream
from leakbound.noise.couplings import finite_features, subset_size
from leakbound.noise.norms import EUCLIDEAN, Lp, Mahalanobis
from leakbound.noise.shifts import Shifts

Array = np.ndarray
ALL_ROWS = 5_000  # up to so many different records each has its own row
_FEWEST_EXACT = 64
_MOST_LENGTHS = 250_000_000  # lengths that are evaluated for the exact rows,
_MOST_NUMBERS = 2_000_000_000  # their coordinates,
_MOST_VALUES = 4_000_000  # and the lengths that are kept
_BINS = 192  # rows for the inner records of a list of numbers
_COLUMNS = 8192  # records in a block of lengths, which then stays in the cache
_SAFE = 1 + 1e-9  # above what the arithmetic of the moments loses


def swap_linear(
    features: Num[Array, "n d"],
    k: int,
    statistic: Literal["mean", "sum"] = "mean",
    norm: Lp | Mahalanobis = EUCLIDEAN,
    n_values: int = 4096,
    n_exact: int | None = None,
) -> Shifts:
    """Compute the swap of one record for sums and means of features: exact, for every record, without a single fit.

    Source: lowy2024, section 4.

    Parameters
    ----------
    features : array of shape (n, d)
        f of every record of the whole data set, finite.
    k : int
        Records in D, from 1 to n - 1.
    statistic : {"mean", "sum"}
        Of the features of D.
    norm : Lp or Mahalanobis
        That of the noise.
    n_values : int
        Number of lengths that are kept for a row. Beyond, neighbours in the sorted list are raised to the longest of
        their group: still a bound, and a row costs n_values in memory instead of n - 1.
    n_exact : int, optional
        Number of different records with a row of their own, the farthest from the median. None: all of them up to
        5,000; of more, first 64, doubled until the mean length of the row for all others is below the largest of
        theirs, or until a limit of work is reached (2.5e8 lengths, 2e9 coordinates). The noise then is that of the
        worst record, or little more.

    Returns
    -------
    Shifts
        With a row for each record, row i that of record i, if n <= 5,000 or n_exact >= n: then `Shifts.records` is
        None. Otherwise equal records share a row, `Shifts.records` names the record of each row (the first of equal
        ones), and one row with -1 covers all others: none of them has a larger divergence or eta. For
        d = 1 the n_exact outermost (64 where None) have their own row, and the others share some 200, a bin each.

    Notes
    -----
    Time, for 500,000 records with up to 9 features: 3 seconds where some records are far out, 20 where all are about
    equally far from the median. In that case the row for all others stays the highest: points on a sphere get up to
    1.35 times the noise that the worst of them needs. Memory: some 300 MB in addition to the features.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.noise import swap_linear
    >>> data = np.array([[0.0], [1.0], [3.0], [7.0]])
    >>> swap_linear(data, k=2).values.mean(axis=1).round(4).tolist()
    [1.8333, 1.5, 1.5, 2.8333]
    >>> swap_linear(np.tile(data, (250_000, 1)), k=500_000).records.tolist()
    [0, 1, 2, 3]
    """
    return swap_rows(features, k, statistic, norm, n_values, n_exact)[0]


def swap_rows(
    features: Num[Array, "n d"],
    k: int,
    statistic: Literal["mean", "sum"],
    norm: Lp | Mahalanobis,
    n_values: int,
    n_exact: int | None = None,
) -> tuple[Shifts, Int[Array, " n"]]:
    """Compute `swap_linear`, and the row of each record."""
    z = _coordinates(features, k, statistic, norm)
    n, d = z.shape
    ends = np.unique(np.linspace(0, n - 1, min(count("n_values", n_values), n - 1) + 1).round().astype(int))
    if n_exact is not None:
        count("n_exact", n_exact)
    with np.errstate(over="ignore", invalid="ignore"):  # a difference that overflows is an infinite shift
        if (n_exact or ALL_ROWS) >= n:
            rows = _Rows(_own_rows(z, norm.order, ends), ends, None, np.arange(n))
        else:
            distinct = _Distinct(z, norm.order)
            most = n_exact or (ALL_ROWS if d > 1 else _FEWEST_EXACT)
            if most >= len(distinct.z):
                rows = distinct.all_rows(ends)
            elif d == 1:
                rows = _bins(distinct, n_exact or _FEWEST_EXACT, ends)
            else:
                rows = _outermost(distinct, n_exact, ends)
    weights = np.diff(rows.ends) / (n - 1)
    return Shifts(rows.values, "swap", d, norm, k / n, weights=weights, records=rows.records), rows.row_of


def average_linear(
    features: Num[Array, "n d"],
    k: int,
    statistic: Literal["mean", "sum"] = "mean",
    norm: Lp | Mahalanobis = EUCLIDEAN,
    n_pairs: int = 100_000,
    seed: int = 0,
) -> Shifts:
    """Sample the swap of a random record, for sums and means of many records.

    Parameters
    ----------
    features : array of shape (n, d)
        f of every record of the whole data set, finite.
    k : int
        Records in D, from 1 to n - 1.
    statistic : {"mean", "sum"}
        Of the features of D.
    norm : Lp or Mahalanobis
        That of the noise.
    n_pairs : int
        Number of independent pairs of a uniform x and a uniform other x'. The noise is about
        ``1.7/sqrt(n_pairs eta)`` (relative) more than from all pairs.
    seed : int
        Of the pairs.

    Returns
    -------
    Shifts
        One sampled row with the promise "average": all bounds from it need a confidence. For up to 5,000 records
        ``swap_linear(...).average()`` has all pairs and needs none.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.noise import average_linear, calibrate
    >>> shifts = average_linear(np.arange(100_000.0)[:, None], k=50_000)
    >>> shifts.values.shape, round(calibrate(shifts, 0.05, confidence=0.95).scale, 1)
    ((1, 100000), 2.7)
    """
    z = _coordinates(features, k, statistic, norm)
    n, d = z.shape
    rng = stream(seed, "calibrate", "average swap")
    x = rng.integers(n, size=count("n_pairs", n_pairs))
    other = rng.integers(n - 1, size=n_pairs)
    other += other >= x  # uniform among the n - 1 other records
    with np.errstate(over="ignore", invalid="ignore"):
        values = p_norm(z[x] - z[other], norm.order)[None]
    return Shifts(values, "average_swap", d, norm, k / n, exact=False, promise="average")


def average_row(shifts: Shifts, row_of: Int[Array, " n"], n_values: int = 4096) -> Shifts:
    """Join the rows to one for a random record; each row counts for the records that it covers."""
    n_records = np.bincount(row_of, minlength=len(shifts.values))
    weights = np.full(shifts.values.shape[1], 1 / shifts.values.shape[1]) if shifts.weights is None else shifts.weights
    order = np.argsort(shifts.values, axis=None)
    total = np.cumsum(np.outer(n_records / len(row_of), weights).ravel()[order])
    last = np.unique(np.searchsorted(total, total[-1] * np.linspace(0, 1, n_values + 1)[1:]))
    values, weights = shifts.values.ravel()[order[last]], np.diff(total[last], prepend=0) / total[-1]
    return Shifts(values[None], "swap", shifts.d, shifts.norm, shifts.prior, promise="average", weights=weights)


@dataclass(frozen=True, eq=False)
class _Rows:
    """Lengths in groups that end at these ranks, the record of each row, and the row of each record."""

    values: Float[Array, "R P"]
    ends: Int[Array, " E"]
    records: Int[Array, " R"] | None
    row_of: Int[Array, " n"]


class _Distinct:
    """The different records: their coordinates, how many records equal each of them, and the first of these."""

    def __init__(self, z: Float[Array, "n d"], order: float) -> None:
        self.all, self.order, self.n = z, order, len(z)
        self.z, self.first, inverse, self.counts = np.unique(
            z, axis=0, return_index=True, return_inverse=True, return_counts=True
        )
        self.inverse = inverse.ravel()  # the distinct record that each record equals

    def row_of(self, row: Int[Array, " m"]) -> Int[Array, " n"]:
        """Return the row of each record, from the row of each distinct one."""
        return row[self.inverse]

    def exact(self, chosen: Int[Array, " R"], ends: Int[Array, " E"]) -> Float[Array, "R P"]:
        """Compute the rows of some of them."""
        repeated = 2 * len(self.z) <= self.n  # otherwise sorting indices costs more than the repetitions
        z, counts = (self.z, self.counts) if repeated else (self.all, None)
        blocks = [_at_ranks(block, counts, ends[1:]) for block in _lengths(self.z[chosen], z, self.order)]
        return np.concatenate(blocks)

    def all_rows(self, ends: Int[Array, " E"]) -> _Rows:
        """Compute the rows of all of them; few need no groups, since all their lengths change at a few ranks."""
        m = len(self.z)
        if m * m < len(ends):
            sizes = [self.counts[np.argsort(row)] for row in np.concatenate([*_lengths(self.z, self.z, self.order)])]
            ends = np.union1d([0], np.cumsum(sizes, axis=1) - 1)
        everyone = np.arange(m)
        return _Rows(self.exact(everyone, ends), ends, self.first, self.row_of(everyone))

    @cached_property
    def squared(self) -> tuple[Float[Array, " m"], Float[Array, " m"], float]:
        """Mean and variance of the squared lengths of each record over the others, and their unit of length.

        With y from the mean, ``E ||x-y||^2 = |x|^2 + T`` and ``E ||x-y||^4 = |x|^4 + Q + 4 x^T C x + 2 |x|^2 T -
        4 x^T g`` with ``T = E|y|^2, Q = E|y|^4, C = E yy^T, g = E |y|^2 y``; x itself adds nothing to either.
        """
        x, fraction = self.z - self.all.mean(axis=0), self.counts / self.n
        unit = float(np.abs(x).max())
        x = x / unit
        a = np.square(x).sum(axis=1)
        T, Q, C, g = fraction @ a, fraction @ a**2, (x.T * fraction) @ x, (fraction * a) @ x
        spread = 4 * ((x @ C) * x).sum(axis=1)
        others = self.n / (self.n - 1)
        mean = others * (a + T)
        variance = others * (a**2 + Q + spread + 2 * a * T - 4 * (x @ g)) - mean**2
        rounding = 1e-12 * ((a + T) ** 2 + Q + spread)  # far above the error of the arithmetic
        return mean, np.maximum(variance, 0) + rounding, unit


def _coordinates(
    features: Num[Array, "n d"], k: int, statistic: Literal["mean", "sum"], norm: Lp | Mahalanobis
) -> Float[Array, "n d"]:
    """Compute what each record adds to the statistic, in coordinates where the norm is the plain p-norm."""
    features = finite_features(features)
    subset_size(k, len(features))
    one_of("statistic", statistic, ("mean", "sum"))
    with np.errstate(over="ignore", invalid="ignore"):
        return norm.standardise(features) / (k if statistic == "mean" else 1)


def _own_rows(z: Float[Array, "n d"], order: float, ends: Int[Array, " E"]) -> Float[Array, "n P"]:
    """Compute a row for each record; in the order of the other records, or in groups."""
    n, start = len(z), 0
    values = np.empty((n, len(ends) - 1))
    for block in _lengths(z, z, order):
        block_idx = np.arange(start, start + len(block))
        others = block[np.arange(n) != block_idx[:, None]].reshape(len(block_idx), n - 1)
        values[block_idx] = others if n - 1 == len(ends) - 1 else np.sort(others, axis=1)[:, ends[1:] - 1]
        start += len(block)
    return values


def _outermost(distinct: _Distinct, n_exact: int | None, ends: Int[Array, " E"]) -> _Rows:
    """Compute exact rows of the records farthest from the median, and a row for all others."""
    n, d, m = distinct.n, distinct.all.shape[1], len(distinct.z)
    # |f(x) - f(x')| <= |f(x) - c| + |c - f(x')| for any centre c: with the farthest of the remaining records on the
    # left, and all records in the order of their distance from c on the right, one row bounds them all.
    centre = np.median(distinct.all, axis=0)
    away = p_norm(distinct.z - centre, distinct.order)
    away = np.where(np.isnan(away), np.inf, away)  # a difference that overflowed
    inwards = np.argsort(-away, kind="stable")
    from_centre = _at_ranks(away[None], distinct.counts, ends[1:])[0]
    most = n_exact or max(
        _FEWEST_EXACT, min(_MOST_LENGTHS // n, _MOST_NUMBERS // (n * d), _MOST_VALUES // (len(ends) - 1))
    )
    weights = np.diff(ends) / (n - 1)
    n_rows, exact = 0, np.empty((0, len(ends) - 1))
    while True:
        more = inwards[n_rows : min(most, max(2 * n_rows, _FEWEST_EXACT), m - 1)]
        exact = np.concatenate([exact, distinct.exact(more, ends)])
        n_rows = len(exact)
        others = _others(distinct, inwards[n_rows:], away[inwards[n_rows]] + from_centre, ends)
        if n_rows >= min(most, m - 1) or (n_exact is None and others @ weights < (exact @ weights).max()):
            break
    row = np.full(m, n_rows)
    row[inwards[:n_rows]] = np.arange(n_rows)
    records = np.append(distinct.first[inwards[:n_rows]], -1)
    return _Rows(np.vstack([exact, others]), ends, records, distinct.row_of(row))


def _others(
    distinct: _Distinct, rest: Int[Array, " r"], by_triangle: Float[Array, " P"], ends: Int[Array, " E"]
) -> Float[Array, " P"]:
    """Compute the row of all others.

    The lengths from the centre include that of x itself. Without the least of them they are, rank by rank, not below
    those of the other records.
    """
    if distinct.order != 2:
        return by_triangle
    mean, variance, unit = distinct.squared
    above = np.sqrt(variance[rest].max() * ((ends[1:] - 1) / (distinct.n - ends[1:])))
    by_moments = _SAFE * unit * np.sqrt(mean[rest].max() + above)
    return np.fmin(by_triangle, by_moments)


def _bins(distinct: _Distinct, n_exact: int, ends: Int[Array, " E"]) -> _Rows:
    """Compute rows of the outermost numbers and of bins of the others: largest distances to finer bins of all."""
    s, m = distinct.z[:, 0], len(distinct.z)
    ranks = np.cumsum(distinct.counts) - distinct.counts
    alone = np.r_[: (n_exact + 1) // 2 + 1, m - n_exact // 2 : m]  # starts of bins

    def starts(n_bins: int) -> Int[Array, " b"]:
        """Choose starts of bins; a number with many records is a bin of its own: it and the next number start one."""
        targets = np.linspace(0, distinct.n - 1, n_bins + 1)[:-1].round()
        after = np.searchsorted(ranks, targets)
        return np.union1d(alone, np.r_[np.searchsorted(ranks, targets, side="right") - 1, after[after < m]])

    rows, columns = starts(_BINS), starts(len(ends) - 1)
    low, high = s[rows], s[np.append(rows[1:], m) - 1]
    column_low, column_high = s[columns], s[np.append(columns[1:], m) - 1]
    # The largest distance between a number of one bin and a number of the other.
    lengths = np.maximum(high[:, None] - column_low, column_high - low[:, None])
    values = _at_ranks(lengths, np.add.reduceat(distinct.counts, columns), ends[1:])
    sizes = np.diff(rows, append=m)
    records = np.where(sizes == 1, distinct.first[rows], -1)
    return _Rows(values, ends, records, distinct.row_of(np.repeat(np.arange(len(rows)), sizes)))


def _at_ranks(
    lengths: Float[Array, "R m"], counts: Int[Array, " m"] | None, ranks: Int[Array, " P"]
) -> Float[Array, "R P"]:
    """Return the lengths of these ranks from 0 up, each repeated by its count; rank 0 is the record itself."""
    if counts is None or (counts == 1).all():
        return np.sort(lengths, axis=1)[:, ranks]
    order = np.argsort(lengths, axis=1)
    places = [np.searchsorted(np.cumsum(counts[row]), ranks, side="right") for row in order]
    return np.take_along_axis(lengths, np.take_along_axis(order, np.array(places), axis=1), axis=1)


def _lengths(x: Float[Array, "r d"], z: Float[Array, "n d"], order: float) -> Iterator[Float[Array, "b n"]]:
    """Yield the distances of the vectors x to all z, one block of rows after the other."""
    n = len(z)
    size = max(1, 65_536 // min(n, _COLUMNS))
    for start in range(0, len(x), size):
        x_block = x[start : start + size]
        block = np.empty((len(x_block), n))
        for column in range(0, n, _COLUMNS):
            near = z[column : column + _COLUMNS]
            block[:, column : column + _COLUMNS] = _distances(x_block, near, order)
        yield block


def _distances(x: Float[Array, "r d"], z: Float[Array, "n d"], order: float) -> Float[Array, "r n"]:
    """Compute `p_norm` of all differences; plain sums of squares where these can neither overflow nor vanish."""
    if order != 2 or z.shape[1] == 1:
        return p_norm(x[:, None] - z, order)
    total = np.zeros((len(x), len(z)))
    for column in range(z.shape[1]):
        total += np.square(x[:, column, None] - z[:, column])
    distance = np.sqrt(total)
    # Squares that overflow or vanish: the scaled sum of `p_norm` for these pairs alone.
    row, other = np.nonzero(~((total > 1e-290) & (total < 1e290)))
    distance[row, other] = p_norm(x[row] - z[other], order)
    return distance
