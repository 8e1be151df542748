"""The sections of a protected release: its values, its certificate, and what they cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup

from leakbound.reports import Report
from leakbound.reports.phrases import title
from leakbound.reports.sections.document import (
    BOUNDS_CAPTION,
    Block,
    Document,
    Figure,
    Panel,
    Rows,
    Section,
    curves_section,
    findings_section,
    interval_head,
    noted,
)
from leakbound.reports.sections.findings import Group, as_given, cells, groups, row
from leakbound.reports.sections.parts import Part
from leakbound.reports.sections.protected import certificate, compared, costs, sign_off, table, words
from leakbound.reports.sections.protected.costs import Cells
from leakbound.reports.sections.protected.designs import ONE_DESIGN, fill, words_of
from leakbound.reports.sections.protected.parameters import parameters_note
from leakbound.reports.sections.protected.result import ProtectedResult, protected_result
from leakbound.reports.sections.words import capital, joined, say

MOST_ROWS = 8  # values that a page shows at once; the others fold
MOST_FOLDED = 200
MOST_VALUES = 40  # rows of a table in a text
PLANNED_NOTE = (
    "The noise of each number that would be published, in its own unit; ± is half of a 95 % interval of the noise. "
    "These are for the owner alone, like the sampling errors beside them."
)
PLANNED_MORE = (
    "The first {most} numbers of a statistic are shown; noise.csv in the folder of --out has all, and in "
    "Python to_json()."
)
TEXT_ORDER = (
    "release", "planned", "published", "other_methods", "certificate", "cost", "designs", "rules", "findings",
    "protected_method",
)  # fmt: skip


@dataclass(frozen=True)
class Table:
    """Rows of cells by column: those that are shown, those that fold, and how many are left out."""

    columns: Sequence[str]
    rows: Sequence[Cells]
    folded: Sequence[Cells]
    n_left_out: int


def document(report: Report) -> Document:
    """Write a protected release, or a calibration that released nothing, down.

    Neither the values without noise, nor the seed of the noise, nor who is most exposed is in it.
    """
    result = protected_result(report)
    about, head = result.about, interval_head(result.about.confidence)
    own = _groups(result)
    first = sign_off.rows(result)
    all_groups = [*own, *_others(result)]
    text: Block = [Rows(cells(own, head))]
    parts = [
        Section("contradictions", {"names": result.contradictions}) if result.contradictions else None,
        _sign_off(result, first) if first else None,
        _summary(result, has_warning=not first),
        _planned(result),
        _published(result),
        _certificate(result),
        _curves(result) if result.curves else None,
        _cost(result),
        _other_methods(result),
        _designs(result),
        _rules(result),
        findings_section(all_groups, head, BOUNDS_CAPTION, [text]),
        _method(result),
    ]
    figure = Figure("roc", result, f"n{report.digest()[:6]}")  # several reports may be in one notebook
    return Document(
        about,
        words.question(result),
        words.facts(result),
        joined([words.warning(result), words.lede(result), words.promise(result)]),
        head,
        all_groups,
        [part for part in parts if part is not None],
        [Panel("", figure)] if result.curves else [],
        TEXT_ORDER,
        text_first=[
            *(say("{head}: {text}", head=head, text=text) for head, text in first),
            say("Release it with: {command}", command=about.release_command) if about.release_command else Markup(""),
        ],
    )


def _sign_off(result: ProtectedResult, rows: Sequence[tuple[str, Markup]]) -> Section:
    """Say in short what would be released, below whom the page is for."""
    content = {"warning": words.warning(result), "rows": rows, "command": result.about.release_command}
    return Section("sign_off", content)


def _summary(result: ProtectedResult, *, has_warning: bool) -> Section:
    """Show what is promised, and what was released; with the warning, unless the page has begun with it."""
    big, unit = words.big(result)
    values = costs.values(result)
    lede, promise = words.lede(result), words.promise(result)
    content = {
        "warning": words.warning(result) if has_warning else Markup(""),
        "lede": lede,
        "big": big,
        "big_unit": unit,
        "promise": promise,
        "heads": costs.HEADS,
        "texts": costs.TEXTS,
        "values": _table(values),
        "by_statistic": [(capital(name), _table(costs.values(own))) for name, own in _with_values(result)],
        "values_note": joined([Markup.escape(words.values_note(result)), _table_note(result), _parameters(result)]),
        "figure": Figure("protected_dots", result, "s0"),
        "figure_note": words.dots_note(result),
    }
    notes: Block = [_table_note(result), _parameters(result, own_section=False) if result.values else Markup("")]
    shown: list[Block] = [[Rows(costs.headed(values), MOST_VALUES), *notes]]
    if result.about.table is not None and table.is_crossed(result.about.table):
        shown = []  # the section that follows has them
    if content["by_statistic"]:
        shown = [*_titled_rows(result, _values_of_text), notes]
    return Section("release", content, [[words.warning(result)], [joined([lede, promise])], *shown])


def _planned(result: ProtectedResult) -> Section | None:
    """Show the noise of each number that would be published; what was released has a section of its own."""
    tables = [(capital(name), costs.planned(own)) for name, own in result.by_statistic or (("", result),)]
    tables = [(name, rows) for name, rows in tables if rows]
    if not tables:
        return None
    sentences = [PLANNED_NOTE]
    if any(number.noise_std is None for number in result.about.planned):
        sentences.append(table.NO_MEAN)
    if max(len(rows) for _, rows in tables) > MOST_VALUES:
        sentences.append(PLANNED_MORE)
    note = joined([_parameters(result), *(say(sentence, most=MOST_VALUES) for sentence in sentences)])
    content = {
        "heads": costs.HEADS,
        "texts": costs.TEXTS,
        "by_statistic": [(name, _table(rows)) for name, rows in tables],
        "note": note,
    }
    text = [[*([name] if name else []), Rows(costs.headed(rows), MOST_VALUES)] for name, rows in tables]
    return Section("planned", content, [*text, [note]])


def _titled_rows(result: ProtectedResult, rows_of: Callable[[ProtectedResult], Sequence[Cells]]) -> list[Block]:
    """Return a table of a text for each of several statistics, under its name."""
    titled: list[Block] = []
    for name, own in result.by_statistic:
        rows = rows_of(own)
        if rows:
            titled.append([capital(name), Rows(costs.headed(rows), MOST_VALUES)])
    return titled


def _values_of_text(result: ProtectedResult) -> Sequence[Cells]:
    """Return the rows of one of several statistics; a section that follows has those of rows and columns."""
    facts = result.about.table
    return () if facts is not None and table.is_crossed(facts) else costs.values(result)


def _with_values(result: ProtectedResult) -> Sequence[tuple[str, ProtectedResult]]:
    """Return the results of several statistics, if they were released."""
    return result.by_statistic if result.values else ()


def _table_note(result: ProtectedResult) -> Markup:
    """Say what was made of the released numbers, unless the section of the table does."""
    facts = result.about.table
    if facts is None or table.is_crossed(facts):
        return joined(say("{name}: {note}", name=capital(name), note=table.note(own)) for name, own in _tabled(result))
    return table.note(result)


def _parameters(result: ProtectedResult, *, own_section: bool = True) -> Markup:
    """Say what a reader must know of the numbers, of each statistic by its name where there are several.

    Without ``own_section`` those of a table with rows and columns are left out, whose section of a text says it.
    """
    if not result.by_statistic:
        return parameters_note(result.about.parameters)
    notes = []
    for name, own in result.by_statistic:
        facts = own.about.table
        if own_section or facts is None or not table.is_crossed(facts):
            notes.append((name, parameters_note(own.about.parameters)))
    return joined(say("{name}: {note}", name=capital(name), note=note) for name, note in notes if note)


def _tabled(result: ProtectedResult) -> Sequence[tuple[str, ProtectedResult]]:
    """Return those of several statistics that are a table, with no section of its own."""
    tables = [(name, own, own.about.table) for name, own in result.by_statistic]
    return [(name, own) for name, own, facts in tables if facts is not None and not table.is_crossed(facts)]


def _published(result: ProtectedResult) -> Section | None:
    """Show counts by two columns as rows and columns, with margins; of several statistics each such table."""
    heads: dict[str, str] = {}
    tables, text = [], []
    for name, own in result.by_statistic or (("", result),):
        facts = own.about.table
        if facts is None or not table.is_crossed(facts):
            continue
        rows, note = table.crossed(facts), table.note(own)
        heads |= {column: column for column in rows[0]}
        tables.append((capital(name), Table(list(rows[0]), rows, (), 0), note))
        parameters = parameters_note(own.about.parameters)
        text += [[*([capital(name)] if name else []), Rows(rows, MOST_VALUES)], [joined([note, parameters])]]
    return Section("published", {"heads": heads, "texts": (), "by_statistic": tables}, text) if tables else None


def _designs(result: ProtectedResult) -> Section | None:
    """Show what each design would have cost, for the owner."""
    facts = result.about.designs
    if facts is None:
        return None
    rows, below = (
        compared.rows(facts),
        [*compared.reasons(facts), *compared.notes(facts), compared.RECOMMENDED[facts.why], ONE_DESIGN],
    )
    heads = {column: column for column in rows[0]} if rows else {}
    shown = None
    if compared.HEADS["number"] in heads:
        shown = _table(rows)
    elif rows:  # a design a row is never many rows
        shown = Table(list(heads), rows, (), 0)
    content = {
        "heads": heads,
        "texts": tuple(compared.HEADS.values()),
        "table": shown,
        "title": compared.title(facts),
        "below": below,
    }
    text: Block = [compared.title(facts), Rows(rows, compared.MOST_ROWS), compared.too_many(facts), *below]
    return Section("designs", content, [text])


def _rules(result: ProtectedResult) -> Section | None:
    """Show the rules of statistics offices, for the owner."""
    rows = table.rules(result)
    for name, own in result.by_statistic:
        rows += [
            {**row, "rule": say("{name}: {rule}", name=capital(name), rule=row["rule"])} for row in table.rules(own)
        ]
    if not rows:
        return None
    heads = table.RULE_HEADS
    content = {
        "heads": heads,
        "texts": tuple(heads),
        "table": Table(list(heads), rows, (), 0),
        "intro": table.RULES_INTRO,
    }
    headed = [{heads[column]: cell for column, cell in row.items()} for row in rows]
    return Section("rules", content, [[table.RULES_INTRO, Rows(headed)]])


def _certificate(result: ProtectedResult) -> Section:
    """Show the promise and what it rests on."""
    verdict, promised, rows = certificate.verdict(result), certificate.promised(result), certificate.rows(result)
    first_rows, other_rows = certificate.parts(result)
    content = {
        "heading": words_of(result).heading,
        "is_long": words_of(result).limits_first,
        "warning": words.warning(result) if result.about.insecure_seed else "",
        "promised": promised,
        "verdict": verdict,
        "rows": first_rows,
        "folded": other_rows,
    }
    first = say(
        "{heading}: {promised} {verdict}",
        heading=words_of(result).name,
        promised=promised,
        verdict=f"({verdict}.)" if verdict else "",
    )
    return Section("certificate", content, [[first, *(say("{name}: {text}", name=n, text=t) for n, t in rows)]])


def _curves(result: ProtectedResult) -> Section:
    """Show the curves and how to read them."""
    heading, intro, note = words.curves_heading(result), words.curves_intro(result), words.curves_note(result)
    return curves_section(result, heading, intro, note)


def _cost(result: ProtectedResult) -> Section:
    """Show what the noise costs; on a page also what other methods would."""
    rows = costs.costs(result)
    intro = joined([costs.cost(result), words.accuracy(result)])
    content: dict[str, Any] = {
        "heads": costs.HEADS,
        "texts": costs.TEXTS,
        "intro": intro,
        "sampling_note": fill(result, words_of(result).sampling_note),
        "costs": _table(rows),
        "by_statistic": [(capital(name), _table(costs.costs(own))) for name, own in _with_values(result)],
        "comparison": _table(costs.comparison(result)),
        "totals": _table(costs.totals(result)),
        "total": costs.total(result),
    }
    text: list[Block] = [[Rows(costs.headed(rows), MOST_VALUES), intro]]
    if content["by_statistic"]:
        text = [*_titled_rows(result, costs.costs), [intro]]
    return Section("cost", content, text)


def _method(result: ProtectedResult) -> Section:
    """Say how to read the page, and how it was made."""
    design = words_of(result)
    content = {
        "found": result,
        "in_the_game": fill(result, design.in_the_game),
        "checked": fill(result, design.checked) if result.values else "",
        "glossary": [(head, fill(result, text)) for head, text in design.glossary],
        "data": words.data(result),
    }
    return Section("protected_method", content, noted(result.about))


def _other_methods(result: ProtectedResult) -> Section:
    """Other methods for the same promise, in a text before the certificate."""
    totals: Block = [Rows(costs.headed(costs.totals(result)), MOST_VALUES), costs.total(result)]
    return Section("other_methods", None, [[Rows(costs.headed(costs.comparison(result)), MOST_VALUES)], totals])


def _groups(result: ProtectedResult) -> list[Group]:
    """Group the findings of the release, or of the calibration, and of the same without noise."""
    by_title: dict[str, Group] = {}
    for part, group in zip(result.parts, groups(result.parts, as_given), strict=True):
        heading = _titled(result, part)
        before = by_title.get(heading, Group(heading, (), ()))
        by_title[heading] = replace(before, rows=[*before.rows, *group.rows], folded=[*before.folded, *group.folded])
    return list(by_title.values())


def _titled(result: ProtectedResult, part: Part) -> str:
    """Title the findings of a part: the promise of the release itself needs no name."""
    if not part.release and part.scope.kind in ("every", "any_data"):
        return "This release" if result.values else "This calibration"
    of_design = words_of(result).releases.get(part.release)
    return part.title if of_design is None else capital(of_design)


def _others(result: ProtectedResult) -> list[Group]:
    """Group the findings of all baselines together, each under its name."""
    if not result.baselines:
        return []
    part = Part("", result.baselines, result.about)
    rows = [(title(finding.release, finding.scope, result.unit), row(part, finding)) for finding in result.baselines]
    named = [replace(row, quantity=say("{name}: {said}", name=name, said=row.quantity)) for name, row in rows]
    return [Group("Other methods, for the same promise", named, ())]


def _table(rows: Sequence[Cells]) -> Table | None:
    """Return the rows of a table, the first few open; nothing without rows."""
    if not rows:
        return None
    folded = rows[MOST_ROWS : MOST_ROWS + MOST_FOLDED]
    return Table(list(rows[0]), rows[:MOST_ROWS], folded, len(rows) - MOST_ROWS - len(folded) if folded else 0)
