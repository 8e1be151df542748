"""The charts of a bound: what it allows, its curves, and the accuracy against each record."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from leakbound.reports import Report
from leakbound.reports.charts.dots import Row, dots, dots_size
from leakbound.reports.charts.histograms import SPREAD, spread
from leakbound.reports.charts.lines import chart
from leakbound.reports.charts.roc import GAIN, ROC, gain_on_axes, on_axes
from leakbound.reports.results.bound import BoundResult, bound_result
from leakbound.reports.results.bound_page import accuracies, accuracy_name, accuracy_text


def bound_charts(report: Report) -> Mapping[str, Figure]:
    """Draw the charts that ``bound.md.jinja`` names, as far as there is something to draw."""
    result = bound_result(report)
    drawn: dict[str, Axes] = {}
    if accuracies(result):
        drawn["dots"] = _accuracies(result)
    if result.curves:
        drawn["roc"] = on_axes(chart(report), ROC.axes())
        drawn["gain"] = gain_on_axes(chart(report), GAIN.axes())
    ranking = result.ranking
    if ranking is not None and ranking.accuracy is not None and ranking.median is not None:
        drawn["spread"] = spread(ranking.accuracy, ranking.median, ranking.bound_type, SPREAD.axes(), ranking.row_word)
    return {name: figure_of(axes) for name, axes in drawn.items()}


def figure_of(axes: Axes) -> Figure:
    """Return the figure of axes that were made for a page."""
    figure = axes.get_figure(root=True)
    if figure is None:
        raise ValueError("axes without a figure cannot be drawn")
    return figure


def _accuracies(result: BoundResult) -> Axes:
    """Draw every accuracy, and hatch what a proof forbids."""
    head = result.headline
    rows = []
    for finding in accuracies(result):
        role = "bound" if finding is head else "ceiling"
        name, text = accuracy_name(result, finding), accuracy_text(finding)
        rows.append(Row(name, 100 * (finding.value or 0.0), text, "attack" if finding.attack else role))
    forbidden = None
    if head and head.bound_type == "upper" and head.status == "certified":
        forbidden = 100 * (head.value or 0.0)
    return dots(rows, claim=forbidden, ax=dots_size(len(rows)).axes())
