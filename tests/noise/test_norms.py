import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from leakbound.core.lengths import p_norm
from leakbound.core.seeds import stream
from leakbound.noise import Lp, Mahalanobis

S = np.array([[4.0, 1.2, 0.3], [1.2, 2.0, -0.4], [0.3, -0.4, 1.0]])
NORMS = [
    Lp(1),
    Lp(2),
    Lp(3.5),
    Lp(math.inf),
    Lp(1, [1.0, 2.0, 0.5]),
    Lp(6, [1.0, 2.0, 0.5]),
    Mahalanobis(S),
    Mahalanobis(np.array([4.0, 2.0, 0.1])),
]
every_norm = pytest.mark.parametrize("norm", NORMS, ids=str)


def naive(norm, v):
    """The definition, one vector at a time."""
    if isinstance(norm, Mahalanobis):
        full = norm.shape if norm.shape.ndim == 2 else np.diag(norm.shape)
        return math.sqrt(v @ np.linalg.inv(full) @ v)
    if norm.p == math.inf:
        return max(abs(v))
    return sum(w * abs(x) ** norm.p for w, x in zip(norm.weights or np.ones(len(v)), v, strict=True)) ** (1 / norm.p)


@every_norm
def test_length_is_its_definition(norm):
    v = stream(0, "vectors").normal(size=(4, 5, 3))
    expected = [[naive(norm, each) for each in row] for row in v]
    np.testing.assert_allclose(norm(v), expected, rtol=1e-12)
    assert norm(v[0, 0]).shape == ()


coordinates = st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3).map(np.array)


@every_norm
@given(v=coordinates, w=coordinates, factor=st.floats(-1e3, 1e3))
def test_a_norm_is_a_norm(norm, v, w, factor):
    assert norm(v + w) <= (norm(v) + norm(w)) * (1 + 1e-9)
    assert norm(factor * v) == pytest.approx(abs(factor) * norm(v), rel=1e-9, abs=1e-300)
    assert (norm(v) == 0) == (not v.any())


@every_norm
def test_maps_are_inverse(norm):
    v = stream(0, "maps").normal(size=(7, 3))
    np.testing.assert_allclose(norm.restore(norm.standardise(v)), v, rtol=1e-12)
    matrix = norm.restore(np.eye(3))
    assert norm.log_volume_factor == pytest.approx(np.linalg.slogdet(matrix)[1], abs=1e-12)
    assert norm.spread == pytest.approx(np.square(matrix).sum() / 3)


@every_norm
def test_volume_of_the_ball(norm):
    """Share of a box that lies in the ball; 4 standard errors: false alarm below 1e-4 for each norm."""
    rng = stream(0, "volume")
    side = 1.01 * np.abs(norm.directions((20000, 3), rng)).max(axis=0)
    inside = norm(rng.uniform(-side, side, size=(200_000, 3))) <= 1
    box = 8 * side.prod()
    assert inside.mean() * box == pytest.approx(math.exp(norm.log_ball_volume(3)), abs=4 * box * inside.std() / 447)


@pytest.mark.parametrize(
    ("p", "d", "volume"),
    [(1, 4, 2**4 / 24), (2, 2, math.pi), (2, 3, 4 * math.pi / 3), (math.inf, 5, 32), (3.0, 1, 2)],
)
def test_volumes_in_closed_form(p, d, volume):
    assert math.exp(Lp(p).log_ball_volume(d)) == pytest.approx(volume)


@pytest.mark.by_day("Lp(p=2, weights=None)")
@every_norm
@pytest.mark.statistics
def test_directions_are_those_of_points_uniform_in_the_ball(norm):
    """Cone measure, against rejection from a box: Kolmogorov-Smirnov at 1e-4 for each coordinate."""
    rng = stream(0, "cone")
    u = norm.directions((20000, 3), rng)
    np.testing.assert_allclose(norm(u), 1, rtol=1e-12)
    side = 1.01 * np.abs(u).max(axis=0)
    points = rng.uniform(-side, side, size=(200_000, 3))
    points = points[norm(points) <= 1]
    points = points / norm(points)[:, None]
    for j in range(3):
        assert stats.ks_2samp(u[:, j], points[:, j]).pvalue > 1e-4
    square = np.square(u).mean(axis=1)
    assert square.mean() == pytest.approx(norm.mean_square_direction(3), abs=4 * square.std() / 141 + 1e-12)


def test_large_p_tends_to_the_cube():
    """At p = 1000 a coordinate drawn as Gamma(1/p) would be 0 half of the time."""
    u = np.abs(Lp(1000).directions((20000, 2), stream(0, "large p")))
    smaller = u.min(axis=1)
    assert stats.kstest(smaller, "uniform").pvalue > 1e-4
    assert Lp(1e9).mean_square_direction(4) == pytest.approx(Lp(math.inf).mean_square_direction(4))
    assert Lp(math.inf).mean_square_direction(4) == pytest.approx((1 + 3 / 3) / 4)  # one coordinate is +-1


def test_huge_and_tiny_vectors_do_not_overflow():
    assert p_norm(np.array([[3e300, 4e300], [3e-300, 4e-300]]), 2.0).tolist() == pytest.approx([5e300, 5e-300])
    assert p_norm(np.array([0.0, 0.0]), 3.0) == 0
    assert np.isnan(p_norm(np.array([np.nan, 1.0]), 2.0))


def test_equal_norms_compare_equal():
    assert Lp(2, [1.0, 2.0]) == Lp(2, np.array([1, 2]))
    assert Mahalanobis(S) == Mahalanobis(S.copy())
    assert hash(Mahalanobis(S)) == hash(Mahalanobis(S.copy()))
    assert Mahalanobis(S) != Mahalanobis(2 * S)
    assert Mahalanobis(S) != Lp(2)
    assert str(Mahalanobis(S)) == "Mahalanobis(shape of 3 x 3)"


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (lambda: Lp(0.5), "p must be >= 1, got 0.5"),
        (lambda: Lp(math.nan), "p must be finite, got nan"),
        (lambda: Lp(2, [1.0, 0.0]), "weight must be > 0, got 0"),
        (lambda: Lp(2, []), "weights must not be empty"),
        (lambda: Lp(math.inf, [1.0]), "weights need a finite p, got p = inf"),
        (lambda: Mahalanobis(np.ones((2, 3))), r"shape must be \(d, d\) or \(d,\) with d >= 1, got \(2, 3\)"),
        (lambda: Mahalanobis(np.zeros((0, 0))), r"shape must be \(d, d\) or \(d,\) with d >= 1, got \(0, 0\)"),
        (lambda: Mahalanobis(np.array([1.0, math.inf])), "shape must be finite"),
        (lambda: Mahalanobis(np.array([[1.0, 0.5], [0.0, 1.0]])), "shape must be symmetric"),
        (lambda: Mahalanobis(np.ones((2, 2))), "shape must be positive definite, its smallest eigenvalue is .*"),
        (lambda: Mahalanobis(np.array([1.0, 0.0])), "shape must be positive definite, its smallest eigenvalue is 0"),
        (lambda: Lp(2, [1.0, 2.0])(np.ones((4, 3))), r"vectors must have shape \(..., 2\), got \(4, 3\)"),
        (lambda: Lp(2)(np.ones((4, 0))), r"vectors must have shape \(..., d\), got \(4, 0\)"),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_bad_norms(make, line):
    with pytest.raises(ValueError, match=f"^{line}$"):
        make()
