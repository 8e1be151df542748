"""Whether the batches of DP-SGD are those of the claim, as far as the steps at the canaries that are in show it.

At the coordinate of a Dirac canary j that is in, and in units of the claimed deviation sigma c, a step t releases at
most ``w_tj = b_tj/sigma + z_tj``: b_tj tells whether it is in the batch, z_tj is noise. Under Poisson sampling all
b_tj are independent with probability q. Two tests of what would make the promise wrong:

* rate: the sum over all n = S k numbers is at most ``Binomial(n, q)/sigma + N(0, n s^2)``. The deviation s of the noise
  is that of the canaries that are not in, so that with nu numbers of theirs the noise is Student's t: exact for
  Gaussian noise of any size. If s is above 1, canaries count as s/sigma. Too few do not accuse: they promise more.
* order: at a lag l the prediction is ``p_t = w_(t-l) + w_(t-2l) + ...``, centred over the canaries. Given the past
  ``(w_t . p_t)/|p_t|`` is sub-Gaussian with the variance ``s^2 + v(q)/sigma^2``, where
  ``v(q) = (1 - 2q)/(2 log((1 - q)/q))`` is such a variance of a centred Bernoulli variable [ostrovsky2014]. The sum
  U of m of these exceeds u with probability at most ``exp(-u^2/(2 m variance))``. Lag 1 finds batches that are always
  the same, lag l those that come in the same order every l steps. All lags are tested; of very long trainings the
  first ones and 1/q.

Batches that are drawn anew from a shuffled list every epoch are not found: at usual noise the correlation of the b_tj
of an epoch, ``-q/(1/q - 1)``, is far below the noise of the observations.

Axes: S steps, k canaries that are in, n canaries that are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import stats

from leakbound.dpsgd.residual_noise import LEAST_LOG

Array = np.ndarray
_FEWEST = 2  # canaries of each kind
_MOST_WORK = 2e9  # numbers that are added to compare lags, some seconds
_LEAST_VARIANCE = 1e-12  # of the noise, where there is none at all
_SPREADS = 6.0  # standard errors by which the measured variance of the noise is enlarged: fails with probability 1e-9


class Batches(NamedTuple):
    """What the steps say of the batches."""

    n_canaries: int
    log_p_rate: float
    rate: float
    log_p_order: float
    lag: int


def batches(
    inside: Float[Array, "S k"],
    outside: Float[Array, "S n"],
    rate: float,
    noise_multiplier: float,
    errors: Float[Array, " S"] | None = None,
) -> Batches:
    """Test rate and order of the batches.

    >>> rng = np.random.default_rng(0)
    >>> noise, drawn = rng.normal(size=(100, 160)), rng.random((100, 80)) < 0.1
    >>> found = batches(drawn + noise[:, :80], noise[:, 80:], 0.1, 1.0)
    >>> bool(min(found.log_p_rate, found.log_p_order) > np.log(0.01))
    True
    >>> drawn[:] = drawn[0]  # always the same batch
    >>> found = batches(drawn + noise[:, :80], noise[:, 80:], 0.1, 1.0)
    >>> found.lag, bool(found.log_p_order < -50)
    (1, True)
    """
    (n_steps, k), n_outside = inside.shape, outside.shape[1]
    if k < _FEWEST or n_outside < _FEWEST:
        return Batches(0, 0.0, 0.0, 0.0, 0)
    rounding = np.zeros(n_steps) if errors is None else errors
    # the noise as it is, and never less than it may be
    n_degrees = outside.size
    variance = max(_LEAST_VARIANCE, float(np.square(np.abs(outside) + rounding[:, None]).mean()))
    estimated = max(0.0, float(inside.mean()) * noise_multiplier)
    # steps that are seen too large, by a wrong normaliser, show canaries that are as much too large as their noise
    contribution = max(1.0, np.sqrt(variance)) / noise_multiplier
    total = float((inside - rounding[:, None]).sum())
    log_p_rate = _of_rate(total, inside.size, rate, contribution, variance, n_degrees)
    variance *= 1 + _SPREADS * np.sqrt(2 / n_degrees)
    n_lags = min(n_steps - 1, max(1, int(_MOST_WORK / inside.size)))
    epoch = [round(1 / rate)] if n_lags < round(1 / rate) < n_steps else []
    variance += _bernoulli_variance(rate) * contribution**2
    log_p_order, lag = _of_order(inside, rounding, variance, [*range(1, n_lags + 1), *epoch])
    return Batches(k, log_p_rate, estimated, log_p_order, lag)


def _of_rate(total: float, n: int, rate: float, contribution: float, variance: float, n_degrees: int) -> float:
    """Compute the logarithm of the probability that the sum of n numbers is as large as it is, or larger."""
    mean, spread = n * rate, np.sqrt(n * rate * (1 - rate))
    counts = np.arange(max(0, int(mean - 12 * spread - 12)), min(n, int(mean + 12 * spread + 12)) + 1)
    tail = stats.t.sf((total - counts * contribution) / np.sqrt(n * variance), n_degrees)
    p = float(stats.binom.pmf(counts, n, rate) @ tail) + float(stats.binom.sf(counts[-1], n, rate))
    return max(LEAST_LOG, float(np.log(min(1.0, p)))) if p > 0 else LEAST_LOG


def _of_order(
    inside: Float[Array, "S k"], rounding: Float[Array, " S"], variance: float, lags: Sequence[int]
) -> tuple[float, int]:
    """Return the logarithm of the smallest p-value over the lags, corrected for their number, and its lag."""
    n_steps, k = inside.shape
    centred = inside - inside.mean(axis=1, keepdims=True)
    found, at = 0.0, 0
    for lag in lags:
        prediction = np.zeros_like(centred)
        for step in range(lag, n_steps, lag):  # blocks of `lag` steps: each from the block before it
            block = prediction[step : step + lag]
            block[:] = (prediction[step - lag : step] + centred[step - lag : step])[: len(block)]
        length = np.linalg.norm(prediction[lag:], axis=1)
        along = np.einsum("ij,ij->i", centred[lag:], prediction[lag:]) / np.maximum(length, 1e-300)
        excess = float((along - np.sqrt(k) * rounding[lag:]).sum())
        log_p = -0.5 * excess**2 / ((n_steps - lag) * variance) + np.log(len(lags)) if excess > 0 else 0.0
        if log_p < found:
            found, at = float(log_p), lag
    return max(found, LEAST_LOG), at


def _bernoulli_variance(rate: float) -> float:
    """Compute the least variance of a Gaussian variable whose moments bound those of a Bernoulli variable."""
    if rate in (0.0, 1.0):
        return 0.0
    if abs(rate - 0.5) < 1e-6:
        return 0.25
    return (1 - 2 * rate) / (2 * np.log((1 - rate) / rate))
