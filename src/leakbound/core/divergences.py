"""The hockey-stick divergence of two Gaussians: the delta of the Gaussian mechanism at every epsilon."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.special import erfcx

from leakbound.core.checks import non_negative

Array = np.ndarray
_SHORT = 0.02  # shifts below it by a series: a difference of two Mills ratios loses about 1e-16 epsilon/m^2
_SPLITTER = 2.0**27 + 1  # of a number of 53 bits into two of 26, whose products are exact


def gaussian_hockey(m: ArrayLike, epsilon: float) -> Float[Array, "*shape"]:
    """Hockey-stick divergence of N(m, 1) from N(0, 1) at the ratio e^epsilon.

    ``Phi(m/2 - epsilon/m) - e^epsilon Phi(-m/2 - epsilon/m)`` (Balle & Wang 2018, theorem 8), which is the delta
    of the Gaussian mechanism at this epsilon. With ``e^epsilon phi(a + m) = phi(a)``, a = epsilon/m - m/2, it is
    ``phi(a) (M(a) - M(a + m))``, M = (1 - Phi)/phi the Mills ratio: no exponential of epsilon is taken. For short
    shifts the difference is the Taylor series around the middle, ``-2 sum M^(k)(epsilon/m) (m/2)^k/k!`` over odd k.

    >>> gaussian_hockey([0.0, 0.5, 1.0, 2.0], epsilon=1.0).round(6).tolist()
    [0.0, 0.00683, 0.126937, 0.509862]
    """
    m, epsilon = np.asarray(m, dtype=float), non_negative("epsilon", epsilon)
    if not (m >= 0).all():
        raise ValueError(f"a shift must be >= 0, got {m.min():g}")
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        tilt = epsilon / m
        near = _near_end(m, epsilon)
        far = tilt + m / 2
        density = np.exp(-(near**2) / 2) / math.sqrt(2 * math.pi)
        both = (near <= 0) + density * (np.where(near <= 0, -1, 1) * _mills(np.abs(near)) - _mills(far))
        short = density * _mills_difference(tilt, m / 2)
    return np.where(m == 0, 0.0, np.where((m < _SHORT) & (density > 0), short, both))


def _near_end(m: Array, epsilon: float) -> Array | np.floating:
    """``epsilon/m - m/2``, to the last digits where the two nearly cancel.

    An error e of it is one of ``near e`` in the density, which for tilts of 1e5 would be 1e-10. As
    ``(2 epsilon - m^2)/(2 m)`` with the square in two parts (Dekker 1971) the difference is exact where it cancels.
    """
    plain = epsilon / m - m / 2
    square = m * m
    coarse = _SPLITTER * m
    high = coarse - (coarse - m)
    low = m - high
    rounded_off = ((high * high - square) + 2 * high * low) + low * low
    exact = ((2 * epsilon - square) - rounded_off) / (2 * m)
    cancels = np.isfinite(exact) & (square > 1e-200) & (np.abs(plain) < epsilon / m / 2)
    return np.where(cancels, exact, plain)


def _mills_difference(t: Array | np.floating, s: Array | np.floating) -> Array | np.floating:
    """``M(t - s) - M(t + s)`` for s <= ``_SHORT/2``: terms to the fifth order, the next one below 1e-13 of it.

    The Mills ratio has ``M' = t M - 1`` and ``M^(k+1) = k M^(k-1) + t M^(k)``. What the recursion loses for large t
    (t^2 digits a step) does not matter: there the higher terms are as much smaller.
    """
    derivatives = [_mills(t), t * _mills(t) - 1]
    for k in range(1, 5):
        derivatives.append(k * derivatives[k - 1] + t * derivatives[k])
    return -2 * s * (derivatives[1] + s**2 * (derivatives[3] / 6 + s**2 * derivatives[5] / 120))


def _mills(x: Array | np.floating) -> Array | np.floating:
    """(1 - Phi)/phi for x >= 0."""
    return math.sqrt(math.pi / 2) * erfcx(x / math.sqrt(2))
