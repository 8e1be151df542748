"""The noise of each number that a release would publish, for the owner, before anything is released."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from leakbound.releases.statistics.counts_and_sums import Finished
from leakbound.reports.about import PlannedNumber, PublishedCell, PublishedTable
from leakbound.reports.numbers import HALF_OF_95_PERCENT
from leakbound.reports.results.release.table import half_of, label_of

Array = np.ndarray


def planned_numbers(
    table: PublishedTable | None,
    finished: Finished,  # without noise, on which the noise of a mean of noisy sums and counts depends
    sampling_std: Float[Array, " d"] | None,
    family: str = "gaussian",
) -> tuple[PlannedNumber, ...]:
    """List the numbers that a release would publish with their noise: those of a table with its margins."""
    errors = np.full(len(finished.labels), np.nan) if sampling_std is None else sampling_std
    if table is not None:
        # a table of counts has margins beside its cells, and errors of its own
        is_of_means = any(cell.quantity != "count" for cell in table.cells)
        own_errors = errors if is_of_means else [None] * len(table.cells)
        return tuple(_of_cell(cell, table, error) for cell, error in zip(table.cells, own_errors, strict=True))
    factor = HALF_OF_95_PERCENT.get(family)
    columns = (finished.labels, finished.value, finished.noise_std, finished.low, finished.high, errors)
    numbers = []
    for label, value, noise, low, high, error in zip(*columns, strict=True):
        half = None if factor is None or not np.isfinite(noise) else float(factor * noise)
        if np.isfinite(low) and np.isfinite(high):
            half = float(max(high - value, value - low))
        numbers.append(
            PlannedNumber(
                name=label,
                noise_std=float(noise) if np.isfinite(noise) else None,
                noise_95=half,
                sampling_std=float(error) if np.isfinite(error) else None,
            )
        )
    return tuple(numbers)


def _of_cell(cell: PublishedCell, table: PublishedTable, error: float | None) -> PlannedNumber:
    is_known = cell.value is not None and cell.high is not None
    return PlannedNumber(
        name=label_of(cell, table),
        noise_std=cell.noise_std,
        noise_95=half_of(cell) if is_known else None,
        sampling_std=cell.sampling_std if error is None or not np.isfinite(error) else float(error),
    )


def of_statistic_named(name: str, numbers: Sequence[PlannedNumber]) -> tuple[PlannedNumber, ...]:
    """Say of which of several statistics numbers are."""
    return tuple(number.model_copy(update={"statistic": name}) for number in numbers)
