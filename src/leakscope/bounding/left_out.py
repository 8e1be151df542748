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
from leakscope.core.findings import Finding, Kind, Term
from leakscope.core.lengths import p_norm
from leakscope.core.seeds import integer
from leakscope.core.tradeoff import Gaussian
from leakscope.core.types import Points
from leakscope.data.columns import repeated_names
from leakscope.plans.bounds import LeaveOneOutPlan
from leakscope.releases.statistics.left_out import left_out_values
from leakscope.releases.statistics.of_plan import load_records, statistic_of
from leakscope.releases.statistics.statistic import Fit, Statistic
from leakscope.reports import Curve
from leakscope.reports.phrases import plural
from leakscope.runtime.observe import Execution, outputs

Array = np.ndarray


@dataclass(frozen=True)
class AllButOne:
    """The n data sets of all records but one, of which a few are in memory at a time.

    Parameters
    ----------
    n : int
        Number of records.
    seed : int
        Of a function's own randomness: the same for all data sets, so that they differ by one record alone.
    """

    n: int
    seed: int = 0

    @property
    def n_fits(self) -> int:
        """How many."""
        return self.n

    @property
    def fit_seeds(self) -> Int[Array, " n"]:
        """The same seed for each."""
        return np.full(self.n, integer(self.seed, "statistic"))

    def rows(self, rows: slice) -> Bool[Array, "m n"]:
        """Who is in some of them."""
        left_out = np.arange(self.n)[rows]
        member = np.ones((len(left_out), self.n), dtype=bool)
        member[np.arange(len(left_out)), left_out] = False
        return member


def values_of(
    statistic: Statistic, points: Points, seed: int = 0, execution: Execution = Execution()
) -> tuple[Float[Array, " d"], Float[Array, "n d"]]:
    """Compute a statistic of all records, and of all but one for each.

    Parameters
    ----------
    statistic : Statistic
    points : Points
        n >= 2 records.
    seed : int
        Of a function's own randomness, the same for all.
    execution : Execution
        Store and workers, where each value needs a fit.

    Returns
    -------
    of_all : array of shape (d,)
    without : array of shape (n, d)
        Row i without record i; NaN where the statistic cannot be computed.

    Raises
    ------
    ValueError
        If there are fewer than two records, or the statistic cannot be computed on all of them.
    """
    if len(points) < 2:
        raise ValueError(f"leaving one out needs at least 2 records, got {len(points)}")
    everybody = np.ones((1, len(points)), dtype=bool)
    if isinstance(statistic, Fit):
        statistic = statistic.settled(points, everybody)
    by_formula = left_out_values(statistic, points)
    if by_formula is not None:
        return by_formula
    sets = AllButOne(len(points), seed)
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
    data, notes = load_records(plan, plan.id)
    statistic = statistic_of(plan, data.points)
    of_all, without = values_of(statistic, data.points, plan.seed)
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
        facts: dict[str, Any] = common | {"scope": record_scope(kind, int(record), data)}
        curve = Gaussian(float(mu[record]))
        epsilon = curve.epsilon(plan.delta)
        findings += [
            *allowed(curve, 0.5, plan.fpr, **facts),
            Finding("epsilon", epsilon, operating_point={"delta": plan.delta}, bound_type="upper", **facts),
        ]
        curves.append(Curve(kind, "", "certified", curve, scope=facts["scope"]))
    if plan.eta is not None:
        n_above = f"{int((accuracy > 0.5 + plan.eta).sum()):,} of {len(mu):,} {plural(plan.unit)}"
        notes.append(
            f"{n_above} are told with an accuracy above {0.5 + plan.eta:g}: the declared noise does not cover them"
        )
    notes.append("every number here is an exact function of the data: it is for their owner alone, not for publication")
    noise = f"Gaussian noise of standard deviation {', '.join(f'{scale:g}' for scale in scales)}"
    return Stated(
        f"the {plan.statistic} of all {len(mu):,} {plural(plan.unit)} with {noise}",
        findings,
        curves,
        ranked(order, **with_names(data), shift=mu, accuracy=accuracy),
        data,
        [*notes, *repeated_names(data.points)],
    )
