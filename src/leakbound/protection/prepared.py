"""What a design hands over before anything is released: the noise, what it proves, and what a ledger has to know."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float

from leakbound.core.findings import Finding, Scope, Term
from leakbound.core.grid import Grid
from leakbound.core.repeated_rows import RepeatedRows
from leakbound.core.tradeoff import TradeOff
from leakbound.core.types import Points
from leakbound.noise import GaussianNoise
from leakbound.plans.protects import PROMISE_OF, Design, Promise
from leakbound.protection.request import Request
from leakbound.protection.rounding import PrintedShape
from leakbound.protection.units import Units
from leakbound.releases.statistics.counts_and_sums import Finished
from leakbound.releases.statistics.group_means import CountsAndSums
from leakbound.releases.statistics.statistic import Linear

Array = np.ndarray
Measure = Literal["table", "shifts", "mu"]


@dataclass(frozen=True, eq=False)
class Prepared:
    """A statistic and its noise, calibrated and not released.

    Parameters
    ----------
    request : Request
    points : Points
        Of all records, as the design reads them: under differential privacy the columns that are used, with every
        value as it was declared to be.
    design : {"leave-one-out", "dp"}
    units : Units
        Records, or people.
    k : int
        Units that the statistic is of.
    labels : sequence of str
        Of the coordinates.
    noise : GaussianNoise or None
        Of the coordinates with noise; None for several statistics.
    shape : PrintedShape or None
        Of the noise, where it was computed from the data.
    noisy_coords : bool array of shape (d,)
    grid : Grid
    rms : array of shape (d,)
        Standard deviation of the noise in each coordinate of the released numbers.
    declared : bool
        The noise was declared, or follows from what was.
    scope : Scope
        Whom the promise is to.
    game : Term
    assumptions, source
        Of the promise.
    per_unit : array or RepeatedRows
        What the ledger adds up: of leave-one-out the whitened table of shape (n, e); of dp one number, shape ().
    value_of : callable
        From the index of the unit that is left out to the exact value as it is released but for the noise: a row of a
        table, or the statistic of all, whoever that is.
    divisor : float
        By which value and noise, whole steps of the grid, are divided: n for a mean under differential privacy.
    public_findings, owner_findings : sequences of Finding
        Beyond what follows from the promise.
    public_notes, owner_notes : sequences of str
    sampling_std : array, optional
        Standard error of each number that is published, for the owner.
    accuracy : float or None
        Accuracy of any attacker that is proved for the unit that is told best, for the owner.
    curve : TradeOff or None
        Trade-off of any attacker that is proved of this release, for the owner; None where it follows from eta alone.
    parts : sequence of Prepared
        The statistics, if several are released together (`several.joined`): labels, coordinates and values are then
        those of all of them, side by side, and each part has a noise of its own.
    """

    request: Request
    points: Points
    design: Design
    units: Units
    k: int
    labels: Sequence[str]
    noise: GaussianNoise | None
    shape: PrintedShape | None
    noisy_coords: Bool[Array, " d"]
    grid: Grid
    rms: Float[Array, " d"]
    declared: bool
    scope: Scope
    game: Term
    assumptions: Sequence[Term]
    source: str
    per_unit: Float[Array, "*shape"] | RepeatedRows
    value_of: Callable[[int], Float[Array, " d"]]
    divisor: float = 1.0
    public_findings: Sequence[Finding] = ()
    owner_findings: Sequence[Finding] = ()
    public_notes: Sequence[str] = ()
    owner_notes: Sequence[str] = ()
    sampling_std: Float[Array, " e"] | None = None
    accuracy: float | None = None
    curve: TradeOff | None = None
    parts: Sequence[Prepared] = ()

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
        """Return the numbers that are published of the coordinates: of noisy counts and sums their means, else these.

        Parameters
        ----------
        value : array of shape (d,)
            Of this statistic, or of all parts.
        """
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
    def promise(self) -> Promise:
        """What the design promises."""
        return PROMISE_OF[self.design]

    @property
    def eta(self) -> float:
        """Of this release."""
        return self.request.plan.eta

    @property
    def common(self) -> dict[str, Any]:
        """What the findings of the promise share."""
        return {
            "bound_type": "upper",
            "status": "certified",
            "scope": self.scope,
            "game": self.game,
            "assumptions": self.assumptions,
            "source": self.source,
        }
