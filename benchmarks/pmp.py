"""Practical membership privacy of the exponential mechanism against loops over subsets: CPU time, one thread.

Run as ``OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.pmp``; with ``--largest`` also all
9,075,135,300 halves of 36 records, timed once.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterable, Sequence
from itertools import combinations, islice

import numpy as np

from benchmarks.scoring import Row, cpu_seconds
from leakbound.bounds.exponential import exponents, geometric_median_loss, geometric_median_sensitivity, pmp_exponential
from leakbound.bounds.tilting import sampled_log_odds

Array = np.ndarray
N_OUTPUTS, CLIP, EPSILON = 32, 10.0, 5.0
N_EXACT, N_SAMPLED, N_LARGEST = 9, 1000, 18
N_SUBSETS = 2**17  # the default
PART, REPEATS = 4000, 8  # halves that the naive side is timed on; repetitions that show a variance


def game(n: int, seed: int = 0) -> tuple[Array, float]:
    """Distances of random unit vectors to 2n records around the first of them; and their sensitivity."""
    rng = np.random.default_rng(seed)
    outputs = rng.normal(size=(N_OUTPUTS, 5))
    outputs /= np.linalg.norm(outputs, axis=1, keepdims=True)
    records = outputs[0] + rng.normal(size=(2 * n, 5))
    records *= np.minimum(1, CLIP / np.linalg.norm(records, axis=1, keepdims=True))
    return geometric_median_loss(outputs, records), geometric_median_sensitivity(CLIP, n)


def loop(
    loss: Array, sensitivity: float, halves: Iterable[Sequence[int] | Array], epsilon: float = EPSILON
) -> tuple[Array, Array]:
    """Sums of P(w | D) over halves with and without each record, a half at a time, as in the paper."""
    records = loss.T
    inside, outside = np.zeros_like(records), np.zeros_like(records)
    for half in halves:
        chosen = list(half)
        logits = -epsilon / (2 * sensitivity) * records[chosen].mean(axis=0)
        probability = np.exp(logits - logits.max())
        probability /= probability.sum()
        inside[chosen] += probability
        missing = np.ones(len(records), dtype=bool)
        missing[chosen] = False
        outside[missing] += probability
    return inside, outside


def random_halves(n: int, n_halves: int, seed: int) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [rng.permutation(2 * n)[:n] for _ in range(n_halves)]


def exact() -> Row:
    """All halves of 18 records against a loop over them."""
    loss, sensitivity = game(N_EXACT)
    n_halves = math.comb(2 * N_EXACT, N_EXACT)
    naive = cpu_seconds(lambda: loop(loss, sensitivity, islice(combinations(range(2 * N_EXACT), N_EXACT), PART)))
    return Row(
        f"PMP exact, n={N_EXACT}, {N_OUTPUTS} outputs, against a loop over {n_halves:,} halves",
        cpu_seconds(lambda: pmp_exponential(loss, EPSILON, sensitivity)),
        naive * n_halves / PART,
        700,
    )


def sampled() -> Row:
    """2,000 records, with intervals, against a loop over as many random halves as give the same variance.

    Losses are uniform and alike for all outputs: where some are improbable a loop over random halves never sees
    them. The variances of ln(IN/OUT), inversely proportional to the number of halves or subsets, are measured by
    repetition with few of them, their ratio by its median over records and outputs.
    """
    loss, sensitivity = np.random.default_rng(0).random((N_OUTPUTS, 2 * N_SAMPLED)), 1 / N_SAMPLED
    exponent, few = exponents(loss, 1.0, sensitivity), N_SUBSETS // 16
    ours = [sampled_log_odds(exponent, few, 0.95, seed).value for seed in range(REPEATS)]
    sums = [loop(loss, sensitivity, random_halves(N_SAMPLED, PART, seed), 1.0) for seed in range(REPEATS)]
    theirs = [np.log(inside / outside) for inside, outside in sums]
    gain = float(np.median(np.var(theirs, axis=0) / np.var(ours, axis=0))) * PART / few
    one = cpu_seconds(lambda: loop(loss, sensitivity, random_halves(N_SAMPLED, PART, 0), 1.0), repeats=1) / PART
    return Row(
        f"PMP sampled, n={N_SAMPLED:,}, {N_OUTPUTS} outputs, intervals, against a loop as precise",
        cpu_seconds(lambda: pmp_exponential(loss, 1.0, sensitivity, "sampled", n_subsets=N_SUBSETS), repeats=1),
        one * N_SUBSETS * gain,
        15,
    )


def rows() -> list[Row]:
    """Exact at n = 9, sampled at n = 1,000."""
    return [exact(), sampled()]


def largest() -> float:
    """Seconds of CPU time for every half of 36 records."""
    loss, sensitivity = game(N_LARGEST)
    start = time.process_time()
    pmp_exponential(loss, EPSILON, sensitivity)
    return time.process_time() - start


if __name__ == "__main__":
    for row in rows():
        print(
            f"{row.name:70} {row.ours_seconds * 1e3:8.1f} ms {row.naive_seconds * 1e3:10.0f} ms "
            f"{row.ratio:7.0f}x (wanted {row.wanted:g}x)"
        )
    if "--largest" in sys.argv:
        print(f"PMP exact, n={N_LARGEST}, {math.comb(36, 18):,} halves: {largest():.1f} s (wanted < 60 s)")
