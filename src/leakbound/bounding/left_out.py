"""Who could tell that a record is in a statistic of all records: the per-instance reading, for the owner alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from leakbound.bounding.ceilings import Stated, allowed, epsilon_at
from leakbound.bounding.from_data import EXACTLY, ranked, record_scope, with_names, worst_and_median
from leakbound.bounds import Bound
from leakbound.core.findings import Scope, Term
from leakbound.core.lengths import p_norm
from leakbound.core.repeated_rows import of_records, rows_of
from leakbound.core.tradeoff import Gaussian
from leakbound.data.columns import identifier_notes, repeated_names
from leakbound.data.missing import rows_left_out
from leakbound.plans.bounds import LeaveOneOutPlan
from leakbound.releases.statistics.of_plan import check_declared, check_sizes, load_records, statistic_of
from leakbound.reports import Curve
from leakbound.reports.phrases import plural
from leakbound.runtime.all_but_one import values_with_error

Array = np.ndarray


def leave_one_out(plan: LeaveOneOutPlan, row: Bound) -> Stated:
    """Compute for every record how well it is told that it is in a statistic of all records.

    The attacker knows all other records, the statistic and the noise, and whether the record was used is the only
    question. The release is then one of two Gaussians, which are ``mu = ||(T(all) - T(without))/scale||`` apart, so all
    numbers are exact.
    """
    data = load_records(plan, plan.group or plan.id)
    notes = [*rows_left_out(data.kept), *([] if plan.by else identifier_notes(data.points))]
    check_declared(plan)
    names, unit = None, None
    if plan.group is not None:  # the people whose rows are left out together, and whose each row is
        people, unit = np.unique(np.asarray(data.points.names, dtype=str), return_inverse=True)
        names, unit = people.tolist(), unit.reshape(-1)
    check_sizes(plan, data.points)
    of_all, without, error = values_with_error(statistic_of(plan, data.points), data.points, unit, plan.seed)
    scales = np.array(plan.noise_scale)
    if len(scales) not in (1, len(of_all)):
        raise ValueError(
            f"noise_scale has {len(scales)} numbers, the statistic {len(of_all)}: give one, or one for each"
        )
    with np.errstate(over="ignore"):
        shifts = of_records(without, p_norm((np.abs(rows_of(without) - of_all) + error) / scales))
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
    for kind, record in worst_and_median(order):
        scope = Scope(kind, record, names[record]) if names else record_scope(kind, record, data)
        facts: dict[str, Any] = common | {"scope": scope}
        curve = Gaussian(float(mu[record]))
        findings += [*allowed(curve, 0.5, plan.fpr, **facts), epsilon_at(curve, plan.delta, **facts)]
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
