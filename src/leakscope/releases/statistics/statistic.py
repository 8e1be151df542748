"""Statistics as releases: numbers of the member rows of a game, one vector a row.

`Linear` ones are sums or means of features of single records, so that swapping records needs no fit, and many
data sets take one matrix product; `Covariance` follows from such sums; `Fit` is every other. The parameters of a
statistic and the number of its outputs are public: never taken from the data in use. A data set on which a
statistic cannot be computed gives a row of NaN.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, fields, replace
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType
from typing import Any, Literal, final

import numpy as np
from jaxtyping import Bool, Float, Int

from leakscope.core.checks import one_of
from leakscope.core.seeds import stream
from leakscope.core.types import Points
from leakscope.releases.source_code import NoCanonicalForm
from leakscope.releases.specs import described, identity, imported, own, reason
from leakscope.releases.statistics.algorithms import Algorithm, Function
from leakscope.releases.statistics.features import Features, columns_of, numbers, pairs_of, products, sums

Array = np.ndarray


@final
@dataclass(frozen=True)
class Linear:
    """Sum or mean of features over the data in use.

    Parameters
    ----------
    name : str
    features : Features
        ``features(points.x)`` is an array (N, d): what exact couplings take instead of fits.
    statistic : {"mean", "sum"}
    chunk : int
        Data sets that are taken together.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.releases.statistics.statistic import named
    >>> from leakscope.core.types import Points
    >>> points, member = Points(np.array([[1.0], [2.0], [6.0]])), ~np.eye(3, dtype=bool)
    >>> named("mean").observe(points, member, np.arange(3))["output"].tolist()
    [[4.0], [3.5], [1.5]]
    """

    name: str
    features: Features
    statistic: Literal["mean", "sum"] = "mean"
    chunk: int = 128

    def __post_init__(self) -> None:
        one_of("statistic", self.statistic, ("mean", "sum"))

    def describe(self) -> Mapping[str, Any]:
        """Features with their parameters, sum or mean, and the version of numpy."""
        return {"statistic": self.statistic, "of": _parameters(self.features), "versions": _versions("numpy")}

    def labels(self, points: Points) -> list[str]:
        """A name for each number of the output."""
        return [f"{self.name} of {label}" for label in self.features.labels(points.x)]

    def observe(
        self, points: Points, member: Bool[Array, "m N"], seeds: Int[Array, " m"], want: Sequence[str] = ("output",)
    ) -> Mapping[str, Float[Array, "m d"]]:
        """The statistic of each row of ``member``; NaN where a mean has no record, or a sum overflows.

        Raises
        ------
        ValueError
            If the features are not finite.
        """
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            total, size = sums(self.features(points.x), member)
            return _wanted(total / size[:, None] if self.statistic == "mean" else total, want)


@final
@dataclass(frozen=True)
class Covariance:
    """Covariance of the k records in use, divisor k: the upper triangle, row by row.

    ``E x x^T - E x E x^T`` of sums, taken around the mean of all records, so that no digits cancel. Not linear,
    because of the second term.

    Parameters
    ----------
    name : str
    chunk : int
        Data sets that are taken together.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.releases.statistics.statistic import Covariance
    >>> from leakscope.core.types import Points
    >>> points = Points(np.array([[1.0, 0.0], [3.0, 1.0]]))
    >>> Covariance().observe(points, np.ones((1, 2), dtype=bool), np.arange(1))["output"].tolist()
    [[1.0, 0.5, 0.25]]
    """

    name: str = "covariance"
    chunk: int = 128

    def describe(self) -> Mapping[str, Any]:
        """Its name and the version of numpy."""
        return {"statistic": "covariance", "versions": _versions("numpy")}

    def labels(self, points: Points) -> list[str]:
        """``"covariance of age hours"``."""
        return [f"{self.name} of {label}" for label in pairs_of(columns_of(points.x))]

    def observe(
        self, points: Points, member: Bool[Array, "m N"], seeds: Int[Array, " m"], want: Sequence[str] = ("output",)
    ) -> Mapping[str, Float[Array, "m d"]]:
        """The covariance of each row of ``member``; NaN where it has no record, or a product overflows.

        Raises
        ------
        ValueError
            If the records are not finite numbers.
        """
        table = numbers(points.x)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            centre, d = _centre(table), table.shape[1]
            total, size = sums(table, member, lambda rows: _moments(rows - centre))
            mean = total / size[:, None]
            return _wanted(mean[:, d:] - products(mean[:, :d]), want)


@final
@dataclass(frozen=True)
class Fit:
    """An algorithm that is run anew on every data set.

    A run that raises, or gives another shape than the public one, text, complex numbers, NaN or an infinity, is
    a row of NaN: it counts as a failure, and never stops the others.

    Parameters
    ----------
    name : str
    algorithm : Algorithm
    shape : tuple of int, optional
        Of the output. Needed for a `Function`, whose output is unknown: `settled` takes it from a data set of
        the calibration. It never comes from the data in use, of which it might be a function.
    chunk : int
        Data sets that are taken together.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.releases.statistics.statistic import named
    >>> from leakscope.core.types import Points
    >>> points, member = Points(np.array([[1.0], [2.0], [6.0]])), ~np.eye(3, dtype=bool)
    >>> fit = named("numpy:ptp").settled(points, member)
    >>> fit.observe(points, member, np.arange(3))["output"].tolist()
    [[4.0], [5.0], [1.0]]
    """

    name: str
    algorithm: Algorithm
    shape: tuple[int, ...] | None = None
    chunk: int = 8

    def describe(self) -> Mapping[str, Any] | None:
        """The algorithm with its parameters, or a function's path and the digest of its code; None for a lambda."""
        return described(self._description)

    @property
    def not_stored(self) -> str:
        """Why there is no description, and its outputs are not stored; empty where there is one."""
        return reason(self._description)

    def _description(self) -> Mapping[str, Any]:
        if not isinstance(self.algorithm, Function):
            return {
                "statistic": _parameters(self.algorithm),
                "versions": _versions("numpy", "scipy", "scikit-learn"),
            }
        path = self.algorithm.path
        if path is None:
            raise NoCanonicalForm(f"no import path leads to {self.algorithm.name}")
        return {
            "statistic": path,
            "source": self.algorithm.source,
            "shape": None if self.shape is None else list(self.shape),
            "versions": _versions("numpy", "scipy", "scikit-learn", path.partition(":")[0].partition(".")[0]),
        }

    def labels(self, points: Points) -> list[str]:
        """A name for each number of the output.

        Raises
        ------
        ValueError
            If the shape is needed and not known.
        """
        known = self.algorithm.labels(points)
        if known is not None:
            return known
        return [f"{self.name}{list(place) if place else ''}" for place in np.ndindex(*self._shape(points))]

    def settled(self, points: Points, member: Bool[Array, "m N"]) -> Fit:
        """With the shape of a function from the first of these data sets on which it works.

        The data sets must be independent of the data in use, as those of a calibration are.

        Raises
        ------
        ValueError
            If the algorithm fails on all of them, with the error of the first.
        """
        errors = []
        for row in member:
            try:
                output = _output(self.algorithm, points, row, stream(0, "shape"))
            except (Exception, SystemExit) as error:  # the function is the user's: it may raise anything
                errors.append((str(error).strip().splitlines() or [type(error).__name__])[0])
                continue
            return replace(self, shape=self.shape or output.shape) if isinstance(self.algorithm, Function) else self
        raise ValueError(f"{self.name} cannot be computed on any of {len(member)} data sets: {errors[0]}")

    def observe(
        self, points: Points, member: Bool[Array, "m N"], seeds: Int[Array, " m"], want: Sequence[str] = ("output",)
    ) -> Mapping[str, Float[Array, "m d"]]:
        """The flattened output for each row of ``member``; a run's own randomness comes from its seed.

        Raises
        ------
        ValueError
            If the shape is needed and not known.
        """
        size = len(self.labels(points))
        made = np.full((len(member), size), np.nan)
        shape = None if self.algorithm.labels(points) is not None else self._shape(points)
        for row, (inside, seed) in enumerate(zip(member, seeds, strict=True)):
            try:
                output = _output(self.algorithm, points, inside, stream(int(seed), "statistic"))
            except (Exception, SystemExit):  # a failure, whatever its kind, is counted by who reads the row
                continue
            if output.size == size and shape in (None, output.shape):
                made[row] = output.ravel()
        return _wanted(made, want)

    def _shape(self, points: Points) -> tuple[int, ...]:
        if self.shape is None:
            raise ValueError(f"{self.name}: give the shape of its output, as shape=(3,), or settle it on a public fit")
        return self.shape


Statistic = Linear | Covariance | Fit


@dataclass(frozen=True)
class Kind:
    """A row of ``STATISTICS``: what it is, the class that holds its parameters, and what is done with it."""

    summary: str
    path: str
    form: Literal["mean", "sum", "fit", "covariance"]


_HERE = "leakscope.releases.statistics"
STATISTICS: Mapping[str, Kind] = MappingProxyType(
    {
        "mean": Kind("mean of each column", f"{_HERE}.features:Columns", "mean"),
        "sum": Kind("sum of each column", f"{_HERE}.features:Columns", "sum"),
        "second_moment": Kind("mean products of columns", f"{_HERE}.features:SecondMoments", "mean"),
        "covariance": Kind("covariance of the columns", "", "covariance"),
        "histogram": Kind("counts in bins of columns", f"{_HERE}.features:Histogram", "sum"),
        "table": Kind("counts in the cells of a table", f"{_HERE}.features:Cells", "sum"),
        "quantiles": Kind("quantiles of each column", f"{_HERE}.algorithms:Quantiles", "fit"),
        "ols": Kind("coefficients of least squares", f"{_HERE}.algorithms:LeastSquares", "fit"),
        "logistic": Kind("coefficients of a logistic regression", f"{_HERE}.logistic:Logistic", "fit"),
    }
)


def named(spec: str, shape: tuple[int, ...] | None = None, **parameters: Any) -> Statistic:
    """A statistic by its name in ``STATISTICS``, or by the import path of a function.

    Parameters
    ----------
    spec : str
        ``"mean"``, or ``"module:function"``.
    shape : tuple of int, optional
        Of the output of a function.
    **parameters
        Of a named statistic: those of its class.

    Raises
    ------
    ValueError
        If the name or a parameter is unknown, or the path does not lead to a function.

    Examples
    --------
    >>> from leakscope.releases.statistics.statistic import named
    >>> named("quantiles", probabilities=(0.5,)).algorithm
    Quantiles(probabilities=(0.5,))
    """
    if ":" in spec:
        function = imported(spec)
        if not callable(function) or parameters:
            raise ValueError(f"{spec} must be a function of the records alone; got {parameters or function!r}")
        return Fit(spec.partition(":")[2], Function(function), shape)
    kind = STATISTICS[one_of("statistic", spec, STATISTICS)]
    if shape is not None:
        raise ValueError(f"the shape of {spec} follows from its columns; shape is for functions")
    rule: Any = own(kind.path) if kind.path else None
    known = [each.name for each in fields(rule)] if rule else []
    for name in parameters:
        one_of(f"parameter of {spec}", name, known or ["none"])
    try:
        value: Any = rule(**parameters) if rule else None
    except TypeError:
        raise ValueError(f"{spec} needs {', '.join(known)}; got {', '.join(parameters) or 'nothing'}") from None
    if kind.form == "covariance":
        return Covariance()
    return Fit(spec, value) if kind.form == "fit" else Linear(spec, value, kind.form)


def _output(algorithm: Algorithm, points: Points, inside: Bool[Array, " N"], rng: np.random.Generator) -> Array:
    """What an algorithm gives on the member rows, refused unless it is an array of finite real numbers.

    What it prints may be about the records in use: nobody gets to see it.
    """
    silent = io.StringIO()
    with warnings.catch_warnings(), np.errstate(all="ignore"), redirect_stdout(silent), redirect_stderr(silent):
        warnings.simplefilter("ignore")
        output = np.asarray(algorithm(points.take(np.flatnonzero(inside)), rng))
    if output.dtype.kind not in "biuf" or not np.isfinite(output := output.astype(float)).all():
        raise ValueError("its output is no array of finite numbers")
    return output


def _centre(table: Float[Array, "N d"]) -> Float[Array, " d"]:
    """Mean of each column; of equal numbers exactly that number."""
    return np.where(np.ptp(table, axis=0) == 0, table[0], table.mean(axis=0))


def _moments(rows: Float[Array, "b d"]) -> Float[Array, "b p"]:
    return np.hstack([rows, products(rows)])


def _wanted(made: Float[Array, "m d"], want: Sequence[str]) -> Mapping[str, Float[Array, "m d"]]:
    """Rows that are not finite as NaN."""
    made[~np.isfinite(made).all(axis=1)] = np.nan
    return {"output": made} if "output" in want else {}


def _parameters(value: Any) -> Mapping[str, Any]:
    """A frozen value as plain JSON."""
    kind = type(value)
    return {"class": identity(kind)} | {each.name: getattr(value, each.name) for each in fields(value)}


def _versions(*packages: str) -> Mapping[str, str]:
    found = {}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # a module of the user's own: its source is in the description
            continue
    return found
