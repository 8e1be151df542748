"""From the fields of a plan to the statistic that it names, and to the records that the statistic is of."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from leakbound import data as data_room
from leakbound.core.checks import count
from leakbound.core.types import Points
from leakbound.data import Data
from leakbound.data.columns import largest_numbers
from leakbound.data.missing import refuse_missing, refuse_texts
from leakbound.plans.bounds import COUNTS, EDGES, GROUPED, StatisticPlan, as_levels
from leakbound.plans.statistics import REGRESSIONS, STATISTICS
from leakbound.releases.statistics.features import Cells, Histogram
from leakbound.releases.statistics.group_means import GroupMeans
from leakbound.releases.statistics.logistic import Logistic
from leakbound.releases.statistics.statistic import Fit, Linear, Statistic, named

LARGEST_NUMBER = 1e150  # of a column or a statistic: its square does not overflow
_BINS = 10  # of a histogram whose edges are not given


def load_records(plan: StatisticPlan, id: str | None = None, complete: Sequence[str] = ()) -> Data:
    """Read the file of a plan, all of whose used columns must hold numbers where the statistic is one of numbers.

    Which columns and which rows are used follows from the plan: a text in a single record must not decide it.
    """
    labelled = plan.label is not None or (plan.data in data_room.NAMED and plan.statistic in REGRESSIONS)
    how = {**plan.csv, "drop_missing": complete or used_columns(plan)}
    if labelled:
        data = data_room.load(plan.data, plan.label, None, plan.drop, id, **how)
    else:
        data = data_room.read(plan.data, plan.drop, id, **how)
    x = data.points.x
    if plan.statistic not in STATISTICS or isinstance(x, np.ndarray):
        return data
    if plan.statistic in COUNTS:
        return _of_counted(plan, data)
    columns = [str(name) for name in x.columns if name not in plan.by]
    texts = [name for name in data_room.words(data) if name in columns]
    is_unnamed = not labelled and plan.statistic in REGRESSIONS
    refuse_texts(x, texts, label=texts[-1] if texts and is_unnamed else "")
    refuse_missing(x, columns)
    return data


def _of_counted(plan: StatisticPlan, data: Data) -> Data:
    """Leave out the columns that a histogram does not count, whatever they hold; those that it does must be numbers.

    A table counts texts, too: it is read as it is.
    """
    x = data.points.x
    if plan.statistic != "histogram" or not set(plan.by) <= set(x.columns):
        return data  # an unknown column is refused by the statistic
    refuse_texts(x, [name for name in data_room.words(data) if name in plan.by])
    refuse_missing(x, plan.by)
    left = data_room.from_arrays(x[list(plan.by)])
    return replace(data, points=replace(left, names=data.points.names))


def used_columns(plan: StatisticPlan) -> Sequence[str] | bool:
    """Return the columns whose missing values leave a row out: those that are counted, or all that are not dropped.

    False where no row is to be left out, True for all columns.
    """
    if not plan.drop_missing:
        return False
    return plan.by if plan.statistic in COUNTS else True


def statistic_of(plan: StatisticPlan, points: Points) -> Statistic:
    """Make the statistic of a plan; what it takes from the points it takes from all of them, whoever is in use."""
    settings = {name: _frozen(value) for name, value in plan.set.items()}
    if plan.statistic in ("table", GROUPED) and plan.by:
        cells = Cells.declared(points.x, plan.by, plan.levels) if plan.levels else Cells.of(points.x, plan.by)
        if plan.statistic == GROUPED:
            return Fit(GROUPED, GroupMeans.of(points.x, cells))
        return Linear("count", cells, "sum")
    if plan.statistic == "histogram":
        return Linear("count", _histogram(plan.by, points.x, settings), "sum")
    statistic = named(plan.statistic, **settings)
    if plan.statistic == "logistic" and settings.keys() <= {"penalty"}:
        return Fit("logistic", Logistic.standardised(points, **settings))
    return statistic


def check_declared(plan: StatisticPlan) -> None:
    """Refuse what a statistic would take from all records, where it is compared with that of all but one.

    Without the record the levels of a table, the ends of bins, or the scale of columns could be others, and the
    difference would show what the comparison does not see.
    """
    undeclared = [name for name in plan.by if plan.statistic != "histogram" and name not in plan.levels]
    if undeclared:
        raise ValueError(
            f"the levels of {undeclared[0]} would be others without a record: declare them, {as_levels(undeclared[0])}"
        )
    if plan.statistic == "histogram" and "edges" not in plan.set:
        raise ValueError(f"the bins would be others without a record: declare them, {EDGES}")
    if plan.statistic == "logistic" and not {"centre", "spread"} <= set(plan.set):
        raise ValueError(
            "the scale of the columns would be another one without a record: declare it, as --set centre=[40,10] --set "
            "spread=[15,3] (in Python set={'centre': [40, 10], 'spread': [15, 3]}), or 0 and 1 for columns as they are"
        )


def check_not_read(statistic: Statistic) -> None:
    """Refuse a statistic from Python whose parameters were read from the data, where they have to be declared."""
    match statistic:
        case Linear(features=Cells(read_from_data=True)):
            read, instead = "levels of this table", "Cells(columns, levels)"
        case Linear(features=Histogram(read_from_data=True)):
            read, instead = "edges of this histogram", "Histogram(columns, edges)"
        case Fit(algorithm=Logistic(read_from_data=True)):
            read, instead = "deviations of the columns of this regression", "Logistic(centre, spread)"
        case _:
            return
    raise ValueError(f"the {read} were read from the data: declare them without looking at it, as {instead}")


def check_sizes(plan: StatisticPlan, points: Points) -> None:
    """Refuse numbers whose squares overflow, before a statistic is made of them.

    Counts take no squares, and a function may take none.
    """
    if plan.statistic not in STATISTICS or plan.statistic in COUNTS:
        return
    for name, largest in largest_numbers(points).items():
        if LARGEST_NUMBER < largest < math.inf:
            raise ValueError(
                f"column {name} holds numbers up to {largest:.3g}, whose squares overflow: divide it by a public "
                f"number, so that all are below {LARGEST_NUMBER:g}"
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
