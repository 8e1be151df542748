"""What histograms are made of: bars as one path, and texts above them that do not cover one another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from leakscope.reports.canvas import panel_size, write
from leakscope.reports.labels import text_width

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
    """Bars as one path; those without a height are left out.

    Parameters
    ----------
    ax : Axes
    left, right, top : arrays of shape (bars,)
        In the data of the axes.
    bottom : float
    **style
        Properties of matplotlib's patch.
    """
    seen = top > bottom
    if not seen.any():
        return
    left, right, top = left[seen], right[seen], top[seen].astype(float)
    base = np.full_like(top, bottom)
    corners = np.stack([left, base, left, top, right, top, right, base, left, base], axis=1).reshape(-1, 2)
    codes = np.tile([Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY], len(top))
    ax.add_patch(PathPatch(Path(corners, codes), linewidth=0, **style))


class Above:
    """Writes texts above the bars, where they do not cover one another.

    Parameters
    ----------
    ax : Axes
        With a linear horizontal axis.
    profile : array of shape (pixels,)
        Height of the bars in pixels, for every pixel across the panel.
    """

    def __init__(self, ax: Axes, profile: Float[Array, " pixels"]) -> None:
        self.ax, self.profile = ax, profile.copy()
        self.width, self.height = panel_size(ax)
        self.scale = self.width / np.ptp(ax.get_xlim())
        self.left = ax.get_xlim()[0]

    def write(self, lines: Sequence[str], places: Sequence[tuple[str, float]], **style: Any) -> float | None:
        """Write at the lowest of the places (alignment, x in data); its height in pixels, or None if none is free."""
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
