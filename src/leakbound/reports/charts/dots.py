"""The dot plot: how often each attack is right, and what a bound allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from matplotlib.axes import Axes

from leakbound.reports.charts.canvas import (
    ATTACK,
    CLAIM,
    DASHED,
    DOTTED,
    INK,
    MUTE,
    RULE,
    Size,
    clear,
    panel_size,
    shorten,
    write,
)
from leakbound.reports.numbers import near

Role = Literal["attack", "best", "exposed", "ceiling", "bound"]
COLORS = {"attack": MUTE, "best": ATTACK, "exposed": INK, "ceiling": CLAIM, "bound": CLAIM}
_ROW = 24.0
_NAMES = 228.0  # left of the axis: the longest name and its value
TICKS = 6  # labels of the scale, both ends included


@dataclass(frozen=True)
class Row:
    """A line of the dot plot."""

    name: str
    value: float | None
    text: str
    role: Role = "attack"
    low: float | None = None
    high: float | None = None


def dots_size(n_rows: int) -> Size:
    """Return the size of a dot plot of so many rows."""
    return Size(440, _ROW * n_rows + 56, _NAMES, 20, 44, 4)


def dots(
    rows: Sequence[Row],
    claim: float | None = None,
    ax: Axes | None = None,
    baseline: float = 50.0,
) -> Axes:
    """How often each attack is right, of 100 cases: one row an attack, then the most exposed record.

    >>> axes = dots([Row("LiRA", 57.9, "57.9", "best")], ax=dots_size(1).axes())
    >>> tuple(map(float, axes.get_xlim()))
    (50.0, 100.0)
    """
    ax = dots_size(len(rows)).shown() if ax is None else ax
    ax.set(xlim=(baseline, 100.0), ylim=(-len(rows) + 0.5, 0.5))
    clear(ax, sides=())
    cases_of_100(ax, baseline)
    if claim is not None:
        ax.axvspan(claim, 100.0, facecolor=CLAIM, alpha=0.07, linewidth=0)
        ax.axvline(claim, color=CLAIM, linewidth=1.7, linestyle=DASHED)
    for place, row in enumerate(rows):
        _row(ax, row, place, len(rows), baseline)
    return ax


def _row(ax: Axes, row: Row, place: int, n_rows: int, baseline: float) -> None:
    """Name and value left of the axis, then a line from the baseline and a dot."""
    color, first = COLORS[row.role], row.role in ("best", "bound")
    if first:
        ink = color
    else:
        ink = MUTE if row.value is None else INK
    weight = 700 if first else 400
    _, height = panel_size(ax)
    base = height * (1 - (place + 0.5) / n_rows) - 4.5
    write(ax, (-_NAMES, base), shorten(row.name), size=12, color=ink, weight=weight)
    write(ax, (-12, base), row.text, size=12, color=ink, weight=weight, align="right")
    high = row.value if row.high is None else row.high
    if row.low is not None and high is not None:
        ax.plot([row.low, high], [-place, -place], color=color, linewidth=6, alpha=0.3, solid_capstyle="butt")
    if row.value is None:
        return
    if row.role != "exposed":
        ax.plot(
            [baseline, max(row.value, baseline)],
            [-place, -place],
            color=color,
            linewidth=2.4 if first else 1.2,
        )
    ax.plot(
        [max(row.value, baseline)],
        [-place],
        "o",
        color=color,
        markersize=10 if first else 8,
        clip_on=False,
    )


def cases_of_100(ax: Axes, baseline: float) -> None:
    """Draw the scale of the dot plot, with a hairline at every label."""
    width, _ = panel_size(ax)
    for step in range(TICKS):
        part = step / (TICKS - 1)
        tick = baseline + part * (100 - baseline)
        ax.axvline(tick, color=RULE if step else INK, linewidth=1, linestyle="solid" if step else DOTTED)
        write(ax, (part * width, -16), near(tick, 1).removesuffix(".0"), color=MUTE, align="center")
    write(ax, (-8, -33), "baseline accuracy", color=MUTE)
    write(ax, (width + 12, -33), "always right", color=MUTE, align="right")
