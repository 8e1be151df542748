"""The page of a protected release: its values, its certificate, and what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from leakscope.reports import Report
from leakscope.reports.charts.curves import SMALL_ADVANTAGE
from leakscope.reports.charts.figures import gain_figure, protected_dots, roc_figure
from leakscope.reports.numbers import percent
from leakscope.reports.phrases import title
from leakscope.reports.render import html
from leakscope.reports.sections import findings
from leakscope.reports.sections.parts import Part
from leakscope.reports.sections.protected import certificate as protected_certificate
from leakscope.reports.sections.protected import costs as protected_costs
from leakscope.reports.sections.protected import words as protected_words
from leakscope.reports.sections.protected.costs import Cells
from leakscope.reports.sections.protected.result import ProtectedResult, protected_result
from leakscope.reports.sections.words import say

MOST_ROWS = 8  # values that stand open; the others fold
MOST_FOLDED = 200


@dataclass(frozen=True)
class Table:
    """Rows of cells by heading: those that stand open, those that fold, and how many are left out."""

    heads: Sequence[str]
    rows: Sequence[Cells]
    folded: Sequence[Cells]
    n_left_out: int


def page(report: Report, records: bool = True) -> str:
    """The report of a protected release as a page.

    Parameters
    ----------
    report : Report
        Of a protected release.
    records : bool
        Makes no difference: this page never shows a record.

    Returns
    -------
    str
        One HTML file with its styles, its charts and one script that sorts the findings. Neither the values
        without noise, nor the seed of the noise, nor who is most exposed stands in it.

    Raises
    ------
    ValueError
        If the report has a table of records.
    """
    result = protected_result(report)
    big, unit = protected_words.big(result)
    return html.render(
        "protected.html.jinja",
        **_said(report, result),
        caption="No attacker exceeds an upper bound; some attacker reaches a lower bound.",
        big=big,
        big_unit=unit,
        dots=protected_dots(result, "s0"),
        certificate=_certificate(result),
        curves=_curves(report, result),
        values=_table(protected_costs.values(result)),
        costs=_table(protected_costs.costs(result)),
        comparison=_table(protected_costs.comparison(result)),
        totals=_table(protected_costs.totals(result)),
    )


def notebook(report: Report) -> str:
    """The report as a fragment for a notebook: promise, findings and the curves, with styles of its own."""
    result = protected_result(report)
    prefix = f"n{report.digest()[:6]}"  # several reports stand in one notebook
    panels = [{"title": "", "figure": roc_figure(report, result, prefix)}] if result.curves else []
    said = _said(report, result)
    sentences = (said["warning"], said["lede"], protected_words.promise(result))
    return html.fragment("notebook.html.jinja", **said | {"lede": protected_words.joined(sentences)}, curves=panels)


def groups(result: ProtectedResult) -> list[findings.Group]:
    """The findings of the release, or of the calibration, and of the same without noise."""
    own = "This release" if result.values else "This calibration"
    return [
        replace(group, title=own) if part.of_all else group
        for part, group in zip(result.parts, findings.groups(result.parts, findings.as_given), strict=True)
    ]


def _others(result: ProtectedResult) -> list[findings.Group]:
    """The findings of all baselines together, each under its name."""
    if not result.baselines:
        return []
    part = Part("", result.baselines, result.about)
    rows = [(title(each.release, each.scope, result.unit), findings.row(part, each)) for each in result.baselines]
    named = [replace(row, quantity=say("{name}: {said}", name=name, said=row.quantity)) for name, row in rows]
    return [findings.Group("Other methods, for the same promise", named, ())]


def interval_head(result: ProtectedResult) -> str:
    """The heading of the intervals."""
    return f"{percent(result.about.confidence)} interval" if result.about.confidence < 1 else "Interval"


def _said(report: Report, result: ProtectedResult) -> dict[str, Any]:
    """What page and notebook have in common."""
    return {
        **html.common(report, result.about),
        "found": result,
        "title": protected_words.question(result),
        "facts": protected_words.facts(result),
        "warning": protected_words.warning(result),
        "lede": protected_words.lede(result),
        "interval_head": interval_head(result),
        "groups": [*groups(result), *_others(result)],
    }


def _certificate(result: ProtectedResult) -> dict[str, Any]:
    """The box."""
    return {
        "void": result.void,
        "verdict": protected_certificate.verdict(result),
        "promised": protected_certificate.promised(result),
        "rows": protected_certificate.rows(result),
    }


def _curves(report: Report, result: ProtectedResult) -> list[dict[str, Any]]:
    """The curves on logarithmic axes, and their gain over guessing where it is small."""
    if not result.curves:
        return []
    panels = [{"title": "Logarithmic axes", "figure": roc_figure(report, result, "r0")}]
    if result.advantage < SMALL_ADVANTAGE:
        panels.append({"title": "Gain over guessing", "figure": gain_figure(report, result, "g0")})
    return panels


def _table(rows: Sequence[Cells]) -> Table | None:
    """The rows of a table, the first few open; nothing without rows."""
    if not rows:
        return None
    folded = rows[MOST_ROWS : MOST_ROWS + MOST_FOLDED]
    return Table(list(rows[0]), rows[:MOST_ROWS], folded, len(rows) - MOST_ROWS - len(folded) if folded else 0)
