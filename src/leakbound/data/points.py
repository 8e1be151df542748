"""Points from arrays and frames, checked, with a digest of their content; duplicate rows."""

from __future__ import annotations

import hashlib
import math
import shlex
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, UInt64
from pandas.util import hash_pandas_object
from scipy import sparse

from leakbound.core.types import Points
from leakbound.data.images import Images
from leakbound.data.records import Fields, Sequences, Sparse, Texts, fields, sequences, sparse_rows, texts

Array = np.ndarray
MOST_CLASSES = 100  # integer labels with more values are numbers, not names of classes
_HASHED = Images | Texts | Sparse | Fields | Sequences  # records that hash their own content
_HASHED_ROWS = 1 << 20  # rows of a frame that are hashed at once


@dataclass(frozen=True)
class Data:
    """Points and the name of their source.

    Parameters
    ----------
    points : Points
    name : str
        The name of the file or of the data set.
    image : tuple of int, optional
        Height and width, if the features of a point are the pixels of an image.
    notes : tuple of str
        How an unusual file was read, a sentence each.
    slices : mapping of str to array of shape (N,)
        Columns, features or not, that the records are grouped by.
    kept : bool array, optional
        Of each row of the file whether it is among the points, where rows with missing values were left out.

    Examples
    --------
    >>> from leakbound.data import Data, from_arrays
    >>> Data(from_arrays([[1.0], [2.0]]), "two numbers").name
    'two numbers'
    """

    points: Points
    name: str
    image: tuple[int, int] | None = None
    notes: tuple[str, ...] = ()
    slices: Mapping[str, Array] = field(default_factory=dict)
    kept: Array | None = None


def from_arrays(x: Any, y: Any = None, group: Any = None, names: Any = None) -> Points:
    """Check features and labels, and return them as points with a digest of their content.

    Parameters
    ----------
    x : array-like of shape (N, ...), frame of N rows, N texts, sparse matrix with N rows, or Images
        Also a dictionary of arrays with N entries each, or a list of N lists or arrays of different lengths.
    y : array-like of shape (N,) or (N, L), optional
        Labels (numbers or text) or responses; L of them for each point.
    group : array-like of shape (N,), optional
        The unit of privacy of each point, a person with several rows.
    names : array-like of shape (N,), optional
        What reports call the records. The index of a frame unless given, if it is not 0, 1, 2, ...

    Returns
    -------
    Points
        A frame with a new index; texts as `Texts`, a sparse matrix as `Sparse`, a dictionary as `Fields`, rows of
        different lengths as `Sequences`; a label of one column as a vector; labels of objects as text.

    Raises
    ------
    ValueError
        If there are fewer than 2 points, lengths differ, or a label is missing.

    Examples
    --------
    >>> from leakbound.data import from_arrays
    >>> len(from_arrays([[1.0, 2.0], [3.0, 4.0]], ["a", "b"]))
    2
    """
    x = _features(x)
    if len(x) < 2:
        raise ValueError(f"a game needs at least 2 points, got {len(x)}")
    y = None if y is None else _labels(y, len(x))
    group = None if group is None else _column("group", group, len(x))
    index_names = _index_names(x)
    if isinstance(x, pd.DataFrame):
        x = x.reset_index(drop=True)
    points = Points(x, y, group, _digest(x, y, group), index_names)
    return points if names is None else with_names(points, names)


def with_names(points: Points, names: Any) -> Points:
    """Give points other names.

    >>> with_names(from_arrays([[1.0], [2.0]]), [17.0, 4.0]).names.tolist()
    ['17', '4']
    """
    # a number has one name, whole or float: a missing value makes floats of a column of whole numbers
    column = _column("id", names, len(points))
    if np.asarray(names).dtype == object:  # whose values are texts now, but may have been numbers
        column = np.asarray([_name(value) for value in np.asarray(names).ravel()])
    elif column.dtype.kind == "f":
        column = np.asarray([_name(value) for value in column.tolist()])
    return replace(points, names=column.astype(str))


def rows(points: Points) -> UInt64[Array, " N"]:
    """Hash each point's features and label: equal rows have equal hashes.

    Parameters
    ----------
    points : Points

    Returns
    -------
    uint64 array of shape (N,)
        A hash of 64 bits for each point; of an image, of the bytes of its file.

    Examples
    --------
    >>> from leakbound.data import from_arrays, rows
    >>> hashes = rows(from_arrays([[1.0], [2.0], [1.0]]))
    >>> bool(hashes[0] == hashes[2]), bool(hashes[0] == hashes[1])
    (True, False)
    """
    if isinstance(points.x, _HASHED):
        hashes = points.x.content
    elif isinstance(points.x, pd.DataFrame):
        hashes = _hashes(points.x)
    else:
        hashes = _hashes(pd.DataFrame(points.x.reshape(len(points.x), -1)))
    if points.y is None:
        return hashes
    return hashes * np.uint64(31) + _hashes(pd.DataFrame(points.y))


def repeated(points: Points) -> Bool[Array, " N"]:
    """Find the points that repeat an earlier one in all features and the label.

    Parameters
    ----------
    points : Points

    Returns
    -------
    bool array of shape (N,)
        False for the first of equal points.

    Examples
    --------
    >>> from leakbound.data import from_arrays, repeated
    >>> repeated(from_arrays([[1.0], [2.0], [1.0]])).tolist()
    [False, False, True]
    """
    return pd.Series(rows(points)).duplicated().to_numpy()


def shared(members: Points, others: Points) -> int:
    """Count the non-members that equal a member in all features and the label.

    Parameters
    ----------
    members : Points
    others : Points
        The non-members.

    Returns
    -------
    int
        Number of such non-members, repeated ones included.

    Examples
    --------
    >>> from leakbound.data import from_arrays, shared
    >>> shared(from_arrays([[1.0], [2.0]]), from_arrays([[2.0], [3.0]]))
    1
    """
    return int(np.isin(rows(others), rows(members)).sum())


def join(first: Points, second: Points) -> Points:
    """Concatenate two sets of points.

    Parameters
    ----------
    first : Points
        The members, as errors call them.
    second : Points
        The others.

    Returns
    -------
    Points
        Those of `first`, then those of `second`; without groups, and with names if both have them.

    Raises
    ------
    ValueError
        If one is a frame or images and the other is not, or shapes, columns or the presence of labels differ.

    Examples
    --------
    >>> from leakbound.data import from_arrays, join
    >>> join(from_arrays([[1.0], [2.0]]), from_arrays([[3.0], [4.0]])).x.ravel().tolist()
    [1.0, 2.0, 3.0, 4.0]
    """
    if type(first.x) is not type(second.x):
        raise ValueError(f"members are {_kind(first.x)}, others {_kind(second.x)}; give both in the same form")
    if isinstance(first.x, _HASHED):
        x = first.x.followed_by(second.x)
    elif isinstance(first.x, pd.DataFrame):
        if list(first.x.columns) != list(second.x.columns):
            raise ValueError("members and others have different columns")
        x = pd.concat([first.x, second.x], ignore_index=True)
    else:
        if first.x.shape[1:] != second.x.shape[1:]:
            raise ValueError(f"members have features of shape {first.x.shape[1:]}, others {second.x.shape[1:]}")
        x = np.concatenate([first.x, second.x])
    if (first.y is None) != (second.y is None):
        raise ValueError("members and others must both have labels, or neither")
    y = None if first.y is None or second.y is None else np.concatenate([first.y, second.y])
    names = None if first.names is None or second.names is None else np.concatenate([first.names, second.names])
    return from_arrays(x, y, names=names)


def preview(data: Data, record: int) -> dict[str, Any]:
    """Show a record so that a person recognises it: its image, or its first four fields by name.

    Parameters
    ----------
    data : Data
    record : int
        Index of the point.

    Returns
    -------
    dict
        ``image``: nested lists of pixels from 0 to 255; or ``fields``: text by the name of the column. Of a sparse row
        the fields are the first four that are not 0.

    Examples
    --------
    >>> from leakbound.data import Data, from_arrays, preview
    >>> preview(Data(from_arrays([[1.5, 2.0], [3.0, 4.0]]), "numbers"), 0)
    {'fields': {'x0': '1.5', 'x1': '2'}}
    """
    x = data.points.x
    if isinstance(x, Images):
        return {"image": x.pixels(np.array([record]))[0].tolist()}
    if isinstance(x, Texts):
        return {"fields": {"text": textwrap.shorten(x.values[record], 80, placeholder=" ...")}}
    if isinstance(x, Sparse):
        row = x.matrix[[record]].tocoo()
        entries = sorted(zip(row.coords[1].tolist(), row.data.tolist(), strict=True))[:4]
        return {"fields": {f"x{column}": f"{value:.4g}" for column, value in entries}}
    if isinstance(x, Fields):
        record_fields = list(x.arrays.items())[:4]
        return {"fields": {name: _first_numbers(array[record]) for name, array in record_fields}}
    if isinstance(x, Sequences):
        return {"fields": {"sequence": textwrap.shorten(_first_numbers(x.rows[record]), 80, placeholder=" ...")}}
    if data.image is not None:
        picture = np.asarray(x[record], dtype=float).reshape(*data.image, *np.shape(x)[3:])
        # white is 255 for pixels of 8 bits, and the largest number of any other picture
        in_bytes = picture.max() > 1 and np.asarray(x).dtype == np.uint8
        white = 255 if in_bytes else picture.max()
        if white > 0:
            picture = picture / white * 255
        return {"image": np.rint(picture).astype(int).tolist()}
    if isinstance(x, pd.DataFrame):
        return {"fields": {str(name): str(x.iloc[record][name]) for name in x.columns[:4]}}
    values = np.asarray(x[record]).reshape(-1)[:4]
    return {"fields": {f"x{column}": f"{value:.4g}" for column, value in enumerate(values)}}


def names_classes(label: Array) -> bool:
    """Tell labels that name classes from numbers to be predicted: text, truth values, at most 100 whole numbers."""
    is_whole = label.dtype.kind in "iu"
    return label.dtype.kind != "f" and not (is_whole and len(np.unique(label)) > MOST_CLASSES)


def picture_size(x: Any) -> tuple[int, int] | None:
    """Return height and width of 8-bit pixels of shape (N, H, W) or (N, H, W, 3); None for anything else."""
    if isinstance(x, np.ndarray) and x.dtype == np.uint8 and x.shape[3:] in ((), (3,)) and x.ndim in (3, 4):
        return x.shape[1], x.shape[2]
    return None


def _features(x: Any) -> Any:
    """Bring features into one of the forms that `Points` holds, or refuse them."""
    if isinstance(x, pd.DataFrame | _HASHED):
        return x
    if isinstance(x, Mapping):
        return fields(x)
    if sparse.issparse(x):
        return sparse_rows(x)
    if isinstance(x, pd.Series | np.ndarray | list | tuple):
        found = texts(x)
        if found is not None:
            return found
    if isinstance(x, pd.Series):
        raise ValueError(f"x is one column of {x.dtype}; give a frame with it: X.to_frame()")
    ragged = sequences(x)
    return _array(x) if ragged is None else ragged


def _array(x: Any) -> Array:
    """Convert features to an array, or refuse them."""
    try:
        array = np.asarray(x)
    except ValueError:  # rows of different lengths
        raise ValueError("the rows of x have different lengths; give an array of numbers, or a frame") from None
    if array.dtype == object:
        raise ValueError("x is an array of objects; give numbers, or a pandas DataFrame for columns of several types")
    if array.ndim < 2:
        raise ValueError(f"x must have a row for each point and a column for each feature, got shape {array.shape}")
    return array


def _labels(y: Any, n_points: int) -> Array:
    """Check labels or responses: one for each point, or L."""
    columns = np.asarray(y)
    if columns.ndim == 2 and columns.shape[1] > 1:
        if len(columns) != n_points:
            raise ValueError(f"label must have {n_points:,} rows, one for each point; got {columns.shape}")
        return np.column_stack([_column("label", column, n_points) for column in columns.T])
    return _column("label", columns, n_points)


def _index_names(x: Any) -> Array | None:
    """Return the index of a frame as names of its records; None where it only counts them."""
    if not isinstance(x, pd.DataFrame) or x.index.equals(pd.RangeIndex(len(x))):
        return None
    keys = x.index.to_list()
    return np.array([" / ".join(map(str, key)) if isinstance(key, tuple) else str(key) for key in keys])


def _kind(x: Any) -> str:
    """Name the form of features in an error."""
    names = {
        pd.DataFrame: "a frame",
        np.ndarray: "an array",
        Images: "images",
        Texts: "texts",
        Sparse: "a sparse matrix",
        Fields: "a dictionary of arrays",
        Sequences: "rows of different lengths",
    }
    return names[type(x)]


def _column(name: str, values: Any, n_points: int) -> Array:
    column = np.asarray(values)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.shape != (n_points,):
        raise ValueError(f"{name} must have shape ({n_points},), one value a point; got {column.shape}")
    missing = pd.isna(column)
    if missing.any():
        raise ValueError(f"{name} is missing at {int(missing.sum())} points, first at point {int(missing.argmax())}")
    if column.dtype == object:
        column = column.astype(str)
    if column.dtype.kind == "f" and not np.isfinite(column).all():
        raise ValueError(f"{name} has infinite values")
    return column


def _name(value: Any) -> str:
    """Write a name as text: a whole number without a decimal point, whatever its type."""
    is_number = isinstance(value, int | float | np.integer | np.floating | Decimal) and not isinstance(value, bool)
    is_whole = is_number and math.isfinite(value) and value == int(value)
    return str(int(value)) if is_whole else str(value)


def _first_numbers(values: Any) -> str:
    """Write the first numbers or words of a record's array."""
    flat = np.asarray(values).reshape(-1)
    shown = [str(value) if flat.dtype.kind == "U" else f"{value:.4g}" for value in flat[:8]]
    return " ".join(shown) + (" ..." if len(flat) > 8 else "")


def _digest(x: Any, *columns: Array | None) -> str:
    # in front of the content of each kind is what tells it from another kind with the same bytes
    sha = hashlib.sha256()
    # a large table is hashed by blocks of rows, so that no second copy of it is in memory
    if isinstance(x, pd.DataFrame):
        sha.update(repr([(str(name), str(kind)) for name, kind in x.dtypes.items()]).encode())
        for start in range(0, len(x), _HASHED_ROWS):
            sha.update(_hashes(x.iloc[start : start + _HASHED_ROWS]).tobytes())
    if isinstance(x, Images):
        sha.update(f"{x.shape}".encode() + x.content.tobytes())
    if isinstance(x, Texts):
        sha.update(f"texts {x.kind}".encode() + x.content.tobytes())
    if isinstance(x, Sparse):
        sha.update(f"{type(x.matrix).__name__} {x.matrix.dtype.str} {x.shape}".encode() + x.content.tobytes())
    if isinstance(x, Fields):
        kinds = [(name, array.dtype.str, array.shape) for name, array in x.arrays.items()]
        sha.update(f"fields {kinds}".encode() + x.content.tobytes())
    if isinstance(x, Sequences):
        sha.update(b"sequences" + x.content.tobytes())
    # labels, weights and names follow, each behind its type and shape
    arrays = (x, *columns) if isinstance(x, np.ndarray) else columns
    for array in arrays:
        if array is not None:
            sha.update(f"{array.dtype.str}{array.shape}".encode())
            sha.update(np.ascontiguousarray(array).tobytes())
    return sha.hexdigest()


def _hashes(frame: pd.DataFrame) -> UInt64[Array, " N"]:
    """Hash each row; in columns of objects the number 1 and the text "1" differ."""
    typed = frame.apply(lambda column: column.map(repr) if column.dtype == object else column)
    return hash_pandas_object(typed, index=False).to_numpy()  # pyright: ignore[reportCallIssue] -- exported lazily


def how_to_drop(names: Iterable[Any], most: int = 12) -> str:
    """Say how columns are left out, on the command line and in Python.

    >>> how_to_drop(["age", "net pay"])
    "--drop age --drop 'net pay'; in Python .drop(columns=['age', 'net pay'])"
    """
    first = [str(name) for name in names][:most]
    return f"{' '.join(f'--drop {shlex.quote(name)}' for name in first)}; in Python .drop(columns={first})"


def some(names: Iterable[Any], most: int = 12) -> str:
    """List the first names of many, for an error message."""
    words = [str(name) for name in names]
    return ", ".join(words[:most]) + (f", ... ({len(words)} in all)" if len(words) > most else "")
