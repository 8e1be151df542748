"""Controls of synthetic data: what is found of members, of others that were not used, and the difference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from leakbound.core.findings import Finding
from leakbound.core.reasons import words as reason_words
from leakbound.reports.numbers import count
from leakbound.reports.results.audit.groups import with_interval
from leakbound.reports.results.audit.result import Result, level, written
from leakbound.reports.results.findings import OF_CONTROLS, Text, inferred_column
from leakbound.reports.results.quantities import shown
from leakbound.reports.results.words import several
from leakbound.reports.sentences import Sentence, Texts


def control(results: Sequence[Result]) -> Texts | None:
    """Write the controls of synthetic data; None of anything else."""
    result = results[0]
    facts = result.facts.synthetic
    if facts is None:
        return None
    findings = [finding for finding in result.findings if finding.quantity in OF_CONTROLS]
    rows = [_row(result, finding) for finding in findings if finding.quantity != "disclosed_fraction"]
    return Texts(rows=rows, sentences=list(_sentences(result)))


def _row(result: Result, finding: Finding) -> Texts:
    """Write fractions and their difference; or why there are none."""
    what = Sentence(f"control.{finding.quantity}", _of_what(finding))
    if finding.value is None:
        why = "" if finding.reason is None else reason_words(finding.reason)
        dash = Sentence("value.none")
        return Texts(what=what, members=dash, others=dash, difference=why)
    members, others = _counted(finding, "members"), _counted(finding, "others")
    return Texts(what=what, members=members, others=others, difference=with_interval(finding))


def _of_what(finding: Finding) -> dict[str, Text]:
    """Return the columns or rows by which something is found."""
    at = finding.operating_point
    gaps: dict[str, Text] = {}
    if "columns" in at:
        gaps["columns"] = several(int(at["columns"]), "column")
    if "neighbours" in at:
        gaps["rows"] = several(int(at["neighbours"]), "nearest row")
    if finding.quantity == "excess_inferred":
        gaps["column"] = inferred_column(finding)
    return gaps


def _counted(finding: Finding, side: str) -> Sentence:
    gaps = {"part": count(int(finding.detail[side])), "whole": count(int(finding.detail[f"of_{side}"]))}
    return Sentence("value.part", gaps)


def of_matches(result: Result) -> Iterator[Sentence]:
    """Say first of all how many members and others equal a synthetic row."""
    finding = result.find("excess_matches")
    if finding is None:
        return
    gaps = {"members": _counted(finding, "members"), "others": _counted(finding, "others")}
    text = shown(finding)
    difference = {"difference": text.value, "interval": text.interval, "level": level(result, finding)}
    is_more = finding.low is not None and finding.low > 0
    yield written(result, "control.more" if is_more else "control.not_more", **gaps, **difference)


def _sentences(result: Result) -> Iterator[Sentence]:
    """Say what the exact matches disclose, and what was taken out beforehand."""
    disclosed = result.find("disclosed_fraction")
    if disclosed is not None:
        text = shown(disclosed)
        gaps = {"value": text.value, "interval": text.interval, "level": level(result, disclosed)}
        yield written(result, "control.disclosed", **gaps)
    yield written(result, "control.singled_out")
    yield Sentence("control.distance")
