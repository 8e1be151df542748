"""Rows of words as aligned text, at most 100 columns wide."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

WIDTH = 100


def columns(rows: Sequence[Mapping[str, str]]) -> str:
    """A table of text: a heading from the keys, the last column wrapped to fit.

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
    names = list(rows[0])
    table = [names, *([row[name] for name in names] for row in rows)]
    widths = [max(len(line[place]) for line in table) for place in range(len(names))]
    indent = sum(widths[:-1]) + 2 * (len(names) - 1)
    lines = []
    for line in table:
        head = "".join(f"{cell:<{width}}  " for cell, width in zip(line[:-1], widths[:-1], strict=True))
        last = textwrap.wrap(line[-1], max(WIDTH - indent, 20)) or [""]
        lines += [(head + last[0]).rstrip(), *(" " * indent + rest for rest in last[1:])]
    return "\n".join(lines)
