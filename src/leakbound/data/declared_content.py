"""The fields of records by a rule that is fixed beforehand: no record changes how another one is read.

Under differential privacy nothing is found out from the records. A field is a text, spaces at its ends removed and its
letters in Unicode's form C, or a value of a type that the file declares. Whether a column is one of numbers or of
levels follows from the ranges, edges and levels that were declared, never from what is in it. A field that the rule
does not read is the missing value of its own record.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from leakbound.core.types import Points

Array = np.ndarray
_DIGITS = r"[0-9]+"
_GROUPS = r"[0-9]{1,3}(?:%s[0-9]{3})+"  # with a sign between thousands
_EXPONENT = r"(?:[eE][+-]?[0-9]+)?"
_TRUTHS = {"true": "True", "TRUE": "True", "false": "False", "FALSE": "False"}


def _grammar(point: str, whole: str) -> re.Pattern[str]:
    """Make the pattern of a number from its decimal sign and the patterns of its whole part."""
    point = re.escape(point)
    return re.compile(rf"[+-]?(?:(?:{whole})(?:{point}[0-9]*)?|{point}[0-9]+){_EXPONENT}")


_NUMBERS: Mapping[str | None, re.Pattern[str]] = {
    None: _grammar(".", _DIGITS),
    ".": _grammar(".", f"{_GROUPS % ','}|{_DIGITS}"),
    ",": _grammar(",", f"{_GROUPS % re.escape('.')}|{_DIGITS}"),
}


def number_of(text: str, decimal: str | None = None) -> float:
    """Read a text as a number of double precision; NaN for one that is no number, or too large.

    A number is ``[+-]?`` digits with at most one decimal sign, and perhaps an exponent. The decimal sign is a point
    unless it is declared; then the other one of point and comma may separate thousands, in groups of three.

    >>> number_of(" 1234.5 "), number_of("1_000"), number_of("1,234.5"), number_of("1.234,5", ",")
    (1234.5, nan, nan, 1234.5)
    """
    text = text.strip()
    if not _NUMBERS[decimal].fullmatch(text):
        return np.nan
    if decimal is not None:
        thousands = "," if decimal == "." else "."
        text = text.replace(thousands, "").replace(decimal, ".")
    number = float(text)
    return number if np.isfinite(number) else np.nan


def text_of(value: Any) -> str:
    """Write a value as the text that is compared with declared levels, which are written so, too.

    >>> text_of(" care "), text_of("TRUE"), text_of(True), text_of(1), text_of("1.0")
    ('care', 'True', 'True', '1', '1.0')
    """
    if isinstance(value, bytes):
        value = value.decode("utf-8", errors="replace")
    if isinstance(value, date):
        value = value.isoformat().removesuffix("T00:00:00")
    text = str(value).strip()
    if not text.isascii():
        text = unicodedata.normalize("NFC", text).encode("utf-8", errors="replace").decode("utf-8")
    return _TRUTHS.get(text, text)


def columns_as_numbers(points: Points, columns: Sequence[str], decimal: str | None = None) -> tuple[Points, int]:
    """Read some columns as numbers, each field by itself.

    >>> numbers, n_missing = columns_as_numbers(Points(pd.DataFrame({"age": ["41", "unknown"]})), ["age"])
    >>> numbers.x["age"].tolist()[0], n_missing
    (41.0, 1)
    """
    table = named_columns(points.x)
    numbers = pd.DataFrame({name: numbers_in(pd.Series(table[name]), decimal) for name in columns}, index=table.index)
    return replace(points, x=numbers), int(numbers.isna().to_numpy().sum())


def numbers_in(column: pd.Series, decimal: str | None = None) -> Float[Array, " n"]:
    """Read a column as numbers; NaN for what is missing or no finite number."""
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_complex_dtype(column):
        numbers = column.to_numpy(dtype=float, na_value=np.nan).copy()
    else:
        numbers = _one_by_one(column, lambda value: value_as_number(value, decimal), np.nan).astype(float)
    numbers[~np.isfinite(numbers)] = np.nan
    return numbers


def columns_as_levels(points: Points, levels: Mapping[str, Sequence[Any]], others: Sequence[str] = ()) -> Points:
    """Read some columns as declared levels: categories, and missing where a field is none of them.

    A level matches a field of the same text, also ``True`` and ``False`` as other programs write them. One that is a
    number matches equal numbers of a column that holds numbers and no texts.

    >>> frame = pd.DataFrame({"grade": ["1", "1.0", " 2"], "size": [1.0, 2.0, 3.0]})
    >>> columns_as_levels(Points(frame), {"grade": ["1", "2"], "size": ["1", "2"]}).x.isna().sum().tolist()
    [1, 1]
    """
    table = named_columns(points.x)
    frame = pd.DataFrame(
        {name: _levels_in(pd.Series(table[name]), known, name in others) for name, known in levels.items()},
        index=table.index,
    )
    return replace(points, x=frame)


def missing_in(points: Points, column: str) -> Bool[Array, " n"]:
    """Tell of each record whether its value of a column is missing; an empty text is.

    >>> missing_in(Points(pd.DataFrame({"town": ["a", None, " "]})), "town").tolist()
    [False, True, True]
    """
    values = pd.Series(named_columns(points.x)[column])
    return _one_by_one(values, is_no_value, True).astype(bool)


def named_columns(x: Any) -> pd.DataFrame:
    """Return the records as a frame whose columns have names of text."""
    if isinstance(x, pd.DataFrame):
        table = x.copy(deep=False)
        table.columns = [str(name) for name in table.columns]
        return table
    table = pd.DataFrame(np.asarray(x))
    table.columns = [f"x{place}" for place in range(table.shape[1])]
    return table


def _levels_in(column: pd.Series, levels: Sequence[Any], has_others: bool) -> pd.Categorical:
    """Find the level of each field."""
    place_of: dict[Any, int] = {}
    for place, level in enumerate(levels):
        text = text_of(level)
        place_of.setdefault(text, place)
        if np.isfinite(number := number_of(text)):
            place_of.setdefault(number, place)
    no_level = len(levels) - 1 if has_others else -1
    codes: Int[Array, " n"] = _one_by_one(column, lambda value: place_of.get(_key(value), no_level), no_level)
    return pd.Categorical.from_codes(codes.astype(int), categories=pd.Index(list(levels), dtype=object))


def _key(value: Any) -> str | float:
    """Return what is looked up among levels: a number, or a text; NaN of a missing value, which is no level."""
    if is_no_value(value):
        return np.nan
    number = np.nan if isinstance(value, str | bytes | bool | np.bool_) else value_as_number(value)
    return text_of(value) if np.isnan(number) else number


def value_as_number(value: Any, decimal: str | None = None) -> float:
    """Read a value of any type as a number: dates are none."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", errors="replace")
    if isinstance(value, str):
        return number_of(value, decimal)
    if not isinstance(value, bool | int | float | Decimal | np.number | np.bool_) or isinstance(value, np.timedelta64):
        return np.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):  # a complex number, or one that is too large
        return np.nan


def is_no_value(value: Any) -> bool:
    """Tell whether a value is no value, or an empty text."""
    if isinstance(value, str | bytes):
        return not value.strip()
    if isinstance(value, Decimal):  # pandas compares it with itself, which a signalling NaN refuses
        return value.is_nan()
    return bool(pd.api.types.is_scalar(value) and pd.isna(value))


def _one_by_one(column: pd.Series, rule: Callable[[Any], Any], missing: Any) -> Array:
    """Apply a rule to each value alone; of texts and categories to every different one once.

    Objects are not compared with each other: pandas counts 1, 1.0 and True as equal.
    """
    if column.dtype == object:
        return np.array([rule(value) for value in column.tolist()])
    if isinstance(column.dtype, np.dtype):  # of a machine of another order of bytes
        column = column.astype(column.dtype.newbyteorder("="))
    code, known = column.factorize()
    return np.array([*map(rule, known.tolist()), missing])[code]  # -1 is a missing value
