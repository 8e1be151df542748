"""The released numbers as tables: as they are published, as they are planned, and what they cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from leakbound.reports.about import PlannedNumber, PublishedCell, PublishedTable, ReleasedValue
from leakbound.reports.numbers import HALF_OF_95_PERCENT, THIN, count, near, powers, significant
from leakbound.reports.results.findings import Text
from leakbound.reports.results.release.result import ReleaseResult
from leakbound.reports.results.words import capital
from leakbound.reports.sentences import Sentence

MOST_ROWS = 8  # rows that a page shows at once; the others fold
MOST_FOLDED = 200
MOST_ACROSS = 8  # columns that fit next to each other
MOST_IN_TERMINAL = 6  # rows
MOST_ACROSS_TERMINAL = 4
SHORT_UNIT = 12  # letters
TOTALS = ("Total", "All", "Sum", "(total)")  # what a margin is called: the first that is no level
TEXTS = ("unit", "promise", "certificate")  # columns that are aligned to the left
NOTHING = "—"


@dataclass(frozen=True)
class Head:
    """The head of a column."""

    name: Text
    is_text: bool = False


@dataclass(frozen=True)
class Row:
    """The cells of a row."""

    cells: Sequence[Text]


@dataclass(frozen=True)
class Table:
    """Rows that are shown, rows that fold, and how many more there are; the only table of its kind has no title."""

    title: str
    heads: Sequence[Head]
    rows: Sequence[Row]
    folded: Sequence[Row] = ()
    n_folded: str = ""
    n_left_out: str = ""


Cells = dict[str, Text]  # by column: a key of the sentences of the group ``head``


def table(rows: Sequence[Cells], title: str = "") -> Table:
    """Make a table of rows; columns without any content are left out."""
    columns = [column for column in rows[0] if any(row[column] not in ("", NOTHING) for row in rows)]
    heads = [Head(Sentence(f"head.{column}"), column in TEXTS or not place) for place, column in enumerate(columns)]
    return folded(title, heads, [Row([row[column] for column in columns]) for row in rows])


def folded(title: str, heads: Sequence[Head], rows: Sequence[Row]) -> Table:
    """Show the first rows of a table, fold those after them, and count the rest."""
    after = rows[MOST_ROWS : MOST_ROWS + MOST_FOLDED]
    n_left_out = len(rows) - MOST_ROWS - len(after)
    return Table(title, heads, rows[:MOST_ROWS], after, count(len(after)), count(n_left_out) if n_left_out > 0 else "")


def size(value: float) -> str:
    """Write a size with two significant digits."""
    return powers(significant(value))


def span(values: Sequence[float]) -> Text:
    """Write one size, or the smallest and the largest."""
    low, high = size(min(values)), size(max(values))
    return low if low == high else Sentence("size.span", {"low": low, "high": high})


def released(result: ReleaseResult, title: str = "") -> Table:
    """Tabulate what was released: a table with rows and columns as it is published."""
    published = result.about.table
    if published is not None and is_crossed(published):
        return crossed(published, title)
    return table(value_rows(result), title)


def value_rows(result: ReleaseResult) -> list[Cells]:
    """List the released numbers with their noise, each in as many digits as the noise leaves."""
    family = result.certificate.noise.family.lower()
    noise = "noise_95" if family in HALF_OF_95_PERCENT else "noise_std"
    exact = Sentence(f"exact.{result.certificate.promise}")
    published, rows = result.about.table, []
    if published is not None:
        for cell in published.cells:
            name, value = label_of(cell, published), value_of(cell)
            rows.append({"statistic": name, "released": value, noise: _plus_minus(cell.value, half_of(cell), exact)})
        return rows
    factor = HALF_OF_95_PERCENT.get(family, 1.0)
    for row in result.values:
        half = _half_of_value(row, factor)
        said = NOTHING if row.noise_std is None else _plus_minus(row.value, half, exact)
        unit = row.unit.replace(" ", "\u00a0") if len(row.unit) <= SHORT_UNIT else row.unit
        rows.append({"statistic": row.name, "released": _value(row.value, half), noise: said, "unit": unit})
    return rows


def _plus_minus(value: float | None, half: float, exact: Text) -> Text:
    """Write half of an interval; of an exact number say so."""
    if value is None:
        return NOTHING
    return f"±{THIN}{size(half)}" if half else exact


def _half_of_value(row: ReleasedValue, factor: float) -> float:
    """Return half of the interval of the noise, the longer one; 0 where there is no noise, or no value."""
    if row.value is None or row.noise_std is None:
        return 0.0
    if row.low is None or row.high is None:
        return factor * row.noise_std
    return max(row.high - row.value, row.value - row.low)


def _value(value: float | None, half: float) -> str:
    """Write a value to the second digit of its noise; all digits where there is none."""
    if value is None:
        return NOTHING
    if not half:
        return f"{value:,.12g}".replace("-", "\N{MINUS SIGN}")
    places = 1 - math.floor(math.log10(half))
    if not value or 0 <= places < 8:
        return near(value, max(0, places))
    return powers(significant(value, max(1, math.floor(math.log10(abs(value))) + places + 1)))


def crossed(published: PublishedTable, title: str = "") -> Table:
    """Arrange the numbers as rows and columns, margins last, each with half of its interval."""
    rows: dict[Text, Cells] = {}
    for cell in published.cells:
        if _only_counts(published):
            first, second = (total_name(published) if level is None else level for level in cell.levels)
            rows.setdefault(first, {})[second] = _with_noise(cell)
        else:
            rows.setdefault(_levels_in_words(cell, published), {})[cell.quantity] = _with_noise(cell)
    columns = _across(published)
    heads = [Head(" / ".join(published.by), is_text=True), *(Head(column) for column in columns)]
    return folded(title, heads, [Row([name, *(cells[column] for column in columns)]) for name, cells in rows.items()])


def is_crossed(published: PublishedTable) -> bool:
    """Tell whether the table is shown as rows and columns: counts by two columns, or groups with several numbers."""
    has_two = len(published.by) == 2 if _only_counts(published) else True
    return has_two and len(_across(published)) <= MOST_ACROSS


def _across(published: PublishedTable) -> list[str]:
    """Name the columns of a table with rows and columns: the levels of the second column, or the quantities."""
    if not _only_counts(published):
        return list(dict.fromkeys(cell.quantity for cell in published.cells))
    known = dict.fromkeys(cell.levels[-1] for cell in published.cells)
    levels = [level for level in known if level is not None]
    return [*levels, *([total_name(published)] if None in known else [])]


def _only_counts(published: PublishedTable) -> bool:
    return {cell.quantity for cell in published.cells} == {"count"}


def _with_noise(cell: PublishedCell) -> str:
    half = half_of(cell)
    return f"{value_of(cell)} ±{THIN}{size(half)}" if half else value_of(cell)


def label_of(cell: PublishedCell, published: PublishedTable) -> str:
    """Name a cell by its levels, and a mean by its column too, as ``"Sales / Female"``."""
    levels = _levels_in_words(cell, published)
    return levels if cell.quantity == "count" and _only_counts(published) else f"{cell.quantity}, {levels}"


def _levels_in_words(cell: PublishedCell, published: PublishedTable) -> str:
    total = total_name(published)
    return " / ".join(total if level is None else level for level in cell.levels)


def total_name(published: PublishedTable) -> str:
    """Choose what a margin is called, which is no level of the table."""
    levels = {level for cell in published.cells for level in cell.levels}
    return next((name for name in TOTALS if name not in levels), TOTALS[-1])


def n_below_0(published: PublishedTable) -> int:
    """Count the counts that the noise took below 0."""
    return sum(cell.quantity == "count" and (cell.value or 0.0) < 0 for cell in published.cells)


def value_of(cell: PublishedCell) -> str:
    """Write a count as a whole number, a mean to the second digit of its noise."""
    if cell.value is None:
        return NOTHING
    if cell.quantity == "count":
        return near(cell.value)
    if not cell.noise_std:
        return f"{cell.value:,.12g}"
    digits = significant(cell.noise_std)
    return near(cell.value, 0 if "e" in digits else len(digits.partition(".")[2]))


def half_of(cell: PublishedCell) -> float:
    """Return half of the interval of the noise, the longer one; its deviation where there is none, 0 without noise."""
    if cell.value is None or cell.high is None or cell.low is None:
        return cell.noise_std or 0.0
    return max(cell.high - cell.value, cell.value - cell.low)


def planned_rows(result: ReleaseResult) -> list[Cells]:
    """List the noise of each number that a release would publish, and its sampling error."""
    if result.certificate.no_noise:
        return []
    return [_planned(number, Sentence(f"exact.{result.certificate.promise}")) for number in result.about.planned]


def _planned(number: PlannedNumber, exact: Text) -> Cells:
    noise, half, sampling = number.noise_std, number.noise_95, number.sampling_std
    cells: Cells = {"statistic": number.name}
    cells |= dict.fromkeys(("noise_std", "noise_95", "sampling_error", "increase"), NOTHING)
    if noise is None:
        return cells
    cells["noise_std"] = size(noise) if noise else exact
    if half:
        cells["noise_95"] = f"±{THIN}{size(half)}"
    if sampling:
        cells |= {"sampling_error": size(sampling), "increase": _increase(noise, sampling)}
    return cells


def _increase(noise: float, sampling: float) -> str:
    """Say by how much noise makes a sampling error larger; both add in squares."""
    together = math.hypot(noise, sampling)
    return f"+{significant(100 * (together / sampling - 1))}{THIN}%"


def cost_rows(result: ReleaseResult) -> list[Cells]:
    """List standard errors without and with the noise, and the sample that would be as precise."""
    if result.certificate.no_noise:
        return []
    return [_cost(row, result.certificate.k) for row in result.values]


def _cost(row: ReleasedValue, k: int) -> Cells:
    """Compute a row; both errors add in squares, and the sampling error falls as the root of the sample."""
    noise, sampling = row.noise_std, row.sampling_std
    cells: Cells = {"statistic": row.name, "unit": row.unit}
    cells |= dict.fromkeys(("sampling_error", "noise", "together", "increase", "equivalent_sample"), NOTHING)
    if noise is not None:
        cells["noise"] = size(noise)
    if noise is not None and sampling:
        worth = Sentence("size.of", {"size": count(sample_worth(noise, sampling, k)), "of": count(k)})
        cells |= {"sampling_error": size(sampling), "together": size(math.hypot(noise, sampling))}
        cells |= {"increase": _increase(noise, sampling), "equivalent_sample": worth}
    return cells


def sample_worth(noise: float, sampling: float, k: int) -> int:
    """Compute the size of a sample without noise that has the error of this one, rounded down.

    >>> sample_worth(noise=0.56, sampling=0.57, k=500)
    254
    """
    return math.floor(k * (sampling / math.hypot(noise, sampling)) ** 2)


def shortened(titled: Sequence[tuple[str, ReleaseResult]]) -> Table | None:
    """Choose what a terminal shows: one table of few rows, several statistics below each other."""
    published = titled[0][1].about.table
    if len(titled) == 1 and published is not None and is_crossed(published):
        in_full = crossed(published)
        if len(in_full.heads) <= MOST_ACROSS_TERMINAL:
            return first_rows(in_full)
    rows: list[Cells] = []
    for name, result in titled:
        own = value_rows(result) if result.values else planned_rows(result)
        if own and name:
            title: Cells = {"statistic": f"{capital(name)}:"}
            rows.append(title)
        rows += own
    columns = dict.fromkeys(column for row in rows for column in row)
    filled: list[Cells] = [dict.fromkeys(columns, "") | row for row in rows]
    return first_rows(table(filled)) if filled else None


def first_rows(whole: Table) -> Table:
    """Keep the first rows, and say how many more there are."""
    n_more = len(whole.rows) - MOST_IN_TERMINAL + len(whole.folded) + int(whole.n_left_out.replace(",", "") or 0)
    rows = list(whole.rows[:MOST_IN_TERMINAL])
    if n_more > 0:
        rows.append(Row([Sentence("size.more", {"n": count(n_more)}), *("" for _ in whole.heads[1:])]))
    return Table("", whole.heads, rows)
