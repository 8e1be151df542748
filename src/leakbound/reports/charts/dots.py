"""The dot plot: how often an attack is right, and what a bound allows; one row an attack, a group or a strategy."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from leakbound.reports.charts.canvas import (
    ATTACK,
    CLAIM,
    DASHED,
    DOTTED,
    INK,
    MUTE,
    PAPER,
    RULE,
    Size,
    clear,
    panel_size,
    shorten,
    write,
)
from leakbound.reports.numbers import near
from leakbound.reports.results.dots import Dot

COLORS = {"attack": MUTE, "best": ATTACK, "exposed": INK, "ceiling": CLAIM, "bound": CLAIM}
_ROW, _HEADS = 24.0, 24.0
_NAMES = 228.0  # left of the axis: the longest name and its value
_VALUES = 52.0  # right of the axis, where numbers of records stand left of it
TICKS = 6  # labels of the scale, both ends included


def dots_size(n_rows: int, below: float = 44.0) -> Size:
    """Return the size of a dot plot of so many rows, with so much room below the axis."""
    return Size(440, _ROW * n_rows + 12 + below, _NAMES, 20, below, 4)


def parts_size(n_rows: int) -> Size:
    """Return the size of a dot plot of groups or slices, whose numbers of records stand next to their names."""
    return Size(440, _ROW * n_rows + _HEADS + 44, _NAMES, _VALUES, 44, _HEADS)


def dots(
    rows: Sequence[Dot],
    claim: float | None = None,
    ax: Axes | None = None,
    baseline: float = 50.0,
    joined: bool = True,
) -> Axes:
    """Draw how often each attack is right, of 100 cases; dots may be joined to the baseline.

    >>> axes = dots([Dot("LiRA", 57.9, "57.9", "best")], ax=dots_size(1).axes())
    >>> tuple(map(float, axes.get_xlim()))
    (50.0, 100.0)
    """
    ax = dots_size(len(rows)).shown() if ax is None else ax
    ax.set(xlim=(baseline, 100.0), ylim=(-len(rows) + 0.5, 0.5))
    clear(ax, sides=())
    _cases_of_100(ax, baseline, _VALUES - 12 if any(row.records for row in rows) else 12)
    if claim is not None:
        ax.axvspan(claim, 100.0, facecolor=CLAIM, alpha=0.07, linewidth=0)
        ax.axvline(claim, color=CLAIM, linewidth=1.7, linestyle=DASHED)
    for place, row in enumerate(rows):
        _name(ax, row, place, len(rows))
        _dot(ax, row, place, baseline, joined and row.role != "exposed")
    return ax


def parts(rows: Sequence[Dot], ax: Axes | None = None, baseline: float = 50.0, units: str = "records") -> Axes:
    """Draw how often an attack is right about each group or slice, of 100 cases, with intervals.

    >>> axes = parts([Dot("town = Chur", 57.9, "57.9", "best", 52.0, 63.0, records="120")], parts_size(1).axes())
    >>> [text.get_text() for text in axes.texts if text.get_text() in ("120", "57.9")]
    ['120', '57.9']
    """
    ax = dots(rows, ax=parts_size(len(rows)).shown() if ax is None else ax, baseline=baseline, joined=False)
    width, height = panel_size(ax)
    write(ax, (-12, height + 9), units, color=MUTE, align="right")
    write(ax, (width + _VALUES - 4, height + 9), "of 100", color=MUTE, align="right")
    return ax


def _name(ax: Axes, row: Dot, place: int, n_rows: int) -> None:
    """Write name and value left of the axis; of groups the value right of it."""
    is_first = row.role in ("best", "bound")
    ink = COLORS[row.role] if is_first else INK
    if row.value is None:
        ink = MUTE
    weight = 700 if is_first else 400
    width, height = panel_size(ax)
    base = height * (1 - (place + 0.5) / n_rows) - 4.5
    write(ax, (-_NAMES, base), shorten(row.name), size=12, color=ink, weight=weight)
    if row.records:
        write(ax, (-12, base), row.records, size=12, color=MUTE, align="right")
    end = width + _VALUES - 4 if row.records else -12
    write(ax, (end, base), row.text, size=12, color=ink, weight=weight, align="right")


def _dot(ax: Axes, row: Dot, place: int, baseline: float, joined: bool) -> None:
    """Draw the interval, the line from the baseline, the hollow dot and the dot."""
    is_first, y, color = row.role in ("best", "bound"), -place, COLORS[row.role]
    high = row.value if row.high is None else row.high
    if row.low is not None and high is not None:
        ax.plot([row.low, high], [y, y], linewidth=6, alpha=0.3, solid_capstyle="butt", color=color)
    if row.value is None:
        return
    value = max(row.value, baseline)
    if joined:
        ax.plot([baseline, value], [y, y], linewidth=2.4 if is_first else 1.2, color=color)
    if row.outside is not None:
        ax.plot([row.outside], [y], "o", markersize=7, markerfacecolor=PAPER, clip_on=False, color=color)
    ax.plot([value], [y], "o", markersize=10 if is_first else 8, clip_on=False, color=color)


def _cases_of_100(ax: Axes, baseline: float, right: float) -> None:
    """Draw the scale of the dot plot, with a hairline at every label; the last text ends so far to the right of it."""
    width, _ = panel_size(ax)
    for step in range(TICKS):
        part = step / (TICKS - 1)
        tick = baseline + part * (100 - baseline)
        is_guess = not step and baseline > 0
        ax.axvline(tick, color=INK if is_guess else RULE, linewidth=1, linestyle=DOTTED if is_guess else "solid")
        write(ax, (part * width, -16), near(tick, 1).removesuffix(".0"), color=MUTE, align="center")
    if baseline > 0:
        write(ax, (-8, -33), "baseline accuracy", color=MUTE)
        write(ax, (width + right, -33), "always right", color=MUTE, align="right")
    else:
        write(ax, (width / 2, -33), "right of 100", color=MUTE, align="center")
