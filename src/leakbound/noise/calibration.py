"""The least scale of a noise at which the bound of eta keeps a limit."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from leakbound.core.checks import gain_over_prior, probability
from leakbound.core.numerics import smallest_where
from leakbound.core.types import Noise, NotApplicable
from leakbound.noise.gaussian import GaussianNoise
from leakbound.noise.shifts import Shifts, level, row_bounds, smaller_prior, upper_eta

Array = np.ndarray
_PRECISION = 1e-9  # relative, of the scale


def calibrate(
    shifts: Shifts,
    eta: float,
    family: Callable[[float], Noise] = GaussianNoise,
    prior: float | None = None,
    confidence: float | None = None,
) -> Noise:
    """Return noise of the least scale with `worst_eta` at most eta.

    The bound falls as the scale grows, so bisection finds the scale. The upper end of the last bracket is
    returned, where the bound was evaluated and holds; a scale 1e-9 (relative) smaller breaks it. From a moment this
    gives the closed forms ``sigma/Phi^-1(1/2+eta)`` (Gaussian), ``sigma/ln(1/(1-2 eta))`` (Laplace) and
    ``sigma/atanh(2 eta)`` (any norm).

    For sampled pairs the scale may be chosen on the very pairs that certify it, without a union bound: every
    divergence falls with the scale, so the chosen scale is too small only if the bound fails at the one scale
    where the mean divergence itself equals eta, in the row of the record that needs the most noise. So neither
    the scales nor the rows cost confidence. The shape must come from elsewhere.
    Source: izzo2022, section 4.

    Parameters
    ----------
    shifts : Shifts
        In the norm of the family.
    eta : float
        Accuracy above the better prior guess that is allowed, > 0 and < min(pi, 1-pi).
    family : callable
        A noise of a given scale: ``GaussianNoise``, ``LaplaceNoise``, ``partial(GaussianNoise, shape=S)``,
        ``partial(BallNoise, d=3)``, ``lambda scale: NormNoise(scale, Lp(1))``.
    prior : float, optional
        pi = k/n; that of the shifts where None.
    confidence : float, optional
        For sampled pairs, and only for them: probability that the noise keeps eta.

    Returns
    -------
    Noise
        Of the family.

    Raises
    ------
    NotApplicable
        If no noise is needed: so few pairs differ at all that eta is kept.
    ValueError
        If no scale keeps eta: eta out of range, too many failed pairs, too few sampled pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.noise import calibrate, swap_linear
    >>> shifts = swap_linear(np.array([[0.0], [1.0], [3.0], [7.0]]), k=2)
    >>> round(calibrate(shifts, eta=0.1).scale, 4)
    5.5833
    """
    return family(least_scale(shifts, eta, family, smaller_prior(shifts, prior), level(shifts, confidence)))


def least_scale(
    shifts: Shifts, eta: float, family: Callable[[float], Noise], smaller: float, alpha: float | None
) -> float:
    """Find the scale of `calibrate`, for a smaller prior and a level that are known."""
    gain_over_prior(eta, smaller)
    _refuse_impossible(shifts, eta, smaller, alpha)
    shifts = shifts.highest()
    if (_without_noise(shifts, smaller, alpha) <= eta).all():
        raise NotApplicable("equal_outputs", eta=eta)

    def keeps_eta(scale: float) -> bool:
        """Whether every row keeps eta; a row that keeps it needs no larger scale and is dropped."""
        nonlocal shifts
        broken = row_bounds(shifts, family(scale), smaller, alpha) > eta
        if broken.any():
            shifts = shifts.rows(broken)
        return not broken.any()

    start = float(shifts.values[np.isfinite(shifts.values)].max())
    return smallest_where(keeps_eta, start, rtol=_PRECISION, geometric=True)


def pairs_needed(eta: float, prior: float = 0.5, confidence: float = 0.95, separating_fraction: float = 1.0) -> int:
    """Compute the least number of sampled pairs (of each row) with which some scale can pass.

    With enough noise every divergence is 0, and the Chernoff limit of a mean of 0 from B pairs is ``1 - alpha^(1/B)``:
    it must be below ``s eta/min(pi, 1-pi)``, s the separating fraction. With so few pairs the noise is much larger than
    needed; with 500 it is about 1.3 times, with 5,000 about 1.07 times that from infinitely many.

    Parameters
    ----------
    eta : float
        > 0 and < min(pi, 1-pi).
    prior : float
        pi = k/n.
    confidence : float
        As in `calibrate`.
    separating_fraction : float
        As in `Shifts`; 2 min(pi, 1-pi) for ``SampledDisjoint``.

    Returns
    -------
    int
        At least 1.

    Examples
    --------
    >>> from leakbound.noise import pairs_needed
    >>> pairs_needed(0.1), pairs_needed(0.05), pairs_needed(0.05, confidence=0.999)
    (14, 29, 66)
    """
    prior = probability("prior", prior, open_ends=True)
    smaller, alpha = min(prior, 1 - prior), 1 - probability("confidence", confidence, open_ends=True)
    gain_over_prior(eta, smaller)
    if not 0 < probability("separating_fraction", separating_fraction) <= 1:
        raise ValueError(f"separating_fraction must be > 0 and <= 1, got {separating_fraction:g}")
    return _needed(eta, smaller / separating_fraction, alpha)


def _without_noise(shifts: Shifts, smaller: float, alpha: float | None) -> Float[Array, " R"]:
    """Compute the bound of eta in the limit of scale 0."""
    differ = (shifts.values > 0).astype(float)
    return differ[:, 0] / 2 if shifts.mean_only else upper_eta(shifts, shifts.mean(differ), smaller, alpha)


def _refuse_impossible(shifts: Shifts, eta: float, smaller: float, alpha: float | None) -> None:
    """Check that the bound comes below eta in the limit of an infinite scale."""
    failed = shifts.mean(np.isinf(shifts.values).astype(float)).max()
    floor = min(smaller * failed / shifts.separating_fraction, smaller)
    if failed and floor >= eta:
        raise ValueError(f"{failed:.1%} of the pairs failed: eta must be > {floor:g}, got {eta:g}")
    if alpha is None:
        return
    n_pairs, needed = shifts.values.shape[1], _needed(eta, smaller / shifts.separating_fraction, alpha)
    if n_pairs < needed:
        raise ValueError(f"eta = {eta:g} needs more than {needed - 1:,} pairs a row, got {n_pairs:,}")
    if upper_eta(shifts, np.array([failed]), smaller, alpha)[0] >= eta:
        raise ValueError(f"{failed:.1%} of the {n_pairs:,} pairs failed: too many for eta = {eta:g} at this confidence")


def _needed(eta: float, largest: float, alpha: float) -> int:
    """Compute `pairs_needed`; largest is the bound of eta of pairs that hide nothing, before it is cut off."""
    return math.floor(math.log(alpha) / math.log1p(-eta / largest)) + 1
