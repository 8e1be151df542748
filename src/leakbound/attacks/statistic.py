"""Attacks on released vectors, by the distribution of what is released: no reference models, no training.

Axes: M models, N points, T targets, J target points, S steps.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from leakbound.attacks.blocks import empty_scores
from leakbound.core.checks import positive, probability
from leakbound.core.types import Signals

Array = np.ndarray
_ENTRIES = 1 << 18  # targets x points x steps at a time


def likelihood_ratio(signals: Signals, *, rate: float = 1.0) -> Float[Array, "T J"]:
    """Compute the log-likelihood ratio of membership, from the mean and covariance of what is released.

    Without the point step t releases N(mu, C); a point that takes part moves it by D, and it takes part with
    probability q. The ratio is ``sum_t log(1 - q + q exp(v_t))`` with ``v_t = D^T C^-1 (u_t - mu) - D^T C^-1 D/2``.
    The mean of n records is one step with D = (z - mu)/n and C of one record over n; for the mean of k of them
    q = k/n.

    Source: azize2024, eq. 10 (the mean). Algorithm 7 there takes the largest v_t of all steps; the sum above is the
    ratio itself, because the steps are independent given who is a member.

    >>> from leakbound.core.types import Game
    >>> game = Game("per_datum", np.array([[True]]), np.array([True]), 1)
    >>> signals = Signals(game, None, {"step_dot": np.array([[[2.0, 3.0]]]), "step_norm": np.array([[[4.0, 4.0]]])})
    >>> likelihood_ratio(signals).tolist()
    [[1.0]]
    >>> float(likelihood_ratio(signals, rate=0.5)[0, 0].round(6))  # log 1 + log((1 + e)/2)
    0.620115
    """
    # q: a member takes part in each step independently of the other steps
    rate = positive("rate", probability("rate", rate))
    game, step_dot = signals.game, signals.array("step_dot")
    n_steps = max(1, signals.array("step_norm").shape[2])
    scores = empty_scores(game, step_dot, step_dot.dtype)
    for block in signals.blocks(max(1, _ENTRIES // (game.n_targets * n_steps))):
        step_ratio = signals.targets("step_dot", block) - signals.targets("step_norm", block).astype(np.float64) / 2
        if rate < 1:
            step_ratio = np.logaddexp(math.log1p(-rate), math.log(rate) + step_ratio)
        scores[:, block] = step_ratio.sum(axis=2)
    return scores


def scalar_product(signals: Signals) -> Float[Array, "T J"]:
    """Compute the scalar product of the point and the released vector, both less the mean of the distribution.

    It needs no covariance. If all columns have the same variance, it orders releases as the likelihood ratio does.

    Source: Homer et al. (2008); Dwork, Smith, Steinke, Ullman & Vadhan (2015); azize2024, Section 3.

    >>> from leakbound.core.types import Game
    >>> game = Game("per_datum", np.array([[True]]), np.array([True]), 1)
    >>> scalar_product(Signals(game, None, {"dot": np.array([[0.25]])})).tolist()
    [[0.25]]
    """
    return signals.targets("dot")
