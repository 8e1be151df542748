"""Noise that hides which record was left out: the least one of a printed scale and shape, checked on the grid.

What is certified is the table of the n leave-one-out values on the grid of the noise, and a row of that table is what
is released: no rounding and no other way of computing the statistic comes between the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float

from leakbound.core.grid import Grid
from leakbound.core.numerics import smallest_where
from leakbound.core.repeated_rows import Table, rows_of, side_by_side, variance, with_rows
from leakbound.core.types import NotApplicable
from leakbound.noise import GaussianNoise, LeftOut, calibrate_left_out, least_left_out_noise, left_out_curve
from leakbound.noise.left_out import Distinct, WorstLeftOut, standardised
from leakbound.noise.norms import Mahalanobis
from leakbound.protection.setting.rounding import PrintedShape, check_squares, next_scale, printed_grid, rounded_up
from leakbound.releases.statistics.rounding import ARITHMETIC

Array = np.ndarray
_MOST_SHAPED = 60  # numbers whose noise gets a shape with correlations; more get a deviation each
_MOST_GROWTH = 2.0  # of a printed scale over the least one, for what the grid adds
_MOST_LABELS = 6  # that an error names
_TOLD_APART = 1000.0  # standard deviations, by which exact values that differ are apart in a ledger
_NOT_TOLD = WorstLeftOut(0.0, 0)
_FACTOR_PRECISION = 1e-3  # relative, of a factor before its scales are rounded up to two digits
_LARGEST_FACTOR = 1000.0  # of the noises beside declared ones: statistics with more say nothing
_MOST_STEPS = 100  # of printed scales, for what the grid adds


@dataclass(frozen=True, eq=False)
class LeftOutNoise:
    """Noise for a table of leave-one-out values."""

    table: Table
    noise: GaussianNoise | None
    shape: PrintedShape | None
    noisy_coords: Bool[Array, " d"]
    grid: Grid
    worst: WorstLeftOut
    declared: bool
    sizes: Float[Array, " d"]

    @property
    def rms(self) -> Float[Array, " d"]:
        """Standard deviation of the noise in each coordinate."""
        rms = np.zeros(len(self.noisy_coords))
        if self.noise is not None:
            rms[self.noisy_coords] = deviations_of(self.noise, int(self.noisy_coords.sum()))
        return rms

    @cached_property
    def whitened(self) -> Table:
        """The table in units of the noise, in coordinates in which it is standard normal.

        Where there is no noise at all, equal rows are equal and others so far apart that they are told for certain.
        """
        rows = rows_of(self.table)
        if self.noise is None:
            return with_rows(self.table, _TOLD_APART * Distinct.of(rows).which[:, None])
        noisy = _columns(rows, self.noisy_coords)
        lowest = np.fmin.reduce(noisy, axis=0)  # exact on the grid, and the same for every order of the records
        whitened = standardised(self.noise.norm, noisy - lowest)
        whitened /= self.noise.scale
        return with_rows(self.table, whitened)


def search_left_out_noise(
    values: Table,
    eta: float,
    labels: Sequence[str],
    *,
    noise: str = "gaussian",
    counts: bool = False,  # one noise for all: a size for each cell would tell how many are in it
    declared: Sequence[float] | None = None,
    # leave coordinates without noise that are the same whoever is left out, and all of them where so many rows are
    # equal that eta is kept without noise
    allow_exact: bool = False,
    # of what was added up: values that differ by no more than its rounding errors are the same
    sizes: Float[Array, " d"] | None = None,
    # of a table of means (counts of all groups, then means of each column), in each of which "gaussian_isotropic" is
    # the same, for counts and for each column
    n_groups: int = 1,
    limits: Mapping[float, float] | None = None,
) -> LeftOutNoise:
    """Find the least noise of two printed digits with which nobody tells which record was left out."""
    check_squares(labels, np.fmax.reduce(np.abs(rows_of(values)), axis=0))
    sizes = np.zeros(values.shape[1]) if sizes is None else sizes
    constant = _constant(values, sizes)
    if counts and not constant.all():
        constant[:] = False  # an empty cell gets the noise of the others: without it, it would be told that it is empty
    if declared is not None:
        return _checked_declared(values, eta, declared, labels, sizes, limits or {})
    if constant.any() and not allow_exact:
        same = [label for label, is_same in zip(labels, constant, strict=True) if is_same]
        more = f" and {len(same) - _MOST_LABELS:,} more" if len(same) > _MOST_LABELS else ""
        raise ValueError(
            f"the same whoever is left out, so that it would be released exactly, outside of the promise: "
            f"{', '.join(same[:_MOST_LABELS])}{more}; leave it out, allow it (allow_exact), or declare a scale"
        )
    if constant.any():  # exactly, so that no rounding error tells who is left out
        rows = rows_of(values).copy()
        rows[:, constant] = rows[0, constant]
        values = with_rows(values, rows)
    # coordinates that are the same for all tell no record from another
    some_constant = constant.any() and not constant.all()
    left_out = LeftOut(with_rows(values, rows_of(values)[:, ~constant]) if some_constant else values)
    exact = _told_without_noise(left_out)
    if exact.advantage <= 2 * eta:
        for rate, most in (limits or {}).items():
            if rate + exact.advantage > most:
                raise ValueError(
                    f"eta = {eta:g} is kept without noise, and the limit tpr@{rate:g}={most:g} is not: ask for a "
                    "smaller eta, or declare a scale"
                )
        if not allow_exact:
            raise ValueError(
                f"so many of the values without a record are equal that eta = {eta:g} is kept without noise, and they "
                "would be released exactly: allow it (allow_exact), declare a scale, or ask for a smaller eta"
            )
        return LeftOutNoise(values, None, None, np.zeros_like(constant), Grid(1.0), exact, False, sizes)
    # a group without noise has no part in a common scale
    of_groups = n_groups if noise == "gaussian_isotropic" and not some_constant else 1
    shape = _printed_shape(left_out, eta, noise, counts, of_groups)
    return _least(values, left_out, ~constant, eta, shape, labels, sizes, limits or {})


def search_joint_noise(
    tables: Sequence[Table],
    labels: Sequence[Sequence[str]],
    alone: Sequence[LeftOutNoise],
    eta: float,
    limits: Mapping[float, float] | None = None,
) -> list[LeftOutNoise]:
    """Multiply the noises of several statistics by one factor, the least with which all together keep the promise.

    All releases side by side are one release with standard normal noise: their values in units of the noise of each.
    That table is what is certified, as that of a single statistic, and no split of eta is lost: two statistics that
    tell different records need less noise together than each with a part of eta. Declared noise stays as it is.
    """
    limits = limits or {}
    is_free = [found.noise is not None and not found.declared for found in alone]
    if not any(is_free):
        _check_together(alone, eta, limits)
        return list(alone)
    factor = _common_factor(alone, is_free, eta, limits)
    scales = [rounded_up(factor * (1.0 if found.noise is None else found.noise.scale)) for found in alone]
    for _ in range(_MOST_STEPS):
        together = [
            _on_grid(values, found, scale, names) if free else found
            for values, names, found, scale, free in zip(tables, labels, alone, scales, is_free, strict=True)
        ]
        whitened = LeftOut(side_by_side([each.whitened for each in together]))
        if _keeps(whitened, eta, limits):
            return together
        scales = [next_scale(scale) for scale in scales]
    raise ValueError(f"no noise on a grid keeps eta = {eta:g} for these values")


def told_together(found: Sequence[LeftOutNoise]) -> WorstLeftOut:
    """Bound the total variation of the record that several statistics together tell best."""
    return LeftOut(side_by_side([each.whitened for each in found])).worst(GaussianNoise(1.0))


def _keeps(whitened: LeftOut, eta: float, limits: Mapping[float, float]) -> bool:
    """Tell whether standard normal noise keeps eta, and a curve below all limits."""
    advantage = whitened.worst(GaussianNoise(1.0)).advantage
    return advantage <= 2 * eta and not _broken(whitened, advantage, limits)


def _broken(whitened: LeftOut, advantage: float, limits: Mapping[float, float]) -> dict[float, float]:
    """List the true positive rates that are proved where a limit is broken, by false positive rate."""
    if not limits:
        return {}
    curve = left_out_curve(whitened, rates=list(limits))
    proved = {rate: min(float(curve.tpr_at(rate)), rate + advantage) for rate in limits}
    return {rate: tpr for rate, tpr in proved.items() if tpr > limits[rate]}


def _check_limits(whitened: LeftOut, advantage: float, limits: Mapping[float, float]) -> None:
    """Refuse declared noise that breaks a limit."""
    for rate, tpr in _broken(whitened, advantage, limits).items():
        raise ValueError(
            f"this noise is proved to keep tpr@{rate:g}={tpr:.3g} only, asked for {limits[rate]:g}: declare a larger "
            "one, or ask for a higher limit"
        )


def _check_together(declared: Sequence[LeftOutNoise], eta: float, limits: Mapping[float, float]) -> None:
    told = told_together(declared).advantage
    if told > 2 * eta:
        raise ValueError(
            f"the declared noises together are proved to keep eta = {told / 2:.6g} only, asked for {eta:g}: declare "
            "larger ones"
        )
    _check_limits(LeftOut(side_by_side([each.whitened for each in declared])), told, limits)


def _common_factor(
    alone: Sequence[LeftOutNoise], is_free: Sequence[bool], eta: float, limits: Mapping[float, float]
) -> float:
    """Find the least factor of the noises that are not declared."""
    whitened = [found.whitened for found in alone]

    def keeps(factor: float) -> bool:
        together = [
            with_rows(table, rows_of(table) / factor) if free else table
            for table, free in zip(whitened, is_free, strict=True)
        ]
        return _keeps(LeftOut(side_by_side(together)), eta, limits)

    if not keeps(_LARGEST_FACTOR):
        raise ValueError(
            f"the declared noises leave nothing of eta = {eta:g} for the statistics without one: declare larger ones"
        )
    return smallest_where(keeps, rtol=_FACTOR_PRECISION, geometric=True)


def deviations_of(noise: GaussianNoise, d: int) -> Float[Array, " d"]:
    """Compute the standard deviation of a Gaussian noise in each coordinate."""
    norm = noise.norm
    if not isinstance(norm, Mahalanobis):
        return np.full(d, noise.scale)
    variances = np.diagonal(norm.shape) if norm.shape.ndim == 2 else norm.shape
    return noise.scale * np.sqrt(variances)


def _finite(values: Table) -> Table:
    """Leave out failures."""
    is_finite = np.isfinite(rows_of(values)).all(axis=1)
    return values if is_finite.all() else np.asarray(values)[np.isfinite(np.asarray(values)).all(axis=1)]


def _constant(values: Table, sizes: Float[Array, " d"]) -> Bool[Array, " d"]:
    """Find the coordinates that are the same in all rows but for rounding; failures are rows, and concern none."""
    finite = rows_of(_finite(values))
    if not len(finite):
        raise ValueError("the statistic fails whoever is left out")
    if len(finite) < len(rows_of(values)):
        return np.zeros(values.shape[1], dtype=bool)
    return np.ptp(finite, axis=0) <= 2 * ARITHMETIC * sizes


def _told_without_noise(left_out: LeftOut) -> WorstLeftOut:
    """Find the record that is told best by exact values: of all records, the fewest have the same one."""
    distinct, n = left_out.distinct, left_out.n
    fewest = int(distinct.count.argmin())
    record = int((distinct.which == fewest).argmax())
    return WorstLeftOut((n - int(distinct.count[fewest])) / (n - 1), record)


def _printed_shape(left_out: LeftOut, eta: float, noise: str, counts: bool, n_groups: int) -> PrintedShape | None:
    """Choose a shape and round it, before any scale is calibrated for it."""
    d = left_out.values.shape[1]
    if d == 1 or counts or (noise == "gaussian_isotropic" and n_groups == 1):
        return None
    errors = np.sqrt(variance(_finite(left_out.values)))
    if n_groups > 1:  # the largest error of the groups
        errors = np.repeat(errors.reshape(-1, n_groups).max(axis=1), n_groups)
    # one digit of the standard errors is all that the weights take from the data
    errors = np.array([float(f"{error:.0e}") if error > 0 else 1.0 for error in errors])
    if noise != "gaussian" or d > _MOST_SHAPED:
        return PrintedShape.of(np.diag(np.square(errors)), independent=True)
    try:
        best = least_left_out_noise(left_out, eta, 1 / np.square(errors))
    except NotApplicable as reason:
        raise ValueError(str(reason)) from None
    return PrintedShape.of(np.asarray(best.shape))


def _least(
    values: Table,
    left_out: LeftOut,
    noisy_coords: Bool[Array, " d"],
    eta: float,
    shape: PrintedShape | None,
    labels: Sequence[str],
    sizes: Float[Array, " d"],
    limits: Mapping[float, float],
) -> LeftOutNoise:
    """Find the least scale of two digits that keeps the promise for the values on its own grid."""
    covariance = _covariance(shape)
    noise = GaussianNoise(1.0, covariance)
    unscaled = LeftOutNoise(values, noise, shape, noisy_coords, Grid(1.0), _NOT_TOLD, False, sizes)

    def of_scale(scale: float) -> GaussianNoise:
        return GaussianNoise(scale, covariance)

    try:
        least = float(calibrate_left_out(left_out, eta, of_scale).scale)  # pyright: ignore[reportAttributeAccessIssue] -- it is Gaussian
    except NotApplicable as reason:
        raise ValueError(str(reason)) from None
    if limits:
        exact = standardised(unscaled.noise.norm, rows_of(left_out.values))  # pyright: ignore[reportOptionalMemberAccess] -- it has one

        def keeps(scale: float) -> bool:
            return not _broken(LeftOut(with_rows(left_out.values, exact / scale)), 2 * eta, limits)

        if not keeps(least):
            least = smallest_where(keeps, least, rtol=_FACTOR_PRECISION, geometric=True)
    printed = rounded_up(least)
    while printed <= _MOST_GROWTH * least:
        found = _on_grid(values, unscaled, printed, labels)
        if found.worst.advantage <= 2 * eta and not _broken(LeftOut(found.whitened), found.worst.advantage, limits):
            return found
        printed = next_scale(printed)
    raise ValueError(f"no noise on a grid keeps eta = {eta:g} for these values")


def _on_grid(values: Table, found: LeftOutNoise, scale: float, labels: Sequence[str]) -> LeftOutNoise:
    """Give a noise another scale, and put the values on the grid that belongs to it."""
    assert found.noise is not None
    noise = replace(found.noise, scale=scale)
    noisy_coords = found.noisy_coords
    exact = _columns(rows_of(values), noisy_coords)
    grid = _grid(noise, exact, noisy_coords, labels, found.sizes)
    snapped = _noisy_grid(grid, noisy_coords).snap(exact)
    worst = LeftOut(with_rows(values, snapped)).worst(noise)
    rows = _with_columns(rows_of(values), noisy_coords, snapped)
    return replace(found, table=with_rows(values, rows), noise=noise, grid=grid, worst=worst)


def _columns(rows: Float[Array, "n d"], chosen: Bool[Array, " d"]) -> Float[Array, "n e"]:
    """Select columns; the rows themselves, not a copy, where it is all of them."""
    return rows if chosen.all() else rows[:, chosen]


def _with_columns(rows: Float[Array, "n d"], chosen: Bool[Array, " d"], columns: Float[Array, "n e"]) -> Array:
    """Return rows with other values in some columns."""
    if chosen.all():
        return columns
    changed = rows.copy()
    changed[:, chosen] = columns
    return changed


def _covariance(shape: PrintedShape | None) -> Float[Array, "e e"] | Float[Array, " e"] | None:
    """Return the covariance of a printed shape; its diagonal where the coordinates are independent."""
    if shape is None:
        return None
    return np.square(shape.deviations) if shape.correlations is None else shape.covariance


def _checked_declared(
    values: Table,
    eta: float,
    declared: Sequence[float],
    labels: Sequence[str],
    sizes: Float[Array, " d"],
    limits: Mapping[float, float],
) -> LeftOutNoise:
    """Take the declared noise if it keeps the promise."""
    noise = declared_noise(declared, values.shape[1])
    every = np.ones(values.shape[1], dtype=bool)
    grid = _grid(noise, rows_of(values), every, labels, sizes)
    table = with_rows(values, grid.snap(rows_of(values)))
    worst = LeftOut(table).worst(noise)
    if worst.advantage > 2 * eta:
        raise ValueError(
            f"this noise is proved to keep eta = {worst.advantage / 2:.6g} only, asked for {eta:g}: declare a larger "
            "one"
        )
    found = LeftOutNoise(table, noise, None, every, grid, worst, declared=True, sizes=sizes)
    _check_limits(LeftOut(found.whitened), worst.advantage, limits)
    return found


def declared_noise(scales: Sequence[float], d: int) -> GaussianNoise:
    """Make the noise of declared standard deviations: one, or one for each coordinate."""
    if len(scales) not in (1, d):
        raise ValueError(f"scale has {len(scales)} numbers, the statistic {d}: give one, or one for each")
    if len(scales) == 1:
        return GaussianNoise(float(scales[0]))
    largest = max(scales)
    return GaussianNoise(float(largest), np.square(np.asarray(scales, dtype=float) / largest))


def _grid(
    noise: GaussianNoise,
    noisy: Float[Array, "n e"],
    noisy_coords: Bool[Array, " d"],
    labels: Sequence[str],
    sizes: Float[Array, " d"],
) -> Grid:
    """Make the grid that follows from the printed noise; coordinates without noise get steps that nothing uses."""
    finite = noisy if np.isfinite(noisy).all() else noisy[np.isfinite(noisy).all(axis=1)]
    magnitudes = np.maximum(np.abs([finite.min(axis=0), finite.max(axis=0)]).max(axis=0), sizes[noisy_coords])
    deviations = deviations_of(noise, noisy.shape[1])
    steps = np.ones(len(noisy_coords))
    for number, place in enumerate(np.flatnonzero(noisy_coords).tolist()):
        one = slice(number, number + 1)
        try:
            steps[place] = printed_grid(deviations[one], 1.0, magnitudes[one]).steps[0]
        except ValueError:
            raise ValueError(
                f"the noise of {labels[place]} would be {deviations[number]:g}, no more than the rounding errors of "
                "what is added up for it: leave it out, subtract a public number from its column, or declare a larger "
                "scale"
            ) from None
    return Grid(tuple(steps.tolist()))


def _noisy_grid(grid: Grid, noisy_coords: Bool[Array, " d"]) -> Grid:
    return Grid(tuple(grid.steps[noisy_coords].tolist()))
