"""Signals from the outputs and gradients of a trained network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import nn

from leakbound.releases.networks.devices import with_less
from leakbound.releases.networks.ensemble import in_layout, laid_out
from leakbound.releases.networks.gradient_norms import Layers, gradient_norms
from leakbound.releases.networks.heads import Head
from leakbound.releases.networks.tensors import Inputs
from leakbound.releases.networks.training import TrainingData

Array = np.ndarray
_ROWS = 4096  # points that are evaluated at once, if memory suffices
_OF_LOGITS = ("loss", "log_odds", "correct", "log_prob")


def signals_of(
    module: nn.Module, data: TrainingData, want: Sequence[str], layers: Layers = "all"
) -> Mapping[str, Float[Array, "N ..."]]:
    """Compute those of the wanted signals that a network gives, at every point."""
    signals: dict[str, Array] = {}
    data = data.in_fastest_layout(module)
    if any(name in _OF_LOGITS for name in want):
        head = Head("classes", data.label.cpu().numpy()) if data.head is None else data.head
        signals |= head.signals(logits_of(module, data).astype(np.float64), want)
    if "gradient_norm" in want and data.has_gradients and isinstance(data.inputs, Inputs):
        norms = gradient_norms(
            module,
            data.inputs,
            data.label,
            loss=data.recipe.loss,
            layers=layers,
            channels_last=data.channels_last is not False,
        )
        signals["gradient_norm"] = np.sqrt(np.square(norms.astype(np.float64)).sum(axis=1))
    return signals


def logits_of(module: nn.Module, data: TrainingData) -> Float[Array, "N C"]:
    """Compute the output of a network at every point."""
    n_points = len(data.inputs)
    channels_last = data.channels_last is not False
    in_layout(module, channels_last)

    @torch.no_grad()
    def in_blocks(rows: int) -> Array:
        parts = []
        for start in range(0, n_points, rows):
            indices = np.arange(start, min(start + rows, n_points))
            x = laid_out(data.inputs.batch(indices, data.device), channels_last)
            parts.append(module(x).float().cpu().numpy())
        return np.concatenate(parts)

    refusal = f"{data.name}: memory does not suffice to read a single point"
    logits = with_less(in_blocks, min(_ROWS, n_points), refusal)
    if not np.isfinite(logits).all():
        raise ValueError(f"{data.name} answers with NaN or infinite values")
    return logits
