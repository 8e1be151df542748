"""The figures of a page: each chart is drawn at its own size and becomes an SVG with a title and a description."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from markupsafe import Markup
from matplotlib.axes import Axes

from leakbound.reports import Curve, Report
from leakbound.reports.charts import svg
from leakbound.reports.charts.guesses import guesses
from leakbound.reports.charts.lines import Chart, chart, curve_chart
from leakbound.reports.charts.plain import plain
from leakbound.reports.charts.roc import ROC, on_axes
from leakbound.reports.results.curves import one_curve

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


def inline(axes: Axes, prefix: str, title: str, description: str) -> Markup:
    """Turn the figure of these axes into an SVG element whose ids begin with the prefix."""
    figure = axes.get_figure(root=True)
    if figure is None:
        raise ValueError("axes without a figure cannot be drawn")
    return Markup(svg.inline(figure, prefix, title, description))  # svg escapes its text


def curve_figure(curve: Curve, prefix: str) -> Markup:
    """Draw a single curve on logarithmic axes."""
    axes = on_axes(curve_chart(curve), ROC.axes())
    _, said = one_curve(curve)
    title = "Members found (TPR) against false alarms (FPR), logarithmic axes"
    return inline(axes, prefix, title, said.striptags())
