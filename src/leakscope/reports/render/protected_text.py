"""A protected release as plain text, at most 100 columns wide, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from leakscope.reports import Report
from leakscope.reports.render.protected_page import groups, interval_head
from leakscope.reports.render.text import clean, columns, flat, wrapped
from leakscope.reports.sections.protected import certificate as protected_certificate
from leakscope.reports.sections.protected import costs as protected_costs
from leakscope.reports.sections.protected import words as protected_words
from leakscope.reports.sections.protected.costs import Cells
from leakscope.reports.sections.protected.result import ProtectedResult, protected_result
from leakscope.reports.sections.words import capital, joined, sentence

MOST_VALUES = 40


def table(report: Report) -> str:
    """A protected release as text: promise, values, other methods, certificate, cost, findings, notes.

    Parameters
    ----------
    report : Report
        Of a protected release, or of a calibration that released nothing.

    Returns
    -------
    str
        Lines of at most 100 columns, without colour or control characters; ends with a newline.

    Raises
    ------
    ValueError
        If the report has a table of records.
    """
    result = protected_result(report)
    sentences = [protected_words.lede(result), protected_words.promise(result)]
    cost = joined([protected_costs.cost(result), protected_words.accuracy(result)])
    blocks = [
        wrapped(protected_words.question(result)) + wrapped(flat(Markup(", ").join(protected_words.facts(result)))),
        wrapped(flat(protected_words.warning(result))),
        wrapped(flat(joined(sentences))),
        _aligned(protected_costs.values(result)),
        _aligned(protected_costs.comparison(result)),
        [*_aligned(protected_costs.totals(result)), *wrapped(flat(protected_costs.total(result)))],
        _certificate(result),
        [*_aligned(protected_costs.costs(result)), *wrapped(flat(cost))],
        columns(list(_findings(result))).splitlines(),
        [line for note in result.about.notes for line in wrapped(capital(sentence(note)))],
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _certificate(result: ProtectedResult) -> list[str]:
    """The promise and what it rests on, a paragraph a row."""
    title = "No certificate" if result.void else "Certificate"
    verdict = protected_certificate.verdict(result)
    head = f"{title}: {flat(protected_certificate.promised(result))} {f'({verdict}.)' if verdict else ''}"
    lines = wrapped(head)
    for name, text in protected_certificate.rows(result):
        lines += wrapped(f"{name}: {flat(text)}")
    return lines


def _aligned(rows: Sequence[Cells]) -> list[str]:
    """A table of text; of very many rows the first ones."""
    plain = [{clean(head): clean(flat(cell)) for head, cell in row.items()} for row in rows[:MOST_VALUES]]
    more = [f"and {len(rows) - MOST_VALUES:,} more"] if len(rows) > MOST_VALUES else []
    return columns(plain).splitlines() + more


def _findings(result: ProtectedResult) -> Iterator[dict[str, str]]:
    """A row a finding, under the name of its group."""
    heads = ("quantity", "value", clean(interval_head(result)).lower(), "bound type", "status")
    for group in groups(result):
        yield dict.fromkeys(heads, "") | {"quantity": clean(f"{group.title}:")}
        for row in (*group.rows, *group.folded):
            cells = (flat(row.quantity), flat(row.value), flat(row.interval), row.bound_type, row.status)
            yield dict(zip(heads, map(clean, cells), strict=True))
