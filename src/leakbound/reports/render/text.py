"""Reports as plain text for a terminal: plain letters, and lines no longer than the terminal is wide."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from markupsafe import Markup

from leakbound.core.checks import count, printable
from leakbound.reports import Report
from leakbound.reports.numbers import MINUS, THIN
from leakbound.reports.render.document import document_name, terminal
from leakbound.reports.results.attribute_page import attribute_page
from leakbound.reports.results.audit.page import audit_page
from leakbound.reports.results.bound_page import bound_page
from leakbound.reports.results.release.page import release_page

WIDTH = 100  # of a line, unless asked otherwise
NARROWEST = 40  # tables of fewer columns cannot be read
GAP = "  "  # between columns
CUT = "..."  # ends what was cut
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
# Where standard output has no such signs.
FALLBACK = ASCII | str.maketrans({"·": "-", "•": "*", "─": "-", "⁻": "^-"})
FALLBACK |= str.maketrans({sign: f"^{digit}" for digit, sign in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")})
# Kinds of reports whose text is that of a document: what it is handed.
DOCUMENTS: Mapping[str, Callable[[Report], Any]] = {
    "attribute": attribute_page,
    "audit": audit_page,
    "bound": bound_page,
    "protected": release_page,
}
_POWER = re.compile(rf"(?:([\d.]+) \u00d7 )?\b10<sup>({MINUS}?)(\d+)</sup>")


def table(report: Report, width: int = WIDTH, full: bool = False) -> str:
    """Render a report as text: what a person reads standing, or all that its page says.

    Accuracy is in cases of 100; intervals are in brackets, at the confidence of the report.

    >>> import leakbound as ls
    >>> print(table(ls.bound("dp", epsilon=1.0)).splitlines()[0])
    What does (epsilon, delta)-differential privacy allow any attacker?
    """
    width = count("width", width, least=NARROWEST)
    return terminal(document_name(report.about), DOCUMENTS[report.about.kind](report), width, full)


def clean(text: str) -> str:
    """Letters that any terminal prints; what it would obey as Python writes it in a string."""
    return printable(text.translate(ASCII))


def flat(sentence: Markup) -> str:
    """Return a sentence without its markup.

    >>> flat(Markup("<b>at most</b> 10<sup>6</sup>"))
    'at most 1e06'
    """
    return Markup(_POWER.sub(lambda match: f"{match[1] or 1}e{match[2]}{int(match[3]):02d}", sentence)).striptags()


def wrapped(text: str, width: int = WIDTH, *, indent: str = "") -> list[str]:
    """Lines of at most ``width`` columns, all but the first one indented."""
    return textwrap.wrap(clean(text), width, subsequent_indent=indent)


def shortened(text: str, width: int) -> str:
    """One line of at most ``width`` columns, which ends with dots where it was cut.

    >>> shortened("Random forest", 10)
    'Random ...'
    """
    return text if len(text) <= width else text[: width - len(CUT)] + CUT


def columns(rows: Sequence[Mapping[str, str]], width: int = WIDTH) -> str:
    """Align a table of text: a heading from the keys, cells wrapped where a line would not fit.

    Where a line would not fit without breaking words, the last columns follow below an empty line, next to the first
    column again.

    >>> print(columns([{"attack": "lira", "auc": "0.91"}]))
    attack  auc
    lira    0.91
    """
    if not rows:
        return ""
    by_column = [[head, *(row[head] for row in rows)] for head in rows[0]]
    return "\n".join(_laid_out(by_column, [_longest_word(cells) for cells in by_column], width))


def _longest(cells: Sequence[str]) -> int:
    return max(map(len, cells), default=1)


def _longest_word(cells: Sequence[str]) -> int:
    return _longest([word for cell in cells for word in cell.split()])


def _laid_out(columns: Sequence[Sequence[str]], needs: Sequence[int], width: int) -> list[str]:
    """Lay out a table by columns; those that do not fit next to the first one follow below an empty line.

    A column has the width that it needs at least, unless it alone does not fit: then its words are broken.
    """
    first, *others = columns
    first_need = min(needs[0], width // 2) if others else width
    lines: list[str] = []
    for group in _fitting(others, needs[1:], width - first_need):
        block = [first, *(others[position] for position in group)]
        least = [first_need, *(needs[1 + position] for position in group)]
        lines += [""] * bool(lines)
        lines += _aligned(block, _widths(block, least, width))
    return lines


def _fitting(columns: Sequence[Sequence[str]], needs: Sequence[int], width: int) -> list[list[int]]:
    """Split the positions of columns into runs that fit next to the first one."""
    groups: list[list[int]] = [[]]
    used = 0
    for position in range(len(columns)):
        if groups[-1] and used + len(GAP) + needs[position] > width:
            groups.append([])
            used = 0
        groups[-1].append(position)
        used += len(GAP) + needs[position]
    return groups


def _widths(columns: Sequence[Sequence[str]], least: Sequence[int], width: int) -> list[int]:
    """Return the widest cell of each column, the widest columns narrowed until a line fits."""
    widths = [_longest(cells) for cells in columns]
    available = width - len(GAP) * (len(widths) - 1)
    while sum(widths) > available:
        # columns give way down to what they need; where that is not enough, the widest one does
        wide = [position for position, needed in enumerate(least) if widths[position] > needed]
        widest = max(wide or range(len(widths)), key=lambda position: widths[position])
        widths[widest] -= 1
    return widths


def _aligned(columns: Sequence[Sequence[str]], widths: Sequence[int]) -> list[str]:
    """Pad the cells of each column, wrapped where they are wider."""
    lines = []
    for row in zip(*columns, strict=True):
        cells = [textwrap.wrap(cell, width) or [""] for cell, width in zip(row, widths, strict=True)]
        for parts in zip_longest(*cells, fillvalue=""):
            padded = (f"{part:<{width}}" for part, width in zip(parts, widths, strict=True))
            lines.append(GAP.join(padded).rstrip())
    return lines
