"""How a CSV file is written: what separates columns, the decimal sign, and the encoding."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from leakscope.core.untrusted import LONGEST_CSV_LINE, Refused

SEPARATORS = (",", ";", "\t", "|")
LINES = 20  # that are read to find out
BYTE_ORDER_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
NAMES = {"\t": "tabs", ";": "semicolons", "|": "vertical bars", ",": "commas"}
_COMMA = re.compile(r"[+-]?\d+,\d+")  # 12,5
_WHOLE_OR_COMMA = re.compile(r"[+-]?\d+(,\d+)?")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+")  # 1,234 may be a thousand or a little more than one


@dataclass(frozen=True)
class Dialect:
    """How a CSV file is written.

    Parameters
    ----------
    separator : str
        One character between two columns.
    encoding : str
        As Python names it.
    decimal : {".", ","}, optional
        Where it was said; otherwise decimal commas are looked for.
    """

    separator: str = ","
    encoding: str = "utf-8"
    decimal: str | None = None

    @property
    def text(self) -> str:
        """What is unusual, in words; empty for commas and UTF-8."""
        sign = NAMES.get(self.separator, repr(self.separator))
        parts = [] if self.separator == "," else [f"{sign} between columns"]
        if self.encoding == "cp1252":
            parts.append("letters as in Windows-1252")
        elif not self.encoding.startswith("utf-8"):
            parts.append(f"letters in {self.encoding.upper()}")
        if self.decimal == ",":
            parts.append("decimal commas")
        return " and ".join(parts)


def dialect_of(
    path: Path, separator: str | None = None, decimal: str | None = None, encoding: str | None = None
) -> Dialect:
    r"""Find out how a CSV file is written, from its first lines and from whether all of it is UTF-8.

    Parameters
    ----------
    path : Path
    separator, decimal, encoding : str, optional
        What is known of it.

    Returns
    -------
    Dialect
        The separator that splits the header and the first lines into equally many columns, of which the header has
        most; a comma if there is none. The encoding of the byte order mark; without one UTF-8 or, if it is none,
        Windows-1252, in which nearly every sequence of bytes is a text.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from leakscope.data.csv_dialect import dialect_of
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "people.csv"
    ...     _ = file.write_bytes("ort;alter\nZürich;30\n".encode("latin-1"))
    ...     dialect_of(file)
    Dialect(separator=';', encoding='cp1252', decimal=None)
    """
    encoding = encoding or _encoding(path)
    if separator is not None:
        return Dialect(separator, encoding, decimal)
    with path.open(encoding=encoding, errors="replace", newline="") as file:
        lines = [line for line in (file.readline(LONGEST_CSV_LINE) for _ in range(LINES)) if line.strip()]
    return Dialect(_separator(lines), encoding, decimal)


def with_decimal_commas(frame: pd.DataFrame, path: Path) -> tuple[pd.DataFrame, list[str]]:
    """Read columns of text such as 12,5 as numbers.

    Parameters
    ----------
    frame : DataFrame
        Of a file whose columns are not separated by commas.
    path : Path
        What the error names.

    Returns
    -------
    frame : DataFrame
    names : list of str
        The columns that were read so.

    Raises
    ------
    ValueError
        Where every comma has three digits behind it and may separate thousands.
    """
    converted = []
    for place in range(frame.shape[1]):
        values = _texts(frame.iloc[:, place])
        if not any(_COMMA.fullmatch(value) for value in values):
            continue
        if not all(_WHOLE_OR_COMMA.fullmatch(value) or _THOUSANDS.fullmatch(value) for value in values):
            continue
        name = str(frame.columns[place])
        with_comma = [value for value in values if "," in value]
        if all(_THOUSANDS.fullmatch(value) for value in with_comma):
            raise Refused(
                f"{path}: column {name!r} has {with_comma[0]}, which may be a decimal comma or a separator of "
                "thousands; say which is the decimal sign: --decimal , or --decimal ."
            )
        frame = _with_numbers(frame, place, ",")
        converted.append(name)
    return frame, converted


def with_thousands(frame: pd.DataFrame, decimal: str) -> tuple[pd.DataFrame, list[str]]:
    """Read columns of text such as 1,234.5 as numbers, where the decimal sign is known.

    Parameters
    ----------
    frame : DataFrame
    decimal : {".", ","}
        The decimal sign; the other one separates thousands.

    Returns
    -------
    frame : DataFrame
    names : list of str
        The columns that were read so.

    Examples
    --------
    >>> import pandas as pd
    >>> from leakscope.data.csv_dialect import with_thousands
    >>> frame, names = with_thousands(pd.DataFrame({"pay": ["1.234,5", "20"]}), ",")
    >>> frame["pay"].tolist(), names
    ([1234.5, 20.0], ['pay'])
    """
    sign, point = re.escape("." if decimal == "," else ","), re.escape(decimal)
    number = re.compile(rf"[+-]?(\d+|\d{{1,3}}({sign}\d{{3}})+)({point}\d+)?")
    converted = []
    for place in range(frame.shape[1]):
        values = _texts(frame.iloc[:, place])
        if values and all(number.fullmatch(value) for value in values):
            frame = _with_numbers(frame, place, decimal)
            converted.append(str(frame.columns[place]))
    return frame, converted


def _texts(column: pd.Series) -> list[str]:
    """Return the different values of a column of text, and nothing of other columns."""
    if pd.api.types.is_numeric_dtype(column):
        return []
    values = [value.strip() for value in column.dropna().unique() if isinstance(value, str)]
    return values if len(values) == column.nunique() else []


def _with_numbers(frame: pd.DataFrame, place: int, decimal: str) -> pd.DataFrame:
    """Replace a column of text by its numbers; names that are there twice are refused later."""
    thousands = "." if decimal == "," else ","

    def number(value: object) -> float:
        return float(value.replace(thousands, "").replace(decimal, ".")) if isinstance(value, str) else float("nan")

    name = frame.columns[place]
    return frame.assign(**{str(name): frame.iloc[:, place].map(number)}) if frame.columns.is_unique else frame


def _encoding(path: Path) -> str:
    with path.open("rb") as file:
        start = file.read(4)
        for mark, name in BYTE_ORDER_MARKS.items():
            if start.startswith(mark):
                return name
        file.seek(0)
        try:
            while block := file.readline(1 << 20):  # a line of UTF-8 ends with a whole letter
                if len(block) == 1 << 20 or b"\0" in block:
                    return "utf-8"  # longer lines are refused later, and 0 is in no text: the parser says what it is
                block.decode("utf-8")
        except UnicodeDecodeError:
            return "cp1252"
    return "utf-8"


def _separator(lines: Sequence[str]) -> str:
    """Find the separator that splits lines into equally many columns."""
    best, most = ",", 1
    for separator in SEPARATORS:
        try:
            widths = Counter(len(row) for row in csv.reader(lines, delimiter=separator))
        except csv.Error:
            continue
        # a table may have ragged lines; commas are kept unless another separator splits all lines alike
        width, n_lines = widths.most_common(1)[0] if widths else (1, 0)
        if separator == ",":
            regular = n_lines == len(lines)
            most = width if regular else 1
        elif n_lines == len(lines) and width > most:
            best, most = separator, width
    return best
