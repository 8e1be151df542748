"""The training of networks: batches, loss, steps, stop; for one model or for many side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Num
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from leakbound.core.seeds import integer, stream
from leakbound.releases.networks.architecture import Architecture
from leakbound.releases.networks.augmentation import Augmentation, augment
from leakbound.releases.networks.checkpoints import TrainingCheckpoint, random_state, set_random_state
from leakbound.releases.networks.devices import seeded, with_less
from leakbound.releases.networks.ensemble import (
    BatchedEnsemble,
    Learner,
    VmapEnsemble,
    single_model,
    works_channels_last,
)
from leakbound.releases.networks.heads import Head, HeadKind, binary_losses, squared_losses
from leakbound.releases.networks.optimisers import Optimiser
from leakbound.releases.networks.recipe import Recipe
from leakbound.releases.networks.tensors import AnyInputs, Inputs

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class TrainingData:
    """The points that networks are trained on and read at, with the recipe and the device."""

    inputs: AnyInputs
    label: Num[Tensor, "N ..."]
    recipe: Recipe
    device: torch.device
    name: str
    head: Head | None = None
    channels_last: bool | None = None

    @property
    def head_kind(self) -> HeadKind:
        """What the outputs mean."""
        return "classes" if self.head is None else self.head.kind

    @property
    def has_gradients(self) -> bool:
        """Whether signals of the gradients of single points are computed: of classes, and inputs in one tensor."""
        return self.head_kind == "classes" and isinstance(self.inputs, Inputs)

    def in_fastest_layout(self, module: nn.Module) -> TrainingData:
        """Find out, by a trial, whether a network works in the layout in which convolutions are fastest."""
        if self.channels_last is not None:
            return self
        x = self.inputs.batch(np.arange(min(2, len(self.inputs))), self.device)
        return replace(self, channels_last=works_channels_last(module, x))


def trained(
    build: Callable[[int], nn.Module],
    architecture: Architecture,
    data: TrainingData,
    members: Sequence[Int[Array, " _"]],
    seeds: Sequence[int],
) -> list[nn.Module]:
    """Train a network on each set of points, those with as many batches together where that is faster."""
    learner_of = _learner(build, architecture, data)
    one_at_a_time = learner_of not in (BatchedEnsemble, VmapEnsemble)
    n_steps = [n_batches(len(points), data.recipe.batch) for points in members]
    networks: dict[int, nn.Module] = {}

    def train_rows(rows: Sequence[int]) -> list[nn.Module]:
        modules = [build(seeds[row]).to(data.device).train() for row in rows]
        train(learner_of(modules), data, [members[row] for row in rows], [seeds[row] for row in rows])
        return [module.eval() for module in modules]

    for steps in sorted(set(n_steps)):
        rows = [row for row, own_steps in enumerate(n_steps) if own_steps == steps]

        def in_parts(size: int, rows: Sequence[int] = rows) -> list[nn.Module]:
            modules = []
            for start in range(0, len(rows), size):
                modules += train_rows(rows[start : start + size])
            return modules

        largest = 1 if one_at_a_time else len(rows)
        modules = with_less(in_parts, largest, _too_large(data))
        networks.update(zip(rows, modules, strict=True))
    return [networks[row] for row in range(len(members))]


def train(learner: Learner, data: TrainingData, members: Sequence[Int[Array, " _"]], seeds: Sequence[int]) -> None:
    """Train models, each on its own points, by one recipe; go on from a checkpoint where there is one.

    Model k reads its points in the order of ``stream(seeds[k], "batches", epoch)``; its loss is the mean over its
    own batch, so that the gradient of the sum over the models is that of each one. Random numbers of the models
    themselves (dropout) come from the first seed.
    """
    recipe = data.recipe
    training = list(range(len(members)))  # indices of the models that have not stopped
    loss_before = np.full(len(members), np.inf)
    first_epoch = 0
    checkpoint = TrainingCheckpoint.here(seeds, type(learner).__name__, learner.modules)
    with seeded(integer(seeds[0], "dropout"), data.device):
        state = checkpoint.load()
        if state is not None:
            learner.restore(state["models"])
            training, first_epoch = state["models"]["training"], state["epoch"]
            loss_before = state["loss"].numpy()
        optimiser = Optimiser(recipe, learner.parameters)
        if state is not None:
            optimiser.restore(state["optimiser"])
            set_random_state(state["random"], data.device)
        for epoch in range(first_epoch, recipe.epochs):
            optimiser.lr = recipe.lr_in(epoch)
            batches = _Epoch.drawn([members[k] for k in training], [seeds[k] for k in training], epoch, recipe)
            loss = _train_epoch(learner, optimiser, data, batches)
            if not np.isfinite(loss).all():
                raise ValueError(
                    f"{data.name}: the training loss is not finite in epoch {epoch + 1}; a smaller lr may help, "
                    f"the recipe has lr={recipe.lr:g}"
                )
            goes_on = np.abs(loss - loss_before) >= (recipe.stop or 0.0)
            if not goes_on.all():  # models that have converged leave; the others keep their optimiser's state
                still_training = torch.as_tensor(goes_on, device=data.device)
                learner.keep(still_training)
                training = [training[place] for place in np.flatnonzero(goes_on)]
                if not training:
                    return
                optimiser = optimiser.narrowed(learner.parameters, still_training.nonzero().flatten())
            loss_before = loss[goes_on]
            checkpoint.save_if_due(partial(_state, epoch + 1, learner, optimiser, loss_before, data.device))
    learner.keep(torch.zeros(len(training), dtype=torch.bool, device=data.device))


def _state(
    epoch: int, learner: Learner, optimiser: Optimiser, loss: Float[Array, " K"], device: torch.device
) -> dict[str, Any]:
    """Return what the epochs from this one on depend on."""
    return {
        "epoch": epoch,
        "models": learner.state(),
        "optimiser": optimiser.state(),
        "loss": torch.from_numpy(loss),
        "random": random_state(device),
    }


def n_batches(n_points: int, batch: int) -> int:
    """Count the steps of an epoch.

    A last batch of one point joins the one before it: batch norm needs two points.
    """
    return max(1, n_points // batch + (n_points % batch > 1))


def losses(
    logits: Float[Tensor, "*b C"], label: Num[Tensor, "..."], kind: str, head: HeadKind = "classes"
) -> Float[Tensor, "*b"]:
    """Compute the loss of each answer.

    >>> losses(torch.zeros(2, 4), torch.tensor([0, 3]), "mse").tolist()
    [0.1875, 0.1875]
    """
    if head == "one_logit":
        return binary_losses(logits, label[..., None])
    if head == "labels":
        return binary_losses(logits, label)
    if head == "responses":
        return squared_losses(logits, label)
    rows, true_class = logits.reshape(-1, logits.shape[-1]), label.reshape(-1)
    if kind == "cross_entropy":
        return cross_entropy(rows, true_class, reduction="none").reshape(label.shape)
    one_hot = (torch.arange(rows.shape[1], device=rows.device) == true_class[:, None]).to(rows.dtype)
    return (rows.softmax(dim=1) - one_hot).square().mean(dim=1).reshape(label.shape)


@dataclass(frozen=True, eq=False)
class _Epoch:
    """The points of an epoch in their order; rows of fewer points are padded with points that do not count."""

    order: Int[Array, "K n"]
    counts: Bool[Array, "K n"]
    augmentation: Augmentation | None
    ends: Sequence[int]  # of the batches
    number: int

    @classmethod
    def drawn(cls, members: Sequence[Array], seeds: Sequence[int], epoch: int, recipe: Recipe) -> _Epoch:
        shape = len(members), max(map(len, members))
        order, counts = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=bool)
        augmentation = None if recipe.augment == "none" else Augmentation.none(*shape)
        for k, (points, seed) in enumerate(zip(members, seeds, strict=True)):
            n_points = len(points)
            order[k] = points[0]
            order[k, :n_points] = points[stream(seed, "batches", epoch).permutation(n_points)]
            counts[k, :n_points] = True
            if augmentation is not None:
                augmentation.draw(k, n_points, recipe, stream(seed, "augment", epoch))
        n_steps = n_batches(len(members[0]), recipe.batch)
        ends = [recipe.batch * step for step in range(1, n_steps)]
        return cls(order, counts, augmentation, [*ends, shape[1]], epoch)

    def batches(self, data: TrainingData) -> Iterator[tuple[Any, Tensor, Tensor | None]]:
        """Yield inputs (K, b, ...), labels (K, b) and, where some do not count, weights in the mean (K, b).

        Inputs that are more than one tensor are those of a single model, in a list.
        """
        label = data.label[torch.as_tensor(self.order, device=data.device)]
        for start, end in zip([0, *self.ends], self.ends, strict=False):
            batch = slice(start, end)
            order, counts = self.order[:, batch], self.counts[:, batch]
            x: Any = data.inputs.batch(order.reshape(-1), data.device)
            x = x.unflatten(0, order.shape) if isinstance(data.inputs, Inputs) else [x]
            if self.augmentation is not None:
                x = augment(x, self.augmentation[batch])
            weight = None
            if not counts.all():
                weight = counts / counts.sum(axis=1, keepdims=True)
                weight = torch.as_tensor(weight, dtype=torch.float32, device=data.device)
            yield x, label[:, batch], weight


def _train_epoch(learner: Learner, optimiser: Optimiser, data: TrainingData, epoch: _Epoch) -> Float[Array, " K"]:
    """Make one pass over the data, and return the mean loss of each model over the batches of the pass."""
    n_points = torch.as_tensor(epoch.counts.sum(axis=1), device=data.device)
    total = torch.zeros(len(n_points), device=data.device)
    size = data.recipe.batch
    for step, (x, label, weight) in enumerate(epoch.batches(data)):
        with torch.autocast(data.device.type, torch.bfloat16, enabled=data.recipe.mixed_precision):
            logits = learner.logits(x)
        loss = losses(logits.float(), label, data.recipe.loss, data.head_kind)
        mean = loss.mean(dim=1) if weight is None else (loss * weight).sum(dim=1)
        optimiser.step(torch.autograd.grad(mean.sum(), learner.parameters, materialize_grads=True))
        last = step == len(epoch.ends) - 1
        total += mean.detach() * ((n_points - step * size) if last else size)
    return (total / n_points).cpu().numpy().astype(float)


def _learner(
    build: Callable[[int], nn.Module], architecture: Architecture, data: TrainingData
) -> Callable[[Sequence[nn.Module]], Learner]:
    """Choose how several networks are trained: one at a time where ``vmap`` has no rule for what they do."""
    one_at_a_time = partial(single_model, channels_last=data.channels_last is not False)
    if architecture.kind == "one" or not isinstance(data.inputs, Inputs):
        return one_at_a_time
    if architecture.kind == "stack":
        return BatchedEnsemble
    try:
        with seeded(0, data.device):  # a trial; dropout draws
            modules = [build(seed).to(data.device).train() for seed in (0, 1)]
            points = data.inputs.batch(np.zeros(4, dtype=np.int64), data.device).unflatten(0, (2, 2))
            VmapEnsemble(modules).logits(points).sum().backward()
    except Exception:  # the network is the user's: it may raise anything
        return one_at_a_time
    return VmapEnsemble


def _too_large(data: TrainingData) -> str:
    return (
        f"{data.name}: memory does not suffice to train one network with batches of {data.recipe.batch} points; "
        "give a smaller batch"
    )
