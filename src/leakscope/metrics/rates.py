"""Rates at a fixed false-positive rate, with intervals that know the threshold was estimated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from jaxtyping import Float
from scipy.special import bdtrik

from leakscope.checks import probability
from leakscope.intervals import Interval, clopper_pearson, korn_graubard
from leakscope.metrics.rows import Rows, rows
from leakscope.types import NotApplicable, Scores

Array = np.ndarray


def tpr_at_fpr(scores: Scores, fpr: float, confidence: float = 0.95) -> Interval:
    """Members found at a false-positive rate, with one threshold for all targets.

    The threshold is the smallest score whose false-positive rate among all non-member scores is at most
    ``fpr``. The interval covers the rate at the true quantile. Over points: order-statistic limits of the
    quantile and Clopper-Pearson limits of the rate, joined by square and add (the two samples are
    independent). Over models: the rate is linear in the threshold's error, ``psi_t = tpr_t - slope (fpr_t -
    fpr)`` with the slope of the pooled ROC at ``fpr``, and the variance of psi between models goes into Korn
    and Graubard's interval; each end is at least as wide as over points, because a variance does not show
    how skewed a rate with few false alarms is.

    Parameters
    ----------
    scores : Scores
    fpr : float
        In (0, 1).
    confidence : float

    Returns
    -------
    Interval
        ``detail`` has the realised ``fpr``, the ``threshold``, the ``false_alarms`` and the ``games``, the
        number of non-member scores behind the threshold.

    Raises
    ------
    NotApplicable
        If the scores cannot resolve this rate: fewer than 1/fpr non-member scores, or ties above it.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.types import Scores
    >>> member = np.arange(2000) % 2 == 0
    >>> value = np.random.default_rng(0).normal(size=2000) + 2 * member
    >>> found = tpr_at_fpr(Scores("example", value[None, :], member[None, :]), 0.05)
    >>> round(found.value, 3), found.detail["false_alarms"]
    (0.644, 50)
    """
    return _Pooled(rows(scores)).tpr(fpr, confidence)


def roc_band(
    scores: Scores, at: Sequence[float] | Float[Array, " A"], confidence: float = 0.95
) -> tuple[Float[Array, " A"], Float[Array, " A"], Float[Array, " A"]]:
    """Members found at several false-positive rates, with pointwise intervals.

    Parameters
    ----------
    scores : Scores
    at : array of shape (A,)
        False-positive rates in (0, 1).
    confidence : float
        Of each point by itself.

    Returns
    -------
    value, low, high : arrays of shape (A,)

    Raises
    ------
    NotApplicable
        As `tpr_at_fpr`, for any of the rates.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.types import Scores
    >>> member = np.arange(2000) % 2 == 0
    >>> value = np.random.default_rng(0).normal(size=2000) + 2 * member
    >>> roc_band(Scores("example", value[None, :], member[None, :]), [0.05, 0.5])[0].round(3).tolist()
    [0.644, 0.976]
    """
    pooled = _Pooled(rows(scores))
    found = [pooled.tpr(float(rate), confidence) for rate in at]
    value, low, high = (np.array([getattr(item, end) for item in found]) for end in ("value", "low", "high"))
    return value, low, high


def ppv(scores: Scores, fpr: float, prior: float = 0.5, confidence: float = 0.95) -> Interval:
    """Share of members among the points called members, at a false-positive rate and a prior.

    ``prior tpr/(prior tpr + (1 - prior) fpr)``, which grows with the TPR: its interval is mapped.

    Parameters
    ----------
    scores : Scores
    fpr : float
        In (0, 1); the rate asked for stands in the formula, which is at least the realised one.
    prior : float
        In (0, 1).
    confidence : float

    Returns
    -------
    Interval

    Raises
    ------
    NotApplicable
        As `tpr_at_fpr`.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.types import Scores
    >>> member = np.arange(2000) % 2 == 0
    >>> value = np.random.default_rng(0).normal(size=2000) + 2 * member
    >>> round(ppv(Scores("example", value[None, :], member[None, :]), 0.05, prior=0.1).value, 3)
    0.589
    """
    prior = probability("prior", prior, open_ends=True)
    tpr = tpr_at_fpr(scores, fpr, confidence)
    value, low, high = (prior * r / (prior * r + (1 - prior) * fpr) for r in (tpr.value, tpr.low, tpr.high))
    return replace(tpr, value=value, low=low, high=high)


@dataclass(frozen=True, eq=False)
class _Pooled:
    """The scores of all rows, sorted once by class."""

    rows: Rows

    @cached_property
    def members(self) -> Float[Array, " P"]:
        """Ascending scores."""
        return np.sort(self.rows.value[self.rows.member]).astype(np.float64)

    @cached_property
    def others(self) -> Float[Array, " Q"]:
        """Ascending scores."""
        return np.sort(self.rows.value[~self.rows.member]).astype(np.float64)

    def tpr(self, fpr: float, confidence: float) -> Interval:
        """The rate of members at or above the threshold, with its interval and what was realised."""
        fpr = probability("fpr", fpr, open_ends=True)
        threshold = self._threshold(fpr)
        found, alarms = _at_least(self.members, threshold), _at_least(self.others, threshold)
        interval = self._over_points(fpr, found, confidence)
        if not self.rows.single:
            interval = self._over_models(fpr, threshold, interval)
        return replace(
            interval,
            averages=self.rows.averages,
            detail={
                "fpr": alarms / len(self.others),
                "threshold": threshold,
                "false_alarms": alarms,
                "games": len(self.others),
            },
        )

    def _threshold(self, fpr: float) -> float:
        """The smallest score whose share of false alarms is at most fpr."""
        n = len(self.others)
        if fpr * n < 1 - 1e-9:
            raise NotApplicable(f"{n:,} games reach FPR {1000 / n:.2g} %")
        one_too_many = _highest(self.others, 1 + math.floor(fpr * n + 1e-9))
        above = [_from(sample, one_too_many, "right")[:1] for sample in (self.members, self.others)]
        lowest = np.concatenate(above)
        if len(lowest) == 0:
            raise NotApplicable(self._too_coarse())
        return float(lowest.min())

    def _too_coarse(self) -> str:
        """Why no threshold has few enough false alarms."""
        bottom, top = float(self.rows.value.min()), float(self.rows.value.max())
        strictest = 100 * _at_least(self.others, top) / len(self.others)
        one_point = bottom < top and bool(np.isin(self.rows.value, [bottom, top]).all())
        return f"{'one point, at' if one_point else 'strictest threshold gives'} FPR {strictest:.1f} %"

    def _over_models(self, fpr: float, threshold: float, points: Interval) -> Interval:
        """Korn-Graubard with the variance of the linearised rate between models, or wider, as over points."""
        member, called = self.rows.member, self.rows.value >= threshold
        tpr = (called & member).sum(axis=1) / member.sum(axis=1)
        false = (called & ~member).sum(axis=1) / (~member).sum(axis=1)
        psi = tpr - self._slope(fpr) * (false - fpr)
        variance = self.rows.overlap * float(psi.var(ddof=1)) / len(psi)
        models = korn_graubard(points.value, variance, len(self.members), len(psi), points.confidence)
        low, high = min(models.low, points.low), max(models.high, points.high)
        return replace(models, low=low, high=high, method="Korn-Graubard, at least as wide as over points")

    def _slope(self, fpr: float) -> float:
        """Slope of the pooled ROC: central difference over half the distance to the nearer end."""
        width = min(fpr, 1 - fpr) / 2
        ranks = (math.ceil(rate * len(self.others)) for rate in (fpr + width, fpr - width))
        right, left = (_at_least(self.members, _highest(self.others, k)) / len(self.members) for k in ranks)
        return (right - left) / (2 * width)

    def _over_points(self, fpr: float, found: int, confidence: float) -> Interval:
        """Limits of the quantile and of the rate at it, joined by square and add."""
        n, n_others = len(self.members), len(self.others)
        fewest, most = _binomial_limits(n_others, fpr, confidence)
        least = _at_least(self.members, _highest(self.others, fewest))
        largest = len(_from(self.members, _highest(self.others, most + 1), "right"))
        exact = clopper_pearson(found, n, confidence)
        rate = found / n
        low = rate - math.hypot(max(rate - least / n, 0.0), rate - exact.low)
        high = rate + math.hypot(max(largest / n - rate, 0.0), exact.high - rate)
        method = "order statistics and Clopper-Pearson (square and add)"
        return Interval(rate, max(low, 0.0), min(high, 1.0), confidence, "points", method)


def _from(ascending: Float[Array, " n"], threshold: float, side: Literal["left", "right"]) -> Float[Array, " k"]:
    """The scores at or above a threshold (left), or above it (right)."""
    return ascending[np.searchsorted(ascending, threshold, side) :]


def _highest(ascending: Float[Array, " n"], k: int) -> float:
    """The k-th highest score; beyond the ends infinite."""
    if 1 <= k <= len(ascending):
        return float(ascending[-k])
    return math.inf if k < 1 else -math.inf


def _at_least(ascending: Float[Array, " n"], threshold: float) -> int:
    return len(_from(ascending, threshold, "left"))


def _binomial_limits(n: int, p: float, confidence: float) -> tuple[int, int]:
    """Quantiles of Binomial(n, p) with at most (1 - confidence)/2 strictly beyond each."""
    tail = (1 - confidence) / 2
    low, high = (max(math.ceil(float(bdtrik(q, n, p)) - 1e-6), 0) for q in (tail, 1 - tail))
    return low, high
