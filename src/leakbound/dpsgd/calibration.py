"""The least noise with which DP-SGD keeps a privacy target.

A search for the multiplier at which the trade-off curve of the accountant meets the target: secant steps on the
log-odds of a proportion that is read off the curve, then bisection, on a coarse and then on the finest grid.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypedDict, Unpack

import numpy as np
from scipy.special import logit

from leakbound.core.checks import count, non_negative, one_of, positive, probability
from leakbound.core.tradeoff import Gaussian, TradeOff
from leakbound.core.types import NotApplicable

Adjacency = Literal["add_remove", "replace_one"]
Batches = Literal["poisson", "fixed"]

_PRECISION = 8e-4  # of the logarithm of the noise: 0.1 % less noise breaks the target
_COARSE = 16.0  # coarseness of the first grid, which costs a tenth of the finest
_FARTHEST = math.log(1e15)  # of the logarithm of the noise, in both directions
_STRIDE = 2.0  # of the logarithm of the noise, the longest step of a search
_SECANTS = 8  # secant steps of a search before it halves its bracket


class Target(TypedDict, total=False):
    """The privacy target: ``advantage``, or ``fpr`` and ``fnr``, or ``epsilon`` and ``delta``."""

    advantage: float | None
    fpr: float | None
    fnr: float | None
    epsilon: float | None
    delta: float | None


def dpsgd_multiplier(
    sample_rate: float,
    steps: int,
    *,
    adjacency: Adjacency = "replace_one",
    batches: Batches = "poisson",
    **target: Unpack[Target],
) -> float:
    """Compute the least noise multiplier with which DP-SGD keeps an advantage, two error rates, or (epsilon, delta).

    The target is checked on the trade-off curve of `leakbound.dpsgd.accountant.dpsgd` at the multiplier that is
    returned, so that errors of the accountant are on the side of more noise; 0.1 % less noise does not
    keep it. The search begins at the multiplier of the central limit theorem (Dong, Roth & Su 2022, corollary
    5.4), goes on with a coarse grid of privacy losses and ends on the finest.

    Parameters
    ----------
    sample_rate : float
        Probability with which each record is in a batch, in (0, 1]; for fixed batches the fraction of the records that
        is in a batch.
    steps : int
        Number of batches.
    adjacency : {"replace_one", "add_remove"}
        The game: one record replaced by another, as in data of fixed size, or one record in or out, as Opacus and
        TF Privacy count. The second needs less noise for the same numbers, so compare only equal adjacencies.
    batches : {"poisson", "fixed"}
        Each record independently, or the same number of records in each batch, drawn without replacement.
    **target : float
        One target, as ``advantage``, as ``fpr`` and ``fnr``, or as ``epsilon`` and ``delta``.

        advantage: largest tpr - fpr of any attack: twice the eta of a game that half of the records are in. In (0, 1).

        fpr, fnr: at this false positive rate no attack has a smaller false negative rate; fpr + fnr < 1.

        epsilon, delta: the training is (epsilon, delta)-differentially private for this adjacency.

    Returns
    -------
    float
        Standard deviation of the noise in units of the clipping norm.

    Raises
    ------
    NotApplicable
        If no noise is needed: the record is often enough in no batch.
    ValueError
        If no noise is enough, or for values outside these ranges, or for none or several targets.

    Examples
    --------
    >>> from leakbound.dpsgd.calibration import dpsgd_multiplier
    >>> round(dpsgd_multiplier(0.01, 1000, advantage=0.1), 2)
    2.52
    >>> round(dpsgd_multiplier(0.01, 1000, fpr=0.01, fnr=0.95, adjacency="add_remove"), 2)
    0.78
    """
    rate = probability("sample_rate", positive("sample_rate", sample_rate))
    steps, goal = count("steps", steps), _TargetProportion.of(target)
    one_of("adjacency", adjacency, ("add_remove", "replace_one"))
    one_of("batches", batches, ("poisson", "fixed"))
    from leakbound.dpsgd.accountant import dpsgd  # here, for dp-accounting takes most of a second to import

    def proportion(coarseness: float) -> Callable[[float], float]:
        """Return the proportion as a function of the logarithm of the multiplier."""
        return lambda x: goal.proportion(dpsgd(math.exp(x), rate, steps, adjacency, coarseness, batches=batches))

    if proportion(1.0)(-_FARTHEST) <= goal.allowed:
        raise NotApplicable("no_noise_needed", limit=goal.words)
    if proportion(_COARSE)(_FARTHEST) > goal.allowed:
        raise ValueError(f"no noise is enough for {goal.words}: the accountant counts 1e-12 as lost")
    # The central limit gives a start, the coarse grid a better one; only the fine grid decides.
    limit = _Search(lambda x: goal.proportion(Gaussian(math.exp(-x))), goal.allowed).least(0.0)
    start = _log_multiplier(math.exp(-limit), rate, steps, adjacency, batches)
    search = _Search(proportion(_COARSE), goal.allowed, _PRECISION / 2)
    near = search.least(start)
    return math.exp(_Search(proportion(1.0), goal.allowed, _PRECISION, search.slope).least(near))


@dataclass(frozen=True)
class _TargetProportion:
    """A proportion that is read off a curve and falls as the noise grows, and the largest that is allowed."""

    words: str
    allowed: float
    proportion: Callable[[TradeOff], float]

    @classmethod
    def of(cls, target: Target) -> _TargetProportion:
        """Choose the proportion of a target, and check its values."""
        values = {name: value for name, value in target.items() if value is not None}
        words = ", ".join(f"{name} = {value}" for name, value in values.items())
        if set(values) == {"advantage"}:
            return cls(words, probability("advantage", values["advantage"]), lambda curve: curve.advantage())
        if set(values) == {"epsilon", "delta"}:
            epsilon = non_negative("epsilon", values["epsilon"])
            return cls(words, probability("delta", values["delta"]), lambda curve: curve.delta(epsilon))
        if set(values) == {"fpr", "fnr"}:
            fpr, fnr = probability("fpr", values["fpr"], open_ends=True), probability("fnr", values["fnr"])
            guess = 1 - fpr
            if fnr >= guess:
                raise ValueError(f"fnr must be < {guess:g}, that of a guess at fpr = {fpr:g}; got {fnr:g}")
            return cls(words, (guess - fnr) / guess, lambda curve: (guess - float(curve.fnr(fpr))) / guess)
        raise ValueError(f"give advantage, or fpr and fnr, or epsilon and delta; got {', '.join(values) or 'none'}")


@dataclass
class _Search:
    """Least x at which a proportion that falls with x is small enough: secants of its log-odds, then halving.

    The slope of the log-odds is kept for a search of a nearby proportion.
    """

    proportion: Callable[[float], float]
    allowed: float
    precision: float = _PRECISION
    slope: float = 1.0

    def least(self, start: float) -> float:
        """Find an x at which the proportion is small enough, and at x - precision, by slope or bracket, too large."""
        low, high, x, before = -math.inf, math.inf, start, (math.nan, math.nan)
        for step in itertools.count():
            margin = _log_odds(self.allowed) - _log_odds(self.proportion(x))
            slope = (margin - before[1]) / (x - before[0])
            self.slope = max(slope, 1e-6) if math.isfinite(slope) else self.slope
            if margin > 0:  # not at 0: two proportions may have the same log-odds
                high = x
                if margin <= self.slope * self.precision or high - low <= self.precision:
                    break
            else:
                low = x
            before = x, margin
            x += float(np.clip(self.precision / 2 - margin / self.slope, -_STRIDE, _STRIDE))
            if not low < x < high or (step >= _SECANTS and math.isfinite(high - low)):
                x = (low + high) / 2
        return high


def _log_odds(p: float) -> float:
    """Compute log(p/(1 - p)), cut to finite values."""
    return float(logit(min(max(p, 1e-300), 1 - 1e-16)))


def _log_multiplier(mu: float, rate: float, steps: int, adjacency: Adjacency, batches: Batches) -> float:
    """Compute the logarithm of the multiplier for which the central limit is mu.

    mu^2 = q^2 T (e^(1/sigma^2) - 1), or 4 q^2 T sinh(1/sigma^2) for two records. mu^2 is T times the variance of the
    loss of a step at first order in q, which is q^2 that of the ratio of the densities: ``N(1, sigma^2)/N(0,
    sigma^2)``, less ``N(-1, sigma^2)/N(0, sigma^2)`` for another record. In fixed batches a record is at distance 2
    from the one that it replaces, in both games.
    """
    square = (mu / rate) ** 2 / steps
    if batches == "fixed":
        return math.log(2) - math.log(math.log1p(square)) / 2
    inverse = math.log1p(square) if adjacency == "add_remove" else math.asinh(square / 4)
    return -math.log(inverse) / 2
