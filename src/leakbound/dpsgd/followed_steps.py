"""What each step of an optimizer releases: the noisy sum of the gradients of its batch.

Plain gradient descent (`torch.optim.SGD` with one group, without momentum and weight decay) changes the parameters by
the noisy gradient itself, which is seen in them before and after the step. Other optimizers of PyTorch compute the
change from the noisy gradient and from what they remember of earlier ones; there the gradient is read where the
optimizer takes it, in ``.grad``. What the optimizer makes of it is a function of what was read, and reveals no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.utils import parameters_to_vector

from leakbound.core.checks import positive

# what they do with a gradient is known: none adds noise, or evaluates the loss several times
READ_BY_GRADIENT = ("SGD", "Adam", "AdamW", "NAdam", "RAdam", "Adamax", "Adagrad", "Adadelta", "RMSprop", "ASGD")


class Rounding(NamedTuple):
    """A bound on floating-point rounding: the error of a number is at most ``relative |number| + absolute``."""

    relative: float | Float[Tensor, " d"]
    absolute: float | Float[Tensor, " d"]

    @classmethod
    def of(cls, parameters: Sequence[Tensor]) -> Rounding:
        """Bound rounding to nearest in the dtype of each parameter, with subnormal results flushed to 0."""
        formats = [torch.finfo(parameter.dtype) for parameter in parameters]
        if len({parameter.dtype for parameter in parameters}) == 1:
            return cls(formats[0].eps / 2, formats[0].tiny)
        relative, absolute = [], []
        for parameter, format_of in zip(parameters, formats, strict=True):
            relative.append(torch.full((parameter.numel(),), format_of.eps / 2))
            absolute.append(torch.full((parameter.numel(),), format_of.tiny))
        return cls(torch.cat(relative), torch.cat(absolute))


class FollowedStep(NamedTuple):
    """A step, seen through two vectors: ``(before - after) scale`` is the noisy sum."""

    parameters: Float[Tensor, " d"]
    before: Float[Tensor, " d"]
    after: Float[Tensor, " d"]
    scale: float
    rounding: Rounding


def is_plain(optimizer: Any) -> bool:
    """Whether a step of the optimizer is the noisy gradient itself."""
    if not isinstance(optimizer, torch.optim.SGD) or len(optimizer.param_groups) != 1:
        return False
    return not any(optimizer.param_groups[0][name] for name in ("momentum", "weight_decay", "maximize"))


@contextmanager
def followed(
    optimizer: Any,
    normaliser: float,
    observe: Callable[[FollowedStep], None],
    parameters: Sequence[Tensor] | None = None,
) -> Iterator[None]:
    """Call a function with every step of an optimizer while the context lasts."""
    inner = getattr(optimizer, "original_optimizer", optimizer)
    positive("normaliser", normaliser)
    plain = is_plain(inner)
    if not plain and type(inner) not in [getattr(torch.optim, name) for name in READ_BY_GRADIENT]:
        raise ValueError(
            "what a step releases is seen with torch.optim.SGD, and with other optimizers of PyTorch that take one "
            f"gradient a step ({', '.join(READ_BY_GRADIENT[1:])}), got {type(inner).__name__}"
        )
    # a step is compared with the parameters as one vector: it must be of all of them
    own = [each for group in inner.param_groups for each in group["params"] if each.requires_grad]
    parameters = own if parameters is None else parameters
    if {id(each) for each in own} != {id(each) for each in parameters}:
        raise ValueError(
            f"the optimizer changes {len(own):,} parameter tensors, and the network has {len(parameters):,} that are "
            "trained; give it all of them, and freeze the others (requires_grad = False) where the network is made"
        )
    # the parameters before a step, and the gradient where the step is not the gradient times lr
    rounding, remembered = Rounding.of(parameters), []

    def remember(*_: Any) -> None:
        before = parameters_to_vector(parameters).detach().clone()
        remembered.append((before, None if plain else _gradient(parameters)))

    def after_step(*_: Any) -> None:
        before, gradient = remembered.pop()
        if gradient is None:
            # plain SGD: the noisy sum is read from the step itself
            after, scale = parameters_to_vector(parameters).detach(), normaliser / inner.param_groups[0]["lr"]
            observe(FollowedStep(before, before, after, scale, rounding))
        else:
            # others: the noisy sum is the gradient that the optimizer is given, as a step from 0
            observe(FollowedStep(before, torch.zeros_like(gradient), -gradient, normaliser, rounding))

    handles = inner.register_step_pre_hook(remember), inner.register_step_post_hook(after_step)
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _gradient(parameters: Sequence[Tensor]) -> Float[Tensor, " d"]:
    """Return the gradients that an optimizer is about to use, 0 where there is none."""
    gradients = [torch.zeros_like(each) if each.grad is None else each.grad for each in parameters]
    return torch.cat([gradient.detach().reshape(-1) for gradient in gradients]).clone()
