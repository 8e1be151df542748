"""Peak memory of LiRA with every model as target, in a process of its own; prints gigabytes.

Run as ``python -m benchmarks.memory``, with another number of points behind it if wanted.
"""

from __future__ import annotations

import sys

import numpy as np

from benchmarks.peak import peak_bytes
from leakbound.attacks.lira import lira
from leakbound.core.types import Game, Signals

N_MODELS, N_POINTS = 256, 1_000_000
LIMIT = 4.0
WORK = f"LiRA, {N_MODELS} targets, N={N_POINTS:,}, signals and scores, peak memory"


def peak_gigabytes() -> float:
    """Score noise, and look up the largest size that this process has had."""
    rng = np.random.default_rng(0)
    log_odds = rng.standard_normal((N_POINTS, N_MODELS), dtype=np.float32).T
    member = rng.integers(0, 2, size=(N_POINTS, N_MODELS), dtype=np.bool_).T
    is_target_point = np.ones(N_POINTS, dtype=bool)
    lira(Signals(Game("half_split", member, is_target_point, N_MODELS), None, {"log_odds": log_odds}))
    return peak_bytes() / 1e9


if __name__ == "__main__":
    N_POINTS = int(sys.argv[1]) if len(sys.argv) > 1 else N_POINTS
    print(peak_gigabytes())
