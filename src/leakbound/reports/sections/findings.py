"""The table of all findings: one row a finding, grouped by release, the strongest first."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, groupby
from typing import Protocol, TypeVar, runtime_checkable

from markupsafe import Markup

from leakbound.core.findings import QUANTITIES, Finding, Term
from leakbound.core.reasons import words
from leakbound.reports.about import About
from leakbound.reports.numbers import THIN, count, parameter, percent, powers
from leakbound.reports.phrases import plural
from leakbound.reports.sections.attribute.result import AttributeResult
from leakbound.reports.sections.parts import Part
from leakbound.reports.sections.quantities import FRACTIONS, shown
from leakbound.reports.sections.words import GREEK, capital, cited, listed, say, several
from leakbound.reports.sentences import Sentence, sentences

S = TypeVar("S", Part, AttributeResult)
FOLD = 40  # findings of a release beyond which the weakest attacks fold
FIRST = ("epsilon", "most_exposed", "baseline_accuracy", "membership_without_model")
OF_100 = ("accuracy", "baseline_accuracy", "named_right", "attribute_accuracy", "attribute_gain")
WITHOUT = {"too_few_models": "too few models for an interval"}
BOUND_TYPES = {"lower": "lower bound", "upper": "upper bound", "point": "estimate"}
ADD_OR_REMOVE = Term("add_or_remove")  # of an epsilon; otherwise one record is replaced by another
_PERCENT = re.compile(r"(?<=\d) ?%")


@runtime_checkable
class Shown(Protocol):
    """What findings are about: a release, or a part of a report."""

    @property
    def about(self) -> About:
        """What the report says of itself."""
        ...

    @property
    def too_few(self) -> bool:
        """Whether a count says more than a fraction."""
        ...

    @property
    def constant(self) -> frozenset[str]:
        """Attacks that gave every record the same score."""
        ...

    def attack_title(self, name: str) -> str:
        """Return the attack in words."""
        ...


@dataclass(frozen=True)
class Row:
    """A finding as the table prints it; ``key`` sorts the values, and is None where there is no value."""

    quantity: Markup
    value: Markup
    interval: Markup
    bound_type: str
    status: str
    source: str
    key: float | None


@dataclass(frozen=True)
class Group:
    """The rows of a release; ``folded`` are some of them where there are very many, and ``folded_are`` says which."""

    title: str
    rows: Sequence[Row]
    folded: Sequence[Row]
    folded_are: str = "the weakest attacks"


def as_given(part: Part) -> Sequence[Finding]:
    """Return the findings of a bound as they are: its maker puts the most important first."""
    return part.findings


def groups(results: Sequence[S], arranged: Callable[[S], Sequence[Finding]]) -> list[Group]:
    """Make a group a release, in order, its findings arranged by `ordered` or `as_given`."""
    tables = []
    for result in results:
        parts = [_rows(result, together) for _, together in groupby(arranged(result), key=_attack_of)]
        ends = list(accumulate(len(part) for part in parts))
        # whole attacks are folded away, so that the rows of one stay together; the first is always open
        n_open = max(1, sum(end <= FOLD for end in ends))
        rows, folded = chain.from_iterable(parts[:n_open]), chain.from_iterable(parts[n_open:])
        tables.append(Group(result.title, list(rows), list(folded)))
    return tables


def cells(groups: Sequence[Group], interval_head: str) -> list[dict[str, str]]:
    """Lay the findings out as the rows of a text, under the titles of their groups."""
    heads = ["quantity", "value", interval_head.lower(), "bound type", "status"]
    rows = []
    for group in groups:
        rows.append(dict.fromkeys(heads, "") | {"quantity": f"{group.title}:"})
        for row in (*group.rows, *group.folded):
            cells_of_row = (row.quantity, row.value, row.interval, row.bound_type, row.status)
            rows += [dict(zip(heads, cells_of_row, strict=True))]
    return rows


def not_run(result: Shown, findings: Iterable[Finding]) -> list[str]:
    """List the attacks without a result, with the reason; those with the same one share a line."""
    by_reason: dict[str, dict[str, None]] = {}
    for finding in findings:
        if finding.reason is not None:
            by_reason.setdefault(words(finding.reason), {})[result.attack_title(finding.attack)] = None
    return [f"not run: {listed(titles)}: {reason}" for reason, titles in by_reason.items()]


def without_references(findings: Iterable[Finding]) -> list[str]:
    """List the attacks that did not run because there are no, or too few, models to compare with."""
    reasons = ("no_reference", "few_references", "no_reference_of_both", "no_reference_with", "no_reference_without")
    return list(
        dict.fromkeys(
            finding.attack for finding in findings if finding.reason is not None and finding.reason.id in reasons
        )
    )


def _attack_of(finding: Finding) -> str:
    """Return the attack that a row is grouped under; the first rows of a release are of no single one."""
    return "" if finding.quantity in FIRST else finding.attack


def _rows(result: Shown, findings: Iterable[Finding]) -> list[Row]:
    """Make a row a finding; neighbours without a value for the same reason share a row."""
    rows = []
    for _, alike in groupby(findings, key=lambda found: (found.quantity, found.scope, found.reason, found.value)):
        first, *others = alike
        if first.value is None and "fpr" in first.operating_point and others:
            rates = listed(percent(finding.operating_point["fpr"]) for finding in (first, *others))
            name = quantity(result, first, rates)
            rows.append(replace(row(result, first), quantity=name))
        else:
            rows += [row(result, finding) for finding in (first, *others)]
    return rows


def row(result: Shown, finding: Finding) -> Row:
    """One finding."""
    if result.too_few and finding.quantity in FRACTIONS and finding.value is not None:
        finding = replace(finding, value=None, reason=Term("too_few_for_percentage"))
    name, source = quantity(result, finding), _source_of(result, finding)
    if finding.value is None:
        reason = finding.reason or Term("own_words", words="")
        kind = "not resolvable" if reason.id == "fpr_not_resolvable" else "not applicable"
        dash = Markup("—")
        return Row(name, dash, dash, kind, _PERCENT.sub(f"{THIN}%", words(reason)), source, None)
    value, interval = numbers(finding)
    status = ", ".join(_status(result, finding))
    exact = finding.bound_type == "point" and finding.status == "certified"
    kind = "exact value" if exact else BOUND_TYPES[finding.bound_type]
    return Row(name, powers(value), powers(interval), kind, status, source, finding.value)


def quantity(result: Shown, finding: Finding, rates: str = "") -> Markup:
    """Say what was measured, of which attack, where; ``rates`` are printed in place of the finding's own FPR."""
    unit = result.about.unit
    if finding.quantity == "most_exposed":
        return Markup("Accuracy, most exposed {}").format(unit)
    attacker = result.attack_title(finding.attack) if finding.attack else Sentence(f"attacker.{finding.bound_type}")
    name = Markup.escape(_title(finding, {"attacker": attacker, "units": capital(plural(unit))}))
    for key, value in finding.operating_point.items():
        name += say(" at FPR\u00a0{rates}", rates=rates) if rates and key == "fpr" else _where(key, value)
    if ADD_OR_REMOVE in finding.method:
        name += say(", one {unit} added or removed", unit=unit)
    if finding.scope.is_part:
        name += say(": {slice}", slice=slice_words(finding, unit))
    return name


def _title(finding: Finding, gaps: Mapping[str, str | Sentence]) -> str:
    """Name a quantity; an epsilon by what it is a lower bound of."""
    title = f"quantity.{finding.quantity}"
    if finding.quantity == "epsilon" and (finding.attack or finding.bound_type == "lower"):
        title = "quantity.epsilon_of_any"
        if Term("whole_curve") in finding.method:
            title = "quantity.epsilon_of_other_noise"
        elif Term("step_by_step") in finding.method:
            title = "quantity.epsilon_of_gaussian_steps"
        if Term("independent_canaries") in finding.method:
            return str(Sentence("at.independent_canaries", {"quantity": Sentence(title)}))
    known = title in sentences()
    return str(Sentence(title, gaps)) if known else capital(QUANTITIES.get(finding.quantity, finding.quantity))


def slice_words(finding: Finding, unit: str) -> str:
    """Write a slice with its number of records; a quarter of numbers with its ends, where they are known."""
    ends = f", {finding.detail['from']:.6g} to {finding.detail['to']:.6g}" if "from" in finding.detail else ""
    return f"{finding.scope.name}{ends} ({several(int(finding.detail['records']), unit)})"


def _where(key: str, value: float) -> Markup:
    """Write the operating point in words."""
    if key == "fpr":
        return Markup(" at FPR\u00a0{}").format(percent(value))
    if key == "prior":
        return Markup(", prior\u00a0{}").format("½" if value == 0.5 else percent(value))
    if key == "inside":
        return Markup(", members") if value else Markup(", non-members")
    words = " at {} = {}" if key in GREEK else ", {} {}"
    return Markup(words).format(GREEK.get(key, key), parameter(value))


def numbers(finding: Finding) -> tuple[str, str]:
    """Value and interval with their units."""
    text = shown(finding)
    value, interval = text.value, text.interval or _without_interval(finding)
    if finding.quantity == "most_exposed":
        n_won, n_games = int(finding.detail["won"]), int(finding.detail["games"])
        return f"{count(n_won)} of {count(n_games)} games", f"{interval} of 100"
    if finding.quantity in OF_100:
        return f"{value} of 100", interval
    if finding.quantity in FRACTIONS:
        return f"{value}{THIN}%", f"{interval}{THIN}%" if text.interval else interval
    if finding.quantity == "stores_records":
        return ("yes" if finding.value else "no"), interval
    at_least = finding.quantity == "epsilon" and finding.bound_type == "lower"
    return f"≥{THIN}{value}" if at_least else value, interval


def _without_interval(finding: Finding) -> str:
    """Say why there is no interval."""
    if finding.refused:
        return WITHOUT[finding.refused]
    if finding.status != "certified":
        return "none"
    return "exact" if finding.confidence in (None, 1.0) else "one-sided"


def _status(result: Shown, finding: Finding) -> Iterator[str]:
    """List the status, and what else one must know."""
    level = finding.confidence
    at = "" if level is None or level >= 1 else f"at {percent(level)}"
    if finding.status == "certified":
        yield f"{finding.status} {at}".rstrip()
    else:
        yield finding.status
        if at and level != result.about.confidence:
            yield at
    if finding.quantity == "epsilon" and finding.attack:
        yield result.attack_title(finding.attack)
    if finding.quantity == "most_exposed":
        yield f"all {plural(result.about.unit)} at once"
    if finding.scope.kind == "slice":
        yield "all slices at once"
    if finding.scope.kind == "group":
        yield "all groups at once"
    nominal, realised = finding.operating_point.get("fpr"), finding.detail.get("fpr")
    if nominal and realised is not None and abs(realised - nominal) > 0.005 * nominal:
        yield f"realised FPR {percent(realised)}"
    if finding.refused and "between_model_spread" in finding.detail:
        yield f"between-model spread {finding.detail['between_model_spread']:.2g}"
    if finding.quantity == "auc" and finding.attack in result.constant:
        yield "constant score"


def _source_of(result: Shown, finding: Finding) -> str:
    """Of the finding, else of its attack; the first rows of a release are of no single attack."""
    own = "" if finding.quantity in FIRST else result.about.source_of(finding.attack)
    return cited(finding.source or own)
