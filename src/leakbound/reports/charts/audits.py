"""The charts of an audit: accuracies, curves, records, groups and slices, and several models compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from leakbound.core.findings import Finding
from leakbound.reports import Report
from leakbound.reports.charts.canvas import figure_of
from leakbound.reports.charts.dots import Role, Row, dots, dots_size
from leakbound.reports.charts.histograms import HISTOGRAM, histogram
from leakbound.reports.charts.lines import Chart, chart
from leakbound.reports.charts.previews import data_uri
from leakbound.reports.charts.quality import QUALITY, quality_point, tradeoff
from leakbound.reports.charts.roc import GAIN, ROC, gain_on_axes, on_axes
from leakbound.reports.charts.slices import Bar, slices, slices_size
from leakbound.reports.charts.strips import strip, strip_axis
from leakbound.reports.numbers import count
from leakbound.reports.phrases import plural
from leakbound.reports.results.audit.answer import least_of_100
from leakbound.reports.results.audit.claims import most_allowed
from leakbound.reports.results.audit.groups import Part, accuracy_text, group_parts, has_group_part, slice_columns
from leakbound.reports.results.audit.models import compared_models, one_quality
from leakbound.reports.results.audit.page import drawn_releases, shows_gain
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
        rows = [_row(result.title, result.accuracy, "best") for result in compared]
        baseline = 100 * compared[0].prior_accuracy
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
    rows = _accuracies(result)
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


def _accuracies(result: Result) -> list[Row]:
    """Lay out the attacks that reveal something new, the best last, the worst group, and the most exposed record."""
    rows = [
        _row(result.attack_title(name), result.find("accuracy", name), "best" if name == result.best else "attack")
        for name in reversed(result.telling)
    ]
    group = result.worst_group
    if group is not None and result.prior == 0.5:  # at which groups are measured
        rows.append(_row(group.scope.name, group, "attack"))
    worst = result.most_exposed
    if worst is not None and result.n_exposed:
        low, high = 100 * (worst.low or 0.0), 100 * (worst.value or 0.0)
        rows.append(Row(f"most exposed {result.about.unit}", high, f"≥ {least_of_100(worst.low)}", "exposed", low))
    return rows


def _row(name: str, finding: Finding | None, role: Role) -> Row:
    """Lay out an accuracy with its interval as a wide bar."""
    if finding is None or finding.value is None:
        return Row(name, None, "—")
    value, text = 100 * finding.value, accuracy_text(finding)
    if finding.low is None or finding.high is None:
        return Row(name, value, text, role)
    return Row(name, value, text, role, 100 * finding.low, 100 * finding.high)


def _parts(result: Result, parts: Sequence[Part]) -> Axes:
    """Draw the accuracy on each group or slice with its interval."""
    bars = [_bar(part) for part in parts]
    return slices(bars, slices_size(len(bars)).axes(), 100 * parts[0].prior_accuracy, plural(result.about.unit))


def _bar(part: Part) -> Bar:
    accuracy, records = part.accuracy, count(part.n_records)
    text = accuracy_text(accuracy)
    if accuracy.value is None:
        return Bar(part.level, records, text)
    if accuracy.low is None or accuracy.high is None:
        return Bar(part.level, records, text, 100 * accuracy.value)
    ends = (100 * accuracy.low, 100 * accuracy.high)
    return Bar(part.level, records, text, 100 * accuracy.value, *ends, part.is_above)


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
