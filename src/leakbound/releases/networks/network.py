"""Releases by a network of PyTorch: trained for each row of a game, or pretrained."""

from __future__ import annotations

import copy
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from torch import nn

from leakbound.core.checks import count
from leakbound.core.seeds import integer
from leakbound.core.types import Points
from leakbound.data.records import Fields
from leakbound.files.untrusted import in_one_line
from leakbound.releases.networks.architecture import Architecture, built, refuse_own_step, refuse_softmax
from leakbound.releases.networks.devices import device_of, working
from leakbound.releases.networks.gradient_norms import Layers, layers_of
from leakbound.releases.networks.heads import Head, head_of, provisional_labels
from leakbound.releases.networks.interface import Reading, reading_of, reading_of_array, refuse_sigmoid
from leakbound.releases.networks.last_layer import taylor
from leakbound.releases.networks.recipe import Collate, Recipe
from leakbound.releases.networks.signals import signals_of
from leakbound.releases.networks.tensors import collated_inputs, field_inputs, what_is_done
from leakbound.releases.networks.training import TrainingData, trained
from leakbound.releases.networks.weight_files import weights_of
from leakbound.releases.source_code import digest_of_classes
from leakbound.releases.specs import NoCanonicalForm, canonical, printed, versions
from leakbound.releases.structure import Structure, structure_of
from leakbound.releases.wrapped import AlreadyTrained, KnownByRecipe

Array = np.ndarray


@dataclass(frozen=True)
class Network(KnownByRecipe):
    """A network that is trained anew for each row of a game.

    Row m starts from weights of the seed stream ("init"), reads its points in the order of ("batches", epoch) and
    augments images by ("augment", epoch). Models of a chunk are trained at once where that is faster, which changes
    the last digits: a row depends on its seed, its chunk, the version of PyTorch and the kind of processor.

    Parameters
    ----------
    make : callable
        A function or class that makes a network (``torch.nn.Module``) whose output has one number for each class; its
        softmax are the probabilities. Other outputs: ``leakbound.releases.networks.heads``. They may be the attribute
        or entry ``logits`` of what the network returns, or the first of several tensors. How points become tensors:
        ``leakbound.releases.networks.tensors``.
    recipe : Recipe
    name : str
        What the report calls it; the name of the function or class unless given.
    parameters : mapping
        Keywords of `make`.
    layers : str or tuple of str
        The layers whose gradients an attacker observes, for ``gradient_norm``: ``"all"``, ``"last"``, or names.
    rows : int, optional
        Models that are trained at once and stored together; by size unless given.

    Raises
    ------
    ValueError
        If no network can be made, in one line.

    Examples
    --------
    >>> import numpy as np
    >>> from torch import nn
    >>> from leakbound.releases.networks.network import Network
    >>> from leakbound.releases.networks.recipe import Recipe
    >>> from leakbound.core.types import Points
    >>> network = Network(lambda: nn.Linear(2, 2), Recipe(epochs=2, lr=0.1))
    >>> points = Points(np.eye(2)[[0, 1, 0, 1]], np.array([0, 1, 0, 1]))
    >>> member = np.array([[True, True, False, False], [False, True, True, False]])
    >>> network.observe(points, member, np.array([3, 4]), ["loss"])["loss"].shape
    (2, 4)
    """

    family: ClassVar[str] = "network"

    make: Callable[..., Any]
    recipe: Recipe = field(default_factory=Recipe)
    name: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    layers: Layers = "all"
    rows: int | None = None

    def __post_init__(self) -> None:
        refuse_own_step(self.make)
        if isinstance(self.make, nn.Module):
            raise ValueError(
                f"give a function or class that makes the network, got a {type(self.make).__name__} that is made: "
                "every model would begin with its weights; a trained network with its data is audited by audit_model"
            )
        if not callable(self.make):
            raise ValueError(f"a network is made by a function or class, got a {type(self.make).__name__}")
        if self.rows is not None:
            count("rows", self.rows)
        if not self.name:
            own = getattr(self.make, "__name__", "<none>")
            object.__setattr__(self, "name", self.architecture.title if "<" in own else own)
        module = self._built(0)
        refuse_own_step(module)
        layers_of(module, self.layers)
        device_of(self.recipe)

    @cached_property
    def architecture(self) -> Architecture:
        """The architecture of the networks."""
        return Architecture.of(self._built(0), self.recipe)

    @property
    def chunk(self) -> int:
        """Rows that are trained and stored together."""
        return self.rows or self.architecture.chunk(self.recipe)

    @property
    def description(self) -> str:
        """The factory, its parameters and the recipe."""
        parameters = ", ".join(f"{name}={printed(value)}" for name, value in self.parameters.items())
        collate = self.recipe.collate
        batches = "" if collate is None else f", collate={getattr(collate, '__name__', type(collate).__name__)}"
        return f"{getattr(self.make, '__name__', self.name)}({parameters}), {self.recipe!r}{batches}"

    def _description(self) -> Mapping[str, Any]:
        if not (inspect.isfunction(self.make) or inspect.isclass(self.make)):
            raise NoCanonicalForm(f"a {type(self.make).__name__} that makes networks has no import path")
        network = {
            "make": canonical(self.make),
            "parameters": canonical(self.parameters),
            "classes": digest_of_classes({type(part) for part in self._built(0).modules()}),
        }
        return {
            "network": network,
            "architecture": self.architecture.digest,
            "recipe": self.recipe.describe() | {"device": device_of(self.recipe).type},
            "rows": self.chunk,
            "layers": self.layers if isinstance(self.layers, str) else list(self.layers),
            "versions": versions({"torch", "numpy"}),
        }

    def observe(
        self, points: Points, member: Bool[Array, "m N"], seeds: Int[Array, " m"], want: Sequence[str]
    ) -> Mapping[str, Float[Array, "m N ..."]]:
        """Train one network for each row and compute its signals at every point.

        Raises
        ------
        ValueError
            If the points do not fit the network, or its training loss is not finite.
        MemoryError
            If memory does not suffice for one network.
        """
        if not member.any(axis=1).all():
            raise ValueError(f"{self.name} needs training points, and a model has none")
        module = self._built(0)
        reading, head = read(module, points, self.name, self.recipe)
        inputs, interface = reading.inputs, reading.interface
        if self.recipe.augment != "none" and not inputs.image:
            raise ValueError(f"augment={self.recipe.augment!r} is for images, not for {inputs.title}")
        with working(self.recipe) as device:
            data = TrainingData(inputs.on(device), head.target(device), self.recipe, device, self.name, head)
            members = [np.flatnonzero(row) for row in member]

            data = data.in_fastest_layout(interface.adapt(module).to(device).train())

            def build(seed: int) -> nn.Module:
                return interface.adapt(self._built(seed))

            modules = trained(build, self.architecture, data, members, seeds.tolist())
            rows = [self._signals(module, data, want, interface.names(self.layers)) for module in modules]
        return {name: np.stack([row[name] for row in rows]) for name in rows[0]}

    def prepared(self, points: Points) -> str:
        """Say what is done to the points before the networks read them, in a sentence; empty if nothing is."""
        return "" if self.recipe.collate is not None else what_is_done(points.x, self.name)

    def _signals(
        self, module: nn.Module, data: TrainingData, want: Sequence[str], layers: Layers
    ) -> Mapping[str, Float[Array, "N ..."]]:
        signals = dict(signals_of(module, data, want, layers))
        if "taylor" in want:
            terms = taylor(module, data)
            if terms is not None:
                signals["taylor"] = terms
        return signals

    def structure(self, points: Points, seed: int) -> Structure:
        """Count the parameters of the network, which training does not change."""
        return structure_of(self._built(seed), points)

    def _built(self, seed: int) -> nn.Module:
        return built(self.make, self.parameters, integer(seed, "init"))


def read(
    module: nn.Module, points: Points, name: str, recipe: Recipe, classes: Shaped[Array, " K"] | None = None
) -> tuple[Reading, Head]:
    """Find how a network reads points, and what its outputs mean."""
    if recipe.collate is not None:
        inputs = collated_inputs(points.x, provisional_labels(points, name), recipe.collate)
        reading = reading_of(module, inputs, name)
        head = head_of(reading.n_outputs, points, name, classes)
        # the function gets the same labels as the loss
        reading = replace(reading, inputs=replace(inputs, labels=head.values))
    else:
        if isinstance(points.x, Fields):
            reading = reading_of(module, field_inputs(points.x), name)
        else:
            reading = reading_of_array(module, points.x, name)
        head = head_of(reading.n_outputs, points, name, classes)
    if head.kind != "classes" and recipe.loss != "cross_entropy":
        raise ValueError(f"{name}: loss={recipe.loss!r} is of networks with a number for each class; leave it out")
    if head.kind in ("one_logit", "labels"):
        refuse_sigmoid(reading, name)
    return reading, head


@in_one_line
def weighted(make: Callable[..., Any], parameters: Mapping[str, Any], file: str | os.PathLike[str]) -> nn.Module:
    """Make a network and load its weights from a file; nothing but tensors is read from it.

    >>> import tempfile
    >>> import torch
    >>> with tempfile.NamedTemporaryFile(suffix=".pt") as file:
    ...     torch.save({"weight": torch.ones(2, 3), "bias": torch.zeros(2)}, file.name)
    ...     weighted(torch.nn.Linear, {"in_features": 3, "out_features": 2}, file.name).weight.sum().item()
    6.0
    """
    module = built(make, parameters, 0)
    state = weights_of(file)
    try:
        module.load_state_dict(dict(state))
    except Exception as error:  # RuntimeError for other shapes; others where a value is no tensor
        inner = [str(key) for key, value in state.items() if isinstance(value, Mapping)]
        if inner:
            raise ValueError(
                f"{file}: a state dict alone is read, this one is in {' or '.join(inner)}: save it by "
                f"torch.save(torch.load({str(file)!r}, weights_only=True)[{inner[0]!r}], 'net.pt')"
            ) from None
        reasons = [line.strip() for line in str(error).splitlines()[1:]]
        raise ValueError(f"{file}: the weights of another network: {reasons[0] if reasons else error}") from None
    return module


@dataclass(frozen=True)
class Trained(AlreadyTrained):
    """One trained network, whose parameters and gradients the attacker knows."""

    family: ClassVar[str] = "network"

    module: nn.Module
    classes: Array | None = None
    name: str = "model"
    layers: Layers = "all"
    chunk: int = 1
    collate: Collate | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.module, nn.Module):
            raise ValueError(f"give the trained network, not {getattr(self.module, '__name__', self.module)!r}")
        refuse_softmax(self.module)
        layers_of(self.module, self.layers)

    def prepared(self, points: Points) -> str:
        """Say what is done to the points before the network reads them, in a sentence; empty if nothing is."""
        return "" if self.collate is not None else what_is_done(points.x, self.name)

    @property
    def description(self) -> str:
        """The name of the class."""
        return type(self.module).__name__

    def observe(
        self, points: Points, member: Bool[Array, "1 N"], seeds: Int[Array, " 1"], want: Sequence[str]
    ) -> Mapping[str, Float[Array, "1 N ..."]]:
        """Compute the network's signals at every point, as one row."""
        module = copy.deepcopy(self.module).eval()
        device = next(module.parameters()).device
        recipe = Recipe(device=str(device) if device.type in ("cuda", "mps") else "cpu", collate=self.collate)
        reading, head = read(module, points, self.name, recipe, self.classes)
        with working(recipe):
            data = TrainingData(reading.inputs.on(device), head.target(device), recipe, device, self.name, head)
            adapted = reading.interface.adapt(module)
            row = signals_of(adapted, data, want, reading.interface.names(self.layers))
        return {name: array[None] for name, array in row.items()}
