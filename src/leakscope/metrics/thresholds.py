"""The threshold of a score that separates best, on the same scores or on those of the other models.

A point is called a member where its score is at least the threshold; +inf calls nobody.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

Array = np.ndarray


def best_threshold(value: Float[Array, " n"], weight: Float[Array, " n"]) -> float:
    """Find the threshold with the largest sum of weights over the points that it calls members.

    Parameters
    ----------
    value : array of shape (n,)
    weight : array of shape (n,)
        Gain from calling a point a member: positive for members, negative for the others.

    Returns
    -------
    float
        Of several best thresholds the largest.

    Examples
    --------
    >>> import numpy as np
    >>> best_threshold(np.array([3.0, 2.0, 1.0]), np.array([1.0, 1.0, -1.0]))
    2.0
    """
    descending, gain, _ = _sweep(value, weight)
    n_called = int(np.argmax(gain))
    return float(descending[n_called - 1]) if n_called else np.inf


def held_out_thresholds(value: Float[Array, "T J"], weight: Float[Array, "T J"]) -> Float[Array, " T"]:
    """For each model the threshold that is best on the scores of all other models together.

    All scores are sorted once. What the others gain is what all gain minus what the model's own points gain;
    the latter is constant between two of its own points, so the best threshold of each such stretch is where
    all gain most. Time O(T J (T + log T J)), memory O(T J).

    Parameters
    ----------
    value : array of shape (T, J)
    weight : array of shape (T, J)
        As in `best_threshold`.

    Returns
    -------
    array of shape (T,)

    Examples
    --------
    >>> import numpy as np
    >>> value, member = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[False, True], [False, True]])
    >>> held_out_thresholds(value, np.where(member, 1.0, -1.0)).tolist()
    [4.0, 2.0]
    """
    descending, gain, order = _sweep(value.ravel(), weight.ravel())
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(1, len(order) + 1)
    threshold = np.empty(len(value))
    for row, ranks in enumerate(rank.reshape(value.shape)):
        # Stretch i begins at the model's i-th highest score, where i of its own points are called.
        own_order = np.argsort(ranks)
        start = np.concatenate([[0], ranks[own_order]])
        own_gain = np.concatenate([[0.0], np.cumsum(weight[row, own_order], dtype=float)])
        # The largest gain of all models in each stretch, less the model's own, which is constant there.
        stretch = int(np.argmax(np.maximum.reduceat(gain, start) - own_gain))
        stop = start[stretch + 1] if stretch + 1 < len(start) else len(gain)
        n_called = start[stretch] + int(np.argmax(gain[start[stretch] : stop]))
        threshold[row] = descending[n_called - 1] if n_called else np.inf
    return threshold


def earlier_thresholds(value: Float[Array, "T J"], weight: Float[Array, "T J"]) -> Float[Array, " T"]:
    """For each model the threshold that is best on models before it, learned anew after 1, 2, 4, 8, ... of them.

    A model's game is then played with a threshold that was fixed before it, so that the games against one
    record are won no more often than independent ones, whatever was learned.

    Parameters
    ----------
    value : array of shape (T, J)
    weight : array of shape (T, J)
        As in `best_threshold`.

    Returns
    -------
    array of shape (T,)
        The first model is called out everywhere: +inf.

    Examples
    --------
    >>> import numpy as np
    >>> value, member = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[False, True], [False, True]])
    >>> earlier_thresholds(value, np.where(member, 1.0, -1.0)).tolist()
    [inf, 2.0]
    """
    threshold, n_earlier = np.full(len(value), np.inf), 1
    while n_earlier < len(value):
        threshold[n_earlier : 2 * n_earlier] = best_threshold(value[:n_earlier].ravel(), weight[:n_earlier].ravel())
        n_earlier *= 2
    return threshold


def accuracy_weights(member: Bool[Array, "R J"], prior: float) -> Float[Array, "R J"]:
    """Weights whose sum over the called points, plus 1 - prior, is ``prior tpr + (1 - prior)(1 - fpr)``.

    Rates are those of each row, so that every row counts the same.
    """
    n_in = member.sum(axis=1, keepdims=True)
    return np.where(member, prior / n_in, -(1 - prior) / (member.shape[1] - n_in))


def _sweep(value: Float[Array, " n"], weight: Float[Array, " n"]) -> tuple[Array, Array, Array]:
    """Scores in descending order, the gain of calling the first k of them (-inf inside a tie), the order."""
    order = np.argsort(value)[::-1]
    descending = value[order]
    gain = np.concatenate([[0.0], np.cumsum(weight[order], dtype=float)])
    # A threshold calls all equal scores or none: a k that divides a tie is never the best one.
    gain[1:-1][descending[1:] == descending[:-1]] = -np.inf
    return descending, gain, order
