"""The private memory of what was released from one draw of the data, and what all of it together says.

Releases of the same D add up, and only who remembers D and the shifts of each release can say what they promise
jointly. The file names the members of D: it is for its owner alone, and never part of a certificate.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, final

import numpy as np
from jaxtyping import Bool, Float

from leakscope.checks import one_of, positive, real
from leakscope.noise import private_file
from leakscope.noise.gaussian import GaussianNoise
from leakscope.noise.norms import EUCLIDEAN
from leakscope.noise.shifts import Shifts
from leakscope.types import Noise

Array = np.ndarray
_FORMAT = "leakscope ledger 1"
_OF_A_DRAW = ("coupling", "promise", "seed", "share")


@final
@dataclass(frozen=True, eq=False)
class Draw:
    """What all releases of a ledger share.

    Parameters
    ----------
    data : str
        Digest of all n records.
    member : bool array of shape (n,)
        D.
    coupling : str
        Of the shifts.
    promise : {"every", "average"}
    seed : int or None
        Of the pairs on which the shifts are measured; None for an exact coupling, which draws none.
    share : float
        Of the pairs of a row that tell a record apart, as in `Shifts`.
    """

    data: str
    member: Bool[Array, " n"]
    coupling: str
    promise: Literal["every", "average"] = "every"
    seed: int | None = None
    share: float = 1.0

    def __post_init__(self) -> None:
        if not self.data:
            raise ValueError("a ledger needs the digest of the data")
        if not 1 <= self.member.sum() <= len(self.member) - 1:
            raise ValueError(f"D must hold from 1 to n - 1 = {len(self.member) - 1} records, got {self.member.sum()}")
        one_of("promise", self.promise, ("every", "average"))

    @property
    def prior(self) -> float:
        """k/n."""
        return float(self.member.mean())


@final
@dataclass(frozen=True)
class Query:
    """What will be asked of the data, said before anything is released.

    Parameters
    ----------
    statistic : mapping
        The description of the statistic, with everything that its output depends on.
    eta : float
        What the release alone promises.
    """

    statistic: Mapping[str, Any]
    eta: float

    def __post_init__(self) -> None:
        if not self.statistic:
            raise ValueError("a statistic without a description (a lambda) cannot stand in a ledger")
        positive("eta", self.eta)

    @property
    def digest(self) -> str:
        """Of the statistic and its promise."""
        return private_file.digest_of({"statistic": dict(self.statistic), "eta": float(self.eta)})


@final
@dataclass(frozen=True, eq=False)
class Entry:
    """One release.

    Parameters
    ----------
    query : Query
    noise : GaussianNoise
        That was added: its scale and shape.
    shifts : Shifts
        Of the statistic, measured in the norm of the noise on the pairs of the ledger.
    seed : int or None
        Of these pairs; None where the coupling is exact.
    scale_seed : int or None
        Of the pairs on which the scale was chosen; None where it was chosen without sampling.
    """

    query: Query
    noise: Noise
    shifts: Shifts
    seed: int | None = None
    scale_seed: int | None = None


@final
@dataclass(frozen=True, eq=False)
class Released:
    """What the file keeps of an entry: the digest of its query, lengths (R, P) of its shifts, scale, coordinates."""

    query: str
    lengths: Float[Array, "R P"]
    scale: float
    d: int


@final
@dataclass(frozen=True, eq=False)
class Ledger:
    """A draw, the queries declared for it, and the releases so far.

    A release whose query was chosen after an earlier output is outside of every joint bound: its shift depends
    on the noise of the first. So queries are declared before the first release, each as often as it will be
    released, and released in that order; what was published at any time is then a function of the first t
    releases, whose joint shift does not depend on any output, even if somebody stops early because of what came
    out.

    An entry is appended *before* its value is published, so that a kill in between leaves an entry without a
    release, never a release without an entry.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from pathlib import Path
    >>> from leakscope.noise import GaussianNoise, eta_bound, swap_linear
    >>> from leakscope.noise.ledger import Draw, Entry, Ledger, Query
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

    @classmethod
    def create(cls, path: str | os.PathLike[str], draw: Draw, queries: Sequence[Query]) -> Ledger:
        """A new file.

        Raises
        ------
        ValueError
            If the file exists.
        """
        return cls(Path(path), draw, tuple(queries), (), "")._written(None)

    @classmethod
    def open(cls, path: str | os.PathLike[str], data: str) -> Ledger:
        """The ledger of a file, for the data with this digest.

        Raises
        ------
        ValueError
            If the file is missing, open to others, damaged, or belongs to other data.
        """
        content, digest = private_file.read(Path(path))
        try:
            ledger = _decoded(Path(path), content, digest)
        except (KeyError, TypeError, ValueError):
            raise ValueError(f"{path} is no ledger of this version") from None
        if ledger.draw.data != data:
            raise ValueError(f"{path} belongs to other data: digest {ledger.draw.data[:12]}, not {data[:12]}")
        return ledger

    def declare(self, queries: Sequence[Query]) -> Ledger:
        """With further queries, as long as nothing was released.

        Raises
        ------
        ValueError
            After the first release.
        """
        if self.releases:
            raise ValueError(
                f"{len(self.releases)} of {len(self.queries)} queries of {self.path} were released: a query chosen "
                "after an output is outside of the joint certificate; draw the data anew"
            )
        return replace(self, queries=(*self.queries, *queries))._written(self.digest)

    def append(self, entry: Entry) -> Ledger:
        """With one more release; the file is written before this returns.

        Raises
        ------
        ValueError
            If the query is not the next declared one, the noise is not Gaussian, or the shifts are not those of
            the draw: another coupling, promise, share or pairs, or lengths that are no longer pairs.
        """
        self._check_query(entry.query)
        if not isinstance(entry.noise, GaussianNoise):
            raise ValueError(f"only Gaussian releases add up pair by pair, got {type(entry.noise).__name__}")
        self._check_shifts(entry.shifts, entry.noise)
        self._check_pairs(entry)
        made = Released(entry.query.digest, entry.shifts.values, entry.noise.scale, entry.shifts.d)
        return replace(self, releases=(*self.releases, made))._written(self.digest)

    def joint_shifts(self) -> Shifts:
        """Shifts of all releases together, for Gaussian noise of scale 1.

        Given the pair (D, D') the noises are independent, so the outputs together are one Gaussian whose shift
        has the squared length ``u^2 = sum_i ||v_i||^2_(S_i^-1)/s_i^2``, pair by pair.

        Raises
        ------
        ValueError
            If nothing was released.
        """
        if not self.releases:
            raise ValueError(f"nothing was released under {self.path}")
        lengths = np.zeros_like(self.releases[0].lengths)
        for each in self.releases:
            lengths = np.hypot(lengths, each.lengths / each.scale)
        d, draw = sum(each.d for each in self.releases), self.draw
        joint = Shifts(lengths, draw.coupling, d, EUCLIDEAN, draw.prior, draw.seed is None, draw.promise)
        return replace(joint, share=draw.share)

    def _check_query(self, query: Query) -> None:
        declared, done = [each.digest for each in self.queries], len(self.releases)
        if query.digest not in declared:
            raise ValueError(
                f"the query was not declared in {self.path} before the first release: chosen after an output it is "
                "outside of the joint certificate"
            )
        if query.digest not in declared[done : done + 1]:
            raise ValueError(f"{done} of {len(declared)} declared queries were released, and this is not the next one")

    def _check_shifts(self, shifts: Shifts, noise: GaussianNoise) -> None:
        draw, n = self.draw, len(self.draw.member)
        for name, given, wanted in (
            ("coupling", shifts.coupling, draw.coupling),
            ("promise", shifts.promise, draw.promise),
            ("share k/n", shifts.prior, draw.prior),
            ("share of telling pairs", shifts.share, draw.share),
            ("norm", shifts.norm, noise.norm),
        ):
            if given != wanted:
                raise ValueError(f"the shifts have the {name} {given}, the ledger and its noise need {wanted}")
        if shifts.mean_only:
            raise ValueError("a mean length has no pairs; only shifts measured pair by pair add up")
        if shifts.records is not None:
            raise ValueError("rows that several records share have no pairs; only shifts measured pair by pair add up")
        if shifts.weights is not None and shifts.values.shape[1] not in (n - 1, n * (n - 1)):
            raise ValueError(
                f"the lengths were put into {shifts.values.shape[1]:,} groups and are no pairs any more; "
                f"keep all {n - 1:,}: swap_linear(..., n_values={n - 1})"
            )
        if self.releases and shifts.values.shape != self.releases[0].lengths.shape:
            raise ValueError(
                f"the shifts have {shifts.values.shape} pairs, the ledger {self.releases[0].lengths.shape}"
            )

    def _check_pairs(self, entry: Entry) -> None:
        """The same pairs for all; where they are a sample, not those that chose the scales.

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

    def _written(self, replaces: str | None) -> Ledger:
        return replace(self, digest=private_file.write(self.path, _encoded(self), replaces))


def _encoded(ledger: Ledger) -> dict[str, Any]:
    """As plain JSON; lengths as bytes of little-endian doubles, infinities included."""
    draw = ledger.draw
    return {
        "format": _FORMAT,
        "data": draw.data,
        "n": len(draw.member),
        "member": np.packbits(draw.member).tobytes().hex(),
        **{name: getattr(draw, name) for name in _OF_A_DRAW},
        "queries": [{"statistic": dict(each.statistic), "eta": float(each.eta)} for each in ledger.queries],
        "releases": [
            {
                "query": each.query,
                "scale": float(each.scale),
                "d": int(each.d),
                "pairs": list(each.lengths.shape),
                "lengths": base64.b64encode(each.lengths.astype("<f8").tobytes()).decode(),
            }
            for each in ledger.releases
        ],
    }


def _decoded(path: Path, content: Mapping[str, Any], digest: str) -> Ledger:
    """Back from `_encoded`; any error is one of the format."""
    one_of("format", content["format"], [_FORMAT])
    bits = np.unpackbits(np.frombuffer(bytes.fromhex(content["member"]), np.uint8), count=content["n"])
    draw = Draw(content["data"], bits.astype(bool), *(content[name] for name in _OF_A_DRAW))
    releases = [
        Released(
            each["query"],
            np.frombuffer(base64.b64decode(each["lengths"]), "<f8").astype(float).reshape(each["pairs"]),
            real("scale", each["scale"]),
            each["d"],
        )
        for each in content["releases"]
    ]
    return Ledger(path, draw, tuple(Query(**each) for each in content["queries"]), tuple(releases), digest)
