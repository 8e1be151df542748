"""The ROC of scores and the areas under it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float, Int

from leakbound.core.intervals import (
    FEWEST_RARE,
    Interval,
    clopper_pearson,
    cluster_t,
    delong,
    korn_graubard,
)
from leakbound.core.tradeoff import Piecewise
from leakbound.core.types import Scores
from leakbound.metrics.rows import rows

Array = np.ndarray
MOST_CORNERS = 1000


def roc(scores: Scores) -> Piecewise:
    """Compute the measured ROC, with one threshold for all targets and tied scores as one step.

    Source: azize2024, eq. 1, 2 and 17 to 21.

    Parameters
    ----------
    scores : Scores

    Returns
    -------
    Piecewise
        At most about 1,000 corners: where there are more, those are kept that lie nearest to even steps of
        FPR and TPR and to even steps of the logarithms of FPR and FNR. Each corner is exact.

    Raises
    ------
    NotApplicable
        If no row has both members and non-members.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.core.types import Scores
    >>> curve = roc(Scores("loss", np.array([[0.1, 0.4, 0.3, 0.9]]), np.array([[False, False, True, True]])))
    >>> curve.tpr_at([0.0, 0.25, 0.5]).tolist()
    [0.5, 0.5, 1.0]
    """
    scored = rows(scores)
    false, true = _corners(scored.value.ravel(), scored.member.ravel())
    corners = _thinned(false, true)
    return curve_of(false[corners], true[corners])


def curve_of(false: Int[Array, " c"], true: Int[Array, " c"]) -> Piecewise:
    """Make the ROC from the counts at its corners, the last of which calls everybody."""
    return Piecewise(false / false[-1], 1 - true / true[-1])


def auc(scores: Scores, confidence: float = 0.95) -> Interval:
    """Area under the ROC: the probability that a member's score exceeds a non-member's, ties one half.

    Several models: the area of each model, averaged; cluster t. One row: DeLong et al. (1988).

    Parameters
    ----------
    scores : Scores
    confidence : float

    Returns
    -------
    Interval
        The mean over the target models, or the area of one model, with its interval.

    Raises
    ------
    NotApplicable
        If no row has both members and non-members.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.core.types import Scores
    >>> auc(Scores("loss", np.array([[0.1, 0.4, 0.3, 0.9]]), np.array([[False, False, True, True]]))).value
    0.75
    """
    scored = rows(scores)
    pairs = [(value[member], value[~member]) for value, member in zip(scored.value, scored.member, strict=True)]
    if scored.single:
        return replace(delong(*pairs[0], confidence), interval_over=scored.interval_over)
    areas = np.array([_area(*pair) for pair in pairs])
    return mean_over_models(areas, sum(min(map(len, pair)) for pair in pairs), confidence, scored.variance_inflation)


def average_precision(scores: Scores, confidence: float = 0.95, inside: bool = True) -> Interval:
    """Mean precision over recall: sum over thresholds of precision times the step of recall.

    Several models: cluster t over models. One row: Clopper-Pearson with as many trials as there are
    positives (the binomial interval of Boyd, Eng & Page 2013, section 3, made exact).

    Parameters
    ----------
    scores : Scores
    confidence : float
    inside : bool
        Members are the positives; else non-members are, by the negated score.

    Returns
    -------
    Interval
        The mean over the target models, or the area of one model, with its interval.

    Raises
    ------
    NotApplicable
        If no row has both members and non-members.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.core.types import Scores
    >>> scores = Scores("loss", np.array([[0.1, 0.4, 0.3, 0.9]]), np.array([[False, False, True, True]]))
    >>> round(average_precision(scores).value, 6)
    0.833333
    """
    scored = rows(scores)
    sign = 1 if inside else -1
    scored_rows = zip(scored.value, scored.member, strict=True)
    precision = np.array([_average_precision(sign * value, member == inside) for value, member in scored_rows])
    positives = scored.n_members if inside else scored.n_others
    if not scored.single:
        return mean_over_models(precision, positives, confidence, scored.variance_inflation)
    exact = clopper_pearson(float(precision[0]) * positives, positives, confidence)
    return replace(exact, interval_over=scored.interval_over)


def _area(members: Float[Array, " P"], others: Float[Array, " Q"]) -> float:
    """Probability that a member's score is the higher one, ties one half: a quotient of whole numbers."""
    ascending, sought = np.sort(others), np.sort(members)
    doubled = np.searchsorted(ascending, sought, "left").sum() + np.searchsorted(ascending, sought, "right").sum()
    return float(doubled / (2 * len(members) * len(others)))


def mean_over_models(
    value: Float[Array, " R"], n_trials: int, confidence: float, variance_inflation: float
) -> Interval:
    """Cluster t; near 0 and 1, where the values are few and skewed, Korn-Graubard."""
    mean = float(value.mean())
    if n_trials * min(mean, 1 - mean) >= FEWEST_RARE:
        return cluster_t(value, confidence, variance_inflation)
    variance = variance_inflation * float(value.var(ddof=1)) / len(value)
    return korn_graubard(min(mean, 1.0), variance, n_trials, len(value), confidence)


def _average_precision(value: Float[Array, " n"], positive: Bool[Array, " n"]) -> float:
    false, true = _corners(value, positive)
    return float(np.sum(np.diff(true, prepend=0) * true / (true + false)) / true[-1])


def _corners(value: Float[Array, " n"], positive: Bool[Array, " n"]) -> tuple[Array, Array]:
    """Count false and true positives from the strictest threshold down, one corner a distinct score."""
    order = np.argsort(value)[::-1]
    descending = value[order]
    last = np.append(np.flatnonzero(descending[1:] != descending[:-1]), len(value) - 1)
    true = np.cumsum(positive[order])[last]
    return last + 1 - true, true


def _thinned(false: Int[Array, " C"], true: Int[Array, " C"]) -> Int[Array, " c"] | slice:
    """Corners near even steps of both axes, linear and logarithmic."""
    if len(false) <= MOST_CORNERS:
        return slice(None)
    missed = (true[-1] - true)[::-1]
    linear_false, linear_true, log_false, log_missed = steps_of_corners(int(false[-1]), int(true[-1]))
    near = [
        np.searchsorted(false, linear_false),
        np.searchsorted(true, linear_true),
        np.searchsorted(false, log_false),
        len(false) - 1 - np.searchsorted(missed, log_missed),
        [0, len(false) - 1],
    ]
    return np.unique(np.clip(np.concatenate(near), 0, len(false) - 1)).astype(np.int64)


def steps_of_corners(n_others: int, n_members: int) -> tuple[Array, Array, Array, Array]:
    """Even steps near which corners are kept.

    Of the false positives, of the true positives, of the logarithm of the false positives, and of that of the members
    that are missed. The corners next to them are at most ``MOST_CORNERS``.
    """
    n = MOST_CORNERS // 4
    return (
        np.linspace(0, n_others, n),
        np.linspace(0, n_members, n),
        np.geomspace(1, n_others, n),
        np.geomspace(1, n_members, n),
    )
