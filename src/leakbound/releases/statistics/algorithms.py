"""Statistics that are fitted anew on every data set: quantiles, least squares, any function.

An algorithm is a frozen value: ``labels(points)`` names the numbers of its output if they are known beforehand, and
a call on the data in use returns an array of fixed shape.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, final, runtime_checkable

import numpy as np
from jaxtyping import Num
from scipy.linalg import solve_triangular

from leakbound.core.checks import probability
from leakbound.core.types import Points
from leakbound.releases.source_code import digest_of, digest_of_modules
from leakbound.releases.specs import own
from leakbound.releases.statistics.features import columns_of, numbers
from leakbound.releases.statistics.standard_columns import StandardColumns

Array = np.ndarray


@runtime_checkable
class Algorithm(Protocol):
    """A function from the data in use to an array of fixed shape."""

    def labels(self, points: Points) -> list[str] | None:
        """Name each number of the output; None if their number is not known beforehand."""
        ...

    def __call__(self, points: Points, rng: np.random.Generator) -> Num[Array, "..."]:
        """Compute the output."""
        ...


@final
@dataclass(frozen=True)
class Quantiles:
    """Quantiles of each column, interpolated linearly between the two nearest records.

    >>> Quantiles((0.5,))(Points(np.array([[1.0], [2.0], [9.0]])), np.random.default_rng(0)).tolist()
    [[2.0]]
    """

    probabilities: tuple[float, ...] = (0.25, 0.5, 0.75)

    def __post_init__(self) -> None:
        if not self.probabilities:
            raise ValueError("probabilities must be at least one number in [0, 1]")
        for value in self.probabilities:
            probability("a quantile's probability", value)

    def labels(self, points: Points) -> list[str]:
        """Name the numbers, as ``"quantile 0.5 of age"``."""
        return [f"quantile {value:g} of {name}" for value in self.probabilities for name in columns_of(points.x)]

    def __call__(self, points: Points, rng: np.random.Generator) -> Num[Array, "q d"]:
        """Compute the quantiles, one row for each probability."""
        return np.quantile(numbers(points.x), self.probabilities, axis=0)


@final
@dataclass(frozen=True)
class LeastSquares:
    """Coefficients of ordinary least squares: the intercept, then one for each column.

    The response is the label, or the last column if there is no label. The fit fails where the columns in use are
    linearly dependent.

    >>> x = np.array([[0.0, 1.0], [1.0, 3.0], [2.0, 5.0]])
    >>> LeastSquares()(Points(x), np.random.default_rng(0)).round(6).tolist()
    [1.0, 2.0]
    """

    def labels(self, points: Points) -> list[str]:
        """Name the intercept and the columns."""
        return ["intercept", *explaining(points)]

    def __call__(self, points: Points, rng: np.random.Generator) -> Num[Array, " d"]:
        """Solve in standardised columns, by their QR decomposition."""
        x, y = design(points)
        columns, response = StandardColumns.of(x), StandardColumns.of(numbers(y[:, None]))
        columns.check()
        basis, triangle = np.linalg.qr(columns.values)
        residual, slopes = response.values[:, 0], np.zeros(x.shape[1])
        for _ in range(2):  # the second time takes out what the first one lost by rounding
            step = solve_triangular(triangle, basis.T @ residual)
            slopes, residual = slopes + step, residual - columns.values @ step
        mean = (response.centre + response.rest).reshape(())
        return columns.coefficients(mean, slopes * response.width)


@final
@dataclass(frozen=True)
class Function:
    """A function of the records: ``function(x)``, or ``function(x, y)`` if the points have labels.

    It is called with the data in use, an array or a frame. If it has an argument ``rng`` it gets a
    ``numpy.random.Generator`` for its own randomness; the output of a function with other random numbers cannot be
    reproduced.

    >>> Function(np.median)(Points(np.array([[1.0], [2.0], [9.0]])), np.random.default_rng(0)).tolist()
    2.0
    """

    function: Callable[..., Any]

    def labels(self, points: Points) -> None:
        """Return None: they are unknown before a first fit."""

    @property
    def path(self) -> str | None:
        """``module:name``; None if that does not lead to the function (a lambda, one of ``__main__``)."""
        module, name = getattr(self.function, "__module__", None), self.name
        if module in (None, "__main__") or not name.isidentifier():
            return None
        try:
            return f"{module}:{name}" if own(f"{module}:{name}") is self.function else None
        except ValueError:
            return None

    @property
    def source(self) -> str:
        """Digest of all user code that the function reaches; empty if it is installed."""
        if inspect.isfunction(self.function) or inspect.isclass(self.function):
            return digest_of(self.function) or ""
        return digest_of_modules([self.function.__module__]) or ""  # compiled, or an object with a name

    @property
    def name(self) -> str:
        """The name in its definition."""
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    def __call__(self, points: Points, rng: np.random.Generator) -> Num[Array, "..."]:
        """Call the function, and return its output as an array."""
        arguments = (points.x,) if points.y is None else (points.x, points.y)
        if self._takes_rng:
            return np.asarray(self.function(*arguments, rng=rng))
        return np.asarray(self.function(*arguments))

    @property
    def _takes_rng(self) -> bool:
        try:
            return "rng" in inspect.signature(self.function).parameters
        except (TypeError, ValueError):  # compiled functions need not say
            return False


def design(points: Points) -> tuple[Num[Array, "n d"], Array]:
    """Return the explanatory columns and the response: the label, or the last column if there is no label."""
    table = numbers(points.x)
    x, y = (table[:, :-1], table[:, -1]) if points.y is None else (table, np.asarray(points.y))
    if not x.shape[1]:
        raise ValueError(f"a regression needs a column besides its response, got {', '.join(columns_of(points.x))}")
    return x, y


def explaining(points: Points) -> list[str]:
    """Name the explanatory columns of `design`."""
    return columns_of(points.x)[: -1 if points.y is None else None]
