"""What was asked for, before it is known how it is kept: a plan, its data and its statistic."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from leakscope import data as data_room
from leakscope.core.types import Noise, Points
from leakscope.data import Data
from leakscope.plans.plan import read
from leakscope.plans.protects import CalibrationPlan, ProtectionPlan
from leakscope.plans.several import SeveralPlan, read_plan, read_several
from leakscope.protection.declared_data import declared_statistic
from leakscope.releases.statistics.algorithms import Function
from leakscope.releases.statistics.of_plan import load_records, statistic_of
from leakscope.releases.statistics.statistic import STATISTICS, Covariance, Fit, Linear, Statistic
from leakscope.runtime.observe import Execution

ARRAYS = "array"  # the name of data that come from no file


@dataclass(frozen=True, eq=False)
class Request:
    """What was asked for, and of what.

    Parameters
    ----------
    plan : CalibrationPlan
    data : Data
        With the names of the records, or of whom they belong to, where the plan has an ``id`` or a ``group``.
    statistic : Statistic
    noise : str, Noise, or callable
        As in ``leakscope.protect``.
    execution : Execution
        Store and workers of the fits.
    command : str
        Printed on the page.
    notes : sequence of str
    name : str
        Of a statistic that is released together with others.
    parts : sequence of Request
        The statistics, if several are released together, each of its own columns of the same records. ``plan`` then has
        what all of them share, and ``statistic`` is that of the first one.
    """

    plan: CalibrationPlan
    data: Data
    statistic: Statistic
    noise: str | Noise | Callable[[float], Noise]
    execution: Execution
    command: str = ""
    notes: Sequence[str] = ()
    name: str = ""
    parts: Sequence[Request] = ()

    @property
    def of_a_file(self) -> bool:
        """Whether the data come from a file or a named set, and not from arrays."""
        return self.data.name != ARRAYS

    @property
    def insecure_seed(self) -> int | None:
        """The seed of draw and noise, if one was given: for tests."""
        return self.plan.insecure_seed if isinstance(self.plan, ProtectionPlan) else None

    @property
    def ledger_path(self) -> Path | None:
        """The ledger: the one that was named, else the one beside the data; None for arrays without one."""
        if not isinstance(self.plan, ProtectionPlan):
            return None
        file = self.plan.ledger_file if self.of_a_file else self.plan.ledger
        return None if file is None else Path(file)


Asked = str | Callable[..., Any] | Statistic  # a statistic of a call from Python
Several = Sequence[str | Mapping[str, Any]]  # some of them: names, or mappings with the keys of [[statistic]] tables


def arrays_request(
    kind: type[CalibrationPlan],
    statistic: Asked | Several,
    x: Any,
    y: Any,
    noise: str | Noise | Callable[[float], Noise],
    fields: Mapping[str, Any],
    execution: Execution,
) -> Request:
    """Make the request of a call from Python.

    Parameters
    ----------
    kind : type of CalibrationPlan
    statistic, x, y, noise
        As in ``leakscope.protect``.
    fields : mapping
        Fields of the plan other than statistic, noise and data.
    execution : Execution

    Raises
    ------
    ValueError
        In one line: what was given, what is allowed.
    """
    if isinstance(statistic, Sequence) and not isinstance(statistic, str):
        return several_of_arrays(statistic, x, y, noise, fields, execution)
    noise_name = noise if isinstance(noise, str) else f"{type(noise).__name__} (from Python)"
    content = dict(fields, data=ARRAYS, statistic=_name(statistic), noise=noise_name)
    plan = read(kind, content, "protect")
    naming = plan.group or plan.id
    x, names = _without_names(x, naming)
    data = Data(replace(data_room.from_arrays(x, y), names=names), ARRAYS)
    return Request(plan, data, _rule(statistic, plan, data.points), noise, execution)


def _rule(statistic: Asked, plan: CalibrationPlan, points: Points) -> Statistic:
    """Make the statistic of a plan, which may be given as an object."""
    if isinstance(statistic, Linear | Covariance | Fit):
        return statistic
    if not isinstance(statistic, str):
        return Fit(plan.statistic, Function(statistic))
    return declared_statistic(plan, points) if plan.chosen == "dp" else statistic_of(plan, points)


def several_of_arrays(
    statistics: Several,
    x: Any,
    y: Any,
    noise: str | Noise | Callable[[float], Noise],
    fields: Mapping[str, Any],
    execution: Execution,
) -> Request:
    """Make the request of a call from Python for several statistics of the same records.

    Parameters
    ----------
    statistics : sequence of str or mapping
        Each a name, or a mapping with the keys of a ``[[statistic]]`` table, of which ``statistic`` may be all that
        ``leakscope.protect`` takes.
    x, y, noise, fields, execution
        As of `arrays_request`.

    Raises
    ------
    ValueError
        In one line: what was given, what is allowed.
    """
    if not isinstance(noise, str):
        raise ValueError("several statistics take a noise by its name; one as it is belongs to a single statistic")
    given = [table if isinstance(table, Mapping) else {"statistic": table} for table in statistics]
    tables = [{**table, "statistic": _name(table.get("statistic", "mean"))} for table in given]
    plan = read_several({**fields, "data": ARRAYS, "noise": noise, "statistic": tables}, "protect")
    shared = plan.shared
    columns, names = _without_names(x, shared.group or shared.id)
    whole = Data(replace(data_room.from_arrays(columns, y), names=names), ARRAYS)
    parts = []
    for table, each in zip(given, plan.statistics, strict=True):
        with of_statistic(each.name):
            of_one = replace(data_room.from_arrays(_without_columns(columns, each.drop), y), names=names)
            rule = _rule(table.get("statistic", "mean"), each, of_one)
        parts.append(Request(each, Data(of_one, ARRAYS), rule, each.noise, execution, name=each.name))
    return _together(shared, whole, parts, execution)


def several_of_file(plan: SeveralPlan, execution: Execution, command: str = "") -> Request:
    """Make the request of a plan of several statistics, with the data of its file.

    Parameters
    ----------
    plan : SeveralPlan
    execution : Execution
    command : str
        Printed on the page.

    Raises
    ------
    ValueError
        In one line: what was given, what is allowed.
    """
    shared = plan.shared
    whole = data_room.read(shared.data, (), shared.group or shared.id, **shared.csv)
    parts = []
    for each in plan.statistics:
        with of_statistic(each.name):
            parts.append(replace(file_request(each, execution, command), name=each.name))
    return _together(shared, whole, parts, execution, command)


@contextmanager
def of_statistic(name: str) -> Iterator[None]:
    """Say of which of several statistics an error is."""
    try:
        yield
    except ValueError as reason:
        raise ValueError(f"{name}: {reason}") from None


def _together(
    shared: ProtectionPlan, whole: Data, parts: Sequence[Request], execution: Execution, command: str = ""
) -> Request:
    """Make one request of those of several statistics."""
    for part in parts:
        if len(part.data.points) != len(whole.points):
            raise ValueError(
                f"{part.name} is of {len(part.data.points):,} of the {len(whole.points):,} records: statistics "
                "that are released together are of the same records"
            )
    notes = [f"{part.name}: {note}" for part in parts for note in part.notes]
    return Request(shared, whole, parts[0].statistic, "gaussian", execution, command, notes, parts=tuple(parts))


def _without_columns(x: Any, names: Sequence[str]) -> Any:
    """Leave columns out of a frame."""
    known = getattr(x, "columns", ())
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"drop names a column of a frame; {unknown[0]!r} is none")
    return x.drop(columns=list(names)) if names else x


def _without_names(x: Any, naming: str | None) -> tuple[Any, Any]:
    """Take the column that names the records out of a frame."""
    if naming is None:
        return x, None
    if naming not in getattr(x, "columns", ()):
        raise ValueError(f"id and group name a column of a frame; {naming!r} is none")
    return x.drop(columns=[naming]), np.asarray(x[naming].astype(str), dtype=object)


def request_of_file(
    kind: type[CalibrationPlan], content: Mapping[str, Any], where: str, execution: Execution, command: str = ""
) -> Request:
    """Make the request of the fields of a plan, of one statistic or of several.

    Parameters
    ----------
    kind : type of CalibrationPlan
        Of a plan of one statistic.
    content : mapping
        Fields of the plan.
    where : str
        What an error names.
    execution, command
        As of `file_request`.

    Raises
    ------
    ValueError
        In one line: what was given, what is allowed.
    """
    plan = read_plan(kind, content, where)
    if isinstance(plan, SeveralPlan):
        return several_of_file(plan, execution, command)
    return file_request(plan, execution, command)


def file_request(plan: CalibrationPlan, execution: Execution, command: str = "") -> Request:
    """Make the request of a plan, with the data of its file; columns without numbers are left out if they have no use.

    Parameters
    ----------
    plan : CalibrationPlan
    execution : Execution
    command : str
        Printed on the page.

    Raises
    ------
    ValueError
        In one line: what was given, what is allowed.
    """
    if plan.chosen == "dp":
        data = data_room.read(plan.data, plan.drop, plan.id, **plan.csv)
        return Request(plan, data, declared_statistic(plan, data.points), plan.noise, execution, command)
    data, notes = load_records(plan, plan.group or plan.id)
    return Request(plan, data, statistic_of(plan, data.points), plan.noise, execution, command, notes)


def _name(statistic: Asked) -> str:
    """Name a statistic that is given as an object by where it comes from."""
    if isinstance(statistic, str):
        return statistic
    if isinstance(statistic, Linear | Covariance | Fit):
        return statistic.name if statistic.name in STATISTICS else f"statistic:{statistic.name}"
    return f"{getattr(statistic, '__module__', '')}:{getattr(statistic, '__name__', 'function')}"
