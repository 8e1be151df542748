"""Networks side by side against one at a time: CPU time, one thread, both sides in one process. Needs PyTorch.

Run as ``OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 python -m benchmarks.networks``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from benchmarks.scoring import Row, cpu_seconds
from leakbound.releases.networks.architecture import Architecture
from leakbound.releases.networks.devices import seeded, working
from leakbound.releases.networks.recipe import Recipe
from leakbound.releases.networks.tensors import inputs_of
from leakbound.releases.networks.training import TrainingData, trained


def dense(*widths: int) -> nn.Module:
    """Linear layers with ReLU between them."""
    layers = [each for pair in pairwise(widths) for each in (nn.Linear(*pair), nn.ReLU())]
    return nn.Sequential(*layers[:-1])


def convolutions() -> nn.Module:
    """The small network for images of 32 x 32 pixels, pooled before tanh: the same values, fewer of them."""
    first = [nn.Conv2d(3, 32, 5, padding=2), nn.MaxPool2d(2), nn.Tanh()]
    second = [nn.Conv2d(32, 64, 5, padding=2), nn.MaxPool2d(2), nn.Tanh()]
    return nn.Sequential(*first, *second, nn.Flatten(), nn.Linear(4096, 128), nn.Tanh(), nn.Linear(128, 10))


def plain_convolutions() -> nn.Module:
    """The same network as it is usually written."""
    first = [nn.Conv2d(3, 32, 5, padding=2), nn.Tanh(), nn.MaxPool2d(2)]
    second = [nn.Conv2d(32, 64, 5, padding=2), nn.Tanh(), nn.MaxPool2d(2)]
    return nn.Sequential(*first, *second, nn.Flatten(), nn.Linear(4096, 128), nn.Tanh(), nn.Linear(128, 10))


def built(make: Callable[[], nn.Module], seed: int) -> nn.Module:
    with seeded(seed):
        return make()


def one_by_one(
    make: Callable[[], nn.Module], x: Tensor, y: Tensor, members: Sequence[np.ndarray], recipe: Recipe
) -> None:
    """The loop that is usually written, with batches taken from one tensor."""
    for seed, own in enumerate(members):
        module, order = built(make, seed), torch.from_numpy(own)
        optimiser = torch.optim.Adam(module.parameters(), lr=recipe.lr)
        for _ in range(recipe.epochs):
            for batch in order[torch.randperm(len(order))].split(recipe.batch):
                optimiser.zero_grad()
                cross_entropy(module(x[batch]), y[batch]).backward()
                optimiser.step()


def compared(
    name: str,
    makes: tuple[Callable[[], nn.Module], Callable[[], nn.Module]],
    n_models: int,
    recipe: Recipe,
    wanted: float,
) -> Row:
    """A chunk as it is trained by us, against a loop over a few of its models at PyTorch's default precision."""
    make, plain = makes
    module = make()
    first = next(module.parameters())
    shape = (3, 32, 32) if first.ndim == 4 else (first.shape[1],)
    rng = np.random.default_rng(0)
    n_points = 400 if first.ndim == 4 else 4000
    x, n_classes = rng.normal(size=(n_points, *shape)).astype(np.float32), len(list(module.parameters())[-1])
    y = rng.integers(n_classes, size=n_points)
    members = [np.sort(rng.permutation(n_points)[: n_points // 2]) for _ in range(n_models)]
    architecture, few = Architecture.of(module, recipe), members[: min(n_models, 4)]
    size = architecture.chunk(recipe)

    def ours() -> None:
        with working(recipe) as device:
            data = TrainingData(inputs_of(x), torch.as_tensor(y), recipe, device, name)
            for start in range(0, n_models, size):
                part = members[start : start + size]
                trained(lambda seed: built(make, seed), architecture, data, part, list(range(len(part))))

    tensors = torch.from_numpy(x), torch.as_tensor(y)
    naive = cpu_seconds(lambda: one_by_one(plain, *tensors, few, recipe), repeats=3)
    return Row(name, cpu_seconds(ours, repeats=3), naive * n_models / len(few), wanted)


def has_bfloat16() -> bool:
    """Whether the processor multiplies in bfloat16; where it does not, PyTorch emulates it, several times slower."""
    return any(value is True for name, value in torch.cpu.get_capabilities().items() if "bf16" in name)


def short_rows() -> list[Row]:
    """What takes seconds."""
    torch.set_num_threads(1)
    tiny, middle = Recipe(epochs=2), Recipe(epochs=1, batch=100)
    of_tiny, of_middle = ((lambda: dense(20, 16, 2)),) * 2, ((lambda: dense(446, 128, 30)),) * 2
    return [
        compared("64 networks 20-16-2 side by side, against a loop", of_tiny, 64, tiny, 10),
        compared("24 networks 446-128-30 side by side, against a loop", of_middle, 24, middle, 1.5),
    ]


def long_rows() -> list[Row]:
    """The others: in bfloat16 where the processor has it."""
    torch.set_num_threads(1)
    dense_networks, images = ((lambda: dense(446, 128, 30)),) * 2, (convolutions, plain_convolutions)
    of_images = Recipe(epochs=1, batch=50)
    rows = [compared("2 small CNNs that pool before tanh, against a plain loop", images, 2, of_images, 1.6)]
    if has_bfloat16():
        mixed = Recipe(epochs=1, batch=100, mixed_precision=True)
        mixed_images = replace(of_images, mixed_precision=True)
        rows += [
            compared("24 networks 446-128-30, bfloat16, against a loop in float32", dense_networks, 24, mixed, 2.5),
            compared("2 of the CNNs, bfloat16, against a plain loop in float32", images, 2, mixed_images, 1.6),
        ]
    return rows


if __name__ == "__main__":
    for row in [*short_rows(), *long_rows()]:
        times = f"{row.ours_seconds:7.2f} s {row.naive_seconds:7.2f} s"
        print(f"{row.name:60} {times} {row.ratio:5.1f}x (wanted {row.wanted:g}x)")
