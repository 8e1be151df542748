"""Baselines against closed forms and a general minimiser, and the noise that they ask of one mean."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, special, stats

from leakbound.bounds.information import gaussian_information
from leakbound.core.seeds import stream
from leakbound.core.tradeoff import EpsilonDelta, Gaussian
from leakbound.noise import (
    dp_gaussian_scale,
    dp_laplace_scale,
    eta_of_information,
    information_of_eta,
    noise_of_information,
)

PRIORS = (0.5, 0.3, 0.9, 0.01)
SIGMA = np.array([[4.0, 1.0, 0.0], [1.0, 2.0, 0.3], [0.0, 0.3, 0.1]])


def kl(p, q):
    return float(special.rel_entr([p, 1 - p], [q, 1 - q]).sum())


class TestDifferentialPrivacy:
    @pytest.mark.parametrize("eta", [1e-6, 0.05, 0.1, 0.4999])
    def test_closed_forms_at_one_half(self, eta):
        assert dp_laplace_scale(eta, 3.0) == pytest.approx(3 / (2 * math.atanh(2 * eta)), rel=1e-12)
        assert dp_gaussian_scale(eta, 3.0) == pytest.approx(3 / (2 * stats.norm.ppf(0.5 + eta)), rel=1e-8)

    @pytest.mark.parametrize("prior", PRIORS)
    @pytest.mark.parametrize("share", [0.01, 0.3, 0.9])
    def test_the_curves_of_these_mechanisms_have_this_eta(self, prior, share):
        eta = share * min(prior, 1 - prior)
        laplace, gaussian = dp_laplace_scale(eta, 0.7, prior), dp_gaussian_scale(eta, 0.7, prior=prior)
        assert EpsilonDelta(0.7 / laplace).eta(prior) == pytest.approx(eta, rel=1e-9)
        assert Gaussian(0.7 / gaussian).eta(prior) == pytest.approx(eta, rel=1e-7)
        assert Gaussian(0.7 / gaussian).eta(prior) <= eta * (1 + 1e-12)

    @pytest.mark.parametrize(("eta", "delta", "prior"), [(0.1, 1e-5, 0.5), (0.05, 0.01, 0.3), (0.4, 1e-9, 0.5)])
    def test_by_epsilon_and_delta(self, eta, delta, prior):
        """Epsilon by a root of the curve, noise by a root of the hockey stick of two normal laws."""
        epsilon = optimize.brentq(lambda e: EpsilonDelta(e, delta).eta(prior) - eta, 0.01, 20)

        def excess(scale):
            m = 2.5 / scale
            far = math.exp(epsilon) * stats.norm.cdf(-epsilon / m - m / 2)
            return stats.norm.cdf(m / 2 - epsilon / m) - far - delta

        expected = optimize.brentq(excess, 0.1, 1000, xtol=1e-12)
        assert dp_gaussian_scale(eta, 2.5, delta, prior) == pytest.approx(expected, rel=1e-6)
        assert dp_gaussian_scale(eta, 2.5, delta, prior) > dp_gaussian_scale(eta, 2.5, prior=prior)


class TestInformation:
    def test_of_one_mean(self):
        """n = 1000 points in R^3 with unit covariance, halves of 500, accuracy at most 0.55."""
        sigma = np.eye(3) / 500 * (1 - 500 / 1000)
        nats = information_of_eta(0.05)
        for structure in ("isotropic", "least_trace"):
            assert round(math.sqrt(noise_of_information(sigma, nats, structure)[0, 0]), 3) == 0.547
        # an average over 1000 records may have 1000 times the information of one
        average = math.sqrt(noise_of_information(sigma, 1000 * nats)[0, 0])
        assert round(average, 4) == 0.0061
        # 2 eta^2 <= kl(1/2 + eta || 1/2): Pinsker's inequality asks for a little more noise
        pinsker = math.sqrt(0.001 / math.expm1(2 * 2 * 1000 * 0.05**2 / 3))
        assert 0.99 * pinsker < average < pinsker

    @pytest.mark.parametrize("prior", PRIORS)
    @pytest.mark.parametrize("share", [1e-9, 1e-4, 0.0099, 0.0101, 0.5, 0.99])
    def test_eta_and_back(self, prior, share):
        larger = max(prior, 1 - prior)
        eta = share * (1 - larger)
        nats = information_of_eta(eta, prior)
        assert nats == pytest.approx(kl(larger + eta, larger), rel=1e-9, abs=1e-15)
        assert eta_of_information(nats, prior) == pytest.approx(eta, rel=1e-9)

    def test_tiny_eta_is_the_parabola(self):
        assert information_of_eta(1e-9, 0.3) == pytest.approx(1e-18 / (2 * 0.3 * 0.7), rel=1e-8)

    def test_ends(self):
        assert eta_of_information(0.0) == 0
        assert eta_of_information(math.log(2)) == 0.5
        assert eta_of_information(math.inf, 0.2) == 0.2
        assert 0.49 < eta_of_information(math.log(2) * 0.999) < 0.5

    @pytest.mark.parametrize("structure", ["isotropic", "least_trace"])
    @pytest.mark.parametrize("nats", [1e-6, 0.005, 1.0, 30.0])
    def test_the_information_is_spent_whole(self, structure, nats):
        noise = noise_of_information(SIGMA, nats, structure)
        _, log_det = np.linalg.slogdet(np.eye(3) + SIGMA @ np.linalg.inv(noise))
        assert log_det / 2 == pytest.approx(nats, rel=1e-8)
        assert gaussian_information(SIGMA, noise) == pytest.approx(nats, rel=1e-9)

    @pytest.mark.parametrize("nats", [0.005, 1.0])
    def test_no_noise_with_this_information_is_smaller(self, nats):
        """Against a general minimiser over Cholesky factors of all covariances."""
        noise = noise_of_information(SIGMA, nats)

        def covariance(z):
            root = np.zeros((3, 3))
            root[np.tril_indices(3)] = z
            root[np.diag_indices(3)] = np.exp(np.diagonal(root))
            return root @ root.T

        def information(z):
            return np.linalg.slogdet(np.eye(3) + SIGMA @ np.linalg.inv(covariance(z)))[1] / 2 - nats

        def cost(z):
            return np.trace(covariance(z)) / np.trace(noise)

        start = np.zeros(6)
        start[[0, 2, 5]] = math.log(np.trace(noise)) / 2
        rules = {"type": "eq", "fun": information}
        found = optimize.minimize(
            cost, start, method="SLSQP", constraints=rules, options={"maxiter": 500, "ftol": 1e-12}
        )
        assert abs(information(found.x)) < 1e-6
        assert found.fun == pytest.approx(1, abs=1e-4)

    @given(
        values=st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=6),
        nats=st.floats(1e-4, 20.0),
    )
    def test_shapes_in_order(self, values, nats):
        """Least noise <= the paper's and <= that of the shape of Sigma; equal eigenvalues make them the same."""
        sigma = np.diag(values)
        least = np.trace(noise_of_information(sigma, nats))
        paper = np.sqrt(values).sum() ** 2 / (2 * nats)
        assert least <= paper * (1 + 1e-9)
        assert least <= np.trace(noise_of_information(sigma, nats, "isotropic")) * (1 + 1e-9)
        same = np.eye(len(values)) * values[0]
        isotropic = noise_of_information(same, nats, "isotropic")
        np.testing.assert_allclose(noise_of_information(same, nats), isotropic, rtol=1e-8, atol=1e-14 * isotropic[0, 0])

    def test_the_paper_at_little_information(self):
        values = np.array([4.0, 1.0, 0.25])
        least = np.diagonal(noise_of_information(np.diag(values), 1e-9))
        np.testing.assert_allclose(least, np.sqrt(values) * np.sqrt(values).sum() / 2e-9, rtol=1e-6)

    def test_a_turned_statistic_gets_the_turned_noise(self):
        turn = np.linalg.qr(stream(0, "turn").standard_normal((3, 3)))[0]
        for structure in ("isotropic", "least_trace"):
            turned = noise_of_information(turn @ SIGMA @ turn.T, 0.3, structure)
            np.testing.assert_allclose(turned, turn @ noise_of_information(SIGMA, 0.3, structure) @ turn.T, atol=1e-9)

    def test_units_do_not_change_information(self):
        units = np.diag([1e8, 1.0, 1e-8])
        noise = SIGMA + np.eye(3)
        scaled = gaussian_information(units @ SIGMA @ units, units @ noise @ units)
        assert scaled == pytest.approx(gaussian_information(SIGMA, noise), rel=1e-9)

    def test_no_direction_goes_without_noise(self):
        """A column twice: Sigma is singular, the noise is not, and it keeps the information of the rest."""
        sigma = np.array([[1.0, 1.0], [1.0, 1.0]])
        for structure in ("isotropic", "least_trace"):
            noise = noise_of_information(sigma, 0.1, structure)
            assert np.linalg.eigvalsh(noise)[0] > 0
        least = noise_of_information(sigma, 0.1)
        assert gaussian_information(sigma, least) == pytest.approx(0.1, rel=1e-5)
        assert np.trace(least) == pytest.approx(2 / math.expm1(0.2), rel=1e-5)

    def test_more_information_than_a_float_of_noise(self):
        noise = noise_of_information(np.diag([1.0, 4.0]), 10**9 * information_of_eta(0.05))
        assert np.isfinite(noise).all()
        assert (np.diagonal(noise) > 0).all()

    def test_bits_of_a_release(self):
        """Two equally likely values +-1: ``log det/2`` is at least the mutual information, by quadrature."""
        x, weight = np.polynomial.hermite_e.hermegauss(200)
        weight = weight / weight.sum()
        for scale in (0.5, 1.0, 3.0):
            y = 1 + scale * x
            exact = math.log(2) - weight @ np.logaddexp(0, -2 * y / scale**2)
            bound = gaussian_information(np.eye(1), scale**2 * np.eye(1))
            assert exact <= bound
            accuracy = stats.norm.cdf(1 / scale)
            assert accuracy - 0.5 <= eta_of_information(exact) <= eta_of_information(bound)


class TestBadInput:
    @pytest.mark.parametrize(
        ("work", "message"),
        [
            (lambda: dp_laplace_scale(0.5, 1.0), "eta must be > 0 and < 0.5, the smaller prior; got 0.5"),
            (lambda: dp_gaussian_scale(0.2, 1.0, prior=0.9), "eta must be > 0 and < 0.1, the smaller prior; got 0.2"),
            (lambda: information_of_eta(0.0), "eta must be > 0 and < 0.5, the smaller prior; got 0"),
            (lambda: dp_laplace_scale(0.1, 0.0), "sensitivity must be > 0, got 0"),
            (lambda: dp_gaussian_scale(0.1, math.inf), "sensitivity must be finite, got inf"),
            (
                lambda: dp_gaussian_scale(0.1, 1.0, delta=0.2),
                "delta must be < 0.2, eta over the smaller prior, got 0.2",
            ),
            (lambda: dp_gaussian_scale(0.1, 1.0, delta=0.0), "delta must be > 0 and < 1, got 0"),
            (lambda: eta_of_information(-1.0), "nats must be >= 0, got -1"),
            (lambda: noise_of_information(np.eye(2), 0.0), "nats must be > 0, got 0"),
            (lambda: noise_of_information(np.full((2, 2), np.nan), 1.0), "a covariance must be finite"),
            (
                lambda: noise_of_information(np.zeros((2, 2)), 1.0),
                "a covariance must not be 0: a statistic that does not vary needs no noise",
            ),
            (
                lambda: noise_of_information(np.array([[1.0, 0.5], [0.0, 1.0]]), 1.0),
                "a covariance must be symmetric",
            ),
            (
                lambda: noise_of_information(np.diag([1.0, -1.0]), 1.0),
                "a covariance must be positive semidefinite, its smallest eigenvalue is -1",
            ),
            (
                lambda: noise_of_information(np.eye(2), 1.0, "full"),  # pyright: ignore[reportArgumentType]
                "unknown structure 'full'; known: isotropic, least_trace",
            ),
        ],
    )
    def test_the_line_that_a_bad_value_gets(self, work, message, as_users_run_it):
        with pytest.raises(ValueError) as caught:
            work()
        assert str(caught.value) == message

    @pytest.mark.parametrize("shape", [(2, 3), (3,), (0, 0)])
    def test_shapes(self, shape, as_users_run_it):
        with pytest.raises(ValueError, match=r"^a covariance must be \(d, d\), got "):
            noise_of_information(np.ones(shape), 1.0)
