"""The calls of a release with the keys of a plan as keywords: a test changes one field, and keeps the others.

``protect("table", x, by="sex", games=0, promise="file", eta=0.1)`` is
``protect(Table("sex"), x, promise=File(games=0), eta=0.1)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from leakbound import protection
from leakbound.plans import statistic_objects
from leakbound.plans.choices import name_of
from leakbound.plans.page import Page, Store
from leakbound.plans.promises import as_promise

STATISTICS = {name_of(kind): kind for kind in statistic_objects.Statistic.__subclasses__()}
OF_A_STATISTIC = ("by", "levels", "merge", "non_negative", "set")
OF_A_PAGE = ("title", "unit", "date")
OF_A_CALL = ("command", "store", "n_jobs", "before", "simulated", "publish", "tell_owner")
RENAMED = {"id": "ids", "group": "groups"}


def promising(words: Mapping[str, Any]) -> dict[str, Any]:
    """Move the fields of the promise into it, in the keys of a plan."""
    if words.get("promise") is None:
        return dict(words)
    promise = as_promise(words["promise"])
    names = {field.name for field in fields(promise)}
    own = {name: value for name, value in words.items() if name in names}
    made = {name: value for name, value in words.items() if name not in own}
    made["promise"] = replace(promise, **own)
    if isinstance(words.get("statistic"), list):
        made["statistic"] = [_of_kind(table, promise) for table in words["statistic"]]
    return made


def _of_kind(table: Any, promise: Any) -> Any:
    """Do the same for one of several statistics."""
    names = {field.name for field in fields(promise)}
    own = {name: value for name, value in table.items() if name in names} if isinstance(table, Mapping) else {}
    if not own:
        return table
    others = {name: value for name, value in table.items() if name not in own}
    return {**others, "promise": type(promise)(**own)}


def asked(statistic: Any, words: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Make the statistic and the keywords of a call from the keys of a plan."""
    made = promising(words)
    if isinstance(statistic, list | tuple):
        promise = None if words.get("promise") is None else as_promise(words["promise"])
        statistic = [_weighted(table, promise) for table in statistic]
    else:
        own = {name: made.pop(name) for name in OF_A_STATISTIC if name in made}
        statistic = _object(statistic, own)
    of_page = {name: made.pop(name) for name in OF_A_PAGE if name in made}
    if of_page:
        made["page"] = Page(**of_page)
    if "depends_on" in made:
        made["store"] = Store(made.get("store"), made.pop("depends_on"))
    for name, new in RENAMED.items():
        if name in made:
            made[new] = made.pop(name)
    return statistic, made


def _object(statistic: Any, words: Mapping[str, Any]) -> Any:
    if not words:
        return statistic
    parameters = words.get("set") or {}
    own = {name: value for name, value in words.items() if name != "set"}
    return STATISTICS[statistic](**own, **parameters)


def _weighted(table: Any, promise: Any) -> Any:
    if not isinstance(table, Mapping):
        return table
    words = dict(_of_kind(table, promise) if promise is not None else table)
    own = {name: words.pop(name) for name in OF_A_STATISTIC if name in words}
    return statistic_objects.Weighted(_object(words.pop("statistic", "mean"), own), **words)


def protect(statistic: Any, x: Any, y: Any = None, **words: Any) -> protection.Protected:
    statistic, words = asked(statistic, words)
    return protection.protect(statistic, x, y, **words)


def calibrate(statistic: Any, x: Any, y: Any = None, **words: Any) -> protection.CalibratedNoise:
    statistic, words = asked(statistic, words)
    return protection.calibrate(statistic, x, y, **words)


def declare(statistic: Any, x: Any, y: Any = None, **words: Any) -> str:
    statistic, words = asked(statistic, words)
    return protection.declare(statistic, x, y, **words)


def design_table(statistic: Any, x: Any, y: Any = None, **words: Any) -> protection.DesignTable:
    statistic, words = asked(statistic, words)
    return protection.design_table(statistic, x, y, **words)


def _plan(words: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split what is asked from where and how it is done."""
    call = {name: value for name, value in words.items() if name in OF_A_CALL}
    return promising({name: value for name, value in words.items() if name not in call}), call


def protect_file(**words: Any) -> protection.Protected:
    plan, call = _plan(words)
    return protection.protect_file(plan, **call)


def calibrate_file(**words: Any) -> protection.CalibratedNoise:
    plan, call = _plan(words)
    return protection.calibrate_file(plan, **call)


def design_table_of_file(**words: Any) -> protection.DesignTable:
    plan, call = _plan(words)
    return protection.design_table_of_file(plan, **call)


def declare_file(**words: Any) -> str:
    plan, _ = _plan(words)
    return protection.declare_file(plan)
