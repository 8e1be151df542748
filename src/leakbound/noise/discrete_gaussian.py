"""Discrete Gaussian noise on counts, calibrated by its own total variation instead of that of the continuous one.

``P(X = x)`` is proportional to ``exp(-x^2/(2 s^2))`` for whole numbers x. A record that moves m counts by one each
(m = 1: it is in a count or not; m = 2: it goes from one cell of a table to another) is told by the sum of these counts
with their signs: the likelihood ratio is monotone in ``Z = X_1 + ... + X_m``, which the record moves by m. Z is
symmetric, so the total variation is ``P(-m/2 <= Z < m/2)``: P(X = 0) for m = 1, and P(Z in {-1, 0}) for m = 2.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from leakbound.core.checks import count, positive
from leakbound.core.numerics import bisect
from leakbound.noise.information import allowed_stick

Array = np.ndarray
_REACH = 12.0  # deviations: less than 1e-31 lies beyond
_LARGEST = 1e5  # of s, whose probabilities are summed


def dp_discrete_scale(eta: float, n_moved: int = 1) -> float:
    """Compute the least parameter s of discrete Gaussian noise on counts that promises eta at even odds.

    It is the least s whose total variation is at most ``2 eta``. For one count, which needs ``P(X = 0) <= 2 eta``, that
    is more than the continuous Gaussian needs (3.98942 instead of 3.97895 for eta = .05).

    Parameters
    ----------
    eta : float
        Accuracy above 1/2 that is allowed, > 0 and < 1/2.
    n_moved : int
        How many counts a record moves by one each: 1 for a single count, 2 for a table of counts where a record is
        replaced by another.

    Returns
    -------
    float
        The parameter s, rounded towards more noise. The standard deviation is that of `discrete_std`.

    Raises
    ------
    ValueError
        For an eta out of range, or so small that s exceeds 100,000.

    Examples
    --------
    >>> from leakbound.noise import dp_discrete_scale
    >>> round(dp_discrete_scale(0.05), 5), round(dp_discrete_scale(0.05, n_moved=2), 4)
    (3.98942, 5.6197)
    """
    _, limit = allowed_stick(eta, 0.5)
    n_moved = count("n_moved", n_moved)
    # more than twice what continuous noise needs for this total variation, which discrete noise approaches
    start = 2 * math.sqrt(n_moved) / limit
    if start > _LARGEST:
        raise ValueError(f"eta = {eta:g} needs discrete noise of more than {_LARGEST:,.0f} records; give a larger eta")
    return bisect(lambda s: total_variation(s, n_moved) <= limit, start, 0.0, rtol=1e-12)


def total_variation(s: float, n_moved: int = 1) -> float:
    """Compute the total variation between discrete Gaussian noise on counts and the same, moved by one each.

    >>> round(total_variation(3.98942), 6)
    0.1
    """
    one = _probabilities(positive("s", s))
    # the distribution of a sum is a product of Fourier transforms
    size = n_moved * (len(one) - 1) + 1
    of_sum = np.fft.irfft(np.fft.rfft(one, size) ** n_moved, size) if n_moved > 1 else one
    centre = size // 2
    below, above = centre - n_moved // 2, centre + (n_moved + 1) // 2
    return min(1.0, float(of_sum[below:above].sum()))


def discrete_std(s: float) -> float:
    """Compute the standard deviation of discrete Gaussian noise.

    >>> round(discrete_std(4.0), 6), round(discrete_std(0.3), 4)
    (4.0, 0.0876)
    """
    chance = _probabilities(positive("s", s))
    radius = len(chance) // 2
    return math.sqrt(float(chance @ np.square(np.arange(-radius, radius + 1.0))))


def _probabilities(s: float) -> Float[Array, " width"]:
    """Return the probabilities of -r, ..., r; what lies beyond is too little to be seen."""
    radius = math.ceil(_REACH * s) + 1
    weight = np.exp(-0.5 * np.square(np.arange(-radius, radius + 1) / s))
    return weight / weight.sum()
