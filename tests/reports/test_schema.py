"""The models of a report against their JSON Schema, as jsonschema reads it: an independent implementation."""

from __future__ import annotations

import copy
import json
import random
from importlib import resources

import pytest
from jsonschema import Draft202012Validator
from jsonschema.validators import extend

from leakbound.reports import SCHEMA
from leakbound.reports.content import KINDS, content_of, schema
from tests.marks import nightly_but
from tests.reports import made_bounds, made_protected, samples

REPORTS = {
    "audit": lambda: samples.few_models(),
    "leakage": lambda: made_bounds.leakage(20),
    "dp": made_bounds.dp,
    "protected": made_protected.means,
}
OTHERS = (None, True, 0, -1, 1.0, 1.5, 1e300, "", "inf", "x", [], [0.5], ["a"], {}, {"a": 1})


def content(name):
    return json.loads(REPORTS[name]().to_json())


def places(value, path=()):
    """The path of every value of a report; of long lists the first items."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value[:3]) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


def changed(value, path, other, way):
    """A copy with another value at a path, without it, or with a key more beside it."""
    made = copy.deepcopy(value)
    inner = made
    for step in path[:-1]:
        inner = inner[step]
    if way == "delete":
        del inner[path[-1]]
    elif way == "add" and isinstance(inner, dict):
        inner["surplus"] = other
    else:
        inner[path[-1]] = other
    return made


def committed() -> dict:
    """The schema as it is published."""
    return json.loads(resources.files("leakbound.reports").joinpath("schema.json").read_text(encoding="utf-8"))


def fault(value) -> str:
    """What the models find wrong; empty if nothing is."""
    try:
        content_of(value)
    except ValueError as error:
        return str(error)
    return ""


# 1.0 is a whole number to JSON Schema, and none to Python
whole_numbers = Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)
Validator = extend(Draft202012Validator, type_checker=whole_numbers)


def test_the_schema_has_not_changed():
    """A change is a decision: `python -m leakbound.reports.content > src/leakbound/reports/schema.json`, and a new
    number in ``SCHEMA`` once there are reports of others."""
    assert schema() == committed()
    assert committed()["$defs"]["AuditContent"]["properties"]["schema"]["const"] == SCHEMA


@pytest.mark.parametrize("name", REPORTS)
def test_what_is_written_has_no_fault(name):
    assert fault(content(name)) == ""


def same_are_refused(name, n_changes):
    """Changed reports: another value, a key less, a key more."""
    rng, report = random.Random(3), content(name)
    kind = KINDS[report["about"]["kind"]].__name__
    valid = Validator({"$ref": f"#/$defs/{kind}", "$defs": committed()["$defs"]})
    del report["findings"][3:], report["curves"][2:]
    report["records"] = {column: cells[:3] for column, cells in report["records"].items()}
    paths = [path for path in places(report) if path]
    refused = 0
    for _ in range(n_changes):
        path = rng.choice(paths)
        made = changed(report, path, rng.choice(OTHERS), rng.choice(("set", "delete", "add")))
        wrong = fault(made)
        assert (wrong == "") == valid.is_valid(made), (path, wrong)
        assert "\n" not in wrong
        refused += wrong != ""
    assert refused > n_changes / 3


@pytest.mark.by_day("dp")
@pytest.mark.parametrize("name", nightly_but(REPORTS, "leakage", "dp", "protected"))
def test_the_same_reports_are_refused_as_by_jsonschema(name):
    same_are_refused(name, 150)


@pytest.mark.parametrize("path", [("about",), ("about", "kind"), ("findings",), ("curves",), ("records",), ("sha256",)])
def test_other_values_at_the_top_are_one_line(path):
    for other in OTHERS:
        wrong = fault(changed(content("dp"), path, other, "set"))
        assert "\n" not in wrong
        assert wrong.startswith(".".join(path)) or other in ([], {})  # no findings, and no records
    for other in OTHERS:
        assert fault(other)


@pytest.mark.nightly
@pytest.mark.parametrize("name", REPORTS)
def test_the_same_of_very_many_reports_are_refused_as_by_jsonschema(name):
    same_are_refused(name, 3000)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda report: report.pop("curves"), "the key 'curves' is missing"),
        (
            lambda report: report["about"].update(kind="story"),
            "about.kind: must be one of audit, attribute, bound",
        ),
        (lambda report: report["findings"][0].update(value="high"), "findings[0].value: must be "),
        (lambda report: report["about"].update(odd=1), "about: unknown key 'odd'"),
        (lambda report: report.update(schema=True), "schema: must be a number, got True"),
        (lambda report: report["curves"][0]["tradeoff"].update(kind="cubic"), "curves[0].tradeoff"),
        (lambda report: report["about"]["theorem"].pop("source"), "about.theorem: the key 'source' is missing"),
    ],
)
def test_a_fault_names_its_place(change, line):
    report = content("dp")
    change(report)
    assert fault(report).startswith(line)
