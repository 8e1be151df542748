"""What the outputs of a network mean: classes, one logit, several labels, or responses.

With z the outputs of a point: classes have the probabilities ``softmax(z)``; one logit means ``(1 - p, p)`` with
``p = 1/(1 + exp(-z))``, and so does each of several labels with two values; responses are predicted by z itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int, Num, Shaped
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from leakbound.core.types import Points
from leakbound.releases import readout
from leakbound.releases.answers import truth_of
from leakbound.releases.networks.tensors import labels_of
from leakbound.releases.pretrained_model import are_responses

Array = np.ndarray
HeadKind = Literal["classes", "one_logit", "labels", "responses"]


@dataclass(frozen=True, eq=False)
class Head:
    """The meaning of a network's outputs, and the labels in that form."""

    kind: HeadKind
    # the column of each point's class; the index of its class, 0 or 1 (of several labels each); or responses
    values: Num[Array, "N ..."]

    def target(self, device: torch.device | str) -> Num[Tensor, "N ..."]:
        """Return the labels as a network is trained on them: int64 of shape (N,), or float32 of shape (N, L)."""
        dtype = torch.int64 if self.values.ndim == 1 else torch.float32
        return torch.as_tensor(self.values, dtype=dtype, device=device)

    def signals(self, outputs: Float[Array, "N C"], want: Sequence[str]) -> Mapping[str, Float[Array, "N ..."]]:
        """Compute loss, log-odds, correctness and log-probabilities, those of them that are wanted."""
        if self.kind == "responses":
            return readout.predictions(outputs, self.values, self.values.std(axis=0), want)
        if self.kind == "labels":
            probabilities = [_of_one_logit(column) for column in outputs.T]
            return readout.several_probabilities(probabilities, self.values, want)
        if self.kind == "one_logit":
            return readout.probabilities(_of_one_logit(outputs[:, 0]), self.values, want)
        return readout.probabilities(softmax(outputs), self.values, want)


def head_of(n_outputs: int, points: Points, name: str, classes: Shaped[Array, " K"] | None = None) -> Head:
    """Find what the outputs of a network mean, from their number and the labels.

    >>> head_of(1, Points(np.zeros((3, 1)), np.array(["no", "yes", "no"])), "net").kind
    'one_logit'
    """
    if points.y is None:
        raise ValueError(f"{name} needs labels")
    y = np.asarray(points.y)
    # numbers that are not classes: a squared error for each response
    if are_responses(points) and (y.ndim == 2 or n_outputs == 1):
        responses = truth_of(points, name, responses=True).values
        if responses.shape[1] != n_outputs:
            raise ValueError(
                f"{name} gives {_numbers(n_outputs)} a point, and each point has {responses.shape[1]} responses"
            )
        return Head("responses", responses)
    if y.ndim == 2:
        return _several_labels(n_outputs, points, name)
    # classes: one output for each, or a single logit for two of them
    present, label = labels_of(points, name)
    if classes is not None:
        label = _place_in(classes, present, name)[label]
        present = np.asarray(classes)
        if n_outputs == len(present):
            return Head("classes", label)
    if n_outputs == 1 and len(present) == 2:
        return Head("one_logit", label)
    try:
        return Head("classes", column_of_class(n_outputs, present, label, name))
    except ValueError as error:
        if n_outputs == 1 and y.dtype.kind in "biuf":
            raise ValueError(
                f"{error}; a network with one output needs two classes, or numbers that are not all whole"
            ) from None
        raise


def provisional_labels(points: Points, name: str) -> Num[Array, "N ..."]:
    """Return the labels in a form that does not depend on the network: indices of classes, or responses."""
    responses = are_responses(points)
    values = truth_of(points, name, responses=responses).values
    return values[:, 0] if np.asarray(points.y).ndim == 1 else values


def column_of_class(
    n_columns: int, classes: Shaped[Array, " K"], label: Int[Array, " N"], name: str
) -> Int[Array, " N"]:
    """Return the column of each point's class in an output with a number for each class."""
    if n_columns == len(classes):
        return label
    # more columns than classes, and the labels are indices of columns
    if classes.dtype.kind in "biu" and classes.min() >= 0 and classes.max() < n_columns:
        return classes.astype(np.int64)[label]
    raise ValueError(
        f"{name} gives {_numbers(n_columns)} a point, and the label has {len(classes)} classes; a "
        "network must give a number for each class"
    )


def softmax(outputs: Float[Array, "N C"]) -> Float[Array, "N C"]:
    """Compute the probabilities of classes."""
    weight = np.exp(outputs - outputs.max(axis=1, keepdims=True))
    return weight / weight.sum(axis=1, keepdims=True)


def binary_losses(outputs: Float[Tensor, "*b L"], target: Num[Tensor, "*b L"]) -> Float[Tensor, "*b"]:
    """Compute the sum over the labels of the binary cross-entropies, in nats."""
    return binary_cross_entropy_with_logits(outputs, target.to(outputs.dtype), reduction="none").sum(dim=-1)


def squared_losses(outputs: Float[Tensor, "*b L"], target: Float[Tensor, "*b L"]) -> Float[Tensor, "*b"]:
    """Compute the mean over the responses of the squared errors."""
    return (outputs - target).square().mean(dim=-1)


def _several_labels(n_outputs: int, points: Points, name: str) -> Head:
    truth = truth_of(points, name, responses=False)
    if any(len(classes) != 2 for classes in truth.classes):
        raise ValueError(f"{name}: each of several labels must have two values; a network has one logit for each")
    if truth.n_outputs != n_outputs:
        raise ValueError(
            f"{name} gives {_numbers(n_outputs)} a point, and each point has {truth.n_outputs} labels; a network must "
            "give a logit for each label"
        )
    return Head("labels", truth.values)


def _of_one_logit(logit: Float[Array, " N"]) -> Float[Array, "N 2"]:
    """Compute (1 - p, p), both with all digits."""
    return softmax(np.column_stack([np.zeros_like(logit), logit]))


def _place_in(classes: Shaped[Array, " K"], present: Shaped[Array, " k"], name: str) -> Int[Array, " k"]:
    """Find the labels that there are among those of the columns."""
    place_of = {value: place for place, value in enumerate(classes)}
    missing = [value for value in present if value not in place_of]
    if missing:
        raise ValueError(f"{name}: the label {str(missing[0])!r} is none of classes=")
    return np.array([place_of[value] for value in present])


def _numbers(n: int) -> str:
    return f"{n} number{'s' * (n != 1)}"
