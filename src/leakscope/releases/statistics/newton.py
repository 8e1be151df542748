"""Minimisers of a penalised logistic loss without each record, from that of all records.

The Hessian of the loss changes by a factor of at most ``exp(|x^T step|)`` along a step, so from the gradient at a point
the distance to the minimiser is bounded: every value comes with what it errs by at most.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float
from scipy import linalg, special

Array = np.ndarray
TOLERANCE = 1e-4  # of the distance to a minimiser, in standard errors: in the norm of the Hessian of the log-losses
_N_STEPS = 100
_N_CORRECTIONS = 20  # passes over all records; where they do not suffice, a fit is made
_BLOCK = 2**22  # margins that are computed at once


def left_out_minimisers(
    x: Float[Array, "n p"], label: Float[Array, " n"], penalty: float
) -> tuple[Float[Array, " d"], Float[Array, "n d"], Bool[Array, " n"]]:
    """Minimise ``penalty * sum of log-losses + |slopes|^2/2`` on all records, and on all but one for each.

    The gradient of the loss without record i at the minimiser of all is that of record i alone, so one Newton step with
    the Hessian without i (Sherman & Morrison) goes nearly all of the way. With H that Hessian, u the step and
    ``k = |u|_H max_j |x_j|_(H^-1)``, the gradient after it has the length ``v <= exp(k/2) ((exp(k) - 1)/k - 1) |u|_H``,
    and the distance to the minimiser is at most ``v (-ln(1 - c))/c``, ``c = v exp(k/2) max_j |x_j|_(H^-1) < 1``. Where
    that is above the tolerance the gradient itself is computed, and further steps are made.

    Parameters
    ----------
    x : array of shape (n, p)
    label : array of shape (n,)
        0 or 1, both present.
    penalty : float
        > 0; C of scikit-learn.

    Returns
    -------
    of_all : array of shape (p + 1,)
        The intercept, which is not penalised, then the slopes.
    without : array of shape (n, p + 1)
    accurate : bool array of shape (n,)
        Whether the distance to the minimiser is proved to be at most `TOLERANCE`.

    Raises
    ------
    scipy.linalg.LinAlgError
        If columns are so nearly dependent that the Hessian cannot be inverted.
    """
    n, tolerance = len(x), TOLERANCE * np.sqrt(penalty)
    rows = np.column_stack([np.ones(n), x])
    of_all = _minimiser(rows, label, penalty)
    probability = special.expit(rows @ of_all)
    factor = linalg.cho_factor(_hessian(rows, probability, penalty))
    solved = linalg.cho_solve(factor, rows.T).T  # H^-1 x of each record
    squared = (solved * rows).sum(axis=1)
    weight = penalty * probability * (1 - probability)
    kept = 1 - weight * squared  # of the Hessian along x, without the record
    kept = np.where(kept > 0, kept, np.nan)
    # The inverse without record i is at most that of all over `kept`.
    longest = np.sqrt(squared.max() / kept)
    pull = penalty * (probability - label)
    step = solved * (pull / kept)[:, None]
    size = np.abs(pull) * np.sqrt(squared / kept)
    without = of_all + step
    ratio = size * longest
    left = np.exp(ratio / 2) * _exponential_rest(ratio) * size
    accurate = _distance(left, np.exp(ratio / 2) * longest) <= tolerance
    for _ in range(_N_CORRECTIONS):
        (open_rows,) = np.nonzero(~accurate & np.isfinite(left))
        if not len(open_rows):
            break
        length = max(1, _BLOCK // n)
        moved = False
        for start in range(0, len(open_rows), length):
            block = open_rows[start : start + length]
            gradient = _gradients(rows, label, penalty, without[block], block)
            direction = linalg.cho_solve(factor, gradient.T).T
            along = (direction * rows[block]).sum(axis=1) * weight[block] / kept[block]
            direction = direction + solved[block] * along[:, None]  # H^-1 without the record
            slope = np.sqrt(np.maximum((direction * gradient).sum(axis=1), 0))
            # the Hessian here, against that at the minimiser of all
            away = np.abs((without[block] - of_all) @ rows.T).max(axis=1)
            distance = _distance(np.exp(away / 2) * slope, np.exp(away / 2) * longest[block])
            done = np.exp(away / 2) * distance <= tolerance
            accurate[block[done]] = True
            without[block[~done]] -= direction[~done]
            moved = moved or not done.all()
        if not moved:
            break
    return of_all, without, accurate


def _minimiser(rows: Float[Array, "n d"], label: Float[Array, " n"], penalty: float) -> Float[Array, " d"]:
    """Find the minimiser on all records by Newton steps, halved until the loss falls."""
    theta = np.zeros(rows.shape[1])
    value = _loss(rows, label, penalty, theta)
    for _ in range(_N_STEPS):
        probability = special.expit(rows @ theta)
        gradient = penalty * rows.T @ (probability - label)
        gradient[1:] += theta[1:]
        step = linalg.cho_solve(linalg.cho_factor(_hessian(rows, probability, penalty)), gradient)
        decrease = float(gradient @ step)
        if decrease <= 1e-26:  # squared distance to the minimiser, in the norm of the Hessian
            break
        part, new_value = 1.0, _loss(rows, label, penalty, theta - step)
        while new_value > value and part > 1e-12:
            part /= 2
            new_value = _loss(rows, label, penalty, theta - part * step)
        if new_value > value:  # rounding is all that is left
            break
        theta, value = theta - part * step, new_value
    return theta


def _loss(rows: Float[Array, "n d"], label: Float[Array, " n"], penalty: float, theta: Float[Array, " d"]) -> float:
    margin = rows @ theta
    return float(penalty * (np.logaddexp(0, margin) - label * margin).sum() + theta[1:] @ theta[1:] / 2)


def _hessian(rows: Float[Array, "n d"], probability: Float[Array, " n"], penalty: float) -> Float[Array, "d d"]:
    weight = penalty * probability * (1 - probability)
    hessian = (rows * weight[:, None]).T @ rows
    hessian[np.arange(1, len(hessian)), np.arange(1, len(hessian))] += 1
    return hessian


def _gradients(
    rows: Float[Array, "n d"],
    label: Float[Array, " n"],
    penalty: float,
    theta: Float[Array, "m d"],
    left_out: np.ndarray,
) -> Float[Array, "m d"]:
    """Compute the gradient at each theta, of all records but one."""
    error = special.expit(theta @ rows.T) - label
    error[np.arange(len(theta)), left_out] = 0
    gradient = penalty * error @ rows
    gradient[:, 1:] += theta[:, 1:]
    return gradient


def _exponential_rest(k: Float[Array, " n"]) -> Float[Array, " n"]:
    """Compute ``(exp(k) - 1)/k - 1``, 0 at 0."""
    return np.where(k > 0, np.expm1(k) / np.where(k > 0, k, 1) - 1, 0.0)


def _distance(gradient: Float[Array, " n"], longest: Float[Array, " n"]) -> Float[Array, " n"]:
    """Bound the distance to the minimiser; infinite where it is not proved that there is one."""
    c = gradient * longest
    inside = c < 1
    ratio = np.where(c > 0, -np.log1p(-np.where(inside, c, 0.0)) / np.where(c > 0, c, 1.0), 1.0)
    return np.where(inside, gradient * ratio, np.inf)
