"""The content of records: as a text that is the same in every format, and within declared ranges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from pandas.util import hash_pandas_object

from leakscope.core.types import Points

Array = np.ndarray


def row_names(points: Points) -> list[str]:
    """Name each record by its content: the same for every order of rows and columns, and for every format of the file.

    Numbers count in single precision, whether they are whole or not; dates and texts as they are printed. Equal
    records are numbered.

    Parameters
    ----------
    points : Points
        The label, if there is one, counts as a column.

    Returns
    -------
    list of str

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.core.types import Points
    >>> from leakscope.data.content import row_names
    >>> row_names(Points(np.array([[1, 2]]))) == row_names(Points(np.array([[1.0, 2.0]])))
    True
    """
    table = _frame(points.x)
    if points.y is not None:
        labels = np.asarray(points.y).reshape(len(points), -1)
        for place in range(labels.shape[1]):
            table[f"label {place}"] = labels[:, place]
    order = sorted(range(table.shape[1]), key=lambda place: (table.columns[place], place))
    columns = {str(number): _canonical_column(table.iloc[:, place]) for number, place in enumerate(order)}
    hashed: Any = hash_pandas_object  # its stub has no type
    content = hashed(pd.DataFrame(columns), index=False)
    repetition = content.groupby(content).cumcount()
    return [f"{number} {digest:016x}" for number, digest in zip(repetition.tolist(), content.tolist(), strict=True)]


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


def columns_as_texts(points: Points, columns: Sequence[str]) -> Points:
    """Write some columns as texts, numbers alike whether they are whole or not: see `text_of`."""
    table = _frame(points.x)[list(columns)]
    return replace(
        points, x=pd.DataFrame({name: [text_of(value) for value in table[name].tolist()] for name in columns})
    )


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
        table = x.copy()
        table.columns = [str(name) for name in table.columns]
        return table
    table = pd.DataFrame(np.asarray(x))
    table.columns = [f"x{place}" for place in range(table.shape[1])]
    return table


def _canonical_column(column: pd.Series) -> pd.Series:
    """Write a column alike in every format: numbers in single precision, all else as texts."""
    if pd.api.types.is_numeric_dtype(column.dtype):
        with np.errstate(over="ignore"):
            return pd.Series(column.to_numpy(dtype=float, na_value=np.nan).astype(np.float32).astype(float) + 0.0)
    return pd.Series([_canonical(value) for value in column.tolist()], dtype=object)


def _canonical(value: Any) -> str:
    """Write a value of a column that holds no numbers alone: dates as ISO, without a time at midnight."""
    if value is None or value is pd.NaT or value is pd.NA:
        return ""
    if isinstance(value, bool | int | float | Decimal):
        return f"{float(value) + 0.0:.6e}"
    if isinstance(value, datetime):
        return value.isoformat().removesuffix("T00:00:00")
    return str(value)
