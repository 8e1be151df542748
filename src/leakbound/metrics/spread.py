"""How far whole models shift their scores, compared with the noise of single records.

One threshold is used for all models. Where whole models shift their scores, the rates at that threshold depend on
how models differ, and a few models say little of that: an interval over models must know it.

Scores are compared on the scale of normal scores, which no increasing transform of the scores changes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float
from scipy.special import gammaincinv

from leakbound.metrics.ranked import RankedScores

Array = np.ndarray
LEAST_NOISE = 1e-9  # scores without any noise in a model have a finite spread too


@dataclass(frozen=True, eq=False)
class Shifts:
    """The shift of the scores of each of at least two models.

    A model's shift is the mean over its records of the normal score less the mean normal score of the record's class
    (member or not). The noise is what is left in the scores of a record within one model.

    >>> rng = np.random.default_rng(0)
    >>> member = np.tile(np.arange(200) % 2 == 0, (400, 1))
    >>> value = rng.normal(size=member.shape) + 0.5 * rng.normal(size=(400, 1)) + member
    >>> round(Shifts(RankedScores(value, member)).spread, 1)
    0.5
    """

    scores: RankedScores

    @cached_property
    def _moments(self) -> tuple[Float[Array, " R"], float]:
        """The shifts, and the standard deviation of the residuals within a model."""
        scores = self.scores
        total, square = np.empty((2, 2 * scores.n_models))
        for idx, column in enumerate(scores.columns):
            normal = scores.normal_scores(column)
            total[idx], square[idx] = normal.sum(), np.square(normal).sum()
        total, square = total.reshape(-1, 2), square.reshape(-1, 2)
        n = scores.n_of_class
        mean = total.sum(axis=0) / np.maximum(n.sum(axis=0), 1)  # of each class
        shift = (total - n * mean).sum(axis=1) / scores.n_records
        mean_square = (square - 2 * mean * total + n * mean**2).sum(axis=1) / scores.n_records
        within = float(np.maximum(mean_square - shift**2, 0.0).mean())
        return shift, max(math.sqrt(within), LEAST_NOISE)

    @property
    def shift(self) -> Float[Array, " R"]:
        """Mean residual of each model."""
        return self._moments[0]

    @property
    def noise(self) -> float:
        """Standard deviation of the residuals within a model."""
        return self._moments[1]

    @cached_property
    def spread(self) -> float:
        """Standard deviation of the shifts over the noise, less what the noise alone gives."""
        between = float(self.shift.var(ddof=1)) - self.noise**2 / self.scores.n_records
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

    def largest_gain(self, factor: float, weight: Float[Array, "R 2"]) -> float:
        """Return the largest sum of weights that a threshold calls if the models differed ``factor`` times as much."""
        offset = (factor - 1) * (self.shift - self.shift.mean())
        return self.scores.largest_gain_if_shifted(offset, weight)


def _upper_factor(freedom: float, alpha: float) -> float:
    """Upper limit of a standard deviation over its estimate: ``sqrt(f / chi2_alpha(f))`` with f degrees of freedom."""
    quantile = 2 * float(gammaincinv(freedom / 2, alpha))
    return math.sqrt(freedom / quantile)
