"""Membership given an output, sampled: where 2n records have too many halves to count.

For an output w, whether record x is in D is a question of the posterior odds

    IN/OUT = sum_{D with x} P_D(w) / sum_{D without x} P_D(w),     P_D(w) = exp(-sum_{i in D} c_iw)/Z_D.

Halves drawn uniformly answer it badly: for an improbable w both sums rest on halves that are never drawn,
and for a probable one the odds drown in the variation of P_D(w) itself. Two identities mend both.

*One draw, n + 1 halves.* The halves with x are the sets B + x, those without x the sets B + x' with another
x', for B of n - 1 of the other records, each n times. So IN/OUT = E P_{B+x}(w) / E mean_x' P_{B+x'}(w), and a
draw of B serves every record that is not in it; what B does to both sides cancels.

*Tilting.* With any reference output r and v_i = c_iw - c_ir, P_{B+x}(w) is proportional to e^{-v(B)} times
e^{-v_x} P_{B+x}(r). Drawn with probability proportional to e^{-v(B)}, the subsets are those behind w, and
what is left to average lies in [0, 1], and near 1 if r is what the mechanism prefers on them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import expit

from leakbound.core.numerics import bisect
from leakbound.core.seeds import stream

Array = np.ndarray

MOST_RECORDS = 10_000  # 2n; the distribution of the subsets is a table of 2n x n numbers
LARGEST_SPREAD = 150.0  # nats between the outputs of one record: beyond, squares leave the range of floating point
_OFTEN = 0.75  # a record that is in so many draws is looked at from the side of the others
_DRAWS = 4096  # of one random stream
_BLOCK = 2**17  # numbers of an array of draws by records
_ROUNDING = 1e-13  # of a variance, relative to the mean square: what the difference of sums may be off by


@dataclass(frozen=True, eq=False)
class LogOdds:
    """ln(IN/OUT) of each record given each output, with limits that hold for all of them at once."""

    value: Float[Array, "N W"]
    low: Float[Array, "N W"]
    high: Float[Array, "N W"]


def sampled_log_odds(exponent: Float[Array, "N W"], n_subsets: int, confidence: float, seed: int) -> LogOdds:
    """Posterior log-odds of membership by sampling, with simultaneous confidence limits.

    The limits are those of an empirical Bernstein inequality (Maurer & Pontil 2009, theorem 4), which holds for every
    sample size and every distribution, applied to the one-sided tests of ``E(a - r b) = 0`` for the ratio r; all 2 N W
    of them hold together. They are cut to what holds with certainty, `swap_range`.

    >>> odds = sampled_log_odds(np.linspace(0, 1, 80).reshape(40, 2) ** 2, 4096, 0.95, seed=0)
    >>> bool((odds.low <= odds.value).all() and (odds.value <= odds.high).all())
    True
    """
    n_records, n_outputs = exponent.shape
    if n_records > MOST_RECORDS:
        raise ValueError(f"method='sampled' takes at most {MOST_RECORDS:,} records, got {n_records:,}")
    spread = float(np.ptp(exponent, axis=1).max())
    if spread > LARGEST_SPREAD:
        raise ValueError(
            f"epsilon loss/(2 n sensitivity) of a record spreads by {spread:,.0f}; "
            f"method='sampled' takes at most {LARGEST_SPREAD:g}"
        )
    # ln(2/delta) of the empirical Bernstein inequality, for 2 limits of each of N W ratios at once (Bonferroni).
    log_budget = math.log(2 * 2 * n_records * n_outputs / (1 - confidence))
    odds = np.stack([np.zeros_like(exponent), *swap_range(exponent)])
    n_draws = math.ceil(n_subsets / n_outputs)
    for w in range(n_outputs):
        proposal = _Proposal.of(exponent, w)
        often = _inclusion(proposal.log_weight, n_records // 2) > _OFTEN
        n_own = n_draws - n_draws // 2 if often.any() else n_draws
        limits = _odds(proposal, n_own, seed, log_budget, odds[1:, :, w])
        if often.any():
            # Records that are in nearly every draw have few draws without them: there the complement is sampled, whose
            # log-odds have the other sign, and so have its limits, in the other order.
            mirrored = _odds(proposal.mirrored(), n_draws // 2, seed, log_budget, -odds[:0:-1, :, w])
            limits = np.where(often, -mirrored[[0, 2, 1]], limits)
        odds[:, :, w] = limits
    return LogOdds(*odds)


def swap_range(exponent: Float[Array, "N W"]) -> tuple[Float[Array, "N W"], Float[Array, "N W"]]:
    """Limits of ln(IN/OUT) that no half of the records can break.

    With d = c_x - c_x' the swap of x for x' multiplies P(w) by ``e^{d_w}/E e^{d}``, the mean over the outputs
    of the half with x: between ``e^{d_w - max d}`` and ``e^{d_w - min d}``. OUT/IN is a mean of these over
    halves, and within each over n of the other records: at least the mean of the n smallest, at most that of
    the n largest.

    >>> low, high = swap_range(np.array([[0.0, 1.0], [0.0, 0.0], [0.0, 2.0], [1.0, 0.0]]))
    >>> low[0].round(3).tolist(), high[0].round(3).tolist()
    ([-0.62, -1.62], [1.38, 0.38])
    """
    columns = np.ascontiguousarray(exponent.T)
    low, high = np.empty_like(exponent), np.empty_like(exponent)
    step = max(1, _BLOCK // exponent.size)
    for start in range(0, len(exponent), step):
        rows = slice(start, start + step)
        swap = exponent[rows, :, None] - columns  # that of x for itself changes neither mean
        least, most = (np.exp(swap - edge) for edge in (swap.max(axis=1)[:, None], swap.min(axis=1)[:, None]))
        high[rows], low[rows] = -np.log(_half_mean(least, np.minimum)), -np.log(_half_mean(most, np.maximum))
    return low, high


def _half_mean(values: Float[Array, "b W N"], side: np.ufunc) -> Float[Array, "b W"]:
    """Mean of the N/2 smallest (largest) values, or a little below (above).

    For every t it is at least ``2 mean min(value, t) - t`` (at most the same with max), and equal to it at
    the median; the median of some of the values comes close.
    """
    some = values[..., :: max(1, values.shape[-1] // 256)]
    half = (some.shape[-1] - 1) // 2
    middle = np.partition(some, half)[..., half]
    outward = 1e-14 if side is np.maximum else -1e-14  # of the difference's terms: their rounding
    mean = 2 * side(values, middle[..., None]).mean(axis=-1) - middle * (1 - outward)
    return np.clip(mean, values.min(axis=-1), values.max(axis=-1))


@dataclass(frozen=True, eq=False)
class _Proposal:
    """How subsets of n - 1 records are drawn for one output, and how they are weighed."""

    exponent: Float[Array, "N W"]
    offset: Float[Array, " W"]  # the sum of exponents over a subset is this minus that over the rest
    output: int
    reference: int
    log_weight: Float[Array, " N"]  # -v, its largest being 0
    largest: float  # no P_D(reference) is larger
    drawn: str = "members"

    @classmethod
    def of(cls, exponent: Array, output: int) -> _Proposal:
        """Choose as reference the output that the mechanism prefers where the tilt by it leads, if there is one."""
        n = len(exponent) // 2
        reference, best = output, -math.inf
        candidate = int(np.argmin(exponent.sum(axis=0)))
        for _ in range(8):
            inside = _inclusion(exponent[:, candidate] - exponent[:, output], n)
            logits = -(inside @ exponent)
            log_probability = float(logits[candidate] - np.logaddexp.reduce(logits))
            if log_probability <= best:
                break
            reference, best, candidate = candidate, log_probability, int(np.argmax(logits))
        log_weight = exponent[:, reference] - exponent[:, output]
        worst = np.sort(exponent - exponent[:, [reference]], axis=0)[-n:].sum(axis=0)
        largest = math.exp(-np.logaddexp.reduce(-worst))
        return cls(exponent, exponent.sum(axis=0), output, reference, log_weight - log_weight.max(), largest)

    def mirrored(self) -> _Proposal:
        """Exchange the records in D with those that are not."""
        log_weight = self.log_weight.min() - self.log_weight
        offset = np.zeros_like(self.offset)  # a sum over D is one over the rest of the others, with the sign back
        return replace(self, exponent=-self.exponent, offset=offset, log_weight=log_weight, drawn="others")

    def draws(self, n_draws: int, seed: int) -> Iterator[Bool[Array, "N k"]]:
        """Subsets of n - 1 records, with probability proportional to the product of the weights."""
        n = len(self.exponent) // 2
        inclusion = _inclusion_table(np.exp(self.log_weight), n)
        for start in range(0, n_draws, _DRAWS):
            rng = stream(seed, "membership given an output", self.output, self.drawn, start)
            missing = np.full(min(_DRAWS, n_draws - start), n - 1)
            member, uniform = np.empty((2 * n, len(missing)), dtype=bool), np.empty(len(missing))
            for i in range(2 * n):
                np.less(rng.random(out=uniform), inclusion[i].take(missing), out=member[i])
                missing -= member[i]
            yield member

    def completed(self, outside: Float[Array, "N k"]) -> Float[Array, "N k"]:
        """P_{B+x}(reference) for each record outside the draws, 0 for those inside."""
        log_rest = self.exponent.T @ outside - self.offset[:, None]
        rest = np.exp(log_rest - log_rest.max(axis=0))
        chosen = np.exp(self.exponent[:, [self.reference]] - self.exponent) @ rest
        np.divide(rest[self.reference], chosen, out=chosen)
        chosen *= outside
        return chosen


@dataclass(frozen=True, eq=False)
class _Moments:
    """Of a = P_{B+x}(r) and b = mean_x' e^{-v_x'} P_{B+x'}(r), over the draws without x, as z = a - ratio b and b.

    The constant ratio is near that of the means, so that the variance of z is of the size that matters.
    """

    ratio: Float[Array, " N"]
    count: Float[Array, " N"]
    mean: Float[Array, "N 2"]  # of z, b
    covariance: Float[Array, "N 3"]  # zz, zb, bb

    @property
    def log_ratio(self) -> Float[Array, " N"]:
        """Compute ln of the ratio of the means of a and b."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(self.ratio + self.mean[:, 0] / self.mean[:, 1])


def _moments(proposal: _Proposal, n_draws: int, seed: int) -> _Moments:
    """With T = sum_x e^{-v_x} a_x of a draw, n b_x = T - e^{-v_x} a_x: sums of 1, T, T^2, a, a T, a^2 are enough."""
    n_records = len(proposal.exponent)
    weight = np.exp(proposal.log_weight)
    powers, products, squares = np.zeros((n_records, 3)), np.zeros((n_records, 2)), np.zeros(n_records)
    step = max(64, _BLOCK // n_records)
    for member in proposal.draws(n_draws, seed):
        for start in range(0, member.shape[1], step):
            outside = 1.0 - member[:, start : start + step]
            chosen = proposal.completed(outside)
            total = weight @ chosen
            columns = np.stack([np.ones_like(total), total, total**2], axis=1)
            powers += outside @ columns
            products += chosen @ columns[:, :2]
            squares += np.einsum("xk,xk->x", chosen, chosen)
    return _moments_of(powers, products, squares, weight / (n_records / 2))


def _moments_of(powers: Array, products: Array, squares: Array, weight: Float[Array, " N"]) -> _Moments:
    """From sums of 1, T, T^2 and a, a T and a^2: b = T/n - weight a, with the weight e^{-v_x}/n."""
    n = len(weight) / 2
    count, total, total_squares = powers.T
    chosen, mixed = products.T
    swapped = total / n - weight * chosen
    ratio = np.where(swapped > 0, chosen / np.where(swapped > 0, swapped, 1), 1.0)
    bb = total_squares / n**2 - 2 * weight * mixed / n + weight**2 * squares
    ab = mixed / n - weight * squares
    sums = np.stack([squares - 2 * ratio * ab + ratio**2 * bb, ab - ratio * bb, bb], axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):  # fewer than two draws without a record: no limits
        mean = np.stack([chosen - ratio * swapped, swapped], axis=1) / count[:, None]
        covariance = sums - count[:, None] * np.stack(
            [mean[:, 0] ** 2, mean[:, 0] * mean[:, 1], mean[:, 1] ** 2], axis=1
        )
        covariance[:, 0] += _ROUNDING * squares
        return _Moments(ratio, count, mean, covariance / (count[:, None] - 1))


def _odds(
    proposal: _Proposal, n_draws: int, seed: int, log_budget: float, certain: Float[Array, "2 N"]
) -> Float[Array, "3 N"]:
    """ln(IN/OUT) given one output: value, lower and upper limit, within what is certain."""
    moments = _moments(proposal, n_draws, seed)
    low, high = _limits(proposal, moments, log_budget, np.ptp(np.exp(certain), axis=0))
    low, high = np.fmax(certain[0], low), np.fmin(certain[1], high)
    value = np.nan_to_num(moments.log_ratio + proposal.log_weight)
    return np.stack([np.clip(value, low, high), low, high])


def _limits(
    proposal: _Proposal, moments: _Moments, log_budget: float, width: Float[Array, " N"]
) -> tuple[Array, Array]:
    """Limits of ln(IN/OUT) from the draws; NaN where they set none.

    Those shifts s of the ratio for which ``|mean z - s mean b| <= sqrt(2 L V/K) + 7 L R/(3 (K - 1))``, with V the
    variance of z - s b, quadratic in s, and R a range of it: b <= R_b and a/b lies in an interval of known width.
    """
    n, count = len(width) // 2, moments.count
    (z, b), (zz, zb, bb) = moments.mean.T, moments.covariance.T
    weight = np.exp(proposal.log_weight)
    most_swapped = proposal.largest * np.sort(weight)[-n:].mean()
    ends = []
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        slack = 7 * log_budget / (3 * (count - 1)) * most_swapped * width / weight
        budget = 2 * log_budget / count
        # |mean z - s mean b| - slack <= sqrt(budget V(s)), squared, is quadratic in s; each side has its own slack.
        curvature = b**2 - budget * bb
        for side in (-1.0, 1.0):
            edge = z + side * slack
            slope, height = b * edge - budget * zb, edge**2 - budget * zz
            root = (slope + side * np.sqrt(np.maximum(slope**2 - curvature * height, 0))) / curvature
            shifted = moments.ratio + root
            limit = np.log(shifted) + proposal.log_weight
            # a ratio that cancels to nothing is rounding: it would be a limit of minus infinity
            resolved = shifted > 1e-12 * np.abs(moments.ratio)
            ends.append(np.where((curvature > 0) & (count > 1) & resolved, limit, np.nan))
    return ends[0], ends[1]


def _inclusion(v: Float[Array, " N"], n: int) -> Float[Array, " N"]:
    """Probabilities of independent draws with odds proportional to e^v whose expected number is about n."""
    low, high = -float(v.max()) - 10.0, -float(v.min()) + 10.0
    shift = bisect(lambda x: bool(expit(v + x).sum() >= n), inside=high, outside=low, max_steps=24)
    return expit(v + shift)


def _inclusion_table(weight: Float[Array, " N"], n: int) -> Float[Array, "N n"]:
    """Probability that record i is taken if j are still to be taken from the records i, i + 1, ...

    With e_j the elementary symmetric polynomial of the weights after i it is ``t_i e_{j-1}/(e_j + t_i e_{j-1})``;
    the ratios s_j = e_j/e_{j-1} have a recursion of their own, without overflow and without differences (Chen,
    Dempster & Liu 1994, section 3).
    """
    inclusion = np.zeros((len(weight), n))
    ratio = np.r_[math.inf, np.zeros(n - 1)]
    with np.errstate(divide="ignore"):  # a ratio of 0: more to be taken than there are records
        for i in range(len(weight) - 1, -1, -1):
            inclusion[i, 1:] = weight[i] / (ratio[1:] + weight[i])
            ratio[1:] = (ratio[1:] + weight[i]) / (1 + weight[i] / ratio[:-1])
    return inclusion
