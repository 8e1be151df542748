"""Releases by any estimator with the scikit-learn interface, and by one pretrained model."""

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
from leakscope.releases.specs import canonical, description_or_none, first_line, imported, reason, versions

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
        The name in the report; that of the estimator's class unless given.
    chunk : int
        Rows that are fitted and stored together.
    quiet : bool
        Suppress the warnings of fits, which 64 fits would repeat 64 times.

    Raises
    ------
    ValueError
        If the object is not an estimator, or has neither probabilities, margins nor a regression.

    Notes
    -----
    For a frame with columns that are not numeric and an estimator that is no ``Pipeline``, the default preprocessing
    is: numeric columns are standardised, with missing values left to the estimator; all other columns are one-hot
    encoded, unknown values as zeros, missing as a value.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from leakscope.core.types import Points
    >>> from leakscope.releases.estimator import Estimator
    >>> points = Points(np.arange(8.0)[:, None], np.arange(8) % 2)
    >>> member = np.arange(8) < np.array([[4], [6]])
    >>> Estimator(DecisionTreeClassifier()).observe(points, member, np.array([0, 1]), ["correct"])["correct"].shape
    (2, 8)
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
        """The method that the signals are computed from."""
        if is_regressor(self.estimator):
            return "predict"
        for method in ("predict_proba", "decision_function"):
            if callable(getattr(self.estimator, method, None)):
                return method
        return None

    @property
    def description(self) -> str:
        """The estimator as scikit-learn prints it."""
        return repr(self.estimator)

    def describe(self) -> Mapping[str, Any] | None:
        """Return import path, parameters and versions of the libraries; None if a parameter has no canonical form."""
        return description_or_none(self._description)

    @property
    def not_stored(self) -> str:
        """Why there is no description, and its models are not stored; empty if there is one."""
        return reason(self._description)

    def _description(self) -> Mapping[str, Any]:
        description = canonical(self.estimator)
        packages = {"scikit-learn", "numpy", "scipy", *_packages(self.estimator)}
        return {"estimator": description, "versions": versions(packages)}

    def observe(
        self, points: Points, member: Bool[Array, "m N"], seeds: Int[Array, " m"], want: Sequence[str]
    ) -> Mapping[str, Float[Array, "m N ..."]]:
        """Fit one model for each row and compute its signals at every point."""
        if points.y is None:
            raise ValueError(f"{self.name} needs labels")
        signals_of = self._signals_of(points, want)
        expansion = None
        preprocessed = prepared(self.estimator, points.x) is not self.estimator
        if "taylor" in want and not preprocessed:  # the expansion needs the columns as they are
            expansion = taylor.expansion(self.estimator, points, self._fit, self.describe())
        rows = []
        for inside, seed in zip(member, seeds, strict=True):
            model = self._fit(points, inside, int(seed))
            row = dict(signals_of(model))
            if expansion is not None:
                row["taylor"] = expansion.terms(model)
            rows.append(row)
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

    def _signals_of(self, points: Points, want: Sequence[str]) -> Callable[[Any], Mapping[str, Array]]:
        """Return the function from a fitted model to its signals at all points."""
        y = points.y
        if self._reads == "predict":
            if np.asarray(y).dtype.kind not in "fiu":
                raise ValueError(f"{self.name} is a regressor and needs numbers as labels, got text")
            truth = np.asarray(y, dtype=float)
            scale = float(truth.std())
            if scale == 0:
                raise ValueError(f"{self.name}: the response is the same at all {len(truth):,} points")
            return lambda model: readout.predictions(np.ravel(self._outputs(model, points)), truth, scale, want)
        classes, label = np.unique(np.asarray(y), return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"{self.name} needs at least 2 classes, got only {classes[0]}")
        if len(classes) > len(label) / 2 and classes.dtype.kind == "f":
            raise ValueError(f"{self.name} is a classifier, but the label has {len(classes):,} different numbers")
        readout_of = readout.probabilities if self._reads == "predict_proba" else readout.margins

        def signals_of(model: Any) -> Mapping[str, Array]:
            outputs = _all_classes(self._outputs(model, points), model.classes_, classes)
            return readout_of(outputs, label, want)

        return signals_of

    def _outputs(self, model: Any, points: Points) -> Float[Array, "N ..."]:
        """Compute the outputs of a fitted model at all points."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                outputs = np.atleast_1d(np.asarray(getattr(model, str(self._reads))(points.x), dtype=float))
        except Exception as error:  # the model may be the user's: it may raise anything
            raise RuntimeError(
                f"{self.name} gives no numbers for {len(points):,} points: {first_line(error)}"
            ) from error
        if len(outputs) != len(points):
            raise ValueError(f"{self.name} gave {len(outputs):,} answers for {len(points):,} points")
        if not np.isfinite(outputs).all():
            raise ValueError(f"{self.name} answers with NaN or infinite values")
        return outputs


@dataclass(frozen=True)
class PretrainedModel:
    """One model that is already trained, known by its outputs alone.

    Parameters
    ----------
    predict_proba : callable
        Takes the features of n points, returns probabilities of shape (n, K).
    classes : array of shape (K,), optional
        The label of each column; 0 ... K-1, or the sorted labels if there are K of them, unless given.
    name : str
        The name in the report.
    batch : int
        Number of points in each call.
    chunk : int
        As in `Estimator`; there is one row.
    """

    predict_proba: Callable[[Any], Any]
    classes: Array | None = None
    name: str = "model"
    batch: int = 4096
    chunk: int = 1

    @property
    def description(self) -> str:
        """The name: nothing else is known."""
        return self.name

    def describe(self) -> None:
        """Return None: a model that is known by its outputs alone has no canonical description, and is not stored."""
        return

    @property
    def not_stored(self) -> str:
        """Why it is not stored: another run could not recognise it."""
        return "a model that is only known by its answers has no recipe to know it by"

    def observe(
        self, points: Points, member: Bool[Array, "m N"], seeds: Int[Array, " m"], want: Sequence[str]
    ) -> Mapping[str, Float[Array, "m N ..."]]:
        """Compute the model's signals at every point, as one row."""
        outputs = []
        for start in range(0, len(points), self.batch):
            x = points.take(np.arange(start, min(start + self.batch, len(points)))).x
            try:
                output = np.atleast_1d(np.asarray(self.predict_proba(x), dtype=float))
            except Exception as error:  # the function is the user's: it may raise anything
                raise RuntimeError(
                    f"{self.name} gives no numbers for {len(x):,} points: {first_line(error)}"
                ) from error
            if len(output) != len(x):
                raise ValueError(f"{self.name} gave {len(output):,} answers for {len(x):,} points")
            outputs.append(output)
        p = np.concatenate(outputs)
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
    """Add the default preprocessing to an estimator if a frame has columns that are not numeric."""
    if not isinstance(x, pd.DataFrame) or isinstance(estimator, Pipeline):
        return estimator
    numbers = [name for name in x.columns if pd.api.types.is_numeric_dtype(x[name])]
    words = [name for name in x.columns if name not in numbers]
    if not words:
        return estimator
    encode = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_pipeline(make_column_transformer((StandardScaler(), numbers), (encode, words)), estimator)


def from_spec(spec: str, settings: Mapping[str, Any] | None = None) -> Any:
    """Make an estimator from its import path, ``sklearn.ensemble:RandomForestClassifier``, and its parameters.

    Parameters
    ----------
    spec : str
        ``module:name`` of an estimator, its class, or a function without arguments that returns one.
    settings : mapping, optional
        Parameters that are set.

    Returns
    -------
    estimator

    Raises
    ------
    ValueError
        If the path does not lead to an estimator, its class or a factory, or a parameter is unknown.
    """
    target = imported(spec)
    try:
        estimator: Any = target() if callable(target) else target
        known = estimator.get_params() if callable(getattr(estimator, "get_params", None)) else {}
        for name in settings or {}:
            if name not in known:
                raise ValueError(f"unknown parameter {name!r}{nearest(name, known)}; known: {', '.join(known)}")
        return estimator.set_params(**settings) if settings else estimator
    except (TypeError, ValueError) as error:
        raise ValueError(f"{spec}: {first_line(error)}") from None


def _packages(estimator: Any) -> set[str]:
    """Return the distributions that the estimator's parts come from, as far as their names tell."""
    parts = [
        estimator,
        *(part for part in estimator.get_params().values() if callable(getattr(part, "fit", None))),
    ]
    names = {type(part).__module__.partition(".")[0] for part in parts}
    return {"scikit-learn" if name == "sklearn" else name for name in names}


def _last(estimator: Any) -> Any:
    """Return the step that a pipeline is named by."""
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def _all_classes(outputs: Float[Array, "N ..."], model_classes: Array, classes: Array) -> Float[Array, "N ..."]:
    """Extend the outputs to columns for all classes, also for those that are not in the model's training data."""
    if outputs.ndim == 2 and outputs.shape[1] != len(model_classes):
        raise ValueError(f"the model gives {outputs.shape[1]} values a point, but has {len(model_classes)} classes")
    if len(model_classes) == len(classes):
        return outputs
    if outputs.ndim == 1:
        outputs = np.column_stack([-outputs, outputs])
    lowest = outputs.min() if outputs.min() < 0 else 0.0
    extended = np.full((len(outputs), len(classes)), lowest)
    extended[:, np.searchsorted(classes, model_classes)] = outputs[:, : len(model_classes)]
    return extended
