"""Several statistics that are released together: one eta, split by weights, and one promise for all of them.

With Gaussian noise the squares of mu add up, so the part of statistic i has ``mu_i^2 = mu^2 w_i / sum of w`` with
``mu = 2 Phi^-1(1/2 + eta)``. Under differential privacy that is exact: all together are mu-GDP. Under leave-one-out it
sets the proportions of the noises alone; `left_out_noise.search_joint_noise` then finds the one factor by which all
of them are multiplied, from the values of all statistics side by side, which is what the ledger counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr, ndtri

from leakbound.core.findings import Term
from leakbound.core.grid import Grid
from leakbound.core.repeated_rows import RepeatedRows
from leakbound.plans.promises import File
from leakbound.plans.protects import WeightedPlan
from leakbound.protection.setting.prepared import Prepared
from leakbound.protection.setting.request import Request
from leakbound.protection.setting.results import ReleasedStatistic
from leakbound.protection.setting.units import Units
from leakbound.releases.statistics.counts_and_sums import Finished

Array = np.ndarray


def etas_of(request: Request) -> list[float]:
    """Split eta by the weights of the statistics; one with a declared scale has no weight, and takes what it needs."""
    eta = request.plan.eta
    weights = [_weight(part) for part in request.parts]
    total = sum(weight for weight in weights if weight is not None)
    return [eta if weight is None else _part_of(eta, weight / total) for weight in weights]


def _weight(part: Request) -> float | None:
    plan = part.plan
    is_declared = isinstance(plan.promise, File) and plan.promise.scale is not None
    if is_declared or not isinstance(plan, WeightedPlan):
        return None
    return plan.weight


def _part_of(eta: float, fraction: float) -> float:
    """Compute the eta whose mu squared is a fraction of that of another one.

    >>> round(_part_of(0.05, 0.5), 5), _part_of(0.05, 1.0) == 0.05
    (0.0354, True)
    """
    if fraction == 1:
        return eta
    mu = 2 * float(ndtri(0.5 + eta))
    return float(ndtr(mu * np.sqrt(fraction) / 2)) - 0.5


def joined(
    request: Request,
    units: Units,
    parts: Sequence[Prepared],
    *,
    per_unit: Float[Array, "*shape"] | RepeatedRows,
    **others: Any,
) -> Prepared:
    """Put the statistics of a request side by side, as one release."""
    first = parts[0]
    steps = [np.broadcast_to(part.grid.steps, part.rms.shape) for part in parts]

    def value_of(left_out: int) -> Float[Array, " d"]:
        return np.concatenate([part.value_of(left_out) for part in parts])

    # the parts keep their own noise: side by side there is none that could be drawn at once
    fields: dict[str, Any] = {
        "units": units,
        "k": first.k,
        "labels": [label for part in parts for label in part.labels],
        "noise": None,
        "shape": None,
        "noisy_coords": np.concatenate([part.noisy_coords for part in parts]),
        "grid": Grid(tuple(np.concatenate(steps).tolist())),
        "rms": np.concatenate([part.rms for part in parts]),
        "declared": all(part.declared for part in parts),
        "scope": first.scope,
        "game": first.game,
        "assumptions": _all_assumptions(parts),
        "source": first.source,
        "value_of": value_of,
        "owner_notes": [f"{part.request.name}: {note}" for part in parts for note in part.owner_notes],
    }
    fields |= {"per_unit": per_unit, "parts": tuple(parts), **others}
    return Prepared(request, request.data.points, first.design, units.n, **fields)


def statistics_of(prepared: Prepared, value: Float[Array, " d"]) -> dict[str, ReleasedStatistic]:
    """Return the released values of each of several statistics by its name; none for a single one."""
    if not prepared.parts:
        return {}
    return {
        part.request.name: ReleasedStatistic(tuple(finished.labels), finished.value, part.noise)
        for part, finished in _finished_parts(prepared, value)
    }


def _finished_parts(prepared: Prepared, value: Float[Array, " d"]) -> list[tuple[Prepared, Finished]]:
    """Pair each statistic with its numbers as they are published."""
    return [(part, part.finished(own)) for part, own in zip(prepared.parts, prepared.split(value), strict=True)]


def _all_assumptions(parts: Sequence[Prepared]) -> list[Term]:
    """List each assumption once."""
    assumptions: list[Term] = []
    for part in parts:
        assumptions += [term for term in part.assumptions if term not in assumptions]
    return assumptions
