"""How the pairs of a sampled coupling are measured: by fits of both data sets, or by a closed form of the second."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import final

import numpy as np
from jaxtyping import Bool, Float, Int

from leakbound.core.grid import Grid
from leakbound.core.seeds import integer
from leakbound.noise import AverageSwap, Lp, Mahalanobis, SampledCoupling, SampledDisjoint, SampledSwap, Shifts
from leakbound.protection.promises.drawn.swaps import swap_shifts
from leakbound.protection.setting.mechanism import Mechanism
from leakbound.releases.statistics.leave_one_out import records_of, swapped
from leakbound.runtime.observe import DataSets

Array = np.ndarray
SAMPLED: Mapping[str, type[SampledCoupling]] = MappingProxyType(
    {"swap": SampledSwap, "complement": SampledDisjoint, "average_swap": AverageSwap}
)
_MOST_LENGTHS = 5 * 10**7  # records times rounds of a closed form
_COUPLES = 4096  # of a round, whose differences a pilot looks at
_DRAWS = 64  # that tell the spread of a statistic


@dataclass(frozen=True, eq=False)
class Measured(ABC):
    """The pairs of a coupling, and what the statistic says of them."""

    mechanism: Mechanism
    pairs: SampledCoupling

    @property
    @abstractmethod
    def fits_a_pair(self) -> int:
        """Fits that a pair costs, or what takes as long."""

    @property
    @abstractmethod
    def n_fits(self) -> int:
        """Data sets that are fitted for the shifts."""

    @abstractmethod
    def outputs(self) -> Float[Array, "m d"]:
        """Compute the statistic on independent draws of D; NaN where it failed."""

    @abstractmethod
    def differences(self) -> Float[Array, "p d"]:
        """Compute ``A(D) - A(D')`` of pairs that did not fail: all of them, or some."""

    @abstractmethod
    def shifts(self, grid: Grid, norm: Lp | Mahalanobis, noisy_coords: Bool[Array, " d"]) -> tuple[Shifts, int]:
        """Measure the shifts on a grid, and count the failures."""

    @final
    def with_pairs(self, n_pairs: int, seed: int) -> Measured:
        """Return the same coupling with so many pairs of another seed."""
        return replace(self, pairs=replace(self.pairs, n_pairs=n_pairs, seed=seed))

    def most_pairs(self, fits: int) -> int:
        """Count the pairs that so many fits pay for."""
        return fits // self.fits_a_pair


@final
@dataclass(frozen=True, eq=False)
class Fitted(Measured):
    """Both data sets of each pair are fitted."""

    release: int = 0

    @property
    def fits_a_pair(self) -> int:
        """Data sets of a draw."""
        return self.pairs.fits_a_pair

    @property
    def n_fits(self) -> int:
        """Of all draws."""
        return self.pairs.n_fits

    @cached_property
    def _outputs(self) -> Float[Array, "m d"]:
        """The statistic on both data sets of each draw."""
        return self.mechanism.outputs(_Reseeded(self.pairs, self.release) if self.release else self.pairs)

    def outputs(self) -> Float[Array, "m d"]:
        """Return those of the first data set of each draw."""
        return self._outputs[:: self.pairs.fits_a_pair]

    def differences(self) -> Float[Array, "p d"]:
        """Compute those of all pairs."""
        return _finite(self.pairs.differences(self._outputs).reshape(-1, self._outputs.shape[1]))

    def shifts(self, grid: Grid, norm: Lp | Mahalanobis, noisy_coords: Bool[Array, " d"]) -> tuple[Shifts, int]:
        """Measure the shifts of the outputs as they are released; count the fits that failed, or lie off the grid."""
        outputs = self.mechanism.on_grid(self.pairs, grid)
        if outputs is None:
            outputs = grid.snap(self._outputs)
        return self.pairs.shifts(outputs, norm, noisy_coords), int((~np.isfinite(outputs).all(axis=1)).sum())


@final
@dataclass(frozen=True, eq=False)
class Updated(Measured):
    """D is fitted, and all its swaps follow in closed form."""

    pairs: SampledSwap

    @property
    def fits_a_pair(self) -> int:
        """2: D, and what its swaps take."""
        return 2

    @property
    def n_fits(self) -> int:
        """One a round."""
        return self.pairs.n_pairs

    def most_pairs(self, fits: int) -> int:
        """Count the rounds, a length for every record in each of them."""
        return min(fits // self.fits_a_pair, max(100, _MOST_LENGTHS // self.mechanism.n))

    def outputs(self) -> Float[Array, "m d"]:
        """Return those of the D of some rounds."""
        return self._probe[0]

    def differences(self) -> Float[Array, "p d"]:
        """Return those of some couples of some rounds."""
        return self._probe[1]

    @cached_property
    def _probe(self) -> tuple[Float[Array, "m d"], Float[Array, "p d"]]:
        inside = np.array([self._inside(draw) for draw in range(min(self.pairs.n_pairs, _DRAWS))])
        outputs = self.mechanism.outputs(DataSets(inside, np.zeros(len(inside), dtype=int)))
        differences = [output - self._swapped(draw, inside[draw]) for draw, output in enumerate(outputs)]
        return outputs, _finite(np.concatenate(differences))

    def _swapped(self, draw: int, inside: Bool[Array, " n"]) -> Float[Array, "s d"]:
        leaving, entering = self.pairs.couples(draw)
        step = max(1, len(leaving) // _COUPLES)
        outputs = swapped(self.mechanism.statistic, self.mechanism.points, inside, leaving[::step], entering[::step])
        if outputs is None:
            raise ValueError(f"{self.mechanism.statistic.name} has no closed form of its swaps")
        return outputs

    def shifts(self, grid: Grid, norm: Lp | Mahalanobis, noisy_coords: Bool[Array, " d"]) -> tuple[Shifts, int]:
        """Measure by `swap_shifts`; count the rounds that failed."""
        return swap_shifts(self.mechanism, self.pairs, grid, norm, noisy_coords)

    def _inside(self, draw: int) -> Bool[Array, " n"]:
        """Return D of a round: each of its records leaves in some swap. All data sets would be k n truth values."""
        inside = np.zeros(self.pairs.n, dtype=bool)
        inside[self.pairs.couples(draw)[0]] = True
        return inside


def measured(mechanism: Mechanism, name: str, seed: int, n_pairs: int = 1) -> Measured:
    """Choose the way of measuring the pairs of a coupling of ``SAMPLED`` that costs less."""
    pairs = SAMPLED[name](mechanism.n, mechanism.k, n_pairs, integer(seed, "certify"))
    if isinstance(pairs, SampledSwap) and records_of(mechanism.statistic, mechanism.points) is not None:
        return Updated(mechanism, pairs)
    return Fitted(mechanism, pairs)


@dataclass(frozen=True, eq=False)
class _Reseeded:
    """The data sets of some pairs; one seed for each draw, as there, but other seeds for each release."""

    pairs: SampledCoupling
    release: int

    @property
    def n_fits(self) -> int:
        return self.pairs.n_fits

    @property
    def fit_seeds(self) -> Int[Array, " m"]:
        return (self.pairs.fit_seeds + integer(self.pairs.seed, "release", self.release)) % 2**32

    def rows(self, rows: slice) -> Bool[Array, "m n"]:
        return self.pairs.rows(rows)


def _finite(v: Float[Array, "p d"]) -> Float[Array, "q d"]:
    return v[np.isfinite(v).all(axis=1)]
