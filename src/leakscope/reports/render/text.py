"""What every text for a terminal is made of: plain letters and lines that fit."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from itertools import zip_longest

from markupsafe import Markup

from leakscope.core.checks import printable
from leakscope.reports.numbers import MINUS, THIN

LETTERS = {
    "≥": ">=",
    "≤": "<=",
    "ε": "epsilon",
    "δ": "delta",
    "μ": "mu",
    "η": "eta",
    "½": "1/2",
    "—": "-",
    "…": "...",
    "“": '"',
    "”": '"',
    "\u2019": "'",
    "±": "+-",
}
ASCII = str.maketrans(LETTERS | {THIN: " ", "\u00a0": " ", MINUS: "-"})
_POWER = re.compile(rf"(?:([\d.]+) \u00d7 )?\b10<sup>({MINUS}?)(\d+)</sup>")


def clean(text: str) -> str:
    """Letters that any terminal prints; what it would obey as Python writes it in a string."""
    return printable(text.translate(ASCII))


def flat(said: Markup) -> str:
    """A sentence without its markup.

    Examples
    --------
    >>> flat(Markup("<b>at most</b> 10<sup>6</sup>"))
    'at most 1e06'
    """
    return Markup(_POWER.sub(lambda found: f"{found[1] or 1}e{found[2]}{int(found[3]):02d}", said)).striptags()


def wrapped(text: str) -> list[str]:
    """Lines of at most 100 columns."""
    return textwrap.wrap(clean(text), WIDTH)


WIDTH = 100


def columns(rows: Sequence[Mapping[str, str]]) -> str:
    """A table of text: a heading from the keys, cells wrapped where a line would not fit.

    Parameters
    ----------
    rows : sequence of mapping of str to str
        With the same keys.

    Returns
    -------
    str

    Examples
    --------
    >>> print(columns([{"attack": "lira", "auc": "0.91"}]))
    attack  auc
    lira    0.91
    """
    if not rows:
        return ""
    table = [list(rows[0]), *(list(row.values()) for row in rows)]
    widths = _widths(table)
    lines = []
    for line in table:
        cells = [textwrap.wrap(cell, width) for cell, width in zip(line, widths, strict=True)]
        for parts in zip_longest(*cells, fillvalue=""):
            padded = (f"{part:<{width}}" for part, width in zip(parts, widths, strict=True))
            lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def _widths(table: Sequence[Sequence[str]]) -> list[int]:
    """The widest cell of each column, the widest columns narrowed until a line fits."""
    widths = [max(map(len, column), default=1) for column in zip(*table, strict=True)]
    while sum(widths) + 2 * (len(widths) - 1) > WIDTH:
        widths[widths.index(max(widths))] -= 1
    return widths
