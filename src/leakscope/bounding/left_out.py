"""Who could tell that a record is in a statistic of all records: the per-instance reading, for the owner alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import special

from leakscope.bounding.ceilings import Stated, allowed
from leakscope.bounding.from_data import EXACTLY, ranked, record_scope, with_names
from leakscope.bounds import Bound
from leakscope.core.findings import Finding, Kind, Scope, Term
from leakscope.core.lengths import p_norm
from leakscope.core.seeds import integer
from leakscope.core.tradeoff import Gaussian
from leakscope.core.types import Points
from leakscope.data import Data
from leakscope.data.columns import repeated_names
from leakscope.plans.bounds import LeaveOneOutPlan
from leakscope.releases.statistics.left_out import left_out_values
from leakscope.releases.statistics.of_plan import load_records, statistic_of
from leakscope.releases.statistics.statistic import Fit, Statistic
from leakscope.reports import Curve
from leakscope.reports.phrases import plural
from leakscope.runtime.observe import Execution, outputs

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class AllButOne:
    """The data sets of all records but those of one unit, of which a few are in memory at a time.

    Parameters
    ----------
    unit : int array of shape (N,)
        The unit of each record, 0 to n - 1: its own number, or that of a person with several records.
    seed : int
        Of a function's own randomness: the same for all data sets, so that they differ by one unit alone.
    """

    unit: Int[Array, " N"]
    seed: int = 0

    @property
    def n_fits(self) -> int:
        """Number of units."""
        return int(self.unit.max()) + 1

    @property
    def fit_seeds(self) -> Int[Array, " n"]:
        """The same seed for each."""
        return np.full(self.n_fits, integer(self.seed, "statistic"))

    def rows(self, rows: slice) -> Bool[Array, "m N"]:
        """Who is in some of them."""
        return self.unit != np.arange(self.n_fits)[rows][:, None]


def values_of(
    statistic: Statistic,
    points: Points,
    unit: Int[Array, " N"] | None = None,
    seed: int = 0,
    execution: Execution = Execution(),
) -> tuple[Float[Array, " d"], Float[Array, "n d"]]:
    """Compute a statistic of all records, and of all but those of one unit for each.

    Parameters
    ----------
    statistic : Statistic
    points : Points
        N records.
    unit : int array of shape (N,), optional
        As in `AllButOne`; each record is a unit of its own unless given.
    seed : int
        Of a function's own randomness, the same for all.
    execution : Execution
        Store and workers, where each value needs a fit.

    Returns
    -------
    of_all : array of shape (d,)
    without : array of shape (n, d)
        Row i without unit i; NaN where the statistic cannot be computed.

    Raises
    ------
    ValueError
        If there are fewer than two units, or the statistic cannot be computed on all of them.
    """
    sets = AllButOne(np.arange(len(points)) if unit is None else unit, seed)
    if sets.n_fits < 2:
        raise ValueError("leaving one out needs at least 2 of them, got 1")
    everybody = np.ones((1, len(points)), dtype=bool)
    if isinstance(statistic, Fit):
        statistic = statistic.settled(points, everybody)
    by_formula = left_out_values(statistic, points) if unit is None else None
    if by_formula is not None:
        return by_formula
    of_all = statistic.observe(points, everybody, sets.fit_seeds[:1])["output"][0]
    if not np.isfinite(of_all).all():
        raise ValueError(f"{statistic.name} cannot be computed on all records")
    return of_all, outputs(statistic, points, sets, execution)


def leave_one_out(plan: LeaveOneOutPlan, row: Bound) -> Stated:
    """Compute for every record how well it is told that it is in a statistic of all records.

    The attacker knows all other records, the statistic and the noise, and whether the record was used is the only
    question. The release is then one of two Gaussians, which are ``mu = ||(T(all) - T(without))/scale||`` apart, so all
    numbers are exact.
    """
    data, notes = load_records(plan, plan.group or plan.id)
    names, unit = _units(data) if plan.group is not None else (None, None)
    of_all, without = values_of(statistic_of(plan, data.points), data.points, unit, plan.seed)
    scales = np.array(plan.noise_scale)
    if len(scales) not in (1, len(of_all)):
        raise ValueError(
            f"noise_scale has {len(scales)} numbers, the statistic {len(of_all)}: give one, or one for each"
        )
    shifts = p_norm((without - of_all) / scales)
    mu = np.where(np.isfinite(shifts), shifts, np.inf)  # a failure is seen
    accuracy = special.ndtr(mu / 2)
    order = np.argsort(-mu, kind="stable")
    common: dict[str, Any] = {
        "status": row.status,
        "source": row.source,
        "game": Term("with_or_without"),
        "method": EXACTLY,
        "per_record": True,
        "assumptions": [
            Term("knows_all_other_records"),
            Term("noise_declared"),
            Term("only_this_statistic"),
        ],
    }
    findings, curves = [], []
    places: list[tuple[Kind, int]] = [("worst", order[0]), ("median", order[(len(order) - 1) // 2])]
    for kind, record in places:
        scope = Scope(kind, int(record), names[record]) if names else record_scope(kind, int(record), data)
        facts: dict[str, Any] = common | {"scope": scope}
        curve = Gaussian(float(mu[record]))
        epsilon = curve.epsilon(plan.delta)
        findings += [
            *allowed(curve, 0.5, plan.fpr, **facts),
            Finding("epsilon", epsilon, operating_point={"delta": plan.delta}, bound_type="upper", **facts),
        ]
        curves.append(Curve(kind, "", "certified", curve, scope=scope))
    if plan.eta is not None:
        n_above = f"{int((accuracy > 0.5 + plan.eta).sum()):,} of {len(mu):,} {plural(plan.unit)}"
        notes.append(
            f"{n_above} are told with an accuracy above {0.5 + plan.eta:g}: the declared noise does not cover them"
        )
    notes.append("every number here is an exact function of the data: it is for their owner alone, not for publication")
    who = {"record": np.arange(len(names)), "name": np.array(names)} if names else with_names(data)
    noise = f"Gaussian noise of standard deviation {', '.join(f'{scale:g}' for scale in scales)}"
    return Stated(
        f"the {plan.statistic} of all {len(mu):,} {plural(plan.unit)} with {noise}",
        findings,
        curves,
        ranked(order, **who, shift=mu, accuracy=accuracy),
        data,
        notes if names else [*notes, *repeated_names(data.points)],
    )


def _units(data: Data) -> tuple[list[str], Int[Array, " N"]]:
    """Name the people whose rows are left out together, and say whose each row is."""
    names, unit = np.unique(np.asarray(data.points.names, dtype=str), return_inverse=True)
    return names.tolist(), unit.reshape(-1)
