"""What a network that has never seen a ship or a truck makes of them: the features of Section 6.2."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import leakbound as ls
from leakbound.papers import data
from leakbound.papers.sablayrolles2019.networks import small_resnet

SHIP, TRUCK = 8, 9
BATCH, HIGHEST_LR = 100, 3e-3


def features(seed: int, n_images: int, epochs: int) -> dict[str, np.ndarray]:
    """Features of all ships and trucks of CIFAR-10, from a network that is trained on images of the other classes."""
    images = data.images("cifar10")
    mine = np.isin(images.y, (SHIP, TRUCK))
    drawn = ls.seeds.stream(seed, "features").permutation(np.flatnonzero(~mine))[:n_images]
    label = torch.from_numpy(np.unique(images.y[drawn], return_inverse=True)[1])
    n_unseen = min(n_images // 10, 2000)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with alone(ls.seeds.integer(seed, "features", "init")):
        network = small_resnet(classes=8).to(device)
        train(network, tensor(images.x[drawn[n_unseen:]]), label[n_unseen:], epochs)
        right = answers(network, tensor(images.x[drawn[:n_unseen]])).argmax(axis=1) == label[:n_unseen].numpy()
        activations = answers(network[:-1], tensor(images.x[mine]))
    return {"x": activations, "truck": images.y[mine] == TRUCK, "accuracy": right.mean()}


@contextmanager
def alone(seed: int) -> Iterator[None]:
    """One thread, and random numbers from a seed; both as they were afterwards."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(threads)


def tensor(pixels: np.ndarray) -> Tensor:
    """Pixels in 8 bits, channels first."""
    return torch.from_numpy(pixels).permute(0, 3, 1, 2)


def train(network: nn.Module, x: Tensor, label: Tensor, epochs: int) -> None:
    """By Adam with one cycle of the step size; images are mirrored and shifted by up to 4 pixels."""
    optimiser = torch.optim.Adam(network.parameters(), lr=HIGHEST_LR)
    steps = epochs * -(-len(x) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, HIGHEST_LR, total_steps=steps)
    for _ in range(epochs):
        for batch in torch.randperm(len(x)).split(BATCH):
            optimiser.zero_grad()
            answer = network(read(network, moved(x[batch])))
            cross_entropy(answer, label[batch].to(answer.device)).backward()
            optimiser.step()
            schedule.step()


def moved(x: Tensor) -> Tensor:
    """Mirror each image of a batch by a fair coin, and shift all together, with zeros at the edges."""
    x = torch.where(torch.rand(len(x), 1, 1, 1) < 0.5, x.flip(3), x)
    down, right = torch.randint(0, 9, (2,)).tolist()
    return torch.nn.functional.pad(x, [4] * 4)[:, :, down : down + x.shape[2], right : right + x.shape[3]]


def read(network: nn.Module, x: Tensor) -> Tensor:
    """Pixels as numbers from -1 to 1, where the network is."""
    device = next(network.parameters()).device
    return (x.to(device, torch.float32) / 127.5 - 1).contiguous(memory_format=torch.channels_last)


def answers(network: nn.Module, x: Tensor) -> np.ndarray:
    """Predict many images with a trained network."""
    network.eval()
    with torch.no_grad():
        return np.concatenate([network(read(network, part)).cpu().numpy() for part in x.split(1000)])
