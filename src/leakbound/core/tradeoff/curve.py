"""The type of every curve: the curve, its hockey sticks, and each conversion written once in terms of them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike

from leakbound.core.checks import non_negative, of_percentage, probability
from leakbound.core.numerics import bisect

Array = np.ndarray | np.floating  # one rate for each rate asked for; a number for a number
Objective = Callable[[np.ndarray, np.ndarray], np.ndarray]  # of the two error rates, fpr and fnr

_LARGEST_EPSILON = 700.0  # exp overflows above 709


class Roc(NamedTuple):
    """Points of a curve, to be plotted.

    Parameters
    ----------
    fpr, tpr : array of shape (P,)
        False and true positive rates, both non-decreasing from 0 to 1.

    Examples
    --------
    >>> from leakbound.core.tradeoff import Piecewise
    >>> Piecewise([0.1], [0.4]).points().fpr.tolist()
    [0.0, 0.1, 1.0]
    """

    fpr: np.ndarray
    tpr: np.ndarray


class TradeOff(ABC):
    """The curve fnr(fpr) of the best attacker (a ceiling), or of one attack (a measured ROC).

    A ceiling is convex, non-increasing and at most 1 - fpr.

    Examples
    --------
    >>> from leakbound.core.tradeoff import EpsilonDelta
    >>> curve = EpsilonDelta(1.0, 0.0)
    >>> round(curve.advantage(), 4), round(curve.epsilon(0.0), 4)
    (0.4621, 1.0)
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

    def tpr_at(self, fpr: ArrayLike) -> Array:
        """True-positive rate at a false-positive rate: 1 - fnr(fpr)."""
        return 1.0 - self.fnr(fpr)

    def points(self) -> Roc:
        """Points that draw the curve: the corners of a measured ROC, a fine grid of another curve.

        Examples
        --------
        >>> from leakbound.core.tradeoff import Gaussian, Piecewise
        >>> Piecewise([0.1], [0.4]).points().tpr.tolist()
        [0.0, 0.6, 1.0]
        >>> fpr, tpr = Gaussian(1.0).points()
        >>> round(float(np.trapezoid(tpr, fpr)), 3)
        0.76
        """
        grid = np.concatenate([[0.0], np.geomspace(1e-6, 1.0, 301), np.linspace(0.0, 1.0, 201)])
        fpr = np.unique(np.concatenate([grid, np.asarray(self.knots, dtype=float)]))
        tpr = np.asarray(self.tpr_at(fpr))
        return Roc(np.r_[0.0, fpr], np.r_[0.0, tpr])  # the curve may begin above 0

    @final
    def advantage(self) -> float:
        """Largest tpr - fpr; for a ceiling the total variation distance (azize2024, theorem 2.2 and definition 2.3)."""
        return 2 * self.eta(0.5)

    @final
    def accuracy(self, prior: float = 0.5) -> float:
        """Accuracy of the best guess where a fraction ``prior`` are members.

        ``max over a of prior (1 - fnr(a)) + (1 - prior)(1 - a)``, at least max(prior, 1 - prior).
        """
        eta = self.eta(prior)
        return min(1.0, max(prior, 1 - prior) + eta)

    @final
    def eta(self, prior: float = 0.5) -> float:
        """Accuracy of the best guess above the better prior guess: accuracy(prior) - max(prior, 1 - prior).

        With k of n records inside, the prior is k/n (izzo2022, definition 1).
        """
        prior = probability("prior", prior, open_ends=True)

        def gain(fpr: np.ndarray, fnr: np.ndarray) -> np.ndarray:
            # over "nobody is in" or "everybody is in": a small eta is not a difference of numbers near 1
            if prior <= 0.5:
                return prior * (1 - fnr) - (1 - prior) * fpr
            return (1 - prior) * (1 - fpr) - prior * fnr

        return float(np.clip(self._largest(gain), 0, min(prior, 1 - prior)))

    @final
    def ppv(self, fpr: ArrayLike, prior: float = 0.5) -> Array:
        """Fraction of members among the points called members, at a false-positive rate."""
        prior = probability("prior", prior, open_ends=True)
        fpr = np.asarray(fpr, dtype=float)
        hits, alarms = prior * self.tpr_at(fpr), (1 - prior) * fpr
        called = hits + alarms
        return np.where(called > 0, hits / np.where(called > 0, called, 1), prior)

    @final
    def delta(self, epsilon: float) -> float:
        """Smallest delta with which the curve is (epsilon, delta)-indistinguishable, in both directions."""
        return max(self.hockey_sticks(epsilon))

    @abstractmethod
    def hockey_sticks(self, epsilon: float) -> tuple[float, float]:
        """``H(in || out)`` and ``H(out || in)`` of order e^epsilon, ``H(P || Q) = sup_S P(S) - e^epsilon Q(S)``.

        Source: lowy2024, lemma 11.
        """

    @final
    def searched_sticks(self, epsilon: float) -> tuple[float, float]:
        """Compute the hockey sticks by search, to 1e-15, for curves without a closed form.

        ``max_a 1 - fnr(a) - e^epsilon a`` and ``max_a 1 - a - e^epsilon fnr(a)``; above 700 the value at 700,
        which is an upper bound.
        """
        ratio = math.exp(min(non_negative("epsilon", epsilon, infinite=True), _LARGEST_EPSILON))
        inside = self._largest(lambda fpr, fnr: 1 - fnr - ratio * fpr)
        outside = self._largest(lambda fpr, fnr: 1 - fpr - ratio * fnr)
        return min(max(inside, 0.0), 1.0), min(max(outside, 0.0), 1.0)

    @final
    def epsilon(self, delta: float) -> float:
        """Smallest epsilon with ``delta(epsilon) <= delta``, to 1e-9 of delta; infinity if there is none below 700."""
        delta = probability("delta", delta) * (1 + 1e-9)
        if self.delta(0.0) <= delta:
            return 0.0
        if self.delta(_LARGEST_EPSILON) > delta:
            return math.inf
        return bisect(lambda x: self.delta(x) <= delta, _LARGEST_EPSILON, 0.0, rtol=1e-12, atol=1e-12)

    @cached_property
    def _grid(self) -> tuple[np.ndarray, np.ndarray]:
        """Rates from 1e-300 to 1 - 1e-16 and the corners, with the curve there."""
        ends = np.concatenate([[0.0], 10.0 ** np.linspace(-300, -4, 400), np.linspace(1e-4, 0.5, 2000)])
        fpr = np.unique(np.concatenate([ends, 1 - ends, np.asarray(self.knots, dtype=float)]))
        return fpr, np.asarray(self.fnr(fpr))

    def _largest(self, value: Objective) -> float:
        """Maximum over the curve of a function that is unimodal between grid points."""
        fpr, fnr = self._grid
        values = value(fpr, fnr)
        best = float(values.max())
        for _ in range(12):  # each round shrinks the bracket around the best point tenfold
            i = int(np.argmax(values))
            low, high = fpr[max(i - 1, 0)], fpr[min(i + 1, len(fpr) - 1)]
            fpr = np.linspace(low, high, 21)
            values = value(fpr, np.asarray(self.fnr(fpr)))
            best = max(best, float(values.max()))
        return best


def rates(values: ArrayLike) -> np.ndarray:
    """Numbers in [0, 1], as an array."""
    fractions = np.asarray(values, dtype=float)
    if not ((fractions >= 0) & (fractions <= 1)).all():
        meant = of_percentage(float(fractions.max()))
        hint = f"; rates are fractions: did you mean {meant} for {fractions.max():g}?" if meant else ""
        raise ValueError(f"rates must be >= 0 and <= 1, got {fractions.min():g} to {fractions.max():g}{hint}")
    return fractions
