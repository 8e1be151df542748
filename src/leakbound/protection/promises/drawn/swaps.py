"""Matched rounds of swaps without a fit for each swap: a pair for every record at about the cost of one fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from leakbound.core.grid import Grid
from leakbound.noise import Lp, Mahalanobis, SampledSwap, Shifts
from leakbound.noise.norms import EUCLIDEAN
from leakbound.protection.setting.mechanism import Mechanism
from leakbound.releases.statistics.leave_one_out import exact, records_of, swapped
from leakbound.runtime import pool
from leakbound.runtime.progress import progress

Array = np.ndarray
_LENGTHS = 2**18  # that a worker makes at once, by whole rounds
_ROUNDS = 64  # and at most so many
_COUPLES = 2**15  # whose lengths are measured at once
_DOUBLES = 10**8  # lengths beyond this number are kept in single precision


def swap_shifts(
    mechanism: Mechanism,
    pairs: SampledSwap,
    grid: Grid,
    norm: Lp | Mahalanobis = EUCLIDEAN,
    noisy_coords: Bool[Array, " d"] | None = None,
) -> tuple[Shifts, int]:
    """Measure the shifts of matched rounds of swaps; D is fitted, and the swaps follow from it by `swapped`.

    They are those of ``pairs.shifts(grid.snap(mechanism.outputs(pairs)), norm, noisy_coords)``, without its
    ``max(k, n-k) + 1`` fits a round. Lengths are raised for the arithmetic of the closed form, which may round to the
    next step of the grid where a fit does not; never by more than twice the length of a step in all coordinates.
    Quantiles need none, and neither do two records with the same values, of which nothing tells the swap.

    >>> from leakbound.runtime.observe import Execution
    >>> from leakbound.releases.statistics.statistic import named
    >>> from leakbound.core.types import Points
    >>> points = Points(np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [20.0]]))
    >>> median = Mechanism(named("quantiles", probabilities=(0.5,)), points, 3, Execution(n_jobs=1))
    >>> shifts, n_failures = swap_shifts(median, SampledSwap(n=6, k=3, n_pairs=100), Grid(2.0**-10))
    >>> shifts.values.shape, float(shifts.values.max()), n_failures
    ((6, 100), 3.0, 0)
    """
    statistic = mechanism.statistic
    if records_of(statistic, mechanism.points) is None:
        raise ValueError(
            f"{statistic.name} has no closed form for a swap; covariance, least squares and quantiles have"
        )
    if (pairs.n, pairs.k) != (mechanism.n, mechanism.k):
        raise ValueError(f"the pairs have n = {pairs.n}, k = {pairs.k}; the data {mechanism.n}, {mechanism.k}")
    noisy_coords = np.ones(mechanism.d, dtype=bool) if noisy_coords is None else noisy_coords
    if noisy_coords.shape != (mechanism.d,) or not noisy_coords.any():
        raise ValueError(
            f"noisy_coords must be {mechanism.d} truth values, one of them true, got {noisy_coords.tolist()}"
        )
    single = pairs.n * pairs.n_pairs > _DOUBLES  # single precision halves the memory; lengths are then rounded up
    values = np.empty((pairs.n, pairs.n_pairs), dtype=np.float32 if single else np.float64)
    rounds, n_failures = _Rounds(mechanism, pairs, grid, norm, noisy_coords, single), 0
    size = min(max(1, _LENGTHS // pairs.n), _ROUNDS)

    chunks = [range(first, min(first + size, pairs.n_pairs)) for first in range(0, pairs.n_pairs, size)]
    with progress(f"rounds of {statistic.name}", pairs.n_pairs) as advance:
        places = mechanism.execution.n_jobs, mechanism.execution.temporary_place
        for number, columns in pool.run(rounds.lengths, [(chunk,) for chunk in chunks], *places):
            draws = chunks[number]
            for draw, column in zip(draws, columns, strict=True):
                n_failures += column is None
                values[:, draw] = np.inf if column is None else column  # a failed fit counts as the longest shift
            advance(len(draws))
    d = int(noisy_coords.sum())
    return Shifts(
        values,
        pairs.name,
        d,
        norm,
        mechanism.prior,
        False,
        pairs.promise,
        separating_fraction=pairs.separating_fraction,
    ), n_failures


@dataclass(frozen=True, eq=False)
class _Rounds:
    """What a worker does."""

    mechanism: Mechanism
    pairs: SampledSwap
    grid: Grid
    norm: Lp | Mahalanobis
    noisy_coords: Bool[Array, " d"]
    single: bool

    def lengths(self, draws: range) -> list[Float[Array, " n"] | None]:
        """Compute a length for each record; None for a round whose D fails."""
        records = records_of(self.mechanism.statistic, self.mechanism.points)
        assert records is not None
        return [self._round(draw, records) for draw in draws]

    def _round(self, draw: int, records: Float[Array, "n c"]) -> Float[Array, " n"] | None:
        statistic, points = self.mechanism.statistic, self.mechanism.points
        leaving, entering = self.pairs.couples(draw)
        inside = np.zeros(self.pairs.n, dtype=bool)
        inside[leaving] = True
        fitted = self.grid.snap(statistic.observe(points, inside[None], np.zeros(1, dtype=int))["output"][0])
        if not np.isfinite(fitted).all():
            return None
        outputs = swapped(statistic, points, inside, leaving, entering)
        assert outputs is not None
        lengths = np.empty(len(outputs), dtype=np.float32 if self.single else np.float64)
        for start in range(0, len(outputs), _COUPLES):
            block = slice(start, start + _COUPLES)
            equal = (records[leaving[block]] == records[entering[block]]).all(axis=1)
            length = np.where(equal, 0.0, self._raised(fitted - self.grid.snap(outputs[block])))
            lengths[block] = _rounded_up(length) if self.single else length
        return self.pairs.by_record(draw, lengths)

    def _raised(self, v: Float[Array, "b d"]) -> Float[Array, " b"]:
        """Raise lengths to at least those of fits; NaN where a fit failed, infinite if a public coordinate differs.

        A fit and the closed form differ by less than a step h in each coordinate. Real numbers less than h apart
        have nearest multiples of h at most one step apart: from (m + 1/2) h, the last that may go down to m, to
        (m + 3/2) h, the first that may go up to m + 2, it is h. So the differences v on the grid differ by a
        vector e with |e_i| <= h, and by the triangle inequality ``||v_fit|| <= ||v|| + max ||e||``.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            length = self.norm(v[:, self.noisy_coords]) + self._slack
            return np.where((v[:, ~self.noisy_coords] != 0).any(axis=1), np.inf, length)

    @property
    def _slack(self) -> float:
        """At least the length of every vector with coordinates up to a step."""
        if exact(self.mechanism.statistic):
            return 0.0
        steps = np.broadcast_to(self.grid.steps, self.noisy_coords.shape)[self.noisy_coords]
        if isinstance(self.norm, Lp):
            return float(self.norm(steps))
        whitened = self.norm.standardise(np.diag(steps))  # e^T S^-1 e is at most the sum of |h_i S^-1_ij h_j|
        return float(np.sqrt(np.abs(whitened @ whitened.T).sum()))


def _rounded_up(lengths: Float[Array, " b"]) -> Float[Array, " b"]:
    """Round up to single precision."""
    with np.errstate(over="ignore"):
        single = lengths.astype(np.float32)
    return np.where(single < lengths, np.nextafter(single, np.float32(np.inf)), single)
