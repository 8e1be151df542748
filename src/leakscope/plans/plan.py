"""What all plans have in common: frozen, and one line for what is wrong, with the nearest known word."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Mapping
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from leakscope.checks import nearest, probability


class Plan(BaseModel):
    """A frozen description of a job."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)


class PagePlan(Plan):
    """What every page of a bound or of a protected release is told."""

    title: str = Field(default="", description="the question on top of the page")
    unit: str = Field(default="record", description="the unit of privacy in words: record, person, household")
    date: str = Field(default="", description="printed on the page as it stands here")
    fpr: tuple[float, ...] = Field(default=(0.01, 0.001), description="false-alarm rates of interest, as shares")

    @field_validator("fpr")
    @classmethod
    def _rates(cls, rates: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(sorted({probability("fpr", rate, open_ends=True) for rate in rates}, reverse=True))


P = TypeVar("P", bound=Plan)


def read(kind: type[P], content: Mapping[str, Any], where: str) -> P:
    """A validated plan.

    Parameters
    ----------
    kind : type of Plan
    content : mapping
        Values by their keys.
    where : str
        What the error names: the file, or the call.

    Returns
    -------
    Plan

    Raises
    ------
    ValueError
        The first thing that is wrong as one line, with the nearest known key where one is unknown.

    Examples
    --------
    >>> from leakscope.plans import BOUND_PLANS, read
    >>> read(BOUND_PLANS["gap"], {"gap": 0.1}, "bound gap").prior
    0.5
    """
    try:
        return kind(**content)
    except ValidationError as error:
        raise ValueError(f"{where}: {_first(kind, error)}") from None


def columns(given: object) -> tuple[str, ...]:
    """Names of columns: ``a,b``, or several such texts; as in CSV, a name with a comma stands in double quotes.

    Parameters
    ----------
    given : str, or list or tuple of str

    Returns
    -------
    tuple of str
        Without spaces around them; empty if there are none.

    Raises
    ------
    ValueError
        If a text is no line of CSV.

    Examples
    --------
    >>> from leakscope.plans.plan import columns
    >>> columns('sex,"pay, net"'), columns(["sex", "age,region"])
    (('sex', 'pay, net'), ('sex', 'age', 'region'))
    """
    texts = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, list | tuple) else ()
    names = []
    for text in map(str, texts):
        try:
            rows = list(csv.reader([text], skipinitialspace=True, strict=True))
        except csv.Error:
            raise ValueError(f"write columns as a,b and a name with a comma in double quotes, got {text!r}") from None
        names += [name.strip() for row in rows for name in row]
    return tuple(name for name in names if name)


def settings(text: str, what: str) -> dict[str, Any]:
    """``a=1,b=text,c=[1,2]`` as a mapping, numbers as numbers."""
    made = {}
    for part in _outside_of_brackets(text):
        name, equals, value = part.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise ValueError(f"{what}: write NAME=VALUE, got {part.strip()!r}")
        made[name.strip()] = constant(value.strip())
    return made


def _outside_of_brackets(text: str) -> list[str]:
    """Split at the commas that stand in no brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def constant(text: str) -> Any:
    """A TOML value (number, truth value, text in quotes), else the text as it stands; None for ``none``."""
    if text.lower() == "none":
        return None
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _first(kind: type[Plan], error: ValidationError) -> str:
    """The first complaint of pydantic in our words."""
    complaints = error.errors(include_url=False)
    complaint = next((each for each in complaints if each["type"] == "extra_forbidden"), complaints[0])
    path = [str(step) for step in complaint["loc"]]
    where = ".".join(path)
    if complaint["type"] == "extra_forbidden":
        known = _fields(kind, path[:-1])
        return f"unknown key {where!r}{nearest(path[-1], known)}; known: {', '.join(known)}"
    if complaint["type"] == "missing":
        return f"the key {where!r} is missing"
    text = complaint["msg"].removeprefix("Value error, ")
    given = complaint.get("input")
    shown = f", got {given!r}" if path and complaint["type"] != "value_error" else ""
    return f"{where}: {text}{shown}" if path else text


def _fields(kind: type[Plan], path: list[str]) -> list[str]:
    """Field names of the table that a path of names and row numbers leads to."""
    for step in path:
        if step in kind.model_fields:
            inner = get_args(kind.model_fields[step].annotation)
            kind = next((each for each in inner if isinstance(each, type) and issubclass(each, Plan)), kind)
    return list(kind.model_fields)
