"""The sections of an audit of an attribute."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from leakbound.core.findings import Finding
from leakbound.reports import Report
from leakbound.reports.sections.attribute import words
from leakbound.reports.sections.attribute.result import BASELINES, AttributeResult, attribute_results, ordered
from leakbound.reports.sections.document import (
    Block,
    Document,
    Figure,
    Heading,
    Panel,
    Rows,
    Section,
    findings_section,
    interval_head,
    noted,
)
from leakbound.reports.sections.findings import groups, not_run
from leakbound.reports.sections.quantities import shown

CAPTION = "Only a gain is what the release adds; an accuracy is also what anybody could have guessed."


def document(report: Report) -> Document:
    """Write an audit of an attribute down."""
    results = attribute_results(report)
    about = results[0].about
    table = groups(results, ordered)
    head = interval_head(about.confidence)
    prefix = f"n{report.digest()[:6]}"  # several reports may be in one notebook
    text: list[Block] = [[words.lede(results)]]
    for result in results:
        text += _text_of(result, alone=len(results) == 1)
    releases = [_release(result, f"s{place}") for place, result in enumerate(results)]
    summary = {"lede": words.lede(results), "releases": releases, "note": words.under(results)}
    return Document(
        about,
        words.question(results),
        words.facts(results),
        words.lede(results),
        head,
        table,
        [
            Section("summary", summary, text),
            findings_section(table, head, CAPTION),
            Section("attribute_method", {"found": results, "guessed": words}, noted(about)),
        ],
        [Panel(result.title, Figure("guesses", result, f"{prefix}-{i}")) for i, result in enumerate(results)],
    )


def _release(result: AttributeResult, prefix: str) -> dict[str, Any]:
    """Collect the big number, the paragraph and the chart of a release."""
    gain = result.gain
    big, unit = ("—", "") if gain is None else (shown(gain).value, "of 100 more")
    figure = Figure("guesses", result, prefix)
    return {"title": result.title, "big": big, "unit": unit, "text": words.summary(result), "figure": figure}


def _text_of(result: AttributeResult, alone: bool) -> list[Block]:
    """Lay out a release in a text: the strategies, those that did not run, and the summary."""
    findings = (finding for finding in result.findings if finding.attack in result.strategies)
    heading = [] if alone else [Heading(result.title)]
    return [[*heading, Rows(list(_rows(result)))], not_run(result, findings), [words.summary(result)]]


def _rows(result: AttributeResult) -> Iterator[dict[str, str]]:
    """Lay out a row a strategy, then those that need no release."""
    for name in result.strategies:
        yield {
            "strategy": result.attack_title(name),
            "members": _cell(result.find("attribute_accuracy", name, True)),
            "not in": _cell(result.find("attribute_accuracy", name, False)),
            "the release adds": _cell(result.find("attribute_gain", name)),
        }
    for name in BASELINES:
        right = _cell(result.find("attribute_accuracy", name, True))
        yield {"strategy": result.attack_title(name), "members": right, "not in": "-", "the release adds": "-"}
    chance = words.of_100(result.facts.chance)
    yield {"strategy": "Chance", "members": chance, "not in": chance, "the release adds": "-"}


def _cell(finding: Finding | None) -> str:
    """``91.3 (91.1..91.5)``, or a dash."""
    if finding is None:
        return "-"
    text = shown(finding)
    ends = f" ({text.low}..{text.high})" if text.low and text.high else ""
    return f"{text.value}{ends}"
