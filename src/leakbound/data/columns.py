"""Columns of a table: the numeric ones, the others, and the cells that their values make."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from leakbound.core.types import Points
from leakbound.data.files import has_column
from leakbound.data.missing import refuse_missing, refuse_texts
from leakbound.data.points import Data, from_arrays, how_to_drop, repeated, some

Array = np.ndarray
FEWEST_RECORDS = 20  # so many different values are no accident in a column that repeats any
MOST_ALIKE = 3  # groups of values of a column that a note names
MOST_REPEATS = 0.05  # of the records: with more of them, a column without other repeats is no sign of an identifier
# 2024-03-31 and 31.3.2024, with a time behind them or not
_DATE = r"\s*(?:\d{4}[-./]\d{1,2}[-./]\d{1,2}|\d{1,2}[-./]\d{1,2}[-./]\d{4})(?:[T ].*)?\s*"


def words(data: Data) -> list[str]:
    """List the names of the columns that are not numeric.

    Parameters
    ----------
    data : Data

    Returns
    -------
    list of str
        Empty if the features are no frame.

    Examples
    --------
    >>> import pandas as pd
    >>> from leakbound.data import Data, from_arrays, words
    >>> words(Data(from_arrays(pd.DataFrame({"town": ["Chur", "Bern"], "age": [30, 50]})), "people"))
    ['town']
    """
    x = data.points.x
    if not isinstance(x, pd.DataFrame):
        return []
    return [str(name) for name in x.columns if not pd.api.types.is_numeric_dtype(x[name])]


def numbers(data: Data) -> Float[Array, "N d"]:
    """Return the columns as a matrix of numbers.

    Parameters
    ----------
    data : Data

    Returns
    -------
    array of shape (N, d)
        In float64, the columns in their order.

    Raises
    ------
    ValueError
        Naming the columns with text, or with missing or infinite values.

    Examples
    --------
    >>> import pandas as pd
    >>> from leakbound.data import Data, from_arrays, numbers
    >>> numbers(Data(from_arrays(pd.DataFrame({"hours": [8, 4], "age": [30, 50]})), "people")).tolist()
    [[8.0, 30.0], [4.0, 50.0]]
    """
    x = data.points.x
    if isinstance(x, pd.DataFrame):
        if x.shape[1] == 0:
            raise ValueError(f"{data.name}: no column is left")
        refuse_texts(x, words(data))
        refuse_missing(x)
        x = x.to_numpy()
    x = np.asarray(x, dtype=float).reshape(len(x), -1)
    if not np.isfinite(x).all():
        raise ValueError(f"{data.name}: the features have missing or infinite values")
    return x


def largest_numbers(points: Points) -> dict[str, float]:
    """Find the largest absolute value of each column of numbers, and of the labels if they are numbers.

    >>> largest_numbers(from_arrays(np.array([[1.0, -7.0], [2.0, 3.0]])))
    {'x0': 2.0, 'x1': 7.0}
    """
    table = pd.DataFrame(points.x)
    is_frame = isinstance(points.x, pd.DataFrame)
    columns = {str(name) if is_frame else f"x{name}": table[name] for name in table.columns}
    if points.y is not None:
        columns["of labels"] = pd.Series(np.asarray(points.y).ravel())
    largest = {}
    for name, values in columns.items():
        if pd.api.types.is_numeric_dtype(values):
            size = np.abs(values.to_numpy(dtype=float, na_value=np.nan))
            largest[name] = float(np.fmax.reduce(size, initial=0.0))
    return largest


def column(data: Data, name: str) -> Float[Array, " N"]:
    """Return a numeric column by its name.

    Parameters
    ----------
    data : Data
    name : str

    Returns
    -------
    array of shape (N,)
        In float64.

    Raises
    ------
    ValueError
        If there is no such column, or it is not numeric or has missing values.

    Examples
    --------
    >>> import pandas as pd
    >>> from leakbound.data import Data, column, from_arrays
    >>> column(Data(from_arrays(pd.DataFrame({"town": ["Chur", "Bern"], "age": [30, 50]})), "people"), "age").tolist()
    [30.0, 50.0]
    """
    frame = _frame(data)
    has_column(frame, name, data.name)
    return numbers(replace(data, points=from_arrays(frame[[name]])))[:, 0]


def cells(data: Data, by: Sequence[str]) -> tuple[Int[Array, " N"], list[str], Int[Array, " C"]]:
    """Assign the records to cells, one for each combination of values of some columns.

    Parameters
    ----------
    data : Data
    by : sequence of str
        Columns; a missing value is a level of its own, named missing.

    Returns
    -------
    cell : array of shape (N,)
        Index of the cell of each record.
    names : list of str
        The values of each cell, as ``"Sales / Female"``.
    sizes : array of shape (C,)
        Number of records in each cell.

    Raises
    ------
    ValueError
        If there is no such column.

    Examples
    --------
    >>> import pandas as pd
    >>> from leakbound.data import Data, cells, from_arrays
    >>> table = pd.DataFrame({"town": ["Chur", "Bern", "Bern"], "age": [30, 50, 40]})
    >>> cell, names, sizes = cells(Data(from_arrays(table), "people"), ["town"])
    >>> cell.tolist(), names, sizes.tolist()
    ([0, 1, 1], ['Chur', 'Bern'], [1, 2])
    """
    frame = _frame(data)
    for name in by:
        has_column(frame, name, data.name)
    groups = frame.groupby(list(by), sort=False, dropna=False, observed=True)
    keys = [key if isinstance(key, tuple) else (key,) for key in groups.size().index]
    names = [" / ".join("missing" if pd.isna(level) else str(level) for level in key) for key in keys]
    return groups.ngroup().to_numpy(), names, groups.size().to_numpy()


def levels(data: Data, by: Sequence[str]) -> tuple[Int[Array, "C columns"], list[bool]]:
    """Return the level of each cell in each of the columns that make the cells.

    Parameters
    ----------
    data : Data
    by : sequence of str
        As in `cells`, which sets the order of the cells.

    Returns
    -------
    level : array of shape (C, columns)
        Indices of the levels, from 0 on, in the order of the values if they have one; -1 for a missing value.
    ordered : list of bool
        Whether the levels of a column have an order: numbers, dates, ordered categories; not text.

    Examples
    --------
    >>> import pandas as pd
    >>> from leakbound.data import Data, from_arrays
    >>> from leakbound.data.columns import levels
    >>> table = pd.DataFrame({"town": ["Chur", "Bern", "Bern"], "age": [30, 50, 40]})
    >>> code, ordered = levels(Data(from_arrays(table), "people"), ["town", "age"])
    >>> code.tolist(), ordered
    ([[0, 0], [1, 2], [1, 1]], [False, True])
    """
    frame = _frame(data)
    cell = cells(data, by)[0]
    _, first = np.unique(cell, return_index=True)  # the first record of each cell
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


def without_names(x: Any, id: Any) -> tuple[Any, Any]:
    """Take the column that names the records out of the features.

    >>> x, names = without_names(pd.DataFrame({"customer": ["C-7", "C-9"], "age": [30, 50]}), "customer")
    >>> list(x.columns), list(names)
    (['age'], ['C-7', 'C-9'])
    """
    if not isinstance(id, str):
        return x, id
    if not isinstance(x, pd.DataFrame):
        raise ValueError(f"id = {id!r} names a column of a frame; give an array of names with other features")
    has_column(x, id, "id")
    return x.drop(columns=[id]), x[id]


def identifier_notes(points: Points) -> list[str]:
    r"""Name the columns with another value in each record, which a model may memorise records by.

    A few records that repeat an earlier one in everything do not hide such a column.

    >>> frame = pd.DataFrame({"customer_id": range(100, 130), "age": [30, 40, 50] * 10})
    >>> for note in identifier_notes(from_arrays(frame)):
    ...     print(note.replace("feature: ", "feature:\n").replace(", or", ",\nor"))
    customer_id has another value in each record; if it is an identifier, it is no feature:
    give it as id (--id customer_id),
    or leave it out (--drop customer_id; in Python .drop(columns=['customer_id']))
    """
    return [
        f"{name} has another value in each record; if it is an identifier, it is no feature: give it as id (--id "
        f"{name}), or leave it out ({how_to_drop([name])})"
        for name in identifiers(points)
    ]


def identifiers(points: Points) -> list[Any]:
    """List the columns of text or whole numbers with another value in each record.

    >>> identifiers(from_arrays(pd.DataFrame({"customer_id": range(100, 130), "age": [30, 40, 50] * 10})))
    ['customer_id']
    """
    if not isinstance(points.x, pd.DataFrame) or len(points) < FEWEST_RECORDS:
        return []
    fewest = max((1 - MOST_REPEATS) * len(points), FEWEST_RECORDS)
    n_distinct = {name: _n_names(pd.Series(points.x[name])) for name in points.x.columns}
    if max(n_distinct.values(), default=0) < fewest:
        return []
    n_different = len(points) - int(repeated(points).sum())
    return [name for name, n in n_distinct.items() if n >= max(fewest, n_different)]


def refuse_free_text(frame: pd.DataFrame, names: Sequence[str], model: str, instead: str) -> None:
    """Refuse columns that would be encoded and of which more than half of the values occur once.

    One column for each text is a name of each record, and no model of its words.
    """
    free = [name for name in names if _is_free_text(pd.Series(frame[name]))]
    if free:
        raise ValueError(
            f"{model} reads no text, and more than half of the values of {some(free)} occur once: "
            f"{instead} (in place of dates, give times or numbers), or leave {'it' if len(free) == 1 else 'them'} out "
            f"({how_to_drop(free)}); names of the records are given as id (--id)"
        )


def _is_free_text(column: pd.Series) -> bool:
    counts = column.value_counts()
    return int(counts.sum()) >= FEWEST_RECORDS and bool(2 * (counts == 1).sum() > counts.sum())


def date_notes(points: Points) -> list[str]:
    r"""Name the columns of text that look like dates, which are categories to a model.

    >>> for note in date_notes(from_arrays(pd.DataFrame({"born": ["1980-03-31", "1975-11-02"], "age": [44, 49]}))):
    ...     print(note.replace("; ", ";\n").replace(", ", ",\n"))
    born looks like dates but is read as text,
    with 2 values;
    one-hot encoded,
    each is a column of its own;
    leave it out (--drop born;
    in Python .drop(columns=['born'])),
    write it as a number in the file,
    such as the days since a date,
    or give a Parquet file,
    or a frame,
    with dates
    """
    if not isinstance(points.x, pd.DataFrame):
        return []
    notes = []
    for name in points.x.columns:
        column = pd.Series(points.x[name])
        if not (pd.api.types.is_object_dtype(column) or pd.api.types.is_string_dtype(column)):
            continue
        column = column.dropna()
        if not all(isinstance(value, str) and re.fullmatch(_DATE, value) for value in column.head(1)):
            continue  # most columns end here
        values = column.unique()
        if len(values) > 1 and all(isinstance(value, str) and re.fullmatch(_DATE, value) for value in values):
            notes.append(
                f"{name} looks like dates but is read as text, with {len(values):,} values; one-hot encoded, each is "
                f"a column of its own; leave it out ({how_to_drop([name])}), write it as a number in the file, such as "
                "the days since a date, or give a Parquet file, or a frame, with dates"
            )
    return notes


def alike_levels(points: Points) -> list[str]:
    r"""Name values of a column of text, or of the label, that are different classes and look the same.

    >>> for note in alike_levels(from_arrays(pd.DataFrame({"town": ["Bern", "Bern ", "Bern", "Chur"]}))):
    ...     print(note.replace(", which", ",\nwhich"))
    town has 'Bern' (2 times) and 'Bern ' (1 time),
    which are different classes: write them alike in the file if they are one
    """
    # columns of text, and the label
    columns = {}
    if isinstance(points.x, pd.DataFrame):
        columns = {str(name): pd.Series(points.x[name]) for name in points.x.columns}
    if points.y is not None and np.ndim(points.y) == 1:
        columns["the label"] = pd.Series(points.y)
    notes = []
    for name, values in columns.items():
        if pd.api.types.is_numeric_dtype(values) or pd.api.types.is_datetime64_any_dtype(values):
            continue
        # different texts that look the same
        texts_of: dict[str, list[str]] = {}
        for text in sorted(str(value) for value in values.dropna().unique()):
            texts_of.setdefault(_plain(text), []).append(text)
        alike = [texts for texts in texts_of.values() if len(texts) > 1]
        if alike:
            counts = Counter(str(value) for value in values.dropna())
            groups = [" and ".join(_counted(text, counts[text]) for text in texts) for texts in alike]
            notes.append(
                f"{name} has {some(groups, MOST_ALIKE)}, which are different classes: write them alike in the file if "
                "they are one"
            )
    return notes


def _plain(text: str) -> str:
    """Write a text without spaces at its ends, with composed letters, and 1.0 as 1."""
    text = unicodedata.normalize("NFC", text).strip()
    return text.rstrip("0").removesuffix(".") if re.fullmatch(r"[+-]?\d+\.0+", text) else text


def _counted(text: str, n: int) -> str:
    """Quote a text, with letters that are not composed by their code, and say how often it is there."""
    shown = ascii(text) if unicodedata.normalize("NFC", text) != text else repr(text)
    return f"{shown} ({n:,} time{'' if n == 1 else 's'})"


def repeated_names(points: Points) -> list[str]:
    r"""Say how many names of records repeat an earlier one.

    >>> (note,) = repeated_names(from_arrays([[1.0], [2.0], [3.0]], names=["P-1", "P-2", "P-1"]))
    >>> print(note.replace("; ", ";\n"))
    1 of 3 names of records repeats an earlier one;
    if a person has several rows, name that column as group (--group)
    """
    if points.names is None or points.group is not None:
        return []
    n_repeated = len(points) - len(np.unique(points.names))
    if n_repeated == 0:
        return []
    names = f"{n_repeated:,} of {len(points):,} names of records {'repeats' if n_repeated == 1 else 'repeat'}"
    return [f"{names} an earlier one; if a person has several rows, name that column as group (--group)"]


def _n_names(column: pd.Series) -> int:
    """Count the different values of a column of whole numbers or text; none of measurements and times."""
    kinds = pd.api.types
    is_measured = kinds.is_float_dtype(column) or kinds.is_datetime64_any_dtype(column)
    return 0 if is_measured else column.nunique(dropna=False)


def _frame(data: Data) -> pd.DataFrame:
    if not isinstance(data.points.x, pd.DataFrame):
        raise ValueError(f"{data.name} has no columns by name; give a .csv or .parquet file")
    return data.points.x
