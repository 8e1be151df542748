"""Whether noise is new in every step, the noise of each tensor, and the batches: levels, power, and what is said."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from leakbound.auditing.claim_tests import LEVEL, OF_NOISE, ClaimTest, Evidence, StepEvidence, judge_claim
from leakbound.auditing.noise_tests import StepNoise, noise_tests
from leakbound.core import games
from leakbound.core.findings import Term
from leakbound.core.reasons import words
from leakbound.core.types import Signals
from leakbound.dpsgd.config import DpSgd
from leakbound.dpsgd.diagnostics import StepDiagnostics
from leakbound.dpsgd.observed_batches import _bernoulli_variance, batches
from leakbound.dpsgd.promise import AccountantClaim
from leakbound.dpsgd.residual_noise import FAMILIES, LEAST_LOG, log_chi_squared, residuals
from tests.marks import nightly_but

CLAIMED = DpSgd(noise_multiplier=2.0, sample_rate=0.1, steps=20)
TENSORS = ["first", "last"]
DRAWS = pytest.mark.parametrize("n_draws", nightly_but([400, 4000], 400))


def at_most(n_draws: int) -> int:
    """So many p-values below .01 there may be; more have a probability below 1e-4: 13 of 400, 65 of 4,000."""
    return int(stats.binom.ppf(1 - 1e-4, n_draws, 0.01))


def gaussian(n_steps: int = 20, k: int = 12, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n_steps, k))


def pulled_back(noise: np.ndarray) -> np.ndarray:
    """A drift that depends on the past, as a loss with weight decay: a twentieth of the sum of the steps before."""
    rows = noise.copy()
    for step in range(1, len(rows)):
        rows[step] -= 0.05 * rows[:step].sum(axis=0)
    return rows


def repeated(noise):
    noise[17] = noise[4]
    return noise


def negated(noise):
    noise[17] = -noise[4]
    return noise


def cancelled(noise):
    noise[12] = -noise[5:12].sum(axis=0)
    return noise


def quiet_step(noise):
    noise[9] = 0
    return noise


def every_epoch(noise):
    return noise[np.arange(len(noise)) % 5]


def correlated(noise):
    for step in range(1, len(noise)):
        noise[step] = 0.6 * noise[step - 1] + 0.8 * noise[step]
    return noise


class TestResiduals:
    @pytest.mark.by_day("<lambda>2-400")
    @pytest.mark.statistics
    @DRAWS
    @pytest.mark.parametrize(
        "change", [lambda noise: noise, pulled_back, lambda noise: 1.3 * noise, lambda noise: noise + 0.5]
    )
    def test_levels_of_right_noise(self, change, n_draws):
        """Of right noise, with a drift, of more noise and with a constant; a false alarm has probability 1e-4 each.

        A level of 4.8 % is found in 9 of 10 cases by 400, and one of 2.0 % by 4,000.
        """
        rng = np.random.default_rng(0)
        accused = dict.fromkeys(FAMILIES, 0)
        for _ in range(n_draws):
            found = residuals(change(rng.normal(size=(10, 12))))
            for family in FAMILIES:
                accused[family] += found[family].log_p < math.log(0.01)
        assert max(accused.values()) <= at_most(n_draws)

    @pytest.mark.parametrize(
        ("mistake", "family", "steps"),
        [
            (repeated, "repeated", (5, 18)),
            (negated, "negated", (5, 18)),
            (cancelled, "cancelled", (6, 13)),
            (quiet_step, "cancelled", (10, 10)),
        ],
    )
    def test_what_is_found_where(self, mistake, family, steps):
        found = residuals(mistake(gaussian()))[family]
        assert (found.first, found.last) == steps
        assert found.log_p < -100
        assert found.left < 1e-5

    @pytest.mark.parametrize(("mistake", "lag"), [(every_epoch, 5), (correlated, 1)])
    def test_what_comes_again_and_again_is_predicted(self, mistake, lag):
        found = residuals(mistake(gaussian(60, 50)))["predicted"]
        assert found.first % lag == 0
        assert found.log_p < math.log(OF_NOISE)
        assert found.left < (0.6 if mistake is every_epoch else 0.85)

    def test_the_numbers_are_those_of_all_pairs(self):
        """By a naive twin of each family."""
        rows, n_steps, k = gaussian(9, 6, 3), 9, 6
        found = residuals(rows)
        pairs = [(s, t) for t in range(n_steps) for s in range(t)]
        chi = stats.chi2(k)
        square, n_pairs = min(np.sum((rows[t] - rows[s]) ** 2) for s, t in pairs), len(pairs)
        assert found["repeated"].log_p == pytest.approx(min(0.0, math.log(n_pairs * chi.cdf(square))))
        square = min(np.sum((rows[t] + rows[s]) ** 2) for s, t in pairs)
        assert found["negated"].left == pytest.approx(math.sqrt(square / k))
        square = min(np.sum(rows[s : t + 1].sum(axis=0) ** 2) for t in range(n_steps) for s in range(t + 1))
        assert found["cancelled"].left == pytest.approx(math.sqrt(square / k))
        by_lag = []
        for lag in range(1, n_steps):
            product = square = total = 0.0
            for t in range(lag, n_steps):
                coefficient = product / max(square, 1.0)
                total += np.sum((rows[t] - coefficient * rows[t - lag]) ** 2)
                product, square = product + rows[t] @ rows[t - lag], square + np.sum(rows[t - lag] ** 2)
            by_lag.append(stats.chi2.cdf(total, k * (n_steps - lag)))
        assert found["predicted"].log_p == pytest.approx(min(0.0, math.log(min(by_lag) * (n_steps - 1))))
        assert found["predicted"].first == int(np.argmin(by_lag)) + 1

    def test_rounding_errors_make_residuals_larger(self):
        """Parameters so coarse that all steps are rounded to nothing accuse nobody."""
        exact = residuals(np.zeros((5, 10)), np.zeros(5))
        coarse = residuals(np.zeros((5, 10)), np.full(5, 3.0))
        assert all(found.log_p < -100 for found in exact.values())
        assert all(found.log_p == 0 for found in coarse.values())

    @pytest.mark.parametrize("shape", [(1, 5), (3, 0)])
    def test_what_cannot_be_compared_accuses_nobody(self, shape):
        assert min(found.log_p for found in residuals(gaussian(*shape)).values()) > math.log(0.01)

    def test_the_logarithm_of_the_distribution_of_chi_squared(self):
        assert log_chi_squared(7.0, 10.0) == pytest.approx(stats.chi2.logcdf(7.0, 10))
        assert log_chi_squared(0.0, 10.0) == log_chi_squared(1e-300, 1e4) == LEAST_LOG


def steps_at_canaries(rng, chosen: np.ndarray, sigma: float = 1.0, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """What is seen of canaries that are in, by step, and of as many that are not."""
    noise = scale * rng.normal(size=(len(chosen), 2 * chosen.shape[1]))
    return chosen / sigma + noise[:, : chosen.shape[1]], noise[:, chosen.shape[1] :]


class TestBatches:
    @pytest.mark.by_day("1.0-0.02-400")
    @pytest.mark.statistics
    @DRAWS
    @pytest.mark.parametrize("rate", [0.02, 0.1, 0.5, 1.0])
    @pytest.mark.parametrize("scale", [1.0, 1.5])
    def test_levels_of_right_batches(self, rate, scale, n_draws):
        """Of right batches, also with more noise than claimed; a false alarm has probability 1e-4 each.

        More noise may come from a normaliser that is too large, which makes the canaries larger, too. Where it does
        not, the test is conservative.
        """
        rng = np.random.default_rng(0)
        by_rate = by_order = 0
        for _ in range(n_draws):
            seen = steps_at_canaries(rng, rng.random((12, 20)) < rate, 1.0, scale)
            found = batches(*seen, rate, 1.0)
            by_rate += found.log_p_rate < math.log(0.01)
            by_order += found.log_p_order < math.log(0.01)
        assert max(by_rate, by_order) <= at_most(n_draws)
        if scale == 1.0:
            assert by_rate >= stats.binom.ppf(1e-4, n_draws, 0.005)  # and not much less: 0 of 400, 6 of 4,000

    @pytest.mark.by_day("order")
    @pytest.mark.parametrize("mistake", ["twice", "same", "order"])
    def test_mistakes_are_found(self, mistake):
        """200 steps at rate .05 and 250 canaries that are in, sigma = 1.1: 20 of 20."""
        rng = np.random.default_rng(0)
        found = 0
        for _ in range(20):
            if mistake == "twice":
                chosen = rng.random((200, 250)) < 0.1
            elif mistake == "same":
                chosen = np.tile(rng.random(250) < 0.05, (200, 1))
            else:
                chosen = np.arange(200)[:, None] % 20 == rng.integers(20, size=250)
            said = batches(*steps_at_canaries(rng, chosen, 1.1), 0.05, 1.1)
            found += (said.log_p_rate if mistake == "twice" else said.log_p_order) < math.log(OF_NOISE)
            if mistake == "twice":
                assert said.rate == pytest.approx(0.1, abs=0.03)
            else:
                assert said.lag == (1 if mistake == "same" else 20)
        assert found == 20

    def test_a_normaliser_that_is_too_large_accuses_nobody(self):
        """It makes noise and canaries larger alike."""
        rng = np.random.default_rng(0)
        inside, outside = steps_at_canaries(rng, rng.random((200, 250)) < 0.05)
        found = batches(2 * inside, 2 * outside, 0.05, 1.0)
        assert min(found.log_p_rate, found.log_p_order) > math.log(0.01)

    def test_fewer_records_than_claimed_accuse_nobody(self):
        rng = np.random.default_rng(0)
        seen = steps_at_canaries(rng, rng.random((100, 200)) < 0.1)
        assert batches(*seen, 0.3, 1.0).log_p_rate > -0.01

    @pytest.mark.parametrize("rate", [0.001, 0.05, 0.3, 0.5, 0.7, 0.99])
    def test_a_bernoulli_variable_is_sub_gaussian(self, rate):
        """The logarithm of its moment generating function is at most t^2 v/2, somewhere nearly."""
        t = np.linspace(-60, 60, 24_001)
        t = t[t != 0]
        log_moment = np.logaddexp(math.log1p(-rate) - rate * t, math.log(rate) + (1 - rate) * t)
        fraction = log_moment / (t**2 * _bernoulli_variance(rate) / 2)
        assert 0.99 < fraction.max() <= 1 + 1e-9

    def test_too_few_canaries_say_nothing(self):
        assert batches(gaussian(20, 1), gaussian(20, 5), 0.1, 1.0).n_canaries == 0


NO_SIGNALS = Signals(games.half_split(2, 2), None, {})


def seen_of(tensors=None, fresh=None, of_batches=None) -> StepDiagnostics:
    """Two models or more that show the same."""
    arrays = {}
    for name, numbers in (("step_tensors", tensors), ("step_fresh", fresh), ("step_batches", of_batches)):
        if numbers is not None:
            arrays[name] = np.atleast_2d(np.array(numbers, dtype=float))
    n_models = max([2, *(len(array) for array in arrays.values())])
    return StepDiagnostics.of(
        {name: np.repeat(array, n_models // len(array), axis=0) for name, array in arrays.items()}
    )


def fresh(**by_family: tuple[float, int, int, float]) -> list[float]:
    rows = [by_family.get(family, (0.0, 1, 2, 0.9)) for family in FAMILIES]
    return [50.0, *(number for row in rows for number in row)]


class TestReasons:
    @pytest.mark.parametrize(
        ("numbers", "narrow", "said"),
        [
            (
                [2000, 2000, 4000, 1990, 5, 200, 5, 190],
                True,
                "in last the steps hold noise of a multiplier of about 0.32, and 2 is claimed",
            ),
            (
                [2000, 2000, 4000, 1990, 300, 200, 5, 190],
                True,
                "in last the steps hold noise of a multiplier of about 0.32",
            ),
            ([500, 2000, 1000, 1990, 50, 200, 100, 190], False, "(2 of 2 parameter tensors have too little)"),
        ],
    )
    def test_of_a_tensor(self, numbers, narrow, said):
        (test,) = noise_tests(seen_of(tensors=numbers), NO_SIGNALS, CLAIMED, TENSORS, OF_NOISE)
        assert test.log_p < math.log(OF_NOISE)
        assert test.narrow == narrow
        assert said in words(test.reason)

    def test_the_p_value_of_a_tensor_is_corrected_for_two_tests_of_each(self):
        (test,) = noise_tests(
            seen_of(tensors=[200, 200, 400, 190, 10, 20, 30, 19]), NO_SIGNALS, CLAIMED, TENSORS, OF_NOISE
        )
        # of both models together
        expected = math.log(4 * stats.chi2.cdf(20, 40))
        assert test.log_p == pytest.approx(expected)

    @pytest.mark.parametrize(
        ("family", "numbers", "said"),
        [
            ("repeated", (-500, 3, 9, 0.0), "step 9 has the noise of step 3 again"),
            ("negated", (-500, 3, 9, 0.0), "step 9 has the noise of step 3 with the opposite sign"),
            (
                "cancelled",
                (-500, 3, 9, 0.1),
                "the noise of steps 3 to 9 cancels out: their sum has 0.2, less than the 2",
            ),
            ("cancelled", (-500, 3, 3, 0.1), "step 3 has noise of a multiplier of 0.2, and 2 is claimed"),
            (
                "predicted",
                (-500, 4, 4, 0.6),
                "can be predicted from that 4 step(s) before: a multiplier of 1.2 is left",
            ),
        ],
    )
    def test_of_noise_that_is_not_new(self, family, numbers, said):
        (test,) = noise_tests(seen_of(fresh=fresh(**{family: numbers})), NO_SIGNALS, CLAIMED, TENSORS, OF_NOISE)
        assert test.log_p == pytest.approx(-500 + math.log(2 * 4))
        assert said in words(test.reason)

    def test_of_several_families_the_one_that_leaves_least_is_shown(self):
        seen = fresh(predicted=(-600, 1, 1, 0.9), repeated=(-500, 3, 9, 0.01))
        (test,) = noise_tests(seen_of(fresh=seen), NO_SIGNALS, CLAIMED, TENSORS, OF_NOISE)
        assert test.log_p < -590
        assert test.reason.id == "noise_repeated"

    def test_of_batches(self):
        rate, order = noise_tests(seen_of(of_batches=[30, -40, 0.2, -50, 7]), NO_SIGNALS, CLAIMED, TENSORS, OF_NOISE)
        assert "a fraction of 0.2 of the batches, and a sample rate of 0.1 is claimed" in words(rate.reason)
        assert "together again 7 step(s) later" in words(order.reason)
        assert (rate.log_p, order.log_p) == (-40 + math.log(2), -50 + math.log(2))

    def test_what_was_not_seen_is_not_tested(self):
        unseen = seen_of(fresh=[0.0] * 17, of_batches=[0.0] * 5)
        assert noise_tests(unseen, NO_SIGNALS, CLAIMED, TENSORS, OF_NOISE) == []
        assert noise_tests(seen_of(), NO_SIGNALS, CLAIMED, TENSORS, OF_NOISE) == []


GAME = games.half_split(4, 2)


class TestVerdict:
    TOLD = AccountantClaim(CLAIMED, "add_remove", 1e-5)
    NONE = ClaimTest("coins", {}, {}, Term("no_attack"))

    def test_each_test_takes_its_part_of_the_level(self):
        seen = seen_of([200, 20, 200, 20], fresh(repeated=(-500, 3, 9, 0.0)), [30, 0, 0.1, 0, 1])
        tests = noise_tests(seen, NO_SIGNALS, CLAIMED, ["all"], OF_NOISE)
        assert len(tests) == 4
        made = judge_claim(self.TOLD, Evidence(GAME, self.NONE, steps=StepEvidence(StepNoise(1e4, 1e4), tests)))
        assert made.word == "refuted"
        assert made.reason is not None
        assert made.reason.id == "noise_repeated"
        assert made.confidence == pytest.approx(1 - LEVEL + 5 * OF_NOISE)

    def test_right_ones_are_not_refuted(self):
        seen = seen_of([200, 20, 200, 20], fresh(), [30, 0, 0.1, 0, 1])
        tests = noise_tests(seen, NO_SIGNALS, CLAIMED, ["all"], OF_NOISE)
        assert (
            judge_claim(self.TOLD, Evidence(GAME, self.NONE, steps=StepEvidence(StepNoise(1e4, 1e4), tests))).word
            == "cannot_be_tested"
        )

    def test_less_noise_everywhere_is_said_of_the_whole(self):
        seen = seen_of([5, 20, 5, 19])
        tests = noise_tests(seen, NO_SIGNALS, CLAIMED, ["all"], OF_NOISE)
        made = judge_claim(self.TOLD, Evidence(GAME, self.NONE, steps=StepEvidence(StepNoise(10.0, 40.0), tests)))
        assert made.reason is not None
        assert made.reason.id == "too_little_noise"
