"""The dot plot: how often each attack is right, and what a bound allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from matplotlib.axes import Axes

from leakscope.report.canvas import (
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

COLORS = {"attack": MUTE, "best": ATTACK, "exposed": INK, "ceiling": CLAIM, "bound": CLAIM}
_ROW = 24.0


@dataclass(frozen=True)
class Row:
    """A line of the dot plot.

    Parameters
    ----------
    name : str
    value : float or None
        Right in so many of 100 cases; None draws no dot.
    text : str
        The value as it is printed beside the name.
    role : {"attack", "best", "exposed", "ceiling", "bound"}
        The strongest attack is the coloured one; "exposed" is the most exposed record; "bound" is what a theorem
        says first, "ceiling" what it says beside it.
    low, high : float or None
        Ends of a wide bar, of 100; with ``low`` alone the bar ends at the value.
    """

    name: str
    value: float | None
    text: str
    role: Literal["attack", "best", "exposed", "ceiling", "bound"] = "attack"
    low: float | None = None
    high: float | None = None


def dots_size(n_rows: int) -> Size:
    """The size of a dot plot of so many rows."""
    return Size(440, _ROW * n_rows + 56, 186, 20, 44, 4)


def dots(rows: Sequence[Row], claim: float | None = None, ax: Axes | None = None) -> Axes:
    """How often each attack is right, of 100 cases: one row an attack, then the most exposed record.

    Parameters
    ----------
    rows : sequence of Row
        From top to bottom.
    claim : float, optional
        The most that a claim allows, of 100: a dashed vertical, its forbidden side tinted.
    ax : Axes, optional
        Without it a new figure of pyplot.

    Returns
    -------
    Axes
        From 50 to 60, 75 or 100, whichever holds all rows.

    Examples
    --------
    >>> axes = dots([Row("LiRA", 57.9, "57.9", "best")], ax=dots_size(1).axes())
    >>> tuple(map(float, axes.get_xlim()))
    (50.0, 60.0)
    """
    ax = dots_size(len(rows)).shown() if ax is None else ax
    shown = [end for row in rows for end in (row.value, row.low, row.high) if end is not None]
    end = next(end for end in (60, 75, 100) if end == 100 or max([*shown, claim or 0.0], default=0) <= end)
    ax.set(xlim=(50, end), ylim=(-len(rows) + 0.5, 0.5))
    clear(ax, sides=())
    _cases_of_100(ax, end)
    if claim is not None:
        ax.axvspan(min(claim, end), end, facecolor=CLAIM, alpha=0.07, linewidth=0)
        ax.axvline(claim, color=CLAIM, linewidth=1.7, linestyle=DASHED)
    for place, row in enumerate(rows):
        _row(ax, row, place, len(rows))
    return ax


def _row(ax: Axes, row: Row, place: int, n_rows: int) -> None:
    """Name and value left of the axis, then a line from 50 and a dot."""
    color, first = COLORS[row.role], row.role in ("best", "bound")
    ink = color if first else MUTE if row.value is None else INK
    weight = 700 if first else 400
    _, height = panel_size(ax)
    base = height * (1 - (place + 0.5) / n_rows) - 4.5
    write(ax, (-186, base), shorten(row.name), size=13, color=ink, weight=weight)
    write(ax, (-12, base), row.text, size=13, color=ink, weight=weight, align="right")
    high = row.value if row.high is None else row.high
    if row.low is not None and high is not None:
        ax.plot([row.low, high], [-place, -place], color=color, linewidth=6, alpha=0.3, solid_capstyle="butt")
    if row.value is None:
        return
    if row.role != "exposed":
        ax.plot(
            [50, max(row.value, 50)],
            [-place, -place],
            color=color,
            linewidth=2.4 if first else 1.2,
        )
    ax.plot(
        [max(row.value, 50)],
        [-place],
        "o",
        color=color,
        markersize=10 if first else 8,
        clip_on=False,
    )


def _cases_of_100(ax: Axes, end: int) -> None:
    """The scale of the dot plot, with a hairline at every label."""
    width, _ = panel_size(ax)
    step = {60: 2, 75: 5, 100: 10}[end]
    for tick in range(50, end + 1, step):
        ax.axvline(tick, color=INK if tick == 50 else RULE, linewidth=1, linestyle=DOTTED if tick == 50 else "solid")
        write(ax, ((tick - 50) / (end - 50) * width, -16), str(tick), color=MUTE, align="center")
    write(ax, (-8, -33), "guessing blindly", color=MUTE)
    write(ax, (width + 12, -33), "always right" if end == 100 else "cases of 100", color=MUTE, align="right")
