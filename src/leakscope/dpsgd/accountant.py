"""DP-SGD to a trade-off curve, by privacy loss distributions.

A step of DP-SGD is dominated by a pair of one-dimensional laws, the release with the record ("in") and
without it ("out"); T steps are dominated by T independent copies of the pair. The pair is put on a grid of
privacy losses log(in/out) so that every hockey stick can only grow (connect the dots), convolved T times, and
read off as lines below the trade-off curve. Every error is on the side of less privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
from dp_accounting.pld import common
from jaxtyping import Float, Int
from scipy.special import log_ndtr, ndtr, ndtri

from leakscope.core.checks import count, one_of, positive, probability, real
from leakscope.core.tradeoff import Gaussian, Profile, TradeOff

Array = np.ndarray
HockeyStick = Callable[[np.ndarray], np.ndarray]  # delta at each order epsilon

_LOST = 1e-12  # probability that truncation and rounding may hide in each direction; counted as certain loss
_LEAST_NOISE = 0.05  # below it N(0, sigma^2) and N(1, sigma^2) overlap by less than 2e-23
_APART = 80.0  # standard deviations of the total loss beyond which the two laws do not overlap either
_STEPS = 10**9
_FINENESS = 500  # grid points in one standard deviation of the loss of a step
_WIDTH = 2**18  # largest number of grid points of a step, and
_LENGTH = 2**21  # about that of all steps
_LINES = 2000  # kept of each direction


def dpsgd(
    noise_multiplier: float,
    sample_rate: float,
    steps: int,
    adjacency: Literal["add_remove", "replace_one"],
    coarseness: float = 1.0,
    *,
    batches: Literal["poisson", "fixed"] = "poisson",
) -> TradeOff:
    """Ceiling of every attack on DP-SGD: Gaussian noise on sums of clipped gradients of random batches.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation sigma of the noise in units of the clipping norm, > 0.
    sample_rate : float
        Probability q with which a record is in a batch, in (0, 1]: of fixed batches their share of the records of
        the data with it.
    steps : int
        Number of batches, at most 10^9.
    adjacency : {"add_remove", "replace_one"}
        What the attacker has to tell apart. ``add_remove``: the record is in the data or not, in a step
        (1 - q) N(0, sigma^2) + q N(1, sigma^2) against N(0, sigma^2). ``replace_one``: this record or
        another, (1 - q) N(0, sigma^2) + q N(1, sigma^2) against (1 - q) N(0, sigma^2) + q N(-1, sigma^2). A
        game that swaps one record for another (data of fixed size) needs ``replace_one``.
    coarseness : float
        Interval of the grid in units of the finest, >= 1. Time falls with it and the error grows with its square.
    batches : {"poisson", "fixed"}
        Each record by a coin of its own, or the same number of records in each step, drawn without replacement. Who
        is in a fixed batch is there in somebody's place, whose gradient is up to 2 clipping norms away: a step of
        ``add_remove`` is (1 - q) N(0, sigma^2) + q N(2, sigma^2) against N(0, sigma^2), one of ``replace_one`` the
        worse of that pair and its mirror image.

    Returns
    -------
    TradeOff
        Never above the true curve but for floating-point rounding, some 1e-16 a step: below 1e-10 to 100,000
        steps. With sample rate 1 it is exact, a `Gaussian`; else a `Profile` of about 4,000 points at most.
        Noise below 0.05 (0.1 with fixed batches) counts as none: a step shows the records of its batch.

    Raises
    ------
    ValueError
        For values outside the ranges above.

    Notes
    -----
    Dominating pairs and their composition: Zhu, Dong & Wang 2022, theorems 10 and 11, and for replace-one
    Schuchardt et al. 2024. Fixed batches and replace-one: Dong, Roth & Su 2022, theorem 4.2, composed by theorem 3.2.
    Fixed batches and add/remove: in a batch with the record put a uniform one of those outside in its place, and it
    is a uniform batch of the data without it. So a step is (1 - q) Q + q P against Q, where P and Q are mixtures over
    the same batches of Gaussians at most 2 apart. Hockey sticks are jointly convex: N(2, sigma^2) and N(0, sigma^2)
    dominate P and Q, and what they give of order (e^epsilon - 1 + q)/q, times q, is that of the step.

    Discretisation: Doroshenko et al. 2022, algorithm 1. A grid of interval d adds at most about d^2/6 to the variance
    of a step. With d = 1/500 of its standard deviation the advantage is about 1e-7 too large; the points left out
    cost another 1e-5 of a hockey stick elsewhere. Small noise at a small sample rate (losses with heavy tails) makes
    the grid coarser, on the same side.

    Examples
    --------
    >>> from leakscope.dpsgd.accountant import dpsgd
    >>> curve = dpsgd(1.0, 0.01, 1000, "add_remove")
    >>> round(curve.advantage(), 4), round(curve.epsilon(1e-5), 3)
    (0.161, 1.828)
    """
    fixed = one_of("batches", batches, ("poisson", "fixed")) == "fixed"
    noise = positive("noise_multiplier", noise_multiplier) / (2 if fixed else 1)
    rate = probability("sample_rate", positive("sample_rate", sample_rate))
    steps = count("steps", steps)
    replace = one_of("adjacency", adjacency, ("add_remove", "replace_one")) == "replace_one"
    if real("coarseness", coarseness) < 1:
        raise ValueError(f"coarseness must be >= 1, got {coarseness:g}")
    if steps > _STEPS:
        raise ValueError(f"steps must be <= {_STEPS:,}, got {steps:,}")
    both_shift = replace and not fixed
    if rate == 1:
        return Gaussian((2 if both_shift else 1) * math.sqrt(steps) / noise)
    if noise < _LEAST_NOISE:
        return _without_noise(rate, steps, replace)
    step = _Step(1 / noise, rate, both_shift)
    bulk, whole = step.spread()
    if bulk * math.sqrt(steps) > _APART:
        return _without_noise(rate, steps, replace)
    ahead, back = step.reach(_LOST / (4 * steps))
    width = max(ahead, back) / _WIDTH
    interval = coarseness * max(bulk / _FINENESS, width, 16 * whole * math.sqrt(steps) / _LENGTH, 1e-9)
    gains = _Half.of(step.ahead, ahead, interval)
    losses = gains if replace and fixed else _Half.of(step.back, back, interval)
    forward = _Losses.of(gains, losses, steps)
    return _curve([forward] if replace else [forward, _Losses.of(losses, gains, steps)])


def _without_noise(rate: float, steps: int, replace: bool) -> TradeOff:
    """The record is seen for certain unless it is in no batch; less noise never helps, so this is a ceiling."""
    log_never = steps * math.log1p(-rate)
    seen = -math.expm1(log_never)
    return Profile([0.0], [seen]) if replace else Profile([-log_never], [seen], [0.0])


@dataclass(frozen=True)
class _Step:
    """The pair of one step at x, in units of the noise: s = 1/sigma, q the sample rate.

    In: (1 - q) N(0, 1) + q N(s, 1). Out: N(0, 1), or (1 - q) N(0, 1) + q N(-s, 1) for another record. The loss
    log(in/out) grows with x, so a hockey stick is taken on a half-line; written in differences of order q,
    because those of dp-accounting are differences of numbers near 1 and lose the digits of a fine grid.
    """

    shift: float
    rate: float
    replace: bool

    def loss(self, x: Float[Array, " K"]) -> Float[Array, " K"]:
        """log(in/out), ``log(1 - q + q e^(s x - s^2/2))`` less that of -x for another record."""
        one, other = (
            np.logaddexp(math.log1p(-self.rate), math.log(self.rate) + self.shift * z - self.shift**2 / 2)
            for z in (x, -x)
        )
        return one - other if self.replace else one

    def spread(self) -> tuple[float, float]:
        """Root mean square of the loss where the record is not in the batch, and over all batches."""
        z, weight = np.polynomial.hermite_e.hermegauss(64)
        without, within = (float(weight @ self.loss(x) ** 2 / weight.sum()) for x in (z, z + self.shift))
        return math.sqrt(without), math.sqrt((1 - self.rate) * without + self.rate * within)

    def reach(self, hidden: float) -> tuple[float, float]:
        """Losses that in, and negative losses that out, exceeds with at most this probability."""
        x = self.shift - float(ndtri(hidden))
        low, high = self.loss(np.array([-x, x]))
        return float(high), float(-low)

    def ahead(self, order: Float[Array, " n"]) -> Float[Array, " n"]:
        """H(in || out) of e^order, order >= 0; against N(0, 1) it is q times that of two Gaussians."""
        if self.replace:
            return self._against_another(order)
        inner = np.logaddexp(0.0, _log_expm1(order) - math.log(self.rate))  # log((e^order - 1 + q)/q)
        cut = inner / self.shift + self.shift / 2
        return self.rate * (ndtr(self.shift - cut) - np.exp(inner + log_ndtr(-cut)))

    def back(self, order: Float[Array, " n"]) -> Float[Array, " n"]:
        """H(out || in) of e^order, order >= 0; nothing is left from -log(1 - q) on."""
        if self.replace:
            return self._against_another(order)  # the mirror image
        left = np.maximum(1 + np.expm1(-order) / self.rate, np.finfo(float).tiny)  # (e^-order - 1 + q)/q
        cut = np.log(left) / self.shift + self.shift / 2
        return self.rate * np.exp(order) * (left * ndtr(cut) - ndtr(cut - self.shift))

    def _against_another(self, order: Float[Array, " n"]) -> Float[Array, " n"]:
        """H of two shifted mixtures: s x = order/2 + asinh(sinh(order/2) (1 - q) e^(s^2/2)/q) at the cut."""
        ratio = math.log1p(-self.rate) - math.log(self.rate) + self.shift**2 / 2
        log_sinh = _log_expm1(order) - order / 2 - math.log(2) + ratio
        cut = (order / 2 + np.logaddexp(log_sinh, np.logaddexp(2 * log_sinh, 0.0) / 2)) / self.shift
        shifted = ndtr(self.shift - cut) - np.exp(order + log_ndtr(-cut - self.shift))
        return self.rate * shifted - (1 - self.rate) * np.exp(_log_expm1(order) + log_ndtr(-cut))


def _log_expm1(x: Float[Array, " n"]) -> Float[Array, " n"]:
    """log(e^x - 1), at x >= 0."""
    with np.errstate(divide="ignore"):
        return x + np.log(-np.expm1(-x))


@dataclass(frozen=True, eq=False)
class _Half:
    """The positive losses of one step, in one direction: mass of the first law at 1, 2, ... intervals."""

    mass: Float[Array, " n"]
    certain: float
    interval: float

    @classmethod
    def of(cls, stick: HockeyStick, reach: float, interval: float) -> _Half:
        """Connect the dots: the hockey sticks are exact at the grid and linear in e^epsilon between."""
        n = max(1, math.ceil(reach / interval))
        delta = np.minimum.accumulate(np.clip(stick(interval * np.arange(n + 1)), 0.0, 1.0))
        falls = np.diff(delta)
        inner = np.diff(falls) / math.expm1(interval) - falls[:-1]
        mass = np.append(inner, falls[-1] / math.expm1(-interval))
        return cls(np.maximum(mass, 0.0), float(delta[-1]), interval)

    @property
    def other_law(self) -> Float[Array, " n"]:
        """Mass of the second law at the same losses."""
        return self.mass * np.exp(-self.interval * np.arange(1, len(self.mass) + 1))


@dataclass(frozen=True, eq=False)
class _Losses:
    """The positive losses of all steps, in one direction; entry k is about k intervals."""

    mass: Float[Array, " n"]
    stick: Float[Array, " n"]
    interval: float

    @classmethod
    def of(cls, ahead: _Half, back: _Half, steps: int) -> _Losses:
        """``ahead``: the losses of this direction; ``back``: those of the other one, which are negative here.

        Each half is taken from the direction in which it is a loss > 0, where its small masses are exact.
        """
        below = back.other_law[::-1]
        zero = max(0.0, 1 - ahead.certain - ahead.mass.sum() - below.sum())
        step = np.concatenate([below, [zero], ahead.mass])
        offset, total = _self_convolved(step, steps, ahead.certain)
        first = offset - steps * len(below)
        certain = _LOST - math.expm1(steps * math.log1p(-ahead.certain))
        mass = np.maximum(np.concatenate([np.zeros(max(first, 0)), total[max(-first, 0) :]]), 0.0)
        mass[:1] = 0.0
        least = 1 + math.floor(700 / ahead.interval)  # e^700 is the largest ratio of a hockey stick
        certain, mass = certain + float(mass[least:].sum()), mass[:least]
        loss = ahead.interval * np.arange(len(mass))
        beyond, other = (_sums_after(each) for each in (mass, mass * np.exp(-loss)))
        return cls(mass, np.clip(certain + beyond - np.exp(loss) * other, 0.0, 1.0), ahead.interval)

    def chosen(self) -> Int[Array, " k"]:
        """Entries whose lines keep the others near: the gap of a line left out is about mass x distance / 8.

        Spread so that this gap is the same share of the hockey stick, down to 1e-6.
        """
        weight = np.cumsum(np.sqrt(self.mass / (self.stick + 1e-6)))
        return np.unique(np.searchsorted(weight, np.linspace(0.0, weight[-1], _LINES)))

    def at(self, entries: Int[Array, " k"]) -> Float[Array, " k"]:
        """Hockey sticks at these entries, beyond the last loss its own."""
        return self.stick[np.minimum(entries, len(self.stick) - 1)]


def _self_convolved(step: Float[Array, " n"], steps: int, certain: float) -> tuple[int, Float[Array, " m"]]:
    """First entry and mass of the sum of all steps; what lies outside, at most _LOST / 4, wraps around.

    Chernoff's bound is tried near the order that is best for a normal law, and at those for rare large losses.
    """
    entry = np.arange(len(step))
    variance = max(float(step @ (entry - step @ entry) ** 2), 1e-300)
    normal = math.sqrt(2 * math.log(8 / _LOST) / (steps * variance)) * np.array([0.5, 0.7, 1, 1.4])
    orders = np.outer([-1, 1], [*normal, *(np.array([1, 3, 8, 20]) / len(step))]).ravel()
    as_list = cast(list[float], step)  # dp-accounting's annotation; it takes arrays, and is slow with lists
    low, high = common.compute_self_convolve_bounds(as_list, steps, _LOST / 4, list(map(float, orders)))
    length = max(high - low + 1, len(step))
    sixteenth = 1 << max(0, length.bit_length() - 4)  # lengths of small factors are the fastest to transform
    length = -(-length // sixteenth) * sixteenth
    spectrum = np.fft.rfft(step, length)
    # the mass of a step, 1 - certain, is known better than the sum of its rounded parts
    total = np.fft.irfft((spectrum / spectrum[0].real) ** steps, length) * math.exp(steps * math.log1p(-certain))
    return low, np.roll(total, -low)[: high - low + 1]


def _sums_after(values: Float[Array, " n"]) -> Float[Array, " n"]:
    """Sum of the later entries."""
    return np.append(np.cumsum(values[:0:-1])[::-1], 0.0)


def _curve(directions: list[_Losses]) -> Profile:
    """The lines of the chosen hockey sticks, of both directions at the same epsilons."""
    entries = np.unique(np.concatenate([[0], *(each.chosen() for each in directions)]))
    return Profile(entries * directions[0].interval, *(each.at(entries) for each in directions))
