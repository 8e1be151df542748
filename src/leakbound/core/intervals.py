"""Confidence intervals: binomial, distribution-free, over clusters, and for the area under a ROC."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float, Num
from numpy.typing import ArrayLike
from scipy.special import betaincinv, expit, logit, ndtri, rel_entr, stdtrit

from leakbound.core.checks import count, non_negative, positive, probability
from leakbound.core.findings import IntervalOver, Refused, Term
from leakbound.core.numerics import bisect_arrays

Array = np.ndarray
FEWEST_RARE = 5  # of the rarer outcome: with fewer, an estimated variance says too little


@dataclass(frozen=True)
class Interval:
    """A number with its confidence interval.

    Parameters
    ----------
    value, low, high : float
        ``low <= value <= high``; a one-sided interval has an end of the range as its other end.
    confidence : float
        Coverage in (0, 1).
    interval_over : {"models", "points", "none"}
        What the interval averages over.
    method : tuple of Term
        How it was made.
    detail : mapping
        Further numbers: realised FPR, threshold, false positives.
    refused : {"", "too_few_models"}
        Why there is no interval: then ``low`` and ``high`` are the ends of the range, and the report prints the
        value alone.

    Examples
    --------
    >>> from leakbound.core.intervals import Interval
    >>> Interval(0.7, 0.65, 0.75, confidence=0.95).low
    0.65
    """

    value: float
    low: float
    high: float
    confidence: float
    interval_over: IntervalOver = "none"
    method: tuple[Term, ...] = ()
    detail: Mapping[str, Any] = field(default_factory=dict)
    refused: Refused = ""


def clopper_pearson_lower(successes: ArrayLike, trials: ArrayLike, alpha: float) -> Array:
    """One-sided lower confidence limit of a binomial proportion.

    The p with ``P[Binomial(trials, p) >= successes] = alpha`` (Clopper & Pearson 1934); 0 without an accuracy.

    Parameters
    ----------
    successes, trials : array_like
        Counts of one shape, or broadcast; effective (fractional) counts are allowed.
    alpha : float
        Probability of a limit above the truth, in (0, 1).

    Returns
    -------
    array
        Limits in [0, 1].

    Raises
    ------
    ValueError
        If a count is negative or more succeed than are tried.

    Examples
    --------
    >>> from leakbound.core.intervals import clopper_pearson_lower
    >>> round(float(clopper_pearson_lower(64, 64, 0.05)), 6)
    0.95427
    """
    k, n = _counts(successes, trials)
    limit = betaincinv(np.where(k > 0, k, 1), n - k + 1, probability("alpha", alpha, open_ends=True))
    return np.where(k > 0, limit, 0.0)


def clopper_pearson_upper(successes: ArrayLike, trials: ArrayLike, alpha: float) -> Array:
    """Compute the one-sided upper confidence limit of a binomial proportion: the mirror of the lower one.

    Parameters
    ----------
    successes : array_like
        As in `clopper_pearson_lower`.
    trials : array_like
        As in `clopper_pearson_lower`.
    alpha : float
        Probability of a limit below the truth, in (0, 1).

    Returns
    -------
    array
        Limits in [0, 1]; 1 without a failure.

    Examples
    --------
    >>> from leakbound.core.intervals import clopper_pearson_upper
    >>> round(float(clopper_pearson_upper(0, 64, 0.05)), 6)
    0.04573
    """
    k, n = _counts(successes, trials)
    return np.asarray(1.0 - clopper_pearson_lower(n - k, n, alpha))


def clopper_pearson(successes: float, trials: float, confidence: float = 0.95) -> Interval:
    """Compute the two-sided exact interval of a binomial proportion (Clopper & Pearson 1934).

    Parameters
    ----------
    successes, trials, confidence : float
        Counts, ``trials > 0``, fractional ones allowed; the coverage, at least.

    Returns
    -------
    Interval
        Of the proportion.

    Examples
    --------
    >>> from leakbound.core.intervals import clopper_pearson
    >>> interval = clopper_pearson(3, 20)
    >>> round(interval.low, 4), round(interval.high, 4)
    (0.0321, 0.3789)
    """
    proportion, tail = successes / positive("trials", trials), _tail(confidence)
    low, high = clopper_pearson_lower(successes, trials, tail), clopper_pearson_upper(successes, trials, tail)
    return Interval(proportion, float(low), float(high), confidence, method=(Term("clopper_pearson"),))


def chernoff_kl_upper(mean: ArrayLike, n: ArrayLike, alpha: float) -> Array:
    """Compute the one-sided upper confidence limit of the mean of independent values in [0, 1].

    It is ``sup{q : n kl(mean || q) <= ln(1/alpha)}`` with the binary divergence kl (Chernoff 1952, Hoeffding 1963,
    theorem 1); the lower limit is ``1 - chernoff_kl_upper(1 - mean, n, alpha)``.
    Source: delgrosso2021, eq. 52 to 58.

    Parameters
    ----------
    mean, n : array_like
        Means in [0, 1] and how many values each of them is of.
    alpha : float
        Probability of a limit below the truth, in (0, 1).

    Returns
    -------
    array
        Limits, rounded up by at most 1e-12.

    Examples
    --------
    >>> from leakbound.core.intervals import chernoff_kl_upper
    >>> round(float(chernoff_kl_upper(0.15, 200, 0.05)), 9)
    0.218458235
    """
    mean, n = np.broadcast_arrays(np.asarray(mean, dtype=float), np.asarray(n, dtype=float))
    if not ((mean >= 0) & (mean <= 1) & (n > 0)).all():
        raise ValueError("chernoff_kl_upper needs means in [0, 1] and n > 0")
    budget = -math.log(probability("alpha", alpha, open_ends=True)) / n
    return bisect_arrays(
        lambda q: ~(rel_entr(mean, q) + rel_entr(1 - mean, 1 - q) <= budget),
        inside=np.ones_like(mean),
        outside=mean,
        n_steps=60,
    )


def dkw(n: int, confidence: float = 0.95) -> float:
    """Compute the half-width of the simultaneous band around an empirical distribution function.

    It is ``sqrt(ln(2/(1 - confidence))/(2 n))`` (Dvoretzky, Kiefer & Wolfowitz 1956 with the constant of Massart
    1990, corollary 1).

    Parameters
    ----------
    n, confidence : int, float
        Independent values; probability that the whole function lies in the band.

    Returns
    -------
    float
        In units of probability.

    Examples
    --------
    >>> from leakbound.core.intervals import dkw
    >>> round(dkw(1000), 6)
    0.042947
    """
    return math.sqrt(-math.log(_tail(confidence)) / (2 * count("n", n)))


def sampling_error(n: int, n_all: int, confidence: float = 0.95) -> float:
    """Compute how far the mean of a random sample may be from the mean of all, for values in [0, 1].

    The sample is drawn without replacement (Serfling 1974, corollary 1.1, at both ends). The values may be any that do
    not depend on which of them are drawn.

    Parameters
    ----------
    n : int
        Size of the sample.
    n_all : int
        How many there are.
    confidence : float

    Returns
    -------
    float
        The largest distance, at this confidence; 1 at most.

    Examples
    --------
    >>> from leakbound.core.intervals import sampling_error
    >>> round(sampling_error(10_000, 1_000_000), 4), round(sampling_error(999, 1000), 4)
    (0.0135, 0.0019)
    """
    unseen = 1 - (count("n", n) - 1) / count("n_all", n_all, least=n)
    return min(1.0, math.sqrt(unseen * math.log(1 / _tail(confidence)) / (2 * n)))


def cluster_t(values: Float[Array, " T"], confidence: float = 0.95, variance_inflation: float = 1.0) -> Interval:
    """Interval of the mean of one value a model: Student's t with T - 1 degrees of freedom.

    Where all values are equal there is no spread to measure and t would give a point; then the interval is
    that of Clopper and Pearson for T trials, which is exact for a mean of 0 or 1.

    Parameters
    ----------
    values : array of shape (T,)
        Fractions in [0, 1], one a model, T >= 2.
    confidence : float
    variance_inflation : float
        Variance of the mean relative to that over independent models.

    Returns
    -------
    Interval
        ``interval_over = "models"``.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.core.intervals import cluster_t
    >>> interval = cluster_t(np.array([0.5, 0.6, 0.55, 0.65]))
    >>> round(interval.low, 4), round(interval.high, 4)
    (0.4723, 0.6777)
    """
    n = count("models", len(values), least=2)
    tail = _tail(confidence)
    mean = min(max(float(np.mean(values, dtype=float)), 0.0), 1.0)
    spread = float(np.std(values, ddof=1, dtype=float))
    if spread <= 1e-12:
        exact = clopper_pearson(n * mean, n, confidence)
        method = (Term("clopper_pearson_equal_models"),)
        return Interval(mean, exact.low, exact.high, confidence, "models", method)
    half = float(stdtrit(n - 1, 1 - tail)) * spread * math.sqrt(variance_inflation / n)
    return Interval(mean, max(mean - half, 0.0), min(mean + half, 1.0), confidence, "models", (Term("cluster_t"),))


def korn_graubard(
    proportion: float, variance: float, n_trials: int, n_clusters: int, confidence: float = 0.95
) -> Interval:
    """Compute the interval of a proportion whose trials come in clusters, also near 0 and 1.

    Clopper-Pearson at the effective number of trials ``p (1 - p)/variance``, times the squared ratio of the
    t quantiles with n_trials - 1 and n_clusters - 1 degrees of freedom, at most n_trials (Korn & Graubard
    1998, section 3).

    Parameters
    ----------
    proportion, variance : float
        The variance is that of the proportion, estimated between clusters.
    n_trials, n_clusters : int
        Trials in all clusters; clusters, at least 2.
    confidence : float

    Returns
    -------
    Interval
        ``interval_over = "models"``.

    Examples
    --------
    >>> from leakbound.core.intervals import korn_graubard
    >>> interval = korn_graubard(0.02, 1e-4, n_trials=1000, n_clusters=30)
    >>> round(interval.low, 4), round(interval.high, 4)
    (0.005, 0.0527)
    """
    p, variance = probability("proportion", proportion), non_negative("variance", variance)
    low, high = korn_graubard_limits(np.array([p]), np.array([variance]), n_trials, n_clusters, confidence)
    return Interval(p, float(low[0]), float(high[0]), confidence, "models", (Term("korn_graubard"),))


def korn_graubard_limits(
    proportion: Float[Array, " n"],
    variance: Float[Array, " n"],
    n_trials: int,
    n_clusters: int,
    confidence: float = 0.95,
) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """Compute the limits of several proportions, each as by `korn_graubard`.

    Parameters
    ----------
    proportion, variance : arrays of shape (n,)
        The variance of each is estimated between clusters.
    n_trials : int
        Number of trials in all clusters.
    n_clusters : int
        Number of clusters, at least 2.
    confidence : float
        Of each interval.

    Returns
    -------
    low, high : arrays of shape (n,)
        In [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.core.intervals import korn_graubard_limits
    >>> low, high = korn_graubard_limits(np.array([0.0, 0.02]), np.array([0.0, 1e-4]), 1000, 30)
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.0, 0.005], [0.004, 0.0527])
    """
    tail = _tail(confidence)
    n_trials, freedom = count("trials", n_trials, least=2), count("clusters", n_clusters, least=2) - 1
    factor = float(stdtrit(n_trials - 1, 1 - tail) / stdtrit(freedom, 1 - tail)) ** 2
    p = np.asarray(proportion, dtype=float)
    varies = (variance > 0) & (p > 0) & (p < 1)
    effective = np.where(varies, p * (1 - p) / np.where(varies, variance, 1.0), n_trials)
    trials = np.minimum(effective * factor, n_trials)
    return clopper_pearson_lower(p * trials, trials, tail), clopper_pearson_upper(p * trials, trials, tail)


def delong(positive_scores: Num[Array, " P"], negative_scores: Num[Array, " Q"], confidence: float = 0.95) -> Interval:
    """Compute the area under the ROC of two samples with the variance of DeLong et al. (1988), on the logit scale.

    The placement values come from sorted samples (Sun & Xu 2014). With fewer than five discordant (or five
    concordant) pairs expected among ``min(P, Q)`` disjoint pairs that variance is too uncertain, or 0; then
    the interval is that of Clopper and Pearson on those pairs. It is wide enough: no distribution gives the area a
    larger variance than ``area (1 - area)/min(P, Q)`` (Birnbaum & Klose 1957), and separated samples have
    probability at most ``area ** min(P, Q)``.

    Parameters
    ----------
    positive_scores, negative_scores : arrays of shape (P,) and (Q,)
        Independent scores; ties count one half.
    confidence : float

    Returns
    -------
    Interval
        ``interval_over = "points"``.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.core.intervals import delong
    >>> interval = delong(np.arange(10, 40), np.arange(30))
    >>> round(interval.value, 3), round(interval.low, 3), round(interval.high, 3)
    (0.778, 0.644, 0.871)
    """
    pairs = min(count("positive scores", len(positive_scores)), count("negative scores", len(negative_scores)))
    above, below = placements(positive_scores, negative_scores)
    area = float(above.mean())
    rare = pairs * min(area, 1 - area) < FEWEST_RARE
    variance = 0.0 if rare else sum(values.var(ddof=1) / len(values) for values in (above, below))
    if variance <= 0:
        exact = clopper_pearson(area * pairs, pairs, confidence)
        return Interval(area, exact.low, exact.high, confidence, "points", (Term("clopper_pearson_pairs"),))
    half = float(ndtri(1 - _tail(confidence))) * math.sqrt(variance) / (area * (1 - area))
    low, high = float(expit(logit(area) - half)), float(expit(logit(area) + half))
    return Interval(area, low, high, confidence, "points", (Term("delong"),))


def placements(
    positive_scores: Num[Array, " P"], negative_scores: Num[Array, " Q"]
) -> tuple[Float[Array, " P"], Float[Array, " Q"]]:
    """Compute the fraction of the other sample below each positive score, and above each negative one; ties one half.

    Each of the two has the area under the ROC as its mean. The values are in the order of sorted scores.

    Parameters
    ----------
    positive_scores, negative_scores : arrays of shape (P,) and (Q,)
        Scores of members and of non-members, say.

    Returns
    -------
    tuple of arrays of shape (P,) and (Q,)
        In [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.core.intervals import placements
    >>> [x.tolist() for x in placements(np.array([2.0, 3.0]), np.array([1.0, 2.0]))]
    [[0.75, 1.0], [1.0, 0.75]]
    """
    high, low = np.sort(positive_scores), np.sort(negative_scores)
    above = (np.searchsorted(low, high, "left") + np.searchsorted(low, high, "right")) / (2 * len(low))
    below = (np.searchsorted(high, low, "left") + np.searchsorted(high, low, "right")) / (2 * len(high))
    return above, 1 - below


def _counts(successes: ArrayLike, trials: ArrayLike) -> tuple[Array, Array]:
    k, n = np.broadcast_arrays(np.asarray(successes, dtype=float), np.asarray(trials, dtype=float))
    if not ((k >= 0) & (k <= n)).all():
        raise ValueError("a proportion needs 0 <= successes <= trials")
    return k, n


def _tail(confidence: float) -> float:
    """Compute the probability beyond each end of a two-sided interval."""
    return (1 - probability("confidence", confidence, open_ends=True)) / 2
