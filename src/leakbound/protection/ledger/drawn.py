"""A private record of all releases from one draw of the data, and what they promise together.

Releases of the same D add up, and their joint promise can only be computed from D and the shifts of each release. The
file names the members of D and holds the key of their noise: it is for its owner alone, and never part of a
certificate.

The noise of a release is a function of that key and of everything that its bytes depend on (``keyed``). So a ledger
that was restored from an earlier copy gives the same bytes for the same release, where fresh noise could be averaged
out. That it was restored cannot be detected: what was released in between is missing from it, and from every joint
bound that it gives.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, final

import numpy as np
from jaxtyping import Bool, Float

from leakbound.core import plain_json
from leakbound.core.checks import one_of, positive
from leakbound.core.types import Noise
from leakbound.files import private_file
from leakbound.noise.families import describe
from leakbound.noise.gaussian import GaussianNoise
from leakbound.noise.norms import EUCLIDEAN
from leakbound.noise.shifts import Shifts
from leakbound.protection.ledger.keyed import KEY_BYTES, new_key
from leakbound.protection.ledger.people import People, PeopleNames

Array = np.ndarray
# Formats and keys have our former name, so that older ledgers are read and their noise stays.
_FORMAT = "leakscope ledger 2"
_WITHOUT_KEY = "leakscope ledger 1"
FORMATS = (_WITHOUT_KEY, _FORMAT)
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
        return private_file.digest_of(self._content)

    @property
    def _content(self) -> dict[str, Any]:
        noise = None if self.noise is None else dict(self.noise)
        return {"statistic": dict(self.statistic), "eta": float(self.eta), "noise": noise}


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
@dataclass(frozen=True, eq=False)
class Ledger:
    """A draw, the queries declared for it, and the releases so far.

    No joint bound covers a release whose query was chosen after an earlier output, because its shift depends on the
    noise of the first. So queries are declared before the first release, each as often as it will be released, and
    released in that order. What was published at any time is then a function of the first t releases, whose joint
    shift does not depend on any output, even if somebody stops early because of an output.

    An entry is appended *before* its value is published, and marked as published *after* that. A kill in between
    leaves an entry without a release, never a release without an entry; the same query then gives the same bytes.

    >>> import tempfile
    >>> from leakbound.noise import eta_bound, swap_linear
    >>> x, member = np.array([[0.0], [1.0], [3.0], [7.0]]), np.array([True, False, True, False])
    >>> mean, squares = Query({"statistic": "mean"}, eta=0.1), Query({"statistic": "squares"}, eta=0.1)
    >>> path = Path(tempfile.mkdtemp()) / "ledger.json"
    >>> ledger = Ledger.create(path, Draw("digest", member, "swap"), [mean, squares])
    >>> ledger = ledger.append(Entry(mean, GaussianNoise(8.0), swap_linear(x, k=2)))
    >>> ledger = ledger.append(Entry(squares, GaussianNoise(60.0), swap_linear(x**2, k=2)))
    >>> eta_bound(Ledger.open(path, "digest").joint_shifts(), GaussianNoise(1.0)).round(3).tolist()
    [0.057, 0.05, 0.05, 0.103]
    """

    path: Path
    draw: Draw
    queries: tuple[Query, ...]
    releases: tuple[Released, ...]
    digest: str
    key: bytes = field(repr=False)
    people: People = field(default_factory=People, repr=False)

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        draw: Draw,
        queries: Sequence[Query],
        key: bytes | None = None,
        names: PeopleNames | None = None,
    ) -> Ledger:
        """Make a new file, with a new key."""
        key = new_key() if key is None else key
        people = People() if names is None else People().joined(key, names)
        return cls(Path(path), draw, tuple(queries), (), "", key, people)._written()

    @classmethod
    def open(cls, path: str | os.PathLike[str], data: str) -> Ledger:
        """Read the ledger of a file, for the data with this digest."""
        ledger = cls.of_content(Path(path), *private_file.read(Path(path)))
        if ledger.draw.data != data:
            raise ValueError(f"{path} belongs to other data: digest {ledger.draw.data[:12]}, not {data[:12]}")
        return ledger

    @classmethod
    def of_content(cls, path: Path, content: Mapping[str, Any], digest: str) -> Ledger:
        """Make the ledger of the content of its file, whatever its data."""
        if content.get("format") == _WITHOUT_KEY:
            raise ValueError(
                f"{path} is a ledger of an older version, which kept no key for its noise: start another ledger, which "
                "draws the data anew"
            )
        try:
            return _decoded(path, content, digest)
        except ValueError as reason:
            raise ValueError(f"{path} is no ledger of this version: {reason}") from None

    def entry_digest(self, place: int) -> str:
        """Compute the name of an entry that a certificate may print: see `digest_of_entry`."""
        return digest_of_entry(self.key, place, self.releases[place].release)

    def declare(self, queries: Sequence[Query]) -> Ledger:
        """Add queries, as long as nothing was released."""
        if self.releases:
            raise ValueError(
                f"{len(self.releases)} of {len(self.queries)} queries of {self.path} were released: a query chosen "
                "after an output is outside of the joint certificate; draw the data anew"
            )
        return replace(self, queries=(*self.queries, *queries))._written()

    def append(self, entry: Entry) -> Ledger:
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
        return replace(self, releases=(*self.releases, released))._written()

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

    def published(self, place: int) -> Ledger:
        """Mark a release as published; the file is written before this returns."""
        if self.releases[place].published:
            return self
        releases = list(self.releases)
        releases[place] = replace(releases[place], published=True)
        return replace(self, releases=tuple(releases))._written()

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

    def _written(self) -> Ledger:
        return replace(self, digest=write_ledger(self.path, _encoded(self), self.digest))


def write_ledger(path: Path, content: Mapping[str, Any], replaces: str) -> str:
    """Write a ledger in the place of the one that was read."""
    try:
        return private_file.write(path, content, replaces or None)
    except private_file.ChangedMeanwhile:
        what = "was changed since it was opened" if replaces else "exists already"
        raise ValueError(
            f"{path} {what}: another release was made meanwhile; the same command again counts this one beside it"
        ) from None


def mark_published(open_again: Callable[[], Any], place: int) -> None:
    """Mark a release of a ledger as published; another process may have written the ledger since."""
    # The value is public already: a failure here must not look as if the release had not happened.
    try:
        private_file.retried(lambda: open_again().published(place))
    except (OSError, ValueError) as reason:
        raise OSError(
            f"the release is written, but its ledger could not note that: {reason}; the same command gives the same "
            "release once more"
        ) from None


def digest_of_entry(key: bytes, place: int, release: str) -> str:
    """Compute what a certificate names of an entry of a ledger: a keyed hash of its number and its release.

    Two copies of a ledger that went on with different releases differ in it.
    """
    return hmac.digest(key, f"entry {place + 1} {release}".encode(), "sha256").hex()


def insecure_key(seed: int) -> bytes:
    """Compute the key of a ledger for tests, which everybody can compute."""
    return hashlib.sha256(f"leakscope insecure key {seed}".encode()).digest()  # our former name: see the formats


def _encoded(ledger: Ledger) -> dict[str, Any]:
    """Convert to plain JSON; lengths as bytes of little-endian doubles, infinities included."""
    draw = ledger.draw
    return {
        "format": _FORMAT,
        "key": ledger.key.hex(),
        "data": draw.data,
        "n": len(draw.member),
        "member": np.packbits(draw.member).tobytes().hex(),
        "coupling": draw.coupling,
        "promise": draw.promise,
        "seed": draw.seed,
        "separating_fraction": float(draw.separating_fraction),
        "people": ledger.people.encoded(),
        "queries": [query._content for query in ledger.queries],
        "releases": [
            {
                "query": release.query,
                "scale": float(release.scale),
                "d": int(release.d),
                "pairs": list(release.lengths.shape),
                "lengths": base64.b64encode(release.lengths.astype("<f8").tobytes()).decode(),
                "subject": release.subject,
                "release": release.release,
                "published": release.published,
            }
            for release in ledger.releases
        ],
    }


def _decoded(path: Path, content: Mapping[str, Any], digest: str) -> Ledger:
    """Convert back from `_encoded`; every value is checked before it is used, every size before memory is allocated."""
    keys = "format key data n member coupling promise seed separating_fraction queries releases people"
    top = plain_json.mapping("it", {"people": None, **content}, keys)
    if top["format"] != _FORMAT:
        raise ValueError(f"its format is not {_FORMAT!r}")
    key = bytes.fromhex(plain_json.hexadecimal("key", top["key"], KEY_BYTES))
    draw = _decoded_draw(top)
    queries = []
    for number, value in enumerate(plain_json.sequence("queries", top["queries"])):
        queries.append(_decoded_query(f"queries[{number}]", value))
    releases = []
    for number, value in enumerate(plain_json.sequence("releases", top["releases"])):
        releases.append(_decoded_release(f"releases[{number}]", value, len(draw.member)))
    if [release.query for release in releases] != [query.digest for query in queries[: len(releases)]]:
        raise ValueError("its releases are not the first of its queries")
    if len({release.lengths.shape for release in releases}) > 1:
        raise ValueError("its releases differ in the number of pairs")
    return Ledger(path, draw, tuple(queries), tuple(releases), digest, key, People.decoded(content))


def _decoded_draw(top: Mapping[str, Any]) -> Draw:
    n = plain_json.whole_number("n", top["n"], 2)
    packed = bytes.fromhex(plain_json.hexadecimal("member", top["member"], -(-n // 8)))
    bits = np.unpackbits(np.frombuffer(packed, np.uint8))
    if bits[n:].any():
        raise ValueError(f"member names records beyond the {n:,} that there are")
    promise = top["promise"]
    if promise not in _PROMISES:
        raise ValueError("promise must be every or average")
    seed = None if top["seed"] is None else plain_json.whole_number("seed", top["seed"], 0)
    fraction = plain_json.positive("separating_fraction", top["separating_fraction"])
    if fraction > 1:
        raise ValueError(f"separating_fraction must be at most 1, got {fraction:g}")
    member = bits[:n].astype(bool)
    return Draw(
        plain_json.short_text("data", top["data"]),
        member,
        plain_json.short_text("coupling", top["coupling"]),
        promise,
        seed,
        fraction,
    )


def _decoded_query(name: str, value: Any) -> Query:
    query = plain_json.mapping(name, value, "statistic eta noise")
    statistic = _mapping(f"{name}.statistic", query["statistic"])
    noise = None if query["noise"] is None else _mapping(f"{name}.noise", query["noise"])
    return Query(statistic, plain_json.positive(f"{name}.eta", query["eta"]), noise)


def _decoded_release(name: str, value: Any, n: int) -> Released:
    release = plain_json.mapping(name, value, "query scale d pairs lengths subject release published")
    pairs = [
        plain_json.whole_number(f"{name}.pairs", size, 1)
        for size in plain_json.sequence(f"{name}.pairs", release["pairs"])
    ]
    if len(pairs) != 2 or pairs[0] not in (1, n):
        raise ValueError(f"{name}.pairs must be a number of records (1 or {n:,}) and a number of pairs")
    packed = plain_json.text(f"{name}.lengths", release["lengths"])
    if len(packed) != 4 * -(-8 * pairs[0] * pairs[1] // 3):  # length of so many bytes in base 64
        raise ValueError(f"{name}.lengths are not those of {pairs[0]:,} x {pairs[1]:,} pairs")
    try:
        lengths = np.frombuffer(base64.b64decode(packed, validate=True), "<f8").astype(float).reshape(pairs)
    except (binascii.Error, ValueError):
        raise ValueError(f"{name}.lengths are not numbers in base 64") from None
    if not (lengths >= 0).all():
        raise ValueError(f"{name}.lengths must be >= 0")
    published = plain_json.truth(f"{name}.published", release["published"])
    return Released(
        plain_json.text(f"{name}.query", release["query"]),
        lengths,
        plain_json.positive(f"{name}.scale", release["scale"]),
        plain_json.whole_number(f"{name}.d", release["d"], 1),
        plain_json.text(f"{name}.subject", release["subject"]),
        plain_json.text(f"{name}.release", release["release"]),
        published,
    )


def _mapping(name: str, value: Any) -> dict[str, Any]:
    """Check that a value is a mapping, with any keys."""
    if not isinstance(value, dict):
        raise ValueError(f"{name} must be a mapping, got {plain_json.kind(value)}")
    return value
