"""The least noise that keeps a promise."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from leakscope.core.checks import gain_over_prior, probability
from leakscope.core.types import Noise, NotApplicable
from leakscope.noise.gaussian import GaussianNoise
from leakscope.noise.shifts import Shifts, level, row_bounds, smaller_prior, upper_eta

Array = np.ndarray
_PRECISION = 1e-9  # relative, of the scale


def calibrate(
    shifts: Shifts,
    eta: float,
    family: Callable[[float], Noise] = GaussianNoise,
    prior: float | None = None,
    confidence: float | None = None,
) -> Noise:
    """Noise of the least scale with `worst_eta` at most eta.

    The bound falls as the scale grows, so bisection finds the scale; the upper end of the last bracket is
    returned, where the bound was evaluated and holds, and 1e-9 less would break it. From a moment this gives
    the closed forms ``sigma/Phi^-1(1/2+eta)`` (Gaussian), ``sigma/ln(1/(1-2 eta))`` (Laplace) and
    ``sigma/atanh(2 eta)`` (any norm).

    For sampled pairs the scale may be chosen on the very pairs that certify it, without a union bound: every
    divergence falls with the scale, so the chosen scale is too small only if the bound fails at the one scale
    where the mean divergence itself equals eta, in the row of the record that needs the most noise. So neither
    the scales nor the rows cost confidence. The shape must come from elsewhere.

    Parameters
    ----------
    shifts : Shifts
        In the norm of the family.
    eta : float
        Accuracy above the better prior guess that is allowed, > 0 and < min(pi, 1-pi).
    family : callable
        A noise of a given scale: ``GaussianNoise``, ``LaplaceNoise``, ``partial(GaussianNoise, shape=S)``,
        ``partial(BallNoise, d=3)``, ``lambda scale: NormNoise(scale, Lp(1))``.
    prior, confidence
        As in `worst_eta`.

    Returns
    -------
    Noise

    Raises
    ------
    NotApplicable
        If no noise is needed: the share of pairs that differ at all keeps the promise.
    ValueError
        If no scale keeps it: eta out of range, too many failed pairs, too few sampled pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.noise import calibrate, swap_linear
    >>> shifts = swap_linear(np.array([[0.0], [1.0], [3.0], [7.0]]), k=2)
    >>> round(calibrate(shifts, eta=0.1).scale, 4)
    5.5833
    """
    return family(least_scale(shifts, eta, family, smaller_prior(shifts, prior), level(shifts, confidence)))


def least_scale(
    shifts: Shifts, eta: float, family: Callable[[float], Noise], smaller: float, alpha: float | None
) -> float:
    """Find the scale of `calibrate`, with the smaller prior and the level worked out.

    Parameters
    ----------
    shifts : Shifts
    eta : float
        Above 0, and below the smaller prior.
    family : callable
        From a scale to a noise.
    smaller : float
        The smaller of the priors of in and out.
    alpha : float or None
        Failure probability of a bound from sampled pairs; None where the shifts are exact.

    Raises
    ------
    ValueError
        If eta is out of its range, or so few pairs can show it at no scale.
    """
    gain_over_prior(eta, smaller)
    _refuse_impossible(shifts, eta, smaller, alpha)
    shifts = shifts.highest()
    if (_without_noise(shifts, smaller, alpha) <= eta).all():
        raise NotApplicable(f"no noise is needed for eta = {eta:g}: so many pairs have the same output")

    def exceeds(scale: float) -> bool:
        """Whether a row breaks the promise; rows that keep it need no larger scale and are dropped."""
        nonlocal shifts
        broken = row_bounds(shifts, family(scale), smaller, alpha) > eta
        if broken.any():
            shifts = shifts.rows(broken)
        return bool(broken.any())

    return _smallest(exceeds, float(shifts.values[np.isfinite(shifts.values)].max()))


def pairs_needed(eta: float, prior: float = 0.5, confidence: float = 0.95, share: float = 1.0) -> int:
    """Least number of sampled pairs (of each row) with which some scale can pass.

    With enough noise every divergence is 0, and the Chernoff limit of a mean of 0 from B pairs is ``1 -
    alpha^(1/B)``: it must be below ``share eta/min(pi, 1-pi)``. Much more noise than needed is the price of so few:
    with 500 pairs about 1.3 times, with 5,000 about 1.07 times what is known from infinitely many.

    Parameters
    ----------
    eta : float
        > 0 and < min(pi, 1-pi).
    prior, confidence : float
        As in `calibrate`.
    share : float
        As in `Shifts`; 2 min(pi, 1-pi) for ``SampledDisjoint``.

    Returns
    -------
    int

    Examples
    --------
    >>> from leakscope.noise import pairs_needed
    >>> pairs_needed(0.1), pairs_needed(0.05), pairs_needed(0.05, confidence=0.999)
    (14, 29, 66)
    """
    prior = probability("prior", prior, open_ends=True)
    smaller, alpha = min(prior, 1 - prior), 1 - probability("confidence", confidence, open_ends=True)
    gain_over_prior(eta, smaller)
    if not 0 < probability("share", share) <= 1:
        raise ValueError(f"share must be > 0 and <= 1, got {share:g}")
    return _needed(eta, smaller / share, alpha)


def _smallest(exceeds: Callable[[float], bool], start: float) -> float:
    """Smallest scale that does not exceed, from above."""
    high = start
    while exceeds(high):
        high *= 2
    low = high / 2
    while high == start and not exceeds(low):
        start = high = low
        low /= 2
    while high > low * (1 + _PRECISION):
        middle = math.sqrt(low) * math.sqrt(high)
        low, high = (middle, high) if exceeds(middle) else (low, middle)
    return high


def _without_noise(shifts: Shifts, smaller: float, alpha: float | None) -> Float[Array, " R"]:
    """Bound of eta as the scale goes to 0."""
    differ = (shifts.values > 0).astype(float)
    return differ[:, 0] / 2 if shifts.mean_only else upper_eta(shifts, shifts.mean(differ), smaller, alpha)


def _refuse_impossible(shifts: Shifts, eta: float, smaller: float, alpha: float | None) -> None:
    """Whether the bound reaches eta as the scale goes to infinity."""
    failed = shifts.mean(np.isinf(shifts.values).astype(float)).max()
    floor = min(smaller * failed / shifts.share, smaller)
    if failed and floor >= eta:
        raise ValueError(f"{failed:.1%} of the pairs failed: eta must be > {floor:g}, got {eta:g}")
    if alpha is None:
        return
    n_pairs, needed = shifts.values.shape[1], _needed(eta, smaller / shifts.share, alpha)
    if n_pairs < needed:
        raise ValueError(f"eta = {eta:g} needs more than {needed - 1:,} pairs a row, got {n_pairs:,}")
    if upper_eta(shifts, np.array([failed]), smaller, alpha)[0] >= eta:
        raise ValueError(f"{failed:.1%} of the {n_pairs:,} pairs failed: too many for eta = {eta:g} at this confidence")


def _needed(eta: float, largest: float, alpha: float) -> int:
    """`pairs_needed`; largest: the eta bound of pairs that hide nothing, before it is cut off."""
    return math.floor(math.log(alpha) / math.log1p(-eta / largest)) + 1
