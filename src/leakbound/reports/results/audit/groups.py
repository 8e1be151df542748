"""Groups that are looked at by default, and slices that were asked for: which of them reveal more than the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from leakbound.core.findings import Finding, slice_column
from leakbound.core.reasons import words as reason_words
from leakbound.reports.about import FEWEST_OF_SLICE, GroupFacts
from leakbound.reports.numbers import count, percent
from leakbound.reports.results.audit.answer import baseline, exposed_of_groups
from leakbound.reports.results.audit.result import Result, level, written
from leakbound.reports.results.dots import Dot, dot
from leakbound.reports.results.findings import Text, with_interval
from leakbound.reports.results.made import ChartName
from leakbound.reports.results.quantities import shown
from leakbound.reports.results.words import begun, listed, several
from leakbound.reports.sentences import Sentence, Texts

MOST_SHOWN = 20  # groups of a page
MOST_NAMED = 8  # names of a joined group, and slices that a sentence lists


@dataclass(frozen=True)
class Part:
    """Some of the records, with the accuracy of an attack on them."""

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


def group_parts(result: Result) -> list[Part]:
    """Return the groups that were measured, the worst first; of many only those of which most is revealed."""
    return [_group(finding) for finding in result.measured_groups[:MOST_SHOWN]]


def _group(finding: Finding) -> Part:
    name = finding.scope.name
    if "from" in finding.detail:
        name += f": {finding.detail['from']:.6g} to {finding.detail['to']:.6g}"
    return Part("", name, int(finding.detail["records"]), finding, (), 0.5)


def has_group_part(result: Result) -> bool:
    """Whether groups are shown by themselves: not where they are slices that are shown as such."""
    if result.facts.groups is None or result.too_few:
        return False
    names = {finding.scope.name for finding in result.slices}
    are_slices = bool(result.groups) and all(finding.scope.name in names for finding in result.groups)
    return not are_slices


def groups_of(results: Sequence[Result]) -> list[Texts]:
    """Write the groups of each release down."""
    written_down = []
    for place, result in enumerate(results):
        if not has_group_part(result):
            continue
        parts = group_parts(result)
        charts = [chart_of(f"groups{place}", "", parts)] if len(parts) > 1 else []
        rows = [
            Texts(title=part.title, records=count(part.n_records), cells=_group_cells(result, part)) for part in parts
        ]
        sentences = list(_group_sentences(result))
        title = result.title if len(results) > 1 else ""
        written_down.append(
            Texts(title=title, intro=_group_intro(result), sentences=sentences, charts=charts, heads=(), rows=rows)
        )
    return written_down


def chart_of(name: str, title: str, parts: Sequence[Part]) -> Texts:
    """Name a chart, and list its numbers."""
    return Texts(name=ChartName(name), title=title, rows=part_dots(parts))


def part_dots(parts: Sequence[Part]) -> list[Dot]:
    """Lay out the accuracy on each group or slice with its number of records."""
    rows = []
    for part in parts:
        role = "best" if part.is_above else "attack"
        rows.append(dot(part.level, part.accuracy, role, count(part.n_records)))
    return rows


def _group_cells(result: Result, part: Part) -> list[Text]:
    return [with_interval(part.accuracy), result.attack_title(part.accuracy.attack)]


def _group_intro(result: Result) -> Text:
    """Say what was measured, and what the intervals cover."""
    facts = result.facts.groups
    if facts is None or not facts.intervals:
        return ""
    at_half = "" if result.prior == 0.5 else "_at_half"
    return written(result, f"group.intro{at_half}", intervals=count(facts.intervals), level=level(result))


def _group_sentences(result: Result) -> Iterator[Sentence]:
    """Say which groups are above the baseline, which are joined, which are not measured, and which are not here."""
    facts = result.facts.groups
    if facts is None:
        return
    if facts.reason is not None:
        yield written(result, "group.no_classes")
        return
    yield from exposed_of_groups(result)
    yield from _of_measured(result.measured_groups)
    for group in facts.groups:
        if group.joined:
            yield _joined(result, group, facts.least)
    for finding in result.groups:
        if finding.reason is not None:
            gaps = {"name": finding.scope.name, "reason": reason_words(finding.reason)}
            yield Sentence("group.not_measured", gaps)
    if facts.left_out:
        yield written(result, "group.left_out", n=count(facts.left_out), fewest=str(FEWEST_OF_SLICE))


def _of_measured(known: Sequence[Finding]) -> Iterator[Sentence]:
    """Say which groups are above the baseline, and how many are shown."""
    above = [finding.scope.name for finding in known if (finding.low or 0.0) > 0.5]
    if above:
        yield Sentence("group.above", {"names": _some(above)})
    elif known:
        yield Sentence("group.none_above")
    if len(known) > MOST_SHOWN:
        yield Sentence("group.not_all", {"most": count(MOST_SHOWN), "n": count(len(known))})


def _joined(result: Result, group: GroupFacts, least: int) -> Sentence:
    """Name what a joined group is made of, and the number of models that would judge each part by itself."""
    gaps: dict[str, Text] = {"name": group.name, "parts": _some(group.joined), "least": count(least)}
    if group.models_needed:
        return written(result, "group.joined_needed", **gaps, models=count(group.models_needed))
    return written(result, "group.joined", **gaps)


def _some(names: Sequence[str]) -> Text:
    """List names; of many only the first ones."""
    n_more = len(names) - MOST_NAMED
    if n_more <= 0:
        return listed(names)
    return Sentence("slice.and_more", {"names": ", ".join(names[:MOST_NAMED]), "n": count(n_more)})


def slice_columns(result: Result) -> list[Texts]:
    """Return the slices of a release by their columns, in the order of the plan."""
    if result.facts.slices is None:
        return []
    accuracies = [finding for finding in result.slices if finding.quantity == "accuracy"]
    columns = []
    for idx, name in enumerate(result.facts.slices.columns):
        parts = [_slice(result, name, finding) for finding in accuracies if _is_of(finding, idx, name)]
        if parts:
            columns.append(Texts(name=name, parts=parts))
    return columns


def _is_of(finding: Finding, column_idx: int, column: str) -> bool:
    """Whether a slice is of a column; in reports without the index of the column, by its name."""
    if "column" in finding.detail:
        return finding.detail["column"] == column_idx
    return finding.scope.name.startswith(f"{column} = ")


def _slice(result: Result, column: str, accuracy: Finding) -> Part:
    # a column in quotation marks is named so only in reports with the index of the column
    prefix = slice_column(column) if "column" in accuracy.detail else column
    name = accuracy.scope.name.removeprefix(f"{prefix} = ")
    if "from" in accuracy.detail:
        name = f"{accuracy.detail['from']:.6g} to {accuracy.detail['to']:.6g}"
    rates = [finding for finding in result.slices if finding.quantity == "tpr" and finding.scope == accuracy.scope]
    return Part(column, name, int(accuracy.detail["records"]), accuracy, rates, result.prior_accuracy)


def slices_of(results: Sequence[Result]) -> list[Texts]:
    """Write the slices of each release down, a chart a column; none where no slices were asked for."""
    written_down = []
    for place, result in enumerate(results):
        if result.facts.slices is None:
            continue
        columns = slice_columns(result)
        charts = [chart_of(f"slices{place}x{i}", column.name, column.parts) for i, column in enumerate(columns)]
        parts = [part for column in columns for part in column.parts]
        rates = [fpr for fpr in result.about.fpr if any(_rate(part, fpr) is not None for part in parts)]
        rows = [
            Texts(title=part.title, records=count(part.n_records), cells=_slice_cells(part, rates)) for part in parts
        ]
        heads = [Sentence("column.tpr", {"fpr": percent(fpr)}) for fpr in rates]
        title = result.title if len(results) > 1 else ""
        sentences = list(_slice_sentences(result, columns))
        written_down.append(
            Texts(title=title, intro=_slice_intro(result), sentences=sentences, charts=charts, heads=heads, rows=rows)
        )
    return written_down


def _rate(part: Part, fpr: float) -> Finding | None:
    rates = [finding for finding in part.rates if finding.operating_point["fpr"] == fpr and finding.value is not None]
    return rates[0] if rates else None


def _slice_cells(part: Part, rates: Sequence[float]) -> list[Text]:
    """Write the accuracy on a slice, that on the rest, and the rates that a slice resolves."""
    found = [_rate(part, fpr) for fpr in rates]
    return [with_interval(finding) for finding in (part.accuracy, part.rest, *found)]


def _slice_intro(result: Result) -> Text:
    """Say what was measured, and what its intervals cover."""
    slices = result.facts.slices
    if slices is None or not slices.intervals:
        return ""
    rates: Text = ""
    if len(result.about.fpr):
        rates = Sentence("slice.rates", {"rates": listed(percent(rate) for rate in result.about.fpr)})
    gaps: dict[str, Text] = {
        "attack": begun(result.attack_title(slices.attack), slices.attack),
        "intervals": count(slices.intervals),
        "per_slice": count(2 + len(result.about.fpr)),  # its accuracy, that on the rest, and the rates
        "rates": rates,
    }
    return written(result, "slice.intro", level=level(result), **gaps)


def _slice_sentences(result: Result, columns: Sequence[Texts]) -> Iterator[Sentence]:
    """Say which slices are above the baseline, which differ from the rest, and which are not measured or not here."""
    parts = [part for column in columns for part in column.parts]
    above = [part for part in parts if part.is_above]
    if above:
        yield Sentence("slice.above", {"baseline": baseline(result), "names": _titles(above)})
    elif any(part.accuracy.value is not None for part in parts):
        yield Sentence("slice.none_above", {"baseline": baseline(result)})
    for column in columns:
        yield from _differences(result, column)
    by_reason: dict[str, list[Part]] = {}
    for part in parts:
        if part.accuracy.reason is not None:
            by_reason.setdefault(reason_words(part.accuracy.reason), []).append(part)
    for reason, unmeasured in by_reason.items():
        yield Sentence("slice.not_measured", {"names": _titles(unmeasured), "reason": reason})
    slices = result.facts.slices
    if slices is not None and slices.left_out:
        yield written(result, "slice.left_out", n=count(slices.left_out), fewest=str(FEWEST_OF_SLICE))


def _differences(result: Result, column: Texts) -> Iterator[Sentence]:
    """Say which slices of a column differ from the rest, those of which most is revealed first."""
    differing = [part for part in column.parts if part.is_more or part.is_less]
    differing.sort(key=lambda part: -(part.accuracy.value or 0.0))
    for part in differing[:MOST_NAMED]:
        rest = "" if part.rest is None else shown(part.rest).value
        gaps = {"column": column.name, "level": part.level, "value": shown(part.accuracy).value, "rest": rest}
        yield written(result, "slice.more" if part.is_more else "slice.less", **gaps)
    if len(differing) > MOST_NAMED:
        yield Sentence("slice.more_differ", {"column": column.name, "n": count(len(differing) - MOST_NAMED)})
    if not differing and any(part.rest is not None for part in column.parts):
        yield Sentence("slice.none_differs", {"column": column.name})


def _titles(parts: Sequence[Part]) -> Text:
    """List slices, those of which most is revealed first; of many only the first ones."""
    ordered = sorted(parts, key=lambda part: -(part.accuracy.value or 0.0))
    return _some([part.title for part in ordered])


def accuracy_text(finding: Finding) -> str:
    """Write an accuracy as a chart does."""
    return "—" if finding.value is None else shown(finding).value


def n_groups(results: Sequence[Result]) -> str:
    """Count the groups of the only release that were measured."""
    n_measured = len(results[0].measured_groups)
    return several(n_measured, "group") if n_measured and len(results) == 1 else ""
