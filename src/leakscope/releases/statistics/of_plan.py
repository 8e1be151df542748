"""From the fields of a plan to the statistic that it names, and to the records that the statistic is of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from leakscope import data as data_room
from leakscope.core.checks import count
from leakscope.core.types import Points
from leakscope.data import Data
from leakscope.plans.bounds import GROUPED, StatisticPlan
from leakscope.plans.statistics import REGRESSIONS, STATISTICS
from leakscope.releases.statistics.features import Cells, Histogram
from leakscope.releases.statistics.group_means import GroupMeans
from leakscope.releases.statistics.logistic import Logistic
from leakscope.releases.statistics.statistic import Fit, Linear, Statistic, named

_BINS = 10  # of a histogram whose edges are not given


def load_records(plan: StatisticPlan, id: str | None = None) -> tuple[Data, list[str]]:
    """Read the file of a plan; columns without numbers are left out where the statistic has no use for them.

    Parameters
    ----------
    plan : StatisticPlan
    id : str, optional
        The column that names the records.

    Returns
    -------
    data : Data
    notes : list of str
        What was left out.

    Raises
    ------
    ValueError
        In one line: what was given, what is allowed.
    """
    labelled = plan.label is not None or (plan.data in data_room.NAMED and plan.statistic in REGRESSIONS)
    if labelled:
        data = data_room.load(plan.data, plan.label, None, plan.drop, id, **plan.csv)
    else:
        data = data_room.read(plan.data, plan.drop, id, **plan.csv)
    words = data_room.words(data) if plan.statistic in STATISTICS and plan.statistic != "table" else []
    words = [name for name in words if name not in plan.by]
    if not words:
        return data, []
    if not plan.by:
        data_room.numbers(data)  # says so if there are none
    left = data_room.from_arrays(data.points.x.drop(columns=words), data.points.y)
    data = replace(data, points=replace(left, names=data.points.names))
    return data, [f"columns that hold no numbers are left out: {', '.join(words)}"]


def statistic_of(plan: StatisticPlan, points: Points) -> Statistic:
    """Make the statistic of a plan; what it takes from the points it takes from all of them, whoever is in use.

    Parameters
    ----------
    plan : StatisticPlan
    points : Points

    Returns
    -------
    Statistic

    Raises
    ------
    ValueError
        If a column or a parameter is unknown.
    """
    settings = {name: _frozen(value) for name, value in plan.set.items()}
    if plan.statistic in ("table", GROUPED) and plan.by:
        cells = Cells.declared(points.x, plan.by, plan.levels) if plan.levels else Cells.of(points.x, plan.by)
        if plan.statistic == GROUPED:
            return Fit(GROUPED, GroupMeans.of(points.x, cells))
        return Linear("count", cells, "sum")
    if plan.statistic == "histogram":
        return Linear("count", _histogram(plan.by, points.x, settings), "sum")
    if plan.statistic == "logistic" and not {"centre", "spread"} & set(settings):
        standard = Logistic.standardised(points)
        settings |= {"centre": standard.centre, "spread": standard.spread}
    return named(plan.statistic, **settings)


def check_declared(plan: StatisticPlan) -> None:
    """Refuse what a statistic would take from all records, where it is compared with that of all but one.

    Without the record the levels of a table, the ends of bins, or the scale of columns could be others, and the
    difference would show what the comparison does not see.

    Parameters
    ----------
    plan : StatisticPlan

    Raises
    ------
    ValueError
        In one line: what has to be declared.
    """
    undeclared = [name for name in plan.by if plan.statistic != "histogram" and name not in plan.levels]
    if undeclared:
        raise ValueError(
            f"the levels of {undeclared[0]} would be others without a record: declare them, as --levels "
            f"{undeclared[0]}=a,b,c"
        )
    if plan.statistic == "histogram" and "edges" not in plan.set:
        raise ValueError("the bins would be others without a record: declare them, as --set edges=[0,20,40]")
    if plan.statistic == "logistic" and not {"centre", "spread"} <= set(plan.set):
        raise ValueError(
            "the scale of the columns would be another one without a record: declare it, as --set centre=[40,10] --set "
            "spread=[15,3], or 0 and 1 for columns as they are"
        )


def _histogram(by: Sequence[str], x: Any, settings: Mapping[str, Any]) -> Histogram:
    unknown = [name for name in settings if name not in ("bins", "edges")]
    if unknown or len(settings) > 1:
        raise ValueError(f"a histogram takes bins or edges, got {', '.join(settings)}")
    if "edges" in settings:
        edges = settings["edges"]
        return Histogram(tuple(by), (edges,) if len(by) == 1 and not isinstance(edges[0], tuple) else edges)
    return Histogram.spanning(x, by, count("bins", settings.get("bins", _BINS)))


def _frozen(value: Any) -> Any:
    """Turn lists of a plan into tuples."""
    return tuple(_frozen(item) for item in value) if isinstance(value, list | tuple) else value
