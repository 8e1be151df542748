import math

import numpy as np
import pytest
from scipy import linalg, optimize, special

from leakbound.core.seeds import stream
from leakbound.noise import GaussianNoise, Mahalanobis, Shifts, best_covariance, eta_bound

V = np.array([[4.0, 1.0], [1.0, 2.0]])
W = np.array([3.0, 0.5])


def test_printed():
    expected = [[6.6457513111, 1], [1, 4.6457513111]]
    np.testing.assert_allclose(best_covariance(V, 1.0, ridge=0.0), expected, atol=1e-10)


@pytest.mark.parametrize("weights", [None, W])
@pytest.mark.parametrize("structure", ["full", "diagonal", "isotropic"])
def test_no_covariance_of_its_structure_costs_less(weights, structure):
    """Against a general minimiser over Cholesky factors; the constraint holds with equality."""
    w = np.ones(2) if weights is None else weights
    best = best_covariance(V, 0.7, weights, structure, ridge=0.0)
    assert np.trace(np.linalg.solve(best, V)) == pytest.approx(0.7**2)

    def covariance(z):
        root = np.array([[np.exp(z[0]), 0], [z[2], np.exp(z[1])]])
        if structure != "full":
            root[1, 0] = 0
        return root[0, 0] ** 2 * np.eye(2) if structure == "isotropic" else root @ root.T

    def cost(z):
        shape = covariance(z)
        return w @ np.diagonal(shape) * np.trace(np.linalg.solve(shape, V)) / 0.7**2  # rescaled to the constraint

    found = optimize.minimize(cost, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12})
    assert w @ np.diagonal(best) == pytest.approx(found.fun, rel=1e-8)


def test_full_shape_by_matrix_square_roots():
    root = np.diag(np.sqrt(W))
    middle = linalg.sqrtm(root @ V @ root)
    expected = np.linalg.inv(root) @ middle @ np.linalg.inv(root) * np.trace(middle) / 4
    np.testing.assert_allclose(best_covariance(V, 2.0, W, ridge=0.0), expected, rtol=1e-10)


def test_the_noise_keeps_eta():
    """E||v|| <= kappa, so any pairs with this second moment keep eta."""
    v = stream(0, "shifts").standard_t(3, size=(400, 2)) @ np.array([[3.0, 1.0], [0.0, 0.2]])
    eta = 0.1
    kappa = 2 * special.ndtri(0.5 + eta)
    shape = best_covariance(v.T @ v / 400, kappa, ridge=0.0)
    lengths = Mahalanobis(shape)(v)[None]
    bound = eta_bound(Shifts(lengths, "any", 2, Mahalanobis(shape)), GaussianNoise(1.0, shape))
    assert bound[0] <= eta


def test_a_direction_without_shifts_gets_noise():
    flat = np.diag([1.0, 0.0])
    with pytest.raises(
        ValueError, match=r"^a direction without shifts would get no noise: ridge must be > 1e-14, got 0$"
    ):
        best_covariance(flat, 1.0, ridge=0.0)
    for structure in ("full", "diagonal"):
        shape = best_covariance(flat, 1.0, structure=structure)
        assert shape[1, 1] / shape[0, 0] == pytest.approx(math.sqrt(0.5e-6), rel=1e-3)


def test_units_of_a_coordinate_do_not_matter():
    """With weights in the inverse squared units the shape only changes its units."""
    units = np.array([1.0, 1000.0])
    plain = best_covariance(V, 1.0)
    scaled = best_covariance(V * np.outer(units, units), 1.0, 1 / units**2)
    np.testing.assert_allclose(scaled, plain * np.outer(units, units))


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (lambda: best_covariance(np.ones((2, 3)), 1.0), r"second_moment must be \(d, d\), got \(2, 3\)"),
        (lambda: best_covariance(np.array([[math.nan]]), 1.0), "second_moment must be finite"),
        (lambda: best_covariance(np.zeros((2, 2)), 1.0), "second_moment is 0: no shift, no noise is needed"),
        (lambda: best_covariance(np.array([[1.0, 0.5], [0.0, 1.0]]), 1.0), "second_moment must be symmetric"),
        (
            lambda: best_covariance(np.diag([1.0, -1.0]), 1.0),
            "second_moment must be positive semidefinite, its smallest eigenvalue is -1",
        ),
        (lambda: best_covariance(V, 0.0), "kappa must be > 0, got 0"),
        (lambda: best_covariance(V, 1.0, np.ones(3)), "weights must have 2 numbers, got 3"),
        (lambda: best_covariance(V, 1.0, np.array([1.0, -1.0])), "weight must be > 0, got -1"),
        (lambda: best_covariance(V, 1.0, ridge=-1.0), "ridge must be >= 0, got -1"),
        (lambda: best_covariance(V, 1.0, structure="round"), "unknown structure 'round'.*"),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_bad_shapes(make, line):
    with pytest.raises(ValueError, match=f"^{line}$"):
        make()
