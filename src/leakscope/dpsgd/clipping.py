"""Gradients of a network's loss at single points, and their clipped sum.

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

from leakscope.core.checks import one_of
from leakscope.dpsgd.config import DpSgd
from leakscope.dpsgd.gradient_rows import DenseRows, Layer, LayerRows, Rows

How = Literal["auto", "layers", "vmap", "opacus"]
WAYS = ("auto", "layers", "vmap", "opacus")
AT_ONCE = 8 << 20  # numbers of gradients at a time, 32 MB
_LAYERED_AT_ONCE = 4096  # points, where gradients are kept by layer
_IN_PLACE = (nn.ReLU, nn.LeakyReLU, nn.ELU, nn.SELU, nn.SiLU)  # if asked to be
_POINTWISE = (
    *_IN_PLACE,
    nn.Identity,
    nn.Flatten,
    nn.GELU,
    nn.Softplus,
    nn.Tanh,
    nn.Sigmoid,
)
_REFUSED = {  # the base classes of all of a kind have no public names
    nn.modules.batchnorm._BatchNorm: "mixes the points of a batch: no point has a gradient of its own; use GroupNorm",
    nn.modules.dropout._DropoutNd: "makes the gradient of a point random: no attacker knows it; leave it out",
}


@runtime_checkable
class Gradients(Protocol):
    """A network's gradients at single points."""

    @property
    def block(self) -> int:
        """Points to ask for at a time, so that memory stays small."""
        ...

    def rows(self, theta: Float[Tensor, " d"], x: Float[Tensor, "B ..."], y: Int[Tensor, " B"]) -> Rows:
        """The gradients of the losses of B points with labels y, at the parameters theta."""
        ...


class ByLayer:
    """Gradients of a stack of linear layers and activations: one forward and one backward pass.

    Parameters
    ----------
    module : nn.Module
        ``nn.Sequential``, nested or not, of ``nn.Linear``, ``nn.Flatten`` and activations.

    Raises
    ------
    ValueError
        If it is no such stack.
    """

    block = _LAYERED_AT_ONCE

    def __init__(self, module: nn.Module) -> None:
        stack = linear_stack(module)
        if stack is None:
            raise ValueError("gradients by layer need a Sequential of Linear, Flatten and activations; use 'vmap'")
        self._stack = [out_of_place(each) for each in stack]

    def rows(self, theta: Float[Tensor, " d"], x: Float[Tensor, "B ..."], y: Int[Tensor, " B"]) -> LayerRows:
        inputs, outputs, first, value = [], [], 0, x.to(theta.dtype)
        for each in self._stack:
            if not isinstance(each, nn.Linear):
                value = each(value)
                continue
            inputs.append(value.detach())
            last = first + each.weight.numel()
            weight, bias = theta[first:last].view_as(each.weight), None
            if each.bias is not None:
                bias = theta[last : last + each.out_features]
                last += each.out_features
            value, first = linear(value, weight, bias).requires_grad_(), last
            outputs.append(value)
        errors = torch.autograd.grad(cross_entropy(value, y, reduction="sum"), outputs)
        linears = (each for each in self._stack if isinstance(each, nn.Linear))
        parts = zip(inputs, errors, linears, strict=True)
        return LayerRows(tuple(Layer(given, error, each.bias is not None) for given, error, each in parts))


class ByPoint:
    """Gradients of any network, by ``vmap`` of its gradient.

    Parameters
    ----------
    module : nn.Module
        Without batch normalisation.
    """

    def __init__(self, module: nn.Module) -> None:
        self._module = out_of_place(module).eval()
        self._shapes = {name: each.shape for name, each in module.named_parameters()}
        self.block = max(1, AT_ONCE // max(1, sum(shape.numel() for shape in self._shapes.values())))
        self._each = vmap(grad(self._loss), in_dims=(None, 0, 0), chunk_size=self.block)

    def rows(self, theta: Float[Tensor, " d"], x: Float[Tensor, "B ..."], y: Int[Tensor, " B"]) -> DenseRows:
        if not len(x):
            return DenseRows(theta.new_zeros(0, len(theta)))
        made = self._each(self._named(theta), x.to(theta.dtype), y)
        return DenseRows(torch.cat([each.flatten(1) for each in made.values()], dim=1))

    def _named(self, theta: Float[Tensor, " d"]) -> dict[str, Tensor]:
        parts = theta.split([shape.numel() for shape in self._shapes.values()])
        return {name: part.view(shape) for (name, shape), part in zip(self._shapes.items(), parts, strict=True)}

    def _loss(self, parameters: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        return cross_entropy(functional_call(self._module, parameters, (x[None],)), y[None])


def gradients_of(module: nn.Module, how: How = "auto") -> Gradients:
    """The gradients of a network at single points, in the way that suits it.

    Parameters
    ----------
    module : nn.Module
        Its output has a column a class. It is copied and stays as it is.
    how : {"auto", "layers", "vmap", "opacus"}
        By layer for stacks of linear layers and activations: the cost of a plain gradient. ``vmap`` of the gradient
        for others. ``opacus``: the hooks of its ``GradSampleModule``, for layers that ``vmap`` cannot take.

    Returns
    -------
    Gradients

    Raises
    ------
    ValueError
        For batch normalisation and dropout, with which a point has no gradient of its own, and for networks without
        parameters.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from leakscope.dpsgd.clipping import gradients_of
    >>> rows = gradients_of(nn.Linear(3, 2)).rows(torch.zeros(8), torch.ones(5, 3), torch.zeros(5, dtype=torch.long))
    >>> rows.squares().tolist()  # errors of -1/2 and 1/2, inputs 1, 1, 1 and the 1 of the bias
    [2.0, 2.0, 2.0, 2.0, 2.0]
    """
    one_of("gradients", how, WAYS)
    if not any(True for _ in module.parameters()):
        raise ValueError(f"{type(module).__name__} has no parameters to train")
    if not all(each.requires_grad for each in module.parameters()):
        raise ValueError(f"{type(module).__name__} has frozen parameters; the audit is of trainings of all of them")
    for kind, reason in _REFUSED.items():
        for each in module.modules():
            if isinstance(each, kind):
                raise ValueError(f"{type(each).__name__} {reason}")
    if how == "opacus":
        from leakscope.dpsgd.grad_samples import ByHooks

        block = max(1, AT_ONCE // sum(parameter.numel() for parameter in module.parameters()))
        return ByHooks(out_of_place(module), block)
    if how == "layers" or (how == "auto" and linear_stack(module) is not None):
        return ByLayer(module)
    return ByPoint(module)


def linear_stack(module: nn.Module) -> list[nn.Module] | None:
    """The layers of a ``Sequential`` of linear layers and activations, in order; None for any other network."""
    if isinstance(module, nn.Sequential):
        parts = [linear_stack(each) for each in module]
        layers = [layer for part in parts if part is not None for layer in part]
        known = all(part is not None for part in parts) and len({*map(id, layers)}) == len(layers)
        return layers if known else None
    return [module] if type(module) in (nn.Linear, *_POINTWISE) else None


def out_of_place(module: nn.Module) -> nn.Module:
    """A copy whose activations leave what they are given as it is: gradients need it."""
    module = deepcopy(module)
    for each in module.modules():
        if isinstance(each, _IN_PLACE):
            each.inplace = False
    return module


def clipped(rows: Rows, clip: float) -> Rows:
    """Rows that are longer than ``clip``, scaled down to it."""
    return rows.times((clip / rows.squares().sqrt().clamp(min=torch.finfo(torch.float32).tiny)).clamp(max=1.0))


def noisy_sum(
    parts: Iterable[Rows], dpsgd: DpSgd, noise: Float[Tensor, " d"], normaliser: float
) -> Float[Tensor, " d"]:
    """What a step of DP-SGD releases of its batch: the sum of the clipped gradients and noise.

    Parameters
    ----------
    parts : iterable of Rows
        The gradients of the batch, some at a time.
    dpsgd : DpSgd
    noise : tensor of shape (d,)
        Standard normal.
    normaliser : float
        B, by which the sum will be divided. The noise belongs to the sum, so it plays no part.

    Returns
    -------
    tensor of shape (d,)
    """
    return clipped_sum(parts, dpsgd.clip, start=dpsgd.noise_multiplier * dpsgd.clip * noise)


def clipped_sum(parts: Iterable[Rows], clip: float, start: Float[Tensor, " d"]) -> Float[Tensor, " d"]:
    """The sum of the clipped rows of all parts, added to ``start``.

    Parameters
    ----------
    parts : iterable of Rows
        The gradients of a batch, some at a time.
    clip : float
        c, the largest Euclidean norm of a row; longer ones are scaled down to it.
    start : tensor of shape (d,)
        The noise, or zeros.

    Returns
    -------
    tensor of shape (d,)

    Examples
    --------
    >>> import torch
    >>> from leakscope.dpsgd.clipping import clipped_sum
    >>> from leakscope.dpsgd.gradient_rows import CoordinateRows
    >>> rows = CoordinateRows(torch.tensor([0, 2]), torch.tensor([5.0, 0.5]), 3)
    >>> clipped_sum([rows], 1.0, start=torch.zeros(3)).tolist()
    [1.0, 0.0, 0.5]
    """
    for rows in parts:
        start = start + clipped(rows, clip).sum()
    return start


def blocks(indices: Int[np.ndarray, " n"], size: int) -> Iterator[Int[np.ndarray, " b"]]:
    """Runs of at most ``size`` of them."""
    for start in range(0, len(indices), size):
        yield indices[start : start + size]
