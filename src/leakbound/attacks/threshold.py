"""Attacks without reference models: a statistic of the model's output, one threshold for all points.

Axes: T targets, J target points, K classes.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from leakbound.attacks.blocks import empty_scores, score_points
from leakbound.attacks.scores import telling
from leakbound.core.checks import one_of
from leakbound.core.signals import SCORES
from leakbound.core.types import Signals

Array = np.ndarray


def gap(signals: Signals) -> Float[Array, "T J"]:
    """Call a point a member if the model classifies it correctly (the 0-1 attack).

    Its advantage is the generalisation gap of the accuracy.

    Source: Yeom, Giacomelli, Fredrikson & Jha (2018), Adversary 1; sablayrolles2019, Section 2.

    >>> from leakbound.core.types import Game
    >>> game = Game("one_model", np.array([[True, False]]), np.array([True, True]), 1)
    >>> gap(Signals(game, None, {"correct": np.array([[1.0, 0.0]])})).tolist()
    [[1.0, 0.0]]
    """
    return signals.targets("correct")


def confidence(signals: Signals) -> Float[Array, "T J"]:
    """Score by the model's largest class probability, whatever the true label is (the likelihood attack).

    Source: delgrosso2021, Algorithm 2.

    >>> from leakbound.core.types import Game
    >>> game = Game("one_model", np.array([[True]]), np.array([True]), 1)
    >>> signals = Signals(game, None, {"log_prob": np.log([[[0.2, 0.7, 0.1]]])}, labels=np.array([0]))
    >>> float(np.exp(confidence(signals)[0, 0]).round(6))
    0.7
    """
    log_prob = signals.array("log_prob")
    scores = empty_scores(signals.game, log_prob, log_prob.dtype)
    for block in signals.blocks():
        scores[:, block] = signals.targets("log_prob", block).max(axis=2)
    return scores


def loss(signals: Signals) -> Float[Array, "T J"]:
    """Score by minus the loss, with one threshold for all points (MALT).

    Source: delgrosso2021, sections 4.2 and 4.3.

    Source: Yeom, Giacomelli, Fredrikson & Jha (2018), Adversary 2; sablayrolles2019, eq. 31 with tau = 0.

    >>> from leakbound.core.types import Game
    >>> game = Game("one_model", np.array([[True, False]]), np.array([True, True]), 1)
    >>> loss(Signals(game, None, {"loss": np.array([[0.1, 2.0]])})).tolist()
    [[-0.1, -2.0]]
    """
    values = signals.array("loss")
    return score_points(signals.game, values, lambda block: -block.targets(values), signals.game.n_targets)


def given_score(signals: Signals, signal: str = "score") -> Float[Array, "T J"]:
    """Score by a signal that is a score itself, with one threshold for all points.

    >>> from leakbound.core.types import Game
    >>> game = Game("one_model", np.array([[True, False]]), np.array([True, True]), 1)
    >>> given_score(Signals(game, None, {"nearest": np.array([[0.0, -0.5]])}), signal="nearest").tolist()
    [[0.0, -0.5]]
    """
    values = telling(signals, one_of("signal", signal, SCORES))
    return score_points(signals.game, values, lambda block: block.targets(values), signals.game.n_targets)


def modified_entropy(signals: Signals) -> Float[Array, "T J"]:
    """Score by minus the modified entropy, which is small for confident correct predictions and large for wrong ones.

    ``(1 - p_y) log p_y + sum over i != y of p_i log(1 - p_i)``, p_y the probability of the true label.
    Source: delgrosso2021, eq. 35.

    Source: Song & Mittal (2021), the metric Mentr.

    >>> from leakbound.core.types import Game
    >>> game = Game("one_model", np.array([[True]]), np.array([True]), 1)
    >>> signals = Signals(game, None, {"log_prob": np.log([[[0.5, 0.5]]])}, labels=np.array([1]))
    >>> float(modified_entropy(signals)[0, 0].round(6))
    -0.693147
    """
    log_prob = signals.array("log_prob")
    scores = empty_scores(signals.game, log_prob, log_prob.dtype)
    for block in signals.blocks(max(1, (1 << 18) // (signals.game.n_targets * log_prob.shape[2]))):
        log_p = signals.targets("log_prob", block).astype(np.float64)
        p = np.exp(log_p)
        log_rest = _log_complement(log_p, p)
        true_class = signals.true_class(block)[..., None]
        log_p_true = np.take_along_axis(log_p, true_class, axis=2)[..., 0]
        log_rest_true = np.take_along_axis(log_rest, true_class, axis=2)[..., 0]
        other_classes = p * log_rest
        np.put_along_axis(other_classes, true_class, 0.0, axis=2)
        # 1 - p_y through its logarithm: near p_y = 1 the difference itself has no digits
        scores[:, block] = np.exp(log_rest_true) * log_p_true + other_classes.sum(axis=2)
    return scores


def _log_complement(log_p: Float[Array, "T b K"], p: Float[Array, "T b K"]) -> Float[Array, "T b K"]:
    """Compute log(1 - p) of each class; for a class with p > 1/2 from the sum of the other probabilities.

    So it is finite wherever the log-probabilities are, also where a probability is rounded to 1.
    """
    result = np.log1p(-np.minimum(p, 0.5))
    where = np.nonzero(p > 0.5)
    others = log_p[where[:-1]]
    others[np.arange(len(others)), where[-1]] = -np.inf
    top = others.max(axis=1, keepdims=True)
    result[where] = top[:, 0] + np.log(np.exp(others - top).sum(axis=1))
    return result
