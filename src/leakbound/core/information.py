"""Mutual information: of a release with Gaussian noise, and what it is worth to an attacker."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.special import xlog1py

from leakbound.core.checks import non_negative, probability
from leakbound.core.numerics import smallest_where

Array = np.ndarray
PRECISION = 1e-15  # relative, of the searches: a few units in the last place


def eta_of_information(nats: float, prior: float = 0.5) -> float:
    """Compute the largest gain of an attacker who has this much information about the membership of a record.

    Parameters
    ----------
    nats : float
        >= 0, infinity allowed.
    prior : float
        k/n, in (0, 1).

    Returns
    -------
    float
        In [0, min(prior, 1 - prior)], rounded up.

    Examples
    --------
    >>> from leakbound.core.information import eta_of_information
    >>> round(eta_of_information(0.005), 6), eta_of_information(1.0)
    (0.049958, 0.5)
    """
    nats, prior = non_negative("nats", nats, infinite=True), probability("prior", prior, open_ends=True)
    return gain_of_information(nats, min(prior, 1 - prior))


def gain_of_information(nats: float, others: float) -> float:
    """Compute the gain of an attacker over always guessing the likeliest class; ``others`` have this probability."""
    if nats >= binary_divergence(others, others):
        return others
    if nats == 0:
        return 0.0
    return smallest_where(lambda eta: binary_divergence(eta, others) >= nats, others, rtol=PRECISION)


def binary_divergence(eta: float, others: float) -> float:
    """Compute ``kl(1 - m + eta || 1 - m)`` in nats, m = ``others``, without the linear terms, which cancel."""
    likeliest = 1 - others
    return likeliest * _above_tangent(eta / likeliest) + others * _above_tangent(-eta / others)


def _above_tangent(x: float) -> float:
    """Compute (1 + x) log(1 + x) - x at x >= -1; near 0 by its series."""
    if abs(x) > 0.01:
        return float(xlog1py(1 + x, x)) - x
    return sum((-x) ** k / (k * (k - 1)) for k in range(2, 9))


def gaussian_information(covariance: Float[Array, "d d"], noise_covariance: Float[Array, "d d"]) -> float:
    """Bound the information of a release with Gaussian noise about its data.

    It is at most ``1/2 ln det(I + S B^-1)``: a Gaussian has the largest entropy for its covariance, so for a statistic
    of covariance S over the data sets, with independent noise N(0, B), this is an upper bound of the mutual information
    of data and release, and with it of membership and release; equal where the statistic is itself Gaussian.

    Parameters
    ----------
    covariance : array of shape (d, d)
        S: of the statistic over the draw of the data. Positive semi-definite; the true one, an estimate
        gives an estimate.
    noise_covariance : array of shape (d, d)
        B, positive definite, in the same units squared.

    Returns
    -------
    float
        In nats.

    Raises
    ------
    ValueError
        If a matrix is not symmetric, S is not positive semi-definite, or B is not positive definite.

    References
    ----------
    xiao2023 (PAC privacy), the bound for Gaussian noise on a deterministic mechanism.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.core.information import gaussian_information
    >>> round(gaussian_information(np.diag([3.0, 0.0]), np.eye(2)), 6)  # ln(4)/2
    0.693147
    """
    signal, noise = _symmetric("covariance", covariance), _symmetric("noise_covariance", noise_covariance)
    if signal.shape != noise.shape:
        raise ValueError(f"covariance has shape {signal.shape}, noise_covariance {noise.shape}; both must be (d, d)")
    scale = np.sqrt(np.maximum(np.diag(noise), np.finfo(float).tiny))  # the units of the coordinates do not matter
    scales = np.outer(scale, scale)
    # Whitened by the noise, det(I + S B^-1) is the product of 1 + the eigenvalues of S.
    spread, axes = np.linalg.eigh(noise / scales)
    if spread[0] <= 1e-14 * spread[-1]:
        raise ValueError(
            f"noise_covariance must be positive definite, got eigenvalue {spread[0]:g} of its correlations"
        )
    whitening = axes / np.sqrt(spread)
    ratios = np.linalg.eigvalsh(whitening.T @ (signal / scales) @ whitening)
    if ratios[0] < -1e-9 * max(float(ratios[-1]), 0.0):
        raise ValueError(
            f"covariance must be positive semi-definite, got variance {ratios[0]:g} of the noise's in a direction"
        )
    return float(np.log1p(np.maximum(ratios, 0)).sum() / 2)


def _symmetric(name: str, matrix: Float[Array, "d d"]) -> Float[Array, "d d"]:
    """Check that a matrix is finite and symmetric."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.size == 0:
        raise ValueError(f"{name} must be (d, d), d >= 1, got shape {matrix.shape}")
    if not np.isfinite(matrix).all() or not np.allclose(matrix, matrix.T, rtol=1e-9, atol=1e-12 * np.abs(matrix).max()):
        raise ValueError(f"{name} must be finite and symmetric")
    return (matrix + matrix.T) / 2
