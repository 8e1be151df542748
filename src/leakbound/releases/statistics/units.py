"""Rows that belong together: a unit is one record, or a person with several of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Num

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Units:
    """The N rows of a table, sorted by their unit.

    >>> units = Units.of(np.array([1, 0, 1]))
    >>> units.count.tolist(), units.sums(np.array([[5.0], [7.0], [2.0]])).tolist()
    ([1, 2], [[7.0], [7.0]])
    """

    # the rows of the first unit, then those of the second, and so on; None where each row is a unit of its own
    order: Int[Array, " N"] | None
    count: Int[Array, " n"]

    @classmethod
    def of(cls, unit: Int[Array, " N"]) -> Units:
        """Sort rows by their unit, 0 to n - 1."""
        return cls(np.argsort(unit, kind="stable"), np.bincount(unit))

    @classmethod
    def single(cls, n: int) -> Units:
        """Make each of n rows a unit."""
        return cls(None, np.ones(n, dtype=int))

    @property
    def n(self) -> int:
        """Number of units."""
        return len(self.count)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.count.sum())

    @property
    def left(self) -> Float[Array, "n 1"]:
        """Rows that are left without each unit."""
        return (self.n_rows - self.count).astype(float)[:, None]

    @property
    def of_row(self) -> Int[Array, " N"]:
        """The unit of each row."""
        if self.order is None:
            return np.arange(self.n)
        unit = np.empty(self.n_rows, dtype=int)
        unit[self.order] = np.repeat(np.arange(self.n), self.count)
        return unit

    def sums(self, table: Num[Array, "N c"]) -> Float[Array, "n c"]:
        """Sum the rows of each unit."""
        if self.order is None:
            return np.asarray(table, dtype=float)
        return _sums(np.asarray(table, dtype=float)[self.order], self.count)

    def blocks(self, n_numbers: int, largest: int = 2**22) -> Iterator[Block]:
        """Yield some units at a time, so that n_numbers for each of their rows are at most so many, where possible."""
        yield from self.chosen(np.arange(self.n), n_numbers, largest)

    def chosen(self, units: Int[Array, " m"], n_numbers: int, largest: int = 2**22) -> Iterator[Block]:
        """Yield some of the units, as `blocks` does."""
        size = max(1, largest // n_numbers)
        if self.order is None:
            for start in range(0, len(units), size):
                block = units[start : start + size]
                yield Block(block, block, np.ones(len(block), dtype=int))
            return
        first = np.cumsum(self.count) - self.count
        behind = np.cumsum(self.count[units])
        start = 0
        while start < len(units):
            before = int(behind[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(behind, before + size, side="right")))
            block, start = units[start:stop], stop
            count = self.count[block]
            places = np.repeat(first[block] - (np.cumsum(count) - count), count) + np.arange(count.sum())
            yield Block(block, self.order[places], count)


@dataclass(frozen=True, eq=False)
class Block:
    """Some units, and their rows."""

    units: Int[Array, " m"]
    rows: Int[Array, " r"]
    count: Int[Array, " m"]

    @property
    def alone(self) -> bool:
        """Whether each unit has one row."""
        return bool((self.count == 1).all())

    def sums(self, table: Num[Array, "r c"]) -> Float[Array, "m c"]:
        """Sum rows of each unit, given in the order of `rows`."""
        return _sums(np.asarray(table, dtype=float), self.count)


def _sums(table: Float[Array, "r c"], count: Int[Array, " m"]) -> Float[Array, "m c"]:
    """Sum runs of rows of these lengths; 0 for a run of none."""
    total = np.zeros((len(count), table.shape[1]))
    (some,) = np.nonzero(count)
    if len(some):
        first = np.cumsum(count) - count
        total[some] = np.add.reduceat(table, first[some], axis=0)
    return total
