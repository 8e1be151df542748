"""Least squares with Gaussian noise: the best membership attacker in closed form.

The game (delgrosso2021, section 4.1): the rows x_j of X are fixed and public, the responses are
``y = X beta + noise``, the release is the least-squares estimate. With probability 1/2 the attacker gets a
random record's own response, else a fresh one with the same x_j; it knows X, beta and j.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Num
from numpy.typing import ArrayLike

from leakbound.bounds.generalisation import Exponential, generalisation_bound_tails
from leakbound.bounds.information import kl_upper
from leakbound.core.checks import count, positive
from leakbound.core.intervals import Interval, clopper_pearson
from leakbound.core.seeds import stream

Array = np.ndarray
_BLOCK = 1 << 20  # numbers of one block of work


@dataclass(frozen=True, eq=False)
class RegressionLeakage:
    """What least squares leaks about who is in its data; see `linear_regression_bayes`."""

    leverage: Float[Array, " n"]
    tv: Float[Array, " n"]  # between in and out; (1 + tv)/2 is the best accuracy against the record
    accuracy: float
    information: float
    # accuracy without the exact distribution: from the generalisation gap and the tail of the squared residual, and
    # from the information
    lower: float
    upper: float
    gap: float
    tail: Exponential


def leverages(X: Num[Array, "n d"]) -> Float[Array, " n"]:
    """Leverage of each record: the diagonal of ``X (X^T X)^-1 X^T``.

    Source: delgrosso2021, eq. 76 and 77.

    Parameters
    ----------
    X : array of shape (n, d)
        Features, n > d; give a column of ones for an intercept.

    Returns
    -------
    array of shape (n,)
        In [0, 1); their sum is d.

    Raises
    ------
    ValueError
        If n <= d, a value is not finite, the columns are linearly dependent, or a record has leverage 1: the
        fit passes through its response whatever the others are, and the release shows it.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.bounds.regression import leverages
    >>> leverages(np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])).round(6).tolist()
    [0.833333, 0.333333, 0.833333]
    """
    return (_directions(X) ** 2).sum(axis=1)


def correlation_tv(correlation: ArrayLike) -> Float[Array, "*shape"] | float:
    """Total variation between a standard normal pair with this correlation and an independent one.

    ``TV(r) = 1/pi int_0^{pi/2} (1 - r^2)^{1/(2 r cos u)} r cos u/(1 - r cos u) du``; about r/pi for small r.
    The likelihood ratio exceeds 1 where, in polar coordinates with angle v/2 from the diagonal, the squared
    radius is below a bound that depends on v; it is exponential, so each distribution leaves one integral over v, and
    Kepler's substitution cos u = (r + cos v)/(1 + r cos v) joins the two.

    Parameters
    ----------
    correlation : array_like
        In [-1, 1].

    Returns
    -------
    array or float
        In [0, 1], to 1e-12.

    Raises
    ------
    ValueError
        If a correlation lies outside [-1, 1].

    References
    ----------
    delgrosso2021, proposition 1 with the distributions of eq. 31 and 32.

    Examples
    --------
    >>> from leakbound.bounds.regression import correlation_tv
    >>> correlation_tv([0.1, 0.5, 0.9]).round(9).tolist()
    [0.03206911, 0.184608463, 0.514881908]
    """
    r = np.abs(np.asarray(correlation, dtype=float))
    if not (r <= 1).all():
        raise ValueError(f"correlation must be >= -1 and <= 1, got {np.min(correlation):g} to {np.max(correlation):g}")
    flat, size = r.reshape(-1), max(1, _BLOCK // len(_LOG_TAN))
    parts = [_tv(flat[start : start + size]) for start in range(0, flat.size, size)]
    return np.concatenate(parts).reshape(r.shape)[()] if parts else r


def linear_regression_bayes(X: Num[Array, "n d"], noise_std: float = 1.0) -> RegressionLeakage:
    """Accuracy of the best membership attacker on least squares, exactly, with the bounds around it.

    Given j, the estimate matters through its prediction at x_j alone; with the response it is a Gaussian pair
    with correlation sqrt(h_j) for a member and 0 otherwise. So the best attacker has the accuracy
    ``1/2 + 1/(2 n) sum_j TV(sqrt(h_j))`` with `correlation_tv`, and the information is
    ``1/(4 n) sum_j -ln(1 - h_j)``. Neither depends on ``noise_std`` or on beta.

    Parameters
    ----------
    X : array of shape (n, d)
        Features as in `leverages`.
    noise_std : float
        Standard deviation of the noise of the response, > 0; sets the unit of ``gap`` and ``tail``.

    Returns
    -------
    RegressionLeakage
        With the leverages that it depends on.

    Raises
    ------
    ValueError
        As `leverages`.

    References
    ----------
    delgrosso2021, theorem 1, eq. 29-34; the tail of the squared residual has the proxy of the record with the
    largest leverage, and information is in nats.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.bounds.regression import linear_regression_bayes
    >>> found = linear_regression_bayes(np.repeat(np.eye(2), 5, axis=0))  # all leverages are .2
    >>> round(found.lower, 4), round(found.accuracy, 4), round(found.upper, 4)
    (0.514, 0.5802, 0.6654)
    """
    variance = positive("noise_std squared", positive("noise_std", noise_std) * noise_std)
    leverage = leverages(X)
    n, d = X.shape
    # response and prediction have correlation sqrt(h) for a member, and 0 for a fresh response
    tv = np.asarray(correlation_tv(np.sqrt(leverage)))
    # bounds of the same game: by the generalisation gap, whose losses have exponential tails, and by information
    information = float(-np.log1p(-leverage).mean() / 4)
    gap, tail = 2 * d * variance / n, Exponential(variance * (1 + float(leverage.max())), non_negative=True)
    return RegressionLeakage(
        leverage=leverage,
        tv=tv,
        accuracy=float(1 + tv.mean()) / 2,
        information=information,
        lower=generalisation_bound_tails(gap, tail),
        upper=kl_upper(information),
        gap=gap,
        tail=tail,
    )


def simulate_regression_game(
    X: Num[Array, "n d"], noise_std: float = 1.0, n_games: int = 10_000, seed: int = 0, confidence: float = 0.95
) -> Interval:
    """Play the membership game on least squares with the best attacker.

    In each game all responses are drawn anew (beta = 0: the attacker knows it and takes it off), the
    estimate is computed, and the attacker compares the densities of the whole estimate with and without the
    response it was given.

    Parameters
    ----------
    X : array of shape (n, d)
        Features as in `leverages`.
    noise_std : float
        Standard deviation of the noise of the response, > 0.
    n_games : int
    seed : int
    confidence : float

    Returns
    -------
    Interval
        Fraction of correct guesses, with Clopper-Pearson limits; covers ``linear_regression_bayes(X).accuracy``.

    Raises
    ------
    ValueError
        As `leverages`.

    References
    ----------
    delgrosso2021, algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.bounds.regression import simulate_regression_game
    >>> found = simulate_regression_game(np.repeat(np.eye(2), 5, axis=0), n_games=40_000)
    >>> found.low < 0.580197 < found.high
    True
    """
    noise_std, n_games = positive("noise_std", noise_std), count("n_games", n_games)
    directions = _directions(X)
    n = len(directions)
    record = stream(seed, "regression", "record").integers(n, size=n_games)
    member = stream(seed, "regression", "member").random(n_games) < 0.5
    response = noise_std * stream(seed, "regression", "fresh").normal(size=n_games)
    # Blocks of games bound the memory; one stream for all of them, so the block size does not change the numbers.
    rng, size = stream(seed, "regression", "responses"), max(1, _BLOCK // n)
    won = 0
    for start in range(0, n_games, size):
        game = slice(start, start + size)
        responses = noise_std * rng.normal(size=(len(member[game]), n))
        member_response = responses[np.arange(len(responses)), record[game]]
        tested_response = np.where(member[game], member_response, response[game])
        ratio = _log_ratio(responses @ directions / noise_std, tested_response / noise_std, directions[record[game]])
        won += int(((ratio > 0) == member[game]).sum())
    return clopper_pearson(won, n_games, confidence)


def _log_ratio(
    estimate: Float[Array, "G d"], tested_response: Float[Array, " G"], direction: Float[Array, "G d"]
) -> Float[Array, " G"]:
    """Log of the estimate's density given that the response is in, over that without it.

    ``N(q w, I - q q^T)`` against ``N(0, I)`` at z = Q^T y (noise_std = 1; z and the estimate give each
    other), q the record's row of Q and w the response: delgrosso2021, eq. 31 and 32.
    """
    leverage = (direction**2).sum(axis=1)
    along = (direction * estimate).sum(axis=1)
    # |z - q w|^2 - |z|^2 = w (w h - 2 q.z), and the inverse of I - q q^T adds (q.(z - q w))^2/(1 - h)
    along_change = tested_response * (tested_response * leverage - 2 * along)
    change = along_change + (along - tested_response * leverage) ** 2 / (1 - leverage)
    return -(np.log1p(-leverage) + change) / 2


# tan u = e^y carries (0, pi/2) to the line. There the integrand is analytic for |Im y| < pi/2 for every r, so
# that the trapezoidal rule with this step errs by about exp(-pi^2/step) = 1e-17, and it falls off at both ends.
_STEP = 0.25
_LOG_TAN = np.arange(-60, 20, _STEP)
_TAN_SQUARED = np.exp(2 * _LOG_TAN)
_SECANT = np.sqrt(1 + _TAN_SQUARED)
_SECANT_LESS_1 = _TAN_SQUARED / (1 + _SECANT)
_WEIGHT = _STEP / (2 * np.pi * np.cosh(_LOG_TAN))


def _tv(r: Float[Array, " r"]) -> Float[Array, " r"]:
    """`correlation_tv` of numbers in [0, 1]."""
    inside = np.clip(r, np.finfo(float).tiny, 1 - np.finfo(float).epsneg)[:, None]
    exponent = np.log1p(-(inside**2)) / (2 * inside) * _SECANT
    integral = (np.exp(exponent) / (1 - inside + _SECANT_LESS_1) * _WEIGHT).sum(axis=1)
    return np.where(r < 1, r * integral, 1.0)


def _directions(X: Num[Array, "n d"]) -> Float[Array, "n d"]:
    """Orthonormal columns Q that span those of X; its rows have the leverages as squared lengths."""
    if X.ndim != 2 or X.shape[1] == 0:
        raise ValueError(f"X must be (n, d), d >= 1, got shape {X.shape}")
    n, d = X.shape
    if n <= d:
        raise ValueError(f"least squares needs more records than columns, got {n} records of {d} columns")
    table = np.asarray(X, dtype=float)
    if not np.isfinite(table).all():
        raise ValueError("X has NaN or infinite values")
    largest = np.abs(table).max(axis=0)
    Q, R = np.linalg.qr(table / np.where(largest > 0, largest, 1))  # leverages have no unit, a rank would
    sizes = np.linalg.svd(R, compute_uv=False)
    rank = int((sizes > n * np.finfo(float).eps * sizes[0]).sum())
    if rank < d:
        raise ValueError(f"the {d} columns of X are linearly dependent, of rank {rank}; leave out {d - rank}")
    # Leverage 1: the fit passes through the record, so its response is known exactly from the release.
    full = np.flatnonzero(1 - (Q**2).sum(axis=1) < 1e-10)
    if len(full):
        names = ", ".join(map(str, full[:5])) + (" ..." if len(full) > 5 else "")
        raise ValueError(f"each leverage must be below 1, got 1 at {len(full)} records ({names}): the fit meets them")
    return Q
