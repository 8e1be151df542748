"""What all ledgers share: a private file with a key, the people it has seen, queries, and releases in their order.

The noise of a release is a function of the key and of everything that its bytes depend on (``keyed``). So a ledger
that was restored from an earlier copy gives the same bytes for the same release, where fresh noise could be averaged
out. That it was restored cannot be detected: what was released in between is missing from it, and from every joint
bound that it gives.

A release is counted *before* its value is published, and marked as published *after* that. A kill in between leaves an
entry without a release, never a release without an entry; the same query then gives the same bytes.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar, final

import numpy as np
from jaxtyping import UInt8

from leakbound.core.checks import positive
from leakbound.files import private_file
from leakbound.protection.ledger.people import Overlap, People, PeopleNames

Array = np.ndarray
L = TypeVar("L", bound="Ledger")


@final
@dataclass(frozen=True)
class Query:
    """What will be asked of the data, declared before anything is released."""

    # everything that its output depends on, and whatever else decides which noise it gets, as plain JSON
    statistic: Mapping[str, Any]
    eta: float
    # a noise that was chosen beforehand, as families.describe gives it; None: the scale follows from eta and the rest
    noise: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if not self.statistic:
            raise ValueError("a statistic without a description (a lambda) cannot be entered in a ledger")
        positive("eta", self.eta)

    @property
    def digest(self) -> str:
        """The digest of the statistic, its promise and its noise."""
        return private_file.digest_of(self.content)

    @property
    def content(self) -> dict[str, Any]:
        """Plain JSON of all that decides."""
        noise = None if self.noise is None else dict(self.noise)
        return {"statistic": dict(self.statistic), "eta": float(self.eta), "noise": noise}


@final
@dataclass(frozen=True)
class OtherRelease:
    """A release of the same people, or under another design of the same data, which is in another ledger."""

    design: str
    date: str
    number: int
    digest: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Ledger(ABC):
    """A file of releases that add up."""

    path: Path
    design: str  # how the promise of its releases is kept
    key: bytes = field(repr=False)
    releases: tuple[Any, ...] = ()
    people: People = field(default_factory=People, repr=False)  # nobody in a ledger of an older version
    digest: str = ""  # of the file; empty where there is none yet

    @property
    @abstractmethod
    def for_tests(self) -> bool:
        """Whether everybody can compute its key, from a seed that was given."""

    @property
    @abstractmethod
    def state(self) -> str:
        """What it has spent, in words that follow its name."""

    @property
    @abstractmethod
    def content(self) -> Mapping[str, Any]:
        """What its file holds: plain JSON with arrays, which are written as their bytes in base 64."""

    @classmethod
    @abstractmethod
    def of_content(cls: type[L], path: Path, content: Mapping[str, Any], digest: str) -> L:
        """Make the ledger of the content of its file, whatever its data."""

    @property
    def others(self) -> tuple[OtherRelease, ...]:
        """Its releases, as the certificates of other ledgers name them."""
        return tuple(
            OtherRelease(self.design, getattr(release, "date", ""), place + 1, self.entry_digest(place))
            for place, release in enumerate(self.releases)
        )

    def overlaps(
        self, names: PeopleNames, units: UInt8[Array, "n 16"] | None = None, n_drawn: int | None = None
    ) -> Sequence[Overlap]:
        """Compare the people of a file with those of this ledger: see `People.overlaps`."""
        return self.people.overlaps(self.key, names, n_drawn)

    def entry_digest(self, place: int) -> str:
        """Compute what a certificate names of an entry: a keyed hash of its number and its release.

        Two copies of a ledger that went on with different releases differ in it.
        """
        name = f"entry {place + 1} {self.releases[place].release}"
        return hmac.digest(self.key, name.encode(), "sha256").hex()

    def published(self: L, place: int) -> L:
        """Mark a release as published; the file is written before this returns."""
        if self.releases[place].published:
            return self
        releases = list(self.releases)
        releases[place] = replace(releases[place], published=True)
        return replace(self, releases=tuple(releases)).written()

    def mark_published(self, place: int) -> None:
        """Mark a release as published in the file, which another process may have written since."""
        # The value is public already: a failure here must not look as if the release had not happened.
        try:
            private_file.retried(lambda: self.of_content(*read(self.path)).published(place))
        except (OSError, ValueError) as reason:
            raise OSError(
                f"the release is written, but its ledger could not note that: {reason}; the same command gives the "
                "same release once more"
            ) from None

    def written(self: L) -> L:
        """Write the file in the place of the one that was read; a ledger without a file makes one."""
        try:
            digest = private_file.write(self.path, self.content, self.digest or None)
        except private_file.ChangedMeanwhile:
            what = "was changed since it was opened" if self.digest else "exists already"
            raise ValueError(
                f"{self.path} {what}: another release was made meanwhile; the same command again counts this one "
                "beside it"
            ) from None
        return replace(self, digest=digest)


def insecure_key(seed: int) -> bytes:
    """Compute the key of a ledger for tests, which everybody can compute."""
    return hashlib.sha256(f"leakscope insecure key {seed}".encode()).digest()  # our former name: see the formats


def read(path: str | os.PathLike[str]) -> tuple[Path, Mapping[str, Any], str]:
    """Read the content of the file of a ledger, and its digest."""
    content, digest = private_file.read(Path(path))
    return Path(path), content, digest
