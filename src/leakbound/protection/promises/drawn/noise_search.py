"""From a promise to the least noise that keeps it: couplings tried, pairs measured, a bound that holds.

Sums and means of features need no fit: their shifts follow from the features of all records, nothing is sampled,
and so shape and grid of the noise may be chosen with the same features. Any other statistic is fitted on random
pairs of data sets. There a pilot, with pairs of its own that are then thrown away, chooses the coupling, the shape
of the noise and the grid. The certifying pairs then choose one number, the scale, which costs no confidence.

Scale and shape are rounded as they are printed (`rounding`), and the grid follows from them: so a shift counts with
what the grid may add to it. A scale that was declared beforehand is only checked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float

from leakbound.core.checks import gain_over_prior
from leakbound.core.grid import Grid
from leakbound.core.seeds import integer
from leakbound.core.tradeoff import TradeOff
from leakbound.core.types import Noise, NotApplicable
from leakbound.noise import (
    GaussianNoise,
    Lp,
    Mahalanobis,
    MixtureSwap,
    Shifts,
    average_linear,
    best_covariance,
    calibrate,
    eta_bound,
    swap_linear,
    worst_case_covariance,
    worst_eta,
)
from leakbound.noise.calibration import least_scale
from leakbound.noise.families import Family, find_family
from leakbound.noise.shifts import level, smaller_prior
from leakbound.protection.promises.drawn.no_noise import unneeded
from leakbound.protection.promises.drawn.pilot import norm_of, piloted
from leakbound.protection.promises.drawn.target import NoiseAtScale, PrivacyTarget
from leakbound.protection.setting.mechanism import Mechanism
from leakbound.protection.setting.rounding import (
    PrintedShape,
    check_squares,
    next_scale,
    printed_grid,
    rounded_up,
    rounding_length,
)

Array = np.ndarray
NoNoise = Literal["", "equal_records", "table", "total", "equal_outputs"]
_RIDGE = 1e-6  # of a shape from all records: no direction is unseen
_PILOT_RIDGE = 1e-3  # of a shape from few pairs
_TRIED, _FARTHEST = 1000, 64  # records with which two shapes are tried: evenly spaced ones, and the farthest
_CONSTANT = 2.0**-16  # of a column of equal values: the scale of its grid
_MOST_GROWTH = 100.0  # of a scale, until a grid counts as the reason that no scale passes
_MOST_STEPS = 2.0**52  # of a sum, so that the noise has room


@dataclass(frozen=True, eq=False)
class NoiseSearchResult:
    """The noise of a mechanism, and what is proved of it."""

    noise: Noise | None
    noisy_coords: Bool[Array, " d"]
    grid: Grid
    coupling: str
    eta: float
    band: TradeOff | None = None
    confidence: float | None = None
    n_pairs: int = 0
    n_fits: int = 0
    n_failures: int = 0
    exposed: int | None = None
    shifts: Shifts | None = None
    sampling_std: Float[Array, " d"] | None = None
    # why no noise is needed: all records have the same values; enough of them share theirs; enough subsets have the
    # same total; enough pairs have the same output
    reason: NoNoise = ""
    declared: bool = False  # only its promise was checked; otherwise its scale was computed from all records
    printed_shape: PrintedShape | None = None

    @property
    def rms(self) -> Float[Array, " d"]:
        """Standard deviation of the noise in each coordinate."""
        rms = np.zeros(len(self.noisy_coords))
        if self.noise is not None:
            rms[self.noisy_coords] = _deviations(self.noise, int(self.noisy_coords.sum()))
        return rms


def search_noise(mechanism: Mechanism, target: PrivacyTarget) -> NoiseSearchResult:
    """Find the least noise with which a mechanism keeps a privacy target."""
    smaller = min(mechanism.prior, 1 - mechanism.prior)
    gain_over_prior(target.eta, smaller)
    if mechanism.features is not None and target.coupling in ("auto", "swap", "mixture_swap"):
        return _of_features(mechanism, mechanism.features, target)
    return _of_fits(mechanism, target)


def _of_features(mechanism: Mechanism, features: Float[Array, "n d"], target: PrivacyTarget) -> NoiseSearchResult:
    """Calibrate a sum or mean: without noise, by the exact swap, or by the mixture swap if the target names it."""
    check_squares(mechanism.labels, np.abs(features).max(axis=0))
    varied, grid = _grid_of(features, mechanism.k)
    sampling_std = mechanism.k / mechanism.divisor * features.std(axis=0, ddof=1) / math.sqrt(mechanism.k)
    no_coords = np.zeros(mechanism.d, dtype=bool)
    without_noise = NoiseSearchResult(None, no_coords, grid, "", 0.0, sampling_std=sampling_std)
    declared = _declared(target, mechanism.d)
    # where the draw alone keeps the promise, no noise is added, unless one was declared
    if declared is None and not varied.any():
        return replace(without_noise, coupling="swap", reason="equal_records")
    if declared is None and target.coupling == "auto" and isinstance(target.noise, str):
        proof = unneeded(grid.snap(features)[:, varied], mechanism.k, target.eta, target.about)
        if proof is not None:
            return replace(without_noise, coupling=proof.coupling, eta=proof.eta, reason=proof.coupling)
    # A column of equal values is released exactly: it says nothing about who was drawn.
    # every cell of a table gets noise: one without would show that all records agree in it
    noisy_coords = varied if declared is None and not mechanism.counts else np.ones(mechanism.d, dtype=bool)
    as_it_is = isinstance(target.noise, Noise) or declared is not None
    without_noise = replace(without_noise, noisy_coords=noisy_coords, declared=as_it_is)
    moving = features[:, noisy_coords]
    noise_at_scale = declared or _noise_of_features(moving, mechanism, target)
    search = _ScaleSearch(target, noise_at_scale, without_noise, mechanism.divisor)
    if isinstance(noise_at_scale, Noise):  # its grid is known already
        moving = _on_grid(moving, search.grid, noisy_coords)
    # the least scale, by the coupling that was chosen
    statistic: Literal["mean", "sum"] = "mean" if mechanism.divisor > 1 else "sum"
    if target.coupling == "mixture_swap":
        mixture = MixtureSwap(moving, mechanism.k, statistic, target.about, seed=target.seed)
        calibration = search.by_mixture(mixture)
    else:
        norm = norm_of(noise_at_scale)
        shifts = swap_linear(moving, mechanism.k, statistic, norm)
        if target.about == "average" and shifts.records is not None:  # many records, some of which share a row
            shifts = average_linear(moving, mechanism.k, statistic, norm, seed=integer(target.seed, "certify"))
        elif target.about == "average":
            shifts = shifts.average()
        calibration = search.by_shifts(shifts)
    _refuse_inexact(features, mechanism.k, calibration.grid)
    return calibration


def _grid_of(features: Float[Array, "n d"], k: int) -> tuple[Bool[Array, " d"], Grid]:
    """Find the coordinates that differ at all, and a grid fine for their spread on which sums of k records are exact.

    The values tell whether they differ: the standard deviation of equal numbers may be above 0, that of tiny ones 0.
    """
    largest, span = np.abs(features).max(axis=0), np.ptp(features, axis=0)
    noisy_coords = span > 0
    # Scaled to [0, 1] before the standard deviation, so that no square overflows or underflows.
    spread = span * ((features - features.min(axis=0)) / np.where(noisy_coords, span, 1)).std(axis=0)
    alone = np.where(largest > 0, largest * _CONSTANT, 1.0)
    grid = Grid.for_noise(np.where(noisy_coords, spread, alone), largest, error=0.0)
    _refuse_inexact(features, k, grid)
    return noisy_coords, grid


def _refuse_inexact(features: Float[Array, "n d"], k: int, grid: Grid) -> None:
    """Refuse features whose sum over k records may be no exact number of steps."""
    largest = np.abs(features).max(axis=0)
    if not (k * largest / grid.steps <= _MOST_STEPS).all():
        raise ValueError(
            f"sums of {k:,} values up to {largest.max():g} are beyond 2^52 steps of their grid: centre or rescale them"
        )


def _declared(target: PrivacyTarget, d: int) -> Noise | None:
    """Return the noise of a scale that was declared beforehand: nothing of it was computed from the data."""
    if target.noise_scale is None:
        return None
    if not isinstance(target.noise, str):
        raise ValueError("scale is that of a noise that is named, as gaussian; a noise of its own has one")
    scales = target.noise_scale
    if len(scales) == 1:
        return find_family(target.noise).of(d)(scales[0])
    if len(scales) != d:
        raise ValueError(f"scale has {len(scales)} numbers, the statistic {d}: give one, or one for each")
    if not target.noise.startswith("gaussian"):
        raise ValueError(
            f"noise {target.noise} has one scale, got {len(scales)}; Gaussian noise takes one for each number"
        )
    return GaussianNoise(1.0, shape=np.square(scales))


@dataclass(frozen=True, eq=False)
class _ScaleSearch:
    """The search for the scale: what is fixed before it, and how outputs are rounded."""

    target: PrivacyTarget
    noise_at_scale: NoiseAtScale | Noise
    without_noise: NoiseSearchResult
    multiple: float  # what lies on the grid, in units of what is released: k for a mean, whose sum does
    magnitude: Float[Array, " d"] | float = 0.0  # of a number with an arithmetic error; 0 where there is none
    steps: Float[Array, " d"] | float = 0.0

    @property
    def noisy_coords(self) -> Bool[Array, " d"]:
        """Coordinates that get noise."""
        return self.without_noise.noisy_coords

    @property
    def grid(self) -> Grid:
        """That of a noise as it is; while the scale is unknown, the one from the values alone."""
        if isinstance(self.noise_at_scale, Noise):
            return self.printed_grid(self.noise_at_scale)
        return self.without_noise.grid

    def printed_grid(self, noise: Noise) -> Grid:
        """Compute the grid of the printed noise; a coordinate without noise keeps the one that it has."""
        noisy_coords = self.noisy_coords
        steps = np.array(np.broadcast_to(self.without_noise.grid.steps, noisy_coords.shape))
        magnitude = np.broadcast_to(self.magnitude, noisy_coords.shape)[noisy_coords]
        steps[noisy_coords] = printed_grid(self._rms(noise), self.multiple, magnitude).steps
        return Grid(tuple(steps.tolist()))

    def rounding_length(self, noise: Noise) -> float:
        """Compute by how much a shift may be longer on the printed grid."""
        steps = np.broadcast_to(self.steps, self.noisy_coords.shape)[self.noisy_coords]
        return rounding_length(self._rms(noise), norm_of(noise), steps)

    def by_mixture(self, mixture: MixtureSwap) -> NoiseSearchResult:
        """Find the least scale for a mixture swap, rounded up."""
        target, confidence = self.target, self.target.confidence
        if isinstance(self.noise_at_scale, Noise):
            noise, grid = self.noise_at_scale, self.grid
            eta = mixture.worst_eta(noise, confidence)
        else:
            # both mixtures move by less than the length of the rounding, so that their divergence grows by its total
            # variation at most, whatever the scale
            noise_of_one = self.noise_at_scale(1.0)
            slack = float(noise_of_one.shift_tv(self.rounding_length(noise_of_one)))
            try:
                scale = mixture.least_scale(target.eta - slack, self.noise_at_scale, confidence)
            except NotApplicable:
                return self._equal_outputs(replace(self.without_noise, coupling="swap"))
            noise = self.noise_at_scale(rounded_up(scale))
            # the draws that chose the scale prove the target, no more; a curve needs others
            grid, eta = self.printed_grid(noise), target.eta
            mixture = replace(mixture, features=_on_grid(mixture.features, grid, self.noisy_coords))
        band = replace(mixture, seed=integer(target.seed, "band")).tradeoff(noise, confidence)
        return self._checked(
            replace(
                self.without_noise,
                noise=noise,
                grid=grid,
                coupling="mixture_swap",
                eta=eta,
                band=band,
                confidence=confidence,
                n_pairs=mixture.n_draws,
            )
        )

    def by_shifts(self, shifts: Shifts) -> NoiseSearchResult:
        """Find the least scale for these shifts, rounded up, and what follows from it."""
        confidence = None if shifts.exact else self.target.confidence
        calibration = replace(
            self.without_noise, coupling=shifts.coupling, confidence=confidence, n_pairs=shifts.values.shape[1]
        )
        # a declared scale is checked, and nothing is searched
        if isinstance(self.noise_at_scale, Noise):
            noise = self.noise_at_scale
        else:
            prior, alpha = smaller_prior(shifts, None), level(shifts, confidence)
            try:
                scale = least_scale(shifts, self.target.eta, self.noise_at_scale, prior, alpha)
            except NotApplicable:
                return self._equal_outputs(calibration)
            noise, shifts = self._rounded(self.noise_at_scale, scale, shifts)
        # what is stated is computed again from the rounded noise, not from the search
        return self._checked(
            replace(
                calibration,
                noise=noise,
                grid=self.printed_grid(noise),
                eta=worst_eta(shifts, noise, confidence=confidence),
                band=shifts.tradeoff(noise, confidence),
                exposed=_exposed(shifts, eta_bound(shifts, noise, confidence=confidence)),
                shifts=shifts,
            )
        )

    def _rms(self, noise: Noise) -> Float[Array, " e"]:
        """Return the standard deviation of each coordinate with noise."""
        return _deviations(noise, int(self.noisy_coords.sum()))

    def _rounded(self, noise_at_scale: NoiseAtScale, scale: float, shifts: Shifts) -> tuple[Noise, Shifts]:
        """Find the noise of the least scale of two digits that keeps the promise on its own grid, and the shifts there.

        What a grid adds to a shift is a fixed part of the scale. So the divergences still fall with the scale, and it
        may be chosen on the pairs that certify it.
        """
        target = self.target
        confidence = None if shifts.exact else target.confidence
        # The grid follows from the printed scale and adds to the shifts, so the scale may need a few steps more; they
        # grow, so that the search ends soon where the grid itself makes the promise impossible.
        printed, growth = rounded_up(scale), 0.0
        while printed <= _MOST_GROWTH * scale:
            noise = noise_at_scale(printed)
            longer = _longer(shifts, self.rounding_length(noise))
            if worst_eta(longer, noise, confidence=confidence) <= target.eta:
                return noise, longer
            printed = max(next_scale(printed), rounded_up((1 + growth) * printed))
            growth = 2 * growth + 0.01
        raise ValueError(
            f"eta = {target.eta:g} at confidence {target.confidence:g} needs a few more fits than {target.fits:,}: "
            "so few pairs prove it for no noise on a grid"
        )

    def _equal_outputs(self, calibration: NoiseSearchResult) -> NoiseSearchResult:
        """Add no noise where so many pairs have the same output that the target is kept without."""
        no_coords = np.zeros_like(self.noisy_coords)
        return replace(calibration, noisy_coords=no_coords, eta=self.target.eta, reason="equal_outputs")

    def _checked(self, calibration: NoiseSearchResult) -> NoiseSearchResult:
        """Refuse a given noise whose proved eta is above the target; add the shape as it is printed."""
        eta = self.target.eta
        if calibration.eta > eta:
            raise ValueError(f"this noise is proved to keep eta = {calibration.eta:.6g} only, asked for {eta:g}")
        shape = self.noise_at_scale.shape if isinstance(self.noise_at_scale, _Shaped) else None
        return replace(calibration, printed_shape=shape)


def _of_fits(mechanism: Mechanism, target: PrivacyTarget) -> NoiseSearchResult:
    """Calibrate any statistic by pairs of data sets, after a pilot."""
    declared = _declared(target, mechanism.d)
    noise_of_shape = partial(_noise_of_family, target.noise, ridge=_PILOT_RIDGE, isotropic=mechanism.counts)
    pilot = piloted(mechanism, target, noise_of_shape if declared is None else lambda *_: declared)
    noise_at_scale = declared or noise_of_shape(pilot.second_moment, int(pilot.noisy_coords.sum()))
    # The certifying pairs are measured only now: no pair of the pilot is among them.
    # a pair differs in up to k records, each of whose features is rounded: the grid of a sum is so much finer
    roundings = 1 if mechanism.features is None else mechanism.k
    magnitude = 0.0 if mechanism.features is not None else np.nanmax(np.abs(pilot.measured.outputs()), axis=0)
    multiple = mechanism.divisor / roundings
    grid = Grid(tuple((pilot.grid.steps * 2.0 ** math.floor(math.log2(multiple))).tolist()))
    as_it_is = isinstance(target.noise, Noise) or declared is not None
    without_noise = NoiseSearchResult(None, pilot.noisy_coords, grid, "", 0.0, declared=as_it_is)
    search = _ScaleSearch(target, noise_at_scale, without_noise, multiple, magnitude, grid.steps / multiple)
    shifts, n_failures = pilot.measured.shifts(search.grid, norm_of(noise_at_scale), pilot.noisy_coords)
    without_noise = replace(
        without_noise,
        n_fits=pilot.measured.n_fits,
        n_failures=n_failures,
        sampling_std=mechanism.sampling_std(pilot.measured.outputs()),
    )
    calibration = replace(search, without_noise=without_noise).by_shifts(shifts)
    if mechanism.features is not None:
        _refuse_inexact(mechanism.features, mechanism.k, calibration.grid)
    return calibration


def _longer(shifts: Shifts, length: float) -> Shifts:
    """Raise shifts to at least their lengths on another grid; equal records have equal features on every grid."""
    with np.errstate(over="ignore"):
        values = np.nextafter(shifts.values + shifts.values.dtype.type(length), np.inf, dtype=shifts.values.dtype)
    return replace(shifts, values=np.where(shifts.values > 0, values, 0.0) if shifts.exact else values)


def _on_grid(features: Float[Array, "n e"], grid: Grid, noisy_coords: Bool[Array, " d"]) -> Float[Array, "n e"]:
    """Round the features of the coordinates with noise as they are summed."""
    return Grid(tuple(grid.steps[noisy_coords].tolist())).snap(features)


def _exposed(shifts: Shifts, eta: Float[Array, " R"]) -> int | None:
    """Return the index of the record with the largest bound, of those that have a row of their own."""
    if len(eta) == 1:
        return None
    if shifts.records is None:
        return int(eta.argmax())
    own_rows = np.flatnonzero(shifts.records >= 0)
    return int(shifts.records[own_rows[eta[own_rows].argmax()]]) if len(own_rows) else None


@dataclass(frozen=True, eq=False)
class _Shaped:
    """The noise of each scale, of a shape that was computed from the file and rounded."""

    family: Family
    d: int
    shape: PrintedShape

    def __call__(self, scale: float) -> Noise:
        return self.family.of(self.d, self.shape.covariance)(scale)


def _noise_of_family(
    noise: str | Noise | NoiseAtScale,
    second_moment: Float[Array, "d d"] | None,
    d: int,
    ridge: float,
    isotropic: bool = False,
) -> NoiseAtScale | Noise:
    """Return the noise of each scale, of the shape that suits shifts with this second moment; or a noise as it is.

    Relative variance is what counts in each coordinate, so that units do not matter.
    """
    if isinstance(noise, type):  # a class has the methods of its noises, but is none
        return partial(noise)
    if not isinstance(noise, str):
        return noise
    family = find_family(noise)
    if family.structure is None or second_moment is None or d == 1 or isotropic:
        return family.of(d)
    weights = 1 / np.diagonal(second_moment)
    shape = best_covariance(second_moment, 1.0, weights, family.structure, ridge)
    return _Shaped(family, d, PrintedShape.of(shape, family.structure == "diagonal"))


def _noise_of_features(
    moving: Float[Array, "n d"], mechanism: Mechanism, target: PrivacyTarget
) -> NoiseAtScale | Noise:
    """Return the noise of each scale for a sum or mean, of the shape for the worst record or for the average one.

    The shape for the worst record limits mean squares, the promise a mean of a concave function of the lengths. Very
    rarely the shape for the average record keeps that with less noise; then it is taken for both promises.

    Counts have one unit, and noise of one size: a size for each cell would tell how many are in it.
    """
    d = moving.shape[1]
    if mechanism.counts:
        return _noise_of_family(target.noise, None, d, _RIDGE)
    # The shifts of a swap are differences of two random records: their second moment is twice the covariance.
    average = _noise_of_family(target.noise, np.atleast_2d(np.cov(moving, rowvar=False)), d, _RIDGE)
    family = find_family(target.noise) if isinstance(target.noise, str) else None
    if target.about == "average" or family is None or family.structure not in ("full", "diagonal") or d == 1:
        return average
    shape = worst_case_covariance(moving, 1.0, structure=family.structure, ridge=_RIDGE)
    candidates = (_Shaped(family, d, PrintedShape.of(shape, family.structure == "diagonal")), average)
    trial_records = _trial_records(moving, [norm_of(noise_at_scale) for noise_at_scale in candidates])
    prior = mechanism.prior

    def relative_variance(noise_at_scale: NoiseAtScale | Noise) -> float:
        return np.sum(_variances(trial_records, prior, target.eta, noise_at_scale) / moving.var(axis=0))

    return min(candidates, key=relative_variance)


def _trial_records(moving: Float[Array, "n d"], norms: Sequence[Lp | Mahalanobis]) -> Float[Array, "m d"]:
    """Select all of a thousand records; of more, evenly spaced ones and the farthest in each norm."""
    centred = moving - moving.mean(axis=0)
    far = [np.argsort(-norm(centred), kind="stable")[:_FARTHEST] for norm in norms]
    even = np.arange(0, len(moving), math.ceil(len(moving) / _TRIED))
    return moving[np.unique(np.concatenate([even, *far]))]


def _variances(
    features: Float[Array, "m d"], prior: float, eta: float, noise_at_scale: NoiseAtScale | Noise
) -> Float[Array, " d"]:
    """Compute the variances of the least noise that keeps eta for these records."""
    shifts = swap_linear(features, 1, "sum", norm_of(noise_at_scale))
    try:
        if isinstance(noise_at_scale, Noise):
            noise = noise_at_scale
        else:
            noise = calibrate(shifts, eta, noise_at_scale, prior=prior)
    except NotApplicable:  # so many are equal, whatever the shape
        return np.zeros(features.shape[1])
    return np.square(_deviations(noise, features.shape[1]))


def _deviations(noise: Noise, d: int) -> Float[Array, " d"]:
    """Return the standard deviation of the noise in each coordinate."""
    rms, norm = noise.rms(d), noise.norm
    if isinstance(norm, Mahalanobis):
        variances = np.diagonal(norm.shape) if norm.shape.ndim == 2 else norm.shape
    elif isinstance(norm, Lp) and norm.weights is not None:
        variances = np.asarray(norm.stretch) ** -2.0
    else:
        variances = np.ones(d)
    return rms * np.sqrt(variances / variances.mean())
