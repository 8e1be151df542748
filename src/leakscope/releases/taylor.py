"""The loss of linear and logistic models around parameters that know nothing of the game: the signal ``taylor``.

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

from leakscope.core import seeds
from leakscope.core.types import Points

Array = np.ndarray
Fit = Callable[[Points, Bool[Array, " N"], int], Any]
N_PAIRS = 8  # of fits; the mean of 8 varies by 1/8 of the variance of one
LARGEST = 4096  # parameters: a Hessian of 134 MB
_UNSEEN = 27.6  # nats that a class without a point in the data is below the others, as in a loss that is cut off
_NULL = 1e-10  # of the largest eigenvalue: below, a direction is one that the loss does not see


@dataclass(frozen=True, eq=False)
class Expansion:
    """The loss of each point, to second order around its theta0, for parameters theta of shape (R, D).

    Parameters
    ----------
    design : array of shape (N, D)
        Features, with a last column of ones for the intercept if there is one.
    predictor : array of shape (N, R)
        Linear predictors of each point at its theta0.
    residual : array of shape (N, R)
        Derivative of the loss by each of them there; the gradient is its outer product with the features.
    curvature : array of shape (N,)
        ``g^T H^-1 g`` in nats.
    parameters : callable
        From a fitted model to its theta.
    """

    design: Float[Array, "N D"]
    predictor: Float[Array, "N R"]
    residual: Float[Array, "N R"]
    curvature: Float[Array, " N"]
    parameters: Callable[[Any], Float[Array, "R D"]]

    def terms(self, model: Any) -> Float[Array, "N 2"]:
        """``(theta - theta0) . g`` and ``g^T H^-1 g`` of every point, in nats."""
        moved = self.design @ self.parameters(model).T - self.predictor
        return np.column_stack([(self.residual * moved).sum(axis=1), self.curvature])


def expansion(estimator: Any, points: Points, fit: Fit, description: Mapping[str, Any] | None) -> Expansion | None:
    """The expansion of a recipe around its fits on random halves of the points.

    The halves are drawn without regard to the game, as whoever knows the population and the recipe could draw them,
    8 with their complements. theta0 of a point is the mean of the 8 fits without it: with the point in some of them
    the first term would have lost a part of what membership adds to it. H is the Hessian of the sum of the losses of
    one more half and the point, and of the penalty: of the half at the mean of all 16 fits, of the point at its
    theta0. Without the point H would promise a large step to each point that lies alone. All of it is made once a
    process for each recipe and data.

    Parameters
    ----------
    estimator : scikit-learn estimator
    points : Points
        With labels.
    fit : callable
        ``(points, inside, seed)`` to a fitted model.
    description : mapping or None
        Canonical description of the recipe; without one, or a digest of the points, it is made at every call.

    Returns
    -------
    Expansion or None
        None unless the estimator is a `LogisticRegression` with an L2 penalty or none, a `LinearRegression` or a
        `Ridge`, without weights of classes, sign constraints or a penalised intercept, of at most 4,096 parameters.

    Notes
    -----
    With f the linear predictors the loss of a point is -log softmax(f)_y, for two classes its one-row form, or
    (y - f)^2/(2 s^2), s the standard deviation of y. Its gradient is r x^T with r = softmax(f) - e_y, or (f - y)/s^2,
    its Hessian ``W (x) x x^T`` with W = diag(p) - p p^T, or 1/s^2. A penalty adds 1/C, or alpha/s^2, to the
    diagonal, but for intercepts. Directions that no loss sees (all classes moved alike) are left out of H^-1. With
    S = (I (x) x)^T H_0^-1 (I (x) x), H_0 without the point, ``g^T H^-1 g = r^T S (I + W S)^-1 r`` (Woodbury). For
    quadratic losses -H^-1 g is the very step that the parameters take when the point is added.
    """
    model = _loss_of(estimator, points)
    if model is None:
        return None
    if not points.digest or description is None:
        return _expand.__wrapped__(_Job("", points, fit, model))
    return _expand(_Job(json.dumps([points.digest, description], sort_keys=True), points, fit, model))


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
        """Second derivative of the loss of each point by its linear predictors."""
        if not len(self.classes):
            return np.full((len(predictor), 1, 1), 1 / self.variance)
        p = self.mean(predictor)
        return p[:, :, None] * (np.eye(p.shape[1]) - p[:, None, :])

    def hessian(self, theta: Float[Array, "R D"], inside: Int[Array, " n"]) -> Float[Array, "P P"]:
        """Of the sum over the points inside, and of the penalty; blocks of D for each pair of rows."""
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
        """Coefficients with the intercepts last; a class that the model has not seen is improbable everywhere."""
        coefficients = np.atleast_2d(np.asarray(model.coef_, dtype=float))
        theta = np.zeros((len(coefficients), self.design.shape[1]))
        theta[:, : coefficients.shape[1]] = coefficients
        if coefficients.shape[1] < theta.shape[1]:
            theta[:, -1] = model.intercept_
        if len(self.classes) <= 2 or len(model.classes_) == len(self.classes):
            return theta
        seen = np.vstack([-theta / 2, theta / 2]) if len(theta) == 1 else theta
        whole = np.zeros((len(self.classes), theta.shape[1]))
        whole[:, -1] = seen[:, -1].min() - _UNSEEN
        whole[np.searchsorted(np.asarray(self.classes), model.classes_)] = seen
        return whole


@dataclass(frozen=True)
class _Job:
    """What is expanded; two are the same if their keys are."""

    key: str
    points: Points = field(compare=False)
    fit: Fit = field(compare=False)
    loss: _Loss = field(compare=False)


@lru_cache(maxsize=2)
def _expand(job: _Job) -> Expansion:
    n, loss = len(job.points), job.loss
    drawn = seeds.subsets(n, n // 2, N_PAIRS + 1, seeds.stream(0, "taylor"))
    halves = np.concatenate([drawn[:-1], ~drawn[:-1]])
    fits = [
        loss.parameters(job.fit(job.points, inside, seeds.integer(0, "taylor", b))) for b, inside in enumerate(halves)
    ]
    centre = np.mean(fits, axis=0)
    predictor = np.zeros((n, len(centre)))
    for theta, inside in zip(fits, halves, strict=True):
        predictor[~inside] += loss.design[~inside] @ theta.T / N_PAIRS
    residual = (loss.mean(predictor) - loss.target) / loss.variance
    values, vectors = np.linalg.eigh(loss.hessian(centre, np.flatnonzero(drawn[-1])))
    kept = values > _NULL * values[-1]
    root = (vectors[:, kept] / np.sqrt(values[kept])).reshape(*centre.shape, -1)
    weight = np.where(drawn[-1][:, None, None], 0.0, loss.weight(predictor))  # those of the half are in H already
    curvature = np.empty(n)
    for start in range(0, n, 512):
        part = slice(start, start + 512)
        spread = np.einsum("nd,rdk->nrk", loss.design[part], root, optimize=True)
        own = spread @ spread.swapaxes(1, 2)
        pulled = np.linalg.solve(np.eye(own.shape[1]) + weight[part] @ own, residual[part, :, None])
        curvature[part] = (residual[part, None, :] @ own @ pulled)[:, 0, 0]
    return Expansion(loss.design, predictor, residual, curvature, loss.parameters)


def _loss_of(estimator: Any, points: Points) -> _Loss | None:
    """The loss that the estimator minimises, if it is one of those with a closed form."""
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
    """Second derivative of the penalty by a coefficient; None where the recipe has no closed form here."""
    if type(estimator) is LogisticRegression:
        smooth = estimator.penalty in ("l2", None, "deprecated") and estimator.l1_ratio in (None, 0, 0.0)
        if not smooth or estimator.class_weight is not None or estimator.solver == "liblinear":
            return None
        return 0.0 if estimator.penalty is None else 1 / float(estimator.C)
    if type(estimator) in (LinearRegression, Ridge) and not estimator.positive:
        alpha = estimator.alpha if isinstance(estimator, Ridge) else 0.0
        return float(alpha) if np.ndim(alpha) == 0 else None
    return None
