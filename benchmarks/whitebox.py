"""The white-box score of DP-SGD against products with the references: CPU time, one thread, both in one process.

Run as ``OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.whitebox``.
"""

from __future__ import annotations

import numpy as np

from benchmarks.scoring import Row, cpu_seconds
from leakbound.core.covariance import LowRank

N_PARAMETERS, N_REFERENCES, N_QUERIES = 200_000, 256, 64
N_PRODUCTS = 3  # of the references with one vector, whose time a query may take


def rows() -> list[Row]:
    """Both products of the likelihood ratio, ``D^T C0^-1 w`` and ``D^T C0^-1 D``, of 64 queries at once.

    The covariance of a step is set up once for all queries, and not timed.
    """
    rng = np.random.default_rng(0)
    factors = rng.standard_normal((N_REFERENCES, N_PARAMETERS), dtype=np.float32)
    queries = rng.standard_normal((N_QUERIES, N_PARAMETERS), dtype=np.float32)
    update = rng.standard_normal(N_PARAMETERS, dtype=np.float32)
    covariance = LowRank(1.0, factors)
    covariance.quad(update)
    return [
        Row(
            f"white-box score, d={N_PARAMETERS:,}, r={N_REFERENCES}, {N_QUERIES} queries, against {N_PRODUCTS} GEMVs",
            cpu_seconds(lambda: (queries @ covariance.solve(update), covariance.quad(queries))) / N_QUERIES,
            cpu_seconds(lambda: factors @ update) * N_PRODUCTS,
            1,
        )
    ]


if __name__ == "__main__":
    for row in rows():
        print(f"{row.name:72} {row.ours_seconds * 1e3:8.2f} ms {row.ratio:7.1f}x (wanted {row.wanted:g}x)")
