"""Ridge, Poisson and Huber regression: the minimum of a loss, with an optional squared penalty on the slopes.

The response is the label, or the last column if there is no label. The intercept is not penalised. With a penalty the
units of the columns matter: divide them by a number that is known beforehand.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol, final, runtime_checkable

import numpy as np
from jaxtyping import Float

from leakbound.core.checks import non_negative, positive
from leakbound.core.types import Points
from leakbound.releases.statistics.algorithms import design, explaining
from leakbound.releases.statistics.features import numbers
from leakbound.releases.statistics.losses import Loss, PoissonLoss, PseudoHuberLoss, SquaredLoss
from leakbound.releases.statistics.newton import minimise

Array = np.ndarray


@runtime_checkable
class PenalisedRegression(Protocol):
    """An algorithm that minimises ``sum of losses + sum of ridge/2 * slopes^2``."""

    @property
    def loss(self) -> Loss:
        """The loss of a record."""
        ...

    @property
    def ridge(self) -> float | Float[Array, " p"]:
        """The weight of the squared slopes, twice: one, or one for each."""
        ...

    def table(self, points: Points) -> tuple[Float[Array, "n p"], Float[Array, " n"]]:
        """Return the explanatory columns and the response, as numbers."""
        ...


class _OfResponse(ABC):
    """A regression of the columns as they are; what follows defines its loss, and has a field ``penalty``."""

    penalty: float

    @property
    @abstractmethod
    def loss(self) -> Loss:
        """The loss of a record."""

    @property
    def ridge(self) -> float:
        """The penalty: loss and penalty are halved alike."""
        return self.penalty

    def labels(self, points: Points) -> list[str]:
        """Name the intercept and the columns."""
        return ["intercept", *explaining(points)]

    def table(self, points: Points) -> tuple[Float[Array, "n p"], Float[Array, " n"]]:
        """Return the explanatory columns and the response."""
        x, y = design(points)
        return numbers(x), numbers(y[:, None])[:, 0]

    def __call__(self, points: Points, rng: np.random.Generator) -> Float[Array, " d"]:
        """Find the minimum by Newton steps; of squared residuals one step is exact, and another one refines it."""
        return minimise(*self.table(points), self.loss, self.ridge)


@final
@dataclass(frozen=True)
class Ridge(_OfResponse):
    """Minimise ``sum of squared residuals + penalty |slopes|^2``: the intercept, then a coefficient for each column.

    >>> x = np.array([[0.0, 1.0], [1.0, 3.0], [2.0, 5.0]])
    >>> Ridge(2.0)(Points(x), np.random.default_rng(0)).round(6).tolist()
    [2.0, 1.0]
    """

    penalty: float = 1.0

    def __post_init__(self) -> None:
        non_negative("penalty", self.penalty)

    @property
    def loss(self) -> SquaredLoss:
        """Half of the squared residual."""
        return SquaredLoss()


@final
@dataclass(frozen=True)
class Poisson(_OfResponse):
    """Poisson regression, ``ln E y = intercept + slopes . x``: the intercept, then a coefficient for each column.

    It minimises ``sum of (mean - y ln mean) + penalty/2 |slopes|^2``. The response need not be whole numbers, but must
    be >= 0. The fit fails where no minimum exists, as where a level of a dummy column has no response but 0.

    >>> points = Points(np.array([[0.0, 1.0], [0.0, 3.0], [1.0, 6.0]]))
    >>> Poisson()(points, np.random.default_rng(0)).round(6).tolist()
    [0.693147, 1.098612]
    """

    penalty: float = 0.0

    def __post_init__(self) -> None:
        non_negative("penalty", self.penalty)

    @property
    def loss(self) -> PoissonLoss:
        """The negative log-likelihood."""
        return PoissonLoss()


@final
@dataclass(frozen=True)
class Huber(_OfResponse):
    """Regression by the pseudo-Huber loss: the intercept, then a coefficient for each column.

    It minimises ``sum of c^2 (sqrt(1 + (r/c)^2) - 1) + penalty/2 |slopes|^2``, r the residuals: the smooth form of
    Huber's loss, squared for residuals far below c and absolute far above.

    >>> x = np.arange(6.0)
    >>> points = Points(np.column_stack([x, np.where(x == 3, 1e6, 1 + 2 * x)]))
    >>> Huber(0.1)(points, np.random.default_rng(0)).round(1).tolist()
    [1.0, 2.0]
    """

    threshold: float  # c > 0 in units of the response: declared, not computed from the residuals
    penalty: float = 0.0

    def __post_init__(self) -> None:
        positive("threshold", self.threshold)
        non_negative("penalty", self.penalty)

    @property
    def loss(self) -> PseudoHuberLoss:
        """The pseudo-Huber loss."""
        return PseudoHuberLoss(self.threshold)
