"""Rows of numbers compared rank by rank."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

Array = np.ndarray
_CHAMPIONS = 64  # rows that all others are compared with


def undominated(ordered: Float[Array, "R P"]) -> Int[Array, " r"]:
    """Rows that lie rank by rank below none of those with the largest means; of equal rows one.

    Parameters
    ----------
    ordered : array of shape (R, P)
        Each row sorted.

    Returns
    -------
    array of shape (r,)
        Numbers of the rows that are left, in order. All others are below one of them: no mean of a non-decreasing
        function is larger.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.noise.ranks import undominated
    >>> undominated(np.array([[0.0, 5.0], [1.0, 2.0], [1.0, 3.0], [1.0, 3.0]])).tolist()
    [0, 2]
    """
    alive, kept, means = np.ones(len(ordered), dtype=bool), [], ordered.mean(axis=1)
    while alive.any() and len(kept) < _CHAMPIONS:
        champion = int(np.where(alive, means, -np.inf).argmax())
        kept.append(champion)
        alive[champion] = False
        rest = np.flatnonzero(alive)
        alive[rest] = (ordered[rest] > ordered[champion]).any(axis=1)
    return np.sort(np.array([*kept, *np.flatnonzero(alive)], dtype=int))
