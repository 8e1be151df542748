"""Claims put to the test: valid under the claim, and strong against leaks."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from leakbound.attacks import ATTACKS
from leakbound.auditing import claim_tests
from leakbound.auditing.claim_tests import (
    LEVEL,
    OF_NOISE,
    ClaimTest,
    Evidence,
    StepEvidence,
    judge_claim,
)
from leakbound.auditing.noise_tests import LEAST_DEGREES, NoiseTest, StepNoise
from leakbound.auditing.private_training import promise_text
from leakbound.core import games
from leakbound.core.findings import Finding, Term
from leakbound.core.reasons import words
from leakbound.core.tradeoff import Gaussian
from leakbound.core.tradeoff.claims import Claim
from leakbound.core.types import Scores, Signals
from leakbound.dpsgd.config import DpSgd
from leakbound.dpsgd.diagnostics import StepDiagnostics
from leakbound.dpsgd.promise import AccountantClaim
from leakbound.dpsgd.step_level import StepLevel
from leakbound.metrics.counting import Guesses

GAME = games.half_split(4, 2)


class Told:
    """An attack that is told the truth through a channel: with probability 1 - flip it sees the membership."""

    title = source = summary = ""

    def __init__(self, flip: float, seed: int = 0, name: str = "told") -> None:
        self.flip, self.seed, self.name = flip, seed, name

    def __call__(self, signals: Signals) -> Scores:
        rng = np.random.default_rng(self.seed)
        shape = signals.game.member.shape
        noise = rng.random(shape) < self.flip
        seen = (signals.game.member ^ noise)[: signals.game.n_targets, signals.game.target_points]
        jitter = rng.random(seen.shape) * 1e-3
        return Scores(self.name, seen + jitter, signals.game.target_member)


def _same(scores: Scores) -> Scores:
    return scores


def _trial(game, *attacks) -> ClaimTest:
    return ClaimTest.of(Signals(game, None, {}), attacks, _same)


def test_a_leak_refutes_small_claims_and_not_large_ones() -> None:
    game = games.half_split(400, 16)
    trial = _trial(game, Told(0.02))
    small, large = (Claim("epsilon", value, 1e-5, "replace_one") for value in (1.0, 30.0))
    assert judge_claim(small, Evidence(game, trial)).word == "refuted"
    assert judge_claim(large, Evidence(game, trial)).word == "not_refuted"


def test_a_leak_in_every_model_is_not_excused_by_delta() -> None:
    """One lucky failure of probability n delta may explain one model, but not eight of them."""
    game = games.half_split(400, 16)
    trial = _trial(game, Told(0.0))
    assert judge_claim(Claim("epsilon", 2.0, 1e-4, "replace_one"), Evidence(game, trial)).word == "refuted"


def test_random_scores_refute_nothing() -> None:
    game = games.half_split(400, 16)
    trial = _trial(game, Told(0.5))
    for claim in (Claim("epsilon", 0.0, 0.0, "replace_one"), Claim("mu", 0.1, 0.0, "replace_one"), Claim("eta", 0.0)):
        assert judge_claim(claim, Evidence(game, trial)).word == "not_refuted"


@pytest.mark.statistics
@pytest.mark.parametrize(("n_audits", "most"), [(400, 4), pytest.param(2000, 8, marks=pytest.mark.nightly)])
def test_level_of_true_claims(n_audits, most) -> None:
    """Randomised response with known epsilon: the claim is true, so at most LEVEL = .1 % of the audits refute it.

    Of 2,000 audits with two attacks 2 are expected at the very most; 9 or more would be a false alarm of .03 %, as 5
    or more of 400 would be one of .01 %. A level of .65 % or 2 % is found in 9 of 10 cases.
    """
    epsilon = 1.0
    flip = 1 / (1 + np.exp(epsilon / 2))  # a swap changes two records: epsilon / 2 for each of them
    claim = Claim("epsilon", epsilon, 0.0, "replace_one")
    wrong = 0
    for run in range(n_audits):
        game = games.half_split(60, 4, seed=run)
        trial = _trial(game, Told(flip, seed=run), Told(flip, seed=run + 10_000, name="other"))
        wrong += trial.p_value(claim) < LEVEL
    assert wrong <= most


@pytest.mark.statistics
@pytest.mark.parametrize(("n_audits", "most"), [(400, 4), pytest.param(2000, 8, marks=pytest.mark.nightly)])
def test_level_of_true_claims_about_fresh_data_sets(n_audits, most) -> None:
    """Randomised response of each coin, in or another record in its place; counts and powers as above."""
    epsilon, wrong = 1.0, 0
    flip = 1 / (1 + np.exp(epsilon))
    for run in range(n_audits):
        game = games.fresh(300, 4, targets=40, size=60, seed=run)
        trial = _trial(game, Told(flip, seed=run), Told(flip, seed=run + 10_000, name="other"))
        wrong += trial.p_value(Claim("epsilon", epsilon, 0.0, "replace_one")) < LEVEL
    assert wrong <= most


def test_fresh_data_sets_refute_a_claim_by_few_targets() -> None:
    """Counted by coins: of 20 targets some model has so few members that pairs would tell nothing."""
    game = games.fresh(1000, 64, targets=20, size=100)
    trial = _trial(game, Told(0.05))
    assert trial.method == "coins"
    made = judge_claim(Claim("epsilon", 1.0, 0.0, "replace_one"), Evidence(game, trial))
    assert made.word == "refuted"
    assert made.measured < np.log(19)  # what the channel promises


def test_add_remove_claims_are_halved_in_a_fixed_half() -> None:
    game = games.half_split(400, 16)
    trial = _trial(game, Told(0.02))
    swap, add = (
        judge_claim(Claim("epsilon", 1.0, 0.0, kind), Evidence(game, trial)) for kind in ("replace_one", "add_remove")
    )
    assert add.measured == pytest.approx(swap.measured / 2, abs=2e-4)


def test_replace_one_claim_in_a_game_of_coins_cannot_be_tested() -> None:
    game = games.half_split(400, 16, sampling="poisson")
    made = judge_claim(Claim("epsilon", 1.0, 0.0, "replace_one"), Evidence(game, _trial(game, Told(0.02))))
    assert made.word == "cannot_be_tested"
    assert "fixed" in words(made.reason)


class TestIndependentCanaries:
    RATIO = ATTACKS["likelihood_ratio"]

    @staticmethod
    def signals(n_models: int, n_canaries: int, distance: float) -> Signals:
        """One step that releases each canary's number plus standard noise: Gaussian, mu = distance."""
        game = games.canaries(n_canaries + 1, np.arange(n_canaries), n_models)
        rng = np.random.default_rng(0)
        released = rng.normal(size=game.member.shape) + distance * game.member
        norm = np.full(game.member.shape, distance**2)
        return Signals(game, None, {"step_dot": distance * released[..., None], "step_norm": norm[..., None]})

    def test_all_canaries_of_all_models_are_trials(self) -> None:
        trial = ClaimTest.of_independent_canaries(self.signals(3, 100, 1.5), [self.RATIO])
        (gathered,) = trial.evidence.values()
        assert gathered.detail(Gaussian(1.0))["units"] == 300
        assert trial.curve_p_value(Gaussian(0.5)) < 0.01 < 0.2 < trial.curve_p_value(Gaussian(1.5))

    def test_attacks_that_may_look_at_several_canaries_are_left_out(self) -> None:
        signals = self.signals(1, 100, 1.5)
        assert set(ClaimTest.of_independent_canaries(signals, [Told(0.0), self.RATIO]).evidence) == {"likelihood_ratio"}
        none = ClaimTest.of_independent_canaries(signals, [Told(0.0)])
        assert (none.evidence, none.reason) == ({}, Term("no_attack"))

    def test_why_there_is_no_number(self) -> None:
        few = ClaimTest.of_independent_canaries(self.signals(1, 3, 1.5), [self.RATIO])
        assert "needs at least 2 canaries that are in and as many that are out" in words(few.reason)


def test_eta_is_refuted_by_the_games_of_one_record() -> None:
    game = games.half_split(40, 64)
    trial = _trial(game, Told(0.0))
    made = judge_claim(Claim("eta", 0.1), Evidence(game, trial))
    assert made.word == "refuted"
    # all games of 32 targets (the other half are references), 40 records: alpha ** (1/32) by Clopper-Pearson
    assert made.measured == pytest.approx((LEVEL / 40) ** (1 / 32) - 0.5, abs=1e-6)


@pytest.mark.parametrize(("n_attacks", "n_looks"), [(2, 1), (1, 3), (4, 5)])
def test_the_level_of_a_claim_of_eta_is_divided_by_attacks_and_looks(n_attacks, n_looks) -> None:
    """All games of 32 targets of 40 records are won: the limit of Clopper and Pearson at the level that is left."""
    game = games.half_split(40, 64)
    attacks = [Told(0.0, name=f"attack {number}") for number in range(n_attacks)]
    trial = ClaimTest.of(Signals(game, None, {}), attacks, _same, n_looks)
    expected = (LEVEL / n_looks / n_attacks / 40) ** (1 / 32) - 0.5
    made = judge_claim(Claim("eta", 0.1), Evidence(game, trial))
    assert made.measured == pytest.approx(expected, abs=1e-9)
    assert made.confidence == pytest.approx(1 - LEVEL / n_looks, abs=1e-12)


class Fixed:
    """Evidence with the same p-value for every claim below a noise or epsilon, and 1 above."""

    method = ()

    def __init__(self, p: float) -> None:
        self.p = p

    def p_value(self, epsilon: float, delta: float) -> float:
        return self.p if epsilon <= 1.0 else 1.0

    def curve_p_value(self, claim) -> float:
        return self.p if claim.delta(1.0) <= 1e-5 else 1.0

    def detail(self, claim) -> dict[str, float]:
        return {}


BELOW_ONE = AccountantClaim(DpSgd(noise_multiplier=4.0, sample_rate=0.1, steps=20), "add_remove", 1e-5)


def _fixed(*p_values: float, n_looks: int = 1) -> ClaimTest:
    evidence = {f"attack {number}": Fixed(p) for number, p in enumerate(p_values)}
    return ClaimTest("coins", evidence, {}, n_looks=n_looks)


@pytest.mark.parametrize("n_attacks", [1, 2, 7])
def test_the_p_value_of_the_strongest_attack_is_multiplied_by_their_number(n_attacks) -> None:
    trial = _fixed(*[0.3] * (n_attacks - 1), 1e-4)
    claim = Claim("epsilon", 0.5, 1e-5, "add_remove")
    assert trial.p_value(claim) == pytest.approx(1e-4 * n_attacks)
    assert _fixed(0.9, 0.8, 0.7).p_value(claim) == 1
    # a bound of epsilon at confidence c: where p n < 1 - c, and not where p < 1 - c alone
    assert trial.epsilon(1e-5, 1 - 0.99e-4 * n_attacks)[1].value == 0
    name, bound = trial.epsilon(1e-5, 1 - 1.01e-4 * n_attacks)
    assert name == f"attack {n_attacks - 1}"
    assert bound.value == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("n_looks", [1, 4])
def test_a_claim_is_refuted_below_the_level_of_one_look(n_looks) -> None:
    claim, game = Claim("epsilon", 0.5, 1e-5, "add_remove"), games.half_split(40, 16, sampling="poisson")
    below, above = (
        judge_claim(claim, Evidence(game, _fixed(part * LEVEL / n_looks, n_looks=n_looks))) for part in (0.99, 1.01)
    )
    assert (below.word, above.word) == ("refuted", "not_refuted")


@pytest.mark.by_day("3-True-True-1")
@pytest.mark.parametrize("n_looks", [1, 4])
@pytest.mark.parametrize(
    ("n_tests", "with_noise", "with_steps"), [(0, False, False), (7, False, False), (3, True, True)]
)
def test_tests_of_the_steps_take_their_part_of_the_level(monkeypatch, n_looks, n_tests, with_noise, with_steps) -> None:
    """Union bound: what the tests of noise, batches and steps may use is no longer left for the curve."""

    monkeypatch.setattr(StepLevel, "p_value", lambda self: 1.0)
    monkeypatch.setattr(AccountantClaim, "ruled_out", lambda self, p_value, level: 0.0)
    promise = BELOW_ONE
    assert promise.epsilon < 1
    noise = StepNoise(1000.0, 1000) if with_noise else None
    noise_tests = [NoiseTest(0.0, Term("noise_repeated"))] * n_tests
    steps = object.__new__(StepLevel) if with_steps else None
    left = (LEVEL - (n_tests + with_noise) * LEVEL / 100 - with_steps * LEVEL / 10) / n_looks
    words = []
    for part in (0.999, 1.001):
        trial = _fixed(part * left, n_looks=n_looks)
        made = judge_claim(promise, Evidence(GAME, trial, steps=StepEvidence(noise, noise_tests, steps)))
        assert made.confidence == pytest.approx(1 - left, abs=1e-12)
        words.append(made.word)
    assert words == ["refuted", "not_refuted"]


def test_what_steps_refute_is_said_at_their_own_confidence(monkeypatch) -> None:
    """Their part of the level of all is a tenth."""
    for name, value in (("p_value", 0.0), ("most_noise", 0.01), ("least_rate", 1.0)):
        monkeypatch.setattr(StepLevel, name, lambda self, level=0.0, value=value: value)
    steps = object.__new__(StepLevel)
    object.__setattr__(steps, "dpsgd", BELOW_ONE.dpsgd)
    made = judge_claim(BELOW_ONE, Evidence(GAME, _fixed(1.0), steps=StepEvidence(None, [], steps)))
    assert made.reason.values["level"] == pytest.approx(100 * (1 - LEVEL / 10))


def test_a_claim_of_eta_over_few_records_needs_no_pairs() -> None:
    """Three target points are too few for pairs; the games of one of them are enough for eta."""
    game = games.half_split(400, 64)
    game = replace(game, is_target_point=np.arange(400) < 3)
    trial = _trial(game, Told(0.02))
    assert judge_claim(Claim("eta", 0.05), Evidence(game, trial)).word == "refuted"
    assert judge_claim(Claim("eta", 0.05), Evidence(game, _trial(game, Told(0.5)))).word == "not_refuted"


def test_the_operating_point_is_the_one_farthest_above_the_ceiling() -> None:
    game = games.half_split(400, 16)
    rates = [
        Finding(
            "tpr",
            value,
            value - 0.01,
            value + 0.01,
            operating_point={"fpr": fpr},
            attack=name,
            detail={"false_alarms": 12},
        )
        for name, fpr, value in (("a", 0.01, 0.5), ("b", 0.001, 0.48), ("b", 0.01, 0.2))
    ]
    made = judge_claim(Claim("epsilon", 3.0, 0.0, "replace_one"), Evidence(game, _trial(game, Told(0.02)), rates))
    assert made.attack == "b"
    assert made.operating_point["fpr"] == 0.001
    assert made.operating_point["ceiling"] == pytest.approx(np.exp(3.0) * 0.001)


def test_a_rate_without_an_interval_is_no_operating_point() -> None:
    game = games.half_split(400, 16)
    common = {"operating_point": {"fpr": 0.01}, "detail": {"false_alarms": 12, "between_model_spread": 1.0}}
    estimate = Finding("tpr", 0.99, attack="a", refused="too_few_models", **common)
    given = Finding("tpr", 0.3, 0.2, 0.4, attack="b", **common)
    trial = _trial(game, Told(0.02))
    claim = Claim("epsilon", 3.0, 0.0, "replace_one")
    assert judge_claim(claim, Evidence(game, trial, [estimate, given])).attack == "b"
    assert judge_claim(claim, Evidence(game, trial, [estimate])).operating_point == {}


def test_nothing_applies() -> None:
    class Never(Told):
        def __call__(self, signals: Signals) -> Scores:
            raise claim_tests.NotApplicable("needs a miracle")

    game = games.half_split(400, 16)
    made = judge_claim(Claim("epsilon", 1.0, 0.0, "replace_one"), Evidence(game, _trial(game, Never(0.0))))
    assert (made.word, words(made.reason)) == ("cannot_be_tested", "needs a miracle")


def test_a_condition_is_said_of_what_was_tested_alone() -> None:
    """Where the user accepts that members and others differ, a claim that is not tested keeps the reason for that."""
    game, claim = games.half_split(400, 16), Claim("epsilon", 1.0, 0.0, "replace_one")
    condition = Term("if_shift_is_not_the_cause")
    tested = judge_claim(claim, Evidence(game, _trial(game, Told(0.02)), condition=condition))
    assert (tested.word, tested.reason) == ("refuted", condition)
    nothing = ClaimTest("pairs", {}, {}, Term("no_attack"))
    untested = judge_claim(claim, Evidence(game, nothing, condition=condition))
    assert (untested.word, untested.reason) == ("cannot_be_tested", Term("no_attack"))


@pytest.mark.parametrize(
    ("doubts", "word", "reason"),
    [
        ({"differs": Term("shift")}, "cannot_be_tested", "shift"),  # whatever the attacks reach
        ({"below": Term("exchanged", n=2)}, "refuted", ""),  # attacks that are wrong too often take back no refutation
    ],
)
def test_doubts_of_the_data_and_of_the_attacks(doubts, word, reason) -> None:
    game = games.half_split(400, 16)
    evidence = Evidence(game, _trial(game, Told(0.02)), **doubts)
    made = judge_claim(Claim("epsilon", 1.0, 0.0, "replace_one"), evidence)
    assert (made.word, made.reason.id if made.reason else "") == (word, reason)
    if "below" in doubts:
        large = judge_claim(Claim("epsilon", 50.0, 0.0, "replace_one"), evidence)
        assert (large.word, large.reason) == ("cannot_be_tested", doubts["below"])


def test_no_other_function_gives_a_verdict() -> None:
    """By the sources; reports/content.py makes those that a file holds."""
    makes = re.compile(r"(?<!\w)Verdict\(|word=\"(refuted|not_refuted|cannot_hold|not_supported|cannot_be_tested)")
    sources = Path(claim_tests.__file__).parents[1]
    files = {path.relative_to(sources).as_posix() for path in sources.rglob("*.py") if makes.search(path.read_text())}
    assert files - {"reports/report.py"} == {"auditing/claim_tests.py", "reports/content.py"}  # its doctest makes one


@pytest.mark.slow
def test_of_fixed_batches_the_noise_that_is_ruled_out_is_told_by_their_own_curves() -> None:
    """The twin tries every noise on a grid by itself."""
    trial = ClaimTest("coins", {"a": Guesses("coins", 200, np.array([100]), np.array([[90]]))}, {})
    dpsgd = DpSgd(noise_multiplier=3.0, sample_rate=0.3, steps=2, batches="fixed")
    told = AccountantClaim(dpsgd, "replace_one", 1e-5)
    curves = [replace(dpsgd, noise_multiplier=noise).ceiling("replace_one", 10.0) for noise in np.geomspace(0.5, 9, 5)]
    refused = [trial.curve_p_value(curve) < LEVEL for curve in curves]
    first = refused.index(True)
    epsilon = [curve.epsilon(1e-5) for curve in curves]
    assert first > 0
    assert epsilon[first] * 0.98 <= told.ruled_out(trial.curve_p_value, LEVEL) <= epsilon[first - 1]
    assert promise_text(told).endswith(
        "by the accountant of noise multiplier 3, sample rate 0.3, 2 steps, batches of fixed size"
    )


class TestNoiseOfSteps:
    TOLD = AccountantClaim(DpSgd(noise_multiplier=2.0, sample_rate=0.1, steps=20), "add_remove", 1e-5)
    NONE = ClaimTest("coins", {}, {}, Term("no_attack"))

    @pytest.mark.parametrize(("square", "n_degrees"), [(3.0, 8), (700.0, 800), (11_000.0, 10_000)])
    def test_p_value_is_that_of_a_poisson_process(self, square, n_degrees):
        """An even number 2k of squares is below x if k points or more have come by the time x/2."""
        expected = stats.poisson.sf(n_degrees // 2 - 1, square / 2)
        assert StepNoise(square, n_degrees).p_value() == pytest.approx(expected, rel=1e-9)

    @pytest.mark.statistics
    def test_p_values_are_uniform_of_noise_alone_and_larger_with_gradients(self):
        """Over 4,000 trainings of 20 steps in 30 dimensions; a false alarm has probability .1 %."""
        rng = np.random.default_rng(0)
        noise = rng.normal(size=(4000, 20, 30))
        drift = np.cumsum(noise, axis=1) - noise  # what the steps before have led to
        for gradient, side in ((0.0, "two-sided"), (0.1 * drift, "greater")):
            squares = np.square(noise + gradient).sum(axis=(1, 2))
            p = [StepNoise(square, 600).p_value() for square in squares]
            assert stats.kstest(p, "uniform", alternative=side).pvalue > 5e-4

    def test_it_is_told_by_the_largest_noise_that_is_not_refused(self):
        noise = StepNoise(900.0, 1000)
        most = noise.most(OF_NOISE)
        assert StepNoise(900.0 / most**2, 1000).p_value() == pytest.approx(OF_NOISE)

    @pytest.mark.parametrize(("square", "word"), [(990.0, "cannot_be_tested"), (500.0, "refuted")])
    def test_it_needs_no_attack(self, square, word):
        """By Fisher's approximation the 1e-5 quantile of 1,000 squares is (sqrt(1999) - 4.265)^2/2 = 818."""
        made = judge_claim(self.TOLD, Evidence(GAME, self.NONE, steps=StepEvidence(StepNoise(square, 1000))))
        assert made.word == word
        assert ("of at most 1.56 (99.999 %), and 2 is claimed" in (words(made.reason) if made.reason else "")) == (
            word == "refuted"
        )

    @pytest.mark.by_day("noise0-refuted-")
    @pytest.mark.parametrize(
        ("noise", "word", "note"),
        [
            (StepNoise(10.0, 90.0), "refuted", ""),
            (StepNoise(10.0, 90.0, 910.0), "cannot_be_tested", "the test for too little noise was not made: 910 of 1,"),
            (StepNoise(0.0, 0.0, 1000.0), "cannot_be_tested", "the test for too little noise was not made: 1,000 of"),
            (StepNoise(10.0, 200.0, 800.0), "refuted", "800 of 1,000 numbers in the steps are rounded too coarsely"),
        ],
    )
    def test_it_is_not_made_where_too_little_is_seen(self, noise, word, note):
        made = judge_claim(self.TOLD, Evidence(GAME, self.NONE, steps=StepEvidence(noise)))
        assert made.word == word
        assert noise.note.startswith(note)
        assert bool(noise.note) == bool(note)

    def test_half_of_the_noise_is_found_nearly_surely_where_it_is_made(self):
        """Of 100 degrees: the chance that a quarter of chi-squared is above its own 1e-5 quantile is below 1 %."""
        assert stats.chi2.sf(4 * stats.chi2.ppf(OF_NOISE, LEAST_DEGREES), LEAST_DEGREES) < 0.01

    def test_of_several_models_together_and_none_without_steps(self):
        seen = np.array([[5.0, 40.0, 2.0], [7.0, 40.0, 1.0]])
        assert StepNoise.of(StepDiagnostics(noise=seen)) == StepNoise(12.0, 80.0, 3.0)
        assert StepNoise.of(StepDiagnostics()) is None

    def test_numbers_that_are_not_finite_are_refused(self):
        with pytest.raises(ValueError, match="step_noise has NaN or infinite values"):
            StepDiagnostics.of({"step_noise": np.array([[5.0, np.nan, 2.0]])})
