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
from leakbound.reports.charts.guesses import guesses, guesses_of, guesses_size
from leakbound.reports.charts.lines import Chart, chart, curve_chart
from leakbound.reports.charts.plain import plain
from leakbound.reports.charts.roc import GAIN, ROC, gain_on_axes, on_axes
from leakbound.reports.numbers import digits, percent, percent_at_most, settled
from leakbound.reports.phrases import RELEASES, WITHOUT
from leakbound.reports.sections.attribute.result import AttributeResult
from leakbound.reports.sections.attribute.words import of_100
from leakbound.reports.sections.curves import one_curve
from leakbound.reports.sections.document import Figure
from leakbound.reports.sections.parts import attack_words
from leakbound.reports.sections.protected.designs import words_of
from leakbound.reports.sections.protected.result import ProtectedResult
from leakbound.reports.sections.protected.words import right, right_alone
from leakbound.reports.sections.quantities import shown
from leakbound.reports.sections.words import capital

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


def roc_figure(report: Report, result: ProtectedResult, prefix: str) -> Markup:
    """Draw attacks and ceilings on logarithmic axes."""
    axes = on_axes(chart(report), ROC.axes())
    found = words_of(result).found
    title = capital(f"{found} (TPR) against false alarms (FPR), logarithmic axes")
    return inline(axes, prefix, title, _rates(result))


def curve_figure(curve: Curve, prefix: str) -> Markup:
    """Draw a single curve on logarithmic axes."""
    axes = on_axes(curve_chart(curve), ROC.axes())
    _, said = one_curve(curve)
    title = "Members found (TPR) against false alarms (FPR), logarithmic axes"
    return inline(axes, prefix, title, said.striptags())


def gain_figure(report: Report, result: ProtectedResult, prefix: str) -> Markup:
    """Draw the same curves as the gain over guessing."""
    axes = gain_on_axes(chart(report), GAIN.axes())
    title = "Gain over guessing (TPR - FPR) against false alarms (FPR)"
    return inline(axes, prefix, title, _rates(result))


def protected_dots(result: ProtectedResult, prefix: str) -> Markup:
    """Draw the promise, the attacks and the best attack without noise; nothing at another prior than one half.

    Where several releases share a budget, the promise is that of all of them.
    """
    if result.prior_accuracy != 0.5:
        return Markup("")
    rows = _protected_rows(result)
    axes = dots(rows, claim=100 * result.promised_of_all, ax=dots_size(len(rows)).axes())
    return inline(axes, prefix, "Cases of 100 in which an attacker is right, and the promise", _listed(rows))


def guesses_figure(report: Report, result: AttributeResult, prefix: str) -> Markup:
    """Draw the cases of 100 in which each strategy is right about an attribute."""
    rows = guesses_of(result)
    axes = guesses(report, ax=guesses_size(len(rows)).axes(), release=result.facts.name)
    title = f"{result.title}: cases of 100 in which each strategy is right"
    read = "; ".join(f"{row.name} {row.text}" for row in rows)
    without = f"without the release ({result.baseline_title.lower()}) {of_100(result.baseline_accuracy)}"
    return inline(axes, prefix, title, f"{read}; {without}")


def _listed(rows: Sequence[Row]) -> str:
    return "; ".join(f"{row.name} {row.text}" for row in rows)


def _protected_rows(result: ProtectedResult) -> list[Row]:
    rows = [Row("the promise", 100 * result.promised_of_all, f"≤ {right(result)}", "bound")]
    if result.shares_a_budget:
        rows.append(Row("this release alone", 100 * result.promised, f"≤ {right_alone(result)}", "ceiling"))
    for rank, finding in enumerate(result.attacks[:MOST_ATTACKS]):
        rows.append(_lower_limit_row(attack_words(finding.attack), finding, "attack" if rank else "best"))
    unprotected = result.without_noise
    if unprotected is not None and not result.certificate.no_noise:
        rows.append(_interval_row(RELEASES[WITHOUT], unprotected, "attack"))
    return rows


def _lower_limit_row(name: str, finding: Finding, role: Literal["best", "attack"]) -> Row:
    """Lay out an attack at its lower limit: near the promise its estimate may exceed it by chance."""
    if finding.low is None:
        return _interval_row(name, finding, role)
    at_least = digits(settled(finding.low), scale=2, most=1, bound_type="lower").value
    return Row(name, 100 * finding.low, f"≥ {at_least}", role)


def _interval_row(name: str, finding: Finding, role: Literal["best", "attack"]) -> Row:
    """Lay out an accuracy with its interval as a wide bar."""
    value, text = 100 * (finding.value or 0.0), shown(finding).value
    if finding.low is None or finding.high is None:
        return Row(name, value, text, role)
    return Row(name, value, text, role, 100 * finding.low, 100 * finding.high)


def _rates(result: ProtectedResult) -> str:
    """Members that each curve finds or allows at the rates asked for, as one would read them off."""
    sentences = []
    for fpr in result.about.fpr:
        rates = _drawn_rates(result, fpr)
        sentences.append(f"At {percent(fpr)} false alarms: {', '.join(rates) or 'not resolvable'}.")
    return " ".join(sentences)


def _drawn_rates(result: ProtectedResult, fpr: float) -> list[str]:
    """List what each curve says; a ceiling is rounded up."""
    rates = []
    for curve in result.curves:
        written = percent_at_most if curve.role == "certified" else percent
        rates.append(f"{attack_words(curve.name)} {written(float(np.asarray(curve.tradeoff.tpr_at(fpr))))}")
    return rates


# The figures of pages, by the keys of `leakbound.reports.sections.document.Figure`.
OF_REPORT: Mapping[str, Callable[[Report, Any, str], Markup]] = {
    "roc": roc_figure,
    "gain": gain_figure,
    "guesses": guesses_figure,
}
OF_RESULT: Mapping[str, Callable[[Any, str], Markup]] = {"protected_dots": protected_dots}
