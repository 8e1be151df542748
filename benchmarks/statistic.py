"""The per-datum game of a mean against sampling every bit: CPU time, one thread, both sides in one process.

Run as ``OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.statistic``.
"""

from __future__ import annotations

import numpy as np

from benchmarks.scoring import Row, cpu_seconds
from leakbound.core.games import per_datum
from leakbound.core.types import Points
from leakbound.releases.statistics.means import Bernoulli, FreshMean

Array = np.ndarray
N_RECORDS, N_COLUMNS, N_ROUNDS = 1000, 5000, 2000
PART = 200  # the naive side plays one round in so many


def bit_by_bit(p: Array, z: Array, inside: Array, seed: int) -> Array:
    """Scores of the game with a table of n times d bits for every round, as it is defined."""
    rng = np.random.default_rng(seed)
    weight = (z - p) / (p * (1 - p))
    scores = []
    for member in inside:
        records = rng.random((N_RECORDS, N_COLUMNS)) < p
        if member:
            records[rng.integers(N_RECORDS)] = z
        scores.append(weight @ (records.mean(axis=0) - p))
    return np.array(scores)


def rows() -> list[Row]:
    """2,000 rounds, from the draws to the signals of the likelihood ratio."""
    p = np.random.default_rng(0).uniform(0.3, 0.7, N_COLUMNS)
    z = (p <= 0.5).astype(float)
    member = per_datum(1, 0, N_ROUNDS, others="fresh").member
    release, seeds = FreshMean(Bernoulli(p), N_RECORDS), np.arange(N_ROUNDS)
    want = ("step_dot", "step_norm")
    part = member[: N_ROUNDS // PART, 0]
    return [
        Row(
            f"per-datum game of a mean, n={N_RECORDS:,}, d={N_COLUMNS:,}, {N_ROUNDS:,} rounds, against bits",
            cpu_seconds(lambda: release.observe(Points(z[None]), member, seeds, want)),
            cpu_seconds(lambda: bit_by_bit(p, z, part, 1)) * PART,
            40,
        )
    ]


if __name__ == "__main__":
    for row in rows():
        print(
            f"{row.name:70} {row.ours_seconds * 1e3:8.1f} ms {row.naive_seconds * 1e3:10.0f} ms "
            f"{row.ratio:7.0f}x (wanted {row.wanted:g}x)"
        )
