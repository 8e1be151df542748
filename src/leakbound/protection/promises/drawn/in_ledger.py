"""The ledger in use: one draw for several releases, their queries said beforehand, and what they promise jointly.

The noise of a release is a function of the ledger's key and of a digest of everything that the released bytes depend
on: data, draw, statistic with all its parameters, family, scale and shape of the noise, grid, and the exact value
itself. The value is among them so that whatever a description does not tell (the version of a library, a module that
a function calls) still gives other noise where it gives another value: the difference of two releases never shows
the difference of two values.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from leakbound.core.findings import Finding, Term
from leakbound.core.grid import Grid
from leakbound.core.seeds import entropy, integer, stream, subsets
from leakbound.core.types import Noise
from leakbound.files import private_file
from leakbound.noise import GaussianNoise, Shifts, worst_eta
from leakbound.noise.families import FAMILIES, describe
from leakbound.plans.protects import ProtectionPlan
from leakbound.protection.ledger.drawn import Draw, DrawnLedger, Entry
from leakbound.protection.ledger.keyed import SCHEME, KeyedGenerator, canonical_digest
from leakbound.protection.ledger.ledger import Query, insecure_key
from leakbound.protection.ledger.people import PeopleNames
from leakbound.protection.promises.drawn.jobs import Job
from leakbound.protection.promises.drawn.noise_search import NoiseSearchResult
from leakbound.protection.promises.drawn.pairs import Fitted, Measured, measured
from leakbound.protection.promises.drawn.prepare import ROLLED_BACK, SOURCES, no_noise_words
from leakbound.protection.setting.prepared import Counted, Prepared
from leakbound.releases.specs import NoCanonicalForm, canonical
from leakbound.releases.statistics.statistic import Fit, Linear, Statistic

Array = np.ndarray
_MOST_EXACT = 2000  # records of which a ledger keeps all lengths of the exact swap, 8 n^2 bytes
_OF_SAMPLED_PAIRS = ("confidence", "fits", "seed")  # no pair of an exact coupling is sampled
ONLY = "the only release of this draw that this ledger knows of"
_NAMES = {"swap": "swap", "complement": "complement", "disjoint": "complement", "average_swap": "average_swap"}


def randomness(seed: int | None, name: str) -> np.random.Generator:
    """Return the generator of a real release: of the operating system, another one for draw and noise; or of a seed."""
    return entropy() if seed is None else stream(seed, "release", name)


@dataclass(frozen=True, eq=False)
class ReleaseSubject:
    """Everything that the bytes of a release depend on, except for its exact value and the key."""

    data: str
    member: Bool[Array, " n"]
    statistic: Any
    noise: Noise
    noisy_coords: Bool[Array, " d"]
    grid: Grid
    repeat: int = 0
    scheme: str = SCHEME

    @property
    def digest(self) -> str:
        """Digest of what is released, without the number of its repetition, which is counted by this digest."""
        return canonical_digest(
            {
                "scheme": self.scheme,
                "data": self.data,
                "n": len(self.member),
                "member": np.packbits(self.member).tobytes(),
                "statistic": self.statistic,
                "noise": describe(self.noise),
                "noised": self.noisy_coords,
                "grid": np.broadcast_to(self.grid.steps, self.noisy_coords.shape),
            }
        )

    def release_digest(self, exact: Int[Array, " d"] | None) -> str:
        """Compute the digest of all, with the exact value in whole steps of the grid; None if the statistic failed."""
        steps = None if exact is None else exact.astype("<i8").tobytes()
        return canonical_digest({"subject": self.digest, "repeat": self.repeat, "exact": steps})

    def statistic_randomness(self, key: bytes) -> KeyedGenerator:
        """Return the generator of a statistic that draws numbers itself."""
        return KeyedGenerator(key, f"statistic {self.digest} {self.repeat}")

    def sample_noise(self, key: bytes, exact: Int[Array, " d"] | None) -> Float[Array, " d"]:
        """Draw the noise of the release that has this exact value; 0 in coordinates that get none."""
        noise = np.zeros(len(self.noisy_coords))
        generator = KeyedGenerator(key, f"noise {self.release_digest(exact)}")
        noise[self.noisy_coords] = self.noise.sample(np.zeros(int(self.noisy_coords.sum())), generator)
        return noise


@dataclass(frozen=True, eq=False)
class LedgerQuery:
    """A query on its way into a ledger."""

    job: Job
    path: Path
    ledger: DrawnLedger | None
    names: PeopleNames | None = None

    @classmethod
    def of(cls, job: Job, path: str, names: PeopleNames | None = None) -> LedgerQuery:
        """Prepare the query of a job, for the ledger of this file."""
        target, mechanism = job.target, job.mechanism
        _check_noise(target.noise)
        describe_statistic(mechanism.statistic)
        if target.coupling == "mixture_swap":
            raise ValueError("the mixture swap keeps no pairs that could add up; take swap or complement for a ledger")
        # The first query chooses the coupling; later ones must have shifts on the same pairs, or nothing adds up.
        ledger = _opened(path, job) if Path(path).exists() else None
        if ledger is None:
            job = replace(job, target=replace(target, coupling=_coupling(job)))
            return cls(job, Path(path), None, names)
        draw = ledger.draw
        coupling = _NAMES[draw.coupling]
        for name, requested, begun_with in (
            ("k", mechanism.k, int(draw.member.sum())),
            ("about", target.about, draw.promise),
            ("coupling", coupling if target.coupling == "auto" else target.coupling, coupling),
        ):
            if requested != begun_with:
                raise ValueError(f"{path} was begun with {name} {begun_with}, got {requested}: start another ledger")
        if draw.seed is None and mechanism.features is None:
            raise ValueError(
                f"{path} was begun with the exact swap of a sum or mean, which {mechanism.statistic.name} is not: "
                "start another ledger with coupling complement"
            )
        if names is not None:  # a ledger of an older version has none
            ledger = replace(ledger, people=ledger.people.joined(ledger.key, names))
        return cls(replace(job, target=replace(target, coupling=coupling)), Path(path), ledger, names)

    @property
    def is_new(self) -> bool:
        """Whether the release is none that the ledger holds already; one that it refuses is none, either."""
        if self.ledger is None:
            return True
        with suppress(ValueError):
            return self.ledger.place_of(self._query) == len(self.ledger.releases)
        return True

    def declare(self) -> str:
        """Announce the query, make the file if there is none, and return what was done, in a line."""
        query = self._query
        ledger = self._created([query]) if self.ledger is None else self.ledger.declare([query])
        return f"{self.path}: {len(ledger.queries)} declared, {len(ledger.releases)} released"

    def release(self, prepared: Prepared, calibration: NoiseSearchResult) -> Counted:
        """Draw the noise of the release and note it in the ledger, before its value is published.

        A release that the ledger holds already is made once more, with the same bytes.
        """
        if calibration.noise is None or calibration.shifts is None:
            reason = no_noise_words(calibration)
            raise ValueError(f"no noise was needed, and such releases do not add up under a ledger: {reason}")
        if not isinstance(calibration.noise, GaussianNoise):
            raise ValueError(f"only Gaussian releases add up under a ledger, got {type(calibration.noise).__name__}")
        query, mechanism = self._query, self.job.mechanism
        ledger = self._created([query]) if self.ledger is None else self.ledger
        place = ledger.place_of(query)
        subject = self._subject(ledger, place, calibration, calibration.noise)
        # The noise is a function of the exact value too, so the value comes first.
        exact = mechanism.exact(ledger.draw.member, calibration.grid, subject.statistic_randomness(ledger.key))
        release = subject.release_digest(exact)
        if place == len(ledger.releases):
            ledger = ledger.append(self._entry(ledger, query, calibration, calibration.noise, subject.digest, release))
        elif ledger.releases[place].release != release:
            raise ValueError(
                f"{self.path} holds this query as release {place + 1} with another noise or value, which was computed "
                "on another machine or by other versions: a second release of it would be in no joint bound"
            )
        value = mechanism.with_noise(exact, subject.sample_noise(ledger.key, exact), calibration.grid)
        # how many releases the ledger knows of is published, their joint bound is the owner's
        return Counted(prepared, value, ledger, place, owner_findings=self._joint(ledger), public_notes=[_note(ledger)])

    def _subject(
        self, ledger: DrawnLedger, place: int, calibration: NoiseSearchResult, noise: GaussianNoise
    ) -> ReleaseSubject:
        """Collect what the release at a place of the ledger depends on."""
        description, draw = describe_statistic(self.job.mechanism.statistic), ledger.draw
        subject = ReleaseSubject(draw.data, draw.member, description, noise, calibration.noisy_coords, calibration.grid)
        # A repeated query is another release: the count gives it noise of its own.
        n_before = sum(release.subject == subject.digest for release in ledger.releases[:place])
        return replace(subject, repeat=n_before)

    def _entry(
        self,
        ledger: DrawnLedger,
        query: Query,
        calibration: NoiseSearchResult,
        noise: GaussianNoise,
        subject: str,
        release: str,
    ) -> Entry:
        """Make the entry of a new release, with its shifts on the pairs of the ledger."""
        if calibration.shifts is None:
            raise ValueError("only releases with shifts add up under a ledger")
        scale_seed = None if calibration.shifts.exact else self._scale_seed
        shifts = calibration.shifts if calibration.shifts.exact else self._measured(ledger, calibration, noise)
        return Entry(query, noise, shifts, ledger.draw.seed, scale_seed, subject, release)

    @property
    def _query(self) -> Query:
        """Everything that decides what is released, and with which noise: nothing of it is chosen after an output."""
        target, mechanism = self.job.target, self.job.mechanism
        content: dict[str, Any] = {**describe_statistic(mechanism.statistic), "k": mechanism.k}
        # every field of the target, so that a new one is not forgotten
        for field in fields(target):
            if field.name in ("eta", "noise") or (self._exact and field.name in _OF_SAMPLED_PAIRS):
                continue
            content[field.name] = getattr(target, field.name)
        content["noise"] = target.noise if isinstance(target.noise, str) else None
        return Query(content, target.eta, _chosen(target.noise))

    @property
    def _exact(self) -> bool:
        """Whether nothing is sampled."""
        return self.job.target.coupling == "swap" and self.job.mechanism.features is not None

    @property
    def _scale_seed(self) -> int:
        return measured(self.job.mechanism, self.job.target.coupling, self.job.target.seed).pairs.seed

    @property
    def _single(self) -> Measured:
        """One pair of the coupling of the ledger: it knows its name and how many pairs separate a record."""
        target = self.job.target
        single = measured(self.job.mechanism, target.coupling, target.seed)
        return single.with_pairs(1, integer(target.seed, "joint"))

    def _created(self, queries: list[Query]) -> DrawnLedger:
        """Begin a new ledger: here the records in use are drawn."""
        mechanism, target, insecure = self.job.mechanism, self.job.target, _insecure(self.job)
        member = subsets(mechanism.n, mechanism.k, 1, randomness(insecure, "draw"))[0]
        single, digest = self._single.pairs, _data(self.job, insecure is not None)
        name, seed, fraction = "swap", None, 1.0
        if not self._exact:
            name, seed, fraction = single.name, single.seed, single.separating_fraction
        draw = Draw(digest, member, name, target.about, seed, fraction)
        key = None if insecure is None else insecure_key(insecure)
        return DrawnLedger.create(self.path, draw, queries, key, self.names)

    def _measured(self, ledger: DrawnLedger, calibration: NoiseSearchResult, noise: GaussianNoise) -> Shifts:
        """Measure the shifts on the pairs of the ledger, which chose none of its scales."""
        n_pairs = ledger.releases[0].lengths.shape[1] if ledger.releases else calibration.n_pairs
        pairs = self._single.with_pairs(n_pairs, ledger.draw.seed or 0)
        if isinstance(pairs, Fitted):  # the releases of a draw do not share the randomness of their statistics
            pairs = replace(pairs, release=len(ledger.releases))
        return pairs.shifts(calibration.grid, noise.norm, calibration.noisy_coords)[0]

    def _joint(self, ledger: DrawnLedger) -> list[Finding]:
        """Report what all releases so far promise together."""
        mechanism, joint = self.job.mechanism, ledger.joint_shifts()
        confidence = None if joint.exact else self.job.target.confidence
        # The joint lengths are in units of each release's noise, so the joint release is one with noise of scale 1.
        eta = worst_eta(joint, GaussianNoise(1.0), confidence=confidence)
        n = len(ledger.releases)
        common: dict[str, Any] = {
            "bound_type": "upper",
            "status": "certified",
            "confidence": confidence,
            "operating_point": {"prior": mechanism.prior},
            "release": "joint" if n > 1 else "joint_of_one",
            "source": SOURCES[joint.coupling],
            "assumptions": [Term("declared_queries"), ROLLED_BACK],
        }
        return [Finding("accuracy", mechanism.prior_accuracy + eta, **common), Finding("eta", eta, **common)]


def _note(ledger: DrawnLedger) -> str:
    """Say how many releases the ledger knows of."""
    n = len(ledger.releases)
    if n == 1:
        return f"this is {ONLY}"
    return f"this is one of {n} releases of this draw that its ledger knows of, whose joint bound the owner has"


def describe_statistic(statistic: Statistic) -> dict[str, Any]:
    """Describe a statistic as a ledger needs it: with everything that its output depends on, as plain JSON."""
    rule = statistic.features if isinstance(statistic, Linear) else getattr(statistic, "algorithm", None)
    try:
        description = statistic.describe()
        if description is None:
            raise NoCanonicalForm(statistic.not_stored if isinstance(statistic, Fit) else "it is not described")
        plain = canonical(description)
        if rule is not None and not type(rule).__module__.startswith("leakbound."):
            plain["code"] = canonical(type(rule))  # the user's own class: its code is a part of it
        private_file.digest_of(plain)
    except (NoCanonicalForm, ValueError) as why:  # a parameter that is no number raises the latter
        raise ValueError(
            f"a statistic without a description cannot be entered in a ledger: {statistic.name}: {why}; write it in a "
            "module, as module:function, with numbers and texts as its parameters"
        ) from None
    return plain


def _chosen(noise: str | Noise | Callable[[float], Noise]) -> dict[str, Any] | None:
    """Describe family, scale and shape of a noise that was given as it is."""
    return None if isinstance(noise, str) else describe(_noise_as_it_is(noise))


def _check_noise(noise: str | Noise | Callable[[float], Noise]) -> None:
    """Refuse what does not add up, and what cannot be declared."""
    if isinstance(noise, str):
        if not noise.startswith("gaussian"):
            raise ValueError(f"only Gaussian releases add up under a ledger, got noise {noise}")
        return
    as_it_is = _noise_as_it_is(noise)
    describe(as_it_is)
    if not isinstance(as_it_is, GaussianNoise):
        raise ValueError(f"only Gaussian releases add up under a ledger, got {type(as_it_is).__name__}")


def _noise_as_it_is(noise: Noise | Callable[[float], Noise]) -> Noise:
    if isinstance(noise, type) or not isinstance(noise, Noise):
        names = ", ".join(name for name in FAMILIES if name.startswith("gaussian"))
        raise ValueError(
            "a ledger takes no function as its noise: nobody could tell whether a later one is the same; give a name "
            f"({names}) or a noise as it is, as GaussianNoise(2.0)"
        )
    return noise


def _insecure(job: Job) -> int | None:
    """Return the seed of draw and noise, if one was given."""
    return job.plan.insecure_seed if isinstance(job.plan, ProtectionPlan) else None


def _data(job: Job, insecure: bool) -> str:
    """Name the data of a ledger: a draw from a seed that was given is good for no other releases."""
    digest = job.mechanism.points.digest
    return f"insecure:{digest}" if insecure else digest


def _checked(ledger: DrawnLedger, job: Job) -> DrawnLedger:
    """Check that a ledger has as many records, a coupling that this version knows, and the seed that was given."""
    draw, insecure = ledger.draw, _insecure(job)
    if len(draw.member) != job.mechanism.n or draw.coupling not in _NAMES:
        raise ValueError(f"{ledger.path} is no ledger of this version: its draw is not one of these data")
    if insecure is not None and ledger.key != insecure_key(insecure):
        raise ValueError(f"{ledger.path} was begun with another insecure seed, got {insecure}: start another ledger")
    return ledger


def _opened(path: str, job: Job) -> DrawnLedger:
    """Open the ledger of a file, if it is of these data, and its draw as secret as that of the job."""
    insecure = _insecure(job) is not None
    try:
        return _checked(DrawnLedger.open(path, _data(job, insecure)), job)
    except ValueError as reason:
        try:
            DrawnLedger.open(path, _data(job, not insecure))
        except ValueError:
            raise reason from None
    begun = "without" if insecure else "with"
    raise ValueError(
        f"{path} was begun {begun} an insecure seed: its draw is not for this release; start another ledger"
    )


def _coupling(job: Job) -> str:
    """Choose the coupling of a new ledger: the exact swap if all lengths can be kept, else one for any statistic."""
    target, mechanism = job.target, job.mechanism
    few = mechanism.n <= _MOST_EXACT
    if target.coupling == "swap" and mechanism.features is not None and not few:
        raise ValueError(
            f"a ledger keeps all pairs of the exact swap of up to {_MOST_EXACT:,} records, got {mechanism.n:,}: "
            "take coupling complement"
        )
    if target.coupling != "auto":
        return target.coupling
    if mechanism.features is not None and few:
        return "swap"
    return "complement" if target.about == "every" else "average_swap"
