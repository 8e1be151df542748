"""Sampled couplings: which data sets to fit an algorithm to, and what their outputs say.

For algorithms that are too costly, or data too large, for all data sets. A draw is a random order of the records;
its data sets are made of fixed places in that order, the first of them D, the others its partners D'. The draws
are independent, and each gives one pair to each row of the shifts: the pairs of a row are independent with the
distribution of the coupling, which is all that the Chernoff limit of `calibrate` needs. Rows may depend on each other.

A randomised algorithm gets one seed for all data sets of a draw: any joint distribution of its randomness is a
coupling, and the same randomness gives the shortest shifts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, final

import numpy as np
from jaxtyping import Bool, Float, Int, Num

from leakbound.core.checks import count
from leakbound.core.seeds import integer, stream
from leakbound.noise.couplings import subset_size
from leakbound.noise.norms import EUCLIDEAN, Lp, Mahalanobis
from leakbound.noise.shifts import Shifts

Array = np.ndarray


@dataclass(frozen=True)
class SampledCoupling(ABC):
    """A coupling of which random pairs are fitted.

    Parameters
    ----------
    n : int
        Number of records, >= 2.
    k : int
        Number of records in D, from 1 to n - 1.
    n_pairs : int
        Pairs in each row of the shifts. More pairs begin with the same ones.
    seed : int
        Of the draws. Pairs that choose a coupling or a shape need another seed than those that certify it.

    Examples
    --------
    >>> from leakbound.noise import AverageSwap
    >>> pairs = AverageSwap(n=5, k=2, n_pairs=100)
    >>> pairs.member.shape, pairs.fit_seeds.shape
    ((200, 5), (200,))
    """

    n: int
    k: int
    n_pairs: int
    seed: int = 0

    promise: ClassVar[Literal["every", "average"]]

    def __post_init__(self) -> None:
        count("n", self.n, least=2)
        subset_size(self.k, self.n)
        count("n_pairs", self.n_pairs)

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the coupling."""

    @property
    @abstractmethod
    def separating_fraction(self) -> float:
        """Probability that a pair of a row tells a record of that row apart."""

    @property
    @abstractmethod
    def fits_a_pair(self) -> int:
        """Number of data sets of a draw."""

    @abstractmethod
    def _pattern(self) -> Bool[Array, "fits n"]:
        """Return the data sets of a draw: places in the order of the records."""

    @final
    @cached_property
    def _places(self) -> Bool[Array, "fits n"]:
        """`_pattern`, computed once."""
        return self._pattern()

    @final
    def _order(self, draw: int) -> Int[Array, " n"]:
        """Return the records in the random order of a draw."""
        path = self.name.replace(
            "_", " "
        )  # part of the seed: pairs stay those that were drawn before the name was an id
        return stream(self.seed, "calibrate", path, self.n, self.k, draw).permutation(self.n)

    @final
    @property
    def n_fits(self) -> int:
        """The number m of data sets to fit."""
        return self.n_pairs * self.fits_a_pair

    @final
    def rows(self, rows: slice) -> Bool[Array, "m n"]:
        """Return some of the data sets to fit, those of a draw one after the other.

        Parameters
        ----------
        rows : slice
            From the first of them to the last, for example ``slice(0, 8)``: all at once may not fit into memory.
        """
        first, last, _ = rows.indices(self.n_fits)
        size = self.fits_a_pair
        member = np.empty((last - first, self.n), dtype=bool)
        for draw in range(first // size, -(-last // size)):
            fits = np.arange(max(first, draw * size), min(last, (draw + 1) * size))
            member[fits[:, None] - first, self._order(draw)] = self._places[fits - draw * size]
        return member

    @final
    @property
    def member(self) -> Bool[Array, "m n"]:
        """All data sets to fit."""
        return self.rows(slice(None))

    @final
    @property
    def fit_seeds(self) -> Int[Array, " m"]:
        """A seed for each fit, the same for all fits of a draw."""
        return self._fit_seeds

    @final
    @cached_property
    def _fit_seeds(self) -> Int[Array, " m"]:
        seeds = [integer(self.seed, "calibrate", self.name, "fit", draw) for draw in range(self.n_pairs)]
        return np.repeat(seeds, self.fits_a_pair)

    @final
    def differences(self, outputs: Num[Array, "m d"]) -> Float[Array, "P pairs d"]:
        """Compute ``A(D) - A(D')`` of all pairs of each draw; NaN or infinite where a fit failed.

        Parameters
        ----------
        outputs : array of shape (m, d)
            A of the rows of `member`; a row that is not finite is a fit that failed.

        Returns
        -------
        array of shape (n_pairs, pairs of a draw, d)
        """
        outputs = np.asarray(outputs, dtype=float)
        if outputs.ndim != 2 or len(outputs) != self.n_fits or not outputs.shape[1]:
            raise ValueError(f"outputs must have shape ({self.n_fits}, d), got {outputs.shape}")
        by_draw = outputs.reshape(self.n_pairs, -1, outputs.shape[1])
        with np.errstate(over="ignore", invalid="ignore"):  # a failed fit, or a difference that overflows
            return by_draw[:, :1] - by_draw[:, 1:]

    @final
    def shifts(
        self,
        outputs: Num[Array, "m d"],
        norm: Lp | Mahalanobis = EUCLIDEAN,
        noisy_coords: Bool[Array, " d"] | None = None,
    ) -> Shifts:
        """Measure the lengths of the shifts of all pairs; a pair with a failed fit has infinite length.

        Parameters
        ----------
        outputs : array of shape (m, d)
            As in `differences`.
        norm : Lp or Mahalanobis
            That of the noise; its shape must come from other pairs, or be public.
        noisy_coords : bool array of shape (d,), optional
            Coordinates that get noise, all unless given; chosen on other pairs. A pair that differs in another
            one has infinite length: the release tells its data sets apart.

        Returns
        -------
        Shifts
            Sampled: what follows from them has a confidence.
        """
        v = self.differences(outputs)
        noisy_coords = np.ones(v.shape[2], dtype=bool) if noisy_coords is None else noisy_coords
        if noisy_coords.shape != v.shape[2:] or not noisy_coords.any():
            raise ValueError(
                f"noisy_coords must be {v.shape[2]} truth values, one of them true, got {noisy_coords.tolist()}"
            )
        with np.errstate(over="ignore", invalid="ignore"):
            lengths = np.where((v[..., ~noisy_coords] != 0).any(axis=2), np.inf, norm(v[..., noisy_coords]))
        return Shifts(
            self._rows(lengths),
            self.name,
            int(noisy_coords.sum()),
            norm,
            self.k / self.n,
            exact=False,
            promise=self.promise,
            separating_fraction=self.separating_fraction,
        )

    @abstractmethod
    def _rows(self, lengths: Float[Array, "P pairs"]) -> Float[Array, "R P"]:
        """Arrange the lengths of all draws in rows of independent pairs."""


@final
@dataclass(frozen=True)
class SampledSwap(SampledCoupling):
    """Matched rounds: a random D, and swaps that give one pair to every record at once. Tight for stable algorithms.

    A round matches members with non-members at random, each record of the larger side once and each of the smaller
    side at least once, and swaps each matched couple. So ``max(k, n-k) + 1`` fits hold a
    pair for each of the n records: x in D leaves for a uniform non-member, x outside takes the place of a uniform
    member, which read backwards is x leaving a uniform data set that holds it.

    Parameters
    ----------
    n : int
        Number of records, >= 2.
    k : int
        Number of records in D, from 1 to n - 1.
    n_pairs : int
        Number of rounds, and pairs in each row.
    seed : int
        As in `SampledCoupling`.

    Examples
    --------
    >>> from leakbound.noise import SampledSwap
    >>> pairs = SampledSwap(n=6, k=3, n_pairs=100)
    >>> outputs = (pairs.member * [0.0, 1.0, 2.0, 3.0, 4.0, 20.0]).max(axis=1, keepdims=True)
    >>> pairs.n_fits, pairs.shifts(outputs).values.shape
    (400, (6, 100))
    """

    promise: ClassVar[Literal["every", "average"]] = "every"

    @property
    def name(self) -> str:
        """``"swap"``."""
        return "swap"

    @property
    def separating_fraction(self) -> float:
        """1, as each pair swaps the record of its row."""
        return 1.0

    @property
    def fits_a_pair(self) -> int:
        """D, and a swap for each record of the larger side: a pair for every record."""
        return max(self.k, self.n - self.k) + 1

    def _pattern(self) -> Bool[Array, "fits n"]:
        """Return the first k places, and then each swap of them."""
        places = np.repeat([np.arange(self.n) < self.k], self.fits_a_pair, axis=0)
        for side, inside in zip(self._couples(), (False, True), strict=True):
            places[np.arange(1, self.fits_a_pair), side] = inside
        return places

    def _couples(self) -> tuple[Int[Array, " pairs"], Int[Array, " pairs"]]:
        """Return the places of the j-th member and the j-th non-member; the smaller side begins again at its end."""
        swap = np.arange(self.fits_a_pair - 1)
        return swap % self.k, self.k + swap % (self.n - self.k)

    def couples(self, draw: int) -> tuple[Int[Array, " pairs"], Int[Array, " pairs"]]:
        """Return the records that leave and enter in the swaps of a round; all of D leave in some swap.

        Examples
        --------
        >>> from leakbound.noise import SampledSwap
        >>> pairs = SampledSwap(n=5, k=2, n_pairs=1)
        >>> leaving, entering = pairs.couples(0)
        >>> set(leaving) == set(pairs.member[0].nonzero()[0]), len(set(entering))
        (True, 3)
        """
        order, (leaving, entering) = self._order(draw), self._couples()
        return order[leaving], order[entering]

    def by_record(self, draw: int, lengths: Float[Array, " pairs"]) -> Float[Array, " n"]:
        """Return the length of the first swap of each record; later swaps of the same record are not independent."""
        values = np.empty(self.n, dtype=lengths.dtype)
        values[self._order(draw)] = lengths[np.r_[: self.k, : self.n - self.k]]
        return values

    def _rows(self, lengths: Float[Array, "P pairs"]) -> Float[Array, "n P"]:
        """Return a row for each record."""
        return np.column_stack([self.by_record(draw, row) for draw, row in enumerate(lengths)])


@final
@dataclass(frozen=True)
class AverageSwap(SampledCoupling):
    """Swap of a random record: two fits for a pair, and a promise for a record drawn at random, not for every record.

    Parameters
    ----------
    n : int
        Number of records, >= 2.
    k : int
        Number of records in D, from 1 to n - 1.
    n_pairs : int
        Number of pairs.
    seed : int
        As in `SampledCoupling`.

    Examples
    --------
    >>> from leakbound.noise import AverageSwap
    >>> AverageSwap(n=5, k=2, n_pairs=100).n_fits
    200
    """

    promise: ClassVar[Literal["every", "average"]] = "average"

    @property
    def name(self) -> str:
        """``"average_swap"``."""
        return "average_swap"

    @property
    def separating_fraction(self) -> float:
        """1, as each pair swaps the record that was drawn."""
        return 1.0

    @property
    def fits_a_pair(self) -> int:
        """2."""
        return 2

    def _pattern(self) -> Bool[Array, "2 n"]:
        place = np.arange(self.n)
        return np.array([place < self.k, (place >= 1) & (place <= self.k)])

    def _rows(self, lengths: Float[Array, "P pairs"]) -> Float[Array, "R P"]:
        """Return one row, of the only pair of each draw."""
        return lengths.T


@final
@dataclass(frozen=True)
class SampledDisjoint(SampledCoupling):
    """D compared with a D' that shares as little as possible: two fits for a pair, and one row for all records.

    For k = n/2 it is the complement: each pair tells every record apart. For other k a random pair of disjoint sets
    (for k > n/2: of sets that cover everything) tells a record apart with probability ``2 min(k, n-k)/n``, and given
    that it does it has the distribution of the disjoint coupling of that record: hence the `separating_fraction` of the
    shifts.

    Parameters
    ----------
    n : int
        Number of records, >= 2.
    k : int
        Number of records in D, from 1 to n - 1.
    n_pairs : int
        Number of pairs.
    seed : int
        As in `SampledCoupling`.

    Examples
    --------
    >>> from leakbound.noise import SampledDisjoint
    >>> pairs = SampledDisjoint(n=5, k=2, n_pairs=100)
    >>> pairs.n_fits, pairs.separating_fraction
    (200, 0.8)
    """

    promise: ClassVar[Literal["every", "average"]] = "every"

    @property
    def name(self) -> str:
        """``"complement"`` or, where k is not n/2, ``"disjoint"``."""
        return "complement" if 2 * self.k == self.n else "disjoint"

    @property
    def separating_fraction(self) -> float:
        """Probability that a pair tells a record apart."""
        return 2 * min(self.k, self.n - self.k) / self.n

    @property
    def fits_a_pair(self) -> int:
        """2."""
        return 2

    def _pattern(self) -> Bool[Array, "2 n"]:
        place = np.arange(self.n)
        return np.array([place < self.k, place >= self.n - self.k])

    def _rows(self, lengths: Float[Array, "P pairs"]) -> Float[Array, "R P"]:
        """Return one row, of the only pair of each draw."""
        return lengths.T
