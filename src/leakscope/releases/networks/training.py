"""The training of networks: batches, loss, steps, stop; for one model or for many side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from leakscope.core.seeds import integer, stream
from leakscope.releases.networks.architecture import Architecture
from leakscope.releases.networks.augmentation import Moves, moved
from leakscope.releases.networks.devices import seeded, with_less
from leakscope.releases.networks.ensemble import Learner, Stack, Vmapped, alone
from leakscope.releases.networks.optimisers import Optimiser
from leakscope.releases.networks.recipe import Recipe
from leakscope.releases.networks.tensors import Inputs

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Lesson:
    """What is learned.

    Parameters
    ----------
    inputs : Inputs
    label : int tensor of shape (N,)
        The column of each point's class, on the device.
    recipe : Recipe
    device : torch.device
    name : str
        Of the release, for errors.
    """

    inputs: Inputs
    label: Int[Tensor, " N"]
    recipe: Recipe
    device: torch.device
    name: str


def trained(
    build: Callable[[int], nn.Module],
    architecture: Architecture,
    lesson: Lesson,
    members: Sequence[Int[Array, " _"]],
    seeds: Sequence[int],
) -> list[nn.Module]:
    """A network for each set of points, those with equal numbers of batches side by side where that is faster.

    Parameters
    ----------
    build : callable
        From a seed to a network with initial weights, on the CPU.
    architecture : Architecture
        Of what it builds.
    lesson : Lesson
    members : sequence of M int arrays
        Numbers of the points of each network.
    seeds : sequence of M int

    Returns
    -------
    list of M nn.Module
        On the device, in evaluation mode.

    Raises
    ------
    ValueError
        If a loss is not finite.
    MemoryError
        If memory does not suffice for one network.
    """
    kind = _learner(build, architecture, lesson)
    steps = [n_batches(len(points), lesson.recipe.batch) for points in members]
    made: dict[int, nn.Module] = {}

    def teach(rows: Sequence[int]) -> list[nn.Module]:
        modules = [build(seeds[row]).to(lesson.device).train() for row in rows]
        train(kind(modules), lesson, [members[row] for row in rows], [seeds[row] for row in rows])
        return [module.eval() for module in modules]

    for number in sorted(set(steps)):
        rows = [row for row, own in enumerate(steps) if own == number]

        def parts(size: int, rows: Sequence[int] = rows) -> list[nn.Module]:
            return [each for start in range(0, len(rows), size) for each in teach(rows[start : start + size])]

        made |= zip(rows, with_less(parts, 1 if kind is alone else len(rows), _too_large(lesson)), strict=True)
    return [made[row] for row in range(len(members))]


def train(learner: Learner, lesson: Lesson, members: Sequence[Int[Array, " _"]], seeds: Sequence[int]) -> None:
    """Train models, each on its own points, by one recipe.

    Model k reads its points in the order of ``stream(seeds[k], "batches", epoch)``; its loss is the mean over its
    own batch, so that the gradient of the sum over the models is that of each one. Random numbers of the models
    themselves (dropout) come from the first seed.

    Parameters
    ----------
    learner : Learner
        Of K models.
    lesson : Lesson
    members : sequence of K int arrays
        Numbers of the points of each model, with equal numbers of batches (`n_batches`).
    seeds : sequence of K int

    Raises
    ------
    ValueError
        If a loss is not finite.
    """
    recipe, training = lesson.recipe, list(range(len(members)))
    optimiser, before = Optimiser(recipe, learner.parameters), np.full(len(members), np.inf)
    with seeded(integer(seeds[0], "dropout"), lesson.device):
        for epoch in range(recipe.epochs):
            drawn = _Epoch.drawn([members[k] for k in training], [seeds[k] for k in training], epoch, recipe)
            loss = _trained_once(learner, optimiser, lesson, drawn)
            if not np.isfinite(loss).all():
                raise ValueError(
                    f"{lesson.name}: the training loss is not finite in epoch {epoch + 1}; a smaller lr may help, "
                    f"the recipe has lr={recipe.lr:g}"
                )
            moves = np.abs(loss - before) >= (recipe.stop or 0.0)
            if not moves.all():
                stays = torch.as_tensor(moves, device=lesson.device)
                learner.keep(stays)
                training = [k for k, goes_on in zip(training, moves, strict=True) if goes_on]
                if not training:
                    return
                optimiser = optimiser.narrowed(learner.parameters, stays.nonzero().flatten())
            before = loss[moves]
    learner.keep(torch.zeros(len(training), dtype=torch.bool, device=lesson.device))


def n_batches(n_points: int, batch: int) -> int:
    """Steps an epoch: a last batch of one point joins the one before it, batch norm needs two."""
    return max(1, n_points // batch + (n_points % batch > 1))


def losses(logits: Float[Tensor, "*b C"], label: Int[Tensor, "*b"], kind: str) -> Float[Tensor, "*b"]:
    """The loss of each answer.

    Parameters
    ----------
    logits : tensor of shape (..., C)
        A column a class, before any softmax.
    label : int tensor of shape (...)
        Column of the true class.
    kind : {"cross_entropy", "mse"}
        As ``leakscope.releases.networks.recipe.Recipe.loss``: in nats, or the mean over the classes of the squared
        difference of softmax and one-hot label.

    Returns
    -------
    tensor of shape (...)

    Examples
    --------
    >>> import torch
    >>> from leakscope.releases.networks.training import losses
    >>> losses(torch.zeros(2, 4), torch.tensor([0, 3]), "mse").tolist()
    [0.1875, 0.1875]
    """
    flat, true = logits.reshape(-1, logits.shape[-1]), label.reshape(-1)
    if kind == "cross_entropy":
        return cross_entropy(flat, true, reduction="none").reshape(label.shape)
    aim = (torch.arange(flat.shape[1], device=flat.device) == true[:, None]).to(flat.dtype)
    return (flat.softmax(dim=1) - aim).square().mean(dim=1).reshape(label.shape)


@dataclass(frozen=True, eq=False)
class _Epoch:
    """The points of an epoch in their order; shorter rows are filled up with what does not count."""

    order: Int[Array, "K n"]
    counts: Bool[Array, "K n"]
    moves: Moves | None
    ends: Sequence[int]  # of the batches

    @classmethod
    def drawn(cls, members: Sequence[Array], seeds: Sequence[int], epoch: int, recipe: Recipe) -> _Epoch:
        shape = len(members), max(map(len, members))
        order, counts = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=bool)
        moves = None if recipe.augment == "none" else Moves.none(*shape)
        for k, (points, seed) in enumerate(zip(members, seeds, strict=True)):
            n_points = len(points)
            order[k] = points[0]
            order[k, :n_points] = points[stream(seed, "batches", epoch).permutation(n_points)]
            counts[k, :n_points] = True
            if moves is not None:
                moves.draw(k, n_points, recipe, stream(seed, "augment", epoch))
        steps = n_batches(len(members[0]), recipe.batch)
        return cls(order, counts, moves, [*(recipe.batch * number for number in range(1, steps)), shape[1]])

    def batches(self, lesson: Lesson) -> Iterator[tuple[Tensor, Tensor, Tensor | None]]:
        """Inputs (K, b, ...), labels (K, b) and, where some do not count, shares of the mean (K, b)."""
        label = lesson.label[torch.as_tensor(self.order, device=lesson.device)]
        for start, end in zip([0, *self.ends], self.ends, strict=False):
            batch = slice(start, end)
            order, counts = self.order[:, batch], self.counts[:, batch]
            x = lesson.inputs.batch(order.reshape(-1), lesson.device).unflatten(0, order.shape)
            if self.moves is not None:
                x = moved(x, self.moves[batch])
            share = None if counts.all() else counts / counts.sum(axis=1, keepdims=True)
            weight = None if share is None else torch.as_tensor(share, dtype=torch.float32, device=lesson.device)
            yield x, label[:, batch], weight


def _trained_once(learner: Learner, optimiser: Optimiser, lesson: Lesson, epoch: _Epoch) -> Float[Array, " K"]:
    """One pass over the data; the mean loss of each model as it went by."""
    n_points = torch.as_tensor(epoch.counts.sum(axis=1), device=lesson.device)
    total = torch.zeros(len(n_points), device=lesson.device)
    size = lesson.recipe.batch
    for number, (x, label, weight) in enumerate(epoch.batches(lesson)):
        with torch.autocast(lesson.device.type, torch.bfloat16, enabled=lesson.recipe.mixed_precision):
            logits = learner.logits(x)
        each = losses(logits.float(), label, lesson.recipe.loss)
        mean = each.mean(dim=1) if weight is None else (each * weight).sum(dim=1)
        optimiser.step(torch.autograd.grad(mean.sum(), learner.parameters, materialize_grads=True))
        last = number == len(epoch.ends) - 1
        total += mean.detach() * ((n_points - number * size) if last else size)
    return (total / n_points).cpu().numpy().astype(float)


def _learner(
    build: Callable[[int], nn.Module], architecture: Architecture, lesson: Lesson
) -> Callable[[Sequence[nn.Module]], Learner]:
    """How several networks are trained; one at a time where ``vmap`` has no rule for what they do."""
    if architecture.kind == "stack":
        return Stack
    if architecture.kind == "one":
        return alone
    try:
        with seeded(0, lesson.device):  # a trial; dropout draws
            modules = [build(seed).to(lesson.device).train() for seed in (0, 1)]
            points = lesson.inputs.batch(np.zeros(4, dtype=np.int64), lesson.device).unflatten(0, (2, 2))
            Vmapped(modules).logits(points).sum().backward()
    except Exception:  # the network is the user's: it may raise anything
        return alone
    return Vmapped


def _too_large(lesson: Lesson) -> str:
    return (
        f"{lesson.name}: memory does not suffice to train one network with batches of {lesson.recipe.batch} points; "
        "give a smaller batch"
    )
