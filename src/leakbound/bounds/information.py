"""Information about membership in a release: upper bounds on every attacker. All in nats."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Num
from scipy.special import rel_entr, xlog1py

from leakbound.core.checks import count, non_negative, probability
from leakbound.core.numerics import smallest_where

__all__ = ["eta_of_information", "gaussian_information", "kl_upper", "mutual_information_discrete"]

Array = np.ndarray
PRECISION = 1e-15  # relative, of the searches: a few units in the last place


def kl_upper(information: float, prior: float | None = None, classes: int = 2) -> float:
    """Accuracy that no attacker exceeds, from the mutual information of a secret and what is seen.

    The secret is membership, or an attribute with finitely many classes. The bound is the p >= q with
    ``kl(p || q) = p ln(p/q) + (1 - p) ln((1 - p)/(1 - q)) = information``, where q is ``prior``; 1 where the
    information is at least ln(1/q). By Fano's argument an attacker with accuracy p >= q has
    kl(p || q) <= I(T; release | point); an attacker below q is worse than always saying the likeliest class, and the
    inequality need not hold for it (the paper's "any attacker").

    Parameters
    ----------
    information : float
        I(T; release | point) in nats, or anything larger; >= 0, infinity allowed.
    prior : float, optional
        Probability of the likeliest class, q, in [1/classes, 1); 1/classes unless given. Of membership with a
        fraction pi of members it is the larger of pi and 1 - pi.
    classes : int
        Number of classes: 2 for membership.

    Returns
    -------
    float
        In [prior, 1], rounded up: above the prior guess wherever there is information.

    Raises
    ------
    ValueError
        If the prior is less than 1/classes: then another class is likelier.

    References
    ----------
    delgrosso2021, theorem 5 (eq. 25), with one unit on both sides.

    Examples
    --------
    >>> from leakbound.bounds.information import kl_upper
    >>> round(kl_upper(0.1), 10), kl_upper(0.7)
    (0.7197946262, 1.0)
    >>> round(kl_upper(0.463, 1 / 44, classes=44), 4)  # one of 44 locations
    0.2728
    """
    information, classes = non_negative("information", information, infinite=True), count("classes", classes, least=2)
    prior = 1 / classes if prior is None else probability("prior", prior, open_ends=True)
    if prior < (1 - 1e-12) / classes:  # 1/classes may have been rounded down
        raise ValueError(
            f"prior is that of the likeliest of {classes} classes, so at least 1/{classes}; got {prior:g}: give the "
            "probability of the likeliest class, and how many classes there are"
        )
    accuracy = prior + gain_of_information(information, 1 - prior)
    return min(1.0, float(np.nextafter(accuracy, 2.0)) if information > 0 else accuracy)


def mutual_information_discrete(chances: Num[Array, "D W"], member: Bool[Array, "D n"]) -> Float[Array, " n"]:
    """Exact information of each record's membership and the output, for a finite game.

    One of D data sets is drawn, each with probability 1/D, and output w comes with probability
    ``chances[D, w]``; ``I(T; W) = sum_t P(T = t) sum_w P(w | t) ln(P(w | t)/P(w))`` with T the membership of
    a record.
    Source: delgrosso2021, theorem 5 and lemmas 1 and 2.

    Parameters
    ----------
    chances : array of shape (D, W)
        Probability of each output given each data set; the rows sum to 1.
    member : bool array of shape (D, n)
        Who is in each data set.

    Returns
    -------
    array of shape (n,)
        In nats; 0 for a record that is in all data sets or in none.

    Raises
    ------
    ValueError
        If the shapes differ, or a row is no distribution.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.bounds.information import mutual_information_discrete
    >>> member = np.array([[True, False], [False, True]])
    >>> mutual_information_discrete(np.array([[0.75, 0.25], [0.25, 0.75]]), member).round(6).tolist()
    [0.130812, 0.130812]
    """
    if chances.ndim != 2 or member.ndim != 2 or len(chances) != len(member) or chances.size == 0:
        raise ValueError(
            f"chances have shape {chances.shape}, member has {member.shape}; they must be (D, W) and (D, n), D >= 1"
        )
    if not (chances >= 0).all() or not np.allclose(chances.sum(axis=1), 1, rtol=0, atol=1e-9):
        raise ValueError("each row of chances must be >= 0 and sum to 1")
    prior = member.mean(axis=0)[:, None]
    joint_in = member.T.astype(float) @ chances / len(chances)
    overall = chances.mean(axis=0)
    joint_out = (~member).T.astype(float) @ chances / len(chances)
    terms = rel_entr(joint_in, prior * overall) + rel_entr(joint_out, (1 - prior) * overall)
    return np.maximum(terms.sum(axis=1), 0)


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
    >>> from leakbound.bounds.information import eta_of_information
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
    >>> from leakbound.bounds.information import gaussian_information
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
