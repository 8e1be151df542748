"""The best shape of Gaussian noise for given shifts."""

from __future__ import annotations

from typing import Literal

import numpy as np
from jaxtyping import Float, Num

from leakscope.core.checks import non_negative, one_of, positive

Array = np.ndarray
Structure = Literal["full", "diagonal", "isotropic"]


def best_covariance(
    second_moment: Num[Array, "d d"],
    kappa: float,
    weights: Num[Array, " d"] | None = None,
    structure: Structure = "full",
    ridge: float = 1e-6,
) -> Float[Array, "d d"]:
    """Covariance S of least weighted variance ``tr(diag(w) S)`` with ``tr(S^-1 V) <= kappa^2``.

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
    ridge : float
        Share of the mean variance (in weighted units) that is added to every coordinate: a direction in which
        no pair differed must not go without noise. 0 only for a V of full rank.

    Returns
    -------
    array of shape (d, d)

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.noise import best_covariance
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


def best_covariance_of_lengths(
    shifts: Num[Array, "m d"],
    kappa: float,
    weights: Num[Array, " d"] | None = None,
    ridge: float = 1e-6,
    tolerance: float = 1e-9,
) -> Float[Array, "d d"]:
    """Covariance S of least ``tr(diag(w) S)`` with ``E||v||_(S^-1) <= kappa``: the constraint itself.

    Convex in S. At the optimum ``S W S = c E[v v^T/||v||_(S^-1)]``; iterating that equation, from the solution
    for ``tr(S^-1 V)``, lowers the objective at every step, as reweighted least squares do.

    Parameters
    ----------
    shifts : array of shape (m, d)
        Pairs v, finite: others than those that certify the noise, or public.
    kappa, weights, ridge
        As in `best_covariance`.
    tolerance : float
        Relative change of ``tr(W S)`` at which the iteration stops.

    Returns
    -------
    array of shape (d, d)

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.noise import best_covariance_of_lengths
    >>> best_covariance_of_lengths(np.array([[1.0], [3.0]]), kappa=1.0).round(4).tolist()
    [[4.0]]
    """
    v = np.asarray(shifts, dtype=float)
    if v.ndim != 2 or not v.size or not np.isfinite(v).all():
        raise ValueError(f"shifts must be finite, of shape (pairs, d), got {v.shape}")
    w = _weights(weights, v.shape[1])
    largest = float(np.abs(v).max())
    if largest > 0 and not 1e-150 < largest < 1e150:  # a covariance has squares of them
        raise ValueError(f"shifts are up to {largest:g}; allowed: 1e-150 to 1e150: rescale the features")
    v = v[np.abs(v).max(axis=1) > 0]
    S = best_covariance(v.T @ v / len(shifts), kappa, w, ridge=ridge)
    cost = np.inf
    while True:
        lengths = np.sqrt(np.einsum("md,dm->m", v, np.linalg.solve(S, v.T)))
        S = S * (lengths.sum() / len(shifts) / kappa) ** 2
        if w @ np.diagonal(S) >= cost * (1 - tolerance):
            return S
        cost = w @ np.diagonal(S)
        S = best_covariance((v / lengths[:, None]).T @ v / len(shifts), kappa, w, ridge=ridge)


def _moment(V: Num[Array, "d d"]) -> Float[Array, "d d"]:
    """Symmetric, positive semidefinite, not 0."""
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
