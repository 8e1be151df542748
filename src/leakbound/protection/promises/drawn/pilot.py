"""A pilot: few pairs of each coupling, thrown away, choose the coupling, the shape of the noise and the grid.

The pairs that certify are drawn with another seed, so that whatever the pilot chose is independent of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from leakbound.core.grid import Grid
from leakbound.core.seeds import integer
from leakbound.core.types import Noise
from leakbound.noise import Lp, Mahalanobis, Shifts, most_promising, pairs_needed
from leakbound.protection.promises.drawn.pairs import SAMPLED, Measured, measured
from leakbound.protection.promises.drawn.target import NoiseAtScale, PrivacyTarget
from leakbound.protection.setting.mechanism import Mechanism
from leakbound.protection.setting.rounding import check_squares

Array = np.ndarray

_FRACTION = 0.2  # of the fits, for the pilot
_LEAST, _MOST = 4, 500  # pairs of a pilot, or rounds of swaps
_FINER = 4.0  # the certified scale may be so many times below that of the pilot
_UNSEEN = 2.0**-20  # of the outputs: a grid where none of them differ


@dataclass(frozen=True, eq=False)
class Pilot:
    """What a pilot chose."""

    measured: Measured
    noisy_coords: Bool[Array, " d"]  # those in which some pair of the pilot differed, or all if none did
    second_moment: Float[Array, "e e"] | None
    grid: Grid


def piloted(
    mechanism: Mechanism,
    target: PrivacyTarget,
    # from the second moment of the shifts (or None) and their number of coordinates
    noise_of_shape: Callable[[Float[Array, "e e"] | None, int], NoiseAtScale | Noise],
) -> Pilot:
    """Try the couplings that the fits can pay, and choose."""
    certifying = _affordable(mechanism, target)
    trials = [_trial(coupling, target, len(certifying)) for coupling in certifying]
    differences = np.concatenate([trial.differences() for trial in trials])
    outputs = np.concatenate([trial.outputs() for trial in trials])
    if not len(differences):
        raise ValueError(f"{mechanism.statistic.name} failed in every pair of the pilot: there is nothing to calibrate")
    noisy_coords = (differences != 0).any(axis=0)
    largest = np.nanmax(np.abs(outputs), axis=0)
    check_squares(mechanism.labels, largest)
    if mechanism.features is not None:
        noisy_coords &= np.ptp(mechanism.features, axis=0) > 0  # sums of equal numbers differ by their rounding alone
    if target.noise_scale is not None or mechanism.counts:
        noisy_coords = np.ones_like(noisy_coords)  # a coordinate without noise would show that all records agree in it
    if not noisy_coords.any():  # the certifying pairs will tell whether they differ
        return Pilot(certifying[0], ~noisy_coords, None, _grid(noisy_coords, np.empty((0, 0)), largest))
    # The couplings are compared with the noise that suits the pairs of all of them.
    moment = _second_moment(differences[:, noisy_coords])
    chosen = 0
    if len(trials) > 1:
        noise = noise_of_shape(moment, int(noisy_coords.sum()))
        grid = _grid(noisy_coords, moment, largest)
        shifts = [trial.shifts(grid, norm_of(noise), noisy_coords)[0] for trial in trials]
        chosen = _best(shifts, [coupling.pairs.n_pairs for coupling in certifying], target, noise)
    # the shape suits the pairs of the chosen coupling, unless some coordinate does not differ in them
    moment_of_chosen = _second_moment(trials[chosen].differences()[:, noisy_coords])
    if np.diagonal(moment_of_chosen).all():
        moment = moment_of_chosen
    return Pilot(certifying[chosen], noisy_coords, moment, _grid(noisy_coords, moment, largest))


def norm_of(noise_at_scale: NoiseAtScale | Noise) -> Lp | Mahalanobis:
    """Return the norm in which the shifts are measured."""
    noise = noise_at_scale if isinstance(noise_at_scale, Noise) else noise_at_scale(1.0)
    if not isinstance(noise.norm, Lp | Mahalanobis):
        raise ValueError(f"the norm of the noise must be an Lp or a Mahalanobis, got {noise.norm!r}")
    return noise.norm


def _affordable(mechanism: Mechanism, target: PrivacyTarget) -> list[Measured]:
    """List the couplings that keep the promise, each with the pairs that the fits pay for after its pilot."""
    names = [name for name, kind in SAMPLED.items() if target.about == "average" or kind.promise == "every"]
    if target.coupling != "auto":
        if target.coupling not in names:
            raise ValueError(
                f"coupling {target.coupling} does not promise {target.about} for a statistic that is fitted; "
                f"known: auto, {', '.join(names)}"
            )
        names = [target.coupling]
    affordable, needed = [], {}
    for name in names:
        single = measured(mechanism, name, target.seed)
        # With fewer pairs even the largest noise is not proved to keep the promise.
        least = pairs_needed(target.eta, mechanism.prior, target.confidence, single.pairs.separating_fraction)
        needed[name] = math.ceil(least * single.fits_a_pair / (1 - _FRACTION))
        n_pairs = single.most_pairs(int((1 - _FRACTION) * target.fits))
        if n_pairs >= least:
            affordable.append(single.with_pairs(n_pairs, single.pairs.seed))
    if not affordable:
        name = min(needed, key=needed.__getitem__)
        raise ValueError(
            f"eta = {target.eta:g} at confidence {target.confidence:g} needs at least {needed[name]:,} fits "
            f"(coupling {name}), got {target.fits:,}"
        )
    return affordable


def _trial(certifying: Measured, target: PrivacyTarget, n_trials: int) -> Measured:
    """Make the pilot of a coupling: few pairs with a seed of their own."""
    n_pairs = certifying.most_pairs(int(_FRACTION * target.fits / n_trials))
    return certifying.with_pairs(max(_LEAST, min(n_pairs, _MOST)), integer(target.seed, "pilot"))


def _best(tried: Sequence[Shifts], n_pairs: Sequence[int], target: PrivacyTarget, noise: NoiseAtScale | Noise) -> int:
    """Choose the coupling that should need the least noise, or let the given noise keep most."""
    if isinstance(noise, Noise):
        return int(np.argmin([noise.shift_tv(shifts.values).mean(axis=1).max() for shifts in tried]))
    return most_promising(tried, n_pairs, target.eta, noise, target.about, target.confidence)


def _grid(noisy_coords: Bool[Array, " d"], moment: Float[Array, "e e"], largest: Float[Array, " d"]) -> Grid:
    """Make a grid that is fine compared with the noise to come; where there is none, compared with the outputs."""
    scale = np.where(largest > 0, largest * _UNSEEN, 1.0)
    length = np.sqrt(np.diagonal(moment))
    length = np.where(length > 0, length, length.max(initial=0.0))
    # where nothing moves, the noise was declared
    scale[noisy_coords] = np.where(length > 0, length / _FINER, scale[noisy_coords])
    return Grid.for_noise(scale, largest)


def _second_moment(v: Float[Array, "m e"]) -> Float[Array, "e e"]:
    return v.T @ v / len(v)
