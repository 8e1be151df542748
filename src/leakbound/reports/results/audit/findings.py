"""All findings of an audit as tables: one row a finding, by release, the strongest attack first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, chain, groupby

from leakbound.core.findings import Finding, Term
from leakbound.reports.numbers import count, percent
from leakbound.reports.phrases import plural
from leakbound.reports.results.audit.result import Result
from leakbound.reports.results.findings import FindingRow, Text, finding_row
from leakbound.reports.results.quantities import FRACTIONS
from leakbound.reports.results.words import cited, listed
from leakbound.reports.sentences import Sentence, Texts

FOLD = 40  # findings of a release beyond which the weakest attacks fold
FIRST = ("told_apart", "epsilon", "most_exposed", "baseline_accuracy", "membership_without_model")
ORDER = ("accuracy", "advantage", "eta", "auc", "tpr", "tpr_these_models", "ppv", "average_precision")


def audit_tables(results: Sequence[Result]) -> list[Texts]:
    """Write the findings of each release down, then those of its slices and of its groups."""
    tables = [_by_attack(result) for result in results]
    for result in results:
        accuracies = [finding for finding in result.slices if finding.quantity == "accuracy"]
        rates = [finding for finding in result.slices if finding.quantity != "accuracy"]
        if len(result.slices) <= FOLD:
            accuracies, rates = [*accuracies, *rates], []
        tables.append(_table(result, "tables.by_slice", _rows(result, accuracies), _rows(result, rates)))
        tables.append(_table(result, "tables.by_group", _rows(result, result.groups), []))
    return [table for table in tables if table.rows]


def _table(result: Result, title: str, rows: Sequence[FindingRow], folded: Sequence[FindingRow]) -> Texts:
    return Texts(title=Sentence(title, {"title": result.title}), rows=rows, folded=folded, n_folded=count(len(folded)))


def _by_attack(result: Result) -> Texts:
    """Keep the rows of an attack together; the first is always open."""
    parts = [_rows(result, together) for _, together in groupby(ordered(result), key=_attack_of)]
    ends = list(accumulate(len(part) for part in parts))
    n_open = max(1, sum(end <= FOLD for end in ends))
    rows, folded = chain.from_iterable(parts[:n_open]), chain.from_iterable(parts[n_open:])
    return _table(result, "tables.release", list(rows), list(folded))


def ordered(result: Result) -> list[Finding]:
    """Epsilon and the most exposed record, what holds for any attacker, then each attack from best to weakest."""
    rank = {name: place for place, name in enumerate(result.attacks)}

    def place(finding: Finding) -> tuple[int, int, int, float]:
        attack = rank.get(finding.attack, len(rank))
        if finding.quantity in FIRST:
            return (0, FIRST.index(finding.quantity), attack, 0.0)
        kind = ORDER.index(finding.quantity) if finding.quantity in ORDER else len(ORDER)
        return (2 if finding.attack else 1, attack, kind, -finding.operating_point.get("fpr", 0.0))

    return sorted(result.findings, key=place)


def _attack_of(finding: Finding) -> str:
    """Return the attack that a row is grouped under; the first rows of a release are of no single one."""
    return "" if finding.quantity in FIRST else finding.attack


def _rows(result: Result, findings: Sequence[Finding] | Iterator[Finding]) -> list[FindingRow]:
    """Make a row a finding; neighbours without a value for the same reason share a row."""
    rows = []
    for _, alike in groupby(findings, key=lambda found: (found.quantity, found.scope, found.reason, found.value)):
        first, *others = alike
        if first.value is None and "fpr" in first.operating_point and others:
            rates = listed(percent(finding.operating_point["fpr"]) for finding in (first, *others))
            rows.append(audit_row(result, first, rates))
        else:
            rows += [audit_row(result, finding) for finding in (first, *others)]
    return rows


def audit_row(result: Result, finding: Finding, rates: str = "") -> FindingRow:
    """Write a finding of an audit; ``rates`` are printed in place of its own false positive rate."""
    if result.too_few and finding.quantity in FRACTIONS and finding.value is not None:
        finding = replace(finding, value=None, reason=Term("too_few_for_percentage"))
    row = finding_row(result.about, finding, result.attack_title(finding.attack), rates)
    if finding.quantity in FIRST:  # which are of no single attack
        row = replace(row, source=cited(finding.source))
    if finding.value is None:
        return row
    status = row.status
    for detail in _details(result, finding):
        status = Sentence("status.and", {"status": status, "detail": detail})
    return replace(row, status=status)


def _details(result: Result, finding: Finding) -> Iterator[Text]:
    """List what else one must know than the status."""
    if finding.quantity == "epsilon" and finding.attack:
        yield result.attack_title(finding.attack)
    if finding.quantity == "most_exposed":
        yield Sentence("status.all_units", {"units": plural(result.about.unit)})
    if finding.scope.kind in ("slice", "group"):
        yield Sentence(f"status.all_{finding.scope.kind}s")
    if finding.refused and "between_model_spread" in finding.detail:
        yield Sentence("status.spread", {"spread": f"{finding.detail['between_model_spread']:.2g}"})
    if finding.quantity == "auc" and finding.attack in result.constant:
        yield Sentence("status.constant")
