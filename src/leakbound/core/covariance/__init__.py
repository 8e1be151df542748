"""Covariances with an inverse, and their estimates from data rows.

A covariance C of d columns is `Full`, `Diagonal` or `LowRank`; each has ``quad(v)`` = v^T C^-1 v, ``solve(v)``
= C^-1 v, ``plus(variance)`` = C + variance I, and ``sample(count, rng)``, vectors of N(0, C).
`LowRankGram` has the products ``x^T C^-1 y`` of vectors that are known by their inner products alone.
"""

from leakbound.core.covariance.estimates import ESTIMATES, data_rows, diagonal, full, ledoit_wolf, low_rank, shrinkage
from leakbound.core.covariance.matrices import Covariance, Diagonal, Full, LowRank, LowRankGram, as_covariance

__all__ = [
    "ESTIMATES",
    "Covariance",
    "Diagonal",
    "Full",
    "LowRank",
    "LowRankGram",
    "as_covariance",
    "data_rows",
    "diagonal",
    "full",
    "ledoit_wolf",
    "low_rank",
    "shrinkage",
]
