"""A matplotlib figure as SVG that is part of a page and takes its colours and its type from there."""

from __future__ import annotations

import html
import io
import re
import warnings
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from leakbound.reports.charts.canvas import PALETTE

_LEFT_OUT = re.compile(r"<!--.*?-->|<style.*?</style>|<metadata>.*?</metadata>", re.DOTALL)
_TAG = re.compile(r"<[^>]+>")  # matplotlib escapes what users wrote, so that none of it is in a tag
_BETWEEN = re.compile(r">\s+<")
_FAMILY = re.compile(r"font-family: [^;\"]+;? ?| transform=\"rotate\(-?0 [^\"]*\"")  # and no turn at all
_FONT = re.compile(r"font: (?:(\d+) )?([\d.]+px) [^;\"]+")
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")


def labelled(figure: Figure, prefix: str, label: str) -> str:
    """Turn a figure into an ``<svg>`` element, with one text for who cannot see it.

    The element has a view box and no size, its colours are the variables of the page's style with the light palette
    behind them, its text is in the page's own family, and its ids begin with the prefix.

    >>> from leakbound.reports.charts.canvas import Size
    >>> axes = Size(40, 30, 0, 0, 0, 0).axes()
    >>> labelled(axes.figure, "roc", "A <b> label")[:55]
    '<svg class="chart" viewBox="0 0 40 30" role="img" aria-'
    """
    width, height = (f"{72 * length:g}" for length in figure.get_size_inches())
    drawn = _LEFT_OUT.sub("", _render(figure))
    content = drawn.partition("<svg ")[2].partition(">")[2]
    content = _TAG.sub(lambda tag: _in_terms_of_the_page(tag[0], prefix), content)
    start = f'<svg class="chart" viewBox="0 0 {width} {height}" role="img" aria-label="{html.escape(label)}"'
    content = _BETWEEN.sub("><", content).strip()
    return f'{start} stroke-linejoin="round">{content}'


def _render(figure: Figure) -> str:
    """Return what matplotlib writes, without date, maker and salt of its own."""
    settings: Any = {"svg.fonttype": "none", "svg.hashsalt": "leakbound", "path.simplify": True}
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    page = io.StringIO()
    with mpl.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # the reader's browser has other fonts
        figure.savefig(page, format="svg", metadata=nothing, transparent=True)
    return page.getvalue()


def _in_terms_of_the_page(tag: str, prefix: str) -> str:
    """Write a tag with ids, colours, type and numbers as the page has them."""
    for reference in (' id="', "url(#", 'href="#'):
        tag = tag.replace(reference, f"{reference}{prefix}-")
    for name, colour in PALETTE.items():
        tag = tag.replace(colour, f"var(--{name},{colour})")
    tag = _FAMILY.sub("", tag.replace("xlink:", ""))
    tag = _FONT.sub(lambda font: f"font-size: {font[2]}; font-weight: {font[1] or 400}", tag)
    return _LONG_NUMBER.sub(lambda number: f"{float(number[0]):.2f}", tag)
