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
from leakscope.bounds.exponential import exponents, geometric_median_loss, geometric_median_sensitivity, pmp_exponential
from leakscope.bounds.tilting import sampled_log_odds

Array = np.ndarray
N_OUTPUTS, CLIP, EPSILON = 32, 10.0, 5.0
N_EXACT, N_SAMPLED, N_LARGEST = 9, 1000, 18
N_SUBSETS = 2**17  # the default
PART = 4000  # halves that the naive side is timed on


def game(n: int, seed: int = 0) -> tuple[Array, float]:
    """Distances of random unit vectors to 2n records around the first of them; and their sensitivity."""
    rng = np.random.default_rng(seed)
    outputs = rng.normal(size=(N_OUTPUTS, 5))
    outputs /= np.linalg.norm(outputs, axis=1, keepdims=True)
    records = outputs[0] + rng.normal(size=(2 * n, 5))
    records *= np.minimum(1, CLIP / np.linalg.norm(records, axis=1, keepdims=True))
    return geometric_median_loss(outputs, records), geometric_median_sensitivity(CLIP, n)


def loop(loss: Array, sensitivity: float, halves: Iterable[Sequence[int]]) -> tuple[Array, Array]:
    """Sums of P(w | D) over halves with and without each record, a half at a time, as in the paper."""
    records = loss.T
    inside, outside = np.zeros_like(records), np.zeros_like(records)
    for half in halves:
        chosen = list(half)
        logits = -EPSILON / (2 * sensitivity) * records[chosen].mean(axis=0)
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


def deviation(estimates: list[Array]) -> float:
    """Standard deviation of ln(IN/OUT) over repetitions, root mean square over the records, of the likeliest output."""
    return float(np.sqrt(np.var(estimates, axis=0, ddof=1).mean()))


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
    """2,000 records, with intervals, against a loop over random halves that gives as small a standard deviation.

    That of both sides is measured on the output that is likeliest, the best case for the loop: the others are
    rarer, and most of them are never seen.
    """
    loss, sensitivity = game(N_SAMPLED)
    exponent = exponents(loss, EPSILON, sensitivity)
    likeliest = int(np.argmin(exponent.sum(axis=0)))
    few = N_SUBSETS // 32
    ours = [sampled_log_odds(exponent, few, 0.95, seed).value[:, likeliest] for seed in range(6)]
    theirs = []
    for seed in range(6):
        inside, outside = loop(loss, sensitivity, random_halves(N_SAMPLED, PART // 8, seed))
        theirs.append(np.log(inside / outside)[:, likeliest])
    alike = PART / 8 * (deviation(theirs) / deviation(ours)) ** 2 * N_SUBSETS / few  # halves; errors fall as 1/sqrt
    one = cpu_seconds(lambda: loop(loss, sensitivity, random_halves(N_SAMPLED, PART // 8, 0))) / (PART / 8)
    return Row(
        f"PMP sampled, n={N_SAMPLED:,}, {N_OUTPUTS} outputs, intervals, against a loop as precise",
        cpu_seconds(lambda: pmp_exponential(loss, EPSILON, sensitivity, "sampled", n_subsets=N_SUBSETS), repeats=1),
        one * alike,
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
