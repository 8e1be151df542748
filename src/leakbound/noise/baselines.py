"""The noise of differential privacy for a limit on membership inference."""

from __future__ import annotations

import math

import numpy as np

from leakbound.core.checks import positive, probability
from leakbound.noise.calibration import calibrate
from leakbound.noise.gaussian import GaussianNoise
from leakbound.noise.information import allowed_stick
from leakbound.noise.shifts import Shifts


def dp_laplace_scale(eta: float, sensitivity: float, prior: float = 0.5) -> float:
    """Compute the scale of Laplace noise on every coordinate whose differential privacy promises eta.

    It is ``sensitivity/epsilon`` with ``epsilon = log((1 - m + eta)/(m - eta))``, m = min(prior, 1 - prior): the
    largest epsilon that keeps eta for every epsilon-DP algorithm (Kairouz, Oh & Viswanath 2015, theorem 2.1), 2 atanh(2
    eta) for prior 1/2.
    Source: izzo2022, section 4.

    Parameters
    ----------
    eta : float
        > 0 and < min(prior, 1 - prior).
    sensitivity : float
        In the l1 norm, of replacing one record, after clipping, > 0.
    prior : float
        k/n, in (0, 1).

    Returns
    -------
    float
        The scale; the standard deviation is sqrt(2) times as large.

    Examples
    --------
    >>> from leakbound.noise import dp_laplace_scale
    >>> round(dp_laplace_scale(0.1, sensitivity=1.0), 6)
    2.466303
    """
    return positive("sensitivity", sensitivity) / _epsilon(*allowed_stick(eta, prior), 0.0)


def dp_gaussian_scale(eta: float, sensitivity: float, delta: float | None = None, prior: float = 0.5) -> float:
    """Compute the standard deviation of Gaussian noise whose differential privacy promises eta.

    Without delta the whole trade-off curve ``N(0, 1)`` against ``N(mu, 1)`` is used, which needs the least noise:
    ``mu = 2 Phi^-1(1/2 + eta)`` for prior 1/2. With delta a single (epsilon, delta) is used: the largest epsilon for
    which ``m (delta + (1 - delta) (e^epsilon - g)/(e^epsilon + 1)) <= eta``, m the smaller prior and g = (1 - m)/m,
    and the least noise that keeps it (Balle & Wang 2018, theorem 8). That is the noise for somebody who knows only
    the (epsilon, delta) of a mechanism.

    Parameters
    ----------
    eta : float
        > 0 and < min(prior, 1 - prior).
    sensitivity : float
        In the l2 norm, of replacing one record, after clipping, > 0.
    delta : float, optional
        In (0, 1) and below eta/min(prior, 1 - prior).
    prior : float
        k/n, in (0, 1).

    Returns
    -------
    float
        In units of the sensitivity.

    Examples
    --------
    >>> from leakbound.noise import dp_gaussian_scale
    >>> round(dp_gaussian_scale(0.1, sensitivity=1.0), 6), round(dp_gaussian_scale(0.1, 1.0, delta=1e-5), 4)
    (1.973577, 8.5231)
    """
    smaller, stick = allowed_stick(eta, prior)
    if delta is not None:
        delta = probability("delta", delta, open_ends=True)
        if delta >= stick:
            raise ValueError(f"delta must be < {stick:g}, eta over the smaller prior, got {delta:g}")
        # a hockey stick of order e^epsilon is eta/m at the smaller prior m = 1/(e^epsilon + 1)
        smaller, stick = 1 / (math.exp(_epsilon(smaller, stick, delta)) + 1), delta
    worst = Shifts(np.array([[positive("sensitivity", sensitivity)]]), "largest", d=1, prior=smaller)
    noise = calibrate(worst, smaller * stick, GaussianNoise)
    return noise.rms(1)


def _epsilon(smaller: float, stick: float, delta: float) -> float:
    """Compute the largest epsilon with ``delta + (1 - delta) (e^epsilon - g)/(e^epsilon + 1) <= stick``."""
    rest = (stick - delta) / (1 - delta)  # e^epsilon = (g + rest)/(1 - rest)
    return math.log1p(-smaller) - math.log(smaller) + math.log1p(rest * smaller / (1 - smaller)) - math.log1p(-rest)
