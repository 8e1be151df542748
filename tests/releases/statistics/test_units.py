"""Rows of units: sums and blocks against loops."""

from __future__ import annotations

import numpy as np
import pytest

from leakbound.releases.statistics.units import Units

UNIT = np.array([3, 0, 3, 1, 3, 0, 5])
TABLE = np.arange(14.0).reshape(7, 2)


def test_sums_with_empty_units() -> None:
    units = Units.of(UNIT)
    assert (units.n, units.n_rows) == (6, 7)
    assert units.count.tolist() == [2, 1, 0, 3, 0, 1]
    assert units.left.tolist() == [[5], [6], [7], [4], [7], [6]]
    assert units.of_row.tolist() == UNIT.tolist()
    expected = [TABLE[unit == UNIT].sum(axis=0).tolist() for unit in range(6)]
    assert units.sums(TABLE).tolist() == expected
    assert Units.of(np.append(UNIT, [6])[:7]).sums(TABLE).tolist() == expected


def test_each_row_alone() -> None:
    units = Units.single(4)
    assert units.sums(TABLE[:4]).tolist() == TABLE[:4].tolist()
    assert units.of_row.tolist() == [0, 1, 2, 3]
    assert [block.rows.tolist() for block in units.blocks(2, 4)] == [[0, 1], [2, 3]]
    assert all(block.alone for block in units.blocks(2, 4))


@pytest.mark.parametrize("largest", [1, 4, 6, 100])
@pytest.mark.parametrize("chosen", [[0, 1, 2, 3, 4, 5], [3, 5], [4, 2], []])
def test_blocks_hold_whole_units(largest, chosen) -> None:
    units, seen = Units.of(UNIT), []
    for block in units.chosen(np.array(chosen, dtype=int), 2, largest):
        assert len(block.rows) == block.count.sum()
        assert (block.count > 0).sum() <= 1 or 2 * len(block.rows) <= largest
        for unit, rows in zip(block.units, np.split(block.rows, np.cumsum(block.count)[:-1]), strict=True):
            assert rows.tolist() == np.flatnonzero(unit == UNIT).tolist()
        expected = [TABLE[unit == UNIT].sum(axis=0).tolist() for unit in block.units]
        assert block.sums(TABLE[block.rows]).tolist() == expected
        seen += block.units.tolist()
    assert seen == chosen
