"""Differential privacy to membership inference, and back.

Everything between a curve and its numbers is a method of the curve (``leakbound.core.tradeoff``); here are the
named theorems, and DP-SGD.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from leakbound.bounds.posterior import posterior_bound
from leakbound.core.checks import probability
from leakbound.core.tradeoff import EpsilonDelta, TradeOff


def mip_from_dp(epsilon: float, delta: float = 0.0, prior: float = 0.5) -> float:
    """Compute the smallest eta for which every (epsilon, delta)-DP algorithm is eta-membership private.

    It is ``m (delta + (1 - delta) (e^eps - g)_+ / (e^eps + 1))``, m = min(prior, 1 - prior) and g = (1 - m)/m; for k =
    n/2 that is ``(e^eps - 1 + 2 delta)/(2 (e^eps + 1))``. The best guess of a record gains m H over the better prior
    guess, H the hockey-stick divergence of order g of the likelier distribution from the other one, and none is larger
    than that of randomised response, which attains it (Kairouz, Oh & Viswanath 2015, theorem 2.1).
    Source: sablayrolles2019, section 3.4.

    Parameters
    ----------
    epsilon : float
        >= 0 and of replace-one neighbours (a record is swapped for another), infinity allowed; one of
        add/remove neighbours must be doubled first, ``EpsilonDelta(epsilon, delta).doubled()``.
    delta : float
        In [0, 1].
    prior : float
        k/n, the fraction of the n records that are in, in (0, 1).

    Returns
    -------
    float
        eta: accuracy above max(prior, 1 - prior), in [0, min(prior, 1 - prior)].

    Raises
    ------
    ValueError
        For values outside these ranges.

    Notes
    -----
    Theorem 4 of izzo2022 is the case delta = 0, k = n/2; their appendix has e^eps k/n + delta (n - k)/n
    for the accuracy at other k, which is larger. Lemma 13 of lowy2024 has (1 - e^-eps)/2, about twice
    this for small epsilon.

    Examples
    --------
    >>> from leakbound.bounds.dp import mip_from_dp
    >>> round(mip_from_dp(1.0), 6), round(mip_from_dp(1.0, prior=0.9), 6)
    (0.231059, 0.0)
    """
    return EpsilonDelta(epsilon, delta).eta(prior)


def dp_from_mip(eta: float, prior: float = 0.5) -> float:
    """Compute the largest epsilon whose pure differential privacy keeps every attacker's gain at or below eta.

    It is ``log(s/(1 - s))`` with s = max(prior, 1 - prior) + eta, the inverse of `mip_from_dp` at delta = 0; for k =
    n/2 that is 2 atanh(2 eta). Epsilon-DP is sufficient for eta, not necessary: a mechanism with this eta
    need not be differentially private at all.
    Source: izzo2022, theorem 4.

    Parameters
    ----------
    eta : float
        In [0, min(prior, 1 - prior)]; at the upper end every attacker is allowed, and epsilon is infinite.
    prior : float
        k/n, in (0, 1).

    Returns
    -------
    float
        epsilon of replace-one neighbours.

    Raises
    ------
    ValueError
        For values outside these ranges.

    Examples
    --------
    >>> from leakbound.bounds.dp import dp_from_mip
    >>> round(dp_from_mip(0.1), 6)
    0.405465
    """
    prior = probability("prior", prior, open_ends=True)
    small, eta = min(prior, 1 - prior), probability("eta", eta)
    if eta > small:
        raise ValueError(f"eta must be <= {small:g}, the smaller prior, got {eta:g}")
    if eta == small:
        return math.inf
    # log((1 - m + eta)/(m - eta)) without the difference of nearly equal numbers at a small eta
    return math.log1p(-small) - math.log(small) + math.log1p(eta / (1 - small)) - math.log1p(-eta / small)


def posterior_from_dp(epsilon: float, prior: float = 0.5, delta: float = 0.0) -> float:
    """Bound the posterior probability of membership under (epsilon, delta)-DP.

    The bound is ``delta + (1 - delta) sigmoid(epsilon + logit(prior))``. With delta = 0 it bounds the posterior given
    any release, for the likelihood ratio is at most e^epsilon. With delta > 0 some releases may reveal a record, and it
    bounds the mean posterior of a member: ``E_in sigmoid(L + logit(prior))``, L = log(p_in/p_out), is an f-divergence,
    no larger than that of the pair with L = infinity with probability delta and L <= epsilon else (Kairouz, Oh &
    Viswanath 2015, theorem 2.1).
    Source: izzo2022, proposition 6.

    Parameters
    ----------
    epsilon : float
        >= 0, of the neighbours that the attacker has to tell apart, infinity allowed.
    prior : float
        In (0, 1).
    delta : float
        In [0, 1].

    Returns
    -------
    float
        An upper bound, in [prior, 1].

    Raises
    ------
    ValueError
        For values outside these ranges.

    Notes
    -----
    Property 1 of sablayrolles2019 has prior + epsilon/4 with delta = 0, which is larger.

    Examples
    --------
    >>> from leakbound.bounds.dp import posterior_from_dp
    >>> round(posterior_from_dp(1.0, prior=0.1), 6)
    0.231969
    """
    return posterior_bound(epsilon, delta, prior=prior)


def posterior_from_tradeoff(curve: TradeOff, prior: float = 0.5) -> float:
    """Bound the mean posterior probability of membership of a member, over all releases, by a whole curve.

    It is ``E_in sigmoid(L + logit(prior))``, L = log(p_in/p_out), the f-divergence of `posterior_from_dp`. It is
    largest for the pair of distributions whose trade-off is the curve, and larger still for the straight lines above
    that curve's ROC: ``tpr <= H(in || out) + e^eps fpr`` and ``1 - fpr <= H(out || in) + e^eps (1 - tpr)`` on a grid of
    eps, H the hockey-stick divergences of order e^eps. Between two corners of these lines L is constant.

    Parameters
    ----------
    curve : TradeOff
        The ceiling.
    prior : float
        In (0, 1).

    Returns
    -------
    float
        An upper bound, in [prior, 1]. A single release may reveal more, unless the promise is one without a delta.

    Raises
    ------
    ValueError
        For a prior outside of (0, 1).

    Examples
    --------
    >>> from leakbound.bounds.dp import posterior_from_tradeoff
    >>> from leakbound.core.tradeoff import EpsilonDelta, Gaussian
    >>> round(posterior_from_tradeoff(Gaussian(1.0), prior=0.01), 4)
    0.0257
    >>> round(posterior_from_tradeoff(EpsilonDelta(0.0), prior=0.01), 6)
    0.01
    """
    prior = probability("prior", prior, open_ends=True)
    epsilons = np.concatenate([np.linspace(0.0, 4.0, 201), np.geomspace(4.1, 60.0, 60)])
    sticks = np.array([curve.hockey_sticks(epsilon) for epsilon in epsilons])
    # lines tpr = intercept + slope fpr, the steepest first: these bound the left of the ROC, the others its right
    slopes = np.concatenate([np.exp(epsilons[::-1]), np.exp(-epsilons)])
    intercepts = np.concatenate([sticks[::-1, 0], 1 - np.exp(-epsilons) * (1 - sticks[:, 1])])
    is_new = np.concatenate([[True], np.diff(slopes) < 0])
    slopes, intercepts = slopes[is_new], intercepts[is_new]
    corners = np.diff(intercepts) / -np.diff(slopes)  # fpr where two lines meet
    corners = np.maximum.accumulate(np.clip(corners, 0.0, 1.0))
    widths = np.diff(np.concatenate([[0.0], corners, [1.0]]))
    certain = float(sticks[-1, 0])  # mass of releases that only a member leads to, as far as the lines tell
    mean = certain + float(np.sum(slopes * widths * prior * slopes / (prior * slopes + 1 - prior)))
    return min(max(mean, prior), 1.0)


def dpsgd_tradeoff(
    noise_multiplier: float,
    sample_rate: float,
    steps: int,
    adjacency: Literal["add_remove", "replace_one"] = "replace_one",
    *,
    batches: Literal["poisson", "fixed"] = "poisson",
) -> TradeOff:
    """Ceiling of every attack on a model trained by DP-SGD: fnr at each fpr, from which all else follows.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise in units of the clipping norm, > 0.
    sample_rate : float
        Probability with which each record is in a batch, in (0, 1]; for fixed batches the fraction of the records of
        the data with the record in question that is in a batch.
    steps : int
        Number of batches.
    adjacency : {"replace_one", "add_remove"}
        The game: one record swapped for another, as in data of fixed size, or one record in or out.
    batches : {"poisson", "fixed"}
        Each record by a coin of its own, or the same number of records in each, drawn without replacement.

    Returns
    -------
    TradeOff
        Never above the true curve; `leakbound.dpsgd.accountant.dpsgd` says how near.

    Raises
    ------
    ValueError
        For values outside these ranges.

    Examples
    --------
    >>> from leakbound.bounds.dp import dpsgd_tradeoff
    >>> curve = dpsgd_tradeoff(2.5193, 0.01, 1000)
    >>> round(curve.eta(), 4), round(float(curve.tpr_at(0.01)), 4)
    (0.05, 0.019)
    """
    from leakbound.dpsgd.accountant import dpsgd  # here, for dp-accounting takes most of a second to import

    return dpsgd(noise_multiplier, sample_rate, steps, adjacency, batches=batches)
