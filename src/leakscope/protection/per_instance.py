"""Design per-instance: the statistic of all records with noise that was declared before anybody looked at the data.

Somebody who knows all other records sees one of two normal distributions, with the record or without it. How far apart
they are is known exactly for every record, to the owner. The promise is to the records for which they are near enough,
and it always answers: whether it answers, and how many records it covers, would tell of the data.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float
from scipy import special

from leakscope.core.findings import EVERY, Finding, Scope, Term
from leakscope.core.lengths import p_norm
from leakscope.core.repeated_rows import of_records, rows_of
from leakscope.noise import GaussianNoise
from leakscope.noise.left_out import jackknife_std
from leakscope.protection.leave_one_out import settled
from leakscope.protection.left_out_noise import declared_noise, deviations_of
from leakscope.protection.prepared import Prepared
from leakscope.protection.request import Request
from leakscope.protection.rounding import printed_grid
from leakscope.protection.units import Units
from leakscope.releases.statistics.of_plan import check_declared
from leakscope.reports.phrases import plural
from leakscope.runtime.all_but_one import values_of
from leakscope.runtime.progress import progress

Array = np.ndarray
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
    plan, units = request.plan, Units.of(request)
    check_declared(plan)
    statistic = settled(request.statistic, request.data.points)
    labels = statistic.labels(request.data.points)
    noise = declared_noise(plan.noise_scale or (), len(labels))
    with progress("values without each record"):
        of_all, without = values_of(
            statistic, request.data.points, units.index, plan.pairs_seed, execution=request.execution
        )
    rms = deviations_of(noise, len(labels))
    grid = printed_grid(rms, 1.0, np.abs(of_all))
    of_all = grid.snap(of_all)
    shifts = of_records(without, _shifts(of_all, grid.snap(rows_of(without)), noise))
    accuracy = special.ndtr(shifts / 2)
    worst = int(shifts.argmax())
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
            Term("on_a_grid"),
        ),
        source=SOURCE,
        per_unit=shifts,
        value_of=lambda left_out: of_all,
        owner_findings=_exactly(worst, shifts),
        owner_notes=(_uncovered(accuracy, plan.eta, plan.unit),),
        sampling_std=jackknife_std(without),
        accuracy=float(accuracy[worst]),
    )


def _shifts(of_all: Float[Array, " d"], without: Float[Array, "n d"], noise: GaussianNoise) -> Float[Array, " n"]:
    """Compute how far apart the two normal distributions of each record are; a failure is told with certainty."""
    lengths = p_norm(noise.norm.standardise(np.nan_to_num(without, nan=np.inf) - of_all)) / noise.scale
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
