"""Trade-offs drawn on axes: curves, circles, bands and the region that a ceiling forbids."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from leakbound.core.tradeoff import TradeOff
from leakbound.reports.charts.canvas import ATTACK, CLAIM, INK, MUTE, PAPER
from leakbound.reports.numbers import percent, percent_at_most

Role = Literal["best", "other", "attack", "ceiling", "asymptotic", "unprotected", "guessing"]
FALSE_ALARMS = 10  # fewer of them support no point of a curve
_COLOURS = {"best": ATTACK, "other": INK, "ceiling": CLAIM, "asymptotic": CLAIM, "guessing": INK}
# Told apart without colours.
DASHES: tuple[Any, ...] = (
    "solid",
    (0, (5, 1.5)),
    (0, (1, 1)),
    (0, (6, 1.5, 1, 1.5)),
    (0, (2.5, 1.2)),
    (0, (8, 1.5, 1, 1.5, 1, 1.5)),
)
CEILING_DASHES: tuple[Any, ...] = ((0, (1.5, 1.5)), (0, (7, 1.5, 1, 1.5)), (0, (7, 1.5, 1, 1.5, 1, 1.5)))
_WIDTHS = {"best": 2.3, "other": 1.9, "ceiling": 1.7, "asymptotic": 1.4, "unprotected": 1.3, "guessing": 0.9}


@dataclass(frozen=True, eq=False)
class Line:
    """A trade-off and how it is drawn."""

    label: str
    tradeoff: TradeOff
    role: Role
    start: float = 0.0
    point: tuple[float, float] | None = None
    band: tuple[Sequence[float], Sequence[float], Sequence[float]] = ((), (), ())
    dashes: Any = "solid"
    # at the rates asked for: a realised rate is a little below
    stated: Mapping[float, float] = field(default_factory=dict)
    release: str = ""
    at_most: bool = False
    name: str = ""

    def tpr_at(self, fpr: float) -> float:
        """Members found at a rate, as the findings say it where they do."""
        return self.stated.get(fpr, float(self.tradeoff.tpr_at(fpr)))

    def tpr_text(self, fpr: float) -> str:
        """Write the members found at a rate as text."""
        return percent_at_most(self.tpr_at(fpr)) if self.at_most else percent(self.tpr_at(fpr))

    @property
    def color(self) -> str:
        """By role."""
        return _COLOURS.get(self.role, MUTE)

    @property
    def width(self) -> float:
        """By role."""
        return _WIDTHS.get(self.role, 1.2)

    @property
    def vacuous(self) -> bool:
        """A ceiling that allows an attack to find everybody, at every rate that is drawn."""
        return self.role == "ceiling" and float(self.tradeoff.tpr_at(self.start)) > 0.995


Array = np.ndarray
Height = Callable[[Array, Array], Array]


def members_found(fpr: Array, tpr: Array) -> Array:
    """Return the height of a ROC: the true positive rate."""
    return tpr


def gain_over_guessing(fpr: Array, tpr: Array) -> Array:
    """Return the height of the second panel: TPR - FPR in percentage points."""
    return 100 * (tpr - fpr)


def told_apart(lines: Sequence[Line]) -> list[Line]:
    """Give each attack in grey, and each ceiling after the first, dashes of its own, the strongest attack first."""
    attacks = [line for line in reversed(lines) if line.role == "attack"]
    ceilings = [line for line in lines if line.role == "ceiling"]
    dashes = dict(zip(attacks, DASHES * len(lines), strict=False))
    dashes |= dict(zip(ceilings[1:], CEILING_DASHES * len(lines), strict=False))
    return [replace(line, dashes=dashes.get(line, line.dashes)) for line in lines]


class Curves:
    """The lines of a release on axes whose limits are set."""

    def __init__(self, ax: Axes, lines: Sequence[Line], fpr: Array, height: Height = members_found) -> None:
        self.ax, self.lines, self.fpr, self.height = ax, lines, fpr, height

    def draw(self, thin: float = 1.0) -> None:
        """Draw every line; an attack with one threshold is a circle."""
        for line in self.lines:
            if line.point is None:
                style = {"linewidth": line.width * thin, "linestyle": line.dashes, "color": line.color}
                self.ax.plot(*self.values(line), **style)
            else:
                circle = {"markerfacecolor": PAPER, "markeredgecolor": line.color, "markersize": 6 * thin}
                place = self._on_axes(*line.point)
                self.ax.plot(*place.T, "o", markeredgewidth=1.2, clip_on=False, zorder=4, **circle)

    def handle(self, line: Line) -> Line2D:
        """Return what stands for a line in the legend."""
        if line.point is None:
            return Line2D([], [], linewidth=line.width, linestyle=line.dashes, color=line.color)
        return Line2D([], [], marker="o", linestyle="none", markerfacecolor=PAPER, markeredgecolor=line.color)

    def dots(self, lines: Sequence[Line], fprs: Iterable[float]) -> None:
        """Mark the members found at some rates."""
        low, high = self.ax.get_ylim()
        for line in lines:
            at = [fpr for fpr in fprs if fpr >= line.start and low <= line.tpr_at(fpr) < high]
            self.ax.plot(at, [line.tpr_at(fpr) for fpr in at], "o", color=line.color, markersize=6, zorder=5)

    def bands(self, *roles: str) -> None:
        """Fill the intervals of the lines in these roles."""
        for line in self.lines:
            at, low, high = (np.asarray(end, dtype=float) for end in line.band)
            is_drawn = at >= line.start
            if line.role in roles and line.point is None and is_drawn.any():
                low, high = (self.height(at, end)[is_drawn] for end in (low, high))
                alpha = 0.22 if line.role == "best" else 0.18
                self.ax.fill_between(at[is_drawn], low, high, facecolor=line.color, alpha=alpha, linewidth=0)

    def forbid(self) -> None:
        """Hatch what no attack on any release reaches: above the lowest of its claimed and certified ceilings."""
        ceilings: dict[str, list[Array]] = {}
        for line in self.lines:
            if line.role == "ceiling":
                ceilings.setdefault(line.release, []).append(np.asarray(line.tradeoff.tpr_at(self.fpr)))
        if not ceilings:
            return
        lowest = self.height(self.fpr, np.max([np.min(tprs, axis=0) for tprs in ceilings.values()], axis=0))
        hatched = {"facecolor": "none", "edgecolor": CLAIM, "hatch": "///", "linewidth": 0, "alpha": 0.42}
        with rc_context({"hatch.linewidth": 0.6}):
            self.ax.fill_between(self.fpr, lowest, np.maximum(lowest, self.ax.get_ylim()[1]), **hatched)

    def values(self, line: Line) -> tuple[Array, Array]:
        """Return what is drawn of a line, in the data of the axes."""
        fpr = self.fpr[self.fpr >= line.start]
        return fpr, self.height(fpr, np.asarray(line.tradeoff.tpr_at(fpr)))

    def _on_axes(self, fpr: float, tpr: float) -> Array:
        """Return a point (1, 2) in the data of the axes; what lies below a logarithmic axis is drawn on it."""
        rates = np.array([[fpr], [tpr]])
        corner = [self.ax.get_xlim()[0], self.ax.get_ylim()[0]]
        return np.maximum([[fpr, self.height(*rates)[0]]], corner)
