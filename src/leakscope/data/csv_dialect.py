"""How a CSV file is written: what separates columns, the decimal sign, and the encoding.

What a file leaves open is not guessed: it is refused, with the flag that says it.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from leakscope.core.untrusted import LONGEST_CSV_LINE, Refused

SEPARATORS = (",", ";", "\t", "|")
LINES = 20  # that are read to find out
BYTE_ORDER_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
NAMES = {"\t": "tabs", ";": "semicolons", "|": "vertical bars", ",": "commas"}
# what R, databases, pandas and spreadsheets write for a missing value; None is one in columns of numbers alone
MISSING = ("", "NA", "N/A", "n/a", "#N/A", "#NA", "<NA>", "NULL", "null", "NaN", "nan", "-NaN", "-nan")
_NONE = "None"
_BLOCK = 1 << 20
_ROWS = 1_000  # that are looked at together; the first ones mostly show the decimal sign
_EXACT = 2.0**53  # larger whole numbers are not all exact in float64
# a number with each decimal sign: 1234,5 or 1.234,5, with an exponent or not
_NUMBERS = {
    decimal: re.compile(rf"\s*[+-]?(\d+|[1-9]\d{{0,2}}({thousands}\d{{3}})+)?({sign}\d*)?([eE][+-]?\d+)?\s*")
    for decimal, sign, thousands in ((".", r"\.", ","), (",", ",", r"\."))
}
_POINT, _COMMA, _EITHER = frozenset("."), frozenset(","), frozenset(".,")
_ASKED = "say which is the decimal sign: --decimal , or --decimal ."
_PADDED = re.compile(r"0\d+")
TextsOf = Callable[..., Any]  # (places, **options of read_csv): the texts of these columns
_WHOLE = re.compile(r"\s*[+-]?\d+\s*")


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
        Where it is known.
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

    The separator is the one that splits the header and the first lines into equally many columns; a comma if there is
    none. The encoding is that of the byte order mark; without one UTF-8 or, if it is none, Windows-1252.

    Raises
    ------
    ValueError
        In one line, if two separators or two encodings are possible.

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
        lines = [file.readline(LONGEST_CSV_LINE) for _ in range(LINES)]
    return Dialect(_separator(path, [line for line in lines if line.strip()]), encoding, decimal)


def numbers_in_texts(frame: pd.DataFrame) -> dict[int, list[str]]:
    """Return the different values of columns of text whose first value is a number, by the places of the columns.

    Examples
    --------
    >>> import pandas as pd
    >>> from leakscope.data.csv_dialect import numbers_in_texts
    >>> numbers_in_texts(pd.DataFrame({"pay": ["12,5", "20"], "age": [30, 40], "town": ["Chur", "Bern"]}))
    {0: ['12,5', '20']}
    """
    columns = {}
    for place, dtype in enumerate(frame.dtypes):
        if pd.api.types.is_numeric_dtype(dtype):
            continue
        column = frame.iloc[:, place]
        first = next((value for value in column if isinstance(value, str) and value not in (_NONE, *MISSING)), "")
        if not any(_is_number(first, sign) for sign in _NUMBERS):
            continue  # most columns end here
        values = [value for value in column.dropna().unique() if value != _NONE]
        if all(isinstance(value, str) for value in values):
            columns[place] = values
    return columns


def decimal_sign(path: Path, frame: pd.DataFrame, separator: str, texts_of: TextsOf) -> str:
    """Find the decimal sign that the numbers of a file show; a file has one.

    Parameters
    ----------
    path : Path
    frame : DataFrame
        The file, read with decimal points.
    separator : str
    texts_of : callable
        Reads the texts of the columns at some places, in parts of so many rows.

    Raises
    ------
    ValueError
        Where numbers such as 1,234 are all there is, or where columns show different signs.
    """
    # a column and its text for each set of signs: one sign is evidence, two leave it open
    shown: dict[frozenset[str], tuple[str, str]] = {}
    for place, texts in numbers_in_texts(frame).items():
        signs, example = _signs(texts)
        shown.setdefault(signs, (str(frame.columns[place]), example))
    shown.pop(frozenset(), None)
    if not shown and separator == "," and frame.shape[1] > 1:
        return "."
    floats = [place for place, dtype in enumerate(frame.dtypes) if pd.api.types.is_float_dtype(dtype)]
    if _POINT not in shown and floats:
        with texts_of(floats, chunksize=_ROWS) as parts:
            shown = _points(parts) | shown
    if _POINT in shown and _COMMA in shown:
        (name, point), (other, comma) = shown[_POINT], shown[_COMMA]
        raise Refused(f"{path}: column {name!r} has {point} and column {other!r} has {comma}; {_ASKED}")
    if _COMMA in shown and separator == ",":
        name, comma = shown[_COMMA]
        raise Refused(
            f"{path}: column {name!r} has {comma}; say --decimal , if it is a number with a decimal comma, --decimal . "
            "if it is a text"
        )
    if list(shown) == [_EITHER]:
        name, example = shown[_EITHER]
        sign = "comma" if "," in example else "point"
        raise Refused(
            f"{path}: column {name!r} has {example}, which may be a decimal {sign} or a separator of thousands; "
            f"{_ASKED}"
        )
    return "," if _COMMA in shown else "."


def _points(parts: Iterable[pd.DataFrame]) -> dict[frozenset[str], tuple[str, str]]:
    """Find a number such as 12.5 in columns of numbers with points; or 1.234, which leaves the sign open."""
    either = {}
    for part in parts:
        for name, column in part.items():
            pointed = [text for text in column.dropna() if "." in text]
            if not pointed:
                continue
            sure = next((text for text in pointed if not _is_number(text, ",")), None)
            if sure is not None:
                return {_POINT: (str(name), sure)}
            either.setdefault(_EITHER, (str(name), pointed[0]))
    return either


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
    thousands = "." if decimal == "," else ","
    numbers, names = {}, []
    for place, values in numbers_in_texts(frame).items():
        if not all(_is_number(value, decimal) for value in values):
            continue
        texts = frame.iloc[:, place].replace(_NONE, np.nan)
        plain = texts.str.replace(thousands, "", regex=False).str.replace(decimal, ".", regex=False)
        numbers[str(frame.columns[place])] = pd.to_numeric(plain)
        if any(thousands in value for value in values):
            names.append(str(frame.columns[place]))
    return (frame.assign(**numbers) if numbers else frame), names


def with_codes(
    frame: pd.DataFrame, padded: Iterable[int], thousands: str, texts_of: TextsOf
) -> tuple[pd.DataFrame, list[str]]:
    """Keep columns as texts that lose digits as numbers: 007, and whole numbers that float64 does not hold.

    Parameters
    ----------
    frame : DataFrame
    padded : iterable of int
        Places of columns with a field that begins with a zero and a digit.
    thousands : str
        The sign between thousands.
    texts_of : callable
        Reads the texts of the columns at some places.

    Returns
    -------
    frame : DataFrame
    names : list of str
        The columns that were kept.
    """
    # pandas keeps whole numbers of more than 64 bits as objects, or as texts with texts for missing values
    unread = {place for place, texts in numbers_in_texts(frame).items() if set(texts) & set(MISSING)}
    doubtful = set(unread)
    for place, (_, column) in enumerate(frame.items()):
        if (place in padded and not pd.api.types.is_string_dtype(column)) or _may_be_inexact(column):
            doubtful.add(place)
    codes = {}
    if doubtful:
        places = sorted(doubtful)
        for place, (name, texts) in zip(places, texts_of(places).items(), strict=True):
            if place in unread or _is_code(texts.dropna().unique(), thousands):
                codes[str(name)] = texts
    return (frame.assign(**codes) if codes else frame), list(codes)


def _is_code(values: Iterable[str], thousands: str) -> bool:
    return any(_PADDED.fullmatch(value) or _is_inexact(value.replace(thousands, "")) for value in values)


def _may_be_inexact(column: pd.Series) -> bool:
    """Tell whether a column may hold whole numbers that float64 or int64 do not hold."""
    if pd.api.types.is_float_dtype(column):
        values = column.to_numpy()
        return bool(np.fmax.reduce(values, initial=0.0) >= _EXACT or np.fmin.reduce(values, initial=0.0) <= -_EXACT)
    return column.dtype.kind == "O" and any(isinstance(value, int) and value > 1 for value in column.dropna().head(1))


def _is_inexact(text: str) -> bool:
    if not _WHOLE.fullmatch(text):
        return False
    try:
        return int(text) != int(float(text))
    except (OverflowError, ValueError):  # of so many digits that it is a code
        return True


def _signs(texts: Iterable[str]) -> tuple[frozenset[str], str]:
    """Return the decimal signs with which all texts are numbers, and a text with such a sign; nothing if none has one.

    Where 3,450 is among 30.1, and nothing like 3,450.5, both signs are possible: the comma may be a slip.

    Examples
    --------
    >>> _signs(["12,5", "3"]) == ({","}, "12,5"), sorted(_signs(["1.234"])[0]), _signs(["12"])[1]
    (True, [',', '.'], '')
    """
    texts = list(texts)
    example = next((text for text in texts if "," in text or "." in text), "")
    if not example:
        return frozenset(), ""
    signs = frozenset(sign for sign in _NUMBERS if all(_is_number(text, sign) for text in texts))
    if len(signs) == 1:
        (other,) = _EITHER - signs
        grouped = [text for text in texts if other in text]
        if grouped and all(_is_number(text, other) for text in grouped):
            return _EITHER, grouped[0]
    return signs, example


def _is_number(text: str, decimal: str) -> bool:
    return _NUMBERS[decimal].fullmatch(text) is not None and any(sign.isdigit() for sign in text)


def _encoding(path: Path) -> str:
    """Name the encoding; a file that is UTF-8 in one line and not in another one is refused."""
    with path.open("rb") as file:
        start = file.read(4)
        for mark, name in BYTE_ORDER_MARKS.items():
            if start.startswith(mark):
                return name
        file.seek(0)
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            while block := file.read(_BLOCK):
                decoder.decode(block)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            pass
        else:
            return "utf-8"
    content = path.read_bytes()
    if content.decode("utf-8", errors="ignore").isascii():
        return "cp1252"
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = 1 + content.count(b"\n", 0, error.start)
        raise Refused(
            f"{path}: line {line} has a letter that is not UTF-8, others have letters that are: save it in one "
            "encoding, or name the one that it is in, as --encoding cp1252"
        ) from None
    return "utf-8"


def _separator(path: Path, lines: Sequence[str]) -> str:
    """Find the separator that splits lines into equally many columns, and is the only one that does.

    Where none does, one that splits all lines but a shorter header alike: those are row names, and refused as such.
    """
    splitting, with_row_names = [], []
    for separator in SEPARATORS:
        try:
            rows = list(csv.reader(lines, delimiter=separator))
        except csv.Error:
            continue
        # the last of several rows may go on behind these lines, in quotes
        n_names, *widths = [len(row) for row in (rows[:-1] if len(lines) == LINES else rows)] or [0]
        if n_names > 1 and all(width == n_names for width in widths):
            splitting.append(separator)
        elif widths and all(width == n_names + 1 for width in widths):
            with_row_names.append(separator)
    if len(splitting) > 1:
        signs = " and ".join(NAMES[separator] for separator in splitting)
        raise Refused(f"{path}: {signs} both split its first lines into columns; say which with --separator")
    return [*splitting, *with_row_names, ","][0]
