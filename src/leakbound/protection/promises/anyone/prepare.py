"""Design dp: Gaussian noise for differential privacy on all records, from declared ranges and levels alone.

The target is the accuracy of an attacker at even odds who knows all records but one, of any file: with
``mu = 2 Phi^-1(1/2 + eta)`` the release is mu-GDP, and no attacker exceeds ``1/2 + eta`` (Dong et al. 2022).
Neighbours have the same number of records, which is public. Nothing of the noise depends on the data.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import ndtri

from leakbound.core.findings import Finding, Scope, Term
from leakbound.core.grid import Grid
from leakbound.core.tradeoff import Gaussian
from leakbound.core.types import NotApplicable
from leakbound.noise import GaussianNoise, dp_gaussian_scale
from leakbound.noise.left_out import jackknife_std
from leakbound.plans.bounds import EDGES
from leakbound.plans.promises import Anyone
from leakbound.plans.protects import CalibrationPlan
from leakbound.protection.certificate.curves import gaussian_curve
from leakbound.protection.promises.anyone.sensitivity import Sensitivity, sensitivity
from leakbound.protection.promises.file.noise import deviations_of
from leakbound.protection.promises.file.prepare import counts_records, settled
from leakbound.protection.setting.declared_data import declared_view
from leakbound.protection.setting.mechanism import Mechanism
from leakbound.protection.setting.prepared import Prepared
from leakbound.protection.setting.request import Request, of_statistic
from leakbound.protection.setting.several import etas_of, joined
from leakbound.protection.setting.units import Units
from leakbound.releases.statistics.counts_and_sums import ColumnCountsAndSums, CountAndProducts
from leakbound.releases.statistics.features import Cells, Columns, Histogram
from leakbound.releases.statistics.group_means import CountsAndSums, GroupCountsAndSums
from leakbound.releases.statistics.of_plan import LARGEST_NUMBER
from leakbound.releases.statistics.statistic import Fit, Linear, Statistic
from leakbound.runtime.all_but_one import values_of

Array = np.ndarray
SOURCE = "dong2022, eq. 6 and Theorem 2.7"
# Steps of the grid in a deviation of the noise, where the part of each record is rounded. What that adds to a shift is
# known beforehand, and very little.
_STEPS = 2.0**24
# What a certificate assumes, in this order.
_ASSUMED = (
    "declared_form", "n_is_public", "replace_one_any_data", "levels_declared", "ranges_declared", "values_clamped",
    "limits_beforehand", "statistic_fixed_beforehand", "row_is_a_unit", "ledger_not_rolled_back",
    "nothing_outside_the_ledger", "refusals_not_published", "on_a_grid_counted", "time_not_published",
)  # fmt: skip
_MOST_JACKKNIFE = 50_000_000  # values without each record that are computed for a standard error


def prepare(request: Request) -> Prepared:
    """Compute the noise of differential privacy for a statistic of all records, within declared ranges."""
    units = Units.of(request)
    if request.parts:
        return _several(request, units)
    prepared, factor = _of_one(request, units, request.plan.eta)
    return _with_curve(prepared, factor)


def _several(request: Request, units: Units) -> Prepared:
    """Give each of several statistics its part of eta: the squares of mu add up to that of all."""
    etas = etas_of(request)
    found = []
    for part, eta in zip(request.parts, etas, strict=True):
        with of_statistic(part.name):
            found.append(_of_one(part, units, eta))
    mu = np.array([mu_of(eta) for eta in etas])
    factors = [factor for _, factor in found if factor is not None]
    factor = None
    if len(factors) == len(found):  # of adding or removing a record, whose mu add up in squares, too
        factor = float(np.linalg.norm(mu * factors) / np.linalg.norm(mu))
    parts = [part for part, _ in found]
    assumptions = _in_order([term for part in parts for term in part.assumptions])
    per_unit = np.asarray(mu_of(request.plan.eta))
    prepared = joined(request, units, parts, per_unit=per_unit, assumptions=assumptions)
    return _with_curve(prepared, factor)


def _with_curve(prepared: Prepared, add_remove: float | None) -> Prepared:
    """Add the whole curve, which follows from eta alone, and what it says at delta."""
    curve = gaussian_curve(prepared.eta)
    return replace(prepared, public_findings=_epsilons(prepared, add_remove), curve=curve, public_curve=curve)


def _of_one(request: Request, units: Units, eta: float) -> tuple[Prepared, float | None]:
    """Prepare one statistic, and compute what a record that is added or removed moves over one that is replaced."""
    plan = request.plan
    _check_declared(request, request.statistic)
    points, owner_notes = declared_view(request.statistic, plan, request.data.points)
    statistic, n = settled(request.statistic, points), len(points)
    declared = _declared_ranges(statistic, plan)
    mechanism = Mechanism(statistic, points, n, request.execution)
    width = largest = None
    if isinstance(statistic, Linear) and isinstance(statistic.features, Columns):
        # a record without a value adds 0 to a total, so that 0 is in the range of what it adds
        low, high = np.array(list(declared.values()), dtype=float).T
        low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
        width, largest = high - low, np.maximum(-low, high)
    _check_squares(statistic, declared)
    try:
        bound = sensitivity(mechanism, width, n_records=n)
    except NotApplicable as reason:
        raise ValueError(
            f"differential privacy has no noise for this statistic: {reason}; promise = file needs no ranges"
        ) from None
    noise, grid = _noise(bound, eta, mechanism)
    value = _value(mechanism, grid)
    prepared = Prepared(
        request,
        points,
        "dp",
        units.n,
        k=n,
        labels=mechanism.labels,
        noise=noise,
        shape=None,
        noisy_coords=np.ones(mechanism.d, dtype=bool),
        grid=grid,
        rms=deviations_of(noise, mechanism.d),
        declared=True,
        scope=Scope("any_data"),
        game=Term("any_data", n=n),
        assumptions=assumptions_of_anyone(request, n, declared),
        source=SOURCE,
        units=units,
        per_unit=np.asarray(mu_of(eta)),
        value_of=lambda left_out: value,
        divisor=mechanism.divisor,
        owner_notes=owner_notes,
        sampling_std=_standard_error(mechanism),
    )
    return prepared, _add_remove(statistic, bound, largest)


def assumptions_of_anyone(request: Request, n: int, ranges: Mapping[str, tuple[float, float]]) -> tuple[Term, ...]:
    """List what a certificate of differential privacy assumes: what is compared, what was declared, who keeps what."""
    terms = [Term("n_is_public", n=n), Term("replace_one_any_data", n=n), *request.assumptions, *request.signed_for]
    if request.of_a_file:
        terms.append(Term("declared_form"))
    if request.plan.by or not ranges:
        terms.append(Term("levels_declared"))
    if ranges:
        listed = ", ".join(f"{name} from {low:g} to {high:g}" for name, (low, high) in ranges.items())
        terms += [Term("ranges_declared", ranges=listed), Term("values_clamped")]
    of_all = ("ledger_not_rolled_back", "refusals_not_published", "on_a_grid_counted", "time_not_published")
    return _in_order([*terms, *(Term(id) for id in of_all)])


def _in_order(terms: Sequence[Term]) -> tuple[Term, ...]:
    """Sort what is assumed, each once: of several statistics what was declared for each comes together."""
    return tuple(sorted(dict.fromkeys(terms), key=lambda term: _ASSUMED.index(term.id)))


def mu_of(eta: float) -> float:
    """Compute mu of the Gaussian differential privacy that limits the accuracy at even odds to ``1/2 + eta``.

    >>> round(mu_of(0.05), 6)
    0.251323
    """
    return 2 * float(ndtri(0.5 + eta))


def is_known(statistic: Statistic) -> bool:
    """Tell whether declared ranges or levels bound what one record can change in a statistic."""
    return not isinstance(statistic, Fit)


def _check_declared(request: Request, statistic: Statistic) -> None:
    """Refuse levels and edges that would come from the file."""
    plan = request.plan
    if plan.statistic == "histogram" and "edges" not in plan.set:
        raise ValueError(f"differential privacy counts between declared edges, {EDGES}")
    if plan.statistic == "quantiles":
        raise ValueError(
            "there are no quantiles under promise anyone yet: the noise would be as large as the whole range; take "
            "promise = file, or declare edges and release a histogram"
        )
    if not is_known(statistic):
        instead = ""
        if plan.statistic == "ratio":
            instead = (
                "release the totals as statistic sum with the ranges of both columns, and divide them: the error of "
                "a/b is about sqrt(var a + (a/b)^2 var b)/b; or "
            )
        raise ValueError(
            f"differential privacy has no noise here for {statistic.name}: nothing bounds what one record changes; "
            f"{instead}promise = file works for any statistic"
        )


def _check_squares(statistic: Statistic, ranges: Mapping[str, tuple[float, float]]) -> None:
    """Refuse ranges so wide that the square of a number within them overflows, be it a value or a product of two."""
    of_products = isinstance(statistic, Linear) and isinstance(statistic.features, CountAndProducts)
    most = math.sqrt(LARGEST_NUMBER) if of_products else LARGEST_NUMBER
    for name, ends in ranges.items():
        largest = max(abs(end) for end in ends)
        if not largest <= most:
            raise ValueError(
                f"{name} may be as large as {largest:.3g} within its declared range, and squares above {most:.3g} "
                "overflow here: declare the column in larger units"
            )


def _declared_ranges(statistic: Statistic, plan: CalibrationPlan) -> dict[str, tuple[float, float]]:
    """Return the declared range of each column that a statistic is of; none for counts."""
    features = statistic.features if isinstance(statistic, Linear) else None
    if isinstance(features, CountsAndSums):
        return dict(zip(features.columns, features.ranges, strict=True))
    return plan.under(Anyone).ranges if isinstance(features, Columns) else {}


def _noise(bound: Sensitivity, eta: float, mechanism: Mechanism) -> tuple[GaussianNoise, Grid]:
    """Compute the noise, and a grid so fine that rounding adds next to nothing to a shift; from what is public."""
    least = dp_gaussian_scale(eta, 1.0)
    deviations = least * bound.l2 * bound.unit
    grid = Grid.for_noise(deviations * mechanism.divisor * (1024 / _STEPS), 0.0)
    # one record that is replaced moves each number by at most a step more than without the grid: sums of whole steps
    # have no arithmetic error
    rounding = float(np.linalg.norm(grid.steps / (bound.unit * mechanism.divisor)))
    scale = least * (bound.l2 + rounding)
    if np.ptp(bound.unit) == 0:
        return GaussianNoise(scale * float(bound.unit[0])), grid
    return GaussianNoise(scale, np.square(bound.unit)), grid


def _value(mechanism: Mechanism, grid: Grid) -> Float[Array, " d"]:
    """Compute the statistic of all records, on the grid; of a mean the sum."""
    if mechanism.counts:
        counted = mechanism.statistic.features.repeated(mechanism.points.x)  # pyright: ignore[reportAttributeAccessIssue] -- cells or bins
        return grid.value(counted.count @ grid.round(counted.rows))
    everybody = np.ones(mechanism.n, dtype=bool)
    exact = mechanism.exact(everybody, grid, np.random.default_rng(0))  # no statistic here draws numbers
    if exact is None:
        raise ValueError("the statistic cannot be computed on all records")
    return grid.value(exact)


def _add_remove(statistic: Statistic, bound: Sensitivity, largest: Float[Array, " d"] | None) -> float | None:
    """Compute what a record that is added or removed moves, over what one moves that is replaced; None if unknown."""
    if not isinstance(statistic, Linear) or statistic.statistic != "sum":
        return None
    features = statistic.features
    match features:
        case ColumnCountsAndSums() | CountAndProducts():
            return 1.0  # as a record that gets or loses its values
        case GroupCountsAndSums():
            return 1.0 if features.means.cells.n_cells == 1 else 1 / math.sqrt(2)
        case Cells():
            return 1 / bound.l2
        case Histogram():
            return math.sqrt(len(features.edges)) / bound.l2
        case Columns() if largest is not None:
            return float(np.linalg.norm(largest / bound.unit)) / bound.l2
    return None


def _epsilons(prepared: Prepared, add_remove: float | None) -> tuple[Finding, ...]:
    """Report epsilon at delta for replacing a record and, where it is known, for adding or removing one."""
    mu, delta = mu_of(prepared.eta), prepared.request.plan.under(Anyone).delta
    at = {"delta": delta}
    findings = [Finding("epsilon", Gaussian(mu).epsilon(delta), operating_point=at, **prepared.common)]
    if add_remove is not None:
        common: dict[str, Any] = prepared.common | {"method": (Term("add_or_remove"),)}
        epsilon = Gaussian(mu * add_remove).epsilon(delta)
        findings.append(Finding("epsilon", epsilon, operating_point=at, **common))
    return tuple(findings)


def _standard_error(mechanism: Mechanism) -> Float[Array, " e"] | None:
    """Compute the standard errors of what is published for the owner, unless that takes much memory."""
    statistic, points = mechanism.statistic, mechanism.points
    if len(points) < 2 or (len(points) * mechanism.d > _MOST_JACKKNIFE and not counts_records(statistic)):
        return None
    features = statistic.features if isinstance(statistic, Linear) else None
    try:
        if isinstance(features, CountsAndSums):
            of_each = mechanism.features
            if of_each is None:
                return None
            without = features.finished(of_each.sum(axis=0) - of_each, np.zeros(mechanism.d)).value
            is_known = np.isfinite(without).all(axis=0)  # not of a group without records
            errors = np.full(without.shape[1], np.nan)
            errors[is_known] = jackknife_std(without[:, is_known])
            return errors
        return jackknife_std(values_of(statistic, points)[1])
    except ValueError:  # it is for the owner: nothing is refused because of it
        return None
