"""The charts of a page, each drawn at its own size and turned into an SVG with a title and a description."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes

from leakscope.reports import Report, plots, svg
from leakscope.reports.numbers import count, near, percent
from leakscope.reports.results import Result, shown
from leakscope.reports.words import least_of_100, plural, several


def dots(result: Result, prefix: str) -> Markup:
    """Accuracy of each attack, weakest first, then of the most exposed record."""
    rows = [_attack_row(result, name) for name in reversed(result.attacks)]
    worst = result.most_exposed
    if worst is not None and result.n_exposed:
        least = least_of_100(worst.low)
        low, high = 100 * (worst.low or 0.0), 100 * (worst.value or 0.0)
        rows.append(plots.Row(f"most exposed {result.about.unit}", high, f"≥ {least}", "exposed", low))
    if not rows:
        return Markup("")
    axes = plots.dots(rows, _most_allowed(result), plots.dots_size(len(rows)).axes(), 100 * result.blind)
    baseline = near(100 * result.blind, 1).removesuffix(".0")
    title = f"{result.title}: cases of 100 in which each attack is right; the axis starts at the baseline, {baseline}"
    return inline(axes, prefix, title, "; ".join(f"{row.name} {row.text}" for row in rows))


def roc(report: Report, result: Result, prefix: str) -> Markup:
    """Attacks and ceilings on logarithmic axes."""
    axes = plots.roc(report, ax=plots.ROC.axes(), release=result.name)
    title = f"{result.title}: members found (TPR) against false alarms (FPR), logarithmic axes"
    return inline(axes, prefix, title, _read_off(result))


def gain(report: Report, result: Result, prefix: str) -> Markup:
    """The same as the gain over guessing."""
    axes = plots.gain(report, ax=plots.GAIN.axes(), release=result.name)
    title = f"{result.title}: gain over guessing (TPR - FPR) against false alarms (FPR)"
    return inline(axes, prefix, title, _read_off(result))


def histogram(result: Result, prefix: str) -> Markup:
    """Games won against each record."""
    games, unit = result.games, result.about.unit
    assert games is not None
    won = np.asarray(games.won)
    axes = plots.histogram(
        won, result.first_exposed, ax=plots.HISTOGRAM.axes(), unit=unit, baseline=result.blind_in_game
    )
    title = f"{result.title}: number of {plural(unit)} by games of {len(won) - 1} that the attacker won"
    described = f"{count(games.exposed)} of {several(games.records, unit)} exposed beyond chance"
    return inline(axes, prefix, title, described)


def _attack_row(result: Result, name: str) -> plots.Row:
    """Name and accuracy of an attack."""
    finding, title = result.find("accuracy", name), result.attack_title(name)
    if finding is None or finding.value is None:
        return plots.Row(title, None, "—")
    role = "best" if name == result.best else "attack"
    return plots.Row(title, 100 * finding.value, shown(finding).value, role)


def _most_allowed(result: Result) -> float | None:
    """What a claim about the accuracy allows, of 100."""
    allowed: Sequence[float] = [
        100 * curve.tradeoff.accuracy(result.prior)
        for curve in result.ceilings
        if curve.verdict is not None and curve.verdict.quantity == "eta"
    ]
    return min(allowed, default=None)


def _read_off(result: Result) -> str:
    """Members found by each attack and allowed by each ceiling at the rates asked for."""
    parts = []
    for fpr in result.about.fpr:
        found = [
            f"{result.attack_title(name)} {percent(finding.value)}"
            for name in result.attacks
            if (finding := result.find("tpr", name, fpr=fpr)) is not None and finding.value is not None
        ]
        found += [f"{curve.name} {percent(float(curve.tradeoff.tpr(fpr)))}" for curve in result.ceilings]
        parts.append(f"At {percent(fpr)} false alarms: {', '.join(found) or 'not resolvable'}.")
    return " ".join(parts)


def inline(axes: Axes, prefix: str, title: str, description: str) -> Markup:
    """The figure of these axes as an SVG element whose ids begin with the prefix."""
    figure = axes.get_figure(root=True)
    if figure is None:
        raise ValueError("axes without a figure cannot be drawn")
    return Markup(svg.inline(figure, prefix, title, description))  # svg escapes its text
