"""Whom records belong to: who is left out together, and by which name a later version of the data knows them again."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from jaxtyping import Int, Shaped, UInt8

from leakbound.core.types import Points
from leakbound.data.content import row_names, row_names_of_parquet
from leakbound.data.files import columns_in_parquet
from leakbound.plans.protects import NO_GROUP, CalibrationPlan
from leakbound.protection.ledger.keyed import NAME_BYTES, text_names
from leakbound.protection.ledger.people import PeopleNames
from leakbound.protection.setting.request import Request, all_records

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Units:
    """The units of privacy of a table: its records, or the people whom they belong to."""

    # they do not depend on the order of the records, or on the format of their file
    names: UInt8[Array, "n 16"] = field(repr=False)
    index: Int[Array, " N"] | None = field(default=None, repr=False)
    # as a column of the data has them, for the owner; None where the units are named by their content
    ids: Shaped[Array, " n"] | None = field(default=None, repr=False)

    @property
    def n(self) -> int:
        """Number of units."""
        return len(self.names)

    def shown(self, unit: int) -> str:
        """Name a unit to the owner: by its id or group, or else by its place among the records."""
        return f"record {unit:,}" if self.ids is None else str(self.ids[unit])

    @classmethod
    def of(cls, request: Request) -> Units:
        """Name the units of a request: by its group or id, or else by the content of each record.

        Equal records are numbered. All columns of the file count, also those that the statistic leaves out, so that
        queries of other columns know the same records again.
        """
        plan, points = request.plan, request.data.points
        _check_names(plan.group or plan.id, points)
        if plan.group is not None:
            names, index = np.unique(np.asarray(points.names, dtype=str), return_inverse=True)
            units = cls(text_names(names.tolist()), index.reshape(-1), ids=names)
        elif plan.id is not None:
            names = np.asarray(points.names)
            units = cls(text_names(names.tolist()), ids=names)
            _refuse_repeated(plan, names)
        else:
            units = cls(_names_by_content(request))
        if units.n < 2:
            raise ValueError("leaving one out needs at least 2 records or people, got 1")
        return units


NOBODY = Units(np.zeros((0, NAME_BYTES), np.uint8))


def _check_names(column: str | None, points: Points) -> None:
    """Refuse an empty text as the name of somebody: those without a name would be one person."""
    if column is None or points.names is None:
        return
    empty = np.char.strip(np.asarray(points.names, dtype=str)) == ""
    if empty.any():
        raise ValueError(f"{column} is missing at {int(empty.sum())} points, first at point {int(empty.argmax())}")


def _refuse_repeated(plan: CalibrationPlan, names: Shaped[Array, " n"]) -> None:
    """Refuse an id that several records have; whether a design knows groups decides what to do."""
    distinct, n_records = np.unique(np.asarray(names, dtype=str), return_counts=True)
    n_repeated = int((n_records > 1).sum())
    if not n_repeated:
        return
    first = int((n_records > 1).argmax())
    others = f", and {n_repeated - 1:,} more repeat" if n_repeated > 1 else ""
    as_group = f"give it as group (--group {plan.id}) instead of id if they belong to one person"
    instead = NO_GROUP.get(plan.chosen, as_group)
    raise ValueError(
        f"{plan.id} names several records alike: {str(distinct[first])!r} names {n_records[first]:,} records{others}; "
        f"{instead}"
    )


def people_of(request: Request, units: Units | None = None) -> PeopleNames:
    """Name the people of a request as ledgers know them again."""
    if request.plan.id is None and request.plan.group is None:
        return PeopleNames(_names_by_content(request) if units is None else units.names)
    contents = _names_by_content(request)
    if units is not None:
        return PeopleNames(contents, units.names)
    identifiers = np.unique(np.asarray(request.data.points.names, dtype=str))
    return PeopleNames(contents, text_names(identifiers.tolist()))


def _names_by_content(request: Request) -> UInt8[Array, "n 16"]:
    """Name the records of a request by all columns of its data; the file is read again if some are not in memory."""
    plan, points = request.plan, request.data.points
    identifier = plan.group or plan.id
    if not request.of_a_file:
        return row_names(points, plan.decimal, identifier)
    if request.data.kept is not None:  # named among all rows of the file, as in releases without this rule
        return _names_of_file(plan)[request.data.kept]
    # an identifier is read as text, and not with the other columns
    is_frame = points.y is None and not isinstance(points.x, np.ndarray) and identifier is None
    if Path(plan.data).suffix == ".parquet":
        has_all = is_frame and points.x.shape[1] == len(columns_in_parquet(plan.data))
        return row_names(points) if has_all else _names_of_file(plan)
    if is_frame and not plan.drop and plan.statistic != "histogram":  # of which its own columns alone are in memory
        return row_names(points, plan.decimal)
    return _names_of_file(plan)


def _names_of_file(plan: CalibrationPlan) -> UInt8[Array, "N 16"]:
    """Name the rows of a file by all of its columns."""
    if Path(plan.data).suffix == ".parquet":
        return row_names_of_parquet(plan.data)
    return row_names(all_records(plan).points, plan.decimal)
