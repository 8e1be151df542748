"""The hockey-stick divergence of two Gaussians: the delta of the Gaussian mechanism at every epsilon."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.special import erfcx

from leakscope.checks import non_negative

Array = np.ndarray
_SHORT = 1e-5  # shifts below it by the midpoint rule: off by m^2/24 of itself, where a difference loses 1e-16/m


def gaussian_hockey(m: ArrayLike, epsilon: float) -> Float[Array, "*shape"]:
    """Hockey-stick divergence of N(m, 1) from N(0, 1) at the ratio e^epsilon.

    ``Phi(m/2 - epsilon/m) - e^epsilon Phi(-m/2 - epsilon/m)`` (Balle & Wang 2018, theorem 8), which is the delta
    of the Gaussian mechanism at this epsilon. With ``e^epsilon phi(a + m) = phi(a)``, a = epsilon/m - m/2, it is
    ``phi(a) (M(a) - M(a + m))``, M = (1 - Phi)/phi the Mills ratio: no exponential of epsilon is taken.

    Parameters
    ----------
    m : array_like
        Shifts in standard deviations, >= 0, infinity allowed.
    epsilon : float
        >= 0.

    Returns
    -------
    array
        In [0, 1], of the shape of m; relative error below 1e-10.

    Raises
    ------
    ValueError
        For a negative or missing shift or epsilon.

    Examples
    --------
    >>> from leakscope.divergence import gaussian_hockey
    >>> gaussian_hockey([0.0, 0.5, 1.0, 2.0], epsilon=1.0).round(6).tolist()
    [0.0, 0.00683, 0.126937, 0.509862]
    """
    m, epsilon = np.asarray(m, dtype=float), non_negative("epsilon", epsilon)
    if not (m >= 0).all():
        raise ValueError(f"a shift must be >= 0, got {m.min():g}")
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        tilt = epsilon / m
        near, far = tilt - m / 2, tilt + m / 2
        density = np.exp(-(near**2) / 2) / math.sqrt(2 * math.pi)
        both = (near <= 0) + density * (np.where(near <= 0, -1, 1) * _mills(np.abs(near)) - _mills(far))
        short = density * m * (1 - tilt * _mills(tilt))
    return np.where(m == 0, 0.0, np.where((m < _SHORT) & (density > 0), short, both))


def _mills(x: Array | np.floating) -> Array | np.floating:
    """(1 - Phi)/phi for x >= 0."""
    return math.sqrt(math.pi / 2) * erfcx(x / math.sqrt(2))
