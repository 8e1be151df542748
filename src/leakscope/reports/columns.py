"""Rows of words as aligned text, at most 100 columns wide."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from itertools import zip_longest

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
