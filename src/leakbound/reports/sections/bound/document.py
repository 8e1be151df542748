"""The sections of a bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from leakbound.reports import Report
from leakbound.reports.sections.bound import words
from leakbound.reports.sections.bound.ranking import Ranking
from leakbound.reports.sections.bound.result import BoundResult, bound_result
from leakbound.reports.sections.document import (
    BOUNDS_CAPTION,
    Block,
    Document,
    Figure,
    Panel,
    Part,
    Rows,
    Section,
    curves_section,
    findings_section,
    interval_head,
    noted,
)
from leakbound.reports.sections.findings import Group, as_given, cells, groups
from leakbound.reports.sections.words import joined

LEAST_ROWS = 20  # of fewer a histogram shows less than the table
LONGEST = 160  # characters of a name in the table
NAME = 48  # columns of a text for the name of a record or a cell


@dataclass(frozen=True)
class Exposed:
    """The table of the most exposed rows; a row is pairs of heading and cell."""

    rows_word: str
    ties: str
    heads: Sequence[str]
    rows: Sequence[Sequence[tuple[str, str]]]


def document(report: Report) -> Document:
    """Write a bound down."""
    result = bound_result(report)
    about, head = result.about, interval_head(result.about.confidence)
    own = groups(result.parts, as_given)
    titled = not all(part.of_all for part in result.parts)
    table = own if titled or len(own) != 1 else [replace(own[0], title="")]
    parts = [
        _summary(result),
        _curves(result) if result.curves else None,
        _records(result),
        findings_section(table, head, BOUNDS_CAPTION, [_findings(own, head, titled)]),
        Section("bound_method", {"found": result, "said": words}, noted(about)),
    ]
    figure = Figure("roc", result, f"n{report.digest()[:6]}")  # several reports may be in one notebook
    return Document(
        about,
        words.question(result),
        words.facts(result),
        words.lede(result),
        head,
        table,
        [part for part in parts if part is not None],
        [Panel("", figure)] if result.curves else [],
        ("summary", "findings", "records", "bound_method"),
    )


def _summary(result: BoundResult) -> Section:
    """Show what the theorem allows, and every accuracy of it."""
    big, unit = words.big(result)
    text = joined([words.theorem(result), *words.rates(result)])
    release = {"title": "", "big": big, "unit": unit, "text": text, "figure": Figure("bound_dots", result, "s0")}
    lede = words.lede(result)
    return Section("summary", {"lede": lede, "releases": [release], "note": words.summary_note(result)}, [[lede]])


def _curves(result: BoundResult) -> Section:
    """Show the curves and how to read them."""
    heading, intro, note = words.curves_heading(result), words.curves_intro(result), words.curves_note(result)
    return curves_section(result, heading, intro, note)


def _records(result: BoundResult) -> Section | None:
    """Show the histogram over the records, and the most exposed of them."""
    ranking = result.ranking
    if ranking is None:
        return None
    drawn = ranking.median is not None and ranking.n_rows >= LEAST_ROWS
    content = {
        "heading": words.records_heading(result),
        "intro": words.records_intro(result),
        "figure": Figure("spread", ranking, "h0") if drawn else None,
        "note": words.spread_note(result),
        "internal": words.internal(result),
        "exposed": _exposed(result, ranking),
    }
    ties = words.ties(result)
    title = f"The most exposed {ranking.rows_word}{f' ({ties})' if ties else ''}:"
    rows = [{ranking.head(column): cell for column, cell in row.items()} for row in ranking.shown(NAME)]
    return Section("records", content, [[title, Rows(rows)]], template="ranking")


def _exposed(result: BoundResult, ranking: Ranking) -> Exposed:
    heads = [ranking.head(column) for column in ranking.table]
    rows = [list(zip(heads, row.values(), strict=True)) for row in ranking.shown(LONGEST)]
    return Exposed(ranking.rows_word, words.ties(result), heads, rows)


def _findings(own: Sequence[Group], head: str, titled: bool) -> Block:
    """Lay out the findings in a text; sources follow below, by number where there are several."""
    rows = cells(own, head, titled)
    sources = list(dict.fromkeys(row["source"] for row in rows if row["source"]))
    below: list[Part]
    if len(sources) < 2:
        below = [f"Source: {source}" for source in sources]
        rows = [{head: cell for head, cell in row.items() if head != "source"} for row in rows]
    else:
        below = [f"[{n}] {source}" for n, source in enumerate(sources, 1)]
        rows = [row | {"source": f"[{sources.index(row['source']) + 1}]" if row["source"] else ""} for row in rows]
    return [Rows(rows), *below]
