"""What is to be protected and how: from the words of a plan, or from arrays, to a mechanism and a promise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from leakscope import data as data_room
from leakscope.core.types import Noise
from leakscope.data import Data
from leakscope.plans.plan import read
from leakscope.plans.protects import CalibrationPlan
from leakscope.protection.mechanism import Mechanism
from leakscope.protection.target import PrivacyTarget
from leakscope.releases.statistics.algorithms import Function
from leakscope.releases.statistics.of_plan import load_records, statistic_of
from leakscope.releases.statistics.statistic import STATISTICS, Covariance, Fit, Linear, Statistic
from leakscope.runtime.observe import Execution

Array = np.ndarray
P = TypeVar("P", bound=CalibrationPlan)


@dataclass(frozen=True, eq=False)
class Job:
    """What was asked for, and of what.

    Parameters
    ----------
    plan : CalibrationPlan
    data : Data
    mechanism : Mechanism
    target : PrivacyTarget
        Eta, promise and noise of the plan; the coupling may be that of a ledger.
    command : str
    notes : sequence of str
    """

    plan: CalibrationPlan
    data: Data
    mechanism: Mechanism
    target: PrivacyTarget
    command: str = ""
    notes: Sequence[str] = ()


def arrays_job(
    kind: type[P],
    statistic: str | Callable[..., Any] | Statistic,
    x: Any,
    y: Any,
    noise: str | Noise | Callable[[float], Noise],
    fields: Mapping[str, Any],
    execution: Execution,
) -> Job:
    """Make the job of a call from Python.

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
    data = Data(data_room.from_arrays(x, y), "array")
    noise_name = noise if isinstance(noise, str) else f"{type(noise).__name__} (from Python)"
    content = dict(fields, data=data.name, statistic=_name(statistic), noise=noise_name)
    plan = read(kind, content, "protect")
    if isinstance(statistic, Linear | Covariance | Fit):
        rule: Statistic = statistic
    elif isinstance(statistic, str):
        rule = statistic_of(plan, data.points)
    else:
        rule = Fit(plan.statistic, Function(statistic))
    return _job(plan, data, rule, noise, execution)


def file_job(plan: CalibrationPlan, execution: Execution, command: str = "") -> Job:
    """Make the job of a plan, with the data of its file; columns without numbers are left out if they have no use.

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
    data, notes = load_records(plan)
    job = _job(plan, data, statistic_of(plan, data.points), plan.noise, execution)
    return replace(job, command=command, notes=notes)


def _name(statistic: str | Callable[..., Any] | Statistic) -> str:
    """Name a statistic that is given as an object by where it comes from."""
    if isinstance(statistic, str):
        return statistic
    if isinstance(statistic, Linear | Covariance | Fit):
        return statistic.name if statistic.name in STATISTICS else f"statistic:{statistic.name}"
    return f"{getattr(statistic, '__module__', '')}:{getattr(statistic, '__name__', 'function')}"


def _job(
    plan: CalibrationPlan,
    data: Data,
    statistic: Statistic,
    noise: str | Noise | Callable[[float], Noise],
    execution: Execution,
) -> Job:
    mechanism = Mechanism.of(statistic, data.points, plan.k, plan.pairs_seed, execution)
    target = PrivacyTarget(
        plan.eta, plan.promise, noise, plan.coupling, plan.confidence, plan.fits, plan.pairs_seed, plan.noise_scale
    )
    return Job(plan, data, mechanism, target)
