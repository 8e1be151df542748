"""Information bounds against closed forms, root finding, quadrature and small games solved exactly."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, optimize, stats
from scipy.special import rel_entr

from leakbound.bounds.information import gaussian_information, kl_upper, mutual_information_discrete


@pytest.mark.parametrize(("information", "expected"), [(0.05, 0.6567815984), (0.1, 0.7197946262), (0.3, 0.8664139746)])
def test_reference_values(information, expected):
    assert kl_upper(information) == pytest.approx(expected, abs=5e-11)


@pytest.mark.parametrize("prior", [0.05, 0.5, 0.7, 0.99])
@pytest.mark.parametrize("information", [1e-24, 1e-12, 1e-4, 0.004, 0.2])
def test_root_to_many_digits(information, prior):
    q = mpmath.mpf(max(prior, 1 - prior))
    if information >= -mpmath.log(q):
        assert kl_upper(information, max(prior, 1 - prior)) == 1
        return
    with mpmath.workdps(50):

        def excess(p):
            return p * mpmath.log(p / q) + (1 - p) * mpmath.log((1 - p) / (1 - q)) - mpmath.mpf(information)

        low, high = q, mpmath.mpf(1) - mpmath.mpf(10) ** -45
        for _ in range(160):
            middle = (low + high) / 2
            low, high = (middle, high) if excess(middle) < 0 else (low, middle)
    assert kl_upper(information, max(prior, 1 - prior)) == pytest.approx(float(low), abs=2e-15, rel=0)


def test_ends():
    assert kl_upper(0.0) == 0.5
    assert kl_upper(0.0, 0.7) == 0.7
    assert kl_upper(math.log(2)) == kl_upper(math.inf) == 1
    assert 0.9999 < kl_upper(math.log(2) - 1e-6) < 1


@pytest.mark.parametrize("prior", [0.5, 0.7, 0.9, 1 - 1e-9])
@pytest.mark.parametrize("information", [5e-324, 1e-300, 1e-40, 1e-20, 1e-12, 0.01])
def test_any_information_is_rounded_up(information, prior):
    """Above the prior guess, and by 400 digits not below the bound; 1 is above anything."""
    found = kl_upper(information, prior)
    with mpmath.workdps(400):
        guess = mpmath.mpf(prior)
        p = mpmath.mpf(found)
        divergence = p * mpmath.log(p / guess) + ((1 - p) * mpmath.log((1 - p) / (1 - guess)) if p < 1 else 0)
        assert p > guess
        assert found == 1 or divergence >= information


@pytest.mark.parametrize(("classes", "prior"), [(3, 1 / 3), (44, 1 / 44), (44, 0.2), (5, 0.6)])
@pytest.mark.parametrize("information", [1e-6, 0.05, 0.463, 2.0])
def test_an_attribute_of_several_classes(classes, prior, information):
    """The prior is used as it is; by a root finder."""
    found = kl_upper(information, prior, classes=classes)
    if information >= -math.log(prior):
        assert found == 1
        return

    def excess(p):
        return rel_entr(p, prior) + rel_entr(1 - p, 1 - prior) - information

    assert found == pytest.approx(optimize.brentq(excess, prior, 1, xtol=1e-15), abs=1e-12)


def test_no_guess_of_one_of_several_classes_passes_the_bound():
    """Random channels of a uniform secret with five classes: the best guess, by enumeration."""
    rng = np.random.default_rng(3)
    for concentration in (0.05, 0.2, 1.0) * 30:
        channel = rng.dirichlet(np.full(6, concentration), size=5)  # P(output | class)
        joint = channel / 5
        information = rel_entr(joint, joint.sum(axis=0) / 5).sum()
        assert joint.max(axis=0).sum() <= kl_upper(float(max(information, 0)), classes=5) + 1e-12


def test_an_attacker_worse_than_the_prior_guess_is_no_counterexample():
    """Always saying the unlikely class learns nothing, and yet kl(accuracy || larger prior) > 0."""
    accuracy, q = 0.1, 0.9
    assert accuracy * math.log(accuracy / q) + (1 - accuracy) * math.log((1 - accuracy) / (1 - q)) > 1.7
    assert accuracy < kl_upper(0.0, 0.9) == 0.9


@pytest.mark.parametrize("p", [0.5, 0.51, 0.7, 0.99])
def test_a_noisy_bit_reaches_it(p):
    """Membership itself, released with a mistake of probability 1 - p."""
    chances, member = np.array([[p, 1 - p], [1 - p, p]]), np.array([[True], [False]])
    information = mutual_information_discrete(chances, member)
    assert information[0] == pytest.approx(math.log(2) - stats.entropy([p, 1 - p]), abs=1e-15)
    assert kl_upper(float(information[0])) == pytest.approx(p, abs=1e-8)


def naive_information(chances, member):
    """By the definition with sums over t and w."""
    total = 0.0
    for t in (True, False):
        for w in range(chances.shape[1]):
            joint = chances[member == t, w].sum() / len(member)
            product = np.mean(member == t) * chances[:, w].mean()
            total += joint * math.log(joint / product) if joint > 0 else 0.0
    return total


@st.composite
def games(draw):
    n_sets, n_outputs, n_records = draw(st.integers(1, 7)), draw(st.integers(1, 5)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    chances = rng.dirichlet(np.full(n_outputs, draw(st.sampled_from([0.05, 0.5, 3.0]))), size=n_sets)
    return chances, rng.random((n_sets, n_records)) < draw(st.sampled_from([0.2, 0.5, 0.9]))


@given(games())
def test_information_is_its_naive_twin(game):
    chances, member = game
    expected = [naive_information(chances, column) for column in member.T]
    np.testing.assert_allclose(mutual_information_discrete(chances, member), expected, atol=1e-14)


def test_no_attacker_passes_it_and_some_come_near():
    rng = np.random.default_rng(6)
    near, n_games = 0, 400
    for _ in range(n_games):
        chances = rng.dirichlet(np.full(4, rng.choice([0.1, 1.0])), size=6)
        member = rng.random(6) < rng.choice([0.3, 0.5])
        prior = member.mean()
        if prior in (0, 1):
            continue
        joint = [chances[side].sum(axis=0) / 6 for side in (member, ~member)]
        accuracy = np.maximum(*joint).sum()
        bound = kl_upper(float(mutual_information_discrete(chances, member[:, None])[0]), max(prior, 1 - prior))
        assert accuracy <= bound + 1e-12
        near += accuracy >= 0.9 * bound
    assert near >= n_games / 10


def test_records_of_all_data_sets_or_none_tell_nothing():
    member = np.array([[True, False], [True, False]])
    assert mutual_information_discrete(np.eye(2), member).tolist() == [0, 0]


def random_covariance(rng, d, rank):
    factor = rng.normal(size=(d, rank))
    return factor @ factor.T


@pytest.mark.parametrize(("d", "rank"), [(1, 1), (3, 3), (5, 2)])
def test_gaussian_information_is_a_determinant(d, rank):
    rng = np.random.default_rng(7)
    signal, noise = random_covariance(rng, d, rank), random_covariance(rng, d, d + 1)
    expected = np.linalg.slogdet(np.eye(d) + signal @ np.linalg.inv(noise))[1] / 2
    assert gaussian_information(signal, noise) == pytest.approx(expected, rel=1e-9)
    units = np.diag(10.0 ** np.arange(-8, 8, 16 / d)[:d])
    assert gaussian_information(units @ signal @ units, units @ noise @ units) == pytest.approx(expected, rel=1e-9)


def test_small_information_is_resolved():
    found = gaussian_information(np.array([[1e-30]]), np.array([[2.0]]))
    assert found == pytest.approx(0.25e-30, rel=1e-12)
    assert gaussian_information(np.zeros((2, 2)), np.eye(2)) == 0


@pytest.mark.parametrize("a", [0.2, 1.0, 3.0])
def test_two_values_carry_less_than_a_gaussian(a):
    """Release +-a by membership, with unit noise: I by quadrature below the Gaussian formula, and below ln 2."""

    def density(y):
        return (stats.norm.pdf(y - a) + stats.norm.pdf(y + a)) / 2

    entropy = integrate.quad(lambda y: -density(y) * math.log(density(y)), -a - 12, a + 12, limit=200)[0]
    exact = entropy - stats.norm.entropy()
    bound = gaussian_information(np.array([[a * a]]), np.eye(1))
    assert exact <= bound + 1e-9
    assert stats.norm.cdf(a) <= kl_upper(float(exact)) <= kl_upper(bound)
    if a == 0.2:
        assert exact == pytest.approx(bound, rel=0.01)


def test_noise_for_a_mean_of_a_thousand_points():
    """Mean of 500 of 1,000 points in R^3 with unit covariance: noise of .547 a coordinate keeps accuracy at .55."""
    variance = 0.5 / 500  # without replacement
    assert kl_upper(gaussian_information(variance * np.eye(3), 0.547**2 * np.eye(3))) == pytest.approx(0.55, abs=1e-4)


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda: kl_upper(-0.1), "information must be >= 0, got -0.1"),
        (lambda: kl_upper(math.nan), "information must be finite, got nan"),
        (lambda: kl_upper(0.1, 0.0), "prior must be > 0 and < 1, got 0"),
        (lambda: kl_upper(0.1, 1.0), "prior must be > 0 and < 1, got 1"),
        (
            lambda: kl_upper(0.463, 1 / 44),
            "prior is that of the likeliest of 2 classes, so at least 1/2; got 0.0227273: give the probability of the "
            "likeliest class, and how many classes there are",
        ),
        (lambda: kl_upper(0.1, classes=1), "classes must be >= 2, got 1"),
        (
            lambda: gaussian_information(np.eye(2), np.diag([1.0, 0.0])),
            "noise_covariance must be positive definite, got eigenvalue 0 of its correlations",
        ),
        (
            lambda: gaussian_information(np.diag([1.0, -1.0]), np.eye(2)),
            "covariance must be positive semi-definite, got variance -1 of the noise's in a direction",
        ),
        (
            lambda: gaussian_information(np.array([[1.0, 0.5], [0.4, 1.0]]), np.eye(2)),
            "covariance must be finite and symmetric",
        ),
        (
            lambda: gaussian_information(np.eye(1), np.array([[np.inf]])),
            "noise_covariance must be finite and symmetric",
        ),
        (lambda: gaussian_information(np.ones(2), np.eye(2)), "covariance must be (d, d), d >= 1, got shape (2,)"),
        (
            lambda: gaussian_information(np.eye(3), np.eye(2)),
            "covariance has shape (3, 3), noise_covariance (2, 2); both must be (d, d)",
        ),
        (
            lambda: mutual_information_discrete(np.eye(2), np.ones((3, 1), dtype=bool)),
            "chances have shape (2, 2), member has (3, 1); they must be (D, W) and (D, n), D >= 1",
        ),
        (
            lambda: mutual_information_discrete(np.array([[0.5, 0.4]]), np.ones((1, 1), dtype=bool)),
            "each row of chances must be >= 0 and sum to 1",
        ),
        (
            lambda: mutual_information_discrete(np.array([[1.5, -0.5]]), np.ones((1, 1), dtype=bool)),
            "each row of chances must be >= 0 and sum to 1",
        ),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_bad_input(call, line):
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value) == line
