"""Leakage scores against their definitions, numbers of the theory, and refits without each record."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf, ncdf
from mpmath import sqrt as mp_sqrt
from scipy import integrate, stats

from leakbound.bounds.leakage import (
    leakage_advantage,
    leakage_score,
    leakage_scores,
    leakage_threshold,
    leakage_tradeoff,
    noisy_score,
    plug_in_score,
    wrong_target,
)
from leakbound.core import covariance
from leakbound.core.covariance import Diagonal, Full, LowRank
from leakbound.core.tradeoff import Gaussian

phi, quantile = stats.norm.cdf, stats.norm.ppf


class TestScore:
    def test_the_mahalanobis_distance_over_n(self):
        rng = np.random.default_rng(0)
        root = rng.normal(size=(4, 4))
        matrix, mean, z = root.T @ root, rng.normal(size=4), rng.normal(size=(7, 4))
        expected = [(row - mean) @ np.linalg.solve(matrix, row - mean) / 30 for row in z]
        np.testing.assert_allclose(leakage_score(z, mean, matrix, 30), expected, rtol=1e-10)
        np.testing.assert_allclose(leakage_score(z[2], mean, Full(matrix), 30), expected[2], rtol=1e-10)
        assert leakage_score(z, mean, matrix, 30).shape == (7,)
        assert leakage_score(z[2], mean, matrix, 30).shape == ()

    def test_every_kind_of_covariance(self):
        z, mean, factor = np.array([1.0, 2.0, -1.0]), np.zeros(3), np.array([[0.5, 0.0, 1.0]])
        dense = np.eye(3) * 2 + factor.T @ factor
        expected = z @ np.linalg.solve(dense, z) / 5
        assert float(leakage_score(z, mean, LowRank(2.0, factor), 5)) == pytest.approx(expected)
        assert float(leakage_score(z, mean, [1.0, 4.0, 0.25], 5)) == pytest.approx((1 + 1 + 4) / 5)

    def test_a_pool_without_replacement_shrinks_the_variance(self):
        z, mean = np.full(20, 2.0), np.zeros(20)
        fresh, pooled = (float(leakage_score(z, mean, np.ones(20), 100, pool)) for pool in (None, 400))
        assert pooled == pytest.approx(fresh / (1 - 100 / 400))
        # a record with an advantage of .374 among fresh others has .426 in a pool of 400
        m = (2 * quantile((1 + 0.374) / 2)) ** 2
        z = np.full(20, np.sqrt(m * 100 / 20))
        among = [leakage_tradeoff(float(leakage_score(z, mean, np.ones(20), 100, pool))) for pool in (None, 400)]
        assert [round(each.advantage(), 3) for each in among] == [0.374, 0.426]

    def test_noise_of_the_mean(self):
        rng = np.random.default_rng(1)
        z, mean, variance = rng.normal(size=(3, 8)), rng.normal(size=8), rng.uniform(0.5, 2, 8)
        gamma, n = 0.7, 50
        expected = ((z - mean) ** 2 / (variance + gamma**2)).sum(axis=1) / n
        np.testing.assert_allclose(noisy_score(z, mean, variance, n, gamma=gamma), expected, rtol=1e-12)
        dense = noisy_score(z, mean, np.diag(variance), n, gamma=gamma)
        np.testing.assert_allclose(dense, expected, rtol=1e-10)
        np.testing.assert_allclose(noisy_score(z, mean, variance, n, gamma=0.0), leakage_score(z, mean, variance, n))

    @given(st.floats(0, 5), st.floats(0, 5))
    def test_more_noise_never_leaks_more(self, one, other):
        scores = [float(noisy_score([1.0, -2.0], [0.0, 0.0], [1.0, 0.1], 10, gamma=s)) for s in sorted([one, other])]
        assert scores[1] <= scores[0]

    EXPECTED = (
        # target, gamma, score: n = 1000, d = 5000, p uniform on [.3, .7]; printed 7.75, 5.61, 3.42, 7.43, 3.74, 1.47
        ("easy", 0.0, 7.771),
        ("hard", 0.0, 3.412),
        ("medium", 0.0, 5.59),
        ("easy", 0.1, 7.451),
        ("easy", 0.5, 3.753),
        ("easy", 1.0, 1.472),
    )

    @pytest.mark.parametrize(("target", "gamma", "expected"), EXPECTED)
    def test_the_experiment_of_the_paper_by_its_expectation(self, target, gamma, expected):
        """Columns with p on a fine grid: their mean is the expectation over p, to the digits given."""
        n, d = 1000, 5000
        p = 0.3 + 0.4 * (np.arange(d) + 0.5) / d
        z = {"easy": (p <= 0.5), "hard": (p > 0.5), "medium": np.arange(d) % 2 == 0}[target].astype(float)
        variance = p * (1 - p)
        score = float(noisy_score(z, p, Diagonal(variance), n, gamma=gamma))
        assert score == pytest.approx(expected, abs=6e-4 if target != "medium" else 6e-3)
        if target != "medium":

            def column(q):
                return (((q <= 0.5) == (target == "easy")) - q) ** 2 / (q * (1 - q) + gamma**2) / 0.4

            exact = d / n * integrate.quad(column, 0.3, 0.7, points=[0.5])[0]
            assert score == pytest.approx(exact, rel=1e-5)

    @pytest.mark.statistics
    def test_the_experiment_of_the_paper_at_random(self):
        """p drawn at random: within 5 standard deviations of the sum over 5,000 columns, error below 1e-6."""
        p = np.random.default_rng(3).uniform(0.3, 0.7, 5000)
        z = (p <= 0.5).astype(float)
        ratios = (z - p) ** 2 / (p * (1 - p))
        score = float(leakage_score(z, p, p * (1 - p), 1000))
        assert abs(score - 7.7706) < 5 * np.sqrt(5000) * ratios.std() / 1000

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            (([1.0, 2.0], [0.0], [1.0], 5), "z has shape (2,) and mean (1,); allowed: (J, d) or (d,), and (d,)"),
            ((1.0, [0.0], [1.0], 5), "z has shape () and mean (1,); allowed: (J, d) or (d,), and (d,)"),
            (([np.nan], [0.0], [1.0], 5), "z and mean must be finite"),
            (([1.0], [0.0], [1.0], 0), "n must be >= 1, got 0"),
            (([1.0], [0.0], [1.0], 2.5), "n must be a whole number, got 2.5"),
            (([1.0], [0.0], [1.0], 5, 5), "pool must be > n = 5, got 5"),
            (([1.0], [0.0], [0.0], 5), "column 0 is constant, so there is no inverse; leave it out"),
            (
                ([1.0, 2.0], [0.0, 0.0], [1.0], 5),
                "vectors of shape (2,) do not fit a covariance of 1 columns: their last axis is d",
            ),
            (
                ([1.0, 2.0], [0.0, 0.0], np.ones((2, 2)), 5),
                "a covariance of rank 1 in 2 columns has no inverse; use a diagonal one, or Ledoit-Wolf shrinkage",
            ),
        ],
    )
    @pytest.mark.usefixtures("as_users_run_it")
    def test_the_line_that_a_bad_score_gets(self, given, message):
        with pytest.raises(ValueError) as caught:
            leakage_score(*given)
        assert str(caught.value) == message

    def test_noise_is_not_negative(self):
        with pytest.raises(ValueError, match=r"^gamma must be >= 0, got -1$"):
            noisy_score([1.0], [0.0], [1.0], 5, gamma=-1.0)


class TestTradeoff:
    def test_the_reference_values(self):
        curve = leakage_tradeoff(7.75)
        assert curve == Gaussian(np.sqrt(7.75))
        assert curve.advantage() == pytest.approx(0.8360597625, abs=5e-11)
        assert float(curve.tpr_at(0.01)) == pytest.approx(0.6763564755, abs=5e-11)
        assert curve.delta(1.0) == pytest.approx(0.7405127311, abs=5e-11)
        assert leakage_threshold(7.75, 0.1) == pytest.approx(-0.3073114321, abs=5e-11)

    def test_the_reference_values_in_other_arithmetic(self):
        with mp.workdps(30):
            root = mp_sqrt(mpf("7.75"))
            assert leakage_tradeoff(7.75).advantage() == pytest.approx(float(2 * ncdf(root / 2) - 1), abs=1e-13)
            delta = ncdf(-1 / root + root / 2) - mp.e * ncdf(-1 / root - root / 2)
            assert leakage_tradeoff(7.75).delta(1.0) == pytest.approx(float(delta), abs=1e-12)

    def test_sub_sampling_and_what_is_printed(self):
        curve, printed = leakage_tradeoff(7.75, rho=0.1), Gaussian(np.sqrt(0.775))
        assert curve.advantage() == pytest.approx(0.0999989, abs=5e-8)
        assert float(curve.tpr_at(1e-3)) == pytest.approx(0.1009, abs=5e-5)
        assert printed.advantage() == pytest.approx(0.3401863, abs=5e-8)
        assert float(printed.tpr_at(1e-3)) == pytest.approx(0.01356, abs=5e-6)

    @given(m=st.floats(0, 50), rho=st.floats(0.01, 1), fpr=st.floats(0, 1))
    def test_the_mixture_by_its_formula(self, m, rho, fpr):
        curve = leakage_tradeoff(m, rho)
        expected = (1 - rho) * fpr + rho * phi(quantile(fpr) + np.sqrt(m / rho))
        assert float(curve.tpr_at(fpr)) == pytest.approx(expected, abs=1e-12)

    @pytest.mark.parametrize(("m", "rho"), [(0.5, 1.0), (7.75, 0.1), (7.75, 0.5), (0.1, 0.03)])
    def test_the_ends_of_every_sub_sample(self, m, rho):
        curve = leakage_tradeoff(m, rho)
        assert curve.advantage() == pytest.approx(rho * (2 * phi(np.sqrt(m / rho) / 2) - 1), abs=1e-10)
        # delta(epsilon) by numerical integration of both hockey sticks of the two laws of the score
        grid = np.linspace(-40, 40 + m / rho, 400_001)
        out = stats.norm.pdf(grid)
        inside = (1 - rho) * out + rho * stats.norm.pdf(grid - np.sqrt(m / rho))
        for epsilon in (0.0, 0.3, 2.0):
            sticks = (np.maximum(p - np.exp(epsilon) * q, 0) for p, q in ((inside, out), (out, inside)))
            expected = max(integrate.trapezoid(stick, grid) for stick in sticks)
            assert curve.delta(epsilon) == pytest.approx(expected, abs=1e-6)

    @pytest.mark.parametrize("rho", [1.0, 0.3])
    def test_many_advantages_at_once(self, rho):
        scores = [0.0, 1e-9, 0.5, 7.75, 400.0, np.inf]
        expected = [leakage_tradeoff(m, rho).advantage() for m in scores]
        np.testing.assert_allclose(leakage_advantage(scores, rho), expected, atol=1e-9)
        assert leakage_advantage(2.0).shape == ()

    @pytest.mark.parametrize(("m", "shown"), [([1.0, -0.5], "-0.5"), ([np.nan, 1.0], "nan")])
    def test_advantages_of_no_scores(self, m, shown):
        with pytest.raises(ValueError, match=f"^leakage scores must be >= 0, got {shown}$"):
            leakage_advantage(m)

    def test_the_threshold_keeps_its_false_alarms(self):
        for m in (0.3, 7.75):
            for fpr in (1e-6, 0.1, 0.9):
                assert phi((leakage_threshold(m, fpr) + m / 2) / np.sqrt(m), loc=0) == pytest.approx(1 - fpr)

    def test_nothing_and_everything(self):
        assert leakage_tradeoff(0.0).advantage() == pytest.approx(0, abs=1e-12)
        assert leakage_tradeoff(np.inf).advantage() == 1
        assert leakage_tradeoff(np.inf, rho=0.3).advantage() == pytest.approx(0.3)

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ((-1.0,), "m must be >= 0, got -1"),
            ((np.nan,), "m must be finite, got nan"),
            ((1.0, 0.0), "rho must be > 0, got 0"),
            ((1.0, 1.5), "rho is a fraction: 1.5 is out of range; did you mean 0.015? It must be >= 0 and <= 1"),
        ],
    )
    def test_the_line_that_a_bad_curve_gets(self, given, message):
        with pytest.raises(ValueError) as caught:
            leakage_tradeoff(*given)
        assert str(caught.value) == message

    @pytest.mark.parametrize("fpr", [0.0, 1.0])
    def test_a_threshold_needs_a_rate(self, fpr):
        with pytest.raises(ValueError, match=rf"^fpr must be > 0 and < 1, got {fpr:g}$"):
            leakage_threshold(1.0, fpr)


class TestWrongTarget:
    def test_by_the_laws_of_the_score(self):
        """Theorem 4.5 in its own terms: means (m - m_diff)/2 and -m_targ/2, variance m_targ."""
        rng = np.random.default_rng(4)
        root = rng.normal(size=(5, 5))
        matrix, mean = root.T @ root + np.eye(5), rng.normal(size=5)
        for z, inserted in rng.normal(size=(40, 2, 5)):
            inverse = np.linalg.inv(matrix) / 30
            own, true, apart = ((v @ inverse @ v) for v in (z - mean, inserted - mean, z - inserted))
            low, high, spread = -own / 2, (true - apart) / 2, np.sqrt(own)
            found = wrong_target(z, inserted, mean, matrix, 30)
            assert found.threshold == pytest.approx((low + high) / 2)
            assert found.sign == (1 if high >= low else -1)
            best = 2 * phi(abs(high - low) / (2 * spread)) - 1
            assert leakage_tradeoff(found.score).advantage() == pytest.approx(best, abs=1e-10)
            accuracy = [
                found.sign * (phi((cut - low) / spread) - phi((cut - high) / spread))
                for cut in found.threshold + np.linspace(-2, 2, 101)
            ]
            assert np.argmax(accuracy) == 50

    @given(seed=st.integers(0, 10_000))
    def test_never_more_than_the_record_itself(self, seed):
        z, inserted = np.random.default_rng(seed).normal(size=(2, 4))
        variance = np.array([0.5, 1.0, 2.0, 3.0])
        score = wrong_target(z, inserted, np.zeros(4), variance, 10).score
        assert score <= float(leakage_score(inserted, np.zeros(4), variance, 10)) * (1 + 1e-12)

    def test_the_true_target_is_no_wrong_one(self):
        found = wrong_target([3.0, 1.0], [3.0, 1.0], [0.0, 0.0], [1.0, 1.0], 4)
        assert found.score == pytest.approx(2.5)
        assert (found.threshold, found.sign) == (0.0, 1)

    def test_a_target_at_the_mean_says_nothing(self):
        assert wrong_target([0.0], [5.0], [0.0], [1.0], 4) == (0.0, 0.0, 1)

    @pytest.mark.usefixtures("as_users_run_it")
    def test_one_record_at_a_time(self):
        with pytest.raises(
            ValueError, match=r"^z has shape \(1, 2\) and inserted \(2,\); give one record each, \(d,\)$"
        ):
            wrong_target([[1.0, 2.0]], [1.0, 2.0], [0.0, 0.0], [1.0, 1.0], 4)


class TestPlugIn:
    def test_the_reference_value(self):
        score = plug_in_score(3.0, n=50, n_columns=300, n_references=5)
        assert score == pytest.approx(3 / (1 + 300 / (5 * 150)))
        assert round(leakage_tradeoff(score).advantage(), 3) == 0.536

    def test_many_references_are_the_true_mean(self):
        assert plug_in_score(3.0, 50, 300, 10**12) == pytest.approx(3)
        assert plug_in_score(0.0, 50, 300, 5) == 0

    @pytest.mark.statistics
    def test_it_is_the_wrong_target_of_estimated_means(self):
        """The score of a wrong target, averaged over 400 estimated means in 3,000 columns; its relative standard
        deviation is below .1 for each, so 2 % is 4 standard errors: error below 1e-4."""
        n, d, n_references, m = 50, 3000, 5, 3.0
        rng = np.random.default_rng(5)
        z = rng.normal(size=d)
        z *= np.sqrt(m * n / (z @ z))
        references = rng.normal(size=(400, d)) / np.sqrt(n_references)
        scores = [wrong_target(z - each, z, np.zeros(d), np.ones(d), n).score for each in references]
        assert np.mean(scores) == pytest.approx(plug_in_score(m, n, d, n_references), rel=0.02)


def refitted(X, kind, n=None):
    """The score of each record with mean and covariance of the other rows, fitted anew."""
    N = len(X)
    X = (X - X.mean(axis=0)) / X.std(axis=0) if kind == "ledoit_wolf" else X
    scores = []
    for i in range(N):
        others = np.delete(X, i, axis=0)
        fitted = covariance.ESTIMATES[kind](others)
        scores.append(float(leakage_score(X[i], others.mean(axis=0), fitted, n or N)))
    return scores


class TestEveryRecord:
    @pytest.mark.parametrize("kind", ["diagonal", "full", "ledoit_wolf"])
    @pytest.mark.parametrize(("n_rows", "d", "law"), [(30, 4, "normal"), (25, 3, "cauchy"), (12, 1, "normal")])
    def test_refitted_without_each(self, kind, n_rows, d, law):
        rng = np.random.default_rng(n_rows)
        X = {"normal": rng.normal, "cauchy": rng.standard_cauchy}[law](size=(n_rows, d))
        X = X @ rng.normal(size=(d, d)) + 1000
        np.testing.assert_allclose(leakage_scores(X, kind), refitted(X, kind), rtol=1e-6)

    def test_ledoit_wolf_with_more_columns_than_records(self):
        X = np.random.default_rng(6).normal(size=(12, 40))
        np.testing.assert_allclose(leakage_scores(X, "ledoit_wolf"), refitted(X, "ledoit_wolf"), rtol=1e-7)

    @pytest.mark.parametrize("kind", ["diagonal", "full", "ledoit_wolf"])
    def test_units_and_order_do_not_matter(self, kind):
        rng = np.random.default_rng(7)
        X = rng.normal(size=(40, 4)) + rng.normal(size=(40, 1))
        moved = X * [1e-8, 1.0, 1e5, -3.0] + [0.0, 1e3, -1.0, 7.0]
        order = rng.permutation(40)
        expected = leakage_scores(X, kind)
        np.testing.assert_allclose(leakage_scores(moved, kind), expected, rtol=1e-7)
        np.testing.assert_allclose(leakage_scores(X[order], kind), expected[order], rtol=1e-9)

    def test_the_size_of_the_mean(self):
        X = np.random.default_rng(8).normal(size=(20, 2))
        np.testing.assert_allclose(leakage_scores(X, n=5), 4 * leakage_scores(X))

    @pytest.mark.parametrize("kind", ["diagonal", "full"])
    def test_the_only_record_of_its_kind_is_certain(self, kind):
        X = np.random.default_rng(9).normal(size=(30, 3))
        X[:, 1] = 0
        X[17, 1] = 1
        scores = leakage_scores(X, kind)
        assert np.flatnonzero(np.isinf(scores)).tolist() == [17]
        assert leakage_tradeoff(float(scores[17])).advantage() == 1

    def test_a_far_record_does_not_hide_itself(self):
        X = np.random.default_rng(10).normal(size=(50, 2))
        X[0] = [1e4, 0]
        with_itself = leakage_score(X, X.mean(axis=0), covariance.full(X), 50)
        scores = leakage_scores(X, "full")
        assert with_itself[0] < 1
        assert scores[0] == pytest.approx(refitted(X, "full")[0], rel=1e-5)
        assert scores[0] > 1e5

    def test_duplicated_records_are_others_of_each_other(self):
        X = np.repeat(np.random.default_rng(11).normal(size=(10, 2)), 2, axis=0)
        scores = leakage_scores(X, "full")
        np.testing.assert_allclose(scores[::2], scores[1::2], rtol=1e-9)
        np.testing.assert_allclose(scores, refitted(X, "full"), rtol=1e-7)

    def test_huge_values(self):
        X = np.random.default_rng(12).normal(size=(20, 2))
        for kind in ("diagonal", "full", "ledoit_wolf"):
            np.testing.assert_allclose(leakage_scores(X * 1e120, kind), leakage_scores(X, kind), rtol=1e-9)

    @pytest.mark.statistics
    def test_the_average_record(self):
        """The distance of a fresh normal record from N - 1 others is d N (N - 2)/((N - 1)(N - d - 2)) on average
        (Hotelling's T^2); the mean over 3,000 records has a relative standard error below 2 %, and 8 % fails
        with probability below 1e-4."""
        N, d = 3000, 4
        scores = leakage_scores(np.random.default_rng(13).normal(size=(N, d)), "full")
        assert N * scores.mean() == pytest.approx(d * N * (N - 2) / ((N - 1) * (N - d - 2)), rel=0.08)

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            (([[1.0], [2.0]],), "records must be >= 3, got 2"),
            (([[1.0], [2.0], [3.0]], "ledoit_wolf"), "records must be >= 4, got 3"),
            (
                (np.eye(5)[:, :4], "full"),
                "5 records leave a covariance of rank <= 3 in 4 columns when one is left out; a full one needs at "
                "least 6 records, else use diagonal or ledoit_wolf",
            ),
            (
                (np.repeat(np.arange(9.0)[:, None], 2, axis=1), "full"),
                "a covariance of rank 1 in 2 columns has no inverse; use a diagonal one, or Ledoit-Wolf shrinkage",
            ),
            (
                ([[1.0, 7.0], [2.0, 7.0], [3.0, 7.0]],),
                "column 1 is constant, so there is no inverse; leave it out",
            ),
            (([[1.0], [2.0], [np.inf]],), "X has NaN or infinite values, the first at (2, 0)"),
            ((np.zeros((0, 2)),), "records must be >= 3, got 0"),
            (
                ([[1.0], [2.0], [4.0]], "fulll"),
                "unknown covariance 'fulll' (did you mean 'full'?); known: diagonal, full, ledoit_wolf",
            ),
            (([[1.0], [2.0], [4.0]], "full", 0), "n must be >= 1, got 0"),
        ],
    )
    @pytest.mark.usefixtures("as_users_run_it")
    def test_the_line_that_a_bad_table_gets(self, given, message):
        with pytest.raises(ValueError) as caught:
            leakage_scores(*given)
        assert str(caught.value) == message
