"""Design per-instance: the statistic of all records with noise that was declared before anybody looked at the data.

Somebody who knows all other records sees one of two normal distributions, with the record or without it. How far apart
they are is known exactly for every record, to the owner. The promise is to the records for which they are near enough,
and it always answers: whether it answers, and how many records it covers, would tell of the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy import special

from leakscope.core.findings import EVERY, Finding, Scope, Term
from leakscope.core.grid import Grid
from leakscope.core.lengths import p_norm
from leakscope.core.repeated_rows import of_records, rows_of
from leakscope.noise import GaussianNoise
from leakscope.noise.left_out import jackknife_std
from leakscope.protection.leave_one_out import settled
from leakscope.protection.left_out_noise import declared_noise, deviations_of
from leakscope.protection.prepared import Prepared
from leakscope.protection.request import Request, of_statistic
from leakscope.protection.rounding import printed_grid
from leakscope.protection.several import joined
from leakscope.protection.units import Units
from leakscope.releases.statistics.of_plan import check_declared
from leakscope.reports.phrases import plural
from leakscope.runtime.all_but_one import values_with_error
from leakscope.runtime.progress import progress

Array = np.ndarray
_MOST_STEPS = 2.0**52  # of a value: half of what doubles hold, so that there is room for the noise
SOURCE = "wang2019, per-instance differential privacy of Gaussian noise"


def prepare(request: Request) -> Prepared:
    """Compute how well each record is told in the statistic of all with declared noise.

    Parameters
    ----------
    request : Request
        With a noise scale.

    Returns
    -------
    Prepared

    Raises
    ------
    ValueError
        In one line: if the statistic cannot be computed on all records, or the scales are not as many as its numbers.
    """
    units = Units.of(request)
    return _several(request, units) if request.parts else _of_one(request, units)


def _several(request: Request, units: Units) -> Prepared:
    """Put several statistics side by side: the squares of the shifts of a record add up."""
    parts = []
    for part in request.parts:
        with of_statistic(part.name):
            parts.append(_of_one(part, units))
    shifts = np.sqrt(np.sum([np.square(part.per_unit) for part in parts], axis=0))
    return joined(request, units, parts, per_unit=shifts, **_of_shifts(request, shifts))


def _of_shifts(request: Request, shifts: Float[Array, " n"]) -> dict[str, Any]:
    """Return the fields that follow from how well each record is told."""
    accuracy, worst = special.ndtr(shifts / 2), int(shifts.argmax())
    return {
        "owner_findings": _exactly(worst, shifts),
        "owner_notes": (_uncovered(accuracy, request.plan.eta, request.plan.unit),),
        "accuracy": float(accuracy[worst]),
    }


def _of_one(request: Request, units: Units) -> Prepared:
    """Compute how well each record is told in one statistic."""
    plan = request.plan
    if not request.from_python:  # an object has its parameters, which were checked with the request
        check_declared(plan)
    statistic = settled(request.statistic, request.data.points)
    labels = statistic.labels(request.data.points)
    noise = declared_noise(plan.noise_scale or (), len(labels))
    with progress("values without each record"):
        of_all, without, error = values_with_error(
            statistic, request.data.points, units.index, plan.pairs_seed, execution=request.execution
        )
    rms = deviations_of(noise, len(labels))
    grid = printed_grid(rms, 1.0)  # from the declared noise alone: no value decides whether there is an answer
    of_all = _on_grid(of_all, grid, noise, labels)
    shifts = of_records(without, _shifts(of_all, rows_of(without), error, grid, noise))
    return Prepared(
        request,
        "per-instance",
        units,
        k=units.n,
        labels=labels,
        noise=noise,
        shape=None,
        noisy_coords=np.ones(len(labels), dtype=bool),
        grid=grid,
        rms=rms,
        declared=True,
        scope=EVERY,
        game=Term("with_or_without"),
        assumptions=(
            Term("knows_all_other_records"),
            Term("covered_records_only", eta=plan.eta),
            Term("ledger_not_rolled_back"),
            *request.signed_for,
            *request.assumptions,
            Term("on_a_grid"),
        ),
        source=SOURCE,
        per_unit=shifts,
        value_of=lambda left_out: of_all,
        sampling_std=jackknife_std(without),
        **_of_shifts(request, shifts),
    )


def _on_grid(of_all: Float[Array, " d"], grid: Grid, noise: GaussianNoise, labels: Sequence[str]) -> Float[Array, " d"]:
    """Round the statistic to the grid of the noise.

    Raises
    ------
    ValueError
        If a number and its noise are more steps than a double holds: then no sum of the two is exact, and the last
        digits of what is released would tell the number.
    """
    with np.errstate(over="ignore"):
        too_large = ~(np.abs(of_all) / grid.steps <= _MOST_STEPS)
    if too_large.any():
        place = int(too_large.argmax())
        most = _MOST_STEPS * float(np.broadcast_to(grid.steps, of_all.shape)[place])
        scale = float(deviations_of(noise, len(of_all))[place])
        raise ValueError(
            f"{labels[place]} is too large for a noise_scale of {scale:g}: the 53 binary digits of a floating-point "
            f"number hold no number above {most:.2g} together with this noise; declare a larger noise_scale, or "
            "subtract a public number from the column"
        )
    return grid.snap(of_all)


def _shifts(
    of_all: Float[Array, " d"],
    without: Float[Array, "n d"],
    error: Float[Array, "n d"],
    grid: Grid,
    noise: GaussianNoise,
) -> Float[Array, " n"]:
    """Bound how far apart the two normal distributions of each record are; a failure is told with certainty.

    A value without a record is only known within its error. The end of that interval that is farther away counts, on
    the grid of what is released. Declared noise is independent in each number, so that its norm grows with every gap.
    """
    below, above = (np.abs(grid.snap(end) - of_all) for end in (without - error, without + error))
    gap = np.nan_to_num(np.maximum(below, above), nan=np.inf)
    lengths = p_norm(noise.norm.standardise(gap)) / noise.scale
    return np.where(np.isfinite(lengths), lengths, np.inf)


def _exactly(worst: int, shifts: Float[Array, " n"]) -> tuple[Finding, ...]:
    """Report, for the owner, how well the record is told that is told best."""
    common: dict[str, Any] = {
        "bound_type": "upper",
        "status": "certified",
        "scope": Scope("worst", worst),
        "game": Term("with_or_without"),
        "source": SOURCE,
    }
    accuracy = float(special.ndtr(shifts[worst] / 2))
    return (Finding("accuracy", accuracy, operating_point={"prior": 0.5}, **common),)


def _uncovered(accuracy: Float[Array, " n"], eta: float, unit: str) -> str:
    n_above = int((accuracy > 0.5 + eta).sum())
    return (
        f"{n_above:,} of {len(accuracy):,} {plural(unit)} are told with an accuracy above {0.5 + eta:g}: the declared "
        "noise does not cover them, and the promise is not to them; leakscope bound leave-one-out names them"
    )
