"""Claims put to the test: what the scores of all attacks together say of a promise, at family-wise level 1e-3."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Literal, TypeVar

from scipy.special import gammainc, gammaincinv

from leakbound.attacks.balance import design_of
from leakbound.attacks.given import Given
from leakbound.auditing.noise_tests import NoiseTest
from leakbound.core.findings import Finding, Term
from leakbound.core.intervals import Interval
from leakbound.core.numerics import bisect
from leakbound.core.tradeoff import EpsilonDelta, Gaussian, TradeOff
from leakbound.core.tradeoff.claims import AccountantEpsilon, Claim
from leakbound.core.types import Attack, Game, NotApplicable, Scores, Signals
from leakbound.dpsgd.config import DpSgd
from leakbound.dpsgd.step_level import StepLevel
from leakbound.metrics import epsilon as counting
from leakbound.metrics.records import games_won
from leakbound.reports import Verdict, phrases

G = TypeVar("G")
M = TypeVar("M")
NO_ATTACK = Term("no_attack")
LEVEL = 1e-3  # probability that any true claim of a release is refuted by any of its attacks
OF_NOISE = LEVEL / 100  # the part of it that each test of the noise and of the batches takes, first of their size
OF_STEPS = LEVEL / 10  # and what each canary shows in each step
OF_EACH_CANARY = ("likelihood_ratio", "glir")  # attacks whose score of a canary is of its own coordinate alone
LEAST_DEGREES = 100  # of freedom, of which half of the claimed noise is found nearly surely


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
            method = "coins" if game.sampling == "poisson" else "pairs"
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
class StepNoise:
    """How large all steps of DP-SGD are together: there was no more noise than that.

    Whatever the batches and their gradients, a step's sum w is something that its noise does not depend on, and the
    noise: |w|^2/(sigma c)^2 is at least chi-squared with as many degrees of freedom as w has numbers (noncentral and,
    given the steps before, stochastically larger), and so is the sum over the steps. Too small a sum refutes the noise.
    Numbers that are rounded too coarsely are left out, see `leakbound.dpsgd.observer`.

    >>> round(StepNoise(square=2500.0, n_degrees=10_000.0).most(1e-5), 3)  # of the claimed noise
    0.515
    """

    square: float
    n_degrees: float
    n_coarse: float = 0.0  # numbers left out: parameters rounded too coarsely to show the noise

    @classmethod
    def of(cls, signals: Signals) -> StepNoise | None:
        """Of all models; None where no steps were seen."""
        if "step_noise" not in signals.arrays:
            return None
        # 0 at the points that are not watched, and the same numbers at all others
        square, n_degrees, n_coarse = signals.array("step_noise").astype(float).max(axis=1).sum(axis=0)
        return cls(float(square), float(n_degrees), float(n_coarse))

    @property
    def testable(self) -> bool:
        """Whether enough is left to say something of the noise."""
        return self.n_degrees > 0 and (self.n_coarse == 0 or self.n_degrees >= LEAST_DEGREES)

    @property
    def note(self) -> str:
        """What a reader should know of the numbers that were left out; empty if none was."""
        if not self.n_coarse:
            return ""
        n_all = self.n_degrees + self.n_coarse
        cause = (
            f"{self.n_coarse:,.0f} of {n_all:,.0f} numbers in the steps are rounded too coarsely to show the claimed "
            "noise (the learning rate is small compared with the spacing of the parameters' floating-point numbers)"
        )
        if self.testable:
            return f"{cause}: they are left out of the test for too little noise"
        return f"the test for too little noise was not made: {cause}"

    def p_value(self) -> float:
        """Of the claimed noise."""
        return float(gammainc(self.n_degrees / 2, self.square / 2))

    def most(self, level: float) -> float:
        """Compute the largest noise that is not rejected, in units of the claimed one."""
        return math.sqrt(self.square / 2 / float(gammaincinv(self.n_degrees / 2, level)))


@dataclass(frozen=True)
class AccountantClaim:
    """What DP-SGD promises by its accountant: a whole curve, and the family of those with more or less noise."""

    dpsgd: DpSgd
    adjacency: Literal["add_remove", "replace_one"]
    delta: float

    @cached_property
    def ceiling(self) -> TradeOff:
        """The promised curve."""
        return self.dpsgd.ceiling(self.adjacency)

    @property
    def epsilon(self) -> float:
        """Promised at delta."""
        return self.ceiling.epsilon(self.delta)

    @property
    def claim(self) -> AccountantEpsilon:
        """The promise at delta, epsilon rounded up."""
        epsilon = math.ceil(1000 * self.epsilon) / 1000 if math.isfinite(self.epsilon) else math.inf
        return AccountantEpsilon("epsilon", epsilon, self.delta, self.adjacency)

    @property
    def training(self) -> Term:
        """The training, as the accountant has it."""
        return Term(
            "dpsgd_accountant_fixed" if self.dpsgd.batches == "fixed" else "dpsgd_accountant",
            noise_multiplier=self.dpsgd.noise_multiplier,
            sample_rate=self.dpsgd.sample_rate,
            steps=self.dpsgd.steps,
        )

    @property
    def text(self) -> str:
        """The promise in words."""
        return f"{self.claim.text}, by {phrases.words(self.training)}"

    def ruled_out(self, claim_test: ClaimTest, level: float) -> float:
        """Epsilon of the least noise that the evidence refuses: no noise with a smaller epsilon explains what was seen.

        The curves fall with the noise, and every noise is tested by its whole curve at the same level; a refusal of
        a true one has at most the probability ``level`` (Mahloujifar, Melis & Chaudhuri 2024).
        """

        @cache  # a curve takes a tenth of a second even with coarse steps
        def curve_of(noise: float) -> TradeOff:
            return replace(self.dpsgd, noise_multiplier=noise).ceiling(self.adjacency, coarseness=10.0)

        @cache
        def is_refused(noise: float) -> bool:
            # delta(infinity) > delta: epsilon is infinite, which promises nothing and cannot be refused
            curve = curve_of(noise)
            return claim_test.curve_p_value(curve) < level and curve.delta(math.inf) <= self.delta

        refused = self.dpsgd.noise_multiplier
        while not is_refused(refused):
            if curve_of(refused).delta(0.01) <= self.delta:
                return 0.0
            refused *= 2
        possible = refused / 2
        while is_refused(possible):  # ends, because with ever less noise epsilon is infinite
            refused, possible = possible, possible / 2
        least_noise = bisect(is_refused, inside=refused, outside=possible, rtol=0.01, geometric=True)
        return curve_of(least_noise).epsilon(self.delta)


def accountant_verdict(
    promise: AccountantClaim,
    claim_test: ClaimTest,
    findings: Sequence[Finding],
    noise: StepNoise | None = None,
    noise_tests: Sequence[NoiseTest] = (),
    steps: StepLevel | None = None,
) -> Verdict:
    """Test an accountant's curve, and whether the steps have the noise and the batches that it counts on."""
    level = claim_test.level - claim_test.of_noise * len(noise_tests)  # union bound: all tests together keep it
    if noise is not None and noise.testable:
        level -= claim_test.of_noise
    if steps is not None:
        level -= claim_test.of_steps
    fault = _fault(promise, claim_test, noise, noise_tests, steps)
    untested = Verdict(
        promise.claim,
        "cannot_be_tested",
        "curve",
        promise.epsilon,
        reason=claim_test.reason,
        training=promise.training,
    )
    if not claim_test.evidence and fault is None:
        return untested
    if not claim_test.evidence:
        return replace(untested, word="refuted", measured=0.0, confidence=1 - level, reason=fault)
    is_refuted = fault is not None or claim_test.curve_p_value(promise.ceiling) < level
    attack, operating_point = _operating_point(promise.ceiling, findings)
    measured = promise.ruled_out(claim_test, level)
    return replace(
        untested,
        word="refuted" if is_refuted else "not_refuted",
        measured=measured,
        confidence=1 - level,
        attack=attack,
        operating_point=operating_point,
        reason=fault,
    )


def _fault(
    promise: AccountantClaim,
    claim_test: ClaimTest,
    noise: StepNoise | None,
    noise_tests: Sequence[NoiseTest],
    steps: StepLevel | None,
) -> Term | None:
    """Say what is wrong with the steps, the most specific reason first; None if no test of them refutes the claim."""
    level = claim_test.of_noise
    refused = [test for test in noise_tests if test.log_p < math.log(level)]
    reasons = [test.reason for test in refused if test.narrow]
    if noise is not None and noise.testable and noise.p_value() < level:
        sigma = promise.dpsgd.noise_multiplier
        most = sigma * noise.most(level)
        reasons.append(Term("too_little_noise", most=most, level=100 * (1 - level), claimed=sigma))
    of_steps = _more_than_claimed(steps, claim_test.of_steps) if steps is not None else None
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


def verdict(claim: Claim, game: Game, claim_test: ClaimTest, findings: Sequence[Finding]) -> Verdict:
    """Test a claim."""
    try:
        claim.in_game(game)
        if claim.quantity == "eta":
            measured = _accuracy(claim, game, claim_test)
        else:
            measured = _lower(claim, game, claim_test)
    except NotApplicable as reason:
        return Verdict(claim, "cannot_be_tested", claim.quantity, claim.value, reason=reason.reason)
    word = "refuted" if measured > claim.value else "not_refuted"
    attack, operating_point = _operating_point(claim.ceiling(game), findings)
    return Verdict(claim, word, claim.quantity, claim.value, measured, 1 - claim_test.level, attack, operating_point)


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


def _accuracy(claim: Claim, game: Game, claim_test: ClaimTest) -> float:
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
