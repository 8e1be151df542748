"""The threshold of a score that separates best, on the same scores or on those of the other models.

A point is called a member where its score is at least the threshold; +inf calls nobody.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from jaxtyping import Bool, Float

from leakbound.core.checks import one_of, probability
from leakbound.core.types import Scores
from leakbound.metrics.ranked import ROUNDING, RankedScores

Array = np.ndarray


def best_threshold(value: Float[Array, " n"], weight: Float[Array, " n"]) -> float:
    """Find the threshold with the largest sum of weights over the points that it calls members.

    >>> best_threshold(np.array([3.0, 2.0, 1.0]), np.array([1.0, 1.0, -1.0]))
    2.0
    """
    order = np.argsort(value)[::-1]
    descending = value[order]
    gain = np.concatenate([[0.0], np.cumsum(weight[order], dtype=float)])
    # A threshold calls all equal scores or none: a number of calls that divides a tie is never the best one.
    gain[1:-1][descending[1:] == descending[:-1]] = -np.inf
    # sums of the same weights in another order are equal to rounding; of equal ones the largest threshold
    rounding = ROUNDING * float(np.abs(weight).sum())
    n_called = int(np.argmax(gain >= gain.max() - rounding))
    return float(descending[n_called - 1]) if n_called else np.inf


def hindsight_thresholds(
    scores: Scores, of: Literal["all", "model", "record"] = "all", prior: float = 0.5
) -> Float[Array, "t j"]:
    """Find the thresholds with the largest accuracy on these very scores: one, one a model, or one a record.

    The rates are those of all scores that have a threshold together, of a model's or of a record's; where each model
    has as many members as the others, and each record is as often in, the accuracy is that of `accuracy_at`. Papers
    report it. On new models it is smaller, the more so the more thresholds there are; `leakbound.metrics.accuracy`
    never sets a threshold on the scores that it evaluates.

    Parameters
    ----------
    scores : Scores
        Value and truth of shape (T, J).
    of : {"all", "model", "record"}
        Which scores have a threshold together.
    prior : float
        Fraction of members, in (0, 1).

    Returns
    -------
    array of shape (1, 1), (T, 1) or (1, J)
        +inf calls nobody. With members or others alone, the best guess is to call everybody or nobody.

    Raises
    ------
    ValueError
        For an unknown ``of``, a prior out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.core.types import Scores
    >>> scores = Scores("any", np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[False, True], [False, True]]))
    >>> hindsight_thresholds(scores, "model").tolist()
    [[2.0], [4.0]]
    """
    one_of("of", of, ("all", "model", "record"))
    value, member = scores.value, scores.member
    if of == "all":
        value, member = value.reshape(1, -1), member.reshape(1, -1)
    elif of == "record":
        value, member = value.T, member.T
    weight = accuracy_weights(member, probability("prior", prior, open_ends=True))
    best = np.array([best_threshold(*row) for row in zip(value, weight, strict=True)])
    return best[None, :] if of == "record" else best[:, None]


def accuracy_at(scores: Scores, threshold: Float[Array, "..."] | float, prior: float = 0.5) -> Float[Array, " T"]:
    """Compute the accuracy on each model of the guess "member where the score is at least a threshold".

    Parameters
    ----------
    scores : Scores
        Value and truth of shape (T, J).
    threshold : float or array that broadcasts to (T, J)
        As `hindsight_thresholds` gives them, or fixed beforehand.
    prior : float
        Fraction of members, in (0, 1): ``prior tpr + (1 - prior)(1 - fpr)``.

    Returns
    -------
    array of shape (T,)
        NaN for a model with members or others alone.

    Raises
    ------
    ValueError
        For a prior out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.core.types import Scores
    >>> scores = Scores("any", np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[False, True], [False, True]]))
    >>> accuracy_at(scores, 2.0).tolist(), accuracy_at(scores, hindsight_thresholds(scores, "record")).tolist()
    ([1.0, 0.5], [1.0, 1.0])
    """
    prior = probability("prior", prior, open_ends=True)
    called = scores.value >= threshold
    with np.errstate(invalid="ignore"):
        tpr = (called & scores.member).sum(axis=1) / scores.member.sum(axis=1)
        fpr = (called & ~scores.member).sum(axis=1) / (~scores.member).sum(axis=1)
    return prior * tpr + (1 - prior) * (1 - fpr)


def earlier_thresholds(value: Float[Array, "T J"], member: Bool[Array, "T J"]) -> Float[Array, " T"]:
    """For each model the threshold that is best on models before it, learned anew after 1, 2, 4, 8, ... of them.

    A model's game is then played with a threshold that was fixed before it, so that the games against one
    record are won no more often than independent ones, whatever was learned.

    >>> value, member = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[False, True], [False, True]])
    >>> earlier_thresholds(value, member).tolist()
    [inf, 2.0]
    """
    threshold, n_earlier = np.full(len(value), np.inf), 1
    n_learning = 1 << max((len(value) - 1).bit_length() - 1, 0)  # the largest of 1, 2, 4, ... below the models
    scores = RankedScores(value[:n_learning], member[:n_learning])
    sign = np.tile([-1.0, 1.0], (n_learning, 1))
    while n_earlier < len(value):
        is_earlier = np.arange(n_learning)[:, None] < n_earlier
        threshold[n_earlier:] = scores.best_threshold(np.where(is_earlier, sign, 0.0))
        n_earlier *= 2
    return threshold


def accuracy_weights(member: Bool[Array, "R J"], prior: float) -> Float[Array, "R J"]:
    """Weights whose sum over the called points, plus 1 - prior, is ``prior tpr + (1 - prior)(1 - fpr)``.

    Rates are those of each row, so that every row counts the same.
    """
    n_in = member.sum(axis=1, keepdims=True)
    n_out = member.shape[1] - n_in
    return np.where(member, prior / np.maximum(n_in, 1), -(1 - prior) / np.maximum(n_out, 1))
