"""The networks of the plans beside this file: those of the papers, and one more."""

from __future__ import annotations

from torch import nn

from leakbound.papers.azize2024.networks import shallow
from leakbound.papers.delgrosso2021.networks import deep_cnn, dense
from leakbound.papers.sablayrolles2019.networks import tanh_cnn

__all__ = ["deep_cnn", "dense", "linear", "shallow", "tanh_cnn"]


def linear(inputs: int = 784, classes: int = 10) -> nn.Module:
    """Multinomial logistic regression of the pixels."""
    return nn.Sequential(nn.Flatten(), nn.Linear(inputs, classes))
