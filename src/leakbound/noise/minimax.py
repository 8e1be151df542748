"""The covariance of Gaussian noise that costs least for the worst record of a sum or mean."""

from __future__ import annotations

from typing import Literal

import numpy as np
from jaxtyping import Float, Int, Num

from leakbound.core.checks import one_of, positive, real
from leakbound.noise.couplings import finite_features

Array = np.ndarray
_POWER = 0.9  # of a step; below 1 every step raises the dual objective
_LEAST_TOLERANCE = 1e-4


def worst_case_covariance(
    features: Num[Array, "n d"],
    kappa: float,
    weights: Num[Array, " d"] | None = None,
    structure: Literal["full", "diagonal"] = "full",
    ridge: float = 1e-6,
    tolerance: float = 0.01,
) -> Float[Array, "d d"]:
    """Compute the covariance S of least weighted variance that limits the mean square shift of every record.

    It has the least ``tr(W S)`` with ``E ||f(x) - f(x')||^2_(S^-1) <= kappa^2`` for every x; x' is uniform on the other
    records. `best_covariance` of the covariance of the features keeps the limit for the average x alone; scaled for the
    worst record, a record far out in one direction adds noise to all coordinates.

    Parameters
    ----------
    features : array of shape (n, d)
        f of every record, finite, no column constant. S depends on all of them, and on no draw: a shape for
        couplings that sample nothing.
    kappa : float
        > 0.
    weights : array of shape (d,), optional
        W, what a unit of variance costs in each coordinate, > 0; 1/variance of the column where None, so that units
        do not matter.
    structure : {"full", "diagonal"}
        Of S.
    ridge : float
        Fraction of the mean variance (in weighted units) that counts as seen in every direction, > 0: one in which no
        two records differ must not go without noise.
    tolerance : float
        >= 1e-4; how far the ``tr(W S)`` that is returned may be above the least one, relative to it.

    Returns
    -------
    array of shape (d, d)
        S, in squared units of the features.

    Raises
    ------
    ValueError
        If a column is constant or not finite, or a value is out of its range.

    Notes
    -----
    Let y = f(x) - mean and C the mean of y y^T (and the ridge). For x' uniform on the n - 1 others,
    ``V_x = E (f(x) - f(x'))(f(x) - f(x'))^T = n/(n-1) (y y^T + C)``, because the y of all records sum to 0. For a
    distribution p on the records let ``V(p) = sum_x p_x V_x``, ``R = W^(1/2)`` and ``g(p) = tr (R V(p) R)^(1/2)``.
    By Cauchy-Schwarz every S that keeps the limit has

        ``kappa^2 tr(W S) >= tr(S^-1 V(p)) tr(W S) >= g(p)^2``.

    ``S(p) = R^-1 (R V(p) R)^(1/2) R^-1``, scaled so that the worst record keeps the limit, has ``kappa^2 tr(W S) =
    g(p) max_x c_x`` with ``c_x = tr(S(p)^-1 V_x)``, whose mean under p is g(p). So ``max_x c_x/g(p) - 1`` is the most
    that S(p) lies above the least variance, for any p; it is 0 where g is greatest, which is the equivalence theorem
    of optimal design (Kiefer 1974) for the trace of the square root. For a diagonal S the root of the matrix is that
    of its diagonal, and the same holds.

    Few records carry p (d(d+1)/2 are enough): those with the largest c_x join until the gap is closed over all
    records, which costs ``O(n d^2)`` each time. Among them ``p_x`` is multiplied by ``a_x^0.9`` and normalised, again
    and again. Here ``M = R V(p) R = B + sum_x p_x z z^T``, where B does not depend on p, and ``a_x = z^T M^(-1/2) z``
    is what c_x has beyond the part that is common to all records. Each step raises g (after Yu 2010): from p to q,
    ``M(q)^-1 <= M^-1 (B + sum_x (p_x^2/q_x) z z^T) M^-1`` (Gauss-Markov), and ``-tr N^(-1/2)`` increases with N and
    is concave, hence ``g(q) - g(p) >= sum_x (p_x - p_x^2/q_x) a_x/2``, which for q proportional to ``p a^0.9`` is > 0
    by Chebyshev's inequality unless all a_x are equal.

    500,000 records with 9 features take a second.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.noise import worst_case_covariance
    >>> square = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    >>> worst_case_covariance(square, kappa=1.0).round(4).tolist()
    [[5.3333, 0.0], [0.0, 5.3333]]
    """
    z, root = _weighted(features, weights)
    n, d = z.shape
    one_of("structure", structure, ("full", "diagonal"))
    positive("kappa", kappa)
    positive("ridge", ridge)
    if real("tolerance", tolerance) < _LEAST_TOLERANCE:
        raise ValueError(f"tolerance must be >= {_LEAST_TOLERANCE:g}, got {tolerance:g}")
    z = z * np.sqrt(n / (n - 1))  # V_x = z z^T + common, with the factor n/(n-1) of the notes in both
    common = z.T @ z / n
    common += ridge * np.trace(common) / d * np.eye(d)
    support, p, moment = np.empty(0, dtype=int), np.empty(0), 2 * common
    while True:
        S, inverse, g = _roots(moment, structure)
        cost = np.einsum("nd,nd->n", z @ inverse, z) + np.sum(inverse * common)
        worst = cost.max()
        # max_x c_x/g - 1 is the most that S, scaled for the worst record, lies above the least variance.
        if worst <= (1 + tolerance) * g:
            return S * worst / np.outer(root, root) / kappa**2
        support, p = _joined(support, p, cost, (1 + tolerance) * g, d)
        p, moment = _greatest(z[support], common, p, structure, tolerance / 2)


def _weighted(
    features: Num[Array, "n d"], weights: Num[Array, " d"] | None
) -> tuple[Float[Array, "n d"], Float[Array, " d"]]:
    """Centre the features, in units in which every coordinate costs the same; also return the roots of the weights."""
    features = finite_features(features)
    constant = np.flatnonzero(np.ptp(features, axis=0) == 0)
    if len(constant):
        raise ValueError(f"column {constant[0]} is constant: it needs no noise, leave it out")
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        centred = features - features.mean(axis=0)
        variance = np.square(centred).mean(axis=0)
    if not (np.isfinite(variance) & (variance > 0)).all():
        raise ValueError(f"variances must be > 0 and finite, got {variance.tolist()}: rescale the features")
    if weights is None:
        root = 1 / np.sqrt(variance)
    elif len(weights) != features.shape[1]:
        raise ValueError(f"weights must have {features.shape[1]} numbers, got {len(weights)}")
    else:
        root = np.sqrt([positive("weight", weight) for weight in weights])
    return centred * root, root


def _roots(moment: Float[Array, "d d"], structure: str) -> tuple[Float[Array, "d d"], Float[Array, "d d"], float]:
    """Compute the square root of a moment, its inverse, and its trace."""
    if structure == "diagonal":
        values = np.sqrt(np.diagonal(moment))
        return np.diag(values), np.diag(1 / values), float(values.sum())
    values, vectors = np.linalg.eigh(moment)
    values = np.sqrt(values)
    return (vectors * values) @ vectors.T, (vectors / values) @ vectors.T, float(values.sum())


def _joined(
    support: Int[Array, " m"], p: Float[Array, " m"], cost: Float[Array, " n"], limit: float, most: int
) -> tuple[Int[Array, " s"], Float[Array, " s"]]:
    """Add to the support the records above the limit that cost most; each of them gets the same probability."""
    above = np.flatnonzero(cost > limit)
    new = above[np.argsort(-cost[above], kind="stable")[:most]]
    probability = 1 / (len(support) + len(new))
    return np.append(support, new), np.append(p * (1 - probability * len(new)), np.full(len(new), probability))


def _greatest(
    z: Float[Array, "m d"], common: Float[Array, "d d"], p: Float[Array, " m"], structure: str, tolerance: float
) -> tuple[Float[Array, " m"], Float[Array, "d d"]]:
    """Maximise g over the distributions p on these records; return p and its moment."""
    while True:
        moment = common + (z.T * p) @ z
        _, inverse, g = _roots(moment, structure)
        square_length = np.einsum("md,md->m", z @ inverse, z)
        if square_length.max() + np.sum(inverse * common) <= (1 + tolerance) * g:
            return p, moment
        p = p * square_length**_POWER
        p = p / p.sum()
