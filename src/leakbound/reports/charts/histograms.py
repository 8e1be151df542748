"""Histograms: of the correct guesses about each record, and of a bound over the records.

Bars are one path, and texts above them do not cover one another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from scipy.special import gammaln, xlog1py, xlogy

from leakbound.core.findings import BoundType
from leakbound.reports.charts.canvas import ATTACK, CLAIM, DOTTED, INK, MUTE, RULE, Size, clear, panel_size, write
from leakbound.reports.charts.labels import text_width
from leakbound.reports.numbers import count, digits, settled
from leakbound.reports.phrases import plural
from leakbound.reports.results.ranking import BINS, bins, is_logarithmic
from leakbound.reports.sections.words import article, several

Array = np.ndarray
NAME, SMALL = 12.5, 11.5  # sizes of type


def bars(
    ax: Axes,
    left: Float[Array, " bars"],
    right: Float[Array, " bars"],
    top: Float[Array, " bars"] | Int[Array, " bars"],
    bottom: float = 0.0,
    **style: Any,
) -> None:
    """Bars as one path; those without a height are left out."""
    is_drawn = top > bottom
    if not is_drawn.any():
        return
    left, right, top = left[is_drawn], right[is_drawn], top[is_drawn].astype(float)
    base = np.full_like(top, bottom)
    corners = np.stack([left, base, left, top, right, top, right, base, left, base], axis=1).reshape(-1, 2)
    codes = np.tile([Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY], len(top))
    ax.add_patch(PathPatch(Path(corners, codes), linewidth=0, **style))


class Above:
    """Writes texts above the bars, where they do not cover one another."""

    def __init__(self, ax: Axes, profile: Float[Array, " pixels"]) -> None:
        self.ax, self.profile = ax, profile.copy()
        self.width, self.height = panel_size(ax)
        self.scale = self.width / np.ptp(ax.get_xlim())
        self.left = ax.get_xlim()[0]

    def keep_clear(self, at: float, height: float) -> None:
        """Let nothing be written over an upright line of so many pixels at this place of the axis."""
        column = int((at - self.left) * self.scale)
        near = slice(max(0, column - 3), column + 4)
        self.profile[near] = np.maximum(self.profile[near], height)

    def write(self, lines: Sequence[str], places: Sequence[tuple[str, float]], **style: Any) -> float | None:
        """Write at the lowest of the places (alignment, x in data); its height in pixels, or None if none is free."""
        size, bold = style["size"], style.get("weight") == 700
        wide = max(text_width(line, size, bold) for line in lines)
        tall = 15.0 * len(lines)
        free = []
        for align, at in places:
            start = (at - self.left) * self.scale - (wide if align == "right" else 0)
            covered = self.profile[max(0, int(start) - 2) : max(0, int(start + wide) + 3)]
            if start >= 0 and start + wide <= self.width + 10 and len(covered):
                free.append((max(float(covered.max()) + 7, 12.0), align, start))
        free = [place for place in free if place[0] + tall <= self.height + 12]
        if not free:
            return None
        base, align, start = min(free)
        for row, line in enumerate(reversed(lines)):
            x = start + wide if align == "right" else start
            write(self.ax, (x, base + 15.0 * row), line, align="right" if align == "right" else "left", **style)
        self.profile[max(0, int(start)) : int(start + wide)] = base + tall
        return base


HISTOGRAM = Size(440, 210, 14, 14, 46, 14)


def histogram(
    won: Int[Array, " games"] | Sequence[int],
    first_exposed: int | None,
    ax: Axes | None = None,
    unit: str = "record",
    baseline: float = 0.5,
) -> Axes:
    """Correct guesses about each record, compared with those of a guess that looks at nothing.

    >>> axes = histogram([0] * 8 + [50, 40, 30, 20, 10, 5, 4, 3, 2], 15, ax=HISTOGRAM.axes())
    >>> [text.get_text() for text in axes.texts][-4:-2]
    ['exposed beyond chance', '5 of 164 records:']
    """
    won = np.asarray(won)
    n_games, n_records = len(won) - 1, int(won.sum())
    ax = HISTOGRAM.shown() if ax is None else ax
    games = np.arange(n_games + 1)
    chance = n_records * _binomial(n_games, baseline)
    head = 1.12 if n_games >= 48 else 1.5  # few games make wide bars, and texts are above them
    ax.set(xlim=(-1, n_games + 1), ylim=(0, head * max(won.max(), chance.max(), 1)))
    clear(ax, sides=("bottom",))
    exposed = games >= (n_games + 1 if first_exposed is None else first_exposed)
    bars(ax, games[~exposed] - 0.39, games[~exposed] + 0.39, won[~exposed], facecolor=MUTE, alpha=0.5)
    bars(ax, games[exposed] - 0.39, games[exposed] + 0.39, won[exposed], facecolor=ATTACK)
    ax.plot(games, chance, color=INK, linewidth=1.1, linestyle=DOTTED)
    _games_axis(ax, n_games, unit)
    texts = Above(ax, _profile(ax, np.maximum(won, chance)))
    if first_exposed is not None:  # first, so that no other text is written over its line
        number = count(int(won[exposed].sum())) if won[exposed].any() else "none"
        _threshold(ax, texts, first_exposed, f"{number} of {several(n_records, unit)}:")
    texts.write(["if nothing", "leaked"], _beside_chance(chance), size=SMALL)
    return ax


def _binomial(n: int, p: float) -> Float[Array, " k"]:
    """Probabilities of 0 to n successes in n trials; by logarithms, for the binomial coefficients have many digits."""
    k = np.arange(n + 1)
    log_ways = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return np.exp(log_ways + xlogy(k, p) + xlog1py(n - k, -p))


def _profile(ax: Axes, heights: Array) -> Array:
    """Height of the bars in pixels, for every pixel across the panel."""
    width, height = panel_size(ax)
    games = ax.get_xlim()[0] + np.arange(round(width) + 1) * np.ptp(ax.get_xlim()) / width
    near = np.clip(np.rint(games), 0, len(heights) - 1).astype(int)
    return heights[near] / ax.get_ylim()[1] * height


def _threshold(ax: Axes, texts: Above, first: int, text: str) -> None:
    """Draw a line at the fewest wins that count, and write how many records have them."""
    edge = first - 0.5
    end = ax.get_xlim()[1]
    places = [("right", edge - 0.6), ("left", edge + 0.6), ("right", end)]
    base = texts.write([text, "exposed beyond chance"], places, size=NAME, weight=700, color=ATTACK)
    if base is not None:
        ax.plot([edge, edge], [0, (base - 4) / texts.height * ax.get_ylim()[1]], color=INK, linewidth=0.7)
        texts.keep_clear(edge, base)


def _beside_chance(chance: Array) -> list[tuple[str, float]]:
    """Left and right of the hill, at half its height; else at its foot, or at the end of the axis."""
    high, all_of_it = (np.flatnonzero(chance >= part * chance.max()) for part in (0.55, 0.01))
    sides = [("right", float(high[0]) - 1.0), ("left", float(high[-1]) + 1.0)]
    return [*sides, ("right", float(all_of_it[0])), ("left", 0.0)]


def _games_axis(ax: Axes, n_games: int, unit: str) -> None:
    """Quarters of the games, and what the axis counts."""
    ticks = sorted(
        {round(n_games * fraction) for fraction in ((0.25, 0.5, 0.75, 1.0) if n_games >= 16 else (0, 0.5, 1))}
    )
    width, _ = panel_size(ax)
    left, right = ax.get_xlim()
    ax.set_xticks(ticks, [""] * len(ticks))
    ax.tick_params(axis="x", length=4, width=0.8, color=INK)
    for tick in ticks:
        write(ax, ((tick - left) / (right - left) * width, -17.4), str(tick), size=13, align="center")
    text = f"games of {n_games} that the attacker won against {article(unit)} {unit}"
    write(ax, (width / 2, -33.3), text, size=NAME, align="center")


SPREAD = Size(440, 220, 62, 22, 46, 14)
_FOOT = 0.7  # of a logarithmic axis, so that a single record is seen


def spread(
    accuracy: Float[Array, " rows"],
    median: float,
    bound_type: BoundType = "point",
    ax: Axes | None = None,
    unit: str = "record",
) -> Axes:
    """Draw the number of records by the accuracy against them; the median and the most exposed one are marked.

    The vertical axis is logarithmic where a linear one would hide a bar.

    >>> axes = spread(np.array([0.9, 0.55, 0.55]), 0.55, ax=SPREAD.axes())
    >>> [text.get_text() for text in axes.texts][-2:]
    ['most exposed 90.0', 'median 55.0']
    """
    ax = SPREAD.shown() if ax is None else ax
    right = np.clip(100 * accuracy, 0, 100)
    heights, edges = bins(right)
    low, end = float(edges[0]), float(edges[-1])
    logarithmic = is_logarithmic(heights)
    top = float(heights.max())
    foot, head = (_FOOT, _FOOT * (top / _FOOT) ** 1.3) if logarithmic else (0.0, 1.35 * top)
    ax.set(yscale="log" if logarithmic else "linear", xlim=(low, end), ylim=(foot, max(head, 2 * foot, 1.0)))
    clear(ax, sides=("bottom",))
    if logarithmic:
        _decades(ax, top, unit)
    bars(ax, edges[:-1] + 0.06 * (edges[1] - low), edges[1:], heights, foot, facecolor=MUTE, alpha=0.5)
    _cases(ax, low, end)
    _marks(ax, heights, accuracy, median, bound_type)
    return ax


def marked(accuracy: Float[Array, " rows"], median: float, bound_type: BoundType) -> list[str]:
    """Name the marks: the most exposed record and, where it differs, the median one."""
    values = settled(float(np.clip(100 * accuracy, 0, 100).max())), settled(100 * median)
    worst, middle = (digits(value, most=1, bound_type=bound_type).value for value in values)
    return [f"most exposed {worst}"] if worst == middle else [f"most exposed {worst}", f"median {middle}"]


def _marks(ax: Axes, heights: Array, accuracy: Float[Array, " rows"], median: float, bound_type: BoundType) -> None:
    """Lines and names of the most exposed and of the median record."""
    width, height = panel_size(ax)
    low, end = ax.get_xlim()
    foot, head = ax.get_ylim()
    levels = np.log(np.maximum(heights, foot) / foot) / np.log(head / foot) if foot else heights / head
    column = np.clip(np.arange(round(width) + 1) / width * BINS, 0, BINS - 1).astype(int)
    texts = Above(ax, levels[column] * height)
    values = settled(float(np.clip(100 * accuracy, 0, 100).max())), settled(100 * median)
    styles: list[dict[str, Any]] = [{"color": CLAIM}, {"color": INK, "linestyle": DOTTED}]
    for at, text, style in zip(values, marked(accuracy, median, bound_type), styles, strict=False):
        gap = 5 * (end - low) / width
        places = [("left", at + gap), ("right", at - gap)]
        base = texts.write([text], places, size=NAME, color=style["color"])
        tip = 1.0 if base is None else (base + 11) / height
        ax.plot([at, at], [0, tip], linewidth=1.2, transform=ax.get_xaxis_transform(), **style)


def _cases(ax: Axes, low: float, end: float) -> None:
    """Ticks of the accuracy and what the axis is."""
    width, _ = panel_size(ax)
    step = 10
    ticks = np.linspace(low, end, round((end - low) / step) + 1)
    ax.set_xticks(ticks, [""] * len(ticks))
    ax.tick_params(axis="x", length=4, width=0.8, color=INK)
    for tick in ticks:
        write(ax, ((tick - low) / (end - low) * width, -17.4), f"{tick:g}", size=13, align="center")
    write(ax, (width / 2, -33.3), "cases of 100 in which the attacker is right", size=NAME, align="center")


def _decades(ax: Axes, top: float, unit: str) -> None:
    """Draw a hairline and a label at every power of ten, or at every other one of many."""
    _, height = panel_size(ax)
    foot, head = ax.get_ylim()
    n_decades = int(np.ceil(np.log10(top)))
    for power in range(0, n_decades + 1, 1 if n_decades < 5 else 2):
        at = np.log10(10.0**power / foot) / np.log10(head / foot) * height
        if at > height - 18:  # where the name of the axis is
            break
        ax.axhline(10.0**power, color=RULE, linewidth=0.8, zorder=0)
        write(ax, (-6, at - 4), count(10**power), size=SMALL, color=MUTE, align="right")
    write(ax, (-6, height - 2), plural(unit), size=SMALL, color=MUTE, align="right")
