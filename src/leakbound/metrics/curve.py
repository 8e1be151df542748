"""The ROC of scores and the areas under it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from jaxtyping import Float

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
from leakbound.metrics.ranked import RankedScores, rank_of
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
    ranked = rows(scores).ranked
    thresholds = ranked.distinct(MOST_CORNERS)
    if thresholds is None:
        thresholds = _thinned(ranked)
    counts = [(ranked.others.at_least(score), ranked.members.at_least(score)) for score in thresholds[::-1].tolist()]
    false, true = np.array(counts, dtype=np.int64).T
    return Piecewise(false / false[-1], 1 - true / true[-1])  # the last corner calls everybody


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
    ranked = scored.ranked
    if scored.single:
        value, member = scored.value[0], scored.member[0]
        return replace(delong(value[member], value[~member], confidence), interval_over=scored.interval_over)
    n_pairs = int(ranked.n_of_class.min(axis=1).sum())
    return mean_over_models(ranked.areas.auc, n_pairs, confidence, scored.variance_inflation)


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
    precision = scored.ranked.areas.precision[int(inside)]
    positives = scored.n_members if inside else scored.n_others
    if not scored.single:
        return mean_over_models(precision, positives, confidence, scored.variance_inflation)
    exact = clopper_pearson(float(precision[0]) * positives, positives, confidence)
    return replace(exact, interval_over=scored.interval_over)


def mean_over_models(
    value: Float[Array, " R"], n_trials: int, confidence: float, variance_inflation: float
) -> Interval:
    """Cluster t; near 0 and 1, where the values are few and skewed, Korn-Graubard."""
    mean = float(value.mean())
    if n_trials * min(mean, 1 - mean) >= FEWEST_RARE:
        return cluster_t(value, confidence, variance_inflation)
    variance = variance_inflation * float(value.var(ddof=1)) / len(value)
    return korn_graubard(min(mean, 1.0), variance, n_trials, len(value), confidence)


def _thinned(ranked: RankedScores) -> Float[Array, " c"]:
    """Return the thresholds of corners near even steps of both axes, linear and logarithmic."""
    members, others = ranked.members, ranked.others
    n = MOST_CORNERS // 4
    linear_false, linear_true = np.linspace(0, others.n, n), np.linspace(0, members.n, n)
    log_false, log_missed = np.geomspace(1, others.n, n), np.geomspace(1, members.n, n)
    top = float(ranked.ascending[-1])
    thresholds = [top, float(ranked.ascending[0])]
    for scores, steps in ((others, linear_false), (members, linear_true), (others, log_false)):
        # the strictest threshold that calls so many
        thresholds += [scores.highest(math.ceil(step)) for step in steps if step > 0]
    for step in log_missed:
        # the laxest threshold that misses so many members, or the strictest one of all
        missed = members.highest(members.n + 1 - min(math.ceil(step), members.n))
        rank = rank_of(ranked.ascending, missed, "right")
        thresholds.append(top if rank == ranked.n else float(ranked.ascending[rank]))
    return np.unique(thresholds)
