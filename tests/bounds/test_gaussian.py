import math

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakbound.bounds.gaussian import analytic_gaussian_epsilon, analytic_gaussian_scale
from leakbound.core.divergences import gaussian_hockey
from tests.core.test_divergences import in_high_precision


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
