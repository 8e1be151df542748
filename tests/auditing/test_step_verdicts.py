"""An accountant's claim against what the canaries show in single steps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from leakbound.auditing.claim_tests import (
    LEVEL,
    OF_NOISE,
    OF_STEPS,
    ClaimTest,
    Evidence,
    StepEvidence,
    judge_claim,
)
from leakbound.auditing.noise_tests import StepNoise
from leakbound.core import games
from leakbound.core.findings import Term
from leakbound.core.reasons import words
from leakbound.dpsgd.config import DpSgd
from leakbound.dpsgd.promise import AccountantClaim
from leakbound.dpsgd.step_level import StepLevel
from leakbound.metrics.counting import Guesses

GAME = games.half_split(4, 2)
CLAIMED = DpSgd(noise_multiplier=1.25, sample_rate=0.1, steps=60)
PROMISE = AccountantClaim(CLAIMED, "add_remove", 1e-5)
GUESSED = ClaimTest("coins", {"a": Guesses("coins", 200, np.array([40]), np.array([[24]]))}, {})
NOT_GUESSED = ClaimTest("coins", {}, {}, Term("no_attack"))
RIGHT = StepLevel(CLAIMED, 500, 4500, 5000, (328, 250, 106), (1551, 953, 247))
AT_TWICE = replace(RIGHT, above_in=(440, 390, 250))  # N(1.6, 1) in a batch
OFTEN = replace(RIGHT, n_in=800, n_out=4200, above_in=(525, 400, 170), above_out=(1447, 890, 230))
QUIET = StepNoise(500.0, 1000)


@pytest.mark.slow
def test_the_level_is_divided_over_the_tests():
    made = judge_claim(PROMISE, Evidence(GAME, GUESSED, steps=StepEvidence(level=RIGHT)))
    assert (made.word, made.reason) == ("not_refuted", None)
    assert made.confidence == pytest.approx(1 - (LEVEL - OF_STEPS))
    with_noise = judge_claim(PROMISE, Evidence(GAME, GUESSED, steps=StepEvidence(StepNoise(1000.0, 1000), level=RIGHT)))
    assert with_noise.confidence == pytest.approx(1 - (LEVEL - OF_STEPS - OF_NOISE))


@pytest.mark.by_day("steps0-as with a noise multiplier of at most 0.8-guesses1")
@pytest.mark.parametrize("guesses", [GUESSED, NOT_GUESSED])
@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (AT_TWICE, "as with a noise multiplier of at most 0.8"),
        (OFTEN, "in a batch with a probability of at least 0.13"),
    ],
)
def test_steps_refute_the_claim_with_or_without_an_attack(guesses, steps, said):
    made = judge_claim(PROMISE, Evidence(GAME, guesses, steps=StepEvidence(level=steps)))
    assert made.word == "refuted"
    assert made.reason is not None
    assert said in words(made.reason)
    assert "(99.99 %)" in words(made.reason)


def test_without_an_attack_right_steps_test_nothing_that_is_told():
    made = judge_claim(PROMISE, Evidence(GAME, NOT_GUESSED, steps=StepEvidence(level=RIGHT)))
    assert (made.word, made.reason) == ("cannot_be_tested", Term("no_attack"))


@pytest.mark.slow
def test_too_little_noise_is_the_reason_where_both_are_found():
    made = judge_claim(PROMISE, Evidence(GAME, GUESSED, steps=StepEvidence(QUIET, level=AT_TWICE)))
    assert made.word == "refuted"
    assert made.reason is not None
    assert made.reason.id == "too_little_noise"
