"""No cell of a CSV file is read as another value: random tables in the dialects of many programs, or one line."""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leakscope.data import read
from tests.data.csv_writers import (
    BEYOND_CP1252,
    ROUND_TRIP,
    TEXTS,
    WITH_ROW_NAMES,
    Cell,
    Dialect,
    Table,
    by_pandas,
    random_table,
)
from tests.marks import nightly

MISSING = {"", "NA", "N/A", "null", "nan", "NULL"}  # docs/your-models.md
REFUSALS = re.compile(
    r"(line \d+ has a quote inside|the quote that line|holds numbers alone|(has|have) no value in any column|no rows or no columns|a game needs at least 2 points|"
    r"say which is the decimal sign|say --decimal , if it is a number|say which with --separator|the header has one name|"
    r"line \d+ has \d+ fields|line \d+ is empty|some lines end with a carriage return|has no name in the header)"
)
PANDAS = [("pandas", ",", "."), ("pandas with semicolons", ";", ".")]


def written(dialect: Dialect, table: Table) -> bytes:
    return dialect.write(table)


def is_read_as(cell: Cell, value: Any, dialect: Dialect) -> bool:
    """Tell whether a value that was read is what was written."""
    text = dialect.text(cell)
    if pd.isna(value):
        return cell is None or text in MISSING or text == "None"
    if cell is None:
        return False
    if isinstance(cell, bool):
        return value == cell if isinstance(value, bool | np.bool_) else value == text
    if isinstance(cell, int) and isinstance(value, str):
        return abs(cell) > 2**53 and re.sub("[.,]", "", value) == text  # more digits than a number of the column holds
    if isinstance(cell, int | float):
        return float(value) == float(text) and (not isinstance(cell, int) or int(value) == cell)
    if isinstance(value, str):
        return value == cell
    if isinstance(value, bool | np.bool_):
        return cell.lower() == str(value).lower()
    if re.fullmatch(r"\d+", cell):
        return str(int(value)) == cell
    return float(cell) == value


def texts_for(dialect: Dialect) -> tuple[str, ...]:
    if dialect.encoding == "cp1252":
        return TEXTS
    if dialect.quotes == "none":
        # without quotes nothing tells a separator in a text from one between two
        return tuple(text for text in TEXTS if not set(text) & set("\t\r\n") and not text.startswith('"'))
    return TEXTS + BEYOND_CP1252


def check(path: Path, content: bytes, table: Table, dialect: Dialect) -> str:
    """Compare a file with the table; return why it was refused, or nothing."""
    path.write_bytes(content)
    try:
        frame = read(path).points.x
    except ValueError as refusal:
        assert "\n" not in str(refusal)
        reason = REFUSALS.search(str(refusal))
        assert reason, f"{refusal}\n{content!r}"
        return re.sub(r"\d+", "N", reason[0])
    assert list(frame.columns) == table.names, content
    assert len(frame) == len(table.columns[0]), content
    for name, cells in zip(table.names, table.columns, strict=True):
        for record, (cell, value) in enumerate(zip(cells, frame[name].tolist(), strict=True)):
            assert is_read_as(cell, value, dialect), f"{name!r} of {record}: {cell!r} is read as {value!r}\n{content!r}"
    return ""


@pytest.mark.parametrize("n_tables", [2_000, nightly(50_000)])
def test_every_cell_is_the_one_that_was_written_or_the_file_is_refused(tmp_path: Path, n_tables: int) -> None:
    chance = random.Random(0)
    outcomes: dict[str, Counter[str]] = {}
    for number in range(n_tables):
        place = number % (len(ROUND_TRIP) + len(PANDAS))
        if place < len(ROUND_TRIP):
            dialect = ROUND_TRIP[place]
            table = random_table(chance, texts_for(dialect))
            content = dialect.write(table)
        else:
            name, separator, decimal = PANDAS[place - len(ROUND_TRIP)]
            dialect = Dialect(name, ROUND_TRIP[0].text, separator, decimal)
            table = random_table(chance, texts_for(dialect))
            content = by_pandas(table, separator, decimal)
        outcome = check(tmp_path / "table.csv", content, table, dialect)
        outcomes.setdefault(dialect.name, Counter())[outcome] += 1
    for name, counts in outcomes.items():
        print(name, dict(counts))
        assert counts[""] > 0.3 * counts.total(), (name, counts)
