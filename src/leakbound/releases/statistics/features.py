"""Features of single records, which a linear statistic sums over the data.

A feature map is a frozen value: ``labels(x)`` names its d numbers, and a call on the records returns an array
(N, d). Records are rows of an array, whose columns are called x0, x1, ..., or of a frame.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Protocol, TypeVar, final, runtime_checkable

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from leakbound.core.checks import count, one_of
from leakbound.core.repeated_rows import RepeatedRows

Array = np.ndarray
_RECORDS = 8192  # records whose features are computed at once
_CONVERTED = 2048  # of them, those whose membership is converted to float64 at once: 2 MB for 128 rows
Rule = TypeVar("Rule")
_BLOCK = 512  # of these, those of one matrix product, whose factors stay in the cache


@runtime_checkable
class Features(Protocol):
    """Features of each record, which do not depend on the others."""

    def labels(self, x: Any) -> list[str]:
        """Name each of the d numbers."""
        ...

    def __call__(self, x: Any) -> Float[Array, "N d"]:
        """Compute the features of each record."""
        ...


@final
@dataclass(frozen=True)
class Columns:
    """The columns themselves: all of them, which must be numeric.

    >>> Columns()(np.array([[1, 2], [3, 4]])).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """

    def labels(self, x: Any) -> list[str]:
        """Return the names of the columns."""
        return columns_of(x)

    def __call__(self, x: Any) -> Float[Array, "N d"]:
        """Return the records as numbers."""
        return numbers(x)


@final
@dataclass(frozen=True)
class SecondMoments:
    """Products ``(x_i - c_i)(x_j - c_j)``, i <= j, around a public centre c.

    Their mean is linear in the data. The covariance is not: it subtracts the square of the mean of the data in
    use; for that take the statistic ``covariance``.

    >>> x = np.array([[1.0, 2.0]])
    >>> SecondMoments()(x).tolist(), SecondMoments().labels(x)
    ([[1.0, 2.0, 4.0]], ['x0 x0', 'x0 x1', 'x1 x1'])
    """

    centre: tuple[float, ...] | None = None

    def labels(self, x: Any) -> list[str]:
        """Name the products, as ``"age hours"`` for two columns."""
        return pairs_of(columns_of(x))

    def __call__(self, x: Any) -> Float[Array, "N d"]:
        """Compute the upper triangle of the products, row by row."""
        table = numbers(x)
        if self.centre is not None:
            if len(self.centre) != table.shape[1]:
                raise ValueError(f"centre has {len(self.centre)} numbers, the data {table.shape[1]} columns")
            table = table - np.array(self.centre)
        return products(table)


@final
@dataclass(frozen=True)
class Histogram:
    """Membership of the bins of some columns; their sum is a histogram of counts.

    A bin holds its left edge and not its right one, the last bin both, as in ``numpy.histogram``. Values outside
    of the edges are in no bin.

    >>> bins = Histogram(("x0",), ((0.0, 1.0, 2.0),))
    >>> x = np.array([[0.5], [1.0], [2.0], [7.0]])
    >>> bins(x).sum(axis=0).tolist(), bins.labels(x)
    ([1.0, 2.0], ['x0 from 0 to 1', 'x0 from 1 to 2'])
    """

    columns: tuple[str, ...]
    edges: tuple[tuple[float, ...], ...]
    read_from_data: ClassVar[bool] = False  # of a histogram that `spanning` made it is True

    def __post_init__(self) -> None:
        if not self.columns or len(self.columns) != len(self.edges):
            raise ValueError(f"a histogram of {len(self.columns)} columns has {len(self.edges)} tuples of edges")
        for name, edges in zip(self.columns, self.edges, strict=True):
            if len(edges) < 2 or not (np.isfinite(edges).all() and (np.diff(edges) > 0).all()):
                raise ValueError(f"edges of {name} must be at least 2 finite increasing numbers, got {list(edges)}")

    @classmethod
    def spanning(cls, x: Any, columns: Sequence[str], n_bins: int = 10) -> Histogram:
        """Use bins of equal width over the range of all records: the same whichever of them are in the data in use."""
        table = numbers(x)[:, _places(x, columns)]
        low, high = table.min(axis=0), table.max(axis=0)
        edges = np.linspace(low, np.where(high > low, high, low + 1), count("n_bins", n_bins) + 1)
        return marked_as_read(cls(tuple(columns), tuple(map(tuple, edges.T.tolist()))))

    def labels(self, x: Any) -> list[str]:
        """Name the bins, as ``"age from 20 to 30"``."""
        return [
            f"{name} from {low:g} to {high:g}"
            for name, edges in zip(self.columns, self.edges, strict=True)
            for low, high in pairwise(edges)
        ]

    def __call__(self, x: Any) -> Float[Array, "N d"]:
        """Return 1 for the bin of each column that holds the record, 0 elsewhere."""
        return np.asarray(self.repeated(x))

    def repeated(self, x: Any) -> RepeatedRows:
        """Return the same features, with every combination of bins once."""
        table = numbers(x)[:, _places(x, self.columns)]
        combination = np.zeros(len(table), dtype=np.int64)
        bins = np.zeros((1, 0), dtype=np.int64)  # of each combination, one for each column so far
        for values, edges in zip(table.T, self.edges, strict=True):
            bin_of = np.searchsorted(edges, values, side="right") - 1
            bin_of[values == edges[-1]] = len(edges) - 2
            bin_of[bin_of >= len(edges) - 1] = -1
            n_codes = len(edges)  # of its bins, and of none
            occurring, combination = np.unique(combination * n_codes + bin_of + 1, return_inverse=True)
            combination = combination.reshape(-1)
            earlier, code = np.divmod(occurring, n_codes)
            bins = np.column_stack([bins[earlier], code - 1])
        indicators = [bins[:, [column]] == np.arange(len(edges) - 1) for column, edges in enumerate(self.edges)]
        place = combination.astype(np.min_scalar_type(len(bins)))
        return RepeatedRows(np.hstack(indicators).astype(float), place)


@final
@dataclass(frozen=True)
class Cells:
    """Membership of the cells of a table: all combinations of the levels of some columns.

    >>> x = np.array([[0, 1], [0, 1], [1, 0]])
    >>> cells = Cells.of(x, ["x0", "x1"])
    >>> cells(x).sum(axis=0).tolist(), cells.labels(x)
    ([0.0, 2.0, 1.0, 0.0], ['0 / 0', '0 / 1', '1 / 0', '1 / 1'])
    """

    columns: tuple[str, ...]
    levels: tuple[tuple[Any, ...], ...]
    read_from_data: ClassVar[bool] = False  # of a table whose levels are those that occur it is True

    def __post_init__(self) -> None:
        if not self.columns or len(self.columns) != len(self.levels) or not all(self.levels):
            raise ValueError(f"a table by {len(self.columns)} columns needs levels for each, got {len(self.levels)}")

    @classmethod
    def of(cls, x: Any, columns: Sequence[str]) -> Cells:
        """Use the levels that occur among all records: the same whichever of them are in the data in use."""
        for name in columns:
            is_missing = _is_missing(x, name)
            if is_missing.any():  # a missing value is no level: it would be in no cell, without notice
                raise ValueError(_undeclared(name, _column(x, name)[is_missing]))

        levels = []
        for name in columns:
            occurring = set(_codes(x, name)[1].tolist())
            levels.append(tuple(sorted(occurring, key=lambda level: (str(type(level)), level))))
        return marked_as_read(cls(tuple(columns), tuple(levels)))

    @classmethod
    def declared(cls, x: Any, columns: Sequence[str], levels: Mapping[str, Sequence[Any]]) -> Cells:
        """Take the levels that were declared; those of a column without any are those that occur.

        >>> x = np.array([[0], [0], [2]])
        >>> cells = Cells.declared(x, ["x0"], {"x0": ["0", "1", "2"]})
        >>> cells(x).sum(axis=0).tolist(), cells.labels(x)
        ([2.0, 0.0, 1.0], ['0', '1', '2'])
        """
        for name in levels:
            one_of("column of levels", name, columns)
        all_levels = [
            _declared_levels(x, name, levels[name]) if name in levels else cls.of(x, [name]).levels[0]
            for name in columns
        ]
        declared = cls(tuple(columns), tuple(all_levels))
        return declared if all(name in levels for name in columns) else marked_as_read(declared)

    def labels(self, x: Any) -> list[str]:
        """Name the cells, as ``"Sales / Female"``."""
        names = [[str(level) for level in levels] for levels in self.levels]
        return [" / ".join(cell) for cell in np.array(np.meshgrid(*names, indexing="ij")).reshape(len(names), -1).T]

    @property
    def n_cells(self) -> int:
        """Number of combinations of the levels."""
        return math.prod(len(levels) for levels in self.levels)

    def places(self, x: Any) -> Int[Array, " N"]:
        """Return the cell of each record, in the order of the levels, the last fastest; -1 for a record in none."""
        cell, counted = np.zeros(len(x), dtype=np.int32), np.ones(len(x), dtype=bool)
        for name, levels in zip(self.columns, self.levels, strict=True):
            level = _level_of(x, name, levels)
            counted &= level >= 0
            cell = cell * np.int32(len(levels)) + level
        cell[~counted] = -1
        return cell

    def __call__(self, x: Any) -> Float[Array, "N d"]:
        """Return 1 for the cell of the record, 0 elsewhere; cells in the order of the levels, the last fastest."""
        return np.asarray(self.repeated(x))

    def repeated(self, x: Any) -> RepeatedRows:
        """Return the same features, with every cell once, and one more for the records that are in none."""
        n_cells, cell = self.n_cells, self.places(x)
        cell[cell < 0] = n_cells
        occurring = np.flatnonzero(np.bincount(cell, minlength=n_cells + 1))
        rows = (occurring[:, None] == np.arange(n_cells)).astype(float)
        place = np.zeros(n_cells + 1, dtype=np.min_scalar_type(len(rows)))
        place[occurring] = np.arange(len(rows))
        return RepeatedRows(rows, place[cell])


def marked_as_read(rule: Rule) -> Rule:
    """Mark features or an algorithm whose parameters were read from the data: they do not count as declared.

    The mark is no field: two equal values are the same statistic wherever their parameters come from.
    """
    object.__setattr__(rule, "read_from_data", True)  # it is frozen
    return rule


def columns_of(x: Any) -> list[str]:
    """Return the names of the columns: of a frame its own, of an array x0, x1, ..."""
    if isinstance(x, np.ndarray):
        return [f"x{place}" for place in range(x.shape[1])]
    return [str(name) for name in x.columns]


def numbers(x: Any) -> Float[Array, "N d"]:
    """Return the records as finite numbers."""
    if isinstance(x, np.ndarray) and x.ndim != 2:
        raise ValueError(f"x must have a row for each record and a column for each number, got shape {x.shape}")
    try:
        table = np.asarray(x, dtype=float) if isinstance(x, np.ndarray) else _as_floats(x)
    except (TypeError, ValueError):
        raise ValueError(_no_numbers(x)) from None
    if not np.isfinite(table).all():
        name = columns_of(x)[int(np.argmin(np.isfinite(table).all(axis=0)))]
        raise ValueError(f"column {name} has missing or infinite values; drop or fill them")
    return table


def _as_floats(frame: Any) -> Float[Array, "N d"]:
    """Return a frame as numbers; NaN for what is missing, as pandas' own NA."""
    if all(getattr(dtype, "kind", "O") in "biuf" and isinstance(dtype, np.dtype) for dtype in frame.dtypes):
        return np.asarray(frame, dtype=float)
    if any(getattr(dtype, "kind", "O") in "mM" for dtype in frame.dtypes):
        raise TypeError("dates are no numbers")
    return frame.to_numpy(dtype=float, na_value=np.nan)


def _no_numbers(x: Any) -> str:
    """Say which column is the first with anything but numbers: texts and dates, or values that are missing."""
    for name in columns_of(x):
        values, is_missing = _values(x, name), _is_missing(x, name)
        if values.dtype.kind in "mM" or not _holds_numbers(values[~is_missing]):
            return f"column {name} holds no numbers; leave it out, or encode it"
        if is_missing.any():
            return f"column {name} has missing or infinite values; drop or fill them"
    return "the columns hold no numbers; leave them out, or encode them"


def pairs_of(names: Sequence[str]) -> list[str]:
    """Name each two columns of the upper triangle, row by row, as ``"age hours"``."""
    return [f"{first} {second}" for row, first in enumerate(names) for second in names[row:]]


def products(table: Float[Array, "N d"]) -> Float[Array, "N p"]:
    """Compute ``x_i x_j``, i <= j, row by row; infinite where they overflow."""
    columns = np.ascontiguousarray(table.T)  # long inner loops
    with np.errstate(over="ignore"):
        return np.concatenate([column * columns[i:] for i, column in enumerate(columns)]).T


def sums(
    table: Float[Array, "N d"],
    member: Bool[Array, "m N"],
    features: Callable[[Float[Array, "b d"]], Float[Array, "b p"]] | None = None,
) -> tuple[Float[Array, "m p"], Float[Array, " m"]]:
    """Sum features over the members of each row, and count these: one matrix product, in blocks.

    The product of a block is added to those before it, so the rounding error of a sum of n numbers of size s is
    at most ``(528 + n/8192) 2^-53 n s``.
    """
    parts = []
    order = "F" if member.flags.f_contiguous else "C"
    inside = np.empty((len(member), _CONVERTED), order=order)
    for start in range(0, len(table), _RECORDS):
        rows = table[start : start + _RECORDS]
        # row by row in memory: the products below are then twice as fast as with whole columns
        summed = rows if features is None else features(rows)
        values = np.ascontiguousarray(np.column_stack([summed, np.ones(len(rows))]))
        total = np.zeros((len(member), values.shape[1]))
        for first in range(0, len(values), _CONVERTED):
            converted = member[:, start + first : start + min(first + _CONVERTED, len(values))]
            np.copyto(inside[:, : converted.shape[1]], converted)
            for column in range(0, converted.shape[1], _BLOCK):
                last = min(column + _BLOCK, converted.shape[1])
                total += inside[:, column:last] @ values[first + column : first + last]
        parts.append(total)
    total = np.sum(parts, axis=0)
    return total[:, :-1], total[:, -1]


def _values(x: Any, name: str) -> Array:
    """Return a column by its name."""
    return np.asarray(_column(x, name))


def _column(x: Any, name: str) -> Any:
    """Return a column by its name, as it is: an array, or a Series of a frame."""
    place = _places(x, [name])[0]
    return x[:, place] if isinstance(x, np.ndarray) else x[list(x.columns)[place]]


def _codes(x: Any, name: str) -> tuple[Int[Array, " N"], Array]:
    """Return a number for each value of a column, and the different values; -1 for a missing one.

    A column of texts or categories keeps every text once: as an array of Python objects it would take much more memory.
    """
    code, known = pd.factorize(_column(x, name))
    return code, np.asarray(known)


def _is_missing(x: Any, name: str) -> Bool[Array, " N"]:
    """Tell which values of a column are missing: NaN, None, and NA and NaT of pandas."""
    return np.asarray(pd.isna(_column(x, name)), dtype=bool)


def _level_of(x: Any, name: str, levels: Sequence[Any]) -> Int[Array, " N"]:
    """Return the place of each value among some levels; -1 for a value that is none of them."""
    code, known = _codes(x, name)
    place = np.append(_places_among(known, levels), np.int32(-1))  # the last is that of missing values
    return place[code]


def _places_among(values: Array, levels: Sequence[Any]) -> Int[Array, " n"]:
    place = np.full(len(values), -1, dtype=np.int32)
    for index, level in enumerate(levels):
        place[values == level] = index
    return place


def _declared_levels(x: Any, name: str, levels: Sequence[Any]) -> tuple[Any, ...]:
    """Convert declared levels to the type of the column, and check that every value is one of them."""
    texts = [str(level).strip() for level in levels]
    if len(set(texts)) < len(texts):
        twice = next(text for text in texts if texts.count(text) > 1)
        raise ValueError(f"the level {twice!r} of column {name} is declared twice")
    values = _codes(x, name)[1]
    if values.dtype.kind in "iuf":
        known: tuple[Any, ...] = tuple(_number(name, text) for text in texts)
    elif values.dtype.kind == "b":
        known = tuple({"true": True, "false": False}.get(text.lower(), text) for text in texts)
    else:
        value_of = {str(value): value for value in values.tolist()}  # values of an object column need not be strings
        known = tuple(value_of.get(text, text) for text in texts)
    counted = _level_of(x, name, known) >= 0
    if not counted.all():
        raise ValueError(_undeclared(name, _column(x, name)[~counted]))
    return known


def _undeclared(name: str, uncounted: Any) -> str:
    """Say which values of a column are no declared levels, and what to do; a missing value can be none."""
    values = np.asarray(uncounted, dtype=object)
    is_missing = np.asarray(pd.isna(uncounted), dtype=bool)
    others, sizes = np.unique([str(value) for value in values[~is_missing]], return_counts=True)
    n_missing = int(is_missing.sum())
    problems = []
    if len(others):
        some = ", ".join(f"{other!r} ({size:,})" for other, size in zip(others[:3].tolist(), sizes[:3], strict=True))
        more = f" and {len(others) - 3:,} more" if len(others) > 3 else ""
        problems.append(
            f"column {name} holds values that are not among its declared levels: {some}{more}; declare them too, "
            "or join them with others in the file"
        )
    if n_missing:
        have = "record has" if n_missing == 1 else "records have"
        cells = "an empty cell" if n_missing == 1 else "empty cells"
        problems.append(
            f"{n_missing:,} {have} no {name} ({cells}): fill it in the file, for example with 'unknown', and declare "
            "that level"
        )
    return "; ".join(problems)


def _number(name: str, text: str) -> float:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"column {name} holds numbers, and the declared level {text!r} is none") from None


def _places(x: Any, names: Sequence[str]) -> list[int]:
    place_of = {name: place for place, name in enumerate(columns_of(x))}
    unknown = [name for name in names if name not in place_of]
    if unknown:
        one_of("column", unknown[0], list(place_of))
    return [place_of[name] for name in names]


def _holds_numbers(values: Array) -> bool:
    try:
        values.astype(float)
    except (TypeError, ValueError):
        return False
    return True
