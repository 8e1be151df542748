"""The noise of each number that a release would publish, for the owner, before anything is released."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from leakscope.plans.protects import CalibrationPlan
from leakscope.protection.published_table import table_for_publication
from leakscope.releases.statistics.statistic import Fit, Statistic
from leakscope.reports.about import PlannedNumber, PublishedCell, PublishedTable
from leakscope.reports.numbers import HALF_OF_95_PERCENT
from leakscope.reports.sections.protected.table import half_of, label_of

Array = np.ndarray


def planned_numbers(
    plan: CalibrationPlan,
    statistic: Statistic,
    labels: Sequence[str],
    exact: Float[Array, " d"],
    noise_std: Float[Array, " d"],
    sampling_std: Float[Array, " d"] | None,
    *,
    n_in_use: int,
    family: str = "gaussian",
) -> tuple[PlannedNumber, ...]:
    """List the numbers that a release would publish with their noise: those of a table with its margins.

    Parameters
    ----------
    plan : CalibrationPlan
    statistic : Statistic
    labels : sequence of str
        Of the coordinates.
    exact : array of shape (d,)
        The statistic without noise: of means that are made of noisy counts and sums, the noise depends on it.
    noise_std, sampling_std : arrays of shape (d,)
        Of each coordinate; NaN where a sampling error is not known.
    n_in_use : int
        Records, or people, that the statistic is of.
    family : str
        Of the noise.

    Returns
    -------
    tuple of PlannedNumber
    """
    errors = np.full(len(labels), np.nan) if sampling_std is None else sampling_std
    is_gaussian = family == "gaussian"
    table = table_for_publication(plan, statistic, exact, noise_std, n_in_use=n_in_use, is_gaussian=is_gaussian)
    if table is not None:
        # means of groups were released as they are, number by number, and a table of counts has margins beside
        is_plain = isinstance(statistic, Fit)
        own_errors = errors if is_plain else [None] * len(table.cells)
        return tuple(_of_cell(cell, table, error) for cell, error in zip(table.cells, own_errors, strict=True))
    factor = HALF_OF_95_PERCENT.get(family)
    return tuple(
        PlannedNumber(
            name=label,
            noise_std=float(noise),
            noise_95=None if factor is None else float(factor * noise),
            sampling_std=float(error) if np.isfinite(error) else None,
        )
        for label, noise, error in zip(labels, noise_std, errors, strict=True)
    )


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
