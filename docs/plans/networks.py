"""Networks for small images and pen strokes, as in the papers whose tables they serve."""

from __future__ import annotations

from itertools import pairwise

from torch import nn


def tanh_cnn(channels: int = 3, side: int = 32, classes: int = 10) -> nn.Module:
    """Two convolutions and two linear layers with tanh (sablayrolles2019, Section 6.3).

    The pool stands before the tanh: the values are the same, since tanh is monotone, at a quarter of the price.
    """
    return nn.Sequential(
        nn.Conv2d(channels, 32, 5, padding=2),
        nn.MaxPool2d(2),
        nn.Tanh(),
        nn.Conv2d(32, 64, 5, padding=2),
        nn.MaxPool2d(2),
        nn.Tanh(),
        nn.Flatten(),
        nn.Linear(64 * (side // 4) ** 2, 128),
        nn.Tanh(),
        nn.Linear(128, classes),
    )


def deep_cnn(channels: int = 1, side: int = 28, classes: int = 10) -> nn.Module:
    """Four convolutions and three linear layers with batch norm and ReLU (delgrosso2021, Section 5.2)."""
    layers: list[nn.Module] = []
    for out, kernel, stride in ((16, 7, 1), (32, 6, 2), (64, 5, 1), (64, 5, 2)):
        layers += [nn.Conv2d(channels, out, kernel, stride, padding=2), nn.BatchNorm2d(out), nn.ReLU()]
        channels, side = out, (side + 4 - kernel) // stride + 1
    sizes = (64 * side**2, 64, 32)
    layers.append(nn.Flatten())
    for before, after in pairwise(sizes):
        layers += [nn.Linear(before, after), nn.BatchNorm1d(after), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(sizes[-1], classes))


def dense(inputs: int = 110, classes: int = 10) -> nn.Module:
    """Four dense layers with ReLU, about 4,650 parameters (delgrosso2021, Section A.2)."""
    sizes = (inputs, 30, 22, 19)
    layers: list[nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(sizes[-1], classes))


def shallow(inputs: int = 784, width: int = 32, classes: int = 10) -> nn.Module:
    """One hidden layer, for images as they are."""
    return nn.Sequential(nn.Flatten(), nn.Linear(inputs, width), nn.Tanh(), nn.Linear(width, classes))


def linear(inputs: int = 784, classes: int = 10) -> nn.Module:
    """Multinomial logistic regression of the pixels."""
    return nn.Sequential(nn.Flatten(), nn.Linear(inputs, classes))
