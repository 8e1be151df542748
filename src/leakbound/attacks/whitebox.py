"""White-box attacks: gradients, and the expansion of the loss around models without the point.

Axes: T targets, J target points, S steps.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.special import log_ndtr

from leakbound.attacks.blocks import empty_scores, score_points
from leakbound.core.checks import positive
from leakbound.core.types import Signals

Array = np.ndarray
_ENTRIES = 1 << 18  # targets x points x steps at a time


def gradient_norm(signals: Signals) -> Float[Array, "T J"]:
    """Score by minus the norm of the gradient of the loss, which training makes small at members.

    Source: Nasr, Shokri & Houmansadr (2019), the gradient norm as a feature; delgrosso2021, Section 5, white-box
    attacks.

    >>> from leakbound.core.types import Game
    >>> game = Game("one_model", np.array([[True, False]]), np.array([True, True]), 1)
    >>> gradient_norm(Signals(game, None, {"gradient_norm": np.array([[0.1, 2.0]])})).tolist()
    [[-0.1, -2.0]]
    """
    norm = signals.array("gradient_norm")
    return score_points(signals.game, norm, lambda block: -block.targets(norm), signals.game.n_targets)


def matt(signals: Signals, *, temperature: float = 1.0) -> Float[Array, "T J"]:
    """Score by the loss to first order around models without the point, less half of the mean effect of membership.

    ``(-(theta - theta0) . g - g^T H^-1 g/2)/T`` (MATT). A point that is in the data moves the parameters by -H^-1 g, so
    ``-(theta - theta0) . g`` has the mean ``g^T H^-1 g`` for a member and 0 for a non-member around models without the
    point. The second term puts the threshold 0 halfway between the two. The score is the log-ratio of two normal
    posteriors with the covariance ``T H^-1``.

    Source: sablayrolles2019, eq. 40, with its second term, H the Hessian of the sum of the training losses. Eq. 36
    to 40 are printed for T = 1, although eq. 1 has a temperature.

    >>> from leakbound.core.types import Game
    >>> game = Game("one_model", np.array([[True, False]]), np.array([True, True]), 1)
    >>> signals = Signals(game, None, {"taylor": np.array([[[-0.5, 0.4], [0.1, 0.4]]])})
    >>> matt(signals).round(3).tolist()
    [[0.3, -0.3]]
    """
    terms = signals.targets("taylor")
    return (-terms[..., 0] - terms[..., 1] / 2) / positive("temperature", temperature)


def glir(signals: Signals) -> Float[Array, "T J"]:
    """Combine the p-values of all steps under the hypothesis that the point did not take part (GLiR).

    Without the point ``D^T C^-1 (u - mu)`` is normal with variance ``D^T C^-1 D``; the score is
    ``-sum_t log Phi(-step_dot_t/sqrt(step_norm_t))``. Unlike the likelihood ratio it has the same
    distribution for all non-members, whatever their gradients, and needs no rate; it has less power against points that
    take part in few steps.
    Source: azize2024, appendix D.

    Source: Leemann, Pawelczyk & Kasneci (2023), GLiR, sum the logarithms of p-values of the squared distance
    between the release and the gradient, a noncentral chi-squared in all directions. Of that distance only its part
    along the gradient, which is normal, depends on membership; the rest is noise that all points share, and is left
    out.

    >>> from leakbound.core.types import Game
    >>> game = Game("one_model", np.array([[True]]), np.array([True]), 1)
    >>> signals = Signals(game, None, {"step_dot": np.array([[[0.0, 0.0]]]), "step_norm": np.array([[[4.0, 1.0]]])})
    >>> float(glir(signals)[0, 0].round(4))  # 2 log 2
    1.3863
    """
    game, step_dot = signals.game, signals.array("step_dot")
    n_steps = max(1, signals.array("step_norm").shape[2])
    scores = empty_scores(game, step_dot, step_dot.dtype)
    for block in signals.blocks(max(1, _ENTRIES // (game.n_targets * n_steps))):
        deviation = np.sqrt(signals.targets("step_norm", block).astype(np.float64))
        z = signals.targets("step_dot", block) / np.where(deviation > 0, deviation, 1)
        log_p_value = np.where(deviation > 0, log_ndtr(-z), 0)  # a gradient of 0 is no evidence
        scores[:, block] = -log_p_value.sum(axis=2)
    return scores
