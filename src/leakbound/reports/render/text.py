"""Reports as plain text for a terminal: plain letters, and lines no longer than the terminal is wide."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from leakbound.core.checks import count
from leakbound.reports import Report
from leakbound.reports.numbers import MINUS, THIN
from leakbound.reports.render.document import document_name, terminal
from leakbound.reports.results.attribute_page import attribute_page
from leakbound.reports.results.audit.page import audit_page
from leakbound.reports.results.bound_page import bound_page
from leakbound.reports.results.release.page import release_page

WIDTH = 100  # of a line, unless asked otherwise
NARROWEST = 40  # tables of fewer columns cannot be read
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
# Where standard output has no such signs.
FALLBACK = str.maketrans(LETTERS | {THIN: " ", "\u00a0": " ", MINUS: "-", "·": "-", "•": "*", "─": "-", "⁻": "^-"})
FALLBACK |= str.maketrans({sign: f"^{digit}" for digit, sign in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")})
# Kinds of reports whose text is that of a document: what it is handed.
DOCUMENTS: Mapping[str, Callable[[Report], Any]] = {
    "attribute": attribute_page,
    "audit": audit_page,
    "bound": bound_page,
    "protected": release_page,
}


def table(report: Report, width: int = WIDTH, full: bool = False) -> str:
    """Render a report as text: what a person reads standing, or all that its page says.

    Accuracy is in cases of 100; intervals are in brackets, at the confidence of the report.

    >>> import leakbound as ls
    >>> print(table(ls.bound("dp", epsilon=1.0)).splitlines()[0])
    What does (epsilon, delta)-differential privacy allow any attacker?
    """
    width = count("width", width, least=NARROWEST)
    return terminal(document_name(report.about), DOCUMENTS[report.about.kind](report), width, full)
