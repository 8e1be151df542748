"""Sort more numbers than memory holds: sorted runs on disk, then merged range by range.

Numbers are 64-bit words. Every run keeps each 1,024th of its words in memory; these say which words divide all of them
into ranges of about equal size, so that a range, merged in memory, is never much larger than was asked for. A word that
makes a range of its own by its copies is not sorted but counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from io import FileIO
from pathlib import Path

import numpy as np
from jaxtyping import Float, UInt

from leakbound.core.temporary import part_of, remove

Array = np.ndarray
RUN = 1 << 21  # words that are sorted at once, 16 MB
PIECE = 1 << 14  # words that are read to look up one of them
STREAM = 1 << 17  # words that are read at once to read all of them
_STEP = 1 << 10  # one word of so many stays in memory
_SIGN = np.uint32(1 << 31)
_SIGN_64 = np.uint64(1 << 63)


class SortedWords:
    """Words in ascending order, in a file."""

    def __init__(self, path: Path, n: int, piece: int, first: UInt[Array, " p"]) -> None:
        self.path, self.n, self.piece, self.first = path, n, piece, first
        self._file = FileIO(path)
        self._cached: dict[int, Array] = {}

    @property
    def n_pieces(self) -> int:
        """How many pieces there are."""
        return len(self.first)

    def read(self, place: int) -> UInt[Array, " n"]:
        """Read a piece; the last few that were read stay in memory."""
        if place not in self._cached:
            if len(self._cached) >= 4:
                self._cached.pop(next(iter(self._cached)))
            start = place * self.piece
            self._cached[place] = self._words(start, min(start + self.piece, self.n))
        return self._cached[place]

    def stream(self, length: int = STREAM) -> Iterator[UInt[Array, " n"]]:
        """Read all of them in ascending order, so many at once."""
        for start in range(0, self.n, length):
            yield self._words(start, min(start + length, self.n))

    def below(self, word: int) -> int:
        """Count the words below this one."""
        if word > np.iinfo(np.uint64).max:
            return self.n
        sought = np.uint64(word)
        place = int(np.searchsorted(self.first, sought, "left")) - 1
        if place < 0:
            return 0
        return place * self.piece + int(np.searchsorted(self.read(place), sought, "left"))

    def close(self) -> None:
        """Remove the file."""
        self._cached.clear()
        self._file.close()
        remove(self.path)

    def _words(self, start: int, stop: int) -> UInt[Array, " n"]:
        words = np.empty(stop - start, dtype=np.uint64)
        self._file.seek(start * words.itemsize)
        read_into(self._file, words)
        return words


def sort_words(blocks: Iterable[UInt[Array, " n"]], folder: Path, run: int = RUN, piece: int = PIECE) -> SortedWords:
    """Sort words that come block by block.

    >>> import tempfile
    >>> blocks = [np.array([5, 1], dtype=np.uint64), np.array([3], dtype=np.uint64)]
    >>> words = sort_words(blocks, Path(tempfile.mkdtemp()))
    >>> [part.tolist() for part in words.stream()], words.below(5)
    ([[1, 3, 5]], 2)
    >>> words.close()
    """
    runs_path, path = part_of(folder / "runs"), part_of(folder / "sorted")
    try:
        with FileIO(runs_path, "w+") as runs_file:
            runs = _Runs(runs_file)
            for words in _of_length(blocks, run):
                runs.add(np.sort(words))
            with FileIO(path, "w") as file:
                first = _write(runs.merged(run), file, piece)
    except BaseException:  # a full disk, or an error in the blocks
        remove(path)
        raise
    finally:
        remove(runs_path)
    return SortedWords(path, runs.n, piece, first)


def read_into(file: FileIO, array: Array) -> None:
    """Fill an array from a file at its place."""
    view = array.data.cast("B") if array.size else memoryview(b"")
    while view:
        n_read = file.readinto(view)
        if not n_read:
            raise EOFError("the file ends before its numbers do")
        view = view[n_read:]


def key_of_float(value: Float[Array, "..."]) -> UInt[Array, "..."]:
    """Map float32 (float64) to uint32 (uint64) in the same order; 0 and -0 are one number.

    >>> key_of_float(np.array([-1.5, 0.0, 2.0], dtype=np.float32)).tolist()
    [1077936127, 2147483648, 3221225472]
    """
    if value.dtype == np.float32:
        bits = (value + np.float32(0)).view(np.uint32)
        return np.where(bits & _SIGN, ~bits, bits | _SIGN)
    bits = (value + np.float64(0)).view(np.uint64)
    return np.where(bits & _SIGN_64, ~bits, bits | _SIGN_64)


def float_of_key(key: UInt[Array, "..."]) -> Float[Array, "..."]:
    """Return the float32 that `key_of_float` maps to these uint32.

    >>> float_of_key(key_of_float(np.array([-1.5, 2.0], dtype=np.float32))).tolist()
    [-1.5, 2.0]
    """
    key = np.asarray(key, dtype=np.uint32)
    return np.where(key & _SIGN, key ^ _SIGN, ~key).astype(np.uint32).view(np.float32)


class _Runs:
    """Sorted runs, one after the other in a file."""

    def __init__(self, file: FileIO) -> None:
        self.file = file
        self.starts: list[int] = []
        self.sizes: list[int] = []
        self.samples: list[Array] = []  # every 1,024th word of each run

    @property
    def n(self) -> int:
        """Words of all runs."""
        return sum(self.sizes)

    def add(self, words: UInt[Array, " n"]) -> None:
        self.starts.append(self.n)
        self.sizes.append(len(words))
        self.samples.append(words[::_STEP].copy())
        write_all(self.file, words)

    def merged(self, most: int) -> Iterator[UInt[Array, " n"]]:
        """Yield all words in ascending order, not many more than ``most`` at once."""
        if not self.sizes:
            return
        before = np.zeros(len(self.sizes), dtype=np.int64)
        for bound, is_copy in self._bounds(most):
            after = np.array([self._below(run, bound) for run in range(len(self.sizes))])
            n_words = int((after - before).sum())
            if is_copy:  # all words of this range are the one below its bound
                word = np.uint64(bound - 1)
                for start in range(0, n_words, most):
                    yield np.full(min(most, n_words - start), word)
            elif n_words:
                parts = [self._segment(run, int(before[run]), int(after[run])) for run in range(len(self.sizes))]
                yield np.sort(np.concatenate(parts), kind="stable")  # which merges what is sorted already
            before = after

    def _bounds(self, most: int) -> Iterator[tuple[int, bool]]:
        """Yield the ends of the ranges, and whether a range is of copies of one word."""
        sample = np.sort(np.concatenate(self.samples))
        per_range = max(1, most // _STEP)
        chosen = sample[per_range::per_range]
        distinct, times = np.unique(chosen, return_counts=True)
        for word, n_times in zip(distinct.tolist(), times.tolist(), strict=True):
            yield word, False
            if n_times > 1:
                yield word + 1, True
        yield 1 << 64, False

    def _below(self, run: int, bound: int) -> int:
        """Count the words of a run below a bound."""
        if bound >= 1 << 64:
            return self.sizes[run]
        sought = np.uint64(bound)
        place = int(np.searchsorted(self.samples[run], sought, "left")) - 1
        if place < 0:
            return 0
        start = place * _STEP
        words = self._segment(run, start, min(start + _STEP, self.sizes[run]))
        return start + int(np.searchsorted(words, sought, "left"))

    def _segment(self, run: int, start: int, stop: int) -> UInt[Array, " n"]:
        words = np.empty(stop - start, dtype=np.uint64)
        self.file.seek((self.starts[run] + start) * words.itemsize)
        read_into(self.file, words)
        return words


def write_all(file: FileIO, array: Array) -> None:
    """Write an array to a file without a buffer, which may take it in parts."""
    view = np.ascontiguousarray(array).data.cast("B") if array.size else memoryview(b"")
    while view:
        view = view[file.write(view) :]


def _of_length(blocks: Iterable[UInt[Array, " n"]], length: int) -> Iterator[UInt[Array, " m"]]:
    """Cut and join blocks so that all but the last have a length."""
    buffer, n_filled = np.empty(length, dtype=np.uint64), 0
    for block in blocks:
        start = 0
        while start < len(block):
            n = min(len(block) - start, length - n_filled)
            buffer[n_filled : n_filled + n] = block[start : start + n]
            start, n_filled = start + n, n_filled + n
            if n_filled == length:
                yield buffer
                n_filled = 0
    if n_filled:
        yield buffer[:n_filled]


def _write(blocks: Iterable[UInt[Array, " n"]], file: FileIO, piece: int) -> UInt[Array, " p"]:
    """Write sorted words and return the first of each piece."""
    first: list[Array] = []
    n_written = 0
    for words in blocks:
        offset = -n_written % piece
        first.append(words[offset::piece].copy())
        write_all(file, words)
        n_written += len(words)
    return np.concatenate(first) if first else np.empty(0, dtype=np.uint64)
