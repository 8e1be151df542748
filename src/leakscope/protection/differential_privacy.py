"""Design dp: Gaussian noise for differential privacy on all records, from declared ranges and levels alone.

The target is the accuracy of an attacker at even odds who knows all records but one, of any file: with
``mu = 2 Phi^-1(1/2 + eta)`` the release is mu-GDP, and no attacker exceeds ``1/2 + eta`` (Dong et al. 2022).
Neighbours have the same number of records, which is public. Nothing of the noise depends on the data.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import ndtri

from leakscope.core.findings import Finding, Scope, Term
from leakscope.core.grid import Grid
from leakscope.core.tradeoff import Gaussian
from leakscope.core.types import NotApplicable, Points
from leakscope.noise import GaussianNoise, dp_gaussian_scale
from leakscope.noise.left_out import jackknife_std
from leakscope.protection.declared_data import declared_view
from leakscope.protection.leave_one_out import counts_records, settled
from leakscope.protection.left_out_noise import deviations_of
from leakscope.protection.mechanism import Mechanism
from leakscope.protection.prepared import Prepared
from leakscope.protection.request import Request, of_statistic
from leakscope.protection.sensitivity import Ranges, Sensitivity, sensitivity
from leakscope.protection.several import etas_of, joined
from leakscope.protection.units import Units
from leakscope.releases.statistics.algorithms import Quantiles
from leakscope.releases.statistics.features import Cells, Columns, Histogram, columns_of
from leakscope.releases.statistics.group_means import GroupSums
from leakscope.releases.statistics.of_plan import LARGEST_NUMBER
from leakscope.releases.statistics.statistic import Covariance, Fit, Linear, Statistic
from leakscope.runtime.all_but_one import values_of

Array = np.ndarray
SOURCE = "dong2022, eq. 6 and Theorem 2.7"
# Steps of the grid in a deviation of the noise. What rounding adds to a shift is known beforehand, and very little.
_STEPS_OF_PARTS = 2.0**24  # where the part of each record is rounded
_STEPS = 2.0**16  # where the statistic is rounded, which has an arithmetic error
_MOST_JACKKNIFE = 50_000_000  # values without each record that are computed for a standard error


def prepare(request: Request) -> Prepared:
    """Compute the noise of differential privacy for a statistic of all records, within declared ranges.

    Parameters
    ----------
    request : Request

    Returns
    -------
    Prepared

    Raises
    ------
    ValueError
        In one line: if a range or the levels are not declared, or no bound is known for the statistic.
    """
    units = Units.of(request)
    if request.parts:
        return _several(request, units)
    prepared, factor = _of_one(request, units, request.plan.eta)
    return replace(prepared, public_findings=_epsilons(prepared, factor))


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
    prepared = joined(request, units, parts, per_unit=np.asarray(mu_of(request.plan.eta)))
    return replace(prepared, public_findings=_epsilons(prepared, factor))


def _of_one(request: Request, units: Units, eta: float) -> tuple[Prepared, float | None]:
    """Prepare one statistic, and compute what a record that is added or removed moves over one that is replaced."""
    plan = request.plan
    _check_declared(request, request.statistic)
    points, owner_notes = declared_view(request.statistic, plan, request.data.points)
    statistic, n = settled(request.statistic, points), len(points)
    ranges, groups = None, _groups(statistic)
    if not counts_records(statistic) and groups is None:
        ranges = Ranges.of(Mechanism(statistic, points, n), None, plan.declared_ranges)
    mechanism = Mechanism(statistic, points, n, request.execution)
    try:
        with np.errstate(over="ignore"):
            bound = sensitivity(mechanism, ranges, n_records=n)
    except NotApplicable as reason:
        raise ValueError(
            f"differential privacy has no noise for this statistic: {reason}; promise = file needs no ranges"
        ) from None
    if not (bound.unit <= LARGEST_NUMBER).all():
        label = mechanism.labels[int(np.argmin(bound.unit <= LARGEST_NUMBER))]
        raise ValueError(
            f"{label} may be so large within the declared ranges that its square overflows: declare the columns in "
            "larger units"
        )
    noise, grid = _noise(bound, eta, mechanism, ranges)
    value = _value(mechanism, grid)
    of_form = [Term("declared_form")] if request.of_a_file else []
    assumptions = [*of_form, Term("replace_one_any_data", n=n), Term("n_is_public", n=n)]
    if ranges is None:
        assumptions.append(Term("levels_declared"))
    if groups is not None:
        listed = _listed(groups.columns, groups.ranges)
        assumptions += [Term("ranges_declared", ranges=listed), Term("values_clamped")]
    if ranges is not None:
        listed = _listed(columns_of(points.x), zip(ranges.low, ranges.high, strict=True))
        assumptions += [Term("ranges_declared", ranges=listed), Term("values_clamped")]
    assumptions += [Term("ledger_not_rolled_back"), *request.signed_for, *request.assumptions, Term("on_a_grid")]
    prepared = Prepared(
        request,
        "dp",
        units,
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
        assumptions=assumptions,
        source=SOURCE,
        per_unit=np.asarray(mu_of(eta)),
        value_of=lambda left_out: value,
        divisor=mechanism.divisor,
        owner_notes=owner_notes,
        sampling_std=_standard_error(statistic, points),
    )
    return prepared, _add_remove(statistic, bound, ranges)


def mu_of(eta: float) -> float:
    """Compute mu of the Gaussian differential privacy that limits the accuracy at even odds to ``1/2 + eta``.

    Examples
    --------
    >>> from leakscope.protection.differential_privacy import mu_of
    >>> round(mu_of(0.05), 6)
    0.251323
    """
    return 2 * float(ndtri(0.5 + eta))


def is_known(statistic: Statistic) -> bool:
    """Tell whether declared ranges or levels bound what one record can change in a statistic."""
    return not isinstance(statistic, Fit) or isinstance(statistic.algorithm, Quantiles)


def _check_declared(request: Request, statistic: Statistic) -> None:
    """Refuse levels and edges that would come from the file."""
    plan = request.plan
    if plan.statistic == "histogram" and "edges" not in plan.set:
        raise ValueError("differential privacy counts between declared edges, as --set edges=[0,20,40]")
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


def _groups(statistic: Statistic) -> GroupSums | None:
    """Return the groups of a statistic that counts and adds up by groups; None for others."""
    is_of_groups = isinstance(statistic, Linear) and isinstance(statistic.features, GroupSums)
    return statistic.features if is_of_groups else None  # pyright: ignore[reportReturnType, reportAttributeAccessIssue]


def _listed(columns: Sequence[str], ranges: Iterable[tuple[float, float]]) -> str:
    return ", ".join(f"{name} from {low:g} to {high:g}" for name, (low, high) in zip(columns, ranges, strict=True))


def _noise(bound: Sensitivity, eta: float, mechanism: Mechanism, ranges: Ranges | None) -> tuple[GaussianNoise, Grid]:
    """Compute the noise, and a grid so fine that rounding adds next to nothing to a shift; from what is public."""
    least = dp_gaussian_scale(eta, 1.0)
    deviations = least * bound.l2 * bound.unit
    is_sum = isinstance(mechanism.statistic, Linear)  # of whole steps, which has no arithmetic error
    steps, magnitude = (_STEPS_OF_PARTS, 0.0) if is_sum or ranges is None else (_STEPS, _largest(mechanism, ranges))
    grid = Grid.for_noise(deviations * mechanism.divisor * (1024 / steps), magnitude)
    # one record that is replaced moves each number by at most a step more than without the grid, and by twice the
    # arithmetic error, which is less than a step
    n_steps = 1 if is_sum else 3
    rounding = n_steps * float(np.linalg.norm(grid.steps / (bound.unit * mechanism.divisor)))
    scale = least * (bound.l2 + rounding)
    if np.ptp(bound.unit) == 0:
        return GaussianNoise(scale * float(bound.unit[0])), grid
    return GaussianNoise(scale, np.square(bound.unit)), grid


def _largest(mechanism: Mechanism, ranges: Ranges) -> float:
    """Return the size of the numbers in whose last digits the arithmetic errs, from the declared ranges alone."""
    largest = float(np.maximum(np.abs(ranges.low), np.abs(ranges.high)).max())
    if isinstance(mechanism.statistic, Covariance):  # of deviations from the mean, whose last digits are of the columns
        width = float(ranges.width.max())
        return width * max(width, largest)
    return largest


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


def _add_remove(statistic: Statistic, bound: Sensitivity, ranges: Ranges | None) -> float | None:
    """Compute what a record that is added or removed moves, over what one moves that is replaced; None if unknown."""
    if not isinstance(statistic, Linear) or statistic.statistic != "sum":
        return None
    if isinstance(statistic.features, Cells):
        return 1 / bound.l2
    if isinstance(statistic.features, GroupSums):
        return math.sqrt(1 + len(statistic.features.columns)) / bound.l2
    if isinstance(statistic.features, Histogram):
        return math.sqrt(len(statistic.features.edges)) / bound.l2
    if isinstance(statistic.features, Columns) and ranges is not None:
        largest = np.maximum(np.abs(ranges.low), np.abs(ranges.high))
        return float(np.linalg.norm(largest / bound.unit)) / bound.l2
    return None


def _epsilons(prepared: Prepared, add_remove: float | None) -> tuple[Finding, ...]:
    """Report epsilon at delta for replacing a record and, where it is known, for adding or removing one."""
    mu, delta = mu_of(prepared.eta), prepared.request.plan.delta
    at = {"delta": delta}
    findings = [Finding("epsilon", Gaussian(mu).epsilon(delta), operating_point=at, **prepared.common)]
    if add_remove is not None:
        common: dict[str, Any] = prepared.common | {"method": (Term("add_or_remove"),)}
        epsilon = Gaussian(mu * add_remove).epsilon(delta)
        findings.append(Finding("epsilon", epsilon, operating_point=at, **common))
    return tuple(findings)


def _standard_error(statistic: Statistic, points: Points) -> Float[Array, " d"] | None:
    """Compute the standard error for the owner, unless that takes much memory: counts take little."""
    n_values = len(points) * len(statistic.labels(points))
    if len(points) < 2 or (n_values > _MOST_JACKKNIFE and not counts_records(statistic)):
        return None
    try:
        return jackknife_std(values_of(statistic, points)[1])
    except ValueError:  # it is for the owner: nothing is refused because of it
        return None
