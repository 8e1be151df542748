"""What every text for a terminal is made of: plain letters and lines that fit."""

from __future__ import annotations

import re
import textwrap

from markupsafe import Markup

from leakscope.core.checks import printable
from leakscope.reports.columns import WIDTH
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
