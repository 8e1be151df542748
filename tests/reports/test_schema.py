"""The schema as code against jsonschema, an independent implementation of the same language."""

from __future__ import annotations

import copy
import json
import random

import pytest
from jsonschema import Draft202012Validator

from leakscope.reports.schema import fault, whole
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


def test_every_word_of_the_schema_is_read():
    """A word that the code does not know would be no rule."""
    known = {
        "$schema",
        "$defs",
        "$ref",
        "title",
        "description",
        "type",
        "const",
        "enum",
        "pattern",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "minimum",
        "patternProperties",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "minItems",
        "maxItems",
        "minLength",
        "maxLength",
        "maxProperties",
        "anyOf",
        "oneOf",
        "if",
        "then",
        "else",
        "not",
    }

    def words(schema):
        for word, value in schema.items():
            yield word
            if word in ("properties", "patternProperties", "$defs"):
                inner = list(value.values())
            elif word in ("items", "additionalProperties", "if", "then", "else", "not"):
                inner = [value] if isinstance(value, dict) else []
            else:
                inner = value if word in ("anyOf", "oneOf") else []
            for each in inner:
                yield from words(each)

    assert set(words(whole())) <= known


@pytest.mark.parametrize("name", REPORTS)
def test_what_is_written_has_no_fault(name):
    assert fault(content(name)) == ""


@pytest.mark.parametrize("name", REPORTS)
def test_the_same_reports_are_refused_as_by_jsonschema(name):
    """600 changed reports of each kind: another value, a key less, a key more."""
    rng, valid = random.Random(3), Draft202012Validator(whole())
    report = content(name)
    paths = [path for path in places(report) if path]
    refused = 0
    for _ in range(600):
        path = rng.choice(paths)
        made = changed(report, path, rng.choice(OTHERS), rng.choice(("set", "delete", "add")))
        wrong = fault(made)
        assert (wrong == "") == valid.is_valid(made), (path, wrong)
        assert "\n" not in wrong
        refused += wrong != ""
    assert refused > 200


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda report: report.pop("curves"), "the key 'curves' is missing"),
        (lambda report: report["about"].update(kind="story"), "about.kind: must be one of audit, bound, protected"),
        (lambda report: report["findings"][0].update(value="high"), "findings[0].value: must be "),
        (lambda report: report["about"].update(odd=1), "about: unknown key 'odd'"),
        (lambda report: report["curves"][0]["tradeoff"].update(kind="cubic"), "curves[0].tradeoff"),
    ],
)
def test_a_fault_names_its_place(change, line):
    report = content("dp")
    change(report)
    assert fault(report).startswith(line)
