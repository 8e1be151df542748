"""What is promised, and by what means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from leakbound.core.types import Noise

NoiseAtScale = Callable[[float], Noise]  # the noise of each scale


@dataclass(frozen=True, eq=False)
class PrivacyTarget:
    """What is promised, and by what means.

    Parameters
    ----------
    eta : float
        Allowed accuracy above the better prior guess.
    about : {"every", "average"}
        To whom: each record, or a record drawn at random.
    noise : str, Noise, or callable
        A row of ``FAMILIES``; a noise as it is, of which only the promise is checked; or the noise of each scale,
        whose shape is public.
    coupling : {"auto", "swap", "mixture_swap", "complement", "average_swap"}
    confidence : float
        Of what is sampled.
    fits : int
        Fits that may be made.
    seed : int
        Of the pairs.
    noise_scale : tuple of float, optional
        Scale of the noise that was declared before anybody looked at the data: one number, or one for each
        coordinate. The least scale that keeps the promise where None.
    """

    eta: float
    about: Literal["every", "average"] = "every"
    noise: str | Noise | NoiseAtScale = "gaussian"
    coupling: str = "auto"
    confidence: float = 0.95
    fits: int = 2000
    seed: int = 0
    noise_scale: tuple[float, ...] | None = None
