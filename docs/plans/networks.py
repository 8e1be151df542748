"""The networks of the plans beside this file: those of the papers, and two more."""

from __future__ import annotations

from itertools import pairwise

from torch import nn

from leakscope.papers.azize2024.networks import shallow
from leakscope.papers.delgrosso2021.networks import deep_cnn
from leakscope.papers.sablayrolles2019.networks import tanh_cnn

__all__ = ["deep_cnn", "dense", "linear", "shallow", "tanh_cnn"]


def dense(inputs: int = 110, classes: int = 10) -> nn.Module:
    """Four dense layers with ReLU, 4,649 parameters, without the batch norm of delgrosso2021."""
    layers: list[nn.Module] = []
    for before, after in pairwise((inputs, 30, 22, 19)):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(19, classes))


def linear(inputs: int = 784, classes: int = 10) -> nn.Module:
    """Multinomial logistic regression of the pixels."""
    return nn.Sequential(nn.Flatten(), nn.Linear(inputs, classes))
