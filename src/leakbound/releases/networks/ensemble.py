"""Models that are trained at once, as one set of tensors with an axis for the models."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Num, Shaped
from torch import Tensor, nn
from torch.func import functional_call, vmap

from leakbound.releases.networks.checkpoints import copy_into, tensors_of
from leakbound.releases.networks.devices import seeded

ELEMENTWISE = (
    nn.ReLU, nn.Tanh, nn.Sigmoid, nn.GELU, nn.SiLU, nn.ELU, nn.LeakyReLU, nn.Softplus, nn.Hardtanh, nn.Identity,
    nn.Dropout,
)  # fmt: skip


@runtime_checkable
class Learner(Protocol):
    """Models that are trained: their parameters and outputs."""

    @property
    def parameters(self) -> Sequence[Shaped[Tensor, "..."]]:
        """The parameters of all models, with an axis for the models in front unless it is a single model."""
        ...

    def logits(self, x: Num[Tensor, "K b ..."]) -> Float[Tensor, "K b C"]:
        """Compute the outputs of each model at its own points."""
        ...

    def keep(self, models: Bool[Tensor, " K"]) -> None:
        """Keep training these models, and write the parameters of the others back into their modules."""
        ...

    @property
    def modules(self) -> Sequence[nn.Module]:
        """The networks from the beginning, those too that do not train any more."""
        ...

    def state(self) -> dict[str, Any]:
        """Return all that training changes, for a checkpoint."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` returned of models that were built in the same way."""
        ...


class SingleModel:
    """A single model; images are in the memory layout in which convolutions are fastest."""

    def __init__(self, module: nn.Module, channels_last: bool = True) -> None:
        self.module = in_layout(module, channels_last)
        self.channels_last = channels_last
        self.parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]

    def logits(self, x: Any) -> Float[Tensor, "1 b C"]:
        """Compute the outputs of the model at its points: a tensor of shape (1, b, ...), or a list of one batch."""
        return self.module(laid_out(x[0], self.channels_last))[None]

    def keep(self, models: Bool[Tensor, 1]) -> None:
        """Do nothing: the module holds its parameters already."""

    @property
    def modules(self) -> Sequence[nn.Module]:
        """The one network."""
        return [self.module]

    def state(self) -> dict[str, Any]:
        """Return its parameters and buffers."""
        return {"training": [0], "tensors": list(tensors_of(self.module))}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Copy them into the network."""
        copy_into(list(tensors_of(self.module)), state["tensors"])


class _Stacked:
    """Modules of one architecture that are trained at once: each parameter has an axis for the models."""

    def __init__(self, modules: Sequence[nn.Module]) -> None:
        self.modules = list(modules)
        self.training = list(range(len(self.modules)))
        by_parameter = zip(*(module.parameters() for module in modules), strict=True)
        self.parameters = [_stacked([tensor.detach() for tensor in tensors]) for tensors in by_parameter]

    @torch.no_grad()
    def keep(self, models: Bool[Tensor, " K"]) -> None:
        """Keep training these models, and write the parameters of the others back into their modules."""
        for place in (~models).nonzero().flatten().tolist():
            module = self.modules[self.training[place]]
            copy_into(list(module.parameters()), [tensor[place] for tensor in self.parameters])
        self.training = [self.training[place] for place in models.nonzero().flatten().tolist()]
        self.parameters = (
            [_stacked(tensor.detach()[models].unbind()) for tensor in self.parameters] if self.training else []
        )

    def state(self) -> dict[str, Any]:
        """Return which models train, their parameters, and those of the models that do not train any more."""
        left = {
            index: [parameter.detach() for parameter in module.parameters()]
            for index, module in enumerate(self.modules)
            if index not in self.training
        }
        return {"training": self.training, "tensors": [tensor.detach() for tensor in self.parameters], "left": left}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Let the same models train on; nothing was trained yet."""
        is_training = torch.tensor([index in state["training"] for index in range(len(self.modules))])
        self.keep(is_training.to(self.parameters[0].device))
        copy_into([tensor.detach() for tensor in self.parameters], state["tensors"])
        for index, parameters in state["left"].items():
            copy_into([parameter.detach() for parameter in self.modules[index].parameters()], parameters)


class BatchedEnsemble(_Stacked):
    """Models of linear layers and elementwise functions: one batched product (``bmm``) for each layer of all models."""

    def __init__(self, modules: Sequence[nn.Module]) -> None:
        super().__init__(modules)
        self._layers = list(_leaves(modules[0]))

    def logits(self, x: Float[Tensor, "K b ..."]) -> Float[Tensor, "K b C"]:
        parameters = iter(self.parameters)
        for layer in self._layers:
            if isinstance(layer, nn.Flatten):
                x = x.flatten(2)
            elif isinstance(layer, nn.Linear):
                weight = next(parameters).transpose(1, 2)
                rows = x.flatten(1, -2)
                if layer.bias is None:
                    output = torch.bmm(rows, weight)
                else:
                    output = torch.baddbmm(next(parameters)[:, None], rows, weight)
                x = output.unflatten(1, x.shape[1:-1])
            else:
                x = layer(x)
        return x


class VmapEnsemble(_Stacked):
    """Models of any architecture without state, evaluated at once by ``torch.func.vmap``."""

    def __init__(self, modules: Sequence[nn.Module]) -> None:
        super().__init__(modules)
        self._names = [name for name, _ in modules[0].named_parameters()]
        self._module = modules[0]

    def logits(self, x: Num[Tensor, "K b ..."]) -> Float[Tensor, "K b C"]:
        def outputs(parameters: Mapping[str, Tensor], points: Tensor) -> Any:
            return functional_call(self._module, dict(parameters), (points,))

        named = dict(zip(self._names, self.parameters, strict=True))
        return vmap(outputs, randomness="different")(named, x)


def _stacked(tensors: Sequence[Shaped[Tensor, "..."]]) -> Shaped[Tensor, "K ..."]:
    """Stack tensors; matrices are transposed in memory, as their gradients come from a batched product."""
    stacked = torch.stack(list(tensors))
    if stacked.ndim == 3:
        stacked = stacked.transpose(1, 2).contiguous().transpose(1, 2)
    return stacked.requires_grad_()


def single_model(modules: Sequence[nn.Module], channels_last: bool = True) -> SingleModel:
    """Wrap the only one of these modules."""
    (module,) = modules
    return SingleModel(module, channels_last)


def is_stack(module: nn.Module) -> bool:
    """Tell whether a network is a sequence, nested or not, of linear layers and elementwise functions."""
    leaves = list(_leaves(module))
    if not all(type(leaf) is nn.Linear or type(leaf) in ELEMENTWISE or _flattens(leaf) for leaf in leaves):
        return False
    linear = [id(leaf) for leaf in leaves if isinstance(leaf, nn.Linear)]
    return len(linear) >= 1 and len(set(linear)) == len(linear)  # no layer is used twice


def in_layout(module: nn.Module, channels_last: bool = True) -> nn.Module:
    """Change the memory layout of a network with convolutions to the one in which they are fastest."""
    for parameter in module.parameters() if channels_last and has_convolution(module) else ():
        if parameter.ndim == 4:
            parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)
    return module


def laid_out(x: Any, channels_last: bool = True) -> Any:
    """Change images to the layout of `in_layout`; other inputs are returned as they are."""
    if channels_last and isinstance(x, Tensor) and x.ndim == 4:
        return x.contiguous(memory_format=torch.channels_last)
    return x


def works_channels_last(module: nn.Module, x: Any) -> bool:
    """Try one forward and backward pass of a network in the layout of `in_layout`.

    A network that calls ``view`` after a convolution cannot work in it.
    """
    if not has_convolution(module) and not (isinstance(x, Tensor) and x.ndim == 4):
        return True
    device = next(module.parameters()).device
    try:
        trial = in_layout(copy.deepcopy(module))
        with seeded(0, device), torch.enable_grad():
            output = trial(laid_out(x))
            if output.requires_grad:
                output.sum().backward()
    except Exception:  # the network is the user's: it may raise anything
        return False
    return True


def has_convolution(module: nn.Module) -> bool:
    """Tell whether a network has a convolution over images."""
    return any(isinstance(part, nn.Conv2d) for part in module.modules())


def _leaves(module: nn.Module) -> Iterator[nn.Module]:
    if type(module) is nn.Sequential:
        for child in module:
            yield from _leaves(child)
    else:
        yield module


def _flattens(leaf: nn.Module) -> bool:
    return type(leaf) is nn.Flatten and (leaf.start_dim, leaf.end_dim) == (1, -1)
