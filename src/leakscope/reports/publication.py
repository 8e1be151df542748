"""What of a report may go to somebody who may not see the data: it is declared here, field by field.

Left out are the table with a row a record (rows, labels, who was a member, one number for each record), findings that
tell of one record (`Finding.per_record`), the indices and names of records (in their `Scope`), and the
fields of `OF_RECORDS`. What is left are averages, limits that hold for all records at once, and curves over all of
them. They are still functions of the data: nothing here is differential privacy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from leakscope.core.findings import Finding, Term
from leakscope.reports import Report

LEAST_FOR_HISTOGRAM = 100  # records; of fewer, the histogram of games won tells of single ones
LEFT_OUT = Term("single_record")


def _nothing(value: Any) -> Any:
    """Return an empty value of the same kind."""
    return type(value)()


def _coarse(games: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Games against single records: how many are exposed, and the histogram where it is over many."""
    if games is None or games["records"] >= LEAST_FOR_HISTOGRAM:
        return games
    return {**games, "won": []}


# Where a report is about single records outside of its table, by path; ``*`` is every item of a list.
OF_RECORDS: Mapping[tuple[str, ...], Callable[[Any], Any]] = {
    ("data", "digest"): _nothing,  # who knows all records but one finds that one by trying
    ("releases", "*", "data", "digest"): _nothing,
    ("releases", "*", "games"): _coarse,
    ("plan", "target"): _nothing,  # numbers of the attacked records
    ("owner_notes",): _nothing,  # an estimator's error may quote a value
}


def without_records(report: Report) -> Report:
    """Return a report that tells of no single record.

    Parameters
    ----------
    report : Report

    Returns
    -------
    Report
        The same findings and curves, less what the declarations of this module name.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import leakscope as ls
    >>> from leakscope.core.findings import Finding, Scope
    >>> from leakscope.reports.publication import without_records
    >>> bound = Finding("leakage_score", 9.5, scope=Scope("worst", 17), per_record=True)
    >>> report = replace(ls.bound("dp", epsilon=1.0), findings=[bound], record_table={"record": [17], "score": [9.5]})
    >>> free = without_records(report)
    >>> dict(free.record_table), free.findings[0].scope.index, free.findings[0].value
    ({}, None, None)
    """
    content = report.about.model_dump()
    for path, less in OF_RECORDS.items():
        content = _changed(content, path, less)
    about = type(report.about).model_validate(content)
    findings = tuple(_without_record(finding) for finding in report.findings)
    curves = tuple(replace(curve, scope=curve.scope.unnamed) for curve in report.curves)
    return Report(about, findings, curves, {})


def _without_record(finding: Finding) -> Finding:
    """Keep a number for all records; replace one about a single record by the reason why it is not here."""
    if not finding.per_record or finding.value is None:
        return replace(finding, scope=finding.scope.unnamed)
    hidden = {"value": None, "low": None, "high": None, "confidence": None, "detail": {}, "refused": ""}
    return replace(finding, **hidden, scope=finding.scope.unnamed, reason=LEFT_OUT)


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
