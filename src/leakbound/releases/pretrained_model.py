"""Releases by one pretrained model, known by its answers alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from leakbound.core.types import Points
from leakbound.data.records import as_given
from leakbound.releases import readout
from leakbound.releases.answers import (
    ask,
    classes_of,
    each_label,
    family_of,
    method_of,
    predicts_numbers,
    signals_of,
    truth_of,
    why_no_answers,
)
from leakbound.releases.labels import are_labels, compared
from leakbound.releases.specs import OR_SCORE, printed
from leakbound.releases.wrapped import AlreadyTrained

Array = np.ndarray


@dataclass(frozen=True)
class PretrainedModel(AlreadyTrained):
    """One model that is already trained, known by its outputs alone."""

    # From features to probabilities (n, K), or (n,) of the second class; to predictions (n,) if labels are responses.
    # Text, truth values and whole numbers (n,) are labels: all that is seen of them is whether they are right.
    predict_proba: Callable[[Any], Any]
    classes: Array | None = None  # 0 ... K-1, or the sorted labels if there are K of them, unless given
    name: str = "model"
    batch: int = 4096
    chunk: int = 1

    def observe(
        self, points: Points, member: Bool[Array, "m N"], seeds: Int[Array, " m"], want: Sequence[str]
    ) -> Mapping[str, Float[Array, "m N ..."]]:
        """Compute the model's signals at every point, as one row."""
        outputs = []
        for start in range(0, len(points), self.batch):
            x = points.take(np.arange(start, min(start + self.batch, len(points)))).x
            try:
                output = np.atleast_1d(np.asarray(self.predict_proba(as_given(x))))
                output = output if are_labels(output) else output.astype(float)
            except Exception as error:  # the function is the user's: it may raise anything
                why = why_no_answers(getattr(self.predict_proba, "__self__", None), x, error)
                raise RuntimeError(f"{self.name} gives no numbers for {len(x):,} points: {why}") from error
            if len(output) != len(x):
                raise ValueError(f"{self.name} gave {len(output):,} answers for {len(x):,} points")
            outputs.append(output)
        answers = np.concatenate(outputs)
        if are_labels(answers) and not self._is_regressor and not are_responses(points):
            return {"correct": compared(answers, points, self.name)[None]} if "correct" in want else {}
        answers = answers.astype(float)
        return {name: array[None] for name, array in self._signals(answers, points, want).items()}

    def _signals(
        self, outputs: Float[Array, "N ..."], points: Points, want: Sequence[str]
    ) -> Mapping[str, Float[Array, "N ..."]]:
        if self._is_regressor or (are_responses(points) and points.y is not None and outputs.size == points.y.size):
            truth = truth_of(points, self.name, responses=True)
            predictions = outputs.reshape(len(points), -1)
            if predictions.shape != truth.values.shape:
                raise ValueError(
                    f"{self.name} gives an array of shape {outputs.shape}, and the responses have shape "
                    f"{truth.values.shape}; allowed: a prediction of each response"
                )
            if not np.isfinite(predictions).all():
                raise ValueError(f"{self.name} answers with NaN or infinite values")
            return readout.predictions(predictions, truth.values, truth.scale, want)
        if points.y is not None and points.y.ndim == 2:
            truth = truth_of(points, self.name, responses=False)
            return readout.several_probabilities(each_label(outputs, truth), truth.values, want)
        p = of_two_classes(outputs)
        return readout.probabilities(p, self._label(points, p.shape[1]), want)

    @property
    def _is_regressor(self) -> bool:
        """Whether the function is a method of a regressor."""
        model = getattr(self.predict_proba, "__self__", None)
        return model is not None and predicts_numbers(model)

    def _label(self, points: Points, n_classes: int) -> Int[Array, " N"]:
        return columns_of_labels(points, self.classes, n_classes, self.name)


@dataclass(frozen=True)
class FittedEstimator(AlreadyTrained):
    """One fitted estimator with the scikit-learn interface, asked by the method that it has."""

    estimator: Any
    name: str = "model"
    chunk: int = 1

    def __post_init__(self) -> None:
        if method_of(self.estimator) is None:
            raise ValueError(
                f"a {type(self.estimator).__name__} has neither predict_proba, decision_function, nor is it a "
                f"regressor; give a function from features to probabilities, {OR_SCORE}"
            )

    @property
    def family(self) -> str:
        """The family of the estimator."""
        return family_of(self.estimator)

    @property
    def description(self) -> str:
        """The estimator as it prints itself."""
        return printed(self.estimator)

    def observe(
        self, points: Points, member: Bool[Array, "m N"], seeds: Int[Array, " m"], want: Sequence[str]
    ) -> Mapping[str, Float[Array, "m N ..."]]:
        """Compute the model's signals at every point, as one row."""
        method = method_of(self.estimator)
        assert method is not None
        truth = truth_of(points, self.name, responses=method == "predict")
        y = np.asarray(points.y).reshape(len(points), -1)
        ask(self.estimator, method, points.take(np.arange(1)), self.name)  # a model of a file learns its classes so
        classes = [] if method == "predict" else classes_of(self.estimator, y, truth)
        unknown = [
            value
            for known, all_classes in zip(classes, truth.classes, strict=True)
            for value in all_classes
            if value not in known
        ]
        if unknown:
            raise ValueError(f"{self.name}: the label {str(unknown[0])!r} is none of the model's classes")
        # classes that no point has are known to the model all the same
        row = signals_of(self.estimator, method, points, truth.with_classes(classes), classes, want, self.name)
        return {name: array[None] for name, array in row.items()}


def of_two_classes(outputs: Float[Array, "N ..."]) -> Float[Array, "N K"]:
    """Add the first class's column where a model gives the probability of the second alone."""
    if outputs.ndim == 1 or outputs.shape[1] == 1:
        return np.column_stack([1 - outputs.ravel(), outputs.ravel()])
    return outputs


def are_responses(points: Points) -> bool:
    """Tell whether labels are numbers of a regression: floats that are not all whole, with more than two values."""
    if points.y is None or points.y.dtype.kind != "f":
        return False
    return bool((points.y != np.round(points.y)).any()) and len(np.unique(points.y)) > 2


def columns_of_labels(points: Points, classes: Array | None, n_classes: int, name: str) -> Int[Array, " N"]:
    """Find the column of each point's class among a model's probabilities."""
    if points.y is None:
        raise ValueError(f"{name} needs labels, and there are none: give y, {OR_SCORE}")
    y = np.asarray(points.y)
    if classes is None and y.dtype.kind in "biu" and y.min() >= 0 and y.max() < n_classes:
        return y.astype(int)
    known = np.unique(y) if classes is None else np.asarray(classes)
    order = np.argsort(known)
    label = order[np.searchsorted(known, y, sorter=order).clip(0, len(known) - 1)]
    if len(known) != n_classes or (known[label] != y).any():
        raise ValueError(
            f"{name} gives {n_classes} probabilities a point, and the labels cannot be matched with them "
            f"({len(np.unique(y))} different ones, {len(known)} classes); "
            "give the label of each column as classes="
        )
    return label
