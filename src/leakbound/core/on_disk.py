"""Arrays that are as large as the signals: in memory, or in a file where the signals are memmaps."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterator
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike

Array = np.ndarray
BLOCK = 1 << 20  # numbers that are copied or compared at once


def is_on_disk(array: Array) -> bool:
    """Whether an array is a memmap, or a view of one."""
    return getattr(array, "_mmap", None) is not None


def empty_beside(like: Array, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    """Make an array in memory; where ``like`` is a memmap, in a temporary file.

    The file has no name, and is gone as soon as nothing uses the array.

    >>> type(empty_beside(np.zeros(2), (3,), float)).__name__
    'ndarray'
    """
    return empty_on_disk(shape, dtype) if is_on_disk(like) else np.empty(shape, dtype)


def empty_on_disk(shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    """Make an array in a temporary file."""
    dtype = np.dtype(dtype)
    with tempfile.TemporaryFile() as file:
        place = f"the folder for temporary files, {tempfile.gettempdir()} (name another one as TMPDIR)"
        reserve(file, math.prod(shape) * dtype.itemsize, place)
        return np.memmap(file, dtype, "w+", shape=shape)


def reserve(file: IO[bytes], n_bytes: int, place: str) -> None:
    """Take room for a file: a full disk is then an error, and does not end the process when a page is written."""
    if not n_bytes:
        return
    try:
        os.posix_fallocate(file.fileno(), 0, n_bytes)
    except AttributeError:  # a system without this call
        return
    except OSError as error:
        raise OSError(f"{n_bytes / 1e9:.3g} GB do not fit into {place}: {error.strerror}") from error


def blocks_of(n_rows: int, row_length: int) -> Iterator[slice]:
    """Cut rows into blocks of about `BLOCK` numbers."""
    size = max(1, BLOCK // max(row_length, 1))
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def taken(array: Array, columns: Any) -> Array:
    """Take columns of an array (M, N), by model: block by block where it is a memmap.

    >>> taken(np.arange(6).reshape(2, 3), np.array([0, 2])).tolist()
    [[0, 2], [3, 5]]
    """
    if not is_on_disk(array) or isinstance(columns, slice) or len(array) * len(columns) <= BLOCK:
        return array[:, columns]
    part = empty_on_disk((len(array), len(columns), *array.shape[2:]), array.dtype)
    for block in blocks_of(len(columns), len(array)):
        part[:, block] = array[:, columns[block]]
    return part
