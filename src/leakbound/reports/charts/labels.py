"""Places for the labels of curves: next to the curve, where its neighbours are far away.

All lengths are pixels, x to the right and y upwards. What is in the way of a label is a cloud of points
(curves at one point every two pixels, boxes as a grid) and is asked through its field of distances.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.ndimage import distance_transform_edt

Array = np.ndarray
Path = Float[Array, "_ 2"]

STEEP = 10.0  # degrees from which a label follows its curve
_UPRIGHT = 60.0  # degrees from which it is level again
_GAP = 4.0  # between a label and any curve: two curves with a label between them are 18 pixels apart
_ALONE = 5.0  # where two curves are nearer to each other a label could be of either
_SEARCH = 6.0  # pixels between the places that are tried all over a panel
_MARGIN, _CELL, _OUTSIDE = 40.0, 2.0, 20.0  # a value may lie a little outside its panel
_WIDTHS = {  # in ems, of Helvetica; other letters and digits are 0.556, other capitals 0.667
    letter: width
    for letters, width in (
        ("ijl'|", 0.222),
        ("ftI.,:;!/[] ", 0.28),
        ("r()-", 0.333),
        ("cksvxyzJ", 0.5),
        ("FTZ", 0.61),
        ("wCDHNRUGOQ", 0.74),
        ("mM%W@…", 0.86),
    )
    for letter in letters
}


@dataclass(frozen=True)
class Box:
    """The place of a line of text."""

    x: float
    y: float
    width: float
    height: float
    angle: float = 0.0

    @property
    def start(self) -> tuple[float, float]:
        """Left end of the baseline, for capitals that are centred on the box."""
        turn = math.radians(self.angle)
        left, down = -self.width / 2, -0.45 * self.height
        x = self.x + left * math.cos(turn) - down * math.sin(turn)
        return x, self.y + left * math.sin(turn) + down * math.cos(turn)

    def points(self) -> Path:
        """Return a grid over the box, its edges included."""
        return _grid(np.array([self.x, self.y], dtype=float), np.array(self.angle), (self.width, self.height))


def text_width(text: str, size: float, bold: bool = False) -> float:
    """Width of a line in a Helvetica-like face, the same on every machine.

    >>> text_width("guessing", 10.0)
    40.0
    """
    ems = sum(_WIDTHS.get(letter, 0.667 if letter.isupper() and letter != "L" else 0.556) for letter in text)
    return round(ems * size * (1.06 if bold else 1.0), 1)


def densify(path: Path, step: float = 2.0) -> Path:
    """Return the same polyline with a point every ``step`` pixels."""
    if len(path) < 2:
        return path
    length = np.r_[0.0, np.cumsum(np.hypot(*np.diff(path, axis=0).T))]
    at = np.linspace(0.0, length[-1], max(2, int(length[-1] / step) + 1))
    return np.column_stack([np.interp(at, length, path[:, axis]) for axis in (0, 1)])


@dataclass(frozen=True, eq=False)
class Field:
    """Distance from every place of a panel, and a margin around it, to the nearest of some points."""

    values: Float[Array, "rows columns"]

    @classmethod
    def of(cls, points: Path, panel: tuple[float, float]) -> Field:
        """Compute the field of these points (exact Euclidean distance between cells; infinite without points)."""
        columns, rows = (math.ceil((length + 2 * _MARGIN) / _CELL) for length in panel)
        is_occupied = np.zeros((rows, columns), dtype=bool)
        column, row = np.floor((points + _MARGIN) / _CELL).astype(int).T
        is_inside = (column >= 0) & (column < columns) & (row >= 0) & (row < rows)
        is_occupied[row[is_inside], column[is_inside]] = True
        if not is_occupied.any():
            return cls(np.full((rows, columns), np.inf))
        return cls(_CELL * np.asarray(distance_transform_edt(~is_occupied)))

    def nearer(self, *others: Field) -> Field:
        """Return the field of all their points together."""
        return Field(np.minimum.reduce([self.values, *(other.values for other in others)]))

    def at(self, places: Float[Array, "*shape 2"]) -> Float[Array, "*shape"]:
        """Distance of each place; those outside are taken to the border."""
        column, row = np.moveaxis(np.floor((places + _MARGIN) / _CELL).astype(int), -1, 0)
        rows, columns = self.values.shape
        return self.values[np.clip(row, 0, rows - 1), np.clip(column, 0, columns - 1)]


def beside(
    path: Path,
    size: tuple[float, float],
    panel: tuple[float, float],
    own: Field,
    others: Field,
    texts: Field,
) -> Box | None:
    """Find the clearest place for a label next to its curve."""
    number = np.arange(0, len(path), 2)
    slope = _slopes(path, number, half=max(1, int(size[0] / 4)))
    upright = np.abs(slope) >= _UPRIGHT
    angle = np.where((np.abs(slope) > STEEP) & ~upright, slope, 0.0)
    normal = np.where(upright, 0.0, np.radians(angle + 90))  # a level label is next to a very steep curve
    reach = np.where(upright, size[0], size[1]) / 2 + _GAP
    offset = np.multiply.outer(reach, [1.0, -1.0])[..., None] + np.multiply.outer([1.0, -1.0], np.arange(0, 12, 2.0))
    away = np.stack([np.cos(normal), np.sin(normal)], axis=-1)
    centre = path[number, None, None] + away[:, None, None] * offset[..., None]
    turned = np.broadcast_to(angle[:, None, None], offset.shape)
    places = _grid(centre, turned, size)
    inside = ((places >= 2) & (places <= np.array(panel) - 2)).all(axis=(-1, -2))
    gap = own.at(places).min(axis=-1)
    room = np.minimum(others.at(places), texts.at(places)).min(axis=-1)
    alone = (others.at(path[number]) >= _ALONE)[:, None, None]
    middle = np.abs(number / len(path) - 0.5)[:, None, None]
    cost = 8 * middle + 0.04 * np.abs(turned) + 0.5 * np.abs(offset) + (offset < 0)
    allowed = alone & inside & (gap >= _GAP - 1) & (room >= _GAP)
    value = np.where(allowed, np.minimum(room, 30) - cost, -np.inf)
    best = np.unravel_index(np.argmax(value), value.shape)
    x, y = centre[best]
    return Box(float(x), float(y), *size, float(turned[best])) if allowed[best] else None


def around(
    at: tuple[float, float],
    size: tuple[float, float],
    panel: tuple[float, float],
    others: Field,
    texts: Field,
) -> Box | None:
    """Find the clearest place for a short text around a dot, or None if each would cover another text."""
    turn, gap = np.meshgrid(np.radians([135, 90, 180, 315, 0, 45, 225, 270]), [3.0, 6.0, 10.0])
    turn, gap = turn.ravel(), gap.ravel()
    toward = np.sign(np.round(np.stack([np.cos(turn), np.sin(turn)], axis=-1), 6))
    straight = np.abs(toward).sum(axis=-1) == 1
    centre = np.array(at) + toward * (np.array(size) / 2 + np.where(straight, gap + 3, gap)[:, None])
    places = _grid(centre, np.zeros(len(centre)), size)
    inside = ((places >= -_OUTSIDE) & (places <= np.array(panel) + _OUTSIDE)).all(axis=(-1, -2))
    room = np.minimum(others.at(places).min(axis=-1), 8.0)
    value = np.where(inside & (texts.at(places).min(axis=-1) >= 3), room - gap / 2, -np.inf)
    best = int(np.argmax(value))
    x, y = centre[best]
    return None if value[best] == -np.inf else Box(float(x), float(y), *size)


def anywhere(
    at: tuple[float, float],
    size: tuple[float, float],
    panel: tuple[float, float],
    others: Field,
    texts: Field,
) -> Box | None:
    """Find the free place for a short text that is nearest to a dot, for a line from one to the other.

    None only if no place on the panel is free of other texts.
    """
    width, height = size
    across = np.arange(width / 2, max(panel[0] - width / 2, width / 2 + 1), _SEARCH)
    up = np.arange(height / 2, max(panel[1] - height / 2, height / 2 + 1), _SEARCH)
    centre = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)
    places = _grid(centre, np.zeros(len(centre)), size)
    is_readable = texts.at(places).min(axis=-1) >= 3
    is_free = is_readable & (others.at(places).min(axis=-1) >= 3)
    allowed = is_free if is_free.any() else is_readable
    if not allowed.any():
        return None
    distance = np.where(allowed, np.hypot(*(centre - np.array(at)).T), np.inf)
    x, y = centre[int(np.argmin(distance))]
    return Box(float(x), float(y), *size)


def shared(paths: Sequence[Path], close: float = 3.0, most: float = 0.75) -> list[list[int]]:
    """Curves that are too close to carry labels of their own where both are drawn, by number, in groups.

    Two curves are close if over the given fraction of the columns that both have they are less than ``close``
    pixels apart.

    >>> line = np.column_stack([np.arange(9.0), np.arange(9.0)])
    >>> shared([line, line + [0.0, 50.0], line + [0.0, 1.0]])
    [[0, 2], [1]]
    """
    groups: list[list[int]] = []
    for i, path in enumerate(paths):
        home = next((group for group in groups if _close(paths[group[0]], path, close, most)), None)
        if home is None:
            groups.append([i])
        else:
            home.append(i)
    return groups


def _close(one: Path, other: Path, close: float, most: float) -> bool:
    low, high = max(one[0, 0], other[0, 0]), min(one[-1, 0], other[-1, 0])
    if high <= low:
        return False
    columns = np.linspace(low, high, 101)
    apart = np.abs(np.interp(columns, *one.T) - np.interp(columns, *other.T))
    return bool(np.quantile(apart, most) < close)


def _slopes(path: Path, number: Array, half: int) -> Array:
    """Direction of the curve in degrees, over a stretch as long as the label."""
    chord = path[np.minimum(number + half, len(path) - 1)] - path[np.maximum(number - half, 0)]
    return np.degrees(np.arctan2(chord[:, 1], chord[:, 0]))


def _grid(
    centre: Float[Array, "*shape 2"], angle: Float[Array, "*shape"], size: tuple[float, float]
) -> Float[Array, "*shape k 2"]:
    """Points over boxes of one size, edges included, less than four pixels apart."""
    x, y = ((np.linspace(-0.5, 0.5, max(2, math.ceil(length / 4) + 1)) * length) for length in size)
    x, y = (axis.ravel() for axis in np.meshgrid(x, y))
    turn = np.radians(angle)[..., None]
    rotated = np.stack([x * np.cos(turn) - y * np.sin(turn), x * np.sin(turn) + y * np.cos(turn)], axis=-1)
    return centre[..., None, :] + rotated
