"""Minimisers of a penalised logistic loss without each record, from that of all records.

The Hessian of the loss changes by a factor of at most ``exp(|x^T step|)`` along a step, so from the gradient at a point
the distance to the minimiser is bounded: every value comes with what it errs by at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int
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
    around = _Around.minimiser(np.column_stack([np.ones(len(x)), x]), label, penalty)
    without, proved = around.step()
    accurate, defined = proved <= around.tolerance, np.isfinite(without).all(axis=1)
    for _ in range(_N_CORRECTIONS):
        (to_correct,) = np.nonzero(~accurate & defined)
        if not len(to_correct):
            break
        for block in np.array_split(to_correct, -(-len(to_correct) * len(x) // _BLOCK)):
            correction, distance = around.correction(without[block], block)
            accurate[block] = distance <= around.tolerance
            without[block] += np.where(accurate[block, None], 0.0, correction)
    return around.theta, without, accurate


@dataclass(frozen=True, eq=False)
class _Around:
    """The loss around its minimiser on all records, and what changes without each of them.

    Parameters
    ----------
    rows : array of shape (n, d)
        A column of ones, and the columns.
    label : array of shape (n,)
    penalty : float
    theta : array of shape (d,)
        The minimiser.
    factor : tuple
        Cholesky factor of the Hessian H there.
    solved : array of shape (n, d)
        ``H^-1 x`` of each record.
    """

    rows: Float[Array, "n d"]
    label: Float[Array, " n"]
    penalty: float
    theta: Float[Array, " d"]
    factor: tuple[Array, bool]
    solved: Float[Array, "n d"]

    @classmethod
    def minimiser(cls, rows: Float[Array, "n d"], label: Float[Array, " n"], penalty: float) -> _Around:
        """Find the minimiser on all records."""
        theta = _minimiser(rows, label, penalty)
        factor = linalg.cho_factor(_hessian(rows, special.expit(rows @ theta), penalty))
        return cls(rows, label, penalty, theta, factor, linalg.cho_solve(factor, rows.T).T)

    @property
    def tolerance(self) -> float:
        """The largest distance to a minimiser, in the norm of H: `TOLERANCE` in that of the log-losses."""
        return TOLERANCE * float(np.sqrt(self.penalty))

    @cached_property
    def probability(self) -> Float[Array, " n"]:
        """Of label 1, at the minimiser."""
        return special.expit(self.rows @ self.theta)

    @cached_property
    def weight(self) -> Float[Array, " n"]:
        """What each record adds to H is so many times ``x x^T``."""
        return self.penalty * self.probability * (1 - self.probability)

    @cached_property
    def squared(self) -> Float[Array, " n"]:
        """Squared length of each record in the norm of H^-1."""
        return (self.solved * self.rows).sum(axis=1)

    @cached_property
    def kept(self) -> Float[Array, " n"]:
        """The part of H that stays in the direction of x without the record; NaN where nothing does."""
        kept = 1 - self.weight * self.squared
        return np.where(kept > 0, kept, np.nan)

    @cached_property
    def longest(self) -> Float[Array, " n"]:
        """Bound the length of every record in the norm of the inverse Hessian without each: at most H^-1 over kept."""
        return np.sqrt(self.squared.max() / self.kept)

    def step(self) -> tuple[Float[Array, "n d"], Float[Array, " n"]]:
        """Make one Newton step without each record, and bound the distance to the minimiser that is left."""
        pull = self.penalty * (self.probability - self.label)
        size = np.abs(pull) * np.sqrt(self.squared / self.kept)
        k = size * self.longest
        gradient = np.exp(k / 2) * _exponential_rest(k) * size
        distance = _distance(gradient, np.exp(k / 2) * self.longest)
        return self.theta + self.solved * (pull / self.kept)[:, None], distance

    def correction(
        self, theta: Float[Array, "m d"], left_out: Int[Array, " m"]
    ) -> tuple[Float[Array, "m d"], Float[Array, " m"]]:
        """Compute the step from the gradient at each theta, and bound the distance from theta to the minimiser."""
        gradient = _gradients(self.rows, self.label, self.penalty, theta, left_out)
        direction = linalg.cho_solve(self.factor, gradient.T).T
        along = (direction * self.rows[left_out]).sum(axis=1) * self.weight[left_out] / self.kept[left_out]
        direction = direction + self.solved[left_out] * along[:, None]  # by the Hessian without the record
        slope = np.sqrt(np.maximum((direction * gradient).sum(axis=1), 0))
        # the Hessian at theta is within this factor of that at the minimiser of all
        factor = np.exp(np.abs((theta - self.theta) @ self.rows.T).max(axis=1) / 2)
        return -direction, factor * _distance(factor * slope, factor * self.longest[left_out])


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
    left_out: Int[Array, " m"],
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
