"""A bound as plain text, at most 100 columns wide, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from leakscope.reports import Report
from leakscope.reports.render.text import clean, columns, flat, wrapped
from leakscope.reports.sections import findings
from leakscope.reports.sections.bound import words as bound_words
from leakscope.reports.sections.bound.result import BoundResult, bound_result
from leakscope.reports.sections.words import capital, sentence

NAME = 48  # columns for the name of a record or a cell


def table(report: Report) -> str:
    """The bound as text: the question, the answer in a sentence, all findings, the most exposed records, the notes.

    Parameters
    ----------
    report : Report
        Of a bound.

    Returns
    -------
    str
        Lines of at most 100 columns, without colour or control characters; ends with a newline.

    Examples
    --------
    >>> import leakscope as ls
    >>> print(table(ls.bound("dp", epsilon=1.0)).splitlines()[0])
    What does (epsilon, delta)-differential privacy allow any attacker?
    """
    result = bound_result(report)
    blocks = [
        wrapped(bound_words.question(result)) + wrapped(flat(Markup(", ").join(bound_words.facts(result)))),
        wrapped(flat(bound_words.lede(result))),
        _findings(result),
        _exposed(result),
        [line for note in result.about.notes for line in wrapped(capital(sentence(note)))],
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _findings(result: BoundResult) -> list[str]:
    """The table of the findings; sources stand below, by number where there are several."""
    rows = list(_rows(result))
    sources = list(dict.fromkeys(row["source"] for row in rows if row["source"]))
    if len(sources) < 2:
        below = [f"Source: {source}" for source in sources]
        rows = [{head: cell for head, cell in row.items() if head != "source"} for row in rows]
    else:
        below = [f"[{n}] {source}" for n, source in enumerate(sources, 1)]
        rows = [row | {"source": f"[{sources.index(row['source']) + 1}]" if row["source"] else ""} for row in rows]
    return _aligned(rows) + [line for source in below for line in wrapped(source)]


def _rows(result: BoundResult) -> Iterator[dict[str, str]]:
    """A row a finding, under the name of its release where there are several."""
    heads = ("quantity", "value", bound_words.interval_head(result).lower(), "bound type", "status", "source")
    named = not all(part.of_all for part in result.parts)
    for group in findings.groups(result.parts, findings.as_given):
        if named:
            yield dict.fromkeys(heads, "") | {"quantity": f"{group.title}:"}
        for row in (*group.rows, *group.folded):
            cells = (flat(row.quantity), flat(row.value), flat(row.interval), row.bound_type, row.status, row.source)
            yield dict(zip(heads, cells, strict=True))


def _exposed(result: BoundResult) -> list[str]:
    """The most exposed records or cells."""
    ranking = result.ranking
    if ranking is None:
        return []
    ties = bound_words.ties(result)
    title = f"The most exposed {ranking.rows_word}{f' ({ties})' if ties else ''}:"
    rows = [{ranking.head(column): cell for column, cell in row.items()} for row in ranking.shown(NAME)]
    return [*wrapped(title), *_aligned(rows)]


def _aligned(rows: list[dict[str, str]]) -> list[str]:
    plain = [{clean(head): clean(cell) for head, cell in row.items()} for row in rows]
    return columns(plain).splitlines()
