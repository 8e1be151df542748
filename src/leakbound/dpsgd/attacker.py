"""The attacker who observes the steps of DP-SGD: the watched points, and what is known of the other records.

Axes: J watched points, P known records, r reference gradients.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from jaxtyping import Int

from leakbound.core.checks import count, one_of
from leakbound.core.seeds import stream

Array = np.ndarray
MOST_REFERENCES = 256


@dataclass(frozen=True, eq=False)
class Attacker:
    """The watched points, and what the attacker knows of the other records."""

    watched: Int[Array, " J"]
    known: Int[Array, " P"]
    knowledge: Literal["distribution", "others"] = "distribution"
    coordinates: Int[Array, " c"] = field(default_factory=lambda: np.zeros(0, dtype=int))
    n_references: int = MOST_REFERENCES
    seed: int = 0

    def __post_init__(self) -> None:
        one_of("knowledge", self.knowledge, ("distribution", "others"))
        if count("references", self.n_references, least=2) > MOST_REFERENCES:
            raise ValueError(f"references must be <= {MOST_REFERENCES}, got {self.n_references:,}")
        if not len(self.watched) or len(self.coordinates) not in (0, len(self.watched)):
            numbers = f"{len(self.coordinates):,} coordinates for {len(self.watched):,} watched points"
            raise ValueError(f"{numbers}; give at least one point, and a coordinate to each or to none")
        if self.knowledge == "distribution" and not self.unknown:
            raise ValueError("the distribution of the others needs at least 2 records besides a watched point")

    @property
    def records(self) -> Int[Array, " k"]:
        """The watched points that are records: all or none."""
        return self.watched[: 0 if len(self.coordinates) else None]

    @property
    def n_records(self) -> float:
        """Expected number of records in the training data."""
        return len(self.known) + len(self.records) / 2

    @cached_property
    def unknown(self) -> tuple[Stratum, ...]:
        """The records whose batches are not known: watched points and known members apart."""
        groups = [(self.records, 0.5)] + ([(self.known, 1.0)] if self.knowledge == "distribution" else [])
        groups = [(indices, inside) for indices, inside in groups if len(indices) >= 2]
        n_expected = sum(len(indices) * inside for indices, inside in groups)
        strata = []
        for indices, inside in groups:
            n_drawn = round(self.n_references * len(indices) * inside / n_expected)  # in proportion to the members
            strata.append(Stratum(indices, inside, min(len(indices), max(2, n_drawn))))
        return tuple(strata)

    def references(self, step: int) -> Int[Array, " r"]:
        """Draw the records that represent all others in a step, stratum by stratum.

        They are drawn anew for each step: with the same ones the errors of all steps would add up.
        """
        rng = stream(self.seed, "references", step)
        drawn = [np.sort(rng.choice(stratum.indices, stratum.n_drawn, replace=False)) for stratum in self.unknown]
        return np.concatenate([np.zeros(0, dtype=int), *drawn])


@dataclass(frozen=True, eq=False)
class Stratum:
    """Records with the same probability of being in: those drawn in a step represent all of them."""

    indices: Int[Array, " n"]
    inside: float
    n_drawn: int

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.indices)
