"""Keyed hashes of 16 bytes that take the place of units in a ledger: their order, and who is in which version."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int, Num, UInt8, UInt64

from leakbound.protection.ledger.keyed import NAME_BYTES

Array = np.ndarray


def words_of(hashes: UInt8[Array, "n 16"]) -> UInt64[Array, "n 2"]:
    """Read hashes as two numbers each, which have the order of their bytes."""
    return np.ascontiguousarray(hashes).view(">u8").astype(np.uint64)


def order_of(hashes: UInt8[Array, "n 16"]) -> Int[Array, " n"]:
    """Return the places of units in the order of their hashes, or of their names."""
    first = np.ascontiguousarray(hashes[:, :8]).view(">u8")[:, 0].astype(np.uint64)
    order = np.argsort(first)
    first = first[order]
    if (first[1:] != first[:-1]).all():  # nearly always, of random numbers of 64 bits
        return order
    words = words_of(hashes)
    return np.lexsort((words[:, 1], words[:, 0]))


def units_of(versions: Sequence[UInt8[Array, "_ 16"]]) -> tuple[UInt8[Array, "m 16"], Num[Array, " m"]]:
    """Find the units of all versions, in order, and in how many of them each one is."""
    hashes = np.concatenate(versions)
    words, order = words_of(hashes), order_of(hashes)
    is_new = np.append(True, (words[order[1:]] != words[order[:-1]]).any(axis=1))
    count = np.diff(np.append(np.flatnonzero(is_new), len(order)))
    return hashes[order[is_new]], count


def place_in(versions: Sequence[UInt8[Array, "_ 16"]], hashes: UInt8[Array, "n 16"]) -> int | None:
    """Find a version with the same units, in the same order."""
    for place, version in enumerate(versions):
        if version is hashes or np.array_equal(version, hashes):
            return place
    return None


def check_hashes(hashes: UInt8[Array, "n 16"]) -> int:
    """Check that there are at least two units, and every one once; return their number."""
    n = len(hashes)
    if hashes.shape != (n, NAME_BYTES) or n < 2:
        raise ValueError(f"hashes must have shape (n, {NAME_BYTES}), n >= 2; got {hashes.shape}")
    if len(units_of([hashes])[0]) < n:
        raise ValueError("a unit occurs twice")
    return n
