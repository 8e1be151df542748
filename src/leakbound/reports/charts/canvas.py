"""What all charts share: the colours, the type, and a panel whose lengths are pixels of the page.

A pixel is a point of matplotlib (1/72 inch), so that the same numbers hold on the page and in a figure of
any resolution. All text is placed by the start, middle or end of its baseline: its place does not
depend on the fonts of the machine that draws it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

INK, MUTE, RULE = "#1b1f24", "#5b6570", "#d3d8de"
ATTACK, CLAIM, PAPER, WASH = "#0b5cad", "#b8430a", "#ffffff", "#f6f7f8"
PALETTE = {
    "ink": INK,
    "mute": MUTE,
    "rule": RULE,
    "attack": ATTACK,
    "claim": CLAIM,
    "paper": PAPER,
    "wash": WASH,
}
FAMILY = "DejaVu Sans"  # comes with matplotlib: the same bytes on every machine
LONGEST_NAME = 22
_LEGEND_ROW = 18.2  # pixels
DOTTED, DASHED = (0, (1, 2.2)), (0, (6, 2.5))


@dataclass(frozen=True)
class Size:
    """A chart and the room around its panel, in pixels."""

    width: float
    height: float
    left: float
    right: float
    bottom: float
    top: float

    @property
    def panel(self) -> tuple[float, float]:
        """Width and height inside the margins."""
        return self.width - self.left - self.right, self.height - self.bottom - self.top

    def axes(self) -> Axes:
        """Axes on a figure of its own that no window and no notebook knows."""
        figure = Figure(figsize=(self.width / 72, self.height / 72), dpi=72)
        FigureCanvasAgg(figure)
        return self._panel_on(figure)

    def shown(self) -> Axes:
        """Axes on a figure of pyplot, which notebooks show."""
        pyplot = import_module("matplotlib.pyplot")
        return self._panel_on(pyplot.figure(figsize=(self.width / 72, self.height / 72)))

    def _panel_on(self, figure: Figure) -> Axes:
        inside = self.panel
        fractions = (
            self.left / self.width,
            self.bottom / self.height,
            inside[0] / self.width,
            inside[1] / self.height,
        )
        return figure.add_axes(fractions)


def figures(charts: Mapping[str, Axes]) -> dict[str, Figure]:
    """Return the figure of each chart."""
    return {name: figure_of(axes) for name, axes in charts.items()}


def figure_of(ax: Axes) -> Figure:
    """Return the figure of axes."""
    figure = ax.get_figure(root=True)
    if figure is None:
        raise ValueError("axes without a figure cannot be drawn")
    return figure


def panel_size(ax: Axes) -> tuple[float, float]:
    """Width and height of a panel in pixels of the page."""
    box, dpi = ax.get_window_extent(), figure_of(ax).dpi
    return box.width * 72 / dpi, box.height * 72 / dpi


def write(
    ax: Axes,
    at: tuple[float, float],
    text: str,
    *,
    size: float = 12.5,
    align: Literal["left", "center", "right"] = "left",
    **style: Any,
) -> Text:
    """Write one line of plain text."""
    font = {"family": FAMILY, "size": size, "color": INK} | style
    return ax.annotate(
        text,
        xy=(0, 0),
        xycoords="axes fraction",
        xytext=at,
        textcoords="offset points",
        ha=align,
        va="baseline",
        rotation_mode="anchor",
        parse_math=False,
        annotation_clip=False,
        **font,
    )


def clear(ax: Axes, sides: tuple[str, ...] = ("left", "bottom"), color: str = INK, width: float = 0.8) -> None:
    """Leave of a panel only these sides of its frame, without ticks or ground."""
    ax.set_facecolor("none")
    figure = ax.get_figure(root=True)
    if figure is not None:
        figure.patch.set_visible(False)
    ax.minorticks_off()
    ax.set_xticks([])
    ax.set_yticks([])
    for side, spine in ax.spines.items():
        spine.set_visible(side in sides)
        spine.set(color=color, linewidth=width)


def legend(ax: Axes, rows: Sequence[tuple[Artist, str]], title: str = "") -> None:
    """Write a legend below a chart, whose figure grows by its rows."""
    figure = figure_of(ax)
    width, height = 72 * figure.get_size_inches()
    room = _LEGEND_ROW * (len(rows) + bool(title)) + 6
    figure.set_size_inches(width / 72, (height + room) / 72)
    for panel in figure.axes:
        place = panel.get_position()
        low, high = ((end * height + room) / (height + room) for end in (place.y0, place.y1))
        panel.set_position((place.x0, low, place.width, high - low))
    drawn = ax.legend(
        [handle for handle, _ in rows],
        [" "] * len(rows),
        loc="upper left",
        bbox_to_anchor=(0, room / (height + room)),
        bbox_transform=figure.transFigure,
        borderaxespad=0,
        borderpad=0,
        labelspacing=0.35,
        handlelength=2.6,
        frameon=False,
        prop={"family": FAMILY, "size": 12},
        title=title or None,
        title_fontproperties={"family": FAMILY, "size": 12},
        alignment="left",
    )
    drawn.get_title().set(color=MUTE, parse_math=False)
    for text, (_, label) in zip(drawn.get_texts(), rows, strict=True):
        text.set_parse_math(False)
        text.set(text=label, color=INK)


def shorten(name: str, longest: int = LONGEST_NAME) -> str:
    """Cut a name to what fits next to a curve.

    >>> shorten("an attack with a name that never ends")
    'an attack with a name…'
    """
    return name if len(name) <= longest else name[: longest - 1].rstrip() + "…"
