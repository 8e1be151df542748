"""MAST: the loss against a threshold for each point, estimated from reference models.

Axes: B points of a block, M models, R references, T targets, J judged points.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int

from leakscope.attacks.blocks import Block, judge, log_mean_exp, require_references
from leakscope.core.checks import positive
from leakscope.core.types import Signals

Array = np.ndarray


def mast(signals: Signals, *, temperature: float = 1.0) -> Float[Array, "T J"]:
    """The loss against the soft minimum of the losses of models that have not seen the point.

    ``s = (tau - loss) / T`` with ``tau = -T log mean exp(-loss_r / T)`` over the references r without the
    point. A record without such a reference gets the score 0.

    Parameters
    ----------
    signals : Signals
        With ``loss``.
    temperature : float
        T > 0: the models are thought to be drawn with probability proportional to exp(-sum of losses / T).

    Returns
    -------
    array of shape (T, J)
        The log of the odds of membership at even prior odds.

    Raises
    ------
    NotApplicable
        If the loss is missing, or references without the judged points.

    References
    ----------
    sablayrolles2019, eq. 29 and 30; the printed tau lacks the factor -T.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.core.types import Game, Signals
    >>> member = np.array([[True], [False], [False]])
    >>> game = Game("half_split", member, np.array([True]), 1)
    >>> loss = -np.log([[0.8], [0.3], [0.5]])
    >>> float(np.exp(mast(Signals(game, None, {"loss": loss}))[0, 0]).round(6))  # .8 / mean(.3, .5)
    2.0
    """
    temperature = positive("temperature", temperature)
    game, loss = signals.game, signals.array("loss")
    require_references(signals, without=True)

    def score(block: Block) -> Float[Array, "B T"]:
        own = block.targets(loss) / -temperature
        outside = ~block.references(game.member)
        usual = log_mean_exp(block.references(loss) / -temperature, outside, game.leave_one_out)
        return own - np.where(np.isfinite(usual), usual, own)

    return judge(game, loss.dtype, score, game.n_models)


def mast_threshold(signals: Signals) -> Float[Array, "T J"]:
    """The loss against the value that best separates the losses of references with and without the point.

    ``s = tau - loss``; tau lies midway between two neighbouring losses, where most references are on their
    side (members below tau), the lowest such place if there are several. If all losses are the same, tau is
    that loss. A record without references on both sides gets the score 0.

    Parameters
    ----------
    signals : Signals
        With ``loss``.

    Returns
    -------
    array of shape (T, J)
        In nats.

    Raises
    ------
    NotApplicable
        If the loss is missing, or references with and without the same judged point.

    References
    ----------
    sablayrolles2019, Section 6.3 (tau that separates the two distributions best).

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.core.types import Game, Signals
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
        order = np.argsort(losses, axis=1, kind="stable")
        ordered = np.take_along_axis(losses, order, axis=1)
        inside = np.take_along_axis(member, order, axis=1)
        if game.leave_one_out:
            tau = np.empty_like(ordered)
            np.put_along_axis(tau, order, _best_cuts_without_each(ordered, inside), axis=1)
        else:
            tau = _best_cut(ordered, inside)
        n_in = member.sum(axis=1, keepdims=True)
        n_out = member.shape[1] - n_in
        both = (n_in > block.left_out(True)) & (n_out > block.left_out(False))
        return np.where(both, tau - block.targets(loss), 0)

    return judge(game, loss.dtype, score, game.n_models)


_NONE = np.iinfo(np.int64).min // 4  # the key of a gap that is none, with room for sums


def _best_cut(ordered: Float[Array, "B R"], inside: Bool[Array, "B R"]) -> Float[Array, "B 1"]:
    """The middle of the gap that best separates members (below) from non-members."""
    gap = np.argmax(_gap_keys(ordered, inside), axis=1)[:, None]
    return _middle(ordered, gap, gap + 1)


def _best_cuts_without_each(ordered: Float[Array, "B R"], inside: Bool[Array, "B R"]) -> Float[Array, "B R"]:
    """The best cut without the value at position p, for each p.

    Without p the gaps below p - 1 stay as they are, the two gaps around p become one, and above the gaps after
    p there is one value less. So the best gap is the largest of a running maximum from the left, the joined
    gap, and a running maximum from the right.
    """
    n = ordered.shape[1]
    key, position = _gap_keys(ordered, inside), np.arange(n)
    joined, left, right = (np.full(ordered.shape, _NONE) for _ in range(3))
    left[:, 2:] = np.maximum.accumulate(key, axis=1)[:, :-1]
    right[:, :-2] = np.maximum.accumulate(key[:, ::-1], axis=1)[:, ::-1][:, 1:]
    right -= np.where(inside, n, -n)
    parted = np.cumsum(np.where(inside, n, -n), axis=1)[:, :-2] - position[:-2]
    joined[:, 1:-1] = np.where(ordered[:, :-2] < ordered[:, 2:], parted, _NONE)
    best = np.maximum(np.maximum(left, right), joined)
    low = -best % n
    high = np.where(best == joined, low + 2, low + 1)
    none, other = best < _NONE // 2, (position == 0).astype(np.intp)  # all others are equal: take any of them
    return _middle(ordered, np.where(none, other, low), np.where(none, other, high))


def _gap_keys(ordered: Float[Array, "B R"], inside: Bool[Array, "B R"]) -> Int[Array, "B G"]:
    """R (members - non-members below the gap) - number of the gap: the best gap, and the lowest of equals."""
    n = ordered.shape[1]
    parted = np.cumsum(np.where(inside, n, -n), axis=1)[:, :-1] - np.arange(n - 1)
    return np.where(ordered[:, :-1] < ordered[:, 1:], parted, _NONE)


def _middle(ordered: Float[Array, "B R"], low: Int[Array, "B t"], high: Int[Array, "B t"]) -> Float[Array, "B t"]:
    below = np.take_along_axis(ordered, low, axis=1)
    return below + (np.take_along_axis(ordered, high, axis=1) - below) / 2
