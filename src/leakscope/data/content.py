"""The content of records: as a text that is the same in every format, and within declared ranges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, UInt8, UInt64

from leakscope.core.types import Points
from leakscope.data.files import columns_in_parquet, read_table

Array = np.ndarray
_BLOCK = 1 << 20  # values of a column that are hashed at once


def row_names(points: Points) -> UInt8[Array, "N 16"]:
    """Name each record by its content: the same for every order of rows and columns, and for every format of the file.

    Numbers count in single precision, whether they are whole or not; dates and texts as they are printed. Equal
    records are numbered.

    Parameters
    ----------
    points : Points
        The label, if there is one, counts as a column.

    Returns
    -------
    uint8 array of shape (N, 16)
        A hash of the content, and the number of the record among equal ones.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.core.types import Points
    >>> from leakscope.data.content import row_names
    >>> bool((row_names(Points(np.array([[1, 2]]))) == row_names(Points(np.array([[1.0, 2.0]])))).all())
    True
    """
    table = _frame(points.x)
    if points.y is not None:
        labels = np.asarray(points.y).reshape(len(points), -1)
        for place in range(labels.shape[1]):
            table[f"label {place}"] = labels[:, place]
    order = sorted(range(table.shape[1]), key=lambda place: (table.columns[place], place))
    return _names_of_columns(table.iloc[:, place] for place in order)


def row_names_of_parquet(path: str | Path) -> UInt8[Array, "N 16"]:
    """Name each record of a Parquet file as `row_names` does, with one column in memory at a time.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    uint8 array of shape (N, 16)

    Raises
    ------
    ValueError
        In one line, if it cannot be read.
    """
    names = sorted(columns_in_parquet(path))
    return _names_of_columns(read_table(Path(path), columns=[name])[0].iloc[:, 0] for name in names)


def _names_of_columns(columns: Iterable[pd.Series]) -> UInt8[Array, "N 16"]:
    """Hash the content of each row, column by column, and number equal rows."""
    content = np.zeros(0, dtype=np.uint64)
    for number, column in enumerate(columns):
        hashes = _column_hashes(column)
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


def _column_hashes(column: pd.Series) -> UInt64[Array, " N"]:
    """Hash the values of a column alike in every format: numbers in single precision, all else as texts."""
    hashes = np.empty(len(column), dtype=np.uint64)
    is_numeric = pd.api.types.is_numeric_dtype(column.dtype)
    for start in range(0, len(column), _BLOCK):
        block = slice(start, start + _BLOCK)
        hashes[block] = _number_hashes(column.iloc[block]) if is_numeric else _text_hashes(column.iloc[block])
    return hashes


def _number_hashes(column: pd.Series) -> UInt64[Array, " b"]:
    with np.errstate(over="ignore"):
        return _hashed(column.to_numpy(dtype=float, na_value=np.nan).astype(np.float32).astype(float) + 0.0)


def _text_hashes(column: pd.Series) -> UInt64[Array, " b"]:
    """Hash values as they are written; each text of a column of texts or categories once."""
    if not isinstance(column.dtype, pd.StringDtype | pd.CategoricalDtype):
        return _hashed(np.array([_canonical(value) for value in column.tolist()], dtype=object))
    code, known = column.factorize()
    texts = [_canonical(value) for value in [*known.tolist(), column.dtype.na_value]]
    return _hashed(np.array(texts, dtype=object))[code]  # -1, a missing value, is the last one


def _hashed(values: Array) -> UInt64[Array, " n"]:
    """Hash each value."""
    return pd.util.hash_array(values)  # pyright: ignore[reportAttributeAccessIssue] -- exported lazily


def columns_as_numbers(points: Points, columns: Sequence[str]) -> tuple[Points, int]:
    """Read some columns as numbers, whatever is in them.

    Parameters
    ----------
    points : Points
    columns : sequence of str

    Returns
    -------
    points : Points
        With a frame of these columns; NaN for what is missing or no finite number.
    n_missing : int
        How many values these are.

    Examples
    --------
    >>> import pandas as pd
    >>> from leakscope.core.types import Points
    >>> from leakscope.data.content import columns_as_numbers
    >>> numbers, n_missing = columns_as_numbers(Points(pd.DataFrame({"age": ["41", "unknown"]})), ["age"])
    >>> numbers.x["age"].tolist()[0], n_missing
    (41.0, 1)
    """
    table = _frame(points.x)[list(columns)]
    numbers = table.apply(lambda column: pd.to_numeric(column, errors="coerce")).astype(float)
    numbers = numbers.where(np.isfinite(numbers))
    return replace(points, x=numbers), int(numbers.isna().to_numpy().sum())


def missing_in(points: Points, column: str) -> Bool[Array, " n"]:
    """Tell of each record whether its value of a column is missing.

    Examples
    --------
    >>> import pandas as pd
    >>> from leakscope.core.types import Points
    >>> from leakscope.data.content import missing_in
    >>> missing_in(Points(pd.DataFrame({"town": ["a", None]})), "town").tolist()
    [False, True]
    """
    return _frame(points.x)[column].isna().to_numpy()


def columns_as_texts(points: Points, columns: Sequence[str]) -> Points:
    """Write some columns as texts, numbers alike whether they are whole or not: see `text_of`.

    The columns are categories, so that every text is kept once.
    """
    table = _frame(points.x)
    return replace(points, x=pd.DataFrame({name: _as_texts(pd.Series(table[name])) for name in columns}))


def _as_texts(column: pd.Series) -> pd.Categorical:
    """Write a column as texts; objects one by one, because pandas counts some different ones as equal."""
    place_of: dict[str, int] = {}
    codes = np.empty(len(column), dtype=np.int32)
    for start in range(0, len(column), _BLOCK):
        values = column.iloc[start : start + _BLOCK]
        if column.dtype == object:
            code, known = np.arange(len(values)), values.tolist()
        else:
            code, uniques = values.factorize(use_na_sentinel=False)
            known = uniques.tolist()
        places = np.array([place_of.setdefault(text_of(value), len(place_of)) for value in known], dtype=np.int32)
        codes[start : start + _BLOCK] = places[code]
    return pd.Categorical.from_codes(codes, categories=pd.Index(list(place_of), dtype=object))


def text_of(value: Any) -> str:
    """Write a value as a text: a number, also one in a text, in one way.

    Examples
    --------
    >>> text_of(1), text_of(1.0), text_of("1"), text_of("care")
    ('1', '1', '1', 'care')
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        return str(value)
    return f"{number:.12g}"


def _frame(x: Any) -> pd.DataFrame:
    """Return columns with names of text."""
    if isinstance(x, pd.DataFrame):
        table = x.copy(deep=False)
        table.columns = [str(name) for name in table.columns]
        return table
    table = pd.DataFrame(np.asarray(x))
    table.columns = [f"x{place}" for place in range(table.shape[1])]
    return table


def _canonical(value: Any) -> str:
    """Write a value of a column that holds no numbers alone: dates as ISO, without a time at midnight."""
    if value is None or value is pd.NaT or value is pd.NA:
        return ""
    if isinstance(value, bool | int | float | Decimal):
        return f"{float(value) + 0.0:.6e}"
    if isinstance(value, datetime):
        return value.isoformat().removesuffix("T00:00:00")
    return str(value)
