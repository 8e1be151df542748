"""Slices of the records: the accuracy on each, which are above the baseline, and which differ from the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup

from leakbound.core.findings import Finding, slice_column
from leakbound.core.reasons import words as reason_words
from leakbound.reports.about import FEWEST_OF_SLICE
from leakbound.reports.numbers import count, near, percent
from leakbound.reports.phrases import plural
from leakbound.reports.sections.audit import groups
from leakbound.reports.sections.audit.result import Result
from leakbound.reports.sections.document import Block, Figure, Heading, Panel, Rows, Section
from leakbound.reports.sections.quantities import shown
from leakbound.reports.sections.words import begun, joined, listed, say, several

MOST_IN_TEXT = 5  # groups of a text
MOST_NAMED = 8  # slices that a sentence lists
INTRO = (
    "{attack} is the strongest attack on all {units}. Here its scores, which are those of the whole audit, are judged "
    "within each slice, with thresholds of its own. All {intervals} intervals hold at once at {level}, {per_slice} for "
    "{slices}: of its accuracy, of the accuracy on all other {units}{rates}. So the slice of which most is revealed "
    "may be picked out."
)
RATES = ", and of the TPR at FPR {rates} where the slice resolves it"
ABOVE = "Above the baseline of {baseline}: {names}."
NONE_ABOVE = "In no slice is the attack shown to be right more often than the baseline, {baseline} of 100."
DIFFER = "By {column}, {differences}."
MORE = "more is revealed of {level} than of the other {units} ({value} of 100 against {rest})"
LESS = "less is revealed of {level} than of the other {units} ({value} of 100 against {rest})"
NONE_DIFFERS = "No slice of {column} is shown to differ from the rest."
LEFT_OUT = "{n} of fewer than {fewest} {units} {are} left out of this report."


@dataclass(frozen=True)
class SliceRow:
    """A slice of a column."""

    column: str
    level: str
    n_records: int
    accuracy: Finding
    rates: Sequence[Finding]
    prior_accuracy: float

    @property
    def title(self) -> str:
        """Column and level."""
        return f"{self.column} = {self.level}" if self.column else self.level

    @property
    def rest(self) -> Finding | None:
        """The accuracy on all other records; None where it is not measured."""
        detail = self.accuracy.detail
        if "rest" not in detail:
            return None
        return replace(self.accuracy, value=detail["rest"], low=detail["rest_low"], high=detail["rest_high"])

    @property
    def is_above(self) -> bool:
        """The lower limit is above the baseline."""
        return self.accuracy.low is not None and self.accuracy.low > self.prior_accuracy

    @property
    def is_more(self) -> bool:
        """The interval is above that of the rest of the records."""
        rest = self.accuracy.detail.get("rest_high")
        return rest is not None and self.accuracy.low is not None and self.accuracy.low > rest

    @property
    def is_less(self) -> bool:
        """The interval is below that of the rest of the records."""
        rest = self.accuracy.detail.get("rest_low")
        return rest is not None and self.accuracy.high is not None and self.accuracy.high < rest


@dataclass(frozen=True)
class SliceColumn:
    """The slices by one column."""

    name: str
    rows: Sequence[SliceRow]
    prior_accuracy: float
    units: str
    parts: str = "slices"


def columns_of(result: Result) -> list[SliceColumn]:
    """Return the slices of a release by their columns, in the order of the plan."""
    if result.facts.slices is None:
        return []
    accuracies = [finding for finding in result.slices if finding.quantity == "accuracy"]
    columns = []
    for idx, name in enumerate(result.facts.slices.columns):
        own = [finding for finding in accuracies if _is_of(finding, idx, name)]
        rows = [_row(result, name, finding) for finding in own]
        if rows:
            columns.append(SliceColumn(name, rows, result.prior_accuracy, plural(result.about.unit)))
    return columns


def group_section(results: Sequence[Result]) -> Section | None:
    """Show the groups that are looked at by default, the worst first; None where the game is not about many records."""
    grouped = [result for result in results if result.facts.groups is not None and not result.too_few]
    grouped = [result for result in grouped if not groups.are_slices(result)]
    if not grouped:
        return None
    parts: list[dict[str, Any]] = []
    text: list[Block] = []
    for place, result in enumerate(grouped):
        shown_first = groups.measured(result)[: groups.MOST_SHOWN]
        rows = [_group_row(finding) for finding in shown_first]
        units = plural(result.about.unit)
        panels = []
        if len(rows) > 1:
            column = SliceColumn("Groups", rows, 0.5, units, "groups")
            panels.append(Panel("", Figure("slices", column, f"c{place}")))
        sentences = list(groups.sentences(result))
        parts.append({"title": result.title, "intro": groups.intro(result), "panels": panels, "sentences": sentences})
        if len(rows) > 1:
            cells = [
                {
                    "group": row.title,
                    units: count(row.n_records),
                    "accuracy, %": groups.of_100(row.accuracy),
                    "attack": result.attack_title(row.accuracy.attack),
                }
                for row in rows[:MOST_IN_TEXT]
            ]
            title = "Worst groups:" if len(results) == 1 else f"{result.title}, worst groups:"
            text += [[Heading(title), Rows(cells)]]
        elif groups.measured(result) == []:
            text += [[joined(sentences)]]
    content = {"heading": "Group by group", "id": "s-group", "parts": parts, "several": len(results) > 1}
    return Section("slices", content, text)


def _group_row(finding: Finding) -> SliceRow:
    level = finding.scope.name
    if "from" in finding.detail:
        level += f": {finding.detail['from']:.6g} to {finding.detail['to']:.6g}"
    return SliceRow("", level, int(finding.detail["records"]), finding, (), 0.5)


def section(results: Sequence[Result]) -> Section | None:
    """Show the slices of each release, a chart a column; None where no slices were asked for."""
    sliced = [result for result in results if result.facts.slices is not None]
    if not sliced:
        return None
    parts, text = [], []
    for place, result in enumerate(sliced):
        columns = columns_of(result)
        panels = [Panel(column.name, Figure("slices", column, f"l{place}-{i}")) for i, column in enumerate(columns)]
        sentences = list(_sentences(result, columns))
        parts.append({"title": result.title, "intro": _intro(result), "panels": panels, "sentences": sentences})
        text += _text(result, columns, sentences, alone=len(results) == 1)
    content = {"heading": "Slice by slice", "id": "s-slice", "parts": parts, "several": len(results) > 1}
    return Section("slices", content, text)


def _is_of(finding: Finding, column_idx: int, column: str) -> bool:
    """Whether a slice is of a column; in reports without the index of the column, by its name."""
    if "column" in finding.detail:
        return finding.detail["column"] == column_idx
    return finding.scope.name.startswith(f"{column} = ")


def _row(result: Result, column: str, accuracy: Finding) -> SliceRow:
    # a column in quotation marks is named so only in reports with the index of the column
    prefix = slice_column(column) if "column" in accuracy.detail else column
    level = accuracy.scope.name.removeprefix(f"{prefix} = ")
    if "from" in accuracy.detail:
        level = f"{accuracy.detail['from']:.6g} to {accuracy.detail['to']:.6g}"
    rates = [finding for finding in result.slices if finding.quantity == "tpr" and finding.scope == accuracy.scope]
    return SliceRow(column, level, int(accuracy.detail["records"]), accuracy, rates, result.prior_accuracy)


def _intro(result: Result) -> Markup:
    """Say what was measured, and what its intervals cover."""
    slices = result.facts.slices
    if slices is None or not slices.intervals:
        return Markup("")
    n_rates = len(result.about.fpr)
    per_slice = 2 + n_rates  # its accuracy, that on the rest, and the rates
    n_measured = slices.intervals // per_slice
    return say(
        INTRO,
        attack=begun(result.attack_title(slices.attack), slices.attack),
        units=plural(result.about.unit),
        intervals=count(slices.intervals),
        level=percent(result.about.confidence),
        per_slice=count(per_slice),
        slices=several(n_measured, "measured slice") if n_measured == 1 else f"each of {n_measured} measured slices",
        rates=say(RATES, rates=listed(percent(rate) for rate in result.about.fpr)) if n_rates else "",
    )


def _sentences(result: Result, columns: Sequence[SliceColumn]) -> Iterator[Markup]:
    """Say which slices are above the baseline, which differ from the rest, and which are not measured or not here."""
    rows = [row for column in columns for row in column.rows]
    units = plural(result.about.unit)
    baseline = near(100 * result.prior_accuracy, 1).removesuffix(".0")
    if above := [row for row in rows if row.is_above]:
        yield say(ABOVE, baseline=baseline, names=_names(above))
    elif any(row.accuracy.value is not None for row in rows):
        yield say(NONE_ABOVE, baseline=baseline)
    for column in columns:
        yield from _differences(column)
    by_reason: dict[str, list[SliceRow]] = {}
    for row in rows:
        if row.accuracy.reason is not None:
            by_reason.setdefault(_reason(row.accuracy), []).append(row)
    for reason, unmeasured in by_reason.items():
        yield say("Not measured: {names}: {reason}.", names=_names(unmeasured), reason=reason)
    slices = result.facts.slices
    if slices is not None and slices.left_out:
        are = "is" if slices.left_out == 1 else "are"
        yield say(LEFT_OUT, n=several(slices.left_out, "slice"), fewest=FEWEST_OF_SLICE, units=units, are=are)


def _differences(column: SliceColumn) -> Iterator[Markup]:
    """Say which slices of a column differ from the rest, those of which most is revealed first."""
    if not any(row.rest is not None for row in column.rows):
        return
    differing = [row for row in column.rows if row.is_more or row.is_less]
    if not differing:
        yield say(NONE_DIFFERS, column=column.name)
        return
    differing.sort(key=lambda row: -(row.accuracy.value or 0.0))
    differences = []
    for row in differing[:MOST_NAMED]:
        pattern = MORE if row.is_more else LESS
        value, rest = shown(row.accuracy).value, "" if row.rest is None else shown(row.rest).value
        differences.append(say(pattern, level=row.level, units=column.units, value=value, rest=rest))
    n_more = len(differing) - len(differences)
    if n_more:
        differences.append(say("{n:,} more differ", n=n_more))
    yield say(DIFFER, column=column.name, differences=Markup("; ").join(differences))


def _reason(accuracy: Finding) -> str:
    """Write why a slice is not measured."""
    return "" if accuracy.reason is None else reason_words(accuracy.reason)


def _names(rows: Sequence[SliceRow]) -> str:
    """List slices, those of which most is revealed first; of many only the first ones."""
    ordered = sorted(rows, key=lambda row: -(row.accuracy.value or 0.0))
    names = [row.title for row in ordered[:MOST_NAMED]]
    n_more = len(ordered) - len(names)
    return ", ".join(names) + f" and {n_more:,} more" if n_more else listed(names)


def _text(result: Result, columns: Sequence[SliceColumn], sentences: Sequence[Markup], alone: bool) -> list[Block]:
    """Lay out the slices of a release as a table, with the sentences below."""
    rows = [_cells(row, column.units, result.about.fpr) for column in columns for row in column.rows]
    # a rate that no slice resolves is no column
    heads = [head for head in rows[0] if any(row[head] != "-" for row in rows)] if rows else []
    table = Rows([{head: row[head] for head in heads} for row in rows])
    title = "By slice:" if alone else f"{result.title}, by slice:"
    return [[Heading(title), table], [joined([_intro(result), *sentences])]]


def _cells(row: SliceRow, units: str, fpr: Sequence[float]) -> dict[str, str]:
    """Lay out the numbers of a slice."""
    cells = {"slice": row.title, units: count(row.n_records), "accuracy, %": _shown(row.accuracy)}
    cells["rest, %"] = "-" if row.rest is None else _shown(row.rest)
    by_rate = {finding.operating_point["fpr"]: finding for finding in row.rates}
    for rate in fpr:
        cells[f"TPR at FPR {percent(rate)}, %"] = _shown(by_rate[rate]) if rate in by_rate else "-"
    return cells


def _shown(finding: Finding) -> str:
    """``62.1 (60.0..64.2)``, or a dash."""
    if finding.value is None:
        return "-"
    text = shown(finding)
    if finding.refused:
        return f"{text.value} (too few models)"
    return f"{text.value} ({text.low}..{text.high})" if text.low and text.high else text.value
