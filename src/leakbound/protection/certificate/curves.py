"""The trade-off curve of a certificate: what the owner reads, and what of it may be published.

With Gaussian noise under differential privacy, and for a record that declared noise covers, the curve is that of mu-GDP
with ``mu = 2 Phi^-1(1/2 + eta)``, which depends on eta alone. Under leave-one-out it is the mean over pairs of
`left_out_curve`, a function of all n records. Of it is published what was declared beforehand, or else the rates at the
false positive rates of interest, rounded up to 1, 2 or 5 times a power of ten.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.special import ndtri

from leakbound.core.repeated_rows import Table
from leakbound.core.tradeoff import Gaussian, Piecewise, Profile, TradeOff
from leakbound.noise import LeftOut, left_out_curve
from leakbound.noise.left_out_tradeoff import RATES
from leakbound.plans.protects import CalibrationPlan

Array = np.ndarray


def promised_curve(eta: float, prior: float) -> Piecewise:
    """Compute the ceiling that follows from the promise of a draw alone.

    No attacker exceeds ``pi TPR + (1 - pi)(1 - FPR) <= max(pi, 1 - pi) + eta``.

    >>> round(float(promised_curve(0.05, 0.5).tpr_at(0.01)), 12)
    0.11
    """
    lowest = 1 - (max(prior, 1 - prior) + eta - (1 - prior)) / prior  # FNR at FPR = 0
    if lowest <= 0:
        return Piecewise([0.0], [0.0])
    return Piecewise([0.0, min(1.0, lowest * prior / (1 - prior))], [lowest, 0.0])


def gaussian_curve(eta: float) -> Gaussian:
    """Return the curve of Gaussian differential privacy that limits the accuracy at even odds to ``1/2 + eta``."""
    return Gaussian(2 * float(ndtri(0.5 + eta)))


def curve_of_left_out(
    whitened: Table, eta: float, plan: CalibrationPlan, *, reserve: float = 0.0, factor: float = 1.0
) -> Profile:
    """Compute the curve of releases of one left-out record, for the owner."""
    curve = left_out_curve(LeftOut(whitened), reserve, [*RATES, *plan.rates])
    # factor: by which every hockey stick is larger for those who are in a later version of the data
    sticks = np.minimum(factor * curve.value, 1.0)
    sticks[0] = min(sticks[0], 2 * eta)  # of epsilon 0: the total variation
    return Profile(curve.at, sticks)


def for_publication(
    curve: TradeOff, eta: float, rates: Sequence[float], limits: Mapping[float, float] | None
) -> Piecewise:
    """Return the ceiling that may be published."""
    # the curve may tell of the data, as the scale of the noise does, unless its rates were declared beforehand
    if limits is None:
        limits = {rate: rounded_up_to_1_2_5(float(curve.tpr_at(rate))) for rate in rates}
    return ceiling_of(eta, limits)


def rounded_up_to_1_2_5(rate: float) -> float:
    """Round up to 1, 2 or 5 times a power of ten.

    >>> [rounded_up_to_1_2_5(rate) for rate in (0.00238, 0.0195, 0.02, 0.6)]
    [0.005, 0.02, 0.02, 1.0]
    """
    power = math.floor(math.log10(rate))
    steps = (float(f"{digit}e{power}") for digit in (1, 2, 5, 10))
    return next(step for step in steps if rate <= step)


def ceiling_of(eta: float, limits: Mapping[float, float]) -> Piecewise:
    """Return the largest rates that eta and some limits allow.

    A curve of the most powerful tests is concave. So a limit b at the rate a bounds it by b at smaller rates, and at
    larger ones by the line from 0 through (a, b).

    >>> ceiling_of(0.05, {0.001: 0.005}).tpr_at([0.0001, 0.001, 0.002, 0.1]).round(6).tolist()
    [0.005, 0.005, 0.01, 0.2]
    """
    # each bound is the larger of a constant and a line through 0; corners are where bounds or their parts meet
    slopes = [tpr / fpr for fpr, tpr in limits.items()]
    corners = {0.0, 1.0, max(1 - 2 * eta, 0.0), *limits}
    corners |= {tpr / slope for tpr in limits.values() for slope in slopes}
    corners |= {tpr - 2 * eta for tpr in limits.values()}
    corners |= {2 * eta / (slope - 1) for slope in slopes if slope > 1}
    fpr = np.array(sorted(corner for corner in corners if 0 <= corner <= 1))
    tpr = np.minimum(fpr + 2 * eta, 1.0)
    for rate, limit in limits.items():
        tpr = np.minimum(tpr, limit * np.maximum(fpr / rate, 1.0))
    return Piecewise(fpr, 1 - np.maximum.accumulate(tpr))
