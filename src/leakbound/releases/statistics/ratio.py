"""Ratios of totals: what all records together have of one column for each unit of another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from jaxtyping import Float

from leakbound.core.checks import one_of
from leakbound.core.types import Points
from leakbound.releases.statistics.features import columns_of, numbers

Array = np.ndarray


@final
@dataclass(frozen=True)
class Ratio:
    """The total of each column over the total of one of them, as the wage bill for each hour worked.

    >>> points = Points(np.array([[100.0, 10.0], [300.0, 10.0]]))
    >>> Ratio().labels(points), Ratio()(points, np.random.default_rng(0)).tolist()
    (['x0 per x1'], [20.0])
    """

    denominator: str = ""

    def labels(self, points: Points) -> list[str]:
        """Name the ratios, as ``"wage per hours"``."""
        numerators, denominator = self.columns(points.x)
        return [f"{name} per {denominator}" for name in numerators]

    def __call__(self, points: Points, rng: np.random.Generator) -> Float[Array, " c"]:
        """Compute the ratios."""
        above, below = self.table(points.x)
        total = below.sum()
        if total == 0:
            raise ValueError(f"the total of {self.columns(points.x)[1]} is 0, and nothing can be divided by it")
        return above.sum(axis=0) / total

    def columns(self, x: Any) -> tuple[list[str], str]:
        """Return the names of the columns that are divided, and of the one by which they are."""
        names = columns_of(x)
        denominator = one_of("denominator", self.denominator, names) if self.denominator else names[-1]
        numerators = [name for name in names if name != denominator]
        if not numerators:
            raise ValueError(f"a ratio needs two columns, got {denominator}")
        return numerators, denominator

    def table(self, x: Any) -> tuple[Float[Array, "N c"], Float[Array, " N"]]:
        """Return the columns that are divided, and the one by which they are."""
        place = columns_of(x).index(self.columns(x)[1])
        table = numbers(x)
        return np.delete(table, place, axis=1), table[:, place]
