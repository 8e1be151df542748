"""The table for publication, and the rules of statistics offices that were checked for the owner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from leakbound.reports.about import OfficeRule, PublishedCell, PublishedTable
from leakbound.reports.numbers import THIN, count, near, parameter, powers, significant
from leakbound.reports.sections.protected.result import ProtectedResult
from leakbound.reports.sections.words import joined, say

TOTALS = ("Total", "All", "Sum", "(total)")  # what a margin is called: the first that is no level
MOST_ACROSS = 8  # columns that fit beside each other
MOST_NAMES = 6  # that fail a rule and are listed
RULES = {
    "minimum_frequency": ("Minimum frequency", "at least {minimum} records in a cell that is not empty"),
    "dominance": ("Dominance", "the {n} largest contributions at most {k} of a total"),
    "p_percent": ("p %", "the third and smaller contributions together at least {p} of the largest"),
    "told_by_noise": (
        "p % by the noise",
        "the largest contribution not told by the printed noise to within {p}",
    ),
    "dominance_by_noise": (
        "Dominance by the noise",
        "the {n} largest contributions, the largest as the printed noise tells it, at most {k} of a total",
    ),
    "degrees_of_freedom": ("Degrees of freedom", "at least {minimum} records more than coefficients"),
}
RULES_INTRO = (
    "Rules of thumb that statistics offices apply, checked on the exact numbers of all records. They are no part of "
    "the promise, which holds whether they pass or fail."
)
NO_MEAN = "A mean is left out where its noisy count says too little of how many records it is of."
RULE_HEADS = {"rule": "Rule", "asks": "Asks for", "failing": "Fails"}
NOTHING = Markup("\u2014")
Cells = Mapping[str, Markup]


def label_of(cell: PublishedCell, table: PublishedTable) -> str:
    """Name a cell by its levels, and a mean by its column too, as ``"Sales / Female"``."""
    levels = _levels_in_words(cell, table)
    return levels if cell.quantity == "count" and _only_counts(table) else f"{cell.quantity}, {levels}"


def total_name(table: PublishedTable) -> str:
    """Choose what a margin is called, which is no level of the table."""
    levels = {level for cell in table.cells for level in cell.levels}
    return next((name for name in TOTALS if name not in levels), TOTALS[-1])


def is_crossed(table: PublishedTable) -> bool:
    """Tell whether the table is shown as rows and columns: counts by two columns, or groups with several numbers."""
    n_across = len(_quantities(table))
    if n_across == 1:
        n_across = len(_levels(table, 1)) if len(table.by) == 2 else MOST_ACROSS + 1
    return n_across <= MOST_ACROSS


def crossed(table: PublishedTable) -> list[Cells]:
    """Arrange the numbers as rows and columns, margins last."""
    if _only_counts(table):
        return _two_columns(table)
    rows: dict[tuple[str | None, ...], dict[str, Markup]] = {}
    for cell in table.cells:
        row = rows.setdefault(cell.levels, {" / ".join(table.by): Markup.escape(_levels_in_words(cell, table))})
        row[cell.quantity] = _value(cell)
    return list(rows.values())


def _two_columns(table: PublishedTable) -> list[Cells]:
    """Arrange counts with the levels of the first column as rows, those of the second as columns."""
    total = total_name(table)
    by_levels = {cell.levels: cell for cell in table.cells}
    rows = []
    for first in _levels(table, 0):
        row = {f"{table.by[0]} / {table.by[1]}": Markup.escape(total if first is None else first)}
        for second in _levels(table, 1):
            row[total if second is None else second] = _value(by_levels[first, second])
        rows.append(row)
    return rows


def note(result: ProtectedResult) -> Markup:
    """Say what was made of the released numbers."""
    table = result.about.table
    if table is None:
        return Markup("")
    parts = []
    if table.total is not None:
        words = "The counts are whole numbers that add up to {total}, which is public."
        parts.append(say(words, total=count(table.total)))
    else:
        parts.append(say("Counts are rounded to whole numbers."))
    if any(None in cell.levels for cell in table.cells):
        parts.append(say("Margins are sums of the cells, and cost nothing."))
    if table.non_negative:
        parts.append(say("Negative counts were set to 0, so that small counts are too large on average."))
    if any(cell.value is None for cell in table.cells):
        parts.append(say(NO_MEAN))
    if any(cell.low is not None for cell in table.cells):
        parts.append(say("± is half of a 95 % interval of the noise."))
    return joined(parts)


def n_below_0(table: PublishedTable) -> int:
    """Count the counts that the noise took below 0."""
    return sum(cell.quantity == "count" and (cell.value or 0.0) < 0 for cell in table.cells)


def rules(result: ProtectedResult) -> list[Cells]:
    """List the rules that were checked, and what fails."""
    return [rule_cells(rule) for rule in result.about.rules]


def rule_cells(rule: OfficeRule) -> Cells:
    """Write a rule, what it asks for, and what fails it."""
    heading, asks = RULES[rule.rule]
    thresholds = {name: parameter(value) for name, value in rule.thresholds.items()}
    n_more = len(rule.failing) - MOST_NAMES
    more = f" and {count(n_more)} more" if n_more > 0 else ""
    failing = say("none of {checked}", checked=count(rule.checked))
    if rule.failing:
        failing = say(
            "{n} of {checked}: {names}{more}",
            n=count(len(rule.failing)),
            checked=count(rule.checked),
            names="; ".join(rule.failing[:MOST_NAMES]),
            more=more,
        )
    return {"rule": Markup.escape(heading), "asks": say(asks, **thresholds), "failing": failing}


def value_of(cell: PublishedCell) -> Markup:
    """Write a count as a whole number, a mean to the second digit of its noise."""
    if cell.value is None:
        return NOTHING
    if cell.quantity == "count":
        return Markup.escape(near(cell.value))
    if not cell.noise_std:
        return Markup.escape(f"{cell.value:,.12g}")
    digits = significant(cell.noise_std)
    is_plain = "e" not in digits and "sup" not in digits
    return Markup.escape(near(cell.value, len(digits.partition(".")[2]) if is_plain else 0))


def half_of(cell: PublishedCell) -> float:
    """Return half of the interval of the noise, the longer one; its deviation where there is none, 0 without noise."""
    if cell.value is None or cell.high is None or cell.low is None:
        return cell.noise_std or 0.0
    return max(cell.high - cell.value, cell.value - cell.low)


def _value(cell: PublishedCell) -> Markup:
    half = half_of(cell)
    if not half:
        return value_of(cell)
    return say("{value} ±{thin}{half}", value=value_of(cell), thin=THIN, half=powers(significant(half)))


def _levels(table: PublishedTable, axis: int) -> Sequence[str | None]:
    """List the levels of a column in their order, the margin last."""
    known = dict.fromkeys(cell.levels[axis] for cell in table.cells)
    return [*(level for level in known if level is not None), *([None] if None in known else [])]


def _levels_in_words(cell: PublishedCell, table: PublishedTable) -> str:
    total = total_name(table)
    return " / ".join(total if level is None else level for level in cell.levels)


def _quantities(table: PublishedTable) -> Sequence[str]:
    return list(dict.fromkeys(cell.quantity for cell in table.cells))


def _only_counts(table: PublishedTable) -> bool:
    return _quantities(table) == ["count"]
