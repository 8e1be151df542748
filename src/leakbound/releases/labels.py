"""Models that answer with labels alone: what is seen of them is whether the label is right."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from leakbound.core.types import Points
from leakbound.data.records import as_given
from leakbound.releases.answers import why_no_answers
from leakbound.releases.specs import OR_SCORE, described_inside
from leakbound.releases.wrapped import AlreadyTrained, Wrapped

Array = np.ndarray


@dataclass(frozen=True)
class LabelsOnly:
    """A model whose users get labels and nothing else: no probabilities, no margins.

    It can be given where the model itself could: an estimator, a network or a function that trains, of which models are
    fitted (``ls.audit``, and ``references`` of ``ls.audit_model``), or a fitted classifier or a function from features
    to labels (``ls.audit_model``).

    Parameters
    ----------
    model : object

    Examples
    --------
    >>> import leakbound as ls
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> labels = ls.releases.LabelsOnly(DecisionTreeClassifier())
    >>> report = ls.audit(labels, *load_wine(return_X_y=True), n_models=8, attacks=["gap", "label_only"],
    ...     game=ls.HalfSplit(queries=8))
    >>> sorted({finding.attack for finding in report.findings if finding.quantity == "auc"})
    ['gap', 'label_only']
    """

    model: Any


@dataclass(frozen=True)
class ReleasedLabels(Wrapped):
    """A release of which the labels alone are seen."""

    @property
    def description(self) -> str:
        """That of the release, and that its labels alone are seen."""
        return f"{self.release.description}, labels only"

    @property
    def family(self) -> str:
        """That of the release."""
        return getattr(self.release, "family", "")

    def prepared(self, points: Points) -> str:
        """Say what the release does to the points."""
        says = getattr(self.release, "prepared", None)
        return "" if says is None else says(points)

    def _description(self) -> Mapping[str, Any]:
        return {"labels_only": described_inside(self.release)}

    def observe(
        self, points: Points, member: Bool[Array, "m N"], seeds: Int[Array, " m"], want: Sequence[str]
    ) -> Mapping[str, Float[Array, "m N"]]:
        """Make the releases, and see whether the label is right at every point."""
        return self.release.observe(points, member, seeds, [name for name in want if name == "correct"])


@dataclass(frozen=True)
class LabelModel(AlreadyTrained):
    """One trained model, known by its labels alone."""

    predict: Callable[[Any], Any]
    name: str = "model"
    batch: int = 4096
    chunk: int = 1

    def observe(
        self, points: Points, member: Bool[Array, "m N"], seeds: Int[Array, " m"], want: Sequence[str]
    ) -> Mapping[str, Float[Array, "m N"]]:
        """Compare the model's labels with the true ones, as one row."""
        parts = []
        for start in range(0, len(points), self.batch):
            part = points.take(np.arange(start, min(start + self.batch, len(points))))
            parts.append(are_right(self.predict, part, self.name))
        return {"correct": np.concatenate(parts)[None]} if "correct" in want else {}


def are_right(predict: Callable[[Any], Any], points: Points, name: str) -> Float[Array, " N"]:
    """Ask for the labels of points, and compare them with the true ones."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            labels = np.asarray(predict(as_given(points.x)))
    except Exception as error:  # the function is the user's: it may raise anything
        why = why_no_answers(getattr(predict, "__self__", None), points.x, error)
        raise RuntimeError(f"{name} gives no labels for {len(points):,} points: {why}") from error
    return compared(labels, points, name)


def are_labels(answers: Shaped[Array, "..."]) -> bool:
    """Tell whether answers are labels: text, truth values or whole numbers, one for each point."""
    is_whole = answers.dtype.kind in "biu"
    is_text = answers.dtype.kind in "US" or (
        answers.dtype.kind == "O" and any(isinstance(a, str) for a in answers.flat)
    )
    return is_text or (is_whole and answers.ndim == 1)


def compared(labels: Shaped[Array, "..."], points: Points, name: str) -> Float[Array, " N"]:
    """Compare labels that a model has answered with the true ones, as `are_right` does."""
    if points.y is None:
        raise ValueError(f"{name} needs labels, and there are none: give y, {OR_SCORE}")
    truth = np.asarray(points.y)
    if labels.shape != truth.shape and labels.size == truth.size:
        labels = labels.reshape(truth.shape)
    if labels.shape != truth.shape:
        raise ValueError(
            f"{name} gives an array of shape {labels.shape} for labels of shape {truth.shape}; allowed: a label for "
            "each point"
        )
    if _is_text(labels) != _is_text(truth):
        raise ValueError(
            f"{name} answers {str(labels.flat[0])!r} where the labels are as {str(truth.flat[0])!r}; it must answer "
            "with the labels of the data"
        )
    is_right = labels == truth
    return (is_right if is_right.ndim == 1 else is_right.all(axis=1)).astype(float)


def _is_text(values: Shaped[Array, "..."]) -> bool:
    return values.dtype.kind not in "biufc"
