"""The grid: exact sums of whole steps, the same support for neighbours, refusals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtri

from leakbound.core.grid import Grid

FINITE = st.floats(-1e6, 1e6)


def test_for_noise_takes_the_coarsest_power_of_two_with_1024_steps_a_scale():
    assert Grid.for_noise(1.0, 1.0).step == 2.0**-10
    assert Grid.for_noise(0.999, 1.0).step == 2.0**-11
    assert Grid.for_noise(4096.0, 1.0).step == 4.0
    assert Grid.for_noise(1e-300, 0.0).step <= 1e-300 / 1024 < 2 * Grid.for_noise(1e-300, 0.0).step


@given(FINITE, FINITE)
def test_the_release_is_the_rounding_of_the_exact_sum(statistic, noise):
    """In fractions: the statistic lies on the grid, and rounding statistic + noise is adding the rounded noise."""
    grid, step = Grid(2.0**-12), Fraction(1, 2**12)
    on_grid = Fraction(float(grid.snap(statistic)))
    assert on_grid % step == 0
    assert abs(on_grid - Fraction(statistic)) <= step / 2
    released = Fraction(float(grid.release(statistic, noise)))
    assert released % step == 0
    exact = on_grid + Fraction(noise)
    assert abs(released - exact) <= step / 2


@given(FINITE)
def test_round_value_and_snap_agree(value):
    grid = Grid(0.125)
    assert grid.value(grid.round(value)) == grid.snap(value)
    assert grid.snap(grid.snap(value)) == grid.snap(value)


def reached(value: float, noise: np.ndarray, grid: Grid | None) -> set[float]:
    """Values within 2 scales of 0 that the draws make of a statistic."""
    released = value + noise if grid is None else grid.release(value, noise)
    return set(released[np.abs(released) <= 2].tolist())


def test_two_neighbouring_inputs_give_identical_supports():
    """Without the grid nearly every released double names its input; on it every value is reached from both.

    The noise is stratified, 500,000 quantiles of the normal law: each step within 2.7 deviations holds some.
    """
    noise = ndtri((np.arange(500_000) + 0.5) / 500_000)
    inputs, grid = (0.1, 0.7372), Grid.for_noise(1.0, 1.0)
    naive = [reached(each, noise, None) for each in inputs]
    assert len(naive[0] & naive[1]) < 0.01 * len(naive[0])
    supports = [reached(each, noise, grid) for each in inputs]
    assert supports[0] == supports[1]
    assert len(supports[0]) == 2 * 2 * 1024 + 1


def test_sums_are_exact_where_doubles_are_not():
    grid = Grid(2.0**-3)
    statistic, noise = 2.0**49 + 0.125, -(2.0**49)
    assert grid.release(statistic, noise) == 0.125
    assert grid.round(statistic).dtype == np.int64


@pytest.mark.parametrize(
    ("scale", "magnitude", "line"),
    [
        (
            1e-12,
            100.0,
            "no grid fits: noise of scale 1e-12 needs steps of at most 9.76562e-16, the arithmetic error of the "
            "statistic is 1.45519e-09",
        ),
        (
            5e-324,
            0.0,
            "no grid fits: noise of scale 4.94066e-324 needs steps of at most 0, the arithmetic error of the "
            "statistic is 0",
        ),
        (0.0, 1.0, "scale must be > 0, got 0"),
        (np.nan, 1.0, "scale must be finite, got nan"),
        (1.0, np.inf, "magnitude must be finite, got inf"),
        (1.0, -1.0, "magnitude must be >= 0, got -1"),
    ],
)
def test_a_grid_that_cannot_be_is_refused(scale, magnitude, line):
    with pytest.raises(ValueError) as error:
        Grid.for_noise(scale, magnitude)
    assert str(error.value) == line


def test_a_known_arithmetic_error_decides():
    assert Grid.for_noise(1e-12, 100.0, error=1e-16).step == 2.0**-50
    with pytest.raises(ValueError, match=r"arithmetic error of the statistic is 0\.001$"):
        Grid.for_noise(1.0, 1.0, error=1e-3)


@pytest.mark.parametrize("step", [0.3, 3.0, 0.0, -0.5, np.inf])
def test_a_step_is_a_power_of_two(step):
    with pytest.raises(ValueError, match=r"^step must be "):
        Grid(step)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 2.0**53, 1e308])
def test_values_off_the_grid_are_refused_and_snap_to_nan(value):
    grid = Grid(0.5)
    line = r"^a value is not finite, or beyond 2\^53 steps of 0.5: no exact sum on this grid$"
    for act in (grid.round, lambda each: grid.release(each, 0.0), lambda each: grid.release(0.0, each)):
        with pytest.raises(ValueError, match=line):
            act(value)
    assert np.isnan(grid.snap(np.array([value, 1.0]))).tolist() == [True, False]


def test_a_sum_beyond_the_grid_is_refused():
    grid = Grid(1.0)
    with pytest.raises(ValueError, match="beyond 2"):
        grid.release(2.0**53, 1.0)
    assert grid.release(2.0**53, -1.0) == 2.0**53 - 1
