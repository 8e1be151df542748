"""The networks of the appendix, and how they are trained."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torch import nn

CONVOLUTIONS = ((16, 7, 1), (32, 6, 2), (64, 5, 1), (64, 5, 2))  # channels, kernel, stride
PADDING = 2


def deep_cnn(channels: int = 1, side: int = 28, classes: int = 10) -> nn.Module:
    """Four convolutions and three linear layers with batch norm and ReLU (Appendix A.1).

    Parameters
    ----------
    channels, side : int
        Of the square images.
    classes : int

    Returns
    -------
    nn.Module

    Examples
    --------
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

    Parameters
    ----------
    inputs, classes : int

    Returns
    -------
    nn.Module

    Examples
    --------
    >>> n_parameters(dense())
    4650
    """
    return nn.Sequential(*_linear((inputs, 32, 16, 16)), nn.Linear(16, classes))


def n_parameters(network: nn.Module) -> int:
    """How many numbers are trained.

    Parameters
    ----------
    network : nn.Module
    """
    return sum(parameter.numel() for parameter in network.parameters())


def _linear(sizes: Sequence[int]) -> list[nn.Module]:
    layers: list[nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [nn.Linear(before, after), nn.BatchNorm1d(after), nn.ReLU()]
    return layers
