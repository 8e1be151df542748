"""Gates: what makes a pipeline stop, and with which exit code."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from leakbound.core.findings import Finding, Term
from leakbound.core.reasons import words
from leakbound.metrics.rates import FEWEST_IN_TAIL
from leakbound.plans.limits import OF_GROUPS, Limit
from leakbound.reports import Report, phrases
from leakbound.reports.about import AuditAbout, GroupsFacts, ReleaseFacts, decisions_of, failed_of, releases_of
from leakbound.reports.below_chance import below_chance
from leakbound.reports.results.words import listed

NO_MODELS = ("no_reference", "few_references", "no_reference_of_both", "no_reference_with", "no_reference_without")
MOST_NAMED = 8  # groups
_FALSE = {  # claims that an accountant denies: nothing is measured, so they are not refuted
    "cannot_hold": "cannot hold: the training as declared gives more",
    "not_supported": "is not supported: the accountant shows more for the training as declared",
}


def refuted(report: Report) -> list[str]:
    """List the claims that a report refutes, in words."""
    verdicts = [(curve.release, curve.verdict) for curve in report.curves if curve.verdict is not None]
    return [f"{release}: {phrases.claim(verdict)}" for release, verdict in verdicts if verdict.word == "refuted"]


def failures(report: Report, limits: Sequence[str]) -> list[str]:
    """List the limits that the strongest attack on a release exceeds, or that could not be measured, in words.

    >>> import numpy as np
    >>> import leakbound as ls
    >>> member = np.arange(200) % 2 == 0
    >>> report = ls.audit_scores(1.0 * member, member, name="forest")
    >>> failures(report, ["auc=0.6"])
    ['forest: auc=0.6 is exceeded: forest reaches 1']
    """
    shifted = unaccepted_shifts(report)
    names = [release.name for release in releases_of(report.about)]
    names = names or list(dict.fromkeys(finding.release for finding in report.findings))  # a bound is of no release
    lines = []
    for text in limits:
        limit = Limit.parse(text)
        for release in names:
            if release in shifted:
                lines.append(f"{release}: {text} could not be tested: {shifted[release]}")
            elif limit.quantity in OF_GROUPS:
                lines += _of_groups(report, release, limit, text)
            else:
                exceeded = list(_exceeded(report, release, limit, text))
                lines += exceeded or _on_both_sides(report, release, text)
    for release in failed_of(report.about):
        lines += [f"{release}: {text} could not be measured: the model could not be audited" for text in limits]
        if decisions_of(report.about):
            lines.append(f"{release}: the policy has no verdict: the model could not be audited")
    lines += [
        f"{decision.release}: the policy says {phrases.DECISIONS[decision.verdict]}"
        for decision in decisions_of(report.about)
        if decision.verdict != "release"
    ]
    verdicts = [(curve.release, curve.verdict) for curve in report.curves if curve.verdict is not None]
    lines += [
        f"{name}: {phrases.claim(verdict)} {_FALSE[verdict.word]}"
        for name, verdict in verdicts
        if verdict.word in _FALSE
    ]
    lines += [
        f"{name}: {phrases.claim(verdict)} could not be tested: {shifted[name]}"
        for name, verdict in verdicts
        if name in shifted
    ]
    return lines


def unaccepted_shifts(report: Report) -> dict[str, str]:
    """Releases whose members and others do not come from one source, with why; none where the user accepts that.

    Limits and claims about them are not tested: what an attack reaches may come from that difference.
    """
    if report.about.plan.get("accept_shift"):
        return {}
    return {
        finding.release: f"members and others do not come from one source: without the model they are told apart with "
        f"an AUC of {finding.value:.3g} (at least {finding.low:.3g}); accept_shift (--accept-shift) tests it all "
        "the same"
        for finding in report.findings
        if finding.quantity == "membership_without_model" and finding.low is not None and finding.low > 0.5
    }


def times(report: Report, seconds_a_model: Mapping[str, float]) -> list[str]:
    """Say how long the models would take that a policy's verdict asks for: to the terminal, for a report has no times.

    Only of releases of which models were made in this run, with what one took.
    """
    lines = []
    for decision in decisions_of(report.about):
        if decision.release not in seconds_a_model:
            continue
        seconds = seconds_a_model[decision.release]
        a_fit = f"{seconds:.2g}" if seconds < 10 else f"{seconds:,.0f}"
        reasons = [check.reason.values for check in decision.checks if check.reason is not None]
        for needed in sorted({int(values["needed"]) for values in reasons if "needed" in values}):
            time_of_all = _rounded(needed * seconds)
            lines += [f"{decision.release}: {needed:,} models: about {time_of_all} at {a_fit} s a fit"]
    return lines


def _rounded(seconds: float) -> str:
    """Write a time with its unit.

    >>> _rounded(4.2), _rounded(1520), _rounded(41000)
    ('5 s', '26 min', '12 h')
    """
    if seconds < 100:
        return f"{math.ceil(seconds)} s"
    if seconds < 6000:
        return f"{math.ceil(seconds / 60)} min"
    return f"{math.ceil(seconds / 3600):,} h"


def remarks(report: Report, limits: Sequence[str]) -> list[str]:
    """Say of each release which attacks its limits do not know of, because there are no models to compare with.

    The attacks with references are the strongest ones: a limit that is kept without them says less.
    """
    lines = []
    for release in releases_of(report.about) if limits else ():
        of_attacks = [finding for finding in report.findings if finding.release == release.name and finding.attack]
        ran = dict.fromkeys(finding.attack for finding in of_attacks if finding.value is not None)
        missing = _without_references(of_attacks)
        if missing:
            lines.append(
                f"{release.name}: compared with what {_titles(report, ran)} reached; {_titles(report, missing)} did "
                "not run, for there are no reference models to compare with, and these attacks are mostly stronger: "
                "give the recipe (--model, or references= in Python), or say which attacks are enough (attacks, "
                "--attack, or a policy with attacks = [...])"
            )
    return lines


def exit_code(report: Report, limits: Sequence[str] = ()) -> int:
    """2 if a claim is refuted, else 3 if a limit is exceeded or could not be measured or tested, else 0.

    1 if there is nothing of these, and a model could not be audited.
    """
    if refuted(report):
        return 2
    if failures(report, limits):
        return 3
    return 1 if failed_of(report.about) else 0


def _of_groups(report: Report, release: str, limit: Limit, text: str) -> list[str]:
    """Whether a group or the number of exposed records passes a limit, or is too small to tell, in words."""
    facts = next((facts for facts in releases_of(report.about) if facts.name == release), None)
    if not isinstance(facts, ReleaseFacts):
        return [f"{release}: {text} could not be measured: there is no such finding"]
    if limit.quantity == "exposed":
        return list(_exposed(facts, limit, text))
    findings = [finding for finding in report.findings if finding.release == release and finding.scope.kind == "group"]
    groups = facts.groups
    if not findings or groups is None:
        reason = None if groups is None else groups.reason
        why = "this game is about single records" if reason is None else words(Term(reason.id, **reason.values))
        return [f"{release}: {text} could not be measured: {why}"]
    worst = max(findings, key=lambda finding: _reached(finding, groups))
    reached = _reached(worst, groups)
    if reached > limit.limit:
        return [f"{release}: {text} is exceeded: {reached:.4g} is reached in {worst.scope.name}"]
    undecided = [finding for finding in findings if _is_too_small(finding, groups, limit)]
    if not undecided:
        return []
    names = listed([finding.scope.name for finding in undecided[:MOST_NAMED]])
    return [
        f"{release}: {text} could not be measured: there are too few records or models to judge {names}; a group of "
        f"{groups.least:,} records is judged with these models"
    ]


def _reached(finding: Finding, groups: GroupsFacts) -> float:
    """Return what attacks reach in a group: the largest value of those; in a small group what is sure of it."""
    if finding.value is None:
        return 0.0
    is_large = finding.detail["records"] >= groups.least
    return finding.detail["largest"] if is_large else finding.low or 0.0


def _is_too_small(finding: Finding, groups: GroupsFacts, limit: Limit) -> bool:
    """Whether a judged group may be above a limit, for all that its few records show."""
    if not finding.detail["judged"] or finding.detail["records"] >= groups.least:
        return False
    return finding.high is None or finding.high > limit.limit


def _exposed(facts: ReleaseFacts, limit: Limit, text: str) -> Iterator[str]:
    """Whether more records are exposed than a limit allows, in words."""
    if facts.games is None or facts.games.first_exposed is None:
        yield f"{facts.name}: {text} could not be measured: there are too few models to test single records"
    elif facts.games.exposed > limit.limit:
        yield f"{facts.name}: {text} is exceeded: {facts.games.exposed:,} records are exposed"


def _on_both_sides(report: Report, release: str, text: str) -> Iterator[str]:
    """Say that a limit is not tested where others are members too: an attack on them is right by being wrong."""
    for facts in releases_of(report.about):
        if facts.name == release and isinstance(facts, ReleaseFacts) and facts.shared:
            yield (
                f"{release}: {text} could not be measured: {facts.shared:,} of the others are among the members too, "
                "so attacks look weaker than they are; leave these records out of the others"
            )


def _titles(report: Report, names: Iterable[str]) -> str:
    """Name attacks as the report does."""
    known = report.about.attacks if isinstance(report.about, AuditAbout) else {}
    titles = [known[name].title if name in known and known[name].title else name for name in names]
    return listed(titles or ["no attack"])


def _exceeded(report: Report, release: str, gate: Limit, text: str) -> Iterator[str]:
    """Whether the strongest attack on a release passes a limit, in words."""
    findings = [
        finding
        for finding in report.findings
        if finding.release == release
        and finding.bound_type != "upper"  # a ceiling is not what was found
        and not finding.scope.is_part  # limits are for all records
        and finding.quantity == gate.quantity
        and (gate.fpr is None or finding.operating_point.get("fpr") == gate.fpr)
    ]
    below = below_chance(finding for finding in report.findings if finding.release == release)
    refused = [finding for finding in findings if finding.refused]
    values = [
        (finding.value, finding.attack) for finding in findings if finding.value is not None and not finding.refused
    ]
    if not values and not refused:
        reasons = {words(finding.reason) for finding in findings if finding.reason} or {"there is no such finding"}
        yield f"{release}: {text} could not be measured: {'; '.join(sorted(reasons))}"
        return
    value, attack = max(values, default=(0.0, ""))
    if value > gate.limit:
        without_attack = "the training, step by step," if gate.quantity == "epsilon" else "the generalisation gap"
        yield f"{release}: {text} is exceeded: {attack or without_attack} reaches {value:.4g}"
    elif below is not None:
        yield f"{release}: {text} could not be measured: {words(below)}"
    elif refused:  # such a rate may be far from that of other models, either way
        spread = max(finding.detail["between_model_spread"] for finding in refused)
        names = _titles(report, dict.fromkeys(finding.attack for finding in refused))
        fpr = gate.fpr or 0.5
        others = {finding.attack: finding.high for finding in findings if finding not in refused and finding.high}
        below = max(others.values(), default=1.0) <= gate.limit
        yield (
            f"{release}: {text} could not be measured: {names} has no interval, for its scores shift from model to "
            f"model (spread {spread:.2g}), and its rate over other models may be far from this one"
            f"{'; the intervals of all other attacks lie below the limit' if below else ''}. "
            f"It has one with {math.ceil(FEWEST_IN_TAIL / min(fpr, 1 - fpr)):,} models, perhaps with fewer; or limit "
            "tpr_these_models, which is about these models alone"
        )


def _without_references(findings: Iterable[Finding]) -> list[str]:
    """List the attacks that did not run because there are no, or too few, models to compare with."""
    lacking = [finding for finding in findings if finding.reason is not None and finding.reason.id in NO_MODELS]
    return list(dict.fromkeys(finding.attack for finding in lacking))
