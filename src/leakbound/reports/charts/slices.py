"""The chart of slices: how often an attack is right about each group of records, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from leakbound.reports.charts.canvas import ATTACK, INK, MUTE, Size, clear, panel_size, shorten, write
from leakbound.reports.charts.dots import cases_of_100

_ROW, _LEFT, _RIGHT, _HEADS = 24.0, 236.0, 52.0, 24.0


@dataclass(frozen=True)
class Bar:
    """A line of the chart."""

    name: str
    records: str
    text: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    is_above: bool = False


def slices_size(n_bars: int) -> Size:
    """Return the size of a chart of so many bars."""
    return Size(440, _ROW * n_bars + _HEADS + 44, _LEFT, _RIGHT, 44, _HEADS)


def slices(
    bars: Sequence[Bar],
    ax: Axes | None = None,
    baseline: float = 50.0,
    units: str = "records",
) -> Axes:
    """Draw how often an attack is right about each slice, of 100 cases, with intervals.

    >>> axes = slices([Bar("town = Chur", "120", "57.9", 57.9, 52.0, 63.0, True)], slices_size(1).axes())
    >>> tuple(map(float, axes.get_xlim()))
    (50.0, 100.0)
    """
    ax = slices_size(len(bars)).shown() if ax is None else ax
    ax.set(xlim=(baseline, 100.0), ylim=(-len(bars) + 0.5, 0.5))
    clear(ax, sides=())
    cases_of_100(ax, baseline)
    width, height = panel_size(ax)
    write(ax, (-12, height + 9), units, color=MUTE, align="right")
    write(ax, (width + _RIGHT - 4, height + 9), "of 100", color=MUTE, align="right")
    for place, bar in enumerate(bars):
        _bar(ax, bar, place, len(bars), baseline)
    return ax


def _bar(ax: Axes, bar: Bar, place: int, n_bars: int, baseline: float) -> None:
    """Name and number of records left of the axis, the interval with a dot on it, the value right of it."""
    width, height = panel_size(ax)
    base = height * (1 - (place + 0.5) / n_bars) - 4.5
    ink = MUTE if bar.value is None else INK
    color = ATTACK if bar.is_above else MUTE
    write(ax, (-_LEFT, base), shorten(bar.name), size=12, color=ink)
    write(ax, (-12, base), bar.records, size=12, color=MUTE, align="right")
    weight = 700 if bar.is_above else 400
    write(ax, (width + _RIGHT - 4, base), bar.text, size=12, color=color, weight=weight, align="right")
    if bar.value is None:
        return
    if bar.low is not None and bar.high is not None:
        ax.plot([bar.low, bar.high], [-place, -place], color=color, linewidth=6, alpha=0.35, solid_capstyle="butt")
    ax.plot([max(bar.value, baseline)], [-place], "o", color=color, markersize=8, clip_on=False)
