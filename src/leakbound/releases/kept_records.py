"""Whether a fitted model holds records of its training data, by what is in it and not by its class.

Every attribute of the model and of its parts is pickled, and what the pickler reaches is noted: arrays, frames, lists,
numbers, texts, what functions captured. These are compared with the members: whole rows, in any order of rows and
columns; columns in the order of the records; values that one or two members have; and what the owner calls the records.
The same is compared with the members as the steps of a pipeline hand them on.

A coincidence is told from a copy by its chance: n times the product, over the columns of a row, of the fraction of
members with that value. Whole numbers from 0 to 10 n are what counts and positions look like, and a column of
them reveals nothing by itself.

A row has all features, or all that are numbers, with or without the labels. Rows of fewer or of more columns are found
by the values that one or two members have.

Not found are records that are encrypted, changed by anything but the model's own steps, or memorised in weights; and
what the nodes of trees and boosters hold, whose thresholds lie between values of the data.
"""

from __future__ import annotations

import functools
import inspect
import io
import pickle
import re
import sys
import types
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd
from jaxtyping import Float, UInt64
from scipy import sparse

from leakbound.core.checks import one_line
from leakbound.core.types import Points
from leakbound.data.records import Texts, as_given
from leakbound.releases.specs import is_network

Array = np.ndarray
Columns = Sequence[tuple[int, Float[Array, " m"]]]  # each with the bytes of its numbers

RARE = 2  # members with the same value, up to which it is nearly a name
FEWEST = 10  # such values in one place
SHORTEST_NAME = 5  # characters of a text that names a record
SHORTEST_TEXT = 20  # characters of a record that is a text
LONGEST_TEXT = 10_000_000  # characters of a text that are read as words and as a table
LARGEST_CHANCE = 0.01  # that a row is a coincidence; ten times that of many rows
MOST_COLUMNS = 10_000  # of a table whose records may be its columns
MOST_ENTRIES = 20_000_000  # of a sparse matrix that is unpacked
SMALL = 100  # numbers and characters of an attribute that is left unexplained
BITS = 40  # of numbers that are compared
SIZES = {2: np.float16, 4: np.float32}  # bytes of numbers that were rounded to fewer bits
WORST_FIRST = ("rows", "names", "values", "column")
# extension types and boosters whose thresholds lie between values of the data, and generators of random numbers
SKIPPED = frozenset(
    {"Tree", "TreePredictor", "_BinMapper", "Booster", "RandomState", "Generator", "_CatBoostBase", "_CatBoost"}
)
WITHOUT_RECORDS = (type, types.ModuleType, types.BuiltinFunctionType, types.CodeType, np.dtype)
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
    tables = [_table(members.x, members, named=True)]
    tables += [_table(x, members, named=False) for x in handed_on if x is not None and not isinstance(x, list)]
    texts = _texts(members.x)
    held: dict[str, Held] = {}
    compared: set[Any] = set()  # contents that the members of an ensemble share
    extra, unexplained, complete = [], [], True
    for place in _places(model):
        complete &= place.complete
        if place.extra:
            extra.append(place.where)
            if place.size > SMALL or place.size == len(members) > 1:
                unexplained.append(place.where)
        for content in place.contents:
            if isinstance(content, np.ndarray) and content.size <= SMALL:
                key = (content.dtype.str, *content.shape, *map(repr, content.flat))
                if key in compared:
                    continue
                compared.add(key)
            found = _of_texts(place.where, content, texts) or _found(place.where, content, tables)
            if found is not None:
                both = (held.get(place.where, found), found)
                held[place.where] = min(both, key=lambda one: WORST_FIRST.index(one.kind))
    return Kept(tuple(held.values()), tuple(extra), tuple(unexplained), complete)


# What is in the model.


@dataclass
class _Place:
    """An attribute of a model or of one of its parts, and what was found in it."""

    where: str
    extra: bool  # an attribute that the class does not have
    contents: list[Any] = field(default_factory=list)  # arrays, frames and sparse matrices
    size: int = 0  # numbers and characters
    complete: bool = True


def _places(model: Any) -> Iterator[_Place]:
    """Yield what is in each attribute of a model, of its parts, and of theirs."""
    waiting: deque[tuple[str, Any]] = deque([("", model)])
    seen: dict[int, Any] = {}  # with the objects themselves, so that no id is used twice
    while waiting:
        where, part = waiting.popleft()
        if id(part) in seen:
            continue
        seen[id(part)] = part
        attributes = _attributes(part)
        known = _names_in(type(part)) | _parameters_of(part) if _is_estimator(part) else attributes.keys()
        for name, value in attributes.items():
            place = _Place(f"{where}.{one_line(str(name), 60)}".strip("."), extra=name not in known)
            _Reached(place, waiting).read(value)
            yield place
        scalars = [value for value in attributes.values() if _is_scalar(value)]
        if len(scalars) > 1:  # a record whose values are one attribute each
            yield _Place(where or "single attributes", extra=False, contents=[_object_array(scalars)])


def _attributes(part: Any) -> dict[str, Any]:
    """List what an estimator, a network or another object holds by its name."""
    if getattr(part, "__dict__", None) is None or isinstance(part, types.FunctionType):
        return {"": part}
    attributes = dict(vars(part))
    if is_network(part):
        for name in ("_parameters", "_buffers", "_modules"):
            attributes |= attributes.pop(name)
    return attributes


def _is_estimator(value: Any) -> bool:
    return callable(getattr(value, "get_params", None)) and callable(getattr(value, "fit", None))


class _Reached(pickle.Pickler):
    """Notes what pickling an object reaches, and writes nothing.

    Each object that is "persistent" has been noted, and the pickler does not go into it.
    """

    def __init__(self, place: _Place, waiting: deque[tuple[str, Any]]) -> None:
        super().__init__(io.BytesIO(), protocol=4)
        self._place, self._waiting = place, waiting
        self._scalars: list[Any] = []
        self._texts: list[str] = []

    def read(self, value: Any) -> None:
        """Note what is in a value."""
        try:
            self.dump(value)
        except Exception:  # pickling runs code of whatever the value is, and may be too deep
            self._place.complete = False
        self._note(_object_array(self._scalars))
        self._note(_object_array(self._texts))
        words = re.split(r"[\s,;|\"'\[\](){}]+", "\n".join(self._texts)[:LONGEST_TEXT])
        if len(words) > len(self._texts):
            self._place.contents.append(_object_array([word for word in words if word]))

    def persistent_id(self, obj: Any) -> str | None:
        """Note an object that the pickler has come to; None if it shall go on inside of it."""
        if obj is None or isinstance(obj, WITHOUT_RECORDS) or type(obj).__name__ in SKIPPED:
            return "without records"
        if isinstance(obj, str | bytes | bytearray):
            self._note_text(obj)
            return "text"
        if _is_scalar(obj):
            self._scalars.append(obj)
            return "value"
        if _is_estimator(obj) or is_network(obj):
            self._waiting.append((self._place.where, obj))
            return "part"
        plain = _plain(obj)
        if plain is not None:
            self._note(plain)
            inside = [getattr(obj, "attrs", None)]  # of a frame
            if isinstance(plain, np.ndarray) and plain.dtype == object:
                inside += [item for item in plain.ravel() if not _is_scalar(item)]
            self._waiting.extend((self._place.where, item) for item in inside if item is not None)
            return "array"
        return self._sequence(obj)

    def reducer_override(self, obj: Any) -> Any:
        """Say what is in an object that pickle knows by its name alone, or does not know."""
        if isinstance(obj, types.FunctionType):
            inside = [_captured(obj), obj.__defaults__, obj.__kwdefaults__, obj.__dict__, obj.__code__.co_consts]
            return list, (inside,)
        try:
            obj.__reduce_ex__(4)
        except Exception:  # a lock, a file, or whatever refuses to be pickled
            return list, (list(getattr(obj, "__dict__", {}).values()),)
        return NotImplemented

    def _sequence(self, obj: Any) -> str | None:
        """Note values that are listed as one array, and rows of values as one table."""
        if isinstance(obj, Mapping):
            obj = list(obj.values())
        if not isinstance(obj, list | tuple | set | frozenset | deque) or len(obj) < 2:
            return None
        items = list(obj)
        if all(map(_is_scalar, items)):
            self._note(_object_array(items))
        elif _is_table(items):
            self._note(pd.DataFrame(items))
            return "table"
        return None

    def _note(self, content: Any) -> None:
        size = content.nnz if sparse.issparse(content) else int(content.size)
        self._place.size += size
        if size:
            self._place.contents.append(content)

    def _note_text(self, text: str | bytes | bytearray) -> None:
        """Note a text, bytes as the numbers that they may be, and a table that is written as a text."""
        self._place.size += len(text)
        if not isinstance(text, str):
            raw = bytes(text)
            if len(raw) >= 80 and len(raw) % 8 == 0:
                self._place.contents += [np.frombuffer(raw, dtype) for dtype in ("<f8", "<f4", "<i8", "<i4")]
            text = raw.decode("utf-8", "replace")
        self._texts.append(text)
        if "\n" in text:
            with suppress(ValueError):  # no table
                self._place.contents.append(pd.read_csv(io.StringIO(text[:LONGEST_TEXT]), dtype=object))


def _object_array(items: Sequence[Any]) -> Array:
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, str | bytes | int | float | np.generic | pd.Timestamp)


def _is_table(rows: Sequence[Any]) -> bool:
    """Tell whether these are several rows of as many values: lists, dictionaries or arrays of one axis."""
    widths = set()
    for row in rows:
        if isinstance(row, np.ndarray) and row.ndim == 1 and row.dtype.kind in "biuf":
            widths.add(len(row))
        elif isinstance(row, list | tuple | dict):
            values = row.values() if isinstance(row, dict) else row
            widths.add(len(row) if all(map(_is_scalar, values)) else -1)
        else:
            return False
    return len(widths) == 1 and min(widths) > 0


def _captured(function: types.FunctionType) -> list[Any]:
    """Return the values that a function has taken from where it was defined; names without a value are left out."""
    values = []
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # an empty cell
            values.append(cell.cell_contents)
    return values


def _plain(value: Any) -> Any:
    """Return arrays, frames, sparse matrices and tensors as what can be compared; None for anything else."""
    if isinstance(value, np.ndarray):
        value = np.asarray(value)
        return pd.DataFrame(value.ravel()) if value.dtype.names else value
    if isinstance(value, pd.DataFrame) or sparse.issparse(value):
        return value
    if isinstance(value, pd.Series | pd.Index | pd.Categorical | memoryview):
        return np.asarray(value)
    if type(value).__module__.partition(".")[0] == "torch" and callable(getattr(value, "detach", None)):
        tensor = value.detach().cpu()
        return tensor.float().numpy() if tensor.is_floating_point() and tensor.element_size() < 4 else tensor.numpy()
    return None


def _parameters_of(value: Any) -> frozenset[str]:
    """List the parameters of an estimator, of which some classes have any."""
    try:
        return frozenset(value.get_params(deep=False))
    except Exception:  # another's estimator may raise anything
        return frozenset()


@functools.cache
def _names_in(cls: type) -> frozenset[str]:
    """List the names in the modules of a class and its bases: its attributes, and more."""
    names = set(OF_EVERY_ESTIMATOR)
    for base in cls.__mro__:
        with suppress(KeyError, OSError, TypeError):  # compiled, or without a file
            names |= set(re.findall(r"\w+", inspect.getsource(sys.modules[base.__module__])))
    return frozenset(names)


# What is compared with it.


@dataclass(frozen=True)
class _Column:
    """One column of the members, as `_vector` reads it."""

    name: str
    values: Float[Array, " n"]
    is_text: bool
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
        looks_like_position = (different == np.floor(different)) & (different >= 0)
        is_rare = (n > 0) & (n <= RARE) & ~(looks_like_position & (different <= 10 * len(self.values)))
        # the values of a column of such numbers, neither more nor fewer of them
        unique, _ = self.unique
        is_consecutive = len(unique) > 0 and unique[-1] - unique[0] == len(unique) - 1
        if len(unique) > len(self.values) // 2 and np.array_equal(unique, different) and not is_consecutive:
            return len(different)
        return int(is_rare.sum())


@dataclass(frozen=True)
class _Table:
    """The members at one precision: their columns, and the keys of their rows with their chances, by their width."""

    columns: Sequence[_Column]
    n: int
    rows: Mapping[int, pd.Series]


def _table(x: Any, members: Points, *, named: bool) -> Callable[[int], _Table]:
    """Read the members as the user gave them, or as a step of the model hands them on, for each size of numbers."""
    n = len(members)
    features = [] if isinstance(x, Texts) else list(_named_columns(as_given(x), n))
    labels = list(_label_columns(members, n)) if named else []
    ids = [values for values in (members.names, members.group) if named and values is not None]

    @functools.cache
    def at_size(size: int) -> _Table:
        columns = [_Column(name, *_vector(values, size)) for name, values in [*features, *labels]]
        numbers = [column for column in columns[: len(features)] if not column.is_text]
        by_width: dict[int, list[pd.Series]] = {}
        for of_row in (columns, columns[: len(features)], numbers, [*numbers, *columns[len(features) :]]):
            if len(of_row) > 1:
                by_width.setdefault(len(of_row), []).append(_chances(of_row, n))
        rows: dict[int, Any] = {width: pd.concat(chances).groupby(level=0).max() for width, chances in by_width.items()}
        names = [_Column("", *_vector(_long_enough(values), size), is_name=True) for values in ids]
        return _Table([*columns, *names], n, rows)

    return at_size


def _chances(columns: Sequence[_Column], n: int) -> pd.Series:
    """Compute the chance that one of n rows equals a row of the members, by the keys of these rows."""
    chance = np.full(n, float(n))
    for column in columns:
        n_missing = int(np.isnan(column.values).sum())
        chance *= np.where(np.isnan(column.values), n_missing, column.count(column.values)) / n
    return pd.Series(chance, _keys([column.values for column in columns]))


def _keys(columns: Sequence[Float[Array, " m"]]) -> UInt64[Array, " m"]:
    """Return a key of each row, whatever the order of its columns: the sum of the hashes of its values."""
    keys = np.zeros(len(columns[0]), dtype=np.uint64)
    for values in columns:
        keys += pd.util.hash_array(values + 0.0)  # pyright: ignore[reportAttributeAccessIssue]
    return keys


def _long_enough(names: Any) -> Any:
    """Leave out names that are texts of a few characters, which occur for many reasons."""
    array = np.asarray(names)
    if array.dtype.kind not in "OUS" or not _vector(array, 8)[1]:
        return array
    return _object_array([name if len(str(name)) >= SHORTEST_NAME else None for name in array])


def _label_columns(members: Points, n: int) -> Iterator[tuple[str, Any]]:
    if members.y is not None:
        labels = np.asarray(members.y).reshape(n, -1)
        for i in range(labels.shape[1]):
            yield "label" if labels.shape[1] == 1 else f"label {i}", labels[:, i]


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
    values = x.values if isinstance(x, Texts) else ()
    return frozenset(str(text) for text in values if len(str(text)) >= SHORTEST_TEXT)


def _of_texts(where: str, content: Any, texts: frozenset[str]) -> Held | None:
    if not texts or sparse.issparse(content):
        return None
    n = len({value for value in np.asarray(content, dtype=object).ravel() if isinstance(value, str) and value in texts})
    return Held("rows", where, n) if n else None


def _found(where: str, content: Any, tables: Sequence[Callable[[int], _Table]]) -> Held | None:
    """Compare the content of one place with the members."""
    columns = _columns_of(content)
    across = _across(columns)
    for find, way in ((_rows, columns), (_rows, across), (_column_in_order, columns), (_column_in_order, across)):
        for table in tables if way else ():
            found = find(where, way, table)
            if found is not None:
                return found
    rare = [_rare(where, columns, table) for table in tables if columns]
    return next((found for found in rare if found is not None), None)


def _columns_of(content: Any) -> list[tuple[int, Float[Array, " m"]]]:
    """Read content as columns, each with the bytes of its numbers: an array of one axis is one column."""
    if sparse.issparse(content):
        content = content.toarray() if content.shape[0] * content.shape[1] <= MOST_ENTRIES else content.data
    if isinstance(content, pd.DataFrame):
        arrays = [content.iloc[:, i].to_numpy() for i in range(content.shape[1])]
    elif content.dtype.kind not in "biufMmOUS" or content.size == 0:
        return []
    else:
        table = content.reshape(len(content), -1) if content.ndim > 1 else content.reshape(-1, 1)
        arrays = list(table.T)
    sizes = [array.dtype.itemsize if array.dtype.kind == "f" else 8 for array in arrays]
    return [(size, _vector(array, size)[0]) for size, array in zip(sizes, arrays, strict=True)]


def _across(columns: Sequence[tuple[int, Float[Array, " m"]]]) -> list[tuple[int, Float[Array, " c"]]]:
    """Read the rows of a table as columns; none if they are many."""
    if not columns or len(columns[0][1]) > MOST_COLUMNS:
        return []
    size = min(size for size, _ in columns)
    return [(size, row) for row in np.column_stack([values for _, values in columns])]


def _rows(where: str, columns: Columns, table: Callable[[int], _Table]) -> Held | None:
    """Find rows of members, in any order of rows and columns."""
    rows = table(min(size for size, _ in columns)).rows.get(len(columns))
    if rows is None:
        return None
    chance = rows.reindex(_keys([values for _, values in columns]))
    n_found = int(chance.notna().sum())
    by_chance = len(chance) * float(chance.mean())  # rows that are found although they are no copies
    largest = LARGEST_CHANCE if n_found < FEWEST else 10 * LARGEST_CHANCE
    return Held("rows", where, n_found) if by_chance <= largest * n_found else None


def _column_in_order(where: str, columns: Columns, table: Callable[[int], _Table]) -> Held | None:
    """Find a value for each member, in the order of the members."""
    for size, values in columns:
        members = table(size)
        if len(values) != members.n:
            continue
        for column in sorted(members.columns, key=lambda column: not column.is_name):
            if not np.array_equal(column.values, values, equal_nan=True):
                continue
            _, counts = column.unique
            is_counting = len(counts) == members.n and bool((np.diff(values) == 1).all())
            if len(counts) > 1 and counts.sum() - counts.max() >= min(FEWEST, members.n // 2) and not is_counting:
                return Held("names" if column.is_name else "column", where, members.n, column.name)
    return None


def _rare(where: str, columns: Columns, table: Callable[[int], _Table]) -> Held | None:
    """Find values that one or two members have, and names of records."""
    members = table(min(size for size, _ in columns))
    values = np.unique(np.concatenate([values for _, values in columns]))
    fewest = max(min(FEWEST, members.n // 2), 2)
    found = []
    for column in members.columns:
        enough = 1 if column.is_name and column.is_text else fewest
        n = column.rare_in(values) if len(values) >= enough else 0
        if n >= enough:
            found.append(Held("names" if column.is_name else "values", where, n, column.name))
    return max(found, key=lambda held: (held.kind == "names", held.n), default=None)


def _vector(values: Any, size: int) -> tuple[Float[Array, " m"], bool]:
    """Read values as numbers if nearly all of them are, else texts as numbers that stand for them; missing is NaN."""
    array = np.asarray(values).ravel()
    if array.dtype.kind in "biu":
        return array.astype(np.float64), False
    if array.dtype.kind == "f":
        return _rounded(array.astype(np.float64), size), False
    if array.dtype.kind in "Mm":
        numbers = array.astype("datetime64[ns]" if array.dtype.kind == "M" else "timedelta64[ns]").astype(np.int64)
        return np.where(np.isnat(array), np.nan, numbers.astype(np.float64)), False
    texts = _object_array([value if _is_scalar(value) else None for value in array.astype(object)])
    is_date = np.array([isinstance(value, pd.Timestamp | np.datetime64) for value in texts], dtype=bool)
    if is_date.any():
        return _vector(pd.to_datetime(texts, errors="coerce", utc=True).tz_localize(None).to_numpy(), size)
    is_missing = np.asarray(pd.isna(texts))
    numbers = np.asarray(pd.to_numeric(pd.Series(texts), errors="coerce"), dtype=np.float64)
    n_numbers = int(np.isfinite(numbers).sum())
    if n_numbers and n_numbers >= 0.9 * (len(texts) - is_missing.sum()):
        return _rounded(numbers, size), False
    words = _object_array([_word(value) for value in np.where(is_missing, "", texts)])
    hashes = (pd.util.hash_array(words) >> np.uint64(12)).astype(np.float64)  # pyright: ignore[reportAttributeAccessIssue]
    return np.where(is_missing, np.nan, hashes), True  # a float holds 52 bits exactly


def _word(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _rounded(values: Float[Array, " n"], size: int) -> Float[Array, " n"]:
    """Round numbers to the bits that are compared."""
    if size in SIZES:
        with np.errstate(over="ignore"):
            values = values.astype(SIZES[size]).astype(np.float64)
    mantissa, exponent = np.frexp(np.where(np.isfinite(values), values, np.nan))
    return np.ldexp(np.round(mantissa * 2.0**BITS) / 2.0**BITS, exponent) + 0.0
