"""Losses of regressions: convex functions of the linear predictor ``eta = intercept + slopes . x`` and the response y.

A loss is *self-concordant* with the constant M if ``|third derivative| <= M second derivative``: along a step u its
second derivative changes by a factor of at most ``exp(M |u|)``, which bounds what a Newton step leaves of the distance
to the minimum (Bach, Electronic Journal of Statistics 4, 2010; Sun & Tran-Dinh, Mathematical Programming 178, 2019).

| loss | value | M |
|---|---|---|
| squared | ``(eta - y)^2/2`` | 0 |
| logistic | ``ln(1 + e^eta) - y eta`` | 1 |
| Poisson, log link | ``e^eta - y eta`` | 1 |
| pseudo-Huber, r = eta - y | ``c^2 (sqrt(1 + (r/c)^2) - 1)`` | 3/(2c) |
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, final, runtime_checkable

import numpy as np
from jaxtyping import Float
from scipy import special

from leakbound.core.checks import positive

Array = np.ndarray


@runtime_checkable
class Loss(Protocol):
    """A convex loss of a linear predictor, with its derivatives by the predictor."""

    @property
    def concordance(self) -> float:
        """M, the largest ratio of the third to the second derivative."""
        ...

    @property
    def of_residuals(self) -> bool:
        """Whether it depends on ``eta - y`` alone."""
        ...

    def start(self, response: Float[Array, " n"]) -> float:
        """Choose an intercept from which the search for the minimum begins."""
        ...

    def value(self, predictor: Float[Array, " n"], response: Float[Array, " n"]) -> Float[Array, " n"]:
        """Compute the loss of each record."""
        ...

    def slope(self, predictor: Float[Array, "*m n"], response: Float[Array, " n"]) -> Float[Array, "*m n"]:
        """Compute the first derivative."""
        ...

    def curvature(self, predictor: Float[Array, " n"], response: Float[Array, " n"]) -> Float[Array, " n"]:
        """Compute the second derivative."""
        ...

    def parabola(self, predictor: Float[Array, " n"], response: Float[Array, " n"]) -> Float[Array, " n"] | None:
        """Return the second derivative of a parabola that touches the loss here and is nowhere below it, if known."""
        ...


@final
@dataclass(frozen=True)
class SquaredLoss:
    """``(eta - y)^2/2``.

    >>> SquaredLoss().value(np.array([3.0]), np.array([1.0])).tolist()
    [2.0]
    """

    @property
    def concordance(self) -> float:
        """0: one Newton step is exact."""
        return 0.0

    @property
    def of_residuals(self) -> bool:
        """True."""
        return True

    def start(self, response: Float[Array, " n"]) -> float:
        """Return the mean."""
        return float(response.mean())

    def value(self, predictor: Float[Array, " n"], response: Float[Array, " n"]) -> Float[Array, " n"]:
        """Compute half of the squared residuals."""
        return np.square(predictor - response) / 2

    def slope(self, predictor: Float[Array, "*m n"], response: Float[Array, " n"]) -> Float[Array, "*m n"]:
        """Compute the residuals."""
        return predictor - response

    def curvature(self, predictor: Float[Array, " n"], response: Float[Array, " n"]) -> Float[Array, " n"]:
        """Return ones."""
        return np.ones(len(predictor))

    def parabola(self, predictor: Float[Array, " n"], response: Float[Array, " n"]) -> None:
        """Return None: the loss is one itself."""


@final
@dataclass(frozen=True)
class LogisticLoss:
    """``ln(1 + e^eta) - y eta``, y = 0 or 1.

    >>> LogisticLoss().slope(np.array([0.0]), np.array([1.0])).tolist()
    [-0.5]
    """

    @property
    def concordance(self) -> float:
        """1."""
        return 1.0

    @property
    def of_residuals(self) -> bool:
        """False."""
        return False

    def start(self, response: Float[Array, " n"]) -> float:
        """Return 0."""
        return 0.0

    def value(self, predictor: Float[Array, " n"], response: Float[Array, " n"]) -> Float[Array, " n"]:
        """Compute the log-losses."""
        return np.logaddexp(0, predictor) - response * predictor

    def slope(self, predictor: Float[Array, "*m n"], response: Float[Array, " n"]) -> Float[Array, "*m n"]:
        """Compute ``probability of 1 - y``."""
        return special.expit(predictor) - response

    def curvature(self, predictor: Float[Array, " n"], response: Float[Array, " n"]) -> Float[Array, " n"]:
        """Compute ``p (1 - p)``, without a loss of digits where p is near 1."""
        return special.expit(predictor) * special.expit(-predictor)

    def parabola(self, predictor: Float[Array, " n"], response: Float[Array, " n"]) -> None:
        """Return None."""


@final
@dataclass(frozen=True)
class PoissonLoss:
    """``e^eta - y eta``, y >= 0.

    >>> PoissonLoss().slope(np.array([0.0]), np.array([3.0])).tolist()
    [-2.0]
    """

    @property
    def concordance(self) -> float:
        """1."""
        return 1.0

    @property
    def of_residuals(self) -> bool:
        """False."""
        return False

    def start(self, response: Float[Array, " n"]) -> float:
        """Return the logarithm of the mean."""
        if not (response >= 0).all():
            raise ValueError(f"the response of a Poisson regression must be >= 0, got {response.min():g}")
        mean = float(response.mean())
        if mean == 0:
            raise ValueError("the response of a Poisson regression is 0 in all records: it has no minimum")
        return math.log(mean)

    def value(self, predictor: Float[Array, " n"], response: Float[Array, " n"]) -> Float[Array, " n"]:
        """Compute the negative log-likelihood without its constant."""
        return np.exp(predictor) - response * predictor

    def slope(self, predictor: Float[Array, "*m n"], response: Float[Array, " n"]) -> Float[Array, "*m n"]:
        """Compute ``mean - y``."""
        return np.exp(predictor) - response

    def curvature(self, predictor: Float[Array, " n"], response: Float[Array, " n"]) -> Float[Array, " n"]:
        """Compute the mean."""
        return np.exp(predictor)

    def parabola(self, predictor: Float[Array, " n"], response: Float[Array, " n"]) -> None:
        """Return None: an exponential is below no parabola."""


@final
@dataclass(frozen=True)
class PseudoHuberLoss:
    """``c^2 (sqrt(1 + (r/c)^2) - 1)``, r = eta - y: ``r^2/2`` near 0, ``c |r|`` far from it.

    >>> PseudoHuberLoss(3.0).slope(np.array([4.0]), np.array([0.0])).round(12).tolist()
    [2.4]
    """

    threshold: float

    def __post_init__(self) -> None:
        positive("threshold", self.threshold)

    @property
    def concordance(self) -> float:
        """``3/(2c)``, which is attained at r = c."""
        return 1.5 / self.threshold

    @property
    def of_residuals(self) -> bool:
        """True."""
        return True

    def start(self, response: Float[Array, " n"]) -> float:
        """Return the median."""
        return float(np.median(response))

    def value(self, predictor: Float[Array, " n"], response: Float[Array, " n"]) -> Float[Array, " n"]:
        """Compute the loss, as ``r^2/(1 + sqrt(1 + (r/c)^2))``, which loses no digits near 0."""
        residual = predictor - response
        return residual * (residual / (1 + np.hypot(1, residual / self.threshold)))

    def slope(self, predictor: Float[Array, "*m n"], response: Float[Array, " n"]) -> Float[Array, "*m n"]:
        """Compute ``r/sqrt(1 + (r/c)^2)``, which is at most c."""
        residual = predictor - response
        return residual / np.hypot(1, residual / self.threshold)

    def curvature(self, predictor: Float[Array, " n"], response: Float[Array, " n"]) -> Float[Array, " n"]:
        """Compute ``(1 + (r/c)^2)^(-3/2)``."""
        return np.hypot(1, (predictor - response) / self.threshold) ** -3.0

    def parabola(self, predictor: Float[Array, " n"], response: Float[Array, " n"]) -> Float[Array, " n"]:
        """Compute ``slope/r``: the loss is a concave function of r^2."""
        return 1 / np.hypot(1, (predictor - response) / self.threshold)
