import math

import mpmath
import numpy as np
import pytest
from scipy import integrate, special, stats

from leakbound.core import hockey
from leakbound.core.seeds import stream
from tests.marks import nightly


def numbers(*values):
    return np.array(values, dtype=float)


def marginal_tv(t, d):
    """P(|Z_1| < t/2) by the Bessel K density of a coordinate of the Euclidean norm noise."""
    nu = mpmath.mpf(d) / 2
    scale = mpmath.sqrt(mpmath.pi) * mpmath.gamma(nu + 0.5)
    half = mpmath.mpf(t) / 2
    points = [0, half / 4, half / 2, half]
    return float(2 * mpmath.quad(lambda z: (z / 2) ** nu * mpmath.besselk(nu, z) / scale, points))


def polar_hockey(t, epsilon, d):
    """P(||W + v|| - ||W|| > e) - e^e P(||Z|| - ||Z - v|| > e), the length given the direction, around each focus.

    With c the cosine to v the first event is r < (t^2 - e^2)/(2 (e - t c)) (always for c > e/t), the second
    r > (t^2 - e^2)/(2 (t c - e)) (never for c < e/t), and r has the law Gamma(d).
    """
    c0, span = epsilon / t, (t * t - epsilon * epsilon) / 2

    def density(a):
        return np.sin(a) ** (d - 2)

    def near(a):
        return special.gammainc(d, span / (epsilon - t * np.cos(a))) * density(a)

    def far(a):
        return special.gammaincc(d, span / (t * np.cos(a) - epsilon)) * density(a)

    stop, options = math.acos(c0), {"epsabs": 1e-13, "epsrel": 1e-12, "limit": 500}
    total = integrate.quad(density, 0, np.pi, **options)[0]
    sure = integrate.quad(density, 0, stop, **options)[0]
    behind = integrate.quad(near, stop, np.pi, **options)[0]
    lost = integrate.quad(far, 0, stop, **options)[0]
    return (sure + behind - math.exp(epsilon) * lost) / total


@pytest.mark.parametrize(
    ("d", "value"),
    [(1, 0.393469340287), (2, 0.295960066488), (3, 0.241836675359), (10, 0.128675477392), (50, 0.056652560506)],
)
def test_total_variation_of_the_euclidean_norm_noise(d, value):
    assert hockey.euclidean(numbers(1), 0.0, d)[0] == pytest.approx(value, abs=1e-12)


@pytest.mark.by_day("30-3")
@pytest.mark.parametrize("d", [nightly(2), 3, 5, nightly(10), nightly(100), 1000])
@pytest.mark.parametrize("t", [1e-6, 1, 30])
def test_total_variation_is_that_of_the_marginal(d, t):
    assert hockey.euclidean(numbers(t), 0.0, d)[0] == pytest.approx(marginal_tv(t, d), rel=1e-12)


def test_closed_forms_in_one_and_three_dimensions():
    t = np.linspace(0, 40, 200)
    np.testing.assert_allclose(hockey.euclidean(t, 0.0, 1), 1 - np.exp(-t / 2), atol=1e-15)
    np.testing.assert_allclose(hockey.euclidean(t, 0.0, 3), 1 - (1 + t / 4) * np.exp(-t / 2), atol=1e-13)


@pytest.mark.parametrize(("d", "slope"), [(1, 1), (2, 0.63662), (3, 0.5), (5, 0.375), (10, 0.25869), (100, 0.079988)])
def test_slope_at_zero_bounds_the_total_variation(d, slope):
    assert 2 * hockey.euclidean(numbers(1e-7), 0.0, d)[0] / 1e-7 == pytest.approx(slope, rel=1e-5)
    t = np.linspace(0.01, 50, 300)
    assert (hockey.euclidean(t, 0.0, d) <= np.minimum(1, slope * (1 + 1e-5) * t / 2)).all()


@pytest.mark.parametrize("d", [2, 3, 4, 7, 20])
@pytest.mark.parametrize(("t", "epsilon"), [(0.5, 0.2), (1.0, 0.9), (3.0, 0.5), (8.0, 2.0), (8.0, 6.0)])
def test_hockey_stick_of_the_euclidean_norm_noise_in_polar_coordinates(d, t, epsilon):
    exact = polar_hockey(t, epsilon, d)
    assert hockey.euclidean(numbers(t), epsilon, d)[0] == pytest.approx(exact, rel=1e-8, abs=1e-11)


@pytest.mark.parametrize(("t", "epsilon"), [(300, 40), nightly(500, 480), (600, 596), nightly(695, 690)])
def test_long_shifts(t, epsilon):
    """The polar form in the plane, where floats overflow."""

    def upper(r):  # P(Gamma(2) > r), 0 beyond a pole
        return (1 + r) * mpmath.exp(-r) if r > 0 else mpmath.mpf(0)

    with mpmath.workdps(40):
        t, epsilon = mpmath.mpf(t), mpmath.mpf(epsilon)
        span, stop = (t * t - epsilon * epsilon) / 2, mpmath.acos(epsilon / t)
        middles = [(i + mpmath.mpf(0.5)) / 4000 for i in range(4000)]
        rest = mpmath.pi - stop
        lost = [mpmath.exp(epsilon) * upper(span / (t * mpmath.cos(stop * m) - epsilon)) for m in middles]
        kept = [upper(span / (epsilon - t * mpmath.cos(stop + rest * m))) for m in middles]
        exact = float(1 - (stop * sum(lost) + rest * sum(kept)) / 4000 / mpmath.pi)
    assert hockey.euclidean(numbers(t), float(epsilon), 2)[0] == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("d", [2, 3, 10, 10_000])
def test_the_euclidean_norm_hides_at_least_what_the_triangle_inequality_gives(d):
    t = np.linspace(0, 60, 121)
    for epsilon in (0.0, 0.3, 1.0, 5.0, 20.0):
        exact = hockey.euclidean(t, epsilon, d)
        assert (exact <= hockey.any_norm(t, epsilon) + 1e-14).all()
        assert (np.diff(exact) >= -1e-14).all()


def test_any_norm_is_randomised_response():
    """Two answers with ratio e^t: the larger probability less gamma times the smaller."""
    for t, epsilon in [(0.5, 0.0), (2.0, 0.5), (5.0, 4.0), (0.3, 1.0)]:
        likely = math.exp(t) / (1 + math.exp(t))
        exact = max(0.0, likely - math.exp(epsilon) * (1 - likely))
        assert hockey.any_norm(numbers(t), epsilon)[0] == pytest.approx(exact, abs=1e-15)
    assert hockey.any_norm(numbers(1.3), 0.0)[0] == pytest.approx(math.tanh(0.65))


@pytest.mark.parametrize(("t", "epsilon"), [(1.0, 0.0), (1.0, 0.5), (1.0, 1.0), (4.0, 1.5), (0.2, 3.0)])
def test_laplace_by_integration(t, epsilon):
    def excess(z):
        return max(0.0, stats.laplace.pdf(z - t) - math.exp(epsilon) * stats.laplace.pdf(z))

    meets = [0.0, min(max((t + epsilon) / 2, 0), t), t]
    exact = integrate.quad(excess, -60, 60, points=meets, limit=500)[0]
    assert hockey.laplace(numbers(t), epsilon)[0] == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize(
    ("d", "eta"), [(1, 0.00013175), (2, 0.00078494), (10, 0.00235656), (100, 0.00671061), (10**6, 0.20616)]
)
def test_the_literal_radius_with_the_printed_scale(d, eta):
    """b = (6.16/.1)^2: the promise .1 is broken in a million dimensions."""
    digits = 5 if d == 10**6 else 8
    assert round(float(hockey.euclidean_literal(numbers(2 / 61.6**2), d)[0]) / 2, digits) == eta


@pytest.mark.parametrize("d", [2, 3, 40])
@pytest.mark.parametrize("t", [1e-3, 0.5, 4.0, 80.0])
def test_the_literal_radius_by_integration(d, t):
    def survival(c):  # P(r > t/(2 c)) at |U_1| = c = sin(a)
        return np.exp(-t / (2 * np.sin(c))) * np.cos(c) ** (d - 2)

    mass = integrate.quad(lambda c: np.cos(c) ** (d - 2), 0, np.pi / 2)[0]
    exact = 1 - integrate.quad(survival, 0, np.pi / 2, epsabs=1e-13, limit=500)[0] / mass
    assert hockey.euclidean_literal(numbers(t), d)[0] == pytest.approx(exact, abs=1e-10)


@pytest.mark.parametrize("d", [1, 2, 3, 10])
@pytest.mark.parametrize("t", [0.1, 1.0, 1.9, 2.0, 5.0])
def test_the_ball_by_the_overlap_of_two_balls(d, t):
    """Two caps: the overlap of unit balls at distance t, by integrating slices."""
    slices = integrate.quad(lambda h: (1 - h * h) ** ((d - 1) / 2), min(t / 2, 1), 1)[0]
    ball = integrate.quad(lambda h: (1 - h * h) ** ((d - 1) / 2), -1, 1)[0]
    assert hockey.ball(numbers(t), d)[0] == pytest.approx(1 - 2 * slices / ball, abs=1e-9)


@pytest.mark.statistics
@pytest.mark.parametrize(("t", "epsilon"), [(50.0, 0.0), (200.0, 1.0), (300.0, 5.0), (1000.0, 20.0), (5000.0, 690.0)])
def test_ten_thousand_dimensions(t, epsilon):
    """``E (1 - e^(epsilon - M))_+`` over M = ||W + v|| - ||W||; 4.5 standard errors: false alarm below 1e-5."""
    rng, d = stream(0, "high", int(t)), 10_000
    length = rng.gamma(d, size=50_000)
    cosine = 2 * rng.beta((d - 1) / 2, (d - 1) / 2, size=50_000) - 1
    further = np.sqrt(length**2 + 2 * length * t * cosine + t**2) - length
    gain = -np.expm1(np.minimum(epsilon - further, 0))
    exact = hockey.euclidean(numbers(t), epsilon, d)[0]
    assert exact == pytest.approx(gain.mean(), abs=4.5 * gain.std() / 223 + 1e-9)
