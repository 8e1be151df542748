"""Random streams by name: the same in any order, on any machine, with any number of workers."""

from __future__ import annotations

import hashlib
from operator import index
from typing import SupportsIndex

import numpy as np


def _digest(seed: int, path: tuple[str | SupportsIndex, ...]) -> int:
    steps = (f"str:{step}" if isinstance(step, str) else f"int:{index(step)}" for step in path)
    text = "\x1f".join([str(int(seed)), *steps])
    return int.from_bytes(hashlib.sha256(text.encode()).digest(), "little")


def stream(seed: int, *path: str | SupportsIndex) -> np.random.Generator:
    """The generator that belongs to a seed and a path of names and numbers.

    Parameters
    ----------
    seed : int
        The seed of the plan.
    *path : str or int
        What the numbers are for, as ``"train", 3``. Different paths are independent streams.

    Returns
    -------
    numpy.random.Generator

    Examples
    --------
    >>> from leakscope.seeds import stream
    >>> bool((stream(0, "game", 3).random(4) == stream(0, "game", 3).random(4)).all())
    True
    """
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(_digest(seed, path))))


def integer(seed: int, *path: str | SupportsIndex) -> int:
    """A 32-bit seed for libraries that want a number (scikit-learn's ``random_state``)."""
    return _digest(seed, path) % 2**32
