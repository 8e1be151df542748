"""The two charts of counts: how often each attack is right, and how many games it won against each record."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Int
from matplotlib.axes import Axes
from matplotlib.patches import PathPatch
from matplotlib.path import Path

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
from leakscope.report.labels import text_width
from leakscope.report.numbers import count
from leakscope.report.words import several

Array = np.ndarray
HISTOGRAM = Size(440, 210, 14, 14, 46, 14)
_ROW, _NAME, _SMALL = 24.0, 12.5, 11.5


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
    role : {"attack", "best", "exposed"}
        The strongest attack is the coloured one; "exposed" is the most exposed record.
    low, high : float or None
        Ends of a wide bar, of 100; with ``low`` alone the bar ends at the value.
    """

    name: str
    value: float | None
    text: str
    role: Literal["attack", "best", "exposed"] = "attack"
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


def histogram(
    won: Int[Array, " games"] | Sequence[int],
    first_exposed: int | None,
    ax: Axes | None = None,
    unit: str = "record",
) -> Axes:
    """Games won against each record, beside what blind guessing would win.

    Parameters
    ----------
    won : array of shape (M + 1,)
        Number of records against which 0, 1, ..., M games were won.
    first_exposed : int or None
        Fewest wins that show a record as exposed beyond chance; None if no number does.
    ax : Axes, optional
        Without it a new figure of pyplot.
    unit : str
        What a record is called.

    Returns
    -------
    Axes
        Dotted: binomial(M, 1/2) times the number of records.

    Examples
    --------
    >>> axes = histogram([0] * 8 + [50, 40, 30, 20, 10, 5, 4, 3, 2], 15, ax=HISTOGRAM.axes())
    >>> [text.get_text() for text in axes.texts][-2:]
    ['exposed beyond chance', '5 of 164 records:']
    """
    won = np.asarray(won)
    n_games, n_records = len(won) - 1, int(won.sum())
    ax = HISTOGRAM.shown() if ax is None else ax
    games = np.arange(n_games + 1)
    chance = np.array([n_records * math.comb(n_games, k) / 2**n_games for k in range(n_games + 1)])
    head = 1.12 if n_games >= 48 else 1.5  # few games make wide bars, and texts stand above them
    ax.set(xlim=(-1, n_games + 1), ylim=(0, head * max(won.max(), chance.max(), 1)))
    clear(ax, sides=("bottom",))
    exposed = games >= (n_games + 1 if first_exposed is None else first_exposed)
    _bars(ax, games[~exposed], won[~exposed], facecolor=MUTE, alpha=0.5)
    _bars(ax, games[exposed], won[exposed], facecolor=ATTACK)
    ax.plot(games, chance, color=INK, linewidth=1.1, linestyle=DOTTED)
    _games_axis(ax, n_games, unit)
    texts = _Above(ax, np.maximum(won, chance))
    if won[-1] and won[-1] == won.max():
        texts.write([several(int(won[-1]), unit), f"lost all {n_games}"], [("right", n_games - 1.0)], size=_SMALL)
    texts.write(["if nothing", "leaked"], _beside_chance(chance), size=_SMALL)
    if first_exposed is not None:
        number = count(int(won[exposed].sum())) if won[exposed].any() else "none"
        _threshold(ax, texts, first_exposed, f"{number} of {several(n_records, unit)}:")
    return ax


class _Above:
    """Writes texts above the bars, where they do not cover one another."""

    def __init__(self, ax: Axes, heights: Array) -> None:
        self.ax = ax
        self.width, self.height = panel_size(ax)
        self.scale = self.width / np.ptp(ax.get_xlim())
        self.left = ax.get_xlim()[0]
        columns = np.arange(round(self.width) + 1)
        near = np.clip(np.rint(columns / self.scale + self.left), 0, len(heights) - 1).astype(int)
        self.profile = heights[near] / ax.get_ylim()[1] * self.height

    def write(self, lines: Sequence[str], places: Sequence[tuple[str, float]], **style: Any) -> float | None:
        """Write at the lowest of the places (alignment, games); its height in pixels, or None if none is free."""
        size, bold = style["size"], style.get("weight") == 700
        wide = max(text_width(line, size, bold) for line in lines)
        tall = 15.0 * len(lines)
        found = []
        for align, at in places:
            start = (at - self.left) * self.scale - (wide if align == "right" else 0)
            covered = self.profile[max(0, int(start) - 2) : max(0, int(start + wide) + 3)]
            if start >= 0 and start + wide <= self.width + 10 and len(covered):
                found.append((max(float(covered.max()) + 7, 12.0), align, start))
        found = [place for place in found if place[0] + tall <= self.height + 12]
        if not found:
            return None
        base, align, start = min(found)
        for row, line in enumerate(reversed(lines)):
            x = start + wide if align == "right" else start
            write(self.ax, (x, base + 15.0 * row), line, align="right" if align == "right" else "left", **style)
        self.profile[max(0, int(start)) : int(start + wide)] = base + tall
        return base


def _threshold(ax: Axes, texts: _Above, first: int, text: str) -> None:
    """A line at the fewest wins that count, and beside its upper end how many records have them."""
    edge = first - 0.5
    end = ax.get_xlim()[1]
    places = [("right", edge - 0.6), ("left", edge + 0.6), ("right", end)]
    base = texts.write([text, "exposed beyond chance"], places, size=_NAME, weight=700, color=ATTACK)
    if base is not None:
        ax.plot([edge, edge], [0, (base - 4) / texts.height * ax.get_ylim()[1]], color=INK, linewidth=0.7)


def _beside_chance(chance: Array) -> list[tuple[str, float]]:
    """Left and right of the hill, at half its height."""
    high = np.flatnonzero(chance >= 0.55 * chance.max())
    return [("right", float(high[0]) - 1.0), ("left", float(high[-1]) + 1.0)]


def _games_axis(ax: Axes, n_games: int, unit: str) -> None:
    """Quarters of the games, and what the axis counts."""
    ticks = sorted({round(n_games * share) for share in ((0.25, 0.5, 0.75, 1.0) if n_games >= 16 else (0, 0.5, 1))})
    width, _ = panel_size(ax)
    left, right = ax.get_xlim()
    ax.set_xticks(ticks, [""] * len(ticks))
    ax.tick_params(axis="x", length=4, width=0.8, color=INK)
    for tick in ticks:
        write(ax, ((tick - left) / (right - left) * width, -17.4), str(tick), size=13, align="center")
    text = f"games of {n_games} that the attacker won against a {unit}"
    write(ax, (width / 2, -33.3), text, size=_NAME, align="center")


def _bars(ax: Axes, at: Array, heights: Array, **style: Any) -> None:
    """Bars as one path."""
    seen = heights > 0
    if not seen.any():
        return
    left, right, top = at[seen] - 0.39, at[seen] + 0.39, heights[seen]
    bottom = np.zeros_like(top)
    corners = np.stack([left, bottom, left, top, right, top, right, bottom, left, bottom], axis=1).reshape(-1, 2)
    codes = np.tile([Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY], len(top))
    ax.add_patch(PathPatch(Path(corners, codes), linewidth=0, **style))


def _row(ax: Axes, row: Row, place: int, n_rows: int) -> None:
    """Name and value left of the axis, then a line from 50 and a dot."""
    color = {"attack": MUTE, "best": ATTACK, "exposed": INK}[row.role]
    ink = ATTACK if row.role == "best" else MUTE if row.value is None else INK
    weight = 700 if row.role == "best" else 400
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
            linewidth=2.4 if row.role == "best" else 1.2,
        )
    ax.plot(
        [max(row.value, 50)],
        [-place],
        "o",
        color=color,
        markersize=10 if row.role == "best" else 8,
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
