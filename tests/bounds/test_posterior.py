"""The membership posterior against enumeration of a toy model, and its limits."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, special, stats

from leakbound.bounds.posterior import (
    gaussian_mean_tau,
    membership_posterior,
    posterior_bound,
)

TEMPERATURE = 0.4


def toy_law(theta, members):
    """P(theta | members) in {0, 1} with loss 1{theta != z}."""
    weights = [math.exp(-sum(z != t for z in members) / TEMPERATURE) for t in (0, 1)]
    return weights[theta] / sum(weights)


def toy_sets(prior):
    """The members among two other records that are 0 or 1 with even chances, and the probability of each set."""
    for records in product((0, 1), repeat=2):
        for inside in product((True, False), repeat=2):
            chance = math.prod(prior if each else 1 - prior for each in inside) / 4
            yield [z for z, each in zip(records, inside, strict=True) if each], chance


def toy_likelihoods(theta, z, prior):
    """ln of the likelihoods with and without the record, times the probability of the set."""
    rows = [
        (toy_law(theta, [*members, z]) * chance, toy_law(theta, members) * chance)
        for members, chance in toy_sets(prior)
    ]
    return np.log(rows).T


@pytest.mark.parametrize(("theta", "expected", "wrong"), [(0, 0.61152574, 0.67869712), (1, 0.29865259, 0.19233096)])
def test_toy_values(theta, expected, wrong):
    log_in, log_out = toy_likelihoods(theta, 0, 0.5)
    assert membership_posterior(log_in, log_out) == pytest.approx(expected, abs=5e-9)
    mean_of_sigmoids = special.expit(log_in - log_out).mean()  # prior-drawn sets, as printed
    assert mean_of_sigmoids == pytest.approx(wrong, abs=5e-9)


@pytest.mark.parametrize("prior", [0.1, 0.5, 0.8])
def test_sigmoids_averaged_over_the_posterior_of_the_sets_agree(prior):
    log_in, log_out = toy_likelihoods(1, 0, prior)
    joint = prior * np.exp(log_in) + (1 - prior) * np.exp(log_out)
    sigmoids = special.expit(log_in - log_out + special.logit(prior))
    assert membership_posterior(log_in, log_out, prior) == pytest.approx((joint * sigmoids).sum() / joint.sum())


def test_toy_posterior_is_calibrated():
    """Among all draws with one model and one record, the share of members."""
    prior, z = 0.3, 0
    for theta in (0, 1):
        member = sum(prior * p * toy_law(theta, [*rest, z]) for rest, p in toy_sets(prior))
        other = sum((1 - prior) * p * toy_law(theta, rest) for rest, p in toy_sets(prior))
        found = membership_posterior(*toy_likelihoods(theta, z, prior), prior)
        assert found == pytest.approx(member / (member + other), abs=1e-14)


@given(st.floats(-700, 700), st.floats(0.01, 0.99), st.integers(1, 5))
def test_a_common_constant_and_many_records_at_once(shift, prior, n_sets):
    rng = np.random.default_rng(n_sets)
    log_in, log_out = rng.normal(scale=3, size=(2, n_sets, 4, 2))
    found = membership_posterior(log_in + shift, log_out + shift, prior)
    a, b = np.exp(log_in).sum(axis=0), np.exp(log_out).sum(axis=0)
    np.testing.assert_allclose(found, prior * a / (prior * a + (1 - prior) * b), rtol=1e-9)


def test_impossible_models():
    impossible = np.array([-np.inf, -np.inf])
    assert membership_posterior(np.array([-np.inf, -1e4]), np.array([-np.inf, -1e4])) == 0.5
    assert membership_posterior(impossible, np.array([-1.0, -np.inf]), 0.9) == 0
    assert membership_posterior(np.array([-1.0, -np.inf]), impossible, 0.1) == 1
    assert membership_posterior(np.array([-9000.0]), np.array([-8000.0])) == 0  # no overflow


@pytest.mark.parametrize(("prior", "epsilon", "expected"), [(0.1, 1, 0.2319693167), (0.9, 4, 0.9979690621)])
def test_bound_reference_values(prior, epsilon, expected):
    assert posterior_bound(epsilon, prior=prior) == pytest.approx(expected, abs=5e-11)


@given(st.floats(0, 8), st.floats(0.01, 0.99))
def test_randomised_response_reaches_the_bound(epsilon, prior):
    """A bit told truly with probability e^eps/(1 + e^eps): membership itself as the bit."""
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    posterior = prior * truth / (prior * truth + (1 - prior) * (1 - truth))
    assert posterior_bound(epsilon, prior=prior) == pytest.approx(posterior, rel=1e-12)
    assert posterior <= prior + epsilon / 4 + 1e-12  # as printed


@pytest.mark.parametrize("prior", [0.2, 0.5])
def test_the_toy_model_keeps_its_membership_privacy(prior):
    """With delta the posterior probability of the sets under which the loss is too far below its mean."""
    for theta, epsilon in product((0, 1), (0.0, 0.2, 0.6)):
        log_in, log_out = toy_likelihoods(theta, 0, prior)
        weights = prior * np.exp(log_in) + (1 - prior) * np.exp(log_out)
        mean_loss = np.array([toy_law(1, members) for members, _ in toy_sets(prior)])
        delta = weights[mean_loss - (theta != 0) > epsilon].sum() / weights.sum()
        bound = posterior_bound(epsilon, float(delta), TEMPERATURE, prior)
        assert membership_posterior(log_in, log_out, prior) <= bound + 1e-12


def test_bound_ends():
    assert posterior_bound(0.0, prior=0.3) == pytest.approx(0.3, abs=1e-15)
    assert posterior_bound(math.inf, prior=0.3) == posterior_bound(1.0, delta=1.0) == 1
    assert posterior_bound(1.0, 0.1, 0.5, 0.5) == pytest.approx(0.1 + 0.9 / (1 + math.exp(-2)))
    assert posterior_bound(1e300, temperature=1e-300) == 1


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("n", [1, 7, 50])
def test_tau_by_quadrature(temperature, n):
    """Coordinates are independent, so that in two dimensions tau is the sum of two one-dimensional ones."""
    z, mean = np.array([[1.3, -0.4], [0.2, 5.0]]), np.array([0.5, 1.0])
    spread = math.sqrt(temperature / n)

    def soft_minimum(value, centre):
        def integrand(t):
            return math.exp(-((value - t) ** 2) / (2 * temperature)) * stats.norm.pdf(t, centre, spread)

        total = integrate.quad(integrand, centre - 12 * spread, centre + 12 * spread, epsabs=0, limit=200)[0]
        return -temperature * math.log(total)

    expected = [sum(map(soft_minimum, row, mean)) for row in z]
    np.testing.assert_allclose(gaussian_mean_tau(z, mean, temperature, n), expected, rtol=1e-8)
    assert gaussian_mean_tau(z[0], mean, temperature, n) == pytest.approx(expected[0])


@pytest.mark.slow
@pytest.mark.statistics
def test_the_constant_of_tau_decides():
    """Mean of 50 of 100 points in 2,000 dimensions: nearly all right with the constant, half of the members without.

    The score of a member is about normal with mean d/(2 n') with the constant, d/(2 n'^2) without, and variance
    d/n'; 20,000 guesses, 200 models (standard errors .0003 and .003); false alarm below 1e-3.
    """
    rng = np.random.default_rng(8)
    n, d, n_rounds = 100, 2000, 200
    member = np.arange(n) < n // 2
    right = {"with": 0, "without": 0}
    for _ in range(n_rounds):
        z = rng.normal(size=(n, d))
        loss = ((z - z[member].mean(axis=0)) ** 2).sum(axis=1) / 2
        tau = gaussian_mean_tau(z, np.zeros(d), 1.0, n // 2)
        right["with"] += ((loss < tau) == member).sum()
        right["without"] += ((loss < tau - d / 2 * math.log1p(2 / n)) == member).sum()
    deviations = math.sqrt(d / (n / 2))
    assert right["with"] / (n * n_rounds) == pytest.approx(special.ndtr(deviations / 2), abs=0.001)
    half = (special.ndtr(deviations / n) + 1) / 2
    assert right["without"] / (n * n_rounds) == pytest.approx(half, abs=0.01)


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (
            lambda: membership_posterior(np.zeros(2), np.zeros(3)),
            "log_in has shape (2,), log_out (3,); both must be (S, ...), S >= 1 reference sets",
        ),
        (
            lambda: membership_posterior(np.zeros(0), np.zeros(0)),
            "log_in has shape (0,), log_out (0,); both must be (S, ...), S >= 1 reference sets",
        ),
        (
            lambda: membership_posterior(np.array([np.nan]), np.zeros(1)),
            "log_in must be finite or -inf, got NaN or +inf",
        ),
        (
            lambda: membership_posterior(np.zeros(1), np.array([np.inf])),
            "log_out must be finite or -inf, got NaN or +inf",
        ),
        (
            lambda: membership_posterior(np.full((2, 1), -np.inf), np.full((2, 1), -np.inf)),
            "each model needs a set with likelihood > 0; log_in and log_out are -inf in all of them",
        ),
        (lambda: membership_posterior(np.zeros(1), np.zeros(1), 1.0), "prior must be > 0 and < 1, got 1"),
        (lambda: posterior_bound(-1.0), "epsilon must be >= 0, got -1"),
        (
            lambda: posterior_bound(1.0, 1.5),
            "delta is a fraction: 1.5 is out of range; did you mean 0.015? It must be >= 0 and <= 1",
        ),
        (lambda: posterior_bound(1.0, temperature=0.0), "temperature must be > 0, got 0"),
        (lambda: posterior_bound(1.0, prior=0.0), "prior must be > 0 and < 1, got 0"),
        (
            lambda: gaussian_mean_tau(np.zeros((4, 3)), np.zeros(2), 1.0, 5),
            "z has shape (4, 3), mean has (2,); they must be (..., d) and (d,)",
        ),
        (lambda: gaussian_mean_tau(np.zeros(2), np.zeros(2), 1.0, 0), "n must be >= 1, got 0"),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_bad_input(call, line):
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value) == line
