"""What was asked for, before it is known how it is kept: a plan, its data and its statistic."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from leakbound import data as data_room
from leakbound.core.findings import Term
from leakbound.core.types import Points
from leakbound.data import Data
from leakbound.data.columns import alike_levels, identifier_notes
from leakbound.data.declared_form import read_declared
from leakbound.data.missing import rows_left_out
from leakbound.data.points import with_names
from leakbound.plans.bounds import COUNTS
from leakbound.plans.plan import read
from leakbound.plans.promises import File
from leakbound.plans.protects import CalibrationPlan, ProtectionPlan
from leakbound.plans.several import SeveralPlan, read_plan, read_several, with_own
from leakbound.plans.statistic_objects import tables_of, words_of_statistic
from leakbound.protection.setting.declared_data import declared_statistic, with_counts_and_sums
from leakbound.releases.statistics.algorithms import Function
from leakbound.releases.statistics.dependent_columns import check_determined
from leakbound.releases.statistics.features import columns_of
from leakbound.releases.statistics.of_plan import check_not_read, check_sizes, load_records, statistic_of
from leakbound.releases.statistics.statistic import STATISTICS, Covariance, Fit, Linear, Statistic
from leakbound.reports.phrases import plural
from leakbound.runtime.observe import Execution

ARRAYS = "array"  # the name of data that come from no file
ROWS_LEFT_OUT = (
    "rows with a missing value in a column that is used are left out; whether one is depends on its own values alone"
)


@dataclass(frozen=True, eq=False)
class Request:
    """What was asked for, and of what."""

    plan: CalibrationPlan
    data: Data
    statistic: Statistic
    execution: Execution
    command: str = ""
    notes: Sequence[str] = ()
    from_python: bool = False  # an object or a function, not the name of a row of STATISTICS
    name: str = ""
    # called before anything is drawn, with exact numbers of the data: how many values are missing or out of range
    tell_owner: Callable[[str], Any] = lambda line: None
    # several statistics of the same records: plan has what they share, and statistic is that of the first one
    parts: Sequence[Request] = ()
    owner_notes: Sequence[str] = ()

    @property
    def assumptions(self) -> tuple[Term, ...]:
        """What a promise rests on where the statistic is the user's own: nothing tells how it was chosen."""
        is_function = self.plan.statistic not in STATISTICS
        return (Term("statistic_fixed_beforehand"),) if self.from_python or is_function else ()

    @property
    def signed_for(self) -> tuple[Term, ...]:
        """What no program can check, and the owner of the data signs for: of releases that a ledger adds up."""
        unit = self.plan.unit
        row = Term("row_is_a_unit", unit=unit)
        if self.plan.group is not None:
            row = Term("rows_of_a_unit", column=self.plan.group, unit=unit)
        limits = self.plan.promise.at_most if isinstance(self.plan.promise, File) else ()
        rates = tuple(Term("rates_beforehand", limits=text) for text in limits)
        return (Term("nothing_outside_the_ledger", units=plural(unit)), row, Term("limits_beforehand"), *rates)

    @property
    def of_a_file(self) -> bool:
        """Whether the data come from a file or a named set, and not from arrays."""
        return self.data.name != ARRAYS

    @property
    def insecure_seed(self) -> int | None:
        """The seed of draw and noise, if one was given: for tests."""
        return self.plan.insecure_seed if isinstance(self.plan, ProtectionPlan) else None

    @property
    def date(self) -> str:
        """What a ledger notes: the date of the plan where one was given."""
        return self.plan.date or datetime.now(UTC).date().isoformat()

    @property
    def ledger_path(self) -> Path | None:
        """The ledger: the one that was named, else the one beside the data; None for arrays without one."""
        if not isinstance(self.plan, ProtectionPlan):
            return None
        file = self.plan.ledger_file if self.of_a_file else self.plan.ledger
        return None if file is None else Path(file)


Asked = str | Callable[..., Any] | Statistic  # a statistic of a call from Python, without its words
_MADE_LATER = ("merge", "non_negative")  # from what is released: a calibration has no use for them


def arrays_request(
    kind: type[CalibrationPlan],
    statistic: Any,
    x: Any,
    y: Any,
    fields: Mapping[str, Any],
    execution: Execution,
) -> Request:
    """Make the request of a call from Python."""
    if isinstance(statistic, list | tuple):
        tables = tables_of(statistic)
        if len(tables) != 1:
            return several_of_arrays(tables, x, y, fields, execution)
        # a list of one is that one, with its own fields
        of_one = {name: value for name, value in tables[0].items() if name not in ("name", "weight")}
        x = _without_columns(x, of_one.get("drop", ()))
    else:
        of_one = words_of_statistic(statistic)
    asked = of_one["statistic"]
    own = {name: value for name, value in of_one.items() if name in kind.model_fields or name not in _MADE_LATER}
    content = {**with_own(fields, own, "protect"), "data": ARRAYS, "statistic": _name(asked)}
    plan = read(kind, content, "protect")
    execution = replace(execution, depends_on=plan.depends_on)
    naming = plan.group or plan.id
    x, names = _without_names(x, naming)
    return _of_points(plan, asked, _points_of(x, y, names), execution)


def _of_points(
    plan: CalibrationPlan, statistic: Asked, points: Points, execution: Execution, name: str = ""
) -> Request:
    """Make the request of a plan for one statistic of points in memory."""
    rule = _rule(statistic, plan, points)
    owner_notes = () if plan.chosen == "dp" else alike_levels(points)
    return Request(
        plan,
        Data(points, ARRAYS),
        rule,
        execution,
        from_python=not isinstance(statistic, str),
        name=name,
        owner_notes=owner_notes,
    )


def _check_columns(points: Points) -> None:
    """Refuse records without any column: their statistic would have no number."""
    if getattr(points.x, "shape", (0, 1))[1:] == (0,):
        raise ValueError("no column is left for the statistic: drop fewer")


def _points_of(x: Any, y: Any, names: Any) -> Points:
    """Make points of arrays, with names where they have them."""
    points = replace(data_room.from_arrays(x, y), names=None)
    return points if names is None else with_names(points, names)


def _rule(statistic: Asked, plan: CalibrationPlan, points: Points) -> Statistic:
    """Make the statistic of a plan, which may be given as an object."""
    _check_columns(points)
    if plan.chosen != "dp":  # there all values are within declared ranges
        check_sizes(plan, points)
    made = _made(statistic, plan, points)
    if plan.chosen != "dp":  # which has no noise for a regression
        check_determined(made, points)
    return made


def _made(statistic: Asked, plan: CalibrationPlan, points: Points) -> Statistic:
    """Make a statistic of its name, or of a function, or check one that is given as it is."""
    if isinstance(statistic, Linear | Covariance | Fit):
        # what the plan has to declare of a statistic by name
        is_logistic = isinstance(statistic, Fit)
        is_released = isinstance(plan, ProtectionPlan)
        if not is_logistic and (is_released or plan.chosen == "dp"):
            check_not_read(statistic)
        return with_counts_and_sums(statistic, plan, points) if plan.chosen == "dp" else statistic
    if not isinstance(statistic, str):
        return Fit(plan.statistic, Function(statistic))
    return declared_statistic(plan, points) if plan.chosen == "dp" else statistic_of(plan, points)


def several_of_arrays(
    given: Sequence[Mapping[str, Any]], x: Any, y: Any, fields: Mapping[str, Any], execution: Execution
) -> Request:
    """Make the request of a call from Python for several statistics of the same records."""
    tables = [{**table, "statistic": _name(table["statistic"])} for table in given]
    plan = read_several({**fields, "data": ARRAYS, "statistic": tables}, "protect")
    shared = plan.shared
    execution = replace(execution, depends_on=shared.depends_on)
    columns, names = _without_names(x, shared.group or shared.id)
    whole = Data(_points_of(columns, y, names), ARRAYS)
    parts = []
    for table, each in zip(given, plan.statistics, strict=True):
        with of_statistic(each.name):
            points = _points_of(_without_columns(columns, each.drop), y, names)
            parts.append(_of_points(each, table["statistic"], points, execution, each.name))
    return _together(shared, whole, parts, execution)


def several_of_file(plan: SeveralPlan, execution: Execution, command: str = "") -> Request:
    """Make the request of a plan of several statistics, with the data of its file."""
    shared = plan.shared
    names = shared.group or shared.id
    whole = all_records(shared, (), names)
    complete: Sequence[str] = ()
    if shared.drop_missing:  # the statistics are of the same rows: of those that are complete for all of them
        complete = _used_by_any(plan.statistics, columns_of(whole.points.x))
        whole = data_room.read(shared.data, (), names, drop_missing=complete, **shared.csv)
    parts = []
    for each in plan.statistics:
        with of_statistic(each.name):
            parts.append(replace(file_request(each, execution, command, complete), name=each.name))
    return _together(shared, whole, parts, execution, command)


def all_records(plan: CalibrationPlan, drop: Sequence[str] = (), names: str | None = None) -> Data:
    """Read all records of the file of a plan; under differential privacy by its declared form alone."""
    reader = read_declared if plan.chosen == "dp" else data_room.read
    return reader(plan.data, drop, names, **plan.csv)


def _used_by_any(plans: Sequence[CalibrationPlan], columns: Sequence[str]) -> list[str]:
    """List the columns of a file that some statistic uses, in their order."""
    used: set[str] = set()
    for plan in plans:
        used.update(plan.by if plan.statistic in COUNTS else set(columns) - set(plan.drop))
    unknown = sorted(used - set(columns))  # refused where the file is read
    return [*(name for name in columns if name in used), *unknown]


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
    of_all = [note for note in parts[0].notes if all(note in part.notes for part in parts)]
    notes = [*of_all, *(f"{part.name}: {note}" for part in parts for note in part.notes if note not in of_all)]
    owner_notes = list(dict.fromkeys(note for part in parts for note in part.owner_notes))
    return Request(
        shared,
        whole,
        parts[0].statistic,
        execution,
        command,
        notes,
        parts=tuple(parts),
        owner_notes=owner_notes,
    )


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
    return x.drop(columns=[naming]), x[naming]


def request_of_file(
    kind: type[CalibrationPlan], content: Mapping[str, Any], where: str, execution: Execution, command: str = ""
) -> Request:
    """Make the request of the fields of a plan, of one statistic or of several."""
    plan = read_plan(kind, content, where)
    of_all = plan.shared if isinstance(plan, SeveralPlan) else plan
    execution = replace(execution, depends_on=of_all.depends_on)
    if isinstance(plan, SeveralPlan):
        return several_of_file(plan, execution, command)
    return file_request(plan, execution, command)


def file_request(
    plan: CalibrationPlan, execution: Execution, command: str = "", complete: Sequence[str] = ()
) -> Request:
    """Make the request of a plan, with the data of its file."""
    if plan.chosen == "dp":
        data = all_records(plan, plan.drop, plan.id)
        _check_columns(data.points)
        return Request(plan, data, declared_statistic(plan, data.points), execution, command)
    # of several statistics together, a row with a missing value in one of the complete columns is left out
    data = load_records(plan, plan.group or plan.id, complete)
    _check_columns(data.points)
    check_sizes(plan, data.points)
    statistic = statistic_of(plan, data.points)
    check_determined(statistic, data.points)
    notes = (ROWS_LEFT_OUT,) if plan.drop_missing else ()
    owner_notes = (*rows_left_out(data.kept), *_identifiers(plan, data.points), *alike_levels(data.points))
    return Request(plan, data, statistic, execution, command, notes, owner_notes=owner_notes)


def _identifiers(plan: CalibrationPlan, points: Points) -> list[str]:
    """Name columns that look like identifiers where their numbers would be published, as the mean of an id."""
    return [] if plan.by or plan.statistic not in STATISTICS else identifier_notes(points)


def _name(statistic: Asked) -> str:
    """Name a statistic that is given as an object by where it comes from."""
    if isinstance(statistic, str):
        return statistic
    if isinstance(statistic, Linear | Covariance | Fit):
        return statistic.name if statistic.name in STATISTICS else f"statistic:{statistic.name}"
    return f"{getattr(statistic, '__module__', '')}:{getattr(statistic, '__name__', 'function')}"
