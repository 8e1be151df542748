"""The least noise with which DP-SGD keeps a promise."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypedDict, Unpack

import numpy as np
from scipy.special import logit

from leakscope.core.checks import count, non_negative, one_of, positive, probability
from leakscope.core.tradeoff import Gaussian, TradeOff
from leakscope.core.types import NotApplicable

Adjacency = Literal["add_remove", "replace_one"]
Batches = Literal["poisson", "fixed"]

_PRECISION = 8e-4  # of the logarithm of the noise: 0.1 % less is too little
_COARSE = 16.0  # the grid of the search; it costs a tenth of the finest
_FARTHEST = math.log(1e15)  # of the logarithm of the noise, in both directions
_STRIDE = 2.0  # of the logarithm of the noise, the longest step of a search
_SECANTS = 8  # steps of a search that are guessed before it halves its bracket


class Target(TypedDict, total=False):
    """What the noise has to keep: ``advantage``, or ``fpr`` and ``fnr``, or ``epsilon`` and ``delta``."""

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
    """Least noise multiplier with which DP-SGD keeps an advantage, two error rates, or (epsilon, delta).

    The promise is read off the trade-off curve of `leakscope.dpsgd.accountant.dpsgd` at the multiplier that is
    returned, so that it errs where the accountant errs, on the side of more noise; 0.1 % less noise does not
    keep it. The search begins at the multiplier of the central limit theorem (Dong, Roth & Su 2022, corollary
    5.4), goes on with a coarse grid of privacy losses and ends on the finest.

    Parameters
    ----------
    sample_rate : float
        Probability with which each record is in a batch, in (0, 1]; of fixed batches their share of the records.
    steps : int
        Number of batches.
    adjacency : {"replace_one", "add_remove"}
        The game: one record swapped for another, as in data of fixed size, or one record in or out, as Opacus and
        TF Privacy count. The second needs less noise for the same numbers: compare like with like.
    batches : {"poisson", "fixed"}
        Each record by a coin of its own, or the same number of records in each, drawn without replacement.
    advantage : float
        Largest tpr - fpr of any attack: twice the eta of a game that half of the records are in. In (0, 1).
    fpr, fnr : float
        At this false-positive rate no attack has a smaller false-negative rate; fpr + fnr < 1.
    epsilon, delta : float
        The training is (epsilon, delta)-differentially private for this adjacency.

    Returns
    -------
    float
        Standard deviation of the noise in units of the clipping norm.

    Raises
    ------
    NotApplicable
        If no noise is needed: the record is in no batch often enough.
    ValueError
        If no noise is enough, or for values outside these ranges, or for none or several targets.

    Examples
    --------
    >>> from leakscope.dpsgd.calibration import dpsgd_multiplier
    >>> round(dpsgd_multiplier(0.01, 1000, advantage=0.1), 2)
    2.52
    >>> round(dpsgd_multiplier(0.01, 1000, fpr=0.01, fnr=0.95, adjacency="add_remove"), 2)
    0.78
    """
    rate = probability("sample_rate", positive("sample_rate", sample_rate))
    steps, wanted = count("steps", steps), _Wanted.of(target)
    one_of("adjacency", adjacency, ("add_remove", "replace_one"))
    one_of("batches", batches, ("poisson", "fixed"))
    from leakscope.dpsgd.accountant import dpsgd  # here, for dp-accounting takes most of a second to import

    def seen(coarseness: float) -> Callable[[float], float]:
        return lambda x: wanted.seen(dpsgd(math.exp(x), rate, steps, adjacency, coarseness, batches=batches))

    if seen(1.0)(-_FARTHEST) <= wanted.allowed:
        raise NotApplicable(f"no noise is needed for {wanted.words}")
    if seen(_COARSE)(_FARTHEST) > wanted.allowed:
        raise ValueError(f"no noise is enough for {wanted.words}: the accountant counts 1e-12 as lost")
    limit = _Search(lambda x: wanted.seen(Gaussian(math.exp(-x))), wanted.allowed).least(0.0)
    search = _Search(seen(_COARSE), wanted.allowed, _PRECISION / 2)
    near = search.least(_log_multiplier(math.exp(-limit), rate, steps, adjacency, batches))
    return math.exp(_Search(seen(1.0), wanted.allowed, _PRECISION, search.slope).least(near))


@dataclass(frozen=True)
class _Wanted:
    """A share that can be seen in a curve, less with more noise, and the largest that is allowed."""

    words: str
    allowed: float
    seen: Callable[[TradeOff], float]

    @classmethod
    def of(cls, target: Target) -> _Wanted:
        """What the keywords ask for."""
        given = {name: value for name, value in target.items() if value is not None}
        words = ", ".join(f"{name} = {value}" for name, value in given.items())
        if set(given) == {"advantage"}:
            return cls(words, probability("advantage", given["advantage"]), lambda curve: curve.advantage())
        if set(given) == {"epsilon", "delta"}:
            epsilon = non_negative("epsilon", given["epsilon"])
            return cls(words, probability("delta", given["delta"]), lambda curve: curve.delta(epsilon))
        if set(given) == {"fpr", "fnr"}:
            fpr, fnr = probability("fpr", given["fpr"], open_ends=True), probability("fnr", given["fnr"])
            guess = 1 - fpr
            if fnr >= guess:
                raise ValueError(f"fnr must be < {guess:g}, that of a guess at fpr = {fpr:g}; got {fnr:g}")
            return cls(words, (guess - fnr) / guess, lambda curve: (guess - float(curve.fnr(fpr))) / guess)
        raise ValueError(f"give advantage, or fpr and fnr, or epsilon and delta; got {', '.join(given) or 'none'}")


@dataclass
class _Search:
    """Least x at which a share that falls with x is small enough: secants of its log-odds, then halving.

    The slope of the log-odds is kept for a search of a nearby share.
    """

    seen: Callable[[float], float]
    allowed: float
    precision: float = _PRECISION
    slope: float = 1.0

    def least(self, start: float) -> float:
        """An x where the share is small enough, and by its slope or a bracket too large at x - precision."""
        low, high, x, before = -math.inf, math.inf, start, (math.nan, math.nan)
        for step in itertools.count():
            margin = _log_odds(self.allowed) - _log_odds(self.seen(x))
            slope = (margin - before[1]) / (x - before[0])
            self.slope = max(slope, 1e-6) if math.isfinite(slope) else self.slope
            if margin > 0:  # not at 0: two shares may have the same log-odds
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


def _log_odds(share: float) -> float:
    """log(share/(1 - share)), finite."""
    return float(logit(min(max(share, 1e-300), 1 - 1e-16)))


def _log_multiplier(mu: float, rate: float, steps: int, adjacency: Adjacency, batches: Batches) -> float:
    """Where the central limit is mu: mu^2 = q^2 T (e^(1/sigma^2) - 1), or 4 q^2 T sinh(1/sigma^2) of two records.

    mu^2 is T times the variance of the loss of a step at first order in q, which is q^2 that of the ratio of
    the densities: ``N(1, sigma^2)/N(0, sigma^2)``, less ``N(-1, sigma^2)/N(0, sigma^2)`` for another record. In
    fixed batches a record is 2 away from whose place it takes, in both games.
    """
    square = (mu / rate) ** 2 / steps
    if batches == "fixed":
        return math.log(2) - math.log(math.log1p(square)) / 2
    inverse = math.log1p(square) if adjacency == "add_remove" else math.asinh(square / 4)
    return -math.log(inverse) / 2
