"""Statistics of the member rows of a game, one output vector for each row of the game.

`Linear` statistics are sums or means of features of single records: a swap of records needs no fit, and many data sets
take one matrix product. `Covariance` follows from such sums. `Fit` is for all others. The parameters of a statistic and
the number of its outputs are public: never computed from the data in use. A data set on which a statistic cannot be
computed gives a row of NaN.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, fields, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal, final

import numpy as np
from jaxtyping import Bool, Float, Int

from leakbound.core.checks import one_of
from leakbound.core.seeds import stream
from leakbound.core.types import Points
from leakbound.plans.statistics import STATISTICS
from leakbound.releases.source_code import NoCanonicalForm
from leakbound.releases.specs import identity, imported, own
from leakbound.releases.statistics.algorithms import Algorithm, Function
from leakbound.releases.statistics.features import Features, columns_of, numbers, pairs_of, products, sums
from leakbound.releases.statistics.group_means import GroupMeans
from leakbound.releases.wrapped import KnownByRecipe

Array = np.ndarray


@final
@dataclass(frozen=True)
class Linear:
    """Sum or mean of features over the data in use.

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
        """Return the features with their parameters, sum or mean, and the version of numpy."""
        return {"statistic": self.statistic, "of": _parameters(self.features), "versions": _versions("numpy")}

    def labels(self, points: Points) -> list[str]:
        """Name each number of the output."""
        return [f"{self.name} of {label}" for label in self.features.labels(points.x)]

    def observe(
        self, points: Points, member: Bool[Array, "m N"], seeds: Int[Array, " m"], want: Sequence[str] = ("output",)
    ) -> Mapping[str, Float[Array, "m d"]]:
        """Compute the statistic of each row of ``member``; NaN if a mean has no record, or a sum overflows."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            total, size = sums(self.features(points.x), member)
            return _as_output(total / size[:, None] if self.statistic == "mean" else total, want)


@final
@dataclass(frozen=True)
class Covariance:
    """Covariance of the k records in use, divisor k: the upper triangle, row by row.

    ``E x x^T - E x E x^T`` from sums around the mean of all records, so that no digits cancel. It is not linear,
    because of the second term.

    >>> points = Points(np.array([[1.0, 0.0], [3.0, 1.0]]))
    >>> Covariance().observe(points, np.ones((1, 2), dtype=bool), np.arange(1))["output"].tolist()
    [[1.0, 0.5, 0.25]]
    """

    name: str = "covariance"
    chunk: int = 128

    def describe(self) -> Mapping[str, Any]:
        """Return its name and the version of numpy."""
        return {"statistic": "covariance", "versions": _versions("numpy")}

    def labels(self, points: Points) -> list[str]:
        """Name the entries, as ``"covariance of age hours"``."""
        return [f"{self.name} of {label}" for label in pairs_of(columns_of(points.x))]

    def observe(
        self, points: Points, member: Bool[Array, "m N"], seeds: Int[Array, " m"], want: Sequence[str] = ("output",)
    ) -> Mapping[str, Float[Array, "m d"]]:
        """Compute the covariance of each row of ``member``; NaN if it has no record, or a product overflows."""
        table = numbers(points.x)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            centre, d = _centre(table), table.shape[1]
            total, size = sums(table, member, lambda rows: _moments(rows - centre))
            mean = total / size[:, None]
            return _as_output(mean[:, d:] - products(mean[:, :d]), want)


@final
@dataclass(frozen=True)
class Fit(KnownByRecipe):
    """An algorithm that is run anew on every data set.

    A run that raises, or returns another shape than the public one, text, complex numbers, NaN or an infinity, gives a
    row of NaN: it counts as a failure, and never stops the others.

    >>> points, member = Points(np.array([[1.0], [2.0], [6.0]])), ~np.eye(3, dtype=bool)
    >>> fit = named("numpy:ptp").settled(points, member)
    >>> fit.observe(points, member, np.arange(3))["output"].tolist()
    [[4.0], [5.0], [1.0]]
    """

    name: str
    algorithm: Algorithm
    # of the output: settled finds it on a data set of the calibration, as that of the data in use may depend on them
    shape: tuple[int, ...] | None = None
    chunk: int = 8

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
        """Name each number of the output."""
        known = self.algorithm.labels(points)
        if known is not None:
            return known
        return [f"{self.name}{list(place) if place else ''}" for place in np.ndindex(*self._shape(points))]

    def settled(self, points: Points, member: Bool[Array, "m N"]) -> Fit:
        """Find the shape of a function's output on the first of these data sets on which it works.

        The data sets must be independent of the data in use, as those of a calibration are.
        """
        errors = []
        for row in member:
            try:
                output = _output(self.algorithm, points, row, stream(0, "shape"))
            except (Exception, SystemExit) as error:  # the function is the user's: it may raise anything
                errors.append((str(error).strip().splitlines() or [type(error).__name__])[0])
                continue
            return replace(self, shape=self.shape or output.shape) if isinstance(self.algorithm, Function) else self
        these = "these data" if len(member) == 1 else f"any of {len(member)} data sets"
        raise ValueError(f"{self.name} cannot be computed on {these}: {errors[0]}")

    def observe(
        self, points: Points, member: Bool[Array, "m N"], seeds: Int[Array, " m"], want: Sequence[str] = ("output",)
    ) -> Mapping[str, Float[Array, "m d"]]:
        """Compute the flattened output for each row of ``member``; a run's own randomness comes from its seed."""
        if isinstance(self.algorithm, GroupMeans):  # the records are read once for all data sets
            return _as_output(self.algorithm.of_sets(points, member), want)
        size = len(self.labels(points))
        outputs = np.full((len(member), size), np.nan)
        shape = None if self.algorithm.labels(points) is not None else self._shape(points)
        for row, (inside, seed) in enumerate(zip(member, seeds, strict=True)):
            try:
                output = _output(self.algorithm, points, inside, stream(int(seed), "statistic"))
            except (Exception, SystemExit):  # whatever it is, the row of NaN counts as a failure
                continue
            if output.size == size and shape in (None, output.shape):
                outputs[row] = output.ravel()
        return _as_output(outputs, want)

    def _shape(self, points: Points) -> tuple[int, ...]:
        if self.shape is None:
            raise ValueError(f"{self.name}: give the shape of its output, as shape=(3,), or settle it on a public fit")
        return self.shape


Statistic = Linear | Covariance | Fit


def named(spec: str, shape: tuple[int, ...] | None = None, **parameters: Any) -> Statistic:
    """Make a statistic from its name in ``STATISTICS``, or from the import path of a function.

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
    known = [field.name for field in fields(rule)] if rule else []
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
    """Run an algorithm on the member rows; refuse its output unless it is an array of finite real numbers.

    What it prints may be about the records in use, and is discarded.
    """
    discarded = io.StringIO()
    with warnings.catch_warnings(), np.errstate(all="ignore"), redirect_stdout(discarded), redirect_stderr(discarded):
        warnings.simplefilter("ignore")
        output = np.asarray(algorithm(points.take(np.flatnonzero(inside)), rng))
    if output.dtype.kind not in "biuf" or not np.isfinite(output := output.astype(float)).all():
        raise ValueError("its output is no array of finite numbers")
    return output


def _centre(table: Float[Array, "N d"]) -> Float[Array, " d"]:
    """Compute the mean of each column; of equal numbers exactly that number, for it is a change of the first record."""
    return table[0] + np.ones(len(table)) @ (table - table[0]) / len(table)


def _moments(rows: Float[Array, "b d"]) -> Float[Array, "b p"]:
    rows = np.asfortranarray(rows)  # as the products are, so that both are joined by copies of whole columns
    return np.hstack([rows, products(rows)])


def _as_output(values: Float[Array, "m d"], want: Sequence[str]) -> Mapping[str, Float[Array, "m d"]]:
    """Return the values as the signal ``output``, rows that are not finite as NaN."""
    values[~np.isfinite(values).all(axis=1)] = np.nan
    return {"output": values} if "output" in want else {}


def _parameters(value: Any) -> Mapping[str, Any]:
    """Return a frozen value as plain JSON."""
    kind = type(value)
    return {"class": identity(kind)} | {field.name: getattr(value, field.name) for field in fields(value)}


def _versions(*packages: str) -> Mapping[str, str]:
    versions = {}
    for name in packages:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:  # a user module: its source is in the description
            continue
    return versions
