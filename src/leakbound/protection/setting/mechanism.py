"""What is to be protected: a statistic of k records, drawn from all n of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from leakbound.core.checks import count
from leakbound.core.findings import Term
from leakbound.core.grid import Grid
from leakbound.core.seeds import stream, subsets
from leakbound.core.types import Points
from leakbound.protection.setting.capture import silenced
from leakbound.releases.statistics.features import Cells, Histogram, sums
from leakbound.releases.statistics.statistic import Fit, Linear, Statistic
from leakbound.runtime.observe import DataSets, Execution, Sets, outputs

Array = np.ndarray
_MEMBERS = 2**24  # memberships in memory at once
_SETTLING = 8  # draws on which a function is tried for the shape of its output


@dataclass(frozen=True, eq=False)
class Mechanism:
    """A statistic of a uniform k-subset D of the points."""

    statistic: Statistic
    points: Points
    k: int
    execution: Execution = Execution()

    @classmethod
    def of(
        cls,
        statistic: Statistic,
        points: Points,
        k: int | None = None,
        seed: int = 0,
        execution: Execution = Execution(),
    ) -> Mechanism:
        """Take half of the records into D unless k is given; a function shows its shape on draws that nobody uses."""
        n = len(points)
        k = n // 2 if k is None else count("k", k)
        if not 1 <= k <= n - 1:
            raise ValueError(f"k must be from 1 to n - 1 = {n - 1}, got {k}")
        if isinstance(statistic, Fit):
            tried = subsets(n, k, _SETTLING, stream(seed, "calibrate", "shape"))
            statistic = statistic.settled(points, tried)
        return cls(statistic, points, k, execution)

    @property
    def n(self) -> int:
        """All records."""
        return len(self.points)

    @property
    def prior(self) -> float:
        """k/n."""
        return self.k / self.n

    @property
    def prior_accuracy(self) -> float:
        """Accuracy of the better guess from the prior alone."""
        return max(self.prior, 1 - self.prior)

    @cached_property
    def labels(self) -> Sequence[str]:
        """A name for each number of the output."""
        return tuple(self.statistic.labels(self.points))

    @property
    def d(self) -> int:
        """Coordinates of the output."""
        return len(self.labels)

    @cached_property
    def features(self) -> Float[Array, "n d"] | None:
        """What a sum or mean is of; None for other statistics."""
        return self.statistic.features(self.points.x) if isinstance(self.statistic, Linear) else None

    @property
    def counts(self) -> bool:
        """Whether the statistic counts records: the cells of a table, or the bins of a histogram."""
        return isinstance(self.statistic, Linear) and isinstance(self.statistic.features, Cells | Histogram)

    @property
    def divisor(self) -> int:
        """By which the sum of the features is divided: k for a mean."""
        return self.k if isinstance(self.statistic, Linear) and self.statistic.statistic == "mean" else 1

    def draws(self, n_draws: int, seed: int, name: str) -> DataSets:
        """Draw independent uniform k-subsets, from a stream of this name."""
        member = subsets(self.n, self.k, n_draws, stream(seed, "calibrate", name, "draws"))
        return DataSets(member, stream(seed, "calibrate", name, "seeds").integers(2**32, size=n_draws))

    def outputs(self, sets: Sets) -> Float[Array, "m d"]:
        """Compute the statistic on each of these data sets; NaN where it failed."""
        return outputs(self.statistic, self.points, sets, self.execution)

    def on_grid(self, sets: Sets, grid: Grid) -> Float[Array, "m d"] | None:
        """Compute a sum or mean of these data sets as `release` does, but without noise; None for other statistics.

        Each feature is rounded, not the sum: what is measured must be what is released.
        """
        if self.features is None:
            return None
        features, size = grid.snap(self.features), max(1, _MEMBERS // self.n)
        blocks = [slice(start, start + size) for start in range(0, sets.n_fits, size)]
        return np.concatenate([sums(features, sets.rows(block))[0] for block in blocks]) / self.divisor

    def release(
        self, member: Bool[Array, " n"], noise: Float[Array, " d"], grid: Grid, rng: np.random.Generator
    ) -> Float[Array, " d"]:
        """Add a draw of the noise to the statistic of the members, both as whole multiples of a step.

        NaN if the statistic failed, or lies beyond 2^53 steps, as in the calibration.

        A sum of features on the grid is exact in whole numbers, and so is that of a mean before it is divided by
        k: no bit of it depends on an order of summation. Any other statistic is rounded to the grid.
        """
        return self.with_noise(self.exact(member, grid, rng), noise, grid)

    def exact(self, member: Bool[Array, " n"], grid: Grid, rng: np.random.Generator) -> Int[Array, " d"] | None:
        """Compute the statistic of the members without noise, in whole steps of the grid: never to be published.

        Of a mean the sum, which is divided after the noise was added; None where the statistic failed, or lies
        beyond 2^53 steps.
        """
        if self.features is not None:
            return np.asarray(grid.round(self.features[member]).sum(axis=0))
        drawn = DataSets(member[None], rng.integers(2**32, size=1))
        with silenced():
            output = outputs(self.statistic, self.points, drawn, Execution(n_jobs=1))[0]  # in no store: it has no noise
        output = grid.snap(output)
        return grid.round(output) if np.isfinite(output).all() else None

    def with_noise(self, exact: Int[Array, " d"] | None, noise: Float[Array, " d"], grid: Grid) -> Float[Array, " d"]:
        """Add a draw of the noise to what `exact` gives: the second half of `release`."""
        if exact is None:
            return np.full(self.d, np.nan)
        if self.features is not None:
            return grid.value(exact + grid.round(self.divisor * noise)) / self.divisor
        return grid.value(exact + grid.round(noise))

    def sampling_std(self, outputs: Float[Array, "m d"]) -> Float[Array, " d"]:
        """Estimate the standard deviation of the statistic over samples of k records from a large population.

        From its outputs over draws of D: without replacement the variance is (1 - k/n) times that.
        """
        outputs = outputs[np.isfinite(outputs).all(axis=1)]
        if len(outputs) < 2:
            return np.full(self.d, math.nan)
        return outputs.std(axis=0, ddof=1) / math.sqrt(1 - self.prior)


def game_of(mechanism: Mechanism) -> Term:
    """Return what is played against a release."""
    return Term("drawn_records", k=mechanism.k, n=mechanism.n)
