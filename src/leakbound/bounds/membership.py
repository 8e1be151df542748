"""Practical membership privacy on a given data set: the Gaussian mechanism, and which parameter keeps attackers low.

The attacker knows 2n records, one half of which, drawn uniformly, is the data set D of the release (Lowy et al.
2024, definition 2).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike
from scipy.special import logit

from leakbound.bounds.exponential import Draws, exponents, pmp_exponential, subset_epsilon, subset_sensitivity
from leakbound.bounds.gaussian import PRECISION, analytic_gaussian_epsilon
from leakbound.bounds.halves import MOST_BY_LOGARITHMS, countable
from leakbound.bounds.tilting import LARGEST_SPREAD
from leakbound.core.checks import numbers, one_of, positive, probability
from leakbound.core.divergences import gaussian_hockey
from leakbound.core.lengths import p_norm
from leakbound.core.numerics import bisect_integers, largest_where, smallest_where

Array = np.ndarray
Query = Literal["mean", "sum"]

PRECISION_OF_SUBSET = 1e-6  # relative, of `epsilon_for_subset`
LARGEST_EPSILON = 1000.0  # that `epsilon_for_accuracy` looks at
_BLOCK = 2**21  # numbers of an array of pairs of records


@dataclass(frozen=True)
class Epsilons:
    """Four epsilons of one mechanism: what is promised to everyone, and what holds on these records.

    Between the first and the third lies what the data are short of the worst case, between the second and
    the fourth what the attacker does not know. The third, which scales the promise by the sensitivity of the
    data, is not the second; a ratio to it (lowy2024, figures) mixes both effects with its own slack.
    """

    eps_global: float
    eps_subset_exact: float
    eps_subset_nominal: float
    eps_pmp: float


def epsilons_exponential(loss: ArrayLike, epsilon: float, sensitivity: float) -> Epsilons:
    """Compute the four epsilons of the exponential mechanism, exactly.

    Source: lowy2024, section 3.

    Parameters
    ----------
    loss : array_like of shape (W, 2n)
        Loss of each output on each record, n <= 10.
    epsilon : float
        Of the mechanism, >= 0.
    sensitivity : float
        Of the mean loss over all data sets, > 0.

    Returns
    -------
    Epsilons
        In nats.

    Raises
    ------
    ValueError
        As `leakbound.bounds.pmp_exponential`; if the data are more sensitive than promised; for n > 10.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.bounds.membership import epsilons_exponential
    >>> loss = np.abs(np.array([[-1.0], [1.0]]) - np.array([-2.0, -0.5, 0.0, 0.1, 0.7, 3.0]))
    >>> found = epsilons_exponential(loss, epsilon=2.0, sensitivity=4 / 3)
    >>> round(found.eps_pmp, 4), round(found.eps_subset_exact, 4), round(found.eps_subset_nominal, 4)
    (0.3182, 0.5968, 1.75)
    """
    data_sensitivity = subset_sensitivity(loss)
    _covers(sensitivity, data_sensitivity)
    return Epsilons(
        eps_global=epsilon,
        eps_subset_exact=subset_epsilon(loss, epsilon, sensitivity),
        eps_subset_nominal=epsilon * data_sensitivity / sensitivity,
        eps_pmp=pmp_exponential(loss, epsilon, sensitivity),
    )


def epsilons_gaussian(
    features: ArrayLike, scale: float, delta: float, sensitivity: float, query: Query = "mean"
) -> Epsilons:
    """Compute the four epsilons of the Gaussian mechanism at one delta; that of membership is an upper bound.

    Source: lowy2024, sections 3 and 4.

    Parameters
    ----------
    features : array_like of shape (2n, d)
        As in `pmp_gaussian`.
    scale : float
        Standard deviation of the noise on each coordinate, > 0.
    delta : float
        In (0, 1).
    sensitivity : float
        Of the query over all data sets, > 0.
    query : {"mean", "sum"}
        As in `pmp_gaussian`.

    Returns
    -------
    Epsilons
        In nats.

    Raises
    ------
    ValueError
        As `pmp_gaussian`; if the data are more sensitive than promised.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.bounds.membership import epsilons_gaussian
    >>> found = epsilons_gaussian(np.arange(8.0)[:, None], scale=1.0, delta=0.01, sensitivity=2.0)
    >>> round(found.eps_global, 3), round(found.eps_subset_exact, 3), round(found.eps_pmp, 3)
    (5.998, 4.975, 3.711)
    """
    pairs = _Pairs.of(features, query)
    data_sensitivity = max(float(shifts.max()) for _, shifts in pairs.blocks(np.arange(len(pairs.features))))
    _covers(sensitivity, data_sensitivity)
    promised = analytic_gaussian_epsilon(scale, delta, sensitivity)
    return Epsilons(
        eps_global=promised,
        eps_subset_exact=analytic_gaussian_epsilon(scale, delta, data_sensitivity) if data_sensitivity > 0 else 0.0,
        eps_subset_nominal=promised * data_sensitivity / sensitivity,
        eps_pmp=pmp_gaussian(features, scale, delta, query),
    )


def pmp_gaussian(
    features: ArrayLike,
    scale: float,
    delta: float,
    query: Query = "mean",
    promise: Literal["every", "average"] = "every",
) -> float:
    """Compute an epsilon of (epsilon, delta)-practical membership privacy of a mean or sum with Gaussian noise.

    It is the smallest with ``max_x mean_x' H(||f(x) - f(x')||/(n scale)) <= delta`` for the mean, without n for the
    sum; x' are the 2n - 1 other records, H is `gaussian_hockey` at this epsilon. By joint convexity no attack
    exceeds it in either direction (lowy2024, proposition 12): swap x for a random x' outside. For the average
    record it is the smallest with ``mean_x mean_x' H <= delta``, which promises nothing to any one of them.

    Parameters
    ----------
    features : array_like of shape (2n, d)
        f of each record.
    scale : float
        Standard deviation of the noise on each coordinate, > 0.
    delta : float
        In (0, 1).
    query : {"mean", "sum"}
        Of f over the n records of D.
    promise : {"every", "average"}
        For every record, or for a record drawn at random.

    Returns
    -------
    float
        In nats.

    Raises
    ------
    ValueError
        For features that are not finite or of another shape, an odd number of records, a value out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.bounds import pmp_gaussian
    >>> records = np.arange(8.0)[:, None]
    >>> round(pmp_gaussian(records, scale=1.0, delta=0.01), 3)
    3.711
    >>> round(pmp_gaussian(records, scale=1.0, delta=0.01, promise="average"), 3)
    2.882
    """
    scale, delta = positive("scale", scale), probability("delta", delta, open_ends=True)
    pairs = _Pairs.of(features, query)

    def divergence(shifts: Array, epsilon: float) -> Array:
        return gaussian_hockey(_over(shifts, scale), epsilon)

    if one_of("promise", promise, ("every", "average")) == "every":
        return _least_for_all(pairs, divergence, delta)
    return _least_on_average(pairs, divergence, delta)


def epsilon_for_subset(loss: ArrayLike, subset: float, sensitivity: float) -> float:
    """Find the largest epsilon of the exponential mechanism that keeps epsilon(X) within a limit on these records.

    epsilon(X) is the differential privacy among the halves of these 2n records (`subset_epsilon`). The search begins
    at ``subset sensitivity/Delta(X)``, which suffices by the sensitivity Delta(X) of the records. epsilon(X) need not
    grow with epsilon; the limit holds at the result, and is broken within a millionth above it.

    Parameters
    ----------
    loss : array_like of shape (W, 2n)
        Loss of each output on each record, n <= 10.
    subset : float
        Limit of epsilon(X), > 0.
    sensitivity : float
        Of the mean loss over all data sets, > 0.

    Returns
    -------
    float
        In nats. Infinity if the records are alike to every output, so that no epsilon breaks the limit; otherwise at
        most the limit times ``2^20 sensitivity/Delta(X)``, where the search ends.

    Raises
    ------
    ValueError
        As `leakbound.bounds.pmp_exponential`, and for n > 10.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.bounds import epsilon_for_subset, subset_epsilon
    >>> loss = np.abs(np.array([[-1.0], [1.0]]) - np.array([-2.0, -0.5, 0.0, 0.1, 0.7, 3.0]))
    >>> epsilon = epsilon_for_subset(loss, subset=1.0, sensitivity=2 / 3)
    >>> round(epsilon, 4), round(subset_epsilon(loss, epsilon, 2 / 3), 4)
    (1.5529, 1.0)
    """
    subset, sensitivity = positive("subset", subset), positive("sensitivity", sensitivity)
    data_sensitivity = subset_sensitivity(loss)
    if data_sensitivity == 0:
        return math.inf
    start = subset * sensitivity / data_sensitivity

    def holds(epsilon: float) -> bool:
        return subset_epsilon(loss, epsilon, sensitivity) <= subset

    return largest_where(holds, inside=start, start=2 * start, end=2.0**20 * start, rtol=PRECISION_OF_SUBSET)


def scale_for_accuracy(features: ArrayLike, accuracy: float = 0.55, query: Query = "mean") -> float:
    """Compute the least Gaussian noise that keeps every practical attack on these records at or below an accuracy.

    The accuracy of an attack on a record that is in D with probability 1/2 is at most ``(1 + TV)/2``, TV the
    total variation between the distributions with and without it, and TV is at most the mean over swaps of
    `gaussian_hockey` at epsilon = 0.

    Parameters
    ----------
    features : array_like of shape (2n, d)
        As in `pmp_gaussian`.
    accuracy : float
        Accuracy that no attack on any record may exceed, > 1/2 and < 1.
    query : {"mean", "sum"}
        As in `pmp_gaussian`.

    Returns
    -------
    float
        Standard deviation of the noise on each coordinate; 0 if all records are equal.

    Raises
    ------
    ValueError
        As `pmp_gaussian`, and for an accuracy out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.bounds.membership import scale_for_accuracy
    >>> round(scale_for_accuracy(np.arange(8.0)[:, None], accuracy=0.6), 4)
    1.9576
    """

    def divergence(shifts: Array, scale: float) -> Array:
        return gaussian_hockey(_over(shifts, scale), 0.0)

    return _least_for_all(_Pairs.of(features, query), divergence, 2 * _accuracy(accuracy) - 1)


def epsilon_for_accuracy(
    loss: ArrayLike,
    sensitivity: float,
    accuracy: float = 0.55,
    n_subsets: int = 2**17,
    confidence: float = 0.95,
    seed: int = 0,
) -> float:
    """Find an epsilon of the exponential mechanism that keeps every practical attack on these records low.

    No attacker then holds membership of a record for likelier than ``accuracy``, whatever is released: practical
    membership privacy with ``ln(accuracy/(1 - accuracy))`` (lowy2024, lemma 6). It is computed exactly
    to n = 13 (with 32 outputs; to a smaller n with more), and else by the upper end of its interval.

    It need not grow with epsilon, so the search goes up a fixed geometric grid in steps of a quarter, from an
    epsilon that suffices by the sensitivity of the data, stops where the limit is first broken, and halves the
    last step on a finer grid (.05 %; sampled 1 %). The interval has its confidence over all points of that grid,
    so the result, which is one of them, holds at ``confidence`` however the search went.

    Parameters
    ----------
    loss : array_like of shape (W, 2n)
        Loss of each output on each record.
    sensitivity : float
        Of the mean loss, > 0.
    accuracy : float
        > 1/2 and < 1.
    n_subsets : int
        Number of random subsets, where the privacy is sampled.
    confidence : float
        Of the sampled intervals together.
    seed : int
        Of the random subsets.

    Returns
    -------
    float
        At most 1,000 (less where that cannot be sampled); that is returned if every epsilon of the search suffices.

    Raises
    ------
    ValueError
        As `leakbound.bounds.pmp_exponential`, and for an accuracy out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.special import expit
    >>> from leakbound.bounds import epsilon_for_accuracy, pmp_exponential
    >>> loss = np.abs(np.array([[-1.0], [1.0]]) - np.array([-2.0, -0.5, 0.0, 0.1, 0.7, 3.0]))
    >>> epsilon = epsilon_for_accuracy(loss, sensitivity=2 / 3, accuracy=0.6)
    >>> round(epsilon, 3), round(float(expit(pmp_exponential(loss, epsilon, 2 / 3))), 3)
    (1.282, 0.6)
    """
    target = float(logit(_accuracy(accuracy)))
    unit = exponents(loss, 1.0, sensitivity)  # at epsilon = 1: exponents are proportional to epsilon
    exact = countable(len(unit) // 2, unit.shape[1], MOST_BY_LOGARITHMS)
    data_sensitivity, spread = subset_sensitivity(loss), float(np.ptp(unit, axis=1).max())
    end = LARGEST_EPSILON if exact or spread == 0 else min(LARGEST_EPSILON, 0.999 * LARGEST_SPREAD / spread)
    start = min(end, target * sensitivity / data_sensitivity) if data_sensitivity > 0 else end
    step = math.log(1.0005 if exact else 1.01)
    grid = np.geomspace(start, end, math.ceil(math.log(end / start) / step) + 1)
    # Bonferroni over the grid: the search looks at some of its points, which depend on the results before.
    alpha = (1 - probability("confidence", confidence, open_ends=True)) / len(grid)

    def holds(k: int) -> bool:
        if exact:
            return pmp_exponential(loss, float(grid[k]), sensitivity) <= target
        draws = Draws(n_subsets=n_subsets, confidence=1 - alpha, seed=seed)
        return pmp_exponential(loss, float(grid[k]), sensitivity, "sampled", **draws).high <= target

    return float(grid[_last_before_break(holds, len(grid) - 1, math.ceil(math.log(1.25) / step))])


def _last_before_break(holds: Callable[[int], bool], n_steps: int, stride: int) -> int:
    """Find a number up to n_steps that holds and whose next does not; 0 is taken to hold. Strides go up first."""
    low, high = 0, min(stride, n_steps)
    while low < n_steps and holds(high):
        low, high = high, min(high + stride, n_steps)
    return bisect_integers(holds, inside=low, outside=high)


@dataclass(frozen=True, eq=False)
class _Pairs:
    """How far a swap of two records moves a mean or sum."""

    features: Float[Array, "N d"]  # over n for the mean

    @classmethod
    def of(cls, features: ArrayLike, query: str) -> _Pairs:
        values = numbers("features", features)
        if values.ndim != 2 or values.size == 0:
            raise ValueError(f"features must have the shape (records, columns), got {values.shape}")
        if len(values) % 2:
            raise ValueError(
                f"features have {len(values):,} records; an even number 2n is needed, D is one half of them"
            )
        if not np.isfinite(values).all():
            raise ValueError("features must be finite, got NaN or infinite values")
        return cls(values / (len(values) // 2) if one_of("query", query, ("mean", "sum")) == "mean" else values)

    def blocks(self, records: Int[Array, " k"]) -> Iterator[tuple[Int[Array, " b"], Float[Array, "b N"]]]:
        """Yield some of the records, and their distances to all."""
        step = max(1, _BLOCK // self.features.size)
        for start in range(0, len(records), step):
            chosen = records[start : start + step]
            with np.errstate(over="ignore"):  # an infinite distance is one that noise does not cover
                apart = self.features[chosen, None, :] - self.features
            # p_norm has no number for a vector that is not finite
            distance = np.where(np.isinf(apart).any(axis=2), np.inf, p_norm(apart))
            yield chosen, distance


def _least_for_all(pairs: _Pairs, divergence: Callable[[Array, float], Array], limit: float) -> float:
    """Find the smallest t at which the mean divergence from the others is within the limit for every record.

    The record that needs the largest t is found by solving for one record, dropping all that this t suffices
    for, and going on with the worst of the rest: a few passes over the pairs, not one for each trial of t.
    """
    n_others = len(pairs.features) - 1
    left = np.arange(len(pairs.features))
    centre = np.median(pairs.features, axis=0)
    worst = int(np.abs(pairs.features - centre).max(axis=1).argmax())
    largest = 0.0
    while len(left):
        ((_, shifts),) = pairs.blocks(np.array([worst]))

        def holds(t: float, row: Array = shifts) -> bool:
            return float(divergence(row, t).sum()) / n_others <= limit

        if not holds(0.0):
            largest = max(largest, smallest_where(holds, rtol=PRECISION))
        if largest == math.inf:
            return largest
        # Records whose mean divergence is within the limit at the largest t so far need no t of their own.
        left = left[left != worst]
        mean = np.concatenate(
            [[], *(divergence(rows, largest).sum(axis=1) / n_others for _, rows in pairs.blocks(left))]
        )
        left, mean = left[mean > limit], mean[mean > limit]
        worst = int(left[mean.argmax()]) if len(left) else worst
    return largest


def _least_on_average(pairs: _Pairs, divergence: Callable[[Array, float], Array], limit: float) -> float:
    """Find the smallest t at which the mean divergence over all records and others is within the limit."""
    n = len(pairs.features)
    fit = n * n <= _BLOCK  # distances are computed once if they fit, and those of a pair are alike
    kept = np.concatenate([shifts for _, shifts in pairs.blocks(np.arange(n))])[np.triu_indices(n, 1)] if fit else None

    def holds(t: float) -> bool:
        if kept is not None:
            return float(divergence(kept, t).mean()) <= limit
        blocks = pairs.blocks(np.arange(n))
        return sum(float(divergence(shifts, t).sum()) for _, shifts in blocks) / (n * (n - 1)) <= limit

    return 0.0 if holds(0.0) else smallest_where(holds, rtol=PRECISION)


def _over(shifts: Array, scale: float) -> Array:
    """Shifts in deviations of the noise; infinite where the ratio is, and 0 where nothing is shifted."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        return np.where(shifts > 0, shifts / scale, 0.0)


def _covers(sensitivity: float, data_sensitivity: float) -> None:
    """Check that a sensitivity over all data sets covers this one."""
    if positive("sensitivity", sensitivity) < data_sensitivity * (1 - 1e-9):
        raise ValueError(f"sensitivity must be >= that of the data, {data_sensitivity:g}, got {sensitivity:g}")


def _accuracy(accuracy: float) -> float:
    """Check that an accuracy is above the baseline."""
    if not 0.5 < probability("accuracy", accuracy) < 1:
        raise ValueError(f"accuracy must be > 0.5 and < 1, got {accuracy:g}")
    return float(accuracy)
