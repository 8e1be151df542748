"""Norms of per-sample gradients, layer by layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int, Num
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from leakbound.core.checks import one_of
from leakbound.releases.networks.devices import with_less
from leakbound.releases.networks.ensemble import in_layout, laid_out
from leakbound.releases.networks.tensors import Inputs
from leakbound.releases.networks.training import losses

Array = np.ndarray
Layers = str | tuple[str, ...]
_BYTES = 32e6  # of the gradients of a batch: memory of larger ones is returned to the system each time
_ROWS = 1024  # points at once, if no gradient is kept


def layers_of(module: nn.Module, layers: Layers = "all") -> tuple[str, ...]:
    """List the names of layers that have parameters of their own."""
    known = [name for name, part in module.named_modules() if list(_own_parameters(part))]
    if not known:
        raise ValueError("the network has no parameters that are trained")
    groups = {"all": known, "last": known[-1:]}
    names = []
    for name in (layers,) if isinstance(layers, str) else layers:
        names += groups.get(name) or [one_of("layer", name, [*known, *groups])]
    if not names:
        raise ValueError('layers must name at least one; allowed: "all", "last", or names')
    return tuple(dict.fromkeys(names))


def gradient_norms(
    module: nn.Module,
    inputs: Inputs,
    label: Int[Tensor, " N"],
    *,
    loss: str = "cross_entropy",
    layers: Layers = "all",
    channels_last: bool = True,
) -> Float[Array, "N L"]:
    """Compute the Euclidean norm of the gradient of each point's loss, for each layer.

    The norm over several layers is the square root of the sum of the squares. In a linear layer the gradient of a point
    is the outer product ``g a^T`` of the gradient g of its output and its input a (and g for the bias): the norm is
    ``|g| sqrt(|a|^2 + 1)``, from one backward pass of the whole batch (Goodfellow 2015). For other layers the gradients
    themselves are computed by ``vmap(grad)``, in batches of at most 32 MB.
    """
    names = layers_of(in_layout(module, channels_last), layers)
    modules = [module.get_submodule(name) for name in names]
    x = inputs.batch(np.arange(1), label.device)
    from_factors = all(type(layer) is nn.Linear for layer in modules) and _once_and_flat(module, modules, x)
    if from_factors:
        norms, size = _norms_from_factors(module, modules, loss), _ROWS
    else:
        n_parameters = sum(parameter.numel() for layer in modules for parameter in _own_parameters(layer))
        norms, size = _norms_of_gradients(module, names, loss), max(1, min(_ROWS, int(_BYTES / (4 * n_parameters))))

    def in_blocks(rows: int) -> Float[Array, "N L"]:
        parts = []
        for start in range(0, len(inputs), rows):
            indices = np.arange(start, min(start + rows, len(inputs)))
            x = laid_out(inputs.batch(indices, label.device), channels_last)
            parts.append(norms(x, label[start : start + rows]).cpu().numpy())
        return np.concatenate(parts)

    return with_less(in_blocks, size, "memory does not suffice for the gradient of a single point; give layers='last'")


def _norms_from_factors(
    module: nn.Module, modules: Sequence[nn.Module], loss: str
) -> Callable[[Num[Tensor, "b ..."], Int[Tensor, " b"]], Float[Tensor, "b L"]]:
    """Return a function that computes ``|g| sqrt(|a|^2 + 1)`` of linear layers (Goodfellow 2015)."""

    def norms(x: Tensor, label: Tensor) -> Tensor:
        with _recorded(modules) as record:
            total = losses(module(x), label, loss).sum()
        outputs = [record[layer][0][1] for layer in modules]
        output_gradients = torch.autograd.grad(total, outputs)
        squares = []
        for layer, gradient in zip(modules, output_gradients, strict=True):
            layer_input = record[layer][0][0]
            terms = [layer_input.square().sum(1)] if layer.get_parameter("weight").requires_grad else []
            if layer.bias is not None and layer.get_parameter("bias").requires_grad:
                terms.append(torch.ones_like(gradient[:, 0]))
            squares.append(gradient.square().sum(1) * torch.stack(terms).sum(0))
        return torch.stack(squares, 1).sqrt()

    return norms


def _norms_of_gradients(
    module: nn.Module, names: Sequence[str], loss: str
) -> Callable[[Num[Tensor, "b ..."], Int[Tensor, " b"]], Float[Tensor, "b L"]]:
    """Return a function that computes per-sample gradients by ``vmap``, and their norms."""
    parameters, layer_of = {}, []
    for index, name in enumerate(names):
        for parameter_name, parameter in module.get_submodule(name).named_parameters(recurse=False):
            if parameter.requires_grad:
                parameters[f"{name}.{parameter_name}" if name else parameter_name] = parameter.detach()
                layer_of.append(index)

    def loss_of_one(parameters: dict[str, Tensor], x: Tensor, label: Tensor) -> Any:
        return losses(functional_call(module, parameters, (x[None],)), label[None], loss)[0]

    def norms(x: Tensor, label: Tensor) -> Tensor:
        gradients = vmap(grad(loss_of_one), in_dims=(None, 0, 0))(parameters, x, label)
        squares = torch.zeros(len(x), len(names), device=x.device)
        for layer, gradient in zip(layer_of, gradients.values(), strict=True):
            squares[:, layer] += gradient.flatten(1).square().sum(1)
        return squares.sqrt()

    return norms


def _once_and_flat(module: nn.Module, modules: Sequence[nn.Module], x: Num[Tensor, "1 ..."]) -> bool:
    """Tell whether each of these layers is used once, on one vector for each point."""
    with _recorded(modules) as record:
        module(x)
    return all(len(record[layer]) == 1 and record[layer][0][0].ndim == 2 for layer in modules)


@contextmanager
def _recorded(modules: Sequence[nn.Module]) -> Iterator[dict[nn.Module, list[tuple[Tensor, Tensor]]]]:
    """Record the inputs and outputs of these layers."""
    record: dict[nn.Module, list[tuple[Tensor, Tensor]]] = {layer: [] for layer in modules}

    def note(layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        record[layer].append((inputs[0].detach(), output))

    handles = [layer.register_forward_hook(note) for layer in modules]
    try:
        yield record
    finally:
        for handle in handles:
            handle.remove()


def _own_parameters(module: nn.Module) -> Iterator[nn.Parameter]:
    """Yield the trained parameters of the module itself, without those of its parts."""
    return (parameter for parameter in module.parameters(recurse=False) if parameter.requires_grad)
