"""Several releases, one of which the attacker faces."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from leakbound.core.checks import probability
from leakbound.core.tradeoff.curve import Array, TradeOff

RESOLUTION = 1e-15  # of a search: the rounding of rates near 1


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
    >>> from leakbound.core.tradeoff import EpsilonDelta, Gaussian, Mixture
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

    def __repr__(self) -> str:
        return f"Mixture({len(self.curves):,} curves, advantage {self.advantage():.3g})"

    @property
    def knots(self) -> np.ndarray:
        """The corners of all parts."""
        return np.unique(np.concatenate([np.asarray(curve.knots, dtype=float) for curve in self.curves]))

    def fnr(self, fpr: ArrayLike) -> Array:
        """``sum_i w_i fnr_i(fpr)``."""
        parts = [weight * curve.fnr(fpr) for weight, curve in zip(self.weights, self.curves, strict=True)]
        return np.sum(np.array(parts), axis=0)

    def hockey_sticks(self, epsilon: float) -> tuple[float, float]:
        """By search, with its resolution added; never above the mean of the parts' own."""
        parts = np.array([curve.hockey_sticks(epsilon) for curve in self.curves])
        means = np.maximum(np.dot(self.weights, parts), np.where((parts > 0).any(axis=0), math.ulp(0.0), 0.0))
        inside, outside = np.minimum(np.add(self.searched_sticks(epsilon), RESOLUTION), means)
        return float(inside), float(outside)

    def to_dict(self) -> dict[str, Any]:
        """``{"kind": "mixture", "weights": [...], "curves": [...]}``."""
        return {
            "kind": "mixture",
            "weights": list(self.weights),
            "curves": [curve.to_dict() for curve in self.curves],
        }
