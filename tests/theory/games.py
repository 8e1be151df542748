"""What a small membership game is: every subset with its output."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Game:
    """A statistic of every subset, and who is in which; NaN where it failed."""

    outputs: np.ndarray
    member: np.ndarray

    @property
    def prior(self) -> float:
        return float(self.member[0].mean())

    @property
    def room(self) -> float:
        """The largest eta that there can be."""
        return min(self.prior, 1 - self.prior)

    def adjacent(self) -> np.ndarray:
        """Pairs of subsets that differ by a swap."""
        shared = self.member.astype(int) @ self.member.T.astype(int)
        return np.argwhere(shared == self.member[0].sum() - 1)
