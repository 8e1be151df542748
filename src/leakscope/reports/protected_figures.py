"""The charts of a protected release."""

from __future__ import annotations

from typing import Literal

import numpy as np
from markupsafe import Markup

from leakscope.core.findings import Finding
from leakscope.reports import Report, plots
from leakscope.reports.bound_results import attack_words
from leakscope.reports.figures import inline
from leakscope.reports.numbers import digits, percent, percent_at_most, settled
from leakscope.reports.phrases import RELEASES
from leakscope.reports.protected_results import WITHOUT, ProtectedResult
from leakscope.reports.protected_words import right
from leakscope.reports.results import shown

MOST_ATTACKS = 4


def dots(result: ProtectedResult, prefix: str) -> Markup:
    """The promise, the attacks and the best attack without noise; nothing at another prior than one half."""
    rows = _rows(result)
    if not rows or result.blind != 0.5:
        return Markup("")
    allowed = None if result.void else 100 * result.promised
    axes = plots.dots(rows, claim=allowed, ax=plots.dots_size(len(rows)).axes())
    described = "; ".join(f"{row.name} {row.text}" for row in rows)
    return inline(axes, prefix, "Cases of 100 in which an attacker is right, and the promise", described)


def roc(report: Report, result: ProtectedResult, prefix: str) -> Markup:
    """Ceiling, best attack and no noise on logarithmic axes."""
    axes = plots.roc(report, ax=plots.ROC.axes())
    title = "Members found (TPR) against false alarms (FPR), logarithmic axes"
    return inline(axes, prefix, title, _read_off(result))


def gain(report: Report, result: ProtectedResult, prefix: str) -> Markup:
    """The same as the gain over guessing."""
    axes = plots.gain(report, ax=plots.GAIN.axes())
    title = "Gain over guessing (TPR - FPR) against false alarms (FPR)"
    return inline(axes, prefix, title, _read_off(result))


def _rows(result: ProtectedResult) -> list[plots.Row]:
    rows = [] if result.void else [plots.Row("the promise", 100 * result.promised, f"≤ {right(result)}", "bound")]
    for place, each in enumerate(result.attacks[:MOST_ATTACKS]):
        rows.append(_attack(attack_words(each.attack), each, "attack" if place else "best"))
    unprotected = result.without_noise
    if unprotected is not None and not result.certificate.no_noise:
        rows.append(_row(RELEASES[WITHOUT], unprotected, "attack"))
    return rows


def _attack(name: str, finding: Finding, role: Literal["best", "attack"]) -> plots.Row:
    """An attack at its lower limit: its estimate lies beyond the promise by chance, where it is near."""
    if finding.low is None:
        return _row(name, finding, role)
    at_least = digits(settled(finding.low), scale=2, most=1, bound_type="lower").value
    return plots.Row(name, 100 * finding.low, f"≥ {at_least}", role)


def _row(name: str, finding: Finding, role: Literal["best", "attack"]) -> plots.Row:
    """An accuracy with its interval as a wide bar."""
    value, text = 100 * (finding.value or 0.0), shown(finding).value
    if finding.low is None or finding.high is None:
        return plots.Row(name, value, text, role)
    return plots.Row(name, value, text, role, 100 * finding.low, 100 * finding.high)


def _read_off(result: ProtectedResult) -> str:
    """Members that each curve allows or finds at the rates asked for."""
    parts = []
    for fpr in result.about.fpr:
        said = []
        for curve in result.curves:
            written = percent_at_most if curve.role == "certified" else percent
            said.append(f"{attack_words(curve.name)} {written(float(np.asarray(curve.tradeoff.tpr(fpr))))}")
        parts.append(f"At {percent(fpr)} false alarms: {', '.join(said)}.")
    return " ".join(parts)
