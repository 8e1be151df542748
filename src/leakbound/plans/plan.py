"""What all plans have in common: frozen, and one line for what is wrong, with the nearest known word."""

from __future__ import annotations

import csv
import os
import tomllib
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from leakbound.core.checks import brief, fraction, nearest, probability
from leakbound.core.unit_words import UnitWord
from leakbound.plans.moved import Moved


class Plan(BaseModel):
    """A frozen description of a job."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)
    moved: ClassVar[Mapping[str, Moved]] = {}  # words that it had once


def a_fraction(least: float = 0.0, most: float = 1.0, *, above: bool = False, below: bool = False) -> AfterValidator:
    """Make a field of a plan a fraction: ``Annotated[float, a_fraction(above=True)]``.

    >>> from leakbound.plans.audits import ClaimPlan
    >>> read(ClaimPlan, {"eta": 20}, "claim")
    Traceback (most recent call last):
        ...
    ValueError: claim: eta is a fraction: 20 is out of range; did you mean 0.2? It must be >= 0 and < 0.5
    """

    def checked(value: float | None, field: ValidationInfo) -> float | None:
        name = field.field_name or "the value"
        return None if value is None else fraction(name, value, least=least, most=most, above=above, below=below)

    return AfterValidator(checked)


Inside = Annotated[float, a_fraction(above=True, below=True)]  # in (0, 1)


def _text_of_path(value: Any) -> Any:
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _one_or_many(value: Any) -> Any:
    return (value,) if isinstance(value, int | float) else value


def _one_name_or_many(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


class OneText:
    """Marks a field with several values whose option is one text, as 0.4,1.2, which the plan reads."""


FilePath = Annotated[str, Field(min_length=1), BeforeValidator(_text_of_path)]  # text in a file, a path from Python
Names = Annotated[tuple[str, ...], BeforeValidator(_one_name_or_many)]  # or a single one
Numbers = Annotated[tuple[float, ...], BeforeValidator(_one_or_many)]  # or a single number


def _paths(value: Any) -> Any:
    """Read paths, or a single one."""
    given = (value,) if isinstance(value, str | os.PathLike) else value
    return tuple(_text_of_path(path) for path in given)


DependsOn = Annotated[
    tuple[str, ...],
    BeforeValidator(_paths),
    Field(
        description="files that are read unseen, as by a program that a model or statistic starts; what is stored is "
        "used again while they are the same"
    ),
]


def _one_sign(value: str | None) -> str | None:
    """Read the sign between columns; a tab is hard to type."""
    if value in ("tab", "\\t"):
        return "\t"
    is_sign = value is None or value == "\t" or (len(value) == 1 and value in SIGNS)
    if not is_sign:
        raise ValueError(f"separator must be one sign, as ; or tab, and no letter, digit or quote; got {value!r}")
    return value


def _known_encoding(value: str | None) -> str | None:
    """Refuse an encoding that Python does not know."""
    if value is None:
        return None
    try:
        "".encode(value)
    except LookupError:
        raise ValueError(f"encoding must be one that Python knows, as utf-8 or cp1252; got {value!r}") from None
    return value


SIGNS = " !#$%&()*,/:;<=>?@[]^_{|}~"  # that may separate columns
Separator = Annotated[
    str | None,
    AfterValidator(_one_sign),
    Field(description="sign between the columns of CSV, as ; or tab; a comma unless given"),
]
Decimal = Annotated[
    Literal[".", ","] | None, Field(description="the decimal sign of CSV, a comma or a point; a point unless given")
]
Encoding = Annotated[
    str | None,
    AfterValidator(_known_encoding),
    Field(description="encoding of CSV, as utf-8 or cp1252; UTF-8 unless given"),
]


class FilePlan(Plan):
    """A plan that reads files."""

    separator: Separator = None
    decimal: Decimal = None
    encoding: Encoding = None

    @property
    def csv(self) -> dict[str, Any]:
        """How CSV is written, as keywords of all that reads a file."""
        return {name: getattr(self, name) for name in ("separator", "decimal", "encoding")}


class PagePlan(Plan):
    """What every plan says of its page."""

    title: str = Field(default="", description="the question on top of the page")
    unit: UnitWord = Field(
        default=UnitWord("record"), description="the unit of privacy in words: record, household, Person/Personen"
    )
    date: str = Field(default="", description="printed on the page as given")
    fpr: Numbers = Field(default=(0.01, 0.001), description="false positive rates of interest, as fractions")

    @field_validator("fpr")
    @classmethod
    def _rates(cls, rates: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(sorted({probability("fpr", rate, open_ends=True) for rate in rates}, reverse=True))


P = TypeVar("P", bound=Plan)


def read(kind: type[P], content: Mapping[str, Any], where: str) -> P:
    """Validate a plan.

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
        Of type ``kind``; frozen.

    Raises
    ------
    ValueError
        The first thing that is wrong as one line, with the nearest known key where one is unknown.

    Examples
    --------
    >>> from leakbound.plans import BOUND_PLANS, read
    >>> read(BOUND_PLANS["gap"], {"gap": 0.1}, "bound gap").prior
    0.5
    """
    try:
        return kind(**content)
    except ValidationError as error:
        told = _where_it_is_now(kind, error) or first_complaint(
            error, lambda path: list(_kind_at(kind, path).model_fields)
        )
        raise ValueError(f"{where}: {told}") from None


def asked_of(kind: type[Plan], words: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out the words that are at their default, or None: a plan knows which of its fields were set.

    >>> from leakbound.plans import BOUND_PLANS
    >>> asked_of(BOUND_PLANS["gap"], {"gap": 0.1, "low": 0.0, "high": 2.0})
    {'gap': 0.1, 'high': 2.0}
    """
    changed = {}
    for name, value in words.items():
        default = kind.model_fields[name].default
        # by type too: 1 and True are equal, but not the same word
        is_default = type(value) is type(default) and value == default
        if value is not None and not is_default:
            changed[name] = value
    return changed


def columns(given: object) -> tuple[str, ...]:
    """Names of columns: ``a,b``, or several such texts; as in CSV, a name with a comma is in double quotes.

    >>> columns('sex,"pay, net"'), columns(["sex", "age,region"])
    (('sex', 'pay, net'), ('sex', 'age', 'region'))
    """
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list | tuple):
        texts = []
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
    parameters = {}
    for part in _outside_of_brackets(text):
        name, equals, value = part.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise ValueError(f"{what}: write NAME=VALUE, got {part.strip()!r}")
        parameters[name.strip()] = constant(value.strip())
    return parameters


def _names(given: object) -> object:
    """Read a text as names of columns; names of a list are taken as they are."""
    return columns(given) if isinstance(given, str) else given


ColumnNames = Annotated[tuple[str, ...], BeforeValidator(_names)]
"""Names of columns: of a list as they are, of a text those between its commas, as a flag has them."""


def named_lists(text: str, what: str) -> dict[str, tuple[str, ...]]:
    """Read ``COLUMN=a,b,c`` as a mapping of one name to its texts; a name or text with a comma is in double quotes.

    >>> named_lists('town=Bonn,"Cologne, North"', "--levels")
    {'town': ('Bonn', 'Cologne, North')}
    """
    name, equals, values = text.partition("=")
    (quoted,) = columns(name) if len(columns(name)) == 1 else ("",)
    texts = columns(values)
    if not equals or not quoted or not texts:
        raise ValueError(f"{what}: write COLUMN=a,b,c, got {text.strip()!r}")
    return {quoted: texts}


def _outside_of_brackets(text: str) -> list[str]:
    """Split at the commas that are in no brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def constant(text: str) -> Any:
    """Read a TOML value (number, truth value, quoted text), else return the text as it is; None for ``none``.

    Texts of a list need no quotes.
    """
    if text.lower() == "none":
        return None
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # also of a number with thousands of digits, or of a thousand brackets
        pass
    is_list = text.startswith("[") and text.endswith("]") and "[" not in text[1:]
    return [constant(part.strip()) for part in text[1:-1].split(",")] if is_list else text


def first_complaint(error: ValidationError, known_at: Callable[[list[str]], list[str]]) -> str:
    """Put the first complaint of pydantic into our words."""
    complaints = error.errors(include_url=False)
    # an unknown key first: where a field is misspelt it may also be missing
    unknown = [complaint for complaint in complaints if complaint["type"] == "extra_forbidden"]
    complaint = (unknown or complaints)[0]
    path = [str(step) for step in complaint["loc"]]
    where = ".".join(path)
    if complaint["type"] == "extra_forbidden":
        known = known_at(path[:-1])
        return f"unknown key {where!r}{nearest(path[-1], known)}; known: {', '.join(known)}"
    if complaint["type"] in ("missing", "missing_argument"):
        return f"the key {where!r} is missing"
    text = complaint["msg"].removeprefix("Value error, ")
    shown = f", got {brief(complaint.get('input'))}" if path and complaint["type"] != "value_error" else ""
    # our own checks name the field themselves
    if not path or text.startswith((f"{path[-1]} ", f"{path[-1]}: ")):
        where = ".".join(path[:-1])
    return f"{where}: {text}{shown}" if where else text


def _where_it_is_now(kind: type[Plan], error: ValidationError) -> str:
    """Say of the first unknown key that a plan had once where it is now; nothing if there is none."""
    for complaint in error.errors(include_url=False):
        if complaint["type"] != "extra_forbidden":
            continue
        path = [str(step) for step in complaint["loc"]]
        moved = _kind_at(kind, path[:-1]).moved.get(path[-1])
        if moved is not None and moved.key:
            return f"{'.'.join(path)} is now {moved.key}"
    return ""


def _kind_at(kind: type[Plan], path: list[str]) -> type[Plan]:
    """Return the plan that a path of names and row numbers leads to."""
    for step in path:
        if step in kind.model_fields:
            inner = get_args(kind.model_fields[step].annotation)
            plans = [part for part in inner if isinstance(part, type) and issubclass(part, Plan)]
            kind = plans[0] if plans else kind
    return kind
