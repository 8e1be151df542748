"""Covariances of random halves against recomputing each: CPU time, one thread, both sides in one process.

Run as ``OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.half_splits``.
"""

from __future__ import annotations

import numpy as np

from benchmarks.scoring import Row, cpu_seconds_by_turns
from leakbound.core.seeds import stream, subsets
from leakbound.core.types import Points
from leakbound.releases.statistics.statistic import Covariance

Array = np.ndarray
N_RECORDS, N_COLUMNS, N_HALVES = 500_000, 3, 128
PART = 16  # the naive side takes one half in so many


def together(x: Array) -> Array:
    """From the draws to the covariances."""
    member = subsets(N_RECORDS, N_RECORDS // 2, N_HALVES, stream(0, "calibrate"))
    return Covariance().observe(Points(x), member, np.arange(N_HALVES))["output"]


def one_by_one(x: Array, n_halves: int) -> Array:
    """A permutation and a covariance for each half."""
    rng = np.random.default_rng(0)
    return np.array([np.cov(x[rng.permutation(len(x))[: len(x) // 2]].T, bias=True) for _ in range(n_halves)])


def rows() -> list[Row]:
    """128 halves of 500,000 records."""
    x = np.random.default_rng(0).normal(size=(N_RECORDS, N_COLUMNS))
    ours, naive = cpu_seconds_by_turns(lambda: together(x), lambda: one_by_one(x, N_HALVES // PART))
    name = f"covariance of {N_HALVES} half-splits, n={N_RECORDS:,}, d={N_COLUMNS}, against recomputing each"
    return [Row(name, ours, naive * PART, 40)]


if __name__ == "__main__":
    for row in rows():
        print(
            f"{row.name:80} {row.ours_seconds * 1e3:8.1f} ms {row.naive_seconds * 1e3:8.0f} ms "
            f"{row.ratio:6.0f}x (wanted {row.wanted:g}x)"
        )
