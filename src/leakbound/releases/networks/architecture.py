"""The architecture of networks, and how networks of an architecture are trained fastest."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Int, Shaped
from torch import nn

from leakbound.core.checks import nearest
from leakbound.releases.networks.devices import is_on_gpu, seeded
from leakbound.releases.networks.ensemble import has_convolution, is_stack
from leakbound.releases.networks.heads import column_of_class
from leakbound.releases.networks.interface import reading_of
from leakbound.releases.networks.recipe import Recipe
from leakbound.releases.networks.tensors import Inputs
from leakbound.releases.specs import first_line, keywords_of

Array = np.ndarray
Kind = Literal["stack", "vmap", "one"]
# Which way is fastest, by measurement (one thread, models for each second against a plain loop over the models):
#
#   kind    networks                                      why
#   stack   sequences of linear layers and elementwise    a batched product for each layer: 15 times for 20-16-2 and 64
#           functions                                     models, 4.8 for 100-32-10, 1.7 for 446-128-30
#   vmap    others without convolution, buffers, ties     8 times for 20-16-2, 3.8 for 100-32-10; below 1.3 where a
#           and frozen parts, below 5 MFLOP a step        step has more work than overhead
#   one     all others                                    convolutions of many models at once are slower than one
#                                                         after the other, channels last: 1.4 times a plain loop
#
# On a GPU a step of one small network is mostly the start of its kernels, so that convolutions go side by side too.
LARGEST_STEP = 5e6  # FLOP, for vmap
LARGEST_STATE = 12e6  # bytes of parameters, gradients and moments of all models at once: they fit into a cache
LARGEST_STATE_ON_GPU = 2e9  # the same; the activations need several times as much
MOST = 64  # models at once
TRAINER = "give a function fit(X, y, seed) that makes the network, calls its Trainer and returns the network"


@dataclass(frozen=True)
class Architecture:
    """The facts about a network that do not depend on data."""

    kind: Kind
    n_parameters: int
    title: str
    digest: str

    @classmethod
    def of(cls, module: nn.Module, recipe: Recipe) -> Architecture:
        """Find the architecture of a network."""
        n_parameters = sum(parameter.numel() for parameter in module.parameters() if parameter.requires_grad)
        title = type(module).__name__
        if n_parameters == 0:
            raise ValueError(f"{title} has no parameters that are trained")
        refuse_softmax(module)
        return cls(_kind(module, recipe, n_parameters), n_parameters, title, _digest(module))

    def chunk(self, recipe: Recipe) -> int:
        """Return the number of models that are trained at once: as fit into a cache; one if there is no gain."""
        if self.kind == "one":
            return 1
        n_tensors = 4  # parameters, gradients and two moments of Adam
        if recipe.optimiser == "sgd":
            n_tensors = 3 if recipe.momentum else 2
        largest = LARGEST_STATE_ON_GPU if is_on_gpu(recipe) else LARGEST_STATE
        return int(min(max(largest // (4 * n_tensors * self.n_parameters), 1), MOST))


def built(make: Callable[..., Any], parameters: Mapping[str, Any], seed: int) -> nn.Module:
    """Make a network with random initial weights, on the CPU."""
    name = _name(make)
    _refuse_unknown(make, parameters, name)
    with seeded(seed):
        try:
            module = make(**parameters)
        except Exception as error:  # the factory is the user's: it may raise anything
            raise ValueError(f"{name}: no network can be made: {first_line(error)}") from error
    if not isinstance(module, nn.Module):
        raise ValueError(f"{name} must make a network (torch.nn.Module), got a {type(module).__name__}")
    return module


def columns_of(
    module: nn.Module, inputs: Inputs, classes: Shaped[Array, " K"], label: Int[Array, " N"], name: str
) -> Int[Array, " N"]:
    """Read the size of a network's output, and find the columns of the classes in it by `heads.column_of_class`."""
    reading = reading_of(module, inputs, name)
    if not reading.interface.plain:
        raise ValueError(f"{name} must answer points with a tensor of shape (points, classes), and nothing else")
    return column_of_class(reading.n_outputs, classes, label, name)


def refuse_softmax(module: nn.Module) -> None:
    """Refuse a network that ends in softmax: the output must be logits."""
    if isinstance(module, nn.Sequential) and len(module) and isinstance(module[-1], nn.Softmax):
        raise ValueError(f"{type(module).__name__} ends in Softmax; leave it out: softmax is taken of what it answers")


def refuse_own_step(module: Any, instead: str = TRAINER) -> None:
    """Refuse a network with a training step of its own, as of Lightning: no training of ours calls it."""
    if callable(getattr(module, "training_step", None)):
        name = getattr(module, "__name__", type(module).__name__)  # of a class, or of a network
        raise ValueError(f"{name} has a training_step, which leakbound would not call: {instead}")


def _kind(module: nn.Module, recipe: Recipe, n_parameters: int) -> Kind:
    tied = len(list(module.named_parameters(remove_duplicate=False))) != len(list(module.parameters()))
    if tied or not all(parameter.requires_grad for parameter in module.parameters()):
        return "one"
    if is_stack(module):
        return "stack"
    if list(module.buffers()):
        return "one"
    if is_on_gpu(recipe):
        return "vmap"
    small = 6 * n_parameters * recipe.batch < LARGEST_STEP  # a product and its two derivatives, 2 FLOP each
    return "vmap" if small and not has_convolution(module) else "one"


def _digest(module: nn.Module) -> str:
    sha = hashlib.sha256(repr(module).encode())
    for name, value in module.state_dict().items():
        sha.update(f"{name} {tuple(value.shape)} {value.dtype}".encode())
    return sha.hexdigest()


def _refuse_unknown(make: Callable[..., Any], parameters: Mapping[str, Any], name: str) -> None:
    known = keywords_of(make)  # where it is None, the call itself refuses what is unknown
    for parameter in parameters:
        if known is not None and parameter not in known:
            listed = f"known: {', '.join(known)}" if known else "it takes none"
            raise ValueError(f"{name}: unknown parameter {parameter!r}{nearest(parameter, known)}; {listed}")


def _name(make: Callable[..., Any]) -> str:
    return getattr(make, "__name__", type(make).__name__)
