"""The noise of Izzo et al. (2022): from moments of the outputs, with the constants of their theorem 7."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from leakbound.core.checks import positive, probability, real
from leakbound.noise.exponential import NormNoise
from leakbound.noise.norms import Lp


def izzo(
    sigma: ArrayLike, eta: float, moment: float = 2.0, radius: Literal["gamma", "laplace-literal"] = "gamma"
) -> NormNoise:
    """Return noise of a scale that keeps eta, by the moments of each coordinate.

    It has the density ``exp(-||z||/b)`` in the norm ``||z|| = (mean_j |z_j/sigma_j|^M)^(1/M)`` with
    ``b = (c/eta)^(1 + 2/M)``, c = 6.16 for M >= 2 (izzo2022, corollary 8) and 7.5 below (theorem 7). The
    theorem is true and the scale far larger than needed: ``calibrate(moment(1.0, d), eta)`` proves the same
    promise with noise 54 (M = 6) to 847 times (M = 2) smaller at eta = .1.

    Parameters
    ----------
    sigma : array_like of shape (d,), or a number
        ``sigma_j >= (E |theta_j - E theta_j|^M)^(1/M)``, > 0, over D drawn from the WHOLE data set. From halves
        of the data in use, as their algorithm 1 prints it, the scale itself reveals members.
    eta : float
        In (0, 1/2).
    moment : float
        M >= 1; odd ones are moments of absolute values.
    radius : {"gamma", "laplace-literal"}
        As in `NormNoise`.

    Returns
    -------
    NormNoise
        Of as many coordinates as sigma.

    Raises
    ------
    ValueError
        For a sigma that is not > 0, an eta outside (0, 1/2) or a moment below 1.

    Examples
    --------
    >>> from leakbound.noise import izzo
    >>> round(izzo(1.0, eta=0.1).scale, 2)
    3794.56
    """
    spread = np.atleast_1d(np.asarray(sigma, dtype=float))
    if spread.ndim != 1 or not len(spread):
        raise ValueError(f"sigma must have shape (d,), got {spread.shape}")
    for deviation in spread:
        positive("sigma", deviation)
    if not 0 < probability("eta", eta) < 0.5:
        raise ValueError(f"eta must be > 0 and < 0.5, got {eta:g}")
    if real("moment", moment) < 1:
        raise ValueError(f"moment must be >= 1, got {moment:g}")
    constant = 6.16 if moment >= 2 else 7.5
    weights = spread**-moment / len(spread)
    return NormNoise((constant / eta) ** (1 + 2 / moment), Lp(moment, weights), radius)
