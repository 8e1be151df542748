"""Mixture swap: the record that takes the place of x stays hidden among the others.

Write D = S + x, and D' = S + x' with x' uniform on the set R of records outside S + x. Given S, x adds f(x) to a sum,
and an unknown x' adds f(x') to it. So by joint convexity over S alone (not over x', as for the swap), with noise
density p and for every g >= 1,

    H_g(P_in || P_out) <= E_R H_g(p(. - f(x)) || mean over x' in R of p(. - f(x'))),    |R| = n - k.

Given D' instead, x' is uniform on D'. The noise is symmetric, so reflection gives the same expression for the
other direction, ``H_g(P_out || P_in)``, with R a random k-subset of the other records. What eta needs is the
direction from the rarer of the two cases, where R is the larger of the two sets; total variation is the same in
both. By convexity the bound is never above that of the swap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, final

import numpy as np
from jaxtyping import Float, Int, Num

from leakbound.core.checks import count, one_of, probability
from leakbound.core.intervals import chernoff_kl_upper
from leakbound.core.numerics import bisect_integers
from leakbound.core.seeds import stream
from leakbound.core.tradeoff import Profile
from leakbound.core.types import Noise
from leakbound.noise.calibration import least_scale
from leakbound.noise.gaussian import GaussianNoise
from leakbound.noise.linear import average_row, swap_rows
from leakbound.noise.norms import Lp, Mahalanobis
from leakbound.noise.shifts import Shifts

Array = np.ndarray
_BLOCK = 200_000  # numbers in a block, which then stays in the cache
_MOST_HIDDEN = 256  # records x' in a draw; more would save less than a percent of noise
_SWAP_VALUES = 4_000_000  # lengths of the exact swap that are kept in all its rows,
_SWAP_ROWS = 4_000  # of which there are at most so many
_OTHERS = -1  # the record of the row for all records that have no row of their own
_STEP = 0.99  # ratio of the scales that are tried
_LOWEST = 500  # largest number of steps: the scale of the swap divided by 150
_PILOT = 10  # the pilot takes a tenth of the draws; its limit is wider, so that the first scale passes


@final
@dataclass(frozen=True, eq=False)
class MixtureSwap:
    """Mixture swap of sums and means of features: certified by Monte-Carlo, without a single fit.

    A draw of R and of ``y ~ f(x) + Z`` gives ``(1 - g mean p(y - f(x'))/p(y - f(x)))_+``, which lies in [0, 1] and
    has the divergence as its mean: the Chernoff limit certifies it. Where the exact swap has a smaller bound, that is
    taken.

    Parameters
    ----------
    features : array of shape (n, d)
        f of every record, finite.
    k : int
        Number of records in D.
    statistic : {"mean", "sum"}
        Of the features of D.
    promise : {"every", "average"}
        Each record, or a record drawn at random.
    n_draws : int
        The noise is about ``1.7/sqrt(n_draws eta)`` (relative) more than from infinitely many.
    seed : int
        Of the draws.

    Notes
    -----
    More than 256 records in R are replaced by 256 drawn with replacement, which is on the safe side: the
    divergence is convex in the mixture, and for convex functions means of a sample with replacement exceed those
    without (Hoeffding 1963, theorem 4), which fall with the size of the sample.

    Of more than 5,000 different records those without their own row in `swap_linear` share its row for all others,
    and only that exact bound applies to them, as no draw covers all of them at once. So the noise for every record is
    not below what that row needs. For the average each record counts with its row unless the draws give a smaller
    bound.

    Time: the limit of one record takes about half a second (100,000 draws, Gaussian noise, 3 coordinates; other
    noise several times as much). `calibrate`, `worst_eta` and `tradeoff` need it for the few records that the swap
    does not settle, `eta_bound` for every record with its own row: take fewer draws there.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.noise import MixtureSwap, calibrate, swap_linear
    >>> features = np.arange(20.0)[:, None]
    >>> mixture = MixtureSwap(features, k=10, promise="average", n_draws=20_000)
    >>> saved = calibrate(swap_linear(features, k=10).average(), 0.1).scale / mixture.calibrate(0.1).scale
    >>> bool(saved > 1.2)
    True
    """

    features: Num[Array, "n d"]
    k: int
    statistic: Literal["mean", "sum"] = "mean"
    promise: Literal["every", "average"] = "every"
    n_draws: int = 100_000
    seed: int = 0

    def __post_init__(self) -> None:
        one_of("promise", self.promise, ("every", "average"))
        count("n_draws", self.n_draws, least=_PILOT)
        object.__setattr__(self, "features", np.asarray(self.features, dtype=float))

    def eta_bound(self, noise: Noise, confidence: float = 0.95) -> Float[Array, " R"]:
        """Bound eta of each record, all of them at the confidence together (one number for the average).

        Parameters
        ----------
        noise : Noise
            Symmetric.
        confidence : float
            Probability that all bounds hold.

        Returns
        -------
        array of shape (n,), or (1,) for the average
        """
        swap, record, same = self._swap(noise)
        alpha = _alpha(confidence) / len(record)
        divergence = self._divergence(swap, noise)
        limits = [self._limit(row_record, noise, self._gamma, alpha) for row_record in record]
        return self._smaller * np.minimum(divergence, limits)[same]

    def worst_eta(self, noise: Noise, confidence: float = 0.95) -> float:
        """Bound the largest eta of all records; none of them costs confidence, as in `leakbound.noise.worst_eta`.

        Parameters
        ----------
        noise : Noise
            Symmetric.
        confidence : float
            Probability that the bound holds.

        Returns
        -------
        float
        """
        swap, record, _ = self._swap(noise)
        limit = partial(self._limit, noise=noise, gamma=self._gamma, alpha=_alpha(confidence))
        return self._smaller * _largest(self._divergence(swap, noise), record, limit)

    def tradeoff(self, noise: Noise, confidence: float = 0.95) -> Profile:
        """Bound every attack on every record: the exact band of the swap, cut at the certified total variation.

        No ``delta(epsilon)`` exceeds the total variation, so one limit at the confidence cuts the whole curve.

        Parameters
        ----------
        noise : Noise
            Symmetric.
        confidence : float
            Probability that the bound holds.

        Returns
        -------
        Profile
        """
        swap, record, _ = self._swap(noise)
        band = swap.tradeoff(noise)
        limit = partial(self._limit, noise=noise, gamma=1.0, alpha=_alpha(confidence))
        largest = _largest(swap.mean_of(noise.shift_tv), record, limit)
        return Profile(band.at, np.minimum(band.value, largest))

    def calibrate(
        self, eta: float, family: Callable[[float], Noise] = GaussianNoise, confidence: float = 0.95
    ) -> Noise:
        """Return noise with `worst_eta` at most eta, and never more of it than the exact swap needs.

        Scales are tried on a grid of 1 % steps, from above, until one does not pass; the last that passed is
        taken. A scale that breaks the promise is released only if the highest such scale of the grid passed, so
        that neither the number of scales nor the records cost confidence (fixed-sequence and intersection-union
        tests), whether or not the estimate is monotone. Separate pilot draws choose where the grid begins.

        Parameters
        ----------
        eta : float
            > 0 and < min(pi, 1-pi).
        family : callable
            A symmetric noise of a given scale, as in `leakbound.noise.calibrate`.
        confidence : float
            Probability that the noise keeps eta.

        Returns
        -------
        Noise
            Of the family.

        Raises
        ------
        NotApplicable, ValueError
            As `leakbound.noise.calibrate` for the exact swap.
        """
        return family(self.least_scale(eta, family, confidence))

    def least_scale(
        self, eta: float, family: Callable[[float], Noise] = GaussianNoise, confidence: float = 0.95
    ) -> float:
        """Compute the scale of `calibrate`, with its parameters and errors.

        Returns
        -------
        float
        """
        swap, record, _ = self._swap(family(1.0))
        alpha, highest = _alpha(confidence), least_scale(swap, eta, family, self._smaller, None)

        def passes(step: int, pilot: bool = False) -> bool:
            """Whether the scale keeps eta for the records for which the exact swap does not show it."""
            noise = family(highest * _STEP**step)
            divergence = self._divergence(swap, noise)
            unknown = [record[row] for row in np.argsort(-divergence) if self._smaller * divergence[row] > eta]
            if _OTHERS in unknown:
                return False
            limits = (self._limit(row, noise, self._gamma, alpha, pilot) for row in unknown)
            return all(self._smaller * limit <= eta for limit in limits)

        # A pilot with draws of its own finds where to begin; the draws that certify then check the step itself.
        step = _last(partial(passes, pilot=True))
        if not passes(step):
            return highest
        while step < _LOWEST and passes(step + 1):
            step += 1
        return highest * _STEP**step

    @property
    def _smaller(self) -> float:
        """The smaller prior ``min(pi, 1-pi)``."""
        return min(self.k, len(self.features) - self.k) / len(self.features)

    @property
    def _gamma(self) -> float:
        return (1 - self._smaller) / self._smaller

    def _swap(self, noise: Noise) -> tuple[Shifts, Sequence[int | None], Int[Array, " n"]]:
        """Compute the swap of records with different features, their indices, and the row of each record."""
        if not isinstance(noise.norm, Lp | Mahalanobis):
            raise ValueError(f"the norm of the noise must be an Lp or a Mahalanobis, got {noise.norm!r}")
        n_values = max(32, _SWAP_VALUES // max(1, min(len(self.features), _SWAP_ROWS)))
        swap, row_of = swap_rows(self.features, self.k, self.statistic, noise.norm, n_values)
        if self.promise == "average":
            return average_row(swap, row_of), [None], np.zeros(1, dtype=int)
        if swap.records is not None:
            return swap, swap.records.tolist(), row_of
        _, first, same = np.unique(self.features, axis=0, return_index=True, return_inverse=True)
        is_first = np.zeros(len(self.features), dtype=bool)
        is_first[first] = True
        place = np.cumsum(is_first) - 1  # of a first record among those kept, in their order
        return swap.rows(is_first), np.flatnonzero(is_first).tolist(), place[first[same.ravel()]]

    def _divergence(self, swap: Shifts, noise: Noise) -> Float[Array, " R"]:
        """Compute the divergence of the exact swap, for each of its rows."""
        return swap.mean_of(partial(noise.shift_hockey, gamma=self._gamma))

    def _limit(self, record: int | None, noise: Noise, gamma: float, alpha: float, pilot: bool = False) -> float:
        """Compute the upper confidence limit of the divergence of a record, or of a random one (None)."""
        if record == _OTHERS:
            return 1.0
        rng = stream(self.seed, "calibrate", "mixture swap", int(pilot), -1 if record is None else record)
        n_draws = self.n_draws // _PILOT if pilot else self.n_draws
        size = max(1, _BLOCK // (min(len(self.features), _MOST_HIDDEN) * self.features.shape[1]))
        total = sum(
            float(self._draw(record, noise, gamma, min(size, n_draws - start), rng).sum())
            for start in range(0, n_draws, size)
        )
        return float(chernoff_kl_upper(min(total / n_draws, 1.0), n_draws, alpha))

    def _draw(
        self, record: int | None, noise: Noise, gamma: float, size: int, rng: np.random.Generator
    ) -> Float[Array, " size"]:
        """Draw ``(1 - gamma mixture(y)/own(y))_+`` for independent R and y; 1 where the arithmetic overflows."""
        n, d = self.features.shape
        x = rng.integers(n, size=size) if record is None else np.full(size, record)
        shift = self.features[x, None] - np.take(self.features, self._hidden(x, rng), axis=0)
        shift /= self.k if self.statistic == "mean" else 1
        z = noise.sample(np.zeros((size, d)), rng)
        with np.errstate(over="ignore", invalid="ignore"):
            value = 1 - gamma * np.exp(_log_ratio(noise, z, shift)).mean(axis=1)
        return np.where(np.isnan(value), 1.0, np.maximum(value, 0))

    def _hidden(self, x: Int[Array, " size"], rng: np.random.Generator) -> Int[Array, "size r"]:
        """Draw R: records other than x."""
        n = len(self.features)
        largest = max(self.k, n - self.k)
        if largest > _MOST_HIDDEN:
            others = rng.integers(n - 1, size=(len(x), _MOST_HIDDEN))
        else:
            others = np.argpartition(rng.random((len(x), n - 1)), largest - 1, axis=1)[:, :largest]
        return others + (others >= x[:, None])


def _log_ratio(noise: Noise, z: Float[Array, "size d"], shift: Float[Array, "size r d"]) -> Float[Array, "size r"]:
    """Compute ``ln p(z + shift)/p(z)``; for a Gaussian without the quadratic term of z, which costs most."""
    if not isinstance(noise, GaussianNoise):
        return noise.log_density(z[:, None] + shift) - noise.log_density(z)[:, None]
    z, shift = noise.norm.standardise(z) / noise.scale, noise.norm.standardise(shift) / noise.scale
    return -np.matmul(shift, z[:, :, None])[:, :, 0] - np.einsum("srd,srd->sr", shift, shift) / 2


def _last(passes: Callable[[int], bool]) -> int:
    """Find a step that passes whose next does not, by bisection; step 0 is taken to pass."""
    return bisect_integers(passes, inside=0, outside=_LOWEST)


def _largest(
    divergence: Float[Array, " R"], record: Sequence[int | None], limit: Callable[[int | None], float]
) -> float:
    """Maximise the lesser of divergence and limit over the records; a limit is computed only where it can matter."""
    largest = 0.0
    for row in np.argsort(-divergence):
        if divergence[row] <= largest:
            break
        largest = max(largest, min(float(divergence[row]), limit(record[row])))
    return largest


def _alpha(confidence: float) -> float:
    return 1 - probability("confidence", confidence, open_ends=True)
