"""Whether every step of DP-SGD has new noise: what is left of a step after a prediction from the steps before.

At k coordinates, and in units of the claimed deviation sigma c, a step t releases ``w_t = g_t + z_t``. Of a right
training z_t are k independent N(0, 1) numbers that depend neither on the sum g_t of the gradients nor on anything
before. So for every m_t that was known before the step, ``|w_t - m_t|^2`` is, given the past and g_t, noncentral
chi-squared with k degrees of freedom, and stochastically at least chi-squared. The same holds for a sum over several
steps, each with an m_t of its own, and the sum of their degrees. Only sums that are too small accuse. Thus the
gradients, a drift, or more noise than claimed never accuse a right training, and what the coordinates are matters for
the power alone: best are those that no gradient reaches, as of Dirac canaries that are not in.

``FAMILIES`` are four families of predictions, each corrected for the number of its members (Bonferroni):

* repeated: an earlier step, ``m_t = w_s``;
* negated: ``m_t = -w_s``;
* cancelled: ``m_t = -(w_s + ... + w_(t-1))``, of steps s to t that add up to nothing; with s = t the step by itself;
* predicted: ``m_t = a_t w_(t-l)`` over all steps of a lag l, a_t the regression coefficient of the steps before t.

Axes: S steps, k coordinates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import gammainc

Array = np.ndarray
FAMILIES = ("repeated", "negated", "cancelled", "predicted")
MOST_COORDINATES = 500  # of which the steps are kept: for 10,000 steps 40 MB, and half a minute for all pairs
LEAST_LOG = -700.0  # the logarithm of about the smallest positive number
_CANCELLATION = 1e-12  # relative error of a difference of sums of squares, more than enough


class Residual(NamedTuple):
    """The most conspicuous member of a family."""

    log_p: float
    first: int
    last: int
    left: float


def residuals(rows: Float[Array, "S k"], errors: Float[Array, " S"] | None = None) -> dict[str, Residual]:
    """Test whether any step can be predicted better than its claimed noise allows.

    >>> noise = np.random.default_rng(0).normal(size=(20, 50))
    >>> bool(min(found.log_p for found in residuals(noise).values()) > np.log(0.01))
    True
    >>> noise[14] = noise[3]
    >>> found = residuals(noise)["repeated"]
    >>> (found.first, found.last, round(found.left, 3), found.log_p < -100)
    (4, 15, 0.0, True)
    """
    n_steps, k = rows.shape
    if not k:
        return dict.fromkeys(FAMILIES, Residual(0.0, 0, 0, 1.0))
    # the rounding errors of a row make its residual longer by this at most (triangle inequality)
    rounding = np.sqrt(k) * (np.zeros(n_steps) if errors is None else errors)
    squares = np.einsum("ij,ij->i", rows, rows)
    sums = np.concatenate([np.zeros((1, k)), np.cumsum(rows, axis=0)])  # of the first 0, 1, ... steps
    squares_of_sums = np.einsum("ij,ij->i", sums, sums)
    least = {family: _Least() for family in ("repeated", "negated", "cancelled")}
    by_lag = _ByLag(n_steps)
    for step in range(n_steps):
        products = rows[:step] @ rows[step]
        both = squares[:step] + squares[step]
        least["repeated"].look(both - 2 * products, both, step, rounding[step])
        least["negated"].look(both + 2 * products, both, step, rounding[step])
        both = squares_of_sums[: step + 1] + squares_of_sums[step + 1]
        least["cancelled"].look(both - 2 * (sums[: step + 1] @ sums[step + 1]), both, step, rounding[step])
        by_lag.add(products, squares[: step + 1], rounding[step])
    n_pairs = n_steps * (n_steps - 1) // 2
    return {
        "repeated": least["repeated"].residual(k, n_pairs),
        "negated": least["negated"].residual(k, n_pairs),
        "cancelled": least["cancelled"].residual(k, n_pairs + n_steps),
        "predicted": by_lag.residual(k),
    }


def log_chi_squared(square: float, n_degrees: float) -> float:
    """Compute the logarithm of the probability that a chi-squared variable is at most a number; at least -700.

    >>> round(log_chi_squared(2.0, 2.0), 3), log_chi_squared(0.0, 9.0)  # log(1 - 1/e)
    (-0.459, -700.0)
    """
    p = float(gammainc(n_degrees / 2, square / 2))
    return max(LEAST_LOG, float(np.log(p))) if p > 0 else LEAST_LOG


class _Least:
    """The least residual of one family, each of k numbers."""

    def __init__(self) -> None:
        self.square, self.first, self.last = np.inf, 0, 0

    def look(self, squares: Float[Array, " n"], terms: Float[Array, " n"], step: int, rounding: float) -> None:
        """Compare the residuals of a step, differences of terms that are much larger where they are about 0."""
        if not len(squares):
            return
        first = int(squares.argmin())
        square = max(0.0, float(squares[first])) + _CANCELLATION * float(terms[first])
        square = float((np.sqrt(square) + rounding) ** 2)
        if square < self.square:
            self.square, self.first, self.last = square, first, step

    def residual(self, k: int, n_members: int) -> Residual:
        """Return the p-value times the number of members."""
        if not n_members:
            return Residual(0.0, 0, 0, 1.0)
        log_p = min(0.0, log_chi_squared(self.square, k) + float(np.log(n_members)))
        return Residual(log_p, self.first + 1, self.last + 1, float(np.sqrt(self.square / k)))


class _ByLag:
    """The residuals of predictions from each lag: place l - 1 is of the steps that are l apart."""

    def __init__(self, n_steps: int) -> None:
        n_lags = max(0, n_steps - 1)
        self._products, self._squares, self._residuals = np.zeros(n_lags), np.zeros(n_lags), np.zeros(n_lags)

    def add(self, products: Float[Array, " t"], squares: Float[Array, " t1"], rounding: float) -> None:
        """Predict a step from each of those before it, by the coefficients of the steps so far, and then learn."""
        n_lags = len(products)
        products, before = products[::-1], squares[:-1][::-1]  # by lag
        coefficient = self._products[:n_lags] / np.maximum(self._squares[:n_lags], 1.0)
        residuals = squares[-1] - 2 * coefficient * products + coefficient**2 * before
        self._residuals[:n_lags] += (np.sqrt(np.maximum(residuals, 0)) + rounding) ** 2
        self._products[:n_lags] += products
        self._squares[:n_lags] += before

    def residual(self, k: int) -> Residual:
        """Return the p-value times the number of lags."""
        n_lags = len(self._residuals)
        if not n_lags:
            return Residual(0.0, 0, 0, 1.0)
        n_degrees = k * np.arange(n_lags, 0, -1)
        with np.errstate(divide="ignore"):
            log_p = np.log(gammainc(n_degrees / 2, self._residuals / 2))
        place = int(np.lexsort((self._residuals / n_degrees, np.maximum(log_p, LEAST_LOG)))[0])
        corrected = min(0.0, max(LEAST_LOG, float(log_p[place])) + float(np.log(n_lags)))
        left = float(np.sqrt(self._residuals[place] / n_degrees[place]))
        return Residual(corrected, place + 1, place + 1, left)
