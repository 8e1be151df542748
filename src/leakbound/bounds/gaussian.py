"""Differential privacy of the Gaussian mechanism, exactly: noise for (epsilon, delta) and back."""

from __future__ import annotations

from leakbound.core.checks import non_negative, positive, probability
from leakbound.core.divergences import gaussian_hockey
from leakbound.core.numerics import smallest_where

PRECISION = 1e-12  # relative, of the searches


def analytic_gaussian_scale(epsilon: float, delta: float, sensitivity: float) -> float:
    """Compute the least noise with which the Gaussian mechanism is (epsilon, delta)-DP.

    It is the smallest standard deviation with ``gaussian_hockey(sensitivity/scale, epsilon) <= delta``, which is
    necessary and sufficient (Balle & Wang 2018, theorem 8 and algorithm 1), for every epsilon.
    Source: lowy2024, lemma 10.

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
        A standard deviation at which it is, at most 1e-12 (relative) above the least one.

    Raises
    ------
    ValueError
        For a value out of its range.

    Examples
    --------
    >>> from leakbound.bounds.gaussian import analytic_gaussian_scale
    >>> round(analytic_gaussian_scale(1.0, 1e-5, 1.0), 6)
    3.730632
    """
    epsilon, delta = non_negative("epsilon", epsilon), probability("delta", delta, open_ends=True)
    sensitivity = positive("sensitivity", sensitivity)

    def is_private(scale: float) -> bool:
        return float(gaussian_hockey(1 / scale, epsilon)) <= delta

    return sensitivity * smallest_where(is_private, rtol=PRECISION)


def analytic_gaussian_epsilon(scale: float, delta: float, sensitivity: float) -> float:
    """Compute the smallest epsilon for which the Gaussian mechanism is (epsilon, delta)-DP.

    The inverse of `analytic_gaussian_scale`.
    Source: lowy2024, lemma 10.

    Parameters
    ----------
    scale : float
        Standard deviation of the noise, > 0.
    delta : float
        In (0, 1).
    sensitivity : float
        As in `analytic_gaussian_scale`.

    Returns
    -------
    float
        An epsilon at which it is, at most 1e-12 (relative) above the smallest one.

    Raises
    ------
    ValueError
        For a value out of its range.

    Examples
    --------
    >>> from leakbound.bounds.gaussian import analytic_gaussian_epsilon
    >>> round(analytic_gaussian_epsilon(3.730632, 1e-5, 1.0), 6)
    1.0
    """
    shift = positive("sensitivity", sensitivity) / positive("scale", scale)
    delta = probability("delta", delta, open_ends=True)

    def is_private(epsilon: float) -> bool:
        return float(gaussian_hockey(shift, epsilon)) <= delta

    return 0.0 if is_private(0.0) else smallest_where(is_private, rtol=PRECISION)
