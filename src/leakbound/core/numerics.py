"""Bisection that ends on the safe side.

A bound or a noise scale that is found by search must fulfil its condition where it is returned, not only near there.
So every search below keeps one number at which the condition holds (``inside``) and one at which it does not
(``outside``), halves the bracket between them, and returns ``inside``: the condition was evaluated there.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float

Array = np.ndarray


def bisect(
    holds: Callable[[float], bool],
    inside: float,
    outside: float,
    *,
    rtol: float = 0.0,
    atol: float = 0.0,
    max_steps: int | None = None,
    geometric: bool = False,
) -> float:
    """Find where a condition begins to fail, and return a number at which it holds.

    The bracket is halved until its width is at most ``atol``, or at most ``rtol`` times its end nearer to 0, or until
    no floating-point number lies between its ends. If the condition changes several times in the bracket, the search
    ends at one of these changes.

    >>> bisect(lambda x: x * x <= 2, inside=1.0, outside=2.0)
    1.414213562373095
    >>> bisect(lambda x: x * x >= 2, inside=2.0, outside=1.0)
    1.4142135623730951
    """
    n_steps = 0
    while abs(inside - outside) > max(atol, rtol * min(abs(inside), abs(outside))) and n_steps != max_steps:
        middle = math.sqrt(inside) * math.sqrt(outside) if geometric else (inside + outside) / 2
        if middle in (inside, outside):
            break
        if holds(middle):
            inside = middle
        else:
            outside = middle
        n_steps += 1
    return inside


def bisect_integers(holds: Callable[[int], bool], inside: int, outside: int) -> int:
    """Find the integer next to which a condition begins to fail.

    >>> bisect_integers(lambda n: n * n <= 1000, inside=0, outside=1000)
    31
    """
    while abs(outside - inside) > 1:
        middle = (inside + outside) // 2
        if holds(middle):
            inside = middle
        else:
            outside = middle
    return inside


def bisect_arrays(
    holds: Callable[[Float[Array, "*shape"]], Bool[Array, "*shape"]],
    inside: Float[Array, "*shape"],
    outside: Float[Array, "*shape"],
    n_steps: int,
) -> Float[Array, "*shape"]:
    """Halve many brackets at once, each as `bisect` does.

    Parameters
    ----------
    holds : callable
        The conditions: from one number for each bracket to whether its condition holds there.
    inside : array of any shape
        Where the conditions hold; not checked.
    outside : array of the same shape
        Where they do not hold; not evaluated.
    n_steps : int
        The number of halvings; the last brackets are ``2^-n_steps`` times as wide as the first.

    Returns
    -------
    array of the same shape
        The ends of the last brackets at which the conditions hold.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.core.numerics import bisect_arrays
    >>> squares = np.array([4.0, 9.0])
    >>> bisect_arrays(lambda x: x * x <= squares, np.zeros(2), squares, n_steps=40).round(9).tolist()
    [2.0, 3.0]
    """
    for _ in range(n_steps):
        middle = (inside + outside) / 2
        hold = holds(middle)
        inside, outside = np.where(hold, middle, inside), np.where(hold, outside, middle)
    return inside


def smallest_where(
    holds: Callable[[float], bool], start: float = 1.0, *, rtol: float, geometric: bool = False
) -> float:
    """Find the smallest positive number at which a condition holds that holds at all larger numbers too.

    The start is doubled until the condition holds, or halved until it does not; `bisect` does the rest.

    >>> smallest_where(lambda x: x**3 >= 1e-9, rtol=1e-12) >= 1e-3
    True
    """
    inside = outside = start
    if holds(start):
        outside = start / 2
        while outside > 0 and holds(outside):
            inside, outside = outside, outside / 2
    else:
        inside = 2 * start
        while not math.isinf(inside) and not holds(inside):
            inside, outside = 2 * inside, inside
    if math.isinf(inside):
        return inside
    return bisect(holds, inside, outside, rtol=rtol, geometric=geometric)


def largest_where(
    holds: Callable[[float], bool],
    inside: float = 0.0,
    start: float = 1.0,
    *,
    end: float = math.inf,
    rtol: float = 0.0,
    atol: float = 0.0,
) -> float:
    """Find the largest number at which a condition holds that holds at all smaller numbers too.

    The start is doubled until the condition fails or ``end`` is reached; `bisect` does the rest.

    >>> largest_where(lambda x: x**3 <= 1e9, rtol=1e-12) <= 1000
    True
    """
    outside = start
    # without an end the condition must fail at some finite number, or this does not terminate
    while outside < end and holds(outside):
        inside, outside = outside, 2 * outside
    return bisect(holds, inside, outside, rtol=rtol, atol=atol)
