"""The charts of a bound's page."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup

from leakscope.core.findings import Finding
from leakscope.reports import Report, plots
from leakscope.reports.bound_results import BoundResult, curve_name
from leakscope.reports.figures import inline
from leakscope.reports.findings import ANYBODY
from leakscope.reports.numbers import percent, percent_at_most
from leakscope.reports.phrases import place, row_word, title
from leakscope.reports.ranking import Ranking
from leakscope.reports.results import shown
from leakscope.reports.spread import marked
from leakscope.reports.words import plural

SIGNS = {"upper": "≤ ", "lower": "≥ ", "point": ""}
MOST_DOTS = 6


def dots(result: BoundResult, prefix: str) -> Markup:
    """Every accuracy of the bound on one axis; nothing at another prior than one half, whose axis it is not."""
    rows = [_row(result, finding) for finding in result.successes[:MOST_DOTS]]
    if not rows or result.blind != 0.5:
        return Markup("")
    head = result.headline
    forbidden = (
        100 * (head.value or 0.0) if head and head.bound_type == "upper" and head.status == "certified" else None
    )
    axes = plots.dots(rows, claim=forbidden, ax=plots.dots_size(len(rows)).axes())
    return inline(axes, prefix, "Cases of 100 in which an attacker is right", "; ".join(_described(rows)))


def roc(report: Report, result: BoundResult, prefix: str) -> Markup:
    """The ceilings on logarithmic axes."""
    axes = plots.roc(report, ax=plots.ROC.axes())
    title = "Members found (TPR) against false alarms (FPR), logarithmic axes"
    return inline(axes, prefix, title, _read_off(result))


def gain(report: Report, result: BoundResult, prefix: str) -> Markup:
    """The same as the gain over guessing."""
    axes = plots.gain(report, ax=plots.GAIN.axes())
    title = "Gain over guessing (TPR - FPR) against false alarms (FPR)"
    return inline(axes, prefix, title, _read_off(result))


def spread(ranking: Ranking, prefix: str) -> tuple[Markup, bool]:
    """The histogram over the records, and whether its scale is logarithmic."""
    accuracy, median = ranking.accuracy, ranking.median
    if accuracy is None or median is None:
        raise ValueError("a histogram needs the accuracy against each record")
    axes = plots.spread(accuracy, ranking.weights, median, ranking.bound_type, plots.SPREAD.axes(), ranking.unit)
    described = ", ".join(marked(accuracy, median, ranking.bound_type))
    title = f"Number of {plural(ranking.unit)} by cases of 100 in which the attacker is right"
    return inline(axes, prefix, title, described), axes.get_yscale() == "log"


def _row(result: BoundResult, finding: Finding) -> plots.Row:
    """An accuracy of the bound, or of an attack that was run beside it."""
    name = finding.attack or ANYBODY[finding.bound_type]
    if place(finding):
        name = title(finding.release, finding.scope.unnamed, row_word(result.about))
    text = f"{SIGNS[finding.bound_type]}{shown(finding).value}"
    if finding.attack:
        role = "attack"
    else:
        role = "bound" if finding is result.headline else "ceiling"
    return plots.Row(name, 100 * (finding.value or 0.0), text, role)


def _described(rows: list[plots.Row]) -> list[str]:
    return [f"{row.name} {row.text}" for row in rows]


def _read_off(result: BoundResult) -> str:
    """Members that each curve allows at the rates asked for."""
    parts = []
    for fpr in result.about.fpr:
        allowed = [
            f"{curve_name(curve, row_word(result.about))} {percent_at_most(float(np.asarray(curve.tradeoff.tpr(fpr))))}"
            for curve in result.curves
        ]
        parts.append(f"At {percent(fpr)} false alarms: {', '.join(allowed)}.")
    return " ".join(parts)
