"""How a network is called, and what it must answer: one rule, which a trial on two points checks.

A tensor is given to it as it is, a dictionary by its names, a list or tuple as its arguments. It returns its logits: a
tensor of shape (points, classes), or (points,) for one logit, or something whose ``logits`` is that tensor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from leakbound.data.records import Sequences
from leakbound.releases.networks.devices import seeded
from leakbound.releases.networks.tensors import AnyInputs, Inputs, inputs_of, token_inputs
from leakbound.releases.specs import first_line

Array = np.ndarray
RESHAPING = ("Squeeze", "Unsqueeze", "View", "UnsafeView", "Reshape", "Select", "Slice", "Alias", "ToCopy")


@dataclass(frozen=True)
class Interface:
    """Whether a network takes a tensor and returns a matrix of logits, or must be wrapped so that it does."""

    plain: bool = True

    def adapt(self, module: nn.Module) -> nn.Module:
        """Wrap a network so that it takes a batch and returns a matrix of logits; a plain one stays as it is."""
        return module if self.plain else AdaptedNetwork(module)

    def names(self, layers: str | tuple[str, ...]) -> str | tuple[str, ...]:
        """Return the names of layers in the wrapped network."""
        if self.plain:
            return layers
        names = (layers,) if isinstance(layers, str) else layers
        return tuple(name if name in ("all", "last") else f"network.{name}".rstrip(".") for name in names)


class AdaptedNetwork(nn.Module):
    """A network whose batches and answers have the form that the rest of this package works with."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.training = network.training

    def forward(self, batch: Any) -> Float[Tensor, "b C"]:
        """Compute the logits."""
        logits = _logits(_called(self.network, batch))
        return logits.reshape(-1, 1) if logits.ndim == 1 else logits


@dataclass(frozen=True, eq=False)
class Reading:
    """How a network reads some points."""

    inputs: AnyInputs
    interface: Interface
    n_outputs: int
    ends_in_sigmoid: bool


def reading_of_array(module: nn.Module, x: Any, name: str) -> Reading:
    """Find how a network reads an array, a frame or images: whole numbers as int64 if it has an embedding."""
    if isinstance(x, Sequences):
        raise ValueError(
            "the rows of x have different lengths; pad them, or give train={'collate': FUNCTION}, which makes a batch "
            "of a list of (x, y)"
        )
    tokens = token_inputs(x) if isinstance(x, np.ndarray) else None
    if tokens is None:
        return reading_of(module, inputs_of(x), name)
    has_embedding = any(isinstance(part, nn.Embedding | nn.EmbeddingBag) for part in module.modules())
    try:
        return reading_of(module, tokens if has_embedding else inputs_of(x), name)
    except ValueError as error:
        if error.__cause__ is None:  # the network read them, and what it answers is refused
            raise
        rule = "float32 for networks without nn.Embedding; by name, X={'x': X}, they are int64"
        if has_embedding:
            rule = "int64 for networks with nn.Embedding; X.astype('float32') are none"
        raise ValueError(f"{error}; whole numbers are {rule}") from error.__cause__


def reading_of(module: nn.Module, inputs: AnyInputs, name: str) -> Reading:
    """Find how a network reads inputs."""
    parameter = next(module.parameters())
    batch = inputs.batch(_trial_points(inputs), parameter.device)
    training = module.training
    try:
        with seeded(0, parameter.device), torch.enable_grad():
            answer = _called(module.eval(), batch)
    except Exception as error:  # the network is the user's: it may raise anything
        why = first_line(error)
        if isinstance(inputs, Inputs) and not inputs.integers and parameter.dtype != torch.float32:
            why = f"its weights are {parameter.dtype}, points are float32"
        raise ValueError(f"{name} cannot read {inputs.title}: {why}") from error
    finally:
        module.train(training)
    logits = _logits(answer)
    if not isinstance(logits, Tensor):
        raise _no_logits(name, f"a {type(answer).__name__}")
    if logits.ndim not in (1, 2) or len(logits) != 2:
        raise _no_logits(name, f"shape {tuple(logits.shape)}")
    if logits.ndim == 2:
        _refuse_probabilities(logits.detach(), name)
    is_plain = isinstance(batch, Tensor) and isinstance(answer, Tensor) and answer.ndim == 2
    n_outputs = 1 if logits.ndim == 1 else logits.shape[1]
    return Reading(inputs, Interface(is_plain), n_outputs, _ends_in_sigmoid(logits))


def refuse_sigmoid(reading: Reading, name: str) -> None:
    """Refuse a network whose outputs are probabilities where logits are expected."""
    if reading.ends_in_sigmoid:
        raise ValueError(f"{name} ends in a sigmoid; leave it out: the sigmoid is taken of what it answers")


def _trial_points(inputs: AnyInputs) -> Int[Array, " 2"]:
    """Choose two points for the trial: those with the smallest and the largest token, the first ones otherwise."""
    if isinstance(inputs, Inputs) and inputs.integers and isinstance(inputs.source, Tensor):
        tokens = inputs.source.flatten(1)
        return np.array([int(tokens.amin(dim=1).argmin()), int(tokens.amax(dim=1).argmax())])
    return np.arange(2)


def _called(module: nn.Module, batch: Any) -> Any:
    if isinstance(batch, Mapping):
        return module(**batch)
    return module(*batch) if type(batch) in (list, tuple) else module(batch)


def _logits(answer: Any) -> Any:
    """Return the logits in what a network returns: the tensor itself, or what is called ``logits`` in it."""
    if isinstance(answer, Tensor):
        return answer
    return answer.get("logits") if isinstance(answer, Mapping) else getattr(answer, "logits", None)


def _no_logits(name: str, what: str) -> ValueError:
    return ValueError(
        f"{name} must answer 2 points with a tensor of shape (2, classes), got {what}; wrap it in a network whose "
        "forward returns the logits alone"
    )


def _refuse_probabilities(output: Float[Tensor, "b C"], name: str) -> None:
    """Refuse outputs that are not negative and sum to one in every row: they are no logits."""
    total = output.cpu().double().sum(dim=1)
    if output.shape[1] > 1 and bool((output >= 0).all()) and bool(((total - 1).abs() < 1e-5).all()):
        raise ValueError(f"{name} answers with probabilities; leave softmax out: it is taken of what it answers")


def _ends_in_sigmoid(output: Tensor) -> bool:
    """Tell from the history of a tensor whether it is a sigmoid, apart from its shape."""
    for operation in _history(output):
        if operation.startswith("Sigmoid"):
            return True
        if not operation.startswith(RESHAPING):
            return False
    return False


def _history(output: Tensor) -> Iterator[str]:
    """Yield the names of the operations that led to a tensor, the last one first, along their first arguments."""
    node = output.grad_fn
    while node is not None:
        yield node.name()
        node = node.next_functions[0][0] if node.next_functions else None
