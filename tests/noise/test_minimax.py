"""The shape for the worst record: against numerical optima and closed forms, for all pairs of records."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from leakbound.noise import best_covariance, worst_case_covariance
from tests.marks import nightly

STRUCTURES = ["full", "diagonal"]
KINDS = ["normal", "cauchy", "lognormal", "rare", "uniform", "binary"]


def data(kind, n, d, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "normal": lambda: rng.normal(size=(n, d)) @ rng.normal(size=(d, d)),
        "cauchy": lambda: rng.standard_cauchy(size=(n, d)),
        "lognormal": lambda: rng.lognormal(size=(n, d)),
        "rare": lambda: rng.normal(size=(n, d)) * (rng.uniform(size=(n, d)) < 0.1) + 1e-3 * rng.normal(size=(n, d)),
        "uniform": lambda: rng.uniform(size=(n, d)),
        "binary": lambda: np.vstack([np.eye(d), rng.uniform(size=(n - d, d)) < 0.2]).astype(float),
    }[kind]()


def moments(f):
    """E (f(x) - f(x'))(f(x) - f(x'))^T of each x, pair by pair."""
    pairs = f[:, None] - f
    return np.einsum("xya,xyb->xab", pairs, pairs) / (len(f) - 1)


def worst(S, f):
    """Largest E ||f(x) - f(x')||^2 in the norm of S."""
    return float(np.einsum("ab,xab->x", np.linalg.inv(S), moments(f)).max())


def optimum(f, weights, structure):
    """Least tr(W S) with a worst record of 1, of two coordinates, by minimisation over a Cholesky factor of S."""
    V = moments(f)

    def cost(t):
        L = np.array([[np.exp(t[0]), 0], [0 if structure == "diagonal" else t[2], np.exp(t[1])]])
        inverse = np.linalg.inv(L)
        return np.log(weights @ np.square(L).sum(axis=1) * np.einsum("ia,xab,ib->x", inverse, V, inverse).max())

    start = np.append(np.log(f.std(axis=0)), 0.0)
    options = {"xatol": 1e-9, "fatol": 1e-12, "maxiter": 20_000, "maxfev": 20_000}
    for _ in range(4):  # from its last answer, with a fresh simplex
        start = minimize(cost, start, method="Nelder-Mead", options=options).x
    return float(np.exp(cost(start)))


class TestOptimum:
    @pytest.mark.by_day("None-normal-diagonal", "None-binary-diagonal")
    @pytest.mark.parametrize("structure", STRUCTURES)
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("weights", [None, nightly(np.array([3.0, 0.2]))])
    def test_two_coordinates_against_a_numerical_search(self, kind, structure, weights):
        f = data(kind, 30, 2)
        w = 1 / f.var(axis=0) if weights is None else weights
        least = optimum(f, w, structure)
        for tolerance in (0.01, 1e-3):
            S = worst_case_covariance(f, 1.0, weights, structure, ridge=1e-9, tolerance=tolerance)
            assert least * (1 - 1e-5) <= w @ np.diagonal(S) <= least * (1 + tolerance + 1e-5)

    @pytest.mark.parametrize("structure", STRUCTURES)
    def test_repeated_extreme_records(self, structure):
        f = np.vstack([data("normal", 30, 2), np.tile([[40.0, 3.0]], (20, 1)), np.tile([[-4.0, 25.0]], (3, 1))])
        S = worst_case_covariance(f, 1.0, np.ones(2), structure, ridge=1e-9, tolerance=1e-3)
        least = optimum(f, np.ones(2), structure)
        assert least * (1 - 1e-5) <= np.trace(S) <= least * 1.0011

    def test_one_coordinate_is_the_worst_record(self):
        f = data("lognormal", 40, 1)
        S = worst_case_covariance(f, 0.5)
        np.testing.assert_allclose(S, moments(f).max() / 0.25, rtol=2e-6)

    def test_two_records_lie_on_a_line(self):
        """V = v v^T, v = (3, 4): tr(S) is ||v||^2, of a diagonal S (|v_1| + |v_2|)^2; the ridge adds a little."""
        f = np.array([[1.0, 1.0], [4.0, 5.0]])
        full = worst_case_covariance(f, 1.0, np.ones(2), ridge=1e-8)
        diagonal = worst_case_covariance(f, 1.0, np.ones(2), "diagonal", ridge=1e-8)
        np.testing.assert_allclose(full, np.outer([3, 4], [3, 4]) / 1.0, atol=0.01)
        np.testing.assert_allclose(diagonal, np.diag([21.0, 28.0]), rtol=1e-6)

    @pytest.mark.parametrize("structure", STRUCTURES)
    @pytest.mark.parametrize("d", [2, 3, 5])
    def test_symmetric_data_have_the_isotropic_shape(self, d, structure):
        """The ends of the axes: S = s I, and s the trace of any V_x."""
        f = np.vstack([np.eye(d), -np.eye(d)])
        S = worst_case_covariance(f, 1.0, np.ones(d), structure)
        np.testing.assert_allclose(S, np.trace(moments(f)[0]) * np.eye(d), rtol=1e-5, atol=1e-9)


class TestLaws:
    @settings(max_examples=60)
    @given(
        st.sampled_from(KINDS),
        st.integers(8, 60),
        st.integers(1, 6),
        st.integers(0, 10_000),
        st.sampled_from(STRUCTURES),
    )
    def test_the_limit_holds_and_the_average_shape_costs_no_less(self, kind, n, d, seed, structure):
        f = data(kind, n, d, seed)
        S = worst_case_covariance(f, 0.3, structure=structure)
        assert worst(S, f) == pytest.approx(0.09, rel=1e-4)  # the ridge is within
        assert worst(S, f) <= 0.09 * (1 + 1e-9)
        weights = 1 / f.var(axis=0)
        average = best_covariance(np.atleast_2d(np.cov(f, rowvar=False)), 1.0, weights, structure)
        average = average * worst(average, f) / 0.09
        assert weights @ np.diagonal(S) <= 1.011 * weights @ np.diagonal(average)

    @pytest.mark.parametrize("structure", STRUCTURES)
    @pytest.mark.parametrize("kind", ["normal", "cauchy"])
    def test_units_do_not_matter(self, kind, structure):
        f, units = data(kind, 50, 3), np.array([2.0**20, 1.0, 2.0**-20])
        S = worst_case_covariance(f, 1.0, structure=structure)
        rescaled = worst_case_covariance(f * units + 1.0, 1.0, structure=structure)
        np.testing.assert_allclose(rescaled / np.outer(units, units), S, rtol=1e-4, atol=1e-8 * S.max())

    def test_the_order_of_the_records_does_not_matter(self):
        f = data("lognormal", 200, 4)
        one, two = (worst_case_covariance(each, 1.0, tolerance=1e-4) for each in (f, f[::-1]))
        assert np.trace(one) == pytest.approx(np.trace(two), rel=2e-4)
        np.testing.assert_array_equal(one, worst_case_covariance(f, 1.0, tolerance=1e-4))

    def test_one_far_record_costs_its_own_direction_only(self):
        """At 1000 beside a cloud of size 1: as much noise along it as the average shape has, far less across."""
        f = np.vstack([np.eye(3), -np.eye(3)])
        far = np.vstack([np.tile(f, (100, 1)), [[1000.0, 0.0, 0.0]]])
        S = worst_case_covariance(far, 1.0, 1 / far.var(axis=0), "diagonal")
        average = best_covariance(np.cov(far, rowvar=False), 1.0, 1 / far.var(axis=0), "diagonal")
        average = average * worst(average, far)
        assert S[0, 0] < 1.2 * average[0, 0]
        assert S[1, 1] < average[1, 1] / 20

    @pytest.mark.parametrize("structure", STRUCTURES)
    def test_a_column_that_is_the_sum_of_two_others(self, structure):
        f = data("lognormal", 100, 2)
        f = np.column_stack([f, f.sum(axis=1)])
        S = worst_case_covariance(f, 1.0, structure=structure)
        assert np.linalg.eigvalsh(S / np.sqrt(np.outer(np.diagonal(S), np.diagonal(S)))).min() > 1e-7
        assert worst(S, f) == pytest.approx(1, rel=1e-3)

    def test_more_columns_than_records(self):
        f = data("normal", 6, 10)
        S = worst_case_covariance(f, 1.0)
        assert worst(S, f) <= 1 + 1e-6
        assert np.isfinite(S).all()


@pytest.mark.parametrize(
    ("features", "kwargs", "message"),
    [
        (np.zeros(3), {}, r"features must have shape \(n, d\) with n >= 2 and d >= 1, got \(3,\)"),
        (np.zeros((1, 2)), {}, r"features must have shape \(n, d\) with n >= 2 and d >= 1, got \(1, 2\)"),
        (np.zeros((3, 0)), {}, r"features must have shape \(n, d\) with n >= 2 and d >= 1, got \(3, 0\)"),
        (np.array([[1.0], [np.nan]]), {}, "features must be finite, those of record 1 are not"),
        (np.array([[1.0, 2.0], [1.5, 2.0]]), {}, "column 1 is constant: it needs no noise, leave it out"),
        (np.array([[0.0], [1e200]]), {}, r"variances must be > 0 and finite, got \[inf\]: rescale the features"),
        (np.array([[0.0], [1e-200]]), {}, r"variances must be > 0 and finite, got \[0.0\]: rescale the features"),
        (np.eye(2), {"kappa": 0.0}, "kappa must be > 0, got 0"),
        (np.eye(2), {"weights": np.ones(3)}, "weights must have 2 numbers, got 3"),
        (np.eye(2), {"weights": np.array([1.0, -1.0])}, "weight must be > 0, got -1"),
        (np.eye(2), {"structure": "isotropic"}, "unknown structure 'isotropic'.*known: full, diagonal"),
        (np.eye(2), {"ridge": 0.0}, "ridge must be > 0, got 0"),
        (np.eye(2), {"tolerance": 1e-6}, "tolerance must be >= 0.0001, got 1e-06"),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_bad_input_is_refused(features, kwargs, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        worst_case_covariance(features, **{"kappa": 1.0, **kwargs})
