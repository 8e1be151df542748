"""How a CSV file is written: what stands between columns, the decimal sign, and the encoding."""

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
    """

    separator: str = ","
    encoding: str = "utf-8"

    @property
    def text(self) -> str:
        """What is unusual, in words; empty for commas and UTF-8."""
        parts = [] if self.separator == "," else [f"{NAMES[self.separator]} between columns"]
        if self.encoding == "cp1252":
            parts.append("letters as in Windows-1252")
        elif not self.encoding.startswith("utf-8"):
            parts.append(f"letters in {self.encoding.upper()}")
        return " and ".join(parts)


def dialect_of(path: Path) -> Dialect:
    r"""Find out how a CSV file is written, from its first lines and from whether all of it is UTF-8.

    Parameters
    ----------
    path : Path

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
    Dialect(separator=';', encoding='cp1252')
    """
    encoding = _encoding(path)
    with path.open(encoding=encoding, errors="replace", newline="") as file:
        lines = [line for line in (file.readline(LONGEST_CSV_LINE) for _ in range(LINES)) if line.strip()]
    return Dialect(_separator(lines), encoding)


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
        column = frame.iloc[:, place]
        if pd.api.types.is_numeric_dtype(column):
            continue
        values = [value.strip() for value in column.dropna().unique() if isinstance(value, str)]
        if len(values) < column.nunique() or not any(_COMMA.fullmatch(value) for value in values):
            continue
        if not all(_WHOLE_OR_COMMA.fullmatch(value) or _THOUSANDS.fullmatch(value) for value in values):
            continue
        name = str(frame.columns[place])
        with_comma = [value for value in values if "," in value]
        if all(_THOUSANDS.fullmatch(value) for value in with_comma):
            raise Refused(
                f"{path}: column {name!r} has {with_comma[0]}, which may be a decimal comma or a separator of "
                "thousands; write its numbers with a decimal point, or without the separator"
            )
        numbers = column.map(lambda value: float(value.replace(",", ".")) if isinstance(value, str) else float("nan"))
        frame = frame.assign(**{name: numbers}) if frame.columns.is_unique else frame
        converted.append(name)
    return frame, converted


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
