"""The charts of a bound: what it allows, its curves, and the accuracy against each record."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from leakbound.reports import Report
from leakbound.reports.charts.canvas import figures
from leakbound.reports.charts.dots import dots, dots_size
from leakbound.reports.charts.histograms import SPREAD, spread
from leakbound.reports.charts.lines import chart
from leakbound.reports.charts.roc import GAIN, ROC, gain_on_axes, on_axes
from leakbound.reports.results.bound import BoundResult, bound_result
from leakbound.reports.results.bound_page import dots_of


def bound_charts(report: Report) -> Mapping[str, Figure]:
    """Draw the charts that ``bound.md.jinja`` names, as far as there is something to draw."""
    result = bound_result(report)
    drawn: dict[str, Axes] = {}
    rows = dots_of(result)
    if rows:
        drawn["dots"] = dots(rows, _forbidden(result), dots_size(len(rows)).axes())
    if result.curves:
        drawn["roc"] = on_axes(chart(report), ROC.axes())
        drawn["gain"] = gain_on_axes(chart(report), GAIN.axes())
    ranking = result.ranking
    if ranking is not None and ranking.accuracy is not None and ranking.median is not None:
        drawn["spread"] = spread(ranking.accuracy, ranking.median, ranking.bound_type, SPREAD.axes(), ranking.row_word)
    return figures(drawn)


def _forbidden(result: BoundResult) -> float | None:
    """Return the accuracy above which a proof forbids all."""
    head = result.headline
    is_proved = head is not None and head.bound_type == "upper" and head.status == "certified"
    return 100 * (head.value or 0.0) if head is not None and is_proved else None
