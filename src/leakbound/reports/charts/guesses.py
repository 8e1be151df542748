"""The chart of an audit of an attribute: correct guesses of each strategy, about members and about others."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from leakbound.reports import Report
from leakbound.reports.charts.canvas import CLAIM, DASHED, DOTTED, INK, Size, figures, panel_size, write
from leakbound.reports.charts.dots import dots, dots_size
from leakbound.reports.results.attribute import attribute_results
from leakbound.reports.results.attribute_page import guesses_of


def guesses_size(n_rows: int) -> Size:
    """Return the size of a chart of so many rows."""
    return dots_size(n_rows, below=64.0)


def guesses(report: Report, ax: Axes | None = None, release: str | None = None) -> Axes:
    """Draw the cases of 100 in which each strategy is right, compared with what needs no release."""
    by_name = {result.facts.name: result for result in attribute_results(report)}
    name = next(iter(by_name)) if release is None else release
    if name not in by_name:
        raise KeyError(f"no release {name!r}; this report has: {', '.join(by_name)}")
    result = by_name[name]
    rows = guesses_of(result)
    ax = guesses_size(len(rows)).shown() if ax is None else ax
    dots(rows, ax=ax, baseline=0.0, joined=False)
    ax.axvline(100 * result.facts.chance, color=INK, linewidth=1, linestyle=DOTTED, zorder=1)
    ax.axvline(100 * result.baseline_accuracy, color=CLAIM, linewidth=1.7, linestyle=DASHED, zorder=1)
    width, _ = panel_size(ax)
    write(ax, (width, -53), f"without the release: {result.baseline_title.lower()}", color=CLAIM, align="right")
    return ax


def guesses_charts(report: Report) -> Mapping[str, Figure]:
    """Draw the charts that ``attribute.md.jinja`` names, one a release."""
    charts: dict[str, Axes] = {}
    for place, result in enumerate(attribute_results(report)):
        ax = guesses_size(len(guesses_of(result))).axes()
        charts[f"guesses{place}"] = guesses(report, ax, result.facts.name)
    return figures(charts)
