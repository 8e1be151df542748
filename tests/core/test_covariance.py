"""Covariances against dense linear algebra, estimates against numpy and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import covariance as sklearn_covariance

from leakbound.core.covariance import (
    Diagonal,
    Full,
    LowRank,
    as_covariance,
    data_rows,
    diagonal,
    full,
    ledoit_wolf,
    low_rank,
    shrinkage,
)


def some(kind: str, d: int = 6, seed: int = 0) -> tuple[Full | Diagonal | LowRank, np.ndarray]:
    """A covariance of each kind, and the same as a dense matrix."""
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(4, d))
    match kind:
        case "full":
            matrix = factors.T @ factors + np.diag(rng.uniform(0.1, 2, d))
            return Full(matrix), matrix
        case "diagonal":
            variance = rng.uniform(0.1, 2, d)
            return Diagonal(variance), np.diag(variance)
        case _:
            return LowRank(0.3, factors), factors.T @ factors + 0.3 * np.eye(d)


KINDS = pytest.mark.parametrize("kind", ["full", "diagonal", "low rank"])


class TestMatrices:
    @KINDS
    @pytest.mark.parametrize("shape", [(), (5,), (2, 3), (0,)])
    def test_quad_and_solve_of_every_vector(self, kind, shape):
        covariance, matrix = some(kind)
        v = np.random.default_rng(1).normal(size=(*shape, 6))
        inverse = np.linalg.inv(matrix)
        np.testing.assert_allclose(covariance.quad(v), np.einsum("...i,ij,...j->...", v, inverse, v), rtol=1e-10)
        np.testing.assert_allclose(covariance.solve(v), v @ inverse, rtol=1e-9, atol=1e-12)
        assert covariance.quad(v).shape == shape
        assert isinstance(covariance.quad(v), np.ndarray)

    @KINDS
    def test_independent_noise_is_added_to_every_column(self, kind):
        covariance, matrix = some(kind)
        v = np.arange(1.0, 7.0)
        expected = v @ np.linalg.solve(matrix + 0.7 * np.eye(6), v)
        assert float(covariance.plus(0.7).quad(v)) == pytest.approx(expected, rel=1e-12)
        assert float(covariance.plus(0.0).quad(v)) == pytest.approx(float(covariance.quad(v)), rel=1e-12)

    @KINDS
    @given(seed=st.integers(0, 1000), scale=st.floats(1e-3, 1e3))
    def test_quad_is_the_product_with_solve_and_a_squared_norm(self, kind, seed, scale):
        covariance, _ = some(kind, seed=seed)
        v = np.random.default_rng(seed).normal(size=(3, 6))
        quad = covariance.quad(v)
        assert (quad > 0).all()
        np.testing.assert_allclose((covariance.solve(v) * v).sum(axis=1), quad, rtol=1e-9)
        np.testing.assert_allclose(covariance.quad(scale * v), scale**2 * quad, rtol=1e-9)

    @KINDS
    @pytest.mark.statistics
    def test_samples_have_the_covariance(self, kind):
        """The whitened squared lengths of 20,000 samples are chi^2(6): their mean is within 4 standard
        deviations, sqrt(12/20000), of 6, and each entry of the sample covariance within 5 of its own; the 22
        comparisons err with probability below 1e-4."""
        covariance, matrix = some(kind)
        samples = covariance.sample(20_000, np.random.default_rng(2))
        assert abs(float(covariance.quad(samples).mean()) - 6) < 4 * np.sqrt(12 / 20_000)
        variance = np.diag(matrix)
        deviation = np.sqrt((np.outer(variance, variance) + matrix**2) / 20_000)
        assert (np.abs(samples.T @ samples / 20_000 - matrix) < 5 * deviation).all()

    def test_units_of_the_columns_do_not_matter(self):
        covariance, matrix = some("full")
        units = 10.0 ** np.array([-9, 9, 0, 6, -6, 3])
        v = np.arange(1.0, 7.0)
        scaled = Full(matrix * units * units[:, None])
        assert float(scaled.quad(v * units)) == pytest.approx(float(covariance.quad(v)), rel=1e-9)

    def test_low_rank_never_makes_a_matrix_of_all_columns(self):
        factors = np.random.default_rng(3).normal(size=(5, 300_000)).astype(np.float32)
        covariance = LowRank(0.5, factors)  # (d, d) would take 720 GB
        v = np.random.default_rng(4).normal(size=(2, 300_000)).astype(np.float32)
        gram = factors.astype(float) @ factors.T.astype(float)
        products = v.astype(float) @ factors.T.astype(float)
        inner = np.einsum("bi,ij,bj->b", products, np.linalg.inv(gram + 0.5 * np.eye(5)), products)
        expected = ((v.astype(float) ** 2).sum(axis=1) - inner) / 0.5
        np.testing.assert_allclose(covariance.quad(v), expected, rtol=1e-5)
        assert covariance.solve(v).dtype == np.float32
        np.testing.assert_allclose((covariance.solve(v).astype(float) * v).sum(axis=1), expected, rtol=1e-4)

    def test_more_factors_than_columns(self):
        factors = np.random.default_rng(5).normal(size=(9, 3))
        v = np.array([1.0, -2.0, 0.5])
        expected = v @ np.linalg.solve(factors.T @ factors + 0.1 * np.eye(3), v)
        assert float(LowRank(0.1, factors).quad(v)) == pytest.approx(expected, rel=1e-10)

    def test_arrays_stand_for_covariances(self):
        kept, _ = some("low rank")
        assert as_covariance(kept) is kept
        assert isinstance(as_covariance([1.0, 2.0]), Diagonal)
        assert isinstance(as_covariance(np.eye(2)), Full)

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: Full(np.ones((2, 3))), "matrix has shape (2, 3); a covariance is (d, d), d >= 1"),
            (lambda: Full(np.ones((0, 0))), "matrix has shape (0, 0); a covariance is (d, d), d >= 1"),
            (
                lambda: Full([[1.0, 0.5], [0.4, 1.0]]),
                "a covariance must be symmetric, and entries of this matrix differ by 0.1",
            ),
            (
                lambda: Full(np.ones((3, 3))),
                "a covariance of rank 1 in 3 columns has no inverse; use a diagonal one, or Ledoit-Wolf shrinkage",
            ),
            (
                lambda: Full([[1.0, 2.0], [2.0, 1.0]]),
                "a covariance of rank 1 in 2 columns has no inverse; use a diagonal one, or Ledoit-Wolf shrinkage",
            ),
            (lambda: Full([[1.0, np.nan], [0.0, 1.0]]), "matrix has NaN or infinite values, the first at (0, 1)"),
            (lambda: Full([["a"]]), "matrix must be an array of numbers"),
            (
                lambda: Diagonal([1.0, 0.0]),
                "column 1 is constant, so there is no inverse; leave it out",
            ),
            (
                lambda: Diagonal(np.zeros(10)),
                "10 columns (0, 1, 2, 3, 4, 5, 6, 7, ...) are constant, so there is no inverse; leave them out",
            ),
            (lambda: Diagonal([1.0, -2.0]), "variances must be > 0, got -2 in column 1"),
            (lambda: Diagonal(3.0), "variance has shape (); give one number a column, (d,), d >= 1"),
            (lambda: Diagonal([np.inf]), "variance has NaN or infinite values, the first at (0,)"),
            (
                lambda: LowRank(0.0, np.ones((2, 7))),
                "floor must be > 0, got 0 with 2 factors in 7 columns: 5 directions have no variance",
            ),
            (
                lambda: LowRank(0.0, np.ones((7, 2))),
                "floor must be > 0, got 0 with 7 factors in 2 columns: give their product to Full",
            ),
            (lambda: LowRank(-1.0, np.ones((2, 7))), "floor must be > 0, got -1"),
            (lambda: LowRank(1.0, np.ones(7)), "factors have shape (7,); give (r, d), r >= 1 and d >= 1"),
            (lambda: Diagonal([1.0, 2.0]).plus(-1.0), "variance must be >= 0, got -1"),
            (
                lambda: as_covariance(np.ones((1, 1, 1))),
                "covariance has shape (1, 1, 1); allowed: variances (d,) or a matrix (d, d)",
            ),
            (
                lambda: Diagonal([1.0, 2.0]).quad([1.0, 2.0, 3.0]),
                "vectors of shape (3,) do not fit a covariance of 2 columns: their last axis is d",
            ),
            (
                lambda: Full(np.eye(2)).solve(1.0),
                "vectors of shape () do not fit a covariance of 2 columns: their last axis is d",
            ),
        ],
    )
    @pytest.mark.usefixtures("as_users_run_it")
    def test_the_line_that_a_bad_covariance_gets(self, make, message):
        with pytest.raises(ValueError) as caught:
            make()
        assert str(caught.value) == message


class TestEstimates:
    X = np.random.default_rng(6).normal(size=(40, 5)) @ np.random.default_rng(7).normal(size=(5, 5)) + 100

    def test_the_sample_covariance(self):
        np.testing.assert_allclose(full(self.X).matrix, np.cov(self.X.T), rtol=1e-10)
        np.testing.assert_allclose(diagonal(self.X).variance, self.X.var(axis=0, ddof=1), rtol=1e-10)

    @pytest.mark.parametrize(("n", "d"), [(40, 5), (10, 30), (500, 3), (3, 4), (20, 1)])
    def test_ledoit_wolf_is_scikit_learns(self, n, d):
        rng = np.random.default_rng(n)
        X = rng.normal(size=(n, d)) * np.linspace(1, 4, d) + rng.normal(size=(n, 1))
        expected, _ = sklearn_covariance.ledoit_wolf(X)
        np.testing.assert_allclose(ledoit_wolf(X).matrix, expected, rtol=1e-9, atol=1e-12)

    def test_the_weight_of_ledoit_and_wolf_by_their_definition(self):
        """Lemma 3.3: distances of matrices in the norm |A|^2 = tr(A A^T)/d, over the matrices x x^T of the rows."""
        n, d = 12, 4
        x = np.random.default_rng(8).normal(size=(n, d))
        x -= x.mean(axis=0)
        sample = x.T @ x / n
        identity = np.trace(sample) / d * np.eye(d)
        spread = ((sample - identity) ** 2).sum() / d
        error = sum(((np.outer(row, row) - sample) ** 2).sum() / d for row in x) / n**2
        weight = shrinkage(np.trace(sample), (sample**2).sum(), ((x**2).sum(axis=1) ** 2).mean(), n, d)
        assert float(weight) == pytest.approx(min(error, spread) / spread, rel=1e-10)

    def test_low_rank_is_the_sample_covariance_on_a_floor(self):
        X = self.X[:4]
        v = np.arange(5.0)
        expected = v @ np.linalg.solve(np.cov(X.T) + 0.2 * np.eye(5), v)
        assert float(low_rank(X, 0.2).quad(v)) == pytest.approx(expected, rel=1e-10)
        assert low_rank(X.astype(np.float32), 0.2).factors.dtype == np.float32

    @pytest.mark.parametrize("estimate", [full, diagonal, ledoit_wolf])
    @pytest.mark.parametrize("scale", [1e-90, 1e140])
    def test_huge_and_tiny_values(self, estimate, scale):
        X = self.X - 100
        v = np.arange(1.0, 6.0)
        assert float(estimate(X * scale).quad(v * scale)) == pytest.approx(float(estimate(X).quad(v)), rel=1e-8)

    def test_duplicated_rows_are_rows(self):
        twice = np.repeat(self.X, 2, axis=0)
        np.testing.assert_allclose(full(twice).matrix, np.cov(twice.T), rtol=1e-10)

    def test_rows_without_any_spread_beyond_a_line_are_refused(self):
        with pytest.raises(ValueError, match=r"^a covariance of rank 1 in 2 columns has no inverse; "):
            full([[0.0, 0.0], [1.0, 2.0], [2.0, 4.0], [5.0, 10.0]])

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (
                lambda: full(np.eye(5)),
                "5 records give a covariance of rank <= 4 in 5 columns; use a diagonal one, or Ledoit-Wolf shrinkage",
            ),
            (
                lambda: full([[1.0, 2.0, 3.0], [1.0, 5.0, 3.0]]),
                "2 columns (0, 2) are constant, so there is no inverse; leave them out",
            ),
            (
                lambda: diagonal([[0.1, 2.0]] * 2 + [[0.1, 5.0]]),
                "column 0 is constant, so there is no inverse; leave it out",
            ),
            (lambda: diagonal([[1.0, 2.0]]), "records must be >= 2, got 1"),
            (lambda: ledoit_wolf([[1.0, 2.0], [2.0, 3.0]]), "records must be >= 3, got 2"),
            (lambda: diagonal(np.ones((0, 3))), "records must be >= 2, got 0"),
            (lambda: diagonal(np.ones((3, 0))), "X has shape (3, 0); a table is (records, columns), columns >= 1"),
            (lambda: data_rows([1.0, 2.0]), "X has shape (2,); a table is (records, columns), columns >= 1"),
            (lambda: data_rows([[1.0], [np.nan]]), "X has NaN or infinite values, the first at (1, 0)"),
            (lambda: data_rows([["a"], ["b"]]), "X must be an array of numbers"),
            (
                lambda: diagonal([[1e200], [2e200]]),
                "X deviates from its mean by up to 5e+199; allowed: 1e-150 to 1e150",
            ),
            (
                lambda: low_rank(np.eye(2, 9), 0.0),
                "floor must be > 0, got 0 with 2 factors in 9 columns: 7 directions have no variance",
            ),
        ],
    )
    @pytest.mark.usefixtures("as_users_run_it")
    def test_the_line_that_bad_rows_get(self, make, message):
        with pytest.raises(ValueError) as caught:
            make()
        assert str(caught.value) == message
