"""Small networks and data for them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from leakbound.core.tradeoff import TradeOff
from leakbound.core.types import Points
from leakbound.dpsgd.config import DpSgd
from leakbound.releases.networks.recipe import Recipe
from leakbound.releases.networks.tensors import inputs_of
from leakbound.releases.networks.training import TrainingData


@pytest.fixture(scope="session", autouse=True)
def curves_once() -> Iterator[None]:
    """Each curve of the accountant is computed once, which takes a third of an audit: tests/dpsgd tests the curves."""
    computed = cache(DpSgd.ceiling)

    def ceiling(dpsgd: DpSgd, *words: Any, **more: Any) -> TradeOff:
        return computed(dpsgd, *words, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DpSgd, "ceiling", ceiling)
        yield


@pytest.fixture
def points() -> Points:
    """120 points with labels that say nothing: what is learned is memory."""
    rng = np.random.default_rng(0)
    return Points(rng.normal(size=(120, 6)), rng.integers(3, size=120), digest="random")


@pytest.fixture
def member() -> np.ndarray:
    return np.random.default_rng(1).random((5, 120)) < 0.5


@pytest.fixture
def training_data_of(points):
    """The points as training data by a recipe."""

    def made(recipe: Recipe) -> TrainingData:
        return TrainingData(inputs_of(points.x), torch.as_tensor(points.y), recipe, torch.device("cpu"), "net")

    return made


def stack(width: int = 8, dropout: float = 0.0) -> nn.Module:
    """Linear layers and elementwise functions, nested."""
    inner = nn.Sequential(nn.Linear(6, width), nn.ReLU(), nn.Dropout(dropout))
    return nn.Sequential(nn.Flatten(), inner, nn.Linear(width, 5, bias=False), nn.Tanh(), nn.Linear(5, 3))


class Convolutions(nn.Module):
    """Convolution, batch norm and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.last = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Linear(4 * 36, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(torch.relu(self.norm(self.conv(x))).flatten(1))


@pytest.fixture
def image_folder(tmp_path):
    """Two classes with three colour images each, 4 x 5 pixels."""
    from PIL import Image

    rng = np.random.default_rng(0)
    for name in ("cat", "dog"):
        (tmp_path / "images" / name).mkdir(parents=True)
        for number in range(3):
            pixels = rng.integers(256, size=(4, 5, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "images" / name / f"{number}.png")
    return tmp_path / "images"
