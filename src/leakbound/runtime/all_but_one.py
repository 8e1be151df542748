"""A statistic of all records, and of all but those of one unit for each, by formulas where they are known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from leakbound.core.repeated_rows import Table
from leakbound.core.seeds import integer
from leakbound.core.types import Points
from leakbound.releases.statistics.left_out import LeftOutValues, left_out_values_with_error
from leakbound.releases.statistics.statistic import Fit, Statistic
from leakbound.runtime.observe import Execution, outputs

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class AllButOne:
    """The data sets of all records but those of one unit, of which a few are in memory at a time."""

    unit: Int[Array, " N"]
    seed: int = 0  # the same for all data sets, so that they differ by one unit alone

    @property
    def n_fits(self) -> int:
        """Number of units."""
        return int(self.unit.max()) + 1

    @property
    def fit_seeds(self) -> Int[Array, " n"]:
        """The same seed for each."""
        return np.full(self.n_fits, integer(self.seed, "statistic"))

    def rows(self, rows: slice) -> Bool[Array, "m N"]:
        """Who is in some of them."""
        return self.unit != np.arange(self.n_fits)[rows][:, None]


def values_of(
    statistic: Statistic,
    points: Points,
    unit: Int[Array, " N"] | None = None,
    seed: int = 0,
    execution: Execution = Execution(),
) -> tuple[Float[Array, " d"], Table]:
    """Compute a statistic of all records, and of all but those of one unit for each."""
    found = values_with_error(statistic, points, unit, seed, execution)
    return found.of_all, found.without


def values_with_error(
    statistic: Statistic,
    points: Points,
    unit: Int[Array, " N"] | None = None,
    seed: int = 0,
    execution: Execution = Execution(),
) -> LeftOutValues:
    """Compute the values of `values_of`, and how far they are at most from those of a fit of the other records."""
    sets = AllButOne(np.arange(len(points)) if unit is None else unit, seed)
    if sets.n_fits < 2:
        raise ValueError("leaving one out needs at least 2 of them, got 1")
    everybody = np.ones((1, len(points)), dtype=bool)
    # a function: the shape of its output is that on all records
    if isinstance(statistic, Fit):
        statistic = statistic.settled(points, everybody)
    # by a formula where there is one, with its rounding error
    by_formula = left_out_values_with_error(statistic, points, unit)
    if by_formula is not None:
        if not np.isfinite(by_formula.of_all).all():
            label = statistic.labels(points)[int(np.argmin(np.isfinite(by_formula.of_all)))]
            raise ValueError(
                f"{label}, of all records, is no finite number: it is not defined, or overflows; leave the column out, "
                "or divide it by a public number"
            )
        return by_formula
    # else by a fit without each of them, which has no error
    of_all = statistic.observe(points, everybody, sets.fit_seeds[:1])["output"][0]
    if not np.isfinite(of_all).all():
        raise ValueError(f"{statistic.name} cannot be computed on all records")
    without = outputs(statistic, points, sets, execution)
    return LeftOutValues(of_all, without, np.zeros_like(without))
