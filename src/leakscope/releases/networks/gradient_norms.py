"""Norms of the gradients of single points, layer by layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from leakscope.core.checks import one_of
from leakscope.releases.networks.devices import with_less
from leakscope.releases.networks.ensemble import in_layout, laid_out
from leakscope.releases.networks.tensors import Inputs
from leakscope.releases.networks.training import losses

Array = np.ndarray
Layers = str | tuple[str, ...]
_BYTES = 32e6  # of the gradients of a batch: larger ones go back to the system each time
_ROWS = 1024  # points at once, where no gradient is kept


def layers_of(module: nn.Module, layers: Layers = "all") -> tuple[str, ...]:
    """The names of those layers that have parameters of their own.

    Parameters
    ----------
    module : nn.Module
    layers : "all", "last", a name, or tuple of names
        As ``named_modules`` names them; the empty name is the network itself.

    Returns
    -------
    tuple of str

    Raises
    ------
    ValueError
        If a name is unknown, with the nearest known one, or nothing has parameters that are trained.
    """
    known = [name for name, each in module.named_modules() if list(_own(each))]
    if not known:
        raise ValueError("the network has no parameters that are trained")
    several = {"all": known, "last": known[-1:]}
    asked = [several.get(name) or [one_of("layer", name, [*known, *several])] for name in _listed(layers)]
    if not asked:
        raise ValueError('layers must name at least one; allowed: "all", "last", or names')
    return tuple(dict.fromkeys(name for names in asked for name in names))


def gradient_norms(
    module: nn.Module,
    inputs: Inputs,
    label: Int[Tensor, " N"],
    *,
    loss: str = "cross_entropy",
    layers: Layers = "all",
) -> Float[Array, "N L"]:
    """Euclidean norm of the gradient of each point's loss, for each layer.

    The norm over several layers is the square root of the sum of the squares. For linear layers, in which the
    gradient of a point is the outer product ``g a^T`` of what comes back and what went in (and g for the bias), it is
    ``|g| sqrt(|a|^2 + 1)`` from one backward pass of the whole batch (Goodfellow 2015); others are made one point at
    a time by ``vmap(grad)``, in batches of at most 32 MB.

    Parameters
    ----------
    module : nn.Module
        In evaluation mode, on the device of `label`.
    inputs : Inputs
    label : int tensor of shape (N,)
    loss : {"cross_entropy", "mse"}
        As in ``Recipe``.
    layers : "all", "last", a name, or tuple of names

    Returns
    -------
    array of shape (N, L)
        A column for each of `layers_of`.

    Raises
    ------
    MemoryError
        If a single gradient does not fit.
    """
    names = layers_of(in_layout(module), layers)
    modules = [module.get_submodule(name) for name in names]
    x = inputs.batch(np.arange(1), label.device)
    ghost = all(type(each) is nn.Linear for each in modules) and _once_and_flat(module, modules, x)
    n_parameters = sum(parameter.numel() for each in modules for parameter in _own(each))
    size = _ROWS if ghost else max(1, min(_ROWS, int(_BYTES / (4 * n_parameters))))
    norms = _ghost(module, modules, loss) if ghost else _single(module, names, loss)

    def read(rows: int) -> Float[Array, "N L"]:
        parts = []
        for start in range(0, len(inputs), rows):
            chosen = np.arange(start, min(start + rows, len(inputs)))
            given = laid_out(inputs.batch(chosen, label.device))
            parts.append(norms(given, label[start : start + rows]).cpu().numpy())
        return np.concatenate(parts)

    return with_less(read, size, "memory does not suffice for the gradient of a single point; give layers='last'")


def _ghost(
    module: nn.Module, modules: Sequence[nn.Module], loss: str
) -> Callable[[Float[Tensor, "b ..."], Int[Tensor, " b"]], Float[Tensor, "b L"]]:
    def norms(x: Tensor, label: Tensor) -> Tensor:
        with _recorded(modules) as record:
            total = losses(module(x), label, loss).sum()
        outputs = [record[layer][0][1] for layer in modules]
        backs = torch.autograd.grad(total, outputs)
        squares = []
        for layer, back in zip(modules, backs, strict=True):
            taken = record[layer][0][0]
            seen = [taken.square().sum(1)] if layer.get_parameter("weight").requires_grad else []
            if layer.bias is not None and layer.get_parameter("bias").requires_grad:
                seen.append(torch.ones_like(back[:, 0]))
            squares.append(back.square().sum(1) * torch.stack(seen).sum(0))
        return torch.stack(squares, 1).sqrt()

    return norms


def _single(
    module: nn.Module, names: Sequence[str], loss: str
) -> Callable[[Float[Tensor, "b ..."], Int[Tensor, " b"]], Float[Tensor, "b L"]]:
    own = {
        (f"{name}." if name else "") + each: parameter.detach()
        for name in names
        for each, parameter in module.get_submodule(name).named_parameters(recurse=False)
        if parameter.requires_grad
    }
    layer_of = [names.index(name.rpartition(".")[0]) for name in own]

    def of_one(chosen: dict[str, Tensor], x: Tensor, label: Tensor) -> Any:
        return losses(functional_call(module, chosen, (x[None],)), label[None], loss)[0]

    def norms(x: Tensor, label: Tensor) -> Tensor:
        gradients = vmap(grad(of_one), in_dims=(None, 0, 0))(own, x, label)
        squares = torch.zeros(len(x), len(names), device=x.device)
        for layer, each in zip(layer_of, gradients.values(), strict=True):
            squares[:, layer] += each.flatten(1).square().sum(1)
        return squares.sqrt()

    return norms


def _once_and_flat(module: nn.Module, modules: Sequence[nn.Module], x: Float[Tensor, "1 ..."]) -> bool:
    """Whether each of these layers is used once, on one vector a point."""
    with _recorded(modules) as record:
        module(x)
    return all(len(record[each]) == 1 and record[each][0][0].ndim == 2 for each in modules)


@contextmanager
def _recorded(modules: Sequence[nn.Module]) -> Iterator[dict[nn.Module, list[tuple[Tensor, Tensor]]]]:
    """What went into these layers and what came out."""
    record: dict[nn.Module, list[tuple[Tensor, Tensor]]] = {each: [] for each in modules}

    def note(layer: nn.Module, given: tuple[Tensor, ...], made: Tensor) -> None:
        record[layer].append((given[0].detach(), made))

    handles = [each.register_forward_hook(note) for each in modules]
    try:
        yield record
    finally:
        for handle in handles:
            handle.remove()


def _own(module: nn.Module) -> Iterator[nn.Parameter]:
    """The parameters that are trained and belong to the module itself, not to a part of it."""
    return (parameter for parameter in module.parameters(recurse=False) if parameter.requires_grad)


def _listed(layers: Layers) -> tuple[str, ...]:
    return (layers,) if isinstance(layers, str) else tuple(layers)
