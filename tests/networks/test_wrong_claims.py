"""Claims whose rate, steps or noise are not those of the loop, and batches that are shuffled.

Digits, a network of 64-32-10, epsilon = 4 at delta = 1e-5, 500 Dirac canaries.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.datasets import load_digits
from torch import nn

from leakbound.auditing.claim_tests import OF_NOISE, OF_STEPS
from leakbound.auditing.noise_tests import StepNoise, noise_tests
from leakbound.core import games
from leakbound.core.reasons import words
from leakbound.core.types import Points, Signals
from leakbound.dpsgd.canaries import dirac
from leakbound.dpsgd.config import DpSgd
from leakbound.dpsgd.diagnostics import StepDiagnostics
from leakbound.dpsgd.network import PrivateNetwork
from leakbound.dpsgd.step_level import StepLevel
from tests.marks import nightly
from tests.networks.training_privately import WrongTraining, shuffled, split

CLAIMED = DpSgd(1.094835308491344, 1.0, 0.05, 200)  # epsilon = 4 at delta = 1e-5
SHORT = replace(CLAIMED, steps=20)
N_CANARIES = 500
WANTED = [f"step_{name}" for name in ("dot", "norm", "in", "noise", "tensors", "fresh", "batches")]
WRONG = {  # what the loop does where the claim is another one
    "rate .1": {"sample_rate": 0.1},
    "rate .075": {"sample_rate": 0.075},
    "rate .06": {"sample_rate": 0.06},
    "noise 10 % less": {"noise_multiplier": 0.9 * CLAIMED.noise_multiplier},
    "noise 3 % less": {"noise_multiplier": 0.97 * CLAIMED.noise_multiplier},
    "rate .04": {"sample_rate": 0.04},
    "noise 10 % more": {"noise_multiplier": 1.1 * CLAIMED.noise_multiplier},
}
KEPT = ("rate .04", "noise 10 % more")  # these promise more than is claimed


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 10))


@pytest.fixture(scope="module")
def digits() -> Points:
    X, y = (np.asarray(array) for array in load_digits(return_X_y=True))
    return Points(X[:1000].astype(np.float32) / 16, y[:1000], digest="digits")


def reasons(digits: Points, claimed: DpSgd, loop: WrongTraining, seed: int) -> set[str]:
    """The ids of the reasons that one training is refused for."""
    release = PrivateNetwork(network, claimed, references=2, train=loop)
    chosen = dirac(digits, N_CANARIES, seed, release=release)
    game = games.canaries(len(chosen.points), chosen.numbers, 1, seed=seed)
    watched = chosen.watched_by(release)
    signals, shown = split(game, watched.observe(chosen.points, game.member, np.array([seed]), WANTED))
    noise, steps = StepNoise.of(shown), StepLevel.of(signals, claimed)
    assert noise is not None
    assert (steps is not None) == loop.tells_batches
    tests = noise_tests(shown, signals, claimed, watched.tensor_names(), OF_NOISE)
    found = {test.reason.id for test in tests if test.log_p < math.log(OF_NOISE)}
    if noise.p_value() < OF_NOISE:
        found.add("too_little_noise")
    if steps is not None and steps.p_value() < OF_STEPS:
        found.add("larger_batches" if steps.least_rate(OF_STEPS) > claimed.sample_rate else "steps_reveal_more")
    return found


def loop(claimed: DpSgd, wrong: str, tells: bool, **words) -> WrongTraining:
    return WrongTraining(replace(claimed, **WRONG.get(wrong, {})), 1250, tells, **words)


class TestParameters:
    @pytest.mark.parametrize(
        ("wrong", "tells", "reason"),
        [
            ("rate .1", True, "larger_batches"),
            pytest.param("rate .1", False, "batches_too_large", marks=pytest.mark.slow),
            ("noise 10 % less", True, "too_little_noise"),
        ],
    )
    def test_that_promise_less_are_found(self, digits, wrong, tells, reason):
        claimed = SHORT if tells else replace(SHORT, steps=100)
        assert reason in reasons(digits, claimed, loop(claimed, wrong, tells), 0)

    @pytest.mark.parametrize("wrong", KEPT)
    def test_that_promise_more_are_not_accused(self, digits, wrong):
        assert reasons(digits, SHORT, loop(SHORT, wrong, True), 0) == set()

    @pytest.mark.nightly
    @pytest.mark.parametrize(
        ("wrong", "tells", "fewest", "most"),
        [
            ("rate .1", True, 20, 20),
            ("rate .1", False, 20, 20),
            ("rate .075", True, 20, 20),
            ("rate .06", True, 18, 20),
            ("rate .06", False, 0, 10),
            ("noise 10 % less", True, 20, 20),
            ("noise 3 % less", True, 18, 20),
            *((wrong, True, 0, 0) for wrong in KEPT),
        ],
    )
    def test_in_20_runs(self, digits, wrong, tells, fewest, most):
        found = sum(bool(reasons(digits, CLAIMED, loop(CLAIMED, wrong, tells), seed)) for seed in range(20))
        print(wrong, "told" if tells else "not told", found)
        assert fewest <= found <= most

    @pytest.mark.parametrize("steps", [19, 22])
    def test_another_number_of_steps_is_an_error(self, digits, steps):
        longer = WrongTraining(replace(SHORT, steps=steps), 1250)
        with pytest.raises(ValueError, match=f"the training made {steps} steps, and 20 are claimed"):
            reasons(digits, SHORT, longer, 0)


class TestShuffledBatches:
    def test_are_found_where_batches_are_told(self, digits):
        assert reasons(digits, SHORT, loop(SHORT, "", True, batches=shuffled), 0) == {"batches_shuffled"}

    @pytest.mark.nightly
    @pytest.mark.parametrize(("tells", "n_found"), [(True, 20), (False, 0)])
    def test_in_20_runs(self, digits, tells, n_found):
        wrong = loop(CLAIMED, "", tells, batches=shuffled)
        found = [reasons(digits, CLAIMED, wrong, seed) for seed in range(20)]
        print("shuffled", "told" if tells else "not told", sum(map(bool, found)))
        assert sum(map(bool, found)) == n_found

    @staticmethod
    def log_p(in_batch: np.ndarray, rate: float) -> float:
        n_canaries = in_batch.shape[1]
        array = np.ascontiguousarray(in_batch.T)[None].astype(float)
        game = games.Game("canaries", np.ones((1, n_canaries), dtype=bool), np.ones(n_canaries, dtype=bool), 1)
        claimed = DpSgd(1.0, 1.0, rate, len(in_batch))
        (test,) = noise_tests(StepDiagnostics(), Signals(game, None, {"step_in": array}), claimed, [], OF_NOISE)
        assert "they are shuffled" in words(test.reason)
        return test.log_p

    @pytest.mark.parametrize("n_runs", [300, nightly(4000)])
    @pytest.mark.parametrize("rate", [0.03, 0.05, 0.5])
    def test_coins_are_accused_of_it_as_seldom_as_the_level_says(self, n_runs, rate):
        """At 1 %; more than this many of 300 or 4,000 were accused with probability 1e-4, were the level not kept."""
        rng = np.random.default_rng(0)
        refused = sum(self.log_p(rng.random((120, 30)) < rate, rate) < math.log(0.01) for _ in range(n_runs))
        assert refused <= {300: 11, 4000: 65}[n_runs]

    @pytest.mark.parametrize("n_batches", [19, 20, 21])
    def test_epochs_of_about_the_claimed_length_are_found(self, n_batches):
        rng = np.random.default_rng(0)
        epochs = [rng.integers(n_batches, size=250) == np.arange(n_batches)[:, None] for _ in range(10)]
        assert self.log_p(np.concatenate(epochs)[:200], 0.05) < math.log(OF_NOISE)

    def test_why_sums_alone_do_not_show_it(self):
        """Half of 500 canaries in 200 steps at rate .05: the sums of an epoch are all that differs.

        The sum of a canary over the 20 steps of an epoch has the variance 20 + .95/sigma^2 by coins and 20 in
        shuffled batches (in units of the noise). So the sum of squares of 2,500 of them differs by .95/sigma^2 2500,
        and its deviation is sqrt(2 2500) (20 + .95/sigma^2). Simulated 400 times each.
        """
        rng, sigma, n_cells = np.random.default_rng(0), CLAIMED.noise_multiplier, 2500
        squares = []
        for by_coins in (True, False):
            counts = rng.binomial(20, 0.05, size=(400, n_cells)) if by_coins else np.ones((400, n_cells))
            sums = (counts - 1) / sigma + np.sqrt(20) * rng.normal(size=(400, n_cells))
            squares.append(np.square(sums).sum(axis=1))
        apart = (squares[0].mean() - squares[1].mean()) / squares[1].std()
        expected = 0.95 / sigma**2 * n_cells / (math.sqrt(2 * n_cells) * 20)
        assert abs(apart - expected) < 0.35  # 4.5 standard errors of the difference of two means of 400
        assert 1.0 < expected < 1.5
        # at the level of the test, this finds fewer than 1 in 400 shuffled trainings
        assert norm.sf(norm.isf(OF_NOISE) - expected) < 1 / 400
