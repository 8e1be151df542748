"""Random streams by name: the same in any order, on any machine, with any number of workers."""

from __future__ import annotations

import hashlib
import secrets
from operator import index
from typing import SupportsIndex

import numpy as np
from jaxtyping import Bool

from leakbound.core.checks import count

Array = np.ndarray


def _digest(seed: int, path: tuple[str | SupportsIndex, ...]) -> int:
    steps = (f"str:{step}" if isinstance(step, str) else f"int:{index(step)}" for step in path)
    text = "\x1f".join([str(int(seed)), *steps])
    return int.from_bytes(hashlib.sha256(text.encode()).digest(), "little")


def stream(seed: int, *path: str | SupportsIndex) -> np.random.Generator:
    """Return the generator of a seed and a path of names and numbers.

    Parameters
    ----------
    seed : int
        The seed of the plan.
    *path : str or int
        What the numbers are for, as ``"train", 3``. Different paths are independent streams.

    Returns
    -------
    numpy.random.Generator
        In its first state.

    Examples
    --------
    >>> from leakbound.core.seeds import stream
    >>> bool((stream(0, "game", 3).random(4) == stream(0, "game", 3).random(4)).all())
    True
    """
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(_digest(seed, path))))


def integer(seed: int, *path: str | SupportsIndex) -> int:
    """Compute a 32-bit seed for libraries that need a number (scikit-learn's ``random_state``).

    Parameters
    ----------
    seed : int
        The seed of the plan.
    *path : str or int
        As in `stream`.

    Returns
    -------
    int
        In [0, 2^32).

    Examples
    --------
    >>> from leakbound.core.seeds import integer
    >>> integer(0, "fit", 3) == integer(0, "fit", 3)
    True
    """
    return _digest(seed, path) % 2**32


def entropy() -> np.random.Generator:
    """Return a generator that nobody can make again: for the data and the noise of a real release.

    Key (128 bits) and counter (256 bits) of a Philox generator come from the operating system's entropy, anew at
    every call, and are kept nowhere else. Philox is a keyed bijection of the counter: without the key, each
    release is as likely under one data set as its noise says, as far as anybody knows.

    What this does not give: Philox passes all statistical tests and no attack on its ten rounds is published, but
    its authors claim no cryptographic strength (Salmon et al. 2011). A certificate speaks of ideal noise; it holds
    against whoever cannot find a 128-bit key from noise that is rounded to a grid and added to unknown numbers.
    Take a new generator for each release, and never print or store its state: who has it can subtract the noise.

    Returns
    -------
    numpy.random.Generator
        Another one at every call.

    Examples
    --------
    >>> from leakbound.core.seeds import entropy
    >>> bool((entropy().random(4) == entropy().random(4)).any())
    False
    """
    return np.random.Generator(np.random.Philox(key=secrets.randbits(128), counter=secrets.randbits(256)))


def subsets(n: int, k: int, n_subsets: int, rng: np.random.Generator) -> Bool[Array, "m n"]:
    """Uniform k-subsets of n records, independent of each other; for halves a bit and a little a record.

    A half starts from fair bits. A surplus of s records, about ``sqrt(n)/2`` at first, is taken out at 2 s random
    places, half of which hold one; where that was too many, records are put in at random places, and so on. No
    step tells one record from another, so all sets of size k are equally likely in the end.

    Parameters
    ----------
    n, k : int
        1 <= k <= n - 1.
    n_subsets : int
        m.
    rng : numpy.random.Generator

    Returns
    -------
    bool array of shape (m, n)
        With k True in each row.

    Raises
    ------
    ValueError
        If k is not from 1 to n - 1.

    Examples
    --------
    >>> from leakbound.core.seeds import stream, subsets
    >>> subsets(1001, 500, 3, stream(0, "calibrate")).sum(axis=1).tolist()
    [500, 500, 500]
    """
    if not 1 <= count("k", k) <= count("n", n, least=2) - 1:
        raise ValueError(f"k must be from 1 to n - 1 = {n - 1}, got {k}")
    shape = (count("n_subsets", n_subsets), n)
    if abs(2 * k - n) > 1:
        member = np.zeros(shape, dtype=bool)
        for row in member:
            row[rng.choice(n, k, replace=False, shuffle=False)] = True
        return member
    n_bytes = (n + 7) // 8
    words = rng.integers(2**64, size=-(-n_subsets * n_bytes // 8), dtype=np.uint64)  # the same as rng.bytes, faster
    bits = words.astype("<u8").view(np.uint8)[: n_subsets * n_bytes].reshape(n_subsets, n_bytes)
    member = np.unpackbits(bits, axis=1, count=n).view(bool)
    for row in member:
        surplus = int(np.count_nonzero(row)) - k
        while surplus:
            places = rng.integers(n, size=2 * abs(surplus))
            is_put_in = surplus < 0
            changed = places[row[places] != is_put_in]
            n_changed = len(set(changed.tolist()))  # a place may be drawn twice
            row[changed] = is_put_in
            surplus += n_changed if is_put_in else -n_changed
    return member
