"""What the files of ledgers hold: the fields of each, and what a value may be.

A content is checked as a whole before a part of it is used, and an error names the first value that is wrong in one
line. Arrays are bytes in base 64; their size is compared with the one that is expected before they are decoded, so that
no file makes a reader allocate more memory than the text that it already holds.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from jaxtyping import Num, UInt8
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from leakbound.core.checks import printable

Array = np.ndarray
# Formats have our former name, so that older ledgers are read.
FORMAT_OF_DRAW = "leakscope ledger 2"
FORMAT_OF_BUDGET = "leakscope ledger 4"
WITHOUT_KEY = "leakscope ledger 1"  # of a draw; it is refused
FORMATS_OF_DRAWS = (WITHOUT_KEY, FORMAT_OF_DRAW)


def _short(text: str) -> str:
    if not 0 < len(text) <= 100 or not text.isascii() or not text.isprintable():
        raise ValueError("it must be a text of 1 to 100 printable letters")
    return text


Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]  # 32 bytes
ShortText = Annotated[str, AfterValidator(_short)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, lt=2**63)]
Place = Annotated[int, Field(ge=0, lt=2**63)]
Design = Literal["leave-one-out", "dp"]
# the ledgers of the retired design per-instance are read, to know whose data they hold, and never go on
OfAnyDesign = Literal["leave-one-out", "dp", "per-instance"]


class Row(BaseModel):
    """A mapping of a file with these keys and no others, whose values have these types and no others."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class HashesRow(Row):
    """Hashes of the people of one file, in order."""

    n: Count
    hashes: str


class PeopleRow(Row):
    """Who is in the files that a ledger has seen."""

    identifiers: list[HashesRow]
    contents: list[HashesRow]


NOBODY = PeopleRow(identifiers=[], contents=[])  # as in a file of an older version


class QueryOfDrawRow(Row):
    """A query that was declared for a draw."""

    statistic: dict[str, Any] = Field(min_length=1)
    eta: Positive
    noise: dict[str, Any] | None


class ReleaseOfDrawRow(Row):
    """A release from a draw, with the lengths of its shifts."""

    query: str
    scale: Positive
    d: Count
    pairs: list[Count] = Field(min_length=2, max_length=2)
    lengths: str
    subject: str
    release: str
    published: bool


class DrawRow(Row):
    """The file of a draw."""

    format: Literal["leakscope ledger 2"]
    key: Digest
    data: ShortText
    n: Annotated[int, Field(ge=2, lt=2**63)]
    member: str
    coupling: ShortText
    promise: Literal["every", "average"]
    seed: Place | None
    separating_fraction: Annotated[float, Field(gt=0, le=1)]
    people: PeopleRow = NOBODY
    queries: list[QueryOfDrawRow]
    releases: list[ReleaseOfDrawRow]


class OtherRow(Row):
    """A release of the same people in another ledger."""

    design: Literal["leave-one-out", "dp", "per-instance", "half"]
    date: ShortText | Literal[""]
    number: Count
    digest: Digest


class QueryHead(Row):
    """A query that was declared before the first output."""

    digest: Digest
    eta: Positive
    date: ShortText


class QueryRow(QueryHead):
    """A declared query with its table, until it is released."""

    table: Digest | None
    kept: list[Count] = Field(max_length=3)  # numbers of units, of columns and of rows, or nothing
    units: str | None
    which: str | None
    values: str | None


class VersionRow(Row):
    """Hashes of the units of a version of the data, in order."""

    n: Count
    units: str


class ReleaseHead(Row):
    """What a release is, without what is counted of it."""

    query: Digest
    eta: Positive
    date: ShortText
    subject: Digest
    release: Digest
    noise: Digest
    scale: Positive


class ReleaseRow(ReleaseHead):
    """A release of a budget."""

    statistic: str  # of what retired designs asked for
    version: Place | None
    d: Count
    rows: Count
    which: str | None
    values: str
    declared: bool
    published: bool
    others: list[OtherRow]
    knows_people: bool = False  # ledgers of older versions have no such key


class BudgetRow(Row):
    """The file of a budget."""

    format: Literal["leakscope ledger 4"]
    key: Digest
    insecure: bool
    design: OfAnyDesign
    budget: Annotated[float, Field(gt=0, lt=0.5)]
    reserve: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None
    people: PeopleRow = NOBODY
    queries: list[QueryRow]
    versions: list[VersionRow]
    releases: list[ReleaseRow]


class ListedRow(Row):
    """A ledger of the list of those that a user has begun."""

    path: str
    date: str
    promise: str


class ListRow(Row):
    """The list of ledgers."""

    format: Literal["leakbound ledgers 1"] = "leakbound ledgers 1"
    ledgers: list[ListedRow]


R = TypeVar("R", bound=Row)


def checked(kind: type[R], content: Mapping[str, Any]) -> R:
    """Check a content; an error is one line.

    >>> checked(HashesRow, {"n": 0, "hashes": ""})
    Traceback (most recent call last):
    ValueError: n: Input should be greater than or equal to 1
    """
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        complaint = error.errors(include_url=False, include_input=False, include_context=False)[0]
    path = complaint["loc"]
    if complaint["type"] == "extra_forbidden":
        path = path[:-1]
    where = ""
    for step in path:
        where += f"[{step}]" if isinstance(step, int) else f".{step}"
    shown = printable(where.removeprefix("."))[:100]
    raise ValueError(f"{shown or 'it'}: {complaint['msg'].removeprefix('Value error, ')}")


def decoded(name: str, text: str, shape: tuple[int, ...], dtype: str) -> Num[Array, "*shape"] | UInt8[Array, "*shape"]:
    """Read an array of a shape from the base 64 of its bytes in C order.

    >>> decoded("units", "AAE=", (2,), "u1")
    array([0, 1], dtype=uint8)
    """
    number = np.dtype(dtype)
    n_bytes = number.itemsize * math.prod(shape)
    size = " x ".join(f"{each:,}" for each in shape)
    if len(text) != 4 * -(-n_bytes // 3):
        raise ValueError(f"{name} must be {size} numbers in base 64")
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(f"{name} must be in base 64") from None
    if len(content) != n_bytes:
        raise ValueError(f"{name} must be {n_bytes:,} bytes in base 64")
    return np.frombuffer(content, number).astype(number.newbyteorder("=")).reshape(shape)
