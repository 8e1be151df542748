"""Minimisers of the penalised loss of a regression, on all records and without each unit of them.

The second derivative of a self-concordant loss (see `losses`) changes by a bounded factor along a step, so from the
gradient at a point the distance to the minimiser is bounded: every value comes with what it errs by at most. With H the
Hessian at theta, g the gradient there, ``nu = |g|_(H^-1)`` and ``kappa = M nu max_j |x_j|_(H^-1) < 1`` there is a
minimiser, and it is within ``nu (-ln(1 - kappa))/kappa`` of theta in the norm of H.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float
from scipy import linalg

from leakbound.releases.statistics.losses import Loss
from leakbound.releases.statistics.units import Block, Units

Array = np.ndarray
Ridge = float | Float[Array, " p"]  # of all slopes, or of each
TOLERANCE = 1e-4  # of the distance to a minimiser, in standard errors
_N_STEPS = 200
_N_HALVINGS = 60
_NEAR = 0.25  # of kappa, below which Newton steps need no line search
_N_CORRECTIONS = 20  # passes over all records; where they do not suffice, a fit is made
_BLOCK = 2**22  # numbers that are computed at once
_DEPENDENT = 1e-9  # distance of a column of length 1 to the span of others, below which it depends on them
_ROUGHEST = 1e-5  # the part of the Hessian that stays without a unit, with which no digits are lost
_ROUNDING = 1e-12  # relative error of a minimiser
# Relative error of what is added to a pull, times the part of the Hessian that is left. It is measured, not proved: of
# 1,300 records with the largest values, against rational arithmetic, none erred by more than .27 of what it gives.
_LOST = 1e-10


@dataclass(frozen=True, eq=False)
class Regression:
    """The sum of a loss over records, plus ``penalty/2 * |slopes|^2``.

    The columns are centred and scaled inside, so that they may be in any units and far from zero; the penalty is of the
    slopes of the columns as they are given, and the intercept is free.
    """

    rows: Float[Array, "n d"]
    response: Float[Array, " n"]
    loss: Loss
    penalty: Float[Array, " d"]
    origin: float
    centre: Float[Array, " p"]
    scale: Float[Array, " p"]

    @classmethod
    def of(cls, x: Float[Array, "n p"], response: Float[Array, " n"], loss: Loss, penalty: Ridge) -> Regression:
        """Centre and scale the columns."""
        centre = x.mean(axis=0)
        rows = np.column_stack([np.ones(len(x)), x - centre])
        scale = np.sqrt(np.square(rows[:, 1:]).mean(axis=0) + penalty / len(x))
        scale[scale == 0] = 1
        rows[:, 1:] /= scale
        origin = loss.start(response) if loss.of_residuals else 0.0
        return cls(rows, response - origin, loss, np.append(0, penalty / scale / scale), origin, centre, scale)

    def raw(self, theta: Float[Array, "*m d"]) -> Float[Array, "*m d"]:
        """Return the intercept and the slopes of the columns as they were given."""
        slopes = theta[..., 1:] / self.scale
        intercept = self.origin + theta[..., 0] - slopes @ self.centre
        return np.concatenate([intercept[..., None], slopes], axis=-1)

    def value(self, theta: Float[Array, " d"]) -> float:
        """Compute the penalised loss."""
        losses = self.loss.value(self.rows @ theta, self.response)
        return float(losses.sum() + self.penalty @ np.square(theta) / 2)

    def gradient(self, theta: Float[Array, " d"]) -> Float[Array, " d"]:
        """Compute its gradient."""
        return self.loss.slope(self.rows @ theta, self.response) @ self.rows + self.penalty * theta

    def factor(self, weight: Float[Array, " n"]) -> Float[Array, "d d"]:
        """Factor the Hessian, from the second derivative of each record: a lower triangle L with ``H = L L^T``.

        It is that of a QR decomposition of the weighted rows, which loses half as many digits as their products.
        """
        weighted = np.vstack([self.rows * np.sqrt(weight)[:, None], np.diag(np.sqrt(self.penalty))])
        triangle = np.asarray(np.linalg.qr(weighted, mode="r"))
        size = np.linalg.norm(triangle, axis=0)
        if not (np.abs(np.diagonal(triangle)) > _DEPENDENT * size).all():
            raise np.linalg.LinAlgError("the Hessian is nearly singular")
        return triangle.T

    def curvature(self, theta: Float[Array, " d"]) -> Float[Array, " n"]:
        """Compute the second derivative of each record."""
        return self.loss.curvature(self.rows @ theta, self.response)

    def minimiser(self) -> Float[Array, " d"]:
        """Find the minimiser by Newton steps.

        Far from it the steps are shortened until the loss falls. Near it they are taken as they are, for as long as
        they become shorter.
        """
        theta = np.zeros(self.rows.shape[1])
        theta[0] = self.loss.start(self.response)
        shortest, contracts, near = np.inf, False, False
        for _ in range(_N_STEPS):
            gradient = self.gradient(theta)
            factor = self._factor(theta)
            white = linalg.solve_triangular(factor, gradient, lower=True)
            length = float(np.linalg.norm(white))
            longest = np.linalg.norm(linalg.solve_triangular(factor, self.rows.T, lower=True), axis=0).max()
            kappa = self.loss.concordance * length * longest
            if near and not length < shortest / 2:  # rounding is all that is left, or there is no minimum
                if kappa < 1 or contracts:
                    return theta
                break
            contracts = contracts or (near and length < shortest / 100)  # as only steps near a minimum do
            step = linalg.solve_triangular(factor.T, white)
            near = near or kappa < _NEAR
            shorter = None if near else self._shorter(theta, gradient, step)
            if shorter is None:  # the loss may fall by less than its rounding error
                near, shortest = True, length
                theta = theta - step
            else:
                theta = shorter
        raise ValueError("the regression has no minimum, or none is found")

    def _factor(self, theta: Float[Array, " d"]) -> Float[Array, "d d"]:
        """Factor the Hessian, or far from the minimum that of a parabola above the loss."""
        try:
            return self.factor(self.curvature(theta))
        except np.linalg.LinAlgError:
            weight = self.loss.parabola(self.rows @ theta, self.response)
            if weight is None:
                raise
            return self.factor(weight)

    def _shorter(
        self, theta: Float[Array, " d"], gradient: Float[Array, " d"], step: Float[Array, " d"]
    ) -> Float[Array, " d"] | None:
        """Shorten a step until the loss falls, and return where it ends; None if the loss does not fall.

        Where the loss is below a parabola the minimum of that is tried, before a Newton step is shortened much.
        """
        value = self.value(theta)
        trials = [(step, 0.5**halving) for halving in range(_N_HALVINGS)]
        weight = self.loss.parabola(self.rows @ theta, self.response)
        if weight is not None:
            above = linalg.cho_solve((self.factor(weight), True), gradient)
            trials.insert(3, (above, 1.0))
        for direction, part in trials:
            new_theta = theta - part * direction
            wanted = value - 1e-4 * part * (gradient @ direction)
            if self.value(new_theta) < min(value, wanted):
                return new_theta
        return None


def minimise(x: Float[Array, "n p"], response: Float[Array, " n"], loss: Loss, penalty: Ridge) -> Float[Array, " d"]:
    """Minimise ``sum of losses + penalty/2 * |slopes|^2``.

    >>> from leakbound.releases.statistics.losses import SquaredLoss
    >>> minimise(np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 3.0, 5.0]), SquaredLoss(), 0.0).round(9).tolist()
    [1.0, 2.0]
    """
    regression = Regression.of(x, response, loss, penalty)
    try:
        return regression.raw(regression.minimiser())
    except np.linalg.LinAlgError:
        raise ValueError("columns depend on each other: leave one of them out, or give a penalty") from None


def left_out_minimisers(
    x: Float[Array, "n p"],
    response: Float[Array, " n"],
    loss: Loss,
    penalty: Ridge,
    units: Units | None = None,
) -> tuple[Float[Array, " d"], Float[Array, "m d"], Float[Array, "m d"]]:
    """Minimise ``sum of losses + penalty/2 * |slopes|^2`` on all records, and on all but those of a unit for each.

    The gradient of the loss without a unit at the minimiser of all is that of the unit alone, so one Newton step with
    the Hessian without it goes nearly all of the way. With H that Hessian, u the step and
    ``k = M |u|_H max_j |x_j|_(H^-1)``, the gradient after it has the length ``v <= exp(k/2) ((exp(k) - 1)/k - 1)
    |u|_H``, from which the distance to the minimiser follows. Where that is above the tolerance the gradient itself is
    computed, and further steps are made.
    """
    regression = Regression.of(x, response, loss, penalty)
    around = _Around(regression, Units.single(len(x)) if units is None else units, regression.minimiser())
    without, proved, lost = around.steps()
    distance, defined = np.where(proved <= around.tolerance, proved, np.inf), np.isfinite(without).all(axis=1)
    for _ in range(_N_CORRECTIONS):
        (to_correct,) = np.nonzero(np.isinf(distance) & defined)
        for some in np.array_split(to_correct, -(-len(to_correct) * len(x) // _BLOCK)) if len(to_correct) else []:
            for block in around.units.chosen(some, around.n_numbers, _BLOCK):
                correction, left = around.correction(without[block.units], block)
                close = left <= around.tolerance
                distance[block.units] = np.where(close, left, np.inf)
                without[block.units] += np.where(close[:, None], 0.0, correction)
    # a fit of the other records, with which these values are compared, errs by its rounding as well
    # Proved but for rounding, which is estimated. Infinite in a row where the distance is not proved to be at most
    # TOLERANCE, in the norm of the Hessian of all: there a standard error is
    # sqrt(sum of squared slopes/sum of curvatures) of the loss.
    error = (distance + 2 * around.rounding)[:, None] * around.unit_ball + lost
    return regression.raw(around.theta), regression.raw(without), error


@dataclass(frozen=True, eq=False)
class _Around:
    """The loss around its minimiser on all records, and what changes without each unit.

    Vectors are *white*: multiplied by the inverse of the Cholesky factor L of the Hessian H on all records, so that H
    is the identity, and a record of length ``|x|_(H^-1)`` has that length.
    """

    regression: Regression
    units: Units
    theta: Float[Array, " d"]

    @cached_property
    def slope(self) -> Float[Array, " n"]:
        """Of the loss of each record."""
        return self.regression.loss.slope(self.regression.rows @ self.theta, self.regression.response)

    @cached_property
    def curvature(self) -> Float[Array, " n"]:
        """What each record adds to H is so many times ``x x^T``."""
        return self.regression.curvature(self.theta)

    @cached_property
    def factor(self) -> Float[Array, "d d"]:
        """L."""
        return self.regression.factor(self.curvature)

    @cached_property
    def white(self) -> Float[Array, "n d"]:
        """Each record, white."""
        return self._whitened(self.regression.rows)

    @cached_property
    def longest(self) -> float:
        """The largest length of a record in the norm of H^-1."""
        return float(np.sqrt(np.square(self.white).sum(axis=1).max()))

    @cached_property
    def tolerance(self) -> float:
        """The largest distance to a minimiser in the norm of H: some of a standard error, and rounding."""
        error = np.sqrt(np.square(self.slope).sum() / self.curvature.sum())
        return float(TOLERANCE * error) + self.rounding

    @cached_property
    def rounding(self) -> float:
        """What a minimiser errs by because of the rounding of its fit, in the norm of H."""
        return _ROUNDING * float(np.linalg.norm(self.factor.T @ self.theta))

    @cached_property
    def unit_ball(self) -> Float[Array, " d"]:
        """The largest change of each raw coefficient within a distance of 1 in the norm of H."""
        axes = self._restored(np.eye(len(self.theta)))
        slopes = axes[:, 1:] / self.regression.scale
        intercept = axes[:, 0] - slopes @ self.regression.centre
        return np.linalg.norm(np.column_stack([intercept, slopes]), axis=0)

    @property
    def n_numbers(self) -> int:
        """Numbers that are computed for each record: those of a matrix where units have several."""
        d = len(self.theta)
        return d if self.units.order is None else d * d

    def steps(self) -> tuple[Float[Array, "m d"], Float[Array, " m"], Float[Array, "m d"]]:
        """Make one Newton step without each unit, and bound what is left to the minimiser."""
        thetas, distances = np.empty((self.units.n, len(self.theta))), np.empty(self.units.n)
        lost = np.empty_like(thetas)
        concordance = self.regression.loss.concordance
        for block in self.units.blocks(self.n_numbers, _BLOCK):
            removed = self._removed(block)
            pull = block.sums(self.white[block.rows] * self.slope[block.rows, None])
            step = removed.solve(pull)
            size = np.sqrt(np.maximum((pull * step).sum(axis=1), 0))
            longest = self.longest / np.sqrt(removed.kept)
            k = concordance * size * longest
            change = np.exp(k / 2)
            distance = change * _distance(change * _exponential_rest(k) * size, concordance * change * longest)
            distances[block.units] = distance / np.sqrt(removed.kept)
            # what is left of the Hessian is a difference: where it is little, what it adds to the pull loses digits
            added = self.regression.raw(self._restored(step - pull)) - self.regression.raw(np.zeros_like(self.theta))
            lost[block.units] = _LOST * np.abs(added) / removed.kept[:, None]
            thetas[block.units] = self.theta + self._restored(step)
        return thetas, distances, lost

    def correction(self, theta: Float[Array, "m d"], block: Block) -> tuple[Float[Array, "m d"], Float[Array, " m"]]:
        """Compute the step from the gradient at each theta, and bound the distance from theta to the minimiser."""
        regression, concordance = self.regression, self.regression.loss.concordance
        removed = self._removed(block)
        slope = regression.loss.slope(theta @ regression.rows.T, regression.response)
        slope[np.repeat(np.arange(len(theta)), block.count), block.rows] = 0
        gradient = self._whitened(slope @ regression.rows + regression.penalty * theta)
        step = removed.solve(gradient)
        size = np.sqrt(np.maximum((gradient * step).sum(axis=1), 0))
        # the Hessian at theta is within the square of this factor of that at the minimiser of all
        change = np.exp(concordance * np.abs((theta - self.theta) @ regression.rows.T).max(axis=1) / 2)
        longest = self.longest / np.sqrt(removed.kept)
        distance = change * _distance(change * size, concordance * change * longest) / np.sqrt(removed.kept)
        return -self._restored(step), distance

    def _whitened(self, vectors: Float[Array, "m d"]) -> Float[Array, "m d"]:
        return linalg.solve_triangular(self.factor, vectors.T, lower=True, check_finite=False).T

    def _restored(self, white: Float[Array, "m d"]) -> Float[Array, "m d"]:
        return linalg.solve_triangular(self.factor.T, white.T, check_finite=False).T

    def _removed(self, block: Block) -> _WithoutOne | _WithoutSeveral:
        white, curvature = self.white[block.rows], self.curvature[block.rows]
        if block.alone:
            return _WithoutOne.of(white, curvature)
        d = len(self.theta)
        products = (white[:, :, None] * white[:, None, :] * curvature[:, None, None]).reshape(-1, d * d)
        return _WithoutSeveral.of(block.sums(products).reshape(-1, d, d))


@dataclass(frozen=True, eq=False)
class _WithoutOne:
    """The Hessian without one record, white: ``I - w a a^T``."""

    white: Float[Array, "m d"]
    curvature: Float[Array, " m"]
    kept: Float[Array, " m"]

    @classmethod
    def of(cls, white: Float[Array, "m d"], curvature: Float[Array, " m"]) -> _WithoutOne:
        """Compute what is left of the Hessian."""
        return cls(white, curvature, _clearly_positive(1 - curvature * np.square(white).sum(axis=1)))

    def solve(self, vectors: Float[Array, "m d"]) -> Float[Array, "m d"]:
        """Multiply by the inverse (Sherman & Morrison 1950)."""
        along = (self.white * vectors).sum(axis=1) * self.curvature / self.kept
        return vectors + self.white * along[:, None]


@dataclass(frozen=True, eq=False)
class _WithoutSeveral:
    """The Hessian without several records, white."""

    matrices: Float[Array, "m d d"]
    kept: Float[Array, " m"]

    @classmethod
    def of(cls, removed: Float[Array, "m d d"]) -> _WithoutSeveral:
        """Subtract what the records add to the identity."""
        matrices = np.eye(removed.shape[1]) - removed
        kept = _clearly_positive(np.linalg.eigvalsh(matrices)[:, 0])
        matrices[np.isnan(kept)] = np.eye(removed.shape[1])
        return cls(matrices, kept)

    def solve(self, vectors: Float[Array, "m d"]) -> Float[Array, "m d"]:
        """Multiply by the inverse; NaN where too little is left."""
        solved = np.linalg.solve(self.matrices, vectors[:, :, None])[:, :, 0]
        return np.where(np.isnan(self.kept)[:, None], np.nan, solved)


def _clearly_positive(kept: Float[Array, " m"]) -> Float[Array, " m"]:
    return np.where(kept > _ROUGHEST, kept, np.nan)


def _exponential_rest(k: Float[Array, " n"]) -> Float[Array, " n"]:
    """Compute ``(exp(k) - 1)/k - 1``, 0 at 0."""
    return np.where(k > 0, np.expm1(k) / np.where(k > 0, k, 1) - 1, 0.0)


def _distance(gradient: Float[Array, " n"], longest: Float[Array, " n"]) -> Float[Array, " n"]:
    """Bound the distance to the minimiser; infinite where it is not proved that there is one."""
    c = gradient * longest
    inside = c < 1
    ratio = np.where(c > 0, -np.log1p(-np.where(inside, c, 0.0)) / np.where(c > 0, c, 1.0), 1.0)
    return np.where(inside, gradient * ratio, np.inf)
