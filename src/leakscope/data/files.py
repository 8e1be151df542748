"""Files and named sets, as points.

Nothing is unpickled: ``.npz`` is read with ``allow_pickle=False``.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from leakscope.checks import nearest, one_of
from leakscope.data.images import read_folder
from leakscope.data.points import Data, from_arrays, picture_size, some
from leakscope.types import Points

Array = np.ndarray
NAMED = ("digits", "breast_cancer", "wine")
READERS = (".csv", ".parquet", ".npz")


def load(source: str, label: str | None = None, group: str | None = None, drop: Sequence[str] = ()) -> Data:
    """Read a named set or a file.

    Parameters
    ----------
    source : str
        ``digits``, ``breast_cancer`` or ``wine`` (they come with scikit-learn), or the path of a ``.csv``,
        ``.parquet`` or ``.npz`` file. An ``.npz`` holds the features as ``x``. Or a folder with a sub-folder of
        images for each class (``.png``, ``.jpg``, ``.jpeg``, ``.bmp``, ``.webp``), whose names are the labels.
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
    if Path(source).is_dir() and Path(source).suffix not in READERS:
        if label is not None or group is not None or drop:
            raise ValueError(f"{source}: the sub-folders are the labels; label, group and drop are columns of files")
        return _folder(Path(source))
    path = _file(source)
    if path.suffix == ".npz":
        if drop:
            raise ValueError(f"{source}: columns can be dropped from a table, not from the array x of an .npz file")
        points = _npz(path, label, group)
        return Data(points, path.name, picture_size(points.x))
    return Data(_table(path, label, group, drop), path.name)


def read(source: str, drop: Sequence[str] = ()) -> Data:
    """Read a table, or the features of a named set, without a label: every column is a feature.

    Parameters
    ----------
    source : str
        As in ``load``.
    drop : sequence of str
        Columns of a table that are left out.

    Returns
    -------
    Data

    Raises
    ------
    ValueError, OSError
        In one line: what was given, what is allowed.

    Examples
    --------
    >>> from leakscope.data import numbers, read
    >>> numbers(read("wine")).shape
    (178, 13)
    """
    if source in NAMED and not drop:
        named = _named(source)
        return replace(named, points=from_arrays(named.points.x))
    if source in NAMED:
        raise ValueError(f"{source} has no columns by name; drop is for tables")
    path = _file(source)
    if path.suffix == ".npz":
        arrays = arrays_of(path)
        if "x" not in arrays or drop:
            raise ValueError(f"{source}: needs an array 'x', whose columns have no names to drop; has {some(arrays)}")
        return Data(from_arrays(arrays["x"]), path.name)
    frame = _read_frame(path)
    for name in drop:
        has_column(frame, name, source)
    return Data(from_arrays(frame.drop(columns=list(drop))), path.name)


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


def _named(name: str) -> Data:
    from sklearn import datasets  # heavy; only the named sets need it

    bunch: Any = getattr(datasets, f"load_{name}")()
    return Data(from_arrays(bunch.data, bunch.target), name, (8, 8) if name == "digits" else None)


def _folder(folder: Path) -> Data:
    images, label, digest = read_folder(folder)
    return Data(Points(images, label, None, digest), folder.resolve().name, images.size)


def _table(path: Path, label: str | None, group: str | None, drop: Sequence[str]) -> Points:
    frame = _read_frame(path)
    if label is None:
        raise ValueError(f"{path}: name the label column with --label; columns: {some(frame.columns)}")
    taken = [*(name for name in (label, group) if name is not None), *drop]
    for name in taken:
        has_column(frame, name, path)
    features = frame.drop(columns=taken)
    if features.shape[1] == 0:
        raise ValueError(f"{path}: no feature columns are left beside {', '.join(taken)}")
    return from_arrays(features, frame[label].to_numpy(), None if group is None else frame[group].to_numpy())


def _file(source: str) -> Path:
    """The path of a file that can be read."""
    path = Path(source)
    if not path.suffix:
        one_of("data set", source, NAMED)
    if path.suffix not in READERS:
        raise ValueError(f"{source}: cannot read {path.suffix!r} files; allowed: {', '.join(READERS)}")
    if path.is_dir() or not path.exists():
        raise ValueError(f"{source}: no such file")
    if path.stat().st_size == 0:
        raise ValueError(f"{source}: the file is empty")
    return path


def _read_frame(path: Path) -> pd.DataFrame:
    frame = _parsed(path)
    if frame.empty:
        raise ValueError(f"{path}: the table has no rows or no columns")
    return frame


def _parsed(path: Path) -> pd.DataFrame:
    try:
        return pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)
    except ImportError:
        raise ValueError(f"{path}: Parquet needs pyarrow; install it with: pip install 'leakscope[parquet]'") from None
    except (ValueError, OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: cannot be read as {path.suffix[1:]}: {_line(error)}") from None


def _npz(path: Path, label: str | None, group: str | None) -> Points:
    arrays = arrays_of(path)
    if "x" not in arrays:
        raise ValueError(f"{path}: no array 'x' with the features; arrays: {some(arrays)}")
    label = label or "y"
    for name in filter(None, (label, group)):
        if name not in arrays:
            raise ValueError(f"{path}: no array {name!r}{nearest(name, arrays)}; arrays: {some(arrays)}")
    return from_arrays(arrays["x"], arrays[label], None if group is None else arrays[group])


def has_column(frame: pd.DataFrame, name: str, source: str | Path) -> None:
    """Refuse a column that is not there, with the nearest one.

    Parameters
    ----------
    frame : DataFrame
    name : str
    source : str or path
        What the error names.
    """
    if name not in frame.columns:
        raise ValueError(
            f"{source}: no column {name!r}{nearest(name, map(str, frame.columns))}; columns: {some(frame.columns)}"
        )


def _line(error: BaseException) -> str:
    """The first line of an error's text."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
