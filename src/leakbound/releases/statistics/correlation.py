"""Correlations of columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float

from leakbound.core.types import Points
from leakbound.releases.statistics.features import columns_of, numbers

Array = np.ndarray


@final
@dataclass(frozen=True)
class Correlation:
    """Correlations of each two columns: the upper triangle without its diagonal, row by row.

    It cannot be computed where a column is constant.

    >>> x = np.array([[1.0, 2.0, 1.0], [2.0, 4.0, 5.0], [3.0, 6.0, 6.0]])
    >>> Correlation()(Points(x), np.random.default_rng(0)).round(4).tolist()
    [1.0, 0.9449, 0.9449]
    """

    def labels(self, points: Points) -> list[str]:
        """Name the pairs, as ``"correlation of age hours"``."""
        names = columns_of(points.x)
        return [f"correlation of {first} {second}" for row, first in enumerate(names) for second in names[row + 1 :]]

    def __call__(self, points: Points, rng: np.random.Generator) -> Float[Array, " p"]:
        """Compute the correlations."""
        table = numbers(points.x)
        names = columns_of(points.x)
        if len(names) < 2:
            raise ValueError(f"a correlation needs two columns, got {', '.join(names)}")
        constant = np.ptp(table, axis=0) == 0
        if constant.any():
            raise ValueError(f"column {names[int(constant.argmax())]} is constant: it has no correlation")
        unit = centred(table)
        unit /= np.sqrt(np.square(unit).sum(axis=0))
        return np.clip((unit.T @ unit)[np.triu_indices(len(names), 1)], -1, 1)


def centred(table: Float[Array, "n c"]) -> Float[Array, "n c"]:
    """Subtract the means, and divide each column by its largest deviation: no square overflows, none is lost."""
    table = table - table.mean(axis=0)
    table -= table.mean(axis=0)  # what the first mean lost by rounding
    largest = np.abs(table).max(axis=0)
    return table / np.where(largest > 0, largest, 1)
