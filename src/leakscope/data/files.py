"""Files and named sets, as points.

Nothing is unpickled, and what a file would take in memory is worked out before it is read (`leakscope.core.untrusted`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from leakscope.core.checks import nearest, one_of
from leakscope.core.types import Points
from leakscope.core.untrusted import FREE, Refused, in_one_line, npz_arrays, parsing, refuse_large, refuse_wide_csv
from leakscope.data.images import read_folder
from leakscope.data.points import Data, from_arrays, picture_size, some

Array = np.ndarray
NAMED = ("digits", "breast_cancer", "wine")
READERS = (".csv", ".parquet", ".npz")
_FEWEST_ROWS, _MOST_ROWS = 16, 1 << 20  # of a batch of a Parquet file


@in_one_line
def load(
    source: str | os.PathLike[str], label: str | None = None, group: str | None = None, drop: Sequence[str] = ()
) -> Data:
    """Read a named set or a file.

    Parameters
    ----------
    source : str or path
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
    source = os.fspath(source)
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


@in_one_line
def read(source: str | os.PathLike[str], drop: Sequence[str] = ()) -> Data:
    """Read a table, or the features of a named set, without a label: every column is a feature.

    Parameters
    ----------
    source : str or path
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
    source = os.fspath(source)
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


@in_one_line
def arrays_of(path: str | Path) -> dict[str, Array]:
    """The arrays of an ``.npz`` file; pickled objects are refused (`leakscope.core.untrusted.npz_arrays`)."""
    return npz_arrays(path)


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
    with parsing(path, path.suffix[1:]):
        if path.suffix == ".csv":
            refuse_wide_csv(path)
            return pd.read_csv(path)
        try:
            parquet = import_module("pyarrow.parquet")
        except ImportError:
            raise Refused(f"{path}: Parquet needs pyarrow; install it with: pip install 'leakscope[parquet]'") from None
        _refuse_large_parquet(path, parquet)
        return pd.read_parquet(path)


def _refuse_large_parquet(path: Path, parquet: Any) -> None:
    """Refuse a table by its metadata; columns of texts and of lists by the length of each batch of rows.

    The metadata of single chunks of columns are not touched: where they are damaged, pyarrow ends the process.
    """
    with parquet.ParquetFile(path) as file:
        meta, schema = file.metadata, file.metadata.schema
        columns = [schema.column(column) for column in range(meta.num_columns)]
        n_bytes = [meta.row_group(group).total_byte_size for group in range(meta.num_row_groups)]
        values = meta.num_rows * sum(max(8, column.length) for column in columns)
        refuse_large(path, max(values, sum(n_bytes)))

        # a text that stands once in a dictionary may be as long as its group of rows, and stand in every row
        open_ended = [
            column.path for column in columns if column.physical_type == "BYTE_ARRAY" or column.max_repetition_level
        ]
        longest = max(n_bytes, default=0)
        if not open_ended or longest * meta.num_rows <= FREE:
            return
        seen, n_rows = 0, min(max(FREE // longest, _FEWEST_ROWS), _MOST_ROWS)
        for batch in file.iter_batches(n_rows, columns=open_ended, use_threads=False):
            seen += batch.nbytes
            refuse_large(path, seen)


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
