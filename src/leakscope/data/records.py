"""Records that are neither an array of numbers nor a frame: texts, and sparse rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import pandas as pd
from jaxtyping import Int, Shaped, UInt64
from pandas.util import hash_array
from scipy import sparse

Array = np.ndarray


@runtime_checkable
class Records(Protocol):
    """Records of one kind, which can be taken by position."""

    def __len__(self) -> int:
        """Return the number N of records."""
        ...

    def take(self, indices: Int[Array, " n"], /) -> Any:
        """Return the records at these positions."""
        ...

    @property
    def content(self) -> UInt64[Array, " N"]:
        """A hash of each record: equal records have equal hashes."""
        ...

    @property
    def as_given(self) -> Any:
        """The records as the user gave them, which is what an estimator is fitted on."""
        ...

    def followed_by(self, other: Any, /) -> Any:
        """Append other records of the same kind."""
        ...


@dataclass(frozen=True, eq=False)
class Texts:
    """Texts, which an estimator takes as a list, a Series or an array.

    Parameters
    ----------
    values : object array of shape (N,)
    kind : {"list", "series", "array"}
        What the user gave.
    """

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
        return hash_array(self.values)

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
    """A sparse matrix of SciPy with a row for each record.

    Parameters
    ----------
    matrix : csr_array or csr_matrix of shape (N, d)
    """

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
        entries = hash_array(columns.astype(np.int64)) * np.uint64(31) + hash_array(values)
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


def sparse_rows(matrix: Any) -> Sparse:
    """Take a sparse matrix of any format as rows without entries that are 0.

    Parameters
    ----------
    matrix : sparse array or matrix of shape (N, d)

    Returns
    -------
    Sparse

    Raises
    ------
    ValueError
        If it holds no numbers.

    Examples
    --------
    >>> from scipy.sparse import coo_matrix
    >>> from leakscope.data.records import sparse_rows
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

    Parameters
    ----------
    values : object

    Returns
    -------
    Texts or None

    Examples
    --------
    >>> from leakscope.data.records import texts
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


def as_given(x: Any) -> Any:
    """Return features as the user gave them: arrays and frames are what they were.

    Parameters
    ----------
    x : array, frame, or Records

    Returns
    -------
    object
    """
    return x.as_given if isinstance(x, Texts | Sparse) else x
