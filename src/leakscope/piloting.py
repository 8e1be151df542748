"""A pilot: few pairs of each coupling, thrown away, choose the coupling, the shape of the noise and the grid.

The pairs that certify are drawn with another seed, so that whatever the pilot chose is independent of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal, Protocol

import numpy as np
from jaxtyping import Bool, Float

from leakscope.grid import Grid
from leakscope.mechanisms import Mechanism
from leakscope.noise import (
    AverageSwap,
    Lp,
    Mahalanobis,
    SampledCoupling,
    SampledDisjoint,
    SampledSwap,
    Shifts,
    most_promising,
    pairs_needed,
)
from leakscope.seeds import integer
from leakscope.types import Noise

Array = np.ndarray
Ready = Callable[[float], Noise]  # the noise of each scale

SAMPLED: Mapping[str, type[SampledCoupling]] = MappingProxyType(
    {"swap": SampledSwap, "complement": SampledDisjoint, "average_swap": AverageSwap}
)
_SHARE = 0.2  # of the fits, for the pilot
_LEAST = 4  # pairs of a pilot, or rounds of swaps
_FINER = 4.0  # the certified scale may be so many times below that of the pilot
_UNSEEN = 2.0**-20  # of the outputs: a grid where none of them differ


class Wanted(Protocol):
    """What a pilot reads of what is asked."""

    @property
    def eta(self) -> float: ...
    @property
    def promise(self) -> Literal["every", "average"]: ...
    @property
    def coupling(self) -> str: ...
    @property
    def confidence(self) -> float: ...
    @property
    def fits(self) -> int: ...
    @property
    def seed(self) -> int: ...


@dataclass(frozen=True, eq=False)
class Pilot:
    """What a pilot chose.

    Parameters
    ----------
    pairs : SampledCoupling
        Those that will certify.
    noised : bool array of shape (d,)
        Coordinates that get noise: those in which some pair of the pilot differed, or all if none did.
    second_moment : array of shape (e, e) or None
        Of the differences in these e coordinates; None if no pair differed.
    grid : Grid
    """

    pairs: SampledCoupling
    noised: Bool[Array, " d"]
    second_moment: Float[Array, "e e"] | None
    grid: Grid


def piloted(
    mechanism: Mechanism, asked: Wanted, ready: Callable[[Float[Array, "e e"] | None, int], Ready | Noise]
) -> Pilot:
    """Try the couplings that the fits can pay, and choose.

    Parameters
    ----------
    mechanism : Mechanism
    asked : Wanted
    ready : callable
        From the second moment of shifts, or None, and their number of coordinates to the noise of each scale.

    Raises
    ------
    ValueError
        If the fits pay for none: with the number that would. If the statistic fails on all data sets.
    """
    certifying = _affordable(mechanism, asked)
    trials = [_trial(pairs, asked, len(certifying)) for pairs in certifying]
    outputs = [mechanism.outputs(pairs) for pairs in trials]
    moved = [_finite(pairs.differences(made)) for pairs, made in zip(trials, outputs, strict=True)]
    every, largest = np.concatenate(moved), max(float(np.nanmax(np.abs(made), initial=0.0)) for made in outputs)
    if not len(every):
        raise ValueError(f"{mechanism.statistic.name} failed in every pair of the pilot: there is nothing to calibrate")
    noised = (every != 0).any(axis=0)
    if not noised.any():  # the certifying pairs will tell whether they differ
        return Pilot(certifying[0], ~noised, None, Grid.for_noise(largest * _UNSEEN or 1.0, largest))
    moment = _second_moment(every[:, noised])
    noise = ready(moment, int(noised.sum()))
    tried = [pairs.shifts(made, norm_of(noise), noised) for pairs, made in zip(trials, outputs, strict=True)]
    chosen = _best(tried, certifying, asked, noise)
    own = _second_moment(moved[chosen][:, noised])
    moment = own if np.diagonal(own).all() else moment
    return Pilot(
        certifying[chosen], noised, moment, Grid.for_noise(np.sqrt(np.diagonal(moment).min()) / _FINER, largest)
    )


def norm_of(ready: Ready | Noise) -> Lp | Mahalanobis:
    """In which the shifts are measured."""
    noise = ready if isinstance(ready, Noise) else ready(1.0)
    if not isinstance(noise.norm, Lp | Mahalanobis):
        raise ValueError(f"the norm of the noise must be an Lp or a Mahalanobis, got {noise.norm!r}")
    return noise.norm


def _affordable(mechanism: Mechanism, asked: Wanted) -> list[SampledCoupling]:
    """The couplings that keep the promise, each with the pairs that the fits pay for beside its pilot."""
    names = [name for name, kind in SAMPLED.items() if asked.promise == "average" or kind.promise == "every"]
    if asked.coupling != "auto":
        if asked.coupling not in names:
            raise ValueError(
                f"coupling {asked.coupling} does not promise {asked.promise} for a statistic that is fitted; "
                f"known: auto, {', '.join(names)}"
            )
        names = [asked.coupling]
    budget = int((1 - _SHARE) * asked.fits)
    found, needed = [], {}
    for name in names:
        single = SAMPLED[name](mechanism.n, mechanism.k, 1, integer(asked.seed, "certify"))
        least = pairs_needed(asked.eta, mechanism.prior, asked.confidence, single.share)
        needed[name] = math.ceil(least * single.fits_a_pair / (1 - _SHARE))
        if budget >= least * single.fits_a_pair:
            found.append(replace(single, n_pairs=budget // single.fits_a_pair))
    if not found:
        name = min(needed, key=needed.__getitem__)
        raise ValueError(
            f"eta = {asked.eta:g} at confidence {asked.confidence:g} needs at least {needed[name]:,} fits "
            f"(coupling {name}), got {asked.fits:,}"
        )
    return found


def _trial(pairs: SampledCoupling, asked: Wanted, n_trials: int) -> SampledCoupling:
    """The pilot of a coupling: few pairs with a seed of their own."""
    n_pairs = int(_SHARE * asked.fits / n_trials) // pairs.fits_a_pair
    return replace(pairs, n_pairs=max(_LEAST, n_pairs), seed=integer(asked.seed, "pilot"))


def _best(tried: Sequence[Shifts], certifying: Sequence[SampledCoupling], asked: Wanted, noise: Ready | Noise) -> int:
    """The coupling that should need the least noise, or let the given noise keep most."""
    if len(tried) == 1:
        return 0
    if isinstance(noise, Noise):
        return int(np.argmin([noise.shift_tv(shifts.values).mean(axis=1).max() for shifts in tried]))
    n_pairs = [pairs.n_pairs for pairs in certifying]
    return most_promising(tried, n_pairs, asked.eta, noise, asked.promise, asked.confidence)


def _finite(differences: Float[Array, "P pairs d"]) -> Float[Array, "m d"]:
    """The differences of all pairs that did not fail."""
    v = differences.reshape(-1, differences.shape[2])
    return v[np.isfinite(v).all(axis=1)]


def _second_moment(v: Float[Array, "m e"]) -> Float[Array, "e e"]:
    return v.T @ v / len(v)
