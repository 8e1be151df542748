"""Slices: the records by the values of a column, for how much an attack reveals about each group of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Int, Shaped

from leakbound.core.checks import nearest
from leakbound.core.types import Points
from leakbound.data.points import names_classes, some

Array = np.ndarray
MOST_LEVELS = 20  # of a column: of more, the rarest are one level
OTHER, MISSING = "all other values", "missing"
SEVERAL = "several values"  # level of a unit whose records are in different levels
LABEL, GROUP = "label", "group"  # words for the label and the unit of privacy, whatever their columns are called
Slices = str | Sequence[str] | Mapping[str, Any] | pd.Series | np.ndarray


@dataclass(frozen=True, eq=False)
class Levels:
    """A column cut into levels."""

    # all different; of numbers that are cut "quarter 1 of 4" and so on: no value of the data is in these names
    names: tuple[str, ...]
    of_record: Int[Array, " N"]
    ends: tuple[tuple[float, float], ...] = ()  # least and largest value of each quarter; empty where names are values


def by_columns(by: Slices) -> str | Sequence[str] | Mapping[str, Any]:
    """Give the values of a single column its name, and refuse what is neither names nor values.

    >>> list(by_columns(pd.Series([1, 2, 1], name="side")))
    ['side']
    """
    if isinstance(by, pd.Series | np.ndarray):
        name = getattr(by, "name", None)
        return {"slice" if name is None else str(name): by}
    if isinstance(by, str | Mapping):
        return by
    for name in by:
        if not isinstance(name, str):
            column = f"; columns of an array are 'x0', 'x1', ..., as 'x{name}'" if type(name) is int else ""
            raise ValueError(
                "slice takes names of columns, as ['town'], or the values of each record by name, as {'side': values}; "
                f"got a {type(name).__name__} in a list{column}"
            )
    return by


def sliced(points: Points, by: Slices, table: pd.DataFrame | None = None) -> dict[str, Shaped[Array, " N"]]:
    """Look up the columns that records are sliced by.

    >>> from leakbound.data import from_arrays
    >>> points = from_arrays([[1.0, 20.0], [2.0, 30.0]], ["a", "b"])
    >>> {name: values.tolist() for name, values in sliced(points, ["label", "x1"]).items()}
    {'label': ['a', 'b'], 'x1': [20.0, 30.0]}
    """
    by = by_columns(by)
    if isinstance(by, Mapping):
        return {name: _checked(name, values, len(points)) for name, values in by.items()}
    names = (by,) if isinstance(by, str) else tuple(by)
    # "label" and "group" are the label and the unit of privacy, unless a column is called so
    return {name: _checked(name, _column(points, name, table), len(points)) for name in names}


def refuse_without_groups(slices: Mapping[str, Shaped[Array, " N"]]) -> None:
    """Refuse columns that make no groups of records to compare.

    >>> refuse_without_groups({"town": np.array(["Bern"] * 3)})
    Traceback (most recent call last):
        ...
    ValueError: slice 'town' has the same value in every record; name a column with at least 2 values
    """
    for name, values in slices.items():
        column = pd.Series(values)
        if column.nunique(dropna=False) == 1:
            raise ValueError(f"slice {name!r} has the same value in every record; name a column with at least 2 values")
        # numbers may all differ: they are cut into quarters
        if not _is_number(column) and column.nunique(dropna=False) == len(column):
            raise ValueError(
                f"slice {name!r} has another value in each record; name a column of numbers, or one whose values "
                "several records share"
            )


def cut(values: Shaped[Array, " N"]) -> Levels:
    """Cut a column into at most 20 levels.

    Numbers with more than 20 different values are cut at their quartiles. Other values are levels, numbers in ascending
    order, text from the most frequent on; of more than 20, the 19 most frequent ones are, and the rest is one level.
    Text is in quotation marks where its name would also be that of another level, as ``"missing"``.

    >>> cut(np.array(["b", "a", "b"])).names, cut(np.arange(100.0)).ends
    (('b', 'a'), ((0.0, 24.0), (25.0, 49.0), (50.0, 74.0), (75.0, 99.0)))
    >>> cut(np.array(["missing", None, "missing"], dtype=object)).names
    ("'missing'", 'missing')
    """
    column = pd.Series(values)
    is_number = _is_number(column)
    if is_number and column.nunique() > MOST_LEVELS:
        return _quarters(column.to_numpy(dtype=float, na_value=np.nan))
    code, values_of_levels = pd.factorize(column, sort=is_number, use_na_sentinel=True)
    names = _unique_names(list(values_of_levels))
    if not is_number:
        order = np.argsort(-np.bincount(code[code >= 0], minlength=len(names)), kind="stable")
        rank = np.empty(len(names), dtype=int)
        rank[order] = np.arange(len(names))
        code, names = np.where(code < 0, -1, rank[code]), [names[place] for place in order]
    if len(names) > MOST_LEVELS:
        code, names = np.minimum(code, MOST_LEVELS - 1), [*names[: MOST_LEVELS - 1], OTHER]
    return _with_missing(code, names)


def _is_number(column: pd.Series) -> bool:
    """Tell numbers from text, dates and truth values."""
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)


def _unique_names(values: Sequence[Any]) -> list[str]:
    """Name values so that no two levels of a column have the same name."""
    plain = [str(value) for value in values]
    n_of_name = Counter([*plain, OTHER, MISSING, SEVERAL])
    # names that are clear stay as they are, and are taken first
    names = {name for name in plain if n_of_name[name] == 1} | {OTHER, MISSING, SEVERAL}
    unique = []
    for value, name in zip(values, plain, strict=True):
        if n_of_name[name] > 1:
            quoted = f"'{name}'" if isinstance(value, str) else name
            name, copy = quoted, 1
            while name in names:
                copy += 1
                name = f"{quoted} ({copy})"
            names.add(name)
        unique.append(name)
    return unique


def _quarters(values: Array) -> Levels:
    """Cut numbers at their quartiles; equal ones stay together, so that the quarters may differ in size."""
    quartiles = np.nanquantile(values, [0.25, 0.5, 0.75], method="lower")
    quarter = np.where(np.isnan(values), -1, np.searchsorted(quartiles, values, side="left"))
    taken, code = np.unique(quarter, return_inverse=True)
    known = taken[taken >= 0]
    parts = [values[quarter == idx] for idx in known]
    ends = tuple((float(part.min()), float(part.max())) for part in parts)
    # without a value the index is -1, and `_with_missing` puts the level behind the others
    levels = _with_missing(code - int(taken[0] < 0), [f"quarter {idx + 1} of 4" for idx in known])
    return Levels(levels.names, levels.of_record, ends)


def _with_missing(code: Array, names: list[str]) -> Levels:
    """Make a level of its own of the records without a value."""
    if (code < 0).any():
        return Levels((*names, MISSING), np.where(code < 0, len(names), code))
    return Levels(tuple(names), code)


def _column(points: Points, name: str, table: pd.DataFrame | None) -> Any:
    """Return a column by its name."""
    # a column of the file, also one that is no feature; then of the features
    features = points.x if isinstance(points.x, pd.DataFrame) else None
    for columns in (table, features):
        if columns is not None and name in columns.columns:
            return columns[name]
    if name == LABEL and points.y is not None:
        return classes(points.y)
    if name == GROUP and points.group is not None:
        return points.group
    # names that would have been found
    known = [] if features is None else [str(column) for column in features.columns]
    if table is not None:
        known = [str(column) for column in table.columns]
    if isinstance(points.x, np.ndarray) and points.x.ndim == 2:
        known = [f"x{place}" for place in range(points.x.shape[1])]
        if name in known:
            return points.x[:, known.index(name)]
    known += [LABEL] * (points.y is not None) + [GROUP] * (points.group is not None)
    raise ValueError(f"slice: no column {name!r}{nearest(name, known)}; columns: {some(known)}")


def classes(label: Array) -> Array:
    """Return labels that name classes as text, which is not cut into quarters; others as they are."""
    return label.astype(str) if names_classes(label) else label


def _checked(name: str, values: Any, n_points: int) -> Array:
    column = pd.Series(values).to_numpy() if np.ndim(values) == 1 else np.asarray(values)
    if column.shape != (n_points,):
        raise ValueError(f"slice {name!r} must have shape ({n_points},), one value a record; got {column.shape}")
    return column
