"""What was asked for, before it is known how it is kept: a plan, its data and its statistic."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from leakscope import data as data_room
from leakscope.core.findings import Term
from leakscope.core.types import Noise
from leakscope.data import Data
from leakscope.data.points import with_names
from leakscope.plans.plan import read
from leakscope.plans.protects import CalibrationPlan, ProtectionPlan
from leakscope.protection.declared_data import declared_statistic
from leakscope.releases.statistics.algorithms import Function
from leakscope.releases.statistics.of_plan import check_not_read, check_sizes, load_records, statistic_of
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
    from_python : bool
        The statistic was given as an object or a function, and not by the name of a row of ``STATISTICS``.
    """

    plan: CalibrationPlan
    data: Data
    statistic: Statistic
    noise: str | Noise | Callable[[float], Noise]
    execution: Execution
    command: str = ""
    notes: Sequence[str] = ()
    from_python: bool = False

    @property
    def assumptions(self) -> tuple[Term, ...]:
        """What a promise rests on where the statistic is the user's own: nothing tells how it was chosen."""
        is_function = self.plan.statistic not in STATISTICS
        return (Term("statistic_fixed_beforehand"),) if self.from_python or is_function else ()

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


def arrays_request(
    kind: type[CalibrationPlan],
    statistic: str | Callable[..., Any] | Statistic,
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
    noise_name = noise if isinstance(noise, str) else f"{type(noise).__name__} (from Python)"
    content = dict(fields, data=ARRAYS, statistic=_name(statistic), noise=noise_name)
    plan = read(kind, content, "protect")
    naming = plan.group or plan.id
    x, names = _without_names(x, naming)
    points = replace(data_room.from_arrays(x, y), names=None)
    data = Data(points if names is None else with_names(points, names), ARRAYS)
    if plan.chosen != "dp":  # there all values are within declared ranges
        check_sizes(plan, data.points)
    if isinstance(statistic, Linear | Covariance | Fit):
        # what the plan has to declare of a statistic by name
        is_logistic = isinstance(statistic, Fit) and plan.chosen != "per-instance"
        if not is_logistic and (kind is ProtectionPlan or plan.chosen in ("dp", "per-instance")):
            check_not_read(statistic)
        rule: Statistic = statistic
    elif isinstance(statistic, str) and plan.chosen == "dp":
        rule = declared_statistic(plan, data.points)
    elif isinstance(statistic, str):
        rule = statistic_of(plan, data.points)
    else:
        rule = Fit(plan.statistic, Function(statistic))
    return Request(plan, data, rule, noise, execution, from_python=not isinstance(statistic, str))


def _without_names(x: Any, naming: str | None) -> tuple[Any, Any]:
    """Take the column that names the records out of a frame."""
    if naming is None:
        return x, None
    if naming not in getattr(x, "columns", ()):
        raise ValueError(f"id and group name a column of a frame; {naming!r} is none")
    return x.drop(columns=[naming]), x[naming]


def file_request(plan: CalibrationPlan, execution: Execution, command: str = "") -> Request:
    """Make the request of a plan, with the data of its file.

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
    # what a reader of a release of all records sees must not depend on the kind of a single value
    declared_columns = plan.promise == "file"
    data, notes = load_records(plan, plan.group or plan.id, declared_columns=declared_columns)
    check_sizes(plan, data.points)
    return Request(plan, data, statistic_of(plan, data.points), plan.noise, execution, command, notes)


def _name(statistic: str | Callable[..., Any] | Statistic) -> str:
    """Name a statistic that is given as an object by where it comes from."""
    if isinstance(statistic, str):
        return statistic
    if isinstance(statistic, Linear | Covariance | Fit):
        return statistic.name if statistic.name in STATISTICS else f"statistic:{statistic.name}"
    return f"{getattr(statistic, '__module__', '')}:{getattr(statistic, '__name__', 'function')}"
