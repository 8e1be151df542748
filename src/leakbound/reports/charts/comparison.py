"""Two reports on the same axes: the strongest attack on each, or the ceiling of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from leakbound.reports.charts.canvas import DASHED, figures
from leakbound.reports.charts.curves import Line
from leakbound.reports.charts.dots import dots, dots_size
from leakbound.reports.charts.lines import Chart, curve_chart
from leakbound.reports.charts.plain import plain
from leakbound.reports.charts.roc import ROC, on_axes
from leakbound.reports.comparison import Comparison
from leakbound.reports.results.comparison import Judged, Standing, dots_of, judged
from leakbound.reports.results.curves import RATES


def plot(comparison: Comparison, ax: Axes | None = None) -> Axes:
    """Draw both on logarithmic axes."""
    standings = _with_curves(judged(comparison))
    if not standings:
        raise ValueError("neither report has a curve to draw; print the comparison, or read its rows")
    return on_axes(_chart(standings)) if ax is None else plain(_chart(standings), ax)


def comparison_charts(comparison: Comparison) -> Mapping[str, Figure]:
    """Draw the charts that ``comparison.md.jinja`` names, as far as there is something to draw."""
    said = judged(comparison)
    charts: dict[str, Axes] = {}
    rows = dots_of(said)
    if rows:
        prior = said.first.prior or 0.5
        charts["dots"] = dots(rows, ax=dots_size(len(rows)).axes(), baseline=100 * max(prior, 1 - prior))
    with_curves = _with_curves(said)
    if with_curves:
        charts["roc"] = on_axes(_chart(with_curves), ROC.axes())
    return figures(charts)


def _with_curves(said: Judged) -> list[Standing]:
    return [standing for standing in (said.first, said.second) if standing.curve is not None]


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
