"""MAST: the loss against a threshold for each point, estimated from reference models.

Axes: B points of a block, M models, R references, T targets, J target points.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int

from leakbound.attacks.blocks import Block, log_mean_exp, require_references, score_points
from leakbound.attacks.scores import one_target_at_a_time, score_of
from leakbound.core.checks import positive
from leakbound.core.types import Signals

Array = np.ndarray


def mast(signals: Signals, *, temperature: float = 1.0, signal: str | None = None) -> Float[Array, "T J"]:
    """Compare the loss with the soft minimum of the losses of models without the point.

    ``s = (tau - loss) / T`` with ``tau = -T log mean exp(-loss_r / T)`` over the references r without the
    point. A record without such a reference gets the score 0. Of a score, the one that ``signal`` names, the loss is
    minus the score over its pooled standard deviation in these references.

    Source: sablayrolles2019, eq. 29 and 30; the printed tau lacks the factor -T.

    >>> from leakbound.core.types import Game
    >>> member = np.array([[True], [False], [False]])
    >>> game = Game("half_split", member, np.array([True]), 1)
    >>> loss = -np.log([[0.8], [0.3], [0.5]])
    >>> float(np.exp(mast(Signals(game, None, {"loss": loss}))[0, 0]).round(6))  # .8 / mean(.3, .5)
    2.0
    """
    # the model is taken to be a draw with probability proportional to exp(-sum of losses / T)
    temperature = positive("temperature", temperature)
    name = score_of(signals, signal, ("loss",))
    signals.array(name or "loss")
    require_references(signals, without=True)
    if name:
        return one_target_at_a_time(signals, name, lambda alone: _against_soft_minimum(alone, temperature))
    return _against_soft_minimum(signals, temperature)


def _against_soft_minimum(signals: Signals, temperature: float) -> Float[Array, "T J"]:
    """Compute `mast` of the losses."""
    game, loss = signals.game, signals.array("loss")

    def score(block: Block) -> Float[Array, "B T"]:
        own = block.targets(loss) / -temperature
        outside = ~block.references(game.member)
        minus_tau = log_mean_exp(block.references(loss) / -temperature, outside, game.leave_one_out)
        return own - np.where(np.isfinite(minus_tau), minus_tau, own)

    return score_points(game, loss, score, game.n_models)


def mast_threshold(signals: Signals) -> Float[Array, "T J"]:
    """Compare the loss with the value that best separates the losses of references with and without the point.

    ``s = tau - loss``; tau is the middle of the gap between two neighbouring losses that classifies most references
    correctly (members below tau), the lowest such gap if there are several. If all losses are equal, tau is that loss.
    A record without references both with and without it gets the score 0.

    Source: sablayrolles2019, Section 6.3 (tau that separates the two distributions best).

    >>> from leakbound.core.types import Game
    >>> member = np.array([[True], [True], [True], [False], [False]])
    >>> game = Game("half_split", member, np.array([True]), 1)
    >>> loss = np.array([[0.5], [0.1], [0.3], [0.9], [1.5]])
    >>> float(mast_threshold(Signals(game, None, {"loss": loss}))[0, 0].round(6))  # (.3 + .9) / 2 - .5
    0.1
    """
    game, loss = signals.game, signals.array("loss")
    require_references(signals, both=True)

    def score(block: Block) -> Float[Array, "B T"]:
        losses, member = block.references(loss), block.references(game.member)
        # losses in ascending order, and which of them are of models with the point
        order = np.argsort(losses, axis=1, kind="stable")
        ordered = np.take_along_axis(losses, order, axis=1)
        inside = np.take_along_axis(member, order, axis=1)
        # each model is attacked with all others as references: a threshold for each
        if game.leave_one_out:
            tau = np.empty_like(ordered)
            np.put_along_axis(tau, order, _best_thresholds_without_each(ordered, inside), axis=1)
        else:
            tau = _best_threshold(ordered, inside)
        n_in = member.sum(axis=1, keepdims=True)
        n_out = member.shape[1] - n_in
        has_both = (n_in > block.left_out(True)) & (n_out > block.left_out(False))
        return np.where(has_both, tau - block.targets(loss), 0)

    return score_points(game, loss, score, game.n_models)


_NO_GAP = np.iinfo(np.int64).min // 4  # less than any key, and sums with it do not overflow


def _best_threshold(ordered: Float[Array, "B R"], inside: Bool[Array, "B R"]) -> Float[Array, "B 1"]:
    """Return the middle of the gap that best separates members (below) from non-members."""
    gap = np.argmax(_gap_keys(ordered, inside), axis=1)[:, None]
    return _middle(ordered, gap, gap + 1)


def _best_thresholds_without_each(ordered: Float[Array, "B R"], inside: Bool[Array, "B R"]) -> Float[Array, "B R"]:
    """Return the best threshold without the value at position p, for each p.

    Gap g lies between the values at g and g + 1. Without p the gaps below p - 1 keep their keys; the gaps p - 1 and p
    become one; the keys of the gaps above p lose the contribution of p. So the best gap is the largest of a running
    maximum from the left, the joined gap, and a running maximum from the right: R steps instead of R^2.
    """
    n = ordered.shape[1]
    position = np.arange(n)
    contribution = np.where(inside, n, -n)
    key = _gap_keys(ordered, inside)
    joined, left, right = (np.full(ordered.shape, _NO_GAP) for _ in range(3))
    left[:, 2:] = np.maximum.accumulate(key, axis=1)[:, :-1]
    right[:, :-2] = np.maximum.accumulate(key[:, ::-1], axis=1)[:, ::-1][:, 1:]
    right -= contribution
    # The joined gap has the members below p on its left, and the number p - 1.
    joined_key = np.cumsum(contribution, axis=1)[:, :-2] - position[:-2]
    joined[:, 1:-1] = np.where(ordered[:, :-2] < ordered[:, 2:], joined_key, _NO_GAP)
    best = np.maximum(np.maximum(left, right), joined)
    low = -best % n  # a key is a multiple of n less the number of its gap
    high = np.where(best == joined, low + 2, low + 1)
    all_equal = best < _NO_GAP // 2  # the other values: take any of them
    other = (position == 0).astype(np.intp)
    return _middle(ordered, np.where(all_equal, other, low), np.where(all_equal, other, high))


def _gap_keys(ordered: Float[Array, "B R"], inside: Bool[Array, "B R"]) -> Int[Array, "B G"]:
    """Compute ``R (members - non-members below the gap) - index of the gap``, largest for the best and lowest gap."""
    n = ordered.shape[1]
    key = np.cumsum(np.where(inside, n, -n), axis=1)[:, :-1] - np.arange(n - 1)
    return np.where(ordered[:, :-1] < ordered[:, 1:], key, _NO_GAP)


def _middle(ordered: Float[Array, "B R"], low: Int[Array, "B t"], high: Int[Array, "B t"]) -> Float[Array, "B t"]:
    below = np.take_along_axis(ordered, low, axis=1)
    return below + (np.take_along_axis(ordered, high, axis=1) - below) / 2
