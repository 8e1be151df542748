"""Reports as plain text for a terminal: plain letters, and lines of at most 100 columns."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from itertools import zip_longest

from markupsafe import Markup

from leakscope.core.checks import printable
from leakscope.reports import Report
from leakscope.reports.numbers import MINUS, THIN
from leakscope.reports.sections.document import Block, Columns, Document, Heading, Part, Rows

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


def table(report: Report) -> str:
    """Render a report as text.

    Accuracy is in cases of 100; intervals are in brackets, at the confidence of the report.

    Parameters
    ----------
    report : Report
        Of any kind.

    Returns
    -------
    str
        Lines of at most 100 columns, without colour or control characters; ends with a newline.

    Raises
    ------
    ValueError
        If a protected release has a table of records.

    Examples
    --------
    >>> import leakscope as ls
    >>> print(table(ls.bound("dp", epsilon=1.0)).splitlines()[0])
    What does (epsilon, delta)-differential privacy allow any attacker?
    """
    kind = import_module(f"leakscope.reports.sections.{report.about.kind}.document")
    document: Document = kind.document(report)
    sections = {section.name: section for section in document.sections}
    order = document.text_order or sections
    blocks: list[Block] = [[document.title, Markup(", ").join(document.facts)]]
    for name in order:
        if name in sections:
            blocks += sections[name].text
    printed = ["\n".join(line for part in block for line in _lines(part)) for block in blocks]
    return "\n\n".join(text for text in printed if text) + "\n"


def _lines(part: Part) -> list[str]:
    """Lay out a paragraph, a heading or a table as lines."""
    if isinstance(part, Heading):
        return [clean(part.text)[:WIDTH]]
    if isinstance(part, Rows):
        rows = [{clean(head): _cell(cell) for head, cell in row.items()} for row in part.rows[: part.most]]
        n_more = len(part.rows) - len(rows)
        return columns(rows).splitlines() + ([f"and {n_more:,} more"] if n_more else [])
    if isinstance(part, Columns):
        return _aligned(part)
    return wrapped(flat(part) if isinstance(part, Markup) else part)


def _cell(cell: str) -> str:
    return clean(flat(cell) if isinstance(cell, Markup) else cell)


def _aligned(table: Columns) -> list[str]:
    """Lay out a table by columns; those that do not fit next to the names follow below an empty line."""
    names = [table.head, *(clean(name) for name in table.names)]
    columns = [[clean(title), *(clean(cell) for cell in cells)] for title, cells in table.columns]
    lines: list[str] = []
    for group in _fitting(columns, WIDTH - max(len(name) for name in names)):
        block = [names, *group]
        widths = [max(len(cell) for cell in column) for column in block]
        lines += [""] * bool(lines)
        for row in zip(*block, strict=True):
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            lines.append("  ".join(cells).rstrip())
    return lines


def _fitting(columns: Sequence[list[str]], width: int) -> Iterator[list[list[str]]]:
    """Split columns into runs that fit next to the names."""
    group: list[list[str]] = []
    used = 0
    for column in columns:
        need = 2 + max(len(cell) for cell in column)
        if group and used + need > width:
            yield group
            group, used = [], 0
        group.append(column)
        used += need
    if group:
        yield group


def clean(text: str) -> str:
    """Letters that any terminal prints; what it would obey as Python writes it in a string."""
    return printable(text.translate(ASCII))


def flat(sentence: Markup) -> str:
    """Return a sentence without its markup.

    Examples
    --------
    >>> flat(Markup("<b>at most</b> 10<sup>6</sup>"))
    'at most 1e06'
    """
    return Markup(_POWER.sub(lambda match: f"{match[1] or 1}e{match[2]}{int(match[3]):02d}", sentence)).striptags()


def wrapped(text: str) -> list[str]:
    """Lines of at most 100 columns."""
    return textwrap.wrap(clean(text), WIDTH)


WIDTH = 100


def columns(rows: Sequence[Mapping[str, str]]) -> str:
    """Align a table of text: a heading from the keys, cells wrapped where a line would not fit.

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
    """Return the widest cell of each column, the widest columns narrowed until a line fits."""
    widths = [max(map(len, column), default=1) for column in zip(*table, strict=True)]
    while sum(widths) + 2 * (len(widths) - 1) > WIDTH:
        widths[widths.index(max(widths))] -= 1
    return widths
