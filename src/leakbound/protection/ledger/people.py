"""By what a ledger knows its people again: keyed hashes of their identifiers, and of the contents of their records.

The same records under another name of their file, in another format or folder, have the same contents. A column more or
less gives other contents: such people are known by their identifiers alone.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from jaxtyping import UInt8, UInt64

from leakbound.core.seeds import entropy
from leakbound.data.content import keyed_numbers
from leakbound.protection.ledger.schema import HashesRow, PeopleRow, decoded

Array = np.ndarray
IDENTIFIERS, RECORDS = "identifiers", "records"
_EXPECTED = 64  # records of the smaller file that are drawn of the larger one, if all of them are there
_TELLS = 1 / 3  # a fraction of known records above which all are looked up, and not a sample


@final
@dataclass(frozen=True, eq=False)
class PeopleNames:
    """Who is in a file, by names of 16 bytes."""

    contents: UInt8[Array, "N 16"] = field(repr=False)
    identifiers: UInt8[Array, "n 16"] | None = field(default=None, repr=False)


@final
@dataclass(frozen=True)
class Overlap:
    """How many of a file are in a ledger."""

    what: str
    n_known: int
    n_file: int
    n_ledger: int
    is_drawn: bool = False

    @property
    def n_smaller(self) -> int:
        """The number of the smaller of the two files."""
        return min(self.n_file, self.n_ledger)

    @property
    def fraction(self) -> float:
        """The fraction of the smaller file that is in both."""
        return self.n_known / self.n_smaller


@final
@dataclass(frozen=True, eq=False)
class People:
    """Who is in the files that a ledger has seen."""

    identifiers: tuple[UInt64[Array, " _"], ...] = field(default=(), repr=False)
    contents: tuple[UInt64[Array, " _"], ...] = field(default=(), repr=False)

    @property
    def n_numbers(self) -> int:
        """How many numbers these are."""
        return sum(len(numbers) for numbers in (*self.identifiers, *self.contents))

    def joined(self, key: bytes, names: PeopleNames) -> People:
        """Add those of a file."""
        return People(
            _with(self.identifiers, key, IDENTIFIERS, names.identifiers),
            _with(self.contents, key, RECORDS, names.contents),
        )

    def overlaps(self, key: bytes, names: PeopleNames, n_drawn: int | None = None) -> list[Overlap]:
        """Compare the people of a file with those of the ledger, by identifiers and by contents."""
        pairs = ((IDENTIFIERS, self.identifiers, names.identifiers), (RECORDS, self.contents, names.contents))
        found = []
        for what, files, units in pairs:
            if files and units is not None:
                # n_drawn units are looked up first, and all only if a third of the smaller file seems to be known
                of_files = [_overlap_with(key, what, seen, units, n_drawn) for seen in files]
                found.append(max(of_files, key=lambda overlap: overlap.fraction))
        return found

    @property
    def content(self) -> dict[str, Any]:
        """Plain JSON with arrays."""
        return {
            name: [{"n": len(numbers), "hashes": numbers.astype("<u8", copy=False)} for numbers in files]
            for name, files in (("identifiers", self.identifiers), ("contents", self.contents))
        }

    @classmethod
    def of_row(cls, row: PeopleRow) -> People:
        """Read the people of a ledger; nobody from one of an older version, which has none."""
        return cls(_decoded("people.identifiers", row.identifiers), _decoded("people.contents", row.contents))


def _numbers_of(key: bytes, what: str) -> Callable[[UInt8[Array, "n 16"]], UInt64[Array, " n"]]:
    """Return the hash of one purpose."""
    of_purpose = hashlib.blake2b(key=key, person=what.encode(), digest_size=16).digest()
    return lambda names: keyed_numbers(of_purpose, names)


def _with(
    files: Sequence[UInt64[Array, " _"]], key: bytes, what: str, names: UInt8[Array, "n 16"] | None
) -> tuple[UInt64[Array, " _"], ...]:
    """Add a file, if it was not seen before."""
    if names is None:
        return tuple(files)
    numbers = np.sort(_numbers_of(key, what)(names))
    if any(np.array_equal(numbers, seen) for seen in files):
        return tuple(files)
    return (*files, numbers)


def _overlap_with(
    key: bytes, what: str, seen: UInt64[Array, " m"], names: UInt8[Array, "n 16"], n_drawn: int | None
) -> Overlap:
    numbers_of = _numbers_of(key, what)
    return overlap_of(what, names, len(seen), lambda units: int(np.isin(numbers_of(units), seen).sum()), n_drawn)


def overlap_of(
    what: str,
    names: UInt8[Array, "n 16"],
    n_ledger: int,
    n_known: Callable[[UInt8[Array, "_ 16"]], int],
    n_drawn: int | None = None,
) -> Overlap:
    """Count how many of a file are known, of those that are drawn first where not all are looked up."""
    n_file = len(names)
    if n_drawn is not None:
        n_drawn = max(n_drawn, _EXPECTED * n_file // n_ledger)
    if n_drawn is not None and n_drawn < n_file:
        drawn = entropy().choice(n_file, n_drawn, replace=False)
        estimate = math.ceil(n_known(names[drawn]) / n_drawn * n_file)
        overlap = Overlap(what, estimate, n_file, n_ledger, is_drawn=True)
        if overlap.fraction < _TELLS:
            return overlap
    return Overlap(what, n_known(names), n_file, n_ledger)


def _decoded(name: str, rows: Sequence[HashesRow]) -> tuple[UInt64[Array, " _"], ...]:
    files = []
    for place, row in enumerate(rows):
        numbers = decoded(f"{name}[{place}].hashes", row.hashes, (row.n,), "<u8")
        if not (numbers[1:] >= numbers[:-1]).all():
            raise ValueError(f"{name}[{place}].hashes must be in order")
        files.append(numbers)
    return tuple(files)
