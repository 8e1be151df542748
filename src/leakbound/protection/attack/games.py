"""The games of an attack: data sets are drawn as in a release, and the statistic is computed on each of them.

Everything is simulated, from streams of random numbers of its own: never a real draw, never a real noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

from leakbound.core.checks import count, probability
from leakbound.core.findings import Term
from leakbound.core.grid import Grid
from leakbound.core.seeds import stream
from leakbound.core.tradeoff import TradeOff
from leakbound.core.types import Noise, Scores
from leakbound.protection.setting.mechanism import Mechanism
from leakbound.runtime.observe import DataSets

Array = np.ndarray
_MEMBERS = 1 << 27  # memberships drawn at once
_RECORDS = 8192  # records whose memberships are held as doubles at once


@dataclass(frozen=True, eq=False)
class AttackConfig:
    """How a release is attacked."""

    n_games: int
    seed: int = 0
    confidence: float = 0.95
    fpr: tuple[float, ...] = (0.01, 0.001)
    record: int | None = None  # the most exposed one unless given; ignored where the promise is average
    promise: Literal["every", "average"] = "every"
    grid: Grid | None = None  # of the statistic, or of the sums behind a mean, before the noise is added
    noisy_coords: Bool[Array, " d"] | None = None  # those with noise; the others are the same for all data sets

    def __post_init__(self) -> None:
        count("games", self.n_games, least=0)
        probability("confidence", self.confidence, open_ends=True)
        for rate in self.fpr:
            probability("fpr", rate, open_ends=True)

    def features(self, mechanism: Mechanism) -> Float[Array, "n e"] | None:
        """Return what a sum or mean is of, on the grid; None for other statistics."""
        if mechanism.features is None:
            return None
        features = mechanism.features if self.grid is None else self.grid.snap(mechanism.features)
        return features if self.noisy_coords is None else features[:, self.noisy_coords]

    def outputs(self, mechanism: Mechanism, sets: DataSets) -> Float[Array, "m e"]:
        """Compute the statistic as it is released but for the noise; NaN where it failed."""
        outputs = None if self.grid is None else mechanism.on_grid(sets, self.grid)
        if outputs is None:
            outputs = mechanism.outputs(sets)
            outputs = outputs if self.grid is None else self.grid.snap(outputs)
        return outputs if self.noisy_coords is None else outputs[:, self.noisy_coords]

    def target(self, exposure: Float[Array, " n"]) -> int | None:
        """Choose the record that is attacked, the most exposed one unless given; None: another one in each game."""
        if self.promise == "average":
            return None
        return int(exposure.argmax()) if self.record is None else self.record

    def targets(self, record: int | None, n_records: int, n_games: int) -> Int[Array, "m 1"]:
        """Return the index of the target of each game."""
        if record is not None:
            return np.full((n_games, 1), record)
        return stream(self.seed, "calibrate", "contest", "targets").integers(n_records, size=n_games)[:, None]

    def noise(self, noise: Noise | None, n_games: int, d: int) -> Float[Array, "m d"]:
        """Draw the noise of each game."""
        zero = np.zeros((n_games, d))
        return zero if noise is None else noise.sample(zero, stream(self.seed, "calibrate", "contest", "noise"))


@dataclass(frozen=True, eq=False)
class AttackResult:
    """How far an attacker got against one record, or against one that is drawn anew for each game."""

    record: int | None
    scores: Scores
    guess: Bool[Array, " m"]
    method: tuple[Term, ...]
    n_failed: int = 0
    # over all data sets and the distribution of the noise, where it can be computed: then nothing is estimated
    accuracy: float | None = None
    tradeoff: TradeOff | None = None


@dataclass(frozen=True, eq=False)
class SimulatedSets:
    """Data sets as the game draws them, and the statistic on each."""

    packed: UInt8[Array, "m bytes"]
    outputs: Float[Array, "m d"]
    n: int

    @classmethod
    def of(cls, mechanism: Mechanism, config: AttackConfig) -> SimulatedSets:
        """Draw in blocks, so that memberships of very many records fit into memory."""
        packed, outputs = [], []
        size = max(1, _MEMBERS // mechanism.n)
        for start in range(0, config.n_games, size):
            sets = mechanism.draws(min(size, config.n_games - start), config.seed, f"contest {start}")
            packed.append(np.packbits(sets.member, axis=1))
            outputs.append(config.outputs(mechanism, sets))
        return cls(np.concatenate(packed), np.concatenate(outputs), mechanism.n)

    @property
    def failed(self) -> Bool[Array, " m"]:
        """Data sets on which the statistic could not be computed."""
        return np.logical_not(np.isfinite(self.outputs).all(axis=1))

    def take(self, rows: Bool[Array, " m"] | slice) -> SimulatedSets:
        """Select some of the data sets."""
        return SimulatedSets(self.packed[rows], self.outputs[rows], self.n)

    def member(self, targets: Int[Array, "m J"]) -> Bool[Array, "m J"]:
        """Tell which of the target records of each game are in its data set."""
        bits = np.take_along_axis(self.packed, targets // 8, axis=1) >> (7 - targets % 8)
        return (bits & 1).astype(bool)

    def sums(self, values: Float[Array, "m e"]) -> Float[Array, "n e"]:
        """Sum, for each record, the values of the data sets that hold it."""
        parts = []
        for start in range(0, self.n, _RECORDS):
            bits = self.packed[:, start // 8 : (start + _RECORDS) // 8]
            inside = np.unpackbits(bits, axis=1, count=min(_RECORDS, self.n - start))
            parts.append(inside.T.astype(float) @ values)
        return np.concatenate(parts)
