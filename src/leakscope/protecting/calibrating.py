"""From a promise to the least noise that keeps it: couplings tried, pairs measured, a bound that holds.

Sums and means of features need no fit: their shifts follow from the features of all records, nothing is sampled,
and so shape and grid of the noise may be chosen with the same features. Any other statistic is fitted on random
pairs of data sets. There a pilot, with pairs of its own that are then thrown away, chooses the coupling, the shape
of the noise and the grid; the certifying pairs choose one number, the scale, which costs no confidence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float

from leakscope.grid import Grid
from leakscope.noise import (
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
from leakscope.noise.families import find_family
from leakscope.protecting.asking import Asked, Ready
from leakscope.protecting.mechanisms import Mechanism
from leakscope.protecting.piloting import norm_of, piloted
from leakscope.protecting.unneeded import unneeded
from leakscope.seeds import integer
from leakscope.tradeoff import TradeOff
from leakscope.types import Noise, NotApplicable

Array = np.ndarray
_RIDGE = 1e-6  # of a shape from all records: no direction is unseen
_LARGEST = 1e150  # of a feature
_PILOT_RIDGE = 1e-3  # of a shape from few pairs
_TRIED, _FARTHEST = 1000, 64  # records with which two shapes are tried: evenly spaced ones, and the farthest
_CONSTANT = 2.0**-16  # of a column of equal values: beside it lies their grid
_MOST_STEPS = 2.0**52  # of a sum, so that the noise has room


@dataclass(frozen=True, eq=False)
class Calibrated:
    """The noise of a mechanism, and what is proved of it.

    Parameters
    ----------
    noise : Noise or None
        None: the draw alone keeps the promise.
    noised : bool array of shape (d,)
        Coordinates that get noise; the others are the same for every data set.
    grid : Grid
        Of the released numbers (of the sums behind means).
    coupling : str
    eta : float
        Proved accuracy above the better prior guess.
    band : TradeOff or None
        Proved ceiling of every attack, where one is known.
    confidence : float or None
        At which eta and band hold; None where nothing was sampled.
    n_pairs, n_fits, n_failures : int
        Pairs of a row, certifying fits, and how many of them failed.
    exposed : int or None
        The record with the largest bound, where the coupling knows one.
    shifts : Shifts or None
        What a ledger keeps, where the pairs are known.
    sampling_std : array of shape (d,) or None
        Standard deviation of the statistic over samples of k records.
    reason : str
        Why no noise is needed.
    """

    noise: Noise | None
    noised: Bool[Array, " d"]
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
    reason: str = ""

    @property
    def rms(self) -> Float[Array, " d"]:
        """Standard deviation of the noise in each coordinate."""
        made = np.zeros(len(self.noised))
        if self.noise is not None:
            made[self.noised] = _deviations(self.noise, int(self.noised.sum()))
        return made


def calibrated(mechanism: Mechanism, asked: Asked) -> Calibrated:
    """The least noise with which a mechanism keeps what is asked.

    Raises
    ------
    ValueError
        In one line, if eta is out of range, the noise or coupling does not fit the statistic, or so many fits
        cannot certify it: then with the number that can.
    """
    smaller = min(mechanism.prior, 1 - mechanism.prior)
    if not 0 < asked.eta < smaller:
        raise ValueError(f"eta must be > 0 and < {smaller:g}, the smaller prior; got {asked.eta:g}")
    if mechanism.features is not None and asked.coupling in ("auto", "swap", "mixture_swap"):
        return _of_features(mechanism, mechanism.features, asked)
    return _of_fits(mechanism, asked)


def _of_features(mechanism: Mechanism, features: Float[Array, "n d"], asked: Asked) -> Calibrated:
    """Of a sum or mean: without noise, by the exact swap, or by the mixture swap where it is asked for."""
    if np.abs(features).max() > _LARGEST:
        raise ValueError(f"values up to {np.abs(features).max():g} have no squares: rescale them below {_LARGEST:g}")
    noised, grid = _grid_of(features, mechanism.k)
    moving = grid.snap(features)[:, noised]
    error = mechanism.k / mechanism.divisor * features.std(axis=0, ddof=1) / math.sqrt(mechanism.k)
    bare = Calibrated(None, np.zeros(mechanism.d, dtype=bool), grid, "", 0.0, sampling_std=error)
    if not noised.any():
        return replace(bare, coupling="swap", reason="all records have the same values")
    if asked.coupling == "auto" and isinstance(asked.noise, str):
        found = unneeded(moving, mechanism.k, asked.eta, asked.promise)
        if found is not None:
            return replace(bare, coupling=found.coupling, eta=found.eta, reason=found.reason)
    ready = _ready_of(moving, mechanism.prior, asked)
    bare = replace(bare, noised=noised)
    statistic: Literal["mean", "sum"] = "mean" if mechanism.divisor > 1 else "sum"
    if asked.coupling == "mixture_swap":
        return _mixed(MixtureSwap(moving, mechanism.k, statistic, asked.promise, seed=asked.seed), asked, ready, bare)
    shifts = swap_linear(moving, mechanism.k, statistic, norm_of(ready))
    if asked.promise == "average" and shifts.records is not None:  # many records, some of which share a row
        shifts = average_linear(moving, mechanism.k, statistic, norm_of(ready), seed=integer(asked.seed, "certify"))
    elif asked.promise == "average":
        shifts = shifts.average()
    return _certified(shifts, asked, ready, bare)


def _grid_of(features: Float[Array, "n d"], k: int) -> tuple[Bool[Array, " d"], Grid]:
    """Coordinates that differ at all, and a grid beside their spread on which every sum of k records is exact.

    To differ is a fact of the values: a standard deviation of equal numbers may be above 0, and one of tiny numbers 0.
    """
    largest, span = np.abs(features).max(axis=0), np.ptp(features, axis=0)
    noised = span > 0
    spread = span * ((features - features.min(axis=0)) / np.where(noised, span, 1)).std(axis=0)
    alone = np.where(largest > 0, largest * _CONSTANT, 1.0)
    grid = Grid.for_noise(np.where(noised, spread, alone), largest, error=0.0)
    if not (k * np.abs(grid.snap(features) / grid.steps) <= _MOST_STEPS).all():
        raise ValueError(
            f"sums of {k:,} values up to {largest.max():g} are beyond 2^52 steps of their grid: centre or rescale them"
        )
    return noised, grid


def _of_fits(mechanism: Mechanism, asked: Asked) -> Calibrated:
    """Of any statistic: by pairs of data sets, after a pilot."""
    pilot = piloted(mechanism, asked, partial(_ready, asked.noise, ridge=_PILOT_RIDGE))
    ready = _ready(asked.noise, pilot.second_moment, int(pilot.noised.sum()), _PILOT_RIDGE)
    shifts, failed = pilot.measured.shifts(pilot.grid, norm_of(ready), pilot.noised)
    error, n_fits = mechanism.sampling_std(pilot.measured.outputs()), pilot.measured.n_fits
    bare = Calibrated(None, pilot.noised, pilot.grid, "", 0.0, n_fits=n_fits, n_failures=failed, sampling_std=error)
    return _certified(shifts, asked, ready, bare)


def _mixed(mixture: MixtureSwap, asked: Asked, ready: Ready | Noise, bare: Calibrated) -> Calibrated:
    """The least scale for a mixture swap."""
    try:
        noise = ready if isinstance(ready, Noise) else mixture.calibrate(asked.eta, ready, asked.confidence)
    except NotApplicable as reason:
        return replace(bare, coupling="swap", eta=asked.eta, reason=str(reason))
    # draws that chose the scale prove what was asked for, no more; a curve needs others
    eta = mixture.worst_eta(noise, asked.confidence) if isinstance(ready, Noise) else asked.eta
    band = replace(mixture, seed=integer(asked.seed, "band")).tradeoff(noise, asked.confidence)
    found = replace(bare, coupling="mixture swap", eta=eta, band=band, confidence=asked.confidence)
    return _kept(replace(found, noise=noise, n_pairs=mixture.n_draws), asked)


def _certified(shifts: Shifts, asked: Asked, ready: Ready | Noise, bare: Calibrated) -> Calibrated:
    """The least scale for these shifts, and what follows from it."""
    confidence = None if shifts.exact else asked.confidence
    found = replace(bare, coupling=shifts.coupling, confidence=confidence, n_pairs=shifts.values.shape[1])
    try:
        noise = ready if isinstance(ready, Noise) else calibrate(shifts, asked.eta, ready, confidence=confidence)
    except NotApplicable as reason:
        return replace(found, eta=asked.eta, reason=str(reason))
    eta, band = worst_eta(shifts, noise, confidence=confidence), shifts.tradeoff(noise, confidence)
    exposed = _exposed(shifts, eta_bound(shifts, noise, confidence=confidence))
    return _kept(replace(found, noise=noise, eta=eta, band=band, exposed=exposed, shifts=shifts), asked)


def _exposed(shifts: Shifts, eta: Float[Array, " R"]) -> int | None:
    """The record with the largest bound, of those that have a row of their own."""
    if len(eta) == 1:
        return None
    if shifts.records is None:
        return int(eta.argmax())
    own = np.flatnonzero(shifts.records >= 0)
    return int(shifts.records[own[eta[own].argmax()]]) if len(own) else None


def _kept(found: Calibrated, asked: Asked) -> Calibrated:
    """Refused where a noise that was given keeps less than was asked for."""
    if found.eta > asked.eta:
        raise ValueError(f"this noise is proved to keep eta = {found.eta:.6g} only, asked for {asked.eta:g}")
    return found


def _ready(
    noise: str | Noise | Ready, second_moment: Float[Array, "d d"] | None, d: int, ridge: float
) -> Ready | Noise:
    """The noise of each scale, of the shape that suits shifts with this second moment; or a noise as it is.

    Relative variance is what counts in each coordinate, so that units do not matter.
    """
    if isinstance(noise, type):  # a class has the methods of its noises, but is none
        return partial(noise)
    if not isinstance(noise, str):
        return noise
    family = find_family(noise)
    if family.structure is None or second_moment is None or d == 1:
        return family.of(d)
    weights = 1 / np.diagonal(second_moment)
    shape = best_covariance(second_moment, 1.0, weights, family.structure, ridge)
    return family.of(d, shape * d / np.trace(shape))


def _ready_of(moving: Float[Array, "n d"], prior: float, asked: Asked) -> Ready | Noise:
    """Of a sum or mean: the noise of each scale, of the shape for the worst record, or for the average one.

    The shape for the worst record limits mean squares, the promise a mean of a concave function of the lengths. Very
    rarely the shape for the average record keeps that with less noise; then it is taken for both promises.
    """
    d = moving.shape[1]
    average = _ready(asked.noise, np.atleast_2d(np.cov(moving, rowvar=False)), d, _RIDGE)
    family = find_family(asked.noise) if isinstance(asked.noise, str) else None
    if asked.promise == "average" or family is None or family.structure not in ("full", "diagonal") or d == 1:
        return average
    shape = worst_case_covariance(moving, 1.0, structure=family.structure, ridge=_RIDGE)
    both = (family.of(d, shape * d / np.trace(shape)), average)
    few = _few(moving, [norm_of(ready) for ready in both])
    return min(both, key=lambda ready: np.sum(_variances(few, prior, asked.eta, ready) / moving.var(axis=0)))


def _few(moving: Float[Array, "n d"], norms: Sequence[Lp | Mahalanobis]) -> Float[Array, "m d"]:
    """All of a thousand records; of more, evenly spaced ones and the farthest in each norm."""
    centred = moving - moving.mean(axis=0)
    far = [np.argsort(-norm(centred), kind="stable")[:_FARTHEST] for norm in norms]
    even = np.arange(0, len(moving), math.ceil(len(moving) / _TRIED))
    return moving[np.unique(np.concatenate([even, *far]))]


def _variances(features: Float[Array, "m d"], prior: float, eta: float, ready: Ready | Noise) -> Float[Array, " d"]:
    """Of the least noise that keeps eta for these records."""
    shifts = swap_linear(features, 1, "sum", norm_of(ready))
    try:
        noise = ready if isinstance(ready, Noise) else calibrate(shifts, eta, ready, prior=prior)
    except NotApplicable:  # so many are equal, whatever the shape
        return np.zeros(features.shape[1])
    return np.square(_deviations(noise, features.shape[1]))


def _deviations(noise: Noise, d: int) -> Float[Array, " d"]:
    """Standard deviation of each coordinate."""
    rms, norm = noise.rms(d), noise.norm
    if isinstance(norm, Mahalanobis):
        variances = np.diagonal(norm.shape) if norm.shape.ndim == 2 else norm.shape
    elif isinstance(norm, Lp) and norm.weights is not None:
        variances = np.asarray(norm.stretch) ** -2.0
    else:
        variances = np.ones(d)
    return rms * np.sqrt(variances / variances.mean())
