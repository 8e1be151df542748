"""The whole trade-off curve of one secret left-out record: its means over pairs at every likelihood ratio.

For a record x, in both directions and at every ratio g >= 1, ``H_g(x) <= mean over j != x of H_g(u_xj)``, u_xj the
distance of the releases without x and without j in standard deviations of their Gaussian noise. An attacker who is told
j as well rejects at one threshold t of the log likelihood ratio, which gives the same curve:

    TPR(a) <= mean of Phi(u/2 - t/u),   t the root of   mean of Phi(-u/2 - t/u) = a.

Every t gives the valid line ``TPR(a) <= H_g(x) + g a`` with ``g = e^t``, so the roots, which only say which lines are
kept, need not be exact. At each ratio the largest mean of all records counts: the record that is told best at a small
false positive rate need not be the one with the largest total variation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int, Num
from scipy.special import ndtr, ndtri

from leakbound.core.checks import non_negative
from leakbound.core.divergences import gaussian_hockey
from leakbound.core.repeated_rows import RepeatedRows
from leakbound.core.tradeoff import Profile
from leakbound.noise.left_out import LeftOut

Array = np.ndarray
RATES = (*(m * 10.0**k for k in (-4, -3, -2) for m in (1, 1.5, 2, 3, 5, 7)), 0.1, 0.15, 0.2, 0.3, 0.4)
_STEP = 2.0**-10  # relative, to which lengths are rounded up
_SHORTEST, _LONGEST = 1e-4, 1e3  # lengths between which they are told apart
_N_STEPS = math.ceil(math.log(_LONGEST / _SHORTEST) / _STEP) + 1
_N_HALVINGS = 40  # of an interval of thresholds
_BLOCK = 1 << 20  # lengths that are computed at once
_MOST_ROWS = 64  # of a block
_MOST_LENGTHS = 20_000_000  # that are computed for one curve; beyond it a larger bound takes their place
_ROUNDING = 1e-12  # relative error of a bound that may stop a search


def left_out_curve(
    table: Num[Array, "n D"] | RepeatedRows | LeftOut, reserve: float = 0.0, rates: Sequence[float] = RATES
) -> Profile:
    """Bound the trade-off curve of every record, whichever is told best at each rate.

    Records are visited in decreasing order of their distance r from the mean. As ``u_xj <= r_x + r_j``, the mean over
    pairs is at most that of these sums, which falls from record to record; the search ends where it is below the
    largest means found, at every ratio.

    Parameters
    ----------
    table : array of shape (n, D), RepeatedRows, or LeftOut
        Row i is the release without record i, in units of its noise; n >= 2. A row that is not finite is a failure,
        which is seen.
    reserve : float
        R >= 0, as of `joint_advantage`: every u becomes ``sqrt(u^2 + R^2)``.
    rates : sequence of float
        False positive rates in (0, 1) at which the curve is as tight as the bound allows. Between them it may be a
        little higher.

    Returns
    -------
    Profile
        A ceiling for every record and every attacker, the same in both directions.

    Raises
    ------
    ValueError
        For fewer than two records, a rate that is not in (0, 1), or a reserve that is negative or not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.noise import left_out_curve
    >>> wages = np.random.default_rng(0).lognormal(3, 0.5, 1000)
    >>> means = (wages.sum() - wages[:, None]) / 999
    >>> curve = left_out_curve(means / 0.29, rates=[0.001, 0.01])
    >>> round(float(curve.tpr_at(0.001)), 4), round(float(curve.tpr_at(0.01)), 4)
    (0.0023, 0.0192)
    """
    reserve = non_negative("reserve", reserve)
    if not all(0 < rate < 1 for rate in rates):
        raise ValueError(f"rates must be > 0 and < 1, got {', '.join(f'{rate:g}' for rate in rates)}")
    pairs = _Pairs(table if isinstance(table, LeftOut) else LeftOut(table), reserve)
    epsilons = np.unique([0.0, *pairs.thresholds(rates)])
    return Profile(epsilons, pairs.largest_sticks(epsilons))


class _Pairs:
    """The distances of all pairs in standard deviations of the noise, rounded up to steps of 0.1 %."""

    def __init__(self, left_out: LeftOut, reserve: float) -> None:
        self.measured = left_out.whitened
        self.n, self.n_values, self.n_failed = left_out.n, self.measured.n_values, self.measured.n_failed
        self.order = np.argsort(-self.measured.radius, kind="stable")
        self.reserve = reserve
        steps = _SHORTEST * np.exp(_STEP * np.arange(_N_STEPS))
        self.lengths = np.hypot(np.concatenate([[0.0], steps, [np.inf]]), reserve)  # what each place stands for

    def thresholds(self, rates: Sequence[float]) -> Float[Array, " r"]:
        """Find the thresholds at which the record farthest from the mean is wrongly called at these rates.

        As ``u/2 + t/u >= sqrt(2 t)``, none is above ``z^2/2``, ``Phi(-z) = a``; below 0 the directions change roles.
        """
        rate = np.asarray(rates, dtype=float)
        high = np.square(ndtri(rate)) / 2
        places, (counts,) = self._counted(self.order[:1])
        counts[0] -= 1  # itself: its place is the first one
        length, weight = self.lengths[places], counts / (self.n - 1)
        n_equal = weight[length == 0].sum()
        is_apart = np.isfinite(length) & (length > 0)
        length, weight = length[is_apart], weight[is_apart]
        low = -high
        for _ in range(_N_HALVINGS):
            threshold = (low + high) / 2
            false_positive = ndtr(-length / 2 - threshold[:, None] / length) @ weight + n_equal * (threshold < 0)
            low = np.where(false_positive > rate, threshold, low)
            high = np.where(false_positive > rate, high, threshold)
        return np.abs(low + high) / 2

    def largest_sticks(self, epsilons: Float[Array, " e"]) -> Float[Array, " e"]:
        """Compute the largest mean over pairs of all records at each ratio ``e^epsilon``, the first of them 1."""
        sticks = _Sticks(self.lengths, epsilons)
        (of_equal,) = sticks.of(np.zeros(1, dtype=int))
        largest = np.zeros(len(epsilons))
        if self.n_failed:
            largest = (self.n_values + (self.n_failed - 1) * of_equal) / (self.n - 1)
        n_rows = len(self.order)
        size = int(np.clip(_BLOCK // n_rows, 1, _MOST_ROWS))
        for start in range(0, n_rows, size):
            ceiling = self._ceiling(int(self.order[start]), sticks)
            if (ceiling * (1 - _ROUNDING) <= largest).all():
                break
            if (start + size) * n_rows > _MOST_LENGTHS:  # the ceilings of all others are lower
                largest = np.maximum(largest, ceiling)
                break
            places, counts = self._counted(self.order[start : start + size])
            of_values = counts @ sticks.of(places) - of_equal  # without itself
            largest = np.maximum(largest, (of_values.max(axis=0) + self.n_failed) / (self.n - 1))
        return np.minimum(largest, 1.0)

    def _counted(self, rows: Int[Array, " b"]) -> tuple[Int[Array, " p"], Float[Array, "b p"]]:
        """Count the records at each length from some rows, themselves among them; only places where there are any."""
        places = np.array([_places(self.measured.lengths(row)) for row in rows.tolist()])
        is_used = np.zeros(len(self.lengths), dtype=bool)
        is_used[places] = True
        n_used = int(is_used.sum())
        column = np.cumsum(is_used) - 1
        cells = column[places] + n_used * np.arange(len(rows))[:, None]
        counts = np.bincount(cells.ravel(), np.tile(self.measured.count, len(rows)), n_used * len(rows))
        return np.flatnonzero(is_used), counts.reshape(len(rows), n_used)

    def _ceiling(self, row: int, sticks: _Sticks) -> Float[Array, " e"]:
        """Bound the means of a row, and of all that are nearer to the mean, without its pairs."""
        radius, count = self.measured.radius, self.measured.count
        counts = np.bincount(_places(radius + radius[row]), count, len(self.lengths))
        counts[_places(2 * radius[row : row + 1])] -= 1  # itself
        places = np.flatnonzero(counts)
        by_sums = counts[places] @ sticks.of(places)
        # F is concave in the square of the length, whose mean over the others needs no pairs
        others = max(self.n_values - 1, 1)
        mean_square = self.n_values / others * (np.square(radius[row]) + count @ np.square(radius) / self.n_values)
        by_sums[0] = min(by_sums[0], others * gaussian_hockey(np.sqrt(mean_square + self.reserve**2), 0.0))
        return (by_sums + self.n_failed) / (self.n - 1)


class _Sticks:
    """Hockey sticks at each length and ratio, computed when they are first asked for."""

    def __init__(self, lengths: Float[Array, " l"], epsilons: Float[Array, " e"]) -> None:
        self.lengths, self.epsilons = lengths, epsilons
        self.known = np.full((len(lengths), len(epsilons)), np.nan)

    def of(self, places: Int[Array, " p"]) -> Float[Array, "p e"]:
        """Return the hockey sticks of some lengths."""
        missing = places[np.isnan(self.known[places, 0])]
        for column, epsilon in enumerate(self.epsilons.tolist()):
            self.known[missing, column] = gaussian_hockey(self.lengths[missing], epsilon)
        return self.known[places]


def _places(lengths: Float[Array, " m"]) -> Int[Array, " m"]:
    """Find the least step that is not below each length; one that is longer than all steps is infinite."""
    with np.errstate(divide="ignore"):
        steps = np.ceil(np.log(lengths / _SHORTEST) / _STEP)
    return np.clip(steps, 0, _N_STEPS).astype(np.int32) + (lengths > 0)
