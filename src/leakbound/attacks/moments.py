"""Means and standard deviations over the models that were (not) trained on a record, for attacks of your own.

Under leave-one-out a target is among its own references, on the side of its own membership, and has to be left out; a
score that forgets this tells who was in from any signal. Of the references on one side of a point let n be the number,
S the sum and Q the sum of squares of the values v. Without the own value v of a target they are n - 1, S - v, Q - v^2.

Axes: B points of a block, R references, T targets, J target points.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Shaped

from leakbound.attacks.blocks import Block, require_references, score_points
from leakbound.core.types import Signals

Array = np.ndarray
_LEAST = 1e-3  # least standard deviation at a point, as a fraction of the typical one of the target
_STEPS = 2.0**36  # results are rounded to this fraction of the spread at a point


class Moments(NamedTuple):
    """Mean and standard deviation over reference models, for each target and target point.

    Parameters
    ----------
    mean, std : array of shape (T, J)
        In the unit of the signal.

    Examples
    --------
    >>> mean, std = Moments(np.array([[1.0]]), np.array([[0.5]]))
    >>> float(mean[0, 0] / std[0, 0])
    2.0
    """

    mean: Float[Array, "T J"]
    std: Float[Array, "T J"]


def out_moments(signals: Signals, signal: str | Shaped[Array, "M N"]) -> Moments:
    """Compute mean and standard deviation of a signal over the models that were not trained on the record.

    The target itself is never one of these models.

    Parameters
    ----------
    signals : Signals
    signal : str or array of shape (M, N)
        The name of a signal by model and point, or an array that was computed from signals.

    Returns
    -------
    Moments
        ``mean`` and ``std``, arrays of shape (T, J), std with the divisor n - 1. Where there is no such model, the mean
        is the target's own value: the distance 0 says nothing. Where there are fewer than two, std is the typical one
        of the target, the root of its mean variance over the target points; it is never less than a thousandth of
        that. It is 1 if the models agree at all points.

    Raises
    ------
    NotApplicable
        If the signal is missing, there are fewer than two references, or all were trained on all target points.

    Examples
    --------
    >>> import numpy as np
    >>> import leakbound as ls
    >>> game = ls.Game("signals", np.array([[True], [False], [False], [True]]), np.array([True]), 1)
    >>> signals = ls.Signals(game, None, {"loss": np.array([[0.2], [1.0], [2.0], [0.1]])})
    >>> mean, std = ls.attacks.out_moments(signals, "loss")
    >>> round(float(mean[0, 0]), 4), round(float(std[0, 0]), 4)
    (1.5, 0.7071)
    """
    return _moments(signals, signal, inside=False)


def in_moments(signals: Signals, signal: str | Shaped[Array, "M N"]) -> Moments:
    """Compute mean and standard deviation of a signal over the other models that were trained on the record.

    Parameters
    ----------
    signals : Signals
    signal : str or array of shape (M, N)
        As in `out_moments`.

    Returns
    -------
    Moments
        As in `out_moments`.

    Raises
    ------
    NotApplicable
        If the signal is missing, there are fewer than two references, or none was trained on a target point.

    Examples
    --------
    >>> import numpy as np
    >>> import leakbound as ls
    >>> game = ls.Game("signals", np.array([[True], [False], [True], [True]]), np.array([True]), 1)
    >>> signals = ls.Signals(game, None, {"loss": np.array([[0.2], [1.0], [2.0], [0.1]])})
    >>> round(float(ls.attacks.in_moments(signals, "loss").mean[0, 0]), 4)
    1.05
    """
    return _moments(signals, signal, inside=True)


def _moments(signals: Signals, signal: str | Shaped[Array, "M N"], inside: bool) -> Moments:
    """Compute the moments over the references on one side of each target point."""
    game = signals.game
    values = signals.array(signal) if isinstance(signal, str) else signal
    if values.shape != game.member.shape:
        name = f"signal {signal!r}" if isinstance(signal, str) else "signal"
        raise ValueError(
            f"{name} has shape {values.shape}; moments need one number a model and point, {game.member.shape}"
        )
    require_references(signals, without=not inside, including=inside)

    def mean(block: Block) -> Float[Array, "B T"]:
        return _Sums(block, values, inside).mean()

    def variance(block: Block) -> Float[Array, "B T"]:
        return _Sums(block, values, inside).variance()

    means = score_points(game, values, mean, game.n_models, np.float64)
    variances = score_points(game, values, variance, game.n_models, np.float64)
    known = variances >= 0  # of a point with fewer than two such references it is -1
    n_known = np.maximum(known.sum(axis=1, keepdims=True), 1)
    typical = np.where(known, variances, 0).sum(axis=1, keepdims=True) / n_known
    variances = np.where(known, np.maximum(variances, _LEAST**2 * typical), typical)
    variances = np.where(typical > 0, variances, 1.0)  # the models agree everywhere: any unit will do
    return Moments(means, np.sqrt(variances))


class _Sums:
    """Sums over the references on one side of the points of a block, without each target's own row.

    A number that is the same with and without a model must not differ in its last digit, which would tell whether the
    model was left out: so the values are measured from a centre that does not depend on who was in, and what is
    computed from the sums is rounded.
    """

    def __init__(self, block: Block, values: Shaped[Array, "M N"], inside: bool) -> None:
        references = block.references(values).astype(np.float64)
        member = block.references(block.game.member)
        side: Bool[Array, "B R"] = member if inside else ~member
        # first from one of the values, so that equal values are exactly 0, then from the mean
        self.centre = references[:, :1].copy()
        references -= self.centre
        middle = references.mean(axis=1, keepdims=True)
        references -= middle
        self.given = block.targets(values).astype(np.float64)
        self.own = self.given - self.centre - middle
        self.centre += middle
        spread = np.abs(references).max(axis=1, keepdims=True)
        self.unit = np.where(spread > 0, spread, 1.0) / _STEPS
        self.spread = spread
        self.left_out = block.left_out(inside)
        references *= side
        self.n = side.sum(axis=1, keepdims=True) - self.left_out
        self.sum = references.sum(axis=1, keepdims=True) - self.left_out * self.own
        self.squares = np.vecdot(references, references)[:, None] - self.left_out * self.own**2

    def mean(self) -> Float[Array, "B T"]:
        """Compute the mean for each target; its own value where there is no reference."""
        mean = self.sum / np.maximum(self.n, 1)
        rounded = np.round(mean / self.unit) * self.unit
        return np.where(self.n > 0, rounded + self.centre, self.given)

    def variance(self) -> Float[Array, "B T"]:
        """Compute the variance for each target; -1 where there are fewer than two references."""
        variance = (self.squares - self.sum**2 / np.maximum(self.n, 1)) / np.maximum(self.n - 1, 1)
        unit = self.unit * np.where(self.spread > 0, self.spread, 1.0)
        rounded = np.maximum(np.round(variance / unit) * unit, 0.0)
        return np.where(self.n > 1, rounded, -1.0)
