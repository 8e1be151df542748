"""Checkpoints of a training: all that the epochs to come depend on, as tensors and plain numbers.

What an epoch needs is the parameters and buffers, the moments of the optimiser, which models still train, and the state
of PyTorch's random numbers: the order of the points comes from the seed and the epoch alone. So a training that goes on
from a checkpoint ends with the same bytes as one that was never interrupted.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from leakbound.core.checkpoints import CheckpointPlace, Pace, current_place


class TrainingCheckpoint:
    """The checkpoint of one training, if somebody keeps it.

    >>> TrainingCheckpoint(None, [0], "one", []).load() is None
    True
    """

    def __init__(
        self, place: CheckpointPlace | None, seeds: Sequence[int], kind: str, modules: Sequence[nn.Module]
    ) -> None:
        # a network that changes its plain attributes in training, as a counter of its calls, is not kept: no checkpoint
        # has them
        self._place, self._kind, self._modules = place, kind, modules
        self._name = hashlib.sha256(json.dumps([int(seed) for seed in seeds]).encode()).hexdigest()[:16]
        self._attributes = self._plain_attributes() if place is not None else []
        self._pace = Pace()

    @classmethod
    def here(cls, seeds: Sequence[int], kind: str, modules: Sequence[nn.Module]) -> TrainingCheckpoint:
        """Use the place of the task that runs."""
        return cls(current_place(), seeds, kind, modules)

    def load(self) -> dict[str, Any] | None:
        """Return the state that was saved; None where there is none that can be used."""
        content = self._place.read(self._name) if self._place is not None else None
        if content is None:
            return None
        try:  # nothing but tensors and plain numbers is read
            state = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        except Exception:  # torch raises many kinds for bytes that are no file of its own
            return None
        return state if isinstance(state, dict) and state.get("kind") == self._kind else None

    def save_if_due(self, state_of: Callable[[], Mapping[str, Any]]) -> None:
        """Save the state if the last time is long enough ago."""
        if self._place is None or not self._pace.is_due or self._plain_attributes() != self._attributes:
            return
        with self._pace.written():
            file = io.BytesIO()
            torch.save({**state_of(), "kind": self._kind}, file)
            self._place.write(self._name, file.getvalue())

    def _plain_attributes(self) -> list[dict[str, Any]]:
        """List what the parts of the networks hold besides tensors."""
        return [
            {name: value for name, value in vars(part).items() if isinstance(value, (bool, int, float, str))}
            for module in self._modules
            for part in module.modules()
        ]


def random_state(device: torch.device) -> list[Tensor]:
    """Return the state of PyTorch's random numbers on the CPU and on a device."""
    states = [torch.default_generator.get_state()]
    if device.type == "cuda":
        states.append(torch.cuda.get_rng_state(device))
    elif device.type == "mps":
        states.append(torch.mps.get_rng_state())
    return states


def set_random_state(states: Sequence[Tensor], device: torch.device) -> None:
    """Set what `random_state` returned."""
    torch.default_generator.set_state(states[0])
    if device.type == "cuda":
        torch.cuda.set_rng_state(states[1], device)
    elif device.type == "mps":
        torch.mps.set_rng_state(states[1])


def attributes_of(thing: object, names: Sequence[str]) -> dict[str, Any]:
    """Return some attributes of an object as tensors and plain values: arrays, and lists of arrays of one shape."""
    packed: dict[str, Any] = {}
    for name in names:
        value = getattr(thing, name)
        if isinstance(value, np.ndarray):
            value = {"array": torch.from_numpy(value)}
        elif isinstance(value, list) and value and isinstance(value[0], np.ndarray):
            value = {"rows": torch.from_numpy(np.stack(value))}
        packed[name] = value
    return packed


def set_attributes(thing: object, packed: Mapping[str, Any]) -> None:
    """Set what `attributes_of` returned."""
    for name, value in packed.items():
        if isinstance(value, dict):
            value = value["array"].numpy() if "array" in value else list(value["rows"].numpy())
        setattr(thing, name, value)


@torch.no_grad()
def copy_into(targets: Sequence[Tensor], sources: Sequence[Tensor]) -> None:
    """Copy tensors into others, which keep their device and their layout in memory."""
    for target, source in zip(targets, sources, strict=True):
        target.copy_(source)


def tensors_of(module: nn.Module) -> Iterator[Tensor]:
    """Yield the parameters and buffers of a network, those too that its state dict leaves out."""
    for tensor in (*module.parameters(), *module.buffers()):
        yield tensor.detach()
