"""From signals to findings, curves and records: attacks, metrics and claims meet here."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from leakbound import metrics
from leakbound.auditing.claim_tests import ClaimTest, Evidence, judge_claim
from leakbound.auditing.groups import AttackedGroups, Grouped, OnGroups
from leakbound.auditing.observed import FindingSpec, ObservedRelease
from leakbound.auditing.policy import Ends, Levels, ends_of, structure_findings
from leakbound.auditing.private_training import PrivateTraining
from leakbound.auditing.quality import quality
from leakbound.auditing.records import RecordTable, record_risk
from leakbound.auditing.slices import by_slice
from leakbound.bounds import BOUNDS
from leakbound.bounds.generalisation import gap_bound
from leakbound.core.findings import Finding, Scope, Term
from leakbound.core.intervals import Interval
from leakbound.core.tradeoff import EpsilonDelta
from leakbound.core.tradeoff.claims import Claim
from leakbound.core.types import Attack, NotApplicable, Scores
from leakbound.dpsgd.promise import DEFAULT_DELTA
from leakbound.metrics import epsilon
from leakbound.metrics.best_guess import advantage_of
from leakbound.plans.limits import OF_GROUPS, Limit
from leakbound.reports import Curve
from leakbound.reports.about import DataFacts, FreshFacts, GamesFacts, GroupsFacts, ReleaseFacts, SliceFacts
from leakbound.reports.below_chance import below_chance

Array = np.ndarray
BAND_RATES = 40  # where a band is drawn
GIVEN_SPLITS = {"one_model", "synthetic", "signals", "scores"}  # games in which the user says who was in


@dataclass(frozen=True)
class Judgement:
    """What the report holds of one release."""

    observed: ObservedRelease
    findings: Sequence[Finding]
    curves: Sequence[Curve]
    records: RecordTable
    facts: ReleaseFacts
    ends: Sequence[Ends] = ()
    groups: AttackedGroups | None = None


def judge(
    observed: ObservedRelease,
    attacks: Sequence[Attack],
    fpr: Sequence[float],
    confidence: float,
    # accuracy and precision are reported at this fraction of members, whatever it is in the game
    prior: float = 0.5,
    limits: Sequence[Limit] = (),
    levels: Levels | None = None,
    training: PrivateTraining | None = None,  # if the release is one by DP-SGD
) -> Judgement:
    """Attack one release and measure how far the attacks get.

    An attack that does not apply becomes a finding with its reason; any other exception stops the audit.
    """
    findings: list[Finding] = []
    curves: list[Curve] = []
    ends: list[Ends] = []
    grouped = Grouped.of(observed)
    at_once = 1 - (1 - confidence) / max(len(attacks) * len(grouped.measured), 1)
    group_levels = None
    if levels is not None and any(limit.quantity in OF_GROUPS for limit in limits):
        group_levels = grouped.levels(levels.release, levels.refusal)
    on_groups: list[OnGroups] = []
    areas: dict[str, Interval] = {}  # in the game of removed records

    def play(attack: Attack) -> None:
        """Measure one attack, whose scores are gone before the next one is played."""
        try:
            scores = observed.by_unit(attack(observed.signals))
        except NotApplicable as reason:
            findings.append(observed.finding(FindingSpec("accuracy", "lower", attack.name, attack.source), reason))
            return
        measured = list(measure(observed, attack, scores, fpr, confidence, prior))
        findings.extend(measured)
        if any(finding.value is not None for finding in measured):
            curves.append(measured_curve(observed, attack.name, scores, confidence))
        areas.update(area_at_once(observed, scores, len(attacks), confidence))
        on_groups.append(grouped.attacked(attack.name, attack.source, scores, at_once, group_levels))
        if levels is not None:
            ends.append(ends_of(attack.name, scores, limits, levels))

    for attack in attacks:
        play(attack)
    best = strongest(findings)
    best_attack = next((attack for attack in attacks if attack.name == best), None)
    exposure = record_risk(observed, best_attack, confidence)
    sliced = by_slice(observed, best_attack, fpr, confidence, prior)
    claim_test = ClaimTest.of(observed.signals, attacks, observed.by_unit, observed.n_looks)
    findings += [exposure.finding, _epsilon(observed, claim_test, confidence), _gap(observed, prior, confidence)]
    findings += [baseline_finding(observed, prior), *finding_without_model(observed)]
    findings += [observed.finding(spec, number) for spec, number in observed.measured]
    findings += [*quality(observed, confidence), *structure_findings(observed)]
    findings += told_apart(observed, areas, len(attacks), confidence)
    # claims are about all records, and so are their tests: slices and groups come afterwards
    evidence = _evidence(observed, claim_test, list(findings), training)
    findings += sliced.findings
    findings += grouped.findings(observed, on_groups, confidence)
    curves += [claimed_curve(observed, claim, evidence) for claim in observed.claims]
    if training is not None:
        findings += training.findings(observed, evidence, attacks, confidence)
        if not observed.has_units:  # of which an accountant of single records says nothing
            curves.append(training.curve(observed.name, evidence))
    exposed = None  # unless single records could be tested
    if exposure.games is not None and exposure.games.first_exposed is not None:
        exposed = exposure.exposed
    facts = facts_of(observed, best, exposure.games, sliced.facts, grouped.facts(exposed, len(on_groups)))
    of_groups = None if group_levels is None else AttackedGroups(grouped, on_groups, group_levels)
    return Judgement(observed, findings, curves, exposure.records, facts, ends, of_groups)


def measure(
    observed: ObservedRelease,
    attack: Attack,
    scores: Scores,
    fpr: Sequence[float],
    confidence: float,
    prior: float = 0.5,
) -> Iterator[Finding]:
    """Yield the findings of one attack."""

    def finding(
        quantity: str, bound_type: Any, at: Mapping[str, float], metric: Callable[..., Interval], *parameters: Any
    ) -> Finding:
        spec = FindingSpec(quantity, bound_type, attack.name, attack.source, at)
        try:
            return observed.finding(spec, metric(scores, *parameters))
        except NotApplicable as reason:
            return observed.finding(spec, reason)

    n_targets, n_points = scores.value.shape
    accuracy = cache(lambda at_prior: metrics.accuracy(scores, at_prior, confidence))
    yield finding("accuracy", "lower", {"prior": prior}, lambda _: accuracy(prior))
    yield finding("advantage", "lower", {}, lambda _: advantage_of(accuracy(0.5)))
    yield finding("auc", "point", {}, metrics.auc, confidence)
    for rate in fpr:
        yield finding("tpr", "lower", {"fpr": rate}, metrics.tpr_at_fpr, rate, confidence)
    # the rate of these models alone differs from the one above where there are several models and several points
    if n_targets > 1 and n_points > 1:
        for rate in fpr:
            at = {"fpr": rate}
            yield finding("tpr_these_models", "lower", at, metrics.tpr_at_fpr, rate, confidence, "these_models")
    for rate in fpr:
        yield finding("ppv", "point", {"fpr": rate, "prior": prior}, metrics.ppv, rate, prior, confidence)
    for inside in (True, False):
        at = {"inside": float(inside)}
        yield finding("average_precision", "point", at, metrics.average_precision, confidence, inside)


def measured_curve(observed: ObservedRelease, name: str, scores: Scores, confidence: float) -> Curve:
    """Compute the ROC with its band, from ten false positives or the strictest threshold on, where one exists."""
    n_nonmember = int(scores.member.size - np.count_nonzero(scores.member))
    roc = metrics.roc(scores)
    inner = np.unique(roc.at[(roc.at > 0) & (roc.at < 1)])
    if len(inner) < 2:  # a single threshold is a point, not a curve
        return Curve(name, observed.name, "measured", roc, n_nonmember=n_nonmember)
    # from ten false positives on: with fewer the band is too wide to show anything
    at = np.geomspace(max(inner[0], min(10 / n_nonmember, 0.5)), 1.0, BAND_RATES + 1)[:-1]
    _, low, high = metrics.roc_band(scores, at, confidence)
    has_band = np.isfinite(low)  # where few models cannot show the rate there is no band
    if not has_band.any():
        return Curve(name, observed.name, "measured", roc, n_nonmember=n_nonmember)
    band = (at[has_band].tolist(), low[has_band].tolist(), high[has_band].tolist())
    return Curve(name, observed.name, "measured", roc, *band, confidence, n_nonmember)


def strongest(findings: Sequence[Finding]) -> str:
    """Name the attack whose accuracy has the largest lower limit; "" if none applies."""
    accuracies = [
        finding for finding in findings if finding.quantity == "accuracy" and finding.attack and finding.low is not None
    ]
    if not accuracies:
        return ""
    return max(accuracies, key=lambda accuracy: accuracy.low or 0.0).attack


def _epsilon(observed: ObservedRelease, claim_test: ClaimTest, confidence: float) -> Finding:
    """Return the largest lower bound of epsilon over the attacks, corrected for their number."""
    # at the delta of the claims, so that the bound can be compared with them
    delta = max([claim.delta for claim in observed.claims], default=0.0) or DEFAULT_DELTA
    attack, number = claim_test.epsilon(delta, confidence)
    # where the user says who was in, the bound needs that members were drawn at random: an assumption, unless the test
    # for one source found a difference, which is then assumed not to be the cause, or makes the bound void
    split_is_given = observed.signals.game.kind in GIVEN_SPLITS
    assumptions = [Term("random_members")] if split_is_given else []
    if observed.sources is not None and observed.sources.found:
        assumptions = [Term("not_by_the_shift")]
    if observed.sources is not None and observed.sources.stops:
        number = NotApplicable("shift")
    game = observed.signals.game
    if game.kind == "scores" and game.n_targets > 1 and not claim_test.compares_targets:
        assumptions.append(Term("scores_of_one_model"))
    source = epsilon.METHODS[claim_test.method].source
    spec = FindingSpec("epsilon", "lower", attack, source, {"delta": delta}, assumptions, scope=Scope("every"))
    return observed.finding(spec, number)


def area_at_once(
    observed: ObservedRelease, scores: Scores, n_attacks: int, confidence: float
) -> Mapping[str, Interval]:
    """Return the area under the ROC of an attack on removed records, at a level at which those of all attacks hold."""
    if observed.signals.game.kind != "forgotten":
        return {}
    return {scores.attack: metrics.auc(scores, 1 - (1 - confidence) / n_attacks)}


def told_apart(
    observed: ObservedRelease, areas: Mapping[str, Interval], n_attacks: int, confidence: float
) -> list[Finding]:
    """Report the strongest attack on records that were removed, corrected for the choice among all attacks.

    No attack alone decides: squared residuals are no Gaussians, and LiRA misses most removals by a gradient step.
    """
    if observed.signals.game.kind != "forgotten":
        return []
    spec = FindingSpec("told_apart", "point", scope=Scope("average"))
    if not areas:
        return [observed.finding(spec, NotApplicable("no_attack"))]
    best = max(areas, key=lambda name: (areas[name].low, areas[name].value))
    finding = observed.finding(replace(spec, attack=best), areas[best])
    method = (*finding.method, Term("all_attacks_at_once", intervals=n_attacks))
    return [replace(finding, method=method, confidence=confidence)]


def finding_without_model(observed: ObservedRelease) -> list[Finding]:
    """Report the classifier that does not see the model, where the user says who was in."""
    if observed.sources is None:
        return []
    spec = FindingSpec("membership_without_model", "point", source="das2024", scope=Scope("every"))
    return [observed.finding(spec, observed.sources.number)]


def baseline_finding(observed: ObservedRelease, prior: float) -> Finding:
    """Report the accuracy of an attacker who looks at nothing, with which every accuracy is compared."""
    value = max(prior, 1 - prior)
    number = Interval(value, value, value, 1.0, method=(Term("better_prior_guess"),))
    spec = FindingSpec("baseline_accuracy", "point", operating_point={"prior": prior}, scope=Scope("every"))
    # known exactly, not estimated: no interval
    return replace(observed.finding(spec, number), low=None, high=None, confidence=None, status="certified")


def _gap(observed: ObservedRelease, prior: float, confidence: float) -> Finding:
    """Report the accuracy that the gap of the 0-1 loss proves to be possible, whatever attacks were tried."""
    game = observed.signals.game
    spec = FindingSpec("accuracy", "lower", source=BOUNDS["gap"].source, operating_point={"prior": prior})
    member = game.target_member
    try:
        loss = 1.0 - observed.signals.targets("correct")
    except NotApplicable as reason:
        return observed.finding(spec, reason)
    if (member.all(axis=1) | ~member.any(axis=1)).any():
        return observed.finding(spec, NotApplicable("no_members_and_others"))
    return observed.finding(spec, gap_bound(loss, member, 0.0, 1.0, prior, confidence))


def _evidence(
    observed: ObservedRelease, scores: ClaimTest, findings: Sequence[Finding], training: PrivateTraining | None
) -> Evidence:
    """Collect what the claims about a release are judged by."""
    sources = observed.sources
    evidence = Evidence(
        observed.signals.game,
        scores,
        findings,
        differs=Term("shift") if sources is not None and sources.stops else None,
        below=below_chance(findings),
        condition=Term("if_shift_is_not_the_cause") if sources is not None and sources.found else None,
    )
    if training is None or observed.has_units:
        return evidence
    return replace(evidence, promise=training.promise, steps=training.evidence(observed, scores.of_noise))


def claimed_curve(observed: ObservedRelease, claim: Claim, evidence: Evidence) -> Curve:
    """Draw a claim as the ceiling of the game that was played, with its verdict."""
    try:
        ceiling = claim.ceiling(observed.signals.game)
    except NotApplicable:  # the claim says nothing of this game: everything is allowed
        ceiling = EpsilonDelta(math.inf)
    return Curve(claim.text, observed.name, "claimed", ceiling, verdict=judge_claim(claim, evidence))


def _n_units(observed: ObservedRelease) -> int | None:
    """Count the units of all records, where some of them have several."""
    points = observed.signals.points
    if points is None or points.group is None:
        return None
    n_units = len(np.unique(points.group))
    return n_units if n_units < len(points) else None


def _fresh(observed: ObservedRelease) -> FreshFacts | None:
    """Say how data sets were drawn anew from a file, where they were."""
    game = observed.signals.game
    if game.size is None or game.pool is None:
        return None
    return FreshFacts(targets=game.sampled_from or observed.n_units, size=game.size, pool=game.pool)


def facts_of(
    observed: ObservedRelease,
    best: str,
    games: GamesFacts | None,
    slices: SliceFacts | None = None,
    groups: GroupsFacts | None = None,
) -> ReleaseFacts:
    """Collect the facts about a release that the report states."""
    game, data = observed.signals.game, observed.data
    # What holds for any release; what its own kind knows better replaces it below.
    facts = {
        "name": observed.name,
        "title": observed.name,
        "description": "",
        "data": DataFacts(
            name="" if data is None else data.name,
            digest="" if data is None else data.points.digest[:16],
            records=game.member.shape[1],
        ),
        "game": game.kind,
        "sampling": game.sampling,
        "models": game.n_models,
        "targets": game.n_targets,
        "references": game.n_references,
        "target_points": observed.n_units,
        "population": len(game.population),
        "prior": float(game.prior),
        "best": best,
        "games": games,
        "knowledge": None,
        "files": {},
        "slices": slices,
        "groups": groups,
        "sampled_from": game.sampled_from,
        "fresh": _fresh(observed),
        "shared": observed.n_shared,
        "units": _n_units(observed),
    }
    return ReleaseFacts(**{**facts, **observed.facts})
