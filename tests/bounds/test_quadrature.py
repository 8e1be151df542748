"""Integrals of ``|f|``: panels against antiderivatives, lines and planes against closed forms of two shifted laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from leakbound.bounds.quadrature import absolute_integral, graded, panel_integrals, panel_nodes, reach
from leakbound.noise import GaussianNoise, LaplaceNoise

PAIR = np.array([[1.0], [-1.0]])


def on_panel(function, width=2.0):
    """Integral of ``|f|`` over (-1, 1), scaled to a width, and whether it is proved."""
    integral, proved = panel_integrals(function(panel_nodes())[:, None, None], width, 0.0)
    return float(integral[0, 0]), bool(proved[0, 0])


@given(st.floats(-2, 2), st.floats(0.1, 3), st.floats(0.01, 100))
def test_a_panel_with_at_most_one_root_is_exact(root, slope, width):
    """``|slope (x - root)|``: triangles."""
    value, proved = on_panel(lambda x: slope * (x - root), width)
    area = ((1 - root) ** 2 + (1 + root) ** 2) / 2 if abs(root) < 1 else 2 * abs(root)
    assert proved
    assert value == pytest.approx(slope * area * width / 2, rel=1e-12)


def test_a_panel_without_a_sign_change_is_its_integral():
    value, proved = on_panel(lambda x: 2 + x**2 + 0.3 * x**5)
    assert proved
    assert value == pytest.approx(4 + 2 / 3, rel=1e-14)


@pytest.mark.parametrize("function", [lambda x: x**2 - 0.25, lambda x: np.cos(40 * x), lambda x: (x > 0.3) - 0.5])
def test_two_roots_waves_and_jumps_are_not_proved(function):
    assert not on_panel(function)[1]


def test_a_jump_at_the_end_is_seen():
    """Between the last Gauss node and the end of the panel."""
    assert not on_panel(lambda x: 1.0 + (x == 1.0))[1]


@given(st.floats(1e-3, 1e6), st.floats(1e-4, 1e3))
def test_cuts_cover_the_width_and_grow_from_either_end(width, length):
    cuts = graded(width, length)
    assert (cuts[0], cuts[-1]) == (0.0, width)
    steps = np.diff(cuts)
    assert (steps > 0).all()
    np.testing.assert_allclose(steps, steps[::-1], rtol=1e-6, atol=1e-12 * width)
    if len(cuts) > 2:
        assert steps[0] == pytest.approx(length)
        assert (steps[1:] <= 4 * (1 + 1e-9) * np.maximum(cuts[1:-1], width - cuts[1:-1])).all()
    else:
        assert width <= 2 * length * (1 + 1e-9)


@pytest.mark.parametrize("noise", [GaussianNoise(0.3), LaplaceNoise(2.0)])
def test_beyond_reach_there_is_nothing(noise):
    far = reach(noise, 1)
    law = stats.norm(scale=0.3) if isinstance(noise, GaussianNoise) else stats.laplace(scale=2.0)
    assert law.pdf(far) < 1e-20 * law.pdf(0) * 1.03
    assert law.pdf(far / 1.25) >= 1e-20 * law.pdf(0)


@pytest.mark.parametrize("shift", [1e-6, 0.1, 1.0, 7.0, 1e4])
def test_two_laws_on_a_line(shift):
    """``int |g(z) - g(z - u)|`` is 2 (2 Phi(u/2) - 1), and for Laplace 2 (1 - e^(-u/2))."""
    outputs = np.array([[3.0], [3.0 + shift]])
    apart = outputs[1, 0] - outputs[0, 0]
    found = absolute_integral(outputs, PAIR, GaussianNoise(1.0))[0]
    assert found == pytest.approx(2 * (stats.norm.cdf(apart / 2) - stats.norm.cdf(-apart / 2)), abs=1e-12)
    found = absolute_integral(outputs, PAIR, LaplaceNoise(1.0))[0]
    assert found == pytest.approx(-2 * np.expm1(-apart / 2), abs=1e-12)


def test_two_laws_in_a_plane():
    outputs = np.array([[0.0, 0.0], [0.6, -0.8]])
    found = absolute_integral(outputs, PAIR, GaussianNoise(1.0))[0]
    assert found == pytest.approx(2 * (2 * stats.norm.cdf(0.5) - 1), abs=2e-6)


def test_many_mixtures_at_once_are_each_alone():
    outputs = np.array([[0.0], [1.0], [2.5]])
    weights = np.random.default_rng(0).normal(size=(3, 5))
    together = absolute_integral(outputs, weights, GaussianNoise(0.7))
    alone = [absolute_integral(outputs, weights[:, [i]], GaussianNoise(0.7))[0] for i in range(5)]
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-12)
    z = np.linspace(-8, 11, 400_001)  # by the trapezoid
    naive = np.abs(weights.T @ stats.norm.pdf(z - outputs, scale=0.7)).sum(axis=1) * (z[1] - z[0])
    np.testing.assert_allclose(together, naive, rtol=1e-7)


@pytest.mark.parametrize(
    ("outputs", "line"),
    [
        (np.zeros((2, 3)), "the integral over the noise is done for releases of 1 or 2 numbers, got 3"),
        (np.arange(20_001.0)[:, None], "20,001 distinct outputs with noise; the limit is 20,000"),
    ],
)
def test_too_much_is_refused(outputs, line):
    with pytest.raises(ValueError) as refused:
        absolute_integral(outputs, np.ones((len(outputs), 1)), GaussianNoise(1.0))
    assert str(refused.value) == line
