"""Records as a matrix of numbers, for a classifier that sees the records themselves."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from leakbound.core.types import NotApplicable, Points
from leakbound.data.images import Images
from leakbound.data.records import Fields, Sequences, Sparse, Texts

Array = np.ndarray
MOST_LEVELS = 100  # a column of text with more values is ordered, not taken as categories
TEXT_WORDS = 4  # a column whose median value has so many words or more is text, and its words are counted
BUCKETS = 64  # that words are hashed into
WORDS_READ = 100  # of each text
SIDE, FEWER = 16, 8  # pixels that a longer side is averaged to; fewer if more than MANY columns remain
MANY = 1024
LARGEST = 1e300  # replaces infinite values


@dataclass(frozen=True, eq=False)
class Features:
    """Records as numbers."""

    values: Float[Array, "n p"]
    categorical: Bool[Array, " p"]


def features(points: Points, rows: Int[Array, " n"]) -> Features:
    """Convert some records to numbers for a classifier: their columns or pixels, and their label.

    Numbers stay as they are, times become numbers. Text with at most 100 values becomes categories; with more, its
    rank in alphabetical order (so that names in order of time are detected) and its length; longer text also counts of
    its words, hashed into 64 buckets. Sides of images are averaged over blocks to at most 16 pixels. Of a sparse matrix
    the 1,024 columns with most entries are used, and how many entries a row has. Several arrays by name are read one
    by one; sequences of different lengths become their length, with counts of their token ids in 64 buckets, or with
    mean, smallest and largest of other numbers.

    >>> from leakbound.data import from_arrays
    >>> frame = pd.DataFrame({"age": [30.0, None], "sex": ["f", "m"]})
    >>> features(from_arrays(frame), np.arange(2)).values
    array([[30.,  0.],
           [nan,  1.]])
    """
    parts = list(_feature_parts(points.x, rows))
    if points.y is not None:
        labels = points.y[rows].reshape(len(rows), -1)
        parts += [_column(pd.Series(label), codes=points.y.dtype.kind != "f") for label in labels.T]
    values = np.hstack([part.values for part in parts])
    values = np.clip(values, -LARGEST, LARGEST)  # NaN stays
    return Features(values, np.concatenate([part.categorical for part in parts]))


def _feature_parts(x: Any, rows: Int[Array, " n"]) -> Iterator[Features]:
    """Convert each column of a frame, or what else the records consist of."""
    if isinstance(x, Images):
        yield _pixels(x.pixels(rows))
    elif isinstance(x, pd.DataFrame):
        for place in range(x.shape[1]):
            yield _column(x.iloc[rows, place].reset_index(drop=True))
    elif isinstance(x, np.ndarray) and x.dtype.kind in "biufUS":
        yield from _array_parts(x[rows])
    elif isinstance(x, Texts):
        yield _column(pd.Series(x.values[rows]))
    elif isinstance(x, Fields):
        for name in sorted(x.arrays):
            yield _pixels(x.arrays[name][rows])
    elif isinstance(x, Sequences):
        yield _numeric(_summaries([np.asarray(row) for row in x.rows[rows]]))
    elif isinstance(x, Sparse):
        yield _numeric(_densest_columns(x.matrix[rows]))
    else:
        raise NotApplicable("unreadable_records", type=type(x).__name__)


def _array_parts(values: Array) -> Iterator[Features]:
    """Convert all numbers of an array, or each column of text."""
    if values.dtype.kind in "biuf":
        yield _pixels(values)
        return
    frame = pd.DataFrame(values.reshape(len(values), -1))
    for place in range(frame.shape[1]):
        yield _column(frame.iloc[:, place])


def _summaries(sequences: list[Array]) -> Float[Array, "n c"]:
    """Return the length of each sequence, and counts of its token ids or, of other numbers, where they lie."""
    lengths = np.array([[len(sequence)] for sequence in sequences], dtype=float)
    if all(sequence.dtype.kind in "iu" or sequence.size == 0 for sequence in sequences):
        buckets = [sequence.ravel().astype(np.int64) % BUCKETS for sequence in sequences]
        counts = [np.bincount(bucket, minlength=BUCKETS) for bucket in buckets]
        return np.hstack([lengths, np.array(counts, dtype=float)])
    places = np.full((len(sequences), 3), np.nan)  # none of an empty sequence
    for place, sequence in zip(places, sequences, strict=True):
        if sequence.size:
            values = sequence.astype(float)
            place[:] = values.mean(), values.min(), values.max()
    return np.hstack([lengths, places])


def _densest_columns(matrix: Any) -> Float[Array, "n c"]:
    """Return the columns of a sparse matrix with most entries, and the number of entries and the sum of each row."""
    entries = (matrix != 0).astype(np.int64)
    densest = np.sort(np.argsort(-np.asarray(entries.sum(axis=0)).ravel(), kind="stable")[:MANY])
    totals = [np.asarray(part.sum(axis=1)).reshape(-1, 1) for part in (entries, matrix)]
    return np.hstack([matrix[:, densest].toarray(), *totals])


def _numeric(values: Array) -> Features:
    matrix = np.asarray(values, dtype=float).reshape(len(values), -1)
    return Features(matrix, np.zeros(matrix.shape[1], dtype=bool))


def _pixels(values: Array) -> Features:
    """Flatten an array of numbers; sides of images and of tensors with more axes are averaged over blocks."""
    if values.ndim > 2:
        for longest in (SIDE, FEWER):  # coarser blocks if too many columns remain
            small = np.asarray(values, dtype=float)
            for axis in range(1, small.ndim):
                small = _average_blocks(small, axis, longest)
            if small[0].size <= MANY:
                break
        values = small
    return _numeric(values)


def _average_blocks(values: Float[Array, "n ..."], axis: int, longest: int) -> Float[Array, "n ..."]:
    """Average an axis over blocks of neighbours, so that at most ``longest`` values are left."""
    size = values.shape[axis]
    if size <= longest:
        return values
    starts = np.arange(longest) * size // longest
    shape = [1] * values.ndim
    shape[axis] = longest
    widths = np.diff([*starts, size]).reshape(shape)
    return np.add.reduceat(values, starts, axis=axis) / widths


def _column(column: pd.Series, codes: bool = False) -> Features:
    """Convert one column of numbers, times, categories or text; ``codes`` are numbers that name classes."""
    if pd.api.types.is_datetime64_any_dtype(column) or pd.api.types.is_timedelta64_dtype(column):
        ticks = column.astype("int64").to_numpy(dtype=float)
        return _numeric(np.where(column.isna(), np.nan, ticks))
    if pd.api.types.is_numeric_dtype(column) and not codes:
        return _numeric(column.to_numpy(dtype=float, na_value=np.nan))
    text = column.astype(object).where(column.notna(), None)
    level, names = pd.factorize(text.map(lambda value: None if value is None else str(value)), sort=True)
    level = np.where(level < 0, np.nan, level)  # pandas has -1 for a missing value
    if len(names) <= MOST_LEVELS:
        return Features(level[:, None], np.ones(1, dtype=bool))
    if codes:
        return _numeric(column.to_numpy()) if pd.api.types.is_numeric_dtype(column) else _numeric(level)
    return _text(["" if value is None else str(value) for value in text], level)


def _text(texts: list[str], rank: Float[Array, " n"]) -> Features:
    """Convert text to rank, length and number of words; longer text also to counts of hashed words."""
    length = np.array([len(text) for text in texts], dtype=float)
    words = [text.lower().split() for text in texts]
    n_words = np.array([len(row_words) for row_words in words], dtype=float)
    columns = [rank[:, None], length[:, None], n_words[:, None]]
    if np.median(n_words) >= TEXT_WORDS:
        counts = np.zeros((len(texts), BUCKETS))
        for row, row_words in enumerate(words):
            for word in row_words[:WORDS_READ]:
                counts[row, zlib.crc32(word.encode("utf-8", "replace")) % BUCKETS] += 1
        columns.append(counts)
    return _numeric(np.hstack(columns))
