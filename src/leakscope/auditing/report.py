"""From releases that have been observed to one report."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from leakscope.auditing.evaluate import Judgement, judge
from leakscope.auditing.observed import Subject
from leakscope.core.types import Attack
from leakscope.plans.audits import AuditPlan, refuse_unknown
from leakscope.reports import Report
from leakscope.version import __version__


def assemble(
    plan: AuditPlan,
    attacks: Sequence[Attack],
    subjects: Sequence[Subject],
    notes: Sequence[str] = (),
    command: str = "",
) -> Report:
    """Judge each release and put the results side by side.

    Parameters
    ----------
    plan : AuditPlan
    attacks : sequence of Attack
    subjects : sequence of Subject
        Releases that have been observed.
    notes : sequence of str
        What a reader should know of the data and the run.
    command : str
        That makes this report again.

    Returns
    -------
    Report

    Raises
    ------
    ValueError
        If a claim is about a release that is not there.
    """
    refuse_unknown(plan, [subject.name for subject in subjects])
    made = [judge(subject, attacks, plan.fpr, plan.confidence, plan.prior) for subject in subjects]
    return Report(
        _about(plan, attacks, made, notes, command),
        tuple(finding for each in made for finding in each.findings),
        tuple(curve for each in made for curve in each.curves),
        _joined([each.records for each in made if each.records]),
    )


def _about(
    plan: AuditPlan, attacks: Sequence[Attack], made: Sequence[Judgement], notes: Sequence[str], command: str
) -> dict[str, Any]:
    content = plan.model_dump()
    if content["data"]:
        content["data"] = Path(content["data"]).name  # the report holds no path of this machine
    packages = ("numpy", "scipy", "scikit-learn", "pandas")
    return {
        "kind": "audit",
        "leakscope": __version__,
        "title": plan.title,
        "unit": plan.unit,
        "date": plan.date,
        "seed": plan.seed,
        "confidence": plan.confidence,
        "fpr": plan.fpr,
        "attacks": {
            attack.name: {"title": attack.title, "source": attack.source, "summary": attack.summary}
            for attack in attacks
        },
        "command": command,
        "plan": content,
        "versions": {"python": platform.python_version(), **{name: version(name) for name in packages}},
        "notes": list(notes),
        "releases": [each.facts for each in made],
    }


def _joined(tables: Sequence[Mapping[str, Sequence[Any]]]) -> dict[str, list[Any]]:
    """Tables with the same columns, one below the other."""
    return {name: [item for table in tables for item in table[name]] for name in (tables[0] if tables else {})}
