"""The contents of report.json, and how they are read: `schema.json` is generated from these models.

Findings, scopes, terms and verdicts are read off their dataclasses, so that each field is declared once.
"""

from __future__ import annotations

import json
import os
import re
import types
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from functools import reduce
from operator import or_
from typing import Annotated, Any, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
    create_model,
    model_validator,
)
from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from leakbound.core.checks import one_line
from leakbound.core.findings import QUANTITIES, Finding, Scope, Term
from leakbound.core.tradeoff import from_dict
from leakbound.core.tradeoff.claims import AccountantEpsilon, Claim
from leakbound.files.untrusted import Refused, json_value
from leakbound.reports import DIGEST, SCHEMA, Curve, Report, Verdict, digest_of
from leakbound.reports.about import (
    AttributeAbout,
    AuditAbout,
    BoundAbout,
    Count,
    Facts,
    Flag,
    Fraction,
    Number,
    ProtectedAbout,
    Real,
    TermFacts,
    Text,
    infinity,
)


def _known_quantity(name: str) -> str:
    if name not in QUANTITIES:
        raise ValueError(f"must be one of {', '.join(QUANTITIES)}, got {_shown(name)}")
    return name


Quantity = Annotated[Text, AfterValidator(_known_quantity), WithJsonSchema({"enum": [*QUANTITIES]})]


class Narrower:
    """Fields of the dataclasses whose annotations allow more than a report does."""

    confidence: Fraction | None
    index: Count | None
    n_nonmember: Count
    detail: dict[Text, Annotated[Any, infinity, WithJsonSchema({})]]  # numbers, and what is printed as it is


NARROWER = get_type_hints(Narrower, include_extras=True)


def _in_json(annotation: Any) -> Any:
    """Return an annotation of a dataclass as JSON has it: lists for sequences, texts for infinities."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if annotation in (float, str, int, bool):
        return {float: Number, str: Text, int: Annotated[int, Field(strict=True)], bool: Flag}[annotation]
    if annotation is Scope:
        return ScopeContent
    if annotation is Term:
        return TermFacts
    if origin in (Union, types.UnionType):
        return reduce(or_, (_in_json(part) for part in inner))
    if origin is Sequence:
        return list[_in_json(inner[0])]
    if origin is Mapping:
        return dict[Text, _in_json(inner[1])]
    return annotation


def _model_of(dataclass: type, **others: Any) -> type[Facts]:
    """Make the model of a dataclass: every field is required."""
    hints = get_type_hints(dataclass)
    names = [field.name for field in fields(dataclass) if field.name not in others]
    kinds = {name: _in_json(hints[name]) for name in names}
    narrower = {name: NARROWER[name] for name in kinds.keys() & NARROWER.keys()}
    definitions: dict[str, Any] = {name: (kind, ...) for name, kind in (kinds | narrower | others).items()}
    first_line = (dataclass.__doc__ or "").strip().splitlines()[0]
    return create_model(f"{dataclass.__name__}Content", __base__=Facts, __doc__=first_line, **definitions)


ScopeContent = _model_of(Scope)
VerdictContent = _model_of(Verdict, claim=_model_of(Claim))


class FindingContent(_model_of(Finding, quantity=Quantity)):
    """One number with everything that is needed to judge it: it has a value or a reason."""

    model_config = ConfigDict(
        json_schema_extra={
            "if": {"properties": {"value": {"type": "null"}}},
            "then": {"properties": {"reason": {"type": "object"}}},
            "else": {"properties": {"reason": {"type": "null"}}},
        }
    )

    @model_validator(mode="after")
    def _value_or_reason(self) -> FindingContent:
        content: Any = self
        if (content.value is None) != (content.reason is not None):
            raise ValueError("a finding has a value or a reason, not both and not neither")
        return self


class GaussianContent(Facts):
    """Of Gaussian differential privacy."""

    kind: Literal["gaussian"]
    mu: Number


class EpsilonDeltaContent(Facts):
    """Of (epsilon, delta)-differential privacy."""

    kind: Literal["epsilon_delta"]
    epsilon: Number
    delta: Fraction


class PiecewiseContent(Facts):
    """A polygon."""

    kind: Literal["piecewise"]
    fpr: list[Fraction]
    fnr: list[Fraction]


class MixtureContent(Facts):
    """A mixture of trade-offs whose component the attacker sees."""

    kind: Literal["mixture"]
    weights: list[Fraction]
    curves: list[TradeOffContent]


class ProfileContent(Facts):
    """The delta of each epsilon; ``reverse`` where it differs with the two data sets exchanged."""

    kind: Literal["profile"]
    epsilon: list[Number]
    delta: list[Fraction]
    reverse: list[Fraction] | None = None


TradeOffContent = Annotated[
    GaussianContent | EpsilonDeltaContent | PiecewiseContent | MixtureContent | ProfileContent,
    Field(discriminator="kind"),
]
MixtureContent.model_rebuild()
Rates = list[Fraction]


class CurveContent(
    _model_of(Curve, tradeoff=TradeOffContent, verdict=VerdictContent | None, band_fpr=Rates, low=Rates, high=Rates)
):
    """A trade-off with what it is of."""


Byte = Annotated[int, Field(strict=True, ge=0, le=255)]


class PreviewContent(Facts):
    """What a record looks like: an image as rows of grey levels or of colours, or some of its fields."""

    image: tuple[tuple[Byte | tuple[Byte, Byte, Byte], ...], ...] = ()
    fields: dict[Text, Text] = Field(default_factory=dict)


class NoRecords(Facts):
    """No table of records."""


Whole = Annotated[int, Field(strict=True)]


class RecordsContent(Facts):
    """One table by columns, a row a record, of the games against single records."""

    release: list[Text]
    record: list[Whole | Text]
    name: list[Text] = Field(default_factory=list, description="What the owner calls the record; not always there.")
    label: list[Text]
    games: list[Count]
    won: list[Count]
    low: list[Fraction]
    exposed: list[Flag]
    margin: list[Real]
    log_odds: list[list[Real] | None]
    member: list[list[Annotated[int, Field(strict=True, ge=0, le=1)]] | None]
    preview: list[PreviewContent | None]


Cell = Real | Text | Flag | None
FRACTIONS = "^(tpr|ppv)@[0-9.e-]+$"  # further columns of a ranking that hold fractions


class RankingContent(BaseModel):
    """The records, or the cells of a table, from most to least exposed; the first column names the row."""

    model_config = ConfigDict(
        frozen=True,
        extra="allow",
        json_schema_extra={
            "oneOf": [{"required": ["record"]}, {"required": ["cell"]}],
            "patternProperties": {
                FRACTIONS: {
                    "type": "array",
                    "items": {"anyOf": [{"type": "number", "minimum": 0, "maximum": 1}, {"type": "null"}]},
                }
            },
        },
    )
    __pydantic_extra__: dict[str, list[Cell]]  # pyright: ignore[reportIncompatibleVariableOverride]

    record: list[Whole | Text] = Field(default_factory=list)
    cell: list[Text] = Field(default_factory=list)
    accuracy: list[Fraction | None] = Field(default_factory=list)
    eta: list[Fraction | None] = Field(default_factory=list)
    advantage: list[Fraction | None] = Field(default_factory=list)
    score: list[Number | None] = Field(default_factory=list)
    leverage: list[Number | None] = Field(default_factory=list)
    value: list[Number | None] = Field(default_factory=list)
    records: list[Count] = Field(default_factory=list)

    @model_validator(mode="after")
    def _rows_are_named(self) -> RankingContent:
        if len({"record", "cell"} & self.model_fields_set) != 1:
            raise ValueError("a ranking names its rows by a column record or by a column cell")
        for name, values in (self.model_extra or {}).items():
            if re.search(FRACTIONS, name) and not all(_is_fraction(value) for value in values):
                raise ValueError(f"{name} must be numbers >= 0 and <= 1, or null")
        return self


def _is_fraction(value: Cell) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1)


def _no_truth_value(value: Any) -> Any:
    """Refuse true, which equals 1 in Python and not in JSON."""
    if isinstance(value, bool):
        raise ValueError(f"must be a number, got {value}")
    return value


AboutKind = TypeVar("AboutKind", bound=Facts)
Table = TypeVar("Table", bound=BaseModel)


class ReportContent(BaseModel, Generic[AboutKind, Table]):
    """A report of leakbound: what was asked, findings, curves and records."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_: Annotated[Literal[1], BeforeValidator(_no_truth_value)] = Field(alias="schema")
    sha256: Annotated[Text, Field(min_length=64, max_length=64)] = Field(
        description="SHA-256 of the content: of the JSON of all other keys, sorted, without spaces, in ASCII."
    )
    about: AboutKind
    findings: tuple[FindingContent, ...]
    curves: tuple[CurveContent, ...]
    records: Table


class AuditContent(ReportContent[AuditAbout, NoRecords | RecordsContent]):
    """An audit of membership."""


class AttributeContent(ReportContent[AttributeAbout, NoRecords]):
    """An audit of an attribute."""

    curves: tuple[CurveContent, ...] = Field(max_length=0)


class BoundContent(ReportContent[BoundAbout, NoRecords | RankingContent]):
    """A bound."""


class ProtectedContent(ReportContent[ProtectedAbout, NoRecords]):
    """A calibration, or a release with noise."""


KINDS: Mapping[str, type[ReportContent]] = {
    "audit": AuditContent,
    "attribute": AttributeContent,
    "bound": BoundContent,
    "protected": ProtectedContent,
}


def content_of(value: Any) -> ReportContent:
    """Read the content of a report.

    >>> content_of({"schema": 1, "sha256": "0" * 64, "about": {}, "findings": [], "curves": [], "records": {}})
    Traceback (most recent call last):
        ...
    ValueError: about: the key 'kind' is missing
    """
    about = value.get("about") if isinstance(value, dict) else None
    if isinstance(about, dict):
        if "kind" not in about:
            raise ValueError("about: the key 'kind' is missing")
        if not isinstance(about["kind"], str) or about["kind"] not in KINDS:
            raise ValueError(f"about.kind: must be one of {', '.join(KINDS)}, got {_shown(about['kind'])}")
    model = KINDS[about["kind"]] if isinstance(about, dict) else AuditContent
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise ValueError(_first(error, value)) from None


def read(path: str | os.PathLike[str], unverified: bool = False) -> Report:
    """Read a report from its file."""
    value = json_value(path)
    if not isinstance(value, dict) or value.get("schema") != SCHEMA or isinstance(value["schema"], bool):
        raise Refused(f"{path} is not a leakbound report of schema {SCHEMA}")
    try:
        report = _report_of(content_of(value), value["records"])
    except (TypeError, ValueError, OverflowError) as error:
        raise Refused(f"{path} is not a whole report: {error}") from None
    except RecursionError:
        raise Refused(f"{path} is not a whole report: it is nested too deeply") from None
    if not unverified and digest_of(value) != value[DIGEST]:
        raise Refused(
            f"{path} is not as it was written: its SHA-256 differs from the one that it carries. Read it all the same "
            "with --unverified (unverified=True)"
        )
    return report


def _report_of(content: ReportContent, columns_in_order: Iterable[str]) -> Report:
    """Build the report that a content describes."""
    table = content.records.model_dump(exclude_unset=True)
    columns = {name: table[name] for name in columns_in_order}
    lengths = {len(column) for column in columns.values()}
    if len(lengths) > 1:
        raise ValueError(f"records: columns of {min(lengths)} to {max(lengths)} rows")
    findings = [_finding(finding.model_dump(exclude_unset=True)) for finding in content.findings]
    curves = [_curve(curve.model_dump(exclude_unset=True)) for curve in content.curves]
    return Report(content.about, tuple(findings), tuple(curves), columns)


def _finding(values: dict[str, Any]) -> Finding:
    objects = {
        "scope": Scope(**values["scope"]),
        "method": tuple(map(_term, values["method"])),
        "assumptions": tuple(map(_term, values["assumptions"])),
        "game": values["game"] and _term(values["game"]),
        "reason": values["reason"] and _term(values["reason"]),
    }
    return Finding(**{**values, **objects})


def _term(values: dict[str, Any]) -> Term:
    return Term(values["id"], **values["values"])


def _curve(values: dict[str, Any]) -> Curve:
    verdict = values["verdict"]
    objects = {
        "tradeoff": from_dict(values["tradeoff"]),
        "verdict": None if verdict is None else _verdict(verdict),
        "scope": Scope(**values["scope"]),
    }
    return Curve(**{**values, **objects})


def _verdict(values: dict[str, Any]) -> Verdict:
    kind = Claim if values["training"] is None else AccountantEpsilon
    objects = {
        "claim": kind(**values["claim"]),
        "reason": values["reason"] and _term(values["reason"]),
        "training": values["training"] and _term(values["training"]),
    }
    return Verdict(**{**values, **objects})


def _first(error: ValidationError, content: Any) -> str:
    """Write the first complaint of pydantic in one line."""
    complaint = error.errors(include_url=False)[0]
    kind, steps = complaint["type"], complaint["loc"]
    if kind in ("missing", "extra_forbidden"):
        place, key = _place(steps[:-1], content), one_line(str(steps[-1]), 60)
        text = f"the key {key!r} is missing" if kind == "missing" else f"unknown key {key!r}"
    else:
        place = _place(steps, content)
        text = complaint["msg"].removeprefix("Value error, ")
        if kind != "value_error":
            text = f"must be {text.removeprefix('Input should be ')}, got {_shown(complaint['input'])}"
    return f"{place}: {text}" if place else text


def _place(steps: Sequence[int | str], content: Any) -> str:
    """Join the keys and rows of a place; pydantic also names the alternatives that it tried."""
    place = ""
    for step in steps:
        if isinstance(content, list) and isinstance(step, int):
            place, content = f"{place}[{step}]", content[step]
        elif isinstance(content, dict) and step in content:
            place, content = f"{place}.{step}", content[step]
    return one_line(place.lstrip("."), 100)


def _shown(value: Any) -> str:
    return one_line(json.dumps(value, ensure_ascii=True, default=str), 40)


class WithoutTitles(GenerateJsonSchema):
    """Fields are named by their keys."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """No field has a title."""
        return False


def schema() -> dict[str, Any]:
    """Generate the JSON Schema (draft 2020-12) of report.json.

    >>> len(schema()["oneOf"])
    4
    """
    kinds, definitions = models_json_schema(
        [(model, "validation") for model in KINDS.values()], schema_generator=WithoutTitles
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "leakbound report",
        "description": "Infinities are the strings inf and -inf; there is no NaN.",
        "oneOf": [kinds[model, "validation"] for model in KINDS.values()],
        **definitions,
    }


if __name__ == "__main__":
    print(json.dumps(schema(), indent=1))
