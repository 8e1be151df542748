"""A release that notes each fit in a file and can be told to fail, for tests in which workers import it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Logged:
    """Signals that say which row they are of.

    Parameters
    ----------
    folder : str
        Where ``fits`` gets a line for each chunk: the process and the first seed.
    kill : int
        The first seed of a chunk whose process kills itself; 0 for none.
    n_kills : int
        How often it does so.
    fail : int
        The first seed of a chunk that raises an error; 0 for none.
    seconds : float
        That each chunk takes.
    """

    folder: str
    kill: int = 0
    n_kills: int = 0
    fail: int = 0
    seconds: float = 0.0
    name: str = "logged"
    chunk: int = 3

    def describe(self) -> Mapping[str, Any] | None:
        return {"release": "logged"}

    def observe(self, points: Any, member: Any, seeds: Any, want: Any) -> Mapping[str, Any]:
        first = int(seeds[0])
        with Path(self.folder, "fits").open("a", encoding="utf-8") as log:
            log.write(f"{os.getpid()} {first}\n")
        time.sleep(self.seconds)
        if first == self.kill and self._kills_left():
            os.kill(os.getpid(), signal.SIGKILL)
        if first == self.fail:
            raise ValueError("the loss is not finite")
        rows = np.asarray(seeds, dtype=float)[:, None] + member / 2
        return {"loss": rows + points.x.sum(axis=1)}

    def _kills_left(self) -> bool:
        for number in range(self.n_kills):
            try:
                Path(self.folder, f"killed {number}").touch(exist_ok=False)
            except FileExistsError:
                continue
            return True
        return False

    def fits_made(self) -> list[tuple[int, int]]:
        """Process and first seed of each chunk that was begun."""
        log = Path(self.folder, "fits")
        lines = log.read_text(encoding="utf-8").split("\n") if log.exists() else []
        return [(int(line.split()[0]), int(line.split()[1])) for line in lines if line]


@dataclass(frozen=True)
class Silent(Logged):
    """Gives no signal."""

    def observe(self, points: Any, member: Any, seeds: Any, want: Any) -> Mapping[str, Any]:
        return {}
