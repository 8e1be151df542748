"""Audits that add models until an interval is narrow enough or a claim is refuted, and that hold all the same.

The numbers of models at which one looks are fixed beforehand: 8, 16, 32, ... up to the largest. At each look the audit
of all models so far is made anew, with thresholds of its own, and its intervals have the level ``1 - alpha/L``, L the
number of looks. By the union bound all L of them hold at once with probability ``1 - alpha``, and so does the one at
which the audit stops, whatever the rule. So do the tests of claims, whose level is divided by L in the same way: a true
claim is refuted at any look with at most the probability with which a single audit refutes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from leakbound.core.findings import Finding
from leakbound.plans.audits import AuditPlan
from leakbound.plans.choices import table_of
from leakbound.plans.until import Until
from leakbound.reports import Report
from leakbound.reports.about import AuditAbout

FIRST = 8  # models at the first look


def looks(most: int) -> list[int]:
    """List the numbers of models at which one looks: 8, doubled until the largest number.

    >>> looks(50), looks(4)
    ([8, 16, 32, 50], [4])
    """
    numbers = []
    n_models = FIRST
    while n_models < most:
        numbers.append(n_models)
        n_models *= 2
    return [*numbers, most]


def level_of_each(confidence: float, n_looks: int) -> float:
    """Compute the level of the intervals of each look, with which those of all looks hold at once.

    >>> level_of_each(0.95, 5)
    0.99
    """
    return 1 - (1 - confidence) / n_looks


def played_until(plan: AuditPlan, play: Callable[[AuditPlan], Report]) -> Report:
    """Look at more and more models until what the plan waits for has come."""
    until = plan.until
    assert until is not None
    numbers = looks(until.at_most)
    level = level_of_each(plan.confidence, len(numbers))
    n_made = 0
    for place, n_models in enumerate(numbers):
        report = play(plan.at_look(n_models, level, len(numbers)))
        about = _about(report)
        n_made += 0 if about.execution is None else about.execution.made
        has_come = _all_refuted(report) if until.is_refuted else _narrow(report, until)
        if has_come or n_models == numbers[-1]:
            return _with_note(report, plan, numbers[: place + 1], numbers, level, has_come, n_made)
    raise AssertionError("the last look returns")


def _all_refuted(report: Report) -> bool:
    """Tell whether every claim is refuted."""
    words = [curve.verdict.word for curve in report.curves if curve.verdict is not None]
    return bool(words) and all(word == "refuted" for word in words)


def _narrow(report: Report, wanted: Until) -> bool:
    """Tell whether the interval of the strongest attack on each release is narrow enough."""
    widths = dict(_widths(report, wanted))
    return all(width is not None and width <= (wanted.width or 0) for width in widths.values())


def _widths(report: Report, wanted: Until) -> Iterator[tuple[str, float | None]]:
    """Yield the width of the interval of the strongest attack on each release; None where it has no interval."""
    for release in _about(report).releases:
        found = [
            finding
            for finding in report.findings
            if finding.release == release.name and finding.attack == release.best and _is(finding, wanted)
        ]
        limits = [(finding.low, finding.high) for finding in found if not finding.refused]
        known = [high - low for low, high in limits if low is not None and high is not None]
        yield release.name, known[0] if known else None


def _is(finding: Finding, wanted: Until) -> bool:
    """Tell whether a finding is the one whose interval is to be narrow."""
    return (
        finding.quantity == wanted.name
        and not finding.scope.is_part
        and (wanted.fpr is None or finding.operating_point.get("fpr") == wanted.fpr)
    )


def _with_note(
    report: Report, plan: AuditPlan, done: list[int], numbers: list[int], level: float, has_come: bool, n_made: int
) -> Report:
    """Say at which numbers of models was looked; the plan is the one that was asked for."""
    listed = ", ".join(f"{number:,}" for number in done)
    until = plan.until
    assert until is not None
    if until.is_refuted:
        ended = "every claim was refuted" if has_come else "not every claim was refuted by all of them"
        tests = f" Each look tests the claims at the level of all tests divided by {len(numbers)}."
    else:
        ended = "the interval of the strongest attack " + (
            "was narrow enough" if has_come else "was not narrow enough with all models"
        )
        tests = ""
    note = (
        f"Models were added until {until.words}: looked at {listed} of at most {numbers[-1]:,} models, and {ended}."
        f"{tests} Intervals of each look have a level of {100 * level:g} %, so that those of all {len(numbers)} looks "
        f"that were planned hold together with {100 * plan.confidence:g} %"
    )
    about = _about(report)
    asked = {"n_models": table_of(until), "confidence": plan.confidence}
    facts: dict[str, Any] = {"notes": (note, *about.notes), "plan": {**about.plan, **asked}}
    if about.execution is not None:
        n_models = about.execution.made + about.execution.reused
        facts["execution"] = about.execution.model_copy(update={"made": n_made, "reused": max(0, n_models - n_made)})
    return replace(report, about=about.model_copy(update=facts))


def _about(report: Report) -> AuditAbout:
    assert isinstance(report.about, AuditAbout)
    return report.about
