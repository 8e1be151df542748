"""Play a game against releases: draw who is in, train and observe the models, and report what they reveal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from leakbound import data as data_room
from leakbound.attacks import Attack
from leakbound.auditing.canaries import Setting, is_private, plant
from leakbound.auditing.claim_tests import (
    NO_ATTACK,
    AccountantClaim,
    ClaimTest,
    StepNoise,
    accountant_verdict,
)
from leakbound.auditing.evaluate import DEFAULT_DELTA
from leakbound.auditing.noise_tests import noise_tests, record_notes
from leakbound.auditing.observed import FindingSpec, ObservedRelease
from leakbound.auditing.policy import with_claims
from leakbound.auditing.rehearsal import refuse_idle, rehearse
from leakbound.auditing.report import assemble
from leakbound.auditing.setup import draw, note_of_queries, queried
from leakbound.bounds import BOUNDS
from leakbound.core import reasons
from leakbound.core.findings import Finding, Scope, Term
from leakbound.core.intervals import Interval, sampling_error
from leakbound.core.tradeoff.claims import Claim
from leakbound.core.tradeoff.families import Gaussian
from leakbound.core.types import Game, NotApplicable, Points
from leakbound.data import Data
from leakbound.data.columns import alike_levels, date_notes, identifier_notes, repeated_names
from leakbound.dpsgd.accountant import epsilon_at_least
from leakbound.dpsgd.step_level import StepLevel
from leakbound.metrics.epsilon import METHODS
from leakbound.plans.audits import AuditPlan, JudgedPlan, refuse_unknown
from leakbound.plans.games import Queries
from leakbound.releases.factory import Described, Structured, adapted, owner_notes
from leakbound.releases.specs import first_line
from leakbound.reports import Curve, Report
from leakbound.runtime.observe import Execution, observe, observe_finished, store_notes
from leakbound.runtime.progress import progress

if TYPE_CHECKING:
    from leakbound.dpsgd.network import PrivateNetwork

TRAINING_ASSUMPTIONS = {
    "poisson": (Term("training_as_described"), Term("poisson_batches")),
    "fixed": (Term("training_as_described"), Term("fixed_batches")),
}
OWN_LAYERS_UNSEEN = Term("own_layers_unseen")
CANARIES_INDEPENDENT = Term("canaries_independent")
_ACCOUNTED = 1.01  # the accountant rounds epsilon up, by less than a hundredth: a claim of the true mu is not denied
STEP_ASSUMPTIONS = (
    Term("gaussian_steps"),
    Term("independent_noise"),
    Term("fixed_thresholds"),
    Term("counted_rate"),
)


def play(
    plan: AuditPlan,
    attacks: Sequence[Attack],
    releases: Sequence[Described],
    loaded: Data,
    execution: Execution,
    command: str = "",
    queries: Queries | None = None,
) -> Report:
    """Draw the game, make the releases, attack them and report.

    A release that is trained by DP-SGD is compared with its accountant: the report has the curve as certified, with a
    verdict, and its epsilon next to those that the attacks prove.
    """
    names = [release.name for release in releases]
    if len(set(names)) < len(names):
        raise ValueError(
            f"two models have the same name; names: {', '.join(names)}; give each a name or parameters of its own"
        )
    refuse_unknown(plan, names)
    # everything that can be refused is refused before the first fit: games, claims, promises, then trial fits
    settings = [setting(plan, attacks, release, loaded) for release in releases]
    asked = [queried(audited.release, audited.data.points, queries or plan.queries, plan.seed) for audited in settings]
    claims = [claims_of(plan, audited.release.name, audited.game) for audited in settings]
    promises = [promise(audited, own_claims) for audited, own_claims in zip(settings, claims, strict=True)]
    failed: dict[str, str] = {}
    # what is not in a store is no fault of the model
    most_failed = 0 if execution.from_store else len(settings) - 1
    if len(settings) > 1 or any(attack.by_name for attack in attacks):
        rehearsals = []
        with progress("trial fits"):
            for release, audited in zip(asked, settings, strict=True):
                what = (release, audited.data.points, audited.game, audited.wanted(attacks), plan.seed)
                with _others_go_on(release.name, failed, most_failed):
                    rehearsals.append(rehearse(*what))
        refuse_idle(attacks, rehearsals)
    observed_releases, played = [], []
    for audited, release, own_claims, own_promise in zip(settings, asked, claims, promises, strict=True):
        if release.name not in failed:
            with _others_go_on(release.name, failed, most_failed):
                done, observed = _observed(audited, release, own_claims, plan, attacks, loaded, execution)
                observed_releases.append(observed)
                played.append((done, own_promise))
    of_finished = _notes_of_finished(settings, observed_releases)
    settings = [audited for audited, _ in played]
    notes = [
        *of_finished,
        *loaded.notes,
        *_notes(loaded.points, settings, execution, plan.confidence),
        *note_of_queries(asked),
        *_notes_of_noise(observed_releases),
    ]
    report = assemble(plan, attacks, observed_releases, notes, command, failed)
    facts = {"execution": execution.facts, "owner_notes": tuple(owner_notes(audited.release for audited in settings))}
    report = replace(report, about=report.about.model_copy(update=facts))
    for (audited, accountant_claim), observed in zip(played, observed_releases, strict=True):
        if accountant_claim is not None:
            report = _with_false_claims(report, observed, accountant_claim)
            report = with_accountant(
                report,
                observed,
                accountant_claim,
                attacks,
                plan.confidence,
                tensors=audited.release.tensor_names() if is_private(audited.release) else [],
                canaries_independent=_canaries_are_independent(audited),
                own_layers_unseen=_own_layers_unseen(audited),
            )
    return with_claims(report)


def _observed(
    audited: Setting,
    release: Described,
    claims: Sequence[Claim],
    plan: AuditPlan,
    attacks: Sequence[Attack],
    loaded: Data,
    execution: Execution,
) -> tuple[Setting, ObservedRelease]:
    """Make the models of a release, or take those that are finished, and observe them; the game is of these alone."""
    points = audited.data.points.unnamed
    what = (release, points, audited.game.member, audited.wanted(attacks), plan.seed, execution)
    if execution.from_store == "finished":
        arrays, is_made = observe_finished(*what)
        if not is_made.all():
            audited = replace(audited, game=audited.game.of_models(is_made))
    else:
        arrays = observe(*what)
    observed = replace(audited.observed(arrays, claims), n_looks=plan.n_looks)
    wants_structure = plan.policy is not None and plan.policy.structure is not None
    if wants_structure and isinstance(audited.release, Structured):
        observed = replace(observed, structure=audited.release.structure(loaded.points, plan.seed))
    return audited, observed


def _notes_of_finished(settings: Sequence[Setting], releases: Sequence[ObservedRelease]) -> list[str]:
    """Say of which releases only a part of the models was finished."""
    planned = {audited.release.name: audited.game.n_models for audited in settings}
    return [
        f"{observed.name}: {observed.signals.game.n_models:,} of {planned[observed.name]:,} models were finished when "
        "this audit was made, and it is of these alone"
        for observed in releases
        if observed.signals.game.n_models < planned[observed.name]
    ]


@contextmanager
def _others_go_on(name: str, failed: dict[str, str], most_failed: int) -> Iterator[None]:
    """Note that a release cannot be fitted, and let the audit of the others go on; without others it is an error."""
    try:
        yield
    except (ValueError, RuntimeError, MemoryError) as error:
        if len(failed) == most_failed:
            raise
        failed[name] = first_line(error)


def setting(plan: AuditPlan, attacks: Sequence[Attack], release: Described, loaded: Data) -> Setting:
    """Combine a release with the data and the game of its audit: the same for all, unless canaries are planted.

    >>> from leakbound import data
    >>> from leakbound.releases.factory import release_from
    >>> tree = release_from("sklearn.tree:DecisionTreeClassifier", {})
    >>> setting(AuditPlan(n_models=4), [], tree, data.load("wine")).game.member.shape
    (4, 178)
    """
    release = adapted(release, loaded.points)
    if plan.planted is not None:
        return plant(plan, release, loaded)
    return Setting(release, loaded, draw(plan.game, plan.models, loaded.points, attacks, plan.seed))


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
        dpsgd = replace(dpsgd, sample_rate=_largest_fraction(setting.release, setting.game))
    # with coins a neighbour has one record more or less; with halves of fixed size a record is swapped
    adjacency = "add_remove" if setting.game.sampling == "poisson" else "replace_one"
    delta = max([claim.delta for claim in claims], default=0.0) or DEFAULT_DELTA
    return AccountantClaim(dpsgd, adjacency, delta)


def _with_false_claims(report: Report, observed: ObservedRelease, promise: AccountantClaim) -> Report:
    """Say of claims that DP-SGD as declared does not keep that they are false, whatever the attacks have found.

    An accountant's calculation is no measurement: such a claim is not refuted, unless an attack refutes it too.
    """
    if _has_units(observed):
        return report
    curves = []
    for curve in report.curves:
        if curve.release == observed.name and curve.verdict is not None and curve.verdict.word != "refuted":
            reason = denied(curve.verdict.claim, promise)
            if reason is not None:
                word = "cannot_hold" if "least" in reason.values else "not_supported"
                curve = replace(curve, verdict=replace(curve.verdict, word=word, reason=reason))
        curves.append(curve)
    return replace(report, curves=tuple(curves))


def denied(claim: Claim, promise: AccountantClaim) -> Term | None:
    """Return why the accountant denies a claim of epsilon or mu; None if it does not.

    A mu is compared by the epsilon that it allows at one delta: what is more there is more than mu.
    """
    dpsgd = promise.dpsgd
    # the rate of fixed batches is that of the neighbours which the game has
    if claim.quantity == "eta" or (dpsgd.batches == "fixed" and claim.adjacency != promise.adjacency):
        return None
    delta = claim.delta or DEFAULT_DELTA  # what is more than epsilon at this delta is more at 0
    given = dpsgd.ceiling(claim.adjacency or promise.adjacency).epsilon(delta)
    is_epsilon = claim.quantity == "epsilon"
    allowed = claim.value if is_epsilon else float(Gaussian(claim.value).epsilon(delta))
    if allowed * (1.0 if is_epsilon else _ACCOUNTED) >= given:
        return None
    least = 0.0
    if claim.adjacency == "add_remove" and dpsgd.batches == "poisson":
        least = epsilon_at_least(dpsgd.noise_multiplier, dpsgd.sample_rate, dpsgd.steps, delta)
    is_certain = least > allowed
    known = {"given": given, "delta": delta} | ({"least": least} if is_certain else {})
    if is_epsilon:
        return Term("declared_gives_more" if is_certain else "accountant_gives_more", **known)
    reason = "declared_gives_more_than_mu" if is_certain else "accountant_gives_more_than_mu"
    return Term(reason, **known, mu=claim.value, allowed=allowed)


def claims_of(plan: JudgedPlan, release: str, game: Game) -> list[Claim]:
    """List the claims about a release, in the game that is played."""
    baseline_accuracy = max(game.prior, 1 - game.prior)
    claims = []
    for claim in plan.claim:
        if claim.model not in ("", release):
            continue
        if claim.epsilon is not None:
            claims.append(Claim("epsilon", claim.epsilon, claim.delta, claim.adjacency))
        elif claim.mu is not None:
            claims.append(Claim("mu", claim.mu, 0.0, claim.adjacency))
        else:
            eta = claim.eta if claim.eta is not None else (claim.accuracy or 0.0) - baseline_accuracy
            if not 0 <= eta <= 1 - baseline_accuracy:
                raise ValueError(
                    f"a claim of eta = {eta:g} is not possible where the baseline accuracy is {baseline_accuracy:.3g}; "
                    f"eta is from 0 to {1 - baseline_accuracy:.3g}, accuracy from {baseline_accuracy:.3g} to 1"
                )
            claims.append(Claim("eta", eta))
    return claims


def _notes(points: Points, settings: Sequence[Setting], execution: Execution, confidence: float) -> Iterator[str]:
    """Yield what a reader of the report should know of the data and of the run."""
    n_repeated = int(data_room.repeated(points).sum())
    if n_repeated:
        repeats = f"{n_repeated:,} of {len(points):,} points repeat an earlier one in all features and the label"
        what_to_do = "; if they are rows of the same unit, name its column as group (--group), else remove the repeats"
        yield repeats + (what_to_do if points.group is None else "")
    yield from identifier_notes(points)
    yield from date_notes(points)
    yield from alike_levels(points)
    yield from repeated_names(points)
    yield from _note_of_sample(points, settings[0].game, confidence)
    yield from store_notes([audited.release for audited in settings], execution)
    for audited in settings:
        if _own_layers_unseen(audited):
            yield (
                f"{audited.release.name}: {reasons.words(OWN_LAYERS_UNSEEN)}. Those are tested by the first steps of a "
                "training on copies of one record"
            )


def _note_of_sample(points: Points, game: Game, confidence: float) -> Iterator[str]:
    """Yield how far all records may be from those that were drawn to be attacked."""
    if game.sampled_from is None:
        return
    n = game.n_target_points if points.group is None else len(np.unique(points.group[game.target_points]))
    yield (
        f"The attacked records are a random sample of {n:,} of {game.sampled_from:,}. Numbers, intervals and the most "
        "exposed record are about the sample. The average over all of a quantity from 0 to 1, as the rate at which a "
        "fixed attack is right, differs from that of the sample by at most "
        f"{sampling_error(n, game.sampled_from, confidence):.2g} (confidence {confidence:g}; Serfling 1974)"
    )


def _notes_of_noise(releases: Sequence[ObservedRelease]) -> Iterator[str]:
    """Yield what could not be measured of the noise in the steps of DP-SGD."""
    for observed in releases:
        noise = StepNoise.of(observed.signals)
        if noise is not None and noise.note:
            yield f"{observed.name}: {noise.note}"
        for note in record_notes(observed.signals):
            yield f"{observed.name}: {note}"


def _own_layers_unseen(setting: Setting) -> bool:
    """Whether the canaries are records of an added layer, so that nothing is seen of the network's own layers."""
    return setting.planted == "dirac" and is_private(setting.release) and setting.release.train is not None


def _largest_fraction(release: PrivateNetwork, game: Game) -> float:
    """Return the largest fraction of the records in use that a batch of fixed size can be, whoever is in."""
    from leakbound.dpsgd.observer import batch_size  # here, for it needs PyTorch

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


def with_accountant(
    report: Report,
    observed: ObservedRelease,
    promise: AccountantClaim,
    attacks: Sequence[Attack],
    confidence: float,
    *,
    tensors: Sequence[str],
    canaries_independent: bool,
    own_layers_unseen: bool,
) -> Report:
    """Add to a report the accountant's curve and epsilon, and the epsilon below which no noise explains the attacks.

    The verdict, and the epsilon that holds for any guarantee, do not assume that canaries are independent.
    """
    at, source = {"delta": promise.delta}, BOUNDS["dpsgd"].source
    # the accountant's curve is for neighbours that differ in one record, not in the several records of a unit
    if _has_units(observed):
        spec = FindingSpec("epsilon", "upper", source=source, operating_point=at, scope=Scope("every"))
        unknown = observed.finding(spec, NotApplicable("units_of_several_records"))
        return replace(report, findings=(*report.findings, unknown))
    certified = Finding(
        "epsilon", promise.epsilon, operating_point=at, bound_type="upper", status="certified", release=observed.name,
        method=(Term("privacy_loss_distributions"),), assumptions=TRAINING_ASSUMPTIONS[promise.dpsgd.batches],
        source=source,
    )  # fmt: skip
    claim_test = ClaimTest.of(observed.signals, attacks, observed.by_unit, observed.n_looks)
    of_all = [finding for finding in report.findings if not finding.scope.is_part]
    own_findings = [finding for finding in of_all if finding.release == observed.name]
    limits = [OWN_LAYERS_UNSEEN] if own_layers_unseen else []
    findings = [certified]
    steps = StepLevel.of(observed.signals, promise.dpsgd)
    if steps is not None:
        findings.append(_step_by_step(observed, promise, steps, confidence, limits))
    if canaries_independent:
        of_canaries = ClaimTest.of_independent_canaries(observed.signals, attacks)
        findings.append(_by_the_curve(observed, promise, of_canaries, confidence, [CANARIES_INDEPENDENT, *limits]))
    findings.append(_by_the_curve(observed, promise, claim_test, confidence, limits))
    tests = noise_tests(observed.signals, promise.dpsgd, tensors, claim_test.of_noise)
    noise = StepNoise.of(observed.signals)
    verdict = accountant_verdict(promise, claim_test, own_findings, noise, tests, steps)
    curve = Curve(promise.text, observed.name, "certified", promise.ceiling, verdict=verdict)
    return replace(report, findings=(*report.findings, *findings), curves=(*report.curves, curve))


def _has_units(observed: ObservedRelease) -> bool:
    """Whether the game is of units of several records, of which an accountant of single records says nothing."""
    return observed.group is not None and len(np.unique(observed.group)) < len(observed.group)


def _canaries_are_independent(setting: Setting) -> bool:
    """Whether DP-SGD, with whatever noise, makes the scores of canaries independent of each other.

    Each Dirac canary has a coordinate of its own, and Poisson batches. But records whose batches are not known add
    gradients to the coordinates of several canaries, unless these have a layer of their own, as in a user-supplied
    training.
    """
    release = setting.release
    if setting.planted != "dirac" or not is_private(release):
        return False
    return release.train is not None or release.knowledge == "others"


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
    value = promise.ruled_out(claim_test, 1 - confidence)
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
