"""Adam, AdamW and SGD on lists of tensors, which may hold the parameters of many models.

The arithmetic is that of PyTorch's optimisers, number by number, so that the models of an ensemble take their steps
together. PyTorch's classes are not used: the first one in a process takes more than a second to create, and a step
three times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import torch
from jaxtyping import Int, Shaped
from torch import Tensor

from leakbound.releases.networks.checkpoints import copy_into
from leakbound.releases.networks.recipe import Recipe

BETA1, BETA2, EPS = 0.9, 0.999, 1e-8  # PyTorch's defaults


class Optimiser:
    """The state of one optimiser."""

    def __init__(self, recipe: Recipe, parameters: Sequence[Shaped[Tensor, "..."]], fused: bool = True) -> None:
        # a schedule of the step size is for the caller, who sets lr
        self.recipe, self.fused, self.lr = recipe, fused, recipe.lr
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
        self.n_steps += 1
        if self.recipe.optimiser == "sgd":
            self._sgd(list(gradients))
            return
        fused_step = _fused(self.recipe.optimiser, self.parameters[0].device.type) if self.fused else None
        if fused_step is None:
            self._adam(list(gradients))
            return
        n_steps = [torch.tensor(float(self.n_steps), device=parameter.device) for parameter in self.parameters]
        pairs = zip(self.parameters, gradients, strict=True)
        same_layout = [_laid_out_as(parameter, gradient) for parameter, gradient in pairs]
        lists = (self.parameters, same_layout, self.first, self.second)
        in_order = [[_in_memory_order(tensor) for tensor in tensors] for tensors in lists]
        fused_step(*in_order, [], n_steps, **self._constants())

    def narrowed(self, parameters: Sequence[Shaped[Tensor, "..."]], models: Int[Tensor, " k"]) -> Optimiser:
        """Make an optimiser of some of the models, with their parameters and their state."""
        optimiser = Optimiser(self.recipe, parameters, self.fused)
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

    def _constants(self) -> dict[str, Any]:
        betas = {"beta1": BETA1, "beta2": BETA2, "eps": EPS}
        return betas | {"lr": self.lr, "weight_decay": self.recipe.weight_decay, "amsgrad": False, "maximize": False}

    def _adam(self, gradients: list[Tensor]) -> None:
        recipe, decay = self.recipe, self.recipe.weight_decay
        correction2 = (1 - BETA2**self.n_steps) ** 0.5  # of the bias of the moments
        step_size = self.lr / (1 - BETA1**self.n_steps)
        for parameter, gradient, first, second in zip(self.parameters, gradients, self.first, self.second, strict=True):
            if decay and recipe.optimiser == "adamw":
                parameter.mul_(1 - self.lr * decay)
            step = gradient.add(parameter, alpha=decay) if decay and recipe.optimiser == "adam" else gradient
            first.lerp_(step, 1 - BETA1)
            second.mul_(BETA2).addcmul_(step, step, value=1 - BETA2)
            parameter.addcdiv_(first, second.sqrt().div_(correction2).add_(EPS), value=-step_size)

    def _sgd(self, gradients: list[Tensor]) -> None:
        recipe = self.recipe
        for index, (parameter, gradient) in enumerate(zip(self.parameters, gradients, strict=True)):
            step = gradient.add(parameter, alpha=recipe.weight_decay) if recipe.weight_decay else gradient
            if recipe.momentum:
                step = self.first[index].mul_(recipe.momentum).add_(step)
            parameter.sub_(step, alpha=self.lr)


def _laid_out_as(parameter: Shaped[Tensor, "..."], gradient: Shaped[Tensor, "..."]) -> Shaped[Tensor, "..."]:
    """Return a gradient in the memory layout of its parameter."""
    if gradient.stride() == parameter.stride():
        return gradient
    return torch.empty_like(parameter).copy_(gradient)


def _in_memory_order(tensor: Shaped[Tensor, "..."]) -> Shaped[Tensor, "..."]:
    """Return a view with the axes in their order in memory: the fused call copies tensors that are not contiguous."""
    return tensor.permute(sorted(range(tensor.ndim), key=lambda axis: -tensor.stride(axis)))


@cache
def _fused(optimiser: str, device: str) -> Callable[..., None] | None:
    """Return PyTorch's Adam in one call, which is not public, if it exists and agrees with the plain arithmetic."""
    fused_step = getattr(torch, {"adam": "_fused_adam_", "adamw": "_fused_adamw_"}[optimiser], None)
    if fused_step is None:
        return None
    recipe = Recipe(optimiser="adamw" if optimiser == "adamw" else "adam", lr=0.1, weight_decay=0.1)
    start, gradient = torch.linspace(-1, 1, 9, device=device), torch.linspace(2, -3, 9, device=device)
    plain, fused = Optimiser(recipe, [start.clone()], fused=False), Optimiser(recipe, [start.clone()])
    for step in (1.0, 2.0):
        plain.step([gradient * step])
        try:
            n_steps = [torch.tensor(step, device=device)]
            state = (fused.parameters, [gradient * step], fused.first, fused.second)
            fused_step(*state, [], n_steps, **fused._constants())
        except (TypeError, RuntimeError):  # another version's signature, or no such kernel for the device
            return None
    agrees = torch.allclose(plain.parameters[0], fused.parameters[0], rtol=1e-6, atol=1e-6)
    return fused_step if agrees else None
