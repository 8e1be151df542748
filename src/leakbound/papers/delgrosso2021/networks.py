"""The networks of the appendix, and how the paper's public code trains and asks those for images."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss, one_hot

CONVOLUTIONS = ((16, 7, 1), (32, 6, 2), (64, 5, 1), (64, 5, 2))  # channels, kernel, stride
PADDING = 2
CLASSES = 10
LARGEST_BATCH = 5000  # images that are asked at once: .6 GB in the first layer of the network for CIFAR-10


def deep_cnn(channels: int = 1, side: int = 28, classes: int = 10) -> nn.Module:
    """Four convolutions and three linear layers with batch norm and ReLU (Appendix A.1).

    >>> n_parameters(deep_cnn(1, 28)), n_parameters(deep_cnn(3, 32))
    (376714, 439722)
    """
    layers: list[nn.Module] = []
    for out, kernel, stride in CONVOLUTIONS:
        layers += [nn.Conv2d(channels, out, kernel, stride, padding=PADDING), nn.BatchNorm2d(out), nn.ReLU()]
        channels, side = out, (side + 2 * PADDING - kernel) // stride + 1
    return nn.Sequential(*layers, nn.Flatten(), *_linear((channels * side**2, 64, 32)), nn.Linear(32, classes))


def dense(inputs: int = 110, classes: int = 10) -> nn.Module:
    """Four linear layers with batch norm and ReLU (Appendix A.2).

    The paper prints their number and that of the parameters; the widths 32, 16 and 16 are those of its published
    code, and give that number.

    >>> n_parameters(dense())
    4650
    """
    return nn.Sequential(*_linear((inputs, 32, 16, 16)), nn.Linear(16, classes))


def n_parameters(network: nn.Module) -> int:
    """How many numbers are trained."""
    return sum(parameter.numel() for parameter in network.parameters())


def _linear(sizes: Sequence[int]) -> list[nn.Module]:
    layers: list[nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [nn.Linear(before, after), nn.BatchNorm1d(after), nn.ReLU()]
    return layers


def train(network: nn.Module, x: Tensor, label: np.ndarray, *, lr: float, batch: int, epochs: int, stop: float) -> None:
    """Train a network by Adam on the squared loss, a mean over batch and classes, as the public code does.

    Training stops after an epoch whose loss differs by less than `stop` from that of the epoch before. The loss of an
    epoch is the plain mean over its batches, of which the last may be small.
    """
    network.train()
    target = one_hot(torch.from_numpy(label), CLASSES).float()
    optimiser = torch.optim.Adam(network.parameters(), lr=lr)
    loss_before = math.inf
    for _ in range(epochs):
        losses = []
        for rows in torch.randperm(len(x)).split(batch):
            optimiser.zero_grad()
            loss = mse_loss(network(x[rows]).softmax(dim=1), target[rows])
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        loss_now = float(np.mean(losses))
        if abs(loss_now - loss_before) < stop:
            return
        loss_before = loss_now


def ask_in_training_mode(network: nn.Module, x: Tensor) -> np.ndarray:
    """Compute the outputs for images whose batch norm has their own means and variances, not those of the training."""
    network.train()
    n_parts = -(-len(x) // LARGEST_BATCH)
    with torch.no_grad():
        return np.concatenate([network(part).double().numpy() for part in x.tensor_split(n_parts)])


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """One thread, and PyTorch's random numbers from a seed; both as they were afterwards."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(threads)


def tensor(pixels: np.ndarray) -> Tensor:
    """Pixels in 8 bits of shape (N, H, W) or (N, H, W, 3) as numbers from 0 to 1, channels first.

    They are in the layout in memory in which convolutions are fastest.
    """
    x = torch.from_numpy(np.ascontiguousarray(pixels))
    x = x[:, None] if x.ndim == 3 else x.permute(0, 3, 1, 2)
    return (x.float() / 255).contiguous(memory_format=torch.channels_last)
