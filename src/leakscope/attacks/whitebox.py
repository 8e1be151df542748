"""Attacks that look inside a model: gradients, and the expansion of the loss around other models.

Axes: T targets, J judged points, S steps.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.special import log_ndtr

from leakscope.core.types import Signals

Array = np.ndarray
_ENTRIES = 1 << 18  # targets x points x steps at a time


def gradient_norm(signals: Signals) -> Float[Array, "T J"]:
    """Minus the norm of the gradient of the loss at the point: training ends where the gradients of members are small.

    Parameters
    ----------
    signals : Signals
        With ``gradient_norm``.

    Returns
    -------
    array of shape (T, J)
        At most 0, in nats a unit of the parameters.

    Raises
    ------
    NotApplicable
        If the signal is missing.

    References
    ----------
    Nasr, Shokri & Houmansadr (2019), the gradient norm as a feature; delgrosso2021, Section 5, white-box attacks.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.core.types import Game, Signals
    >>> game = Game("one_model", np.array([[True, False]]), np.array([True, True]), 1)
    >>> gradient_norm(Signals(game, None, {"gradient_norm": np.array([[0.1, 2.0]])})).tolist()
    [[-0.1, -2.0]]
    """
    return -signals.targets("gradient_norm")


def matt(signals: Signals) -> Float[Array, "T J"]:
    """MATT: the loss to first order around models that know nothing, less what membership would change on average.

    ``-(theta - theta0) . g - g^T H^-1 g/2``. A point that is in the data moves the parameters by -H^-1 g, so the
    first term has the mean ``g^T H^-1 g`` for a member around models without it, and the second half of that is the
    threshold that lies between member and non-member: the attack expects least of easy points.

    Parameters
    ----------
    signals : Signals
        With ``taylor``.

    Returns
    -------
    array of shape (T, J)
        In nats.

    Raises
    ------
    NotApplicable
        If the signal is missing.

    References
    ----------
    sablayrolles2019, eq. 40, with its second term, H the Hessian of the sum of the training losses.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.core.types import Game, Signals
    >>> game = Game("one_model", np.array([[True, False]]), np.array([True, True]), 1)
    >>> signals = Signals(game, None, {"taylor": np.array([[[-0.5, 0.4], [0.1, 0.4]]])})
    >>> matt(signals).round(3).tolist()
    [[0.3, -0.3]]
    """
    terms = signals.targets("taylor")
    return -terms[..., 0] - terms[..., 1] / 2


def glir(signals: Signals) -> Float[Array, "T J"]:
    """The p-values of all steps together: how improbable each step would be if the point had not taken part.

    Without the point ``D^T C^-1 (u - mu)`` is normal with variance ``D^T C^-1 D``; the score is
    ``-sum_t log Phi(-step_dot_t/sqrt(step_norm_t))``. Unlike the likelihood ratio it has one law for all
    non-members, whatever their gradients, and needs no rate; a point that takes part in few steps is seen less well.

    Parameters
    ----------
    signals : Signals
        With ``step_dot`` and ``step_norm``.

    Returns
    -------
    array of shape (T, J)
        At least 0; of non-members Gamma(S, 1), as -log of a product of S uniform variables.

    Raises
    ------
    NotApplicable
        If a signal is missing.

    References
    ----------
    Leemann, Pawelczyk & Kasneci (2023), GLiR, sum the logarithms of p-values of the squared distance between the
    release and the gradient, a noncentral chi-squared in all directions. Of that distance only its part along the
    gradient, which is normal, depends on membership; the rest is noise that all points share, and is left out.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.core.types import Game, Signals
    >>> game = Game("one_model", np.array([[True]]), np.array([True]), 1)
    >>> signals = Signals(game, None, {"step_dot": np.array([[[0.0, 0.0]]]), "step_norm": np.array([[[4.0, 1.0]]])})
    >>> float(glir(signals)[0, 0].round(4))  # 2 log 2
    1.3863
    """
    game, dtype = signals.game, signals.array("step_dot").dtype
    n_steps = max(1, signals.array("step_norm").shape[2])
    out = np.empty((game.n_judged, game.n_targets), dtype=dtype).T
    for block in signals.blocks(max(1, _ENTRIES // (game.n_targets * n_steps))):
        spread = np.sqrt(signals.targets("step_norm", block).astype(np.float64))
        moved = signals.targets("step_dot", block) / np.where(spread > 0, spread, 1)  # no gradient: no evidence
        out[:, block] = -np.where(spread > 0, log_ndtr(-moved), 0).sum(axis=2)
    return out
