"""Bounds as reports: from words to what a theorem says."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any

from leakscope import stating, surveying
from leakscope.bounds import Bound, find
from leakscope.ceilings import Stated
from leakscope.plans.bounds import BOUND_PLANS
from leakscope.plans.plan import PagePlan, read
from leakscope.report import Report
from leakscope.types import NotApplicable
from leakscope.version import __version__

MAKERS: Mapping[str, Callable[[Any, Bound], Stated]] = MappingProxyType(
    {
        "dp": stating.dp,
        "gaussian": stating.gaussian,
        "dpsgd": stating.dpsgd,
        "gap": stating.gap,
        "information": stating.information,
        "pmp": surveying.pmp,
        "leakage": surveying.leakage,
        "table": surveying.table,
        "total": surveying.total,
        "regression": surveying.regression,
    }
)


def bound(name: str, *, command: str = "", **words: Any) -> Report:
    """What a theorem allows any attacker, as a report: what ``leakscope bound NAME`` does.

    Parameters
    ----------
    name : str
        A row of ``leakscope.bounds.BOUNDS``: dp, gaussian, dpsgd, pmp, leakage, table, total, gap, information,
        regression.
    command : str
        Printed on the page.
    **words
        Fields of the plan of that bound in ``leakscope.plans.BOUND_PLANS``.

    Returns
    -------
    Report

    Raises
    ------
    ValueError
        In one line: what was given, what is allowed.

    Examples
    --------
    >>> import leakscope as ls
    >>> report = ls.bound("dp", epsilon=1.0)
    >>> round(next(each.value for each in report.findings if each.quantity == "success"), 4)
    0.7311
    """
    row = find(name)
    plan = read(BOUND_PLANS[name], words, f"bound {name}")
    try:
        stated = MAKERS[name](plan, row)
    except NotApplicable as reason:
        raise ValueError(f"bound {name}: {reason}") from None
    return Report(_about(row, plan, stated, command), tuple(stated.findings), tuple(stated.curves), stated.records)


def _about(row: Bound, plan: PagePlan, stated: Stated, command: str) -> dict[str, Any]:
    content = plan.model_dump()
    if "data" in content:
        content["data"] = Path(content["data"]).name  # the report holds no path of this machine
    data = stated.data
    return {
        "kind": "bound",
        "bound": row.name,
        "leakscope": __version__,
        "title": plan.title,
        "question": row.question,
        "subject": stated.subject,
        "theorem": {"title": row.name, "source": row.source, "summary": row.summary},
        "unit": plan.unit,
        "date": plan.date,
        "seed": content.get("seed", 0),
        "confidence": content.get("confidence", 1.0),
        "fpr": plan.fpr,
        "command": command,
        "plan": content,
        "versions": {"python": platform.python_version(), **{each: version(each) for each in ("numpy", "scipy")}},
        "notes": list(stated.notes),
        "data": data and {"name": data.name, "digest": data.points.digest[:16], "records": len(data.points)},
        "releases": [],
    }
