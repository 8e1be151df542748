"""The charts of the report. Each draws on the axes it is given, or on a new figure, and returns the axes.

A page makes axes of the right size with ``ROC.axes()``, ``GAIN.axes()``, ``HISTOGRAM.axes()``, ``SPREAD.axes()``
and ``dots_size(n).axes()``; they belong to no window and to no notebook.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from leakbound.reports import Report
from leakbound.reports.charts.canvas import CLAIM, DOTTED, INK, MUTE, Size, clear, legend, panel_size, write
from leakbound.reports.charts.curves import FALSE_ALARMS, Curves, Line, gain_over_guessing, told_apart
from leakbound.reports.charts.lines import Chart, chart
from leakbound.reports.numbers import percent
from leakbound.reports.results.words import listed

Array = np.ndarray
ROC = Size(440, 430, 62, 22, 54, 20)
GAIN = ROC
NAME, SMALL = 12.5, 11.5  # sizes of type
_INSET = (0.60, 0.07, 0.38, 0.38)


def roc(report: Report, ax: Axes | None = None, release: str | None = None) -> Axes:
    """Members found against false alarms, on two logarithmic axes: the attacks on one release and its ceilings.

    Curves begin at ten false alarms or at the strictest threshold, whichever is later. The hatched region is
    what a claimed or certified ceiling forbids.
    """
    return on_axes(chart(report, release), ax)


def on_axes(drawn: Chart, ax: Axes | None = None) -> Axes:
    """Draw lines on two logarithmic axes, as `roc`."""
    floor = drawn.floor
    ax = ROC.shown() if ax is None else ax
    ax.set(xscale="log", yscale="log", xlim=(floor, 1), ylim=(floor, 1))
    clear(ax)
    _decades(ax, drawn)
    curves = Curves(ax, told_apart(drawn.lines), np.geomspace(floor, 1, 500))
    curves.forbid()
    curves.bands("other", "best")  # those of weaker attacks overlap
    curves.draw()
    curves.dots([line for line in curves.lines if line.role in drawn.valued and not line.vacuous], drawn.fpr)
    _subtitle(ax, drawn)
    if _is_clear(curves.lines, floor):
        _linear_inset(ax, curves.lines)
    rows = [(curves.handle(line), _row(line, drawn.fpr)) for line in reversed(curves.lines)]
    title = f"{drawn.found} at {listed(percent(fpr) for fpr in drawn.fpr)} false alarms" if drawn.fpr else ""
    legend(ax, [*rows, *_limit(ax, drawn.n_nonmember)], title)
    return ax


def _row(line: Line, fprs: Sequence[float]) -> str:
    """Write the members found at each rate, and what a line is; nothing is known below where it begins."""
    if line.role == "guessing" or line.point is not None or not fprs:
        return line.label
    found = [line.tpr_text(fpr) if fpr >= line.start else "—" for fpr in fprs]
    return f"{', '.join(found)}: {line.label}"


def _limit(ax: Axes, n_games: int) -> list[tuple[Artist, str]]:
    """Draw a vertical where the rates rest on ten false alarms of so many games, if it lies in the panel."""
    floor, _ = ax.get_xlim()
    if not n_games or not floor < FALSE_ALARMS / n_games < 1:
        return []
    ax.axvline(FALSE_ALARMS / n_games, color=MUTE, linewidth=0.9, linestyle=(0, (1, 2)))
    upright = Line2D([], [], color=MUTE, marker="|", markersize=11, linestyle="none")
    return [(upright, f"left of it, under {FALSE_ALARMS} false alarms")]


def _is_clear(lines: Sequence[Line], floor: float) -> bool:
    """Tell whether the inset, which is below guessing, would cover no curve and no interval."""
    left, top = (floor ** (1 - part) for part in (_INSET[0] - 0.1, _INSET[1] + _INSET[3]))
    lowest = [line.tpr_at(left) for line in lines if line.role != "guessing"]
    banded = [line.band for line in lines if line.role in ("best", "other") and len(line.band[0])]
    lowest += [float(np.interp(left, fpr, low)) for fpr, low, _ in banded]
    return min(lowest, default=1.0) > top


def gain(report: Report, ax: Axes | None = None, release: str | None = None) -> Axes:
    """Members found beyond the false alarms, TPR - FPR in percentage points, against the linear FPR.

    For small leaks: where a logarithmic ROC shows every attack on the line of guessing.
    """
    return gain_on_axes(chart(report, release), ax)


def gain_on_axes(drawn: Chart, ax: Axes | None = None) -> Axes:
    """Draw lines as their gain over guessing, as `gain`."""
    ax = GAIN.shown() if ax is None else ax
    full_roles = ("ceiling", "asymptotic", "unprotected")  # which begin where the logarithmic axes do
    lines = [
        replace(line, start=0.0 if line.role in full_roles else line.start)
        for line in drawn.lines
        if line.role != "guessing"
    ]
    fpr = np.linspace(0, 1, 401)
    low, top = _gain_range(lines, fpr)
    ax.set(xlim=(0, 1), ylim=(low, top))
    clear(ax)
    _quarters(ax, drawn, low, top)
    curves = Curves(ax, told_apart(lines), fpr, gain_over_guessing)
    curves.forbid()
    curves.bands("best")
    curves.draw()
    ax.axhline(0, color=INK, linewidth=0.9, linestyle=DOTTED)
    _subtitle(ax, drawn)
    legend(ax, [(curves.handle(line), line.label) for line in reversed(curves.lines)])
    return ax


def _decades(ax: Axes, drawn: Chart) -> None:
    """Ticks at the powers of ten, in percent, and what the axes are."""
    width, height = panel_size(ax)
    n_decades = round(-np.log10(drawn.floor))
    ticks = 10.0 ** np.arange(-n_decades, 1)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_ticks(ticks, labels=[""] * len(ticks))
    ax.tick_params(which="major", length=4, width=0.8, color=INK)
    for place, tick in enumerate(ticks):
        fraction, label = place / n_decades, percent(float(tick))
        write(ax, (fraction * width, -17.4), label, size=13, align="center")
        write(ax, (-7, fraction * height - 4.7), label, size=13, align="right")
    _axis_names(ax, _false_alarms(drawn), f"{drawn.found} (TPR)")


def _quarters(ax: Axes, drawn: Chart, low: float, top: float) -> None:
    """Ticks of the linear panel: quarters of the false alarms, and round percentage points."""
    width, height = panel_size(ax)
    step = next(step for step in (0.5, 1, 2, 5, 10, 20) if top / step <= 6)
    points = np.arange(0, top, step)
    ax.set_xticks(np.linspace(0, 1, 5), labels=[""] * 5)
    ax.set_yticks(points, labels=[""] * len(points))
    ax.tick_params(length=4, width=0.8, color=INK)
    for fraction in np.linspace(0, 1, 5):
        write(ax, (fraction * width, -17.4), percent(fraction) if fraction else "0", size=13, align="center")
    for point in points:
        write(ax, (-7, (point - low) / (top - low) * height - 4.7), f"{point:g}", size=13, align="right")
    _axis_names(ax, _false_alarms(drawn), "TPR \N{MINUS SIGN} FPR, percentage points")


def _false_alarms(drawn: Chart) -> str:
    return f"false alarms: {drawn.false_alarm} (FPR)"


def _axis_names(ax: Axes, x: str, y: str) -> None:
    width, height = panel_size(ax)
    write(ax, (width / 2, -34.3), x, size=NAME, align="center")
    write(ax, (-49.3, height / 2), y, size=NAME, align="center", rotation=90)


def _subtitle(ax: Axes, drawn: Chart) -> None:
    """Write what cannot be seen on the chart."""
    vacuous = any(line.vacuous for line in drawn.lines)
    color = CLAIM if vacuous else MUTE
    write(ax, (0, panel_size(ax)[1] + 8), "; ".join(drawn.remarks), size=SMALL, color=color)


def _linear_inset(ax: Axes, lines: Sequence[Line]) -> None:
    """Draw the same curves on linear axes, small."""
    inset = ax.inset_axes(_INSET)
    inset.set(xlim=(0, 1), ylim=(0, 1))
    clear(inset, color=MUTE, width=0.6)
    inset.set(xticks=(0, 1), yticks=(0, 1), xticklabels=("", ""), yticklabels=("", ""))
    inset.tick_params(length=2, width=0.6, color=MUTE)
    full_lines = [replace(line, start=0.0) for line in lines]
    Curves(inset, full_lines, np.unique(np.r_[np.geomspace(1e-4, 1, 60), np.linspace(0, 1, 101)])).draw(thin=0.78)
    width, _ = panel_size(inset)
    small = {"size": 10.5, "color": MUTE}
    write(inset, (0, -13.6), "0", align="center", **small)
    write(inset, (width, -13.6), percent(1.0), align="center", **small)
    write(inset, (-5, -3.8), "0", align="right", **small)
    write(inset, (width - 4, 21.4), "the same,", align="right", **small)
    write(inset, (width - 4, 8), "linear axes", align="right", **small)


def _gain_range(lines: Sequence[Line], fpr: Array) -> tuple[float, float]:
    """Return the ends of the linear panel in percentage points: attacks fill it, and a ceiling that is near."""
    gains = {line: gain_over_guessing(fpr, np.asarray(line.tradeoff.tpr_at(fpr))) for line in lines}
    measured = [values for line, values in gains.items() if line.role in ("best", "attack")]
    bands = [100 * np.subtract(line.band[2], line.band[0]) for line in lines if line.role == "best"]
    ceilings = [float(values.max()) for line, values in gains.items() if line.role in ("ceiling", "asymptotic")]
    unprotected = [float(values.max()) for line, values in gains.items() if line.role == "unprotected"]
    attacks = [float(values.max()) for values in [*measured, *bands] if len(values)]
    high = max(attacks or ceilings or [1.0])  # where nothing was measured the ceilings fill the panel
    top = max(1.15 * max([high, *(height for height in ceilings + unprotected if height <= 3 * high)]), 2.0)
    return min([-0.04 * top, *(float(values.min()) for values in measured)]), top
