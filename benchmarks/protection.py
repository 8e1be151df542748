"""Calibration against the loops that it replaces, and its memory: CPU time, one thread, both sides in one process.

Run as ``OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.protection``; with ``--peak`` the gigabytes of a
process that does nothing but calibrate, with other numbers of records and of fits behind it if wanted.
"""

from __future__ import annotations

import sys

import numpy as np

from benchmarks.peak import peak_bytes
from benchmarks.scoring import Row, cpu_seconds
from leakbound.core.grid import Grid
from leakbound.core.types import Points
from leakbound.noise import GaussianNoise, SampledSwap, calibrate, swap_linear
from leakbound.protection.promises.drawn.noise_search import search_noise
from leakbound.protection.promises.drawn.swaps import swap_shifts
from leakbound.protection.promises.drawn.target import PrivacyTarget
from leakbound.protection.setting.mechanism import Mechanism
from leakbound.releases.statistics.statistic import Covariance
from leakbound.runtime.observe import Execution

Array = np.ndarray
ETA = 0.05
N_COUPLED, N_ROUNDS, N_REFITTED = 20_000, 2, 20  # the naive side fits so many swaps, of N_ROUNDS N_COUPLED / 2
N_LINEAR, N_ROWS = 100_000, 20  # the naive side takes the rows of so many records
N_LARGE, N_COLUMNS, N_FITS = 500_000, 3, 200
LIMIT = 2.0
WORK = f"calibrate a covariance, n={N_LARGE:,}, d={N_COLUMNS}, {N_FITS} fits, peak memory"


def normal(n: int) -> Array:
    """Records of the standard normal law."""
    return np.random.default_rng(0).normal(size=(n, N_COLUMNS))


def refitted(mechanism: Mechanism, pairs: SampledSwap, n_swaps: int) -> Array:
    """The covariance of D, and of so many of its swaps, each from its own records."""
    leaving, entering = pairs.couples(0)
    inside = np.zeros((n_swaps + 1, mechanism.n), dtype=bool)
    inside[:, leaving] = True
    swap = np.arange(n_swaps)
    inside[swap + 1, leaving[:n_swaps]] = False
    inside[swap + 1, entering[:n_swaps]] = True
    return np.array([np.cov(mechanism.points.x[row].T, bias=True) for row in inside])


def swaps() -> Row:
    """A length for every record in each round, in closed form."""
    mechanism = Mechanism(Covariance(), Points(normal(N_COUPLED)), N_COUPLED // 2, Execution(n_jobs=1))
    pairs = SampledSwap(N_COUPLED, N_COUPLED // 2, N_ROUNDS)
    part = N_ROUNDS * N_COUPLED // 2 / N_REFITTED
    return Row(
        f"swaps of a covariance, n={N_COUPLED:,}, d={N_COLUMNS}, against refitting each",
        cpu_seconds(lambda: swap_shifts(mechanism, pairs, Grid(2.0**-32))),
        cpu_seconds(lambda: refitted(mechanism, pairs, N_REFITTED)) * part,
        300,
    )


def all_distances(features: Array, k: int, n_rows: int) -> Array:
    """Eta of so many records under one noise, from their lengths to all others: O(n) a record."""
    lengths = np.array([np.linalg.norm(features - x, axis=1) for x in features[:n_rows]]) / k
    return GaussianNoise(10 / k).shift_tv(lengths).mean(axis=1) / 2


def linear() -> Row:
    """The least noise of a mean, for each of many records; the naive side only looks at one noise."""
    x, k = normal(N_LINEAR), N_LINEAR // 2
    return Row(
        f"noise of a mean, n={N_LINEAR:,}, d={N_COLUMNS}, against all n^2 distances",
        cpu_seconds(lambda: calibrate(swap_linear(x, k), ETA, GaussianNoise), repeats=1),
        cpu_seconds(lambda: all_distances(x, k, N_ROWS), repeats=1) * (N_LINEAR / N_ROWS),
        500,
    )


def rows() -> list[Row]:
    """Both ratios."""
    return [swaps(), linear()]


def peak_gigabytes() -> float:
    """Calibrate the noise of a covariance, and look up the largest size that this process has had."""
    mechanism = Mechanism.of(Covariance(), Points(normal(N_LARGE)), execution=Execution(n_jobs=1))
    search_noise(mechanism, PrivacyTarget(ETA, fits=N_FITS))
    return peak_bytes() / 1e9


if __name__ == "__main__":
    if "--peak" in sys.argv:
        if len(sys.argv) > 2:
            N_LARGE, N_FITS = map(int, sys.argv[2:])
        print(peak_gigabytes())
    else:
        for row in rows():
            print(
                f"{row.name:70} {row.ours_seconds * 1e3:8.1f} ms {row.naive_seconds * 1e3:10.0f} ms "
                f"{row.ratio:7.0f}x (wanted {row.wanted:g}x)"
            )
