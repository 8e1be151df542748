"""Claims put to the test: what the scores of all attacks together say of a promise, at family-wise level 1e-3."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from leakbound.attacks.balance import design_of
from leakbound.attacks.given import Given
from leakbound.auditing.noise_tests import NoiseTest, StepNoise
from leakbound.core.findings import Finding, Term
from leakbound.core.intervals import Interval
from leakbound.core.numerics import bisect
from leakbound.core.tradeoff import EpsilonDelta, Gaussian, TradeOff
from leakbound.core.tradeoff.claims import Claim
from leakbound.core.types import Attack, Game, NotApplicable, Scores, Signals
from leakbound.dpsgd.promise import AccountantClaim, denied
from leakbound.dpsgd.step_level import StepLevel
from leakbound.metrics import epsilon as counting
from leakbound.metrics.records import games_won
from leakbound.reports import Verdict

G = TypeVar("G")
M = TypeVar("M")
NO_ATTACK = Term("no_attack")
LEVEL = 1e-3  # probability that any true claim of a release is refuted by any of its attacks
OF_NOISE = LEVEL / 100  # the part of it that each test of the noise and of the batches takes, first of their size
OF_STEPS = LEVEL / 10  # and what each canary shows in each step
OF_EACH_CANARY = ("likelihood_ratio", "glir")  # attacks whose score of a canary is of its own coordinate alone


@dataclass(frozen=True)
class ClaimTest:
    """Evidence of each attack against claims of one release."""

    method: str
    # The first half of the models are targets and the second half references, so that no reference is a target. Where
    # the memberships of the models depend on each other, the first model alone is attacked.
    evidence: Mapping[str, counting.Evidence]
    accuracy: Mapping[str, float]
    reason: Term | None = None
    # how often one looks, each time with more models: the level is divided by it, so that a true claim is refuted at
    # any look with probability LEVEL at most (union bound)
    n_looks: int = 1
    # scores from elsewhere may compare the attacked models with each other: then those of one model are used
    compares_targets: bool = False

    @property
    def level(self) -> float:
        """Level of all tests of one look together."""
        return LEVEL / self.n_looks

    @property
    def of_noise(self) -> float:
        """Level of each test of the noise and of the batches."""
        return OF_NOISE / self.n_looks

    @property
    def of_steps(self) -> float:
        """Level of the test of each canary in each step."""
        return OF_STEPS / self.n_looks

    @classmethod
    def of(
        cls, signals: Signals, attacks: Sequence[Attack], by_unit: Callable[[Scores], Scores], n_looks: int = 1
    ) -> ClaimTest:
        """Let every attack play against targets that are no references."""
        game = signals.game.split()
        # scores from elsewhere that compare the attacked models with each other stay so, however they are divided
        share = any(isinstance(attack, Given) and attack.variance_inflation > 1 for attack in attacks)
        dependent = share or design_of(signals) is not None
        if dependent:  # one target: with several, the memberships of one reveal those of another
            is_target_point = signals.game.is_target_point
            if is_target_point.ndim == 2:  # each model has target points of its own: take those of the first
                is_target_point = is_target_point[0]
            game = replace(signals.game, n_targets=1, is_target_point=is_target_point)
        split_signals = replace(signals, game=game)
        if game.n_target_points == 1:
            method: counting.Method = "many_runs"
        else:
            method = "coins" if game.by_coins else "pairs"
        if signals.game.n_targets > 1 and game.n_targets < 2 and not dependent:
            reason = Term("no_second_target", models=signals.game.n_models)
            return cls(method, {}, {}, reason, n_looks)
        level = 1 - LEVEL / n_looks / len(attacks)  # Bonferroni over the attacks
        evidence: dict[str, counting.Evidence] = {}
        accuracy: dict[str, float] = {}
        unplayed, uncounted, unwon = [], [], []
        for attack in attacks:  # one after the other, so that the scores of one attack alone are in memory
            scores, reasons = _applied({attack.name: attack}, lambda attack: by_unit(attack(split_signals)))
            unplayed += reasons
            found, reasons = _applied(scores, lambda score: _independent_evidence(score, method))
            evidence |= found
            uncounted += reasons
            found, reasons = _applied(scores, lambda score: float(games_won(score, level, independent=True).low.max()))
            accuracy |= found
            unwon += reasons
        return cls(method, evidence, accuracy, [*unplayed, *uncounted, *unwon, NO_ATTACK][0], n_looks, share)

    @classmethod
    def of_independent_canaries(cls, signals: Signals, attacks: Sequence[Attack]) -> ClaimTest:
        """Let the attacks that see each canary alone play, and count canaries as independent trials.

        That they are is an assumption about the training: this test says nothing of claims that are made without it.
        """
        own = {attack.name: attack for attack in attacks if attack.name.partition("(")[0] in OF_EACH_CANARY}
        scores, unplayed = _applied(own, lambda attack: attack(signals))
        method = "independent_canaries"
        evidence, uncounted = _applied(scores, lambda score: counting.evidence(score, method, independent=True))
        return cls(method, evidence, {}, [*unplayed, *uncounted, NO_ATTACK][0])

    def epsilon(self, delta: float, confidence: float) -> tuple[str, Interval | NotApplicable]:
        """Return the largest lower bound over the attacks, corrected for their number, and the attack that gave it."""
        if not self.evidence:
            return "", NotApplicable(self.reason or NO_ATTACK)
        n_tests = len(self.evidence)
        bounds = {
            name: counting.bound(evidence, delta, confidence, n_tests) for name, evidence in self.evidence.items()
        }
        best = max(bounds, key=lambda name: bounds[name].value)
        return best, bounds[best]

    def p_value(self, played: Claim) -> float:
        """P-value of a claim of epsilon or mu in the game that was played, over all attacks."""
        curve = Gaussian(played.value) if played.quantity == "mu" else EpsilonDelta(played.value, played.delta)
        return self.curve_p_value(curve)

    def curve_p_value(self, ceiling: TradeOff) -> float:
        """P-value of a whole curve in the game that was played, over all attacks."""
        return min(1.0, len(self.evidence) * min(item.curve_p_value(ceiling) for item in self.evidence.values()))

    def strongest(self, ceiling: TradeOff) -> str:
        """Name the attack with the strongest evidence against a curve."""
        return min(self.evidence, key=lambda name: self.evidence[name].curve_p_value(ceiling))


@dataclass(frozen=True)
class StepEvidence:
    """What the steps of a training by DP-SGD show: their noise, their batches, and canaries in single steps."""

    noise: StepNoise | None = None
    tests: Sequence[NoiseTest] = ()
    level: StepLevel | None = None


@dataclass(frozen=True)
class Evidence:
    """All that claims about one release are judged by."""

    game: Game
    scores: ClaimTest
    findings: Sequence[Finding] = ()  # rates of the attacks, of which one illustrates a verdict
    # why no claim is tested: members and others differ, or attacks are wrong more often than a guess
    differs: Term | None = None
    below: Term | None = None
    condition: Term | None = None  # under which a verdict by measurement holds
    # what DP-SGD as declared promises of single records; None for other trainings, and units of several records
    promise: AccountantClaim | None = None
    steps: StepEvidence = StepEvidence()


@dataclass(frozen=True)
class _Measured:
    """The outcome of the tests of one claim."""

    is_refuted: bool
    value: float
    confidence: float
    attack: str = ""
    operating_point: Mapping[str, float] = field(default_factory=dict)
    reason: Term | None = None


def judge_claim(claim: Claim | AccountantClaim, evidence: Evidence) -> Verdict:
    """Say of a claim whether it is refuted, cannot hold, has no support, cannot be tested, or is not refuted.

    This is the only place where a verdict is given; policies, gates and pages read it.
    """
    if isinstance(claim, AccountantClaim):
        untested = Verdict(claim.claim, "cannot_be_tested", "curve", claim.epsilon, training=claim.training)
    else:
        untested = Verdict(claim, "cannot_be_tested", claim.quantity, claim.value)
    try:
        measured = _curve_tested(claim, evidence) if isinstance(claim, AccountantClaim) else _tested(claim, evidence)
    except NotApplicable as untestable:
        verdict = replace(untested, reason=untestable.reason)
    else:
        verdict = replace(
            untested,
            word="refuted" if measured.is_refuted else "not_refuted",
            measured=measured.value,
            confidence=measured.confidence,
            attack=measured.attack,
            operating_point=measured.operating_point,
            reason=measured.reason,
        )
    if verdict.word == "refuted" or isinstance(claim, AccountantClaim) or evidence.promise is None:
        return verdict
    # An accountant's calculation is no measurement: what it denies is not refuted, unless an attack refutes it too.
    denial = denied(claim, evidence.promise)
    if denial is None:
        return verdict
    return replace(verdict, word="cannot_hold" if denial.is_certain else "not_supported", reason=denial.reason)


def _tested(claim: Claim, evidence: Evidence) -> _Measured:
    """Compare a claimed epsilon, mu or eta with the largest lower bound over all attacks."""
    if evidence.differs is not None:
        raise NotApplicable(evidence.below or evidence.differs)
    try:
        measured = _measured(claim, evidence.game, evidence.scores)
    except NotApplicable:
        if evidence.below is None:
            raise
        raise NotApplicable(evidence.below) from None
    is_refuted = measured > claim.value
    if evidence.below is not None and not is_refuted:
        raise NotApplicable(evidence.below)
    attack, operating_point = _operating_point(claim.ceiling(evidence.game), evidence.findings)
    confidence = 1 - evidence.scores.level
    return _Measured(is_refuted, measured, confidence, attack, operating_point, evidence.condition)


def _measured(claim: Claim, game: Game, scores: ClaimTest) -> float:
    """Return the lower bound of the claim's own quantity."""
    claim.in_game(game)  # raises NotApplicable where the claim says nothing of this game
    if claim.quantity == "eta":
        return _accuracy(game, scores)
    return _lower(claim, game, scores)


def _curve_tested(claim: AccountantClaim, evidence: Evidence) -> _Measured:
    """Test an accountant's curve, and whether the steps have the noise and the batches that it counts on."""
    scores, steps = evidence.scores, evidence.steps
    level = scores.level - scores.of_noise * len(steps.tests)  # union bound: all tests together keep it
    if steps.noise is not None and steps.noise.testable:
        level -= scores.of_noise
    if steps.level is not None:
        level -= scores.of_steps
    fault = _fault(claim, scores, steps)
    if not scores.evidence and fault is None:
        raise NotApplicable(scores.reason or NO_ATTACK)
    if not scores.evidence:
        return _Measured(True, 0.0, 1 - level, reason=fault)
    is_refuted = fault is not None or scores.curve_p_value(claim.ceiling) < level
    attack, operating_point = _operating_point(claim.ceiling, evidence.findings)
    ruled_out = claim.ruled_out(scores.curve_p_value, level)
    return _Measured(is_refuted, ruled_out, 1 - level, attack, operating_point, fault)


def _fault(promise: AccountantClaim, scores: ClaimTest, steps: StepEvidence) -> Term | None:
    """Say what is wrong with the steps, the most specific reason first; None if no test of them refutes the claim."""
    level, noise = scores.of_noise, steps.noise
    refused = [test for test in steps.tests if test.log_p < math.log(level)]
    reasons = [test.reason for test in refused if test.narrow]
    if noise is not None and noise.testable and noise.p_value() < level:
        sigma = promise.dpsgd.noise_multiplier
        most = sigma * noise.most(level)
        reasons.append(Term("too_little_noise", most=most, level=100 * (1 - level), claimed=sigma))
    of_steps = None if steps.level is None else _more_than_claimed(steps.level, scores.of_steps)
    if of_steps is not None:
        reasons.append(of_steps)
    reasons += [test.reason for test in refused if not test.narrow]
    return reasons[0] if reasons else None


def _more_than_claimed(steps: StepLevel, level: float) -> Term | None:
    """Say what the steps refute of the claimed training, at this level; None if nothing."""
    if steps.p_value() >= level:
        return None
    claimed, at = steps.dpsgd, 100 * (1 - level)
    most, least = steps.most_noise(level), steps.least_rate(level)
    if most < claimed.noise_multiplier:
        return Term("steps_reveal_more", most=most, level=at, claimed=claimed.noise_multiplier)
    return Term("larger_batches", least=least, level=at, claimed=claimed.sample_rate)


def _independent_evidence(scores: Scores, method: counting.Method) -> counting.Evidence:
    """Reduce scores to evidence; those of a function that compares the targets with each other are none."""
    if scores.variance_inflation > 1:
        raise NotApplicable("targets_not_independent")
    return counting.evidence(scores, method, independent=True)


def _applied(items: Mapping[str, G], function: Callable[[G], M]) -> tuple[dict[str, M], list[Term]]:
    """Apply a function to each item; return its results, and the reasons where it does not apply."""
    results: dict[str, M] = {}
    reasons: list[Term] = []
    for name, item in items.items():
        try:
            results[name] = function(item)
        except NotApplicable as reason:
            reasons.append(reason.reason)
    return results, reasons


def _lower(claim: Claim, game: Game, claim_test: ClaimTest) -> float:
    """Return the largest value of the claim's own quantity that is rejected, 0 if none is."""
    if not claim_test.evidence:
        raise NotApplicable(claim_test.reason or NO_ATTACK)

    def rejected(value: float) -> bool:
        return claim_test.p_value(replace(claim, value=value).in_game(game)) < claim_test.level

    if not rejected(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while rejected(high):  # ends: no finite evidence rejects an infinite value
        low, high = high, 2 * high
    return bisect(rejected, inside=low, outside=high, atol=1e-4)


def _accuracy(game: Game, claim_test: ClaimTest) -> float:
    """Lower limit of eta: accuracy against the most exposed record above the better prior guess."""
    if not claim_test.accuracy:
        raise NotApplicable(claim_test.reason or NO_ATTACK)
    return max(0.0, max(claim_test.accuracy.values()) - max(game.prior, 1 - game.prior))


def _operating_point(ceiling: TradeOff, findings: Sequence[Finding]) -> tuple[str, dict[str, float]]:
    """Find the measured TPR that is farthest above the ceiling, or nearest below it."""
    rates = [
        finding
        for finding in findings
        if finding.quantity == "tpr" and finding.value is not None and finding.low is not None
    ]
    if not rates:
        return "", {}
    # by the lower limit of the TPR: a high value with a wide interval shows little
    best = max(rates, key=lambda rate: (rate.low or 0.0) - float(ceiling.tpr_at(rate.operating_point["fpr"])))
    return best.attack, {
        "fpr": best.operating_point["fpr"],
        "tpr": best.value or 0.0,
        "low": best.low or 0.0,
        "high": best.high or 0.0,
        "ceiling": float(ceiling.tpr_at(best.operating_point["fpr"])),
        "false_alarms": best.detail["false_alarms"],
    }
