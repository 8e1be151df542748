"""Two reports on the same axes: the strongest attack on each, or the ceiling of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from markupsafe import Markup
from matplotlib.axes import Axes

from leakbound.reports.charts.canvas import DASHED
from leakbound.reports.charts.curves import Line
from leakbound.reports.charts.dots import Row, dots, dots_size
from leakbound.reports.charts.figures import inline
from leakbound.reports.charts.lines import Chart, curve_chart
from leakbound.reports.charts.roc import ROC, on_axes
from leakbound.reports.comparison import Comparison
from leakbound.reports.numbers import percent
from leakbound.reports.results.comparison import Standing, verdict
from leakbound.reports.sections.curves import RATES
from leakbound.reports.sections.quantities import shown


def plot(comparison: Comparison, ax: Axes | None = None) -> Axes:
    """Draw both on logarithmic axes."""
    judged = verdict(comparison)
    standings = [standing for standing in (judged.first, judged.second) if standing.curve is not None]
    if not standings:
        raise ValueError("neither report has a curve to draw; print the comparison, or read its rows")
    return on_axes(_chart(standings), ax)


def figure(comparison: Comparison, prefix: str) -> Markup:
    """Draw both as SVG; nothing where neither report has a curve."""
    judged = verdict(comparison)
    standings = [standing for standing in (judged.first, judged.second) if standing.curve is not None]
    if not standings:
        return Markup("")
    drawn = _chart(standings)
    axes = on_axes(drawn, ROC.axes())
    title = "Members found (TPR) against false alarms (FPR), logarithmic axes"
    read = [f"{line.label} {line.tpr_text(RATES[0])}" for line in drawn.lines if line.role != "guessing"]
    return inline(axes, prefix, title, f"At {percent(RATES[0])} false alarms: {', '.join(read)}.")


def dots_figure(comparison: Comparison, prefix: str) -> Markup:
    """Draw the two accuracies on one axis, from the baseline to 100; nothing where they are not such numbers."""
    judged = verdict(comparison)
    standings = [judged.first, judged.second]
    priors = {standing.prior for standing in standings}
    if len(priors) != 1 or any(standing.why or standing.kind == "gain" for standing in standings):
        return Markup("")
    prior = priors.pop() or 0.5
    rows = []
    for place, standing in enumerate(standings):
        finding = standing.finding
        if finding is None or finding.value is None:
            return Markup("")
        value, low, high = (None if end is None else 100 * end for end in (finding.value, finding.low, finding.high))
        if standing.kind == "ceiling":
            rows.append(Row(standing.name, value, f"≤ {shown(finding).value}", "ceiling"))
        else:
            rows.append(Row(standing.name, value, shown(finding).value, "attack" if place else "best", low, high))
    axes = dots(rows, ax=dots_size(len(rows)).axes(), baseline=100 * max(prior, 1 - prior))
    title = "Cases of 100 in which the strongest attack on each is right, from the baseline to 100"
    return inline(axes, prefix, title, "; ".join(f"{row.name} {row.text}" for row in rows))


def _chart(standings: Sequence[Standing]) -> Chart:
    """Put the lines of the reports on one chart: the first one bold, the second one dashed."""
    charts = [(standing, curve_chart(standing.curve)) for standing in standings if standing.curve is not None]
    measured = [chart.floor for standing, chart in charts if standing.kind == "measured"]
    floor = min(measured or [chart.floor for _, chart in charts])
    guessing = replace(charts[0][1].lines[0], start=floor)
    lines = [_line(place, standing, chart.lines[1], floor) for place, (standing, chart) in enumerate(charts)]
    games = [chart.n_nonmember for _, chart in charts if chart.n_nonmember]
    return Chart([guessing, *reversed(lines)], floor, RATES, ("best", "other", "asymptotic"), max(games, default=0))


def _line(place: int, standing: Standing, line: Line, floor: float) -> Line:
    """Return the line of the first or of the second report, under the name of its release."""
    is_measured = standing.kind == "measured"
    role = "best" if is_measured else "asymptotic"  # a ceiling forbids something of its own report alone
    if place and is_measured:
        role = "other"
    label = f"{standing.name}, {standing.curve_title}" if standing.curve_title else standing.name
    return replace(
        line,
        label=label,
        role=role,
        start=line.start if is_measured else floor,
        dashes=DASHED if place else "solid",
        release=standing.name,
    )
