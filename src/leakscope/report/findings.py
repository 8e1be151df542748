"""The table of all findings: one row a finding, grouped by release, the strongest first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, groupby

from markupsafe import Markup

from leakscope.findings import Finding
from leakscope.report.numbers import THIN, count, parameter, percent
from leakscope.report.results import SHARES, Result, shown
from leakscope.report.words import cited, listed, plural, say

FOLD = 40  # findings of a release beyond which the weakest attacks fold
FIRST = ("epsilon", "most_exposed")
ORDER = ("success", "advantage", "eta", "auc", "tpr", "ppv", "average_precision")
NAMES = {
    "auc": "Area under the curve, {}",
    "advantage": "Advantage of {}",
    "eta": "Gain over guessing of {}",
    "tpr": "TPR of {}",
    "ppv": "PPV of {}",
    "average_precision": "Average precision of {}",
    "success": "Success of {}",
}
_PERCENT = re.compile(r"(?<=\d) ?%")
SIDES = {"lower": "lower bound", "upper": "upper bound", "point": "estimate"}


@dataclass(frozen=True)
class Row:
    """A finding as the table prints it; ``key`` sorts the values, and is None where there is no value."""

    quantity: Markup
    value: str
    interval: str
    side: str
    status: str
    source: str
    key: float | None


@dataclass(frozen=True)
class Group:
    """The rows of a release; ``folded`` are those of the weakest attacks where there are very many."""

    title: str
    rows: Sequence[Row]
    folded: Sequence[Row]


def groups(results: Sequence[Result]) -> list[Group]:
    """A group a release, in order."""
    tables = []
    for result in results:
        parts = [_rows(result, together) for _, together in groupby(ordered(result), key=_attack_of)]
        ends = list(accumulate(len(part) for part in parts))
        kept = max(1, sum(end <= FOLD for end in ends))
        rows, folded = chain.from_iterable(parts[:kept]), chain.from_iterable(parts[kept:])
        tables.append(Group(result.title, list(rows), list(folded)))
    return tables


def _attack_of(finding: Finding) -> str:
    """The attack that a row is grouped under; the first rows of a release are of no single one."""
    return "" if finding.quantity in FIRST else finding.attack


def _rows(result: Result, findings: Iterable[Finding]) -> list[Row]:
    """A row a finding; neighbours without a value for one and the same reason share a row."""
    rows = []
    for _, alike in groupby(findings, key=lambda finding: (finding.quantity, finding.reason, finding.value)):
        first, *others = alike
        if first.value is None and "fpr" in first.at and others:
            rates = listed(percent(finding.at["fpr"]) for finding in (first, *others))
            name = quantity(result, first, rates)
            rows.append(replace(row(result, first), quantity=name))
        else:
            rows += [row(result, finding) for finding in (first, *others)]
    return rows


def ordered(result: Result) -> list[Finding]:
    """Epsilon and the most exposed record, then each attack from best to weakest."""
    rank = {name: place for place, name in enumerate(result.attacks)}

    def place(finding: Finding) -> tuple[int, int, int, float]:
        if finding.quantity in FIRST:
            return (0, FIRST.index(finding.quantity), rank.get(finding.attack, len(rank)), 0.0)
        attack, kind = rank.get(finding.attack, len(rank)), ORDER.index(finding.quantity)
        return (1, attack, kind, -finding.at.get("fpr", 0.0))

    return sorted(result.findings, key=place)


def row(result: Result, finding: Finding) -> Row:
    """One finding."""
    if result.too_few and finding.quantity in SHARES and finding.value is not None:
        finding = replace(finding, value=None, reason="too few for a percentage")
    name, source = quantity(result, finding), _source_of(result, finding)
    if finding.value is None:
        resolvable = "games reach FPR" not in finding.reason
        side = "not applicable" if resolvable else "not resolvable"
        return Row(name, "—", "—", side, _PERCENT.sub(f"{THIN}%", finding.reason), source, None)
    value, interval = numbers(finding)
    status = ", ".join(_status(result, finding)).replace("certified, at", "certified at")
    return Row(name, value, interval, SIDES[finding.side], status, source, finding.value)


def quantity(result: Result, finding: Finding, rates: str = "") -> Markup:
    """What was measured, of which attack, where; ``rates`` stands in place of the finding's own FPR."""
    if finding.quantity == "epsilon":
        delta = finding.at.get("delta", 0.0)
        return Markup("ε of any guarantee, δ = {}").format(parameter(delta))
    if finding.quantity == "most_exposed":
        return Markup("Success, most exposed {}").format(result.about["unit"])
    name = Markup(NAMES[finding.quantity]).format(result.attack_title(finding.attack))
    for key, value in finding.at.items():
        name += say(" at FPR\u00a0{rates}", rates=rates) if rates and key == "fpr" else _where(key, value)
    return name


def _where(key: str, value: float) -> Markup:
    """The operating point, in words."""
    if key == "fpr":
        return Markup(" at FPR\u00a0{}").format(percent(value))
    if key == "prior":
        return Markup(", prior\u00a0{}").format("½" if value == 0.5 else percent(value))
    if key == "inside":
        return Markup(", members") if value else Markup(", non-members")
    return Markup(", {} {}").format(key, parameter(value))


def numbers(finding: Finding) -> tuple[str, str]:
    """Value and interval with their units."""
    text = shown(finding)
    value, interval = text.value, text.interval or ("none" if finding.side == "point" else "exact")
    if finding.quantity == "most_exposed":
        won, played = int(finding.detail["won"]), int(finding.detail["games"])
        return f"{count(won)} of {count(played)} games", f"{interval} of 100"
    if finding.quantity == "success":
        return f"{value} of 100", interval
    if finding.quantity in SHARES:
        return f"{value}{THIN}%", f"{interval}{THIN}%" if text.interval else interval
    at_least = finding.quantity == "epsilon" and finding.side == "lower"
    return f"≥{THIN}{value}" if at_least else value, interval


def _status(result: Result, finding: Finding) -> Iterator[str]:
    """Status, and what one must know beside it."""
    level, usual = finding.confidence, result.about["confidence"]
    yield finding.status
    if level is not None and (level != usual or (finding.status == "certified" and level < 1)):
        yield f"at {percent(level)}"
    if finding.quantity == "epsilon" and finding.attack:
        yield result.attack_title(finding.attack)
    if finding.quantity == "most_exposed":
        yield f"all {plural(result.about['unit'])} at once"
    asked, realised = finding.at.get("fpr"), finding.detail.get("fpr")
    if asked and realised is not None and abs(realised - asked) > 0.005 * asked:
        yield f"realised FPR {percent(realised)}"
    if finding.quantity == "auc" and finding.attack in result.constant:
        yield "constant score"


def _source_of(result: Result, finding: Finding) -> str:
    """Of the finding, else of its attack; the first rows of a release are of no single attack."""
    own = "" if finding.quantity in FIRST else result.about["attacks"].get(finding.attack, {}).get("source", "")
    return cited(finding.source or own)
