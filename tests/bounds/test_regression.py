"""Least squares: closed forms against quadrature in other coordinates, densities, played games and printed tables."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from leakbound.bounds import regression
from leakbound.bounds.generalisation import Exponential, generalisation_bound_tails
from leakbound.bounds.information import kl_upper
from leakbound.bounds.regression import (
    correlation_tv,
    leverages,
    linear_regression_bayes,
    simulate_regression_game,
)

PRINTED_TV = {0.1: 0.032069110, 0.3: 0.101010429, 0.5: 0.184608463, 0.7: 0.300801897, 0.9: 0.514881908}


def equal_leverages(n, d):
    """Rows of d/2 pairs of waves on a circle of n points: all leverages are d/n."""
    angle = 2 * np.pi * np.outer(np.arange(n), np.arange(1, d // 2 + 1)) / n
    return np.hstack([np.cos(angle), np.sin(angle)])


@pytest.mark.parametrize(("correlation", "tv"), PRINTED_TV.items())
def test_reference_values_of_the_total_variation(correlation, tv):
    assert correlation_tv(correlation) == pytest.approx(tv, abs=5e-10)


def gaussian_expectation(r):
    """P1 - P0 as expectations over the coordinate along the diagonal, of which the event is an interval across."""
    r = mpmath.mpf(r)
    level = -mpmath.log(1 - r**2)

    def across(a):
        return mpmath.sqrt((1 - r) / r * (level + r * a**2 / (1 + r)))

    def integrand(z):
        member = mpmath.erf(across(mpmath.sqrt(1 + r) * z) / mpmath.sqrt(2 * (1 - r)))
        return 2 * mpmath.npdf(z) * (member - mpmath.erf(across(z) / mpmath.sqrt(2)))

    kink = mpmath.sqrt(level / r)
    return float(mpmath.quad(integrand, [0, kink / 4, kink, 2 * kink, 1, 3, 8, 20] if kink < 0.5 else [0, 1, 3, 8, 20]))


@pytest.mark.parametrize("correlation", [1e-5, 0.003, 0.05, 0.31, 0.62, 0.93, 0.999, 0.999999])
def test_total_variation_is_a_gaussian_expectation(correlation):
    with mpmath.workdps(25):
        expected = gaussian_expectation(correlation)
    assert correlation_tv(correlation) == pytest.approx(expected, rel=1e-10, abs=1e-13)


def test_total_variation_is_half_an_integral_over_the_plane():
    r = 0.6
    grid = np.arange(-9, 9, 0.025) + 0.0125
    plane = np.stack(np.meshgrid(grid, grid), axis=-1)
    densities = [stats.multivariate_normal(cov=[[1, c], [c, 1]]).pdf(plane) for c in (r, 0)]
    expected = np.abs(densities[0] - densities[1]).sum() * 0.025**2 / 2
    assert correlation_tv(r) == pytest.approx(expected, abs=2e-5)


def test_total_variation_at_the_ends():
    assert correlation_tv(0.0) == 0
    assert correlation_tv(1.0) == correlation_tv(-1.0) == 1
    assert correlation_tv(1e-9) == pytest.approx(1e-9 / math.pi, rel=1e-6)
    assert 0.999 < correlation_tv(1 - 1e-15) < 1
    r = np.linspace(-1, 1, 201).reshape(3, 67)
    found = correlation_tv(r)
    assert found.shape == (3, 67)
    np.testing.assert_array_equal(correlation_tv(-r), found)
    assert (np.diff(found.ravel()[100:]) > 0).all()


def test_blocks_do_not_matter(monkeypatch):
    r = np.linspace(0, 1, 1001)
    whole = correlation_tv(r)
    played = simulate_regression_game(equal_leverages(20, 4), n_games=1000)
    monkeypatch.setattr(regression, "_BLOCK", 1000)
    np.testing.assert_array_equal(correlation_tv(r), whole)
    assert simulate_regression_game(equal_leverages(20, 4), n_games=1000) == played


def test_leverages_are_the_hat_matrix():
    X = np.random.default_rng(0).normal(size=(40, 6))
    np.testing.assert_allclose(leverages(X), np.diag(X @ np.linalg.pinv(X)), atol=1e-13)
    assert leverages(X).sum() == pytest.approx(6)


@given(st.integers(0, 2**32 - 1))
def test_leverages_have_no_units_and_no_basis(seed):
    rng = np.random.default_rng(seed)
    X, basis = rng.standard_cauchy(size=(12, 3)), rng.normal(size=(3, 3)) + 3 * np.eye(3)
    X[5] = X[6]  # duplicates are fine
    found = leverages(X)
    np.testing.assert_allclose(leverages(X * np.array([1e-200, 1.0, 1e200])), found, atol=1e-9)
    np.testing.assert_allclose(leverages(X @ basis), found, atol=1e-6)


def test_leverages_of_whole_numbers_with_an_intercept():
    x = np.array([0, 1, 2, 7])
    expected = 1 / 4 + (x - 2.5) ** 2 / ((x - 2.5) ** 2).sum()
    np.testing.assert_allclose(leverages(np.column_stack([np.ones(4, dtype=int), x])), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("n", "accuracy", "information", "upper"),
    [
        (30, 0.701351988, 0.274653072, 0.852416679),
        (50, 0.627956725, 0.127706406, 0.747153516),
        (100, 0.580196943, 0.055785888, 0.665439640),
        (500, 0.532688822, 0.010205499, 0.571311758),
    ],
)
def test_equal_leverages_to_all_digits(n, accuracy, information, upper):
    found = linear_regression_bayes(equal_leverages(n, 20))
    np.testing.assert_allclose(found.leverage, 20 / n, rtol=1e-12)
    assert found.accuracy == pytest.approx(accuracy, abs=1e-9)
    assert found.information == pytest.approx(information, abs=1e-9)
    assert found.upper == pytest.approx(upper, abs=1e-9)
    assert found.gap == pytest.approx(40 / n)
    assert found.tail.proxy == pytest.approx(1 + 20 / n)
    assert found.tail.non_negative
    assert found.lower < found.accuracy < found.upper


@pytest.mark.parametrize(
    ("n", "accuracy", "upper", "lower"),
    [
        (30, 0.70407, 0.858, 0.5124),
        (50, 0.62867, 0.7506, 0.50766),
        (100, 0.57979, 0.6664, 0.50436),
        (200, 0.55313, 0.6145, None),
        (500, 0.53231, 0.5714, None),
    ],
)
def test_a_published_design_is_one_of_many(n, accuracy, upper, lower):
    """Gaussian features in 20 dimensions: the known values of one draw lie among those of other draws."""
    rng = np.random.default_rng(9)
    found = [linear_regression_bayes(rng.normal(size=(n, 20))) for _ in range(80 if n < 200 else 40)]
    published = [generalisation_bound_tails(each.gap, each.tail, method="published") for each in found]
    columns = [[each.accuracy for each in found], [each.upper for each in found], published]
    for known, values in zip((accuracy, upper, lower), columns, strict=True):
        if known is not None:
            assert abs(known - np.mean(values)) <= 3 * np.std(values) + 5e-5 * (1 + 9 * (known == 0.858))
    assert all(each.lower > low for each, low in zip(found, published, strict=True))


def test_the_printed_tail_is_too_thin():
    """The residual of a fresh response at leverage h has variance 1 + h; the tail of variance 1 is passed."""
    h = 2 / 3

    def beyond(r):  # squared residual of a member or of a fresh response, with even chances
        return stats.norm.sf(math.sqrt(r / (1 + h))) + stats.norm.sf(math.sqrt(r / (1 - h)))

    assert all(beyond(r) <= Exponential(1 + h).probability(r) for r in (0.1, 1.0, 12.0, 60.0))
    assert beyond(60.0) > 1000 * Exponential(1.0).probability(60.0)


def test_the_lower_bound_is_below_an_attack_on_the_loss_alone():
    """Total variation of the squared residuals N(0, 1 + h)^2 and N(0, 1 - h)^2, record by record."""
    found = linear_regression_bayes(equal_leverages(40, 10))
    h = 0.25
    cross = math.sqrt(math.log((1 + h) / (1 - h)) * (1 - h**2) / h)  # where the densities meet
    tv = 2 * (stats.norm.cdf(cross / math.sqrt(1 - h)) - stats.norm.cdf(cross / math.sqrt(1 + h)))
    assert found.lower <= (1 + tv) / 2 <= found.accuracy


def test_mean_squared_errors_have_the_gap():
    """1,000 fits: the error at fresh responses minus that at the own ones, within five standard errors."""
    rng = np.random.default_rng(10)
    X, noise_std = rng.normal(size=(40, 5)), 3.0
    own, fresh = noise_std * rng.normal(size=(2, 1000, 40))
    fitted = own @ (X @ np.linalg.pinv(X))
    gaps = ((fitted - fresh) ** 2 - (fitted - own) ** 2).mean(axis=1)
    found = linear_regression_bayes(X, noise_std)
    assert abs(gaps.mean() - found.gap) < 5 * stats.sem(gaps)


def test_noise_sets_the_unit_alone():
    X = np.random.default_rng(11).normal(size=(30, 4))
    one, loud = linear_regression_bayes(X), linear_regression_bayes(X, 50.0)
    assert (loud.accuracy, loud.information, loud.upper) == (one.accuracy, one.information, one.upper)
    assert loud.lower == pytest.approx(one.lower, rel=1e-9)
    assert (loud.gap, loud.tail.proxy) == pytest.approx((2500 * one.gap, 2500 * one.tail.proxy))


def test_a_record_without_features_is_safe():
    X = np.vstack([np.random.default_rng(12).normal(size=(10, 2)), np.zeros((1, 2))])
    found = linear_regression_bayes(X)
    assert found.tv[-1] == found.leverage[-1] == 0
    assert (found.tv[:-1] > 0).all()
    assert found.accuracy == pytest.approx(0.5 + found.tv.mean() / 2)
    assert found.upper == kl_upper(found.information)


def test_information_is_that_of_the_gaussian_pair():
    """Record by record: I(response; estimate) of two normals with correlation sqrt(h), by quadrature."""
    h = 0.3
    joint, apart = stats.multivariate_normal(cov=[[1, h**0.5], [h**0.5, 1]]), stats.multivariate_normal(cov=np.eye(2))
    grid = np.arange(-8, 8, 0.05) + 0.025
    plane = np.stack(np.meshgrid(grid, grid), axis=-1)
    pair = (joint.pdf(plane) * (joint.logpdf(plane) - apart.logpdf(plane))).sum() * 0.05**2
    assert linear_regression_bayes(equal_leverages(20, 6)).information == pytest.approx(pair / 2, abs=1e-8)


def naive_games(X, noise_std, n_games, rng):
    """Games with beta, one fit each; the attacker compares densities of the coefficients (eq. 31 and 32)."""
    n, d = X.shape
    inverse, beta, won = np.linalg.inv(X.T @ X), rng.normal(size=d), 0
    for _ in range(n_games):
        member, j = rng.random() < 0.5, rng.integers(n)
        y = X @ beta + noise_std * rng.normal(size=n)
        s = y[j] if member else X[j] @ beta + noise_std * rng.normal()
        theta = inverse @ X.T @ y
        centre = beta + inverse @ X[j] * (s - X[j] @ beta)
        spread = noise_std**2 * inverse @ (np.eye(d) - np.outer(X[j], X[j]) @ inverse)
        inside = stats.multivariate_normal(centre, (spread + spread.T) / 2).logpdf(theta)
        won += (inside > stats.multivariate_normal(beta, noise_std**2 * inverse).logpdf(theta)) == member
    return won


@pytest.mark.slow
@pytest.mark.statistics
def test_games_with_coefficients_agree():
    """1,500 games with full densities within four standard errors of the closed form; false alarm below 1e-4."""
    X = np.random.default_rng(13).normal(size=(8, 3))
    accuracy = linear_regression_bayes(X).accuracy
    won = naive_games(X, 0.7, 1500, np.random.default_rng(14))
    assert abs(won / 1500 - accuracy) < 4 * math.sqrt(accuracy * (1 - accuracy) / 1500)


@pytest.mark.statistics
@pytest.mark.parametrize(("n", "d"), [(21, 20), (30, 20), (100, 20), (6, 1)])
def test_played_games_cover_the_closed_form(n, d):
    """40,000 games, limits at 1 - 1e-5: a false alarm in one of 100,000 seeds."""
    X = np.random.default_rng(15).normal(size=(n, d))
    played = simulate_regression_game(X, n_games=40_000, seed=3, confidence=1 - 1e-5)
    assert played.low <= linear_regression_bayes(X).accuracy <= played.high
    assert played.high - played.low < 0.025


def test_played_games_are_those_of_their_seed():
    X = np.random.default_rng(16).normal(size=(50, 4))
    one = simulate_regression_game(X, n_games=500, seed=1)
    assert simulate_regression_game(X, n_games=500, seed=1) == one
    assert simulate_regression_game(X, 1e-150, n_games=500, seed=1) == one  # noise only sets the unit
    assert simulate_regression_game(X, n_games=500, seed=2) != one
    assert (one.value * 500) % 1 == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("X", "line"),
    [
        (np.ones((3, 3)), "least squares needs more records than columns, got 3 records of 3 columns"),
        (np.zeros((0, 2)), "least squares needs more records than columns, got 0 records of 2 columns"),
        (np.ones(4), "X must be (n, d), d >= 1, got shape (4,)"),
        (np.ones((4, 0)), "X must be (n, d), d >= 1, got shape (4, 0)"),
        (np.full((4, 1), np.nan), "X has NaN or infinite values"),
        (np.full((4, 1), np.inf), "X has NaN or infinite values"),
        (np.ones((5, 2)), "the 2 columns of X are linearly dependent, of rank 1; leave out 1"),
        (np.zeros((5, 2)), "the 2 columns of X are linearly dependent, of rank 0; leave out 2"),
        (
            np.vstack([np.eye(2), np.array([[0, 1], [0, 2]])]),
            "each leverage must be below 1, got 1 at 1 records (0): the fit meets them",
        ),
        (
            np.vstack([np.eye(7), np.eye(7)[6:]]),
            "each leverage must be below 1, got 1 at 6 records (0, 1, 2, 3, 4 ...): the fit meets them",
        ),
    ],
)
@pytest.mark.parametrize("function", [leverages, linear_regression_bayes, simulate_regression_game])
@pytest.mark.usefixtures("as_users_run_it")
def test_bad_designs(function, X, line):
    with pytest.raises(ValueError) as error:
        function(X)
    assert str(error.value) == line


def test_bad_numbers():
    X = equal_leverages(10, 2)
    for call, line in (
        (lambda: linear_regression_bayes(X, 0.0), "noise_std must be > 0, got 0"),
        (lambda: linear_regression_bayes(X, 1e-200), "noise_std squared must be > 0, got 0"),
        (lambda: linear_regression_bayes(X, 1e200), "noise_std squared must be finite, got inf"),
        (lambda: simulate_regression_game(X, n_games=0), "n_games must be >= 1, got 0"),
        (lambda: simulate_regression_game(X, confidence=1.0), "confidence must be > 0 and < 1, got 1"),
        (lambda: correlation_tv(1.5), "correlation must be >= -1 and <= 1, got 1.5 to 1.5"),
        (lambda: correlation_tv(np.array([0.5, np.nan])), "correlation must be >= -1 and <= 1, got nan to nan"),
    ):
        with pytest.raises(ValueError) as error:
            call()
        assert str(error.value) == line


def test_kepler_substitution():
    """The two integrals over the angle from the diagonal are the one that is evaluated."""
    r = 0.45
    level = -math.log(1 - r**2) / (2 * r)
    member = integrate.quad(lambda v: math.exp(-level * (1 - r**2) / (r + math.cos(v))), 0, math.acos(-r) - 1e-12)[0]
    other = integrate.quad(lambda u: math.exp(-level / math.cos(u)), 0, math.pi / 2 - 1e-12)[0]
    assert correlation_tv(r) == pytest.approx((member - other) / math.pi, abs=1e-9)
