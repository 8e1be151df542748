"""The verdict of a policy on each model, and the limits that it rests on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from leakbound.core.findings import Finding, Term
from leakbound.core.reasons import words as reason_words
from leakbound.reports.about import CheckFacts, DecisionFacts
from leakbound.reports.numbers import MINUS, THIN, count, percent
from leakbound.reports.results.audit.result import Result, ordered, written
from leakbound.reports.results.findings import Text
from leakbound.reports.results.quantities import shown
from leakbound.reports.results.words import listed
from leakbound.reports.sentences import Sentence, Texts

SEVERITY = ("not_kept", "open", "kept")  # the reasons for the verdict come first
AT_LEAST = ("degrees_of_freedom", "smallest_leaf", "smallest_group")
NONE_ALLOWED = ("one_label_groups", "stores_records")
RATES = ("tpr", "tpr_these_models")


def policy_part(results: Sequence[Result]) -> Texts | None:
    """Write the verdict on each model, in the order of the table of models; None without a policy."""
    about = results[0].about
    if not about.decisions:
        return None
    policy = about.plan.get("policy") or {}
    decided = {decision.release: decision for decision in about.decisions}
    is_alone = len(decided) == 1
    decisions = [
        _decision(result, decided[result.name], policy, is_alone)
        for result in ordered(results)
        if result.name in decided
    ]
    title = str(policy.get("title") or "")
    heading = f"decision.heading{'' if is_alone else 's'}{'_of' if title else ''}"
    return Texts(
        heading=Sentence(heading, {"policy": title}),
        decisions=decisions,
        notes=list(_notes(results, policy)),
        signs=list(policy.get("signs", ())),
    )


def _notes(results: Sequence[Result], policy: Mapping[str, Any]) -> Iterator[Sentence]:
    """Say what the verdicts hold for, what no limit looks at, and who made the audit."""
    about = results[0].about
    yield Sentence("decision.level", {"level": percent(float(policy.get("confidence", 0.95)))})
    if not any(str(limit).startswith("worst_group_accuracy") for limit in policy.get("limits", ())):
        yield written(results[0], "decision.no_group_limit")
    checks = [check for decision in about.decisions for check in decision.checks]
    if any(check.check == "stores_records" and check.value == 0 for check in checks):
        yield Sentence("decision.out_of_reach")
    made = [part for part in (str(about.plan.get("author") or ""), about.date) if part]
    if made:
        yield Sentence("decision.made_by", {"made": ", ".join(made)})


def _decision(result: Result, given: DecisionFacts, policy: Mapping[str, Any], is_alone: bool) -> Texts:
    checks = sorted(given.checks, key=lambda check: SEVERITY.index(check.outcome))
    by_outcome: dict[str, list[Texts]] = {outcome: [] for outcome in SEVERITY}
    for check in checks:
        by_outcome[check.outcome].append(_check(check, result))
    action = str((policy.get("then") or {}).get(given.verdict) or "")
    counted = list(_summary(given))
    remarks = [*_asks(result, given, policy), *_not_run(result, given)]
    summary: list[Text] = [*counted, *remarks] if given.verdict == "release" else list(counted)
    return Texts(
        title="" if is_alone else result.title,
        verdict=Sentence(f"decision.{given.verdict}"),
        summary=[*summary, action] if action else summary,
        remarks=[] if given.verdict == "release" else remarks,
        reasons=[*by_outcome["not_kept"], *by_outcome["open"]],
        kept=by_outcome["kept"],
        n_kept=count(len(by_outcome["kept"])),
    )


def _summary(given: DecisionFacts) -> Iterator[Sentence]:
    """Count the limits that are not kept, or open."""
    # a limit has a line for each attack that leaves it open
    outcomes = list({_limited(check): check.outcome for check in given.checks}.values())
    n_broken, n_open = outcomes.count("not_kept"), outcomes.count("open")
    n_all = count(len(outcomes))
    if n_broken:
        yield Sentence("decision.not_kept", {"n": count(n_broken), "all": n_all})
    if n_open:
        yield Sentence("decision.open", {"n": count(n_open), "all": n_all})
    if not n_broken and not n_open:
        yield Sentence("decision.one_kept") if len(outcomes) == 1 else Sentence("decision.all_kept", {"n": n_all})


def _asks(result: Result, given: DecisionFacts, policy: Mapping[str, Any]) -> Iterator[Sentence]:
    """Say why a person is asked although a limit is not kept."""
    broken = {check.check for check in given.checks if check.outcome == "not_kept"}
    if given.verdict == "ask" and "exposed" in broken:
        yield written(result, "decision.exposed_asks")
    if given.verdict == "ask" and broken - {"exposed"} and (policy.get("structure") or {}).get("then") == "ask":
        yield Sentence("decision.structure_asks")


def _limited(check: CheckFacts) -> tuple[Any, ...]:
    """Return what tells limits apart: the quantity, and the attack where that must be run."""
    return (check.check, check.fpr, check.limit, check.attack if check.check == "attack" else "")


def _not_run(result: Result, given: DecisionFacts) -> Iterator[Sentence]:
    """Name the attacks that the verdict does not know of."""
    why = {
        result.attack_title(finding.attack): reason_words(finding.reason)
        for finding in result.findings
        if finding.quantity == "accuracy" and finding.attack and finding.reason is not None
    }
    if why:
        yield Sentence("decision.not_run", {"attacks": listed(why), "why": "; ".join(dict.fromkeys(why.values()))})
    if given.left_out:
        yield Sentence("decision.left_out", {"attacks": listed(given.left_out)})


def _check(check: CheckFacts, result: Result) -> Texts:
    name = "default" if check.attack == "default" else check.check
    gaps = {"fpr": "" if check.fpr is None else percent(check.fpr), "attack": check.attack}
    return Texts(
        limited=written(result, f"limited.{name}", **gaps),
        limit=_limit(check),
        measured=_measured(check, result),
        outcome=Sentence(f"outcome.{check.outcome}"),
        why=_why(check),
    )


def _limit(check: CheckFacts) -> Sentence:
    """Write what is allowed."""
    if check.check in NONE_ALLOWED or (check.check == "exposed" and not check.limit):
        return Sentence("limit.none")
    if check.limit is None:
        return Sentence("limit.must_be_run" if check.check == "attack" else "limit.must_hold")
    if check.check in (*AT_LEAST, "exposed"):
        side = "at_least" if check.check in AT_LEAST else "at_most"
        return Sentence(f"limit.{side}", {"limit": count(round(check.limit))})
    return Sentence("limit.at_most", {"limit": _in_its_unit(check, check.limit)})


def _measured(check: CheckFacts, result: Result) -> Text:
    """Write what was measured, with the ends that decide."""
    if check.value is None:
        return check.group or Sentence("value.none")
    if check.check == "stores_records":
        return Sentence("limit.held" if check.value else "limit.none_found")
    if check.check in (*AT_LEAST, *NONE_ALLOWED, "exposed"):
        return f"{round(check.value):,}".replace("-", MINUS)
    attack = result.attack_title(check.attack) if check.attack else ""
    value: Text = _in_its_unit(check, check.value)
    if check.low is not None and check.high is not None:
        text = shown(_finding(check))
        unit = f"{THIN}%" if check.check in RATES else ""
        interval = f"{text.low or text.value} to {text.high or text.value}"
        value = Sentence("value.with_interval", {"value": f"{text.value}{unit}", "interval": interval})
    of = ", ".join(part for part in (attack, check.group) if part)
    return Sentence("limit.of_attack", {"value": value, "attack": of}) if of else value


def _in_its_unit(check: CheckFacts, value: float) -> str:
    """Write a number in the unit of its quantity."""
    if check.check in ("accuracy", "worst_group_accuracy"):
        return f"{100 * value:.4g}"
    return percent(value) if check.check in RATES else f"{value:.4g}"


def _finding(check: CheckFacts) -> Finding:
    """Return the check as a finding, whose numbers are printed by the rules of its quantity."""
    quantity = "accuracy" if check.check == "worst_group_accuracy" else check.check
    return Finding(quantity, check.value, check.low, check.high)


def _why(check: CheckFacts) -> Text:
    """Say why the outcome is what it is, where the numbers do not."""
    if check.check == "claim" and check.reason is None and check.outcome != "kept":
        return Sentence("limit.claim_refuted")
    if check.reason is not None and check.reason.id != "no_records_found":  # below the table it is said of all models
        return reason_words(Term(check.reason.id, **check.reason.values))
    return ""
