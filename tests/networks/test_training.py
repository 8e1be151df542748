"""The loop: losses, augmentation, what it says when it runs away, and what it leaves alone."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils import parameters_to_vector

from leakbound.releases.networks import devices, training
from leakbound.releases.networks.architecture import Architecture, built
from leakbound.releases.networks.augmentation import Augmentation, augment
from leakbound.releases.networks.devices import seeded, with_less, working
from leakbound.releases.networks.ensemble import SingleModel
from leakbound.releases.networks.gradient_norms import gradient_norms, layers_of
from leakbound.releases.networks.recipe import Recipe
from leakbound.releases.networks.tensors import inputs_of
from leakbound.releases.networks.training import losses, train, trained

from .branches import Branches
from .conftest import Convolutions, stack


def test_losses():
    logits = torch.tensor([[0.0, np.log(3.0)], [0.0, 0.0]], dtype=torch.float32)
    label = torch.tensor([1, 0])
    torch.testing.assert_close(losses(logits, label, "cross_entropy"), torch.tensor([-np.log(0.75), np.log(2)]).float())
    torch.testing.assert_close(losses(logits, label, "mse"), torch.tensor([0.0625, 0.25]))


@pytest.mark.parametrize(
    ("down", "right", "flip"), [(0, 0, True), (2, -1, False), (-4, 4, True), (0, 3, False), (1, 1, False)]
)
def test_moves_of_an_image(down, right, flip):
    """Against the same with slices."""
    image = np.arange(2 * 6 * 7, dtype=np.float32).reshape(2, 6, 7) + 1
    augmentation = Augmentation(np.array([[flip, False]]), np.array([[[down, right], [0, 0]]]))
    made = augment(torch.from_numpy(np.stack([image, image])[None]), augmentation).numpy()[0]
    turned = image[:, :, ::-1] if flip else image
    padded = np.zeros((2, 14, 15), dtype=np.float32)
    padded[:, 4 + down : 10 + down, 4 + right : 11 + right] = turned
    np.testing.assert_array_equal(made[0], padded[:, 4:10, 4:11])
    np.testing.assert_array_equal(made[1], image)


def test_moves_are_drawn_of_the_kind_that_is_asked_for():
    for kind, shift in (("flip", None), ("crop", 4), ("flip_crop", 4), ("crop", 1), ("crop", 7)):
        augmentation = Augmentation.none(1, 400)
        augmentation.draw(0, 399, Recipe(augment=kind, shift=shift), np.random.default_rng(0))
        assert augmentation.flip.any() == ("flip" in kind)
        assert set(np.unique(augmentation.shift)) == (set(range(-shift, shift + 1)) if shift else {0})
        assert not augmentation.flip[0, 399]
        assert not augmentation.shift[0, 399].any()


def test_a_shift_is_of_crops():
    assert (Recipe(augment="crop").shift, Recipe(augment="flip").shift) == (4, None)


@pytest.mark.parametrize("make", [stack, Branches, Convolutions])
def test_mixed_precision_has_the_digits_of_bfloat16(training_data_of, make):
    """Each product errs by half of the last of 8 bits, 2^-9; more in a step for which 60 gradients nearly cancel."""
    changes = {}
    for mixed in (False, True):
        recipe = Recipe(optimiser="sgd", lr=0.1, epochs=1, batch=60, mixed_precision=mixed)
        data = training_data_of(recipe)
        if make is Convolutions:
            images = np.random.default_rng(0).normal(size=(120, 1, 8, 8)).astype(np.float32)
            data = replace(data, inputs=inputs_of(images))
        build = partial(built, make, {})
        (module,) = trained(build, Architecture.of(build(0), recipe), data, [np.arange(60)], [0])
        assert {each.dtype for each in module.parameters()} == {torch.float32}
        after, before = (parameters_to_vector(each.parameters()).detach() for each in (module, build(0)))
        changes[mixed] = after - before
    error = float((changes[True] - changes[False]).norm() / changes[False].norm())
    assert 1e-4 < error < 0.1


def test_a_loss_that_runs_away(training_data_of):
    data = training_data_of(Recipe(optimiser="sgd", lr=1e38, epochs=3))
    with pytest.raises(ValueError, match=r"^net: the training loss is not finite in epoch .*lr=1e\+38$"):
        train(SingleModel(stack()), data, [np.arange(60)], [0])


def test_the_state_of_the_process_is_left_alone(training_data_of):
    threads, precision, state = torch.get_num_threads(), torch.get_float32_matmul_precision(), torch.get_rng_state()
    recipe = Recipe(epochs=1, augment="none")
    with working(recipe):
        assert torch.get_num_threads() == 1
        train(SingleModel(stack(dropout=0.5)), training_data_of(recipe), [np.arange(60)], [0])
    assert torch.get_num_threads() == threads
    assert torch.get_float32_matmul_precision() == precision
    with pytest.raises(RuntimeError, match="inside"), working(recipe):
        raise RuntimeError("inside")
    assert torch.get_num_threads() == threads
    # making a network draws its weights: those of `stack` above, and nothing else
    torch.set_rng_state(state)
    stack(dropout=0.5)
    expected = torch.get_rng_state()
    torch.set_rng_state(state)
    module = stack(dropout=0.5)
    train(SingleModel(module), training_data_of(recipe), [np.arange(60)], [0])
    assert torch.equal(torch.get_rng_state(), expected)


def test_a_gpu_that_is_not_there(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="needs a GPU"):
        devices.device_of(Recipe(device="cuda"))
    assert devices.device_of(Recipe(device="auto")).type == "cpu"


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
    ],
)
def test_less_at_a_time_where_memory_ends(error):
    asked = []

    def work(size):
        asked.append(size)
        if size > 3:
            raise error
        return "done"

    assert with_less(work, 13, "too much") == "done"
    assert asked == [13, 6, 3]
    with pytest.raises(MemoryError, match=r"^too much$"):
        with_less(lambda size: work(size + 3), 2, "too much")


def test_other_errors_are_not_about_memory():
    with pytest.raises(RuntimeError, match="shapes"):
        with_less(lambda size: (_ for _ in ()).throw(RuntimeError("shapes")), 4, "")


def test_half_of_the_models_where_memory_ends(monkeypatch, training_data_of):
    recipe, sizes, real = Recipe(epochs=1), [], training.train

    def scarce(learner, data, members, seeds):
        sizes.append(len(members))
        if len(members) > 2:
            raise MemoryError
        real(learner, data, members, seeds)

    def build(seed):
        with seeded(seed):
            return stack()

    members = [np.arange(n, n + 60) for n in range(5)]
    architecture = Architecture.of(stack(), recipe)
    whole = trained(build, architecture, training_data_of(recipe), members, list(range(5)))
    monkeypatch.setattr(training, "train", scarce)
    halves = trained(build, architecture, training_data_of(recipe), members, list(range(5)))
    assert sizes == [5, 2, 2, 1]
    for one, two in zip(whole, halves, strict=True):
        for first, second in zip(one.parameters(), two.parameters(), strict=True):
            torch.testing.assert_close(first, second, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "make", [stack, Branches, Convolutions, lambda: nn.Sequential(nn.Linear(6, 4), nn.LayerNorm(4), nn.Linear(4, 3))]
)
@pytest.mark.parametrize("layers", ["all", "last"])
@pytest.mark.parametrize("loss", ["cross_entropy", "mse"])
def test_gradient_norms_are_those_of_single_points(make, layers, loss):
    """Against a backward pass for each point."""
    rng, module = np.random.default_rng(0), make().eval()
    shape = (7, 8, 8) if isinstance(module, Convolutions) else (7, 6)
    inputs, label = inputs_of(rng.normal(size=shape)), torch.as_tensor(rng.integers(3, size=7))
    names = layers_of(module, layers)
    norms = gradient_norms(module, inputs, label, loss=loss, layers=layers)
    assert norms.shape == (7, len(names))
    for point in range(7):
        module.zero_grad()
        losses(module(inputs.batch(np.array([point]))), label[point : point + 1], loss).sum().backward()
        for layer, name in enumerate(names):
            own = module.get_submodule(name).parameters(recurse=False)
            square = sum(float(each.grad.square().sum()) for each in own)
            np.testing.assert_allclose(norms[point, layer], np.sqrt(square), rtol=2e-4, atol=1e-7)


def test_a_layer_that_is_used_twice():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.one = nn.Linear(6, 6)
            self.two = nn.Linear(6, 3)

        def forward(self, x):
            return self.two(torch.tanh(self.one(torch.tanh(self.one(x)))))

    module, label = Twice().eval(), torch.tensor([0, 1, 2])
    inputs = inputs_of(np.random.default_rng(0).normal(size=(3, 6)))
    norms = gradient_norms(module, inputs, label)
    for point in range(3):
        module.zero_grad()
        losses(module(inputs.batch(np.array([point]))), label[point : point + 1], "cross_entropy").sum().backward()
        own = [
            sum(float(each.grad.square().sum()) for each in part.parameters()) ** 0.5
            for part in (module.one, module.two)
        ]
        np.testing.assert_allclose(norms[point], own, rtol=1e-4)


def test_layers_that_are_not_there():
    assert layers_of(Branches(), "last") == ("last",)
    assert layers_of(Branches(), ("side", "first")) == ("side", "first")
    assert layers_of(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)), ("last", "0", "all")) == ("1", "0")
    with pytest.raises(ValueError, match=r"unknown layer 'sid' \(did you mean 'side'\?\)"):
        layers_of(Branches(), "sid")
    with pytest.raises(ValueError, match="no parameters"):
        layers_of(nn.ReLU())
