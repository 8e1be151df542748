"""What stands in the columns of a table: numbers, words, cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from leakscope.data.files import has_column
from leakscope.data.points import Data, from_arrays, some

Array = np.ndarray


def words(data: Data) -> list[str]:
    """Names of the columns that hold no numbers."""
    x = data.points.x
    if not isinstance(x, pd.DataFrame):
        return []
    return [str(name) for name in x.columns if not pd.api.types.is_numeric_dtype(x[name])]


def numbers(data: Data) -> Float[Array, "N d"]:
    """The numeric columns; those of ``words`` are left out.

    Raises
    ------
    ValueError
        If there are none, or naming the columns with missing values.
    """
    x = data.points.x
    if isinstance(x, pd.DataFrame):
        x = x.drop(columns=words(data))
        if x.shape[1] == 0:
            raise ValueError(f"{data.name}: no column holds numbers; columns: {some(words(data))}")
        holes = [name for name in x.columns if not np.isfinite(x[name].to_numpy(dtype=float, na_value=np.nan)).all()]
        if holes:
            raise ValueError(f"{data.name}: missing or infinite values; drop or fill the columns: {some(holes)}")
        x = x.to_numpy()
    x = np.asarray(x, dtype=float).reshape(len(x), -1)
    if not np.isfinite(x).all():
        raise ValueError(f"{data.name}: the features have missing or infinite values")
    return x


def column(data: Data, name: str) -> Float[Array, " N"]:
    """A column of numbers by its name."""
    frame = _frame(data)
    has_column(frame, name, data.name)
    return numbers(replace(data, points=from_arrays(frame[[name]])))[:, 0]


def cells(data: Data, by: Sequence[str]) -> tuple[Int[Array, " N"], list[str], Int[Array, " C"]]:
    """The cells that columns cut a table into.

    Parameters
    ----------
    data : Data
    by : sequence of str
        Columns; a missing value is a value of its own.

    Returns
    -------
    cell : array of shape (N,)
        Number of the cell of each record.
    names : list of str
        Of each cell: its values, as ``"Sales / Female"``.
    sizes : array of shape (C,)
        Records in each cell.
    """
    frame = _frame(data)
    for name in by:
        has_column(frame, name, data.name)
    groups = frame.groupby(list(by), sort=False, dropna=False, observed=True)
    keys = [key if isinstance(key, tuple) else (key,) for key in groups.size().index]
    names = [" / ".join(map(str, key)) for key in keys]
    return groups.ngroup().to_numpy(), names, groups.size().to_numpy()


def levels(data: Data, by: Sequence[str]) -> tuple[Int[Array, "C columns"], list[bool]]:
    """The level of each cell in each of the columns that make the cells.

    Parameters
    ----------
    data : Data
    by : sequence of str
        As in `cells`, whose order the cells have.

    Returns
    -------
    level : array of shape (C, columns)
        Numbers of the levels, from 0 on, in the order of the values where they have one; -1 for a missing value.
    ordered : list of bool
        Whether the order of a column's levels means something: numbers, dates, ordered categories; not text.

    Examples
    --------
    >>> import pandas as pd
    >>> from leakscope.data import Data, from_arrays
    >>> from leakscope.data.columns import levels
    >>> table = pd.DataFrame({"town": ["Chur", "Bern", "Bern"], "age": [30, 50, 40]})
    >>> code, ordered = levels(Data(from_arrays(table), "people"), ["town", "age"])
    >>> code.tolist(), ordered
    ([[0, 0], [1, 2], [1, 1]], [False, True])
    """
    frame = _frame(data)
    cell = cells(data, by)[0]
    _, first = np.unique(cell, return_index=True)  # a record of each cell
    codes, ordered = [], []
    for name in by:
        values = frame[name]
        is_number = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
        is_date = pd.api.types.is_datetime64_any_dtype(values)
        is_ordered_category = isinstance(values.dtype, pd.CategoricalDtype) and bool(values.dtype.ordered)
        ordered.append(is_number or is_date or is_ordered_category)
        if is_ordered_category:
            code = values.cat.codes.to_numpy()
        else:
            code, _ = pd.factorize(values, sort=ordered[-1])
        codes.append(code[first])
    return np.stack(codes, axis=1), ordered


def _frame(data: Data) -> pd.DataFrame:
    if not isinstance(data.points.x, pd.DataFrame):
        raise ValueError(f"{data.name} has no columns by name; give a .csv or .parquet file")
    return data.points.x
