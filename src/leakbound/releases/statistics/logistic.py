"""Coefficients of a logistic regression with a squared penalty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from jaxtyping import Float

from leakbound.core.checks import positive
from leakbound.core.types import Points
from leakbound.releases.statistics.algorithms import design, explaining
from leakbound.releases.statistics.features import marked_as_read, numbers
from leakbound.releases.statistics.losses import LogisticLoss
from leakbound.releases.statistics.newton import minimise

Array = np.ndarray


@final
@dataclass(frozen=True)
class Logistic:
    """Coefficients of a logistic regression of two classes: the intercept, then one for each column.

    The response is the label, or the last column if there is no label; the second class in sorted order counts as 1. If
    the data in use have only one class, the fit fails.

    >>> points = Points(np.array([[0.0], [1.0], [2.0], [3.0]]), np.array(["no", "yes", "no", "yes"]))
    >>> Logistic()(points, np.random.default_rng(0)).round(3).tolist()
    [-0.679, 0.453]
    """

    # public numbers: in the fit, and in the coefficients, the columns are (x - centre)/spread
    centre: tuple[float, ...] | None = None
    spread: tuple[float, ...] | None = None
    penalty: float = 1.0
    penalty_unit: tuple[float, ...] | None = None  # the penalty is of the change of the log odds per so many units
    read_from_data: ClassVar[bool] = False  # of a regression that `standardised` made it is True

    def __post_init__(self) -> None:
        positive("penalty", self.penalty)
        for value in self.spread or ():
            positive("a spread", value)
        for value in self.penalty_unit or ():
            positive("a penalty_unit", value)

    @classmethod
    def standardised(cls, points: Points, penalty: float = 1.0) -> Logistic:
        """Penalise the slopes of standardised columns; no centre or spread of the file is in the coefficients.

        The standard deviation is that of all records: the same whichever of them are in the data in use.
        """
        spread = design(points)[0].std(axis=0)
        unit = tuple(np.where(spread > 0, spread, 1.0).tolist())
        return marked_as_read(cls(penalty=penalty, penalty_unit=unit))

    def labels(self, points: Points) -> list[str]:
        """Name the intercept and the columns."""
        return ["intercept", *explaining(points)]

    def __call__(self, points: Points, rng: np.random.Generator) -> Float[Array, " d"]:
        """Fit by Newton steps."""
        return minimise(*self.table(points), self.loss, self.ridge)

    @property
    def loss(self) -> LogisticLoss:
        """The log-loss."""
        return LogisticLoss()

    @property
    def ridge(self) -> float | Float[Array, " p"]:
        """The weight of the squared slopes beside the losses: the squared unit over the penalty."""
        return 1 / self.penalty if self.penalty_unit is None else np.square(self.penalty_unit) / self.penalty

    def table(self, points: Points) -> tuple[Float[Array, "n p"], Float[Array, " n"]]:
        """Return the columns as they are used, and 1 for the second class in sorted order, 0 for the first."""
        x, y = design(points)
        classes, label = np.unique(np.asarray(y), return_inverse=True)
        if len(classes) != 2:
            raise ValueError(f"a logistic regression needs 2 classes, got {len(classes)}")
        return self.standard(numbers(x)), label.astype(float)

    def standard(self, x: Float[Array, "n p"]) -> Float[Array, "n p"]:
        """Return ``(x - centre)/spread``."""
        numbers_of = {"centre": self.centre, "spread": self.spread, "penalty_unit": self.penalty_unit}
        for name, public in numbers_of.items():
            if public is not None and len(public) != x.shape[1]:
                raise ValueError(f"{name} has {len(public)} numbers, the data {x.shape[1]} explanatory columns")
        return (x - np.array(self.centre or 0.0)) / np.array(self.spread or 1.0)
