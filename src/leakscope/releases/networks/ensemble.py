"""Models that are trained side by side, as one set of tensors with an axis for the models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor, nn
from torch.func import functional_call, vmap

ELEMENTWISE = (
    nn.ReLU, nn.Tanh, nn.Sigmoid, nn.GELU, nn.SiLU, nn.ELU, nn.LeakyReLU, nn.Softplus, nn.Hardtanh, nn.Identity,
    nn.Dropout,
)  # fmt: skip


@runtime_checkable
class Learner(Protocol):
    """Models that are trained: their parameters, and what they answer."""

    @property
    def parameters(self) -> Sequence[Shaped[Tensor, ...]]:
        """Of all models, each with an axis for the models in front unless there is one model alone."""
        ...

    def logits(self, x: Float[Tensor, "K b ..."]) -> Float[Tensor, "K b C"]:
        """The answers of each model at its own points."""
        ...

    def keep(self, models: Bool[Tensor, " K"]) -> None:
        """Go on with these models; the parameters of the others are put back into their modules."""
        ...


class Alone:
    """One model, trained as it is; images in the layout that convolutions are fastest in.

    Parameters
    ----------
    module : nn.Module
        On its device, in training mode.
    """

    def __init__(self, module: nn.Module) -> None:
        self.module = in_layout(module)
        self.parameters = [each for each in module.parameters() if each.requires_grad]

    def logits(self, x: Float[Tensor, "1 b ..."]) -> Float[Tensor, "1 b C"]:
        return self.module(laid_out(x[0]))[None]

    def keep(self, models: Bool[Tensor, 1]) -> None:
        """The module holds its parameters already."""


class Stack:
    """Models of linear layers and elementwise functions: a batched product for each layer of all models.

    Parameters
    ----------
    modules : sequence of nn.Module
        Of one architecture, for which `is_stack` holds; on their device, in training mode.
    """

    def __init__(self, modules: Sequence[nn.Module]) -> None:
        self._stacked = _Stacked(modules)
        self._layers = list(_leaves(modules[0]))

    @property
    def parameters(self) -> Sequence[Shaped[Tensor, "K ..."]]:
        return self._stacked.tensors

    def logits(self, x: Float[Tensor, "K b ..."]) -> Float[Tensor, "K b C"]:
        taken = iter(self._stacked.tensors)
        for layer in self._layers:
            if isinstance(layer, nn.Flatten):
                x = x.flatten(2)
            elif isinstance(layer, nn.Linear):
                weight = next(taken).transpose(1, 2)
                rows = x.flatten(1, -2)
                made = torch.bmm(rows, weight) if layer.bias is None else _affine(rows, weight, next(taken))
                x = made.unflatten(1, x.shape[1:-1])
            else:
                x = layer(x)
        return x

    def keep(self, models: Bool[Tensor, " K"]) -> None:
        self._stacked.keep(models)


class Vmapped:
    """Models of any architecture without state, evaluated at once by ``torch.func.vmap``.

    Parameters
    ----------
    modules : sequence of nn.Module
        Of one architecture; on their device, in training mode.
    """

    def __init__(self, modules: Sequence[nn.Module]) -> None:
        self._stacked = _Stacked(modules)
        self._names = [name for name, _ in modules[0].named_parameters()]
        self._module = modules[0]

    @property
    def parameters(self) -> Sequence[Shaped[Tensor, "K ..."]]:
        return self._stacked.tensors

    def logits(self, x: Float[Tensor, "K b ..."]) -> Float[Tensor, "K b C"]:
        def answer(parameters: Mapping[str, Tensor], points: Tensor) -> Any:
            return functional_call(self._module, dict(parameters), (points,))

        named = dict(zip(self._names, self._stacked.tensors, strict=True))
        return vmap(answer, randomness="different")(named, x)

    def keep(self, models: Bool[Tensor, " K"]) -> None:
        self._stacked.keep(models)


class _Stacked:
    """The parameters of modules of one architecture, each as one tensor with an axis for the models."""

    def __init__(self, modules: Sequence[nn.Module]) -> None:
        self.modules = list(modules)
        listed = zip(*(module.parameters() for module in modules), strict=True)
        self.tensors = [_stacked([each.detach() for each in one]) for one in listed]

    @torch.no_grad()
    def keep(self, models: Bool[Tensor, " K"]) -> None:
        for number in (~models).nonzero().flatten().tolist():
            for own, trained in zip(self.modules[number].parameters(), self.tensors, strict=True):
                own.copy_(trained[number])
        self.modules = [module for module, stays in zip(self.modules, models.tolist(), strict=True) if stays]
        self.tensors = [_stacked(each.detach()[models].unbind()) for each in self.tensors] if self.modules else []


def _stacked(tensors: Sequence[Shaped[Tensor, ...]]) -> Shaped[Tensor, "K ..."]:
    """Tensors as one; matrices lie in memory as their gradients come from a batched product, transposed."""
    made = torch.stack(list(tensors))
    if made.ndim == 3:
        made = made.transpose(1, 2).contiguous().transpose(1, 2)
    return made.requires_grad_()


def alone(modules: Sequence[nn.Module]) -> Alone:
    """The learner of the only one of these."""
    (module,) = modules
    return Alone(module)


def is_stack(module: nn.Module) -> bool:
    """Whether a network is a sequence, maybe of sequences, of linear layers and elementwise functions."""
    leaves = list(_leaves(module))
    known = all(type(leaf) is nn.Linear or type(leaf) in ELEMENTWISE or _flattens(leaf) for leaf in leaves)
    own = len({id(leaf) for leaf in leaves if isinstance(leaf, nn.Linear)})
    return known and own == sum(isinstance(leaf, nn.Linear) for leaf in leaves) >= 1


def in_layout(module: nn.Module) -> nn.Module:
    """A network with convolutions in the layout of memory in which they are fastest."""
    for parameter in module.parameters() if has_convolution(module) else ():
        if parameter.ndim == 4:
            parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)
    return module


def laid_out(x: Float[Tensor, "b ..."]) -> Float[Tensor, "b ..."]:
    """Images in the layout of `in_layout`; it costs other networks nothing."""
    return x.contiguous(memory_format=torch.channels_last) if x.ndim == 4 else x


def has_convolution(module: nn.Module) -> bool:
    """Whether a network has a convolution over images."""
    return any(isinstance(each, nn.Conv2d) for each in module.modules())


def _leaves(module: nn.Module) -> Iterator[nn.Module]:
    if type(module) is nn.Sequential:
        for child in module:
            yield from _leaves(child)
    else:
        yield module


def _flattens(leaf: nn.Module) -> bool:
    return type(leaf) is nn.Flatten and (leaf.start_dim, leaf.end_dim) == (1, -1)


def _affine(
    rows: Float[Tensor, "K r i"], weight: Float[Tensor, "K i o"], bias: Float[Tensor, "K o"]
) -> Float[Tensor, "K r o"]:
    return torch.baddbmm(bias[:, None], rows, weight)
