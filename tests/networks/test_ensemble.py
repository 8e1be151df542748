"""Models side by side are the models one by one: answers, gradients, steps."""

from __future__ import annotations

import copy
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.optim.lr_scheduler import CosineAnnealingLR, StepLR

from leakbound.core.seeds import stream
from leakbound.releases.networks.devices import seeded
from leakbound.releases.networks.ensemble import BatchedEnsemble, SingleModel, VmapEnsemble, is_stack
from leakbound.releases.networks.optimisers import Optimiser
from leakbound.releases.networks.recipe import Recipe
from leakbound.releases.networks.training import losses, n_batches, train

from .branches import Branches
from .conftest import Convolutions, stack

KINDS = [(BatchedEnsemble, stack), (VmapEnsemble, stack), (VmapEnsemble, Branches)]
side_by_side = pytest.mark.parametrize(("kind", "make"), KINDS)


def made(make, n=4):
    modules = []
    for seed in range(n):
        with seeded(seed):
            modules.append(make())
    return modules


@side_by_side
def test_answers_and_gradients_are_those_of_single_models(kind, make):
    modules = made(make)
    x, label = torch.randn(4, 9, 6, generator=torch.Generator().manual_seed(0)), torch.arange(36).reshape(4, 9) % 3
    learner = kind(modules)
    logits = learner.logits(x)
    gradients = torch.autograd.grad(losses(logits, label, "cross_entropy").mean(1).sum(), learner.parameters)
    for number, module in enumerate(modules):
        alone = module(x[number])
        torch.testing.assert_close(logits[number], alone, rtol=1e-5, atol=1e-6)
        own = torch.autograd.grad(cross_entropy(alone, label[number]), list(module.parameters()))
        for together, single in zip(gradients, own, strict=True):
            torch.testing.assert_close(together[number], single, rtol=1e-5, atol=1e-6)


OPTIMISERS = [
    (Recipe(lr=0.01), torch.optim.Adam, {}),
    (Recipe(lr=0.01, weight_decay=0.1), torch.optim.Adam, {"weight_decay": 0.1}),
    (Recipe(optimiser="adamw", lr=0.01, weight_decay=0.1), torch.optim.AdamW, {"weight_decay": 0.1}),
    (Recipe(optimiser="sgd", lr=0.01), torch.optim.SGD, {}),
    (
        Recipe(optimiser="sgd", lr=0.01, momentum=0.9, weight_decay=0.1),
        torch.optim.SGD,
        {"momentum": 0.9, "weight_decay": 0.1},
    ),
]


@pytest.mark.parametrize(("recipe", "reference", "words"), OPTIMISERS)
def test_steps_are_those_of_pytorch(recipe, reference, words):
    """Also where a gradient lies transposed in memory, as that of a batched product does."""
    generator = torch.Generator().manual_seed(0)
    ours = [torch.randn(3, 4, 5, generator=generator), torch.randn(7, generator=generator)]
    theirs = [each.clone().requires_grad_() for each in ours]
    optimiser, other = Optimiser(recipe, ours), reference(theirs, lr=0.01, **words)
    for _ in range(5):
        slopes = [torch.randn(3, 5, 4, generator=generator).transpose(1, 2), torch.randn(7, generator=generator)]
        optimiser.step(slopes)
        for each, slope in zip(theirs, slopes, strict=True):
            each.grad = slope.contiguous()
        other.step()
    for one, two in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, two.detach(), rtol=1e-6, atol=1e-6)


def reference_training(module, data, members, seed, recipe, optimiser_of=torch.optim.Adam, schedule_of=None):
    """The plainest loop there is, with the batches of the row's seed."""
    optimiser = optimiser_of(module.parameters(), lr=recipe.lr)
    schedule = schedule_of(optimiser) if schedule_of else None
    for epoch in range(recipe.epochs):
        order = members[stream(seed, "batches", epoch).permutation(len(members))]
        steps = n_batches(len(order), recipe.batch)
        for start in range(steps):
            end = None if start == steps - 1 else (start + 1) * recipe.batch
            batch = order[start * recipe.batch : end]
            loss = cross_entropy(module(data.inputs.batch(batch)), data.label[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        if schedule:
            schedule.step()


@pytest.mark.parametrize(
    ("words", "schedule_of"),
    [
        ({"schedule": "step", "decay_epochs": 2}, partial(StepLR, step_size=2, gamma=0.1)),
        ({"schedule": "step", "decay_epochs": 1, "decay": 0.5}, partial(StepLR, step_size=1, gamma=0.5)),
        ({"schedule": "cosine"}, partial(CosineAnnealingLR, T_max=4)),
    ],
)
@pytest.mark.parametrize(
    ("optimiser", "optimiser_of"),
    [("adam", torch.optim.Adam), ("sgd", torch.optim.SGD), ("adamw", partial(torch.optim.AdamW, weight_decay=0.0))],
)
def test_a_falling_step_size_is_that_of_pytorch(optimiser, optimiser_of, words, schedule_of, training_data_of):
    recipe = Recipe(optimiser=optimiser, epochs=4, batch=16, lr=0.01, **words)
    data, members = training_data_of(recipe), [np.arange(50), np.arange(60, 110)]
    modules = made(stack)[:2]
    singles = copy.deepcopy(modules)
    train(BatchedEnsemble(modules), data, members, [10, 11])
    for module, single, own, seed in zip(modules, singles, members, (10, 11), strict=True):
        reference_training(single, data, own, seed, recipe, optimiser_of, schedule_of)
        for trained, expected in zip(module.parameters(), single.parameters(), strict=True):
            torch.testing.assert_close(trained, expected, rtol=2e-4, atol=2e-5)


@side_by_side
@pytest.mark.parametrize("sizes", [(50, 50, 50, 50), (49, 45, 42, 38), (33, 31, 18, 20)])
def test_a_short_training_is_that_of_a_plain_loop(kind, make, sizes, training_data_of):
    """Three epochs, before rounding grows: also where the last batches differ in size."""
    recipe = Recipe(epochs=3, batch=16, lr=0.01)
    data, rng = training_data_of(recipe), np.random.default_rng(0)
    members = [np.sort(rng.permutation(120)[:n]) for n in sizes]
    assert len({n_batches(n, 16) for n in sizes}) == 1
    modules = made(make)
    singles = copy.deepcopy(modules)
    train(kind(modules), data, members, [10, 11, 12, 13])
    for module, single, own, seed in zip(modules, singles, members, (10, 11, 12, 13), strict=True):
        reference_training(single, data, own, seed, recipe)
        for trained, expected in zip(module.parameters(), single.parameters(), strict=True):
            torch.testing.assert_close(trained, expected, rtol=2e-4, atol=2e-5)


@side_by_side
@pytest.mark.slow
def test_models_stop_by_themselves(kind, make, training_data_of):
    """A model that stops early is the model that is trained alone; the others go on."""
    recipe = Recipe(epochs=12, batch=16, lr=0.02, stop=0.02)
    data, members = training_data_of(recipe), [np.arange(start, start + 48) for start in (0, 20, 40, 60)]
    modules = made(make)
    singles = copy.deepcopy(modules)
    train(kind(modules), data, members, [0, 1, 2, 3])
    lengths = []
    for number, (module, single) in enumerate(zip(modules, singles, strict=True)):
        train(SingleModel(single), data, members[number : number + 1], [number])
        lengths.append(stopping_epoch(made(make)[number], data, members[number], number))
        for trained, expected in zip(module.parameters(), single.parameters(), strict=True):
            torch.testing.assert_close(trained, expected, rtol=1e-3, atol=1e-4)
    assert len(set(lengths)) > 1, "all models stop in the same epoch: the test would see nothing"


def stopping_epoch(module, data, members, seed):
    """The fewest epochs whose training ends where that of the recipe does."""
    whole = copy.deepcopy(module)
    train(SingleModel(whole), data, [members], [seed])
    for epochs in range(1, data.recipe.epochs + 1):
        part, recipe = copy.deepcopy(module), Recipe(epochs=epochs, batch=16, lr=0.02)
        train(SingleModel(part), type(data)(data.inputs, data.label, recipe, data.device, ""), [members], [seed])
        if all(torch.equal(one, two) for one, two in zip(part.parameters(), whole.parameters(), strict=True)):
            return epochs
    raise AssertionError("no number of epochs gives the same parameters")


@pytest.mark.parametrize("kind", [BatchedEnsemble, VmapEnsemble])
def test_dropout_differs_between_models(kind):
    modules = made(lambda: stack(64, dropout=0.5), 1) * 2
    for module in modules:
        module.train()
    with seeded(0):
        first, second = kind(modules).logits(torch.ones(2, 3, 6))
    assert not torch.allclose(first, second)
    assert not torch.allclose(first[0], first[1])


def test_what_is_a_stack():
    assert is_stack(stack())
    assert is_stack(nn.Linear(3, 2))
    assert not is_stack(Branches())
    assert not is_stack(Convolutions())
    assert not is_stack(nn.ReLU())
    assert not is_stack(nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3)))
    shared = nn.Linear(3, 3)
    assert not is_stack(nn.Sequential(shared, nn.ReLU(), shared))


def test_batches_are_counted():
    assert [n_batches(n, 16) for n in (1, 2, 16, 17, 18, 32, 33, 34)] == [1, 1, 1, 1, 2, 2, 2, 3]
    assert n_batches(3, 1) == 3
