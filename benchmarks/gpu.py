"""Networks on a GPU of CUDA: one after the other, side by side, and on one core. ``python -m benchmarks.gpu``.

Needs CIFAR-10 in the folder that ``LEAKBOUND_DATA`` names. Without a GPU the rows of the processor alone are printed.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from leakbound.core.types import Points
from leakbound.papers import data
from leakbound.papers.sablayrolles2019.networks import small_resnet, tanh_cnn
from leakbound.releases import Network, Recipe

N_MEMBERS = 4000


def points() -> Points:
    """8,000 images; each network is trained on half of them."""
    images = data.images("cifar10")
    return Points(np.ascontiguousarray(images.x[: 2 * N_MEMBERS]), images.y[: 2 * N_MEMBERS], digest="benchmark")


def seconds(make: Callable[[], nn.Module], images: Points, recipe: Recipe, n_networks: int) -> float:
    """Wall time of one epoch of so many networks at once, and of reading their losses at all images."""
    member = np.tile(np.arange(2 * N_MEMBERS) % 2 == 0, (n_networks, 1))
    member = np.random.default_rng(0).permuted(member, axis=1)
    release = Network(make, recipe=recipe, rows=n_networks)
    started = time.perf_counter()
    for is_warm in (False, True) if recipe.device == "cuda" else (True,):
        if is_warm:
            started = time.perf_counter()
        release.observe(images, member, np.arange(n_networks), ["loss"])
    return time.perf_counter() - started


def main() -> None:
    """Print a row for each network, device, batch and number side by side."""
    images = points()
    devices = ["cuda", "cpu"] if torch.cuda.is_available() else ["cpu"]
    for make in (tanh_cnn, small_resnet):
        for device in devices:
            side_by_side = (1, 8, 31) if device == "cuda" and make is tanh_cnn else (1,)
            for batch, n_networks in [(50, number) for number in side_by_side] + [(512, 1)]:
                took = seconds(make, images, Recipe(epochs=1, batch=batch, device=device), n_networks)
                print(f"{make.__name__:13} {device:4} batch {batch:3} {n_networks:2} at once {took:7.2f} s", flush=True)


if __name__ == "__main__":
    main()
