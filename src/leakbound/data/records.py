"""Records that are neither an array of numbers nor a frame: texts, sparse rows, several arrays, rows of any length."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from jaxtyping import Int, Shaped, UInt64
from scipy import sparse

Array = np.ndarray


def _hashed(values: Shaped[Array, " n"]) -> UInt64[Array, " n"]:
    """Hash each value: equal ones have equal hashes."""
    return pd.util.hash_array(values)  # pyright: ignore[reportAttributeAccessIssue] -- exported lazily


@dataclass(frozen=True, eq=False)
class Texts:
    """Texts, which an estimator takes as a list, a Series or an array."""

    values: Shaped[Array, " N"]
    kind: Literal["list", "series", "array"]

    def __len__(self) -> int:
        return len(self.values)

    def take(self, indices: Int[Array, " n"], /) -> Texts:
        """Return the texts at these positions."""
        return replace(self, values=self.values[indices])

    @property
    def content(self) -> UInt64[Array, " N"]:
        """A hash of each text."""
        return _hashed(self.values)

    @property
    def as_given(self) -> list[str] | pd.Series | Shaped[Array, " N"]:
        """The texts as a list, a Series with an index from 0 on, or an array."""
        if self.kind == "list":
            return self.values.tolist()
        return pd.Series(self.values) if self.kind == "series" else self.values

    def followed_by(self, other: Texts, /) -> Texts:
        """Append other texts."""
        return replace(self, values=np.concatenate([self.values, other.values]))


@dataclass(frozen=True, eq=False)
class Sparse:
    """A sparse matrix of SciPy with a row for each record."""

    matrix: Any

    def __len__(self) -> int:
        return self.matrix.shape[0]

    @property
    def shape(self) -> tuple[int, int]:
        """(N, d)."""
        return self.matrix.shape

    def take(self, indices: Int[Array, " n"], /) -> Sparse:
        """Return the rows at these positions."""
        return Sparse(self.matrix[indices])

    @property
    def content(self) -> UInt64[Array, " N"]:
        """A hash of the columns and values of each row that are not 0."""
        starts, columns, values = self.matrix.indptr, self.matrix.indices, self.matrix.data
        entries = _hashed(columns.astype(np.int64)) * np.uint64(31) + _hashed(values)
        # sums of hashes, modulo 2^64, do not depend on the order of a row's entries
        total = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(entries, dtype=np.uint64)])
        return total[starts[1:]] - total[starts[:-1]]

    @property
    def as_given(self) -> Any:
        """The matrix."""
        return self.matrix

    def followed_by(self, other: Sparse, /) -> Sparse:
        """Append other rows."""
        if self.shape[1] != other.shape[1]:
            raise ValueError(f"members have {self.shape[1]} columns, others {other.shape[1]}")
        return sparse_rows(sparse.vstack([self.matrix, other.matrix], format="csr"))


@dataclass(frozen=True, eq=False)
class Fields:
    """Several arrays by name, with an entry of each for every record, as the token ids and the mask of a text."""

    arrays: Mapping[str, Shaped[Array, "N ..."]]

    def __len__(self) -> int:
        return len(next(iter(self.arrays.values())))

    def take(self, indices: Int[Array, " n"], /) -> Fields:
        """Return the records at these positions."""
        return Fields({name: array[indices] for name, array in self.arrays.items()})

    @property
    def content(self) -> UInt64[Array, " N"]:
        """A hash of the values of each record in all arrays."""
        hashes = np.zeros(len(self), dtype=np.uint64)
        for name in sorted(self.arrays):
            hashes = hashes * np.uint64(31) + _hashes(self.arrays[name])
        return hashes

    @property
    def as_given(self) -> dict[str, Shaped[Array, "N ..."]]:
        """The arrays by name."""
        return dict(self.arrays)

    def followed_by(self, other: Fields, /) -> Fields:
        """Append other records, which must have arrays of the same names and shapes."""
        shapes, other_shapes = _shapes(self), _shapes(other)
        if shapes != other_shapes:
            raise ValueError(f"members have the fields {shapes}, others {other_shapes}")
        arrays = {name: np.concatenate([array, other.arrays[name]]) for name, array in self.arrays.items()}
        return Fields(arrays)


@dataclass(frozen=True, eq=False)
class Sequences:
    """Sequences of different lengths, as lists of token ids or arrays with a row for each step in time."""

    rows: Shaped[Array, " N"]

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, indices: Int[Array, " n"], /) -> Sequences:
        """Return the sequences at these positions."""
        return Sequences(self.rows[indices])

    @property
    def content(self) -> UInt64[Array, " N"]:
        """A hash of the values of each sequence; a list and an array of the same numbers have the same hash."""
        return np.array([_hash(np.asarray(row)) for row in self.rows], dtype=np.uint64)

    @property
    def as_given(self) -> list[Any]:
        """The sequences as a list."""
        return list(self.rows)

    def followed_by(self, other: Sequences, /) -> Sequences:
        """Append other sequences."""
        return Sequences(np.concatenate([self.rows, other.rows]))


def sparse_rows(matrix: Any) -> Sparse:
    """Take a sparse matrix of any format as rows without entries that are 0.

    >>> from scipy.sparse import coo_matrix
    >>> len(sparse_rows(coo_matrix([[0.0, 1.0], [2.0, 0.0]])))
    2
    """
    if matrix.dtype.kind not in "biuf":
        raise ValueError(f"a sparse matrix must hold numbers, got {matrix.dtype}")
    rows = matrix.tocsr(copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return Sparse(rows)


def texts(values: Any) -> Texts | None:
    """Take a list, Series or array of texts; None if it is anything else.

    >>> len(texts(["a fine day", "rain"])), texts([1, 2]) is None
    (2, True)
    """
    if isinstance(values, pd.Series):
        kind = "series"
    elif isinstance(values, np.ndarray):
        kind = "array"
    elif isinstance(values, list | tuple):
        kind = "list"
    else:
        return None
    if len(values) == 0 or not all(isinstance(value, str) for value in values):
        return None
    array = np.empty(len(values), dtype=object)
    array[:] = list(values)
    return Texts(array, kind)


def fields(arrays: Mapping[str, Any]) -> Fields:
    """Take arrays of equal length by name.

    >>> tokens = fields({"input_ids": [[5, 2, 0], [7, 1, 4]], "attention_mask": [[1, 1, 0], [1, 1, 1]]})
    >>> len(tokens), list(tokens.as_given)
    (2, ['input_ids', 'attention_mask'])
    """
    checked: dict[str, Array] = {}
    for name, values in arrays.items():
        try:
            array = np.asarray(values)
        except ValueError:  # rows of different lengths
            raise ValueError(f"the rows of x[{name!r}] have different lengths; pad them") from None
        if array.dtype.kind not in "biuf":
            raise ValueError(
                f"x[{name!r}] holds {array.dtype}, not numbers; columns of several types are a pandas DataFrame"
            )
        if array.ndim == 0:
            raise ValueError(f"x[{name!r}] is a single number; give a value for each point")
        checked[str(name)] = array
    if not checked:
        raise ValueError("x is a dictionary without arrays")
    lengths = {name: len(array) for name, array in checked.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the arrays of x must have equal lengths, got {lengths}")
    return Fields(checked)


def sequences(values: Any) -> Sequences | None:
    """Take rows of different lengths: a list, tuple or array of lists or arrays; None if it is anything else.

    >>> len(sequences([[3, 1], [4, 1, 5]])), sequences([[3, 1], [4, 1]]) is None
    (2, True)
    """
    if isinstance(values, np.ndarray):
        if values.dtype != object or values.ndim != 1:
            return None
    elif not isinstance(values, list | tuple):
        return None
    # rows of one shape are for an ordinary array
    shapes = set()
    for row in values:
        shape = _shape_of_row(row)
        if shape is None:
            return None
        shapes.add(shape)
    if len(shapes) < 2:
        return None
    # one by one: numpy makes no array of rows of different lengths at once
    rows = np.empty(len(values), dtype=object)
    for place, row in enumerate(values):
        rows[place] = row
    return Sequences(rows)


def as_given(x: Any) -> Any:
    """Return features as the user gave them: arrays and frames are what they were."""
    return x.as_given if isinstance(x, Texts | Sparse | Fields | Sequences) else x


def _shape_of_row(row: Any) -> tuple[int, ...] | None:
    """Return the shape of a sequence of numbers or words; None for anything else."""
    if isinstance(row, str | Mapping) or not (isinstance(row, SequenceOf) or callable(getattr(row, "__array__", None))):
        return None
    try:
        array = np.asarray(row)
    except ValueError:  # a list of lists of different lengths
        return None
    if array.ndim == 0 or array.dtype.kind not in "biufU":
        return None
    return array.shape


def _shapes(records: Fields) -> dict[str, tuple[int, ...]]:
    """List the shapes of one record's arrays by name, in alphabetical order."""
    return {name: records.arrays[name].shape[1:] for name in sorted(records.arrays)}


def _hashes(array: Shaped[Array, "N ..."]) -> UInt64[Array, " N"]:
    return np.array([_hash(np.asarray(row)) for row in array], dtype=np.uint64)


def _hash(values: Shaped[Array, "..."]) -> int:
    """Hash an array by its shape and its values."""
    if values.dtype.kind == "f":
        values = values + 0.0  # -0.0 becomes 0.0
    elif values.dtype.kind in "biu":
        values = values.astype(np.int64)
    head = f"{values.dtype.kind}{values.shape}".encode()
    digest = hashlib.blake2b(head + np.ascontiguousarray(values).tobytes(), digest_size=8)
    return int.from_bytes(digest.digest(), "little")
