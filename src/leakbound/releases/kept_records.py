"""Whether a fitted model holds records of its training data, by what is in it and not by its class.

Every attribute of the model and of its parts is pickled, and what the pickler reaches is noted: arrays, frames, lists,
numbers, texts, what functions captured. These are compared with the members, as they were given, as the steps of a
pipeline hand them on, and scaled: whole rows, in any order of rows and columns; columns in the order of the records;
values that one or two members have; and what the owner calls the records. In a table of as many rows as there are
members each column may be any increasing map of one of theirs: shifted, scaled, rounded, or its ranks.

A coincidence is told from a copy by its chance, which `_chances` bounds for a row and `_Column.found_in` for values.
Whole numbers from 0 to 10 n are what counts and positions look like, and a column of them reveals nothing by itself.

A row has all features, or all that are numbers, with or without the labels; in a table of as many rows as there are
members, any that are enough. Other rows are found by the values that one or two members have.

Not found are records that are encrypted, rotated or mixed, or memorised in weights; some of the records, scaled
otherwise than by mean and deviation or by smallest and largest of all; and what the nodes of trees and boosters hold,
whose thresholds lie between values of the data.
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
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Literal

import numpy as np
import pandas as pd
from jaxtyping import Float, Int, UInt64
from scipy import sparse, stats

from leakbound.core.checks import one_line
from leakbound.core.types import Points
from leakbound.data.records import Texts, as_given
from leakbound.releases.specs import is_network

Array = np.ndarray
Kind = Literal["rows", "values", "names", "column"]
Columns = Sequence[Float[Array, " m"]]

RARE = 2  # members with the same value, up to which it is nearly a name
FEWEST = 10  # such values in one place
SHORTEST_NAME = 5  # characters of a text that names a record
SHORTEST_TEXT = 20  # characters of a record that is a text
LONGEST_TEXT = 10_000_000  # characters of a text that are read as words and as a table
LARGEST_CHANCE = 0.01  # that a row is a coincidence; ten times that of many rows
MOST_ENTRIES = 20_000_000  # of a sparse matrix that is unpacked
SMALL = 100  # numbers and characters of an attribute that is left unexplained
BITS = (8, 11, 24)  # binary digits of bfloat16, float16 and float32
MOST_BITS = 40  # that are compared
BITS_OF_SCALED = 16  # that are left of numbers that were scaled in another order of operations, or in 32 bits
SCALES: Sequence[Callable[[Array], tuple[Any, Any]]] = (
    lambda values: (np.nanmean(values), np.nanstd(values)),
    lambda values: (np.nanmean(values), np.nanstd(values, ddof=1)),
    lambda values: (np.nanmin(values), np.nanmax(values) - np.nanmin(values)),
)
SAME_ORDER = 0.99  # rank correlation of a column with what is left of it after rounding
SAME_CORRELATION = 0.01  # difference of rank correlations after rounding
ALL = 0.9  # fraction of the rows of a table that are those of the members
FEWEST_LEVELS = 64  # different values that rounding leaves of a column which has more
MOST_INDEPENDENT = 100  # columns from which chances are computed
MOST_RANKED = 2_000  # members of whom it is asked whether two columns say the same
MOST_MATCHES = 50  # beginnings of matches between columns that are followed
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
    kind: Kind
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

    @property
    def n_rows(self) -> int:
        """How many rows are in the place that has most."""
        return max((held.n for held in self.held if held.kind == "rows"), default=0)


def search(model: Any, members: Points, handed_on: Sequence[Any] = ()) -> Kept:
    """Search a fitted model for records of its training data.

    >>> from sklearn.linear_model import LogisticRegression
    >>> x = np.random.default_rng(0).normal(size=(50, 3))
    >>> model = LogisticRegression().fit(x, x[:, 0] > 0)
    >>> model.copy_ = x[::-1]
    >>> search(model, Points(x)).held
    (Held(kind='rows', where='copy_', n=50, column=''),)
    """
    n = len(members)
    readings = list(_readings(members.x, members, named=True))
    for x in handed_on:
        if x is not None and not isinstance(x, list):
            readings += _readings(x, members, named=False)
    held: dict[str, Held] = {}
    extra, unexplained, complete = [], [], True
    for place in _places(model):
        complete &= place.complete
        if place.extra:
            extra.append(place.where)
            if place.size > SMALL or place.size == n > 1:
                unexplained.append(place.where)
        for content in place.contents:
            found = _found(place.where, content, readings, n)
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
        if isinstance(obj, types.FunctionType) and _is_found_by_name(obj):
            return "a name"
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
            reduced = obj.__reduce_ex__(4)
        except Exception:  # a lock, a file, or whatever refuses to be pickled
            reduced = list, (list(getattr(obj, "__dict__", {}).values()),)
        return (str, (reduced,)) if isinstance(reduced, str) else reduced  # a text is a name, and holds nothing else

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


def _is_found_by_name(function: types.FunctionType) -> bool:
    """Tell whether a pickle has nothing of a function but its name."""
    return getattr(sys.modules.get(function.__module__), function.__qualname__, None) is function


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
    """A column of the members as numbers, of which texts have codes."""

    name: str
    values: Float[Array, " n"]
    order: Float[Array, " n"]  # the same numbers, or the alphabetical order of texts
    kind: Kind = "values"  # what its values are, where they are found

    @functools.cached_property
    def unique(self) -> tuple[Float[Array, " u"], Int[Array, " u"]]:
        """Values and how many members have each."""
        return np.unique(self.values[~np.isnan(self.values)], return_counts=True)

    @property
    def is_text(self) -> bool:
        """Whether its numbers are codes."""
        return self.values is not self.order

    def at(self, bits: int) -> _Column:
        """Round the numbers."""
        if self.is_text or bits == MOST_BITS:
            return self
        rounded = _rounded(self.values, bits)
        return replace(self, values=rounded, order=rounded)

    def found_in(self, values: Float[Array, " u"], bits: int) -> int:
        """Count the values of one or two members that are among others; none if they may be there by chance.

        A value that is no copy is as probable as one beside it, at the distance of the closest two members, that no
        member has. So of all that are found of both, a binomial number are members'; as many must have a chance of at
        most `LARGEST_CHANCE` in 100 columns.
        """
        unique, counts = self.unique
        looks_like_position = (unique == np.floor(unique)) & (unique >= 0) & (unique <= 10 * len(self.values))
        is_rare = (counts <= RARE) & ~looks_like_position
        n_found = int(np.isin(unique[is_rare], values).sum())
        is_consecutive = len(unique) > 0 and unique[-1] - unique[0] == len(unique) - 1
        if len(unique) > len(self.values) // 2 and np.array_equal(unique, values) and not is_consecutive:
            return len(unique)  # neither more nor fewer than the values of the column
        if self.kind != "values" or self.is_text or n_found == 0:
            return n_found
        step = 1.01 * np.maximum(np.abs(unique) * 2.0 ** (1 - bits), np.diff(unique).min(initial=np.inf))
        gaps = np.diff(unique, prepend=-np.inf, append=np.inf)
        n_free = (gaps[:-1] > 1.5 * step).astype(int) + (gaps[1:] > 1.5 * step)  # places beside it without a member
        compared = unique[is_rare & (n_free > 0)]
        n_copies = int(np.isin(compared, values).sum())
        others = np.setdiff1d(values, unique)
        n_others = int((_distances(others, compared) <= np.interp(others, unique, step)).sum())
        fraction = len(compared) / max(len(compared) + n_free[is_rare].sum(), 1)
        chance = stats.binom.sf(n_copies - 1, n_copies + n_others, fraction)
        return n_found if chance <= LARGEST_CHANCE / 100 else 0


def _distances(values: Float[Array, " m"], known: Float[Array, " u"]) -> Float[Array, " m"]:
    """Return the distance of each value to the nearest of some sorted ones."""
    around = np.concatenate([[-np.inf], known, [np.inf]])
    at = np.searchsorted(around, values)
    return np.minimum(values - around[at - 1], around[at] - values)


@dataclass(frozen=True)
class _Members:
    """The members as the user gave them, as a step of the model hands them on, or scaled, at one precision."""

    features: Sequence[_Column]
    labels: Sequence[_Column]
    names: Sequence[_Column]
    n: int
    bits: int = MOST_BITS
    is_scaled: bool = False

    @functools.cached_property
    def _rounded(self) -> dict[int, _Members]:
        return {}

    def at(self, bits: int) -> _Members:
        """Round the numbers."""
        bits = min(bits, BITS_OF_SCALED) if self.is_scaled else bits
        if bits not in self._rounded:
            features, labels, names = (
                [column.at(bits) for column in part] for part in (self.features, self.labels, self.names)
            )
            self._rounded[bits] = _Members(features, labels, names, self.n, bits, self.is_scaled)
        return self._rounded[bits]

    @property
    def columns(self) -> Sequence[_Column]:
        """Features and labels."""
        return [*self.features, *self.labels]

    def are_as_many(self, columns: Columns) -> bool:
        """Tell whether a table has a row for each member, of whom increasing maps are looked for."""
        return len(columns[0]) == self.n >= FEWEST

    @property
    def rows(self) -> list[Sequence[_Column]]:
        """The columns that a row may have."""
        numbers = [column for column in self.features if not column.is_text]
        return [self.columns, self.features, numbers, [*numbers, *self.labels]]

    @functools.cached_property
    def ranks(self) -> Float[Array, "n d"]:
        """Ranks in each column, as vectors of length 1."""
        return _unit_ranks([column.order for column in [*self.columns, *self.names]])


def _readings(x: Any, members: Points, *, named: bool) -> Iterator[_Members]:
    """Yield the members as they are and, for tables of some of them, scaled."""
    n = len(members)
    labels = list(_label_columns(members, n)) if named else []
    names: list[tuple[Any, Kind]] = [
        (values, "names") for values in (members.names, members.group) if named and values is not None
    ]
    tables = []
    if isinstance(x, Texts):
        names.append((_long_enough(x.values, SHORTEST_TEXT), "rows"))
    else:
        tables = list(_named_columns(as_given(x), n))
    features, labels = ([_Column(name, *_vector(values)) for name, values in part] for part in (tables, labels))
    ids = [_Column("", *_vector(_long_enough(values)), kind=kind) for values, kind in names]
    yield _Members(features, labels, ids, n)
    numbers = [column for column in features if not column.is_text and len(column.unique[0]) > 1]
    for scale in SCALES if named else ():
        scaled = [_scaled(column, scale) for column in numbers]
        yield _Members(scaled, labels, [], n, is_scaled=True)


def _scaled(column: _Column, scale: Callable[[Array], tuple[Any, Any]]) -> _Column:
    """Shift and scale a column as models do that scale what they keep."""
    shift, length = scale(column.values)
    values = (column.values - shift) / length
    return replace(column, values=values, order=values)


def _chances(columns: Sequence[Float[Array, " n"]]) -> Float[Array, " n"]:
    r"""Bound the chance that a row which is no copy equals each row of the members.

    Each column is cut into quarters, of which a row has one cell. A further row of the same population is in the cell
    of a member that is alone in it with a probability of about $2 (N_2 + 1) / n$ (Good and Turing), $N_2$ the cells of
    two members, and in that of m members with one of at most m. Inside of a cell values are taken as independent: it
    has the values of the member with the product, over columns, of their fractions of the quarter. Columns in nearly
    the same order count once.
    """
    n = len(columns[0])
    independent = _in_other_orders(columns)
    quarters, fractions = np.zeros((n, len(independent))), np.ones(n)
    for i, values in enumerate(independent):
        _, value, count = np.unique(values, return_inverse=True, return_counts=True)
        quarter = 4 * (np.cumsum(count) - count) // n  # of the first of several equal values
        in_quarter = np.bincount(quarter, weights=count)[quarter]
        quarters[:, i] = quarter[value]
        fractions *= (count / in_quarter)[value]
    _, cell, sizes = np.unique(_keys(list(quarters.T)), return_inverse=True, return_counts=True)
    alone = 2 * (np.count_nonzero(sizes == 2) + 1) / n
    return np.where(sizes[cell] == 1, alone, sizes[cell]) * fractions


def _in_other_orders(columns: Sequence[Float[Array, " n"]]) -> list[Float[Array, " n"]]:
    """Return up to `MOST_INDEPENDENT` columns, without those in nearly the same order as an earlier one."""
    chosen = np.random.default_rng(0).permutation(len(columns))[:MOST_INDEPENDENT]  # constants may be regular
    columns = [columns[i] for i in chosen]
    ranks = _unit_ranks([values[:MOST_RANKED] for values in columns])
    related = np.asarray(np.triu(np.abs(ranks.T @ ranks) > SAME_ORDER, 1).any(axis=0))
    return [values for values, is_related in zip(columns, related, strict=True) if not is_related]


def _unit_ranks(columns: Sequence[Float[Array, " n"]]) -> Float[Array, "n d"]:
    """Return ranks in each column less their mean, as vectors of length 1, or 0 where all are equal."""
    ranks = pd.DataFrame(np.column_stack(columns)).rank().fillna(0.0).to_numpy()
    ranks = ranks - ranks.mean(axis=0)
    length = np.sqrt((ranks**2).sum(axis=0))
    return ranks / np.where(length > 0, length, 1.0)


def _keys(columns: Sequence[Float[Array, " m"]]) -> UInt64[Array, " m"]:
    """Return a key of each row from the hashes of its values."""
    keys = np.zeros(len(columns[0]), dtype=np.uint64)
    for values in columns:
        keys = keys * np.uint64(31) + pd.util.hash_array(values + 0.0)  # pyright: ignore[reportAttributeAccessIssue]
    return keys


def _long_enough(names: Any, least: int = SHORTEST_NAME) -> Any:
    """Leave out names that are texts of a few characters, which occur for many reasons."""
    array = np.asarray(names, dtype=object if least == SHORTEST_TEXT else None)
    if array.dtype.kind not in "OUS" or _is_number(array):
        return array
    return _object_array([name if len(str(name)) >= least else None for name in array])


def _is_number(array: Array) -> bool:
    values, order = _vector(array)
    return values is order


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


def _found(where: str, content: Any, readings: Sequence[_Members], n: int) -> Held | None:
    """Compare the content of one place with the members: rows first, then columns, then values."""
    columns = _columns_of(content, n)
    if not columns:
        return None
    bits = next((bits for bits in BITS if _are_rounded(columns, bits)), MOST_BITS)
    searches = ((_all_rows, MOST_BITS), (_rows, bits), (_column_in_order, MOST_BITS), (_values, bits))
    for find, bits_of_members in searches:
        for reading in readings:
            is_of_use = len(columns) in map(len, reading.rows) if find is _rows else not reading.is_scaled
            if not is_of_use:
                continue
            members = reading.at(bits_of_members)
            fewer = [_rounded(values, members.bits) for values in columns] if members.bits < bits else columns
            found = find(where, fewer, members)
            if found is not None:
                return found
    return _one_row(where, columns, readings, bits)


def _one_row(where: str, columns: Columns, readings: Sequence[_Members], bits: int) -> Held | None:
    """Find the row of one member in a list of values."""
    if len(columns) > 1:
        return None
    row = list(columns[0][:, None])
    for reading in readings:
        if not reading.is_scaled and len(row) in map(len, reading.rows):
            found = _rows(where, row, reading.at(bits))
            if found is not None:
                return found
    return None


def _are_rounded(columns: Columns, bits: int) -> bool:
    return all(np.array_equal(_rounded(values, bits), values, equal_nan=True) for values in columns)


def _columns_of(content: Any, n: int) -> list[Float[Array, " m"]]:
    """Read content as columns: an array of one axis is one, and the axis of n entries is that of the records."""
    if sparse.issparse(content):
        content = content.toarray() if content.shape[0] * content.shape[1] <= MOST_ENTRIES else content.data
    if isinstance(content, pd.DataFrame):
        arrays = [content.iloc[:, i].to_numpy() for i in range(content.shape[1])]
    elif content.dtype.kind not in "biufMmOUS" or content.size == 0:
        return []
    else:
        content = np.atleast_1d(content.squeeze())
        records = content.shape.index(n) if n in content.shape else 0
        content = np.moveaxis(content, records, 0)
        arrays = list(content.reshape(len(content), -1).T)
    return [_vector(array)[0] for array in arrays]


def _rows(where: str, columns: Columns, members: _Members) -> Held | None:
    """Find rows of members, in any order."""
    for of_row in members.rows:
        if len(of_row) != len(columns) or len(columns) < 2:
            continue
        values = [column.values for column in of_row]
        keys, of_members = _keys(columns), _keys(values)
        n_found = int(np.isin(keys, of_members).sum())
        if n_found == 0 or (members.is_scaled and n_found < FEWEST):  # the smallest are the smallest after any scaling
            continue
        chances = _chances(values)[np.isin(of_members, keys)]
        by_chance = len(keys) * float(chances.mean())  # rows that are found although they are no copies
        if by_chance <= (LARGEST_CHANCE if n_found < FEWEST else 10 * LARGEST_CHANCE) * n_found:
            return Held("rows", where, n_found)
    return None


def _all_rows(where: str, columns: Columns, members: _Members) -> Held | None:
    """Find all members in as many rows, in any order, of columns that are increasing maps of theirs.

    A shift and a scale, rounding and ranks keep the order of values: of two columns that such a map makes of one
    another, it carries the values of a rank to those of this rank.
    """
    known = members.columns
    if not members.are_as_many(columns) or not 1 < len(columns) <= 2 * len(known):
        return None
    ranks, of_members = _unit_ranks(columns), members.ranks[:, : len(known)]
    for match in _matches(ranks.T @ ranks, of_members.T @ of_members):
        carried = [_carried(columns[j], known[i].order) for j, i in match.items()]
        n_found = int(np.isin(_keys([columns[j] for j in match]), _keys(carried)).sum())
        by_chance = float(_chances(carried).sum())
        if n_found >= ALL * members.n and by_chance <= 10 * LARGEST_CHANCE * n_found:
            return Held("rows", where, n_found)
    return None


def _column_in_order(where: str, columns: Columns, members: _Members) -> Held | None:
    """Find a column in the order of the members that is an increasing map of one of theirs."""
    known = [*members.columns, *members.names]
    if not members.are_as_many(columns) or not known:
        return None
    for j, i in np.argwhere(_unit_ranks(columns).T @ members.ranks > SAME_ORDER):
        if _is_same_column(columns[j], known[i].order):
            kind: Kind = "column" if known[i].kind == "values" else known[i].kind
            return Held(kind, where, members.n, known[i].name)
    # a text is compared as it is: its code in the content says nothing of its order
    for values, column in product(columns, known):
        if column.is_text and _is_same_column(values, column.values):
            return Held("column" if column.kind == "values" else column.kind, where, members.n, column.name)
    return None


def _matches(of_content: Float[Array, "c c"], of_members: Float[Array, "d d"]) -> Iterator[dict[int, int]]:
    """Yield columns of the content with those of the members that may be the same, the best match first.

    They have the same rank correlations with each other, whatever the order of the rows.
    """
    c, d = len(of_content), len(of_members)
    if 1 < c <= d and np.abs(of_content - of_members[:c, :c]).max() <= SAME_CORRELATION:
        yield {j: j for j in range(c)}
        return
    for first in range(min(c, 3)):  # a column that is none of the members' may come first
        matches: list[tuple[float, dict[int, int]]] = [(0.0, {})]
        for j in range(first, c):
            longer = []
            for largest, match in matches:
                js, taken = list(match), list(match.values())
                differences = np.abs(of_members[:, taken] - of_content[j, js]).max(axis=1, initial=largest)
                differences[taken] = np.inf
                longer += [(differences[i], {**match, j: i}) for i in np.flatnonzero(differences <= SAME_CORRELATION)]
            matches = sorted(longer, key=lambda one: one[0])[:MOST_MATCHES] or matches
        yield from (match for _, match in matches if len(match) > 1)


def _carried(values: Float[Array, " n"], order: Float[Array, " n"]) -> Float[Array, " n"]:
    """Return the value of the same rank for each member; that of the first of equal ones."""
    return np.sort(values)[np.searchsorted(np.sort(order), order)]


def _is_same_column(values: Float[Array, " n"], order: Float[Array, " n"]) -> bool:
    """Tell whether a column is an increasing map of another; of a sorted one without equal values, too many are."""
    n_levels = min(len(np.unique(order)), FEWEST_LEVELS)
    _, counts = np.unique(values, return_counts=True)
    if len(counts) < max(n_levels, 2) or len(values) - counts.max() < FEWEST or (np.diff(order) > 0).all():
        return False
    return bool(np.mean(_carried(values, order) == values) >= SAME_ORDER)


def _values(where: str, columns: Columns, members: _Members) -> Held | None:
    """Find values that one or two members have, and names of records."""
    values = np.unique(np.concatenate(columns))
    values = values[~np.isnan(values)]
    fewest = max(min(FEWEST, members.n // 2), 2)
    found = []
    for column in [*members.columns, *members.names]:
        enough = 1 if column.kind != "values" and column.is_text else fewest
        n = column.found_in(values, members.bits) if len(values) >= enough else 0
        if n >= enough:
            found.append(Held(column.kind, where, n, column.name))
    return max(found, key=lambda held: (held.kind != "values", held.n), default=None)


def _vector(values: Any) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
    """Read values as numbers if nearly all of them are, else texts as codes, and return their order; missing is NaN."""
    array = np.asarray(values).ravel()
    if array.dtype.kind in "biuf":
        numbers = array.astype(np.float64) if array.dtype.kind != "f" else _rounded(array.astype(np.float64), MOST_BITS)
        return numbers, numbers
    if array.dtype.kind in "Mm":
        numbers = array.astype("datetime64[ns]" if array.dtype.kind == "M" else "timedelta64[ns]").astype(np.int64)
        numbers = np.where(np.isnat(array), np.nan, numbers.astype(np.float64))
        return numbers, numbers
    texts = _object_array([value if _is_scalar(value) else None for value in array.astype(object)])
    is_date = np.array([isinstance(value, pd.Timestamp | np.datetime64) for value in texts], dtype=bool)
    if is_date.any():
        return _vector(pd.to_datetime(texts, errors="coerce", utc=True).tz_localize(None).to_numpy())
    is_missing = np.asarray(pd.isna(texts))
    numbers = np.asarray(pd.to_numeric(pd.Series(texts), errors="coerce"), dtype=np.float64)
    n_numbers = int(np.isfinite(numbers).sum())
    if n_numbers and n_numbers >= 0.9 * (len(texts) - is_missing.sum()):
        numbers = _rounded(numbers, MOST_BITS)
        return numbers, numbers
    words = _object_array([_word(value) for value in np.where(is_missing, "", texts)])
    hashes = (pd.util.hash_array(words) >> np.uint64(12)).astype(np.float64)  # pyright: ignore[reportAttributeAccessIssue]
    order = np.unique(words, return_inverse=True)[1].astype(float)
    return np.where(is_missing, np.nan, hashes), np.where(is_missing, np.nan, order)  # a float holds 52 bits exactly


def _word(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _rounded(values: Float[Array, " n"], bits: int) -> Float[Array, " n"]:
    """Round numbers to so many binary digits."""
    mantissa, exponent = np.frexp(np.where(np.isfinite(values), values, np.nan))
    return np.ldexp(np.round(mantissa * 2.0**bits) / 2.0**bits, exponent) + 0.0
