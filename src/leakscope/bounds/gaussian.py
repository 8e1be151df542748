"""Differential privacy of the Gaussian mechanism, exactly: its hockey stick, and noise for (epsilon, delta)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.special import erfcx

from leakscope.checks import non_negative, positive, probability

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
    >>> from leakscope.bounds.gaussian import gaussian_hockey
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


def analytic_gaussian_scale(epsilon: float, delta: float, sensitivity: float) -> float:
    """Least noise with which the Gaussian mechanism is (epsilon, delta)-DP.

    The smallest standard deviation with ``gaussian_hockey(sensitivity/scale, epsilon) <= delta``, which is
    necessary and sufficient (Balle & Wang 2018, theorem 8 and algorithm 1), for every epsilon.

    Parameters
    ----------
    epsilon : float
        >= 0.
    delta : float
        In (0, 1).
    sensitivity : float
        Largest Euclidean distance between the results on adjacent data sets, > 0.

    Returns
    -------
    float
        Above the least one by at most 1e-12 of it.

    Raises
    ------
    ValueError
        For a value out of its range.

    Examples
    --------
    >>> from leakscope.bounds.gaussian import analytic_gaussian_scale
    >>> round(analytic_gaussian_scale(1.0, 1e-5, 1.0), 6)
    3.730632
    """
    epsilon, delta = non_negative("epsilon", epsilon), probability("delta", delta, open_ends=True)
    return positive("sensitivity", sensitivity) * least(
        lambda scale: scale > 0 and float(gaussian_hockey(1 / scale, epsilon)) <= delta
    )


def analytic_gaussian_epsilon(scale: float, delta: float, sensitivity: float) -> float:
    """Smallest epsilon for which the Gaussian mechanism is (epsilon, delta)-DP: inverse of `analytic_gaussian_scale`.

    Parameters
    ----------
    scale : float
        Standard deviation of the noise, > 0.
    delta, sensitivity
        As in `analytic_gaussian_scale`.

    Returns
    -------
    float
        Above the smallest one by at most 1e-12 of it.

    Raises
    ------
    ValueError
        For a value out of its range.

    Examples
    --------
    >>> from leakscope.bounds.gaussian import analytic_gaussian_epsilon
    >>> round(analytic_gaussian_epsilon(3.730632, 1e-5, 1.0), 6)
    1.0
    """
    shift, delta = (
        positive("sensitivity", sensitivity) / positive("scale", scale),
        probability("delta", delta, open_ends=True),
    )
    return least(lambda epsilon: float(gaussian_hockey(shift, epsilon)) <= delta)


def least(holds: Callable[[float], bool]) -> float:
    """Smallest number >= 0 at which a condition holds that also holds for every larger one.

    Parameters
    ----------
    holds : function of a number
        False below some number, true above.

    Returns
    -------
    float
        At which it holds; above the smallest by at most 1e-12 of it. Infinity if there is none below 1e308.

    Examples
    --------
    >>> from leakscope.bounds.gaussian import least
    >>> round(least(lambda x: x * x >= 2), 9)
    1.414213562
    """
    if holds(0.0):
        return 0.0
    high = 1.0
    while not holds(high):
        high *= 2
        if high == math.inf:
            return high
    low = high / 2
    while holds(low):
        low, high = low / 2, low
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _mills(x: Array | np.floating) -> Array | np.floating:
    """(1 - Phi)/phi for x >= 0."""
    return math.sqrt(math.pi / 2) * erfcx(x / math.sqrt(2))
