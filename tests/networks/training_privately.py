"""DP-SGD as a user writes it: plain PyTorch, none of our code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn.functional import cross_entropy

from leakscope.dpsgd.config import DpSgd


@dataclass(frozen=True)
class Training:
    """Poisson batches, clipped gradients, noise, plain steps."""

    dpsgd: DpSgd
    n_records: int
    tells_batches: bool = False

    def __call__(self, module: nn.Module, x: Tensor, y: Tensor, follow: Callable[..., Any], seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        parameters = dict(module.named_parameters())
        optimizer = torch.optim.SGD(parameters.values(), lr=self.dpsgd.lr)
        normaliser = self.dpsgd.sample_rate * self.n_records

        def loss(values, point, label):
            return cross_entropy(functional_call(module, values, (point[None],)), label[None])

        each = vmap(grad(loss), in_dims=(None, 0, 0))
        batch = {"batch": lambda: chosen} if self.tells_batches else {}
        with follow(optimizer, normaliser, **batch):
            for _ in range(self.dpsgd.steps):
                chosen = torch.rand(len(x), generator=generator) < self.dpsgd.sample_rate
                values = {name: value.detach() for name, value in parameters.items()}
                gradients = each(values, x[chosen], y[chosen])
                flat = torch.cat([value.flatten(1) for value in gradients.values()], dim=1)
                update = self.update(flat, normaliser, generator)
                for parameter, part in zip(
                    parameters.values(), update.split([value.numel() for value in parameters.values()]), strict=True
                ):
                    parameter.grad = part.view_as(parameter)
                optimizer.step()

    def update(self, gradients: Tensor, normaliser: float, generator: torch.Generator) -> Tensor:
        """The noisy mean of a batch."""
        clip, deviation = self.dpsgd.clip, self.dpsgd.noise_multiplier * self.dpsgd.clip
        total = (gradients * (clip / gradients.norm(dim=1, keepdim=True)).clamp(max=1.0)).sum(0)
        return (total + deviation * torch.randn(len(total), generator=generator)) / normaliser


class NoiseOfTheMean(Training):
    """The noise that belongs to the mean, on the sum: B times too little."""

    def update(self, gradients: Tensor, normaliser: float, generator: torch.Generator) -> Tensor:
        quiet = replace(self.dpsgd, noise_multiplier=self.dpsgd.noise_multiplier / normaliser)
        return Training(quiet, self.n_records).update(gradients, normaliser, generator)


class WithoutClipping(Training):
    """The gradients as they are."""

    def update(self, gradients: Tensor, normaliser: float, generator: torch.Generator) -> Tensor:
        deviation = self.dpsgd.noise_multiplier * self.dpsgd.clip
        return (gradients.sum(0) + deviation * torch.randn(gradients.shape[1], generator=generator)) / normaliser


class BatchClipping(Training):
    """The mean gradient is clipped, not each gradient."""

    def update(self, gradients: Tensor, normaliser: float, generator: torch.Generator) -> Tensor:
        mean, clip = gradients.sum(0) / normaliser, self.dpsgd.clip
        noise = self.dpsgd.noise_multiplier * clip * torch.randn(len(mean), generator=generator)
        return mean * min(1.0, clip / float(mean.norm())) + noise / normaliser
