"""Lengths of rows: exact rational numbers, every size of a double, and the same bytes however a table is stored."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

import numpy as np
import pytest

from leakbound.core.lengths import p_norm


def exact_length(row: np.ndarray) -> float:
    """The root of the sum of squares in whole numbers, to 200 bits."""
    square = sum((Fraction(float(value)) ** 2 for value in row), Fraction(0))
    if not square:
        return 0.0
    shift = 4000
    return float(Fraction(isqrt((square.numerator << 2 * shift) // square.denominator), 1 << shift))


@pytest.mark.parametrize("exponent", [-320, -300, -160, -141, -139, -20, 0, 20, 149, 151, 300])
def test_lengths_are_right_to_the_last_digits(exponent: int) -> None:
    rows = np.random.default_rng(0).normal(size=(20, 3)) * np.array([1.0, 1e-3, 1e-9])
    rows *= 10.0 ** (exponent / 2)
    rows *= 10.0 ** (exponent / 2)
    wanted = [exact_length(row) for row in rows]
    assert p_norm(rows) == pytest.approx(wanted, rel=1e-15, abs=2e-323)


def test_a_row_has_the_length_that_it_has_alone() -> None:
    """Whatever stands beside it: rows that overflow, vanish, are zero or are no numbers are computed in another way."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(400, 4)) * 10.0 ** rng.integers(-300, 300, size=(400, 1))
    rows[::7], rows[3], rows[10, 2], rows[20, 1] = 0.0, np.inf, np.nan, -np.inf
    alone = np.array([p_norm(row[None])[0] for row in rows])
    np.testing.assert_array_equal(p_norm(rows), alone)
    assert p_norm(rows)[0] == 0
    assert np.isnan(p_norm(rows)[10])
    np.testing.assert_allclose(p_norm(rows), np.array([p_norm(row) for row in rows]), rtol=1e-15)


@pytest.mark.parametrize("d", [1, 2, 3, 10, 17])
def test_the_bytes_do_not_depend_on_how_a_table_is_stored(d: int) -> None:
    rows = np.random.default_rng(2).normal(size=(1000, d))
    wanted = p_norm(rows)
    for stored in (np.asfortranarray(rows), np.column_stack([rows, rows])[:, :d], np.repeat(rows, 2, axis=0)[::2]):
        np.testing.assert_array_equal(p_norm(stored), wanted)
