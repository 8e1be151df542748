"""The covariance of Gaussian noise that costs least for given shifts."""

from __future__ import annotations

from typing import Literal

import numpy as np
from jaxtyping import Float, Num

from leakbound.core.checks import non_negative, one_of, positive

Array = np.ndarray
Structure = Literal["full", "diagonal", "isotropic"]


def best_covariance(
    second_moment: Num[Array, "d d"],
    kappa: float,
    weights: Num[Array, " d"] | None = None,
    structure: Structure = "full",
    ridge: float = 1e-6,
) -> Float[Array, "d d"]:
    """Compute the covariance S of least weighted variance ``tr(diag(w) S)`` with ``tr(S^-1 V) <= kappa^2``.

    ``E||v||_(S^-1) <= sqrt(tr(S^-1 V))``, so with ``V = E[v v^T]`` and ``kappa = 2 Phi^-1(1/2 + eta)`` noise
    N(0, S) keeps eta. Stationarity of the Lagrangian gives ``S W S = c V``, hence with ``R = W^(1/2)``
    ``S = R^-1 (R V R)^(1/2) R^-1 tr((R V R)^(1/2))/kappa^2``; diagonal ``S_jj = sqrt(V_jj/w_j) sum_i sqrt(w_i
    V_ii)/kappa^2``; isotropic ``tr(V)/kappa^2``.

    Parameters
    ----------
    second_moment : array of shape (d, d)
        V, symmetric positive semidefinite: from other pairs than those that certify the noise, or public.
    kappa : float
        > 0.
    weights : array of shape (d,), optional
        What a unit of variance costs in each coordinate, > 0; 1 where None.
    structure : {"full", "diagonal", "isotropic"}
        Of S.
    ridge : float
        Fraction of the mean variance (in weighted units) that is added to every coordinate: a direction in which
        no pair differed must not go without noise. 0 only for a V of full rank.

    Returns
    -------
    array of shape (d, d)
        S, in the units of V.

    Raises
    ------
    ValueError
        If V is no moment, or a value is out of its range.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.noise import best_covariance
    >>> best_covariance(np.array([[4.0, 1.0], [1.0, 2.0]]), kappa=1.0, ridge=0.0).round(4).tolist()
    [[6.6458, 1.0], [1.0, 4.6458]]
    """
    V, w = _moment(second_moment), _weights(weights, len(second_moment))
    root = np.sqrt(w)
    scaled = root[:, None] * V * root
    scaled = scaled + non_negative("ridge", ridge) * np.trace(scaled) / len(w) * np.eye(len(w))
    values, vectors = np.linalg.eigh((scaled + scaled.T) / 2)
    if values[0] <= 1e-14 * values[-1]:
        raise ValueError(f"a direction without shifts would get no noise: ridge must be > 1e-14, got {ridge:g}")
    one_of("structure", structure, ("full", "diagonal", "isotropic"))
    if structure == "full":
        best = (vectors * np.sqrt(values)) @ vectors.T * np.sqrt(values).sum()
    elif structure == "diagonal":
        best = np.diag(np.sqrt(np.diagonal(scaled))) * np.sqrt(np.diagonal(scaled)).sum()
    else:
        best = np.diag(w) * np.sum(np.diagonal(scaled) / w)
    return best / np.outer(root, root) / positive("kappa", kappa) ** 2


def _moment(V: Num[Array, "d d"]) -> Float[Array, "d d"]:
    """Check that a moment is symmetric, positive semidefinite and not 0."""
    V = np.asarray(V, dtype=float)
    if V.ndim != 2 or V.shape[0] != V.shape[1] or not V.size:
        raise ValueError(f"second_moment must be (d, d), got {V.shape}")
    if not np.isfinite(V).all():
        raise ValueError("second_moment must be finite")
    largest = float(np.abs(V).max())
    if largest == 0:
        raise ValueError("second_moment is 0: no shift, no noise is needed")
    if not np.allclose(V, V.T, rtol=1e-9, atol=1e-12 * largest):
        raise ValueError("second_moment must be symmetric")
    smallest = float(np.linalg.eigvalsh(V)[0])
    if smallest < -1e-9 * largest:
        raise ValueError(f"second_moment must be positive semidefinite, its smallest eigenvalue is {smallest:g}")
    return V


def _weights(weights: Num[Array, " d"] | None, d: int) -> Float[Array, " d"]:
    if weights is None:
        return np.ones(d)
    if len(weights) != d:
        raise ValueError(f"weights must have {d} numbers, got {len(weights)}")
    return np.array([positive("weight", weight) for weight in weights])
