"""Per-datum leakage of a mean: how well the best attacker tells whether one fixed record is in it.

The game (azize2024, Algorithm 1): n records are drawn from a distribution, one of them is replaced by the target z or
not, and the mean is released. With mean mu and covariance C of the distribution the log-likelihood ratio is

    l = (z - mu)^T C^-1 (released - mu) - m/2,    m = ||z - mu||^2_{C^-1}/n,

N(-m/2, m) without the target and N(m/2, m) with it, as n and the number of columns d grow together. So the
leakage score m alone gives the trade-off, `leakage_tradeoff`, and each variant of the game is another m.

All of this is asymptotic, for one target among fresh others: it bounds the attacker who knows the distribution
and nothing else of the records. It is never differential privacy and never certified.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.special import erf, ndtri

from leakbound.core.checks import count, non_negative, one_of, positive, probability
from leakbound.core.covariance import ESTIMATES, Covariance, Full, as_covariance, data_rows, shrinkage
from leakbound.core.covariance.estimates import scaled
from leakbound.core.tradeoff import EpsilonDelta, Gaussian, Mixture, TradeOff

Array = np.ndarray
CERTAIN = (
    1e-9  # fraction of a sum of squares below which it is rounding; a score of 1e9 leaves no error rate above 1e-300
)


def leakage_score(
    z: ArrayLike, mean: ArrayLike, covariance: Covariance | ArrayLike, n: int, pool: int | None = None
) -> Float[Array, "*J"]:
    """Leakage score of targets in the mean of n records: squared Mahalanobis distance over n.

    ``m = ||z - mu||^2_{C^-1}/n`` (azize2024, eq. 7). Others that are drawn without replacement from a pool of N
    records with mean mu and covariance C (divisor N - 1) give the mean the variance ``C/n (1 - n/N)``, so m is
    divided by ``1 - n/N``: more leaks where the attacker knows the pool.

    Parameters
    ----------
    z : array of shape (J, d) or (d,)
        The targets.
    mean : array of shape (d,)
        mu.
    covariance : Full, Diagonal, LowRank, or array of shape (d,) or (d, d)
        C of one record.
    n : int
        Records in the released mean; for a sub-sample of k of them give k and see `leakage_tradeoff`.
    pool : int, optional
        N > n, the other records that the attacker knows without knowing which n of them are in.

    Returns
    -------
    array of shape (J,) or ()
        Status: asymptotic.

    Raises
    ------
    ValueError
        For shapes that do not fit, a covariance without an inverse, or a pool that is not larger than n.

    Examples
    --------
    >>> from leakbound.bounds.leakage import leakage_score
    >>> leakage_score([[3.0, 4.0], [0.0, 0.0]], mean=[0.0, 0.0], covariance=[1.0, 4.0], n=10).tolist()
    [1.3, 0.0]
    """
    records = count("n", n)
    if pool is not None and count("pool", pool) <= n:
        raise ValueError(f"pool must be > n = {n:,}, got {pool:,}")
    remaining = 1.0 if pool is None else 1 - n / pool
    return np.asarray(as_covariance(covariance).quad(_deviation("z", z, mean)) / (records * remaining))


def noisy_score(
    z: ArrayLike, mean: ArrayLike, covariance: Covariance | ArrayLike, n: int, *, gamma: float
) -> Float[Array, "*J"]:
    """Compute the leakage score in a mean to which Gaussian noise is added.

    It is ``m = ||z - mu||^2_{(C + gamma^2 I)^-1}/n`` (azize2024, eq. 12).

    Parameters
    ----------
    z : array_like of shape (J, d) or (d,)
        As in `leakage_score`.
    mean : array_like of shape (d,)
        As in `leakage_score`.
    covariance : Covariance or array_like
        As in `leakage_score`.
    n : int
        As in `leakage_score`.
    gamma : float
        >= 0: the noise in each column of the released mean is N(0, gamma^2/n). Noise of standard deviation s in the
        mean is ``gamma = sqrt(n) s``.

    Returns
    -------
    array of shape (J,) or ()
        Status: asymptotic.

    Examples
    --------
    >>> from leakbound.bounds.leakage import noisy_score
    >>> round(float(noisy_score([2.0], mean=[0.0], covariance=[1.0], n=4, gamma=1.0)), 6)
    0.5
    """
    noisy = as_covariance(covariance).plus(non_negative("gamma", gamma) ** 2)
    return leakage_score(z, mean, noisy, n)


def leakage_tradeoff(m: float, rho: float = 1.0) -> TradeOff:
    """Return the trade-off curve of the best attacker on a target with leakage score m.

    Without sub-sampling it is that of N(-m/2, m) and N(m/2, m), ``Gaussian(sqrt m)`` (azize2024, theorem 3.1).
    If the mean is one of k = rho n of the n records, the target is among them with probability rho, for all
    columns at once: then the score is N(m/2 rho, m/rho), and else it is as without the target. So the curve is

        ``(1 - rho) (1 - fpr) + rho Gaussian(sqrt(m/rho))``.

    The printed N(+-rho m/2, rho m) (azize2024, theorem 4.3) gives each column a coin of its own; it promises
    too little power at small error rates.

    Parameters
    ----------
    m : float
        >= 0 for the mean of all n records, infinity allowed: from `leakage_score`, `noisy_score`,
        `wrong_target` or `plug_in_score`. (Noise on a sub-sampled mean: rho times the score with k for n.)
    rho : float
        Fraction of the records that is averaged, in (0, 1].

    Returns
    -------
    TradeOff
        With ``delta(epsilon)``, ``advantage()``, ``tpr_at(fpr)``. Status: asymptotic.

    Examples
    --------
    >>> from leakbound.bounds.leakage import leakage_tradeoff
    >>> round(leakage_tradeoff(7.75).advantage(), 6), round(leakage_tradeoff(7.75, rho=0.1).advantage(), 6)
    (0.83606, 0.099999)
    """
    m, rho = non_negative("m", m, infinite=True), positive("rho", probability("rho", rho))
    present = Gaussian(math.sqrt(m / rho))
    return present if rho == 1 else Mixture((1 - rho, rho), (EpsilonDelta(0.0), present))


def leakage_advantage(m: ArrayLike, rho: float = 1.0) -> Float[Array, "*J"]:
    """``leakage_tradeoff(m, rho).advantage()`` of many records at once, in closed form.

    ``rho (2 Phi(sqrt(m/rho)/2) - 1)`` (azize2024, corollary 3.2, for rho = 1).

    >>> leakage_advantage([0.0, 7.75]).round(6).tolist()
    [0.0, 0.83606]
    """
    scores, rho = np.asarray(m, dtype=float), positive("rho", probability("rho", rho))
    if not (scores >= 0).all():
        raise ValueError(f"leakage scores must be >= 0, got {scores.min():g}")
    return np.asarray(rho * erf(np.sqrt(scores / rho / 8)))


def leakage_threshold(m: float, fpr: float) -> float:
    """Threshold of the log-likelihood ratio for a false-positive rate.

    ``-m/2 + sqrt(m) Phi^-1(1 - fpr)``: above it the record is called a member (azize2024, corollary 3.2).

    Parameters
    ----------
    m : float
        Leakage score, >= 0; of a sub-sampled mean that with k for n.
    fpr : float
        In (0, 1).

    Returns
    -------
    float
        In nats.

    Examples
    --------
    >>> from leakbound.bounds.leakage import leakage_threshold
    >>> round(leakage_threshold(7.75, 0.1), 6)
    -0.307311
    """
    m = non_negative("m", m)
    return -m / 2 - math.sqrt(m) * float(ndtri(probability("fpr", fpr, open_ends=True)))


class WrongTarget(NamedTuple):
    """What an attacker reaches who tests for another record than the one that was put in."""

    score: float
    threshold: float
    sign: int


def wrong_target(
    z: ArrayLike, inserted: ArrayLike, mean: ArrayLike, covariance: Covariance | ArrayLike, n: int
) -> WrongTarget:
    """Compute the leakage to an attacker whose target z is not quite the record that was put in.

    With ``a = ||z - mu||^2_{C^-1}/n`` and ``b = (z - mu)^T C^-1 (inserted - mu)/n`` the attacker's ratio is
    N(-a/2, a) without the record and N(b - a/2, a) with it: a trade-off of ``Gaussian(|b|/sqrt a)``, the score
    ``b^2/a``, the threshold ``(b - a)/2``, and members on the side of the sign of b (azize2024, theorem 4.5;
    its appendix has the variance of the record itself in place of a).

    Parameters
    ----------
    z, inserted : arrays of shape (d,)
        What the attacker tests for, and what is a member or not.
    mean : array_like of shape (d,)
        As in `leakage_score`.
    covariance : Covariance or array_like
        As in `leakage_score`.
    n : int
        As in `leakage_score`.

    Returns
    -------
    WrongTarget
        Status: asymptotic.

    Examples
    --------
    >>> from leakbound.bounds.leakage import wrong_target
    >>> wrong_target([3.0, 0.0], [-1.0, 2.0], mean=[0.0, 0.0], covariance=[1.0, 1.0], n=9)
    WrongTarget(score=0.1111111111111111, threshold=-0.6666666666666666, sign=-1)
    """
    tested, true = _deviation("z", z, mean), _deviation("inserted", inserted, mean)
    if tested.ndim != 1 or true.ndim != 1:
        raise ValueError(f"z has shape {tested.shape} and inserted {true.shape}; give one record each, (d,)")
    weighted = as_covariance(covariance).solve(tested) / count("n", n)
    tested_square, inner_product = float(weighted @ tested), float(weighted @ true)  # a and b of theorem 4.5
    score = inner_product**2 / tested_square if tested_square > 0 else 0.0
    return WrongTarget(score, (inner_product - tested_square) / 2, 1 if inner_product >= 0 else -1)


def plug_in_score(m: float, n: int, n_columns: int, n_references: int) -> float:
    """Leakage score left to an attacker who knows the mean of n0 reference records in place of mu.

    The attacker tests for ``z - mu0`` instead of ``z - mu`` (see `wrong_target`), and ``||z - mu0||^2`` is
    ``||z - mu||^2 + d/n0`` in C^-1 as d grows: ``m^2/(m + d/(n n0))``, that is
    ``m/(1 + d/(n0 ||z - mu||^2_{C^-1}))``. It holds for references that stay the same in all rounds, with a
    threshold for them; one threshold for all references does far worse.
    Source: azize2024, section 3.

    Parameters
    ----------
    m : float
        Leakage score with the true mean, >= 0.
    n, n_columns, n_references : int
        Records in the mean; d; n0.

    Returns
    -------
    float
        Status: asymptotic.

    Examples
    --------
    >>> from leakbound.bounds.leakage import leakage_tradeoff, plug_in_score
    >>> round(leakage_tradeoff(plug_in_score(3.0, n=50, n_columns=300, n_references=5)).advantage(), 3)
    0.536
    """
    m = non_negative("m", m)
    error = count("n_columns", n_columns) / (count("n", n) * count("n_references", n_references))
    return m**2 / (m + error)


def leakage_scores(
    X: ArrayLike, covariance: Literal["diagonal", "full", "ledoit_wolf"] = "diagonal", n: int | None = None
) -> Float[Array, " N"]:
    """Leakage score of every record of a table, in a mean of n records from the table's source.

    The target of the game is fixed and the others are fresh, so mean and covariance of a record are estimated
    from all OTHER records; with the record among them an outlier would hide behind itself. Leaving out is exact,
    by a rank-one update: with y the centred records, S their scatter and c = N/(N - 1), the record lies at c y
    from the mean of the others, whose scatter is ``S - c y y^T``; Sherman and Morrison's formula does the rest.
    Source: azize2024, eq. 7.

    Parameters
    ----------
    X : array of shape (N, d)
        N >= 3 records; N >= d + 2 for a full covariance, N >= 4 for Ledoit-Wolf.
    covariance : {"diagonal", "full", "ledoit_wolf"}
        Ledoit-Wolf after bringing the columns to one standard deviation, that of the table.
    n : int, optional
        Records in the released mean; N unless given.

    Returns
    -------
    array of shape (N,)
        Infinite where the others are constant in some direction in which the record is not: its presence is
        certain from the mean alone. Status: asymptotic, with an estimated distribution.

    Raises
    ------
    ValueError
        For too few records and for constant columns, which are named.

    Examples
    --------
    >>> from leakbound.bounds.leakage import leakage_scores
    >>> leakage_scores([[0.0], [2.0], [4.0], [9.0]]).round(3).tolist()  # (0 - 5)^2/13/4, ...
    [0.481, 0.067, 0.001, 3.062]
    """
    one_of("covariance", covariance, ESTIMATES)
    rows = data_rows(X, least=4 if covariance == "ledoit_wolf" else 3)
    N, d = rows.shape
    if covariance == "full" and d + 2 > N:
        raise ValueError(
            f"{N:,} records leave a covariance of rank <= {N - 2:,} in {d:,} columns when one is left out; "
            f"a full one needs at least {d + 2:,} records, else use diagonal or ledoit_wolf"
        )
    y, _ = scaled(rows)
    # from moments of all records those of the others, without a pass over them for each record
    if covariance == "diagonal":
        distance = _left_out(y**2 / (y**2).mean(axis=0) * (N - 2) / N, 1 / (N - 2), N).sum(axis=1)
    elif covariance == "full":
        distance = _left_out(Full(y.T @ y / (N - 2)).quad(y), 1 / (N - 2), N)
    else:
        distance = _left_out(*_ledoit_wolf_without_each(y / y.std(axis=0)), N)
    return distance / (N if n is None else count("n", n))


def _left_out(quad: Float[Array, "N ..."], weight: ArrayLike, N: int) -> Float[Array, "N ..."]:
    """Squared distance from the others, of ``quad = y^T B^-1 y`` where their covariance is ``B - weight c y y^T``."""
    c = N / (N - 1)
    remaining = 1 - c * np.asarray(weight) * quad
    certain = remaining < CERTAIN
    return np.where(certain, np.inf, c**2 * quad / np.where(certain, 1, remaining))


def _ledoit_wolf_without_each(y: Float[Array, "N d"]) -> tuple[Float[Array, " N"], Float[Array, " N"]]:
    """Ledoit and Wolf's covariance of the others, ``B - w c y y^T`` with ``B = w S + v I``: ``y^T B^-1 y`` and w.

    The moments behind the shrinkage follow those of the whole table: the others' mean is -y/(N - 1), their
    scatter S - c y y^T, and the sum of their ``|x - mean|^4`` an expansion around the whole table's mean.
    """
    N, d = y.shape
    c, k, squares = N / (N - 1), N - 1, (y**2).sum(axis=1)
    eigenvalues, vectors = np.linalg.eigh(y.T @ y)
    eigenvalues = np.maximum(eigenvalues, 0)
    rotated = (y @ vectors) ** 2
    scatter = rotated @ eigenvalues  # y^T S y
    # Of the others' sample covariance, for each record left out: trace, sum of squared entries and fourth moment.
    trace = (eigenvalues.sum() - c * squares) / k
    entries = ((eigenvalues**2).sum() - 2 * c * scatter + (c * squares) ** 2) / k**2
    moved, third = squares / k**2, y @ (squares @ y)  # |mean of the others|^2, and y . sum of |x|^2 x
    fourth = (squares**2).sum() + 4 * scatter / k**2 + N * moved**2 + 4 * third / k + 2 * moved * squares.sum()
    weight_of_identity = shrinkage(trace, entries, (fourth - (c**2 * squares) ** 2) / k, k, d)
    # B = w S + v I has the eigenvectors of S, so y^T B^-1 y is a sum over its eigenvalues.
    weight, identity = (1 - weight_of_identity) / k, weight_of_identity * trace / d
    inside = np.maximum(weight[:, None] * eigenvalues + identity[:, None], np.finfo(float).tiny)
    with np.errstate(over="ignore"):
        return (rotated / inside).sum(axis=1), weight


def _deviation(name: str, z: ArrayLike, mean: ArrayLike) -> Float[Array, "*J d"]:
    """``z - mu``, finite."""
    target, centre = np.asarray(z, dtype=float), np.asarray(mean, dtype=float)
    if target.ndim not in (1, 2) or centre.ndim != 1 or target.shape[-1] != len(centre):
        raise ValueError(f"{name} has shape {target.shape} and mean {centre.shape}; allowed: (J, d) or (d,), and (d,)")
    if not (np.isfinite(target).all() and np.isfinite(centre).all()):
        raise ValueError(f"{name} and mean must be finite")
    return target - centre
