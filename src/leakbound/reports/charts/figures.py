"""The figures of a page: each chart is drawn at its own size and becomes an SVG with a title and a description."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes

from leakbound.core.findings import Finding
from leakbound.reports import Curve, Report
from leakbound.reports.charts import svg
from leakbound.reports.charts.dots import Row, dots, dots_size
from leakbound.reports.charts.guesses import guesses
from leakbound.reports.charts.histograms import HISTOGRAM, histogram
from leakbound.reports.charts.lines import Chart, chart, curve_chart
from leakbound.reports.charts.plain import plain
from leakbound.reports.charts.quality import QUALITY, quality_point, tradeoff
from leakbound.reports.charts.roc import GAIN, ROC, gain_on_axes, on_axes
from leakbound.reports.charts.slices import Bar, slices, slices_size
from leakbound.reports.numbers import count, near, percent
from leakbound.reports.phrases import plural
from leakbound.reports.sections.audit.models import ordered
from leakbound.reports.sections.audit.result import Result
from leakbound.reports.sections.audit.slices import SliceColumn, SliceRow
from leakbound.reports.sections.curves import one_curve
from leakbound.reports.sections.document import Figure
from leakbound.reports.sections.quantities import shown
from leakbound.reports.sections.words import least_of_100, several


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


def draw(report: Report, figure: Figure | None) -> Markup:
    """Draw a figure of a page as SVG; nothing where there is none to draw."""
    if figure is None:
        return Markup("")
    if figure.chart in OF_REPORT:
        return OF_REPORT[figure.chart](report, figure.subject, figure.prefix)
    return OF_RESULT[figure.chart](figure.subject, figure.prefix)


def inline(axes: Axes, prefix: str, title: str, description: str) -> Markup:
    """Turn the figure of these axes into an SVG element whose ids begin with the prefix."""
    figure = axes.get_figure(root=True)
    if figure is None:
        raise ValueError("axes without a figure cannot be drawn")
    return Markup(svg.inline(figure, prefix, title, description))  # svg escapes its text


def roc_figure(report: Report, result: Result, prefix: str) -> Markup:
    """Draw attacks and ceilings on logarithmic axes."""
    axes = on_axes(_telling(chart(report, result.name), result), ROC.axes())
    title = f"{result.title}: members found (TPR) against false alarms (FPR), logarithmic axes"
    return inline(axes, prefix, title, _rates(result))


def _telling(drawn: Chart, result: Result) -> Chart:
    """Leave out the attacks on an audited release that say nothing new."""
    named = {result.attack_title(name) for name in result.telling}
    return replace(drawn, lines=[line for line in drawn.lines if line.role != "attack" or line.label in named])


def curve_figure(curve: Curve, prefix: str) -> Markup:
    """Draw a single curve on logarithmic axes."""
    axes = on_axes(curve_chart(curve), ROC.axes())
    _, said = one_curve(curve)
    title = "Members found (TPR) against false alarms (FPR), logarithmic axes"
    return inline(axes, prefix, title, said.striptags())


def gain_figure(report: Report, result: Result, prefix: str) -> Markup:
    """Draw the same curves as the gain over guessing."""
    axes = gain_on_axes(_telling(chart(report, result.name), result), GAIN.axes())
    title = f"{result.title}: gain over guessing (TPR - FPR) against false alarms (FPR)"
    return inline(axes, prefix, title, _rates(result))


def audit_dots(result: Result, prefix: str) -> Markup:
    """Draw the accuracy of the attacks that say something new, the best last, then that against the worst record."""
    return _attack_dots(result, result.telling, prefix)


def all_attacks(result: Result, prefix: str) -> Markup:
    """Draw the accuracy of every attack, weakest first, then that against the most exposed record."""
    return _attack_dots(result, result.attacks_that_ran, prefix)


def _attack_dots(result: Result, attacks: Sequence[str], prefix: str) -> Markup:
    rows = [_attack_row(result, name) for name in reversed(attacks)]
    worst = result.most_exposed
    if worst is not None and result.n_exposed:
        least = least_of_100(worst.low)
        low, high = 100 * (worst.low or 0.0), 100 * (worst.value or 0.0)
        rows.append(Row(f"most exposed {result.about.unit}", high, f"≥ {least}", "exposed", low))
    if not rows:
        return Markup("")
    axes = dots(rows, _most_allowed(result), dots_size(len(rows)).axes(), 100 * result.prior_accuracy)
    baseline = near(100 * result.prior_accuracy, 1).removesuffix(".0")
    title = f"{result.title}: cases of 100 in which each attack is right; the axis starts at the baseline, {baseline}"
    return inline(axes, prefix, title, _listed(rows))


def slices_figure(column: SliceColumn, prefix: str) -> Markup:
    """Draw the accuracy on each slice of a column, or on each group, with its interval."""
    bars = [_bar(row) for row in column.rows]
    size = slices_size(len(bars))
    axes = slices(bars, size.axes(), 100 * column.prior_accuracy, column.units)
    held = f"with intervals that hold for all {column.parts} at once"
    title = f"{column.name}: cases of 100 in which an attack is right, {held}"
    listed = "; ".join(f"{bar.name}, {bar.records}: {bar.text}" for bar in bars)
    return inline(axes, prefix, title, listed)


def _bar(row: SliceRow) -> Bar:
    """Lay out the accuracy of a slice."""
    accuracy = row.accuracy
    records = count(row.n_records)
    if accuracy.value is None:
        return Bar(row.level, records, "—")
    text = shown(accuracy).value
    if accuracy.low is None or accuracy.high is None:
        return Bar(row.level, records, text, 100 * accuracy.value)
    ends = (100 * accuracy.low, 100 * accuracy.high)
    return Bar(row.level, records, text, 100 * accuracy.value, *ends, row.is_above)


def models_figure(results: Sequence[Result], prefix: str) -> Markup:
    """Draw the accuracy of the strongest attack on each model, on one axis; nothing where the baselines differ."""
    compared = [result for result in ordered(results) if result.accuracy is not None and not result.too_few]
    baselines = {result.prior_accuracy for result in compared}
    if len(baselines) != 1:
        return Markup("")
    baseline = 100 * baselines.pop()
    rows = [_interval_row(result.title, result.accuracy, "best") for result in compared if result.accuracy is not None]
    axes = dots(rows, ax=dots_size(len(rows)).axes(), baseline=baseline)
    title = "Cases of 100 in which the strongest attack on each model is right"
    return inline(axes, prefix, title, _listed(rows))


def quality_figure(results: Sequence[Result], prefix: str) -> Markup:
    """Draw what each model reveals against how good it is."""
    points = [point for result in ordered(results) if (point := quality_point(result)) is not None]
    if len(points) < 2:
        return Markup("")
    axes = tradeoff(points, QUALITY.axes())
    described = "; ".join(f"{point.name}: {point.described}" for point in points)
    return inline(axes, prefix, "Attack accuracy against the quality of each model", described)


def histogram_figure(result: Result, prefix: str) -> Markup:
    """Draw the number of records by the correct guesses about them."""
    games, unit = result.games, result.about.unit
    assert games is not None
    won = np.asarray(games.won)
    axes = histogram(won, result.first_exposed, ax=HISTOGRAM.axes(), unit=unit, baseline=result.prior_accuracy_in_game)
    title = f"{result.title}: number of {plural(unit)} by games of {len(won) - 1} that the attacker won"
    described = f"{count(games.exposed)} of {several(games.records, unit)} exposed beyond chance"
    return inline(axes, prefix, title, described)


def _listed(rows: Sequence[Row]) -> str:
    return "; ".join(f"{row.name} {row.text}" for row in rows)


def _attack_row(result: Result, name: str) -> Row:
    """Name and accuracy of an attack."""
    finding, title = result.find("accuracy", name), result.attack_title(name)
    if finding is None or finding.value is None:
        return Row(title, None, "—")
    role = "best" if name == result.best else "attack"
    return Row(title, 100 * finding.value, shown(finding).value, role)


def _most_allowed(result: Result) -> float | None:
    """Return the largest accuracy that a claim allows, of 100."""
    allowed: Sequence[float] = [
        100 * curve.tradeoff.accuracy(result.prior)
        for curve in result.ceilings
        if curve.verdict is not None and curve.verdict.quantity == "eta"
    ]
    return min(allowed, default=None)


def _interval_row(name: str, finding: Finding, role: Literal["best", "attack"]) -> Row:
    """Lay out an accuracy with its interval as a wide bar."""
    value, text = 100 * (finding.value or 0.0), shown(finding).value
    if finding.low is None or finding.high is None:
        return Row(name, value, text, role)
    return Row(name, value, text, role, 100 * finding.low, 100 * finding.high)


def _rates(result: Result) -> str:
    """Members that each curve finds or allows at the rates asked for, as one would read them off."""
    sentences = []
    for fpr in result.about.fpr:
        rates = _found_and_allowed(result, fpr)
        sentences.append(f"At {percent(fpr)} false alarms: {', '.join(rates) or 'not resolvable'}.")
    return " ".join(sentences)


def _found_and_allowed(result: Result, fpr: float) -> list[str]:
    """Members found by each attack and allowed by each ceiling."""
    rates = []
    for name in result.attacks:
        finding = result.find("tpr", name, fpr=fpr)
        if finding is not None and finding.value is not None:
            rates.append(f"{result.attack_title(name)} {percent(finding.value)}")
    rates += [f"{curve.name} {percent(float(curve.tradeoff.tpr_at(fpr)))}" for curve in result.ceilings]
    return rates


# The figures of pages, by the keys of `leakbound.reports.sections.document.Figure`.
OF_REPORT: Mapping[str, Callable[[Report, Any, str], Markup]] = {
    "roc": roc_figure,
    "gain": gain_figure,
}
OF_RESULT: Mapping[str, Callable[[Any, str], Markup]] = {
    "audit_dots": audit_dots,
    "all_attacks": all_attacks,
    "histogram": histogram_figure,
    "models": models_figure,
    "quality": quality_figure,
    "slices": slices_figure,
}
