"""The hockey stick of two Gaussians: digits of every size, ends, order."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from leakbound.core.divergences import gaussian_hockey
from leakbound.core.tradeoff import Gaussian


def in_high_precision(m, epsilon):
    """Phi(m/2 - epsilon/m) - e^epsilon Phi(-m/2 - epsilon/m) with mpmath."""
    with mpmath.workdps(400):
        m, epsilon = mpmath.mpf(m), mpmath.mpf(epsilon)
        return mpmath.ncdf(m / 2 - epsilon / m) - mpmath.exp(epsilon) * mpmath.ncdf(-m / 2 - epsilon / m)


@pytest.mark.parametrize(
    ("m", "epsilon", "delta"), [(1, 1, 0.126936737507), (0.5, 0, 0.197412651366), (2, 1, 0.509861660055)]
)
def test_printed_values(m, epsilon, delta):
    assert float(gaussian_hockey(m, epsilon)) == pytest.approx(delta, abs=5e-13)
    assert Gaussian(m).delta(epsilon) == pytest.approx(delta, abs=1e-9)
    excess, _ = integrate.quad(  # p > e^epsilon q from there on
        lambda z: stats.norm.pdf(z - m) - math.exp(epsilon) * stats.norm.pdf(z), epsilon / m + m / 2, m + 12
    )
    assert excess == pytest.approx(delta, abs=1e-11)


@pytest.mark.parametrize("m", [1e-12, 1e-7, 0.99e-5, 1.01e-5, 1e-3, 0.0199, 0.0201, 0.1, 1.0, 3.0, 30.0, 300.0])
@pytest.mark.parametrize("epsilon", [0.0, 1e-12, 1e-8, 1e-6, 1e-3, 0.1, 1.0, 10.0, 500.0, 5e4])
def test_digits_of_every_size(m, epsilon):
    expected = float(in_high_precision(m, epsilon))
    assert float(gaussian_hockey(m, epsilon)) == pytest.approx(expected, rel=1e-11, abs=1e-300)


@pytest.mark.parametrize("m", [1.4e-5, 1e-3, 0.015, 0.0212, 0.3, 20.0, 5e3, 824334.5])
@pytest.mark.parametrize("near", [-3.0, -0.5, 0.0, 5.0, 29.07, 36.0])
def test_ten_digits_are_kept_far_out(m, near):
    """Epsilon = m (near + m/2), or 0: what is left of the density is the tail beyond ``near`` deviations."""
    epsilon = max(0.0, m * (near + m / 2))
    digits = 60 + 2 * math.ceil(max(0.0, math.log10(max(1.0, epsilon / m**2))))
    with mpmath.workdps(digits):
        shift, exact = mpmath.mpf(m), mpmath.mpf(epsilon)
        low, high = (exact / shift + side * shift / 2 for side in (-1, 1))
        tails = [mpmath.erfc(end / mpmath.sqrt(2)) / 2 for end in (low, high)]
        expected = tails[0] - mpmath.exp(exact) * tails[1]
        relative = float((mpmath.mpf(float(gaussian_hockey(m, epsilon))) - expected) / expected)
    assert abs(relative) < 1e-10


def test_ends():
    assert gaussian_hockey([0.0, math.inf], 0.0).tolist() == [0.0, 1.0]
    assert gaussian_hockey([0.0, 1e-300, 1e300, math.inf], 1e4).tolist() == [0.0, 0.0, 1.0, 1.0]
    assert float(gaussian_hockey(1.0, 1e300)) == 0
    assert gaussian_hockey(np.ones((2, 3)), 1.0).shape == (2, 3)


@given(st.floats(0, 50), st.floats(0, 50), st.floats(0, 1000))
def test_more_shift_is_more_and_more_epsilon_is_less(m, more, epsilon):
    low, high = gaussian_hockey([m, m + more], epsilon)
    assert 0 <= low <= high + 1e-12 <= 1 + 2e-12
    assert float(gaussian_hockey(m, epsilon + more)) <= low + 1e-12


@pytest.mark.parametrize(("m", "epsilon"), [(-1.0, 1.0), (math.nan, 1.0), (1.0, -0.1), (1.0, math.inf)])
def test_bad_input(m, epsilon):
    with pytest.raises(ValueError, match=r"^(a shift must be >= 0|epsilon must be)"):
        gaussian_hockey(m, epsilon)
