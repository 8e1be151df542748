"""The chart of a report on axes of the caller or on its own, and that of a single curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from leakbound.reports import Curve, Report
from leakbound.reports.charts.canvas import figures
from leakbound.reports.charts.guesses import guesses
from leakbound.reports.charts.lines import Chart, chart, curve_chart
from leakbound.reports.charts.plain import plain
from leakbound.reports.charts.roc import ROC, on_axes

MOST_ATTACKS = 4  # on a protected release


def plot(
    report: Report,
    ax: Axes | None = None,
    release: str | None = None,
    attacks: Sequence[str] | None = None,
    legend: bool = True,
) -> Axes:
    """Draw attacks and ceilings on one log-log axis, or of an attribute the correct guesses of each strategy."""
    if report.about.kind == "attribute":
        if attacks is not None:
            raise ValueError("attacks are chosen for a ROC; of an attribute all strategies are drawn")
        return guesses(report, ax, release)
    drawn = chosen(chart(report, release), attacks)
    return on_axes(drawn) if ax is None else plain(drawn, ax, legend)


def chosen(drawn: Chart, attacks: Sequence[str] | None) -> Chart:
    """Keep the lines of some attacks, and all ceilings."""
    if attacks is None:
        return drawn
    names = [attacks] if isinstance(attacks, str) else list(attacks)
    known = [line.name for line in drawn.lines if line.name]
    for name in names:
        if name not in known:
            raise KeyError(f"no curve of the attack {name!r}; this chart has: {', '.join(known) or 'none'}")
    return replace(drawn, lines=[line for line in drawn.lines if not line.name or line.name in names])


def curve_figures(curve: Curve) -> Mapping[str, Figure]:
    """Draw the chart that ``curve.md.jinja`` names: a single curve on logarithmic axes."""
    return figures({"roc": on_axes(curve_chart(curve), ROC.axes())})
