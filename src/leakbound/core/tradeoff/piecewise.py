"""Straight lines between points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from leakbound.core.tradeoff.curve import Array, Roc, TradeOff, rates


@final
@dataclass(frozen=True, eq=False)
class Piecewise(TradeOff):
    """Straight lines between given points: a measured ROC, or a ceiling given by corners.

    Parameters
    ----------
    fpr : array_like of shape (P,)
        False positive rates, non-decreasing; a first point (0, 1) and a last one (1, 0) are added where
        missing.
    fnr : array_like of shape (P,)
        False negative rates, non-increasing.

    Examples
    --------
    >>> from leakbound.core.tradeoff import Piecewise
    >>> float(Piecewise([0.1], [0.4]).tpr_at(0.1))
    0.6
    """

    at: np.ndarray
    value: np.ndarray

    def __init__(self, fpr: ArrayLike, fnr: ArrayLike) -> None:
        at, value = np.atleast_1d(rates(fpr)), np.atleast_1d(rates(fnr))
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

    def __repr__(self) -> str:
        return f"Piecewise({len(self.at):,} points, advantage {self.advantage():.3g})"

    def fnr(self, fpr: ArrayLike) -> Array:
        """Linear interpolation; at a vertical step the lower end."""
        fpr = rates(fpr)
        right = np.clip(np.searchsorted(self.at, fpr, side="right"), 1, len(self.at) - 1)
        left = right - 1
        width = self.at[right] - self.at[left]
        fraction = np.where(width > 0, (fpr - self.at[left]) / np.where(width > 0, width, 1), 0)
        inside = self.value[left] + fraction * (self.value[right] - self.value[left])
        return np.where(fpr >= 1, 0.0, inside)

    def points(self) -> Roc:
        """Return the corners, which draw the curve exactly."""
        return Roc(self.at, 1.0 - self.value)

    def hockey_sticks(self, epsilon: float) -> tuple[float, float]:
        """By search; at a corner."""
        return self.searched_sticks(epsilon)

    def to_dict(self) -> dict[str, Any]:
        """``{"kind": "piecewise", "fpr": [...], "fnr": [...]}``."""
        return {"kind": "piecewise", "fpr": self.at.tolist(), "fnr": self.value.tolist()}
