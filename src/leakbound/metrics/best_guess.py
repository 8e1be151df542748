"""Accuracy of the best guess, with a threshold that is never set on the points it judges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float, Int

from leakbound.core.checks import probability
from leakbound.core.findings import Term
from leakbound.core.intervals import Interval, clopper_pearson_lower, clopper_pearson_upper, korn_graubard
from leakbound.core.seeds import stream
from leakbound.core.types import NotApplicable, Scores
from leakbound.metrics.rows import Rows, rows
from leakbound.metrics.spread import Shifts
from leakbound.metrics.thresholds import accuracy_weights, best_threshold

Array = np.ndarray


def accuracy(scores: Scores, prior: float = 0.5, confidence: float = 0.95) -> Interval:
    """Accuracy of the guess "member where the score is at least a threshold" at a prior.

    ``max over thresholds of prior tpr + (1 - prior)(1 - fpr)``; calling everybody or nobody is allowed.
    The best threshold of one half of the models is tried on the other half, each way: that is the value,
    and the lower limit belongs to it. The upper limit is that of the best threshold in hindsight, so that
    the interval covers the maximum. Over models the limits are those of Korn and Graubard, with the variance
    between models; the lower one falls further where a few models may not show how far models shift their
    scores (see `_if_models_differed_more`). A single row is halved by points, and its limits come from
    Clopper-Pearson limits of both rates by the square-and-add method (Newcombe 1998, method 10).

    The target over models: the accuracy of one threshold for all models, averaged over the population of models
    that the recipe makes, not over these models.
    Source: delgrosso2021, definition 2.

    Parameters
    ----------
    scores : Scores
        Value and truth of shape (T, J).
    prior : float
        Fraction of members in (0, 1), 1/2 unless given: the accuracy is then balanced, the mean of that on members
        and that on others, and 1/2 without a leak however many members there are. Its baseline, the accuracy of a
        guess that looks at nothing, is max(prior, 1 - prior).
    confidence : float

    Returns
    -------
    Interval
        An attacker gets at least this: report it as a lower bound.

    Raises
    ------
    NotApplicable
        If no row has both classes, or a single row has fewer than 2 of one.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.core.types import Scores
    >>> member = np.tile(np.arange(100) % 2 == 0, (8, 1))
    >>> noise = np.random.default_rng(0).normal(size=member.shape)
    >>> round(accuracy(Scores("example", noise + 2 * member, member)).value, 3)
    0.826
    """
    return accuracies(scores, prior, (confidence,))[0]


def accuracies(scores: Scores, prior: float, confidences: Sequence[float]) -> list[Interval]:
    """Compute `accuracy` at several confidences; the thresholds are the same at all of them."""
    prior = probability("prior", prior, open_ends=True)
    scored = rows(scores)
    over = _over_points if scored.single else _over_models
    return over(scored, prior, confidences)


def advantage(scores: Scores, confidence: float = 0.95) -> Interval:
    """Largest TPR - FPR: twice the accuracy at prior 1/2, minus 1.

    Source: azize2024, eq. 17 to 21.

    Parameters
    ----------
    scores : Scores
    confidence : float

    Returns
    -------
    Interval
        See `accuracy`; on scores without information the value varies around 0.

    Raises
    ------
    NotApplicable
        As `accuracy`.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.core.types import Scores
    >>> member = np.arange(200) % 2 == 0
    >>> advantage(Scores("example", member[None, :] * 1.0, member[None, :])).value
    1.0
    """
    return advantage_of(accuracy(scores, 0.5, confidence))


def advantage_of(half: Interval) -> Interval:
    """Map the accuracy at prior 1/2 to TPR - FPR."""
    return replace(half, value=2 * half.value - 1, low=2 * half.low - 1, high=2 * half.high - 1)


def _over_models(scored: Rows, prior: float, confidences: Sequence[float]) -> list[Interval]:
    """Try the best threshold of each half of the models on the other half; one value a model."""
    ranked, n_of_class = scored.ranked, scored.ranked.n_of_class
    weight = np.array([-(1 - prior), prior]) / n_of_class
    half = halves(np.zeros(ranked.n_models, dtype=bool))
    # Cross-fitting: a threshold is never evaluated on the models that it was chosen on.
    first, second = (ranked.best_threshold(np.where(side[:, None], weight, 0.0)) for side in (half, ~half))
    threshold = ranked.best_threshold(weight)

    def accuracy_at(thresholds: Float[Array, " R"]) -> Float[Array, " R"]:
        return weighted_accuracy(ranked.called_at(thresholds), n_of_class, prior)

    tried = accuracy_at(np.where(half, second, first))
    hindsight = accuracy_at(np.full(ranked.n_models, threshold))
    n_trials = effective_trials(n_of_class[:, 1], n_of_class[:, 0], prior)
    intervals = []
    for confidence in confidences:
        differed = _if_models_differed_more(scored.shifts, weight, prior, confidence)
        inflation = scored.variance_inflation
        intervals.append(over_models(tried, hindsight, threshold, differed, n_trials, inflation, confidence))
    return intervals


def weighted_accuracy(n_called: Int[Array, "R 2"], n_of_class: Int[Array, "R 2"], prior: float) -> Float[Array, " R"]:
    """Compute ``prior tpr + (1 - prior)(1 - fpr)`` of each model from its others and members, called and in all."""
    rate = n_called / n_of_class
    return prior * rate[:, 1] + (1 - prior) * (1 - rate[:, 0])


def over_models(
    tried_accuracy: Float[Array, " R"],
    hindsight_accuracy: Float[Array, " R"],
    threshold: float,
    if_models_differed_more: float,
    n_trials: int,
    variance_inflation: float,
    confidence: float,
) -> Interval:
    """Compute the interval of the accuracy from that of each model."""

    def limits(model_accuracy: Float[Array, " R"]) -> Interval:
        mean = float(np.clip(model_accuracy.mean(), 0, 1))
        variance = variance_inflation * float(model_accuracy.var(ddof=1)) / len(model_accuracy)
        return korn_graubard(mean, variance, n_trials, len(model_accuracy), confidence)

    tried = limits(tried_accuracy)
    # The best threshold of these very scores is too good on average, so its upper limit covers the maximum.
    hindsight = limits(hindsight_accuracy)
    lost = max(hindsight.value - if_models_differed_more, 0.0)
    return replace(
        tried,
        low=max(tried.value - math.hypot(tried.value - tried.low, lost), 0.0),
        high=max(hindsight.high, tried.value),
        method=(Term("threshold_of_other_models"), *tried.method),
        detail={"threshold": threshold, "in_hindsight": hindsight.value},
    )


def effective_trials(n_in: Int[Array, " R"], n_out: Int[Array, " R"], prior: float) -> int:
    """Count the independent trials whose mean has the least variance that the weighted accuracy may have.

    These are all scores if members and others are as many as the prior says, and fewer if one of them is rare:
    ``1/mean_r(prior^2/n_in + (1 - prior)^2/n_out)`` for each row.
    """
    variance = prior**2 / n_in + (1 - prior) ** 2 / n_out
    return max(2, math.floor(len(n_in) / float(variance.mean()) + 1e-9))


def _if_models_differed_more(shifts: Shifts, weight: Float[Array, "R 2"], prior: float, confidence: float) -> float:
    """Accuracy of the best threshold if models differed as much as their true spread may exceed the measured one.

    One threshold serves models worse, the further they shift their scores. Where few models were drawn, their spread
    is often too small, and then the accuracy is too large and varies too little from model to model: over 4 to 8
    models with a spread near the distance of the classes, Korn and Graubard's interval alone covers in .80 to .90 of
    audits instead of .95. So the measured shifts are made larger by the factor that gives the upper limit of their
    standard deviation; what accuracy falls by is a second, independent error, which the caller joins by square and add.
    """
    gained = shifts.largest_gain(shifts.dilation(1 - confidence), weight)
    return 1 - prior + gained / len(weight)


def _over_points(scored: Rows, prior: float, confidences: Sequence[float]) -> list[Interval]:
    """Try the best threshold of each half of the points on the other half."""
    value, member = scored.value[0], scored.member[0]
    n = np.array([scored.n_members, scored.n_others])
    if n.min() < 2:
        raise NotApplicable("few_members")
    weight = accuracy_weights(scored.member, prior)[0]
    half = halves(member)
    first, second = (best_threshold(value[side], weight[side]) for side in (half, ~half))
    part = np.array([prior, 1 - prior])
    right = _right(value, member, np.where(half, second, first))
    threshold = best_threshold(value, weight)
    hindsight = _right(value, member, np.full(len(value), threshold))
    middle, top = float(part @ (right / n)), float(part @ (hindsight / n))
    method = (Term("threshold_of_other_half"), Term("clopper_pearson_joined"))
    detail = {"threshold": threshold, "in_hindsight": top}
    intervals = []
    for confidence in confidences:
        tail = (1 - confidence) / 2
        # Limits of both rates at half of the tail each, weighted by prior and 1 - prior, joined by square and add.
        down = part * (right / n - clopper_pearson_lower(right, n, tail))
        up = part * (clopper_pearson_upper(hindsight, n, tail) - hindsight / n)
        low, high = max(middle - math.hypot(*down), 0.0), max(min(top + math.hypot(*up), 1.0), middle)
        intervals.append(Interval(middle, low, high, confidence, scored.interval_over, method, detail))
    return intervals


def halves(label: Bool[Array, " n"]) -> Bool[Array, " n"]:
    """Choose a fixed pseudo-random half, with half of each label in it."""
    order = stream(0, "halves").permutation(len(label))
    half = np.zeros(len(label), dtype=bool)
    for side in (True, False):
        half[order[label[order] == side][::2]] = True
    return half


def _right(value: Float[Array, " n"], member: Bool[Array, " n"], threshold: Float[Array, " n"]) -> Array:
    """Members called members, and non-members called non-members."""
    called = value >= threshold
    return np.array([np.count_nonzero(called & member), np.count_nonzero(~called & ~member)])
