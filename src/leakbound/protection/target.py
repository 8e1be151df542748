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
    noise: str | Noise | NoiseAtScale = "gaussian"
    coupling: str = "auto"
    confidence: float = 0.95
    fits: int = 2000
    seed: int = 0
    noise_scale: tuple[float, ...] | None = None
