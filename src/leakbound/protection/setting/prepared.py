"""What a promise hands over at each step of a release.

`Prepared` is the noise, what it proves, and what a ledger has to know. `Ready` has a place in a ledger that has room
for it, and `Counted` a value that the ledger knows of and nobody has seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float

from leakbound.core.findings import Finding, Scope, Term
from leakbound.core.grid import Grid
from leakbound.core.repeated_rows import RepeatedRows
from leakbound.core.tradeoff import TradeOff
from leakbound.core.types import Noise, Points, Signals
from leakbound.plans.promises import NAME_OF, Design, PromiseName
from leakbound.protection.ledger.ledger import Ledger, OtherRelease
from leakbound.protection.setting.request import Request
from leakbound.protection.setting.rounding import PrintedShape
from leakbound.protection.setting.units import NOBODY, Units
from leakbound.releases.statistics.counts_and_sums import Finished
from leakbound.releases.statistics.group_means import CountsAndSums
from leakbound.releases.statistics.statistic import Linear
from leakbound.reports import Curve
from leakbound.reports.about import LedgerEntryFacts

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Prepared:
    """A statistic and its noise, calibrated and not released."""

    request: Request
    points: Points  # of all records; under differential privacy with the values as they were declared to be
    design: Design
    n: int  # records, or people
    k: int
    labels: Sequence[str]
    noise: Noise | None
    shape: PrintedShape | None
    noisy_coords: Bool[Array, " d"]
    grid: Grid
    rms: Float[Array, " d"]
    declared: bool
    scope: Scope
    game: Term
    assumptions: Sequence[Term]
    source: str
    # the exact value that is released but for the noise, given the unit that is left out: a row of a table, or the
    # statistic of all, whoever that is; of records that are drawn what is expected
    value_of: Callable[[int], Float[Array, " d"]]
    units: Units = NOBODY  # whom a ledger knows one by one: nobody of a draw
    # what the ledger adds up: of leave-one-out the whitened table (n, e), of differential privacy one number, shape ()
    per_unit: Float[Array, "*shape"] | RepeatedRows = field(default_factory=lambda: np.zeros(()))
    # of value and noise, which are whole steps of the grid: n for a mean under differential privacy
    divisor: float = 1.0
    prior: float = 0.5
    about: Literal["every", "average"] = "every"
    confidence: float | None = None  # None where nothing was sampled
    public_findings: Sequence[Finding] = ()
    owner_findings: Sequence[Finding] = ()
    public_notes: Sequence[str] = ()
    owner_notes: Sequence[str] = ()
    sampling_std: Float[Array, " e"] | None = None
    proved_eta: float | None = None  # at most eta, for the owner; None where it is eta
    curve: TradeOff | None = None  # proved of this release, for the owner; None where there is none
    public_curve: TradeOff | None = None  # what of it may be published
    public_source: str = ""  # in place of the source where that reveals something of the data
    # fields of the certificate that tell how the noise was found: all of it, and what may be published
    owner_facts: Mapping[str, Any] = field(default_factory=dict)
    public_facts: Mapping[str, Any] = field(default_factory=dict)
    attacks: Sequence[Finding] = ()  # on simulated releases
    attack_curves: Sequence[Curve] = ()
    # simulated releases for an audit of the promise
    signals: Callable[[], Signals] | None = None
    parts: Sequence[Prepared] = ()  # several statistics released together: each has a noise of its own

    @property
    def statistics(self) -> Sequence[Prepared]:
        """The single statistics: the parts, or this one."""
        return self.parts or (self,)

    @property
    def no_noise(self) -> bool:
        """Whether nothing is added to any number."""
        return all(part.noise is None for part in self.statistics)

    def split(self, numbers: Float[Array, " d"]) -> list[Float[Array, " e"]]:
        """Split numbers, one for each coordinate, into those of each statistic."""
        sizes = [len(part.labels) for part in self.statistics]
        return np.split(numbers, np.cumsum(sizes)[:-1])

    def finished(self, value: Float[Array, " d"]) -> Finished:
        """Return the numbers that are published: the means of noisy counts and sums, else the coordinates."""
        if self.parts:
            of_parts = [part.finished(own) for part, own in zip(self.parts, self.split(value), strict=True)]
            labels = [label for each in of_parts for label in each.labels]
            return Finished(
                labels,
                value=np.concatenate([each.value for each in of_parts]),
                noise_std=np.concatenate([each.noise_std for each in of_parts]),
                low=np.concatenate([each.low for each in of_parts]),
                high=np.concatenate([each.high for each in of_parts]),
            )
        statistic = self.request.statistic
        if isinstance(statistic, Linear) and isinstance(statistic.features, CountsAndSums):
            return statistic.features.finished(value, self.rms)
        unknown = np.full(len(value), np.nan)
        return Finished(self.labels, value, self.rms, unknown, unknown)

    @property
    def promise(self) -> PromiseName:
        """The name of what is promised."""
        return NAME_OF[self.design]

    @property
    def eta(self) -> float:
        """Of this release."""
        return self.request.plan.eta

    @property
    def prior_accuracy(self) -> float:
        """Accuracy of the better guess from the prior alone."""
        return max(self.prior, 1 - self.prior)

    @property
    def accuracy(self) -> float | None:
        """Proved accuracy of any attacker, for the owner; None where it is that of the promise."""
        return None if self.proved_eta is None else self.prior_accuracy + self.proved_eta

    @property
    def common(self) -> dict[str, Any]:
        """What the findings of the promise share."""
        return {
            "bound_type": "upper",
            "status": "certified",
            "confidence": self.confidence,
            "scope": self.scope,
            "game": self.game,
            "assumptions": self.assumptions,
            "source": self.source,
        }


@dataclass(frozen=True)
class Joint:
    """What all releases of a ledger promise together, fixed before the first one."""

    release: str
    eta: float
    curve: TradeOff
    public_curve: TradeOff
    findings: Sequence[Finding]


@dataclass(frozen=True, eq=False)
class Counted:
    """A release whose value is drawn, that its ledger has counted, and that nobody has seen yet."""

    prepared: Prepared
    value: Float[Array, " d"]
    ledger: Ledger | None = None
    place: int = 0  # in the ledger
    entry: LedgerEntryFacts | None = None
    joint: Joint | None = None
    owner_findings: Sequence[Finding] = ()  # of the ledger
    public_notes: Sequence[str] = ()
    owner_notes: Sequence[str] = ()
    # in other ledgers, of the same people; whether the owner has allowed that
    others: Sequence[OtherRelease] = ()
    knows_people: bool = False

    def mark_published(self) -> None:
        """Tell the ledger, if there is one, that the value has reached its place."""
        if self.ledger is not None:
            self.ledger.mark_published(self.place)


@dataclass(frozen=True, eq=False)
class Ready:
    """A release whose noise is found, that fits into its ledger, and whose people are in no other one."""

    prepared: Prepared
    counted: Callable[[], Counted]  # draws the value, after the ledger has counted it
