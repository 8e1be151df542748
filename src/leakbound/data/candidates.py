"""Candidates of attribute inference: a copy of a record for each value that its sensitive attribute may have."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Int, Shaped

from leakbound.core.checks import count, nearest, numbers
from leakbound.core.types import Points
from leakbound.data.files import has_column
from leakbound.data.points import from_arrays, names_classes, some

Array = np.ndarray
Column = str | int | Sequence[str] | Sequence[int] | Array
MOST_VALUES = 1000


@dataclass(frozen=True, eq=False)
class Attribute:
    """A sensitive attribute: its columns and its values."""

    points: Points
    name: str
    columns: tuple[int, ...]
    value: Int[Array, " N"]
    example: Int[Array, " V"]
    names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Candidates:
    """The records as they are, followed by V rows for each attacked record."""

    points: Points
    record: Int[Array, " R"]
    own: Bool[Array, " R"]  # one of the first N rows: models are trained on no others


def attribute(points: Points, column: Column, *, bins: Sequence[float] = (), name: str = "") -> Attribute:
    """Find a sensitive attribute in the features, or add it to them.

    >>> x = np.array([[1.0, 20.0], [2.0, 30.0], [3.0, 40.0], [4.0, 90.0]])
    >>> attribute(from_arrays(x), 1, bins=[2]).names
    ('20 to 30', '40 to 90')
    """
    title = name
    if not title:
        title = ", ".join(map(str, column)) if isinstance(column, list | tuple) else str(column)
    if not isinstance(points.x, np.ndarray | pd.DataFrame):
        raise ValueError(f"attribute {title!r}: images have no columns; give a table")
    words: list[str] = []
    if isinstance(column, np.ndarray | pd.Series):
        title = name or "attribute"
        # values that are no feature yet become one: a column of a frame, one-hot columns of an array
        points, column, words = _with_values(points, np.asarray(column), title, bool(len(bins)))
    if points.x.ndim > 2:
        raise ValueError(f"attribute {title!r}: features of shape {points.x.shape} have no columns; flatten them")
    if isinstance(column, list | tuple):
        places = tuple(_place(points.x, part) for part in column)
        values = _one_hot_index(points.x, places, title)
        # a bin (of equally many records, or between edges) is a value; its candidate has the lower median of the bin
        value, example, names = _values(values, bins, title)
        words = words or [str(part) for part in column]
        names = [words[int(values[record])] for record in example]
    else:
        places = (_place(points.x, column),)
        value, example, names = _values(_content(points.x, places[0]), bins, title)
    return Attribute(points, title, places, value, example, tuple(names))


def candidates(attribute: Attribute, attacked: Int[Array, " J"]) -> Candidates:
    """Add to the records a copy of each attacked record for each value of the attribute.

    Only the attacked records are copied, V times; a row takes all columns from its record and those of the
    attribute from the example of its value, so that every column keeps its type.

    >>> points = from_arrays(np.array([[1, 7], [2, 8], [3, 7]]))
    >>> candidates(attribute(points, 1), np.array([2])).points.x.tolist()
    [[1, 7], [2, 8], [3, 7], [3, 7], [3, 8]]
    """
    points, n_values = attribute.points, len(attribute.example)
    # row r has all columns of record[r], and those of the attribute from source[r]
    own = np.arange(len(points))
    record = np.concatenate([own, np.repeat(attacked, n_values)])
    source = np.concatenate([own, np.tile(attribute.example, len(attacked))])
    table = points.take(record)
    x = table.x
    if isinstance(x, pd.DataFrame):
        x = x.reset_index(drop=True)
        for place in attribute.columns:
            x.isetitem(place, points.x.iloc[:, place].take(source).reset_index(drop=True))
    else:
        x[:, attribute.columns] = points.x[source][:, attribute.columns]
    digest = hashlib.sha256(f"{points.digest} {attribute.columns}".encode())
    digest.update(record.tobytes() + source.tobytes())
    return Candidates(replace(table, x=x, digest=digest.hexdigest()), record, np.arange(len(record)) < len(points))


def others(attribute: Attribute) -> Points:
    """Return what an attacker knows without the release: all other columns and the label, to predict the value from.

    >>> points = others(attribute(from_arrays(np.array([[1, 7], [2, 8], [3, 7]]), [0, 1, 1]), 1))
    >>> list(points.x.columns), points.y.tolist()
    (['x0', 'label'], [0, 1, 0])
    """
    x, y = attribute.points.x, attribute.points.y
    places = [place for place in range(x.shape[1]) if place not in attribute.columns]
    features = x.iloc[:, places] if isinstance(x, pd.DataFrame) else pd.DataFrame(x[:, places])
    features = features.set_axis([f"x{place}" for place in places], axis=1)
    if y is not None:
        features = features.assign(label=y.astype(str) if names_classes(y) else y)
    return from_arrays(features, attribute.value)


def _with_values(
    points: Points, values: Shaped[Array, "*shape"], name: str, as_numbers: bool
) -> tuple[Points, str | list[int] | int, list[str]]:
    """Add an attribute to the features; return the points, its columns, and the names of one-hot columns."""
    if values.shape != (len(points),):
        raise ValueError(f"attribute {name!r} must have shape ({len(points)},), one value a record; got {values.shape}")
    if points.y is not None and np.array_equal(values, points.y):
        raise ValueError(f"attribute {name!r} is the label itself, which the attacker knows; give another column")
    _refuse_missing(values, name)
    # a frame gets a column
    if isinstance(points.x, pd.DataFrame):
        if name in points.x.columns:
            raise ValueError(f"attribute {name!r} is a column already; give its name, or another name to the array")
        return from_arrays(points.x.assign(**{name: values}), points.y, points.group), name, []
    # an array gets a column of numbers, or one of 0 and 1 for each value
    rows, names = points.x.reshape(len(points), -1), []
    first = rows.shape[1]
    if as_numbers:
        columns = numbers(f"attribute {name!r}, which is to be binned,", values)[:, None]
        places = first
    else:
        distinct, inverse = np.unique(_comparable(values), return_inverse=True)
        _refuse_number_of_values(len(distinct), values, name)
        columns = np.eye(len(distinct), dtype=rows.dtype)[inverse]
        places = list(range(first, first + len(distinct)))
        names = [str(value) for value in distinct]
    return from_arrays(np.concatenate([rows, columns], axis=1), points.y, points.group), places, names


def _place(x: Any, column: Any) -> int:
    """Return the position of a column by its name or index."""
    if isinstance(x, pd.DataFrame):
        has_column(x, column, "attribute")
        return [name == column for name in x.columns].index(True)
    names = [f"x{place}" for place in range(x.shape[1])]
    if column in names:
        return names.index(column)
    if isinstance(column, int | np.integer) and 0 <= column < len(names):
        return int(column)
    raise ValueError(f"attribute: no column {column!r}{nearest(str(column), names)}; columns: {some(names)}")


def _content(x: Any, place: int) -> Array:
    return x.iloc[:, place].to_numpy() if isinstance(x, pd.DataFrame) else x[:, place]


def _one_hot_index(x: Any, places: tuple[int, ...], name: str) -> Int[Array, " N"]:
    """Return which column of a one-hot code is 1, in each row."""
    code = numbers(f"attribute {name!r}", np.column_stack([_content(x, place) for place in places]))
    if not np.isin(code, (0, 1)).all() or (code.sum(axis=1) != 1).any():
        raise ValueError(
            f"attribute {name!r}: several columns must be a one-hot code, a single 1 and zeros in each row"
        )
    return code.argmax(axis=1)


def _values(
    values: Shaped[Array, " N"], bins: Sequence[float], name: str
) -> tuple[Int[Array, " N"], Int[Array, " V"], list[str]]:
    """Return the index of each record's value, a record that has each value, and the names of the values."""
    _refuse_missing(values, name)
    if len(bins):
        value, example, names = _binned(values, bins, name)
    else:
        distinct, example, value = np.unique(_comparable(values), return_index=True, return_inverse=True)
        names = [str(content) for content in distinct]
    _refuse_number_of_values(len(names), values, name)
    return value, example, names


def _binned(
    values: Shaped[Array, " N"], bins: Sequence[float], name: str
) -> tuple[Int[Array, " N"], Int[Array, " V"], list[str]]:
    """Cut numbers at quantiles, or at given edges; empty bins are left out."""
    if values.dtype.kind not in "iuf" or np.isinf(values).any():
        raise ValueError(f"attribute {name!r} cannot be binned: bins are for columns of finite numbers")
    if len(bins) == 1:
        n_bins = count("bins", bins[0], least=2)
        edges = np.unique(np.quantile(values, np.arange(1, n_bins) / n_bins))
    else:
        edges = np.unique(numbers("bins", list(bins)))
    _, value = np.unique(np.searchsorted(edges, values, side="right"), return_inverse=True)
    # sorted by bin, then by number: bin v is order[starts[v]:ends[v]], from its least to its largest number
    order = np.lexsort((values, value))
    ends = np.cumsum(np.bincount(value))
    starts = np.r_[0, ends[:-1]]
    least, largest = values[order[starts]], values[order[ends - 1]]
    names = [f"{low:g} to {high:g}" for low, high in zip(least, largest, strict=True)]
    return value, order[(starts + ends - 1) // 2], names


def _comparable(values: Shaped[Array, " N"]) -> Array:
    return values.astype(str) if values.dtype == object else values


def _refuse_missing(values: Shaped[Array, " N"], name: str) -> None:
    missing = pd.isna(values)
    if missing.any():
        raise ValueError(
            f"attribute {name!r} is missing at {int(missing.sum()):,} records, first at record "
            f"{int(missing.argmax())}; fill them or leave them out"
        )


def _refuse_number_of_values(n_values: int, values: Shaped[Array, " N"], name: str) -> None:
    if n_values < 2:
        raise ValueError(f"attribute {name!r} has one value ({values[0]}) in all records: there is nothing to guess")
    if n_values > MOST_VALUES:
        cure = "bin it, as bins=10" if values.dtype.kind in "iuf" else "merge some of them"
        raise ValueError(f"attribute {name!r} has {n_values:,} values, allowed are {MOST_VALUES:,}; {cure}")
