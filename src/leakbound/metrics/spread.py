"""How far whole models shift their scores, compared with the noise of single records.

One threshold is used for all models. Where whole models shift their scores, the rates at that threshold depend on
how models differ, and a few models say little of that: an interval over models must know it.

Scores are compared on the scale of normal scores, which no increasing transform of the scores changes.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float
from scipy.special import gammaincinv, ndtri

from leakbound.metrics.rows import Rows

Array = np.ndarray
LEAST_NOISE = 1e-9  # scores without any noise in a model have a finite spread too


class ShiftsOfModels(ABC):
    """How far models shift their scores: what follows from the shift of each one and the noise of records."""

    @property
    @abstractmethod
    def n_records(self) -> int:
        """Scores of each model."""

    @property
    @abstractmethod
    def shift(self) -> Float[Array, " R"]:
        """Mean residual of each model."""

    @property
    @abstractmethod
    def noise(self) -> float:
        """Standard deviation of the residuals within a model."""

    @cached_property
    def spread(self) -> float:
        """Standard deviation of the shifts over the noise, less what the noise alone gives."""
        between = float(self.shift.var(ddof=1)) - self.noise**2 / self.n_records
        return math.sqrt(max(between, 0.0)) / self.noise

    def spread_upper(self, alpha: float) -> float:
        """Upper limit of the spread: the true one is larger with probability alpha, for normal shifts.

        What noise adds to the measured shifts is left in, so that few records look like a large spread.
        """
        return _upper_factor(len(self.shift) - 1, alpha) * float(self.shift.std(ddof=1)) / self.noise

    def models_until(self, alpha: float, most: float) -> int | None:
        """Compute how many models have an upper limit of at most ``most`` if the spread stays; None if none have."""
        measured = float(self.shift.std(ddof=1)) / self.noise
        if measured >= most:
            return None
        low, high = 1, 2  # degrees of freedom
        while _upper_factor(high, alpha) * measured > most:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if _upper_factor(middle, alpha) * measured > most else (low, middle)
        return high + 1

    def dilation(self, alpha: float) -> float:
        """Factor by which the true spread may exceed that of these models, for skewed shifts too.

        The standard deviation of skewed or heavy-tailed shifts is known less well than that of normal ones, as if there
        were fewer of them: half the degrees of freedom give coverage for exponential shifts (docs/coverage.md).
        """
        return _upper_factor((len(self.shift) - 1) / 2, alpha)

    def offsets(self, factor: float) -> Float[Array, " R"]:
        """Compute what each model's normal scores change by if the models differ ``factor`` times as much."""
        return (factor - 1) * (self.shift - self.shift.mean())


@dataclass(frozen=True, eq=False)
class Shifts(ShiftsOfModels):
    """The shift of each model's scores.

    A model's shift is the mean over its records of the normal score less the mean normal score of the record's class
    (member or not). The noise is what is left in the scores of a record within one model.

    >>> from leakbound.metrics.rows import rows
    >>> from leakbound.core.types import Scores
    >>> rng = np.random.default_rng(0)
    >>> member = np.tile(np.arange(200) % 2 == 0, (400, 1))
    >>> value = rng.normal(size=member.shape) + 0.5 * rng.normal(size=(400, 1)) + member
    >>> round(Shifts(rows(Scores("example", value, member))).spread, 1)
    0.5
    """

    rows: Rows

    @cached_property
    def normal_scores(self) -> Float[Array, "R J"]:
        """Normal quantiles of the mid-ranks of all scores together."""
        value = self.rows.value
        _, place, times = np.unique(value.ravel(), return_inverse=True, return_counts=True)
        rank = np.cumsum(times) - (times - 1) / 2
        return ndtri((rank - 0.5) / value.size)[place].reshape(value.shape)

    @cached_property
    def _residual(self) -> Float[Array, "R J"]:
        """Normal scores less the mean of their class."""
        score, member = self.normal_scores, self.rows.member
        return score - np.where(member, score[member].mean(), score[~member].mean())

    @cached_property
    def shift(self) -> Float[Array, " R"]:  # pyright: ignore[reportIncompatibleMethodOverride] -- a property that is computed once
        """Mean residual of each model."""
        return self._residual.mean(axis=1)

    @cached_property
    def noise(self) -> float:  # pyright: ignore[reportIncompatibleMethodOverride] -- a property that is computed once
        """Standard deviation of the residuals within a model."""
        within = self._residual.var(axis=1).mean()
        return max(math.sqrt(float(within)), LEAST_NOISE)

    @property
    def n_records(self) -> int:
        """Scores of each model."""
        return self.rows.value.shape[1]

    def dilated(self, factor: float) -> Float[Array, "R J"]:
        """Return the normal scores as they would be if the models differed ``factor`` times as much."""
        return self.normal_scores + self.offsets(factor)[:, None]


def _upper_factor(freedom: float, alpha: float) -> float:
    """Upper limit of a standard deviation over its estimate: ``sqrt(f / chi2_alpha(f))`` with f degrees of freedom."""
    quantile = 2 * float(gammaincinv(freedom / 2, alpha))
    return math.sqrt(freedom / quantile)
