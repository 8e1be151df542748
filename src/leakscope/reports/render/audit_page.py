"""The page of an audit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from leakscope.reports import Report
from leakscope.reports.charts.curves import SMALL_ADVANTAGE
from leakscope.reports.charts.figures import audit_dots, gain_figure, histogram_figure, roc_figure
from leakscope.reports.render import html
from leakscope.reports.sections import findings
from leakscope.reports.sections.audit import claims as verdicts
from leakscope.reports.sections.audit import notes, words
from leakscope.reports.sections.audit.records import Exposed, exposed
from leakscope.reports.sections.audit.result import Result, results
from leakscope.reports.sections.quantities import shown

MOST_CURVES = 4


def page(report: Report) -> str:
    """The report of an audit as a page.

    Parameters
    ----------
    report : Report
        Of an audit.
        In one without records (`leakscope.reports.Report.without_records`) the most exposed are counted, not shown,
        and the histogram of games is there only if there are at least 100 records.

    Returns
    -------
    str
        One HTML file with its styles, its charts and one script that sorts the findings. Everything that
        came from the user is escaped, and a content security policy forbids the network.

    Examples
    --------
    >>> import numpy as np
    >>> import leakscope as ls
    >>> rng = np.random.default_rng(0)
    >>> member = rng.random(200) < 0.5
    >>> report = ls.audit_scores(rng.normal(size=200) + member, member)
    >>> page(report).startswith("<!doctype html>")
    True
    """
    found = results(report)
    return html.render(
        "audit.html.jinja",
        **_said(report, found),
        caption=f"A lower bound means: the best attacker reaches at least this. {notes.over(found)}",
        contradictions=verdicts.contradictions(found),
        summaries=[_summary(result, f"s{place}") for place, result in enumerate(found)],
        claims=verdicts.lines(found),
        ceilings=any(result.ceilings for result in found),
        curves=_curves(report, found),
        games=_games(found),
        exposed=_exposed(found),
    )


def notebook(report: Report) -> str:
    """The report as a fragment for a notebook: lede, the ordered attacks and the ROC, with styles of its own.

    Parameters
    ----------
    report : Report
        Of an audit.

    Examples
    --------
    >>> import numpy as np
    >>> import leakscope as ls
    >>> rng = np.random.default_rng(0)
    >>> member = rng.random(200) < 0.5
    >>> report = ls.audit_scores(rng.normal(size=200) + member, member)
    >>> notebook(report).startswith('<div class="leakscope">')
    True
    """
    found = results(report)
    prefix = f"n{report.digest()[:6]}"  # several reports stand in one notebook
    panels = [
        _panel(result, roc_figure(report, result, f"{prefix}-{place}")) for place, result in enumerate(_worst(found))
    ]
    return html.fragment("notebook.html.jinja", **_said(report, found), curves=panels)


def _said(report: Report, found: Sequence[Result]) -> dict[str, Any]:
    """What page and notebook have in common."""
    return {
        **html.common(report, found[0].about),
        "found": found,
        "title": words.question(found),
        "facts": words.facts(found),
        "lede": words.lede(found),
        "interval_head": f"{words.level(found[0])} interval",
        "layout": "one" if len(found) == 1 else "two",
        "groups": findings.groups(found, findings.ordered),
    }


def _summary(result: Result, prefix: str) -> dict[str, Any]:
    """The big number, the paragraph and the dot plot of a release."""
    accuracy = result.accuracy
    big, unit = "—", ""
    if accuracy is not None and result.too_few:
        big, unit = str(round((accuracy.value or 0) * result.n_games)), f"of {result.n_games}"
    elif accuracy is not None:
        big, unit = shown(accuracy).value, "of 100"
    figure = Markup("") if result.too_few else audit_dots(result, prefix)
    return {"title": result.title, "big": big, "unit": unit, "text": words.summary(result), "figure": figure}


def _curves(report: Report, found: Sequence[Result]) -> list[dict[str, Any]]:
    """ROC of the releases, of the worst four where there are more; then their gains over guessing."""
    drawn = [result for result in _worst(found) if not result.too_few]
    small = max((result.advantage for result in drawn), default=1.0) < SMALL_ADVANTAGE
    said = {result.name: notes.curves(result) for result in drawn}
    apart = len(set(said.values())) > 1  # a note that is the same for all stands once, under all of them
    panels = []
    for place, result in enumerate(drawn):
        note = said[result.name] if apart else ""
        panels.append(_panel(result, roc_figure(report, result, f"r{place}"), note))
    for place, result in enumerate(drawn if small else ()):
        panels.append(_panel(result, gain_figure(report, result, f"g{place}")))
    return panels


def _panel(result: Result, figure: Markup, note: str = "") -> dict[str, Any]:
    return {"title": result.title, "figure": figure, "note": note}


def _games(found: Sequence[Result]) -> list[dict[str, Any]]:
    """Histograms of games won, or the sentence that stands in their place."""
    panels = []
    for place, result in enumerate(found):
        if result.games is None or result.too_few:
            continue
        drawn = histogram_figure(result, f"h{place}") if result.first_exposed and result.games.won else Markup("")
        panels.append(_panel(result, drawn, Markup("") if result.n_exposed else words.exposure(result)))
    return panels


def _exposed(found: Sequence[Result]) -> list[Exposed]:
    return [table for result in found if not result.too_few and (table := exposed(result)) is not None]


def _worst(found: Sequence[Result]) -> Sequence[Result]:
    """The four releases that reveal most, in the order of the plan."""
    if len(found) <= MOST_CURVES:
        return found
    order = sorted(found, key=lambda result: result.strength, reverse=True)[:MOST_CURVES]
    return [result for result in found if result in order]
