"""Verdicts of a policy: whether a model may be released, may not, or whether a person must decide.

A limit L is on the strongest attack, max_a q_a. It is kept if the upper end of every attack is at most L, and not kept
if the lower end of one attack is above L; otherwise it is open. An attack that was run, and of which no interval is
known, leaves it open. So does an attack that is wrong more often than a guess, beyond chance.

All limits must be kept for a release, and by all attacks: an intersection-union test (Berger 1982), in which each
interval needs the level of its model alone. One limit that is not kept is enough to refuse, so those intervals also
share the level over limits and attacks (Bonferroni). Both share it over the models of the audit. Then no verdict of the
audit is wrong, with the confidence of the policy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from leakbound import metrics
from leakbound.attacks import ATTACKS, DEFAULT, find
from leakbound.auditing.group_checks import group_checks
from leakbound.auditing.groups import AttackedGroups
from leakbound.auditing.observed import FindingSpec, ObservedRelease
from leakbound.core.findings import Finding, Scope, Term
from leakbound.core.intervals import Interval
from leakbound.core.types import Attack, NotApplicable, Scores
from leakbound.metrics.rates import randomised_tpr
from leakbound.plans.limits import OF_GROUPS, Limit
from leakbound.plans.policies import PolicyPlan, StructurePlan
from leakbound.releases.kept_records import WORST_FIRST
from leakbound.releases.structure import Structure
from leakbound.reports import Verdict as ClaimVerdict
from leakbound.reports.about import CheckFacts, DecisionFacts, term_facts
from leakbound.reports.below_chance import GIVEN, LARGEST_GIVEN

Outcome = Literal["kept", "not_kept", "open"]
Verdict = Literal["release", "ask", "do_not_release"]
NO_SUCH_RATE = {"one_threshold", "strictest_threshold"}
SOURCE = "sacroml2026"  # the checks of a fitted model
HELD = {"rows": "holds_rows", "names": "holds_names", "values": "holds_values", "column": "holds_column"}
MOST_NAMED = 5  # attributes
PRIOR = 0.5  # at which a policy limits accuracy, whatever the prior of the report


@dataclass(frozen=True)
class Levels:
    """Confidence of the two kinds of intervals."""

    release: float
    refusal: float

    @classmethod
    def shared(cls, confidence: float, n_models: int, n_attacks: int, n_limits: int) -> Levels:
        """Share the error level over models, and for refusals over attacks and limits too.

        >>> Levels.shared(0.95, n_models=5, n_attacks=1, n_limits=1)
        Levels(release=0.99, refusal=0.99)
        """
        alpha = 1 - confidence
        release = 1 - alpha / n_models
        refusal = 1 - alpha / (n_models * max(n_attacks, 1) * max(n_limits, 1))
        return cls(round(release, 12), round(refusal, 12))


@dataclass(frozen=True)
class AttackEnds:
    """What one attack reaches of one limited quantity."""

    attack: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    reason: Term | None = None


Ends = Mapping[Limit, AttackEnds]


def ends_of(attack: str, scores: Scores, limits: Sequence[Limit], levels: Levels) -> Ends:
    """Measure what an attack reaches of each limited quantity."""
    ends = {}
    for limit in limits:
        if limit.quantity in OF_GROUPS:  # `group_checks` looks at them
            continue
        try:
            above = _measured(scores, limit, levels.release)
            below = _measured(scores, limit, levels.refusal)
        except NotApplicable as error:
            ends[limit] = AttackEnds(attack, reason=error.reason)
            continue
        if above.refused or below.refused:
            # of these models alone there is an interval; its lower end may refuse a release, its upper end grants none
            these_models = Limit(quantity="tpr_these_models", fpr=limit.fpr, limit=limit.limit)
            low = _measured(scores, these_models, levels.refusal).low
            ends[limit] = AttackEnds(attack, above.value, low, reason=_too_few_models(limit, above, below, scores))
        else:
            ends[limit] = AttackEnds(attack, above.value, below.low, above.high)
    return ends


def _too_few_models(limit: Limit, above: Interval, below: Interval, scores: Scores) -> Term:
    """Say how many models would give an attack an interval at both levels."""
    refused = [interval.detail for interval in (above, below) if interval.refused]
    needed = int(max(detail["models_needed"] for detail in refused))
    at_any_spread = int(max(detail["models_needed_at_any_spread"] for detail in refused))
    values = {"fpr": limit.fpr, "needed": needed, "times": needed / len(scores.value)}
    if needed == at_any_spread:
        return Term("too_few_models_at_rate", **values)
    return Term("too_few_models_at_spread", at_any_spread=at_any_spread, **values)


def _measured(scores: Scores, limit: Limit, confidence: float) -> Interval:
    """Measure one quantity with its interval."""
    if limit.quantity == "accuracy":
        return metrics.accuracy(scores, PRIOR, confidence)
    if bool((np.ptp(scores.value, axis=1) == 0).all()):
        return _of_constant_scores(scores, limit, confidence)
    if limit.quantity == "advantage":
        return metrics.advantage(scores, confidence)
    if limit.quantity == "auc":
        return metrics.auc(scores, confidence)
    assert limit.fpr is not None  # the limit was checked when the policy was read
    try:
        return metrics.tpr_at_fpr(scores, limit.fpr, confidence, _target(limit))
    except NotApplicable as error:
        if error.reason.id not in NO_SUCH_RATE:
            raise
        return randomised_tpr(scores, limit.fpr, confidence, _target(limit))


def _target(limit: Limit) -> Literal["these_models", "population"]:
    """Say which models a rate is about."""
    return "these_models" if limit.quantity == "tpr_these_models" else "population"


def _of_constant_scores(scores: Scores, limit: Limit, confidence: float) -> Interval:
    """Measure an attack that gives every record the same score: a guess, as far as these models show.

    Equal values have no spread for an interval of their own. That of the accuracy holds for any threshold, so that the
    advantage a is at most 2 high - 1; then the area is at most (1 + 2 a - a^2) / 2, and the TPR at most fpr + a.
    """
    accuracy = metrics.accuracy(scores, 0.5, confidence)
    most = max(2 * accuracy.high - 1, 0.0)
    if limit.quantity == "advantage":
        chance, high = 0.0, most
    elif limit.quantity == "auc":
        chance, high = 0.5, (1 + 2 * most - most**2) / 2
    else:
        chance = limit.fpr or 0.0
        high = min(chance + most, 1.0)
    return Interval(chance, chance, high, confidence, accuracy.interval_over, accuracy.method)


def structure_findings(observed: ObservedRelease) -> Iterator[Finding]:
    """Yield what the structure of the fitted model shows, where it was read."""
    if observed.structure is None:
        return
    for quantity, value in _counts(observed.structure).items():
        if value is None:
            continue
        spec = FindingSpec(quantity, "point", source=SOURCE, per_record=True, scope=Scope("every"))
        number = Interval(float(value), float(value), float(value), 1.0, method=(Term("exact"),))
        finding = observed.finding(spec, number)
        is_search = quantity == "stores_records" and value == 0  # that nothing was found proves nothing
        if is_search:
            finding = replace(finding, method=(Term("searched"),))
        status = "measured" if is_search else "certified"
        rows = {"rows": observed.structure.kept.n_rows} if quantity == "stores_records" and value else {}
        yield replace(finding, low=None, high=None, confidence=None, status=status, detail=rows)


def decision(
    policy: PolicyPlan,
    observed: ObservedRelease,
    ends: Sequence[Ends],
    below: Term | None = None,
    groups: AttackedGroups | None = None,
    left_out: Sequence[str] = (),
    verdicts: Sequence[ClaimVerdict] = (),  # on the claims about the model
) -> DecisionFacts:
    """Compare a model with a policy."""
    run = {_base_name(end.attack) for of_attack in ends for end in of_attack.values()}
    if groups is not None:
        run |= {_base_name(on.attack) for on in groups.attacks}
    checks = [_required(name, run, observed.other_recipe, left_out) for name in policy.attacks]
    doubt = _doubt(observed)
    if doubt is not None:
        checks.append(_open("one_source", doubt))
    checks += _limit_checks(policy, observed, ends, groups, doubt, below)
    verdict = _verdict(checks, asked_if_broken={"exposed"} if _asks_about_exposed(policy) else set())
    if policy.structure is not None:
        of_structure = list(_structure_checks(policy.structure, observed.structure))
        failed = [check for check in of_structure if check.outcome == "not_kept"]
        if failed and policy.structure.then == "do_not_release":
            verdict = "do_not_release"
        elif verdict == "release" and any(check.outcome != "kept" for check in of_structure):
            verdict = "ask"
        checks += of_structure
    # what was promised of the model comes first: a false promise forbids its release
    claims = _claim_check(verdicts)
    if claims is not None:
        checks = [claims, *checks]
        verdict = _with_claims(verdict, claims)
    return DecisionFacts(release=observed.name, verdict=verdict, checks=tuple(checks), left_out=tuple(left_out))


def _limit_checks(
    policy: PolicyPlan,
    observed: ObservedRelease,
    ends: Sequence[Ends],
    groups: AttackedGroups | None,
    doubt: Term | None,
    below: Term | None,
) -> list[CheckFacts]:
    """Compare each limit with what the attacks reach; in doubt of the data, or of the attacks, none is kept."""
    # the intervals of one model are over its records
    is_one_model = observed.signals.game.n_targets == 1
    includes_limit = Term("interval_of_one_model_includes_limit" if is_one_model else "interval_includes_limit")
    by_limit = []
    for limit in policy.parsed_limits:
        if limit.quantity not in OF_GROUPS:
            by_limit.append(_attack_checks(limit, [of_attack[limit] for of_attack in ends], includes_limit))
        elif groups is not None:
            by_limit.append(group_checks(limit, groups))
    if doubt is not None:
        # what an attack reaches may come from the data, and says nothing about the model
        in_doubt = {"outcome": "open", "reason": _facts(doubt)}
        by_limit = [[of_limit[0].model_copy(update=in_doubt)] for of_limit in by_limit]
    below = below or _all_below(policy, observed, ends)
    if below is not None:
        by_limit = [_unless_kept(of_limit, below) for of_limit in by_limit]
    return [check for of_limit in by_limit for check in of_limit]


def left_out_of_default(attacks: Sequence[Attack]) -> tuple[str, ...]:
    """Name the default attacks that were not asked for; one that was, and does not apply, is not left out."""
    if not any(getattr(attack, "by_name", True) for attack in attacks):
        return ()  # a group of attacks was asked for, such as "default", of which an audit takes those that it can play
    asked = {_base_name(attack.name) for attack in attacks}
    return tuple(name for name in DEFAULT if name not in asked)


def _default_attacks(left_out: Sequence[str]) -> CheckFacts:
    """Check that all default attacks were asked for."""
    if not left_out:
        return CheckFacts(check="attack", attack="default", outcome="kept")
    are = "is" if len(left_out) == 1 else "are"
    reason = Term("default_left_out", names=f"{', '.join(left_out)} {are}")
    return CheckFacts(check="attack", attack="default", outcome="open", reason=_facts(reason))


def refuse_unknown_attacks(policy: PolicyPlan | None, attacks: Sequence[Attack]) -> None:
    """Refuse a policy that asks for an attack that nobody knows, before any fit."""
    if policy is not None:
        own = {_base_name(attack.name) for attack in attacks}
        others = [name for name in policy.attacks if name not in own]
        if others:
            find(others)


def _base_name(attack: str) -> str:
    """Return the name of an attack without its parameters: ``likelihood_ratio`` of ``likelihood_ratio(rate=0.1)``."""
    return attack.partition("(")[0]


def _doubt(observed: ObservedRelease) -> Term | None:
    """Return why members and others cannot be compared, if they cannot."""
    if observed.sources is not None and observed.sources.stops:
        return Term("shift")
    if observed.n_shared:
        return Term("shared_records", n=observed.n_shared)
    return None


def _claim_check(verdicts: Sequence[ClaimVerdict]) -> CheckFacts | None:
    """Check the claims: what is refuted is false, and what is false on paper is for a person to decide."""
    if any(verdict.word == "refuted" for verdict in verdicts):
        return CheckFacts(check="claim", outcome="not_kept")
    denied = [verdict for verdict in verdicts if verdict.word in ("cannot_hold", "not_supported")]
    if not denied:
        return None
    return CheckFacts(check="claim", outcome="open", reason=_facts(denied[-1].reason))


def _with_claims(verdict: Verdict, claims: CheckFacts) -> Verdict:
    """Return the verdict on a model about which something false was promised."""
    if claims.outcome == "not_kept":
        return "do_not_release"
    return "ask" if verdict == "release" else verdict


def _asks_about_exposed(policy: PolicyPlan) -> bool:
    """Whether a person is asked where more records are exposed than the policy allows."""
    return policy.exposed is not None and policy.exposed.then == "ask"


def _verdict(checks: Sequence[CheckFacts], asked_if_broken: Set[str]) -> Verdict:
    """Combine the checks of the attacks; some of them ask a person where they are not kept."""
    if any(check.outcome == "not_kept" and check.check not in asked_if_broken for check in checks):
        return "do_not_release"
    return "release" if all(check.outcome == "kept" for check in checks) else "ask"


def _attack_checks(limit: Limit, ends: Sequence[AttackEnds], includes_limit: Term) -> list[CheckFacts]:
    """Compare a limit with all attacks: the one that decides, and one whose interval is missing.

    The interval that is shown is that of the attack which it names. Of a limit that is not kept it is the attack with
    the largest lower end, else the one with the largest upper end.
    """
    base: dict[str, Any] = {"check": limit.quantity, "fpr": limit.fpr, "limit": limit.limit}
    measured = [end for end in ends if end.low is not None and end.high is not None]
    unmeasured = [end for end in ends if end not in measured]
    if not ends:
        return [CheckFacts(**base, outcome="open", reason=_facts(Term("no_attack")))]
    most_surely_above = max(ends, key=lambda end: (end.low or 0.0, end.value or 0.0))
    if (most_surely_above.low or 0.0) > limit.limit:
        reason = None if most_surely_above in measured else _facts(Term("these_models_above"))
        return [CheckFacts(**base, **_shown(most_surely_above), outcome="not_kept", reason=reason)]
    checks: list[CheckFacts] = []
    if measured:
        largest = max(measured, key=lambda end: (end.high or 0.0, end.value or 0.0))
        if (largest.high or 0.0) > limit.limit:
            checks.append(CheckFacts(**base, **_shown(largest), outcome="open", reason=_facts(includes_limit)))
        elif not unmeasured:
            checks.append(CheckFacts(**base, **_shown(largest), outcome="kept"))
    if unmeasured:
        # an attack whose upper end is not known may exceed the limit
        unknown = max(unmeasured, key=lambda end: end.value or 0.0)
        reason = _facts(unknown.reason or Term("no_attack"))
        checks.append(CheckFacts(**base, outcome="open", value=unknown.value, attack=unknown.attack, reason=reason))
    return checks


def _shown(end: AttackEnds) -> dict[str, Any]:
    """Return an attack with its own interval, as a check shows it."""
    return {"attack": end.attack, "value": end.value, "low": end.low, "high": end.high}


def _all_below(policy: PolicyPlan, observed: ObservedRelease, ends: Sequence[Ends]) -> Term | None:
    """Return why an AUC whose upper end is below 1/2 for all attacks leaves no verdict."""
    areas = [of_attack[limit] for limit in policy.parsed_limits if limit.quantity == "auc" for of_attack in ends]
    if not areas or observed.signals.game.kind not in GIVEN:
        return None
    if any(end.high is None or end.high >= 0.5 or (end.value or 0.0) >= LARGEST_GIVEN for end in areas):
        return None
    worst = min(areas, key=lambda end: end.value or 0.0)
    if len(areas) > 1:
        return Term("exchanged", n=len(areas))
    return Term("exchanged_or_sign", attack=worst.attack)


def _unless_kept(checks: Sequence[CheckFacts], below: Term) -> list[CheckFacts]:
    """Leave a limit open that is kept only because attacks are wrong more often than a guess."""
    return [
        check if check.outcome == "not_kept" else check.model_copy(update={"outcome": "open", "reason": _facts(below)})
        for check in checks
    ]


def _required(name: str, run: set[str], other_recipe: Term | None, left_out: Sequence[str]) -> CheckFacts:
    """Check that an attack was run, with references of the model's recipe if it needs them."""
    if name == "default":
        return _default_attacks(left_out)
    attack = ATTACKS.get(name)
    if name in run and other_recipe is not None and attack is not None and attack.needs_references:
        return CheckFacts(check="attack", attack=name, outcome="open", reason=_facts(other_recipe))
    if name in run:
        return CheckFacts(check="attack", attack=name, outcome="kept")
    return CheckFacts(check="attack", attack=name, outcome="open", reason=_facts(Term("attack_was_not_run")))


def _structure_checks(limits: StructurePlan, structure: Structure | None) -> Iterator[CheckFacts]:
    """Compare the structure of the fitted model with its limits."""
    counts = {} if structure is None else _counts(structure)
    least = {
        "degrees_of_freedom": limits.degrees_of_freedom,
        "smallest_leaf": limits.smallest_leaf,
        "smallest_group": limits.smallest_group,
    }
    for name, limit in least.items():
        if limit is None:
            continue
        # a model without leaves keeps every limit about leaves
        if name != "degrees_of_freedom" and structure is not None and structure.has_leaves is False:
            yield CheckFacts(check=name, outcome="kept", limit=limit, reason=_facts(Term("no_leaves")))
            continue
        value = counts.get(name)
        # what cannot be read stays open, and is not taken for kept
        if value is None:
            yield _open(name, Term("structure_not_readable"), limit)
        else:
            yield CheckFacts(check=name, outcome="kept" if value >= limit else "not_kept", limit=limit, value=value)
    if limits.class_disclosure:
        yield _one_label_check(structure)
    if limits.stored_records:
        yield _records_check(structure)


def _one_label_check(structure: Structure | None) -> CheckFacts:
    """Check that no group of records in the same leaves has a single label."""
    name = "one_label_groups"
    if structure is None:
        return _open(name, Term("structure_not_readable"), 0)
    if structure.has_leaves is False:
        return CheckFacts(check=name, outcome="kept", limit=0, reason=_facts(Term("no_leaves")))
    if structure.has_classes is False:
        return CheckFacts(check=name, outcome="kept", limit=0, reason=_facts(Term("no_classes")))
    value = structure.one_label_groups
    if value is None:
        return _open(name, Term("structure_not_readable"), 0)
    return CheckFacts(check=name, outcome="not_kept" if value > 0 else "kept", limit=0, value=value)


def _records_check(structure: Structure | None) -> CheckFacts:
    """Check that the fitted model holds no records: by its class, and by what was found in it."""
    name = "stores_records"
    if structure is None:
        return _open(name, Term("structure_not_readable"), 0)
    kept, class_name = structure.kept, structure.class_name or "a network"
    # not kept: by its class alone, or with the place where records were found
    if structure.stores_records:
        reason = Term("class_keeps_records", name=class_name)
        if kept.held:
            worst = min(kept.held, key=lambda held: WORST_FIRST.index(held.kind))
            values = {"n": worst.n, "where": worst.where or class_name, "places": len(kept.held)}
            if worst.kind in ("values", "column"):
                values["column"] = worst.column
            reason = Term(HELD[worst.kind], **values)
        return CheckFacts(check=name, outcome="not_kept", limit=0, value=1, reason=_facts(reason))
    # open: attributes that the class does not have, or a part that could not be searched
    if kept.unexplained:
        names = ", ".join(kept.unexplained[:MOST_NAMED])
        reason = Term("unexplained_attributes", name=class_name, n=len(kept.unexplained), names=names)
        return _open(name, reason, 0)
    if structure.stores_records is None:
        return _open(name, Term("structure_not_readable" if kept.complete else "not_all_read"), 0)
    # kept: all of the model was searched
    reason = Term("no_records_found", name=class_name)
    if kept.extra:
        reason = Term("no_records_in_extra", name=class_name, names=", ".join(kept.extra[:MOST_NAMED]))
    return CheckFacts(check=name, outcome="kept", limit=0, value=0, reason=_facts(reason))


def _counts(structure: Structure) -> dict[str, int | None]:
    """List the counts of a structure by their quantities."""
    stores = structure.stores_records
    return {
        "degrees_of_freedom": structure.degrees_of_freedom,
        "smallest_leaf": structure.smallest_leaf,
        "smallest_group": structure.smallest_group,
        "one_label_groups": structure.one_label_groups,
        "stores_records": None if stores is None else int(stores),
    }


def _open(check: str, reason: Term, limit: float | None = None) -> CheckFacts:
    return CheckFacts(check=check, outcome="open", limit=limit, reason=_facts(reason))


def _facts(reason: Term | None) -> Any:
    return None if reason is None else term_facts([reason])[0]
