"""What is to be protected and how: from the words of a plan, or from arrays, to a mechanism and a promise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from leakscope import data as data_room
from leakscope.core.checks import count
from leakscope.core.types import Noise, Points
from leakscope.data import Data
from leakscope.plans.plan import read
from leakscope.plans.protects import CalibrationPlan
from leakscope.protection.mechanism import Mechanism
from leakscope.protection.target import PrivacyTarget
from leakscope.releases.statistics.algorithms import Function
from leakscope.releases.statistics.features import Cells, Histogram
from leakscope.releases.statistics.logistic import Logistic
from leakscope.releases.statistics.statistic import STATISTICS, Covariance, Fit, Linear, Statistic, named
from leakscope.runtime.observe import Execution

Array = np.ndarray
P = TypeVar("P", bound=CalibrationPlan)
_BINS = 10  # of a histogram whose edges are not given
_REGRESSIONS = ("ols", "logistic")


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
    labelled = plan.label is not None or (plan.data in data_room.NAMED and plan.statistic in _REGRESSIONS)
    if labelled:
        data = data_room.load(plan.data, plan.label, None, plan.drop, **plan.csv)
    else:
        data = data_room.read(plan.data, plan.drop, **plan.csv)
    words = data_room.words(data) if plan.statistic in STATISTICS and plan.statistic != "table" else []
    if words:
        data_room.numbers(data)  # says so if there are none
        left = data.points.x.drop(columns=words)
        data = replace(data, points=data_room.from_arrays(left, data.points.y))
    notes = [f"columns that hold no numbers are left out: {', '.join(words)}"] if words else []
    job = _job(plan, data, statistic_of(plan, data.points), plan.noise, execution)
    return replace(job, command=command, notes=notes)


def statistic_of(plan: CalibrationPlan, points: Points) -> Statistic:
    """Make the statistic of a plan; what it takes from the points it takes from all of them, whoever is drawn."""
    settings = {name: _frozen(value) for name, value in plan.set.items()}
    if plan.statistic == "table":
        cells = Cells.declared(points.x, plan.by, plan.levels) if plan.levels else Cells.of(points.x, plan.by)
        return Linear("count", cells, "sum")
    if plan.statistic == "histogram":
        return Linear("count", _histogram(plan.by, points.x, settings), "sum")
    if plan.statistic == "logistic" and not {"centre", "spread"} & set(settings):
        standard = Logistic.standardised(points)
        settings |= {"centre": standard.centre, "spread": standard.spread}
    return named(plan.statistic, **settings)


def _histogram(by: Sequence[str], x: Any, settings: Mapping[str, Any]) -> Histogram:
    unknown = [name for name in settings if name not in ("bins", "edges")]
    if unknown or len(settings) > 1:
        raise ValueError(f"a histogram takes bins or edges, got {', '.join(settings)}")
    if "edges" in settings:
        edges = settings["edges"]
        return Histogram(tuple(by), (edges,) if len(by) == 1 and not isinstance(edges[0], tuple) else edges)
    return Histogram.spanning(x, by, count("bins", settings.get("bins", _BINS)))


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


def _frozen(value: Any) -> Any:
    """Turn lists of a plan into tuples."""
    return tuple(_frozen(item) for item in value) if isinstance(value, list | tuple) else value
