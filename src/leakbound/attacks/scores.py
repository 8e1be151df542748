"""Scores that a release gives in place of predictions, in units in which attacks with references can read them.

A score has no unit, and no attack may depend on one. LiRA reads it around the mean of all models at each point, which
is the same for every membership. MAST and RMIA take exponentials: for each target they read

    (score - mean of the references at the point) / s,      s^2 = sum (score_r - m)^2 / sum (n - 1),

s the pooled standard deviation of the references without the record: r runs over them, n is their number at a point,
m their mean, and both sums are over the target's points. Nothing of the target itself is in it.

Axes: M models, N points, R references, T targets, J target points.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import ndtri
from scipy.stats import rankdata

from leakbound.attacks.balance import one_target
from leakbound.core.checks import one_of
from leakbound.core.signals import QUERY_SIGNALS, SCORES
from leakbound.core.types import NotApplicable, Signals

Array = np.ndarray
_DISTANCES = ("nearest", "nearest5")  # far from Gaussian over models; their ranks within a model tell more


def score_of(signals: Signals, signal: str | None, usual: tuple[str, ...]) -> str:
    """Name the score that an attack reads; empty where it reads one of its usual signals.

    Unless it is told which, it reads ``score`` where none of its usual signals is there.
    """
    if signal is not None:
        return one_of("signal", signal, SCORES)
    usual_is_there = any(QUERY_SIGNALS.get(name, name) in usual for name in signals.arrays)
    return "score" if "score" in signals.arrays and not usual_is_there else ""


def telling(signals: Signals, name: str) -> Float[Array, "M N"]:
    """Return a score, unless it is the same at every record, or in every model: no attack is weak by that."""
    values = signals.array(name)
    if name != "score" or values.shape[1] < 2:
        return values
    if (values == values[:, :1]).all():
        raise NotApplicable("constant_score")
    if len(values) > 1 and (values == values[:1]).all():
        raise NotApplicable("score_of_no_model")
    return values


def as_phi(signals: Signals, name: str) -> Signals:
    """Return a score as log-odds, which LiRA takes as they are; of distances the normal scores of their ranks."""
    values = telling(signals, name)
    if name in _DISTANCES:
        values = ndtri((rankdata(values, axis=1) - 0.5) / values.shape[1])
    phi = values - values.mean(axis=0, dtype=np.float64)
    scale = np.sqrt(np.mean(np.square(phi))) or 1.0
    phi = np.asfortranarray(phi / scale, dtype=np.result_type(signals.array(name), np.float32))
    return replace(signals, arrays={"log_odds": phi}, labels=None, checked=True)


def one_target_at_a_time(
    signals: Signals, name: str, attack: Callable[[Signals], Float[Array, "1 J"]]
) -> Float[Array, "T J"]:
    """Attack each target by itself, with minus its score in deviations of its references as the loss."""
    telling(signals, name)
    signals = replace(signals.only([name]), labels=None)
    scores = [attack(_in_deviations(one_target(signals, target), name)) for target in range(signals.game.n_targets)]
    return np.concatenate(scores).astype(np.result_type(signals.array(name), np.float32), copy=False)


def _in_deviations(signals: Signals, name: str) -> Signals:
    """Compute the loss of one target, row 0, and of its references."""
    game = signals.game
    values = signals.array(name).astype(np.float64)
    values -= values[1:].mean(axis=0)
    target_points = game.target_points.ravel()
    values /= pooled_deviation(values[1:, target_points], ~game.member[1:, target_points])
    return replace(signals, arrays={"loss": np.asfortranarray(-values)}, checked=True)


def pooled_deviation(values: Float[Array, "R J"], chosen: Bool[Array, "R J"]) -> float:
    """Compute the standard deviation of the chosen references at a point, pooled over the points; 1 if it is 0.

    >>> pooled_deviation(np.array([[1.0, 5.0], [3.0, 5.0]]), np.ones((2, 2), dtype=bool))
    1.0
    """
    n = chosen.sum(axis=0)
    mean = np.sum(values, axis=0, where=chosen) / np.maximum(n, 1)
    squares = np.sum(np.square(values - mean), where=chosen)
    degrees = np.maximum(n - 1, 0).sum()
    return float(np.sqrt(squares / max(degrees, 1))) or 1.0
