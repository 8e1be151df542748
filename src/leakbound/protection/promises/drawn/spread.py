"""How a statistic of k drawn records spreads over the draws: its sampling error, and the noise of other methods.

PAC privacy protects every record of these data by a limit on information, the published wrapper by second moments;
both need the covariance of the statistic over the draw, and nothing else of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from leakbound.core.types import NotApplicable
from leakbound.noise import information_of_eta, izzo, noise_of_information
from leakbound.protection.setting.mechanism import Mechanism
from leakbound.releases.statistics.statistic import Linear
from leakbound.runtime.observe import DataSets

Array = np.ndarray
_MOST = 2000  # numbers whose covariance is made: its eigenvectors take seconds


@dataclass(frozen=True, eq=False)
class Spread:
    """Covariance of a statistic over the draw of D, of the coordinates that vary at all."""

    varying: Bool[Array, " d"]
    covariance: Float[Array, "r r"]

    @classmethod
    def of(cls, covariance: Float[Array, "d d"]) -> Spread:
        """Leave out what never varies; refuse a statistic that never does."""
        if not np.isfinite(covariance).all():
            raise NotApplicable("too_large_numbers")
        varying = np.diagonal(covariance) > 0
        if not varying.any():
            raise NotApplicable("constant_statistic")
        return cls(varying, covariance[np.ix_(varying, varying)])

    @classmethod
    def over_subsets(cls, mechanism: Mechanism, n_draws: int, seed: int) -> Spread:
        """Compute it over uniform k-subsets: a sum of features has the covariance ``k (1 - k/n) S``, n - 1 in S.

        That of any other statistic is estimated from so many draws.
        """
        check_size(mechanism.d)
        if mechanism.features is None:
            return cls.sampled(mechanism, mechanism.draws(n_draws, seed, "compare"))
        factor = mechanism.k * (1 - mechanism.prior) / mechanism.divisor**2
        return cls.of(factor * covariance_of(mechanism.features))

    @classmethod
    def sampled(cls, mechanism: Mechanism, sets: DataSets) -> Spread:
        """Estimate it from outputs over draws; fits that failed are left out."""
        outputs = mechanism.outputs(sets)
        outputs = outputs[np.isfinite(outputs).all(axis=1)]
        if len(outputs) <= mechanism.d:
            raise NotApplicable("few_draws", d=mechanism.d, worked=len(outputs))
        return cls.of(covariance_of(outputs))

    @property
    def std(self) -> Float[Array, " r"]:
        """Standard deviation of these coordinates."""
        return np.sqrt(np.diagonal(self.covariance))

    def all_coordinates(self, rms: Float[Array, " r"]) -> Float[Array, " d"]:
        """Return the noise of each coordinate: none where nothing varies."""
        all_rms = np.zeros(len(self.varying))
        all_rms[self.varying] = rms
        return all_rms


def total_error(mechanism: Mechanism, spread: Spread, noise: Float[Array, " d"]) -> Float[Array, " d"]:
    """Compute the error against the statistic of all n records, ``sqrt(sampling^2 + noise^2)``: only k are drawn.

    A sum or count of the k that are drawn estimates n/k times as much, and so its errors count n/k times.
    """
    is_sum = isinstance(mechanism.statistic, Linear) and mechanism.divisor == 1
    per_draw = mechanism.n / mechanism.k if is_sum else 1.0
    return per_draw * np.hypot(spread.all_coordinates(spread.std), noise)


def pac_least_noise(spread: Spread, eta: float, prior: float) -> Float[Array, " d"]:
    """Compute the deviations of the least Gaussian noise by PAC privacy (Xiao & Devadas 2023)."""
    covariance = noise_of_information(spread.covariance, information_of_eta(eta, prior))
    return spread.all_coordinates(np.sqrt(np.diagonal(covariance)))


def izzo_noise(spread: Spread, eta: float) -> Float[Array, " d"]:
    """Compute the deviations of the noise of Izzo et al. (2022), Theorem 7 and Corollary 8, with second moments."""
    return spread.all_coordinates(spread.std * izzo(np.ones(len(spread.std)), eta).rms(len(spread.std)))


def check_size(d: int) -> None:
    """Refuse more numbers than a covariance is made of."""
    if d > _MOST:
        raise NotApplicable("large_covariance", most=_MOST, d=d)


def covariance_of(rows: Float[Array, "n d"]) -> Float[Array, "d d"]:
    """Compute the covariance of rows, divisor n - 1; exactly 0 for a constant column."""
    with np.errstate(over="ignore", invalid="ignore"):
        centred = rows - rows[0]
        centred -= centred.mean(axis=0)
        return centred.T @ centred / (len(rows) - 1)
