"""The charts of a release with noise: what it promises, and its ceilings."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from leakbound.reports import Report
from leakbound.reports.charts.canvas import figure_of
from leakbound.reports.charts.dots import dots, dots_size
from leakbound.reports.charts.lines import chart
from leakbound.reports.charts.roc import GAIN, ROC, gain_on_axes, on_axes
from leakbound.reports.results.release.page import dots_of
from leakbound.reports.results.release.result import release_result


def release_charts(report: Report) -> Mapping[str, Figure]:
    """Draw the charts that ``promises/*.md.jinja`` name, as far as there is something to draw."""
    result = release_result(report)
    drawn = {}
    rows = dots_of(result)
    if rows:
        axes = dots_size(len(rows)).axes()
        drawn["dots"] = figure_of(dots(rows, claim=100 * result.promised_of_all, ax=axes))
    if result.curves:
        drawn["roc"] = figure_of(on_axes(chart(report), ROC.axes()))
        drawn["gain"] = figure_of(gain_on_axes(chart(report), GAIN.axes()))
    return drawn
