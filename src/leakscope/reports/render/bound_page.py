"""The page of a bound: what a theorem allows any attacker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup

from leakscope.reports import Report
from leakscope.reports.charts.curves import SMALL_ADVANTAGE
from leakscope.reports.charts.figures import bound_dots, gain_figure, roc_figure, spread_figure
from leakscope.reports.render import html
from leakscope.reports.sections import findings
from leakscope.reports.sections.bound import words as bound_words
from leakscope.reports.sections.bound.ranking import Ranking
from leakscope.reports.sections.bound.result import BoundResult, bound_result

LEAST_ROWS = 20  # of fewer a histogram shows less than the table
LONGEST = 160  # characters of a name in the table


@dataclass(frozen=True)
class Exposed:
    """The table of the most exposed rows; a row is pairs of heading and cell."""

    rows_word: str
    ties: str
    heads: Sequence[str]
    rows: Sequence[Sequence[tuple[str, str]]]


def page(report: Report) -> str:
    """The report of a bound as a page.

    Parameters
    ----------
    report : Report
        Of a bound.
        A report without records (`leakscope.reports.Report.without_records`) has no table and no histogram of them.

    Returns
    -------
    str
        One HTML file with its styles, its charts and one script that sorts the findings. Everything that
        came from the user is escaped, and a content security policy forbids the network.

    Examples
    --------
    >>> import leakscope as ls
    >>> "at most 73.2 of 100 cases" in page(ls.bound("dp", epsilon=1.0))
    True
    """
    result = bound_result(report)
    big, unit = bound_words.big(result)
    return html.render(
        "bound.html.jinja",
        **_said(report, result),
        caption="No attacker exceeds an upper bound; some attacker reaches a lower bound.",
        big=big,
        big_unit=unit,
        dots=bound_dots(result, "s0"),
        curves=_curves(report, result),
        curves_note=bound_words.curves_note(result),
        spread=_spread(result),
        exposed=_exposed(result, result.ranking) if result.ranking else None,
    )


def notebook(report: Report) -> str:
    """The report as a fragment for a notebook: lede, findings and the ceiling, with styles of its own."""
    result = bound_result(report)
    prefix = f"n{report.digest()[:6]}"  # several reports stand in one notebook
    panels = [{"title": "", "figure": roc_figure(report, result, prefix)}] if result.curves else []
    return html.fragment("notebook.html.jinja", **_said(report, result), curves=panels)


def _said(report: Report, result: BoundResult) -> dict[str, Any]:
    """What page and notebook have in common."""
    groups = findings.groups(result.parts, findings.as_given)
    if len(groups) == 1 and result.parts[0].of_all:
        groups = [replace(groups[0], title="")]
    return {
        **html.common(report, result.about),
        "found": result,
        "title": bound_words.question(result),
        "facts": bound_words.facts(result),
        "lede": bound_words.lede(result),
        "interval_head": bound_words.interval_head(result),
        "groups": groups,
    }


def _curves(report: Report, result: BoundResult) -> list[dict[str, Any]]:
    """The ceilings on logarithmic axes, and their gain over guessing where it is small."""
    if not result.curves:
        return []
    panels = [{"title": "Logarithmic axes", "figure": roc_figure(report, result, "r0")}]
    if result.advantage < SMALL_ADVANTAGE:
        panels.append({"title": "Gain over guessing", "figure": gain_figure(report, result, "g0")})
    return panels


def _spread(result: BoundResult) -> dict[str, Markup] | None:
    """The histogram over the records with its note."""
    ranking = result.ranking
    if ranking is None or ranking.median is None or ranking.n_rows < LEAST_ROWS:
        return None
    figure, logarithmic = spread_figure(ranking, "h0")
    return {"figure": figure, "note": bound_words.spread_note(result, logarithmic)}


def _exposed(result: BoundResult, ranking: Ranking) -> Exposed:
    heads = [ranking.head(column) for column in ranking.table]
    rows = [list(zip(heads, row.values(), strict=True)) for row in ranking.shown(LONGEST)]
    return Exposed(ranking.rows_word, bound_words.ties(result), heads, rows)
