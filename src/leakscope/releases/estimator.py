"""Releases made by any estimator with the scikit-learn interface, and by one model that is already there."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int
from sklearn.base import clone, is_regressor
from sklearn.compose import make_column_transformer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from leakscope.core.checks import nearest
from leakscope.core.types import Points
from leakscope.releases import readout, taylor
from leakscope.releases.specs import canonical, described, first_line, imported, reason, versions

Array = np.ndarray


@dataclass(frozen=True)
class Estimator:
    """An unfitted classifier or regressor, fitted anew for each row of a game.

    Parameters
    ----------
    estimator : scikit-learn estimator
        With ``predict_proba``, or ``decision_function`` (then the log-odds are margins), or a regressor.
        Every ``random_state`` in it is set from the seed of the row.
    name : str
    chunk : int
        Rows that are fitted and stored together.
    quiet : bool
        Keep the warnings of fits to itself: 64 fits would say the same 64 times.

    Raises
    ------
    ValueError
        If the object is not an estimator, or has neither probabilities, margins nor a regression.

    Notes
    -----
    For a frame with columns that are not numbers and an estimator that does not prepare columns itself
    (it is no ``Pipeline``), the default preparation is: numbers are standardised, with missing values left
    to the estimator; all other columns are one-hot encoded, unknown values as zeros, missing as a value.
    """

    estimator: Any
    name: str = ""
    chunk: int = 4
    quiet: bool = True

    def __post_init__(self) -> None:
        if inspect.isclass(self.estimator):
            raise ValueError(f"give an estimator, not the class {self.estimator.__name__}: {self.estimator.__name__}()")
        if not callable(getattr(self.estimator, "fit", None)) or not callable(
            getattr(self.estimator, "get_params", None)
        ):
            raise ValueError(
                f"a {type(self.estimator).__name__} is no estimator: it needs fit and get_params; a trained model "
                "with its data is audited by audit_model"
            )
        if not self.name:
            object.__setattr__(self, "name", type(_last(self.estimator)).__name__)
        if self._reads is None:
            raise ValueError(f"{self.name} has neither predict_proba, decision_function, nor is it a regressor")

    @cached_property
    def _reads(self) -> str | None:
        """How the signals are read off."""
        if is_regressor(self.estimator):
            return "predict"
        for method in ("predict_proba", "decision_function"):
            if callable(getattr(self.estimator, method, None)):
                return method
        return None

    @property
    def description(self) -> str:
        """In words, as scikit-learn prints it."""
        return repr(self.estimator)

    def describe(self) -> Mapping[str, Any] | None:
        """Import path, parameters and versions of the libraries; None where a parameter has no canonical form."""
        return described(self._description)

    @property
    def not_stored(self) -> str:
        """Why there is no description, and its models are not stored; empty where there is one."""
        return reason(self._description)

    def _description(self) -> Mapping[str, Any]:
        description = canonical(self.estimator)
        packages = {"scikit-learn", "numpy", "scipy", *_packages(self.estimator)}
        return {"estimator": description, "versions": versions(packages)}

    def observe(
        self, points: Points, member: Bool[Array, "m N"], seeds: Int[Array, " m"], want: Sequence[str]
    ) -> Mapping[str, Float[Array, "m N ..."]]:
        """Fit one model for each row and read its signals at every point."""
        if points.y is None:
            raise ValueError(f"{self.name} needs labels")
        read = self._reader(points, want)
        simple = prepared(self.estimator, points.x) is self.estimator  # no columns that a preparation would make
        around = (
            taylor.expansion(self.estimator, points, self._fit, self.describe())
            if simple and "taylor" in want
            else None
        )
        rows = []
        for inside, seed in zip(member, seeds, strict=True):
            model = self._fit(points, inside, int(seed))
            rows.append({**read(model), **({"taylor": around.terms(model)} if around else {})})
        return {name: np.stack([row[name] for row in rows]) for name in rows[0]}

    def _fit(self, points: Points, inside: Bool[Array, " N"], seed: int) -> Any:
        model: Any = clone(prepared(self.estimator, points.x))
        states = [name for name in model.get_params() if name.split("__")[-1] == "random_state"]
        model.set_params(**dict.fromkeys(states, seed))
        chosen = points.take(np.flatnonzero(inside))
        try:
            with warnings.catch_warnings():
                if self.quiet:
                    warnings.simplefilter("ignore")
                return model.fit(chosen.x, chosen.y)
        except Exception as error:
            raise RuntimeError(
                f"{self.name} cannot be fitted on {len(chosen):,} points: {first_line(error)}"
            ) from error

    def _reader(self, points: Points, want: Sequence[str]) -> Callable[[Any], Mapping[str, Array]]:
        """From a fitted model to its signals at all points."""
        y = points.y
        if self._reads == "predict":
            if np.asarray(y).dtype.kind not in "fiu":
                raise ValueError(f"{self.name} is a regressor and needs numbers as labels, got text")
            truth = np.asarray(y, dtype=float)
            scale = float(truth.std())
            if scale == 0:
                raise ValueError(f"{self.name}: the response is the same at all {len(truth):,} points")
            return lambda model: readout.predictions(np.ravel(self._answer(model, points)), truth, scale, want)
        classes, label = np.unique(np.asarray(y), return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"{self.name} needs at least 2 classes, got only {classes[0]}")
        if len(classes) > len(label) / 2 and classes.dtype.kind == "f":
            raise ValueError(f"{self.name} is a classifier, but the label has {len(classes):,} different numbers")
        answer = readout.probabilities if self._reads == "predict_proba" else readout.margins

        def read(model: Any) -> Mapping[str, Array]:
            return answer(_spread(self._answer(model, points), model.classes_, classes), label, want)

        return read

    def _answer(self, model: Any, points: Points) -> Float[Array, "N ..."]:
        """What a fitted model says of all points."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                given = np.atleast_1d(np.asarray(getattr(model, str(self._reads))(points.x), dtype=float))
        except Exception as error:  # the model may be the user's: it may raise anything
            raise RuntimeError(
                f"{self.name} gives no numbers for {len(points):,} points: {first_line(error)}"
            ) from error
        if len(given) != len(points):
            raise ValueError(f"{self.name} gave {len(given):,} answers for {len(points):,} points")
        if not np.isfinite(given).all():
            raise ValueError(f"{self.name} answers with NaN or infinite values")
        return given


@dataclass(frozen=True)
class Fixed:
    """One model that is already trained, known by its answers alone.

    Parameters
    ----------
    predict_proba : callable
        Takes the features of n points, returns probabilities of shape (n, K).
    classes : array of shape (K,), optional
        The label of each column; 0 ... K-1, or the sorted labels if there are K of them, unless given.
    name : str
    batch : int
        Points asked for at a time.
    """

    predict_proba: Callable[[Any], Any]
    classes: Array | None = None
    name: str = "model"
    batch: int = 4096
    chunk: int = 1

    @property
    def description(self) -> str:
        """In words: there is nothing to say but its name."""
        return self.name

    def describe(self) -> None:
        """A model that is only known by its answers has no canonical description: it is not stored."""
        return

    @property
    def not_stored(self) -> str:
        """Why: there is no recipe by which another run would know it again."""
        return "a model that is only known by its answers has no recipe to know it by"

    def observe(
        self, points: Points, member: Bool[Array, "m N"], seeds: Int[Array, " m"], want: Sequence[str]
    ) -> Mapping[str, Float[Array, "m N ..."]]:
        """The model's signals at every point, as one row."""
        answers = []
        for start in range(0, len(points), self.batch):
            x = points.take(np.arange(start, min(start + self.batch, len(points)))).x
            try:
                answer = np.atleast_1d(np.asarray(self.predict_proba(x), dtype=float))
            except Exception as error:  # the function is the user's: it may raise anything
                raise RuntimeError(
                    f"{self.name} gives no numbers for {len(x):,} points: {first_line(error)}"
                ) from error
            if len(answer) != len(x):
                raise ValueError(f"{self.name} gave {len(answer):,} answers for {len(x):,} points")
            answers.append(answer)
        p = np.concatenate(answers)
        if p.ndim == 1 or p.shape[1] == 1:  # the probability of the second class alone
            p = np.column_stack([1 - p.ravel(), p.ravel()])
        signals = readout.probabilities(p, self._label(points, p.shape[1]), want)
        return {name: array[None] for name, array in signals.items()}

    def _label(self, points: Points, n_classes: int) -> Int[Array, " N"]:
        if points.y is None:
            raise ValueError(f"{self.name} needs labels")
        y = np.asarray(points.y)
        if self.classes is None and y.dtype.kind in "biu" and y.min() >= 0 and y.max() < n_classes:
            return y.astype(int)
        classes = np.unique(y) if self.classes is None else np.asarray(self.classes)
        order = np.argsort(classes)
        label = order[np.searchsorted(classes, y, sorter=order).clip(0, len(classes) - 1)]
        if len(classes) != n_classes or (classes[label] != y).any():
            raise ValueError(
                f"{self.name} gives {n_classes} probabilities a point, and the labels cannot be matched with them "
                f"({len(np.unique(y))} different ones, {len(classes)} classes); "
                "give the label of each column as classes="
            )
        return label


def prepared(estimator: Any, x: Any) -> Any:
    """The estimator, behind the default preparation where a frame has columns that are not numbers."""
    if not isinstance(x, pd.DataFrame) or isinstance(estimator, Pipeline):
        return estimator
    numbers = [name for name in x.columns if pd.api.types.is_numeric_dtype(x[name])]
    words = [name for name in x.columns if name not in numbers]
    if not words:
        return estimator
    encode = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_pipeline(make_column_transformer((StandardScaler(), numbers), (encode, words)), estimator)


def from_spec(spec: str, settings: Mapping[str, Any] | None = None) -> Any:
    """An estimator from its import path, ``sklearn.ensemble:RandomForestClassifier``, and its parameters.

    Raises
    ------
    ValueError
        If the path does not lead to an estimator, its class or a factory, or a parameter is unknown.
    """
    made = imported(spec)
    try:
        estimator: Any = made() if callable(made) else made
        known = estimator.get_params() if callable(getattr(estimator, "get_params", None)) else {}
        for name in settings or {}:
            if name not in known:
                raise ValueError(f"unknown parameter {name!r}{nearest(name, known)}; known: {', '.join(known)}")
        return estimator.set_params(**settings) if settings else estimator
    except (TypeError, ValueError) as error:
        raise ValueError(f"{spec}: {first_line(error)}") from None


def _packages(estimator: Any) -> set[str]:
    """Distributions that the estimator's parts come from, as far as their names tell."""
    parts = [
        estimator,
        *(part for part in estimator.get_params().values() if callable(getattr(part, "fit", None))),
    ]
    names = {type(part).__module__.partition(".")[0] for part in parts}
    return {"scikit-learn" if name == "sklearn" else name for name in names}


def _last(estimator: Any) -> Any:
    """The step that a person would name a pipeline by."""
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def _spread(given: Float[Array, "N ..."], seen: Array, classes: Array) -> Float[Array, "N ..."]:
    """Columns for all classes, also for those that this model has not seen in its data."""
    if given.ndim == 2 and given.shape[1] != len(seen):
        raise ValueError(f"the model gives {given.shape[1]} values a point, but has {len(seen)} classes")
    if len(seen) == len(classes):
        return given
    if given.ndim == 1:
        given = np.column_stack([-given, given])
    spread = np.full((len(given), len(classes)), given.min() if given.min() < 0 else 0.0)
    spread[:, np.searchsorted(classes, seen)] = given[:, : len(seen)]
    return spread
