"""Coefficients of a logistic regression with a squared penalty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from jaxtyping import Float

from leakscope.core.checks import positive
from leakscope.core.types import Points
from leakscope.releases.statistics.algorithms import design, explaining
from leakscope.releases.statistics.features import marked_as_read, numbers
from leakscope.releases.statistics.losses import LogisticLoss
from leakscope.releases.statistics.newton import minimise

Array = np.ndarray


@final
@dataclass(frozen=True)
class Logistic:
    """Coefficients of a logistic regression of two classes: the intercept, then one for each column.

    The response is the label, or the last column if there is no label; the second class in sorted order counts as 1. If
    the data in use have only one class, the fit fails.

    Parameters
    ----------
    centre : tuple of d floats, optional
        Public numbers: in the fit, and in the coefficients, the columns are ``(x - centre)/spread``. 0 unless given;
        `standardised` computes them from all records.
    spread : tuple of d floats, optional
        As `centre`; 1 unless given.
    penalty : float
        C of scikit-learn, > 0: inverse strength of the squared penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.releases.statistics.logistic import Logistic
    >>> from leakscope.core.types import Points
    >>> points = Points(np.array([[0.0], [1.0], [2.0], [3.0]]), np.array(["no", "yes", "no", "yes"]))
    >>> Logistic()(points, np.random.default_rng(0)).round(3).tolist()
    [-0.679, 0.453]
    """

    centre: tuple[float, ...] | None = None
    spread: tuple[float, ...] | None = None
    penalty: float = 1.0
    read_from_data: ClassVar[bool] = False  # of a regression that `standardised` made it is True

    def __post_init__(self) -> None:
        positive("penalty", self.penalty)
        for value in self.spread or ():
            positive("a spread", value)

    @classmethod
    def standardised(cls, points: Points, **parameters: Any) -> Logistic:
        """Use mean and standard deviation of all records: the same whichever of them are in the data in use."""
        x, _ = design(points)
        spread = x.std(axis=0)
        return marked_as_read(
            cls(
                tuple(x.mean(axis=0).tolist()),
                tuple(np.where(spread > 0, spread, 1.0).tolist()),
                **parameters,
            )
        )

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
    def ridge(self) -> float:
        """The weight of the squared slopes beside the losses: one over the penalty."""
        return 1 / self.penalty

    def table(self, points: Points) -> tuple[Float[Array, "n p"], Float[Array, " n"]]:
        """Return the columns as they are used, and 1 for the second class in sorted order, 0 for the first.

        Raises
        ------
        ValueError
            If there are other than two classes.
        """
        x, y = design(points)
        classes, label = np.unique(np.asarray(y), return_inverse=True)
        if len(classes) != 2:
            raise ValueError(f"a logistic regression needs 2 classes, got {len(classes)}")
        return self.standard(numbers(x)), label.astype(float)

    def standard(self, x: Float[Array, "n p"]) -> Float[Array, "n p"]:
        """Return ``(x - centre)/spread``.

        Raises
        ------
        ValueError
            If centre or spread have another number of columns.
        """
        for name, public in (("centre", self.centre), ("spread", self.spread)):
            if public is not None and len(public) != x.shape[1]:
                raise ValueError(f"{name} has {len(public)} numbers, the data {x.shape[1]} explanatory columns")
        return (x - np.array(self.centre or 0.0)) / np.array(self.spread or 1.0)
