"""What is promised, and by what means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from leakbound.core.types import Noise

NoiseAtScale = Callable[[float], Noise]  # the noise of each scale


@dataclass(frozen=True, eq=False)
class PrivacyTarget:
    """What is promised, and by what means."""

    eta: float
    about: Literal["every", "average"] = "every"
    # a row of FAMILIES; a noise as it is, of which only the promise is checked; or the noise of each scale
    noise: str | Noise | NoiseAtScale = "gaussian"
    coupling: str = "auto"
    confidence: float = 0.95
    fits: int = 2000
    seed: int = 0
    # declared before anybody saw the data; None: the least that keeps the promise
    noise_scale: tuple[float, ...] | None = None
