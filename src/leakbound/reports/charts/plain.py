"""The chart of a release in the style of Matplotlib, on axes of the caller: labelled lines, for a figure of a paper."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes

from leakbound.reports.charts.curves import DASHES, Line
from leakbound.reports.charts.lines import Chart

_N_POINTS = 500  # at which a curve is drawn


def plain(drawn: Chart, ax: Axes, legend: bool = True) -> Axes:
    """Draw the lines of a chart on two logarithmic axes, with nothing outside of them but ticks and their names.

    Colours, fonts and sizes are those of Matplotlib's style in force; attacks differ in their dashes too. Each line has
    its name as its label.
    """
    ax.set(xscale="log", yscale="log", xlim=(drawn.floor, 1), ylim=(drawn.floor, 1))
    members = drawn.found == "members found"
    ax.set_xlabel("false positive rate" if members else f"{drawn.false_alarm} (FPR)")
    ax.set_ylabel("true positive rate" if members else f"{drawn.found} (TPR)")
    attacks = [line for line in reversed(drawn.lines) if line.role in ("best", "other", "attack", "unprotected")]
    ceilings = [line for line in drawn.lines if line.role in ("ceiling", "asymptotic")]
    guessing = [line for line in drawn.lines if line.role == "guessing"]
    colors = rcParams["axes.prop_cycle"].by_key().get("color", ["black"])
    for place, line in enumerate(attacks):
        style = {"color": colors[place % len(colors)], "linestyle": DASHES[place % len(DASHES)], "linewidth": 1.4}
        _draw(ax, line, drawn.floor, zorder=3 - 0.01 * place, **style)
        if line.role == "best":
            _band(ax, line, style["color"])
    for place, line in enumerate(ceilings):
        style = {"color": "black", "linestyle": DASHES[(place + 1) % len(DASHES)], "linewidth": 0.9}
        _draw(ax, line, drawn.floor, zorder=2.5, **style)
    for line in guessing:
        _draw(ax, line, drawn.floor, zorder=2, color="0.5", linestyle="solid", linewidth=0.6)
    if legend:
        ax.legend(loc="lower right", fontsize="x-small", frameon=False, handlelength=2.8, borderaxespad=0.2)
    return ax


def _draw(ax: Axes, line: Line, floor: float, **style: Any) -> None:
    """Draw a curve from where it begins; an attack with one threshold is a circle."""
    if line.point is not None:
        fpr, tpr = (max(rate, floor) for rate in line.point)
        marker = {"marker": "o", "markersize": 4, "linestyle": "none", "clip_on": False}
        ax.plot([fpr], [tpr], label=line.label, **{**style, **marker})
        return
    fpr = np.geomspace(max(line.start, floor), 1, _N_POINTS)
    ax.plot(fpr, np.asarray(line.tradeoff.tpr_at(fpr)), label=line.label, **style)


def _band(ax: Axes, line: Line, color: Any) -> None:
    """Fill the intervals of a line."""
    at, low, high = (np.asarray(end, dtype=float) for end in line.band)
    is_drawn = at >= line.start
    if line.point is None and is_drawn.any():
        ax.fill_between(at[is_drawn], low[is_drawn], high[is_drawn], color=color, alpha=0.18, linewidth=0)
