"""Gower's distances between records and the rows of synthetic files.

The distance of two rows is the mean over the columns of

* |a - b| / range, of two numbers or dates; the range is that of all candidates (J. C. Gower, Biometrics 1971);
* 0 or 1, of two levels of a category, or where the column is constant;
* 0 where both values are missing, 1 where one is.

Ranges and levels come from all candidates together, members and others, or all records of a game: from one side alone,
or from the file of one model, they would tell who is in. Letters: N records, S rows of a synthetic file, p columns.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from sklearn.neighbors import NearestNeighbors

from leakbound.core.types import Points
from leakbound.data.columns import identifiers, refuse_free_text
from leakbound.data.points import some

Array = np.ndarray
_BLOCK = 1 << 18  # numbers of the largest temporary array: 2 MB stay in a processor's cache
_YEAR_FIRST = r"\s*\d{4}-\d{1,2}-\d{1,2}(?:[T ][\d:.]+Z?)?\s*"
_MISSING, _UNSEEN = -1, -2  # codes of a missing value, and of a level that no candidate has
_OBJECTS = {"decimal", "integer", "floating", "mixed-integer-float", "boolean"}  # of a column of Python's numbers
_DATES = {"date", "datetime", "datetime64"}


@dataclass(frozen=True, eq=False)
class Encoded:
    """Rows of a table as numbers: equal rows have equal numbers and codes."""

    numbers: Float[Array, "n q"]  # over the range of the candidates; NaN where a value is missing
    codes: Int[Array, "n c"]  # of levels; -1 for a missing value, -2 for a level that no candidate has

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def n_columns(self) -> int:
        """Columns that count in a distance."""
        return self.numbers.shape[1] + self.codes.shape[1]

    def take(self, rows: Any) -> Encoded:
        """Return some of the rows, by index or mask."""
        return Encoded(self.numbers[rows], self.codes[rows])

    def followed_by(self, other: Encoded) -> Encoded:
        """Append rows of the same encoding, such as those of a second file."""
        return Encoded(np.concatenate([self.numbers, other.numbers]), np.concatenate([self.codes, other.codes]))


@dataclass(frozen=True, eq=False)
class Encoding:
    """Columns of a table, with the range or the levels that the candidates have in each.

    >>> people = pd.DataFrame({"age": [20.0, 30.0, 60.0], "town": ["Bern", "Chur", None]})
    >>> encoding = Encoding.of(people)
    >>> rows = encoding.encode(pd.DataFrame({"town": ["Chur"], "age": [40]}))
    >>> nearest_distances(encoding.encode(people), rows, k=1).round(3).ravel().tolist()  # (20/40 + 1)/2, ...
    [0.75, 0.125, 0.75]
    """

    numbers: dict[Any, tuple[float, float]]  # smallest value and range of each column of numbers or dates
    levels: dict[Any, list[str]]  # levels of each other column, in alphabetical order
    left_out: tuple[str, ...] = ()  # identifiers, which are compared with nothing

    @classmethod
    def of(cls, candidates: Any) -> Encoding:
        """Read the columns of all candidates together: members and others, or the N records of a game.

        ``candidates`` is a frame, or an array of numbers of shape (N, ...). A column of text or whole numbers with
        another value in each record is an identifier and is left out. Free text is refused, in one line.
        """
        frame = _frame(candidates)
        columns = {name: _numbers(pd.Series(frame[name])) for name in frame.columns}
        is_name = [name for name in identifiers(Points(frame)) if not _is_date(pd.Series(frame[name]))]
        kept = [name for name in frame.columns if name not in is_name]
        if not kept:
            raise ValueError(f"no column is left to compare: {some(is_name)} has another value in each record")
        refuse_free_text(frame, [name for name in kept if columns[name] is None], "a distance", "make categories of it")
        numbers, levels = {}, {}
        for name in kept:
            smallest, largest = _ends(columns[name])
            if largest > smallest:
                numbers[name] = smallest, largest - smallest
            else:  # text, or a constant: equal or not
                levels[name] = sorted(set(_texts(pd.Series(frame[name])).dropna()))
        return cls(numbers, levels, tuple(str(name) for name in is_name))

    def only(self, names: Collection[Any]) -> Encoding:
        """Keep some of the columns, in the order of the encoding."""
        numbers = {name: ends for name, ends in self.numbers.items() if name in names}
        levels = {name: of_column for name, of_column in self.levels.items() if name in names}
        return Encoding(numbers, levels, (*self.left_out, *(str(name) for name in self.names if name not in names)))

    @property
    def names(self) -> list[Any]:
        """Columns that count in a distance: numbers, then levels."""
        return [*self.numbers, *self.levels]

    def encode(self, rows: Any, file: str = "the synthetic file") -> Encoded:
        """Encode the rows of candidates or of a synthetic file, whose columns are found by name.

        Raises ``ValueError``, in one line, where a column is missing, is one that no candidate has, or has text where
        the candidates have numbers.
        """
        frame = _frame(rows)
        names = self.names
        lacking = [name for name in names if name not in frame.columns]
        unknown = [name for name in frame.columns if name not in names and str(name) not in self.left_out]
        if lacking or unknown:
            what, which = ("lacks", lacking) if lacking else ("has", unknown)
            raise ValueError(
                f"{file} {what} the columns {some(which)}, which the records "
                f"{'have' if lacking else 'lack'}: leave them out of all files, or give them in each"
            )
        numbers = np.empty((len(frame), len(self.numbers)))
        for column, (name, (smallest, width)) in zip(numbers.T, self.numbers.items(), strict=True):
            given = pd.Series(frame[name])
            values = _numbers(given)
            if values is None and given.notna().to_numpy().any():
                raise ValueError(
                    f"column {name} has numbers or dates in the records and text in {file}: write it alike"
                )
            column[:] = np.nan if values is None else (values - smallest) / width
        codes = np.empty((len(frame), len(self.levels)), dtype=np.int32)
        for column, (name, known) in zip(codes.T, self.levels.items(), strict=True):
            texts = _texts(pd.Series(frame[name]))
            code = pd.Index(known, dtype=object).get_indexer(pd.Index(texts, dtype=object))
            column[:] = np.where(texts.isna(), _MISSING, np.where(code < 0, _UNSEEN, code))
        return Encoded(numbers, codes)


def nearest_distances(records: Encoded, synthetic: Encoded, k: int) -> Float[Array, "N k"]:
    """Compute Gower's distance of each record to its k nearest synthetic rows, in ascending order.

    Of fewer than k rows, to all of them. A distance is 0 exactly where a row equals the record. Memory is bounded:
    scikit-learn's neighbours are used of numbers alone, where a tree pays, and blocks of 2 MB otherwise, which compare
    codes three times as fast as one-hot columns.

    >>> encoding = Encoding.of(np.array([[0.0, 0.0], [4.0, 10.0]]))
    >>> people = encoding.encode(np.array([[0.0, 0.0], [4.0, 10.0]]))
    >>> nearest_distances(people, encoding.encode(np.array([[1.0, 0.0], [4.0, 10.0]])), k=2).tolist()
    [[0.125, 1.0], [0.0, 0.875]]
    """
    return nearest_rows(records, synthetic, k)[0]


def nearest_rows(records: Encoded, synthetic: Encoded, k: int) -> tuple[Float[Array, "N k"], Int[Array, "N k"]]:
    """Find the k nearest synthetic rows of each record: their distances, in ascending order, and their indices."""
    if len(synthetic) == 0:
        raise ValueError("the synthetic file has no rows")
    k = min(k, len(synthetic))
    has_missing = np.isnan(records.numbers).any() or np.isnan(synthetic.numbers).any()
    if records.codes.shape[1] or has_missing:
        total, rows = _in_blocks(records, synthetic, k)
    else:
        neighbours = NearestNeighbors(n_neighbors=k, metric="manhattan").fit(synthetic.numbers)
        total, rows = neighbours.kneighbors(records.numbers)
    return total / records.n_columns, rows


def _in_blocks(records: Encoded, synthetic: Encoded, k: int) -> tuple[Float[Array, "N k"], Int[Array, "N k"]]:
    """Sum the differences column by column, for as many records at once as fit into a block."""
    nearest, rows = np.empty((len(records), k)), np.empty((len(records), k), dtype=np.intp)
    n_rows = max(1, _BLOCK // len(synthetic))
    for start in range(0, len(records), n_rows):
        block = records.take(slice(start, start + n_rows))
        n_different = np.zeros((len(block), len(synthetic)), dtype=np.uint16)
        for own, other in zip(block.codes.T, synthetic.codes.T, strict=True):
            n_different += own[:, None] != other
        total = n_different.astype(float)
        for own, other in zip(block.numbers.T, synthetic.numbers.T, strict=True):
            difference = np.abs(own[:, None] - other)
            lacking, other_lacking = np.isnan(own), np.isnan(other)
            if lacking.any() or other_lacking.any():
                difference = np.where(np.isnan(difference), lacking[:, None] != other_lacking, difference)
            total += difference
        smallest = np.argpartition(total, k - 1, axis=1)[:, :k]
        order = np.argsort(np.take_along_axis(total, smallest, axis=1), axis=1, kind="stable")
        rows[start : start + n_rows] = np.take_along_axis(smallest, order, axis=1)
        nearest[start : start + n_rows] = np.take_along_axis(total, rows[start : start + n_rows], axis=1)
    return nearest, rows


def _frame(rows: Any) -> pd.DataFrame:
    """Return a table: a frame, or an array of numbers, whose columns are named by their positions."""
    if isinstance(rows, pd.DataFrame):
        return rows.reset_index(drop=True)
    array = np.asarray(rows)
    if array.dtype.kind not in "biuf" or array.ndim < 2:
        raise ValueError(
            f"a distance needs a frame, or an array of numbers with a row for each record; got a {type(rows).__name__}"
        )
    return pd.DataFrame(array.reshape(len(array), -1))


def kind_of(column: pd.Series) -> str:
    """Name what a distance takes the values of a column for; nothing where there are none.

    >>> [kind_of(pd.Series([value])) for value in ("2024-03-31", 1.5, "a", None)]
    ['dates', 'numbers', 'text', '']
    """
    if column.isna().all():
        return ""
    if _is_date(column):
        return "dates"
    return "text" if _numbers(column) is None else "numbers"


def _is_date(column: pd.Series) -> bool:
    """Tell dates: their own type, or text that begins with the year in each value, as 2024-03-31."""
    if pd.api.types.is_datetime64_any_dtype(column) or pd.api.types.is_timedelta64_dtype(column):
        return True
    values = column.dropna()
    kind = pd.api.types.infer_dtype(values)
    if kind in _DATES:
        return True
    return kind == "string" and len(values) > 0 and bool(values.astype(str).str.fullmatch(_YEAR_FIRST).all())


def _numbers(column: pd.Series) -> Float[Array, " n"] | None:
    """Return numbers, truth values or dates (in days) as floats, NaN where one is missing; None of categories."""
    if pd.api.types.is_numeric_dtype(column):
        numbers = column.to_numpy(dtype=float, na_value=np.nan)
        return np.where(np.isfinite(numbers), numbers, np.nan)
    if _is_date(column):
        if not pd.api.types.is_timedelta64_dtype(column):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                column = pd.Series(pd.to_datetime(column, errors="coerce", utc=True)) - pd.Timestamp(0, tz="UTC")
        return (column / pd.Timedelta(days=1)).to_numpy(dtype=float, na_value=np.nan)
    if column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) in _OBJECTS:
        return _numbers(column.astype(float))
    return None


def _ends(values: Float[Array, " n"] | None) -> tuple[float, float]:
    """Return the smallest and the largest number; NaN of none."""
    present = np.zeros(0) if values is None else values[~np.isnan(values)]
    return (float(present.min()), float(present.max())) if len(present) else (np.nan, np.nan)


def _texts(column: pd.Series) -> pd.Series:
    """Write levels as text, whole numbers without a decimal point; missing values stay."""
    numbers = _numbers(column)
    if numbers is None:
        return column.astype(object).map(str, na_action="ignore")
    return pd.Series(numbers, dtype=object).map(lambda number: f"{number:.17g}", na_action="ignore")
