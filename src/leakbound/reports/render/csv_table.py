"""What a protected release publishes, as a CSV file: a row a number, with its noise and the interval of that."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence

from leakbound.core.checks import visible
from leakbound.reports import Report
from leakbound.reports.about import ProtectedAbout, PublishedTable, about_as
from leakbound.reports.numbers import noise_interval
from leakbound.reports.results.release.designs import named
from leakbound.reports.results.release.result import release_result
from leakbound.reports.results.release.table import label_of, total_name

_OF_95_PERCENT = {"gaussian": 1.959964}  # half of the central interval, of the standard deviation
# low and high are the ends of the central 95 % interval of the noise; empty where it is not Gaussian. The last is the
# sampling error if the rows were a simple random sample; empty where it is no function of released numbers.
_NUMBERS = ("value", "noise_std", "low", "high", "simple_random_sampling_std")


def released_csv(report: Report) -> str:
    """Write the released numbers as CSV."""
    about = about_as(ProtectedAbout, report.about)
    if about.statistics:
        released = release_result(report).by_statistic
        rows = ([name, *row] for name, own in released for row in _rows_of_one(own.about))
        return _as_csv(["statistic", "name", *_NUMBERS], rows)
    if about.table is None:
        return _as_csv(["name", *_NUMBERS], _rows_of_values(about))
    return _as_csv([*about.table.by, "quantity", *_NUMBERS], _rows_of_table(about.table))


def planned_csv(report: Report) -> str:
    """Write the noise of each number that a release would publish as CSV."""
    about = about_as(ProtectedAbout, report.about)
    of_several = ["statistic"] if about.statistics else []
    rows = []
    for number in about.planned:
        errors = (number.noise_std, number.noise_95, number.sampling_std)
        names = [number.statistic, number.name] if of_several else [number.name]
        rows.append([*names, *(_six_digits(error) for error in errors)])
    return _as_csv([*of_several, "name", "noise_std", "noise_95", "sampling_std"], rows)


def designs_csv(report: Report) -> str:
    """Write what each design would cost as CSV."""
    facts = about_as(ProtectedAbout, report.about).designs
    if facts is None:
        return ""
    known = [design for design in facts.designs if design.errors is not None]
    columns = [facts.standard_errors, *(design.errors or () for design in known)]
    rows = (
        [label, *(_six_digits(error) for error in errors)]
        for label, *errors in zip(facts.labels, *columns, strict=True)
    )
    return _as_csv(["name", "standard_error", *(named(design) for design in known)], rows)


def _as_csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return visible(text.getvalue())


def _rows_of_one(about: ProtectedAbout) -> Iterator[Sequence[str]]:
    """Write the numbers of one of several statistics; those of a table under the names of its cells."""
    if about.table is None:
        yield from _rows_of_values(about)
        return
    for cell, row in zip(about.table.cells, _rows_of_table(about.table), strict=True):
        yield [label_of(cell, about.table), *row[len(about.table.by) + 1 :]]


def _rows_of_table(table: PublishedTable) -> Iterator[Sequence[str]]:
    total = total_name(table)
    for cell in table.cells:
        levels = [total if level is None else level for level in cell.levels]
        write = _whole if cell.quantity == "count" else _all_digits
        value, low, high = (write(number) for number in (cell.value, cell.low, cell.high))
        noise, sampling = _six_digits(cell.noise_std), _six_digits(cell.sampling_std)
        yield [*levels, cell.quantity, value, noise, low, high, sampling]


def _rows_of_values(about: ProtectedAbout) -> Iterator[Sequence[str]]:
    factor = _OF_95_PERCENT.get(about.certificate.noise.family.lower())
    for row in about.values:
        low, high = row.low, row.high
        if low is None and row.value is not None and row.noise_std is not None and factor is not None:
            low, high = noise_interval(row.value, row.noise_std, factor)
        value, low, high = (_all_digits(number) for number in (row.value, low, high))
        yield [row.name, value, _six_digits(row.noise_std), low, high, _six_digits(row.sampling_std)]


def _all_digits(value: float | None) -> str:
    """Write a number that is rounded already; nothing for none."""
    return "" if value is None else repr(value)


def _whole(value: float | None) -> str:
    """Write a whole number; nothing for none."""
    return "" if value is None else f"{value:.0f}"


def _six_digits(value: float | None) -> str:
    """Write a number with six digits; nothing for none."""
    return "" if value is None else f"{value:.6g}"
