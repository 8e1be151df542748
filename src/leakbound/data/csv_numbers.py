"""Numbers in the fields of a CSV file: separators of thousands, codes, and decimal signs that are not declared.

The decimal sign is a point unless it is declared. Numbers that may have another one are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from leakbound.files.untrusted import Refused

# what R, databases, pandas and spreadsheets write for a missing value; None is one in columns of numbers alone
MISSING = ("", "NA", "N/A", "n/a", "#N/A", "#NA", "<NA>", "NULL", "null", "NaN", "nan", "-NaN", "-nan")
_NONE = "None"
_EXACT = 2.0**53  # larger whole numbers are not all exact in float64
# a number with each decimal sign: 1234,5 or 1.234,5, with an exponent or not
_NUMBERS = {
    decimal: re.compile(rf"\s*[+-]?(\d+|[1-9]\d{{0,2}}({thousands}\d{{3}})+)?({sign}\d*)?([eE][+-]?\d+)?\s*")
    for decimal, sign, thousands in ((".", r"\.", ","), (",", ",", r"\."))
}
_ASKED = "say which is the decimal sign: decimal (--decimal , or --decimal .)"
_PADDED = re.compile(r"0\d+")
TextsOf = Callable[[Sequence[int]], pd.DataFrame]  # the texts of the columns at some places
_WHOLE = re.compile(r"\s*[+-]?\d+\s*")


def numbers_in_texts(frame: pd.DataFrame) -> dict[int, list[str]]:
    """Return the different values of columns of text whose first value is a number, by the places of the columns.

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


def refuse_open_decimal(path: Path, frame: pd.DataFrame, separator: str) -> None:
    """Refuse numbers whose decimal sign nobody has declared: with a comma, or where the separator is no comma."""
    unclear = "," if separator == "," else ".,"
    for place, texts in numbers_in_texts(frame).items():
        signs = [sign for sign in _NUMBERS if all(_is_number(text, sign) for text in texts)]
        example = next((text for text in texts if set(text) & set(unclear) or not _is_number(text, ".")), "")
        if signs and example:
            raise Refused(f"{path}: column {str(frame.columns[place])!r} has {example}; {_ASKED}")
    floats = [name for name, dtype in frame.dtypes.items() if pd.api.types.is_float_dtype(dtype)]
    if floats and separator != ",":
        raise Refused(
            f"{path}: column {str(floats[0])!r} may hold fractions, which files with such a separator often write "
            f"with a comma; {_ASKED}"
        )


def with_thousands(frame: pd.DataFrame, decimal: str) -> tuple[pd.DataFrame, list[str]]:
    """Read columns of text such as 1,234.5 as numbers, where the decimal sign is known.

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
    """Keep columns as texts that lose digits as numbers: 007, and whole numbers that float64 does not hold."""
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


def _is_number(text: str, decimal: str) -> bool:
    return _NUMBERS[decimal].fullmatch(text) is not None and any(sign.isdigit() for sign in text)
