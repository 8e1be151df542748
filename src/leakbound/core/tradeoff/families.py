"""Curves with a closed form: Gaussian differential privacy and (epsilon, delta)."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from leakbound.core.checks import non_negative, probability
from leakbound.core.divergences import gaussian_hockey
from leakbound.core.tradeoff.curve import Array, TradeOff, rates


@final
@dataclass(frozen=True)
class Gaussian(TradeOff):
    """Trade-off of N(0, 1) against N(mu, 1): mu-GDP.

    ``fnr(a) = Phi(Phi^-1(1 - a) - mu)`` (Dong, Roth & Su 2022, eq. 6).

    Parameters
    ----------
    mu : float
        Distance in standard deviations, >= 0, infinity allowed.

    Examples
    --------
    >>> from leakbound.core.tradeoff import Gaussian
    >>> round(Gaussian(7.75 ** 0.5).advantage(), 6)
    0.83606
    """

    mu: float

    def __post_init__(self) -> None:
        non_negative("mu", self.mu, infinite=True)

    @classmethod
    def composed(cls, curves: Iterable[Gaussian]) -> Gaussian:
        """All of these releases seen together: mu = sqrt(sum mu_i^2) (Dong, Roth & Su 2022, corollary 3.3).

        Examples
        --------
        >>> from leakbound.core.tradeoff import Gaussian
        >>> Gaussian.composed([Gaussian(3.0), Gaussian(4.0)])
        Gaussian(mu=5.0)
        """
        return cls(math.hypot(*(curve.mu for curve in curves)))

    def doubled(self) -> Gaussian:
        """Two steps instead of one (add/remove to replace-one): 2 mu (Dong, Roth & Su 2022, theorem 2.14)."""
        return Gaussian(2 * self.mu)

    def fnr(self, fpr: ArrayLike) -> Array:
        """``Phi(Phi^-1(1 - fpr) - mu)``."""
        fpr = rates(fpr)
        if self.mu == math.inf:
            return np.zeros_like(fpr)
        return ndtr(-ndtri(fpr) - self.mu)

    def hockey_sticks(self, epsilon: float) -> tuple[float, float]:
        """``Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)`` both ways; never rounded to 0."""
        if self.mu == 0:
            return 0.0, 0.0
        stick = max(float(gaussian_hockey(self.mu, min(epsilon, sys.float_info.max))), math.ulp(0.0))
        return stick, stick

    def to_dict(self) -> dict[str, Any]:
        """``{"kind": "gaussian", "mu": ...}``."""
        return {"kind": "gaussian", "mu": self.mu}


@final
@dataclass(frozen=True, init=False)
class EpsilonDelta(TradeOff):
    """Trade-off of (epsilon, delta)-DP.

    ``fnr(a) = max(0, 1 - delta - e^epsilon a, e^-epsilon (1 - delta - a))`` (Wasserman & Zhou 2010;
    Kairouz, Oh & Viswanath 2015).
    Source: lowy2024, definition 1.

    Parameters
    ----------
    epsilon : float
        >= 0, infinity allowed: then nothing is promised, and an attacker may find every member without a false
        positive.
    delta : float
        In [0, 1].

    Examples
    --------
    >>> from leakbound.core.tradeoff import EpsilonDelta
    >>> round(EpsilonDelta(1.0, 0.0).advantage(), 6)
    0.462117
    >>> float(EpsilonDelta(float("inf")).tpr_at(0.0))
    1.0
    """

    promised: tuple[float, float]  # (epsilon, delta); those two names are the conversions of every curve

    def __init__(self, epsilon: float, delta: float = 0.0) -> None:
        pair = non_negative("epsilon", epsilon, infinite=True), probability("delta", delta)
        object.__setattr__(self, "promised", pair)

    def __repr__(self) -> str:
        epsilon, delta = self.promised
        return f"EpsilonDelta(epsilon={epsilon!r}, delta={delta!r})"

    def doubled(self) -> EpsilonDelta:
        """Two steps instead of one (add/remove to replace-one): 2 epsilon and (1 + e^epsilon) delta.

        Group privacy: ``P(S) <= e^eps Q(S) + delta`` used twice (Dwork & Roth 2014, section 2.3).

        Examples
        --------
        >>> from leakbound.core.tradeoff import EpsilonDelta
        >>> EpsilonDelta(1.0).doubled().promised
        (2.0, 0.0)
        """
        epsilon, delta = self.promised
        # in logarithms, for e^epsilon overflows where delta may still be small
        log_delta = math.log(delta) + float(np.logaddexp(0.0, epsilon)) if delta > 0 else -math.inf
        return EpsilonDelta(2 * epsilon, math.exp(min(0.0, log_delta)))

    @property
    def knots(self) -> Sequence[float] | np.ndarray:
        """The corner on the diagonal and the two ends of the curve."""
        epsilon, delta = self.promised
        small = math.exp(-epsilon)
        return ((1 - delta) * small / (1 + small), (1 - delta) * small, 1 - delta)

    def fnr(self, fpr: ArrayLike) -> Array:
        """``max(0, 1 - delta - e^epsilon fpr, e^-epsilon (1 - delta - fpr))``."""
        fpr = rates(fpr)
        epsilon, delta = self.promised
        if epsilon == math.inf:  # nothing is promised, at a false-positive rate of 0 neither
            return np.zeros_like(fpr)
        small = math.exp(-epsilon)
        with np.errstate(over="ignore", divide="ignore"):
            raised = fpr / small if small > 0 else np.exp(epsilon + np.log(fpr))
        return np.maximum(0, np.maximum(1 - delta - raised, small * (1 - delta - fpr)))

    def hockey_sticks(self, epsilon: float) -> tuple[float, float]:
        """``delta + (1 - delta) (e^eps - e^epsilon)_+/(1 + e^eps)`` both ways, with the promised eps and delta."""
        promised, delta = self.promised
        epsilon = non_negative("epsilon", epsilon, infinite=True)
        if promised == math.inf:
            return 1.0, 1.0
        excess = -math.expm1(epsilon - promised) if epsilon < promised else 0.0
        stick = delta + (1 - delta) * excess / (1 + math.exp(-promised))
        return stick, stick

    def to_dict(self) -> dict[str, Any]:
        """``{"kind": "epsilon_delta", "epsilon": ..., "delta": ...}``."""
        return {"kind": "epsilon_delta", "epsilon": self.promised[0], "delta": self.promised[1]}
