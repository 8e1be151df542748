"""Files and named data sets, as points.

Nothing is unpickled, and the memory that a file would take is computed before it is read (`leakbound.files.untrusted`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pandas as pd

from leakbound.core.checks import nearest, one_of
from leakbound.core.types import Points
from leakbound.data.csv_numbers import MISSING, refuse_open_decimal, with_codes, with_thousands
from leakbound.data.csv_rows import CsvForm, encoding_of, rows_of
from leakbound.data.images import read_folder
from leakbound.data.missing import complete_rows
from leakbound.data.points import Data, from_arrays, picture_size, some
from leakbound.data.slices import LABEL, classes, sliced
from leakbound.files.untrusted import FREE, Refused, in_one_line, npz_arrays, parsing, refuse_large, refuse_wide_csv

Array = np.ndarray
NAMED = ("digits", "breast_cancer", "wine")
READERS = (".csv", ".parquet", ".npz")
_FEWEST_ROWS, _MOST_ROWS = 16, 1 << 20  # of a batch of a Parquet file
_CHECKED = FREE // 8  # bytes after which the free memory is asked for again


@in_one_line
def load(
    source: str | os.PathLike[str],
    label: str | None = None,
    group: str | None = None,
    drop: Sequence[str] = (),
    id: str | None = None,
    slice: Sequence[str] = (),
    *,
    drop_missing: Sequence[str] | bool = False,
    **form: Unpack[CsvForm],
) -> Data:
    """Read a named data set, a file, or a folder of images.

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
    id : str, optional
        The column (or array) that names the records for their owner, and is no feature.
    slice : sequence of str
        Columns, features or not, whose values are kept to group the records by; see `leakbound.data.slices.sliced`.
    drop_missing : bool or sequence of str
        Of a table: leave out the rows with a missing value in these columns, or in any that is not dropped.
    **form : str, optional
        Of a ``.csv`` file: ``separator``, the sign between its columns (a comma unless given), ``decimal``, its
        decimal sign (a point), and ``encoding`` (UTF-8).

    Returns
    -------
    Data
        The points, with labels, groups and names if there are any, and the name of the file or data set.

    Raises
    ------
    ValueError, OSError
        In one line: what was given, what is allowed.

    Examples
    --------
    >>> from leakbound.data import load
    >>> len(load("wine").points)
    178
    """
    source = os.fspath(source)
    _refuse_csv_form(source, form)
    _refuse_drop_missing(source, drop_missing)
    has_columns = label is not None or group is not None or id is not None or bool(drop)
    # a named data set
    if source in NAMED:
        if has_columns:
            raise ValueError(f"{source} comes with its own label; label, group, drop and id are columns of files")
        loaded = _named(source)
        return replace(loaded, slices=sliced(loaded.points, slice))
    # a folder of images
    if Path(source).is_dir() and Path(source).suffix not in READERS:
        if has_columns:
            raise ValueError(
                f"{source}: the sub-folders are the labels; label, group, drop and id are columns of files"
            )
        images, labels, digest = read_folder(Path(source))
        points = Points(images, labels, None, digest)
        return Data(points, Path(source).resolve().name, images.size, slices=sliced(points, slice))
    # arrays, or a table
    path = _file(source)
    if path.suffix == ".npz":
        if drop:
            raise ValueError(f"{source}: columns can be dropped from a table, not from the array x of an .npz file")
        return _npz(path, label, group, id, slice)
    if label is None:
        frame, _ = read_table(path, **form)
        raise ValueError(
            f"{path}: name the label column (label, --label), or the score by which a model without one is read "
            f"(score, --score); columns: {some(frame.columns)}{_separated(frame, path)}"
        )
    return _table(path, label, group, drop, id, slice, drop_missing, **form)


@in_one_line
def read(
    source: str | os.PathLike[str],
    drop: Sequence[str] = (),
    id: str | None = None,
    slice: Sequence[str] = (),
    *,
    group: str | None = None,
    drop_missing: Sequence[str] | bool = False,
    **form: Unpack[CsvForm],
) -> Data:
    """Read a table, or the features of a named data set, without a label: every column is a feature.

    Parameters
    ----------
    source : str or path
        As in ``load``.
    drop : sequence of str
        Columns of a table that are left out.
    id : str, optional
        The column (or array) that names the records for their owner, and is no feature.
    slice : sequence of str
        As in ``load``.
    group : str, optional
        The column of a table that names the unit of privacy, a person with several rows.
    drop_missing : bool or sequence of str
    **form : str, optional
        As in ``load``: ``separator``, ``decimal`` and ``encoding`` of a ``.csv`` file.

    Returns
    -------
    Data
        The points, without labels, and the name of the file or data set.

    Raises
    ------
    ValueError, OSError
        In one line: what was given, what is allowed.

    Examples
    --------
    >>> from leakbound.data import numbers, read
    >>> numbers(read("wine")).shape
    (178, 13)
    """
    source = os.fspath(source)
    _refuse_csv_form(source, form)
    _refuse_drop_missing(source, drop_missing)
    # a named data set, of which the label is left out
    if source in NAMED and not drop and id is None and group is None:
        loaded = _named(source)
        points = from_arrays(loaded.points.x)
        return replace(loaded, points=points, slices=sliced(points, slice))
    if source in NAMED:
        raise ValueError(f"{source} has no columns by name; drop, id and group are for tables")
    # the array of features
    path = _file(source)
    if path.suffix == ".npz":
        arrays = arrays_of(path)
        if "x" not in arrays or drop or group is not None:
            raise ValueError(f"{source}: needs an array 'x', whose columns have no names to drop; has {some(arrays)}")
        if id is not None:
            _has_array(arrays, id, path)
        points = from_arrays(arrays["x"], names=None if id is None else arrays[id])
        return Data(points, path.name, slices=sliced(points, slice))
    return _table(path, None, group, drop, id, slice, drop_missing, **form)


@in_one_line
def arrays_of(path: str | Path) -> dict[str, Array]:
    """Read the arrays of an ``.npz`` file; pickled objects are refused (`leakbound.files.untrusted.npz_arrays`).

    Parameters
    ----------
    path : str or path

    Returns
    -------
    dict of str to array
        By their names in the file.

    Raises
    ------
    ValueError, OSError
        In one line, if it cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from leakbound.data import arrays_of
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(Path(folder) / "two.npz", x=np.ones(3), y=np.zeros(3))
    ...     sorted(arrays_of(Path(folder) / "two.npz"))
    ['x', 'y']
    """
    return npz_arrays(path)


def _named(name: str) -> Data:
    from sklearn import datasets  # slow to import; only the named data sets need it

    bunch: Any = getattr(datasets, f"load_{name}")()
    return Data(from_arrays(bunch.data, bunch.target), name, (8, 8) if name == "digits" else None)


def _table(
    path: Path,
    label: str | None,
    group: str | None,
    drop: Sequence[str],
    id: str | None,
    slice: Sequence[str],
    drop_missing: Sequence[str] | bool,
    **form: Unpack[CsvForm],
) -> Data:
    """Read a table whose features are all columns without another use."""
    frame, notes = read_table(path, **form)
    if len(frame) < 2:
        raise ValueError(f"{path}: a table needs at least 2 records, got {len(frame)}")
    not_features = _distinct([label, group, *drop, id])
    for name in not_features:
        has_column(frame, name, path)
    frame, kept = _without_missing(frame, drop_missing, [*drop, id, group], path)
    features = frame.drop(columns=not_features)
    if features.shape[1] == 0 and label is not None:
        raise ValueError(f"{path}: no feature columns are left besides {', '.join(not_features)}")
    points = from_arrays(
        features,
        None if label is None else frame[label].to_numpy(),
        None if group is None else frame[group].to_numpy(),
        None if id is None else frame[id],
    )
    # the labels as they were checked: those of classes are not cut like numbers
    table = (
        frame.assign(**{label: classes(points.y)}) if slice and label is not None and points.y is not None else frame
    )
    return Data(points, path.name, notes=tuple(notes), slices=sliced(points, slice, table), kept=kept)


def _without_missing(
    frame: pd.DataFrame, names: Sequence[str] | bool, unused: Sequence[str | None], source: str | Path
) -> tuple[pd.DataFrame, Array | None]:
    """Leave out the rows with a missing value in some columns; all but the unused ones if none are named."""
    if names is False:
        return frame, None
    if names is True:
        names = [str(name) for name in frame.columns if name not in unused]
    for name in names:
        has_column(frame, name, source)
    kept = complete_rows(frame, names)
    if kept.sum() < 2:
        raise ValueError(f"{source}: {int(kept.sum())} of {len(kept):,} rows have no missing value")
    # a new index, unless the file had one that names the records
    complete = pd.DataFrame(frame.loc[kept])
    return (complete.reset_index(drop=True) if isinstance(frame.index, pd.RangeIndex) else complete), kept


def _refuse_drop_missing(source: str, drop_missing: Sequence[str] | bool) -> None:
    """Refuse to leave out rows of what is no table."""
    if drop_missing is not False and Path(source).suffix not in (".csv", ".parquet"):
        raise ValueError(f"{source}: drop_missing leaves out rows of a table, a .csv or .parquet file")


def _distinct(names: Sequence[str | None]) -> list[str]:
    """List the names of columns that are given, each once."""
    return list(dict.fromkeys(name for name in names if name is not None))


def _file(source: str) -> Path:
    """Return the path of a file that can be read, or refuse it."""
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


def _refuse_csv_form(source: str | Path, form: CsvForm) -> None:
    """Refuse what is known of CSV where something else is read."""
    if any(form.values()) and Path(source).suffix != ".csv":
        raise ValueError(f"{source}: separator, decimal and encoding say how a .csv file is written, and this is none")


def read_table(
    path: Path,
    columns: Sequence[str] | None = None,  # of a Parquet file, which has all of them
    **form: Unpack[CsvForm],
) -> tuple[pd.DataFrame, list[str]]:
    """Read a CSV or Parquet file."""
    _refuse_csv_form(path, form)
    notes: list[str] = []
    if path.suffix == ".csv":
        with parsing(path, "csv"):
            try:
                frame = _csv(path, notes, form)
            except UnicodeDecodeError:
                encoding = form.get("encoding") or "UTF-8"
                raise Refused(
                    f"{path}: it is not written in {encoding}: declare it as encoding (--encoding cp1252)"
                ) from None
    else:
        frame = _parquet_table(path, columns)
    if frame.empty:
        raise ValueError(f"{path}: the table has no rows or no columns")
    if path.suffix == ".csv":
        _refuse_empty_rows(frame, path)
    return frame, notes


def columns_in_parquet(path: str | Path) -> list[str]:
    """List the columns of a Parquet file by its schema, in their order; a saved index is none of them."""
    with parsing(path, "parquet"):
        schema = _parquet(path).read_schema(path)
        return [str(name) for name in schema.empty_table().to_pandas().columns]


def _parquet(path: str | Path) -> Any:
    try:
        return import_module("pyarrow.parquet")
    except ImportError:
        raise Refused(f"{path}: Parquet needs pyarrow; install it with: pip install 'leakbound[parquet]'") from None


def _parquet_table(path: Path, columns: Sequence[str] | None) -> pd.DataFrame:
    with parsing(path, "parquet"):
        _refuse_large_parquet(path, _parquet(path))
        frame = pd.read_parquet(path, columns=None if columns is None else list(columns))
        _check_texts(path, frame)
        return frame


def _csv(path: Path, notes: list[str], form: CsvForm) -> pd.DataFrame:
    """Read a CSV file: commas, points and UTF-8 unless they are declared; note which columns are unusual."""
    separator, decimal = form.get("separator"), form.get("decimal")
    refuse_wide_csv(path, (separator or ",").encode())
    encoding = encoding_of(form.get("encoding") or "utf-8")
    rows = rows_of(path, separator, encoding)

    def parsed(**options: Any) -> pd.DataFrame:
        return pd.read_csv(
            path,
            sep=separator or ",",
            encoding=encoding,
            header=0,
            names=rows.header,
            nrows=rows.n_records,
            index_col=False,
            skip_blank_lines=False,
            keep_default_na=False,
            na_values=list(MISSING),
            low_memory=False,  # a column has one type, not one for each part of the file
            **options,
        )

    def texts_of(places: Sequence[int]) -> pd.DataFrame:
        return parsed(usecols=list(places), dtype=str)

    # numbers as pandas reads them; then columns that pandas took for text, or whose digits it would lose
    frame = parsed(decimal=decimal or ".")
    if decimal is None:
        refuse_open_decimal(path, frame, separator or ",")
    frame, with_signs = with_thousands(frame, decimal or ".")
    frame, codes = with_codes(frame, rows.padded, "." if decimal == "," else ",", texts_of)
    parts = [f"separators of thousands in {some(with_signs)}"] if with_signs else []
    parts += [f"codes, whose digits a number would lose, in {some(codes)}"] if codes else []
    if parts:
        notes.append(f"{path.name} is read with {' and '.join(parts)}")
    return frame


def _refuse_empty_rows(frame: pd.DataFrame, path: Path) -> None:
    """Refuse rows of separators alone, as spreadsheets write below a table: they would be records."""
    if frame.shape[1] < 2:
        return
    is_empty = frame.isna().all(axis=1).to_numpy(dtype=bool)
    if is_empty.any():
        n_empty = int(is_empty.sum())
        raise ValueError(
            f"{path}: {n_empty:,} of {len(frame):,} rows {'has' if n_empty == 1 else 'have'} no value in any column, "
            f"the first is record {int(is_empty.argmax()):,}: remove {'it' if n_empty == 1 else 'them'} from the file"
        )


def _check_texts(path: Path, frame: pd.DataFrame) -> None:
    """Check that all texts are UTF-8: pyarrow keeps their bytes, and finds what is none only when they are read."""
    pyarrow = import_module("pyarrow")
    for position in range(frame.shape[1]):
        column = frame.iloc[:, position]
        values = column.cat.categories if isinstance(column.dtype, pd.CategoricalDtype) else column
        if isinstance(values.dtype, pd.StringDtype | pd.ArrowDtype):
            texts = pyarrow.array(values.array)
            try:
                texts.validate(full=True)
            except pyarrow.ArrowInvalid:
                octets = texts.cast("large_binary").to_pylist()
                record = next(place for place, text in enumerate(octets) if not _is_utf8(text))
                kind = "category" if values is not column else "record"
                raise Refused(f"{path}: {kind} {record:,} of column {frame.columns[position]} is no UTF-8") from None
    frame.columns.to_numpy(dtype=object)


def _is_utf8(text: bytes | None) -> bool:
    try:
        (text or b"").decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _refuse_large_parquet(path: Path, parquet: Any) -> None:
    """Refuse a table that is too large by its metadata; text and lists also by the size of each batch of rows.

    The metadata of single column chunks are not read: if they are damaged, pyarrow ends the process.
    """
    with parquet.ParquetFile(path) as file:
        meta, schema = file.metadata, file.metadata.schema
        columns = [schema.column(column) for column in range(meta.num_columns)]
        n_bytes = [meta.row_group(group).total_byte_size for group in range(meta.num_row_groups)]
        # in memory a value takes at least 8 bytes, and one of fixed length takes that length
        values = meta.num_rows * sum(max(8, column.length) for column in columns)
        refuse_large(path, max(values, sum(n_bytes)))

        # a text that is stored once, in a dictionary, may be as long as its row group, and be repeated in every row
        open_ended = [
            column.path for column in columns if column.physical_type == "BYTE_ARRAY" or column.max_repetition_level
        ]
        longest = max(n_bytes, default=0)
        if not open_ended or longest * meta.num_rows <= FREE:
            return
        texts = [name for name in open_ended if _is_text(file.schema_arrow, name)]
        others = [name for name in open_ended if name not in texts]
    total_bytes = checked = 0
    for n_more in chain(_bytes_of_texts(path, parquet, texts), _bytes_of_values(path, parquet, others, longest)):
        total_bytes += n_more
        if total_bytes > checked + _CHECKED:
            refuse_large(path, total_bytes)
            checked = total_bytes
    refuse_large(path, total_bytes)


def _is_text(schema: Any, name: str) -> bool:
    """Whether a column holds texts or bytes, and no list or structure of them."""
    kinds = ("string", "large_string", "binary", "large_binary")
    return name in schema.names and str(schema.field(name).type) in kinds


def _bytes_of_texts(path: Path, parquet: Any, names: Sequence[str]) -> Iterator[int]:
    """Compute what texts take in memory, batch by batch, while every different one is in memory once."""
    if not names:
        return
    compute = import_module("pyarrow.compute")
    with parquet.ParquetFile(path, read_dictionary=names) as file:
        for batch in file.iter_batches(_MOST_ROWS, columns=names, use_threads=False):
            for column in batch.columns:
                length = compute.binary_length(column.dictionary).to_numpy(zero_copy_only=False)
                place = column.indices.drop_null().to_numpy(zero_copy_only=False)
                n_times = np.bincount(place, minlength=len(length))
                yield 8 * len(column) + int(n_times @ np.nan_to_num(length))


def _bytes_of_values(path: Path, parquet: Any, names: Sequence[str], longest: int) -> Iterator[int]:
    """Compute what other values of any length take in memory, in batches so small that the longest ones fit."""
    if not names:
        return
    # so few rows that a batch of the longest takes at most FREE bytes, but at least 16
    n_rows = min(max(FREE // longest, _FEWEST_ROWS), _MOST_ROWS)
    with parquet.ParquetFile(path) as file:
        for batch in file.iter_batches(n_rows, columns=names, use_threads=False):
            yield batch.nbytes


def _npz(path: Path, label: str | None, group: str | None, id: str | None, slice: Sequence[str]) -> Data:
    arrays = arrays_of(path)
    if "x" not in arrays:
        raise ValueError(f"{path}: the features are the array 'x', which is not there; arrays: {some(arrays)}")
    label = label or "y"
    for name in filter(None, (label, group, id)):
        _has_array(arrays, name, path)
    points = from_arrays(
        arrays["x"],
        arrays[label],
        None if group is None else arrays[group],
        None if id is None else arrays[id],
    )
    # arrays of the file besides the features may be sliced by, too
    of_records = {name: values for name, values in arrays.items() if values.shape == (len(points),)}
    slices = {}
    for name in slice:
        if name == label:
            slices[name] = sliced(points, LABEL)[LABEL]
        elif name in of_records:
            slices[name] = of_records[name]
        else:
            slices |= sliced(points, name)
    return Data(points, path.name, picture_size(points.x), slices=slices)


def _has_array(arrays: Mapping[str, Array], name: str, path: Path) -> None:
    """Refuse an array that is not in the file, and suggest the nearest one."""
    if name not in arrays:
        raise ValueError(f"{path}: no array {name!r}{nearest(name, arrays)}; arrays: {some(arrays)}")


def has_column(frame: pd.DataFrame, name: str, source: str | Path) -> None:
    """Refuse a column that is not there, and suggest the nearest one."""
    if name not in frame.columns:
        raise ValueError(
            f"{source}: no column {name!r}{nearest(name, map(str, frame.columns))}; columns: {some(frame.columns)}"
            f"{_separated(frame, source)}"
        )


def _separated(frame: pd.DataFrame, source: str | Path) -> str:
    """Ask for the separator of a CSV file with a single column, which may be that of all columns."""
    if frame.shape[1] > 1 or Path(source).suffix != ".csv":
        return ""
    return "; if a sign other than a comma separates columns, name it as separator (--separator)"
