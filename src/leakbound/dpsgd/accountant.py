"""The trade-off curve of DP-SGD, by privacy loss distributions.

A step of DP-SGD is dominated by a pair of one-dimensional distributions, of the release with the record ("in") and
without it ("out"); T steps are dominated by T independent copies of the pair. The pair is discretised on a grid of
privacy losses log(in/out) so that every hockey-stick divergence can only grow (connect the dots), convolved T times,
and converted to lines below the trade-off curve. Every error is on the side of less privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
from dp_accounting.pld import common, privacy_loss_distribution
from jaxtyping import Float, Int
from scipy.special import log_ndtr, ndtr, ndtri

from leakbound.core.checks import count, one_of, positive, probability, real
from leakbound.core.tradeoff import Gaussian, Profile, TradeOff

Array = np.ndarray
HockeyStick = Callable[[np.ndarray], np.ndarray]  # delta at each order epsilon

_LOST = 1e-12  # probability lost to truncation and rounding in each direction; counted as infinite loss
_LEAST_NOISE = 0.05  # below it N(0, sigma^2) and N(1, sigma^2) overlap by less than 2e-23
_APART = 80.0  # standard deviation of the total loss beyond which the two distributions do not overlap either
_STEPS = 10**9
_FINENESS = 500  # grid points in one standard deviation of the loss of a step
_WIDTH = 2**18  # largest number of grid points of a step
_LENGTH = 2**21  # about the largest number of grid points of all steps
_STEPS_ROUNDED_DOWN = 100_000  # steps up to which a lower bound of epsilon is computed
_LEAST_DELTA = 1e-10
_LINES = 2000  # kept in each direction


def dpsgd(
    noise_multiplier: float,
    sample_rate: float,  # q, of a record to be in a batch; with fixed batches their fraction of the data
    steps: int,
    # What the attacker distinguishes. add_remove: the record is in the data or not, in a step
    # (1 - q) N(0, sigma^2) + q N(1, sigma^2) against N(0, sigma^2). replace_one: this record or another,
    # (1 - q) N(0, sigma^2) + q N(1, sigma^2) against (1 - q) N(0, sigma^2) + q N(-1, sigma^2). A game that swaps one
    # record for another (data of fixed size) needs replace_one.
    adjacency: Literal["add_remove", "replace_one"],
    # interval of the grid in units of the finest one: time falls with it, the error grows with its square
    coarseness: float = 1.0,
    *,
    # Poisson: each record independently. Fixed: equally many in each step, drawn without replacement. There a record
    # takes the place of another, up to 2 clipping norms away: a step of add_remove is (1 - q) N(0, sigma^2) +
    # q N(2, sigma^2) against N(0, sigma^2), one of replace_one the worse of that pair and its mirror image.
    batches: Literal["poisson", "fixed"] = "poisson",
) -> TradeOff:
    """Bound every attack on DP-SGD: Gaussian noise on sums of clipped gradients of random batches.

    Dominating pairs and their composition: Zhu, Dong & Wang 2022, theorems 10 and 11, and for replace-one
    Schuchardt et al. 2024. Fixed batches and replace-one: Dong, Roth & Su 2022, theorem 4.2, composed by theorem 3.2.
    Fixed batches and add/remove: in a batch with the record put a uniform one of those outside in its place, and it
    is a uniform batch of the data without it. So a step is (1 - q) Q + q P against Q, where P and Q are mixtures over
    the same batches of Gaussians at most 2 apart. Hockey sticks are jointly convex: N(2, sigma^2) and N(0, sigma^2)
    dominate P and Q, and q times their divergence of order (e^epsilon - 1 + q)/q is that of the step.

    Discretisation: Doroshenko et al. 2022, algorithm 1. A grid of interval d adds at most about d^2/6 to the variance
    of a step. With d = 1/500 of its standard deviation the advantage is about 1e-7 too large; the points left out
    cost another 1e-5 of a hockey stick elsewhere. Small noise at a small sample rate (losses with heavy tails) makes
    the grid coarser, with errors on the same side.

    >>> curve = dpsgd(1.0, 0.01, 1000, "add_remove")
    >>> round(curve.advantage(), 4), round(curve.epsilon(1e-5), 3)
    (0.161, 1.828)
    """
    # The curve is never above the true one but for floating-point rounding, some 1e-16 a step.
    fixed = one_of("batches", batches, ("poisson", "fixed")) == "fixed"
    noise = positive("noise_multiplier", noise_multiplier) / (2 if fixed else 1)
    rate = probability("sample_rate", positive("sample_rate", sample_rate))
    steps = count("steps", steps)
    replace = one_of("adjacency", adjacency, ("add_remove", "replace_one")) == "replace_one"
    if real("coarseness", coarseness) < 1:
        raise ValueError(f"coarseness must be >= 1, got {coarseness:g}")
    if steps > _STEPS:
        raise ValueError(f"steps must be <= {_STEPS:,}, got {steps:,}")
    # Poisson batches: each of the two records may be drawn by itself, so both mixtures have a shifted part. Fixed
    # batches: one record takes the place of another, two clips away, so half the noise and one shifted part.
    both_shift = replace and not fixed
    if rate == 1:
        return Gaussian((2 if both_shift else 1) * math.sqrt(steps) / noise)
    if noise < _LEAST_NOISE:
        return _without_noise(rate, steps, replace)
    step = _Step(1 / noise, rate, both_shift)
    spread_outside, spread = step.spread()
    if spread_outside * math.sqrt(steps) > _APART:
        return _without_noise(rate, steps, replace)
    reach_in, reach_out = step.reach(_LOST / (4 * steps))
    # Fine for one step, but no finer than _WIDTH points for a step and _LENGTH for all of them.
    by_step = max(spread_outside / _FINENESS, max(reach_in, reach_out) / _WIDTH)
    interval = coarseness * max(by_step, 16 * spread * math.sqrt(steps) / _LENGTH, 1e-9)
    losses_in = _Half.of(step.in_to_out, reach_in, interval)
    losses_out = losses_in if replace and fixed else _Half.of(step.out_to_in, reach_out, interval)
    total_in = _Losses.of(losses_in, losses_out, steps)
    if replace:  # the other direction is the mirror image
        return _curve([total_in])
    return _curve([total_in, _Losses.of(losses_out, losses_in, steps)])


def epsilon_at_least(noise_multiplier: float, sample_rate: float, steps: int, delta: float) -> float:
    """Compute an epsilon that DP-SGD with Poisson batches exceeds: adding or removing some record reveals more.

    The pair of distributions of `dpsgd` is attained by a record whose gradient has the length of the clipping norm
    while those of the others are 0. dp-accounting rounds its privacy losses down to a grid, so that every divergence
    can only shrink.

    >>> dpsgd(1.0, 0.05, 200, "add_remove").epsilon(1e-5) - epsilon_at_least(1.0, 0.05, 200, 1e-5) < 0.02
    True
    """
    # 0 is below any epsilon: where noise hides nothing, or the rounding of the transform is no small part
    if noise_multiplier < _LEAST_NOISE or steps > _STEPS_ROUNDED_DOWN or delta < _LEAST_DELTA:
        return 0.0
    step = privacy_loss_distribution.from_gaussian_mechanism(
        noise_multiplier, pessimistic_estimate=False, sampling_prob=sample_rate, use_connect_dots=False
    )
    return max(0.0, float(step.self_compose(steps).get_epsilon_for_delta(delta)))


def _without_noise(rate: float, steps: int, replace: bool) -> TradeOff:
    """Return the curve without noise: the record is revealed unless it is in no batch.

    Noise never adds to what is revealed, so this bounds the curve with any noise.
    """
    log_never = steps * math.log1p(-rate)
    revealed = -math.expm1(log_never)
    return Profile([0.0], [revealed]) if replace else Profile([-log_never], [revealed], [0.0])


@dataclass(frozen=True)
class _Step:
    """The pair of one step at x, in units of the noise: s = 1/sigma, q the sample rate.

    In: (1 - q) N(0, 1) + q N(s, 1). Out: N(0, 1), or (1 - q) N(0, 1) + q N(-s, 1) for another record. The loss
    log(in/out) grows with x, so a hockey-stick divergence is attained on a half-line. It is written in differences of
    order q: those of dp-accounting are differences of numbers near 1, and lose the digits that a fine grid needs.
    """

    shift: float
    rate: float
    replace: bool

    def loss(self, x: Float[Array, " K"]) -> Float[Array, " K"]:
        """Compute log(in/out), ``log(1 - q + q e^(s x - s^2/2))``, less that of -x for another record."""
        loss = self._loss_against_noise(x)
        return loss - self._loss_against_noise(-x) if self.replace else loss

    def _loss_against_noise(self, x: Float[Array, " K"]) -> Float[Array, " K"]:
        log_ratio = math.log(self.rate) + self.shift * x - self.shift**2 / 2
        return np.logaddexp(math.log1p(-self.rate), log_ratio)

    def spread(self) -> tuple[float, float]:
        """Compute the root mean square of the loss over batches without the record, and over all batches."""
        z, weight = np.polynomial.hermite_e.hermegauss(64)
        without = float(weight @ self.loss(z) ** 2 / weight.sum())
        within = float(weight @ self.loss(z + self.shift) ** 2 / weight.sum())
        return math.sqrt(without), math.sqrt((1 - self.rate) * without + self.rate * within)

    def reach(self, hidden: float) -> tuple[float, float]:
        """Return the losses that in, and the negative losses that out, exceed with at most this probability."""
        x = self.shift - float(ndtri(hidden))
        low, high = self.loss(np.array([-x, x]))
        return float(high), float(-low)

    def in_to_out(self, order: Float[Array, " n"]) -> Float[Array, " n"]:
        """Compute H(in || out) at e^order, order >= 0; against N(0, 1) it is q times that of two Gaussians."""
        if self.replace:
            return self._against_another(order)
        inner = np.logaddexp(0.0, _log_expm1(order) - math.log(self.rate))  # log((e^order - 1 + q)/q)
        cut = inner / self.shift + self.shift / 2
        return self.rate * (ndtr(self.shift - cut) - np.exp(inner + log_ndtr(-cut)))

    def out_to_in(self, order: Float[Array, " n"]) -> Float[Array, " n"]:
        """Compute H(out || in) at e^order, order >= 0; it is 0 from -log(1 - q) on."""
        if self.replace:
            return self._against_another(order)  # the mirror image
        inner = np.maximum(1 + np.expm1(-order) / self.rate, np.finfo(float).tiny)  # (e^-order - 1 + q)/q
        cut = np.log(inner) / self.shift + self.shift / 2
        return self.rate * np.exp(order) * (inner * ndtr(cut) - ndtr(cut - self.shift))

    def _against_another(self, order: Float[Array, " n"]) -> Float[Array, " n"]:
        """Compute H of two mixtures; at the cut, s x = order/2 + asinh(sinh(order/2) (1 - q) e^(s^2/2)/q)."""
        ratio = math.log1p(-self.rate) - math.log(self.rate) + self.shift**2 / 2
        log_sinh = _log_expm1(order) - order / 2 - math.log(2) + ratio
        cut = (order / 2 + np.logaddexp(log_sinh, np.logaddexp(2 * log_sinh, 0.0) / 2)) / self.shift
        shifted = ndtr(self.shift - cut) - np.exp(order + log_ndtr(-cut - self.shift))
        return self.rate * shifted - (1 - self.rate) * np.exp(_log_expm1(order) + log_ndtr(-cut))


def _log_expm1(x: Float[Array, " n"]) -> Float[Array, " n"]:
    """Compute log(e^x - 1), at x >= 0."""
    with np.errstate(divide="ignore"):
        return x + np.log(-np.expm1(-x))


@dataclass(frozen=True, eq=False)
class _Half:
    """The positive losses of one step, in one direction: mass of the first distribution at 1, 2, ... intervals."""

    mass: Float[Array, " n"]
    certain: float  # mass at infinite loss
    interval: float

    @classmethod
    def of(cls, stick: HockeyStick, reach: float, interval: float) -> _Half:
        """Connect the dots: the hockey sticks are exact on the grid, and linear in e^epsilon between its points."""
        n = max(1, math.ceil(reach / interval))
        delta = np.minimum.accumulate(np.clip(stick(interval * np.arange(n + 1)), 0.0, 1.0))
        step = np.diff(delta)
        inner = np.diff(step) / math.expm1(interval) - step[:-1]
        mass = np.append(inner, step[-1] / math.expm1(-interval))
        return cls(np.maximum(mass, 0.0), float(delta[-1]), interval)

    @property
    def other_mass(self) -> Float[Array, " n"]:
        """Mass of the second distribution at the same losses."""
        return self.mass * np.exp(-self.interval * np.arange(1, len(self.mass) + 1))


@dataclass(frozen=True, eq=False)
class _Losses:
    """The positive losses of all steps, in one direction; entry k is about k intervals."""

    mass: Float[Array, " n"]
    stick: Float[Array, " n"]  # hockey-stick divergence at each loss
    interval: float

    @classmethod
    def of(cls, positive_losses: _Half, negative_losses: _Half, steps: int) -> _Losses:
        """Add up the losses of all steps.

        The positive losses of a step are those of this direction; its negative ones are the positive losses of the
        other direction. Each is taken from the direction in which it is positive, where small masses are exact.
        """
        below = negative_losses.other_mass[::-1]
        zero = max(0.0, 1 - positive_losses.certain - positive_losses.mass.sum() - below.sum())
        step = np.concatenate([below, [zero], positive_losses.mass])
        offset, total = _self_convolve(step, steps, positive_losses.certain)
        first = offset - steps * len(below)
        certain = _LOST - math.expm1(steps * math.log1p(-positive_losses.certain))
        mass = np.maximum(np.concatenate([np.zeros(max(first, 0)), total[max(-first, 0) :]]), 0.0)
        mass[:1] = 0.0
        interval = positive_losses.interval
        n_entries = 1 + math.floor(700 / interval)  # e^700 is the largest ratio of a hockey stick
        certain, mass = certain + float(mass[n_entries:].sum()), mass[:n_entries]
        loss = interval * np.arange(len(mass))
        # H(e^loss) = P(in beyond) - e^loss P(out beyond)
        in_beyond, out_beyond = _sums_after(mass), _sums_after(mass * np.exp(-loss))
        return cls(mass, np.clip(certain + in_beyond - np.exp(loss) * out_beyond, 0.0, 1.0), interval)

    def chosen(self) -> Int[Array, " k"]:
        """Choose the entries whose lines are kept.

        A line that is left out costs about mass x distance / 8. The entries are spaced so that this cost is the same
        fraction of the hockey stick, down to 1e-6.
        """
        weight = np.cumsum(np.sqrt(self.mass / (self.stick + 1e-6)))
        return np.unique(np.searchsorted(weight, np.linspace(0.0, weight[-1], _LINES)))

    def at(self, entries: Int[Array, " k"]) -> Float[Array, " k"]:
        """Return the hockey sticks at these entries; beyond the last loss, that of the last."""
        return self.stick[np.minimum(entries, len(self.stick) - 1)]


def _self_convolve(step: Float[Array, " n"], steps: int, certain: float) -> tuple[int, Float[Array, " m"]]:
    """Return the first entry and the masses of the sum of all steps; mass outside, at most _LOST / 4, wraps around.

    Chernoff's bound is tried near the best order for a normal distribution, and at orders for rare large losses.
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
    """Sum the later entries, for each entry."""
    return np.append(np.cumsum(values[:0:-1])[::-1], 0.0)


def _curve(directions: list[_Losses]) -> Profile:
    """Build the curve from the chosen hockey sticks, of both directions at the same epsilons."""
    entries = np.unique(np.concatenate([[0], *(losses.chosen() for losses in directions)]))
    return Profile(entries * directions[0].interval, *(losses.at(entries) for losses in directions))
