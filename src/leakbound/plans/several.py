"""Several statistics of one source of data that are released together: the ``[[statistic]]`` tables of a plan."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from leakbound.core.checks import nearest
from leakbound.files.untrusted import in_one_line, toml_table
from leakbound.plans.bounds import GROUPED
from leakbound.plans.choices import name_of, set_fields, table_of
from leakbound.plans.plan import read
from leakbound.plans.promises import Promise, as_promise
from leakbound.plans.protects import CalibrationPlan, ProtectionPlan, WeightedPlan
from leakbound.plans.statistics import STATISTICS

SEVERAL = "several statistics"  # the statistic of a plan that has some
# Keys of a [[statistic]] table. Most may also be above the tables, for all statistics that do not say otherwise.
OF_A_STATISTIC = (
    "statistic", "name", "weight", "by", "levels", "set", "label", "drop", "promise", "merge", "non_negative", "rules",
)  # fmt: skip
_OF_TABLES_ALONE = ("name", "weight")


@dataclass(frozen=True)
class SeveralPlan:
    """A plan with several statistics, which share all fields but those of ``OF_A_STATISTIC``."""

    statistics: tuple[WeightedPlan, ...]
    promise: Promise | None = None

    @property
    def shared(self) -> ProtectionPlan:
        """What all statistics share, as a plan; its statistic is none of them."""
        first = self.statistics[0]
        names = set(ProtectionPlan.model_fields).difference(OF_A_STATISTIC)
        fields = {name: getattr(first, name) for name in names}
        fields["promise"] = self.promise
        return ProtectionPlan.model_construct(statistic=SEVERAL, **fields)


def several_content(plan: SeveralPlan) -> dict[str, Any]:
    """Return the tables of a plan as its TOML has them: what is at its default is left out.

    >>> words = {"data": "a.csv", "promise": "file", "eta": 0.05, "statistic": ["mean", "covariance"]}
    >>> several_content(read_several(words, "plan.toml"))
    {'statistic': [{'statistic': 'mean', 'name': 'mean'}, {'statistic': 'covariance', 'name': 'covariance'}]}
    """
    fields = WeightedPlan.model_fields
    tables = []
    for statistic in plan.statistics:
        table: dict[str, Any] = {"statistic": statistic.statistic}
        for name in OF_A_STATISTIC:
            value = getattr(statistic, name)
            if name != "promise" and value != fields[name].default:
                table[name] = value
        if statistic.promise is not None and statistic.promise != plan.promise:
            table["promise"] = table_of(statistic.promise)
        tables.append(table)
    return {"statistic": tables}


def is_several(content: Mapping[str, Any]) -> bool:
    """Tell whether the content of a plan has a list of statistics."""
    return isinstance(content.get("statistic"), list | tuple)


def read_plan(kind: type[CalibrationPlan], content: Mapping[str, Any], where: str) -> CalibrationPlan | SeveralPlan:
    """Validate a plan of one statistic, or of several."""
    content = _of_one(content)
    return read_several(content, where) if is_several(content) else read(kind, content, where)


def _of_one(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Write a list of one statistic as a plan of one: a name and a weight among others say nothing there."""
    statistics = content.get("statistic")
    if not isinstance(statistics, list | tuple) or len(statistics) != 1:
        return content
    table = statistics[0]
    own = table if isinstance(table, Mapping) else {"statistic": table}
    of_one = {name: own[name] for name in own if name not in _OF_TABLES_ALONE}
    return with_own({**content, "statistic": "mean"}, of_one, "statistic")


def with_own(shared: Mapping[str, Any], own: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Put the fields of a statistic over those that all share; of the promise, the fields that it sets."""
    if "promise" not in own or shared.get("promise") is None:
        return {**shared, **own}
    try:
        promise, of_all = as_promise(own["promise"]), as_promise(shared["promise"])
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    if type(promise) is not type(of_all):
        name = name_of(type(of_all))
        raise ValueError(f"{where}: the promise is the same for all statistics, {name}: give other fields of it alone")
    return {**shared, **own, "promise": replace(of_all, **set_fields(promise))}


@in_one_line
def from_toml(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the keys of a plan in a TOML file, which `read_plan` checks."""
    file = Path(path)
    if not file.is_file():
        raise ValueError(f"{path}: no such plan file")
    return dict(_of_one(toml_table(file)))


def read_several(content: Mapping[str, Any], where: str) -> SeveralPlan:
    """Validate a plan of several statistics.

    >>> tables = [{"statistic": "mean", "weight": 2}, {"statistic": "covariance"}]
    >>> plan = read_several({"data": "a.csv", "promise": "file", "eta": 0.05, "statistic": tables}, "plan.toml")
    >>> [(each.name, each.weight, each.eta) for each in plan.statistics]
    [('mean', 2.0, 0.05), ('covariance', 1.0, 0.05)]
    """
    shared = {name: value for name, value in content.items() if name != "statistic"}
    _check_keys(shared, tuple(ProtectionPlan.model_fields), where)
    tables = [_as_table(table, where) for table in content["statistic"]]
    if len(tables) < 2:
        raise ValueError(f"{where}: several statistics are two or more, got {len(tables)}")
    promise = shared.get("promise")
    plans = []
    for place, table in enumerate(tables, start=1):
        of_one = f"{where}: statistic {place}"
        common = [name for name in table if name in ProtectionPlan.model_fields and name not in OF_A_STATISTIC]
        if common:
            raise ValueError(f"{of_one}: {common[0]} is the same for all statistics: give it above their tables")
        _check_keys(table, OF_A_STATISTIC, of_one)
        plans.append(read(WeightedPlan, with_own(_shared_with(table, shared), table, of_one), of_one))
    return SeveralPlan(_named(plans, where), None if promise is None else as_promise(promise))


def _shared_with(table: Mapping[str, Any], shared: Mapping[str, Any]) -> Mapping[str, Any]:
    """Leave out what is said of counts, for all statistics that have some, where a statistic has none."""
    statistic, by = table.get("statistic", shared.get("statistic")), table.get("by", shared.get("by"))
    has_counts = statistic == "table" or (statistic == GROUPED and bool(by))
    return {name: value for name, value in shared.items() if has_counts or name != "non_negative"}


def _check_keys(content: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    for name in content:
        moved = ProtectionPlan.moved.get(name)
        if name not in known and moved is not None:
            raise ValueError(f"{where}: {name} is now {moved.key}")
        if name in _OF_TABLES_ALONE and name not in known:
            raise ValueError(f"{where}: {name} belongs to a single statistic: give it in its [[statistic]] table")
        if name not in known:
            raise ValueError(f"{where}: unknown key {name!r}{nearest(name, known)}; known: {', '.join(known)}")


def _as_table(table: Any, where: str) -> Mapping[str, Any]:
    """Take a name for the table that says no more."""
    if isinstance(table, Mapping):
        return table
    if isinstance(table, str):
        return {"statistic": table}
    raise ValueError(f"{where}: a statistic of a list is a name or a table, got {type(table).__name__}")


def _named(plans: Sequence[WeightedPlan], where: str) -> tuple[WeightedPlan, ...]:
    """Give a name to each statistic that has none; the second one of a name is numbered."""
    given = [plan.name for plan in plans if plan.name]
    if len(set(given)) < len(given):
        twice = next(name for name in given if given.count(name) > 1)
        raise ValueError(f"{where}: two statistics have the name {twice!r}: each needs its own")
    named: list[WeightedPlan] = []
    taken = set(given)
    for plan in plans:
        name = plan.name
        if not name:
            name = _numbered(_called(plan), taken)
            taken.add(name)
        named.append(plan.model_copy(update={"name": name}))
    return tuple(named)


def _called(plan: WeightedPlan) -> str:
    """Name a statistic by what is asked for."""
    statistic = plan.statistic
    if statistic in STATISTICS:
        statistic = statistic.replace("_", " ")
    if plan.by:
        return f"{statistic} by {', '.join(plan.by)}"
    return statistic if plan.label is None else f"{statistic} of {plan.label}"


def _numbered(name: str, taken: set[str]) -> str:
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name} ({number})"
    return free
