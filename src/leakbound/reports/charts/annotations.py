"""What is written among the curves: names, values, and the limit of what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from leakbound.reports.charts.canvas import MUTE, panel_size, write
from leakbound.reports.charts.curves import FALSE_ALARMS, Curves, Line, coincide
from leakbound.reports.charts.labels import Box, Field, Path, around, beside, shared, text_width
from leakbound.reports.numbers import percent

NAME, SMALL = 12.5, 11.5  # sizes of type
_CAPITALS = 10.0  # height of a line of text
_LONGEST_LIST = 10
_PRIORITY = {"best": 0, "other": 0, "ceiling": 1, "attack": 2, "asymptotic": 3, "unprotected": 3, "guessing": 4}


class Annotations:
    """Texts among curves; each is placed clear of the curves and of the texts before it."""

    def __init__(self, curves: Curves, occupied: Sequence[Box] = ()) -> None:
        self.curves, self.ax = curves, curves.ax
        self.panel = panel_size(curves.ax)
        width, height = self.panel
        ticks = [Box(-24, height / 2, 40, height + 20), Box(width / 2, -14, width + 40, 20)]
        self.occupied = [*ticks, *occupied]

    def limit(self, n_games: int) -> None:
        """Draw a vertical where the rates rest on ten false alarms of so many games, if it lies in the panel."""
        floor, _ = self.ax.get_xlim()
        if not n_games or not floor < FALSE_ALARMS / n_games < 1:
            return
        at, _ = self.curves.place(FALSE_ALARMS / n_games, 1.0)
        bottom = 0.0 if at < self.panel[0] / 2 else 0.5  # the lower right corner is the inset's
        self.ax.axvline(FALSE_ALARMS / n_games, bottom, color=MUTE, linewidth=0.7, linestyle=(0, (1, 2)))
        text, x = f"under {FALSE_ALARMS} false alarms", at - 5 if at > 16 else at + 12
        length = text_width(text, 11)
        low = self._clear_height(x - 4, length, 10 + bottom * self.panel[1])
        write(self.ax, (x, low), text, size=11, color=MUTE, rotation=90)
        self.occupied += [Box(x - 4, low + length / 2, 12, length), Box(at, self.panel[1] / 2, 1, self.panel[1])]

    def _clear_height(self, x: float, length: float, least: float) -> float:
        """Return the lowest place of an upright text where it covers no curve; the lowest of all if there is none."""
        curves = self.curves.field()
        for low in np.arange(least, self.panel[1] - length - 4, 6.0):
            if curves.at(Box(x, low + length / 2, 12, length).points()).min() >= 3:
                return float(low)
        return least

    def values(self, line: Line, fprs: Iterable[float]) -> None:
        """Dots on a curve at these false-positive rates, with the members found there."""
        low, high = self.ax.get_ylim()
        for fpr in fprs:
            tpr = line.tpr_at(fpr)
            if line in self.curves.paths and fpr >= line.start and low <= tpr < high:
                self.ax.plot([fpr], [tpr], "o", color=line.color, markersize=6, zorder=5)
                self._around((fpr, tpr), line.tpr_text(fpr), NAME, color=line.color)

    def points(self) -> None:
        """Names of the attacks that are one point."""
        for line in self.curves.lines:
            if line.point is not None:
                self._around(line.point, line.label, SMALL, color=line.color, weight=line.weight)

    def names(self, partial: bool = False) -> bool:
        """Write the name of every curve next to it; curves that are the same everywhere share a label.

        Curves that only look alike where they are drawn have labels of their own, or are in the list.

        If one finds no place (other than guessing), none is written, or with ``partial`` those that do.
        """
        placed: list[tuple[Line, str, Box]] = []
        named = [line for line in self.curves.paths if not line.vacuous]
        named.sort(key=lambda line: _PRIORITY[line.role])
        close = shared([self.curves.paths[line] for line in named])
        texts = self._field(box.points() for box in self.occupied)
        for members in [part for group in close for part in _same([named[number] for number in group])]:
            text = " = ".join(line.label for line in members)
            first = members[0]
            others = self.curves.field(without=members)
            size = text_width(text, NAME, first.weight > 400), _CAPITALS
            box = beside(self.curves.paths[first], size, self.panel, self.curves.fields[first], others, texts)
            if box is not None:
                placed.append((first, text, box))
                texts = texts.nearer(self._field([box.points()]))
            elif first.role != "guessing" and not partial:
                return False
        for line, text, box in placed:
            style = {"size": NAME, "color": line.color, "weight": line.weight}
            write(self.ax, box.start, text, rotation=box.angle, **style)
        self.occupied += [box for _, _, box in placed]
        return True

    def is_clear(self, box: Box) -> bool:
        """Tell whether a box would cover no curve, no interval and no text; that of guessing may pass through it."""
        paths = [path for line, path in self.curves.paths.items() if line.role != "guessing"]
        covered = self._field([*paths, *(taken.points() for taken in self.occupied), *self._bands()])
        return bool(covered.at(box.points()).min() >= 1)

    def ordered_list(self, fprs: Iterable[float], found: str = "members found") -> None:
        """Write the names in the order of their values, in the lower right corner."""
        named = [line for line in self.curves.paths if not line.vacuous]
        measured = [line.start for line in named if line.role in ("best", "other", "attack")]
        reached = [fpr for fpr in fprs if fpr >= max(measured, default=0.0)]
        fpr = min(reached, key=lambda rate: abs(np.log10(rate / 0.01)), default=0.1)
        named.sort(key=lambda line: -line.tpr_at(fpr))
        rows = [(f"{found} at {percent(fpr)} false alarms:", MUTE, 400)]
        shown = [(line.tpr_text(fpr), line) for line in named[:_LONGEST_LIST]]
        rows += [(f"{fraction} {line.label}", line.color, line.weight) for fraction, line in shown]
        if len(named) > _LONGEST_LIST:
            rows.append((f"and {len(named) - _LONGEST_LIST} more", MUTE, 400))
        width = max(text_width(text, SMALL, weight > 400) for text, _, weight in rows)
        left, low = self._clear_corner(width, 14.0 * len(rows))
        for place, (text, color, weight) in enumerate(reversed(rows)):
            write(self.ax, (left, low + 14 * place), text, size=SMALL, color=color, weight=weight)

    def _clear_corner(self, width: float, height: float) -> tuple[float, float]:
        """Return the lower left corner of a list where it covers least: lower right, else upper left."""
        across, up = self.panel
        corners = [(across - 4 - width, 10.0), (16.0, up - height - 4)]
        taken = self._field([*self.curves.paths.values(), *(box.points() for box in self.occupied), *self._bands()])

        def covered(corner: tuple[float, float]) -> bool:
            left, low = corner
            return bool((taken.at(Box(left + width / 2, low + height / 2, width, height).points()) < 3).any())

        return next((corner for corner in corners if not covered(corner)), corners[0])

    def _bands(self) -> list[Path]:
        """Return the ends of the intervals that are drawn, in pixels of the panel."""
        places = []
        for line in self.curves.lines:
            if line.role == "best" and line.point is None and len(line.band[0]):
                at, low, high = (np.asarray(end, dtype=float) for end in line.band)
                ends = [(fpr, tpr) for end in (low, high) for fpr, tpr in zip(at, end, strict=True)]
                places.append(np.array([self.curves.place(*end) for end in ends]))
        return places

    def _around(self, at: tuple[float, float], text: str, size: float, color: str, weight: int = 400) -> None:
        """Write next to a dot; without a free place the dot stays without its text."""
        dot = self.curves.place(*at)
        shape = text_width(text, size, weight > 400), _CAPITALS
        texts = self._field(box.points() for box in self.occupied)
        box = around(dot, shape, self.panel, self.curves.field(), texts)
        self.occupied.append(Box(*dot, 7, 7))
        if box is not None:
            write(self.ax, box.start, text, size=size, color=color, weight=weight)
            self.occupied.append(box)

    def _field(self, points: Iterable[Path]) -> Field:
        return Field.of(np.concatenate([np.empty((0, 2)), *points]), self.panel)


def _same(lines: Sequence[Line]) -> list[list[Line]]:
    """Lines whose whole trade-offs are the same, in groups."""
    groups: list[list[Line]] = []
    for line in lines:
        for group in groups:
            if coincide(group[0].tradeoff, line.tradeoff):
                group.append(line)
                break
        else:
            groups.append([line])
    return groups
