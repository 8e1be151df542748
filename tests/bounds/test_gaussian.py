import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from leakscope.bounds.gaussian import analytic_gaussian_epsilon, analytic_gaussian_scale, gaussian_hockey, least
from leakscope.tradeoff import Gaussian


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


@pytest.mark.parametrize("m", [1e-12, 1e-7, 0.99e-5, 1.01e-5, 1e-3, 0.1, 1.0, 3.0, 30.0, 300.0])
@pytest.mark.parametrize("epsilon", [0.0, 1e-12, 1e-8, 1e-6, 1e-3, 0.1, 1.0, 10.0, 500.0, 5e4])
def test_digits_of_every_size(m, epsilon):
    expected = float(in_high_precision(m, epsilon))
    assert float(gaussian_hockey(m, epsilon)) == pytest.approx(expected, rel=1e-9, abs=1e-300)


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


@pytest.mark.parametrize("epsilon", [0.0, 1e-3, 0.5, 1.0, 5.0, 50.0, 1e4])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.01, 0.5, 0.999])
def test_the_least_noise_holds_and_a_thousandth_less_does_not(epsilon, delta):
    scale = analytic_gaussian_scale(epsilon, delta, 3.0)
    assert in_high_precision(3.0 / scale, epsilon) <= delta * (1 + 1e-10)
    assert in_high_precision(3.0 / (0.999 * scale), epsilon) > delta
    assert float(gaussian_hockey(3.0 / scale, epsilon)) <= delta * (1 + 1e-12)


def test_of_the_authors():
    """Balle and Wang's calibration at epsilon = 1, delta = 1e-5, solved with mpmath."""
    assert analytic_gaussian_scale(1.0, 1e-5, 1.0) == pytest.approx(3.7306316, abs=1e-7)
    with mpmath.workdps(30):
        scale = mpmath.findroot(lambda s: in_high_precision(1 / s, 1) - mpmath.mpf("1e-5"), 3.7)
    assert analytic_gaussian_scale(1.0, 1e-5, 1.0) == pytest.approx(float(scale), rel=1e-11)


@given(st.floats(0.01, 100), st.floats(1e-9, 0.9), st.floats(0.01, 100))
def test_inverse(scale, delta, sensitivity):
    epsilon = analytic_gaussian_epsilon(scale, delta, sensitivity)
    if epsilon > 1e-6:
        assert analytic_gaussian_scale(epsilon, delta, sensitivity) == pytest.approx(scale, rel=1e-6)
        assert float(gaussian_hockey(sensitivity / scale, 0.999 * epsilon)) > delta
    assert float(gaussian_hockey(sensitivity / scale, epsilon)) <= delta


def test_enough_noise_needs_no_epsilon():
    assert analytic_gaussian_epsilon(1000.0, 0.01, 1.0) == 0


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda: analytic_gaussian_scale(-1.0, 0.1, 1.0), "epsilon must be >= 0, got -1"),
        (lambda: analytic_gaussian_scale(1.0, 1.0, 1.0), "delta must be > 0 and < 1, got 1"),
        (lambda: analytic_gaussian_scale(1.0, 0.0, 1.0), "delta must be > 0 and < 1, got 0"),
        (lambda: analytic_gaussian_scale(1.0, 0.1, 0.0), "sensitivity must be > 0, got 0"),
        (lambda: analytic_gaussian_epsilon(0.0, 0.1, 1.0), "scale must be > 0, got 0"),
        (lambda: analytic_gaussian_epsilon(1.0, math.nan, 1.0), "delta must be finite, got nan"),
    ],
)
def test_values_out_of_range(call, line):
    with pytest.raises(ValueError) as refused:
        call()
    assert str(refused.value) == line


def test_least():
    assert least(lambda x: True) == 0
    assert least(lambda x: x > 1e-30) == pytest.approx(1e-30, rel=1e-11)
    assert least(lambda x: x > 1e30) == pytest.approx(1e30, rel=1e-11)
    assert least(lambda x: False) == math.inf
