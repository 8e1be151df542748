"""Exactly what a total of one column reveals about each record: no noise needed, or less than a theorem asks for."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from leakbound.bounds.cycle import Cycle, lengths
from leakbound.bounds.quadrature import LINE_TOLERANCE, Density, graded, panel_integrals, panel_nodes, reach
from leakbound.bounds.sampling import Sampling, inclusion
from leakbound.core.checks import numbers, positive

Array = np.ndarray

NARROWEST = 1e-9  # panel of offsets; narrower only where the density jumps
LONGEST_CYCLE = 2**21  # with continuous noise: as many totals for each node of a panel
MOST_NUMBERS = 2**25  # with continuous noise: of totals, for all distinct values and panels
SMOOTH, ROUGH_PANELS = 64, 64  # noise of so many steps takes one panel of offsets; less, or with jumps, about so many
ROUNDING = 256 * np.finfo(float).eps  # of an inverse transform, in a panel's series, over its root mean square
LARGEST_VALUE = 2**52  # beyond it floating-point numbers are no longer all whole numbers


@dataclass(frozen=True, eq=False)
class WholeNoise:
    """Symmetric noise of whole numbers: a rounded or discrete Gaussian, a discrete Laplace.

    Parameters
    ----------
    probability : array_like of shape (2 r + 1,)
        Probabilities of -r, ..., r.

    Raises
    ------
    ValueError
        If they are not symmetric probabilities that sum to 1 within 1e-12.

    Examples
    --------
    >>> from leakbound.bounds.totals import WholeNoise
    >>> WholeNoise([0.25, 0.5, 0.25]).radius
    1
    """

    probability: Float[Array, " width"]

    def __init__(self, probability: ArrayLike) -> None:
        chance = np.asarray(probability, dtype=float)
        if chance.ndim != 1 or len(chance) % 2 == 0:
            raise ValueError(f"probability must have shape (2 r + 1,), for -r ... r; got {chance.shape}")
        if not (np.isfinite(chance).all() and (chance >= 0).all() and abs(chance.sum() - 1) <= 1e-12):
            raise ValueError(f"probability must be >= 0 with sum 1, got the sum {chance.sum():.15g}")
        if not np.allclose(chance, chance[::-1], rtol=1e-12, atol=0):
            raise ValueError("probability must be symmetric")
        object.__setattr__(self, "probability", chance)

    @property
    def radius(self) -> int:
        """The radius r."""
        return len(self.probability) // 2


def on_grid(values: ArrayLike, grid: float) -> Int[Array, " n"]:
    """Round values to whole numbers of grid steps, as `exact_eta_total` takes them.

    The statement then holds for the total of the ROUNDED values, which is what has to be released.

    Parameters
    ----------
    values : array_like of shape (n,)
        Of each record.
    grid : float
        The step, in the units of the values.

    Returns
    -------
    int array of shape (n,)
        Each value in steps.

    Raises
    ------
    ValueError
        If a value is not finite or more than 2^52 steps.

    Examples
    --------
    >>> from leakbound.bounds.totals import on_grid
    >>> on_grid([1020.0, 980.0, -15.0], 10).tolist()
    [102, 98, -2]
    """
    steps = numbers("values", values)
    if steps.ndim != 1 or steps.size == 0:
        raise ValueError(f"values must have shape (n,), at least one; got {steps.shape}")
    if not np.isfinite(steps).all():
        raise ValueError(f"values must be finite, got {steps[~np.isfinite(steps)][0]}")
    with np.errstate(over="ignore"):
        steps = np.rint(steps / positive("grid", grid))
    if np.abs(steps).max() > LARGEST_VALUE:
        raise ValueError(f"values reach {np.abs(steps).max():.3g} steps of the grid; the limit is {LARGEST_VALUE:,}")
    return steps.astype(np.int64)


def exact_eta_total(
    values: ArrayLike,
    sampling: Sampling = "poisson",
    *,
    k: int | None = None,
    prior: float | None = None,
    noise: Density | WholeNoise | None = None,
) -> Float[Array, " n"]:
    """Accuracy of the best attacker above the better prior guess, for each record, given the total of D.

    P_out is the distribution of the total of the others and P_in its shift by the value of the record. Both come from
    the characteristic function of (size of D, total): independent coins first, then, for a fixed size, the coefficient
    of that size; the characteristic function of ``pi P_in - (1 - pi) P_out`` is a factor of one value times that of all
    records, so there is one inverse Fourier transform for each distinct value.

    Totals are folded onto a cycle that is long enough for the mass beyond it to be below 1e-18 (Hoeffding, Bernstein);
    frequencies below e^-80 are dropped. The result is right to 1e-11, without noise to about 1e-13. Noise that cannot
    carry one total to another hides nothing: the result is then that without noise.

    Parameters
    ----------
    values : array_like of whole numbers, shape (n,)
        Of all n records, those of D and the others; negative ones are allowed. `on_grid` makes them of real numbers.
    sampling : {"poisson", "fixed"}
        Each record is in D with probability ``prior``, or all subsets of k records are equally likely.
    k : int or None
        Size of D for ``sampling="fixed"``; None is n // 2.
    prior : float or None
        For ``sampling="poisson"``; None is 1/2.
    noise : WholeNoise, object with ``log_density`` and ``rms``, or None
        Added to the total, in steps of the grid.

    Returns
    -------
    array of shape (n,)
        In [0, 1/2].

    Raises
    ------
    ValueError
        If a value is no whole number, or if the totals range so far that the result would take minutes: the message
        says how far.

    Examples
    --------
    >>> from leakbound.bounds.totals import exact_eta_total
    >>> exact_eta_total([0, 1, 3, 3, 7, 2, 9, 4]).round(12).tolist()
    [0.0, 0.15625, 0.09375, 0.09375, 0.21875, 0.1875, 0.3125, 0.15625]
    """
    steps = _whole_numbers(values)
    k, prior = inclusion(len(steps), k, sampling, prior)
    distinct, which, counts = np.unique(steps, return_inverse=True, return_counts=True)
    if k:  # with a fixed size a constant added to all values changes the total by a constant
        distinct = distinct - distinct[0]
    unit = 1 if isinstance(noise, WholeNoise) else max(1, int(np.gcd.reduce(distinct)))
    if k:  # values around 0 keep the cycle short
        distinct = distinct - unit * int(np.rint(np.average(distinct, weights=counts) / unit))
    values_of_units = (distinct // unit).tolist()
    if not (noise is None or isinstance(noise, WholeNoise)) and 2 * reach(noise, 1) <= unit:
        noise = None  # no two totals can give the same release: the noise hides nothing
    if noise is None or isinstance(noise, WholeNoise):
        cycle = Cycle.of(distinct // unit, counts, prior, k, 0 if noise is None else noise.radius)
        totals = _without_density(cycle, values_of_units, noise)
    else:
        spread = int(np.ceil(2 * reach(noise, 1) / unit))
        length, _ = lengths(distinct // unit, counts, prior, k, spread)
        _affordable(length, len(distinct), unit, noise)
        cycle = Cycle.of(distinct // unit, counts, prior, k, spread)
        totals = _with_density(cycle, values_of_units, unit, noise, spread)
    best_guess = max(prior, 1 - prior)
    return np.clip((1 + totals) / 2 - best_guess, 0.0, 1 - best_guess)[which]


def _without_density(cycle: Cycle, values: list[int], noise: WholeNoise | None) -> Float[Array, " v"]:
    """``sum |pi P_in - (1 - pi) P_out|`` for a record of each value."""
    factor = 1.0 if noise is None else cycle.transform(noise.probability)
    return np.array([np.abs(cycle.numbers(cycle.difference(value) * factor)).sum() for value in values])


def _with_density(cycle: Cycle, values: list[int], unit: int, noise: Density, spread: int) -> Float[Array, " v"]:
    """``int |pi P_in - (1 - pi) P_out|`` for a record of each value.

    A release is a whole number and an offset t in [0, 1), and for each t the noise is one of whole numbers: panels of
    t, cut until the integral over them is proved.
    """
    # offsets, with narrow panels at both ends, where the density has its peak if the noise is less than a step
    cuts = graded(1.0, noise.rms(1) / unit)
    todo = [(left, right - left, range(len(values))) for left, right in pairwise(cuts)]
    totals, negligible = np.zeros(len(values)), LINE_TOLERANCE / (len(todo) * cycle.length)
    around = np.arange(-spread, spread + 1)[:, None]
    while todo:
        left, width, open_values = todo.pop()
        offsets = left + width * (panel_nodes() + 1) / 2
        # the transform of the noise at each node is shared by all values
        factors = [cycle.transform(unit * np.exp(noise.log_density(unit * (around + t)))) for t in offsets]
        again = []
        for i in open_values:
            spectrum = cycle.difference(values[i])
            at_nodes = np.stack([cycle.numbers(spectrum * factor) for factor in factors])
            # what floating point cannot resolve is not cut further
            rounding = ROUNDING * width * float(np.sqrt(np.mean(at_nodes**2)))
            integral, proved = panel_integrals(at_nodes[..., None], width, max(negligible, rounding))
            if proved.all() or width < NARROWEST:
                totals[i] += integral.sum()
            else:
                again.append(i)
        if again:
            todo += [(left, width / 2, again), (left + width / 2, width / 2, again)]
    return totals


def _affordable(length: int, n_values: int, unit: int, noise: Density) -> None:
    """Refuses what would take more than about a gigabyte, or minutes."""
    coarser = "round the values to a coarser grid"
    if length > LONGEST_CYCLE:
        raise ValueError(f"totals and noise range over {length:,} steps; the limit is {LONGEST_CYCLE:,}: {coarser}")
    steps = noise.rms(1) / unit
    jumps = bool(np.isneginf(noise.log_density(np.array([[reach(noise, 1)]]))).any())
    n_numbers = n_values * length * (ROUGH_PANELS if jumps or steps < SMOOTH else 1)
    if n_numbers > MOST_NUMBERS:
        raise ValueError(
            f"{n_values:,} distinct values, totals over {length:,} steps and {'a jump of the' if jumps else 'the'} "
            f"density of noise of {steps:.3g} steps take about {n_numbers:,} numbers; the limit is {MOST_NUMBERS:,}: "
            f"{coarser}" + ("" if jumps else f", or add noise of {SMOOTH} steps")
        )


def _whole_numbers(values: ArrayLike) -> Int[Array, " n"]:
    steps = numbers("values", values)
    rounded = on_grid(steps, 1.0)
    uneven = np.flatnonzero(rounded != steps)
    if len(uneven):
        raise ValueError(f"values must be whole numbers, got {steps[uneven[0]]}; on_grid rounds them")
    return rounded
