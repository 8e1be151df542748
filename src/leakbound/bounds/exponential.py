"""Practical membership privacy of the exponential mechanism, on a given data set.

The mechanism chooses one of W outputs, ``P(w | D)`` proportional to ``exp(-epsilon l(w, D)/(2 sensitivity))`` with
``l(w, D)`` the mean loss of w over the n records of D (McSherry & Talwar 2007); it is epsilon-DP where no record
that could replace another moves that mean by more than the sensitivity. The attacker of practical membership privacy
(lowy2024, definition 2) knows 2n records, one half of which, drawn uniformly, is D.
"""

from __future__ import annotations

from itertools import combinations
from typing import Literal, TypedDict, Unpack, overload

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from leakbound.bounds.exact import subsets
from leakbound.bounds.halves import log_odds
from leakbound.bounds.tilting import sampled_log_odds
from leakbound.core.checks import count, non_negative, numbers, one_of, positive, probability
from leakbound.core.findings import Term
from leakbound.core.intervals import Interval
from leakbound.core.lengths import p_norm

Array = np.ndarray


class Draws(TypedDict, total=False):
    """What ``method="sampled"`` may be told; each has a default.

    ``n_subsets`` (131,072) random subsets, shared by the outputs; the ``confidence`` (0.95) of the interval;
    the ``seed`` (0).
    """

    n_subsets: int
    confidence: float
    seed: int


@overload
def pmp_exponential(
    loss: ArrayLike,
    epsilon: float,
    sensitivity: float,
    method: Literal["exact"] = "exact",
    **draws: Unpack[Draws],
) -> float: ...


@overload
def pmp_exponential(
    loss: ArrayLike, epsilon: float, sensitivity: float, method: Literal["sampled"], **draws: Unpack[Draws]
) -> Interval: ...


@overload
def pmp_exponential(
    loss: ArrayLike, epsilon: float, sensitivity: float, method: str, **draws: Unpack[Draws]
) -> float | Interval: ...


def pmp_exponential(
    loss: ArrayLike, epsilon: float, sensitivity: float, method: str = "exact", **draws: Unpack[Draws]
) -> float | Interval:
    """Compute the smallest epsilon of practical membership privacy of the exponential mechanism on these 2n records.

    It is ``max |ln P(w | x in D)/P(w | x not in D)|`` over records x and outputs w, D a uniform half: Lowy et al.
    (2024), proposition 9, with both signs of the logarithm. With the printed one alone a mechanism may pass
    whose output proves that a record is *not* in D: two records, two outputs, P(w1 | D) = .001 if the first is
    in D and .5 if not, has .692 instead of 6.215. No attacker, whatever is released, holds membership of a
    record for likelier than ``1/(1 + e^-epsilon)`` (lemma 6).
    Source: lowy2024, definitions 2 and 7 and proposition 9.

    Parameters
    ----------
    loss : array_like of shape (W, 2n)
        Loss of each output on each record.
    epsilon : float
        Of the mechanism, >= 0.
    sensitivity : float
        Of the mean loss, > 0.
    method : {"exact", "sampled"}
        All halves at once (`leakbound.bounds.halves`), to n = 18 with 32 outputs; or random subsets
        (`leakbound.bounds.tilting`), to n = 5,000.
    **draws : int or float
        For sampled subsets, and only for them:

        n_subsets: number of random subsets, 131,072 by default; each represents the n + 1 halves that one more record
        makes of it;

        confidence: of the interval, 0.95 by default;

        seed: 0 by default.

    Returns
    -------
    float or Interval
        In nats. The ends of the interval are the maxima of limits that hold for all records and outputs
        together; they hold for every distribution and every number of subsets, and the upper one is never above
        what swaps of records allow, so that it is finite. The value is the estimate from the draws where that is at
        least half of the upper end, and else the upper end itself: with the confidence of the interval, it is never
        less than half of the truth. ``detail["estimate"]`` is the estimate in both cases.

    Raises
    ------
    ValueError
        For losses that are not finite or of another shape, an odd number of records, or too many of them.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.bounds import pmp_exponential
    >>> loss = np.abs(np.array([[-1.0], [1.0]]) - np.array([-2.0, -0.5, 0.0, 0.1, 0.7, 3.0]))
    >>> round(pmp_exponential(loss, epsilon=2.0, sensitivity=2 / 3), 4)
    0.612
    >>> interval = pmp_exponential(loss, epsilon=2.0, sensitivity=2 / 3, method="sampled")
    >>> round(interval.low, 2), round(interval.high, 2)
    (0.61, 0.61)
    """
    exponent = exponents(loss, epsilon, sensitivity)
    n_subsets, confidence, seed = _settings(**draws)
    if one_of("method", method, ("exact", "sampled")) == "exact":
        return float(np.abs(log_odds(exponent)).max())
    odds = sampled_log_odds(exponent, n_subsets, confidence, seed)
    low = max(0.0, float(np.maximum(odds.low, -odds.high).max()))
    high = float(np.maximum(-odds.low, odds.high).max())
    estimate = min(max(low, float(np.abs(odds.value).max())), high)
    # Halves that are rarely drawn may hold nearly all of the truth. An estimate from the others is then far too small
    # (8e-15 of .844), and only the limits can tell: the estimate is given where they prove it to within a factor of 2.
    value = estimate if estimate >= high / 2 else high
    terms = (Term("empirical_bernstein"),)
    return Interval(value, low, high, confidence, method=terms, detail={"estimate": estimate})


def exponents(loss: ArrayLike, epsilon: float, sensitivity: float) -> Float[Array, "N W"]:
    """Compute what each record adds to ``-ln P(w | D)``: ``epsilon loss/(2 n sensitivity)``.

    Source: lowy2024, definition 7.

    >>> exponents([[0.0, 1.0], [1.0, 1.0]], epsilon=1.0, sensitivity=1.0).tolist()
    [[0.0, 0.5], [0.5, 0.5]]
    """
    values = _losses(loss)
    with np.errstate(over="ignore"):
        scaled = np.ascontiguousarray(
            values.T * (non_negative("epsilon", epsilon) / (values.shape[1] * positive("sensitivity", sensitivity)))
        )
    if not np.isfinite(scaled).all():
        raise ValueError(f"epsilon loss/(2 n sensitivity) overflows for a sensitivity of {sensitivity:g}")
    return scaled


def subset_epsilon(loss: ArrayLike, epsilon: float, sensitivity: float) -> float:
    """Compute the differential privacy of the exponential mechanism among the halves of these records.

    epsilon(X) is ``max |ln P(w | D)/P(w | D')|`` over outputs and adjacent halves D = E + x, D' = E + x' of the 2n
    records X (lowy2024, numerical simulations). With c the exponents and Z_D the normaliser of a half, the
    logarithm is ``c_x'w - c_xw + ln Z_{E+x'} - ln Z_{E+x}``; the maxima over w and over E separate.
    Source: izzo2022, section 3.4.

    Parameters
    ----------
    loss : array_like of shape (W, 2n)
        Loss of each output on each record.
    epsilon : float
        Of the mechanism, >= 0.
    sensitivity : float
        Of the mean loss, > 0.

    Returns
    -------
    float
        In nats, at most ``epsilon subset_sensitivity(loss)/sensitivity``.

    Raises
    ------
    ValueError
        As `pmp_exponential`; for n > 10 there are too many halves.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.bounds.exponential import subset_epsilon
    >>> loss = np.abs(np.array([[-1.0], [1.0]]) - np.array([-2.0, -0.5, 0.0, 0.1, 0.7, 3.0]))
    >>> round(subset_epsilon(loss, epsilon=2.0, sensitivity=2 / 3), 4)
    1.3548
    """
    exponent = exponents(loss, epsilon, sensitivity)
    n_records = len(exponent)
    member = subsets(n_records, n_records // 2)  # in lexicographic order, also of the other records of two swaps
    log_normaliser = np.concatenate(
        [np.asarray(logsumexp(-(part @ exponent), axis=1)) for part in np.array_split(member, len(member) // 4096 + 1)]
    )
    largest = 0.0
    # Halves with x and without x' are all E + x; those the other way round are all E + x', for the same E in the same
    # order.
    for x, other in combinations(range(n_records), 2):
        swap = exponent[x] - exponent[other]
        only_x, only_other = member[:, x] & ~member[:, other], member[:, other] & ~member[:, x]
        gain = log_normaliser[only_x] - log_normaliser[only_other]
        largest = max(largest, float(swap.max() + gain.max()), float((-swap).max() + (-gain).max()))
    return largest


def subset_sensitivity(loss: ArrayLike) -> float:
    """Delta(X): how far a swap of two of these 2n records moves the mean loss over n records.

    Parameters
    ----------
    loss : array_like of shape (W, 2n)

    Returns
    -------
    float
        ``max_w (max loss - min loss)/n``.

    Raises
    ------
    ValueError
        As `pmp_exponential`.

    Examples
    --------
    >>> from leakbound.bounds.exponential import subset_sensitivity
    >>> subset_sensitivity([[0.0, 3.0, 1.0, 1.0], [1.0, 1.0, 2.0, 1.0]])
    1.5
    """
    values = _losses(loss)
    return float(np.ptp(values, axis=1).max()) / (values.shape[1] // 2)


def geometric_median_loss(outputs: Float[Array, "W d"], records: Float[Array, "N d"]) -> Float[Array, "W N"]:
    """Compute the Euclidean distance of each output to each record; its mean is least at the geometric median.

    Source: lowy2024, section 3.

    Parameters
    ----------
    outputs : array of shape (W, d)
        Candidates for the median.
    records : array of shape (N, d)
        The data.

    Returns
    -------
    array of shape (W, N)
        In units of the records.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.bounds.exponential import geometric_median_loss
    >>> geometric_median_loss(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0], [0.0, 1.0]])).tolist()
    [[5.0, 1.0]]
    """
    return np.array([p_norm(records - output) for output in outputs])


def geometric_median_sensitivity(clip: float, n: int) -> float:
    """Compute the sensitivity of the mean distance to a unit vector over n records of norm at most ``clip``.

    It is ``min(2 clip, clip + 1)/n``: two distances differ by at most that between the records, and each lies between
    0 and clip + 1. It is attained by the records w and -clip w, and for clip < 1 by clip w and -clip w.
    Source: lowy2024, section 3.

    Parameters
    ----------
    clip : float
        Largest norm of a record, > 0.
    n : int
        Number of records of D.

    Returns
    -------
    float
        For replacing one record.

    Examples
    --------
    >>> from leakbound.bounds.exponential import geometric_median_sensitivity
    >>> geometric_median_sensitivity(0.5, 10), geometric_median_sensitivity(9.0, 10)
    (0.1, 1.0)
    """
    clip = positive("clip", clip)
    return min(2 * clip, clip + 1) / count("n", n)


def clipped_mean_sensitivity(clip: float, n: int) -> float:
    """Compute the sensitivity of the mean of n records of norm at most ``clip``: ``2 clip/n``.

    Source: lowy2024, section 4.

    Parameters
    ----------
    clip : float
        Largest norm of a record, > 0.
    n : int
        Number of records of D.

    Returns
    -------
    float
        For replacing one record.

    Examples
    --------
    >>> from leakbound.bounds.exponential import clipped_mean_sensitivity
    >>> clipped_mean_sensitivity(50.0, 100)
    1.0
    """
    return 2 * positive("clip", clip) / count("n", n)


def _losses(loss: ArrayLike) -> Float[Array, "W N"]:
    values = numbers("loss", loss)
    if values.ndim != 2 or values.size == 0:
        raise ValueError(f"loss must have the shape (outputs, records), got {values.shape}")
    if values.shape[1] % 2:
        raise ValueError(f"loss has {values.shape[1]:,} records; an even number 2n is needed, D is one half of them")
    if not np.isfinite(values).all():
        raise ValueError("loss must be finite, got NaN or infinite values")
    return values


def _settings(n_subsets: int = 2**17, confidence: float = 0.95, seed: int = 0) -> tuple[int, float, int]:
    """Of the sampled method, checked."""
    confidence = probability("confidence", confidence, open_ends=True)
    return count("n_subsets", n_subsets), confidence, count("seed", seed, least=0)
