"""Adam, AdamW and SGD on lists of tensors, which may hold the parameters of many models.

The arithmetic is that of PyTorch's optimisers, number by number, so that a stack of models is stepped as one. Their
classes are not used: the first of them that a process makes takes more than a second, and a step three times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from jaxtyping import Int, Shaped
from torch import Tensor

from leakscope.releases.networks.recipe import Recipe

BETA1, BETA2, EPS = 0.9, 0.999, 1e-8  # as everywhere


class Optimiser:
    """The state of one optimiser.

    Parameters
    ----------
    recipe : Recipe
        Its ``optimiser``, ``lr``, ``momentum`` and ``weight_decay``.
    parameters : sequence of tensor
        Changed in place by `step`.
    fused : bool
        One call for all of Adam where PyTorch has it and it agrees with the plain arithmetic.
    """

    def __init__(self, recipe: Recipe, parameters: Sequence[Shaped[Tensor, ...]], fused: bool = True) -> None:
        self.recipe, self.fused = recipe, fused
        self.parameters = [each.detach() for each in parameters]  # the same memory, unseen by autograd
        adaptive = recipe.optimiser != "sgd"
        self.first = [torch.zeros_like(each) for each in self.parameters] if adaptive or recipe.momentum else []
        self.second = [torch.zeros_like(each) for each in self.parameters] if adaptive else []
        self.n_steps = 0

    @torch.no_grad()
    def step(self, gradients: Sequence[Shaped[Tensor, ...]]) -> None:
        """One step along these gradients, one for each parameter."""
        self.n_steps += 1
        if self.recipe.optimiser == "sgd":
            self._sgd(list(gradients))
            return
        call = _fused(self.recipe.optimiser, self.parameters[0].device.type) if self.fused else None
        if call is None:
            self._adam(list(gradients))
        else:
            counts = [torch.tensor(float(self.n_steps), device=each.device) for each in self.parameters]
            like = [_laid_out_as(own, each) for own, each in zip(self.parameters, gradients, strict=True)]
            lists = (self.parameters, like, self.first, self.second)
            call(*([_in_memory_order(each) for each in one] for one in lists), [], counts, **self._constants())

    def narrowed(self, parameters: Sequence[Shaped[Tensor, ...]], models: Int[Tensor, " k"]) -> Optimiser:
        """The state of some of the models alone, with their parameters."""
        made = Optimiser(self.recipe, parameters, self.fused)
        for own, old in zip((*made.first, *made.second), (*self.first, *self.second), strict=True):
            own.copy_(old[models])
        made.n_steps = self.n_steps
        return made

    def _constants(self) -> dict[str, Any]:
        recipe = self.recipe
        betas = {"beta1": BETA1, "beta2": BETA2, "eps": EPS}
        return betas | {"lr": recipe.lr, "weight_decay": recipe.weight_decay, "amsgrad": False, "maximize": False}

    def _adam(self, gradients: list[Tensor]) -> None:
        recipe, decay = self.recipe, self.recipe.weight_decay
        spread, slope = (1 - BETA2**self.n_steps) ** 0.5, recipe.lr / (1 - BETA1**self.n_steps)
        for own, gradient, first, second in zip(self.parameters, gradients, self.first, self.second, strict=True):
            if decay and recipe.optimiser == "adamw":
                own.mul_(1 - recipe.lr * decay)
            step = gradient.add(own, alpha=decay) if decay and recipe.optimiser == "adam" else gradient
            first.lerp_(step, 1 - BETA1)
            second.mul_(BETA2).addcmul_(step, step, value=1 - BETA2)
            own.addcdiv_(first, second.sqrt().div_(spread).add_(EPS), value=-slope)

    def _sgd(self, gradients: list[Tensor]) -> None:
        recipe = self.recipe
        for number, (own, gradient) in enumerate(zip(self.parameters, gradients, strict=True)):
            step = gradient.add(own, alpha=recipe.weight_decay) if recipe.weight_decay else gradient
            if recipe.momentum:
                step = self.first[number].mul_(recipe.momentum).add_(step)
            own.sub_(step, alpha=recipe.lr)


def _laid_out_as(parameter: Shaped[Tensor, ...], gradient: Shaped[Tensor, ...]) -> Shaped[Tensor, ...]:
    """A gradient in the memory layout of its parameter."""
    if gradient.stride() == parameter.stride():
        return gradient
    return torch.empty_like(parameter).copy_(gradient)


def _in_memory_order(tensor: Shaped[Tensor, ...]) -> Shaped[Tensor, ...]:
    """A view with its axes as they lie in memory: the call in one copies what is not contiguous, there and back."""
    return tensor.permute(sorted(range(tensor.ndim), key=lambda axis: -tensor.stride(axis)))


@cache
def _fused(optimiser: str, device: str) -> Callable[..., None] | None:
    """PyTorch's Adam in one call, if it is there and agrees with the plain arithmetic: it is no public name."""
    call = {"adam": getattr(torch, "_fused_adam_", None), "adamw": getattr(torch, "_fused_adamw_", None)}[optimiser]
    if call is None:
        return None
    recipe = Recipe(optimiser="adamw" if optimiser == "adamw" else "adam", lr=0.1, weight_decay=0.1)
    start, slope = torch.linspace(-1, 1, 9, device=device), torch.linspace(2, -3, 9, device=device)
    plain, other = Optimiser(recipe, [start.clone()], fused=False), Optimiser(recipe, [start.clone()])
    for number in (1.0, 2.0):
        plain.step([slope * number])
        try:
            counts = [torch.tensor(number, device=device)]
            call(other.parameters, [slope * number], other.first, other.second, [], counts, **other._constants())
        except (TypeError, RuntimeError):  # another version's signature, or no such kernel for the device
            return None
    return call if torch.allclose(plain.parameters[0], other.parameters[0], rtol=1e-6, atol=1e-6) else None
