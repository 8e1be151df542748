"""Values that are missing, or that are no numbers where numbers are asked for: one line each, and what to do.

Every command that computes with the numbers of a file refuses the same defects with the same lines. An audit trains
models, for which text is a category and a missing number is imputed, and says so itself.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Bool

from leakbound.data.points import how_to_drop, some

Array = np.ndarray
_MOST_LETTERS = 30  # of a text that an error shows
_MOST_NAMES = 6
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*")
_DECIMAL_POINT = re.compile(r"\s*[+-]?\d+\.\d+\s*")
_THOUSANDS = re.compile(r"\s*[+-]?\d{1,3}(,\d{3})+(\.\d+)?\s*")


def is_missing(column: pd.Series) -> Bool[Array, " N"]:
    """Find the missing values of a column; infinite numbers, which no statistic can be of, are among them.

    >>> is_missing(pd.Series([1.0, None, float("inf")])).tolist()
    [False, True, True]
    """
    missing = column.isna().to_numpy(dtype=bool)
    kinds = pd.api.types
    if kinds.is_numeric_dtype(column) and not kinds.is_bool_dtype(column):
        missing = missing | ~np.isfinite(column.to_numpy(dtype=float, na_value=np.nan))
    return missing


def complete_rows(frame: pd.DataFrame, names: Sequence[str]) -> Bool[Array, " N"]:
    """Find the rows with a value in each of some columns: whether a row is one depends on that row alone.

    >>> complete_rows(pd.DataFrame({"age": [30, None], "town": [None, "Bonn"]}), ["age"]).tolist()
    [True, False]
    """
    kept = np.ones(len(frame), dtype=bool)
    for name in names:
        kept &= ~is_missing(pd.Series(frame[name]))
    return kept


def refuse_missing(frame: pd.DataFrame, names: Sequence[str] | None = None) -> None:
    """Refuse columns with missing values.

    >>> try:
    ...     refuse_missing(pd.DataFrame({"age": [30, None]}))
    ... except ValueError as reason:
    ...     print(str(reason).partition(":")[0])
    1 of 2 values of age is missing or infinite, the first in record 1
    """
    missing = {str(name): is_missing(pd.Series(frame[name])) for name in (frame.columns if names is None else names)}
    incomplete = [name for name, where in missing.items() if where.any()]
    if not incomplete:
        return
    first = incomplete[0]
    n_missing = int(missing[first].sum())
    others = f" (and of {some(incomplete[1:], _MOST_NAMES)})" if incomplete[1:] else ""
    raise ValueError(
        f"{n_missing:,} of {len(frame):,} values of {first}{others} {'is' if n_missing == 1 else 'are'} missing or "
        f"infinite, the first in record {int(missing[first].argmax()):,}: leave these rows out (--drop-missing; in "
        "Python .dropna()), fill "
        f"them in the file with a number that does not depend on the data, or leave the column out "
        f"({how_to_drop(incomplete, _MOST_NAMES)})"
    )


def refuse_texts(frame: pd.DataFrame, names: Sequence[str], *, label: str = "") -> None:
    """Refuse columns that hold a value that is no number."""
    if not names:
        return
    place, value = first_text(frame, names[0])
    text = textwrap.shorten(value, _MOST_LETTERS, placeholder="...")
    response = f", or name the response (--label {label}; in Python y)" if label else ""
    raise ValueError(
        f"not only numbers in {some(names, _MOST_NAMES)}, as {text!r} in record {place} of {names[0]}, and no single "
        f"record may decide which columns are used: {sign_hint(value)}leave these columns out "
        f"({how_to_drop(names, _MOST_NAMES)}){response}, or "
        "make all their values numbers"
    )


def rows_left_out(kept: Bool[Array, " N"] | None) -> list[str]:
    """Say how many rows were left out for a missing value, to the owner of the data.

    >>> rows_left_out(np.array([True, False, True]))
    ['1 of 3 rows has a missing value, and is left out']
    """
    n_left_out = 0 if kept is None else int((~kept).sum())
    if kept is None or not n_left_out:
        return []
    verbs = ("has", "is") if n_left_out == 1 else ("have", "are")
    return [f"{n_left_out:,} of {len(kept):,} rows {verbs[0]} a missing value, and {verbs[1]} left out"]


def sign_hint(text: str) -> str:
    """Say which flag reads a text as a number, where a comma may be the reason that it is none.

    >>> sign_hint("34,5"), sign_hint("many")
    ('say decimal (--decimal ,) if the comma is the decimal sign, ', '')
    """
    if _THOUSANDS.fullmatch(text):
        return "say decimal: --decimal . if the comma separates thousands, --decimal , if it is the decimal sign, "
    if _DECIMAL_COMMA.fullmatch(text):
        return "say decimal (--decimal ,) if the comma is the decimal sign, "
    if _DECIMAL_POINT.fullmatch(text):  # read with --decimal , it is a text
        return "say decimal (--decimal .) if the point is the decimal sign, "
    return ""


def first_text(frame: pd.DataFrame, name: str) -> tuple[int, str]:
    """Find the first value of a column that is no number, and say in which record it is.

    >>> first_text(pd.DataFrame({"age": ["30", "many", "50"]}), "age")
    (1, 'many')
    """
    values = pd.Series(frame[name])
    as_numbers = pd.Series(pd.to_numeric(values, errors="coerce"))
    record = int(np.argmax(as_numbers.isna() & values.notna()))
    return record, str(values.iloc[record])
