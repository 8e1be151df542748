"""The command that releases what was calibrated: read by the command line, it gives the same plan."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from leakbound.cli.options import words_of
from leakbound.plans.plan import read
from leakbound.plans.promises import Anyone, Drawn
from leakbound.plans.protects import CalibrationPlan, ProtectionPlan
from leakbound.protection.certificate.release_command import release_command

DATA: dict[str, Any] = {"data": "folder/people.csv", "eta": 0.05, "promise": "file"}


def read_again(command: str) -> ProtectionPlan:
    """Read the flags of a command as the command line does."""
    program, verb, *words = shlex.split(command)
    assert (program, verb) == ("leakbound", "protect")
    given: dict[str, Any] = {}
    while words:
        name = words.pop(0).removeprefix("--").replace("-", "_")
        if name == "range":
            given.setdefault(name, []).append(words.pop(0))
            continue
        field = ProtectionPlan.model_fields[name]
        if field.annotation is bool:
            given[name] = True
        elif "dict" in str(field.annotation) or name in ("drop", "fpr"):
            given.setdefault(name, []).append(words.pop(0))
        else:
            given[name] = words.pop(0)
    if "range" in given:
        given["promise"] = Anyone(given.pop("range"))
    if "fpr" in given:
        given["fpr"] = [float(rate) for rate in given["fpr"]]
    return read(ProtectionPlan, words_of(ProtectionPlan, given), "protect")


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"drop": ["name", "a,b"], "drop_missing": True},
        {"statistic": "logistic", "label": "ill", "set": {"centre": [40, 30.5], "spread": (10, 8), "penalty": 2}},
        {"statistic": "table", "by": "town,sex", "levels": {"town": ["Bonn", "Cologne, North"], "sex": ["f", "m"]}},
        {"statistic": "histogram", "by": "age", "set": {"edges": [0, 20, 40]}, "rules": {"p": 0.2, "minimum": 5}},
        {"promise": Anyone(ranges={"wage": (0, 80), "age": (18, 99)})},
        {"promise": "file,scale=[0.4,1.2]"},
        {"promise": Drawn(k=20, about="average", fits=50), "fpr": [0.05]},
        {
            "group": "person",
            "unit": "person",
            "promise": "file,allow_exact=true",
            "budget": 0.1,
            "decimal": ",",
            "separator": ";",
        },
    ],
)
def test_the_command_reads_back_as_the_plan(fields) -> None:
    plan = read(CalibrationPlan, DATA | fields, "calibrate")
    command, reason = release_command(plan)
    assert reason == ""
    again = read_again(command).model_dump()
    expected = plan.model_dump() | {"data": "people.csv"}  # reports hold no paths
    expected["set"] = {name: list(value) if isinstance(value, tuple) else value for name, value in plan.set.items()}
    assert {name: again[name] for name in expected} == expected


def test_what_only_the_comparison_took_is_left_out() -> None:
    plan = read(CalibrationPlan, DATA | {"compare": ["anyone", "drawn,fits=40"]}, "calibrate")
    assert release_command(plan) == (
        "leakbound protect --data people.csv --statistic mean --eta 0.05 --promise file",
        "",
    )


def test_where_protect_would_refuse_the_reason_takes_its_place() -> None:
    plan = read(CalibrationPlan, DATA | {"statistic": "table", "by": "town"}, "calibrate")
    command, reason = release_command(plan)
    assert command == ""
    assert "levels of town are missing" in reason
    assert release_command(plan.model_copy(update={"data": "array"})) == ("", "")
