"""The schema of report.json, as code: what is wrong with a value, and where.

`schema.json` beside this file is a JSON Schema (draft 2020-12) that any tool can use. This reads the part of the
language that it is written in, so that a report can be checked without another library.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import resources
from itertools import islice
from typing import Any

from leakscope.core.checks import one_line

Schema = Mapping[str, Any]
_MOST = 5  # faults of a form that are counted
_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "integer": lambda value: not isinstance(value, bool) and (isinstance(value, int) or _is_whole(value)),
}
_SIZES: Mapping[str, tuple[type, Callable[[Any, Any], bool], str]] = {
    "minItems": (list, lambda value, least: len(value) >= least, "items, at least {}"),
    "maxItems": (list, lambda value, most: len(value) <= most, "items, at most {}"),
    "minLength": (str, lambda value, least: len(value) >= least, "letters, at least {}"),
    "maxLength": (str, lambda value, most: len(value) <= most, "letters, at most {}"),
    "maxProperties": (dict, lambda value, most: len(value) <= most, "entries, at most {}"),
}
_LIMITS: Mapping[str, tuple[Callable[[Any, Any], bool], str]] = {
    "minimum": (lambda value, least: value >= least, "a number >= {}"),
    "maximum": (lambda value, most: value <= most, "a number <= {}"),
    "exclusiveMinimum": (lambda value, least: value > least, "a number > {}"),
    "exclusiveMaximum": (lambda value, most: value < most, "a number < {}"),
}


def fault(value: Any) -> str:
    """What is wrong with the content of a report, by the schema.

    Parameters
    ----------
    value : object
        As a JSON parser gives it.

    Returns
    -------
    str
        The place and what is allowed there, in one line; empty if the content follows the schema.

    Examples
    --------
    >>> from leakscope.reports.schema import fault
    >>> fault({"schema": 1, "sha256": "0" * 64, "about": {}, "findings": [], "curves": [], "records": {}})
    "about: the key 'kind' is missing"
    """
    return next(_faults(value, whole(), ""), "")


@cache
def whole() -> Schema:
    """The schema of a report."""
    return json.loads(resources.files("leakscope.reports").joinpath("schema.json").read_text(encoding="utf-8"))


def _faults(value: Any, schema: Schema, place: str) -> Iterator[str]:
    """Everything that is wrong, first things first."""
    if "$ref" in schema:
        yield from _faults(value, _definition(schema["$ref"]), place)
    if "type" in schema:
        kinds = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
        if not any(_TYPES[kind](value) for kind in kinds):
            yield _said(place, " or ".join(kinds), value)
            return
    if "const" in schema and not _same(value, schema["const"]):
        yield _said(place, repr(schema["const"]), value)
    if "enum" in schema and not any(_same(value, each) for each in schema["enum"]):
        yield _said(place, "one of " + ", ".join(map(str, schema["enum"])), value)
    if "pattern" in schema and isinstance(value, str) and not re.search(schema["pattern"], value):
        yield _said(place, f"a text like {schema['pattern']}", value)
    yield from _of_size(value, schema, place)
    if isinstance(value, dict):
        yield from _of_object(value, schema, place)
    if isinstance(value, list) and "items" in schema:
        yield from _of_items(value, schema["items"], place)
    yield from _of_choices(value, schema, place)


def _of_size(value: Any, schema: Schema, place: str) -> Iterator[str]:
    for word, (kind, holds, allowed) in _SIZES.items():
        if word in schema and isinstance(value, kind) and not holds(value, schema[word]):
            yield f"{_where(place)}has {len(value):,} {allowed.format(schema[word])} are allowed"
    if _TYPES["number"](value):
        for word, (keeps, allowed) in _LIMITS.items():
            if word in schema and not keeps(value, schema[word]):
                yield _said(place, allowed.format(schema[word]), value)


def _of_object(value: Mapping[str, Any], schema: Schema, place: str) -> Iterator[str]:
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{_where(place)}the key {name!r} is missing"
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    rest: Any = schema.get("additionalProperties", True)
    for name, item in value.items():
        below = [known[name]] if name in known else []
        below += [each for pattern, each in patterns.items() if re.search(pattern, name)]
        inside = f"{place}.{name}" if place else name
        if not below and rest is False:
            yield f"{_where(place)}unknown key {one_line(name, 60)!r}"
        elif not below and isinstance(rest, dict):
            below = [rest]
        for each in below:
            yield from _faults(item, each, inside)


def _of_items(value: list[Any], schema: Schema, place: str) -> Iterator[str]:
    """A long column of numbers or texts is looked at as a whole."""
    if schema == {"type": "string"} and all(type(item) is str for item in value):
        return
    if set(schema) <= {"type", "minimum", "maximum"} and schema.get("type") == "number" and _in_range(value, schema):
        return
    for row, item in enumerate(value):
        yield from _faults(item, schema, f"{place}[{row}]")


def _in_range(value: list[Any], schema: Schema) -> bool:
    if not value or not all(type(item) is float for item in value):
        return False
    return min(value) >= schema.get("minimum", -math.inf) and max(value) <= schema.get("maximum", math.inf)


def _of_choices(value: Any, schema: Schema, place: str) -> Iterator[str]:
    """What holds of a value if another thing does, or does not: ``anyOf``, ``oneOf``, ``if``, ``not``."""
    if "not" in schema and next(_faults(value, schema["not"], place), None) is None:
        yield _said(place, "another value", value)
    for word in ("anyOf", "oneOf"):
        found = [list(islice(_faults(value, each, place), _MOST)) for each in schema.get(word, ())]
        n_fitting = sum(not faults for faults in found)
        if found and (n_fitting == 0 or (word == "oneOf" and n_fitting > 1)):
            # the form that fits best says what is wrong
            yield min((faults for faults in found if faults), key=len, default=[f"{place}: fits several forms"])[0]
    if "if" in schema:
        fits = next(_faults(value, schema["if"], place), None) is None
        yield from _faults(value, schema.get("then" if fits else "else", {}), place)


def _definition(reference: str) -> Schema:
    return whole()["$defs"][reference.removeprefix("#/$defs/")]


def _same(value: Any, other: Any) -> bool:
    """Equal values of JSON: true is not 1."""
    return value == other and isinstance(value, bool) == isinstance(other, bool)


def _is_whole(value: Any) -> bool:
    return isinstance(value, float) and value.is_integer()


def _where(place: str) -> str:
    """The place before a complaint; nothing for the report as a whole."""
    return f"{place}: " if place else ""


def _said(place: str, allowed: str, value: Any) -> str:
    shown = one_line(json.dumps(value, ensure_ascii=True, default=str), 40)
    return f"{_where(place)}must be {allowed}, got {shown}"
