"""What a report says, made once and without a form: pages, notebooks and texts are rendered from it.

Each kind of report has a function ``document`` that lists its sections.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from markupsafe import Markup

from leakbound.reports.about import About, AttributeAbout, AuditAbout, all_notes
from leakbound.reports.numbers import count, percent
from leakbound.reports.phrases import plural
from leakbound.reports.sections.curves import SMALL_ADVANTAGE
from leakbound.reports.sections.findings import Group
from leakbound.reports.sections.protected.result import ProtectedResult
from leakbound.reports.sections.words import execution, note

# The caption of the findings where all of them are theorems or attacks compared with one.
BOUNDS_CAPTION = "No attacker exceeds an upper bound; some attacker reaches a lower bound."


@dataclass(frozen=True)
class Figure:
    """A chart, drawn where it is rendered: the key of a function of ``charts.figures``, and what it draws."""

    chart: Literal[
        "protected_dots",
        "roc",
        "gain",
        "guesses",
    ]
    subject: Any
    prefix: str


@dataclass(frozen=True)
class Panel:
    """A figure with its title, a paragraph above and a caption below; each may be empty."""

    title: str
    figure: Figure | None
    above: str = ""
    caption: str = ""


@dataclass(frozen=True)
class Heading:
    """A line of a text that is cut and not wrapped."""

    text: str


@dataclass(frozen=True)
class Rows:
    """A table of a text: cells by heading. Of more rows than ``most`` only their number is given."""

    rows: Sequence[Mapping[str, str]]
    most: int | None = None


Part = str | Heading | Rows  # a paragraph is a str, or Markup
Block = Sequence[Part]  # parts without an empty line between them


@dataclass(frozen=True)
class Section:
    """A part of a report."""

    name: str
    content: Mapping[str, Any] | None = None
    text: Sequence[Block] = ()
    template: str = ""


@dataclass(frozen=True)
class Document:
    """A report in words, tables and charts."""

    about: About
    title: str
    facts: Sequence[str]
    lede: Markup
    interval_head: str
    groups: Sequence[Group]
    sections: Sequence[Section]
    panels: Sequence[Panel] = ()
    text_order: Sequence[str] = field(default=())
    text_first: Block = ()

    @property
    def unit(self) -> str:
        """What a record is called."""
        return self.about.unit

    @property
    def units(self) -> str:
        """Several of them."""
        return plural(self.about.unit)


def interval_head(confidence: float) -> str:
    """Return the heading of the intervals; what rests on no sample has no level."""
    return f"{percent(confidence)} interval" if confidence < 1 else "Interval"


def findings_section(groups: Sequence[Group], head: str, caption: str, text: Sequence[Block] = ()) -> Section:
    """Return the table of all findings, which a page folds."""
    n_rows = sum(len(group.rows) + len(group.folded) for group in groups)
    content = {
        "groups": groups,
        "interval_head": head,
        "caption": caption,
        "n_findings": f"{count(n_rows)} {'number' if n_rows == 1 else 'numbers'}",
    }
    return Section("findings", content, text)


def curves_section(result: ProtectedResult, heading: str, intro: Markup, note: Markup) -> Section:
    """Return the curves of a protected release on logarithmic axes.

    Where the advantage is small a second chart shows their gain over guessing.
    """
    roc = Figure("roc", result, "r0")
    panels = [Panel("", roc)]
    if result.advantage < SMALL_ADVANTAGE:
        panels = [Panel("Logarithmic axes", roc), Panel("Gain over guessing", Figure("gain", result, "g0"))]
    return Section("curves", {"heading": heading, "intro": intro, "panels": panels, "note": note, "fold": ""})


def noted(about: About) -> list[Block]:
    """Return the notes of a report and how many models were made, as the end of a text."""
    of_names = isinstance(about, AuditAbout | AttributeAbout)
    return [[note(text, of_names) for text in all_notes(about)], [execution(about)]]
