"""Lower bounds of epsilon, or of a family of curves, from scores: what a claim does not allow.

Every method turns scores into evidence once; the evidence gives a p-value for any claim, valid in finite
samples. The bound is the set of claims that are not rejected, and a claim is refuted by the same p-value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from leakbound.core.checks import count, non_negative, one_of, probability
from leakbound.core.findings import Term
from leakbound.core.intervals import Interval
from leakbound.core.numerics import largest_where
from leakbound.core.tradeoff import EpsilonDelta, TradeOff
from leakbound.core.types import NotApplicable, Scores
from leakbound.metrics.counting import Evidence, coins, pairs
from leakbound.metrics.ranks import independent_canaries, many_runs

_LARGEST = 2.0**40  # that is looked for
Method = Literal["pairs", "coins", "many_runs", "independent_canaries"]


def epsilon_lower(
    scores: Scores,
    delta: float = 0.0,
    confidence: float = 0.95,
    method: Method = "pairs",
    *,
    independent: bool = False,
    n_tests: int = 1,
) -> Interval:
    """One-sided lower confidence bound of epsilon at a delta.

    Source: azize2024, algorithm 5.

    Parameters
    ----------
    scores : Scores
        Value and truth of shape (T, J).
    delta : float
        In [0, 1); 0, pure differential privacy, unless given. Give that of the promise: a bound at 0 says little of a
        Gaussian mechanism, which promises no epsilon there. Reports use the delta of the claims, and 1e-5 without one.
    confidence : float
        Probability, at least, that the bound is not above the true epsilon, for all ``n_tests`` together.
    method : {"pairs", "coins", "many_runs", "independent_canaries"}
        What is counted, and which adjacency it refutes.

        * pairs: members of a uniform subset of given size, matched at random with non-members; which of the
          two is the member is a fair coin, and the other outcome replaces one record: replace-one DP.
        * coins: every target point is in by a fair coin of its own: add/remove DP; replace-one DP where the others
          fill a data set of given size, as in ``leakbound.core.games.fresh``.
        * many_runs: T models, one fixed point (J = 1) in or out: the adjacency of that point's two versions.
        * independent_canaries: canaries whose scores are alike and independent, given who is in. This is an assumption
          about the training, which the caller makes; Dirac canaries of DP-SGD with Poisson batches fulfil it.
    independent : bool
        The caller's word that the score of a target uses no other target: its references are not targets.
        Needed for more than one target.
    n_tests : int
        Attacks and releases compared; the level is divided by it.

    Returns
    -------
    Interval
        ``low = value``, the bound, and ``high = inf``; ``detail`` has the unit and the numbers of the
        strongest test.

    Raises
    ------
    NotApplicable
        If the method's units are not independent, or too few.

    Notes
    -----
    pairs and coins: Steinke, Nasr & Jagielski (2023), theorem 5.2, sharpened in ``metrics.one_run``. many_runs
    and independent_canaries: Kairouz, Oh & Viswanath (2015), theorem 2.1, at thresholds with fixed ranks; the p-value
    is derived in ``metrics.ranks``.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.core.types import Scores
    >>> member = np.arange(1000) % 2 == 0
    >>> bound = epsilon_lower(Scores("example", 1.0 * member[None, :], member[None, :]))
    >>> round(bound.value, 2), bound.detail["guesses"], bound.detail["correct"]
    (4.73, 500, 500)
    """
    return bound(evidence(scores, method, independent), delta, confidence, n_tests)


def claim_p_value(
    scores: Scores,
    epsilon: float,
    delta: float = 0.0,
    method: Method = "pairs",
    *,
    independent: bool = False,
    n_tests: int = 1,
) -> float:
    """P-value of the claim "(epsilon, delta)-DP", valid in finite samples: small values refute it.

    ``epsilon_lower`` at confidence c exceeds epsilon exactly where this is below 1 - c.

    Parameters
    ----------
    scores : Scores
    epsilon : float
        Claimed, >= 0.
    delta : float
        Claimed, in [0, 1].
    method : {"pairs", "coins", "many_runs", "independent_canaries"}
        As in `epsilon_lower`.
    independent : bool
        As in `epsilon_lower`.
    n_tests : int
        As in `epsilon_lower`.

    Returns
    -------
    float
        In (0, 1].

    Raises
    ------
    NotApplicable
        As `epsilon_lower`.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.core.types import Scores
    >>> member = np.arange(1000) % 2 == 0
    >>> claim_p_value(Scores("example", 1.0 * member[None, :], member[None, :]), epsilon=4.0) < 1e-3
    True
    """
    epsilon, delta = non_negative("epsilon", epsilon), probability("delta", delta)
    p = evidence(scores, method, independent).p_value(epsilon, delta)
    return min(1.0, count("n_tests", n_tests) * p)


def evidence(scores: Scores, method: Method = "pairs", independent: bool = False) -> Evidence:
    """Reduce scores to the few numbers that every test of a claim needs.

    Parameters
    ----------
    scores : Scores
    method : {"pairs", "coins", "many_runs", "independent_canaries"}
        As in `epsilon_lower`.
    independent : bool
        As in `epsilon_lower`.

    Returns
    -------
    Evidence
        With ``p_value(epsilon, delta)`` and ``curve_p_value(curve)``.

    Raises
    ------
    NotApplicable
        As `epsilon_lower`.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.core.types import Scores
    >>> member = np.arange(1000) % 2 == 0
    >>> gathered = evidence(Scores("example", 1.0 * member[None, :], member[None, :]))
    >>> [gathered.p_value(epsilon, 0.0) < 0.05 for epsilon in (4.0, 5.0)]
    [True, False]
    """
    chosen = METHODS[one_of("method", method, METHODS)]
    if len(scores.value) > 1 and not independent:
        raise NotApplicable("targets_not_independent")
    return chosen.gather(scores)


def bound(evidence: Evidence, delta: float = 0.0, confidence: float = 0.95, n_tests: int = 1) -> Interval:
    """One-sided lower confidence bound of epsilon from evidence, as `epsilon_lower` from scores.

    >>> import numpy as np
    >>> from leakbound.metrics.counting import Guesses
    >>> round(bound(Guesses("coins", 20, np.array([20]), np.array([[20]]))).value, 3)
    1.823
    """
    alpha = 1 - probability("confidence", confidence, open_ends=True)
    delta = probability("delta", delta)
    level = alpha / count("n_tests", n_tests)
    value = _largest_rejected(lambda epsilon: evidence.p_value(epsilon, delta) < level, 1e-6)
    detail = {"delta": delta, "n_tests": n_tests, **evidence.detail(EpsilonDelta(value, delta))}
    return Interval(value, value, math.inf, confidence, "none", evidence.method, detail)


def family_lower(
    evidence: Evidence,
    family: Callable[[float], TradeOff],
    confidence: float = 0.95,
    n_tests: int = 1,
    *,
    tolerance: float = 1e-4,
) -> Interval:
    """One-sided lower confidence bound of the member of a family of trade-off curves.

    If the release's own curve is that of some member x, then x is above the bound; its epsilon at any delta and its
    whole curve are bounded by those of ``family(value)``. If it is not, the bound still says that no promise of a
    member up to it holds.

    Parameters
    ----------
    evidence : Evidence
        Of the scores of an attack.
    family : callable
        From a number x > 0 to a curve, a lower one for a larger x: ``Gaussian``, or
        ``lambda x: dpsgd(1 / x, sample_rate, steps, "add_remove")``.
    confidence : float
        Of the bound, in (0, 1).
    n_tests : int
        As in `epsilon_lower`.
    tolerance : float
        Relative to the bound, or to 1 if that is more, the distance below it at which the search ends.

    Returns
    -------
    Interval
        Of x; ``low = value``, and ``high = inf``. 0 if no member is refused.

    Raises
    ------
    ValueError
        For a confidence or tolerance outside (0, 1), or n_tests below 1.

    Notes
    -----
    Mahloujifar, Melis & Chaudhuri (2024): one run is set against the whole curve, not against one point of it.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.metrics.counting import Guesses
    >>> from leakbound.core.tradeoff import Gaussian
    >>> found = family_lower(Guesses("coins", 1000, np.array([100]), np.array([[95]])), Gaussian)
    >>> round(found.value, 2), round(Gaussian(found.value).epsilon(1e-5), 2)
    (0.79, 3.32)
    """
    level = (1 - probability("confidence", confidence, open_ends=True)) / count("n_tests", n_tests)
    tolerance = probability("tolerance", tolerance, open_ends=True)
    value = _largest_rejected(lambda x: evidence.curve_p_value(family(x)) < level, tolerance)
    detail = {"n_tests": n_tests, **(evidence.detail(family(value)) if value > 0 else {})}
    return Interval(value, value, math.inf, confidence, "none", (*evidence.method, Term("whole_curve")), detail)


def _largest_rejected(rejected: Callable[[float], bool], tolerance: float) -> float:
    """Largest number whose claim is rejected, from below; 0 if that of ``tolerance`` is not."""
    if not rejected(tolerance):
        return 0.0
    # A family may have a member beyond which nothing changes, so the search has an end.
    return largest_where(rejected, tolerance, end=_LARGEST, rtol=tolerance, atol=tolerance)


@dataclass(frozen=True)
class Counting:
    """A way to count: what gathers the evidence, and where its theorem is proved."""

    gather: Callable[[Scores], Evidence]
    source: str


METHODS: Mapping[str, Counting] = MappingProxyType(
    {
        "pairs": Counting(pairs, "steinke2023, Theorem 5.2, sharpened; mahloujifar2024"),
        "coins": Counting(coins, "steinke2023, Theorem 5.2, sharpened; mahloujifar2024"),
        "many_runs": Counting(many_runs, "kairouz2015, Theorem 2.1"),
        "independent_canaries": Counting(independent_canaries, "kairouz2015, Theorem 2.1"),
    }
)
