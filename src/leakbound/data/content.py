"""Names of records by their content, which are the same in every format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, UInt8, UInt64

from leakbound.core.types import Points
from leakbound.data.declared_content import is_no_value, named_columns, text_of, value_as_number
from leakbound.data.files import columns_in_parquet, read_table

Array = np.ndarray
_BLOCK = 1 << 20  # values of a column that are hashed at once
_TRUTHS = {"True": 1.0, "False": 0.0}


def row_names(points: Points, decimal: str | None = None, identifier: str | None = None) -> UInt8[Array, "N 16"]:
    """Name each record by its content: the same for every order of rows and columns, and for every format of the file.

    Numbers count in single precision, whether they are whole or not, also where they are written as texts: no record
    decides how another one is named. Dates and texts count as they are printed. Equal records are numbered.

    >>> bool((row_names(Points(np.array([[1, 2]]))) == row_names(Points(np.array([[1.0, 2.0]])))).all())
    True
    """
    table = named_columns(points.x)
    if points.y is not None:
        labels = np.asarray(points.y).reshape(len(points), -1)
        for place in range(labels.shape[1]):
            table[f"label {place}"] = labels[:, place]
    if identifier is not None:
        table[identifier] = np.asarray(points.names)
    order = sorted(range(table.shape[1]), key=lambda place: (table.columns[place], place))
    return _names_of_columns((table.iloc[:, place] for place in order), decimal)


def row_names_of_parquet(path: str | Path) -> UInt8[Array, "N 16"]:
    """Name each record of a Parquet file as `row_names` does, with one column in memory at a time."""
    names = sorted(columns_in_parquet(path))
    return _names_of_columns(read_table(Path(path), columns=[name])[0].iloc[:, 0] for name in names)


def keyed_numbers(key: bytes, names: UInt8[Array, "n 16"]) -> UInt64[Array, " n"]:
    """Compute a number for each name that only the holder of a key of 16 bytes can compute.

    It is SipHash-2-4 and a fixed bijection of 64 bits, as pandas has them.

    >>> names = np.arange(32, dtype=np.uint8).reshape(2, 16)
    >>> bool((keyed_numbers(bytes(16), names) == keyed_numbers(bytes(range(16)), names)).any())
    False
    """
    numbers = np.empty(len(names), dtype=np.uint64)
    for start in range(0, len(names), _BLOCK):
        block = np.ascontiguousarray(names[start : start + _BLOCK])
        texts = np.empty(len(block), dtype=object)
        texts[:] = block.view("V16").reshape(-1).tolist()
        # in Latin-1 each byte of the key is a letter
        numbers[start : start + _BLOCK] = _hashed(texts, encoding="latin1", hash_key=key.decode("latin1"))
    return numbers


def _names_of_columns(columns: Iterable[pd.Series], decimal: str | None = None) -> UInt8[Array, "N 16"]:
    """Hash the content of each row, column by column, and number equal rows."""
    content = np.zeros(0, dtype=np.uint64)
    for number, column in enumerate(columns):
        hashes = _column_hashes(column, decimal)
        # the hash of a number is a mixture of its bits, so that columns and their order count
        content = _hashed(content * np.uint64(31) + hashes) if number else hashes
    return np.column_stack([content, _repetitions(content)]).astype("<u8").view(np.uint8)


def _repetitions(values: UInt64[Array, " N"]) -> UInt64[Array, " N"]:
    """Count, for each value, the equal ones before it."""
    number = np.zeros(len(values), dtype=np.uint64)
    in_order = np.sort(values)
    repeated = np.unique(in_order[1:][in_order[1:] == in_order[:-1]])
    del in_order
    if not len(repeated):
        return number
    place = np.minimum(np.searchsorted(repeated, values), len(repeated) - 1)
    (rows,) = np.nonzero(repeated[place] == values)
    rows = rows[np.argsort(place[rows], kind="stable")]  # equal ones together, each in their order
    count = np.bincount(place[rows])
    number[rows] = np.arange(len(rows)) - np.repeat(np.cumsum(count) - count, count)
    return number


def _column_hashes(column: pd.Series, decimal: str | None) -> UInt64[Array, " N"]:
    """Hash the values of a column alike in every format: numbers in single precision, all else as texts."""
    hashes = np.empty(len(column), dtype=np.uint64)
    is_numeric = pd.api.types.is_numeric_dtype(column.dtype)
    for start in range(0, len(column), _BLOCK):
        values = column.iloc[start : start + _BLOCK]
        if is_numeric:
            hashed = _number_hashes(values.to_numpy(dtype=float, na_value=np.nan))
        elif isinstance(values.dtype, pd.StringDtype | pd.CategoricalDtype):  # each different text once
            code, known = values.factorize()
            hashed = _value_hashes([*known.tolist(), None], decimal)[code]  # -1, a missing value, is the last one
        else:
            hashed = _value_hashes(values.tolist(), decimal)
        hashes[start : start + _BLOCK] = hashed
    return hashes


def _number_hashes(numbers: Float[Array, " b"]) -> UInt64[Array, " b"]:
    """Hash numbers; a value that is missing in any column is NaN."""
    with np.errstate(over="ignore"):
        return _hashed(numbers.astype(np.float32).astype(float) + 0.0)


def _value_hashes(values: Sequence[Any], decimal: str | None) -> UInt64[Array, " b"]:
    """Hash values of any type, each by itself."""
    numbers, texts = np.full(len(values), np.nan), np.full(len(values), "", dtype=object)
    for place, value in enumerate(values):
        if is_no_value(value):
            continue
        number = value_as_number(value, decimal)
        if np.isnan(number):
            text = text_of(value)
            number = _TRUTHS.get(text, np.nan)  # as in a column of truth values
            texts[place] = text
        numbers[place] = number
    is_text = np.isnan(numbers) & (texts != "")
    return np.where(is_text, _hashed(texts), _number_hashes(numbers))


def _hashed(values: Array, **key: str) -> UInt64[Array, " n"]:
    """Hash each value."""
    return pd.util.hash_array(values, categorize=not key, **key)  # pyright: ignore[reportAttributeAccessIssue] -- exported lazily
