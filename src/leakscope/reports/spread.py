"""The histogram of a bound over the records: against how many of them an attacker is right how often."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes

from leakscope.core.findings import BoundType
from leakscope.reports.bins import NAME, SMALL, Above, bars
from leakscope.reports.canvas import CLAIM, DOTTED, INK, MUTE, RULE, Size, clear, panel_size, write
from leakscope.reports.numbers import count, digits, settled
from leakscope.reports.words import plural

Array = np.ndarray
SPREAD = Size(440, 220, 62, 22, 46, 14)
_BINS = 50
_ENDS = (51.0, 52.0, 55.0, 60.0, 75.0, 100.0)
_INVISIBLE = 0.015  # of the tallest bar: lower ones are less than two pixels high
_FOOT = 0.7  # of a logarithmic axis, so that a single record is seen


def spread(
    accuracy: Float[Array, " rows"],
    weights: Float[Array, " rows"],
    median: float,
    bound_type: BoundType = "point",
    ax: Axes | None = None,
    unit: str = "record",
) -> Axes:
    """Number of records by the accuracy against them, with the median and the most exposed record marked.

    The vertical axis is logarithmic where a linear one would hide a bar.

    Parameters
    ----------
    accuracy : array of shape (rows,)
        In [0, 1].
    weights : array of shape (rows,)
        Records behind each row.
    median : float
        Accuracy against the median record.
    bound_type : {"lower", "upper", "point"}
        To which the two numbers that are written are rounded.
    ax : Axes, optional
        Without it a new figure of pyplot.
    unit : str
        What a record is called.

    Returns
    -------
    Axes
        From 50 of 100 (from the largest multiple of ten below all values) to the end that holds all.

    Examples
    --------
    >>> axes = spread(np.array([0.9, 0.55, 0.55]), np.ones(3), 0.55, ax=SPREAD.axes())
    >>> [text.get_text() for text in axes.texts][-2:]
    ['most exposed 90.0', 'median 55.0']
    """
    ax = SPREAD.shown() if ax is None else ax
    right = np.clip(100 * accuracy, 0, 100)
    low, end = _range(float(right.min()), float(right.max()))
    heights, edges = np.histogram(right, np.linspace(low, end, _BINS + 1), weights=weights)
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
    """The names of the marks: the most exposed record and, where it differs, the median one."""
    values = settled(float(np.clip(100 * accuracy, 0, 100).max())), settled(100 * median)
    worst, middle = (digits(value, most=1, bound_type=bound_type).value for value in values)
    return [f"most exposed {worst}"] if worst == middle else [f"most exposed {worst}", f"median {middle}"]


def is_logarithmic(heights: Float[Array, " bins"]) -> bool:
    """A bar would be too low to be seen beside the tallest."""
    return bool((heights[heights > 0] < _INVISIBLE * heights.max()).any())


def _range(least: float, most: float) -> tuple[float, float]:
    """A round axis that holds all values."""
    low = min(50.0, 10.0 * math.floor(least / 10))
    ends = _ENDS if low == 50 else _ENDS[-3:]
    return low, next(end for end in ends if most <= end)


def _marks(ax: Axes, heights: Array, accuracy: Float[Array, " rows"], median: float, bound_type: BoundType) -> None:
    """Lines and names of the most exposed and of the median record."""
    width, height = panel_size(ax)
    low, end = ax.get_xlim()
    foot, head = ax.get_ylim()
    levels = np.log(np.maximum(heights, foot) / foot) / np.log(head / foot) if foot else heights / head
    column = np.clip(np.arange(round(width) + 1) / width * _BINS, 0, _BINS - 1).astype(int)
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
    step = {1: 0.2, 2: 0.5, 5: 1, 10: 2, 25: 5}.get(round(end - low), 10)
    ticks = np.linspace(low, end, round((end - low) / step) + 1)
    ax.set_xticks(ticks, [""] * len(ticks))
    ax.tick_params(axis="x", length=4, width=0.8, color=INK)
    for tick in ticks:
        write(ax, ((tick - low) / (end - low) * width, -17.4), f"{tick:g}", size=13, align="center")
    write(ax, (width / 2, -33.3), "cases of 100 in which the attacker is right", size=NAME, align="center")


def _decades(ax: Axes, top: float, unit: str) -> None:
    """A hairline and a label at every power of ten, every other one of many."""
    _, height = panel_size(ax)
    foot, head = ax.get_ylim()
    n_decades = int(np.ceil(np.log10(top)))
    for power in range(0, n_decades + 1, 1 if n_decades < 5 else 2):
        ax.axhline(10.0**power, color=RULE, linewidth=0.8, zorder=0)
        at = np.log10(10.0**power / foot) / np.log10(head / foot) * height
        write(ax, (-6, at - 4), count(10**power), size=SMALL, color=MUTE, align="right")
    write(ax, (-6, height - 2), plural(unit), size=SMALL, color=MUTE, align="right")
