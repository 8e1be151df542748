"""The findings of a report as the rows of its table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from leakbound.core import reasons
from leakbound.core.findings import Finding, Term
from leakbound.reports.about import About
from leakbound.reports.numbers import THIN, count, parameter, percent, powers
from leakbound.reports.phrases import plural
from leakbound.reports.results.parts import attack_words
from leakbound.reports.results.quantities import FRACTIONS, shown
from leakbound.reports.results.words import capital, cited, listed, several
from leakbound.reports.sentences import Sentence

OF_CONTROLS = ("excess_matches", "disclosed_fraction", "excess_singled_out", "excess_linked", "excess_inferred")
OF_100 = ("accuracy", "baseline_accuracy", "named_right", "attribute_accuracy", "attribute_gain", *OF_CONTROLS)
Text = str | Sentence


@dataclass(frozen=True)
class FindingRow:
    """A finding as the table prints it; without a value the status says why."""

    quantity: Sentence
    value: Text
    interval: Text
    bound_type: Sentence
    status: Text
    source: str


def finding_row(about: About, finding: Finding, attacker: str = "", rates: str = "") -> FindingRow:
    """Write a finding of a report, with the attack in words where it has a title.

    ``rates`` are printed in place of its own false positive rate.
    """
    quantity = quantity_of(finding, about.unit, attacker, rates)
    source = cited(finding.source or about.source_of(finding.attack))
    if finding.value is None:
        none, reason = Sentence("value.none"), finding.reason or Term("own_words", words="")
        kind = "not_resolvable" if reason.id == "fpr_not_resolvable" else "none"
        why = reasons.words(reason).replace(" %", f"{THIN}%")
        return FindingRow(quantity, none, none, Sentence(f"bound_type.{kind}"), why, source)
    is_exact = finding.bound_type == "point" and finding.status == "certified"
    bound_type = Sentence(f"bound_type.{'exact' if is_exact else finding.bound_type}")
    status = _status(finding, about.confidence)
    return FindingRow(quantity, value_of(finding), interval_of(finding), bound_type, status, source)


def interval_head(confidence: float) -> Sentence:
    """Head the intervals; what rests on no sample has no level."""
    if confidence < 1:
        return Sentence("interval.head_at", {"level": percent(confidence)})
    return Sentence("interval.head")


def quantity_of(finding: Finding, unit: str, attacker: str = "", rates: str = "") -> Sentence:
    """Say what was measured or proved, of which attacker, where, and on which of the records.

    ``attacker`` is the attack in words, where it has a title; ``rates`` are printed in place of the finding's own FPR.
    """
    who: Text = attacker or attack_words(finding.attack)
    if not finding.attack:
        who = Sentence(f"attacker.{finding.bound_type}")
    gaps: dict[str, Text] = {"attacker": who, "unit": unit, "units": capital(plural(unit))}
    gaps["column"] = inferred_column(finding)
    quantity = Sentence(f"quantity.{_name(finding)}", gaps)
    if finding.quantity == "most_exposed":
        return quantity
    if Term("independent_canaries") in finding.method:
        quantity = Sentence("at.independent_canaries", {"quantity": quantity})
    for key, value in finding.operating_point.items():
        if key == "inside":
            quantity = Sentence(f"at.inside_{'members' if value else 'others'}", {"quantity": quantity})
        else:
            at = rates if rates and key == "fpr" else place_of(key, value)
            quantity = Sentence(f"at.{key}", {"quantity": quantity, "value": at})
    if Term("add_or_remove") in finding.method:  # of an epsilon; otherwise one record is replaced by another
        quantity = Sentence("at.added_or_removed", {"quantity": quantity, "unit": unit})
    return _of_part(quantity, finding, unit) if finding.scope.is_part else quantity


def inferred_column(finding: Finding) -> str:
    """Name the column that is inferred, which the method has, or the reason why there is no number."""
    terms = [*finding.method, *([] if finding.reason is None else [finding.reason])]
    names = [str(term.values["column"]) for term in terms if "column" in term.values]
    return names[0] if names else ""


def _name(finding: Finding) -> str:
    """Name a quantity, an epsilon by what it is a lower bound of."""
    if finding.quantity != "epsilon" or not (finding.attack or finding.bound_type == "lower"):
        return finding.quantity
    if Term("whole_curve") in finding.method:
        return "epsilon_of_other_noise"
    return "epsilon_of_gaussian_steps" if Term("step_by_step") in finding.method else "epsilon_of_any"


def _of_part(quantity: Sentence, finding: Finding, unit: str) -> Sentence:
    """Name a slice or a group with its number of records; a quarter of numbers with its ends, where they are known."""
    records = several(int(finding.detail["records"]), unit)
    gaps: dict[str, Text] = {"quantity": quantity, "part": finding.scope.name, "records": records}
    if "from" not in finding.detail:
        return Sentence("at.part", gaps)
    low, high = (f"{finding.detail[end]:.6g}" for end in ("from", "to"))
    return Sentence("at.part_of_numbers", {**gaps, "low": low, "high": high})


def place_of(key: str, value: float) -> str:
    """Write a value of the operating point."""
    if key == "prior" and value == 0.5:
        return "½"
    return percent(value) if key in ("fpr", "prior") else parameter(value)


def value_of(finding: Finding) -> Text:
    """Write a value with its unit."""
    if finding.quantity == "most_exposed":
        won, games = (count(int(finding.detail[name])) for name in ("won", "games"))
        return Sentence("value.games", {"won": won, "games": games})
    if finding.quantity == "stores_records":
        return Sentence("value.yes" if finding.value else "value.no")
    value = powers(shown(finding).value)
    if finding.quantity in OF_100:
        return Sentence("value.of_100", {"value": value})
    if finding.quantity in FRACTIONS:
        return f"{value}{THIN}%"
    if finding.quantity == "epsilon" and finding.bound_type == "lower":
        return Sentence("value.at_least", {"value": value})
    return value


def with_interval(finding: Finding | None) -> Text:
    """Write a number as the tables of attacks do, with its interval and no unit but a percent sign; a dash for none."""
    if finding is None or finding.value is None:
        return Sentence("value.none")
    text = shown(finding)
    value = f"{text.value}{THIN}%" if finding.quantity in FRACTIONS else text.value
    if finding.refused:
        return Sentence("models.too_few_models", {"value": value})
    return Sentence("value.with_interval", {"value": value, "interval": text.interval}) if text.interval else value


def not_run(findings: Iterable[Finding], title: Callable[[str], str]) -> Iterator[Sentence]:
    """List the attacks without a result, by their titles, with the reason; those with the same one share a sentence."""
    by_reason: dict[str, dict[str, None]] = {}
    for finding in findings:
        if finding.attack and finding.reason is not None:
            titles = by_reason.setdefault(reasons.words(finding.reason), {})
            titles[title(finding.attack)] = None
    for reason, titles in by_reason.items():
        yield Sentence("not_run.attacks", {"attacks": listed(titles), "reason": reason})


def interval_of(finding: Finding) -> Text:
    """Write the interval, or say why there is none."""
    interval = powers(shown(finding).interval)
    if interval:
        if finding.quantity == "most_exposed":
            return Sentence("value.of_100", {"value": interval})
        return f"{interval}{THIN}%" if finding.quantity in FRACTIONS else interval
    if finding.refused:
        return Sentence(f"interval.{finding.refused}")
    if finding.status != "certified":
        return Sentence("interval.none")
    return Sentence(f"interval.{'exact' if finding.confidence in (None, 1.0) else 'one_sided'}")


def _status(finding: Finding, confidence: float) -> Sentence:
    """Name the status, with the level where it is not that of the report, and the false positive rate that was met."""
    level = finding.confidence
    usual = 1.0 if finding.status == "certified" else confidence
    status = Sentence(f"status.{finding.status}")
    if level is not None and level < 1 and level != usual:
        status = Sentence(f"status.{finding.status}_at", {"level": percent(level)})
    nominal, realised = finding.operating_point.get("fpr"), finding.detail.get("fpr")
    if nominal and realised is not None and abs(realised - nominal) > 0.005 * nominal:
        realised_fpr = Sentence("status.realised", {"fpr": percent(realised)})
        status = Sentence("status.and", {"status": status, "detail": realised_fpr})
    return status
