"""Mutual information to membership inference and back: PAC privacy, and averages over the records."""

from __future__ import annotations

from typing import Literal

import numpy as np
from jaxtyping import Float, Num

from leakbound.bounds.information import PRECISION, binary_divergence
from leakbound.core.checks import gain_over_prior, one_of, positive, probability
from leakbound.core.numerics import smallest_where

Array = np.ndarray
Structure = Literal["isotropic", "least_trace"]

_LARGEST_NATS = 300.0  # a coordinate; the noise is then 1e-130 of the statistic's own deviation


def information_of_eta(eta: float, prior: float = 0.5) -> float:
    """Compute the mutual information below which no attacker gains more than eta: ``kl(p0 + eta || p0)``.

    p0 = max(prior, 1 - prior) is the accuracy of the better prior guess, kl the binary divergence (Xiao & Devadas
    2023; data processing of the information to a correct or a wrong guess).

    Parameters
    ----------
    eta : float
        > 0 and < min(prior, 1 - prior).
    prior : float
        k/n, in (0, 1).

    Returns
    -------
    float
        In nats.

    Examples
    --------
    >>> from leakbound.noise import information_of_eta
    >>> round(information_of_eta(0.05), 6)
    0.005008
    """
    smaller, _ = allowed_stick(eta, prior)
    return binary_divergence(eta, smaller)


def noise_of_information(
    covariance: Num[Array, "d d"], nats: float, structure: Structure = "least_trace"
) -> Float[Array, "d d"]:
    """Compute a covariance of Gaussian noise with ``log det(I + Sigma Sigma_B^-1)/2 = nats``.

    That is an upper bound of the mutual information between D and the noisy statistic, whatever the distribution of
    the statistic (Xiao & Devadas 2023). ``"isotropic"`` is ``Sigma/(e^(2 nats/d) - 1)``: isotropic
    where Sigma is the identity. ``"least_trace"`` has the least ``tr(Sigma_B)``: in the eigenbasis of Sigma,
    with eigenvalues l_j, the stationary point of the Lagrangian is ``e_j (e_j + l_j) = c l_j/2``, hence ``e_j =
    (sqrt(l_j^2 + 2 c l_j) - l_j)/2``, and bisection gives c. The paper has ``e_j = sqrt(l_j) sum_i sqrt(l_i)/(2
    nats)``, which is valid, and the least only in the limit of nats = 0.

    Parameters
    ----------
    covariance : array of shape (d, d)
        Sigma, of the statistic over the draw of D; symmetric, positive semidefinite, not 0. Its eigenvalues are
        raised to 1e-14 of the largest, so no direction goes without noise; choose comparable units.
    nats : float
        > 0.
    structure : {"least_trace", "isotropic"}
        Of the noise.

    Returns
    -------
    array of shape (d, d)
        Sigma_B, in the units of Sigma.

    Raises
    ------
    ValueError
        If Sigma is not a covariance, or for nats that are not > 0.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.noise import noise_of_information
    >>> noise = noise_of_information(np.eye(3) / 1000, nats=0.005008)
    >>> (np.diagonal(noise) ** 0.5).round(3).tolist()
    [0.547, 0.547, 0.547]
    """
    values, vectors = _spectrum(covariance)
    nats = min(positive("nats", nats), _LARGEST_NATS * len(values))  # noise for a smaller limit keeps a larger one too
    relative = values / values[-1]  # squares of the eigenvalues themselves may overflow, or vanish
    if one_of("structure", structure, ("isotropic", "least_trace")) == "isotropic":
        noise = relative / np.expm1(2 * nats / len(values))
    else:
        noise = _least_trace(relative, nats)
    return (vectors * (noise * values[-1])) @ vectors.T


def smaller_of(prior: float) -> float:
    """Return min(prior, 1 - prior)."""
    prior = probability("prior", prior, open_ends=True)
    return min(prior, 1 - prior)


def allowed_stick(eta: float, prior: float) -> tuple[float, float]:
    """Return the smaller prior m, and the hockey-stick divergence eta/m of order (1 - m)/m that eta allows."""
    smaller = smaller_of(prior)
    gain_over_prior(eta, smaller)
    return smaller, eta / smaller


def _least_trace(values: Float[Array, " r"], nats: float) -> Float[Array, " r"]:
    """Solve sum log(1 + l_j/e_j) = 2 nats for c; e_j = c l_j/(sqrt(l_j^2 + 2 c l_j) + l_j), without a difference."""

    def ratios(c: float) -> Float[Array, " r"]:
        return (np.sqrt(values**2 + 2 * c * values) + values) / c

    def keeps_limit(c: float) -> bool:
        return float(np.log1p(ratios(c)).sum()) <= 2 * nats

    return values / ratios(smallest_where(keeps_limit, float(values.max()), rtol=PRECISION))


def _spectrum(covariance: Num[Array, "d d"]) -> tuple[Float[Array, " d"], Float[Array, "d d"]]:
    """Compute the eigenvalues, at least 1e-14 of the largest, and the eigenvectors of a covariance that is not 0."""
    matrix = np.asarray(covariance, dtype=float)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ValueError(f"a covariance must be (d, d), got {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise ValueError("a covariance must be finite")
    largest = float(np.abs(matrix).max())
    if largest == 0:
        raise ValueError("a covariance must not be 0: a statistic that does not vary needs no noise")
    if not np.allclose(matrix, matrix.T, rtol=1e-9, atol=1e-12 * largest):
        raise ValueError("a covariance must be symmetric")
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    if values[0] < -1e-9 * values[-1]:
        raise ValueError(f"a covariance must be positive semidefinite, its smallest eigenvalue is {values[0]:g}")
    return np.maximum(values, 1e-14 * values[-1]), vectors
