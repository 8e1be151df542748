"""Pairs of canaries and steps as observations of a Gaussian mechanism: counts, limits, and how often they are wrong."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.stats import norm

from leakbound.core import games
from leakbound.core.types import Signals
from leakbound.dpsgd.accountant import dpsgd as accountant
from leakbound.dpsgd.config import DpSgd
from leakbound.dpsgd.step_level import OF_RATE, SIGNALS, THRESHOLDS, StepLevel
from tests.levels import allowed

CLAIMED = DpSgd(noise_multiplier=1.25, sample_rate=0.1, steps=60)


def played(dpsgd: DpSgd, seed: int, *, n: int = 40, models: int = 1, moved: float = 1.0, noise: float = 1.0) -> Signals:
    """Steps of Dirac canaries: v is N(moved/sigma, noise^2) in a batch and N(0, noise^2) outside."""
    rng = np.random.default_rng(seed)
    game = games.canaries(n + 3, np.arange(2, n + 2), models, seed=seed)
    coins = rng.random((*game.member.shape, dpsgd.steps)) < dpsgd.sample_rate
    in_batch = coins & game.member[..., None]
    v = moved / dpsgd.noise_multiplier * in_batch + noise * rng.normal(size=in_batch.shape)
    length = 1 / dpsgd.noise_multiplier
    arrays = {"step_dot": v * length, "step_norm": np.full(v.shape, length**2), "step_in": in_batch.astype(float)}
    return Signals(game, None, arrays)


def counted(signals: Signals, dpsgd: DpSgd) -> StepLevel:
    made = StepLevel.of(signals, dpsgd)
    assert made is not None
    return made


class TestCounts:
    @pytest.mark.parametrize("models", [1, 3])
    def test_they_are_those_of_a_loop_over_pairs(self, models):
        signals = played(CLAIMED, 1, models=models)
        n_in, n_out, n_pairs, above_in, above_out = 0, 0, 0, [0, 0, 0], [0, 0, 0]
        for model in range(models):
            for point in range(2, 42):
                if not signals.game.member[model, point]:
                    continue
                for step in range(CLAIMED.steps):
                    dot, length, inside = (signals.arrays[name][model, point, step] for name in SIGNALS)
                    n_pairs += 1
                    n_in, n_out = n_in + int(inside), n_out + int(not inside)
                    for place, threshold in enumerate(THRESHOLDS):
                        if dot / math.sqrt(length) > threshold / 1.25:
                            (above_in if inside else above_out)[place] += 1
        expected = StepLevel(CLAIMED, n_in, n_out, n_pairs, tuple(above_in), tuple(above_out))
        assert counted(signals, CLAIMED) == expected

    def test_records_that_are_no_canaries_do_not_count(self):
        signals = played(CLAIMED, 2)
        changed = {name: array.copy() for name, array in signals.arrays.items()}
        changed["step_dot"][:, [0, 1, 42]] = 99.0
        assert counted(replace(signals, arrays=changed), CLAIMED) == counted(signals, CLAIMED)

    def test_in_every_batch_the_canaries_outside_are_those_that_are_not_in(self):
        whole = replace(CLAIMED, sample_rate=1.0)
        signals = played(whole, 3)
        made, n_members = counted(signals, whole), int(signals.game.target_member.sum())
        assert (made.n_in, made.n_out, made.n_pairs) == (60 * n_members, 60 * (40 - n_members), 60 * n_members)
        assert 0 < made.least_size(0.05) < 0.8

    def test_without_batches_nothing_is_counted(self):
        signals = played(CLAIMED, 4)
        untold = {name: array for name, array in signals.arrays.items() if name != "step_in"}
        assert StepLevel.of(replace(signals, arrays=untold), CLAIMED) is None
        assert StepLevel.of(signals, replace(CLAIMED, batches="fixed")) is None

    def test_a_canary_without_a_gradient_is_never_above(self):
        signals = played(CLAIMED, 5)
        nothing = {**signals.arrays, "step_dot": np.zeros((1, 43, 60)), "step_norm": np.zeros((1, 43, 60))}
        made = counted(replace(signals, arrays=nothing), CLAIMED)
        assert made.above_in == made.above_out == (0, 0, 0)
        assert (made.least_size(0.05), made.epsilon(1e-5, 0.95), made.most_noise(0.05)) == (0.0, 0.0, math.inf)


class TestLimits:
    SEEN = StepLevel(CLAIMED, 500, 4500, 5000, (330, 252, 106), (1540, 950, 250))

    def test_they_are_those_of_scipy(self):
        tail = 0.05 * (1 - OF_RATE) / 6
        sizes_of_steps = []
        for hits, alarms in zip(self.SEEN.above_in, self.SEEN.above_out, strict=True):
            tpr = stats.binomtest(hits, 500, alternative="greater").proportion_ci(1 - tail).low
            fpr = stats.binomtest(alarms, 4500, alternative="less").proportion_ci(1 - tail).high
            sizes_of_steps.append(norm.ppf(tpr) - norm.ppf(fpr))
        rate = stats.binomtest(500, 5000, alternative="greater").proportion_ci(1 - 0.05 * OF_RATE).low
        assert self.SEEN.least_size(0.05) == pytest.approx(max(sizes_of_steps))
        assert self.SEEN.most_noise(0.05) == pytest.approx(1 / max(sizes_of_steps))
        assert self.SEEN.least_rate(0.05) == pytest.approx(rate)

    def test_epsilon_is_that_of_the_accountant(self):
        size, rate = self.SEEN.least_size(0.05), self.SEEN.least_rate(0.05)
        expected = accountant(1 / size, rate, 60, "add_remove").epsilon(1e-4)
        assert self.SEEN.epsilon(1e-4, 0.95) == pytest.approx(expected)
        assert self.SEEN.epsilon(1e-4, 0.999) < expected < self.SEEN.epsilon(1e-6, 0.95)

    def test_to_call_the_pairs_below_gives_the_same_size(self):
        """Members and others change places, and so do above and below."""
        mirror = StepLevel(CLAIMED, 4500, 500, 5000, (2960, 3550, 4250), (170, 248, 394))
        assert mirror.least_size(0.05) == pytest.approx(self.SEEN.least_size(0.05))

    @pytest.mark.slow
    def test_epsilon_is_finite_where_the_accountant_gives_up(self):
        often = DpSgd(noise_multiplier=1.0, sample_rate=0.97, steps=300)
        n_in, n_out = 97 * 10**7, 3 * 10**7
        sure = StepLevel(often, n_in, n_out, n_in + n_out, (n_in,) * 3, (0,) * 3)
        size, rate = sure.least_size(0.05), sure.least_rate(0.05)
        assert accountant(1 / size, rate, 300, "add_remove").epsilon(1e-5) == math.inf
        assert 100 < sure.epsilon(1e-5, 0.95) < math.inf

    @pytest.mark.parametrize(
        ("seen", "claimed"),
        [
            (SEEN, replace(CLAIMED, noise_multiplier=2.0)),  # more noise than there is
            (SEEN, replace(CLAIMED, sample_rate=0.08)),  # smaller batches than there are
        ],
    )
    def test_the_p_value_is_the_level_at_which_the_claim_is_excluded(self, seen, claimed):
        told = replace(seen, dpsgd=claimed)
        p = told.p_value()
        assert 1e-40 < p < 0.05

        def excluded(level: float) -> bool:
            return told.least_size(level) > 1 / claimed.noise_multiplier or told.least_rate(level) > claimed.sample_rate

        assert excluded(1.01 * p)
        assert not excluded(0.99 * p)
        assert replace(seen, dpsgd=CLAIMED).p_value() > 0.5

    def test_shorter_gradients_only_make_it_smaller(self):
        """Exact rates of a million pairs of each kind, half of them of size .8 and the others from 0 to .8."""
        claimed, n = DpSgd(noise_multiplier=1.25), 10**6
        for other in (0.0, 0.4, 0.8):
            thresholds = np.array(THRESHOLDS) / 1.25
            above_in = (norm.sf(thresholds - 0.8) + norm.sf(thresholds - other)) / 2
            rates = [tuple((n * rate).round().astype(int).tolist()) for rate in (above_in, norm.sf(thresholds))]
            size = StepLevel(claimed, n, n, 2 * n, *rates).least_size(0.05)
            assert (0.8 + other) / 2 - 0.03 <= size <= 0.8


@pytest.mark.slow
def test_a_right_claim_is_exceeded_as_seldom_as_the_level_says():
    """Of 4,000 games of the exact claim: the level is divided over 7 limits, so that fewer than 5 % are wrong."""
    rng, n_games = np.random.default_rng(0), 4_000
    n_in = rng.binomial(6000, 0.1, size=n_games)
    wrong_size = wrong_rate = 0
    thresholds = np.array(THRESHOLDS) / 1.25
    for n in n_in.tolist():
        v_in, v_out = rng.normal(0.8, 1, size=n), rng.normal(size=600)
        above = [tuple((v[:, None] > thresholds).sum(0).tolist()) for v in (v_in, v_out)]
        seen = StepLevel(CLAIMED, n, 600, 6000, *above)
        wrong_size += seen.least_size(0.05) > 0.8
        wrong_rate += seen.least_rate(0.05) > 0.1
    assert wrong_size + wrong_rate <= stats.binom.isf(1e-4, n_games, 0.05)
    assert wrong_rate >= stats.binom.ppf(1e-4, n_games, 0.5 * OF_RATE * 0.05)  # of one exact limit, most of its level


@pytest.mark.slow
def test_right_steps_are_seldom_above_the_claim():
    """Whole games, with signals: bounds at 95 % above the claim's epsilon, and claims with a p-value below 5 %."""
    epsilon = CLAIMED.ceiling().epsilon(1e-5)
    seen = [counted(played(CLAIMED, seed), CLAIMED) for seed in range(200)]
    assert sum(each.p_value() < 0.05 for each in seen) <= allowed(200)
    assert sum(each.epsilon(1e-5, 0.95) > epsilon for each in seen[:20]) <= allowed(20)


@pytest.mark.parametrize("wrong", [{"moved": 2.0}, {"noise": 0.5}, {"noise": 0.0}])
def test_wrong_steps_are_refuted(wrong):
    """In each of 20 games of 120 canaries at a level of 1e-4."""
    assert max(counted(played(CLAIMED, seed, n=120, **wrong), CLAIMED).p_value() for seed in range(20)) < 1e-4


def test_more_batches_than_claimed_are_refuted():
    often = replace(CLAIMED, sample_rate=0.15)
    seen = counted(played(often, 0, n=120), CLAIMED)
    assert seen.p_value() < 1e-4
    assert seen.least_rate(1e-4) > CLAIMED.sample_rate
    assert seen.most_noise(1e-4) > CLAIMED.noise_multiplier


@pytest.mark.slow
def test_it_needs_no_torch():
    code = "import sys, leakbound.dpsgd.step_level; assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
