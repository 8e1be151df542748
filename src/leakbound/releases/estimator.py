"""Releases by any estimator with the scikit-learn interface."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from sklearn.pipeline import Pipeline

from leakbound.core.checks import nearest
from leakbound.core.types import Points
from leakbound.data.records import as_given
from leakbound.releases import taylor
from leakbound.releases.answers import (
    Method,
    Truth,
    classes_of,
    family_of,
    method_of,
    predicts_numbers,
    signals_of,
    takes,
    truth_of,
    why_not,
)
from leakbound.releases.labels import are_right
from leakbound.releases.preparation import Preparation, encoded, preparation_for, unfitted
from leakbound.releases.specs import OR_SCORE, canonical, first_line, imported, printed, versions
from leakbound.releases.structure import Structure, structure_of
from leakbound.releases.wrapped import AfterTraining, KnownByRecipe

Array = np.ndarray


@dataclass(frozen=True)
class Estimator(KnownByRecipe):
    """An unfitted classifier or regressor, fitted anew for each row of a game.

    Source: sablayrolles2019, eq. 38.

    Parameters
    ----------
    estimator : scikit-learn estimator
        With ``predict_proba``, or ``decision_function`` (then the log-odds are margins), or a regressor; of a
        classifier with ``predict`` alone the labels are seen.
        Every ``random_state`` in it is set from the seed of the row.
    name : str
        The name in the report; that of the estimator's class unless given.
    chunk : int
        Rows that are fitted and stored together.
    quiet : bool
        Suppress the warnings of fits, which 64 fits would repeat 64 times.
    preparation : Preparation, optional
        What is done to columns and labels before a fit; found by a trial fit unless given.
    labels_only : bool
        Whether the labels that a classifier predicts are all that is seen of it: as of `LabelsOnly`.
    is_scored : bool
        Whether it is seen by a score alone, and need not predict anything.
    after : callable, optional
        What is done to a fitted model before it is seen.

    Raises
    ------
    ValueError
        If the object is not an estimator, or has neither probabilities, margins nor a regression.

    Notes
    -----
    The estimator gets features and labels as the user gave them. If it refuses a frame's columns on a trial of at most
    200 rows, numeric columns are standardised, with missing values left to the estimator or, if it refuses these,
    replaced by the median; times become seconds; all other columns are one-hot encoded, unknown values as zeros,
    missing as a value. If it refuses labels, they become 0 ... K-1.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from leakbound.core.types import Points
    >>> from leakbound.releases.estimator import Estimator
    >>> points = Points(np.arange(8.0)[:, None], np.arange(8) % 2)
    >>> member = np.arange(8) < np.array([[4], [6]])
    >>> Estimator(DecisionTreeClassifier()).observe(points, member, np.array([0, 1]), ["correct"])["correct"].shape
    (2, 8)
    """

    estimator: Any
    name: str = ""
    chunk: int = 4
    quiet: bool = True
    preparation: Preparation | None = None
    labels_only: bool = False
    is_scored: bool = False
    after: AfterTraining | None = None

    def __post_init__(self) -> None:
        if inspect.isclass(self.estimator):
            raise ValueError(f"give an estimator, not the class {self.estimator.__name__}: {self.estimator.__name__}()")
        if not callable(getattr(self.estimator, "fit", None)) or not callable(
            getattr(self.estimator, "get_params", None)
        ):
            kind = "None" if self.estimator is None else f"an object of type {type(self.estimator).__name__}"
            raise ValueError(
                f"expected an estimator with fit and get_params, got {kind}; a trained model with its data is audited "
                f"by audit_model; train anything else in a function train(X, y, seed), {OR_SCORE}"
            )
        if not self.name:
            object.__setattr__(self, "name", type(_last(self.estimator)).__name__)
        if self.is_scored:
            return
        if self._reads is None and callable(getattr(self.estimator, "predict", None)):
            object.__setattr__(self, "labels_only", True)  # nothing else can be seen
        if self.labels_only:
            if predicts_numbers(self.estimator) or not callable(getattr(self.estimator, "predict", None)):
                raise ValueError(f"{self.name} predicts no labels, and LabelsOnly is of classifiers with predict")
        elif self._reads is None:
            raise ValueError(
                f"{self.name} has neither predict_proba, decision_function nor predict: give one that has, {OR_SCORE}"
            )

    @cached_property
    def _reads(self) -> Method | None:
        """The method that the signals are computed from, as far as an estimator that is not fitted knows it."""
        method = method_of(self.estimator)
        if method is None and getattr(type(self.estimator), "predict_proba", None) is not None:
            return "predict_proba"
        return method

    @property
    def description(self) -> str:
        """The estimator as scikit-learn prints it."""
        return printed(self.estimator)

    def _description(self) -> Mapping[str, Any]:
        description = canonical(self.estimator)
        packages = {"scikit-learn", "numpy", "scipy", *_packages(self.estimator)}
        seen = {"labels_only": True} if self.labels_only else {}
        return {"estimator": description, "versions": versions(packages), **seen}

    def for_points(self, points: Points) -> Estimator:
        """Find out, once for all models, what the estimator needs so that it takes these points.

        Parameters
        ----------
        points : Points

        Returns
        -------
        Estimator
            With the preparation that works; itself if that was found before.
        """
        if self.preparation is not None or (points.y is None and not self.is_scored):
            return self
        # a score reads the labels as they were given, so that the model must be fitted to these
        return replace(self, preparation=preparation_for(self.estimator, points, of_labels=not self.is_scored))

    @property
    def family(self) -> str:
        """The family of the estimator."""
        return family_of(self.estimator)

    def prepared(self, points: Points) -> str:
        """Say what is done to columns and labels, in a sentence; empty if nothing is, or nobody has found out."""
        return "" if self.preparation is None else self.preparation.note(self.name)

    @property
    def owner_note(self) -> str:
        """The error of the trial fit, which may quote a value of the data; empty if there was none."""
        return "" if self.preparation is None else self.preparation.owner_note(self.name)

    def observe(
        self, points: Points, member: Bool[Array, "m N"], seeds: Int[Array, " m"], want: Sequence[str]
    ) -> Mapping[str, Float[Array, "m N ..."]]:
        """Fit one model for each row and compute its signals at every point."""
        prepared = self.for_points(points)
        if self.labels_only:
            return prepared._labels(points, member, seeds, want)
        truth = truth_of(points, self.name, responses=self._reads == "predict")
        expansion = None
        if "taylor" in want and prepared.preparation == Preparation():  # it needs columns and labels as they are
            expansion = taylor.expansion(self.estimator, points, prepared.fitted, self.describe())
        rows = []
        for inside, seed in zip(member, seeds, strict=True):
            model = prepared.fitted(points, inside, int(seed))
            classes = prepared._classes(model, points, inside, truth)
            method = method_of(model)
            if method is None:  # what its class has and its parameters take away, as a vote of labels
                return prepared._labels(points, member, seeds, want)
            row = dict(signals_of(model, method, points, truth, classes, want, self.name))
            if expansion is not None:
                row["taylor"] = expansion.terms(model)
            rows.append(row)
        return {name: np.stack([row[name] for row in rows]) for name in rows[0]}

    def _labels(
        self, points: Points, member: Bool[Array, "m N"], seeds: Int[Array, " m"], want: Sequence[str]
    ) -> Mapping[str, Float[Array, "m N"]]:
        """Fit one model for each row, and compare the labels that it predicts with the true ones."""
        if "correct" not in want:
            return {}
        rows = []
        for inside, seed in zip(member, seeds, strict=True):
            predict = self.fitted(points, inside, int(seed)).predict
            if self.preparation is not None and self.preparation.labels:
                predict = partial(_decoded, predict, encoded(np.asarray(points.y)[inside])[1])
            rows.append(are_right(predict, points, self.name))
        return {"correct": np.stack(rows)}

    def structure(self, points: Points, seed: int) -> Structure:
        """Fit one model on all points, as it would be released, and read its structure."""
        prepared = self.for_points(points)
        everyone = np.ones(len(points), dtype=bool)
        return structure_of(prepared.fitted(points, everyone, seed), points)

    def fitted(self, points: Points, inside: Bool[Array, " N"], seed: int) -> Any:
        """Copy the estimator, set its seeds, and fit it on some of the points."""
        preparation = self.preparation or Preparation()
        chosen = points.take(np.flatnonzero(inside))
        y = encoded(chosen.y)[0] if preparation.labels else chosen.y
        model: Any = preparation.pipeline(_seeded(unfitted(self.estimator), seed), points.x)
        try:
            with warnings.catch_warnings():
                if self.quiet:
                    warnings.simplefilter("ignore")
                model = model.fit(as_given(chosen.x), *(() if y is None else (y,)))
        except Exception as error:
            why = why_not(self.estimator, points.x, error)
            raise RuntimeError(f"{self.name} cannot be fitted on {len(chosen):,} points: {why}") from error
        return model if self.after is None else self.after(model, points, inside, seed)

    def _classes(self, model: Any, points: Points, inside: Bool[Array, " N"], truth: Truth) -> list[Array]:
        """List the classes that a fitted model knows, as they are in the user's labels."""
        if self._reads == "predict" or points.y is None:
            return []
        seen = points.y[inside].reshape(np.count_nonzero(inside), -1)
        if self.preparation is not None and self.preparation.labels:
            return [np.unique(column) for column in seen.T]
        return classes_of(model, seen, truth)


def from_spec(spec: str, settings: Mapping[str, Any] | None = None) -> Any:
    """Make an estimator from its import path, ``sklearn.ensemble:RandomForestClassifier``, and its parameters."""
    target = imported(spec)
    try:
        own, settings = {}, dict(settings or {})
        if inspect.isfunction(target):  # of what it does not take, the parameters of its estimator are set
            own = {name: settings.pop(name) for name in [*settings] if takes(target, name)}
        estimator: Any = target(**own) if callable(target) else target
        return _set(estimator, settings)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{spec}: {first_line(error)}") from None


def with_parameters(estimator: Any, settings: Mapping[str, Any]) -> Any:
    """Copy an estimator that is not fitted and change some of its parameters.

    >>> from sklearn.tree import DecisionTreeClassifier
    >>> with_parameters(DecisionTreeClassifier(), {"max_depth": 3})
    DecisionTreeClassifier(max_depth=3)
    """
    return _set(unfitted(estimator), settings)


def _set(estimator: Any, settings: Mapping[str, Any]) -> Any:
    """Set parameters of an estimator; an unknown one is refused with the nearest known name."""
    known = estimator.get_params() if callable(getattr(estimator, "get_params", None)) else {}
    for name in settings:
        if name not in known:
            inner = [path for path in known if path.endswith(f"__{name}")]  # of a step of a pipeline
            meant = f" (did you mean {' or '.join(map(repr, inner))}?)" if inner else nearest(name, known)
            raise ValueError(f"unknown parameter {name!r}{meant}; known: {', '.join(known)}")
    return estimator.set_params(**settings) if settings else estimator


def _seeded(estimator: Any, seed: int) -> Any:
    """Set every seed of an estimator; CatBoost lists its own only once it is set, and would write files."""
    names = [name for name in estimator.get_params() if name.split("__")[-1] == "random_state"]
    estimator.set_params(**dict.fromkeys(names, seed))
    if not names and takes(type(estimator), "random_seed"):
        estimator.set_params(random_seed=seed)
    if takes(type(estimator), "allow_writing_files"):
        estimator.set_params(allow_writing_files=False)
    return estimator


def _decoded(predict: Callable[[Any], Any], classes: Sequence[Array], x: Any) -> Array:
    """Return the labels behind the numbers 0 ... K-1 that a classifier was trained on."""
    codes = np.asarray(predict(x), dtype=int).reshape(-1, len(classes))
    return np.column_stack([values[code] for values, code in zip(classes, codes.T, strict=True)])


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
