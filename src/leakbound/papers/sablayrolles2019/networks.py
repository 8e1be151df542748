"""The networks of Sections 6.2 to 6.4, at the size of CIFAR-10."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTHS = (32, 64, 128)


def tanh_cnn(channels: int = 3, side: int = 32, classes: int = 10) -> nn.Module:
    """Two convolutions and two linear layers with tanh (sablayrolles2019, Section 6.3).

    The pool comes before the tanh: the values are the same, since tanh is monotone, at a quarter of the price.
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


def small_resnet(channels: int = 3, classes: int = 10) -> nn.Sequential:
    """Build a residual network of seven convolutions, 0.3 million parameters and 128 features before the last layer."""
    layers: list[nn.Module] = [
        nn.Conv2d(channels, WIDTHS[0], 3, 2, 1, bias=False),
        nn.BatchNorm2d(WIDTHS[0]),
        nn.ReLU(),
    ]
    before = WIDTHS[0]
    for after in WIDTHS:
        layers.append(Residual(before, after))
        before = after
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, classes))


class Residual(nn.Module):
    """Two convolutions and a shortcut (He et al. 2016); with more channels, half of the rows and columns."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        stride = 1 if before == after else 2
        self.first = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.first_norm, self.second_norm = nn.BatchNorm2d(after), nn.BatchNorm2d(after)
        self.short = nn.Identity() if stride == 1 else nn.Conv2d(before, after, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        inner = functional.relu(self.first_norm(self.first(x)))
        return torch.relu(self.second_norm(self.second(inner)) + self.short(x))
