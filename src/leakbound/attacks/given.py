"""Scores that were computed elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from leakbound.core.types import Scores, Signals

Array = np.ndarray


@dataclass(frozen=True)
class Given:
    """Scores that were computed elsewhere, as an attack."""

    name: str
    value: Float[Array, "T J"]
    title: str = "given scores"
    source: str = "given by the user"
    summary: str = "scores that were computed elsewhere"
    variance_inflation: float = 1.0

    def __call__(self, signals: Signals) -> Scores:
        """Return the scores of the targets of this game."""
        game = signals.game
        value = self.value[: game.n_targets]
        # of one model the points are counted, which its references do not make dependent
        inflation = self.variance_inflation if len(value) > 1 else 1.0
        return Scores(self.name, value, game.target_member, self.source, inflation, game.target_points)
