"""Design leave-one-out: one record is left out in secret, for the life of the data, and all others are used.

The n leave-one-out values of the statistic are computed, and noise is calibrated for all of them (`left_out_noise`).
The ledger says which record is left out; its value is a row of the table that was certified.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from leakscope.core.findings import EVERY, Finding, Term
from leakscope.core.types import Points
from leakscope.noise.left_out import jackknife_std
from leakscope.protection.left_out_attack import attack_left_out
from leakscope.protection.left_out_noise import LeftOutNoise, search_left_out_noise
from leakscope.protection.prepared import Prepared
from leakscope.protection.request import Request
from leakscope.protection.units import Units
from leakscope.releases.statistics.features import Cells, Histogram
from leakscope.releases.statistics.statistic import Fit, Linear, Statistic
from leakscope.runtime.all_but_one import values_of
from leakscope.runtime.progress import progress

Array = np.ndarray
SOURCE = "ours: joint convexity over the values without each record"


def prepare(request: Request) -> Prepared:
    """Compute the values without each unit, and the least noise that hides which one is missing.

    Parameters
    ----------
    request : Request

    Returns
    -------
    Prepared

    Raises
    ------
    ValueError
        In one line: if the statistic cannot be computed, or no noise keeps the promise.
    """
    plan, units = request.plan, Units.of(request)
    statistic = settled(request.statistic, request.data.points)
    with progress("values without each record"):
        points, execution = request.data.points, request.execution
        _, values = values_of(statistic, points, units.index, plan.pairs_seed, execution=execution)
    labels = statistic.labels(request.data.points)
    with progress("search for the noise"):
        found = search_left_out_noise(
            values,
            plan.eta,
            labels,
            noise=plan.noise,
            counts=counts_records(statistic),
            declared=plan.noise_scale,
            allow_exact=plan.allow_exact,
        )
    n, game = units.n, Term("left_out", n=units.n)
    prepared = Prepared(
        request,
        "leave-one-out",
        units,
        k=n - 1,
        labels=labels,
        noise=found.noise,
        shape=found.shape,
        noisy_coords=found.noisy_coords,
        grid=found.grid,
        rms=found.rms,
        declared=found.declared,
        scope=EVERY,
        game=game,
        assumptions=(
            Term("left_out_in_secret", n=n),
            Term("knows_all_but_left_out", n=n),
            Term("function_of_the_others"),
            Term("ledger_keeps_left_out"),
            Term("ledger_not_rolled_back"),
            Term("on_a_grid"),
        ),
        source=SOURCE,
        per_unit=found.whitened,
        value_of=found.table.__getitem__,
        sampling_std=jackknife_std(values),
        accuracy=0.5 + found.worst.advantage / 2,
    )
    named = named_right(prepared, plan.eta)
    with progress("attack on simulated releases"):
        attacks = _attacks(found, prepared)
    return replace(prepared, public_findings=(named,), owner_findings=attacks)


def named_right(prepared: Prepared, eta: float, release: str = "") -> Finding:
    """Bound the probability that somebody names the one left out: ``1/n + (1 - 1/n) 2 eta``, which is proved.

    A guess without the release is right with probability 1/n, and each record adds the total variation by which it is
    told, at most 2 eta, over n.
    """
    n = prepared.units.n
    return Finding("named_right", min(1.0, 1 / n + (1 - 1 / n) * 2 * eta), release=release, **prepared.common)


def settled(statistic: Statistic, points: Points) -> Statistic:
    """Return the statistic with the shape of its output known: a function shows it on all records."""
    if isinstance(statistic, Fit):
        return statistic.settled(points, np.ones((1, len(points)), dtype=bool))
    return statistic


def counts_records(statistic: Statistic) -> bool:
    """Tell whether a statistic counts records: the cells of a table, or the bins of a histogram."""
    return isinstance(statistic, Linear) and isinstance(statistic.features, Cells | Histogram)


def _attacks(found: LeftOutNoise, prepared: Prepared) -> tuple[Finding, ...]:
    """Attack the unit that is told best on simulated releases."""
    plan = prepared.request.plan
    if found.noise is None or not plan.games:
        return ()
    return (
        attack_left_out(
            found.whitened,
            found.worst.record,
            plan.games,
            confidence=plan.confidence,
            seed=plan.pairs_seed,
            game=prepared.game,
        ),
    )
