"""The tables of an audit of synthetic data: members, others, synthetic files and a reference, with equal columns.

A record that equals one of another unit is taken out, on whichever side it is: of records that are on both sides
nobody can be said to be in. Repeats within one side are taken out with them. If they stayed, and one side were larger
than the other, records that occur often would be left on the larger side alone, and as these are the ones that a
generator hits by chance, it would be accused of copying.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import numpy as np
import pandas as pd
from jaxtyping import Bool, Int

from leakbound import data as data_room
from leakbound.core.types import Points
from leakbound.data.columns import alike_levels, date_notes, repeated_names
from leakbound.data.csv_rows import CsvForm
from leakbound.data.files import has_column
from leakbound.data.points import from_arrays, how_to_drop, some, with_names
from leakbound.data.slices import Slices, sliced
from leakbound.releases.generators.distances import Encoded, Encoding, kind_of

Array = np.ndarray


@dataclass(frozen=True)
class Table:
    """One of the files: its columns, what errors call it, and its SHA-256 where it was read from a file."""

    frame: pd.DataFrame
    role: str
    digest: str = ""
    notes: Sequence[str] = ()


class Tables(NamedTuple):
    """All tables of an audit, as they were read."""

    synthetic: list[Table]
    members: Table
    others: Table
    reference: Table | None


class Columns(NamedTuple):
    """Which columns are no features: those that name a record, a unit, or are left out."""

    id: str | None = None
    group: str | None = None
    drop: Sequence[str] = ()


@dataclass(frozen=True, eq=False)
class Compared:
    """Members and others as candidates, members first, with everything that they are compared with."""

    points: Points
    n_members: int
    synthetic: Sequence[pd.DataFrame]
    reference: pd.DataFrame | None
    encoding: Encoding
    records: Encoded
    slices: Mapping[str, Array]
    files: Mapping[str, str]
    n_shared: int  # of the others that equal a member
    n_repeated: int  # further records that equal one of another unit
    notes: Sequence[str]

    @property
    def is_member(self) -> Bool[Array, " N"]:
        """Whether each record is one of the members."""
        return np.arange(len(self.points)) < self.n_members

    @cached_property
    def synthetic_rows(self) -> pd.DataFrame:
        """The rows of all synthetic files: an attacker sees them together."""
        return pd.concat(self.synthetic, ignore_index=True)

    @property
    def unit(self) -> Int[Array, " N"]:
        """Index of the unit of each record."""
        if self.points.group is None:
            return np.arange(len(self.points))
        return np.unique(self.points.group, return_inverse=True)[1]


def read_tables(synthetic: Any, members: Any, others: Any, reference: Any, **form: Unpack[CsvForm]) -> Tables:
    """Read all tables of a call: frames, arrays of numbers, or files."""
    files = list(synthetic) if isinstance(synthetic, list | tuple) else [synthetic]
    if not files:
        raise ValueError("synthetic is an empty list; give at least one synthetic table")
    roles = [
        "the synthetic file" if len(files) == 1 else f"synthetic file {place}" for place in range(1, len(files) + 1)
    ]
    tables = [_read(role, file, form) for role, file in zip(roles, files, strict=True)]
    further = None if reference is None else _read("the reference", reference, form)
    return Tables(tables, _read("the members", members, form), _read("the others", others, form), further)


def _read(role: str, given: Any, form: CsvForm) -> Table:
    """Read one table; columns of an array are x0, x1, ..."""
    if isinstance(given, str | os.PathLike):
        loaded = data_room.read(given, **form)
        path = Path(given)
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return Table(_frame(role, loaded.points.x), path.name, digest, loaded.notes)
    return Table(_frame(role, given), role)


def _frame(role: str, x: Any) -> pd.DataFrame:
    if not isinstance(x, pd.DataFrame):
        array = np.asarray(x)
        if array.dtype.kind not in "biuf" or array.ndim < 2:
            raise ValueError(f"{role}: give a frame, an array of numbers with a row for each record, or a file")
        flat = array.reshape(len(array), -1)
        x = pd.DataFrame(flat, columns=[f"x{place}" for place in range(flat.shape[1])])
    if len(x) < 2:
        raise ValueError(f"{role}: a table needs at least 2 rows, got {len(x)}")
    return x.rename(columns=str)


def compared(
    tables: Tables,
    columns: Columns,
    groups: Any = None,
    ids: Any = None,
    slices: Slices = (),
) -> Compared:
    """Match the columns of all tables, and take out the records that several units have."""
    synthetic, members, others, reference = tables
    _refuse_unknown(columns, [*synthetic, members, others], (members, others))
    further = [] if reference is None else [reference]
    features = [_features(table, columns) for table in (*synthetic, members, others, *further)]
    _refuse_differing(features)
    synthetic = features[: len(synthetic)]
    members_used, others_used = features[len(synthetic) : len(synthetic) + 2]
    # one table of candidates: ranges, levels and identifiers are those of both sides together
    frame = pd.concat([members_used.frame, others_used.frame], ignore_index=True)
    whole = pd.concat([members.frame, others.frame], ignore_index=True)
    encoding = Encoding.of(frame)
    records = encoding.encode(frame)
    points = _candidates(frame, whole, columns, members, others, groups, ids)
    by_name = sliced(points, slices, whole)
    # what nobody can be told apart by
    is_member = np.arange(len(frame)) < len(members.frame)
    taken_out, on_both = _taken_out(records, is_member, points.group)
    kept = ~taken_out
    n_members = int((kept & is_member).sum())
    if n_members == 0 or n_members == kept.sum():
        side = "members" if n_members == 0 else "others"
        raise ValueError(
            f"every one of the {side} equals a record of another unit in all columns that are compared, so nothing is "
            "left to compare; members and others must be different records"
        )
    rows = np.flatnonzero(kept)
    names = None if points.names is None else points.names[rows]
    group = None if points.group is None else points.group[rows]
    return Compared(
        points=replace(from_arrays(points.x.iloc[rows].reset_index(drop=True), None, group), names=names),
        n_members=n_members,
        synthetic=[table.frame for table in synthetic],
        reference=None if reference is None else features[-1].frame,
        encoding=encoding,
        records=records.take(rows),
        slices={name: np.asarray(values)[rows] for name, values in by_name.items()},
        files={table.role: table.digest for table in (*synthetic, *further) if table.digest},
        n_shared=int((on_both & ~is_member).sum()),
        n_repeated=int((taken_out & ~on_both).sum()),
        notes=tuple(_notes(encoding, points, [*tables.synthetic, members, others, *further])),
    )


def _notes(encoding: Encoding, points: Points, tables: Sequence[Table]) -> Iterator[str]:
    """Yield what a reader has to know of the tables."""
    for table in tables:
        yield from table.notes
    for name in encoding.left_out:
        yield (
            f"{name} has another value in each record: it is taken for an identifier, and is compared with nothing. "
            f"Give it as id (--id {name}), or drop it (--drop {name})"
        )
    # dates that are read as dates are numbers here
    yield from date_notes(replace(points, x=points.x[[name for name in encoding.levels if name in points.x.columns]]))
    yield from alike_levels(points)
    yield from repeated_names(points)


def _refuse_unknown(columns: Columns, tables: Sequence[Table], sides: Sequence[Table]) -> None:
    """Refuse columns to leave out that no table has, and names or units that members or others lack."""
    known = pd.DataFrame(columns=list(dict.fromkeys(name for table in tables for name in table.frame.columns)))
    for name in columns.drop:
        has_column(known, name, "all tables together")
    for name in (columns.id, columns.group):
        for table in sides:
            if name is not None:
                has_column(table.frame, name, table.role)


def _features(table: Table, columns: Columns) -> Table:
    """Return a table without the columns that are no features, as far as it has them."""
    frame = table.frame.drop(columns=[columns.id, columns.group, *columns.drop], errors="ignore")
    if frame.shape[1] < 2:
        raise ValueError(f"{table.role}: at least two columns must be left to compare, got {some(frame.columns)}")
    return replace(table, frame=frame)


def _refuse_differing(tables: Sequence[Table]) -> None:
    """Refuse columns that some table lacks, or that have another type there: all of them in one line."""
    names = list(dict.fromkeys(name for table in tables for name in table.frame.columns))
    problems, differing = [], []
    for name in names:
        lacking = [table.role for table in tables if name not in table.frame.columns]
        if lacking:
            problems.append(f"{name} is missing in {some(lacking)}")
            differing.append(name)
            continue
        roles: dict[str, list[str]] = {}
        for table in tables:
            kind = kind_of(pd.Series(table.frame[name]))
            if kind:  # a column without any value is of every type
                roles.setdefault(kind, []).append(table.role)
        if len(roles) > 1:
            problems.append(f"{name} has {', '.join(f'{kind} in {some(of)}' for kind, of in roles.items())}")
            differing.append(name)
    if problems:
        raise ValueError(
            f"the tables have different columns: {'; '.join(problems)}. Give each the same columns, of one type, or "
            f"leave {'it' if len(differing) == 1 else 'them'} out ({how_to_drop(differing)})"
        )


def _candidates(
    frame: pd.DataFrame, whole: pd.DataFrame, columns: Columns, members: Table, others: Table, groups: Any, ids: Any
) -> Points:
    """Return members and others as points, with their units and names."""
    unit = whole[columns.group].to_numpy() if columns.group is not None else groups
    points = from_arrays(frame, None, unit)
    if columns.id is not None:
        return with_names(points, whole[columns.id])
    if ids is not None:
        return with_names(points, ids)
    # the indices of two frames that do not only count
    of_members, of_others = from_arrays(members.frame).names, from_arrays(others.frame).names
    if of_members is None or of_others is None:
        return points
    return with_names(points, np.concatenate([of_members, of_others]))


def _taken_out(
    records: Encoded, is_member: Bool[Array, " N"], group: Array | None
) -> tuple[Bool[Array, " N"], Bool[Array, " N"]]:
    """Find the records that equal one of another unit, or whose unit is on both sides; and those of them on both."""
    table = pd.DataFrame(np.hstack([records.numbers, records.codes]))
    row = table.groupby(list(table.columns), dropna=False, sort=False).ngroup().to_numpy()
    unit = np.arange(len(row)) if group is None else np.unique(group, return_inverse=True)[1]
    side = is_member.astype(int)
    unit_on_both, row_on_both = (_n_different(side, of)[of] > 1 for of in (unit, row))
    return (_n_different(unit, row)[row] > 1) | unit_on_both, row_on_both | unit_on_both


def _n_different(values: Int[Array, " N"], of: Int[Array, " N"]) -> Int[Array, " g"]:
    """Count the different values that belong to each group ``of``."""
    pairs = np.unique(np.column_stack([of, values]), axis=0)
    return np.bincount(pairs[:, 0], minlength=int(of.max()) + 1)
