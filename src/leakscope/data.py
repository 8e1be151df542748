"""Files, frames, arrays and named sets, as points with a digest.

Nothing is unpickled: ``.npz`` is read with ``allow_pickle=False``.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, UInt64
from pandas.util import hash_pandas_object

from leakscope.checks import nearest, one_of
from leakscope.types import Points

Array = np.ndarray
NAMED = ("digits", "breast_cancer", "wine")
READERS = (".csv", ".parquet", ".npz")


@dataclass(frozen=True)
class Data:
    """Points with what a person calls them.

    Parameters
    ----------
    points : Points
    name : str
        The file's name or the name of the set.
    image : tuple of int, optional
        Height and width where the features of a point are the pixels of a grey image.
    """

    points: Points
    name: str
    image: tuple[int, int] | None = None


def load(source: str, label: str | None = None, group: str | None = None, drop: Sequence[str] = ()) -> Data:
    """Read a named set or a file.

    Parameters
    ----------
    source : str
        ``digits``, ``breast_cancer`` or ``wine`` (they come with scikit-learn), or the path of a ``.csv``,
        ``.parquet`` or ``.npz`` file. An ``.npz`` holds the features as ``x``.
    label : str, optional
        The column (the array of an ``.npz``, ``y`` unless given) with the label or response.
    group : str, optional
        The column that names the unit of privacy, a person with several rows.
    drop : sequence of str
        Columns of a table that are no features.

    Returns
    -------
    Data

    Raises
    ------
    ValueError, OSError
        In one line: what was given, what is allowed.

    Examples
    --------
    >>> from leakscope.data import load
    >>> len(load("wine").points)
    178
    """
    if source in NAMED:
        if label is not None or group is not None or drop:
            raise ValueError(f"{source} comes with its own label; label, group and drop are columns of files")
        return _named(source)
    path = Path(source)
    if not path.suffix:
        one_of("data set", source, NAMED)
    if path.suffix not in READERS:
        raise ValueError(f"{source}: cannot read {path.suffix!r} files; allowed: {', '.join(READERS)}")
    if path.is_dir() or not path.exists():
        raise ValueError(f"{source}: no such file")
    if path.stat().st_size == 0:
        raise ValueError(f"{source}: the file is empty")
    if path.suffix == ".npz":
        if drop:
            raise ValueError(f"{source}: columns can be dropped from a table, not from the array x of an .npz file")
        return Data(_npz(path, label, group), path.name)
    return Data(_table(path, label, group, drop), path.name)


def from_arrays(x: Any, y: Any = None, group: Any = None) -> Points:
    """Points of arrays, lists or a frame, checked, with a digest of their content.

    Parameters
    ----------
    x : array-like of shape (N, ...), or frame of N rows
    y : array-like of shape (N,), optional
        Labels (numbers or text) or responses.
    group : array-like of shape (N,), optional

    Raises
    ------
    ValueError
        If there are fewer than 2 points, lengths differ, or a label is missing.
    """
    if not isinstance(x, (pd.DataFrame, np.ndarray)):
        x = np.asarray(x)
    if isinstance(x, np.ndarray) and x.dtype == object:
        raise ValueError("x is an array of objects; give numbers, or a pandas DataFrame for columns of several types")
    if isinstance(x, np.ndarray) and x.ndim < 2:
        raise ValueError(f"x must have a row for each point and a column for each feature, got shape {x.shape}")
    if len(x) < 2:
        raise ValueError(f"a game needs at least 2 points, got {len(x)}")
    y = None if y is None else _column("label", y, len(x))
    group = None if group is None else _column("group", group, len(x))
    if isinstance(x, pd.DataFrame):
        x = x.reset_index(drop=True)
    return Points(x, y, group, _digest(x, y, group))


def rows(points: Points) -> UInt64[Array, " N"]:
    """A 64-bit hash of each point's features and label: equal rows have equal hashes."""
    x = points.x if isinstance(points.x, pd.DataFrame) else pd.DataFrame(points.x.reshape(len(points), -1))
    hashed = _hashes(x)
    return hashed if points.y is None else hashed * np.uint64(31) + _hashes(pd.DataFrame(points.y))


def repeated(points: Points) -> Bool[Array, " N"]:
    """Whether a point repeats an earlier one in all features and the label."""
    return pd.Series(rows(points)).duplicated().to_numpy()


def shared(members: Points, others: Points) -> int:
    """How many of the others stand among the members too."""
    return int(np.isin(rows(others), rows(members)).sum())


def join(first: Points, second: Points) -> Points:
    """One set of points after the other."""
    if isinstance(first.x, pd.DataFrame) != isinstance(second.x, pd.DataFrame):
        raise ValueError("members and others must both be frames or both be arrays")
    if isinstance(first.x, pd.DataFrame):
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
    return from_arrays(x, y)


def preview(data: Data, record: int) -> dict[str, Any]:
    """A record as a person would recognise it: its picture, or its first fields by name."""
    x = data.points.x
    if data.image is not None:
        picture = np.asarray(x[record], dtype=float).reshape(data.image)
        top = picture.max()
        return {"image": np.rint(picture / top * 255 if top > 0 else picture).astype(int).tolist()}
    if isinstance(x, pd.DataFrame):
        return {"fields": {str(name): str(x.iloc[record][name]) for name in x.columns[:4]}}
    flat = np.asarray(x[record]).reshape(-1)[:4]
    return {"fields": {f"x{number}": f"{value:.4g}" for number, value in enumerate(flat)}}


def _named(name: str) -> Data:
    from sklearn import datasets  # heavy; only the named sets need it

    bunch: Any = getattr(datasets, f"load_{name}")()
    return Data(from_arrays(bunch.data, bunch.target), name, (8, 8) if name == "digits" else None)


def _table(path: Path, label: str | None, group: str | None, drop: Sequence[str]) -> Points:
    frame = _read_frame(path)
    if frame.empty:
        raise ValueError(f"{path}: the table has no rows or no columns")
    if label is None:
        raise ValueError(f"{path}: name the label column with --label; columns: {_some(frame.columns)}")
    taken = [*(name for name in (label, group) if name is not None), *drop]
    for name in taken:
        if name not in frame.columns:
            raise ValueError(
                f"{path}: no column {name!r}{nearest(name, map(str, frame.columns))}; columns: {_some(frame.columns)}"
            )
    features = frame.drop(columns=taken)
    if features.shape[1] == 0:
        raise ValueError(f"{path}: no feature columns are left beside {', '.join(taken)}")
    return from_arrays(features, frame[label].to_numpy(), None if group is None else frame[group].to_numpy())


def _read_frame(path: Path) -> pd.DataFrame:
    try:
        if path.suffix == ".csv":
            return pd.read_csv(path)
        return pd.read_parquet(path)
    except ImportError:
        raise ValueError(f"{path}: Parquet needs pyarrow; install it with: pip install 'leakscope[parquet]'") from None
    except (ValueError, OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: cannot be read as {path.suffix[1:]}: {_line(error)}") from None


def _npz(path: Path, label: str | None, group: str | None) -> Points:
    arrays = arrays_of(path)
    if "x" not in arrays:
        raise ValueError(f"{path}: no array 'x' with the features; arrays: {_some(arrays)}")
    label = label or "y"
    for name in filter(None, (label, group)):
        if name not in arrays:
            raise ValueError(f"{path}: no array {name!r}{nearest(name, arrays)}; arrays: {_some(arrays)}")
    return from_arrays(arrays["x"], arrays[label], None if group is None else arrays[group])


def arrays_of(path: str | Path) -> dict[str, Array]:
    """The arrays of an ``.npz`` file; pickled objects are refused."""
    try:
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except FileNotFoundError:
        raise ValueError(f"{path}: no such file") from None
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        reason = _line(error) if zipfile.is_zipfile(path) else "it is no .npz file"
        raise ValueError(f"{path}: cannot be read as npz without pickle: {reason}") from None
    except TypeError:  # a single array is no context
        raise ValueError(f"{path}: holds a single array; an .npz file of named arrays is needed") from None


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


def _digest(x: Any, *columns: Array | None) -> str:
    sha = hashlib.sha256()
    if isinstance(x, pd.DataFrame):
        sha.update(repr([(str(name), str(kind)) for name, kind in x.dtypes.items()]).encode())
        sha.update(_hashes(x).tobytes())
    for array in (() if isinstance(x, pd.DataFrame) else (x,)) + columns:
        if array is not None:
            sha.update(f"{array.dtype.str}{array.shape}".encode())
            sha.update(np.ascontiguousarray(array).tobytes())
    return sha.hexdigest()


def _hashes(frame: pd.DataFrame) -> UInt64[Array, " N"]:
    """A hash of each row; in columns of objects the number 1 and the text "1" differ."""
    typed = frame.apply(lambda column: column.map(repr) if column.dtype == object else column)
    return hash_pandas_object(typed, index=False).to_numpy()  # pyright: ignore[reportCallIssue] -- exported lazily


def _some(names: Sequence[Any] | pd.Index | dict[str, Any], most: int = 12) -> str:
    words = [str(name) for name in names]
    return ", ".join(words[:most]) + (f", ... ({len(words)} in all)" if len(words) > most else "")


def _line(error: BaseException) -> str:
    """The first line of an error's text."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
