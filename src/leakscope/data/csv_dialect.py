"""How a CSV file is written: what separates columns, the decimal sign, and the encoding.

What a file leaves open is not guessed: it is refused, with the flag that says it.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

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
_SAMPLE = 1_000  # rows that mostly decide what the decimal sign is
_EXACT = 2.0**53  # larger whole numbers are not all exact in float64
# a number with each decimal sign: 1234,5 or 1.234,5, with an exponent or not
_NUMBERS = {
    decimal: re.compile(rf"\s*[+-]?(\d+|[1-9]\d{{0,2}}({thousands}\d{{3}})+)?({sign}\d*)?([eE][+-]?\d+)?\s*")
    for decimal, sign, thousands in ((".", r"\.", ","), (",", ",", r"\."))
}
_POINT, _COMMA = frozenset("."), frozenset(",")
_ASKED = "say which is the decimal sign: --decimal , or --decimal ."
_PADDED = re.compile(r"0\d+")
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


def decimal_sign(
    path: Path, frame: pd.DataFrame, separator: str, texts_of: Callable[[int, int | None], pd.Series]
) -> str:
    """Find the decimal sign that the numbers of a file show; a file has one.

    Parameters
    ----------
    path : Path
    frame : DataFrame
        The file, read with decimal points.
    separator : str
    texts_of : callable
        Returns the texts of the column at a place, of so many rows or of all.

    Raises
    ------
    ValueError
        Where numbers such as 1,234 are all there is, or where columns show different signs.
    """
    # a text for each set of signs that a column may be written with: one sign is evidence, two leave it open
    shown: dict[frozenset[str], tuple[str, str]] = {}

    def look_at(place: int, texts: Iterable[str]) -> frozenset[str]:
        signs, example = _signs(texts)
        if signs:
            shown.setdefault(signs, (str(frame.columns[place]), example))
        return signs

    for place, texts in numbers_in_texts(frame).items():
        look_at(place, texts)
    if not shown and separator == "," and frame.shape[1] > 1:
        return "."
    for place, dtype in enumerate(frame.dtypes):
        if not pd.api.types.is_float_dtype(dtype) or _POINT in shown:
            continue
        if look_at(place, texts_of(place, _SAMPLE).dropna()) != _POINT:
            look_at(place, texts_of(place, None).dropna())
    if _POINT in shown and _COMMA in shown:
        (name, point), (other, comma) = shown[_POINT], shown[_COMMA]
        raise Refused(f"{path}: column {name!r} has {point} and column {other!r} has {comma}; {_ASKED}")
    if _COMMA in shown and separator == ",":
        name, comma = shown[_COMMA]
        raise Refused(
            f"{path}: column {name!r} has {comma}; say --decimal , if it is a number with a decimal comma, --decimal . "
            "if it is a text"
        )
    if shown and _POINT not in shown and _COMMA not in shown:
        name, example = next(iter(shown.values()))
        sign = "comma" if "," in example else "point"
        raise Refused(
            f"{path}: column {name!r} has {example}, which may be a decimal {sign} or a separator of thousands; {_ASKED}"
        )
    return "," if _COMMA in shown else "."


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
    frame: pd.DataFrame, padded: Iterable[int], thousands: str, texts_of: Callable[[int, int | None], pd.Series]
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
        Returns the texts of the column at a place.

    Returns
    -------
    frame : DataFrame
    names : list of str
        The columns that were kept.
    """
    numbers = frame.select_dtypes("float")
    is_large = (numbers.max() >= _EXACT) | (numbers.min() <= -_EXACT)
    large = set(numbers.columns[is_large.to_numpy(dtype=bool)])
    # pandas keeps whole numbers of more than 64 bits as objects, or as texts with texts for missing values
    unread = {frame.columns[place] for place, texts in numbers_in_texts(frame).items() if set(texts) & set(MISSING)}
    codes = {}
    for place, (name, dtype) in enumerate(zip(frame.columns, frame.dtypes, strict=True)):
        is_number = pd.api.types.is_numeric_dtype(dtype) or dtype == object
        if name in large | unread or dtype == object or (place in padded and is_number):
            texts = texts_of(place, None)
            values = texts.dropna().unique()
            is_code = any(_PADDED.fullmatch(value) or _is_inexact(value.replace(thousands, "")) for value in values)
            if is_code or name in unread:
                codes[str(name)] = texts
    return (frame.assign(**codes) if codes else frame), list(codes)


def _is_inexact(text: str) -> bool:
    if not _WHOLE.fullmatch(text):
        return False
    try:
        return int(text) != int(float(text))
    except (OverflowError, ValueError):  # of so many digits that it is a code
        return True


def _signs(texts: Iterable[str]) -> tuple[frozenset[str], str]:
    """Return the decimal signs with which all texts are numbers, and a text with such a sign; nothing if none has one.

    Examples
    --------
    >>> _signs(["12,5", "3"]) == ({","}, "12,5"), sorted(_signs(["1.234"])[0]), _signs(["12"])[1]
    (True, [',', '.'], '')
    """
    texts = list(texts)
    example = next((text for text in texts if "," in text or "." in text), "")
    signs = {sign for sign in _NUMBERS if all(_is_number(text, sign) for text in texts)} if example else ()
    return frozenset(signs), example


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
            f"{path}: line {line} has a letter that is not UTF-8, others have letters that are: save it with one encoding"
        ) from None
    return "utf-8"


def _separator(path: Path, lines: Sequence[str]) -> str:
    """Find the separator that splits lines into equally many columns, and is the only one that does."""
    splitting = []
    for separator in SEPARATORS:
        try:
            rows = list(csv.reader(lines, delimiter=separator))
        except csv.Error:
            continue
        # the last of several rows may go on behind these lines, in quotes
        widths = Counter(len(row) for row in (rows[:-1] if len(lines) == LINES else rows))
        if len(widths) == 1 and max(widths) > 1:
            splitting.append(separator)
    if len(splitting) > 1:
        signs = " and ".join(NAMES[separator] for separator in splitting)
        raise Refused(f"{path}: {signs} both split its first lines into columns; say which with --separator")
    return splitting[0] if splitting else ","
