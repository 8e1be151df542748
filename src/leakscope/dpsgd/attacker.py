"""Who watches the steps of DP-SGD: whose records, and what is known of the others.

Axes: J watched points, P known records, r reference gradients.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from jaxtyping import Int

from leakscope.core.checks import count, one_of
from leakscope.core.seeds import stream

Array = np.ndarray
MOST_REFERENCES = 256


@dataclass(frozen=True, eq=False)
class Attacker:
    """Whose steps are watched, and what is known of the others.

    Parameters
    ----------
    watched : int array of shape (J,)
        Numbers of the watched points, each in by a fair coin.
    known : int array of shape (P,)
        Numbers of the records that everybody knows to be in.
    knowledge : {"distribution", "others"}
        The gradients of these records, or their batches too.
    coordinates : int array of shape (J,) or (0,)
        Where each watched point is a Dirac canary: the one coordinate of its gradient.
    n_references : int
        Records whose gradients are followed to know the law of all, 2 to 256.
    seed : int
        Of their draw.

    Raises
    ------
    ValueError
        In one line.
    """

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
            given = f"{len(self.coordinates):,} coordinates for {len(self.watched):,} watched points"
            raise ValueError(f"{given}; give at least one point, and a coordinate to each or to none")
        if self.knowledge == "distribution" and not self.unknown:
            raise ValueError("the law of the others needs at least 2 records beside a watched point")

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
        groups = [(numbers, inside) for numbers, inside in groups if len(numbers) >= 2]
        n_expected = sum(len(numbers) * inside for numbers, inside in groups)
        shares = [round(self.n_references * len(numbers) * inside / n_expected) for numbers, inside in groups]
        return tuple(
            Stratum(numbers, inside, min(len(numbers), max(2, share)))
            for (numbers, inside), share in zip(groups, shares, strict=True)
        )

    def references(self, step: int) -> Int[Array, " r"]:
        """The records that stand for all in a step, stratum by stratum.

        They are drawn anew for each step: with the same ones the errors of all steps would add up.
        """
        rng = stream(self.seed, "references", step)
        drawn = [np.sort(rng.choice(each.numbers, each.n_drawn, replace=False)) for each in self.unknown]
        return np.concatenate([np.zeros(0, dtype=int), *drawn])


@dataclass(frozen=True, eq=False)
class Stratum:
    """Records that are alike: those drawn in a step stand for all.

    Parameters
    ----------
    numbers : int array of shape (n,)
    inside : float
        Probability that one of them is in the training data.
    n_drawn : int
        r.
    """

    numbers: Int[Array, " n"]
    inside: float
    n_drawn: int

    @property
    def n(self) -> int:
        """How many there are."""
        return len(self.numbers)
