"""What of a report may go to somebody who may not see the data: it is declared here, field by field.

Left out are the table with a row a record (rows, names, labels, who was a member, one number for each record),
findings that tell of one record (`Finding.per_record`), the indices and names of records (in their `Scope`), and the
fields of `OF_RECORDS`. What is left are averages, limits that hold for all records at once, and curves over all of
them; a curve is left out if all numbers beside it tell of one record. They are still functions of the data: nothing
here is differential privacy.

A slice or a group keeps its name, which is a column that the plan names and a value of it, if it has at least
`FEWEST_OF_SLICE` records; smaller ones are left out and counted. Of a slice only what `OF_SLICE` names is kept. The
numbers of its members and others are not: where all of few records are members, they tell so of each, and those of
the other slices, subtracted from all, tell the same. For this reason no reason with such counts is kept either. The
ends of a quarter and the thresholds of attacks are values of single records, and are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from leakbound.core.findings import Finding, Term
from leakbound.reports import Report
from leakbound.reports.about import FEWEST_OF_SLICE

LEAST_FOR_HISTOGRAM = 100  # records; of fewer, the histogram of correct guesses tells of single ones
COUNTS = ("degrees_of_freedom", "smallest_leaf", "smallest_group", "one_label_groups", "stores_records")
# kept of `Finding.detail`
OF_SLICE = ("column", "records", "rest", "rest_low", "rest_high", "between_model_spread", "judged", "largest")
OF_SINGLE_RECORDS = ("threshold",)  # of `Finding.detail`: the score of a record
RATE_REASONS = ("fpr_not_resolvable", "tpr_not_resolvable", "one_threshold", "strictest_threshold")
LEFT_OUT = Term("single_record")


def _nothing(value: Any) -> Any:
    """Return an empty value of the same kind."""
    return type(value)()


def _without_targets(game: Any) -> Any:
    """Leave out the indices of the attacked records; a game without fields is its name."""
    if not isinstance(game, Mapping):
        return game
    return {
        name: {field: value for field, value in fields.items() if field not in ("target", "targets")}
        for name, fields in game.items()
    }


def _few(group: Mapping[str, Any]) -> bool:
    """Whether a group has so few records that its name stays with the owner."""
    return group["records"] < FEWEST_OF_SLICE


def _without_small_groups(release: Mapping[str, Any]) -> Mapping[str, Any]:
    """Leave out small groups and their names, and how many records of a group are exposed."""
    facts = release.get("groups")
    if not facts:
        return release
    hidden = {group["name"] for group in facts["groups"] if _few(group)}
    kept = []
    for group in facts["groups"]:
        if not _few(group):
            names = [name for name in group["joined"] if name not in hidden]
            # with how many models its smallest part could be judged tells how many records that has
            needed = group["models_needed"] if len(names) == len(group["joined"]) else None
            kept.append({**group, "joined": names, "models_needed": needed, "exposed": None})
    return {**release, "groups": {**facts, "groups": kept, "left_out": facts["left_out"] + len(hidden)}}


def _coarse(games: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Games against single records: how many are exposed, and the histogram where it is over many."""
    if games is None or games["records"] >= LEAST_FOR_HISTOGRAM:
        return games
    return {**games, "won": []}


def _without_counts(check: Mapping[str, Any]) -> Mapping[str, Any]:
    """Leave out counts of the fitted model, the smallest of which may be of a single record."""
    if check["check"] not in COUNTS:
        return check
    reason = check.get("reason")
    if reason is not None and reason["id"].startswith("holds_"):  # with counts, and names of columns and attributes
        reason = {"id": "holds_records", "values": {}}
    elif reason is not None and reason["id"] in ("unexplained_attributes", "no_records_in_extra"):
        reason = {**reason, "values": {**reason["values"], "names": "(not published)"}}
    return {**check, "value": None, "reason": reason}


# Where a report is about single records outside of its table, by path; ``*`` is every item of a list.
OF_RECORDS: Mapping[tuple[str, ...], Callable[[Any], Any]] = {
    ("data", "digest"): _nothing,  # who knows all records but one finds that one by trying
    ("releases", "*", "data", "digest"): _nothing,
    ("releases", "*", "games"): _coarse,
    ("releases", "*"): _without_small_groups,
    ("plan", "game"): _without_targets,
    ("plan", "target"): _nothing,  # of reports of before
    ("command",): lambda command: re.sub(r"\b(targets?)=(\[[\d,]*\]|\d+)", r"\1=...", command),
    ("decisions", "*", "checks", "*"): _without_counts,
    ("failed",): lambda failed: dict.fromkeys(failed, ""),  # an estimator's error may quote a value
    ("owner_notes",): _nothing,  # an estimator's error may quote a value
}


def is_for_owner(report: Report) -> bool:
    """Tell whether an audit holds what only the owner of the data may see: it was not made for publication.

    >>> import leakbound as ls
    >>> is_for_owner(ls.bound("dp", epsilon=1.0))
    False
    """
    if report.about.kind not in ("audit", "attribute"):
        return False
    has_numbers = any(finding.per_record and finding.value is not None for finding in report.findings)
    return bool(report.record_table) or has_numbers


def without_records(report: Report) -> Report:
    """Return a report that tells of no single record.

    >>> import leakbound as ls
    >>> from leakbound.core.findings import Scope
    >>> bound = Finding("leakage_score", 9.5, scope=Scope("worst", 17), per_record=True)
    >>> report = replace(ls.bound("dp", epsilon=1.0), findings=[bound], record_table={"record": [17], "score": [9.5]})
    >>> free = without_records(report)
    >>> dict(free.record_table), free.findings[0].scope.index, free.findings[0].value
    ({}, None, None)
    """
    content = report.about.model_dump()
    small_groups = {
        (release["name"], group["name"])
        for release in content.get("releases", ())
        for group in (release.get("groups") or {}).get("groups", ())
        if _few(group)
    }
    for path, less in OF_RECORDS.items():
        content = _changed(content, path, less)
    for decision in content.get("decisions", ()):
        for check in decision["checks"]:
            if (decision["release"], check["group"]) in small_groups:
                check["group"] = ""
    small = {(finding.release, finding.scope) for finding in report.findings if _is_small(finding)}
    for release in content.get("releases", ()):
        if release.get("slices"):
            n_small = sum(name == release["name"] for name, scope in small if scope.kind == "slice")
            release["slices"] = {**release["slices"], "left_out": release["slices"]["left_out"] + n_small}
    about = type(report.about).model_validate(content)
    kept = (finding for finding in report.findings if (finding.release, finding.scope) not in small)
    findings = tuple(_without_record(finding) for finding in kept)
    of_others = {(finding.release, finding.scope) for finding in report.findings if not finding.per_record}
    of_records = {(finding.release, finding.scope) for finding in report.findings} - of_others
    shown = (curve for curve in report.curves if (curve.release, curve.scope) not in of_records)
    curves = tuple(replace(curve, scope=curve.scope.unnamed) for curve in shown)
    return Report(about, findings, curves, {})


def _is_small(finding: Finding) -> bool:
    """Whether a finding is about a slice of few records."""
    return finding.scope.is_part and finding.detail.get("records", 0) < FEWEST_OF_SLICE


def _without_record(finding: Finding) -> Finding:
    """Keep a number for all records; replace one about a single record by the reason why it is not here."""
    if finding.scope.is_part:  # of so many records that it keeps its name
        detail = {name: value for name, value in finding.detail.items() if name in OF_SLICE}
        return replace(finding, detail=detail, reason=_without_counts_of_slice(finding.reason))
    if not finding.per_record or finding.value is None:
        detail = {name: value for name, value in finding.detail.items() if name not in OF_SINGLE_RECORDS}
        return replace(finding, detail=detail, reason=_without_sizes(finding.reason), scope=finding.scope.unnamed)
    hidden = {"value": None, "low": None, "high": None, "confidence": None, "detail": {}, "refused": ""}
    return replace(finding, **hidden, scope=finding.scope.unnamed, reason=LEFT_OUT)


def _without_sizes(reason: Term | None) -> Term | None:
    """Leave out how few members or others there are."""
    if reason is not None and reason.id == "few_records":
        return Term("few_of_each", fewest=reason.values["fewest"])
    return reason


def _without_counts_of_slice(reason: Term | None) -> Term | None:
    """Keep a reason that counts no records; replace others by what may be said."""
    if reason is not None and reason.id in RATE_REASONS:
        return Term("rate_not_reached_in_slice")
    coarse = _without_sizes(reason)
    if coarse is None or coarse.id == "few_of_each":
        return coarse
    counts = [value for value in coarse.values.values() if not isinstance(value, str)]
    return Term("without_counts") if counts or coarse.id == "own_words" else coarse


def _changed(value: Any, path: tuple[str, ...], less: Callable[[Any], Any]) -> Any:
    """Change a value at a path; unchanged where the path leads nowhere."""
    if not path:
        return less(value)
    step, *rest = path
    if step == "*" and isinstance(value, list | tuple):
        return [_changed(item, tuple(rest), less) for item in value]
    if isinstance(value, Mapping) and value.get(step) is not None:
        return {**value, step: _changed(value[step], tuple(rest), less)}
    return value
