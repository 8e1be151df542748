"""The loss of linear and logistic models around parameters that are independent of the game: the signal ``taylor``.

Axes: N points, R rows of parameters (1, or the classes of a multinomial model), D features with the intercept.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import expit, softmax
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge

from leakbound.core import seeds
from leakbound.core.types import Points

Array = np.ndarray
Fit = Callable[[Points, Bool[Array, " N"], int], Any]
N_PAIRS = 8  # of fits; the mean of 8 has 1/8 of the variance of one
LARGEST = 4096  # parameters: a Hessian of 134 MB
_UNSEEN = 27.6  # nats that a class without training points is below the others: the largest loss of a classifier
_NULL = 1e-10  # of the largest eigenvalue: below, the loss is constant along a direction


@dataclass(frozen=True, eq=False)
class Expansion:
    """The loss of each point, to second order around its theta0, for parameters theta of shape (R, D)."""

    design: Float[Array, "N D"]
    predictor: Float[Array, "N R"]
    residual: Float[Array, "N R"]  # slope of the loss in each linear predictor; times the features, its gradient
    curvature: Float[Array, " N"]
    parameters: Callable[[Any], Float[Array, "R D"]]

    def terms(self, model: Any) -> Float[Array, "N 2"]:
        """Compute ``(theta - theta0) . g`` and ``g^T H^-1 g`` of every point, in nats."""
        change = self.design @ self.parameters(model).T - self.predictor
        return np.column_stack([(self.residual * change).sum(axis=1), self.curvature])


def expansion(estimator: Any, points: Points, fit: Fit, description: Mapping[str, Any] | None) -> Expansion | None:
    """Expand the loss around fits of the estimator on random halves of the points.

    The halves are drawn independently of the game, as an attacker who knows the population and the estimator could draw
    them: 8 with their complements. theta0 of a point is the mean of the 8 fits without it: fits with the point would
    take away a part of what membership adds to the first term. H is the Hessian of the sum of the losses of one more
    half and the point, and of the penalty: of the half at the mean of all 16 fits, of the point at its theta0. Without
    the point H would predict a large step for each isolated point. It is computed once in a process for each estimator
    and data set.

    With f the linear predictors the loss of a point is -log softmax(f)_y, for two classes its one-row form, or
    (y - f)^2/(2 s^2), s the standard deviation of y. Its gradient is r x^T with r = softmax(f) - e_y, or (f - y)/s^2,
    its Hessian ``W (x) x x^T`` with W = diag(p) - p p^T, or 1/s^2. A penalty adds 1/C, or alpha/s^2, to the
    diagonal, except for intercepts. Directions along which the loss is constant (the same change for all classes) are
    left out of H^-1. With
    S = (I (x) x)^T H_0^-1 (I (x) x), H_0 without the point, ``g^T H^-1 g = r^T S (I + W S)^-1 r`` (Woodbury). For
    quadratic losses -H^-1 g is exactly the change of the parameters when the point is added.
    """
    loss = _loss_of(estimator, points)
    if loss is None:
        return None
    if not points.digest or description is None:
        return _expand.__wrapped__(_Expandable("", points, fit, loss))  # not cached
    key = json.dumps([points.digest, description], sort_keys=True)
    return _expand(_Expandable(key, points, fit, loss))


@dataclass(frozen=True)
class _Loss:
    """A generalised linear model on these points."""

    design: Float[Array, "N D"]
    target: Float[Array, "N R"]  # one-hot classes, the second class of two, or the response
    penalty: Float[Array, " D"]
    variance: float = 1.0  # of the response
    classes: Sequence[Any] = ()

    def mean(self, predictor: Float[Array, "n R"]) -> Float[Array, "n R"]:
        if not len(self.classes):
            return predictor
        return softmax(predictor, axis=1) if len(self.classes) > 2 else expit(predictor)

    def weight(self, predictor: Float[Array, "n R"]) -> Float[Array, "n R R"]:
        """Compute the second derivative of the loss of each point with respect to its linear predictors."""
        if not len(self.classes):
            return np.full((len(predictor), 1, 1), 1 / self.variance)
        p = self.mean(predictor)
        return p[:, :, None] * (np.eye(p.shape[1]) - p[:, None, :])

    def hessian(self, theta: Float[Array, "R D"], inside: Int[Array, " n"]) -> Float[Array, "P P"]:
        """Compute the Hessian of the sum over the points inside, and of the penalty; blocks of D for each two rows."""
        x = self.design[inside]
        weight = self.weight(x @ theta.T)
        n_rows, n_columns = theta.shape
        blocks = np.zeros((n_rows, n_columns, n_rows, n_columns))
        for a in range(n_rows):
            for b in range(a, n_rows):
                blocks[a, :, b] = x.T @ (weight[:, a, b, None] * x)
                blocks[b, :, a] = blocks[a, :, b]
            blocks[a, :, a] += np.diag(self.penalty)
        return blocks.reshape(n_rows * n_columns, -1)

    def parameters(self, model: Any) -> Float[Array, "R D"]:
        """Return the coefficients, the intercepts last; a class without training points is improbable everywhere."""
        coefficients = np.atleast_2d(np.asarray(model.coef_, dtype=float))
        theta = np.zeros((len(coefficients), self.design.shape[1]))
        theta[:, : coefficients.shape[1]] = coefficients
        if coefficients.shape[1] < theta.shape[1]:
            theta[:, -1] = model.intercept_
        if len(self.classes) <= 2 or len(model.classes_) == len(self.classes):
            return theta
        trained = np.vstack([-theta / 2, theta / 2]) if len(theta) == 1 else theta
        all_classes = np.zeros((len(self.classes), theta.shape[1]))
        all_classes[:, -1] = trained[:, -1].min() - _UNSEEN
        all_classes[np.searchsorted(np.asarray(self.classes), model.classes_)] = trained
        return all_classes


@dataclass(frozen=True)
class _Expandable:
    """An estimator and points for the cache; two are equal if their keys are."""

    key: str
    points: Points = field(compare=False)
    fit: Fit = field(compare=False)
    loss: _Loss = field(compare=False)


@lru_cache(maxsize=2)
def _expand(job: _Expandable) -> Expansion:
    n, loss = len(job.points), job.loss
    drawn = seeds.subsets(n, n // 2, N_PAIRS + 1, seeds.stream(0, "taylor"))
    hessian_half = drawn[-1]
    halves = np.concatenate([drawn[:-1], ~drawn[:-1]])
    # A point is out of one half of each pair, so N_PAIRS of the fits are without it.
    thetas = []
    for index, inside in enumerate(halves):
        model = job.fit(job.points, inside, seeds.integer(0, "taylor", index))
        thetas.append(loss.parameters(model))
    mean_theta = np.mean(thetas, axis=0)
    predictor = np.zeros((n, len(mean_theta)))  # at theta0, the mean over the fits without the point
    for theta, inside in zip(thetas, halves, strict=True):
        predictor[~inside] += loss.design[~inside] @ theta.T / N_PAIRS
    residual = (loss.mean(predictor) - loss.target) / loss.variance
    eigenvalues, vectors = np.linalg.eigh(loss.hessian(mean_theta, np.flatnonzero(hessian_half)))
    is_regular = eigenvalues > _NULL * eigenvalues[-1]
    # Directions in which the Hessian vanishes move no loss: its inverse is taken on the others.
    root = (vectors[:, is_regular] / np.sqrt(eigenvalues[is_regular])).reshape(*mean_theta.shape, -1)  # of H_0^-1
    weight = np.where(hessian_half[:, None, None], 0.0, loss.weight(predictor))  # points of the half are in H already
    # g^T (H_0 + x W x^T)^-1 g for the gradient g = x r, by Woodbury's identity with S = x^T H_0^-1 x.
    curvature = np.empty(n)
    for start in range(0, n, 512):
        part = slice(start, start + 512)
        whitened = np.einsum("nd,rdk->nrk", loss.design[part], root, optimize=True)
        s = whitened @ whitened.swapaxes(1, 2)
        solution = np.linalg.solve(np.eye(s.shape[1]) + weight[part] @ s, residual[part, :, None])
        curvature[part] = (residual[part, None, :] @ s @ solution)[:, 0, 0]  # r^T S (I + W S)^-1 r
    return Expansion(loss.design, predictor, residual, curvature, loss.parameters)


def _loss_of(estimator: Any, points: Points) -> _Loss | None:
    """Return the loss that the estimator minimises, if it is one of those with a closed form."""
    penalty = _penalty(estimator)
    x = np.asarray(points.x)
    if penalty is None or len(x) < 4 or x.ndim != 2 or x.dtype.kind not in "biuf":
        return None
    design = np.column_stack([x, np.ones(len(x))]) if estimator.fit_intercept else x
    per_column = np.full(design.shape[1], penalty)
    per_column[x.shape[1] :] = 0
    y = np.asarray(points.y)
    if not isinstance(estimator, LogisticRegression):
        response = y.astype(float)
        variance = float(response.var())
        return _Loss(design, response[:, None], per_column / variance, variance)
    classes, label = np.unique(y, return_inverse=True)
    target = np.eye(len(classes))[label] if len(classes) > 2 else label[:, None].astype(float)
    if target.shape[1] * design.shape[1] > LARGEST:
        return None
    return _Loss(design, target, per_column, classes=classes.tolist())


def _penalty(estimator: Any) -> float | None:
    """Return the second derivative of the penalty for each coefficient; None if there is no closed form here."""
    if type(estimator) is LogisticRegression:
        smooth = estimator.penalty in ("l2", None, "deprecated") and estimator.l1_ratio in (None, 0, 0.0)
        if not smooth or estimator.class_weight is not None or estimator.solver == "liblinear":
            return None
        return 0.0 if estimator.penalty is None else 1 / float(estimator.C)
    if type(estimator) in (LinearRegression, Ridge) and not estimator.positive:
        alpha = estimator.alpha if isinstance(estimator, Ridge) else 0.0
        return float(alpha) if np.ndim(alpha) == 0 else None
    return None
