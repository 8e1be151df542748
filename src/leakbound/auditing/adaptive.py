"""Audits that add models until an interval is narrow enough or a claim is refuted, and that hold all the same.

The numbers of models at which one looks are fixed beforehand: 8, 16, 32, ... up to the largest. At each look the audit
of all models so far is made anew, with thresholds of its own, and its intervals have the level ``1 - alpha/L``, L the
number of looks. By the union bound all L of them hold at once with probability ``1 - alpha``, and so does the one at
which the audit stops, whatever the rule. So do the tests of claims, whose level is divided by L in the same way: a true
claim is refuted at any look with at most the probability with which a single audit refutes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from leakbound.auditing.evaluate import Judgement
from leakbound.auditing.report import AuditRun
from leakbound.core.findings import Finding
from leakbound.plans.until import Until

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


@dataclass(frozen=True)
class Look:
    """One of the looks of an audit: how many models it is of, and the level of its intervals."""

    n_models: int
    confidence: float
    n_looks: int = 1  # how many are planned: the level of the tests of claims is divided by it


@dataclass(frozen=True)
class Seen:
    """What one look has shown."""

    run: AuditRun
    judgements: Sequence[Judgement]


def look_until(until: Until, confidence: float, see: Callable[[Look], Seen]) -> tuple[Look, Seen]:
    """Look at more and more models until what the audit waits for has come; return the last look."""
    numbers = looks(until.at_most)
    level = level_of_each(confidence, len(numbers))
    n_made = 0
    for n_models in numbers:
        look = Look(n_models, level, len(numbers))
        seen = see(look)
        execution = seen.run.execution
        n_made += 0 if execution is None else execution.made
        has_come = _all_refuted(seen.judgements) if until.is_refuted else _narrow(seen.judgements, until)
        if not has_come and n_models < numbers[-1]:
            continue
        if execution is not None:
            # each look takes the models of those before it from the store: what the whole audit made is not reused
            n_reused = max(0, execution.made + execution.reused - n_made)
            execution = execution.model_copy(update={"made": n_made, "reused": n_reused})
        notes = (_note(until, confidence, numbers, n_models, has_come), *seen.run.notes)
        return look, replace(seen, run=replace(seen.run, notes=notes, execution=execution))
    raise AssertionError("the last look returns")


def _all_refuted(judgements: Sequence[Judgement]) -> bool:
    """Tell whether every claim is refuted."""
    curves = [curve for judgement in judgements for curve in judgement.curves]
    words = [curve.verdict.word for curve in curves if curve.verdict is not None]
    return bool(words) and all(word == "refuted" for word in words)


def _narrow(judgements: Sequence[Judgement], wanted: Until) -> bool:
    """Tell whether the interval of the strongest attack on each release is narrow enough."""
    widths = [_width(judgement, wanted) for judgement in judgements]
    return all(width is not None and width <= (wanted.width or 0) for width in widths)


def _width(judgement: Judgement, wanted: Until) -> float | None:
    """Return the width of the interval of the strongest attack on a release; None where it has no interval."""
    for finding in judgement.findings:
        if finding.attack != judgement.facts.best or not _is(finding, wanted) or finding.refused:
            continue
        if finding.low is not None and finding.high is not None:
            return finding.high - finding.low
    return None


def _is(finding: Finding, wanted: Until) -> bool:
    """Tell whether a finding is the one whose interval is to be narrow."""
    return (
        finding.quantity == wanted.name
        and not finding.scope.is_part
        and (wanted.fpr is None or finding.operating_point.get("fpr") == wanted.fpr)
    )


def _note(until: Until, confidence: float, numbers: Sequence[int], last: int, has_come: bool) -> str:
    """Say at which numbers of models was looked."""
    listed = ", ".join(f"{number:,}" for number in numbers if number <= last)
    if until.is_refuted:
        ended = "every claim was refuted" if has_come else "not every claim was refuted by all of them"
        tests = f" Each look tests the claims at the level of all tests divided by {len(numbers)}."
    else:
        ended = "the interval of the strongest attack " + (
            "was narrow enough" if has_come else "was not narrow enough with all models"
        )
        tests = ""
    level = level_of_each(confidence, len(numbers))
    return (
        f"Models were added until {until.words}: looked at {listed} of at most {numbers[-1]:,} models, and {ended}."
        f"{tests} Intervals of each look have a level of {100 * level:g} %, so that those of all {len(numbers)} looks "
        f"that were planned hold together with {100 * confidence:g} %"
    )
