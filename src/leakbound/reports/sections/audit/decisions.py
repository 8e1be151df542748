"""The verdict of a policy on each model, with its reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from leakbound.core.findings import Finding, Term
from leakbound.core.reasons import words as reason_words
from leakbound.reports.about import AuditAbout, CheckFacts, DecisionFacts
from leakbound.reports.numbers import THIN, count, percent
from leakbound.reports.phrases import DECISIONS, plural
from leakbound.reports.sections.audit import models
from leakbound.reports.sections.audit.result import Result
from leakbound.reports.sections.quantities import shown
from leakbound.reports.sections.words import capital, joined, listed, say

TITLES: Mapping[str, str] = {
    "accuracy": "Attack accuracy",
    "advantage": "Advantage",
    "auc": "Area under the curve",
    "tpr": "TPR at FPR {fpr}",
    "tpr_these_models": "TPR at FPR {fpr}, these models",
    "worst_group_accuracy": "Accuracy, worst group",
    "exposed": "Exposed {units}",
    "claim": "Claims",
    "one_source": "Members and others",
    "attack": "Attack {attack}",
    "degrees_of_freedom": "Degrees of freedom",
    "smallest_leaf": "Smallest leaf",
    "smallest_group": "Smallest group in the same leaves",
    "one_label_groups": "Groups with a single label",
    "stores_records": "Training records in the model",
}
OUTCOMES = {"kept": "kept", "not_kept": "not kept", "open": "open"}
SEVERITY = ("not_kept", "open", "kept")  # the reasons for the verdict come first
AT_LEAST = ("degrees_of_freedom", "smallest_leaf", "smallest_group")
NONE_ALLOWED = ("one_label_groups", "stores_records")
STRUCTURE_ASKS = "Where the fitted model itself does not keep a limit, this policy asks a person."
EXPOSED_ASK = "Where more {units} are exposed than it allows, this policy asks a person."
NO_GROUP_LIMIT = (
    "No limit of this policy looks at groups of {units}, such as the classes: an average may hide one of them."
)
REFUTED = "a claim is refuted"
LEVEL = (
    "All verdicts of this page are right at the same time with confidence {level}: a limit is kept if the upper end of "
    "the interval of every attack keeps it, and not kept if a lower end exceeds it."
)

OUT_OF_REACH = (
    "Where no training records were found in a model, its class keeps none by construction, and nothing in it equals a "
    "row, a rare value or a name of a record. Out of reach of this search are records that are encrypted, rounded, or "
    "changed otherwise than by the steps of the model, what weights memorise, and the nodes of trees."
)


@dataclass(frozen=True)
class Check:
    """A line of the table of a decision."""

    title: str
    limit: str
    measured: Markup
    outcome: str
    name: str
    why: str


@dataclass(frozen=True)
class Decision:
    """The verdict on a model, as the page shows it."""

    title: str
    verdict: str
    name: str
    action: str
    summary: Markup
    checks: Sequence[Check]
    not_run: str = ""

    @property
    def reasons(self) -> Sequence[Check]:
        """The limits that are not kept, or open."""
        return [check for check in self.checks if check.name != "kept"]

    @property
    def kept(self) -> Sequence[Check]:
        """The limits that are kept."""
        return [check for check in self.checks if check.name == "kept"]


def decisions(results: Sequence[Result]) -> list[Decision]:
    """Write the verdict on each model, in the order of the table of models; empty without a policy."""
    by_name = {decision.release: decision for decision in results[0].about.decisions}
    if not by_name:
        return []
    policy = _policy(results)
    return [
        _decision(result, by_name[result.name], policy) for result in models.ordered(results) if result.name in by_name
    ]


def facts(results: Sequence[Result]) -> dict[str, Any]:
    """Return the name of the policy, who made the audit, and who signs."""
    policy, about = _policy(results), results[0].about
    made = [str(about.plan.get("author") or ""), about.date]
    return {
        "policy": policy.get("title") or "",
        "made": ", ".join(part for part in made if part),
        "signs": list(policy.get("signs", ())),
        "level": joined(
            [
                say(LEVEL, level=percent(float(policy.get("confidence", 0.95)))),
                Markup("") if _looks_at_groups(policy) else say(NO_GROUP_LIMIT, units=plural(about.unit)),
                _of_search(about),
            ]
        ),
    }


def _looks_at_groups(policy: Mapping[str, Any]) -> bool:
    """Whether a limit of a policy is about groups of records."""
    return any(str(limit).startswith("worst_group_accuracy") for limit in policy.get("limits", ()))


def _of_search(about: AuditAbout) -> Markup:
    """Say what a search for training records cannot find, where it found none."""
    checks = [check for decision in about.decisions for check in decision.checks]
    found_none = any(check.check == "stores_records" and check.value == 0 for check in checks)
    return say(OUT_OF_REACH) if found_none else Markup("")


def _policy(results: Sequence[Result]) -> Mapping[str, Any]:
    return results[0].about.plan.get("policy") or {}


def _decision(result: Result, given: DecisionFacts, policy: Mapping[str, Any]) -> Decision:
    actions = policy.get("then") or {}
    checks = sorted(given.checks, key=lambda check: SEVERITY.index(check.outcome))
    return Decision(
        title=result.title,
        verdict=capital(DECISIONS[given.verdict]),
        name=given.verdict,
        action=str(actions.get(given.verdict) or ""),
        summary=_summary(given, policy, plural(result.about.unit)),
        checks=[_check(check, result) for check in checks],
        not_run=" ".join(part for part in (_not_run(result), _left_out(given.left_out)) if part),
    )


def _not_run(result: Result) -> str:
    """Name the attacks that the verdict does not know of."""
    missing = [finding for finding in result.findings if finding.quantity == "accuracy" and finding.reason is not None]
    titles = [result.attack_title(finding.attack) for finding in missing if finding.attack]
    if not titles:
        return ""
    were = "was" if len(titles) == 1 else "were"
    reasons = dict.fromkeys(reason_words(finding.reason) for finding in missing if finding.attack and finding.reason)
    why = "; ".join(reasons)
    return f"{listed(titles)} {were} not run ({why}). The verdict is about the other attacks."


def _left_out(names: Sequence[str]) -> str:
    """Name the default attacks that the audit was not asked for."""
    if not names:
        return ""
    were = "was" if len(names) == 1 else "were"
    return f"Of the default attacks, {listed(names)} {were} not asked for: the verdict does not know what they reach."


def _summary(given: DecisionFacts, policy: Mapping[str, Any], units: str) -> Markup:
    """Count the limits that are not kept, or open, and say why a person is asked although one is not kept."""
    # a limit has a line for each attack that leaves it open
    outcomes: dict[tuple[Any, ...], str] = {}
    for check in given.checks:
        outcomes[_limited(check)] = check.outcome
    n = len(outcomes)
    n_broken = sum(outcome == "not_kept" for outcome in outcomes.values())
    n_open = sum(outcome == "open" for outcome in outcomes.values())
    if not n_broken and not n_open:
        return say("All {n} limits of the policy are kept.", n=count(n))
    parts = [
        say("{broken} of {n} limits {are} not kept.", broken=count(n_broken), n=count(n), are=_are(n_broken))
        if n_broken
        else Markup(""),
        say("{open} of {n} could not be decided.", open=count(n_open), n=count(n)) if n_open else Markup(""),
    ]
    broken = {check.check for check in given.checks if check.outcome == "not_kept"}
    if given.verdict == "ask" and "exposed" in broken:
        parts.append(say(EXPOSED_ASK, units=units))
    if given.verdict == "ask" and broken - {"exposed"} and (policy.get("structure") or {}).get("then") == "ask":
        parts.append(say(STRUCTURE_ASKS))
    return joined(parts)


def _limited(check: CheckFacts) -> tuple[Any, ...]:
    """Return what tells limits apart: the quantity, and the attack where that must be run."""
    return (check.check, check.fpr, check.limit, check.attack if check.check == "attack" else "")


def _are(n: int) -> str:
    return "is" if n == 1 else "are"


def _check(check: CheckFacts, result: Result) -> Check:
    fpr = "" if check.fpr is None else percent(check.fpr)
    return Check(
        title="Default attacks"
        if check.attack == "default"
        else TITLES[check.check].format(fpr=fpr, attack=check.attack, units=plural(result.about.unit)),
        limit=_limit(check),
        measured=_measured(check, result),
        outcome=OUTCOMES[check.outcome],
        name=check.outcome,
        why=_why(check),
    )


def _limit(check: CheckFacts) -> str:
    """Write what is allowed."""
    if check.check in NONE_ALLOWED or (check.check == "exposed" and not check.limit):
        return "none"
    if check.limit is None:
        return "must be run" if check.check == "attack" else "must hold"
    if check.check == "exposed" and check.limit is not None:
        return f"at most {count(round(check.limit))}"
    if check.check in AT_LEAST:
        return f"at least {count(round(check.limit))}"
    return f"at most {_written(check, check.limit)}"


def _measured(check: CheckFacts, result: Result) -> Markup:
    """Write what was measured, with the ends that decide."""
    if check.value is None:
        return Markup.escape(check.group) or Markup("—")
    if check.check == "stores_records":
        return Markup("held" if check.value else "none found")
    if check.check in (*AT_LEAST, *NONE_ALLOWED, "exposed"):
        return Markup.escape(f"{round(check.value):,}".replace("-", "\u2212"))
    attack = result.attack_title(check.attack) if check.attack else ""
    attack = ", ".join(part for part in (attack, check.group) if part)
    if check.low is None or check.high is None:
        return say("{value}, {attack}", value=_written(check, check.value), attack=attack)
    text = shown(_finding(check))
    unit = f"{THIN}%" if check.check in ("tpr", "tpr_these_models") else ""
    return say(
        '<span class="ends">{value}{unit} <span class="q">({low} to {high})</span>,</span> {attack}',
        value=text.value,
        unit=unit,
        low=text.low or text.value,
        high=text.high or text.value,
        attack=attack,
    )


def _written(check: CheckFacts, value: float) -> str:
    """Write a number in the unit of its quantity."""
    if check.check in ("accuracy", "worst_group_accuracy"):
        return f"{100 * value:.4g}"
    return percent(value) if check.check in ("tpr", "tpr_these_models") else f"{value:.4g}"


def _finding(check: CheckFacts) -> Finding:
    """Return the check as a finding, whose numbers are printed by the rules of its quantity."""
    quantity = "accuracy" if check.check == "worst_group_accuracy" else check.check
    return Finding(quantity, check.value, check.low, check.high)


def _why(check: CheckFacts) -> str:
    """Say why the outcome is what it is, where the numbers do not."""
    if check.check == "claim" and check.reason is None:
        return REFUTED
    if check.reason is not None and check.reason.id != "no_records_found":  # below the table it is said of all models
        return reason_words(Term(check.reason.id, **check.reason.values))
    return ""
