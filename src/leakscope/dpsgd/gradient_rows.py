"""Matrices of gradients, a row a point, whose products are known without the matrix where possible.

Axes: B points, d parameters (flat, in the order of ``module.parameters()``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import linear


@runtime_checkable
class Rows(Protocol):
    """The rows of a matrix of gradients (B, d), which need not be there."""

    def squares(self) -> Float[Tensor, " B"]:
        """Squared Euclidean norm of each row."""
        ...

    def times(self, weights: Float[Tensor, " B"]) -> Rows:
        """Each row times its weight."""
        ...

    def sum(self) -> Float[Tensor, " d"]:
        """Of all rows."""
        ...

    def dots(self, vector: Float[Tensor, " d"]) -> Float[Tensor, " B"]:
        """Inner product of each row with a vector."""
        ...

    def gram(self, other: Any) -> Float[Tensor, "B C"]:
        """Inner products with the rows of another matrix (C, d), made in the same way."""
        ...

    def columns(self, numbers: Int[Tensor, " k"]) -> Float[Tensor, "B k"]:
        """Some of the d columns."""
        ...


@dataclass(frozen=True, eq=False)
class DenseRows:
    """Gradients as they are.

    Parameters
    ----------
    matrix : tensor of shape (B, d)
    """

    matrix: Float[Tensor, "B d"]

    def squares(self) -> Float[Tensor, " B"]:
        return torch.linalg.vector_norm(self.matrix, dim=1).square()

    def times(self, weights: Float[Tensor, " B"]) -> DenseRows:
        return DenseRows(self.matrix * weights[:, None])

    def sum(self) -> Float[Tensor, " d"]:
        return self.matrix.sum(0)

    def dots(self, vector: Float[Tensor, " d"]) -> Float[Tensor, " B"]:
        return self.matrix @ vector

    def gram(self, other: DenseRows) -> Float[Tensor, "B C"]:
        return self.matrix @ other.matrix.T

    def columns(self, numbers: Int[Tensor, " k"]) -> Float[Tensor, "B k"]:
        return self.matrix[:, numbers]


@dataclass(frozen=True, eq=False)
class Layer:
    """What one linear layer has of the gradients: that of its weights is ``error x input^T``, of its bias ``error``.

    Parameters
    ----------
    input : tensor of shape (B, i)
        The numbers that it was given.
    error : tensor of shape (B, o)
        Gradient of the loss with respect to the numbers that it gave.
    bias : bool
    """

    input: Float[Tensor, "B i"]
    error: Float[Tensor, "B o"]
    bias: bool

    @property
    def n_parameters(self) -> int:
        """Weights and biases."""
        return (self.input.shape[1] + self.bias) * self.error.shape[1]

    def dots(self, part: Float[Tensor, " p"]) -> Float[Tensor, " B"]:
        """Inner products with this layer's part of a vector."""
        n_weights = self.error.shape[1] * self.input.shape[1]
        weight = part[:n_weights].view(self.error.shape[1], -1)
        given = linear(self.input, weight, part[n_weights:] if self.bias else None)
        return (given * self.error).sum(1)

    def columns(self, numbers: Int[Tensor, " k"]) -> Float[Tensor, "B k"]:
        """Columns by their numbers in this layer."""
        width, n_weights = self.input.shape[1], self.error.shape[1] * self.input.shape[1]
        weight = numbers < n_weights
        error = self.error[:, torch.where(weight, numbers // width, numbers - n_weights)]
        return error * torch.where(weight, self.input[:, numbers % width], 1.0)


@dataclass(frozen=True, eq=False)
class LayerRows:
    """Gradients of a stack of linear layers, kept as the two factors of each layer's: no row is ever made.

    Norms: Goodfellow (2015); the clipped sum from the same backward pass: Bu, Wang, Zha & Karypis (2023).

    Parameters
    ----------
    layers : tuple of Layer
    """

    layers: tuple[Layer, ...]

    def squares(self) -> Float[Tensor, " B"]:
        return torch.stack(
            [(each.input.square().sum(1) + each.bias) * each.error.square().sum(1) for each in self.layers]
        ).sum(0)

    def times(self, weights: Float[Tensor, " B"]) -> LayerRows:
        return LayerRows(tuple(replace(each, error=each.error * weights[:, None]) for each in self.layers))

    def sum(self) -> Float[Tensor, " d"]:
        parts = []
        for each in self.layers:
            parts.append((each.error.T @ each.input).ravel())
            if each.bias:
                parts.append(each.error.sum(0))
        return torch.cat(parts)

    def dots(self, vector: Float[Tensor, " d"]) -> Float[Tensor, " B"]:
        parts = vector.split([each.n_parameters for each in self.layers])
        return torch.stack([each.dots(part) for each, part in zip(self.layers, parts, strict=True)]).sum(0)

    def gram(self, other: LayerRows) -> Float[Tensor, "B C"]:
        pairs = zip(self.layers, other.layers, strict=True)
        products = [(one.input @ two.input.T + one.bias) * (one.error @ two.error.T) for one, two in pairs]
        return torch.stack(products).sum(0)

    def columns(self, numbers: Int[Tensor, " k"]) -> Float[Tensor, "B k"]:
        found = self.layers[0].error.new_zeros(len(self.layers[0].error), len(numbers))
        first = 0
        for each in self.layers:
            here = (numbers >= first) & (numbers < first + each.n_parameters)
            found[:, here] = each.columns(numbers[here] - first)
            first += each.n_parameters
        return found


@dataclass(frozen=True, eq=False)
class CoordinateRows:
    """Gradients that are 0 but at one coordinate each.

    Parameters
    ----------
    where : int tensor of shape (B,)
    value : tensor of shape (B,)
    d : int
    """

    where: Int[Tensor, " B"]
    value: Float[Tensor, " B"]
    d: int

    def squares(self) -> Float[Tensor, " B"]:
        return self.value.square()

    def times(self, weights: Float[Tensor, " B"]) -> CoordinateRows:
        return replace(self, value=self.value * weights)

    def sum(self) -> Float[Tensor, " d"]:
        return self.value.new_zeros(self.d).index_add_(0, self.where, self.value)

    def dots(self, vector: Float[Tensor, " d"]) -> Float[Tensor, " B"]:
        return self.value * vector[self.where]

    def gram(self, other: Rows) -> Float[Tensor, "B C"]:
        return self.value[:, None] * other.columns(self.where).T

    def columns(self, numbers: Int[Tensor, " k"]) -> Float[Tensor, "B k"]:
        return self.value[:, None] * (self.where[:, None] == numbers)
