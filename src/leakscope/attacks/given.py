"""Scores that were computed elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from leakscope.core.types import Scores, Signals

Array = np.ndarray


@dataclass(frozen=True)
class Given:
    """Scores that were computed elsewhere, as an attack.

    Parameters
    ----------
    name : str
    value : array of shape (T, J)
        Higher = member.
    title : str
    source : str
    summary : str
    """

    name: str
    value: Float[Array, "T J"]
    title: str = "given scores"
    source: str = "given by the user"
    summary: str = "scores that were computed elsewhere"

    def __call__(self, signals: Signals) -> Scores:
        """Return the scores of the targets of this game."""
        game = signals.game
        value = self.value[: game.n_targets]
        return Scores(self.name, value, game.target_member, self.source, points=game.target_points)
