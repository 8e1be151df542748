"""Matrices of per-sample gradients, one row for each point; products are computed without the matrix where possible.

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
    """The rows of a matrix of gradients (B, d), which need not be in memory."""

    def squares(self) -> Float[Tensor, " B"]:
        """Compute the squared Euclidean norm of each row."""
        ...

    def times(self, weights: Float[Tensor, " B"]) -> Rows:
        """Multiply each row by its weight."""
        ...

    def sum(self) -> Float[Tensor, " d"]:
        """Add up all rows."""
        ...

    def dots(self, vector: Float[Tensor, " d"]) -> Float[Tensor, " B"]:
        """Compute the inner product of each row with a vector."""
        ...

    def gram(self, other: Any) -> Float[Tensor, "B C"]:
        """Compute the inner products with the rows of another matrix (C, d) of the same class."""
        ...

    def columns(self, indices: Int[Tensor, " k"]) -> Float[Tensor, "B k"]:
        """Return some of the d columns."""
        ...


@dataclass(frozen=True, eq=False)
class DenseRows:
    """Gradients as a matrix."""

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

    def columns(self, indices: Int[Tensor, " k"]) -> Float[Tensor, "B k"]:
        return self.matrix[:, indices]


@dataclass(frozen=True, eq=False)
class Layer:
    """The gradients of one linear layer: ``error x input^T`` for its weights, ``error`` for its bias."""

    input: Float[Tensor, "B i"]
    error: Float[Tensor, "B o"]
    bias: bool

    @property
    def n_parameters(self) -> int:
        """Number of weights and biases."""
        return (self.input.shape[1] + self.bias) * self.error.shape[1]

    def dots(self, part: Float[Tensor, " p"]) -> Float[Tensor, " B"]:
        """Compute the inner products with this layer's part of a vector."""
        n_weights = self.error.shape[1] * self.input.shape[1]
        weight = part[:n_weights].view(self.error.shape[1], -1)
        output = linear(self.input, weight, part[n_weights:] if self.bias else None)
        return (output * self.error).sum(1)

    def columns(self, indices: Int[Tensor, " k"]) -> Float[Tensor, "B k"]:
        """Return columns by their indices in this layer."""
        width, n_weights = self.input.shape[1], self.error.shape[1] * self.input.shape[1]
        is_weight = indices < n_weights
        error = self.error[:, torch.where(is_weight, indices // width, indices - n_weights)]
        return error * torch.where(is_weight, self.input[:, indices % width], 1.0)


@dataclass(frozen=True, eq=False)
class LayerRows:
    """Gradients of a stack of linear layers, kept as the two factors of each layer: no row is ever computed.

    Norms: Goodfellow (2015); the clipped sum from the same backward pass: Bu, Wang, Zha & Karypis (2023).
    """

    layers: tuple[Layer, ...]

    def squares(self) -> Float[Tensor, " B"]:
        squares = [(layer.input.square().sum(1) + layer.bias) * layer.error.square().sum(1) for layer in self.layers]
        return torch.stack(squares).sum(0)

    def times(self, weights: Float[Tensor, " B"]) -> LayerRows:
        return LayerRows(tuple(replace(layer, error=layer.error * weights[:, None]) for layer in self.layers))

    def sum(self) -> Float[Tensor, " d"]:
        parts = []
        for layer in self.layers:
            parts.append((layer.error.T @ layer.input).ravel())
            if layer.bias:
                parts.append(layer.error.sum(0))
        return torch.cat(parts)

    def dots(self, vector: Float[Tensor, " d"]) -> Float[Tensor, " B"]:
        parts = vector.split([layer.n_parameters for layer in self.layers])
        return torch.stack([layer.dots(part) for layer, part in zip(self.layers, parts, strict=True)]).sum(0)

    def gram(self, other: LayerRows) -> Float[Tensor, "B C"]:
        pairs = zip(self.layers, other.layers, strict=True)
        products = [(one.input @ two.input.T + one.bias) * (one.error @ two.error.T) for one, two in pairs]
        return torch.stack(products).sum(0)

    def columns(self, indices: Int[Tensor, " k"]) -> Float[Tensor, "B k"]:
        columns = self.layers[0].error.new_zeros(len(self.layers[0].error), len(indices))
        first = 0
        for layer in self.layers:
            here = (indices >= first) & (indices < first + layer.n_parameters)
            columns[:, here] = layer.columns(indices[here] - first)
            first += layer.n_parameters
        return columns


@dataclass(frozen=True, eq=False)
class CoordinateRows:
    """Gradients that are 0 except at one coordinate each."""

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

    def columns(self, indices: Int[Tensor, " k"]) -> Float[Tensor, "B k"]:
        return self.value[:, None] * (self.where[:, None] == indices)
