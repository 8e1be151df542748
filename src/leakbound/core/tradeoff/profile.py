"""A curve given by points of its privacy profile, and the profile of any curve."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from leakbound.core.tradeoff.curve import Array, TradeOff, rates


@final
@dataclass(frozen=True, eq=False)
class Profile(TradeOff):
    """The largest curve with given points of the privacy profile: several (epsilon, delta) promises at once.

    ``fnr(a) = max(0, max_i 1 - delta_i - e^eps_i a, max_i e^-eps_i (1 - reverse_i - a))``: each point is a
    line below which no attacker comes, and a curve is the upper envelope of all its lines (Dong, Roth & Su
    2022, section 2.3). Leaving points out lowers the curve, so any part of a profile is a safe ceiling.

    Parameters
    ----------
    epsilon : array_like of shape (P,)
        >= 0, in any order, infinity allowed.
    delta : array_like of shape (P,)
        Upper bounds of H(in || out) of order e^epsilon, in [0, 1].
    reverse : array_like of shape (P,), optional
        Upper bounds of H(out || in) of order e^epsilon; without it those of the other direction.

    Examples
    --------
    >>> from leakbound.core.tradeoff import Gaussian, Profile
    >>> curve = Profile([0.0, 1.0, 2.0], [0.38, 0.13, 0.03])
    >>> round(curve.delta(1.0), 6)
    0.13
    >>> round(Profile.of(Gaussian(1.0), [0.0, 0.5, 1.0]).advantage(), 6)
    0.382925
    """

    at: np.ndarray
    value: np.ndarray
    reverse: np.ndarray | None

    def __init__(self, epsilon: ArrayLike, delta: ArrayLike, reverse: ArrayLike | None = None) -> None:
        at = np.atleast_1d(np.asarray(epsilon, dtype=float))
        value = np.atleast_1d(rates(delta))
        back = None if reverse is None else np.atleast_1d(rates(reverse))
        if at.shape != value.shape or (back is not None and at.shape != back.shape) or at.ndim != 1 or not at.size:
            shapes = f"epsilon has shape {at.shape}, delta {value.shape}"
            shapes += "" if back is None else f", reverse {back.shape}"
            raise ValueError(f"{shapes}; they must be (P,) with P >= 1")
        if not (at >= 0).all():
            raise ValueError(f"epsilon must be >= 0, got {at.min():g}")
        object.__setattr__(self, "at", at)
        object.__setattr__(self, "value", value)
        object.__setattr__(self, "reverse", back)

    @classmethod
    def of(cls, curve: TradeOff, epsilon: Iterable[float]) -> Profile:
        """Return the profile of a curve at these epsilons: a curve at or below it that touches it once for each.

        A curve made of straight lines comes back whole if its log-slopes are among the epsilons.
        """
        epsilon = list(epsilon)
        sticks = np.array([curve.hockey_sticks(e) for e in epsilon]).reshape(-1, 2)
        return cls(epsilon, sticks[:, 0], sticks[:, 1])

    def __repr__(self) -> str:
        return f"Profile({len(self.at):,} points, advantage {self.advantage():.3g})"

    @cached_property
    def _inside(self) -> tuple[np.ndarray, np.ndarray]:
        """Corners (fpr ascending, fnr) of the lines that begin at fpr = 0."""
        return _envelope(self.at, self.value)

    @cached_property
    def _outside(self) -> tuple[np.ndarray, np.ndarray]:
        """Corners (fnr ascending, fpr) of the lines that begin at fnr = 0."""
        return self._inside if self.reverse is None else _envelope(self.at, self.reverse)

    @property
    def knots(self) -> np.ndarray:
        """The corners of both families of lines."""
        return np.concatenate([self._inside[0], self._outside[1]])

    def fnr(self, fpr: ArrayLike) -> Array:
        """Compute the larger of the two envelopes."""
        fpr = rates(fpr)
        along, height = self._inside
        steep = np.where(fpr > 0, np.interp(fpr, along, height), height[0])
        small, until = self._outside
        return np.maximum(steep, np.interp(fpr, until[::-1], small[::-1]))

    def hockey_sticks(self, epsilon: float) -> tuple[float, float]:
        """By search; never below the least delta that is given, nor above what is given for this epsilon.

        Both directions have the same total variation, so that what one of them promises of it holds for the other.
        """
        inside, outside = self.searched_sticks(epsilon)
        back = self.value if self.reverse is None else self.reverse
        least_inside = min(float(self.value.min()), _total_variation(self.at, back))
        least_outside = min(float(back.min()), _total_variation(self.at, self.value))
        given = self.at <= epsilon  # a delta of a smaller epsilon holds for this one, too
        inside = min(inside, float(self.value[given].min(initial=1.0)))
        outside = min(outside, float(back[given].min(initial=1.0)))
        return max(inside, least_inside), max(outside, least_outside)

    def to_dict(self) -> dict[str, Any]:
        """``{"kind": "profile", "epsilon": [...], "delta": [...]}``, and ``"reverse"`` where it differs."""
        content = {"kind": "profile", "epsilon": self.at.tolist(), "delta": self.value.tolist()}
        return content if self.reverse is None else {**content, "reverse": self.reverse.tolist()}


def _total_variation(epsilon: np.ndarray, delta: np.ndarray) -> float:
    """Bound the total variation by the best of some promises: ``1 - 2 (1 - delta)/(1 + e^epsilon)``."""
    return float((1 - 2 * (1 - delta) * np.exp(-np.logaddexp(0.0, epsilon))).min())


def _envelope(epsilon: np.ndarray, delta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Corners of ``max(0, max_i 1 - delta_i - e^eps_i a)`` from a = 0 to the first zero.

    Lines are added from the flattest to the steepest; one that is nowhere the largest is dropped.
    """
    lines: list[tuple[float, float]] = []
    log_corners: list[float] = []  # log a at which a line gives way to the one before, or to 0
    for line in sorted(zip(epsilon.tolist(), delta.tolist(), strict=True)):
        if line[1] >= (lines[-1][1] if lines else 1.0):
            continue  # steeper, and not higher at 0: below the line before it everywhere
        while lines and _log_meeting(lines[-1], line) >= log_corners[-1]:
            lines.pop()
            log_corners.pop()
        log_corners.append(_log_meeting(lines[-1], line) if lines else math.log1p(-line[1]) - line[0])
        lines.append(line)
    if not lines:
        return np.zeros(1), np.zeros(1)
    heights = [0.0] + [
        1 - delta_i - math.exp(epsilon_i + log_a)
        for (epsilon_i, delta_i), log_a in zip(lines, log_corners[1:], strict=False)
    ]
    along = np.exp([-math.inf, *log_corners[::-1]])
    return along, np.array([1 - lines[-1][1], *heights[::-1]])


def _log_meeting(flat: tuple[float, float], steep: tuple[float, float]) -> float:
    """Compute log a where two lines meet: a = (delta_1 - delta_2)/(e^eps_2 - e^eps_1)."""
    return math.log(flat[1] - steep[1]) - steep[0] - math.log(-math.expm1(flat[0] - steep[0]))
