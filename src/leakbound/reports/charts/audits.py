"""The charts of an audit: accuracies, curves, records, groups and slices, and several models compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from leakbound.reports import Report
from leakbound.reports.charts.canvas import figure_of
from leakbound.reports.charts.dots import dots, dots_size, parts, parts_size
from leakbound.reports.charts.histograms import HISTOGRAM, histogram
from leakbound.reports.charts.lines import Chart, chart
from leakbound.reports.charts.previews import data_uri
from leakbound.reports.charts.quality import QUALITY, quality_point, tradeoff
from leakbound.reports.charts.roc import GAIN, ROC, gain_on_axes, on_axes
from leakbound.reports.charts.strips import strip, strip_axis
from leakbound.reports.phrases import plural
from leakbound.reports.results.audit.claims import most_allowed
from leakbound.reports.results.audit.groups import Part, group_parts, has_group_part, part_dots, slice_columns
from leakbound.reports.results.audit.models import compared_models, model_dots, one_quality
from leakbound.reports.results.audit.page import accuracy_rows, drawn_releases, shows_gain
from leakbound.reports.results.audit.result import Result, most_exposed, ordered, results


def audit_charts(report: Report) -> dict[str, Figure | str]:
    """Draw the charts that ``audit.md.jinja`` names, as far as there is something to draw."""
    found = ordered(results(report))
    drawn: dict[str, Axes] = {}
    if len(found) > 1:
        drawn |= _of_models(found)
    for place, result in enumerate(found):
        drawn |= _of_release(result, place)
    for place, result in drawn_releases(found):
        lines = _telling(chart(report, result.name), result)
        drawn[f"roc{place}"] = on_axes(lines, ROC.axes())
        if shows_gain(found):
            drawn[f"gain{place}"] = gain_on_axes(lines, GAIN.axes())
    charts: dict[str, Figure | str] = {name: figure_of(axes) for name, axes in drawn.items()}
    for place, result in enumerate(found):
        charts |= _of_records(result, place)
    return charts


def _of_models(found: Sequence[Result]) -> dict[str, Axes]:
    """Draw several models on one axis, and against their quality."""
    drawn: dict[str, Axes] = {}
    compared = compared_models(found)
    if compared:
        rows, baseline = model_dots(compared), 100 * compared[0].prior_accuracy
        drawn["models"] = dots(rows, ax=dots_size(len(rows)).axes(), baseline=baseline)
    points = [point for result in found if (point := quality_point(result)) is not None]
    if one_quality(found) and len(points) > 1:
        drawn["quality"] = tradeoff(points, QUALITY.axes())
    return drawn


def _of_release(result: Result, place: int) -> dict[str, Axes]:
    """Draw the accuracies of a release, its groups, its slices, and the correct guesses about its records."""
    drawn: dict[str, Axes] = {}
    if result.too_few:
        return drawn
    rows = accuracy_rows(result)
    if rows:
        baseline = 100 * result.prior_accuracy
        drawn[f"dots{place}"] = dots(rows, most_allowed(result), dots_size(len(rows)).axes(), baseline)
    groups = group_parts(result)
    if has_group_part(result) and len(groups) > 1:
        drawn[f"groups{place}"] = _parts(result, groups)
    for i, column in enumerate(slice_columns(result)):
        drawn[f"slices{place}x{i}"] = _parts(result, column.parts)
    games = result.games
    if games is not None and result.first_exposed and games.won:
        won = np.asarray(games.won)
        guess = result.prior_accuracy_in_game
        drawn[f"histogram{place}"] = histogram(
            won, result.first_exposed, ax=HISTOGRAM.axes(), unit=result.about.unit, baseline=guess
        )
    return drawn


def _parts(result: Result, shown: Sequence[Part]) -> Axes:
    """Draw the accuracy on each group or slice with its interval."""
    rows, baseline = part_dots(shown), 100 * shown[0].prior_accuracy
    return parts(rows, parts_size(len(rows)).axes(), baseline, plural(result.about.unit))


def _telling(drawn: Chart, result: Result) -> Chart:
    """Leave out the attacks that reveal nothing new."""
    named = {result.attack_title(name) for name in result.telling}
    return replace(drawn, lines=[line for line in drawn.lines if line.role != "attack" or line.label in named])


def _of_records(result: Result, place: int) -> dict[str, str]:
    """Draw the pictures of the most exposed records, and the strips of their models on one scale."""
    table, order = result.records, most_exposed(result.records)
    if result.too_few or not order:
        return {}
    drawn = {}
    for row in order:
        image = (table["preview"][row] or {}).get("image")
        if image:
            drawn[f"picture{place}x{row}"] = data_uri(image)
    with_signals = [row for row in order if table["log_odds"][row] is not None]
    if with_signals:
        signals = {row: np.asarray(table["log_odds"][row], dtype=float) for row in with_signals}
        low = min(float(signal.min()) for signal in signals.values())
        high = max(float(signal.max()) for signal in signals.values())
        margin = 0.04 * (high - low) or 1.0
        for row, signal in signals.items():
            member = np.asarray(table["member"][row], dtype=bool)
            drawn[f"strip{place}x{row}"] = strip(signal, member, low - margin, high + margin)
        drawn[f"scale{place}"] = strip_axis(low - margin, high + margin)
    return drawn
