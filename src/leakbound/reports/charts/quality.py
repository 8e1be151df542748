"""What models reveal against how good they are: one dot a model, with both intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from leakbound.reports.charts.canvas import (
    ATTACK,
    INK,
    MUTE,
    PAPER,
    RULE,
    Size,
    clear,
    legend,
    panel_size,
    shorten,
    write,
)
from leakbound.reports.numbers import near
from leakbound.reports.results.audit.result import Result, varied

QUALITY = Size(440, 330, 48, 20, 52, 26)
TICKS = 6  # of the vertical scale, both ends included
LONGEST = 48  # characters of a name
_MARKERS = "os^Dv<>phX"  # filled, then hollow
_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25)  # between the labels of the horizontal scale
_MOST_LABELS = 6


@dataclass(frozen=True)
class Point:
    """A model in the chart."""

    name: str
    quality: float
    quality_low: float
    quality_high: float
    is_r2: bool
    baseline: float
    accuracy: float
    accuracy_low: float
    accuracy_high: float
    prior_accuracy: float

    @property
    def described(self) -> str:
        """Both numbers in words."""
        quality = f"R2 {self.quality:.2f}" if self.is_r2 else f"test accuracy {100 * self.quality:.1f} %"
        return f"{quality}, attack accuracy {near(self.accuracy, 1)} of 100"


def quality_point(result: Result) -> Point | None:
    """Collect the numbers of a model; None where one of them was not measured."""
    found, accuracy = result.quality, result.accuracy
    if found is None or found.value is None or accuracy is None or accuracy.value is None or result.too_few:
        return None
    low, high = (found.value if end is None else end for end in (found.low, found.high))
    attack_low, attack_high = (accuracy.value if end is None else end for end in (accuracy.low, accuracy.high))
    return Point(
        _label(result),
        found.value,
        low,
        high,
        found.quantity == "test_r2",
        found.detail.get("baseline", math.nan),
        100 * accuracy.value,
        100 * attack_low,
        100 * attack_high,
        100 * result.prior_accuracy,
    )


def _label(result: Result) -> str:
    """Return the title of a model; of a variant only the values that are varied, whose names are said below."""
    label = result.title
    for parameter in varied(result):
        label = label.replace(f"{parameter}=", "")
    return label


def tradeoff(points: Sequence[Point], ax: Axes | None = None) -> Axes:
    """Draw attack accuracy against quality, one dot a model."""
    ax = QUALITY.shown() if ax is None else ax
    left, right, step = _range(points)
    bottom = points[0].prior_accuracy
    ax.set(xlim=(left, right), ylim=(bottom, 100))
    clear(ax, sides=())
    _scales(ax, points[0], (left, right, step), bottom)
    rows: list[tuple[Artist, str]] = []
    for place, point in enumerate(points):
        ax.plot([point.quality] * 2, [point.accuracy_low, point.accuracy_high], color=ATTACK, linewidth=5, alpha=0.3)
        ax.plot([point.quality_low, point.quality_high], [point.accuracy] * 2, color=ATTACK, linewidth=5, alpha=0.3)
        face = ATTACK if place % (2 * len(_MARKERS)) < len(_MARKERS) else PAPER
        style: dict[str, Any] = {"marker": _MARKERS[place % len(_MARKERS)], "color": ATTACK, "markerfacecolor": face}
        ax.plot([point.quality], [point.accuracy], markersize=8, linestyle="none", clip_on=False, **style)
        rows.append((Line2D([], [], linestyle="none", **style), shorten(point.name, LONGEST)))
    legend(ax, rows)
    return ax


def _range(points: Sequence[Point]) -> tuple[float, float, float]:
    """Choose the ends and the step of the horizontal scale, so that it holds all intervals and a little more."""
    values = [end for point in points for end in (point.quality_low, point.quality_high)]
    low, high = min(values), max(values)
    span = max(high - low, 0.02)
    step = next((step for step in _STEPS if span / step <= _MOST_LABELS - 2), 0.25 * math.ceil(span / 1.25))
    left, right = step * math.floor(low / step + 1e-9), step * math.ceil(high / step - 1e-9)
    if right - left < step / 2:
        right = left + step
    return left, min(right, 1.0) if high <= 1 else right, step


def _scales(ax: Axes, first: Point, horizontal: tuple[float, float, float], bottom: float) -> None:
    """Draw both scales with a hairline at every label, and the quality of a model that looks at nothing."""
    width, height = panel_size(ax)
    left, right, step = horizontal
    for tick in np.arange(round(left / step), math.floor(right / step + 1e-9) + 1) * step:
        place = (tick - left) / (right - left)
        ax.axvline(tick, color=RULE, linewidth=1)
        text = near(float(tick), 2) if first.is_r2 else f"{near(100 * float(tick), 0)}"
        write(ax, (place * width, -16), text, color=MUTE, align="center")
    for part in np.linspace(0, 1, TICKS):
        value = bottom + part * (100 - bottom)
        ax.axhline(value, color=RULE if part else INK, linewidth=1)
        write(ax, (-8, part * height - 4.5), near(float(value), 1).removesuffix(".0"), color=MUTE, align="right")
    if left < first.baseline < right:
        ax.axvline(first.baseline, color=INK, linewidth=1, linestyle=(0, (1, 2.2)))
    title = "R2 on test data" if first.is_r2 else "test accuracy, %"
    write(ax, (width, -37), title, color=MUTE, align="right")
    write(ax, (-48, height + 12), "attack accuracy, of 100", color=MUTE)
