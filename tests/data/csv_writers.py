"""Random tables, and CSV files of them as pandas, R, spreadsheets and databases write them.

The writers of R and of spreadsheets are written from their documentation, without the reader under test.
"""

from __future__ import annotations

import datetime as dt
import io
import random
import re
from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

Cell = None | bool | int | float | str
TEXTS = (
    *(
        "",
        "NA",
        "None",
        "null",
        "nan",
        "N/A",
        "-",
        "?",
        ".",
        "inf",
        "x",
        "Bern",
        "Genève",
        "Zürich",
        "a b",
        " a",
        "a ",
        "A",
    ),
    *(
        "a,b",
        "a;b",
        "a|b",
        "a\tb",
        'say "hi"',
        '"',
        '""',
        "it's",
        "a\nb",
        "\n",
        "a\r\nb",
        "back\\",
        "\\",
        '\\"',
        "#1",
        "=1+1",
    ),
    *(
        "TRUE",
        "true",
        "False",
        "yes",
        "1",
        "1.0",
        "01",
        "007",
        "0",
        "00",
        "1e5",
        "1E5",
        "+5",
        "-0",
        "12345678901234567890",
    ),
    *(
        "9007199254740993",
        "1,5",
        "1.5",
        "1,234",
        "1.234",
        "1.234,5",
        "1,234.5",
        "1 234",
        "5%",
        "0x1A",
        "1_000",
        "24.12.2020",
    ),
)
BEYOND_CP1252 = ("Łódź", "Ж", "日本", "e\u0301", "\u202f", "🙂", "\ufeff")
NAMES = (
    "age",
    "wage",
    "name",
    "a b",
    "a,b",
    "a;b",
    'the "x"',
    "größe",
    "x1",
    "1",
    "2020",
    "NA",
    "None",
    "true",
    " a",
    "a|b",
)
MOST_RECORDS, MOST_COLUMNS = 8, 5


@dataclass(frozen=True)
class Table:
    """Columns of cells, each of one kind: text, number, truth or date."""

    names: list[str]
    kinds: list[str]
    columns: list[list[Cell]]


def random_table(chance: random.Random, texts: tuple[str, ...] = TEXTS) -> Table:
    """Draw a table; one of its kinds of numbers, texts, dates and truths for each column, and missing cells."""
    n, d = chance.randint(2, MOST_RECORDS), chance.randint(1, MOST_COLUMNS)
    kinds = chance.choices(("text", "plain", "whole", "large", "decimal", "money", "truth", "date"), k=d)
    p_missing = chance.choice((0.0, 0.0, 0.2, 0.6))
    columns = [_column(chance, kind, n, p_missing, texts) for kind in kinds]
    # a comma in the only name may separate columns, where it is no decimal sign
    names = chance.sample(NAMES, d) if d > 1 else [chance.choice(("wage", "a b", " a", "größe"))]
    return Table(names, kinds, columns)


def _column(chance: random.Random, kind: str, n: int, p_missing: float, texts: tuple[str, ...]) -> list[Cell]:
    pool = chance.sample(texts, chance.randint(1, 4))
    scale = 10.0 ** chance.randint(-8, 12)
    digits = chance.randint(1, 4)
    draw: dict[str, Callable[[], Cell]] = {
        "text": lambda: chance.choice(pool) if chance.random() < 0.8 else chance.choice(texts),
        "plain": lambda: chance.choice(("low", "high", "Zürich", "x y")),
        "whole": lambda: chance.randint(-5, 2000),
        "large": lambda: chance.randint(-(2**63), 2**63 - 1),
        "decimal": lambda: chance.gauss(0, 1) * scale,
        "money": lambda: round(chance.uniform(-20, 3000), digits),
        "truth": lambda: chance.random() < 0.5,
        "date": lambda: (dt.date(1950, 1, 1) + dt.timedelta(chance.randint(0, 30000))).isoformat(),
    }
    cells = [None if chance.random() < p_missing else draw[kind]() for _ in range(n)]
    if kind == "text" and not any(_has_letter(cell) for cell in cells):
        # a column of texts that are all numbers with a comma is a column of numbers to every reader
        return [cell.replace(",", "").replace(".", "") if isinstance(cell, str) else cell for cell in cells]
    return cells


def _has_letter(cell: Cell) -> bool:
    return isinstance(cell, str) and not re.fullmatch(r"[\d.,+-]*([eE]\d+)?|NA|None|null|nan|N/A|inf", cell)


@dataclass(frozen=True)
class Dialect:
    """How a program writes tables: `text` is what it writes for a cell, before quotes."""

    name: str
    text: Callable[[Cell], str]
    separator: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    line_end: str = "\n"
    quotes: str = "minimal"  # or texts, all, none
    escape: str = '""'  # for a quote inside of quotes
    row_names: bool = False
    header_of_row_names: bool = True
    empty_lines: int = 0
    thousands: bool = False

    def write(self, table: Table) -> bytes:
        """Write a table with its header."""
        rows: list[list[Cell]] = [list(row) for row in zip(*table.columns, strict=True)]
        header: list[Cell] = list(table.names)
        if self.row_names:
            rows = [[f"{number}", *row] for number, row in enumerate(rows, start=1)]
            header = ["", *header] if self.header_of_row_names else header
        lines = [self.separator.join(self._field(cell) for cell in row) or '""' for row in [header, *rows]]
        text = self.line_end.join(lines) + self.line_end * (1 + self.empty_lines)
        return text.encode(self.encoding)

    def _field(self, cell: Cell) -> str:
        text = self.text(cell)
        if isinstance(cell, int | float) and not isinstance(cell, bool):
            text = _number(text, self.decimal, self.thousands)
        special = any(sign in text for sign in (self.separator, '"', "\n", "\r"))
        if self.quotes == "none" or (self.quotes == "minimal" and not special):
            return text
        if self.quotes == "texts" and not isinstance(cell, str):
            return text
        return '"' + text.replace('"', self.escape) + '"'


def _number(text: str, decimal: str, thousands: bool) -> str:
    whole, point, rest = text.partition(".")
    if thousands and whole.lstrip("-").isdigit():
        whole = f"{int(whole):,}" if int(whole) else whole
    return whole.replace(",", "." if decimal == "," else ",") + point.replace(".", decimal) + rest


def in_python(cell: Cell) -> str:
    return "" if cell is None else str(cell)


def in_r(cell: Cell) -> str:
    """R writes 15 digits, TRUE and NA."""
    if cell is None:
        return "NA"
    if isinstance(cell, bool):
        return "TRUE" if cell else "FALSE"
    return f"{cell:.15g}" if isinstance(cell, float) else str(cell)


def in_excel(cell: Cell) -> str:
    """Spreadsheets write what a cell shows: eleven signs of a number."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "TRUE" if cell else "FALSE"
    return f"{cell:.10g}".replace("e", "E") if isinstance(cell, float) else str(cell)


def in_sql(cell: Cell) -> str:
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return "NULL" if cell is None else str(cell)


DIALECTS = [
    Dialect("csv of Python, all in quotes", in_python, quotes="all"),
    Dialect("csv of Python, tabs", in_python, separator="\t", line_end="\r\n"),
    Dialect("R, write.csv", in_r, quotes="texts"),
    Dialect("R, write.csv2", in_r, separator=";", decimal=",", quotes="texts"),
    Dialect("R, write.table with tabs", in_r, separator="\t", quotes="texts", escape='\\"'),
    Dialect("R, write.table without quotes", in_r, separator="\t", quotes="none"),
    Dialect("Excel, American", in_excel, encoding="cp1252", line_end="\r\n"),
    Dialect("Excel, American, thousands", in_excel, encoding="utf-8-sig", line_end="\r\n", thousands=True),
    Dialect("Excel, German", in_excel, ";", ",", "cp1252", "\r\n", empty_lines=2),
    Dialect("Excel, German, UTF-8, thousands", in_excel, ";", ",", "utf-8-sig", "\r\n", thousands=True),
    Dialect("Excel, Unicode text", in_excel, "\t", ",", "utf-16", "\r\n"),
    Dialect("Excel of an old Mac", in_excel, ";", ",", "cp1252", "\r"),
    Dialect("SQL, vertical bars", in_sql, separator="|"),
]
WITH_ROW_NAMES = [
    Dialect("R, write.csv with row names", in_r, quotes="texts", row_names=True),
    Dialect("R, write.csv2 with row names", in_r, ";", ",", quotes="texts", row_names=True),
    Dialect("R, write.table with row names", in_r, "\t", quotes="texts", row_names=True, header_of_row_names=False),
    Dialect("pandas with an index", in_python, row_names=True),
]


PANDAS = [Dialect("pandas", in_python), Dialect("pandas with semicolons", in_python, separator=";")]


def by_pandas(table: Table, dialect: Dialect) -> bytes:
    """Write a table as `DataFrame.to_csv` does."""
    columns = dict(zip(table.names, table.columns, strict=True))
    frame = pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in columns.items()})
    for name, kind in zip(table.names, table.kinds, strict=True):
        if kind in ("decimal", "money"):
            frame[name] = frame[name].astype(float)
    buffer = io.StringIO(newline="")
    frame.to_csv(buffer, index=False, sep=dialect.separator, decimal=dialect.decimal, lineterminator="\n")
    return buffer.getvalue().encode()
