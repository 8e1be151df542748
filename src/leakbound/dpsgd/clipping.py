"""Per-sample gradients of a network's loss, and their clipped sum.

Axes: B points, d parameters (flat, in the order of ``module.parameters()``). The loss is the cross-entropy in nats.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import deepcopy
from typing import Literal, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn.functional import cross_entropy, linear

from leakbound.core.checks import one_of
from leakbound.dpsgd.config import DpSgd
from leakbound.dpsgd.gradient_rows import DenseRows, Layer, LayerRows, Rows

How = Literal["auto", "layers", "vmap", "opacus"]
WAYS = ("auto", "layers", "vmap", "opacus")
AT_ONCE = 8 << 20  # entries of gradients at a time, 32 MB
_LAYERED_AT_ONCE = 4096  # points at a time, if gradients are kept by layer
_IN_PLACE = (nn.ReLU, nn.LeakyReLU, nn.ELU, nn.SELU, nn.SiLU)  # may work in place
_POINTWISE = (
    *_IN_PLACE,
    nn.Identity,
    nn.Flatten,
    nn.GELU,
    nn.Softplus,
    nn.Tanh,
    nn.Sigmoid,
)
_REFUSED = {  # these base classes have no public names
    nn.modules.batchnorm._BatchNorm: "mixes the points of a batch: no point has a gradient of its own; use GroupNorm",
    nn.modules.dropout._DropoutNd: "makes the gradient of a point random: no attacker knows it; leave it out",
}


@runtime_checkable
class Gradients(Protocol):
    """The per-sample gradients of a network."""

    @property
    def block(self) -> int:
        """Number of points at a time, so that memory stays small."""
        ...

    def rows(self, theta: Float[Tensor, " d"], x: Float[Tensor, "B ..."], y: Int[Tensor, " B"]) -> Rows:
        """Compute the gradients of the losses of B points with labels y, at the parameters theta."""
        ...


class ByLayer:
    """Gradients of a stack of linear layers and activations: one forward and one backward pass."""

    block = _LAYERED_AT_ONCE

    def __init__(self, module: nn.Module) -> None:
        stack = linear_stack(module)
        if stack is None:
            raise ValueError("gradients by layer need a Sequential of Linear, Flatten and activations; use 'vmap'")
        self._stack = [out_of_place(layer) for layer in stack]

    def rows(self, theta: Float[Tensor, " d"], x: Float[Tensor, "B ..."], y: Int[Tensor, " B"]) -> LayerRows:
        # forwards: the input of each linear layer, and its output with a gradient
        inputs, outputs, linears = [], [], []
        value, first = x.to(theta.dtype), 0
        for layer in self._stack:
            if not isinstance(layer, nn.Linear):
                value = layer(value)
                continue
            inputs.append(value.detach())
            linears.append(layer)
            last = first + layer.weight.numel()
            weight, bias = theta[first:last].view_as(layer.weight), None
            if layer.bias is not None:
                bias = theta[last : last + layer.out_features]
                last += layer.out_features
            value, first = linear(value, weight, bias).requires_grad_(), last
            outputs.append(value)
        # backwards: the gradient of a record is, layer by layer, its error times its input
        errors = torch.autograd.grad(cross_entropy(value, y, reduction="sum"), outputs)
        parts = zip(inputs, errors, linears, strict=True)
        return LayerRows(tuple(Layer(input, error, layer.bias is not None) for input, error, layer in parts))


class ByPoint:
    """Gradients of any network, by ``vmap`` of its gradient."""

    def __init__(self, module: nn.Module) -> None:
        self._module = out_of_place(module).eval()
        named = module.named_parameters()
        self._shapes = {name: parameter.shape for name, parameter in named if parameter.requires_grad}
        self.block = max(1, AT_ONCE // max(1, sum(shape.numel() for shape in self._shapes.values())))
        self._per_sample = vmap(grad(self._loss), in_dims=(None, 0, 0), chunk_size=self.block)

    def rows(self, theta: Float[Tensor, " d"], x: Float[Tensor, "B ..."], y: Int[Tensor, " B"]) -> DenseRows:
        if not len(x):
            return DenseRows(theta.new_zeros(0, len(theta)))
        gradients = self._per_sample(self._named(theta), x.to(theta.dtype), y)
        return DenseRows(torch.cat([gradient.flatten(1) for gradient in gradients.values()], dim=1))

    def _named(self, theta: Float[Tensor, " d"]) -> dict[str, Tensor]:
        parts = theta.split([shape.numel() for shape in self._shapes.values()])
        return {name: part.view(shape) for (name, shape), part in zip(self._shapes.items(), parts, strict=True)}

    def _loss(self, parameters: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        return cross_entropy(functional_call(self._module, parameters, (x[None],)), y[None])


def gradients_of(module: nn.Module, how: How = "auto") -> Gradients:
    """Choose how the per-sample gradients of a network are computed.

    >>> rows = gradients_of(nn.Linear(3, 2)).rows(torch.zeros(8), torch.ones(5, 3), torch.zeros(5, dtype=torch.long))
    >>> rows.squares().tolist()  # errors of -1/2 and 1/2, inputs 1, 1, 1 and the 1 of the bias
    [2.0, 2.0, 2.0, 2.0, 2.0]
    """
    one_of("gradients", how, WAYS)
    trained = trained_parameters(module)
    if not trained:
        kind = "only frozen parameters" if any(True for _ in module.parameters()) else "no parameters to train"
        raise ValueError(f"{type(module).__name__} has {kind}")
    any_frozen = len(trained) < len(list(module.parameters()))
    if any_frozen and how == "layers":
        raise ValueError("gradients by layer are of all parameters, and some are frozen; use 'vmap'")
    # layers under which a record has no gradient of its own, or a random one
    for kind, reason in _REFUSED.items():
        for part in module.modules():
            if isinstance(part, kind):
                raise ValueError(f"{type(part).__name__} {reason}")
    if how == "opacus":
        from leakbound.dpsgd.grad_samples import ByHooks

        block = max(1, AT_ONCE // sum(parameter.numel() for parameter in trained))
        return ByHooks(out_of_place(module), block)
    # by layer where that is possible: one forward and one backward pass for all records
    if how == "layers" or (how == "auto" and not any_frozen and linear_stack(module) is not None):
        return ByLayer(module)
    return ByPoint(module)


def trained_parameters(module: nn.Module) -> list[nn.Parameter]:
    """List the parameters of a network that are not frozen, in its order: the coordinates of a gradient."""
    return [parameter for parameter in module.parameters() if parameter.requires_grad]


def linear_stack(module: nn.Module) -> list[nn.Module] | None:
    """List the layers of a ``Sequential`` of linear layers and activations; None for any other network."""
    if not isinstance(module, nn.Sequential):
        return [module] if type(module) in (nn.Linear, *_POINTWISE) else None
    layers = []
    for child in module:
        child_layers = linear_stack(child)
        if child_layers is None:
            return None
        layers += child_layers
    shared = len({id(layer) for layer in layers}) < len(layers)
    return None if shared else layers


def out_of_place(module: nn.Module) -> nn.Module:
    """Copy a network so that its activations do not overwrite their inputs: gradients need these."""
    module = deepcopy(module)
    for part in module.modules():
        if isinstance(part, _IN_PLACE):
            part.inplace = False
    return module


def clipped(rows: Rows, clip: float) -> Rows:
    """Scale rows that are longer than ``clip`` down to it."""
    length = rows.squares().sqrt().clamp(min=torch.finfo(torch.float32).tiny)
    return rows.times((clip / length).clamp(max=1.0))


def noisy_sum(
    parts: Iterable[Rows], dpsgd: DpSgd, noise: Float[Tensor, " d"], normaliser: float
) -> Float[Tensor, " d"]:
    """Compute what a step of DP-SGD releases: the sum of the clipped gradients of its batch, and noise."""
    # the noise is that of the sum, so B, by which the step is divided later, plays no part here
    return clipped_sum(parts, dpsgd.clip, start=dpsgd.noise_multiplier * dpsgd.clip * noise)


def clipped_sum(parts: Iterable[Rows], clip: float, start: Float[Tensor, " d"]) -> Float[Tensor, " d"]:
    """Add the clipped rows of all parts to ``start``.

    >>> from leakbound.dpsgd.gradient_rows import CoordinateRows
    >>> rows = CoordinateRows(torch.tensor([0, 2]), torch.tensor([5.0, 0.5]), 3)
    >>> clipped_sum([rows], 1.0, start=torch.zeros(3)).tolist()
    [1.0, 0.0, 0.5]
    """
    for rows in parts:
        start = start + clipped(rows, clip).sum()
    return start


def blocks(indices: Int[np.ndarray, " n"], size: int) -> Iterator[Int[np.ndarray, " b"]]:
    """Split indices into blocks of at most ``size``."""
    for start in range(0, len(indices), size):
        yield indices[start : start + size]
