"""What a Dask cluster adds to fits of one second each, and what it sends: ``python -m benchmarks.cluster``.

A fit here waits for a second, so that other work on the machine hardly counts. The cluster is connected before the
clock starts. The data are those of 20,000 records and 100 columns, 16 MB.
"""

from __future__ import annotations

import tempfile
import time

import numpy as np

from benchmarks.waiting import SECONDS, Waiting
from leakbound import data
from leakbound.core import games
from leakbound.runtime.execution import Execution, close_clusters
from leakbound.runtime.observe import observe

N_WORKERS, N_FITS = 2, 40


def main() -> None:
    """Print one line."""
    n_points = 20_000
    points = data.from_arrays(np.random.default_rng(0).normal(size=(n_points, 100)), np.arange(n_points) % 2)
    member = games.half_split(n_points, N_FITS).member
    with tempfile.TemporaryDirectory() as store:
        execution = Execution(store, cluster=f"local:{N_WORKERS}")
        execution.connect()
        started = time.perf_counter()
        observe(Waiting(), points, member, ("loss",), execution=execution)
        seconds = time.perf_counter() - started
    close_clusters()
    ideal = N_FITS * SECONDS / N_WORKERS
    print(
        f"{N_FITS} fits of {SECONDS:g} s on {N_WORKERS} workers: {seconds:.2f} s, {100 * (seconds / ideal - 1):.1f} % "
        f"more than {ideal:g} s; data of {points.x.nbytes / 1e6:.0f} MB"
    )


if __name__ == "__main__":
    main()
