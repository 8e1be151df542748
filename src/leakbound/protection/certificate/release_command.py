"""The command that makes the release which a calibration planned."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from leakbound.plans.choices import flag_of
from leakbound.plans.plan import read
from leakbound.plans.promises import PROMISES, Anyone, Promise
from leakbound.plans.protects import CalibrationPlan, ProtectionPlan
from leakbound.protection.setting.request import ARRAYS

NO_RELEASE = "leakbound protect would refuse this plan: {reason}"
_OF_CONSTANTS = ("set", "rules")
_REPEATED = ("drop", "fpr", "depends_on")


def release_command(plan: CalibrationPlan) -> tuple[str, str]:
    """Write the command that releases what was calibrated."""
    # the file goes by its name without folders, as reports hold no paths
    if plan.data == ARRAYS:
        return "", ""
    content = plan.model_dump(exclude_unset=True, exclude={"promise", "compare"})  # compared for the owner alone
    content["promise"] = plan.promise
    try:
        return command_of_plan(read(ProtectionPlan, content, "leakbound protect")), ""
    except ValueError as reason:
        return "", str(reason)


def command_of_plan(plan: ProtectionPlan) -> str:
    """Write ``leakbound protect`` with the fields of a plan that are not at their defaults.

    >>> command_of_plan(ProtectionPlan(data="people.csv", eta=0.05, promise="file", drop=["name"]))
    'leakbound protect --data people.csv --drop name --statistic mean --eta 0.05 --promise file'
    """
    words = ["leakbound", "protect"]
    for name, field in type(plan).model_fields.items():
        value = getattr(plan, name)
        if name != "statistic" and value == field.default:
            continue
        if name == "data":  # a page holds no folder
            value = Path(value).name
        elif name == "depends_on":
            value = tuple(Path(path).name for path in value)
        words += _flags(name, value)
    return shlex.join(words)


def _flags(name: str, value: Any) -> list[str]:
    """Write a field as the command line reads it."""
    flag = f"--{name.replace('_', '-')}"
    if isinstance(value, PROMISES):
        return _flags_of_promise(value)
    if value is True:
        return [flag]
    if isinstance(value, Mapping):
        write = _as_parameter if name in _OF_CONSTANTS else _as_texts
        return [word for key, of_key in value.items() for word in (flag, f"{key}={write(of_key)}")]
    if name in _REPEATED:
        return [word for each in value for word in (flag, _as_texts((each,)))]
    return [flag, _as_texts(value) if isinstance(value, tuple) else _as_text(value)]


def _flags_of_promise(promise: Promise) -> list[str]:
    """Write a promise; what names columns has flags of its own."""
    if not isinstance(promise, Anyone):
        return ["--promise", flag_of(promise)]
    words = ["--promise", flag_of(replace(promise, ranges={}, others=()))]
    for name, (low, high) in promise.ranges.items():
        words += ["--range", _as_texts((f"{name}={low}:{high}",))]
    return [*words, "--others", _as_texts(promise.others)] if promise.others else words


def _as_parameter(value: Any) -> str:
    """Write a parameter of a statistic: a list in brackets."""
    return json.dumps(value, separators=(",", ":")) if isinstance(value, list | tuple) else str(value)


def _as_texts(values: Sequence[Any]) -> str:
    """Write values with commas between; a text with a comma is in double quotes."""
    texts = [_as_text(value) for value in values]
    return ",".join(f'"{text}"' if "," in text else text for text in texts)


def _as_text(value: Any) -> str:
    return f"{value:.15g}" if isinstance(value, float) else str(value)
