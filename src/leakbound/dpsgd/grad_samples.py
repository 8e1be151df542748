"""Per-sample gradients by the hooks of Opacus."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int
from opacus import GradSampleModule
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.utils import vector_to_parameters

from leakbound.dpsgd.clipping import trained_parameters
from leakbound.dpsgd.gradient_rows import DenseRows


class ByHooks:
    """Gradients by Opacus' ``GradSampleModule``, layer type by layer type."""

    def __init__(self, module: nn.Module, block: int) -> None:
        # In training mode, because Opacus records nothing otherwise; dropout is refused before.
        # the module is changed: the caller gives a copy
        self._module = GradSampleModule(module.train(), loss_reduction="sum")
        self.block = block

    def rows(self, theta: Float[Tensor, " d"], x: Float[Tensor, "B ..."], y: Int[Tensor, " B"]) -> DenseRows:
        if not len(x):
            return DenseRows(theta.new_zeros(0, len(theta)))
        with torch.no_grad():
            vector_to_parameters(theta, trained_parameters(self._module))
        cross_entropy(self._module(x.to(theta.dtype)), y, reduction="sum").backward()
        parameters: list[Any] = trained_parameters(self._module)  # Opacus adds grad_sample to each
        matrix = torch.cat([parameter.grad_sample.flatten(1) for parameter in parameters], dim=1)
        self._module.zero_grad(set_to_none=True)
        return DenseRows(matrix)
