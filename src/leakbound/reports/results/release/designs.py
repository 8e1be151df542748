"""The promises compared, for the owner: what each would cost, which is recommended, and the rules of offices."""

from __future__ import annotations

from collections.abc import Sequence

from leakbound.reports.about import DesignErrors, DesignsCompared, OfficeRule
from leakbound.reports.numbers import count, parameter
from leakbound.reports.results.findings import Text
from leakbound.reports.results.release.table import MOST_IN_TERMINAL, Head, Row, Table, first_rows, folded, size, span
from leakbound.reports.results.words import several
from leakbound.reports.sentences import Sentence, Texts

MOST_COLUMNS = 6  # numbers that are shown next to each other
MOST_NAMES = 6  # that fail a rule and are listed
PROMISES = {"dp": "anyone", "leave-one-out": "file", "half": "drawn"}


def designs_page(
    facts: DesignsCompared, command: str = "", rules: Sequence[OfficeRule] = (), full: bool = False
) -> Texts:
    """Write down what somebody needs who chooses a promise; ``full`` shows all rows."""
    designs = designs_of(facts, is_short=not full)
    return Texts(
        title=Sentence("designs.title"),
        n=several(len(facts.labels), "number"),
        is_cut=not full and any(len(table.rows) > MOST_IN_TERMINAL for table in designs.tables),
        ratio=_ratio(facts),
        command=command,
        designs=designs,
        rules=rules_checked([("", rules)]),
    )


def designs_of(facts: DesignsCompared, is_short: bool = False) -> Texts:
    """Put the promises side by side, as a page shows them or, in few rows, a terminal."""
    known = [design for design in facts.designs if design.errors is not None]
    unknown = [design for design in facts.designs if design.reason]
    sources = [Sentence(f"method_of.{design.method}") for design in known if design.method]
    sources += [Sentence("method_of.estimated", {"name": _name(each)}) for each in known if each.is_estimated]
    tables = [_table(facts, known)] if known else []
    return Texts(
        is_in_errors=_has_unit(facts),
        tables=[first_rows(table) for table in tables] if is_short else tables,
        reasons=[Sentence("designs.none", {"name": _name(each), "why": each.reason}) for each in unknown],
        sources=sources,
        recommended=PROMISES[facts.recommended],
        why=Sentence(f"recommended.{facts.why}"),
    )


def named(design: DesignErrors) -> str:
    """Name a design with its promise, for the head of a column of the CSV."""
    method = Sentence(f"method_name.{design.method}") if design.method else ""
    return f"{design.name}{', ' if design.method else ''}{method} ({design.promise})"


def _has_unit(facts: DesignsCompared) -> bool:
    """Whether all standard errors are known."""
    return all(facts.standard_errors)


def _name(design: DesignErrors) -> Text:
    """Name the promise, and the method of others that it is shown with."""
    if not design.method:
        return design.promise
    return Sentence(
        "designs.by_method", {"promise": design.promise, "method": Sentence(f"method_name.{design.method}")}
    )


def _table(facts: DesignsCompared, known: Sequence[DesignErrors]) -> Table:
    """Lay the errors out: a row a promise, or a row a number where there are many."""
    names: list[Text] = [_name(design) for design in known]
    columns = [[_error(facts, place, error) for place, error in enumerate(design.errors or ())] for design in known]
    if _has_unit(facts):
        names.append(Sentence("designs.standard_error"))
        columns.append([size(error or 0.0) for error in facts.standard_errors])
    if len(facts.labels) <= MOST_COLUMNS:
        heads = [Head(Sentence("head.promise"), is_text=True), *(Head(label) for label in facts.labels)]
        return folded("", heads, [Row([name, *column]) for name, column in zip(names, columns, strict=True)])
    heads = [Head(Sentence("head.statistic"), is_text=True), *(Head(name) for name in names)]
    return folded("", heads, [Row(cells) for cells in zip(facts.labels, *columns, strict=True)])


def _error(facts: DesignsCompared, place: int, error: float) -> str:
    """Write an error in units of the standard error, if all of these are known."""
    unit = facts.standard_errors[place]
    return size(error / unit if _has_unit(facts) and unit else error)


def _ratio(facts: DesignsCompared) -> Text:
    """Write the errors of the promise that is recommended, in standard errors; empty where they are not known."""
    for design in facts.designs:
        if design.name == facts.recommended and not design.method and design.errors is not None:
            pairs = zip(design.errors, facts.standard_errors, strict=True)
            ratios = [error / unit for error, unit in pairs if error and unit]
            return span(ratios) if ratios else ""
    return ""


def rules_checked(named: Sequence[tuple[str, Sequence[OfficeRule]]]) -> Texts | None:
    """List the rules that were checked, of each statistic by its name, and what fails; none without rules."""
    rules = [(name, rule) for name, of_statistic in named for rule in of_statistic]
    if not rules:
        return None
    rows = [_rule(name, rule) for name, rule in rules]
    failing = [row for row, (_, rule) in zip(rows, rules, strict=True) if rule.failing]
    gaps = {"n": count(len(failing)), "checked": count(len(rules))}
    return Texts(n_failing=Sentence("rule.fail" if failing else "rule.hold", gaps), rows=rows, failing=failing)


def _rule(statistic: str, rule: OfficeRule) -> Texts:
    """Write a rule, what it asks for, and what fails it."""
    thresholds = {name: parameter(value) for name, value in rule.thresholds.items()}
    name: Text = Sentence(f"rule.{rule.rule}")
    if statistic:
        name = Sentence("rule.of_statistic", {"statistic": statistic, "rule": name})
    gaps = {"n": count(len(rule.failing)), "checked": count(rule.checked)}
    gaps |= {"names": "; ".join(rule.failing[:MOST_NAMES]), "n_more": count(len(rule.failing) - MOST_NAMES)}
    how = "none"
    if rule.failing:
        how = "some_and_more" if len(rule.failing) > MOST_NAMES else "some"
    return Texts(
        name=name, asks=Sentence(f"rule.{rule.rule}_asks", thresholds), failing=Sentence(f"failing.{how}", gaps)
    )
