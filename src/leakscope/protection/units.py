"""Whom records belong to: who is left out together, and by which name a later version of the data knows them again."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Int

from leakscope import data as data_room
from leakscope.core.types import Points
from leakscope.data.content import row_names
from leakscope.protection.request import Request

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Units:
    """The units of privacy of a table: its records, or the people whom they belong to.

    Parameters
    ----------
    names : tuple of str
        A name for each unit that does not depend on the order of the records, or on the format of their file.
    index : int array of shape (N,) or None
        The unit of each record; None where each record is a unit of its own.
    have_ids : bool
        The names are those of a column of the data.
    """

    names: tuple[str, ...] = field(repr=False)
    index: Int[Array, " N"] | None = field(default=None, repr=False)
    have_ids: bool = field(default=False, repr=False)

    @property
    def n(self) -> int:
        """Number of units."""
        return len(self.names)

    def shown(self, unit: int) -> str:
        """Name a unit to the owner: by its id or group, or else by its place among the records."""
        return self.names[unit] if self.have_ids else f"record {unit:,}"

    @classmethod
    def of(cls, request: Request) -> Units:
        """Name the units of a request: by its group or id, or else by the content of each record.

        Equal records are numbered. All columns of the file count, also those that the statistic leaves out, so that
        queries of other columns know the same records again.

        Raises
        ------
        ValueError
            If an id is missing, or that of several records, or there are fewer than two units.
        """
        plan, points = request.plan, request.data.points
        _check_names(plan.group or plan.id, points)
        if plan.group is not None:
            names, index = np.unique(np.asarray(points.names, dtype=str), return_inverse=True)
            units = cls(tuple(names.tolist()), index.reshape(-1), have_ids=True)
        elif plan.id is not None:
            units = cls(tuple(np.asarray(points.names, dtype=str).tolist()), have_ids=True)
            if len(set(units.names)) < units.n:
                raise ValueError(f"{plan.id} names several records alike: give it as group if they belong to a person")
        else:
            units = cls(tuple(row_names(_whole(request))))
        if units.n < 2:
            raise ValueError("leaving one out needs at least 2 records or people, got 1")
        return units


def _check_names(column: str | None, points: Points) -> None:
    """Refuse an empty text as the name of somebody: those without a name would be one person."""
    if column is None or points.names is None:
        return
    empty = np.char.strip(np.asarray(points.names, dtype=str)) == ""
    if empty.any():
        raise ValueError(f"{column} is missing at {int(empty.sum())} points, first at point {int(empty.argmax())}")


def _whole(request: Request) -> Points:
    """Return the data of a request with all columns."""
    if not request.of_a_file:
        return request.data.points
    plan = request.plan
    return data_room.read(plan.data, (), None, **plan.csv).points
