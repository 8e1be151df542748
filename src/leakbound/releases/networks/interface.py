"""How a network is called, and where its logits are in what it returns: found by a trial on two points."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from leakbound.data.records import Sequences
from leakbound.releases.networks.devices import seeded
from leakbound.releases.networks.tensors import AnyInputs, Inputs, inputs_of, token_inputs
from leakbound.releases.specs import first_line

Array = np.ndarray
Call = Literal["batch", "keywords", "arguments"]
Logits = Literal["output", "attribute", "key", "first"]
RESHAPING = ("Squeeze", "Unsqueeze", "View", "UnsafeView", "Reshape", "Select", "Slice", "Alias", "ToCopy")


@dataclass(frozen=True)
class Interface:
    """The way in which a network is called and answers."""

    call: Call = "batch"
    logits: Logits = "output"  # what it returns, its attribute or entry "logits", or the first of several tensors
    one_number: bool = False

    @property
    def plain(self) -> bool:
        """Whether the network takes a batch and returns a matrix of logits."""
        return self == Interface()

    def adapt(self, module: nn.Module) -> nn.Module:
        """Wrap a network so that it takes a batch and returns a matrix of logits; a plain one stays as it is."""
        return module if self.plain else AdaptedNetwork(module, self)

    def names(self, layers: str | tuple[str, ...]) -> str | tuple[str, ...]:
        """Return the names of layers in the wrapped network."""
        if self.plain:
            return layers
        names = (layers,) if isinstance(layers, str) else layers
        return tuple(name if name in ("all", "last") else f"network.{name}".rstrip(".") for name in names)


class AdaptedNetwork(nn.Module):
    """A network whose batches and answers have the form that the rest of this package works with."""

    def __init__(self, network: nn.Module, interface: Interface) -> None:
        super().__init__()
        self.network = network
        self.interface = interface
        self.training = network.training

    def forward(self, batch: Any) -> Float[Tensor, "b C"]:
        """Compute the logits."""
        logits = _logits(_called(self.network, batch, self.interface.call), self.interface.logits)
        return logits.reshape(-1, 1) if self.interface.one_number else logits


@dataclass(frozen=True, eq=False)
class Reading:
    """How a network reads some points."""

    inputs: AnyInputs
    interface: Interface
    n_outputs: int
    ends_in_sigmoid: bool


def reading_of_array(module: nn.Module, x: Any, name: str) -> Reading:
    """Find how a network reads an array, a frame or images: as float32, or whole numbers as int64 if that fails."""
    if isinstance(x, Sequences):
        raise ValueError(
            "the rows of x have different lengths; pad them, or give train={'collate': FUNCTION}, which makes a batch "
            "of a list of (x, y)"
        )
    inputs = inputs_of(x)
    tokens = token_inputs(x) if isinstance(x, np.ndarray) else None
    try:
        return reading_of(module, inputs, name)
    except ValueError as error:
        if tokens is None or not isinstance(error.__cause__, Exception):
            raise
        first_error = error
    try:
        return reading_of(module, tokens, name)
    except ValueError as error:
        looks_up = any(isinstance(part, nn.Embedding | nn.EmbeddingBag) for part in module.modules())
        if looks_up or not isinstance(error.__cause__, Exception):
            raise
    raise first_error


def reading_of(module: nn.Module, inputs: AnyInputs, name: str) -> Reading:
    """Find how a network reads inputs."""
    parameter = next(module.parameters())
    batch = inputs.batch(_trial_points(inputs), parameter.device)
    answer, call = None, "batch"
    first_error: Exception | None = None
    training = module.training
    try:
        for call in _calls(batch):
            try:
                with seeded(0, parameter.device), torch.enable_grad():
                    answer = _called(module.eval(), batch, call)
                first_error = None
                break
            except Exception as error:  # the network is the user's: it may raise anything
                first_error = first_error or error
    finally:
        module.train(training)
    if first_error is not None:
        why = first_line(first_error)
        if isinstance(inputs, Inputs) and not inputs.integers and parameter.dtype != torch.float32:
            why = f"its weights are {parameter.dtype}, points are float32"
        raise ValueError(f"{name} cannot read {inputs.title}: {why}") from first_error
    place = _place_of_logits(answer)
    if place is None:
        raise _no_logits(name, f"a {type(answer).__name__}")
    logits = _logits(answer, place)
    one_number = logits.ndim == 1
    if logits.ndim not in (1, 2) or len(logits) != 2:
        raise _no_logits(name, f"shape {tuple(logits.shape)}")
    if not one_number:
        _refuse_probabilities(logits.detach(), name)
    n_outputs = 1 if one_number else logits.shape[1]
    return Reading(inputs, Interface(call, place, one_number), n_outputs, _ends_in_sigmoid(logits))


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


def _calls(batch: Any) -> Iterable[Call]:
    """List the ways in which a network may take a batch, the likeliest first."""
    if isinstance(batch, Mapping):
        return ("keywords", "batch")
    return ("arguments", "batch") if type(batch) in (list, tuple) else ("batch",)


def _called(module: nn.Module, batch: Any, call: Call) -> Any:
    if call == "keywords":
        return module(**batch)
    return module(*batch) if call == "arguments" else module(batch)


def _place_of_logits(answer: Any) -> Logits | None:
    """Tell where the logits are in what a network returns; None if there are none."""
    if isinstance(answer, Tensor):
        return "output"
    if isinstance(getattr(answer, "logits", None), Tensor):
        return "attribute"
    if isinstance(answer, Mapping) and isinstance(answer.get("logits"), Tensor):
        return "key"
    if isinstance(answer, list | tuple) and len(answer) and isinstance(answer[0], Tensor):
        return "first"
    return None


def _logits(answer: Any, place: Logits) -> Tensor:
    if place == "attribute":
        return answer.logits
    if place == "key":
        return answer["logits"]
    return answer[0] if place == "first" else answer


def _no_logits(name: str, what: str) -> ValueError:
    return ValueError(f"{name} must answer 2 points with a tensor of shape (2, classes), got {what}")


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
