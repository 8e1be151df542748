"""Arrays that are as large as the signals: in memory, or in a file where the signals are memmaps."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

Array = np.ndarray
BLOCK = 1 << 20  # numbers that are copied or compared at once


def is_on_disk(array: Array) -> bool:
    """Whether an array is a memmap, or a view of one."""
    return isinstance(array, np.memmap) and array.filename is not None


def empty_beside(like: Array, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    """Make an array in memory; where ``like`` is a memmap, in a file without a name in the same folder.

    The file is gone as soon as nothing uses the array.

    Examples
    --------
    >>> type(empty_beside(np.zeros(2), (3,), float)).__name__
    'ndarray'
    """
    if not is_on_disk(like):
        return np.empty(shape, dtype)
    folder = Path(os.fspath(like.filename)).parent  # pyright: ignore[reportAttributeAccessIssue] -- a memmap has it
    return empty_in(folder, shape, dtype)


def empty_in(folder: Path, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    """Make an array in a file without a name in a folder."""
    n_bytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    with tempfile.TemporaryFile(dir=folder) as file:
        if hasattr(os, "posix_fallocate") and n_bytes:
            os.posix_fallocate(file.fileno(), 0, n_bytes)  # a disk that is full is told now, not when a page is written
        array = np.memmap(file, dtype, "w+", shape=shape)
    array.filename = str(folder / "scores")  # for `empty_beside`: the file has no name of its own
    return array


def blocks_of(n_rows: int, row_length: int) -> Iterator[slice]:
    """Cut rows into blocks of about `BLOCK` numbers."""
    size = max(1, BLOCK // max(row_length, 1))
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def taken(array: Array, columns: Any) -> Array:
    """Take columns of an array (M, N), by model: block by block where it is a memmap.

    Examples
    --------
    >>> taken(np.arange(6).reshape(2, 3), np.array([0, 2])).tolist()
    [[0, 2], [3, 5]]
    """
    if not is_on_disk(array) or isinstance(columns, slice):
        return array[:, columns]
    part = empty_beside(array, (len(array), len(columns)), array.dtype)
    for block in blocks_of(len(columns), len(array)):
        part[:, block] = array[:, columns[block]]
    return part
