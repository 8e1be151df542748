"""A fraction of members against the same fraction of a control group, which the release cannot have used.

Members and controls are drawn from one source, so whatever is found as often among the controls is no leak. Letters:
``a`` is the fraction of members for which something happened, such as an exact match, ``h`` that of the controls.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import ndtri

from leakbound.core.findings import Term
from leakbound.core.intervals import Interval, clopper_pearson
from leakbound.core.numerics import bisect_arrays
from leakbound.core.types import NotApplicable

Array = np.ndarray
_HALVINGS = 70  # of the logarithm of a ratio: to its last digit
_LARGEST_LOG_RATIO = 80.0  # larger ratios than e^80, or smaller ones than its inverse, have no counts


@dataclass(frozen=True)
class Counted:
    """How many of the members, and of the controls, something happened to; both are independent units."""

    members: int
    controls: int
    of_members: int
    of_controls: int


def excess(counted: Counted, confidence: float = 0.95) -> Interval:
    """Compute a - h with the interval of Newcombe (1998, method 10), the limits of both fractions joined by squares.

    The limits are those of Clopper and Pearson in place of Wilson's, with which the interval covers in .90 of cases
    only, where few records are matched.

    >>> interval = excess(Counted(56, 48, 70, 80))  # Newcombe's first example, by Wilson's limits .0524 to .3339
    >>> round(interval.value, 4), round(interval.low, 3), round(interval.high, 3)
    (0.2, 0.044, 0.344)
    """
    of_members = clopper_pearson(counted.members, counted.of_members, confidence)
    of_controls = clopper_pearson(counted.controls, counted.of_controls, confidence)
    value = of_members.value - of_controls.value
    down = math.hypot(of_members.value - of_members.low, of_controls.high - of_controls.value)
    up = math.hypot(of_members.high - of_members.value, of_controls.value - of_controls.low)
    low, high = max(value - down, -1.0), min(value + up, 1.0)
    return Interval(value, low, high, confidence, "points", (Term("clopper_pearson_joined"),))


def disclosed_fraction(counted: Counted, confidence: float = 0.95) -> Interval:
    """Compute 1 - (1 - a)/(1 - h), the fraction of members that is disclosed beyond what happens to controls, too.

    If a member is disclosed with probability d, and otherwise matched by chance as a control is, then
    ``1 - a = (1 - d)(1 - h)``. The interval is the score interval of the ratio of two fractions (Koopman 1984): of all
    ratios that a chi-squared test with one degree of freedom does not reject, with nuisance parameter at its maximum
    likelihood. Without a control that is left unmatched, nothing can be said.

    >>> interval = disclosed_fraction(Counted(56, 48, 70, 80))
    >>> round(interval.value, 4), round(interval.low, 3), round(interval.high, 3)
    (0.5, 0.159, 0.711)
    """
    missed = np.array([counted.of_members - counted.members, counted.of_controls - counted.controls], dtype=float)
    n = np.array([counted.of_members, counted.of_controls], dtype=float)
    if missed[1] == 0:
        raise NotApplicable("every_control_matched")
    ratio = float(missed[0] / n[0] / (missed[1] / n[1]))
    largest = float(ndtri((1 + confidence) / 2)) ** 2

    def is_inside(log_ratio: Float[Array, " s"]) -> Array:
        return _chi_squared(np.exp(log_ratio), missed, n) <= largest

    # the statistic is 0 at the observed ratio and grows on both sides; of no unmatched member, towards larger ratios
    middle = math.log(ratio) if ratio > 0 else -_LARGEST_LOG_RATIO
    ends = bisect_arrays(is_inside, np.full(2, middle), np.array([-_LARGEST_LOG_RATIO, _LARGEST_LOG_RATIO]), _HALVINGS)
    smallest_ratio, largest_ratio = np.exp(ends)
    low, high = 1 - float(largest_ratio), 1 - (float(smallest_ratio) if ratio > 0 else 0.0)
    return Interval(1 - ratio, low, high, confidence, "points", (Term("koopman"),))


def _chi_squared(ratio: Float[Array, " s"], x: Float[Array, " 2"], n: Float[Array, " 2"]) -> Float[Array, " s"]:
    """Koopman's statistic of the hypothesis p_0 = ratio * p_1 for two binomial counts x of n trials."""
    # the maximum likelihood of p_0 under the hypothesis solves (n0 + n1) p^2 - b p + ratio (x0 + x1) = 0
    b = ratio * (n[0] + x[1]) + x[0] + n[1]
    root = np.sqrt(np.maximum(b**2 - 4 * ratio * n.sum() * x.sum(), 0.0))
    first = 2 * ratio * x.sum() / (b + root)  # the smaller root, without cancellation
    second = first / ratio
    statistic = np.zeros_like(ratio)
    for p, successes, trials in ((first, x[0], n[0]), (second, x[1], n[1])):
        p = np.clip(p, 0.0, 1.0)
        variance = trials * p * (1 - p)
        squared = (successes - trials * p) ** 2
        statistic += np.divide(squared, variance, out=np.where(squared > 1e-9, np.inf, 0.0), where=variance > 0)
    return statistic
