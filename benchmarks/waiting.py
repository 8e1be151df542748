"""A model whose fit waits for a second: in a module of its own, whose code can be followed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

SECONDS = 1.0


@dataclass(frozen=True)
class Waiting:
    """A model that takes a second."""

    name: str = "waiting"
    chunk: int = 1

    def describe(self) -> Mapping[str, Any] | None:
        return {"release": "waiting"}

    def observe(self, points: Any, member: Any, seeds: Any, want: Any) -> Mapping[str, Any]:
        time.sleep(SECONDS * len(member))
        return {"loss": np.asarray(seeds, dtype=float)[:, None] + member / 2}
