"""Histograms: of the correct guesses about each record, and of a bound over the records. Bars are one path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path
from scipy.special import gammaln, xlog1py, xlogy

from leakbound.core.findings import BoundType
from leakbound.reports.charts.canvas import (
    ATTACK,
    CLAIM,
    DOTTED,
    INK,
    MUTE,
    RULE,
    Size,
    clear,
    legend,
    panel_size,
    write,
)
from leakbound.reports.numbers import count, digits, settled
from leakbound.reports.phrases import plural
from leakbound.reports.results.ranking import bins, is_logarithmic
from leakbound.reports.results.words import article, several

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
    >>> [text.get_text() for text in axes.get_legend().get_texts()]
    ['exposed beyond chance: 5 of 164 records', 'if nothing leaked']
    """
    won = np.asarray(won)
    n_games, n_records = len(won) - 1, int(won.sum())
    ax = HISTOGRAM.shown() if ax is None else ax
    games = np.arange(n_games + 1)
    chance = n_records * _binomial(n_games, baseline)
    ax.set(xlim=(-1, n_games + 1), ylim=(0, 1.08 * max(won.max(), chance.max(), 1)))
    clear(ax, sides=("bottom",))
    exposed = games >= (n_games + 1 if first_exposed is None else first_exposed)
    bars(ax, games[~exposed] - 0.39, games[~exposed] + 0.39, won[~exposed], facecolor=MUTE, alpha=0.5)
    bars(ax, games[exposed] - 0.39, games[exposed] + 0.39, won[exposed], facecolor=ATTACK)
    ax.plot(games, chance, color=INK, linewidth=1.1, linestyle=DOTTED)
    _games_axis(ax, n_games, unit)
    rows: list[tuple[Artist, str]] = [(Line2D([], [], color=INK, linewidth=1.1, linestyle=DOTTED), "if nothing leaked")]
    if first_exposed is not None:
        ax.axvline(first_exposed - 0.5, color=INK, linewidth=0.7)
        number = count(int(won[exposed].sum())) if won[exposed].any() else "none"
        rows.insert(0, (Patch(color=ATTACK), f"exposed beyond chance: {number} of {several(n_records, unit)}"))
    legend(ax, rows)
    return ax


def _binomial(n: int, p: float) -> Float[Array, " k"]:
    """Probabilities of 0 to n successes in n trials; by logarithms, for the binomial coefficients have many digits."""
    k = np.arange(n + 1)
    log_ways = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return np.exp(log_ways + xlogy(k, p) + xlog1py(n - k, -p))


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
    >>> [text.get_text() for text in axes.get_legend().get_texts()]
    ['most exposed 90.0', 'median 55.0']
    """
    ax = SPREAD.shown() if ax is None else ax
    right = np.clip(100 * accuracy, 0, 100)
    heights, edges = bins(right)
    low, end = float(edges[0]), float(edges[-1])
    logarithmic = is_logarithmic(heights)
    top = float(heights.max())
    foot, head = (_FOOT, _FOOT * (top / _FOOT) ** 1.1) if logarithmic else (0.0, 1.08 * top)
    ax.set(yscale="log" if logarithmic else "linear", xlim=(low, end), ylim=(foot, max(head, 2 * foot, 1.0)))
    clear(ax, sides=("bottom",))
    if logarithmic:
        _decades(ax, top, unit)
    bars(ax, edges[:-1] + 0.06 * (edges[1] - low), edges[1:], heights, foot, facecolor=MUTE, alpha=0.5)
    _cases(ax, low, end)
    _marks(ax, accuracy, median, bound_type)
    return ax


def marked(accuracy: Float[Array, " rows"], median: float, bound_type: BoundType) -> list[str]:
    """Name the marks: the most exposed record and, where it differs, the median one."""
    values = settled(float(np.clip(100 * accuracy, 0, 100).max())), settled(100 * median)
    worst, middle = (digits(value, most=1, bound_type=bound_type).value for value in values)
    return [f"most exposed {worst}"] if worst == middle else [f"most exposed {worst}", f"median {middle}"]


def _marks(ax: Axes, accuracy: Float[Array, " rows"], median: float, bound_type: BoundType) -> None:
    """Mark the most exposed and the median record."""
    values = settled(float(np.clip(100 * accuracy, 0, 100).max())), settled(100 * median)
    styles: list[dict[str, Any]] = [{"color": CLAIM}, {"color": INK, "linestyle": DOTTED}]
    rows: list[tuple[Artist, str]] = []
    for at, text, style in zip(values, marked(accuracy, median, bound_type), styles, strict=False):
        ax.axvline(at, linewidth=1.2, **style)
        rows.append((Line2D([], [], linewidth=1.2, **style), text))
    legend(ax, rows)


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
