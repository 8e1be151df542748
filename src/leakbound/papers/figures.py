"""What the figures of the papers have in common: size, type, and lines that can be told apart in grey."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

INK, MUTE = "#1b1f24", "#5b6570"
OURS, THEIRS = "#0b5cad", "#b8430a"  # what we add, what is printed
LOOK: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["Helvetica", "Arial", "Liberation Sans", "DejaVu Sans"],
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.edgecolor": MUTE,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e7eb",
    "grid.linewidth": 0.6,
    "xtick.color": MUTE,
    "ytick.color": MUTE,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.6,
    "lines.markersize": 4,
    "svg.hashsalt": "leakbound",
    "svg.fonttype": "none",
}
# Colours of unequal lightness, each with a marker and a dash of its own: a grey print keeps them apart.
STYLES: tuple[dict[str, Any], ...] = (
    {"color": "#0b5cad", "marker": "o", "linestyle": "-"},
    {"color": "#b8430a", "marker": "s", "linestyle": "--"},
    {"color": "#3f7d20", "marker": "^", "linestyle": "-."},
    {"color": "#8a6d00", "marker": "D", "linestyle": ":"},
    {"color": "#6b3fa0", "marker": "v", "linestyle": (0, (5, 1, 1, 1, 1, 1))},
    {"color": "#1b1f24", "marker": "x", "linestyle": (0, (1, 1))},
    {"color": "#7a8793", "marker": "P", "linestyle": (0, (8, 2))},
)


@contextmanager
def looking() -> Iterator[None]:
    """Set the style of all figures."""
    with rc_context(LOOK):
        yield


def styles() -> Iterator[dict[str, Any]]:
    """Styles of lines, one after the other."""
    return cycle(STYLES)


def panels(n_columns: int, n_rows: int = 1, width: float = 3.4, height: float = 2.9) -> tuple[Figure, np.ndarray]:
    """Make a figure of panels without a window."""
    figure = Figure(figsize=(width * n_columns, height * n_rows), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, np.ravel(figure.subplots(n_rows, n_columns, squeeze=False))


def band(ax: Axes, x: Sequence[float] | np.ndarray, value: Any, low: Any, high: Any, label: str, **style: Any) -> None:
    """Draw a line with its interval as a shade."""
    (line,) = ax.plot(x, value, label=label, **style)
    ax.fill_between(x, low, high, color=line.get_color(), alpha=0.18, linewidth=0)


def line(
    ax: Axes,
    rows: pd.DataFrame | pd.Series,
    x: str,
    y: str,
    label: str,
    *,
    error: str = "",
    n_errors: float = 2.0,
    **style: Any,
) -> None:
    """Draw rows of numbers as a line with a shade."""
    at, value = (np.asarray(rows[name], dtype=float) for name in (x, y))
    if error:
        width = n_errors * np.asarray(rows[error], dtype=float)
        low, high = value - width, value + width
    else:
        low, high = (np.asarray(rows[name], dtype=float) for name in ("low", "high"))
    band(ax, at, value, low, high, label, **style)


def as_bytes(figure: Figure, kind: str) -> bytes:
    """Render a figure as PNG or SVG, the same bytes each time."""
    held = io.BytesIO()
    figure.savefig(held, format=kind, dpi=160, metadata={"Date": None} if kind == "svg" else {"Software": None})
    return held.getvalue()
