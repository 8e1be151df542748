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
from leakbound.plans.promises import NAME_OF, Design, PromiseName
from leakbound.protection.setting.request import Request
from leakbound.protection.setting.rounding import PrintedShape
from leakbound.protection.setting.units import Units
from leakbound.releases.statistics.counts_and_sums import Finished
from leakbound.releases.statistics.group_means import CountsAndSums
from leakbound.releases.statistics.statistic import Linear

Array = np.ndarray
Measure = Literal["table", "shifts", "mu"]


@dataclass(frozen=True, eq=False)
class Prepared:
    """A statistic and its noise, calibrated and not released."""

    request: Request
    points: Points  # of all records; under differential privacy with the values as they were declared to be
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
    # what the ledger adds up: of leave-one-out the whitened table (n, e), of differential privacy one number, shape ()
    per_unit: Float[Array, "*shape"] | RepeatedRows
    # the exact value that is released but for the noise, given the unit that is left out: a row of a table, or the
    # statistic of all, whoever that is
    value_of: Callable[[int], Float[Array, " d"]]
    # of value and noise, which are whole steps of the grid: n for a mean under differential privacy
    divisor: float = 1.0
    public_findings: Sequence[Finding] = ()
    owner_findings: Sequence[Finding] = ()
    public_notes: Sequence[str] = ()
    owner_notes: Sequence[str] = ()
    sampling_std: Float[Array, " e"] | None = None
    accuracy: float | None = None
    curve: TradeOff | None = None  # proved of this release, for the owner; None where it follows from eta alone
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
