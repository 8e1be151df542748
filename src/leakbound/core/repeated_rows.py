"""Tables in which many rows are equal: every distinct row once, and which one each record has.

A count without one record depends on the cell of that record alone, so a table of ten million such counts has as many
distinct rows as there are cells.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

import numpy as np
from jaxtyping import Float, Int

Array = np.ndarray


@final
@dataclass(frozen=True, eq=False)
class RepeatedRows:
    """A table of n rows, of which only m are kept.

    >>> table = RepeatedRows(np.array([[4.0, 5.0], [3.0, 6.0]]), np.array([0, 0, 1]))
    >>> table.shape, table[2].tolist(), table.count.tolist()
    ((3, 2), [3.0, 6.0], [2, 1])
    >>> np.asarray(table).tolist()
    [[4.0, 5.0], [4.0, 5.0], [3.0, 6.0]]
    """

    rows: Float[Array, "m d"]
    which: Int[Array, " n"]

    def __len__(self) -> int:
        return len(self.which)

    @property
    def shape(self) -> tuple[int, int]:
        """(n, d)."""
        return len(self.which), self.rows.shape[1]

    @property
    def ndim(self) -> int:
        """2."""
        return 2

    @cached_property
    def count(self) -> Int[Array, " m"]:
        """How often each row occurs."""
        return np.bincount(self.which, minlength=len(self.rows))

    def __getitem__(self, record: int) -> Float[Array, " d"]:
        return self.rows[self.which[record]]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Float[Array, "n d"]:
        return self.rows[self.which].astype(dtype or float, copy=False)

    def with_rows(self, rows: Float[Array, "m e"]) -> RepeatedRows:
        """Return the table with other numbers in each row."""
        return replace(self, rows=rows)

    def take(self, records: Int[Array, " r"]) -> RepeatedRows:
        """Return the rows of some records, or of all in another order."""
        return replace(self, which=self.which[records])


Table = Float[Array, "n _"] | RepeatedRows


def rows_of(table: Table) -> Float[Array, "m d"]:
    """Return the rows that a table keeps: each distinct one, or all."""
    return table.rows if isinstance(table, RepeatedRows) else table


def with_rows(table: Table, rows: Float[Array, "m e"]) -> Table:
    """Return a table with other numbers in each of the rows that it keeps."""
    return table.with_rows(rows) if isinstance(table, RepeatedRows) else rows


def of_records(table: Table, of_rows: Float[Array, " m"]) -> Float[Array, " n"]:
    """Give each record the number of its row."""
    return of_rows[table.which] if isinstance(table, RepeatedRows) else of_rows


def variance(table: Table) -> Float[Array, " d"]:
    """Compute the variance of each column, divisor n."""
    if not isinstance(table, RepeatedRows):
        return table.var(axis=0)
    fraction = table.count / len(table)
    return fraction @ np.square(table.rows - fraction @ table.rows)


def taken(table: Table, records: Int[Array, " r"]) -> Table:
    """Return the rows of some records, or of all in another order."""
    return table.take(records) if isinstance(table, RepeatedRows) else table[records]


def side_by_side(tables: list[Table]) -> Table:
    """Join the columns of tables of the same records.

    >>> sexes = RepeatedRows(np.array([[1.0], [2.0]]), np.array([0, 1, 0]))
    >>> towns = RepeatedRows(np.array([[7.0], [8.0]]), np.array([1, 1, 1]))
    >>> side_by_side([sexes, towns]).rows.tolist()
    [[1.0, 8.0], [2.0, 8.0]]
    """
    first, *others = tables
    for other in others:
        if isinstance(first, RepeatedRows) and isinstance(other, RepeatedRows):
            first = _joined(first, other)
        else:
            first = np.hstack([np.asarray(first), np.asarray(other)])
    return first


def _joined(first: RepeatedRows, second: RepeatedRows) -> RepeatedRows:
    code = first.which.astype(np.int64) * len(second.rows) + second.which
    combination, which = np.unique(code, return_inverse=True)
    of_first, of_second = np.divmod(combination, len(second.rows))
    rows = np.hstack([first.rows[of_first], second.rows[of_second]])
    return RepeatedRows(rows, which.reshape(-1).astype(np.min_scalar_type(len(rows))))
