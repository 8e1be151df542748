"""DP-SGD as a user writes it: plain PyTorch, none of our code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import cycle, islice, repeat
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn.functional import cross_entropy

from leakbound.core.signals import DIAGNOSTICS
from leakbound.core.types import Game, Signals
from leakbound.dpsgd.clipping import noisy_sum
from leakbound.dpsgd.config import DpSgd
from leakbound.dpsgd.diagnostics import StepDiagnostics
from leakbound.dpsgd.gradient_rows import Rows


def split(game: Game, observed: Mapping[str, np.ndarray]) -> tuple[Signals, StepDiagnostics]:
    """What was observed of the points, and of the trainings themselves."""
    of_points = {name: array for name, array in observed.items() if name not in DIAGNOSTICS}
    return Signals(game, None, of_points), StepDiagnostics.of(observed)


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
        chosen = torch.zeros(len(x), dtype=torch.bool)
        batch = {"batch": lambda: chosen} if self.tells_batches else {}
        with follow(optimizer, normaliser, **batch):
            for chosen in self.drawn(len(x), generator):
                values = {name: value.detach() for name, value in parameters.items()}
                gradients = each(values, x[chosen], y[chosen])
                flat = torch.cat([value.flatten(1) for value in gradients.values()], dim=1)
                update = self.update(flat, normaliser, generator)
                for parameter, part in zip(
                    parameters.values(), update.split([value.numel() for value in parameters.values()]), strict=True
                ):
                    parameter.grad = part.view_as(parameter)
                optimizer.step()

    def drawn(self, n: int, generator: torch.Generator) -> Iterator[Tensor]:
        """The batches of all steps."""
        return poisson(n, self.dpsgd.sample_rate, self.dpsgd.steps, generator)

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


class NewNoise:
    """The noise of the steps of one training, from standard normal numbers that are new in each step: as it should be.

    Those that inherit it make mistakes. An instance is of one training.
    """

    def __init__(self, tensors: list[int], n_steps: int) -> None:
        self.tensors, self.n_steps = tensors, n_steps
        self.past: list[Tensor] = []

    def __call__(self, fresh: Tensor) -> Tensor:
        self.past.append(self.wrong(fresh))
        return self.past[-1]

    def wrong(self, fresh: Tensor) -> Tensor:
        return fresh


class SameNoise(NewNoise):
    """Drawn once, for all steps."""

    def wrong(self, fresh: Tensor) -> Tensor:
        return self.past[0] if self.past else fresh


class SameEveryEpoch(NewNoise):
    """A generator that is seeded anew every 20 steps."""

    def wrong(self, fresh: Tensor) -> Tensor:
        return self.past[-20] if len(self.past) >= 20 else fresh


class TakenBack(NewNoise):
    """Every second step subtracts the noise of the step before."""

    def wrong(self, fresh: Tensor) -> Tensor:
        return -self.past[-1] if len(self.past) % 2 else fresh


class AlwaysTakenBack(NewNoise):
    """z_t = -z_(t-1)."""

    def wrong(self, fresh: Tensor) -> Tensor:
        return -self.past[-1] if self.past else fresh


class SumOfNought(NewNoise):
    """The last step takes all noise out again."""

    def wrong(self, fresh: Tensor) -> Tensor:
        return -torch.stack(self.past).sum(0) if len(self.past) == self.n_steps - 1 else fresh


class EpochOfNought(NewNoise):
    """The last of every 20 steps takes all noise out again."""

    def wrong(self, fresh: Tensor) -> Tensor:
        return -torch.stack(self.past[-19:]).sum(0) if len(self.past) % 20 == 19 else fresh


class Correlated(NewNoise):
    """z_t = -.3 z_(t-1) + .954 new, of variance 1."""

    def wrong(self, fresh: Tensor) -> Tensor:
        return 0.91**0.5 * fresh - 0.3 * self.past[-1] if self.past else fresh


class QuietTensor(NewNoise):
    """One parameter tensor has no noise."""

    quiet = 0

    def wrong(self, fresh: Tensor) -> Tensor:
        parts = list(fresh.split(self.tensors))
        parts[self.quiet] = torch.zeros_like(parts[self.quiet])
        return torch.cat(parts)


class QuietFirstLayer(QuietTensor):
    """The first weights, of a network of two layers."""


class QuietFirstBias(QuietTensor):
    quiet = 1


class QuietLastWeights(QuietTensor):
    quiet = 2


class QuietLastBias(QuietTensor):
    quiet = 3


class QuietStep(NewNoise):
    """The first step has no noise."""

    def wrong(self, fresh: Tensor) -> Tensor:
        return fresh if self.past else torch.zeros_like(fresh)


NOISES = {
    "same": SameNoise,
    "same every epoch": SameEveryEpoch,
    "taken back": TakenBack,
    "always taken back": AlwaysTakenBack,
    "sum of nought": SumOfNought,
    "epoch of nought": EpochOfNought,
    "correlated": Correlated,
    "no noise on weight 1": QuietFirstLayer,
    "no noise on bias 1": QuietFirstBias,
    "no noise on weight 2": QuietLastWeights,
    "no noise on bias 2": QuietLastBias,
    "no noise in a step": QuietStep,
}


def poisson(n: int, rate: float, steps: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Indices of the records of each batch, as claimed."""
    for _ in range(steps):
        yield torch.nonzero(torch.rand(n, generator=generator) < rate)[:, 0]


def always_the_same(n: int, rate: float, steps: int, generator: torch.Generator) -> Iterator[Tensor]:
    batch = next(poisson(n, rate, 1, generator))
    return repeat(batch, steps)


def fixed_order(n: int, rate: float, steps: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Parts of the records as they are, again and again: a loader without shuffling."""
    return islice(cycle(torch.arange(n).tensor_split(round(1 / rate))), steps)


def shuffled(n: int, rate: float, steps: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Each record in one batch of every epoch."""
    n_batches, parts = round(1 / rate), ()
    for step in range(steps):
        if step % n_batches == 0:
            parts = torch.randperm(n, generator=generator).tensor_split(n_batches)
        yield parts[step % n_batches]


def twice_the_rate(n: int, rate: float, steps: int, generator: torch.Generator) -> Iterator[Tensor]:
    return poisson(n, 2 * rate, steps, generator)


BATCHES = {
    "always the same": always_the_same,
    "fixed order": fixed_order,
    "twice the rate": twice_the_rate,
    "shuffled": shuffled,
}


class WrongSum:
    """An aggregate of leakbound's own training whose noise is another one."""

    def __init__(self, noise: type[NewNoise], tensors: list[int], n_steps: int) -> None:
        self.noise = noise(tensors, n_steps)

    def __call__(self, parts: Iterable[Rows], dpsgd: DpSgd, noise: Tensor, normaliser: float) -> Tensor:
        return noisy_sum(parts, dpsgd, self.noise(noise), normaliser)


@dataclass(frozen=True)
class WrongTraining(Training):
    """A loop in plain PyTorch with a mistake in its noise or its batches."""

    noise: type[NewNoise] = NewNoise
    batches: Callable[..., Iterator[Tensor]] = poisson
    current: NewNoise | None = None  # of the training that runs

    def __call__(self, module: nn.Module, x: Tensor, y: Tensor, follow: Callable[..., Any], seed: int) -> None:
        tensors = [parameter.numel() for parameter in module.parameters()]
        running = replace(self, current=self.noise(tensors, self.dpsgd.steps))
        Training.__call__(running, module, x, y, follow, seed)

    def drawn(self, n: int, generator: torch.Generator) -> Iterator[Tensor]:
        return self.batches(n, self.dpsgd.sample_rate, self.dpsgd.steps, generator)

    def update(self, gradients: Tensor, normaliser: float, generator: torch.Generator) -> Tensor:
        assert self.current is not None
        clip, deviation = self.dpsgd.clip, self.dpsgd.noise_multiplier * self.dpsgd.clip
        total = (gradients * (clip / gradients.norm(dim=1, keepdim=True)).clamp(max=1.0)).sum(0)
        return (total + deviation * self.current(torch.randn(len(total), generator=generator))) / normaliser


@dataclass(frozen=True)
class WrongOpacus:
    """Opacus with a mistake in its noise or its batches."""

    dpsgd: DpSgd
    noise: type[NewNoise] = NewNoise
    batches: Callable[..., Iterator[Tensor]] = poisson

    def __call__(self, module: nn.Module, x: Tensor, y: Tensor, follow: Callable[..., Any], seed: int) -> None:
        from opacus import GradSampleModule
        from opacus.optimizers import DPOptimizer

        own = self.noise([parameter.numel() for parameter in module.parameters()], self.dpsgd.steps)
        deviation = self.dpsgd.noise_multiplier * self.dpsgd.clip

        class Wrong(DPOptimizer):
            def add_noise(self) -> None:
                super().add_noise()
                parameters: list[Any] = self.params  # each with an attribute of Opacus' own
                added = torch.cat([(each.grad - each.summed_grad).flatten() for each in parameters])
                parts = own(added / deviation).split(own.tensors)
                for parameter, part in zip(parameters, parts, strict=True):
                    parameter.grad = parameter.summed_grad + deviation * part.view_as(parameter)

        generator = torch.Generator().manual_seed(seed)
        private = GradSampleModule(module)
        normaliser = round(self.dpsgd.sample_rate * len(x))
        optimizer = Wrong(
            torch.optim.SGD(private.parameters(), lr=self.dpsgd.lr),
            noise_multiplier=self.dpsgd.noise_multiplier,
            max_grad_norm=self.dpsgd.clip,
            expected_batch_size=normaliser,
            generator=generator,
        )
        with follow(optimizer, normaliser):
            for chosen in self.batches(len(x), self.dpsgd.sample_rate, self.dpsgd.steps, generator):
                optimizer.zero_grad()
                cross_entropy(private(x[chosen]), y[chosen]).backward()
                optimizer.step()
