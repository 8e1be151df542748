"""Tables that keep each distinct row once, against the same tables in full."""

from __future__ import annotations

import numpy as np
import pytest

from leakbound.core.repeated_rows import RepeatedRows, of_records, rows_of, side_by_side, taken, variance, with_rows

ROWS = np.array([[4.0, 5.0], [3.0, 6.0], [4.0, 6.0]])
WHICH = np.array([0, 2, 2, 1, 0, 0], dtype=np.uint8)
FULL = ROWS[[0, 2, 2, 1, 0, 0]]


@pytest.fixture
def table() -> RepeatedRows:
    return RepeatedRows(ROWS, WHICH)


def test_it_is_the_same_table(table) -> None:
    assert (len(table), table.shape, table.ndim) == (6, (6, 2), 2)
    assert (np.asarray(table) == FULL).all()
    assert all((table[record] == FULL[record]).all() for record in range(6))
    assert table.count.tolist() == [3, 1, 2]
    np.testing.assert_allclose(variance(table), FULL.var(axis=0), rtol=1e-15)
    assert (variance(FULL) == FULL.var(axis=0)).all()


@pytest.mark.parametrize("full", [False, True])
def test_what_is_done_with_either(table, full) -> None:
    made = FULL if full else table
    order = np.array([5, 3, 0])
    assert (np.asarray(with_rows(made, 2 * rows_of(made))) == 2 * FULL).all()
    assert (np.asarray(taken(made, order)) == FULL[order]).all()
    assert (of_records(made, rows_of(made)[:, 0]) == FULL[:, 0]).all()


def test_tables_side_by_side(table) -> None:
    other = RepeatedRows(np.array([[1.0], [2.0]]), np.array([0, 1, 1, 0, 1, 0]))
    expected = np.hstack([FULL, np.asarray(other), FULL])
    joined = side_by_side([table, other, table])
    assert isinstance(joined, RepeatedRows)
    assert (np.asarray(joined) == expected).all()
    assert len(joined.rows) == len(np.unique(expected, axis=0)) == 4
    assert (side_by_side([table, np.asarray(other), FULL]) == expected).all()
    assert side_by_side([table]) is table
