"""Simulated games against a release: how it is attacked, the data sets that are drawn, and how an attacker fared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

from leakscope.core.checks import count, probability
from leakscope.core.findings import Term
from leakscope.core.grid import Grid
from leakscope.core.seeds import stream
from leakscope.core.tradeoff import TradeOff
from leakscope.core.types import Noise
from leakscope.protection.mechanism import Mechanism
from leakscope.releases.statistics.features import sums
from leakscope.runtime.observe import DataSets

Array = np.ndarray
_MEMBERS = 1 << 27  # memberships drawn at once
_RECORDS = 8192  # whose memberships are held as doubles at once


@dataclass(frozen=True, eq=False)
class AttackConfig:
    """How a release is attacked.

    Parameters
    ----------
    n_games : int
        Releases that are simulated; 0: none.
    seed : int
        Of the simulation, never of a real release.
    confidence : float
        Of the intervals.
    fpr : tuple of float
        False-alarm rates of interest.
    record : int, optional
        Who is attacked; the most exposed record unless given. Of no account where the promise is average.
    promise : {"every", "average"}
        Against one record, or against one that is drawn anew for each game.
    unit : str
        What a record is called.
    grid : Grid, optional
        Of the statistic (of the sums behind a mean), where it is rounded before the noise is added.
    noisy_coords : bool array of shape (d,), optional
        Coordinates that get noise, where the others are the same for all data sets; all of them unless given.
    """

    n_games: int
    seed: int = 0
    confidence: float = 0.95
    fpr: tuple[float, ...] = (0.01, 0.001)
    record: int | None = None
    promise: Literal["every", "average"] = "every"
    unit: str = "record"
    grid: Grid | None = None
    noisy_coords: Bool[Array, " d"] | None = None

    def __post_init__(self) -> None:
        count("games", self.n_games, least=0)
        probability("confidence", self.confidence, open_ends=True)
        for rate in self.fpr:
            probability("fpr", rate, open_ends=True)

    def features(self, mechanism: Mechanism) -> Float[Array, "n d"] | None:
        """What a sum or mean is of, on the grid."""
        if mechanism.features is None:
            return None
        return self._moving(mechanism.features if self.grid is None else self.grid.snap(mechanism.features))

    def outputs(self, mechanism: Mechanism, sets: DataSets) -> Float[Array, "m d"]:
        """The statistic as it is released but for the noise; NaN where it failed."""
        features = self.features(mechanism)
        if features is not None and self.grid is not None:  # sums on the grid are exact
            return sums(features, sets.member)[0] / mechanism.divisor
        made = mechanism.outputs(sets)
        return self._moving(made if self.grid is None else self.grid.snap(made))

    def target(self, exposure: Float[Array, " n"]) -> int | None:
        """The record that is attacked, given how exposed each one is; None for another one in each game."""
        if self.promise == "average":
            return None
        return int(exposure.argmax()) if self.record is None else self.record

    def targets(self, record: int | None, n: int, n_games: int) -> Int[Array, " m"]:
        """The record of each game."""
        if record is not None:
            return np.full(n_games, record)
        return stream(self.seed, "calibrate", "contest", "targets").integers(n, size=n_games)

    def noise(self, noise: Noise | None, n_games: int, d: int) -> Float[Array, "m d"]:
        """A simulated draw of the noise for each game."""
        still = np.zeros((n_games, d))
        return still if noise is None else noise.sample(still, stream(self.seed, "calibrate", "contest", "noise"))

    def _moving(self, values: Float[Array, "m d"]) -> Float[Array, "m e"]:
        return values if self.noisy_coords is None else values[:, self.noisy_coords]


@dataclass(frozen=True, eq=False)
class Played:
    """How an attacker fared against one record, or against one drawn anew for each game.

    Parameters
    ----------
    record : int or None
        None: drawn anew for each game.
    score : array of shape (m,)
        Finite; higher = member.
    member, guess : bool arrays of shape (m,)
    attack, source : str
    method : tuple of Term
        As in ``Finding``.
    n_failed : int
        Games whose statistic could not be computed: the guess is the better prior one.
    exact : float or None
        Share of right guesses over all data sets and the distribution of the noise, where it is known.
    curve : TradeOff or None
        The same for the trade-off.
    """

    record: int | None
    score: Float[Array, " m"]
    member: Bool[Array, " m"]
    guess: Bool[Array, " m"]
    attack: str
    source: str
    method: tuple[Term, ...]
    n_failed: int = 0
    exact: float | None = None
    curve: TradeOff | None = None


@dataclass(frozen=True, eq=False)
class Drawn:
    """Data sets as the game draws them, and the statistic on each.

    Parameters
    ----------
    packed : array of shape (m, bytes)
        Memberships, a bit each.
    outputs : array of shape (m, d)
        NaN where the statistic failed.
    n : int
    """

    packed: UInt8[Array, "m bytes"]
    outputs: Float[Array, "m d"]
    n: int

    @classmethod
    def of(cls, mechanism: Mechanism, ask: AttackConfig) -> Drawn:
        """In blocks, so that memberships of very many records fit into memory."""
        packed, outputs = [], []
        size = max(1, _MEMBERS // mechanism.n)
        for start in range(0, ask.n_games, size):
            sets = mechanism.draws(min(size, ask.n_games - start), ask.seed, f"contest {start}")
            packed.append(np.packbits(sets.member, axis=1))
            outputs.append(ask.outputs(mechanism, sets))
        return cls(np.concatenate(packed), np.concatenate(outputs), mechanism.n)

    @property
    def failed(self) -> Bool[Array, " m"]:
        """Data sets on which the statistic could not be computed."""
        return np.logical_not(np.isfinite(self.outputs).all(axis=1))

    def take(self, rows: Bool[Array, " m"] | slice) -> Drawn:
        """Some of the data sets."""
        return Drawn(self.packed[rows], self.outputs[rows], self.n)

    def member(self, targets: Int[Array, "m J"]) -> Bool[Array, "m J"]:
        """Whether the records of each game are in its data set."""
        bits = np.take_along_axis(self.packed, targets // 8, axis=1) >> (7 - targets % 8)
        return (bits & 1).astype(bool)

    def sums(self, values: Float[Array, "m e"]) -> Float[Array, "n e"]:
        """For each record the sum over the data sets that hold it."""
        parts = []
        for start in range(0, self.n, _RECORDS):
            bits = self.packed[:, start // 8 : (start + _RECORDS) // 8]
            inside = np.unpackbits(bits, axis=1, count=min(_RECORDS, self.n - start))
            parts.append(inside.T.astype(float) @ values)
        return np.concatenate(parts)
