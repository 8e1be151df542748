"""From a trained network to signals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import nn

from leakscope.releases import readout
from leakscope.releases.networks.devices import with_less
from leakscope.releases.networks.ensemble import in_layout, laid_out
from leakscope.releases.networks.gradient_norms import Layers, gradient_norms
from leakscope.releases.networks.training import Lesson

Array = np.ndarray
_ROWS = 4096  # points that are read at once, where memory suffices
_OF_LOGITS = ("loss", "log_odds", "correct", "log_prob")


def signals_of(
    module: nn.Module, lesson: Lesson, want: Sequence[str], layers: Layers = "all"
) -> Mapping[str, Float[Array, "N ..."]]:
    """Those of the wanted signals that a network gives, at every point.

    Parameters
    ----------
    module : nn.Module
        In evaluation mode, on the device of the lesson.
    lesson : Lesson
        Points, labels and loss.
    want : sequence of str
    layers : "all", "last", a name, or tuple of names
        Whose gradients are seen.

    Returns
    -------
    mapping
        Of the softmax in float64, as ``readout.probabilities``; ``gradient_norm``: the norm over these layers.

    Raises
    ------
    ValueError
        If the answers are not finite.
    """
    made: dict[str, Array] = {}
    if any(name in _OF_LOGITS for name in want):
        logits = logits_of(module, lesson).astype(np.float64)
        weight = np.exp(logits - logits.max(axis=1, keepdims=True))
        label = lesson.label.cpu().numpy()
        made |= readout.probabilities(weight / weight.sum(axis=1, keepdims=True), label, want)
    if "gradient_norm" in want:
        norms = gradient_norms(module, lesson.inputs, lesson.label, loss=lesson.recipe.loss, layers=layers)
        made["gradient_norm"] = np.sqrt(np.square(norms.astype(np.float64)).sum(axis=1))
    return made


def logits_of(module: nn.Module, lesson: Lesson) -> Float[Array, "N C"]:
    """What a network answers at every point, as it gives it."""
    n_points = len(lesson.inputs)
    in_layout(module)

    @torch.no_grad()
    def read(rows: int) -> Array:
        parts = []
        for start in range(0, n_points, rows):
            chosen = np.arange(start, min(start + rows, n_points))
            parts.append(module(laid_out(lesson.inputs.batch(chosen, lesson.device))).float().cpu().numpy())
        return np.concatenate(parts)

    refusal = f"{lesson.name}: memory does not suffice to read a single point"
    logits = with_less(read, min(_ROWS, n_points), refusal)
    if not np.isfinite(logits).all():
        raise ValueError(f"{lesson.name} answers with NaN or infinite values")
    return logits
