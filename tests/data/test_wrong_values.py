"""No cell of a CSV file is read as another value: random tables in the dialects of many programs, or one line."""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leakbound.data.files import read_table
from tests.data.csv_writers import (
    BEYOND_CP1252,
    DIALECTS,
    PANDAS,
    TEXTS,
    WITH_ROW_NAMES,
    Cell,
    Dialect,
    Table,
    by_pandas,
    random_table,
)
from tests.marks import nightly

MISSING = ("", "NA", "N/A", "null", "nan", "NULL", "None")  # docs/your-models.md; None in columns of numbers alone
REFUSALS = re.compile(
    "has a quote inside|the quote that line|holds numbers alone|no value in any column|no rows or no columns|"
    "say which is the decimal sign|name the sign between the columns|declare it as encoding|zero byte|"
    r"fields where the header has|line \d+ is empty|has no name in the header"
)


def is_long(cell: Cell) -> bool:
    """Tell whether a whole number has more digits than a float holds: its column stays text, all cells as written."""
    return isinstance(cell, int) and abs(cell) > 2**53


def is_read_as(cell: Cell, value: Any, dialect: Dialect, among_long: bool) -> bool:
    """Tell whether a value that was read is what was written, in a column with or without long numbers."""
    text = dialect.text(cell)
    if pd.isna(value):
        return text in MISSING
    if cell is None:
        return False
    if isinstance(cell, bool):
        return value == cell if isinstance(value, bool | np.bool_) else value == text
    if isinstance(cell, int) and isinstance(value, str):
        return among_long and re.sub("[.,]", "", value) == text
    if isinstance(cell, int | float):
        return float(value) == float(text) and (isinstance(cell, float) or int(value) == cell)
    if isinstance(value, str):
        return value == cell
    if isinstance(value, bool | np.bool_):
        return cell.lower() == str(value).lower()
    return str(int(value)) == cell if re.fullmatch(r"\d+", cell) else float(cell) == value


def texts_for(dialect: Dialect) -> tuple[str, ...]:
    if dialect.encoding == "cp1252":
        return TEXTS
    if dialect.quotes == "none":
        # without quotes nothing tells a separator in a text from one between two
        return tuple(text for text in TEXTS if not set(text) & set("\t\r\n") and not text.startswith('"'))
    return TEXTS + BEYOND_CP1252


def refusal_of(path: Path, dialect: Dialect | None = None) -> tuple[pd.DataFrame | None, str]:
    """Read a file with what is declared of it: the table, or the line that it is refused with."""
    try:
        if dialect is None:
            return read_table(path)[0], ""
        return read_table(path, separator=dialect.separator, decimal=dialect.decimal, encoding=dialect.encoding)[0], ""
    except ValueError as refusal:
        return None, str(refusal)


def outcome(path: Path, content: bytes, table: Table, dialect: Dialect, *, is_declared: bool = True) -> str:
    """Compare a file with the table; return why it was refused, or nothing."""
    path.write_bytes(content)
    frame, refusal = refusal_of(path, dialect if is_declared else None)
    if frame is None:
        reason = REFUSALS.search(refusal)
        assert reason, f"{refusal}\n{content!r}"
        assert "\n" not in refusal
        return reason[0]
    assert list(frame.columns) == table.names, content
    for name, cells in zip(table.names, table.columns, strict=True):
        among_long = any(map(is_long, cells))
        for record, (cell, value) in enumerate(zip(cells, frame[name].tolist(), strict=True)):
            is_right = is_read_as(cell, value, dialect, among_long)
            assert is_right, f"{name!r} of {record}: {cell!r} is read as {value!r}\n{content!r}"
    return ""


@pytest.mark.by_day("400")
@pytest.mark.parametrize("n_tables", [400, 2_000, nightly(50_000)])
def test_every_cell_is_the_one_that_was_written_or_the_file_is_refused(tmp_path: Path, n_tables: int) -> None:
    chance = random.Random(n_tables)
    outcomes: dict[str, Counter[str]] = {}
    for number in range(n_tables):
        dialect = (DIALECTS + PANDAS)[number % len(DIALECTS + PANDAS)]
        table = random_table(chance, texts_for(dialect))
        content = by_pandas(table, dialect) if dialect in PANDAS else dialect.write(table)
        counts = outcomes.setdefault(dialect.name, Counter())
        counts[outcome(tmp_path / "table.csv", content, table, dialect)] += 1
        if len(table.names) > 1:  # a file of one column shows no sign between columns, and is read with points
            outcome(tmp_path / "table.csv", content, table, dialect, is_declared=False)
    for name, counts in outcomes.items():
        assert counts[""] > 0.3 * counts.total(), (name, counts)  # most tables are read, whatever is in them


@pytest.mark.parametrize("dialect", DIALECTS + PANDAS, ids=lambda dialect: dialect.name)
def test_an_ordinary_table_is_read_with_its_form_declared(tmp_path: Path, dialect: Dialect) -> None:
    """Names, amounts, counts, truths, dates and missing cells, as spreadsheets of both continents have them."""
    columns: list[list[Cell]] = [
        ["Ann", "Zürich, Kreis 4", None] if dialect.quotes != "none" else ["Ann", "Zürich", None],
        [1234.5, 12.25, 0.5],
        [30, 1441, 7],
        [True, False, True],
        ["1980-03-31", None, "1975-11-02"],
    ]
    table = Table(["name", "wage", "age", "ill", "born"], ["plain", "decimal", "whole", "truth", "date"], columns)
    content = by_pandas(table, dialect) if dialect in PANDAS else dialect.write(table)
    assert outcome(tmp_path / "table.csv", content, table, dialect) == ""
    frame, _ = refusal_of(tmp_path / "table.csv", dialect)
    assert frame is not None
    assert frame["wage"].tolist() == columns[1]
    assert frame["age"].tolist() == columns[2]


@pytest.mark.parametrize("dialect", WITH_ROW_NAMES, ids=lambda dialect: dialect.name)
def test_row_names_are_refused_with_what_to_do(tmp_path: Path, dialect: Dialect) -> None:
    chance = random.Random(0)
    for _ in range(20):
        table = random_table(chance, ("a", "b", "Bern", "x y"))
        named = replace(table, names=["age", "wage", "name", "ill", "born"][: len(table.names)])
        (tmp_path / "table.csv").write_bytes(dialect.write(named))
        _, refusal = refusal_of(tmp_path / "table.csv", dialect)
        assert re.search("row names, as R and pandas write them, name it|row names, give that column a name", refusal)
