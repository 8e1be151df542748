"""Differential privacy and membership: attained by randomised response, enumerated over all data sets."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakbound.bounds.dp import dp_from_mip, dpsgd_tradeoff, mip_from_dp, posterior_from_dp, posterior_from_tradeoff
from leakbound.core.tradeoff import EpsilonDelta, Gaussian

EPSILONS = (0.0, 0.1, 0.7, 1.0, 3.0, 20.0)
PRIORS = (0.02, 0.2, 0.4, 0.5, 0.6, 0.9)


def randomised_response(epsilon: float, delta: float) -> tuple[np.ndarray, np.ndarray]:
    """Laws of the four answers "in", "perhaps in", "perhaps out", "out", for a member and for another record.

    Kairouz, Oh & Viswanath 2015: every (epsilon, delta)-DP pair of laws is made from these two.
    """
    true = (1 - delta) / (1 + math.exp(-epsilon))
    inside = np.array([delta, true, 1 - delta - true, 0.0])
    return inside, inside[::-1]


def enumerated_eta(epsilon: float, delta: float, n: int, k: int) -> float:
    """The release answers "is record 0 in?" by randomised response; the best guess, over all k-subsets."""
    inside, outside = randomised_response(epsilon, delta)
    joint = np.zeros((2, 4))
    subsets = list(itertools.combinations(range(n), k))
    for subset in subsets:
        joint[int(0 in subset)] += (inside if 0 in subset else outside) / len(subsets)
    return joint.max(axis=0).sum() - max(k / n, 1 - k / n)


@pytest.mark.parametrize(
    ("epsilon", "delta", "prior", "eta"),
    [(1.0, 0.0, 0.5, 0.231058578630), (1.0, 0.01, 0.5, 0.233747992844), (1.0, 0.0, 0.6, 0.131058578630)],
)
def test_printed_eta(epsilon, delta, prior, eta):
    assert mip_from_dp(epsilon, delta, prior) == pytest.approx(eta, abs=1e-12)


def test_printed_inverse():
    assert dp_from_mip(0.1) == pytest.approx(0.405465108108, abs=1e-12)


@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.3])
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("n", "k"), [(2, 1), (5, 1), (5, 3), (6, 3), (9, 8)])
def test_randomised_response_attains_the_bound(epsilon, delta, n, k):
    assert mip_from_dp(epsilon, delta, k / n) == pytest.approx(enumerated_eta(epsilon, delta, n, k), abs=1e-12)


@given(st.floats(0, 8), st.floats(0, 0.5), st.floats(0.01, 0.99), st.lists(st.floats(0, 1), min_size=4, max_size=4))
def test_no_post_processing_of_it_does_better(epsilon, delta, prior, called):
    """Each answer is called "in" with some probability; the best guess from that call gains at most eta."""
    joint = np.array([prior, 1 - prior])[:, None] * np.array(randomised_response(epsilon, delta))
    released = np.stack([joint @ np.array(called), joint @ (1 - np.array(called))])
    gain = released.max(axis=1).sum() - max(prior, 1 - prior)
    assert gain <= mip_from_dp(epsilon, delta, prior) + 1e-12


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("delta", [0.0, 0.2])
@pytest.mark.parametrize("epsilon", [800.0, 1e3, 1e300, math.inf])
def test_huge_epsilon_allows_everything(epsilon, delta, prior):
    assert mip_from_dp(epsilon, delta, prior) == pytest.approx(min(prior, 1 - prior), abs=1e-12)
    assert posterior_from_dp(epsilon, prior, delta) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("prior", PRIORS)
class TestInverse:
    @pytest.mark.parametrize("share", [1e-9, 0.01, 0.4, 0.9, 0.999999])
    def test_there_and_back(self, prior, share):
        eta = share * min(prior, 1 - prior)
        assert mip_from_dp(dp_from_mip(eta, prior), prior=prior) == pytest.approx(eta, rel=1e-6, abs=1e-15)

    def test_it_is_the_largest(self, prior):
        epsilon = dp_from_mip(0.01, prior)
        assert mip_from_dp(epsilon + 1e-6, prior=prior) > 0.01 + 1e-10

    def test_digits_of_a_small_eta(self, prior):
        eta, large = mpmath.mpf(1e-13), max(mpmath.mpf(prior), 1 - mpmath.mpf(prior))
        with mpmath.workdps(40):
            expected = mpmath.log((large + eta) / (1 - large - eta))
        assert dp_from_mip(1e-13, prior) == pytest.approx(float(expected), rel=1e-12 if prior == 0.5 else 1e-14)

    def test_all_that_can_be_gained_needs_no_privacy(self, prior):
        assert dp_from_mip(min(prior, 1 - prior), prior) == math.inf


class TestPosterior:
    @pytest.mark.parametrize(("prior", "epsilon", "value"), [(0.1, 1.0, 0.2319693167), (0.9, 4.0, 0.9979690621)])
    def test_printed(self, prior, epsilon, value):
        assert posterior_from_dp(epsilon, prior) == pytest.approx(value, abs=5e-11)

    @pytest.mark.parametrize("prior", PRIORS)
    @pytest.mark.parametrize("epsilon", EPSILONS)
    def test_one_answer_of_randomised_response_shows_as_much(self, epsilon, prior):
        inside, outside = randomised_response(epsilon, 0.0)
        posterior = prior * inside[1:3] / (prior * inside[1:3] + (1 - prior) * outside[1:3])
        assert posterior_from_dp(epsilon, prior) == pytest.approx(posterior.max(), abs=1e-12)

    @pytest.mark.parametrize("prior", PRIORS)
    @pytest.mark.parametrize("epsilon", EPSILONS)
    @pytest.mark.parametrize("delta", [1e-3, 0.3])
    def test_with_delta_it_is_about_the_mean_over_releases(self, epsilon, prior, delta):
        inside, outside = randomised_response(epsilon, delta)
        posterior = prior * inside / (prior * inside + (1 - prior) * outside)
        assert posterior[0] == 1  # this answer gives a member away
        assert inside @ posterior <= posterior_from_dp(epsilon, prior, delta) + 1e-15
        assert posterior_from_dp(epsilon, prior, delta) < 1


class TestPrintedFormulasThatAreLooser:
    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
    @pytest.mark.parametrize("delta", [0.0, 0.05])
    @pytest.mark.parametrize("prior", [0.3, 0.5, 0.6, 0.8])
    def test_izzo_appendix(self, epsilon, delta, prior):
        """Accuracy <= e^eps k/n + delta (n - k)/n, and 1 is always true."""
        printed = math.exp(epsilon) * prior + delta * (1 - prior)
        exact = max(prior, 1 - prior) + mip_from_dp(epsilon, delta, prior)
        # where k < n/2 and epsilon is small it is even below the accuracy of guessing "nobody is in"
        assert exact < printed or printed < 1 - prior

    def test_izzo_appendix_below_blind_guessing(self):
        assert math.exp(0.1) * 0.3 < 0.7 <= max(0.3, 0.7) + mip_from_dp(0.1, prior=0.3)

    @pytest.mark.parametrize("epsilon", [1e-4, 0.1, 1.0, 3.0])
    def test_lowy_lemma_13(self, epsilon):
        printed, exact = (1 - math.exp(-epsilon)) / 2, mip_from_dp(epsilon)
        assert exact == pytest.approx(math.tanh(epsilon / 2) / 2, abs=1e-13)
        assert exact < printed

    def test_lowy_lemma_13_is_twice_too_large_for_a_small_epsilon(self):
        assert (1 - math.exp(-1e-3)) / 2 == pytest.approx(2 * mip_from_dp(1e-3), rel=1e-3)

    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
    @pytest.mark.parametrize("prior", PRIORS)
    def test_sablayrolles_property_1(self, epsilon, prior):
        assert posterior_from_dp(epsilon, prior) < prior + epsilon / 4


class TestDpsgd:
    def test_a_swap_game_is_the_default(self):
        curve = dpsgd_tradeoff(1.0, 0.01, 1000)
        assert curve.advantage() == pytest.approx(0.26435, abs=5e-6)
        assert curve.eta() == pytest.approx(0.26435 / 2, abs=3e-6)

    def test_add_remove_by_name(self):
        assert dpsgd_tradeoff(1.0, 0.01, 1000, "add_remove").advantage() == pytest.approx(0.1610176, abs=1e-5)

    def test_full_batches(self):
        assert dpsgd_tradeoff(4.0, 1.0, 4) == Gaussian(1.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mip_from_dp(-1.0), "epsilon must be >= 0, got -1"),
        (lambda: mip_from_dp(math.nan), "epsilon must be finite, got nan"),
        (
            lambda: mip_from_dp(1.0, 1.5),
            "delta is a fraction: 1.5 is out of range; did you mean 0.015? It must be >= 0 and <= 1",
        ),
        (lambda: mip_from_dp(1.0, 0.0, 0.0), "prior must be > 0 and < 1, got 0"),
        (lambda: mip_from_dp(1.0, 0.0, 1.0), "prior must be > 0 and < 1, got 1"),
        (lambda: dp_from_mip(-0.1), "eta must be >= 0 and <= 1, got -0.1"),
        (lambda: dp_from_mip(0.6), "eta must be <= 0.5, the smaller prior, got 0.6"),
        (lambda: dp_from_mip(0.2, 0.9), "eta must be <= 0.1, the smaller prior, got 0.2"),
        (lambda: dp_from_mip(0.1, 1.0), "prior must be > 0 and < 1, got 1"),
        (lambda: posterior_from_dp(-1.0), "epsilon must be >= 0, got -1"),
        (lambda: posterior_from_dp(1.0, 0.0), "prior must be > 0 and < 1, got 0"),
        (
            lambda: posterior_from_dp(1.0, 0.5, 2.0),
            "delta is a fraction: 2 is out of range; did you mean 0.02? It must be >= 0 and <= 1",
        ),
        (lambda: dpsgd_tradeoff(0.0, 0.1, 10), "noise_multiplier must be > 0, got 0"),
    ],
)
def test_the_line_that_a_bad_value_gets(call, message):
    with pytest.raises(ValueError) as caught:
        call()
    assert str(caught.value) == message


def test_delta_1_is_no_promise():
    assert mip_from_dp(0.0, 1.0) == 0.5
    assert EpsilonDelta(0.0, 1.0).accuracy() == 1.0


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (1.0, 0.0), (1.0, 1e-3), (4.0, 1e-5), (9.0, 0.0)])
@pytest.mark.parametrize("prior", [0.01, 0.5, 0.99])
def test_the_mean_posterior_of_randomised_response(epsilon: float, delta: float, prior: float) -> None:
    """The curve of a promise is that of randomised response: three likelihood ratios, and certainty with delta."""
    high = (1 - delta) * math.exp(epsilon) / (1 + math.exp(epsilon))
    low = (1 - delta) - high
    exact = delta
    for mass, log_ratio in ((high, epsilon), (low, -epsilon)):
        exact += mass * prior / (prior + (1 - prior) * math.exp(-log_ratio))
    curve = EpsilonDelta(epsilon, delta)
    given = posterior_from_tradeoff(curve, prior)
    assert exact - 1e-12 <= given <= exact + 2e-3
    assert given <= posterior_from_dp(epsilon, prior, delta) + 1e-12
