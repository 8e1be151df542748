"""Steps of PyTorch's Adam, AdamW and SGD on lists of tensors, which may hold the parameters of many models.

PyTorch's formulas are elementwise, so that the models of an ensemble take their steps together, and a model that has
stopped leaves with its part of the state. Its functions are called and not its classes: the first object of these takes
seconds to create.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Int, Shaped
from torch import Tensor
from torch.optim.adam import adam
from torch.optim.adamw import adamw
from torch.optim.sgd import sgd

from leakbound.releases.networks.checkpoints import copy_into
from leakbound.releases.networks.recipe import Recipe

ADAM = {"adam": adam, "adamw": adamw}
OF_ADAM: dict[str, Any] = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "amsgrad": False}  # the defaults of its class
WITH_FUSED = ("cpu", "cuda", "mps")


class Optimiser:
    """The state of one optimiser."""

    def __init__(self, recipe: Recipe, parameters: Sequence[Shaped[Tensor, "..."]]) -> None:
        self.recipe, self.lr = recipe, recipe.lr
        self.parameters = [parameter.detach() for parameter in parameters]  # the same memory, outside of autograd
        self.first: list[Tensor] = []  # moments
        self.second: list[Tensor] = []
        if recipe.optimiser != "sgd" or recipe.momentum:
            self.first = [torch.zeros_like(parameter) for parameter in self.parameters]
        if recipe.optimiser != "sgd":
            self.second = [torch.zeros_like(parameter) for parameter in self.parameters]
        self.n_steps = 0

    @torch.no_grad()
    def step(self, gradients: Sequence[Shaped[Tensor, "..."]]) -> None:
        """Take one step along these gradients, one for each parameter."""
        constants: dict[str, Any] = {"lr": self.lr, "weight_decay": self.recipe.weight_decay, "maximize": False}
        if self.recipe.optimiser == "sgd":
            buffers = list(self.first or [None] * len(self.parameters))
            constants |= {"momentum": self.recipe.momentum, "dampening": 0.0, "nesterov": False}
            sgd(self.parameters, list(gradients), buffers, foreach=False, **constants)
        else:
            n_steps = [torch.tensor(float(self.n_steps), device=parameter.device) for parameter in self.parameters]
            fused = self.parameters[0].device.type in WITH_FUSED
            pairs = zip(self.parameters, gradients, strict=True)
            same_layout = [_laid_out_as(parameter, gradient) for parameter, gradient in pairs]
            lists = (self.parameters, same_layout, self.first, self.second)
            ADAM[self.recipe.optimiser](*lists, [], n_steps, foreach=False, fused=fused, **constants, **OF_ADAM)
        self.n_steps += 1

    def narrowed(self, parameters: Sequence[Shaped[Tensor, "..."]], models: Int[Tensor, " k"]) -> Optimiser:
        """Make an optimiser of some of the models, with their parameters and their state."""
        optimiser = Optimiser(self.recipe, parameters)
        new_state, old_state = (*optimiser.first, *optimiser.second), (*self.first, *self.second)
        for new, old in zip(new_state, old_state, strict=True):
            new.copy_(old[models])
        optimiser.n_steps, optimiser.lr = self.n_steps, self.lr
        return optimiser

    def state(self) -> dict[str, Any]:
        """Return the moments and the number of steps, for a checkpoint."""
        return {"first": self.first, "second": self.second, "n_steps": self.n_steps}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` returned."""
        copy_into(self.first, state["first"])
        copy_into(self.second, state["second"])
        self.n_steps = state["n_steps"]


def _laid_out_as(parameter: Shaped[Tensor, "..."], gradient: Shaped[Tensor, "..."]) -> Shaped[Tensor, "..."]:
    """Return a gradient in the memory layout of its parameter."""
    if gradient.stride() == parameter.stride():
        return gradient
    return torch.empty_like(parameter).copy_(gradient)
