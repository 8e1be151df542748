"""A matplotlib figure as SVG that is part of a page and takes its colours and its type from there."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree as ET

import matplotlib as mpl
from matplotlib.figure import Figure

from leakbound.reports.charts.canvas import PALETTE

_GEOMETRY = ("d", "x", "y", "width", "height", "transform", "points")
_TYPE = ("font-family", "font-style", "font-variant", "font-stretch")  # the page's own
_DROPPED = ("metadata", "style")  # a style sheet in a chart would hold for the whole page
_NUMBER = re.compile(r"-?\d+\.\d+")
_COMMAND = re.compile(r" ?([A-Za-z]) ?")
_REFERENCE = re.compile(r"#([^)\s]+)")
_VARIABLES = {colour: f"var(--{name},{colour})" for name, colour in PALETTE.items()}


def inline(figure: Figure, prefix: str, title: str, description: str) -> str:
    """Turn a figure into an ``<svg>`` element.

    The element has a view box and no size, its colours are the variables of the page's style with the light
    palette behind them, its text is text in the page's own family, and it names itself to a screen reader.

    >>> from leakbound.reports.charts.canvas import Size
    >>> axes = Size(40, 30, 0, 0, 0, 0).axes()
    >>> inline(axes.figure, "roc", "A <b> title", "")[:82]
    '<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 40 30" role="im'
    """
    chart = _chart(figure, {"aria-labelledby": f"{prefix}-title {prefix}-desc"})
    for tag, text in (("title", title), ("desc", description)):
        ET.SubElement(chart, tag, {"id": f"{prefix}-{tag}"}).text = text
    return _drawn(figure, prefix, chart)


def labelled(figure: Figure, prefix: str, label: str) -> str:
    """Turn a figure into an ``<svg>`` element as `inline` does, with one text for who cannot see it."""
    return _drawn(figure, prefix, _chart(figure, {"aria-label": label}))


def _chart(figure: Figure, named: Mapping[str, str]) -> ET.Element:
    """Make the element of a figure, without a size of its own."""
    width, height = (f"{72 * length:g}" for length in figure.get_size_inches())
    given = {"xmlns": "http://www.w3.org/2000/svg", "class": "chart", "viewBox": f"0 0 {width} {height}"}
    return ET.Element("svg", {**given, "role": "img", **named, "stroke-linejoin": "round"})


def _drawn(figure: Figure, prefix: str, chart: ET.Element) -> str:
    """Draw a figure into its element."""
    drawn = ET.fromstring(_render(figure))
    names = _new_names(drawn, prefix)
    for child in drawn:
        _adopt(chart, child, names)
    return ET.tostring(chart, encoding="unicode")


def _render(figure: Figure) -> str:
    """Return what matplotlib writes, without date, maker and salt of its own."""
    settings: Any = {"svg.fonttype": "none", "svg.hashsalt": "leakbound", "path.simplify": True}
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    page = io.StringIO()
    with mpl.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # the reader's browser has other fonts
        figure.savefig(page, format="svg", metadata=nothing, transparent=True)
    return page.getvalue()


def _new_names(drawn: ET.Element, prefix: str) -> Mapping[str, str]:
    """Choose new ids, in the order of their first use, for those ids that are used."""
    used: dict[str, str] = {}
    for element in drawn.iter():
        for attribute, value in element.attrib.items():
            if _local(attribute) != "id":
                for name in _REFERENCE.findall(value):
                    used.setdefault(name, f"{prefix}-{len(used)}")
    return used


def _adopt(parent: ET.Element, element: ET.Element, names: Mapping[str, str]) -> None:
    """Copy an element in the terms of the page; groups without attributes dissolve."""
    tag = _local(element.tag)
    if tag in _DROPPED:
        return
    attributes = {_local(name): value for name, value in element.attrib.items()}
    attributes = {name: text for name, value in attributes.items() if (text := _translate(name, value, names))}
    if tag == "g" and not attributes:
        copy = parent
    else:
        copy = ET.SubElement(parent, tag, attributes)
        copy.text = element.text if tag == "text" else None
    for child in element:
        _adopt(copy, child, names)
    if tag == "defs" and not len(copy):
        parent.remove(copy)


def _translate(name: str, value: str, names: Mapping[str, str]) -> str:
    """Return the value of an attribute in the terms of the page, empty if it is not needed."""
    if name == "id":
        return names.get(value, "")
    if name in _GEOMETRY:
        value = " ".join(_NUMBER.sub(_one_decimal, value).split())
        if name == "d":
            return _COMMAND.sub(r"\1", value)
        return "" if value.startswith(("rotate(-0 ", "rotate(0 ")) else value
    if name == "style":
        return _style(value, names)
    return _REFERENCE.sub(lambda match: "#" + names.get(match[1], match[1]), value)


def _style(value: str, names: Mapping[str, str]) -> str:
    """Return a style without the fonts of this machine, and with the colours of the page."""
    declarations = []
    for declaration in value.split(";"):
        key, _, content = (part.strip() for part in declaration.partition(":"))
        if key and key not in _TYPE:
            content = _VARIABLES.get(content, content)
            if content.startswith("url("):
                content = _REFERENCE.sub(lambda match: "#" + names[match[1]], content)
            declarations.append(f"{key}:{content}")
    return ";".join(declarations)


def _one_decimal(match: re.Match[str]) -> str:
    text = f"{float(match[0]):.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def _local(name: str) -> str:
    """Return a name without its namespace."""
    return name.rpartition("}")[2]
