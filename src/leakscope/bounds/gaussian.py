"""Differential privacy of the Gaussian mechanism, exactly: noise for (epsilon, delta) and back."""

from __future__ import annotations

import math
from collections.abc import Callable

from leakscope.core.checks import non_negative, positive, probability
from leakscope.core.divergences import gaussian_hockey


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
        if middle in (low, high):  # the smallest numbers have nothing between them
            return high
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
