"""Shifts of a coupling, and their bounds under a noise: eta, practical membership privacy, the trade-off curve.

Pair every data set D that holds record x with a D' that does not, so that D has the distribution "given x is in" and
D' the distribution "given x is out", and add noise Z that is independent of everything. By joint convexity of the
hockey-stick divergence, for every g >= 1,

    H_g(P_in || P_out) <= E H_g(Z + v || Z),    v = A(D) - A(D'),

so the lengths ``u = ||v||`` of the pairs bound every attacker. The noise must have a distribution and a scale that do
not depend on D, and each draw of noise must be used once. A pair whose A is not finite counts as u = infinity.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from leakbound.core.checks import non_negative, probability
from leakbound.core.intervals import chernoff_kl_upper
from leakbound.core.ranks import rank_limits, undominated
from leakbound.core.tradeoff import Profile
from leakbound.core.types import Noise, NotApplicable
from leakbound.noise.ball import BallNoise
from leakbound.noise.norms import EUCLIDEAN, Lp, Mahalanobis, dimension

Array = np.ndarray
_N_EPSILONS = 300
_MOST_LENGTHS = 1 << 14  # exact lengths of a row that are evaluated one by one
_BLOCK = 1_000_000  # lengths that are evaluated at once
_ROWS = 16  # that are evaluated at once in the search for the highest
_LARGEST_EPSILON = 600.0  # e^600 is a float; rates below 1e-260 do not matter


@dataclass(frozen=True, eq=False)
class Shifts:
    """Lengths of the differences ``A(D) - A(D')`` of the pairs of a coupling.

    Parameters
    ----------
    values : array of shape (R, P)
        Lengths >= 0: a row of P pairs for each of R records, or one row for all of them. NaN (a
        fit that failed) becomes infinity.
    coupling : str
        How the pairs were made.
    d : int
        Number of coordinates of A.
    norm : Lp or Mahalanobis
        In which the lengths were measured; the noise must have the same.
    prior : float
        Fraction k/n of the records that are in D.
    exact : bool
        Whether the rows are the distribution of the shift (all pairs, or a bound proved beforehand) or a sample of it.
    promise : {"every", "average"}
        Each record, or a record drawn at random.
    weights : array of shape (P,), optional
        Probabilities of the pairs, equal where None; only where exact.
    mean_only : bool
        Whether a row is one number, at least the mean length; then only the concave total variation applies to it.
    separating_fraction : float
        Probability that a pair of a row separates a record of that row (one set holds it, the other does not), > 0,
        the same for all of them. A divergence is at least 0 for the other pairs, so the mean over the row divided by
        this fraction bounds each record.
    records : int array of shape (R,), optional
        The record of each row; -1 for a row for all records (or some of them) that have no row of their own. None: row
        i is that of record i, or the only row is for all.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.noise import GaussianNoise, Shifts
    >>> shifts = Shifts(np.array([[1.0, 3.0]]), "swap", d=1)
    >>> round(shifts.tradeoff(GaussianNoise(2.0)).advantage(), 4)
    0.3721
    """

    values: Float[Array, "R P"]
    coupling: str
    d: int
    norm: Lp | Mahalanobis = EUCLIDEAN
    prior: float = 0.5
    exact: bool = True
    promise: Literal["every", "average"] = "every"
    weights: Float[Array, " P"] | None = None
    mean_only: bool = False
    separating_fraction: float = 1.0
    records: Int[Array, " R"] | None = None

    def __post_init__(self) -> None:
        values = np.where(np.isnan(self.values), np.inf, self.values)
        if values.ndim != 2 or not values.size:
            raise ValueError(f"shifts must have shape (records, pairs), at least (1, 1); got {values.shape}")
        if (values < 0).any():
            raise ValueError(f"the length of a shift must be >= 0, got {values.min():g}")
        if self.mean_only and values.shape[1] != 1:
            raise ValueError(f"a mean length is one number a row, got {values.shape[1]}")
        if self.promise == "average" and len(values) != 1:
            raise ValueError(f"an average promise has one row of pairs, got {len(values)}")
        dimension(self.d, self.norm.d)
        probability("prior", self.prior, open_ends=True)
        if not 0 < probability("separating_fraction", self.separating_fraction) <= 1:
            raise ValueError(f"separating_fraction must be > 0 and <= 1, got {self.separating_fraction:g}")
        object.__setattr__(self, "values", values)
        if self.records is not None and self.records.shape != values.shape[:1]:
            raise ValueError(f"records must have shape {values.shape[:1]}, got {self.records.shape}")
        if self.weights is not None:
            self._check_weights(self.weights)

    def _check_weights(self, weights: Float[Array, " W"]) -> None:
        if not self.exact:
            raise ValueError("sampled pairs have equal weights, got weights")
        if weights.shape != self.values.shape[1:]:
            raise ValueError(f"weights must have shape {self.values.shape[1:]}, got {weights.shape}")
        if not (weights >= 0).all() or abs(weights.sum() - 1) > 1e-9:
            raise ValueError(f"weights must be >= 0 with sum 1, got sum {weights.sum():g}")

    def rows(self, keep: Bool[Array, " R"] | Int[Array, " r"]) -> Shifts:
        """Keep some of the rows."""
        records = None if self.records is None else self.records[keep]
        return replace(self, values=self.values[keep], records=records)

    def mean(self, divergence: Float[Array, "R P"]) -> Float[Array, " R"]:
        """Compute the mean over the pairs of each row."""
        return divergence.mean(axis=1) if self.weights is None else divergence @ self.weights

    def mean_of(self, divergence: Callable[[Float[Array, "r P"]], Float[Array, "r P"]]) -> Float[Array, " R"]:
        """Compute the mean of a divergence over the pairs of each row, some rows at a time."""
        size = max(1, _BLOCK // self.values.shape[1])
        starts = range(0, len(self.values), size)
        return np.concatenate([self.mean(divergence(self.values[start : start + size])) for start in starts])

    def highest(self) -> Shifts:
        """Keep the rows that can be the highest at some noise; the bound for the worst record depends on them alone.

        Each divergence is a non-decreasing function of the length, so a row that lies rank by rank below another
        has the smaller mean, whatever the noise. More than 16,384 exact lengths of a row are put into groups of
        neighbours and raised to the longest of their group: still a bound.
        """
        if len(self.values) == 1 and self.values.shape[1] <= _MOST_LENGTHS:
            return self
        equal = self.weights is None or bool(np.ptp(self.weights) == 0)
        ordered = np.sort(self.values, axis=1) if equal else self.values
        if not equal and not (np.diff(ordered, axis=1) >= 0).all():
            return self
        keep = undominated(ordered)
        rows = replace(self.rows(keep), values=ordered[keep])
        return rows._grouped() if self.exact else rows

    def _grouped(self) -> Shifts:
        n_lengths = self.values.shape[1]
        if n_lengths <= _MOST_LENGTHS:
            return self
        ends = np.unique(np.linspace(0, n_lengths, _MOST_LENGTHS + 1).round().astype(int))
        weights = np.full(n_lengths, 1 / n_lengths) if self.weights is None else self.weights
        return replace(self, values=self.values[:, ends[1:] - 1], weights=np.add.reduceat(weights, ends[:-1]))

    def average(self) -> Shifts:
        """Join the rows to one for a record drawn at random: the pairs of all rows, each row with the same weight.

        Raises
        ------
        ValueError
            If the pairs are a sample: those of different records come from the same fits and are not
            independent; sample for the average with ``AverageSwap``. If the rows are for different numbers of
            records; sample with ``average_linear``.
        """
        if self.records is not None:
            raise ValueError(
                f"the {len(self.values):,} rows of {self.coupling!r} are for different numbers of records and have "
                "no average row: sample with average_linear"
            )
        if self.mean_only or len(self.values) == 1:  # one number for a row: the mean length of a random record
            return replace(self, values=self.values.mean(axis=0, keepdims=True), promise="average")
        if not self.exact:
            raise ValueError(f"sampled pairs of {self.coupling!r} have no average row: sample with AverageSwap")
        weights = None if self.weights is None else np.tile(self.weights, len(self.values)) / len(self.values)
        return replace(self, values=self.values.reshape(1, -1), weights=weights, promise="average")

    def tradeoff(self, noise: Noise, confidence: float | None = None) -> Profile:
        """Bound every attack on every record by a trade-off curve: the certified band.

        It is the privacy profile ``delta(e) = max over rows of mean H_(e^e)(u)`` at a grid of epsilons e. For sampled
        pairs the lesser of two limits, each at level (1 - confidence)/(2 R) for a row, and each for all e, and all
        scales of the noise, at once, since ``H_(e^e)`` is a non-decreasing function of u in [0, 1]: the mean plus
        ``sqrt(ln(1/alpha)/(2 P))`` (Dvoretzky, Kiefer & Wolfowitz; Massart 1990), and the mean over the distribution
        that puts no more on the lengths up to each of the sampled ones than `rank_limits` proves, the rest at infinity.

        Parameters
        ----------
        noise : Noise
            In the norm of these shifts.
        confidence : float, optional
            For sampled pairs, and only for them: >= 1/2.

        Returns
        -------
        Profile
            An upper bound of the trade-off curve of every attack.
        """
        rows, largest, alpha = self.highest(), 1.0, row_alpha(self, confidence)
        if alpha is not None and alpha > 0.5:
            raise ValueError(f"confidence must be >= 0.5 for a band, got {confidence:g}")
        while (_profile(rows, noise, largest) > 1e-12).any() and largest < _LARGEST_EPSILON:
            largest = min(2 * largest, _LARGEST_EPSILON)
        epsilon = np.sinh(np.linspace(0, np.arcsinh(largest), _N_EPSILONS))
        delta = _highest(rows, noise, epsilon)
        if alpha is not None:
            slack = math.sqrt(math.log(2 / alpha) / (2 * self.values.shape[1])) / self.separating_fraction
            delta = np.minimum(delta + slack, _highest(rows._proved(alpha / 2), noise, epsilon))
        return Profile(epsilon, np.minimum(delta, 1))

    def _proved(self, alpha: float) -> Shifts:
        """Compute the longest lengths that the sampled ones allow at this level, as a distribution with weights."""
        ranks, limits = rank_limits(self.values.shape[1], alpha)
        values = np.c_[np.sort(self.values, axis=1)[:, ranks], np.full(len(self.values), np.inf)]
        return replace(self, values=values, weights=np.diff(limits, prepend=0.0, append=1.0), exact=True)


def eta_bound(
    shifts: Shifts, noise: Noise, prior: float | None = None, confidence: float | None = None
) -> Float[Array, " R"]:
    """Bound eta, the accuracy of the best attacker above the better prior guess.

    ``eta(x) = min(pi, 1-pi) H_gamma <= min(pi, 1-pi) E H_gamma(u)``, ``gamma = max(pi, 1-pi)/min(pi, 1-pi)``.
    Tight: ``A(D) = a if x in D else a'`` attains it.

    Where only a mean length U is known, ``eta <= tv(2 min(pi, 1-pi) U)/2``: as a function of the prior eta is
    convex on [0, 1/2], 0 at 0 and tv/2 at 1/2, hence at most ``pi tv(u)``, and ``2 pi tv(u) <= tv(2 pi u)``
    because tv is concave with tv(0) = 0; the same concavity lets the mean in.

    Parameters
    ----------
    shifts : Shifts
        Of a coupling.
    noise : Noise
        In the norm of the shifts.
    prior : float, optional
        pi = k/n; that of the shifts where None.
    confidence : float, optional
        For sampled pairs, and only for them: probability that the bounds of all rows hold. Each row gets the Chernoff
        upper limit of its mean at level (1 - confidence)/R; no moment of A is assumed.

    Returns
    -------
    array of shape (R,)
        An upper bound for each row.

    Raises
    ------
    ValueError
        If the noise has another norm or dimension than the shifts, or if a confidence is missing or not needed.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.noise import LaplaceNoise, eta_bound, swap_linear
    >>> shifts = swap_linear(np.array([[0.0], [1.0], [3.0], [7.0]]), k=2)
    >>> eta_bound(shifts, LaplaceNoise(1.0)).round(6).tolist()
    [0.26251, 0.231923, 0.258871, 0.372536]
    """
    return row_bounds(shifts, noise, smaller_prior(shifts, prior), row_alpha(shifts, confidence))


def worst_eta(shifts: Shifts, noise: Noise, prior: float | None = None, confidence: float | None = None) -> float:
    """Bound the largest eta of all records: the basis of a promise for every record.

    For sampled pairs it is below the largest `eta_bound`, which holds for all rows at once and pays for each of
    them. Here the level is not shared among the rows: whichever record x has the largest eta, the largest of the
    upper limits is below eta(x) only if the limit of that one row is (intersection-union test, Berger 1982).

    Parameters
    ----------
    shifts : Shifts
        Of a coupling.
    noise : Noise
        In the norm of the shifts.
    prior : float, optional
        pi = k/n; that of the shifts where None.
    confidence : float, optional
        For sampled pairs, and only for them: probability that the bound holds.

    Returns
    -------
    float
        An upper bound.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.noise import GaussianNoise, Shifts, eta_bound, worst_eta
    >>> shifts = Shifts(np.full((100, 400), 0.5), "swap", d=1, exact=False)
    >>> round(worst_eta(shifts, GaussianNoise(2.0), confidence=0.95), 4)
    0.07
    >>> round(float(eta_bound(shifts, GaussianNoise(2.0), confidence=0.95).max()), 4)
    0.0839
    """
    alpha = level(shifts, confidence)
    return float(row_bounds(shifts.highest(), noise, smaller_prior(shifts, prior), alpha).max())


def pmp_delta(shifts: Shifts, noise: Noise, epsilon: float) -> Float[Array, " R"]:
    """Compute delta of (epsilon, delta)-practical membership privacy: ``mean H_(e^epsilon)(u)`` of each row.

    With Gaussian noise and the exact swap of a sum or mean this is proposition 12 of Lowy et al. (2024). Both
    directions hold because the noise is symmetric; the promise for every record is the largest of the rows.
    Source: lowy2024, proposition 12.

    Parameters
    ----------
    shifts : Shifts
        Exact.
    noise : Noise
        In the norm of the shifts.
    epsilon : float
        >= 0.

    Returns
    -------
    array of shape (R,)
        An upper bound for each row.

    Raises
    ------
    NotApplicable
        For uniform noise in a ball, which proves membership for certain with a probability of delta.
    ValueError
        For sampled pairs: take `Shifts.tradeoff`, whose ``delta`` holds at a confidence.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.noise import GaussianNoise, pmp_delta, swap_linear
    >>> shifts = swap_linear(np.array([[0.0], [1.0], [3.0], [7.0]]), k=2)
    >>> pmp_delta(shifts, GaussianNoise(2.0), 0.5).round(4).tolist()
    [0.2207, 0.1623, 0.1436, 0.3966]
    """
    if isinstance(noise, BallNoise):
        raise NotApplicable("proved_with_delta")
    if not shifts.exact:
        raise ValueError("pmp_delta needs exact shifts; of sampled pairs take tradeoff(noise, confidence).delta")
    return np.minimum(_profile(shifts, noise, non_negative("epsilon", epsilon)), 1)


def smaller_prior(shifts: Shifts, prior: float | None) -> float:
    """Return ``min(pi, 1-pi)`` of a given prior, or of that of the shifts."""
    prior = shifts.prior if prior is None else probability("prior", prior, open_ends=True)
    return min(prior, 1 - prior)


def level(shifts: Shifts, confidence: float | None) -> float | None:
    """Return ``1 - confidence``; None where nothing is sampled."""
    if shifts.exact or shifts.mean_only:
        if confidence is not None:
            raise ValueError(f"confidence is for sampled pairs, these are {shifts.coupling!r}; got {confidence:g}")
        return None
    if confidence is None:
        raise ValueError("sampled pairs need a confidence, as confidence=0.95")
    return 1 - probability("confidence", confidence, open_ends=True)


def row_alpha(shifts: Shifts, confidence: float | None) -> float | None:
    """Return the level of each row, all rows together at the confidence; None where nothing is sampled."""
    alpha = level(shifts, confidence)
    return None if alpha is None else alpha / len(shifts.values)


def row_bounds(shifts: Shifts, noise: Noise, smaller: float, alpha: float | None) -> Float[Array, " R"]:
    """Compute `eta_bound` for a smaller prior and a level that are known."""
    _check_noise(shifts, noise)
    if shifts.mean_only:
        return noise.shift_tv(2 * smaller * shifts.values[:, 0]) / 2
    return upper_eta(shifts, shifts.mean_of(partial(noise.shift_hockey, gamma=(1 - smaller) / smaller)), smaller, alpha)


def upper_eta(shifts: Shifts, mean: Float[Array, " R"], smaller: float, alpha: float | None) -> Float[Array, " R"]:
    """Bound eta by the mean divergence of the pairs, raised to its Chernoff limit where they are a sample."""
    if alpha is not None:
        mean = chernoff_kl_upper(np.minimum(mean, 1), shifts.values.shape[1], alpha)
    return smaller * np.minimum(mean / shifts.separating_fraction, 1)


def _profile(shifts: Shifts, noise: Noise, epsilon: float) -> Float[Array, " R"]:
    """Compute the mean ``H_(e^epsilon)`` of each row; the total variation, which is above it, for a mean length."""
    _check_noise(shifts, noise)
    if shifts.mean_only:
        return noise.shift_tv(shifts.values[:, 0])
    return shifts.mean_of(partial(noise.shift_hockey, gamma=math.exp(epsilon))) / shifts.separating_fraction


def _highest(shifts: Shifts, noise: Noise, epsilon: Float[Array, " e"]) -> Float[Array, " e"]:
    """Compute the largest `_profile` of all rows at increasing epsilons.

    A profile falls with epsilon, so its value at a smaller epsilon bounds it. Rows are evaluated only while that bound
    is above the largest value found.
    """
    bound, highest = np.full(len(shifts.values), np.inf), []
    for e in epsilon:
        pending, largest = np.ones(len(bound), dtype=bool), 0.0
        while (candidates := pending & (bound > largest)).any():
            some = np.zeros(len(bound), dtype=bool)
            some[np.argsort(np.where(candidates, -bound, np.inf))[: min(_ROWS, int(candidates.sum()))]] = True
            bound[some] = _profile(shifts.rows(some), noise, e)
            pending[some], largest = False, max(largest, float(bound[some].max()))
        highest.append(largest)
    return np.array(highest)


def _check_noise(shifts: Shifts, noise: Noise) -> None:
    if noise.norm != shifts.norm:
        raise ValueError(f"the shifts are lengths in {shifts.norm}, the noise has {noise.norm}")
    if noise.d not in (None, shifts.d):
        raise ValueError(f"the shifts have {shifts.d} coordinates, the noise {noise.d}")
