"""A private record of all releases from one draw of the data, and what they promise together.

Releases of the same D add up, and their joint promise can only be computed from D and the shifts of each release. The
file names the members of D and holds the key of their noise: it is for its owner alone, and never part of a
certificate.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, final

import numpy as np
from jaxtyping import Bool, Float

from leakbound.core.checks import one_of
from leakbound.core.types import Noise
from leakbound.noise.families import describe
from leakbound.noise.gaussian import GaussianNoise
from leakbound.noise.norms import EUCLIDEAN
from leakbound.noise.shifts import Shifts
from leakbound.protection.ledger.keyed import new_key
from leakbound.protection.ledger.ledger import Ledger, Query, read
from leakbound.protection.ledger.people import People, PeopleNames
from leakbound.protection.ledger.schema import FORMAT_OF_DRAW, WITHOUT_KEY, DrawRow, ReleaseOfDrawRow, checked, decoded

Array = np.ndarray
_PROMISES = ("every", "average")


@final
@dataclass(frozen=True, eq=False)
class Draw:
    """What all releases of a ledger share."""

    data: str
    member: Bool[Array, " n"] = field(repr=False)
    coupling: str
    promise: Literal["every", "average"] = "every"
    seed: int | None = None
    separating_fraction: float = 1.0

    def __post_init__(self) -> None:
        if not self.data:
            raise ValueError("a ledger needs the digest of the data")
        if not 1 <= self.member.sum() <= len(self.member) - 1:
            raise ValueError(f"D must hold from 1 to n - 1 = {len(self.member) - 1} records, got {self.member.sum()}")
        one_of("promise", self.promise, _PROMISES)

    @property
    def prior(self) -> float:
        """k/n."""
        return float(self.member.mean())


@final
@dataclass(frozen=True, eq=False)
class Entry:
    """One release."""

    query: Query
    noise: Noise
    shifts: Shifts
    seed: int | None = None
    scale_seed: int | None = None
    subject: str = ""
    release: str = ""


@final
@dataclass(frozen=True, eq=False)
class Released:
    """The part of an entry that the file keeps."""

    query: str
    lengths: Float[Array, "R P"] = field(repr=False)
    scale: float
    d: int
    subject: str = ""
    release: str = ""
    published: bool = False


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class DrawnLedger(Ledger):
    """A draw, the queries declared for it, and the releases so far.

    No joint bound covers a release whose query was chosen after an earlier output, because its shift depends on the
    noise of the first. So queries are declared before the first release, each as often as it will be released, and
    released in that order. What was published at any time is then a function of the first t releases, whose joint
    shift does not depend on any output, even if somebody stops early because of an output.

    >>> import tempfile
    >>> from leakbound.noise import eta_bound, swap_linear
    >>> x, member = np.array([[0.0], [1.0], [3.0], [7.0]]), np.array([True, False, True, False])
    >>> mean, squares = Query({"statistic": "mean"}, eta=0.1), Query({"statistic": "squares"}, eta=0.1)
    >>> path = Path(tempfile.mkdtemp()) / "ledger.json"
    >>> ledger = DrawnLedger.create(path, Draw("digest", member, "swap"), [mean, squares])
    >>> ledger = ledger.append(Entry(mean, GaussianNoise(8.0), swap_linear(x, k=2)))
    >>> ledger = ledger.append(Entry(squares, GaussianNoise(60.0), swap_linear(x**2, k=2)))
    >>> eta_bound(DrawnLedger.open(path, "digest").joint_shifts(), GaussianNoise(1.0)).round(3).tolist()
    [0.057, 0.05, 0.05, 0.103]
    """

    design: str = "half"  # whatever k is
    draw: Draw
    queries: tuple[Query, ...]
    releases: tuple[Released, ...] = ()

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        draw: Draw,
        queries: Sequence[Query],
        key: bytes | None = None,
        names: PeopleNames | None = None,
    ) -> DrawnLedger:
        """Make a new file, with a new key."""
        key = new_key() if key is None else key
        people = People() if names is None else People().joined(key, names)
        return cls(path=Path(path), key=key, draw=draw, queries=tuple(queries), people=people).written()

    @classmethod
    def open(cls, path: str | os.PathLike[str], data: str) -> DrawnLedger:
        """Read the ledger of a file, for the data with this digest."""
        ledger = cls.of_content(*read(path))
        if ledger.draw.data != data:
            raise ValueError(f"{path} belongs to other data: digest {ledger.draw.data[:12]}, not {data[:12]}")
        return ledger

    @classmethod
    def of_content(cls, path: Path, content: Mapping[str, Any], digest: str) -> DrawnLedger:
        """Make the ledger of the content of its file, whatever its data."""
        if content.get("format") == WITHOUT_KEY:
            raise ValueError(
                f"{path} is a ledger of an older version, which kept no key for its noise: start another ledger, which "
                "draws the data anew"
            )
        try:
            return _decoded(path, checked(DrawRow, content), digest)
        except ValueError as reason:
            raise ValueError(f"{path} is no ledger of this version: {reason}") from None

    @property
    def for_tests(self) -> bool:
        """Whether its draw is from a seed that was given."""
        return self.draw.data.startswith("insecure:")

    @property
    def state(self) -> str:
        """How many releases there are: it has no budget."""
        return f"which is of promise drawn (releases: {len(self.releases)})"

    def declare(self, queries: Sequence[Query]) -> DrawnLedger:
        """Add queries, as long as nothing was released."""
        if self.releases:
            raise ValueError(
                f"{len(self.releases)} of {len(self.queries)} queries of {self.path} were released: a query chosen "
                "after an output is outside of the joint certificate; draw the data anew"
            )
        return replace(self, queries=(*self.queries, *queries)).written()

    def append(self, entry: Entry) -> DrawnLedger:
        """Add a release; the file is written before this returns."""
        self._check_query(entry.query)
        if not isinstance(entry.noise, GaussianNoise):
            raise ValueError(f"only Gaussian releases add up pair by pair, got {type(entry.noise).__name__}")
        if entry.query.noise is not None and dict(entry.query.noise) != describe(entry.noise):
            raise ValueError(
                f"the noise of scale {entry.noise.scale:g} is not the one that was declared in {self.path}: family, "
                "scale and shape are part of the query"
            )
        self._check_shifts(entry.shifts, entry.noise)
        self._check_pairs(entry)
        shifts = entry.shifts
        released = Released(
            entry.query.digest, shifts.values, entry.noise.scale, shifts.d, entry.subject, entry.release
        )
        return replace(self, releases=(*self.releases, released)).written()

    def place_of(self, query: Query) -> int:
        """Find the place that a query has among the releases.

        It is that of a release which was begun and not published; else the next place, if the query was declared for
        it; else that of the last release of this query, which is then made once more.
        """
        digest = query.digest
        earlier = [place for place, release in enumerate(self.releases) if release.query == digest]
        unpublished = [place for place in earlier if not self.releases[place].published]
        if unpublished:
            return unpublished[0]
        done = len(self.releases)
        is_next = done < len(self.queries) and self.queries[done].digest == digest
        if earlier and not is_next:
            return earlier[-1]
        self._check_query(query)
        return done

    def joint_shifts(self) -> Shifts:
        """Compute the shifts of all releases together, for Gaussian noise of scale 1.

        Given the pair (D, D') the noises are independent, so the outputs together are one Gaussian whose shift
        has the squared length ``u^2 = sum_i ||v_i||^2_(S_i^-1)/s_i^2``, pair by pair.
        """
        if not self.releases:
            raise ValueError(f"nothing was released under {self.path}")
        lengths = np.zeros_like(self.releases[0].lengths)
        for release in self.releases:
            lengths = np.hypot(lengths, release.lengths / release.scale)
        d, draw = sum(release.d for release in self.releases), self.draw
        joint = Shifts(lengths, draw.coupling, d, EUCLIDEAN, draw.prior, draw.seed is None, draw.promise)
        return replace(joint, separating_fraction=draw.separating_fraction)

    def _check_query(self, query: Query) -> None:
        declared, done = [known.digest for known in self.queries], len(self.releases)
        if query.digest not in declared:
            raise ValueError(
                f"the query was not declared in {self.path} before the first release: chosen after an output it is "
                "outside of the joint certificate"
            )
        if query.digest not in declared[done : done + 1]:
            raise ValueError(f"{done} of {len(declared)} declared queries were released, and this is not the next one")

    def _check_shifts(self, shifts: Shifts, noise: GaussianNoise) -> None:
        draw, n = self.draw, len(self.draw.member)
        for name, value, expected in (
            ("coupling", shifts.coupling, draw.coupling),
            ("promise", shifts.promise, draw.promise),
            ("fraction k/n", shifts.prior, draw.prior),
            ("fraction of separating pairs", shifts.separating_fraction, draw.separating_fraction),
            ("norm", shifts.norm, noise.norm),
        ):
            if value != expected:
                raise ValueError(f"the shifts have the {name} {value}, the ledger and its noise need {expected}")
        if shifts.mean_only:
            raise ValueError("a mean length has no pairs; only shifts measured pair by pair add up")
        if shifts.records is not None:
            raise ValueError("rows that several records share have no pairs; only shifts measured pair by pair add up")
        if shifts.weights is not None and shifts.values.shape[1] not in (n - 1, n * (n - 1)):
            raise ValueError(
                f"the lengths were put into {shifts.values.shape[1]:,} groups and are no pairs any more; "
                f"keep all {n - 1:,}: swap_linear(..., n_values={n - 1})"
            )
        # Lengths are added pair by pair, so all releases need the same pairs in the same places.
        if self.releases and shifts.values.shape != self.releases[0].lengths.shape:
            raise ValueError(
                f"the shifts have {shifts.values.shape} pairs, the ledger {self.releases[0].lengths.shape}"
            )

    def _check_pairs(self, entry: Entry) -> None:
        """Check that all releases have the same pairs and, where these are a sample, that they chose no scale.

        One scale may be chosen on the pairs that certify it, since the bound falls with it. The joint bound of
        several releases depends on several scales, and no such order covers their choice.
        """
        if entry.shifts.exact != (self.draw.seed is None) or entry.seed != self.draw.seed:
            raise ValueError(f"the shifts are of the pairs of seed {entry.seed}, the ledger of seed {self.draw.seed}")
        if len(self.queries) > 1 and self.draw.seed is not None and entry.scale_seed == self.draw.seed:
            raise ValueError(
                f"the scale was chosen on the pairs of seed {entry.seed} that certify {len(self.queries)} releases "
                "jointly; choose it on other pairs"
            )

    @property
    def content(self) -> dict[str, Any]:
        """Plain JSON with arrays; lengths as bytes of little-endian doubles, infinities included."""
        draw = self.draw
        return {
            "format": FORMAT_OF_DRAW,
            "key": self.key.hex(),
            "data": draw.data,
            # who was drawn, a bit for each unit: the same people stay drawn in every later release
            "n": len(draw.member),
            "member": np.packbits(draw.member).tobytes().hex(),
            "coupling": draw.coupling,
            "promise": draw.promise,
            "seed": draw.seed,
            "separating_fraction": float(draw.separating_fraction),
            "people": self.people.content,
            "queries": [query.content for query in self.queries],
            "releases": [
                {
                    "query": release.query,
                    "scale": float(release.scale),
                    "d": int(release.d),
                    "pairs": list(release.lengths.shape),
                    "lengths": release.lengths.astype("<f8"),
                    "subject": release.subject,
                    "release": release.release,
                    "published": release.published,
                }
                for release in self.releases
            ],
        }


def _decoded(path: Path, row: DrawRow, digest: str) -> DrawnLedger:
    """Make the ledger of the rows of its file; every size is checked before memory is allocated."""
    member = _member(row)
    draw = Draw(row.data, member, row.coupling, row.promise, row.seed, row.separating_fraction)
    queries = tuple(Query(query.statistic, query.eta, query.noise) for query in row.queries)
    releases = tuple(_released(f"releases[{place}]", each, row.n) for place, each in enumerate(row.releases))
    if [release.query for release in releases] != [query.digest for query in queries[: len(releases)]]:
        raise ValueError("its releases are not the first of its queries")
    if len({release.lengths.shape for release in releases}) > 1:
        raise ValueError("its releases differ in the number of pairs")
    return DrawnLedger(
        path=path,
        key=bytes.fromhex(row.key),
        draw=draw,
        queries=queries,
        releases=releases,
        people=People.of_row(row.people),
        digest=digest,
    )


def _member(row: DrawRow) -> Bool[Array, " n"]:
    """Read who is in D from bits in hexadecimal digits."""
    n_bytes = -(-row.n // 8)
    if len(row.member) != 2 * n_bytes or not set(row.member) <= set("0123456789abcdef"):
        raise ValueError(f"member must be {n_bytes:,} bytes, as {2 * n_bytes:,} hexadecimal digits")
    bits = np.unpackbits(np.frombuffer(bytes.fromhex(row.member), np.uint8))
    if bits[row.n :].any():
        raise ValueError(f"member names records beyond the {row.n:,} that there are")
    return bits[: row.n].astype(bool)


def _released(name: str, row: ReleaseOfDrawRow, n: int) -> Released:
    n_rows, n_pairs = row.pairs
    if n_rows not in (1, n):
        raise ValueError(f"{name}.pairs must be a number of records (1 or {n:,}) and a number of pairs")
    lengths = decoded(f"{name}.lengths", row.lengths, (n_rows, n_pairs), "<f8")
    if not (lengths >= 0).all():
        raise ValueError(f"{name}.lengths must be >= 0")
    return Released(row.query, lengths, row.scale, row.d, row.subject, row.release, row.published)
