"""Releases by a function of the user's that trains a model: any library, any loop, any language."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from leakbound.core.checks import nearest
from leakbound.core.types import Points
from leakbound.data.records import as_given
from leakbound.releases.answers import Truth, classes_of, method_of, signals_of, truth_of
from leakbound.releases.labels import LabelsOnly, are_right
from leakbound.releases.networks.recipe import Collate
from leakbound.releases.pretrained_model import PretrainedModel
from leakbound.releases.specs import (
    OR_SCORE,
    NoCanonicalForm,
    canonical,
    first_line,
    is_network,
    keywords_of,
    versions,
)
from leakbound.releases.structure import Structure, structure_of
from leakbound.releases.wrapped import AfterTraining, KnownByRecipe

Array = np.ndarray
LABELS = ("y", "label", "labels", "target", "targets")  # names of an argument


@dataclass(frozen=True)
class TrainingFunction(KnownByRecipe):
    """A function that trains a model, called for each row of a game.

    >>> from sklearn.linear_model import LogisticRegression
    >>> def fit(X, y, seed):
    ...     return LogisticRegression(C=10).fit(X, y, sample_weight=1 + y)
    >>> points = Points(np.arange(8.0)[:, None], np.arange(8) % 2)
    >>> member = np.arange(8) < np.array([[4], [6]])
    >>> TrainingFunction(fit).observe(points, member, np.array([0, 1]), ["loss"])["loss"].shape
    (2, 8)
    """

    # fit(X, y, seed) or fit(X, y): an object with predict_proba, a regressor, a network, or a function of features;
    # where the result is seen by a score, any object, also of fit(X, seed) or fit(X) without labels
    function: Callable[..., Any]
    name: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    chunk: int = 1
    collate: Collate | None = None
    is_scored: bool = False
    after: AfterTraining | None = None  # what is done to a trained model before it is seen

    def __post_init__(self) -> None:
        if self.is_scored and not 1 <= _n_required(positional(self.function, self.parameters)) <= 3:
            own = name_of(self.function)
            raise ValueError(f"{own} must take the records, and perhaps labels and a seed: {own}(X, y, seed)")
        if not self.is_scored and not trains(self.function, self.parameters):
            raise ValueError(f"{name_of(self.function)} must take features and labels: fit(X, y, seed)")
        _refuse_unknown(self.function, self.parameters)
        if not self.name:
            object.__setattr__(self, "name", name_of(self.function))

    @property
    def description(self) -> str:
        """The name of the function and its keywords."""
        takes_labels = not self.is_scored or self._takes_labels
        return f"{name_of(self.function)}({', '.join(['X', *(['y'] if takes_labels else []), *self._words()])})"

    def _description(self) -> Mapping[str, Any]:
        if not inspect.isfunction(self.function):
            raise NoCanonicalForm(f"a {type(self.function).__name__} that trains has no import path")
        description = {
            "trained by": canonical(self.function),
            "parameters": canonical(self.parameters),
            "versions": versions({"scikit-learn", "numpy", "scipy"}),
        }
        if self.collate is not None:
            description["collate"] = canonical(self.collate)
        return description

    def observe(
        self, points: Points, member: Bool[Array, "m N"], seeds: Int[Array, " m"], want: Sequence[str]
    ) -> Mapping[str, Float[Array, "m N ..."]]:
        """Call the function for each row and compute the signals of what it returns at every point."""
        if points.y is None:
            raise ValueError(f"{self.name} needs labels, and there are none: give y, {OR_SCORE}")
        rows = []
        for inside, seed in zip(member, seeds, strict=True):
            model = self.fitted(points, inside, int(seed))
            rows.append(self._signals(model, points, inside, want))
        return {name: np.stack([row[name] for row in rows]) for name in rows[0]}

    def structure(self, points: Points, seed: int) -> Structure:
        """Train one model on all points, as it would be released, and read its structure."""
        return structure_of(self.fitted(points, np.ones(len(points), dtype=bool), seed), points)

    def fitted(self, points: Points, inside: Bool[Array, " N"], seed: int) -> Any:
        """Train on some of the points, and return whatever the function returns."""
        chosen = points.take(np.flatnonzero(inside))
        labels = () if chosen.y is None else (chosen.y,)
        seeded = (seed,) if takes_seed(self.function, self.parameters, len(labels)) else ()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = self.function(as_given(chosen.x), *labels, *seeded, **self.parameters)
        except Exception as error:  # the function is the user's: it may raise anything
            raise RuntimeError(f"{self.name} fails on {len(chosen):,} points: {first_line(error)}") from error
        if model is None:
            what = "what was trained" if self.is_scored else "the fitted model, or a function that predicts"
            raise ValueError(f"{self.name} returns nothing; return {what}")
        return model if self.after is None else self.after(model, points, inside, seed)

    @property
    def _takes_labels(self) -> bool:
        """Whether the second argument is one of labels, and no seed."""
        arguments = positional(self.function, self.parameters)
        return len(arguments) > 1 and "seed" not in arguments[1].name and arguments[1].name not in ("rng", "_")

    def refuse_labels(self, has_labels: bool) -> None:
        """Refuse labels where the function takes none, and the reverse; of what a score sees."""
        arguments = positional(self.function, self.parameters)
        own = name_of(self.function)
        if has_labels and not self._takes_labels:
            raise ValueError(f"{own} takes no labels, and y is given: def {own}(X, y, seed), or leave y out")
        is_label = len(arguments) > 1 and arguments[1].name in LABELS
        must_be = _n_required(arguments) == 3 or (is_label and arguments[1].default is inspect.Parameter.empty)
        if not has_labels and must_be:
            raise ValueError(f"{own} takes labels, and there are none: give y, or def {own}(X, seed)")

    def _signals(
        self, model: Any, points: Points, inside: Bool[Array, " N"], want: Sequence[str]
    ) -> Mapping[str, Float[Array, "N ..."]]:
        # a model that answers with labels gives right and wrong alone
        if isinstance(model, LabelsOnly):
            want = [name for name in want if name == "correct"]
            model = model.model
            predict = getattr(model, "predict", model)
            if not is_network(model):
                return {"correct": are_right(predict, points, self.name)} if want else {}
        # one model, which was trained outside: every record is asked for, and no seed is used
        everyone, no_seed = np.ones((1, len(points)), dtype=bool), np.zeros(1, dtype=int)
        if is_network(model):
            network = import_module("leakbound.releases.networks.network")
            trained = network.Trained(model, None, self.name, collate=self.collate)
            return {name: array[0] for name, array in trained.observe(points, everyone, no_seed, want).items()}
        method = method_of(model)
        if method is not None:
            truth = truth_of(points, self.name, responses=method == "predict")
            classes = [] if method == "predict" else self._classes(model, points, inside, truth)
            return signals_of(model, method, points, truth, classes, want, self.name)
        # anything else that is callable maps features to probabilities
        answer = model if callable(model) else getattr(model, "predict", None)
        if not callable(answer):
            raise ValueError(
                f"{self.name} returns a {type(model).__name__}; return an object with predict_proba or predict, or a "
                f"function from features to probabilities, {OR_SCORE}"
            )
        known = PretrainedModel(answer, None, self.name, batch=len(points))
        return {name: array[0] for name, array in known.observe(points, everyone, no_seed, want).items()}

    def _classes(self, model: Any, points: Points, inside: Bool[Array, " N"], truth: Truth) -> list[Array]:
        """List the classes of the columns: the model's own, or those of its training rows, or of all rows."""
        seen = np.asarray(points.y)[inside].reshape(np.count_nonzero(inside), -1)
        return classes_of(model, seen, truth)

    def _words(self) -> list[str]:
        return [f"{name}={value!r}" for name, value in self.parameters.items()]


def _refuse_unknown(function: Any, parameters: Mapping[str, Any]) -> None:
    """Refuse a parameter that a training function does not take: what it fits is made inside of it."""
    keywords = keywords_of(function)
    for name in parameters:
        if keywords is not None and name not in keywords:
            own = name_of(function)
            raise ValueError(
                f"{own} has no keyword {name!r}{nearest(name, keywords)}, and the model that it fits is made inside "
                f"of it; give it one (def {own}({', '.join(keywords)}, {name}=...)), or give "
                "a function without X and y that returns the estimator before it is fitted"
            )


def is_function(value: Any) -> bool:
    """Tell whether an object is a function or method, perhaps with some arguments set."""
    return inspect.isroutine(value) or isinstance(value, functools.partial)


def trains(function: Any, parameters: Mapping[str, Any] | None = None) -> bool:
    """Tell whether a function takes features and labels, and perhaps a seed: two or three positional arguments.

    >>> trains(lambda X, y, seed: None), trains(lambda: None), trains(int)
    (True, False, False)
    """
    return is_function(function) and 2 <= _n_required(positional(function, parameters)) <= 3


def takes_seed(function: Any, parameters: Mapping[str, Any], n_labels: int = 1) -> bool:
    """Tell whether a training function takes a seed, as the argument after features and labels."""
    arguments, place = positional(function, parameters), 1 + n_labels
    return len(arguments) > place and (_n_required(arguments) == place + 1 or "seed" in arguments[place].name)


def positional(function: Any, parameters: Mapping[str, Any] | None = None) -> list[inspect.Parameter]:
    """List the positional arguments that are not set by name; none where a function does not tell them."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of a function that is written in C
        return []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [
        each for each in signature.parameters.values() if each.kind in kinds and each.name not in (parameters or {})
    ]


def _n_required(positional: Sequence[inspect.Parameter]) -> int:
    return sum(parameter.default is parameter.empty for parameter in positional)


def name_of(function: Any) -> str:
    """Name a function or an object of the user's in a report."""
    inner = function.func if isinstance(function, functools.partial) else function
    name = getattr(inner, "__name__", type(inner).__name__)
    return "training function" if "<" in name else name
