"""The ledger in use: one draw for several releases, their queries said beforehand, and what they promise jointly."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from leakscope.findings import Finding
from leakscope.noise import GaussianNoise, Shifts, worst_eta
from leakscope.noise.ledger import Draw, Entry, Ledger, Query
from leakscope.plans.protects import ProtectionPlan
from leakscope.protecting.calibrating import Calibrated
from leakscope.protecting.certifying import SOURCES
from leakscope.protecting.jobs import Job
from leakscope.protecting.measuring import Fitted, Measured, measured
from leakscope.seeds import entropy, integer, stream, subsets

Array = np.ndarray
_MOST_EXACT = 2000  # records of which a ledger keeps all lengths of the exact swap, 8 n^2 bytes
_NAMES = {"swap": "swap", "complement": "complement", "disjoint": "complement", "average swap": "average_swap"}


def randomness(seed: int | None, name: str) -> np.random.Generator:
    """Of a real release: from the operating system, anew for the draw and for the noise; of a seed for tests."""
    return entropy() if seed is None else stream(seed, "release", name)


@dataclass(frozen=True, eq=False)
class Memory:
    """A query on its way into a ledger.

    Parameters
    ----------
    job : Job
        With the coupling of the ledger.
    path : Path
    ledger : Ledger or None
        None where the file is yet to be made.
    """

    job: Job
    path: Path
    ledger: Ledger | None

    @classmethod
    def of(cls, job: Job, path: str) -> Memory:
        """The query of a job, for the ledger of this file.

        Raises
        ------
        ValueError
            If the ledger is of other data, another k or promise, or of a coupling that the job has none of; if the
            noise is not Gaussian.
        """
        asked, mechanism = job.asked, job.mechanism
        if isinstance(asked.noise, str) and not asked.noise.startswith("gaussian"):
            raise ValueError(f"only Gaussian releases add up under a ledger, got noise {asked.noise}")
        if asked.coupling == "mixture_swap":
            raise ValueError("the mixture swap keeps no pairs that could add up; take swap or complement for a ledger")
        ledger = _opened(path, job) if Path(path).exists() else None
        if ledger is None:
            return cls(replace(job, asked=replace(asked, coupling=_coupling(job))), Path(path), None)
        draw = ledger.draw
        for name, given, kept in (
            ("k", mechanism.k, int(draw.member.sum())),
            ("promise", asked.promise, draw.promise),
            ("coupling", asked.coupling if asked.coupling != "auto" else _NAMES[draw.coupling], _NAMES[draw.coupling]),
        ):
            if given != kept:
                raise ValueError(f"{path} was begun with {name} {kept}, got {given}: start another ledger")
        if draw.seed is None and mechanism.features is None:
            raise ValueError(
                f"{path} was begun with the exact swap of a sum or mean, which {mechanism.statistic.name} is not: "
                "start another ledger with coupling complement"
            )
        return cls(replace(job, asked=replace(asked, coupling=_NAMES[draw.coupling])), Path(path), ledger)

    def declared(self) -> str:
        """The query announced, the file made if there is none; what was done, in a line."""
        query = self._query
        ledger = self._created([query]) if self.ledger is None else self.ledger.declare([query])
        return f"{self.path}: {len(ledger.queries)} declared, {len(ledger.releases)} released"

    def appended(self, found: Calibrated) -> tuple[Ledger, list[Finding]]:
        """The release noted, before it is published, and what all releases of the draw promise together.

        Raises
        ------
        ValueError
            If the query is not the next one that was declared, or its shifts do not add up with the others.
        """
        if found.noise is None or found.shifts is None:
            raise ValueError(f"no noise was needed, and such releases do not add up under a ledger: {found.reason}")
        if not isinstance(found.noise, GaussianNoise):
            raise ValueError(f"only Gaussian releases add up under a ledger, got {type(found.noise).__name__}")
        ledger = self._created([self._query]) if self.ledger is None else self.ledger
        seed, scale_seed = ledger.draw.seed, None if found.shifts.exact else self._scale_seed
        shifts = found.shifts if found.shifts.exact else self._measured(ledger, found, found.noise)
        ledger = ledger.append(Entry(self._query, found.noise, shifts, seed, scale_seed))
        return ledger, self._joint(ledger)

    @property
    def _query(self) -> Query:
        """With what shapes and scales its noise: a noise chosen after an output is outside of the joint certificate."""
        asked, described = self.job.asked, self.job.mechanism.statistic.describe()
        noise = asked.noise if isinstance(asked.noise, str) else self.job.plan.noise
        sampled = {} if self._exact else {name: getattr(asked, name) for name in ("confidence", "fits", "seed")}
        return Query({**described, "noise": noise, **sampled} if described else {}, asked.eta)

    @property
    def _exact(self) -> bool:
        """Whether nothing is sampled."""
        return self.job.asked.coupling == "swap" and self.job.mechanism.features is not None

    @property
    def _scale_seed(self) -> int:
        return measured(self.job.mechanism, self.job.asked.coupling, self.job.asked.seed).pairs.seed

    @property
    def _single(self) -> Measured:
        """One pair of the coupling of the ledger, which tells its name and share."""
        asked = self.job.asked
        single = measured(self.job.mechanism, asked.coupling, asked.seed)
        return single.with_pairs(1, integer(asked.seed, "joint"))

    def _created(self, queries: list[Query]) -> Ledger:
        """A new ledger: here the records in use are drawn."""
        mechanism, asked = self.job.mechanism, self.job.asked
        member = subsets(mechanism.n, mechanism.k, 1, randomness(_insecure(self.job), "draw"))[0]
        single, digest = self._single.pairs, _data(self.job, _insecure(self.job) is not None)
        name, seed, share = ("swap", None, 1.0) if self._exact else (single.name, single.seed, single.share)
        return Ledger.create(self.path, Draw(digest, member, name, asked.promise, seed, share), queries)

    def _measured(self, ledger: Ledger, found: Calibrated, noise: GaussianNoise) -> Shifts:
        """Shifts on the pairs of the ledger, which chose none of its scales."""
        n_pairs = ledger.releases[0].lengths.shape[1] if ledger.releases else found.n_pairs
        pairs = self._single.with_pairs(n_pairs, ledger.draw.seed or 0)
        if isinstance(pairs, Fitted):  # the releases of a draw do not share the randomness of their statistics
            pairs = replace(pairs, release=len(ledger.releases))
        return pairs.shifts(found.grid, noise.norm, found.noised)[0]

    def _joint(self, ledger: Ledger) -> list[Finding]:
        """What all releases so far promise together."""
        mechanism, joint = self.job.mechanism, ledger.joint_shifts()
        confidence = None if joint.exact else self.job.asked.confidence
        eta = worst_eta(joint, GaussianNoise(1.0), confidence=confidence)
        n = len(ledger.releases)
        common: dict[str, Any] = {
            "side": "upper",
            "status": "certified",
            "confidence": confidence,
            "at": {"prior": mechanism.prior},
            "release": f"all {n} releases of this draw" if n > 1 else "the only release of this draw so far",
            "source": SOURCES[joint.coupling],
            "assumptions": ["the queries were declared before the first release, and released in that order"],
        }
        return [Finding("success", mechanism.blind + eta, **common), Finding("eta", eta, **common)]


def _insecure(job: Job) -> int | None:
    """The seed of draw and noise, if one was given."""
    return job.plan.insecure_seed if isinstance(job.plan, ProtectionPlan) else None


def _data(job: Job, insecure: bool) -> str:
    """What a ledger calls its data: a draw from a seed that was given is good for no other releases."""
    digest = job.mechanism.points.digest
    return f"insecure:{digest}" if insecure else digest


def _opened(path: str, job: Job) -> Ledger:
    """The ledger of a file, if it is of these data, and its draw as secret as that of the job."""
    insecure = _insecure(job) is not None
    try:
        return Ledger.open(path, _data(job, insecure))
    except ValueError as reason:
        try:
            Ledger.open(path, _data(job, not insecure))
        except ValueError:
            raise reason from None
    begun = "without" if insecure else "with"
    raise ValueError(
        f"{path} was begun {begun} an insecure seed: its draw is not for this release; start another ledger"
    )


def _coupling(job: Job) -> str:
    """That of a new ledger: the exact swap where all its lengths can be kept, else one that suits every statistic."""
    asked, mechanism = job.asked, job.mechanism
    few = mechanism.n <= _MOST_EXACT
    if asked.coupling == "swap" and mechanism.features is not None and not few:
        raise ValueError(
            f"a ledger keeps all pairs of the exact swap of up to {_MOST_EXACT:,} records, got {mechanism.n:,}: "
            "take coupling complement"
        )
    if asked.coupling != "auto":
        return asked.coupling
    if mechanism.features is not None and few:
        return "swap"
    return "complement" if asked.promise == "every" else "average_swap"
