"""Samples rank by rank: rows that lie below others, and what a rank proves of the distribution."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from scipy.special import betaincinv

Array = np.ndarray
_MOST_RANKS = 500  # that get a limit; the level is divided by their number
_CHAMPIONS = 64  # rows that all others are compared with


def undominated(ordered: Float[Array, "R P"]) -> Int[Array, " r"]:
    """Find the rows that lie rank by rank below none of those with the largest means; of equal rows one.

    >>> undominated(np.array([[0.0, 5.0], [1.0, 2.0], [1.0, 3.0], [1.0, 3.0]])).tolist()
    [0, 2]
    """
    means = ordered.mean(axis=1)
    alive, champions = np.ones(len(ordered), dtype=bool), []
    while alive.any() and len(champions) < _CHAMPIONS:
        champion = int(np.where(alive, means, -np.inf).argmax())
        champions.append(champion)
        alive[champion] = False
        rest = np.flatnonzero(alive)
        # A row that lies above the champion at no rank needs no more noise than the champion.
        alive[rest] = (ordered[rest] > ordered[champion]).any(axis=1)
    # all other rows are below one of these: no mean of a non-decreasing function of them is larger
    return np.sort(np.array([*champions, *np.flatnonzero(alive)], dtype=int))


def rank_limits(n: int, alpha: float) -> tuple[Int[Array, " m"], Float[Array, " m"]]:
    """Compute simultaneous lower limits of a distribution function at some order statistics of a sample.

    ``F(u_(i))`` of the i-th of n independent draws is stochastically at least Beta(i, n-i+1), whatever F is; with its
    quantile at alpha/m for each of m ranks, all m limits hold with probability 1 - alpha (Bonferroni). Beyond 500
    draws the ranks lie closer towards the longest.

    >>> ranks, limits = rank_limits(1, alpha=0.05)
    >>> ranks.tolist(), limits.round(6).tolist()
    ([0], [0.05])
    """
    ranks = np.unique(n - np.geomspace(1, n, _MOST_RANKS).round().astype(int)) if n > _MOST_RANKS else np.arange(n)
    return ranks, betaincinv(ranks + 1.0, n - ranks, alpha / len(ranks))
