"""Trade-off curves: the false-negative rate that any attacker must pay for a false-positive rate.

A measured ROC and a proved ceiling are the same type. The one abstract method is ``fnr``; everything
else is written once, here, in terms of it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from leakscope.checks import non_negative, probability

Array = np.ndarray | np.floating  # one rate for each rate asked for; a number for a number
_LARGEST_EPSILON = 700.0  # exp overflows above 709


class TradeOff(ABC):
    """The curve fnr(fpr) of the best attacker (a ceiling), or of one attack (a measured ROC).

    A ceiling is convex, non-increasing and at most 1 - fpr.
    """

    @property
    def knots(self) -> Sequence[float] | np.ndarray:
        """False-positive rates at which the curve has corners; maxima are looked for there too."""
        return ()

    @abstractmethod
    def fnr(self, fpr: ArrayLike) -> Array:
        """False-negative rate at a false-positive rate in [0, 1]."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Canonical JSON of the curve; ``from_dict`` reads it."""

    @final
    def tpr(self, fpr: ArrayLike) -> Array:
        """True-positive rate: 1 - fnr(fpr)."""
        return 1.0 - self.fnr(fpr)

    @final
    def advantage(self) -> float:
        """Largest tpr - fpr; for a ceiling the total variation distance."""
        return 2 * self.success(0.5) - 1

    @final
    def success(self, prior: float = 0.5) -> float:
        """Accuracy of the best guess where a share ``prior`` are members.

        ``max over a of prior (1 - fnr(a)) + (1 - prior)(1 - a)``, at least max(prior, 1 - prior).
        """
        prior = probability("prior", prior, open_ends=True)
        best = self._largest(lambda a: prior * self.tpr(a) + (1 - prior) * (1 - a))
        return max(best, prior, 1 - prior)

    @final
    def ppv(self, fpr: ArrayLike, prior: float = 0.5) -> Array:
        """Share of members among the points called members, at a false-positive rate."""
        prior = probability("prior", prior, open_ends=True)
        fpr = np.asarray(fpr, dtype=float)
        hits, alarms = prior * self.tpr(fpr), (1 - prior) * fpr
        called = hits + alarms
        return np.where(called > 0, hits / np.where(called > 0, called, 1), prior)

    @final
    def delta(self, epsilon: float) -> float:
        """Smallest delta with which the curve is (epsilon, delta)-indistinguishable, in both directions."""
        ratio = math.exp(min(non_negative("epsilon", epsilon), _LARGEST_EPSILON))

        def excess(a: np.ndarray) -> np.ndarray:
            fnr = self.fnr(a)
            return np.maximum(1 - fnr - ratio * a, 1 - a - ratio * fnr)

        return float(np.clip(self._largest(excess), 0, 1))

    @final
    def epsilon(self, delta: float) -> float:
        """Smallest epsilon with ``delta(epsilon) <= delta``; infinity if there is none below 700.

        A delta is resolved to 1e-15 (rounding of rates near 1).
        """
        delta = probability("delta", delta) * (1 + 1e-9) + 1e-15
        low, high = 0.0, _LARGEST_EPSILON
        if self.delta(low) <= delta:
            return low
        if self.delta(high) > delta:
            return math.inf
        while high - low > 1e-12 * max(1.0, high):
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta(middle) <= delta else (middle, high)
        return high

    def _largest(self, value: Any) -> float:
        """Maximum over fpr of a function that is unimodal between grid points."""
        ends = np.concatenate([[0.0], 10.0 ** np.linspace(-300, -4, 400), np.linspace(1e-4, 0.5, 2000)])
        grid = np.unique(np.concatenate([ends, 1 - ends, np.asarray(self.knots, dtype=float)]))
        values = value(grid)
        best = float(values.max())
        for _ in range(12):  # each round shrinks the bracket around the best point tenfold
            i = int(np.argmax(values))
            low, high = grid[max(i - 1, 0)], grid[min(i + 1, len(grid) - 1)]
            grid = np.linspace(low, high, 21)
            values = value(grid)
            best = max(best, float(values.max()))
        return best


@final
@dataclass(frozen=True)
class Gaussian(TradeOff):
    """Trade-off of N(0, 1) against N(mu, 1): mu-GDP.

    ``fnr(a) = Phi(Phi^-1(1 - a) - mu)`` (Dong, Roth & Su 2022, eq. 6).

    Parameters
    ----------
    mu : float
        Distance in standard deviations, >= 0.

    Examples
    --------
    >>> from leakscope.tradeoff import Gaussian
    >>> round(Gaussian(7.75 ** 0.5).advantage(), 6)
    0.83606
    """

    mu: float

    def __post_init__(self) -> None:
        non_negative("mu", self.mu, infinite=True)

    def fnr(self, fpr: ArrayLike) -> Array:
        """``Phi(Phi^-1(1 - fpr) - mu)``."""
        fpr = _rates(fpr)
        if self.mu == math.inf:
            return np.zeros_like(fpr)
        return ndtr(-ndtri(fpr) - self.mu)

    def to_dict(self) -> dict[str, Any]:
        """``{"kind": "gaussian", "mu": ...}``."""
        return {"kind": "gaussian", "mu": self.mu}


@final
@dataclass(frozen=True, init=False)
class EpsilonDelta(TradeOff):
    """Trade-off of (epsilon, delta)-DP.

    ``fnr(a) = max(0, 1 - delta - e^epsilon a, e^-epsilon (1 - delta - a))`` (Wasserman & Zhou 2010;
    Kairouz, Oh & Viswanath 2015).

    Parameters
    ----------
    epsilon : float
        >= 0, infinity allowed.
    delta : float
        In [0, 1].

    Examples
    --------
    >>> from leakscope.tradeoff import EpsilonDelta
    >>> round(EpsilonDelta(1.0, 0.0).advantage(), 6)
    0.462117
    """

    promised: tuple[float, float]  # (epsilon, delta); those two names are the conversions of every curve

    def __init__(self, epsilon: float, delta: float = 0.0) -> None:
        pair = non_negative("epsilon", epsilon, infinite=True), probability("delta", delta)
        object.__setattr__(self, "promised", pair)

    @property
    def knots(self) -> Sequence[float] | np.ndarray:
        """The corner on the diagonal and the two ends of the curve."""
        epsilon, delta = self.promised
        small = math.exp(-epsilon)
        return ((1 - delta) * small / (1 + small), (1 - delta) * small, 1 - delta)

    def fnr(self, fpr: ArrayLike) -> Array:
        """``max(0, 1 - delta - e^epsilon fpr, e^-epsilon (1 - delta - fpr))``."""
        fpr = _rates(fpr)
        epsilon, delta = self.promised
        small = math.exp(-epsilon)
        with np.errstate(over="ignore"):
            steep = 1 - delta - fpr / small if small > 0 else np.where(fpr > 0, -np.inf, 1 - delta)
        return np.maximum(0, np.maximum(steep, small * (1 - delta - fpr)))

    def to_dict(self) -> dict[str, Any]:
        """``{"kind": "epsilon_delta", "epsilon": ..., "delta": ...}``."""
        return {"kind": "epsilon_delta", "epsilon": self.promised[0], "delta": self.promised[1]}


@final
@dataclass(frozen=True, eq=False)
class Piecewise(TradeOff):
    """Straight lines between given points: a measured ROC, or a ceiling given by corners.

    Parameters
    ----------
    at : array of shape (P,)
        False-positive rates, non-decreasing; a first point at 0 and a last one at 1 are added where
        missing, (0, 1) and (1, 0).
    value : array of shape (P,)
        False-negative rates, non-increasing.

    Examples
    --------
    >>> from leakscope.tradeoff import Piecewise
    >>> float(Piecewise([0.1], [0.4]).tpr(0.1))
    0.6
    """

    at: np.ndarray
    value: np.ndarray

    def __init__(self, fpr: ArrayLike, fnr: ArrayLike) -> None:
        at, value = np.atleast_1d(_rates(fpr)), np.atleast_1d(_rates(fnr))
        if at.shape != value.shape or at.ndim != 1:
            raise ValueError(f"fpr has shape {at.shape} and fnr {value.shape}; both must be (P,)")
        if (np.diff(at) < 0).any() or (np.diff(value) > 0).any():
            raise ValueError("fpr must not decrease and fnr must not increase along the curve")
        ends = ((at == 0) & (value == 1)) | ((at == 1) & (value == 0))  # the added points may be there already
        object.__setattr__(self, "at", np.r_[0.0, at[~ends], 1.0])
        object.__setattr__(self, "value", np.r_[1.0, value[~ends], 0.0])

    @property
    def knots(self) -> np.ndarray:
        """The corners."""
        return self.at

    def fnr(self, fpr: ArrayLike) -> Array:
        """Linear interpolation; at a vertical step the lower end."""
        fpr = _rates(fpr)
        right = np.clip(np.searchsorted(self.at, fpr, side="right"), 1, len(self.at) - 1)
        left = right - 1
        width = self.at[right] - self.at[left]
        share = np.where(width > 0, (fpr - self.at[left]) / np.where(width > 0, width, 1), 0)
        inside = self.value[left] + share * (self.value[right] - self.value[left])
        return np.where(fpr >= 1, 0.0, inside)

    def to_dict(self) -> dict[str, Any]:
        """``{"kind": "piecewise", "fpr": [...], "fnr": [...]}``."""
        return {"kind": "piecewise", "fpr": self.at.tolist(), "fnr": self.value.tolist()}


@final
@dataclass(frozen=True)
class Mixture(TradeOff):
    """The attacker is told which of several releases it faces: ``fnr(a) = sum_i w_i fnr_i(a)`` at one a.

    Parameters
    ----------
    weights : sequence of float
        Probabilities, with sum 1.
    curves : sequence of TradeOff

    Examples
    --------
    >>> from leakscope.tradeoff import EpsilonDelta, Gaussian, Mixture
    >>> round(Mixture([0.9, 0.1], [EpsilonDelta(0.0), Gaussian(8.0)]).advantage(), 6)
    0.099994
    """

    weights: Sequence[float]
    curves: Sequence[TradeOff]

    def __post_init__(self) -> None:
        for weight in self.weights:
            probability("weight", weight)
        if len(self.weights) != len(self.curves) or not len(self.curves):
            raise ValueError(f"{len(self.weights)} weights for {len(self.curves)} curves; give one a curve")
        if abs(sum(self.weights) - 1) > 1e-9:
            raise ValueError(f"the weights must sum to 1, got {sum(self.weights):g}")

    @property
    def knots(self) -> np.ndarray:
        """The corners of all parts."""
        return np.unique(np.concatenate([np.asarray(curve.knots, dtype=float) for curve in self.curves]))

    def fnr(self, fpr: ArrayLike) -> Array:
        """``sum_i w_i fnr_i(fpr)``."""
        parts = [weight * curve.fnr(fpr) for weight, curve in zip(self.weights, self.curves, strict=True)]
        return np.sum(parts, axis=0)

    def to_dict(self) -> dict[str, Any]:
        """``{"kind": "mixture", "weights": [...], "curves": [...]}``."""
        return {
            "kind": "mixture",
            "weights": list(self.weights),
            "curves": [curve.to_dict() for curve in self.curves],
        }


def from_dict(content: Mapping[str, Any]) -> TradeOff:
    """The curve that ``to_dict`` wrote."""
    match content.get("kind"):
        case "gaussian":
            return Gaussian(_maybe_infinite("mu", content["mu"]))
        case "epsilon_delta":
            return EpsilonDelta(_maybe_infinite("epsilon", content["epsilon"]), content["delta"])
        case "piecewise":
            return Piecewise(content["fpr"], content["fnr"])
        case "mixture":
            return Mixture(tuple(content["weights"]), tuple(from_dict(part) for part in content["curves"]))
        case kind:
            raise ValueError(f"unknown curve kind {kind!r}; known: gaussian, epsilon_delta, piecewise, mixture")


def _maybe_infinite(name: str, value: Any) -> float:
    """A number >= 0, infinity also as JSON has it: the string "inf"."""
    return non_negative(name, math.inf if value == "inf" else value, infinite=True)


def _rates(values: ArrayLike) -> np.ndarray:
    """Numbers in [0, 1]."""
    rates = np.asarray(values, dtype=float)
    if not ((rates >= 0) & (rates <= 1)).all():
        raise ValueError(f"rates must be >= 0 and <= 1, got {rates.min():g} to {rates.max():g}")
    return rates
