"""A training by DP-SGD beside its accountant: what is promised, and what the attacks and the steps show of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from leakbound.auditing.canaries import Setting, is_private
from leakbound.auditing.claim_tests import NO_ATTACK, ClaimTest, Evidence, StepEvidence, judge_claim
from leakbound.auditing.noise_tests import StepNoise, noise_tests
from leakbound.auditing.observed import FindingSpec, ObservedRelease
from leakbound.bounds import BOUNDS
from leakbound.core.findings import Finding, Scope, Term
from leakbound.core.intervals import Interval
from leakbound.core.tradeoff.claims import Claim
from leakbound.core.types import Attack, NotApplicable
from leakbound.dpsgd.promise import DEFAULT_DELTA, AccountantClaim
from leakbound.dpsgd.step_level import StepLevel
from leakbound.metrics.epsilon import METHODS
from leakbound.reports import Curve, phrases

TRAINING_ASSUMPTIONS = {
    "poisson": (Term("training_as_described"), Term("poisson_batches")),
    "fixed": (Term("training_as_described"), Term("fixed_batches")),
}
OWN_LAYERS_UNSEEN = Term("own_layers_unseen")
CANARIES_INDEPENDENT = Term("canaries_independent")
STEP_ASSUMPTIONS = (
    Term("gaussian_steps"),
    Term("independent_noise"),
    Term("fixed_thresholds"),
    Term("counted_rate"),
)


def promise(setting: Setting, claims: Sequence[Claim] = ()) -> AccountantClaim | None:
    """Compute what DP-SGD promises by its accountant, for the neighbours of a game.

    Batches of fixed size are a larger fraction of the records where fewer of them are in. In a game of coins the curve
    is that of the fewest, whatever the coins are: of the records that are always in, and one more.
    """
    if not is_private(setting.release):
        return None
    dpsgd = setting.release.dpsgd
    if dpsgd.noise_multiplier == 0:
        raise ValueError(f"{setting.release.name}: noise_multiplier must be > 0; without noise DP-SGD promises nothing")
    if dpsgd.batches == "fixed":
        dpsgd = replace(dpsgd, sample_rate=_largest_fraction(setting))
    # with coins a neighbour has one record more or less; with halves of fixed size a record is swapped
    adjacency = "add_remove" if setting.game.sampling == "poisson" else "replace_one"
    delta = max([claim.delta for claim in claims], default=0.0) or DEFAULT_DELTA
    return AccountantClaim(dpsgd, adjacency, delta)


def promise_text(promise: AccountantClaim) -> str:
    """Write a promise in words."""
    return f"{promise.claim.text}, by {phrases.words(promise.training)}"


def _largest_fraction(setting: Setting) -> float:
    """Return the largest fraction of the records in use that a batch of fixed size can be, whoever is in."""
    from leakbound.dpsgd.observer import batch_size  # here, for it needs PyTorch

    release, game = setting.release, setting.game
    assert is_private(release)
    watched = np.zeros(game.member.shape[1], dtype=bool)
    watched[list(release.watched) or slice(None)] = True
    n_certain = (game.member & ~watched).sum(axis=1)
    fewest = game.member.sum(axis=1)
    if game.sampling == "poisson":  # the fewest records that any coins allow, not those of this draw
        by_coin = np.atleast_2d(game.is_target_point).any(axis=0)
        fewest[:] = (game.member & ~by_coin).sum(axis=1).min() + 1
    # the training takes the expected number of records, half of the watched ones, for its batch size
    sizes = [batch_size(release.dpsgd.sample_rate, float(n) + watched.sum() / 2) for n in n_certain]
    return min(1.0, float(np.max(sizes / fewest)))


@dataclass(frozen=True)
class PrivateTraining:
    """A training by DP-SGD, as it was declared and as far as its audit can see it."""

    promise: AccountantClaim
    tensors: Sequence[str] = ()  # names of the parameter tensors, in the order of their tests
    # with whatever noise, the scores of the canaries do not depend on each other
    canaries_independent: bool = False
    # the canaries are records of an added layer: the attacks see nothing of the network's own layers
    own_layers_unseen: bool = False

    @classmethod
    def of(cls, setting: Setting, promise: AccountantClaim | None) -> PrivateTraining | None:
        """Describe the training of a release; None if it is not one by DP-SGD."""
        release = setting.release
        if promise is None or not is_private(release):
            return None
        is_dirac, by_users_loop = setting.planted == "dirac", release.train is not None
        # Each Dirac canary has a coordinate of its own, and Poisson batches. But records whose batches are not known
        # add gradients to the coordinates of several canaries, unless these have a layer of their own, as in a
        # user-supplied training.
        independent = is_dirac and (by_users_loop or release.knowledge == "others")
        return cls(promise, release.tensor_names(), independent, is_dirac and by_users_loop)

    def evidence(self, observed: ObservedRelease, level: float) -> StepEvidence:
        """Read what the steps show; each test of the noise has this level."""
        dpsgd = self.promise.dpsgd
        return StepEvidence(
            StepNoise.of(observed.diagnostics),
            noise_tests(observed.diagnostics, observed.signals, dpsgd, self.tensors, level),
            StepLevel.of(observed.signals, dpsgd),
        )

    def findings(
        self, observed: ObservedRelease, evidence: Evidence, attacks: Sequence[Attack], confidence: float
    ) -> list[Finding]:
        """Report the accountant's epsilon, and the epsilon below which no noise explains the attacks.

        The last one, which holds for any guarantee, does not assume that canaries are independent.
        """
        promise = self.promise
        at, source = {"delta": promise.delta}, BOUNDS["dpsgd"].source
        # the accountant's curve is for neighbours that differ in one record, not in the several records of a unit
        if observed.has_units:
            spec = FindingSpec("epsilon", "upper", source=source, operating_point=at, scope=Scope("every"))
            return [observed.finding(spec, NotApplicable("units_of_several_records"))]
        certified = Finding(
            "epsilon", promise.epsilon, operating_point=at, bound_type="upper", status="certified",
            release=observed.name, method=(Term("privacy_loss_distributions"),),
            assumptions=TRAINING_ASSUMPTIONS[promise.dpsgd.batches], source=source,
        )  # fmt: skip
        limits = [OWN_LAYERS_UNSEEN] if self.own_layers_unseen else []
        findings = [certified]
        if evidence.steps.level is not None:
            findings.append(_step_by_step(observed, promise, evidence.steps.level, confidence, limits))
        if self.canaries_independent:
            of_canaries = ClaimTest.of_independent_canaries(observed.signals, attacks)
            findings.append(_by_the_curve(observed, promise, of_canaries, confidence, [CANARIES_INDEPENDENT, *limits]))
        findings.append(_by_the_curve(observed, promise, evidence.scores, confidence, limits))
        return findings

    def curve(self, release: str, evidence: Evidence) -> Curve:
        """Draw the accountant's curve, with the verdict on it."""
        promise = self.promise
        verdict = judge_claim(promise, evidence)
        return Curve(promise_text(promise), release, "certified", promise.ceiling, verdict=verdict)


def _by_the_curve(
    observed: ObservedRelease,
    promise: AccountantClaim,
    claim_test: ClaimTest,
    confidence: float,
    limits: Sequence[Term],
) -> Finding:
    """Report the lower bound of epsilon if the noise alone is in doubt."""
    independent = claim_test.method == "independent_canaries"
    source = METHODS[claim_test.method].source if independent else "mahloujifar2024"
    at = {"delta": promise.delta}
    if not claim_test.evidence:
        spec = FindingSpec("epsilon", "lower", source=source, operating_point=at, scope=Scope("every"))
        return observed.finding(spec, NotApplicable(claim_test.reason or NO_ATTACK))
    value = promise.ruled_out(claim_test.curve_p_value, 1 - confidence)
    attack = claim_test.strongest(promise.ceiling)
    method = (*claim_test.evidence[attack].method, Term("whole_curve"))
    assumptions = [Term("dpsgd_but_for_its_noise"), *limits]
    number = Interval(value, value, float("inf"), confidence, "none", method, {"delta": promise.delta})
    spec = FindingSpec("epsilon", "lower", attack, source, at, assumptions, scope=Scope("every"))
    return observed.finding(spec, number)


def _step_by_step(
    observed: ObservedRelease,
    promise: AccountantClaim,
    steps: StepLevel,
    confidence: float,
    limits: Sequence[Term],
) -> Finding:
    """Report the epsilon of the steps as the canaries show them, if each step is a Gaussian mechanism."""
    level = 1 - confidence
    value = steps.epsilon(promise.delta, confidence, promise.adjacency)
    detail = {"delta": promise.delta, "sample_rate": steps.least_rate(level)}
    if math.isfinite(noise := steps.most_noise(level)):
        detail["noise_multiplier"] = noise
    method = (Term("step_by_step"), Term("clopper_pearson"))
    number = Interval(value, value, float("inf"), confidence, "none", method, detail)
    at, assumptions = {"delta": promise.delta}, [*STEP_ASSUMPTIONS, *limits]
    spec = FindingSpec("epsilon", "lower", "", "nasr2023", at, assumptions, scope=Scope("every"))
    return observed.finding(spec, number)
