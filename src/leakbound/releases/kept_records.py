"""Whether a fitted model holds records of its training data, by what is in it and not by its class.

All that can be reached from the model is read: attributes, containers, frames, sparse matrices, tensors, closures, and
the state of extension types. Its numbers and texts are compared with the members: rows of a table, in any order of
columns and of some columns alone; columns in the order of the records; values that one or two members have; and what
the owner calls the records. The same is compared with the members as the steps of a pipeline hand them on.

A coincidence is told from a copy by its chance: n times the product, over the columns of a row, of the fraction of
members with that value. Whole numbers from 0 to 10 n are what counts and positions look like, and tell nothing alone.

Nothing is found of what is encrypted or changed by anything but the model's own steps, of what the weights memorise,
and in the nodes of trees and boosters, whose thresholds lie between values of the data.
"""

from __future__ import annotations

import functools
import re
import types
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from scipy import sparse

from leakbound.core.checks import one_line
from leakbound.core.types import Points
from leakbound.data.records import Texts, as_given

Array = np.ndarray
Kind = Literal["number", "text"]
Vector = tuple[Kind, Float[Array, " _"]]  # texts by their hashes, which a float holds exactly; missing ones are NaN

RARE = 2  # members with the same value, up to which it is nearly a name
FEWEST = 10  # such values in one place
SHORTEST_NAME = 5  # characters of a text that names a record
SHORTEST_TEXT = 20  # characters of a record that is a text
LARGEST_CHANCE = 0.01  # that a row is a coincidence; ten times that of many rows
FEW_ROWS = 4  # of so few nearly all columns must be those of members
LEAST_IN_COLUMN = 0.2  # fraction of values that a column of the members has, if it may be that column
WIDE = 60  # columns; rows with more are compared as wholes
MOST_OBJECTS = 1_000_000
MOST_ENTRIES = 20_000_000  # of a sparse matrix that is unpacked
SMALL = 100  # numbers and characters of an attribute that is left unexplained
BITS = 40  # of numbers that are compared
SIZES = {2: np.float16, 4: np.float32}  # bytes of numbers that were rounded to fewer bits
WORST_FIRST = ("rows", "names", "values", "column")
# extension types and boosters whose thresholds lie between values of the data, and generators of random numbers
SKIPPED = frozenset(
    {"Tree", "TreePredictor", "_BinMapper", "Booster", "RandomState", "Generator", "_CatBoostBase", "_CatBoost"}
)
OF_EVERY_ESTIMATOR = frozenset({"feature_names_in_", "n_features_in_", "classes_", "_sklearn_output_config"})


@dataclass(frozen=True)
class Held:
    """What of the training data was found in one place of a model."""

    # rows of members; values that one or two members have; what the owner calls records; a value for each member
    kind: Literal["rows", "values", "names", "column"]
    where: str
    n: int
    column: str = ""


@dataclass(frozen=True)
class Kept:
    """What a search of a model found."""

    held: tuple[Held, ...] = ()
    extra: tuple[str, ...] = ()
    unexplained: tuple[str, ...] = ()
    complete: bool = True


def search(model: Any, members: Points, handed_on: Sequence[Any] = ()) -> Kept:
    """Search a fitted model for records of its training data.

    >>> from sklearn.linear_model import LogisticRegression
    >>> x = np.random.default_rng(0).normal(size=(50, 3))
    >>> model = LogisticRegression().fit(x, x[:, 0] > 0)
    >>> model.copy_ = x[::-1]
    >>> search(model, Points(x)).held
    (Held(kind='rows', where='copy_', n=50, column=''),)
    """
    tables = [_Table.of(members.x, members, named=True)]
    tables += [_Table.of(x, members, named=False) for x in handed_on if x is not None and not isinstance(x, list)]
    texts = _texts(members.x)
    held: dict[str, Held] = {}
    walk = _Walk(len(members))
    known: set[Any] = set()  # small arrays, which the members of an ensemble share
    for where, content in walk.places(model):
        if where in held and held[where].kind == "rows":
            continue
        if isinstance(content, np.ndarray) and content.size <= WIDE:
            is_object = content.dtype == object
            key = (content.dtype.str, content.shape, tuple(map(str, content.flat)) if is_object else content.tobytes())
            if key in known:
                continue
            known.add(key)
        found = _of_texts(where, content, texts) or _found(where, content, tables)
        if found is not None and (where not in held or _badness(found) < _badness(held[where])):
            held[where] = found
    return Kept(tuple(held.values()), tuple(walk.extra), tuple(walk.unexplained), walk.complete)


def _badness(held: Held) -> int:
    return WORST_FIRST.index(held.kind)


@dataclass(frozen=True)
class _Column:
    """One column of the members."""

    name: str
    kind: Kind
    values: Float[Array, " n"]
    is_name: bool = False

    @functools.cached_property
    def unique(self) -> tuple[Float[Array, " u"], Any]:
        """Values and how many members have each."""
        return np.unique(self.values[~np.isnan(self.values)], return_counts=True)

    def count(self, values: Float[Array, " m"]) -> Any:
        """Count the members with each of these values."""
        unique, counts = self.unique
        if not len(unique):
            return np.zeros(len(values), dtype=int)
        at = np.minimum(np.searchsorted(unique, values), len(unique) - 1)
        return np.where(unique[at] == values, counts[at], 0)

    def rare_in(self, values: Float[Array, " m"]) -> int:
        """Count the different values that one or two members have, and that are no counts or positions."""
        different = np.unique(values[~np.isnan(values)])
        n = self.count(different)
        is_rare = (n > 0) & (n <= RARE)
        if self.kind == "number":
            is_rare &= ~_looks_like_position(different, len(self.values))
            # the values of a column of such numbers, neither more nor fewer of them
            unique, _ = self.unique
            is_consecutive = len(unique) > 0 and unique[-1] - unique[0] == len(unique) - 1
            if len(unique) > len(self.values) // 2 and np.array_equal(unique, different) and not is_consecutive:
                return len(different)
        return int(is_rare.sum())


def _looks_like_position(values: Float[Array, " m"], n: int) -> Bool[Array, " m"]:
    return (values == np.floor(values)) & (values >= 0) & (values <= 10 * n)


@dataclass(frozen=True)
class _Table:
    """The members, column by column, at the precisions of 64, 32 and 16 bits."""

    columns: Mapping[int, Sequence[_Column]]
    n: int
    whole: Mapping[int, frozenset[bytes]] = field(default_factory=dict)  # rows of many columns

    @classmethod
    def of(cls, x: Any, members: Points, *, named: bool) -> _Table:
        """Read the members as the user gave them, or as a step of the model hands them on."""
        n = len(members)
        named_columns = [] if isinstance(x, Texts) else list(_named_columns(as_given(x), n))
        n_features = len(named_columns)
        if named:
            named_columns += [("label" if d == 1 else f"label {i}", y) for i, d, y in _label_columns(members, n)]
        ids = [values for values in (members.names, members.group) if named and values is not None]
        columns: dict[int, list[_Column]] = {}
        whole: dict[int, frozenset[bytes]] = {}
        for size in (8, 4, 2):
            vectors = [(name, *_vector(values, size)) for name, values in named_columns]
            columns[size] = [_Column(name, kind, values) for name, kind, values in vectors]
            if n_features > WIDE:
                features = [column.values for column in columns[size][:n_features] if column.kind == "number"]
                whole[size] = frozenset(_hashes(np.column_stack(features))) if features else frozenset()
                columns[size] = [c for c in columns[size] if c.kind == "text" or len(c.unique[0]) > n // 2]
            columns[size] += [_Column("", *_vector(_long_enough(values), size), is_name=True) for values in ids]
        return cls(columns, n, whole)


def _long_enough(names: Any) -> Any:
    """Leave out names that are texts of a few characters, which occur for many reasons."""
    array = np.asarray(names)
    if array.dtype.kind not in "OUS" or _vector(array, 8)[0] == "number":
        return array
    return _object_array([name if len(str(name)) >= SHORTEST_NAME else None for name in array])


def _label_columns(members: Points, n: int) -> Iterator[tuple[int, int, Any]]:
    if members.y is not None:
        labels = np.asarray(members.y).reshape(n, -1)
        for i in range(labels.shape[1]):
            yield i, labels.shape[1], labels[:, i]


def _named_columns(x: Any, n: int) -> Iterator[tuple[str, Any]]:
    """Yield the columns of a table with their names; none of what is no table."""
    if isinstance(x, pd.DataFrame):
        for i, name in enumerate(x.columns):
            yield str(name), x.iloc[:, i].to_numpy()
    elif isinstance(x, Mapping):
        for name, values in x.items():
            for i, column in _named_columns(values, n):
                yield f"{name} {i}", column
    elif sparse.issparse(x):
        if x.shape[0] * x.shape[1] <= MOST_ENTRIES:
            yield from _named_columns(x.toarray(), n)
    elif isinstance(x, np.ndarray) and len(x) == n and x.dtype.kind in "biufMmOUS":
        rows = x.reshape(n, -1)
        for i in range(rows.shape[1]):
            yield str(i), rows[:, i]


def _texts(x: Any) -> frozenset[str]:
    """Return the records that are texts."""
    return (
        frozenset(str(text) for text in x.values if len(str(text)) >= SHORTEST_TEXT)
        if isinstance(x, Texts)
        else frozenset()
    )


def _of_texts(where: str, content: Any, texts: Collection[str]) -> Held | None:
    if not texts:
        return None
    array = np.asarray(content, dtype=object).ravel()
    n = len({value for value in array if isinstance(value, str) and value in texts})
    return Held("rows", where, n) if n else None


def _found(where: str, content: Any, tables: Sequence[_Table]) -> Held | None:
    """Compare the content of one place with the members."""
    columns = _columns_of(content)
    if not columns:
        return None
    across = _across(columns)
    both_ways = [columns, across] if across else [columns]
    for table in tables:
        for way in both_ways:
            found = _rows(where, way, table)
            if found is not None:
                return found
    for table in tables:
        for way in both_ways:
            found = _column_in_order(where, way, table)
            if found is not None:
                return found
        found = _rare(where, columns, table)
        if found is not None:
            return found
    return None


def _across(columns: Sequence[tuple[int, Vector]]) -> list[tuple[int, Vector]]:
    """Read the rows of a table as columns; none if they are many, or of several kinds."""
    n_rows = len(columns[0][1][1])
    size, (kind, _) = min(columns, key=lambda column: column[0])
    if len(columns) < 2 or not 1 < n_rows <= WIDE or any(other != kind for _, (other, _) in columns):
        return []
    table = np.column_stack([values for _, (_, values) in columns])
    return [(size, (kind, row)) for row in table]


def _columns_of(content: Any) -> list[tuple[int, Vector]]:
    """Read content as columns, each with the bytes of its numbers: an array of one axis is one column."""
    if sparse.issparse(content):
        content = content.toarray() if content.shape[0] * content.shape[1] <= MOST_ENTRIES else content.data
    if isinstance(content, pd.DataFrame):
        arrays = [content.iloc[:, i].to_numpy() for i in range(content.shape[1])]
    elif isinstance(content, np.ndarray) and content.dtype.names:
        arrays = [content[name].ravel() for name in content.dtype.names]
    else:
        array = np.asarray(content)
        if array.dtype.kind not in "biufMmOUS" or array.size == 0:
            return []
        table = array.reshape(len(array), -1) if array.ndim > 1 else array.reshape(-1, 1)
        arrays = [table[:, i] for i in range(table.shape[1])]
    return [(_size(array), _vector(array, _size(array))) for array in arrays]


def _size(array: Array) -> int:
    """Return the bytes of numbers that were rounded; 8 for others."""
    return array.dtype.itemsize if array.dtype.kind == "f" and array.dtype.itemsize in SIZES else 8


def _rows(where: str, columns: Sequence[tuple[int, Vector]], table: _Table) -> Held | None:
    """Find rows of members in some columns, in any order; an array of one axis may be a single row."""
    size = min(size for size, _ in columns)
    vectors = [vector for _, vector in columns]
    if len(vectors) == 1 and len(vectors[0][1]) > 1:
        kind, values = vectors[0]
        if len(values) > WIDE:
            return None
        single: list[Vector] = [(kind, values[i : i + 1]) for i in range(len(values))]
        vectors = single
    if len(vectors) < 2:
        return None
    if size in table.whole and all(kind == "number" for kind, _ in vectors):
        rows = _hashes(np.column_stack([values for _, values in vectors]))
        n = len([row for row in rows if row in table.whole[size]])
        if n:
            return Held("rows", where, n)
    if len(vectors) > WIDE:
        return None
    return _narrow_rows(where, vectors, [c for c in table.columns[size] if not c.is_name], table.n)


def _narrow_rows(where: str, vectors: Sequence[Vector], columns: Sequence[_Column], n: int) -> Held | None:
    """Match columns one by one, the most telling first, as long as most of the rows still match."""
    n_rows = len(vectors[0][1])
    pairs = _likely_pairs(vectors, columns)
    inside, outside = np.zeros(n, dtype=np.uint64), np.zeros(n_rows, dtype=np.uint64)
    is_found, chance = np.ones(n_rows, dtype=bool), np.full(n_rows, float(n))
    used_here: set[int] = set()
    used_there: set[int] = set()
    for j, column in pairs:
        if j in used_here or id(column) in used_there:
            continue
        values = vectors[j][1]
        new_inside = _joined(inside, column.values)
        new_outside = _joined(outside, values)
        matched = np.isin(new_outside, new_inside) & (column.count(values) > 0)
        if not matched.any() or (used_here and 2 * matched.sum() < is_found.sum()):
            continue
        inside, outside, is_found = new_inside, new_outside, matched
        chance = chance * column.count(values) / n
        used_here.add(j)
        used_there.add(id(column))
    n_found = int(is_found.sum())
    if len(used_here) < 2 or not n_found:
        return None
    if n_found < FEW_ROWS and len(used_here) < 0.8 * len(vectors):
        return None  # one record may well have the largest values of several columns
    by_chance = float(chance[is_found].sum()) + float(n_rows - n_found) * float(chance[is_found].mean())
    largest = LARGEST_CHANCE if n_found < FEWEST else 10 * LARGEST_CHANCE
    return Held("rows", where, n_found) if by_chance <= largest * n_found else None


def _likely_pairs(vectors: Sequence[Vector], columns: Sequence[_Column]) -> list[tuple[int, _Column]]:
    """Pair columns with those of the members that have many of their values, the most telling first."""
    sample = np.unique(np.linspace(0, len(vectors[0][1]) - 1, 500).astype(int))
    pairs: list[tuple[float, int, _Column]] = []
    for j, (kind, values) in enumerate(vectors):
        for column in columns:
            if column.kind == kind and len(column.unique[0]) > 1:
                in_column = float((column.count(values[sample]) > 0).mean())
                if in_column >= LEAST_IN_COLUMN:
                    pairs.append((in_column * np.log(len(column.unique[0])), j, column))
    return [(j, column) for _, j, column in sorted(pairs, key=lambda pair: -pair[0])]


def _joined(keys: Any, values: Float[Array, " m"]) -> Any:
    """Add a column to keys of rows."""
    bits = np.where(np.isnan(values), 0.5, values + 0.0).view(np.uint64)
    with np.errstate(over="ignore"):
        mixed = (bits ^ (bits >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15)
        keys = keys * np.uint64(0xBF58476D1CE4E5B9) + (mixed ^ (mixed >> np.uint64(32)))
        return keys ^ (keys >> np.uint64(31))


def _hashes(rows: Float[Array, "m d"]) -> list[bytes]:
    """Return each row as its sorted values, so that the order of columns does not matter; none of constant rows."""
    ordered = np.sort(rows, axis=1) + 0.0
    return [row.tobytes() for row in ordered if np.nansum(row != row[0]) >= 3]


def _column_in_order(where: str, columns: Sequence[tuple[int, Vector]], table: _Table) -> Held | None:
    """Find a value for each member, in the order of the members."""
    for size, (kind, values) in columns:
        if len(values) != table.n:
            continue
        for column in sorted(table.columns[size], key=lambda column: not column.is_name):
            if column.kind != kind or not np.array_equal(column.values, values, equal_nan=True):
                continue
            _, counts = column.unique
            is_counting = kind == "number" and len(counts) == table.n and bool((np.diff(values) == 1).all())
            if len(counts) > 1 and counts.sum() - counts.max() >= min(FEWEST, table.n // 2) and not is_counting:
                return Held("names" if column.is_name else "column", where, table.n, column.name)
    return None


def _rare(where: str, columns: Sequence[tuple[int, Vector]], table: _Table) -> Held | None:
    """Find values that one or two members have, and names of records."""
    fewest = max(min(FEWEST, table.n // 2), 2)
    best: Held | None = None
    for kind in ("number", "text"):
        parts = [(size, values) for size, (of_kind, values) in columns if of_kind == kind]
        if not parts:
            continue
        size = min(size for size, _ in parts)
        values = np.unique(np.concatenate([values for _, values in parts]))
        if len(values) < (1 if kind == "text" else fewest):
            continue
        for column in table.columns[size]:
            if column.kind != kind:
                continue
            n = column.rare_in(values)
            is_name = column.is_name and kind == "text"
            if n >= (1 if is_name else fewest) and (best is None or column.is_name or n > best.n):
                best = Held("names" if column.is_name else "values", where, n, column.name)
                if column.is_name:
                    return best
    return best


def _vector(values: Any, size: int) -> Vector:
    """Read values as numbers if nearly all of them are, else as texts."""
    array = np.asarray(values).ravel()
    if array.dtype.kind in "biu":
        return "number", array.astype(np.float64)
    if array.dtype.kind == "f":
        return "number", _rounded(array.astype(np.float64), size)
    if array.dtype.kind in "Mm":
        numbers = array.astype("datetime64[ns]" if array.dtype.kind == "M" else "timedelta64[ns]").astype(np.int64)
        return "number", np.where(np.isnat(array), np.nan, numbers.astype(np.float64))
    texts = array.astype(object)
    texts = _object_array([value if _is_scalar(value) else None for value in texts])
    is_date = np.array([isinstance(value, pd.Timestamp | np.datetime64) for value in texts], dtype=bool)
    if is_date.any():
        return _vector(pd.to_datetime(texts, errors="coerce", utc=True).tz_localize(None).to_numpy(), size)
    is_missing = np.asarray(pd.isna(texts))
    numbers = np.asarray(pd.to_numeric(pd.Series(texts), errors="coerce"), dtype=np.float64)
    n_numbers = int(np.isfinite(numbers).sum())
    if n_numbers and n_numbers >= 0.9 * (len(texts) - is_missing.sum()):
        return "number", _rounded(numbers, size)
    words = np.array(
        ["" if missing else _word(value) for value, missing in zip(texts, is_missing, strict=True)], object
    )
    hashes = (pd.util.hash_array(words) >> np.uint64(12)).astype(np.float64)  # pyright: ignore[reportAttributeAccessIssue]
    return "text", np.where(is_missing, np.nan, hashes)


def _word(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _rounded(values: Float[Array, " n"], size: int) -> Float[Array, " n"]:
    """Round numbers to the bits that are compared."""
    if size in SIZES:
        with np.errstate(over="ignore"):
            values = values.astype(SIZES[size]).astype(np.float64)
    mantissa, exponent = np.frexp(np.where(np.isfinite(values), values, np.nan))
    return np.ldexp(np.round(mantissa * 2.0**BITS) / 2.0**BITS, exponent) + 0.0


class _Walk:
    """A walk through all that can be reached from a model."""

    def __init__(self, n_members: int) -> None:
        self.n_members = n_members
        self.complete = True
        self.extra: list[str] = []
        self.unexplained: list[str] = []

    def places(self, model: Any) -> Iterator[tuple[str, Any]]:
        """Yield arrays, frames, lists of values and texts in parts, with the attribute that holds them."""
        waiting: deque[tuple[str, Any]] = deque([("", model)])
        seen: set[int] = set()
        alive: list[Any] = []  # so that no id is used twice
        lone: list[Any] = []
        while waiting:
            where, value = waiting.popleft()
            if isinstance(value, int | float | np.integer | np.floating | np.bool_):
                lone.append(value)
                continue
            if isinstance(value, str | bytes | bytearray):
                yield from ((where, part) for part in _parts_of_text(value))
                continue
            if value is None or id(value) in seen:
                continue
            seen.add(id(value))
            alive.append(value)
            if len(seen) > MOST_OBJECTS:
                self.complete = False
                break
            plain = _plain(value)
            if plain is None:
                waiting.extend(self._inside(where, value))
                continue
            yield where, plain
            if isinstance(plain, np.ndarray) and plain.dtype == object:
                waiting.extend((where, item) for item in plain.ravel() if not _is_scalar(item))
            waiting.append((where, getattr(value, "attrs", None)))  # of a frame
        if lone:
            yield "single attributes", np.array(lone, dtype=np.float64)

    def _inside(self, where: str, value: Any) -> Iterator[tuple[str, Any]]:
        """Yield what an object holds."""
        if isinstance(value, Mapping):
            yield where, list(value.keys())
            yield from self._of_sequence(where, list(value.values()), names=list(value.keys()))
        elif isinstance(value, list | tuple | set | frozenset | deque):
            yield from self._of_sequence(where, list(value))
        elif isinstance(value, types.FunctionType):
            yield where, _captured(value)
            yield where, [value.__defaults__, value.__kwdefaults__, value.__dict__, list(value.__code__.co_consts)]
        elif isinstance(value, types.MethodType):
            yield where, [value.__self__, value.__func__]
        elif isinstance(value, functools.partial):
            yield where, [value.func, value.args, value.keywords]
        elif isinstance(value, type | types.ModuleType | types.BuiltinFunctionType | types.CodeType):
            return
        elif type(value).__name__ not in SKIPPED:
            yield from self._of_object(where, value)

    def _of_sequence(self, where: str, items: list[Any], names: Sequence[Any] = ()) -> Iterator[tuple[str, Any]]:
        """Yield values that stand in a list as one array, rows of values as one table, and all else by itself."""
        scalars = [item for item in items if _is_scalar(item)]
        if len(scalars) > 1:
            yield where, _object_array(scalars)
        rows = [list(item.values()) if isinstance(item, Mapping) else item for item in items if not _is_scalar(item)]
        if _is_table(rows):
            table = np.empty((len(rows), len(rows[0])), dtype=object)
            table[:] = rows
            yield where, table
            return
        arrays = [
            item for item in items if isinstance(item, np.ndarray) and item.ndim == 1 and item.dtype.kind in "biuf"
        ]
        if len(arrays) > 1 and len({len(array) for array in arrays}) == 1:
            yield where, np.stack(arrays)
        for i, item in enumerate(items):
            if not _is_scalar(item):
                name = names[i] if i < len(names) else i
                is_plain = isinstance(name, str) and name.isidentifier() and len(name) <= 40
                yield f"{where}.{name}".lstrip(".") if is_plain else where, item
            elif len(scalars) == 1 or (isinstance(item, str | bytes) and len(item) > SHORTEST_TEXT):
                yield where, item

    def _of_object(self, where: str, value: Any) -> Iterator[tuple[str, Any]]:
        """Yield the attributes of an object, and say which its class does not have."""
        attributes = dict(getattr(value, "__dict__", None) or {})
        for base in type(value).__mro__:
            slots = base.__dict__.get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if isinstance(base.__dict__.get(name), types.MemberDescriptorType):
                    attributes[name] = getattr(value, name, None)
        if callable(getattr(value, "get_params", None)) and callable(getattr(value, "fit", None)):
            known = _names_in(type(value)) | _parameters_of(value)
            for name in attributes:
                if name not in known:
                    self._note_extra(f"{where}.{_short(name)}".lstrip("."), attributes[name])
        if not attributes:
            yield where, _state(value)
            return
        single = [item for item in attributes.values() if isinstance(item, str)]
        if len(single) > 1:
            yield where, _object_array(single)
        for name, item in attributes.items():
            yield f"{where}.{_short(name)}".lstrip("."), item

    def _note_extra(self, where: str, value: Any) -> None:
        self.extra.append(where)
        if _extent(value) > SMALL or _extent(value) == self.n_members > 1:
            self.unexplained.append(where)


def _short(name: Any) -> str:
    return one_line(str(name), 60)


def _object_array(items: Sequence[Any]) -> Array:
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, str | bytes | int | float | np.generic | pd.Timestamp)


def _is_table(rows: Sequence[Any]) -> bool:
    """Tell whether these are several rows of as many values."""
    if (
        len(rows) < 2
        or not all(isinstance(row, list | tuple) for row in rows)
        or {len(row) for row in rows} != {len(rows[0])}
    ):
        return False
    return len(rows[0]) > 0 and all(_is_scalar(value) for row in rows for value in row)


def _captured(function: types.FunctionType) -> list[Any]:
    """Return the values that a function has taken from where it was defined; names without a value are left out."""
    values = []
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # an empty cell
            values.append(cell.cell_contents)
    return values


def _plain(value: Any) -> Any:
    """Return arrays, frames, sparse matrices and tensors as what can be compared; None for anything else."""
    if isinstance(value, np.ma.MaskedArray):
        return np.asarray(value.data)
    if isinstance(value, np.ndarray | pd.DataFrame) or sparse.issparse(value):
        return value
    if isinstance(value, pd.Series | pd.Index):
        return value.to_numpy()
    if isinstance(value, pd.Categorical):
        return np.asarray(value)
    if isinstance(value, memoryview):
        return np.asarray(value)
    if type(value).__module__.partition(".")[0] == "torch" and callable(getattr(value, "detach", None)):
        tensor = value.detach().cpu()
        return tensor.float().numpy() if tensor.is_floating_point() and tensor.element_size() < 4 else tensor.numpy()
    return None


def _parts_of_text(value: str | bytes | bytearray) -> Iterator[Any]:
    """Yield a text as a whole, its words, and bytes as the numbers that they may be."""
    if isinstance(value, bytes | bytearray):
        raw = bytes(value)
        for dtype in ("<f8", "<f4", "<i8", "<i4"):
            if len(raw) >= 80 and len(raw) % 8 == 0:
                yield np.frombuffer(raw, dtype=dtype)
        value = raw.decode("utf-8", "replace")
    yield _object_array([value])
    words = re.split(r"[\s,;|\"'\[\](){}]+", value[:10_000_000])
    if len(words) > 1:
        lines = [line.split(",") for line in value[:10_000_000].splitlines()]
        if len(lines) > 2 and len({len(line) for line in lines[1:]}) == 1 and len(lines[1]) > 1:
            table = np.empty((len(lines) - 1, len(lines[1])), dtype=object)
            table[:] = lines[1:]
            yield table
        yield _object_array([word for word in words if word])


def _state(value: Any) -> Any:
    """Return the state that an extension type would be saved with."""
    if type(value).__module__.partition(".")[0] == "builtins":
        return None
    try:
        return value.__getstate__()
    except Exception:  # another's type may raise anything
        return None


def _extent(value: Any) -> int:
    """Count the numbers and characters that something holds."""
    if isinstance(value, str | bytes | bytearray):
        return len(value)
    if value is None or isinstance(value, bool | int | float | np.generic):
        return 1
    if isinstance(value, Mapping):
        return sum(_extent(item) for item in value.values()) + sum(_extent(key) for key in value)
    if isinstance(value, list | tuple | set | frozenset):
        return sum(_extent(item) for item in value)
    if sparse.issparse(value):
        return int(value.nnz)
    size = getattr(value, "size", None)
    return int(size) if isinstance(size, int | np.integer) else SMALL + 1


def _parameters_of(value: Any) -> frozenset[str]:
    """List the parameters of an estimator, of which some classes have any."""
    try:
        return frozenset(value.get_params(deep=False))
    except Exception:  # another's estimator may raise anything
        return frozenset()


@functools.cache
def _names_in(cls: type) -> frozenset[str]:
    """List the names that the code of a class may give to attributes, with those of its parameters."""
    names = set(OF_EVERY_ESTIMATOR)
    for base in cls.__mro__:
        for member in base.__dict__.values():
            names |= _names_in_code(member, set())
    return frozenset(names)


def _names_in_code(member: Any, seen: set[int]) -> set[str]:
    """List the names and constants in a function, and in those that it wraps or is made of."""
    if isinstance(member, property):
        return set().union(*(_names_in_code(part, seen) for part in (member.fget, member.fset)))
    if isinstance(member, staticmethod | classmethod):
        member = member.__func__
    if not isinstance(member, types.FunctionType) or id(member) in seen:
        return set()
    seen.add(id(member))
    names = _names_of(member.__code__)
    inner = _captured(member)
    for part in [getattr(member, "__wrapped__", None), *inner]:
        names |= _names_in_code(part, seen)
    return names


def _names_of(code: types.CodeType) -> set[str]:
    """List the names and constants in code, and in the functions that it defines."""
    names = {*code.co_names, *code.co_varnames}
    for constant in code.co_consts:
        if isinstance(constant, str):
            names.add(constant)
        elif isinstance(constant, types.CodeType):
            names |= _names_of(constant)
    return names
