"""Releases that are seen by a score alone: any object that a training returns, and a number for each record.

The score is asked once of each model, about all records in one fixed order: a mean, a rank or a batch among members
alone would tell who they are.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from jaxtyping import Bool, Float, Int

from leakbound.core.seeds import stream
from leakbound.core.types import Points
from leakbound.data.records import as_given
from leakbound.releases.estimator import Estimator, with_parameters
from leakbound.releases.specs import canonical, described_inside, first_line
from leakbound.releases.structure import Structure, structure_of
from leakbound.releases.training_function import TrainingFunction, is_function, positional
from leakbound.releases.wrapped import AlreadyTrained, Wrapped

Array = np.ndarray


@dataclass(frozen=True)
class Loss:
    """A score that is a loss: in nats, at least 0, and lower where a record is more likely in.

    ``audit(train, X, score=Loss(fn))`` and ``audit_model(model, members, others, score=Loss(fn))`` then see the signal
    ``loss``, which every attack on a loss reads, as of a classifier.

    Parameters
    ----------
    function : callable
        ``function(object, X)`` or ``function(object, X, y)``: from what the training returned and all N records to N
        losses, as minus the log-likelihood of each record.

    Raises
    ------
    ValueError
        If it is no function.

    Examples
    --------
    >>> import numpy as np
    >>> import leakbound as ls
    >>> from sklearn.mixture import GaussianMixture
    >>> def surprise(mixture, X):
    ...     return np.maximum(-mixture.score_samples(X), 0)
    >>> X = np.random.default_rng(0).normal(size=(60, 2)) * 10
    >>> report = ls.audit(GaussianMixture(5), X, score=ls.Loss(surprise), n_models=8, n_jobs=1)
    >>> sorted({finding.attack for finding in report.findings if finding.quantity == "auc"})
    ['lira', 'loss', 'mast', 'rmia']
    """

    function: Any

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise ValueError(f"Loss is of a function fn(object, X), got a {type(self.function).__name__}")


@dataclass(frozen=True)
class Score:
    """A function from an object and all records to a number for each."""

    function: Callable[..., Any]
    is_loss: bool
    name: str

    @classmethod
    def of(cls, score: Any) -> Score:
        """Read a function, or a ``Loss``."""
        is_loss = isinstance(score, Loss)
        function = score.function if is_loss else score
        if not callable(function):
            raise ValueError(
                f"score must be a function fn(object, X) that returns a number for each record, or Loss(fn); got a "
                f"{type(function).__name__}"
            )
        arguments = positional(function)
        if arguments and len(arguments) < 2:
            raise ValueError(f"score must take what was trained and the records: {_name_of(function)}(object, X)")
        return cls(function, is_loss, _name_of(function))

    @property
    def signal(self) -> str:
        """The signal that is computed."""
        return "loss" if self.is_loss else "score"

    def described(self) -> Mapping[str, Any]:
        """Describe the function for the store, with its code."""
        return {"signal": self.signal, "function": canonical(self.function)}

    def _takes_labels(self) -> tuple[bool, bool]:
        """Tell whether the function can take labels as its third argument, and whether it must."""
        arguments = positional(self.function)
        if len(arguments) < 3:
            return False, False
        must = arguments[2].default is inspect.Parameter.empty
        return must or arguments[2].name == "y", must

    def at(self, trained: Any, points: Points, name: str) -> Float[Array, " N"]:
        """Ask about all records at once, and check the answer."""
        can, must = self._takes_labels()
        if must and points.y is None:
            raise ValueError(f"{name}: {self.name} takes labels, and there are none: give y, or take X alone")
        labels = (points.y,) if can and points.y is not None else ()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                values = self.function(trained, as_given(points.x), *labels)
        except Exception as error:  # the function is the user's: it may raise anything
            raise RuntimeError(
                f"{name}: {self.name} fails on {len(points):,} points: {type(error).__name__}: {first_line(error)}"
            ) from error
        return self._checked(values, len(points), name)

    def _checked(self, values: Any, n: int, name: str) -> Float[Array, " N"]:
        meaning = "at least 0, in nats" if self.is_loss else "higher = more likely in"
        wanted = f"it must return {n:,} finite numbers, one for each record in their order, {meaning}"
        try:
            array = np.asarray(values)
        except ValueError:  # rows of different lengths
            array = np.empty((), dtype=object)
        if array.dtype.kind not in "biuf":
            kind = type(values).__name__ if array.dtype.kind == "O" else f"{type(values).__name__} of {array.dtype}"
            raise ValueError(f"{name}: {self.name} returned a {kind}; {wanted}")
        if array.shape not in ((n,), (n, 1)):
            raise ValueError(f"{name}: {self.name} returned an array of shape {array.shape}; {wanted}")
        array = array.reshape(n).astype(np.float64)
        n_bad = n - np.count_nonzero(np.isfinite(array))
        if n_bad:
            raise ValueError(f"{name}: {self.name} returned NaN or infinite values for {n_bad:,} records; {wanted}")
        if self.is_loss and array.min() < 0:
            raise ValueError(f"{name}: {self.name} returned {array.min():.4g}; {wanted}")
        return array


@dataclass(frozen=True)
class Scored(Wrapped):
    """A training whose result is seen by a score.

    >>> from sklearn.decomposition import PCA
    >>> def closeness(pca, X):
    ...     return -np.square(pca.inverse_transform(pca.transform(X)) - X).sum(axis=1)
    >>> points = Points(np.random.default_rng(0).normal(size=(8, 3)))
    >>> member = np.arange(8) < np.array([[4], [6]])
    >>> scored(PCA(1), closeness).observe(points, member, np.array([0, 1]), ["score"])["score"].shape
    (2, 8)
    """

    release: TrainingFunction | Estimator  # pyright: ignore[reportIncompatibleVariableOverride]
    score: Score
    dtype: str = "float64"  # of the store: a score may have an origin far from its differences

    @property
    def signals(self) -> tuple[str, ...]:
        """The one signal that is seen."""
        return (self.score.signal,)

    @property
    def description(self) -> str:
        """The training and the score."""
        return f"{self.release.description}, seen by {self.score.name}"

    @property
    def family(self) -> str:
        """That of the estimator, if it is one."""
        return getattr(self.release, "family", "")

    @property
    def owner_note(self) -> str:
        """That of the estimator, if it is one."""
        return getattr(self.release, "owner_note", "")

    def _description(self) -> Mapping[str, Any]:
        return {"trained": described_inside(self.release), "scored by": self.score.described()}

    def for_points(self, points: Points) -> Scored:
        """Find out what the estimator needs so that it takes these points; refuse labels that nobody takes."""
        if isinstance(self.release, Estimator):
            return replace(self, release=self.release.for_points(points))
        self.release.refuse_labels(has_labels=points.y is not None)
        return self

    def prepared(self, points: Points) -> str:
        """Say what is done to the columns before a fit."""
        return self.release.prepared(points) if isinstance(self.release, Estimator) else ""

    def structure(self, points: Points, seed: int) -> Structure:
        """Train one model on all points, as it would be released, and read its structure."""
        return structure_of(self.release.fitted(points, np.ones(len(points), dtype=bool), seed), points)

    def observe(
        self, points: Points, member: Bool[Array, "m N"], seeds: Int[Array, " m"], want: Sequence[str]
    ) -> Mapping[str, Float[Array, "m N"]]:
        """Train on each row's records, and score all records."""
        rows = [
            self.score.at(self.release.fitted(points, inside, int(seed)), points, self.name)
            for inside, seed in zip(member, seeds, strict=True)
        ]
        return {self.score.signal: np.stack(rows)}


@dataclass(frozen=True)
class ScoredModel(AlreadyTrained):
    """One object that is there already, seen by a score."""

    model: Any
    score: Score
    name: str = "model"
    chunk: int = 1

    @property
    def signals(self) -> tuple[str, ...]:
        """The one signal that is seen."""
        return (self.score.signal,)

    @property
    def description(self) -> str:
        """The name and the score."""
        return f"{self.name}, seen by {self.score.name}"

    def observe(
        self, points: Points, member: Bool[Array, "m N"], seeds: Int[Array, " m"], want: Sequence[str]
    ) -> Mapping[str, Float[Array, "m N"]]:
        """Score all records, in an order that does not tell which are the members: they come first in the points."""
        order = stream(0, "order of a score").permutation(len(points))
        values = np.empty(len(points))
        values[order] = self.score.at(self.model, points.take(order), self.name)
        return {self.score.signal: values[None]}


def is_scored(release: Any) -> bool:
    """Tell whether a release is seen by scores, and not by what it predicts."""
    return bool(getattr(release, "signals", ()))


def scored(model: Any, score: Any, name: str = "", settings: Mapping[str, Any] | None = None) -> Scored:
    """Make the release of a function that trains, or of an estimator, that is seen by a score."""
    read = Score.of(score)
    if inspect.isclass(model):
        raise ValueError(f"give an object, not the class {model.__name__}; or a function that trains: train(X, seed)")
    if is_function(model):
        inner: Any = TrainingFunction(model, name, dict(settings or {}), is_scored=True)
    elif isinstance(model, Estimator):
        inner = replace(model, is_scored=True)
    else:
        inner = Estimator(with_parameters(model, settings) if settings else model, name, is_scored=True)
    return Scored(cast(Any, inner), read)


def _name_of(function: Any) -> str:
    name = getattr(function, "__name__", type(function).__name__)
    return "score" if "<" in name else name
