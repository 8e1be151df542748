"""The records (or the cells of a table) of a bound, from most to least exposed.

There may be a million of them: whole columns are handled as arrays, and only the rows that are shown as text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from leakbound.core.findings import BoundType
from leakbound.reports import Table
from leakbound.reports.numbers import THIN, count, digits, fractions, near, percent, settled
from leakbound.reports.phrases import plural
from leakbound.reports.results.words import capital, cut
from leakbound.reports.sentences import Sentence

Array = np.ndarray
MOST = 10  # rows that are shown
BINS = 50  # of the histogram over the records
_INVISIBLE = 0.015  # of the tallest bar: lower ones are less than two pixels high
SUCCESS: Mapping[str, Callable[[Array, float], Array]] = {  # from a column and the accuracy of the prior guess
    "accuracy": lambda values, _: values,
    "eta": lambda values, prior_accuracy: prior_accuracy + values,
    "advantage": lambda values, _: (1 + values) / 2,
}


@dataclass(frozen=True)
class Ranking:
    """A table with a row a record, or a row a cell that holds several."""

    table: Table
    unit: str
    bound_type: BoundType
    prior_accuracy: float

    @property
    def names(self) -> str:
        """The column that names the rows."""
        return next(iter(self.table))

    @property
    def of_cells(self) -> bool:
        """A row is a cell of a table, not a single record."""
        return self.names == "cell"

    @property
    def row_word(self) -> str:
        """What a row is called."""
        return "cell" if self.of_cells else self.unit

    @property
    def rows_word(self) -> str:
        """What the rows are called."""
        return self.row_word if self.n_rows == 1 else plural(self.row_word)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns other than the name."""
        return tuple(name for name in self.table if name != self.names)

    @property
    def n_rows(self) -> int:
        """Records, or cells."""
        return len(self.table[self.names])

    @cached_property
    def accuracy(self) -> Float[Array, " rows"] | None:
        """Accuracy against the records of each row, or None if no column says it."""
        for name, of in SUCCESS.items():
            if name in self.table:
                return of(np.asarray(self.table[name], dtype=float), self.prior_accuracy)
        return None

    @property
    def n_records(self) -> int:
        """Records in all: a cell holds several."""
        sizes = self.table.get("records") if self.of_cells else None
        return self.n_rows if sizes is None else int(np.sum(sizes))

    @property
    def n_first(self) -> int:
        """Rows that are as exposed as the first."""
        name = next((name for name in SUCCESS if name in self.table), None)
        if name is None:
            return 1
        values = np.asarray(self.table[name], dtype=float)
        return int((values == values[0]).sum())

    @property
    def median(self) -> float | None:
        """The smallest accuracy that at least half of the rows do not exceed."""
        if self.accuracy is None or not self.n_rows:
            return None
        return float(np.quantile(self.accuracy, 0.5, method="inverted_cdf"))

    @property
    def logarithmic(self) -> bool:
        """Whether the scale of the histogram is logarithmic."""
        if self.accuracy is None:
            return False
        heights, _ = bins(np.clip(100 * self.accuracy, 0, 100))
        return is_logarithmic(heights)

    def head(self, column: str) -> Sentence:
        """Return the heading of a column; a column of a rate holds it in its name, as ``tpr@0.01``."""
        quantity, _, rate = column.partition("@")
        gaps = {"units": capital(plural(self.unit))}
        if rate:
            gaps["fpr"] = percent(float(rate))
        return Sentence(f"column.{quantity}", gaps)

    def cell(self, column: str, row: int) -> str:
        """Write a value as text, rounded to the side of the bound; a dash where there is none."""
        value = self.table[column][row]
        value = value.item() if isinstance(value, np.generic) else value
        if value is None:
            return "—"
        if isinstance(value, (str, bool)) or column == self.names:
            return str(value) or "(empty)"
        if isinstance(value, int):
            return count(value)
        value = settled(value)
        if column == "accuracy":
            return self.of_100(value)
        if column.startswith(("tpr@", "ppv@")):
            return f"{fractions(value, bound_type=self.bound_type).value}{THIN}%"
        if column not in SUCCESS and value == round(value, 0):
            return near(value)
        return digits(value, bound_type=self.bound_type if column in SUCCESS else "point").value

    def of_100(self, accuracy: float) -> str:
        """Write an accuracy in cases of 100, rounded to the side of the bound."""
        return digits(settled(accuracy), scale=2, most=1, bound_type=self.bound_type).value

    def shown(self, longest: int) -> list[dict[str, str]]:
        """Return the most exposed rows, at most ten, by column; a name is cut at ``longest`` characters."""
        rows = range(min(MOST, self.n_rows))
        return [{column: cut(self.cell(column, row), longest) for column in self.table} for row in rows]


def bins(right: Float[Array, " rows"]) -> tuple[Float[Array, " bins"], Float[Array, " edges"]]:
    """Count the rows by cases of 100 in which the attacker is right.

    The axis begins at 50, or at the largest multiple of ten below all values, and ends at 100.
    """
    low = min(50.0, 10.0 * math.floor(float(right.min()) / 10))
    heights, edges = np.histogram(right, np.linspace(low, 100.0, BINS + 1))
    return heights.astype(float), edges


def is_logarithmic(heights: Float[Array, " bins"]) -> bool:
    """Tell whether a bar would be too low to be seen on a linear scale."""
    return bool((heights[heights > 0] < _INVISIBLE * heights.max()).any())
