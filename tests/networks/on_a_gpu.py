"""Networks on a real GPU of CUDA: ``python -m pytest tests/networks/on_a_gpu.py`` on a machine that has one.

No other test needs a GPU, and none of these is collected without being named.
"""

from __future__ import annotations

import os
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

import leakbound as ls
from leakbound.core import checkpoints
from leakbound.core.checkpoints import kept_in
from leakbound.core.types import Points
from leakbound.dpsgd.config import DpSgd
from leakbound.dpsgd.network import PrivateNetwork
from leakbound.releases.networks import training
from leakbound.releases.networks.devices import working
from leakbound.releases.networks.network import Network
from leakbound.releases.networks.recipe import Recipe
from leakbound.runtime.checkpoints import StoredCheckpoints
from leakbound.runtime.cluster import connected
from leakbound.runtime.machine import this_machine
from leakbound.runtime.store import Store, key

from .branches import Branches
from .conftest import stack
from .training_privately import Training

assert torch.cuda.is_available(), "these tests need a GPU that PyTorch can use"

WANT = ["loss", "log_odds", "correct", "gradient_norm"]


class Images(nn.Module):
    """Convolutions, batch norm, dropout and pooling: one model at a time."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1), nn.BatchNorm2d(2 * width), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
            nn.Flatten(), nn.Dropout(0.2), nn.Linear(2 * width, 4),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


def convolutions() -> nn.Module:
    """Without batch norm and dropout: on a GPU several train side by side."""
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.MaxPool2d(2), nn.Tanh(), nn.Flatten(), nn.Linear(8 * 64, 4)
    )  # fmt: skip


def points_of(shape: tuple[int, ...], n: int = 120, classes: int = 3) -> Points:
    rng = np.random.default_rng(1)
    return Points(rng.normal(size=(n, *shape)).astype(np.float32), rng.integers(classes, size=n), digest=f"{shape}{n}")


CASES = {
    "batched products": (stack, points_of((6,)), {}),
    "vmap": (partial(Branches, dropout=0.2), points_of((6,)), {"optimiser": "sgd", "lr": 0.1, "momentum": 0.9}),
    "images": (Images, points_of((3, 16, 16), classes=4), {"augment": "flip_crop", "shift": 2}),
    "convolutions side by side": (convolutions, points_of((3, 16, 16), classes=4), {}),
    "bfloat16": (Images, points_of((3, 16, 16), classes=4), {"mixed_precision": True}),
}
each_kind = pytest.mark.parametrize(("make", "points", "words"), CASES.values(), ids=CASES)


def observed(make, points: Points, device: str = "cuda", n: int = 4, **words) -> dict[str, np.ndarray]:
    release = Network(make, recipe=Recipe(**{"epochs": 6, "batch": 16, "device": device} | words))
    rng = np.random.default_rng(2)
    member = rng.permuted(np.tile(np.arange(len(points)) % 2 == 0, (n, 1)), axis=1)
    return dict(release.observe(points, member, np.arange(n), WANT))


def same_bytes(one, other) -> bool:
    return one.keys() == other.keys() and all(one[name].tobytes() == other[name].tobytes() for name in one)


@each_kind
def test_the_same_plan_gives_the_same_bytes_twice(make, points, words):
    first = observed(make, points, **words)
    assert np.ptp(first["loss"], axis=0).min() > 0  # the models differ
    assert same_bytes(first, observed(make, points, **words))


@pytest.mark.parametrize("case", ["batched products", "vmap", "convolutions side by side"])
def test_it_computes_what_the_processor_computes(case):
    """Two epochs without dropout, whose numbers a GPU draws in another way: the last digits of a float32 differ."""
    make, points, words = CASES[case]
    make = Branches if isinstance(make, partial) else make
    gpu, cpu = (observed(make, points, device, **words | {"epochs": 2}) for device in ("cuda", "cpu"))
    for name in ("loss", "log_odds", "gradient_norm"):
        np.testing.assert_allclose(gpu[name], cpu[name], rtol=2e-3, atol=2e-4)


def test_convolutions_are_in_float32():
    """Not in TF32, cuDNN's default, which has 10 bits of the mantissa."""
    convolution = nn.Conv2d(64, 64, 3, bias=False).cuda()
    x = torch.randn(8, 64, 16, 16, generator=torch.Generator().manual_seed(0)).cuda()
    exact = nn.functional.conv2d(x.cpu().double(), convolution.weight.detach().cpu().double())
    with working(Recipe(device="cuda")), torch.no_grad():
        error = (convolution(x).cpu().double() - exact).norm() / exact.norm()
    assert error < 2e-6


def test_settings_of_the_user_are_restored():
    before = torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.allow_tf32
    with working(Recipe(device="cuda")):
        assert torch.are_deterministic_algorithms_enabled()
        assert not torch.backends.cudnn.allow_tf32
    assert (torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.allow_tf32) == before


@pytest.mark.parametrize("case", ["batched products", "vmap", "images"])
def test_a_training_goes_on_from_its_checkpoint_with_the_same_bytes(case, monkeypatch, tmp_path):
    class Killed(BaseException):
        pass

    make, points, words = CASES[case]
    n = 1 if case == "images" else 4
    whole = observed(make, points, n=n, **words)
    monkeypatch.setattr(checkpoints, "EVERY", 0.0)
    monkeypatch.setattr(checkpoints, "MOST_OF_TIME", np.inf)
    one_epoch, trained = training._train_epoch, []

    def killed_after_three(*arguments):
        if len(trained) == 3:
            trained.append("killed")
            raise Killed
        trained.append("epoch")
        return one_epoch(*arguments)

    monkeypatch.setattr(training, "_train_epoch", killed_after_three)
    place = StoredCheckpoints(Store(str(tmp_path)), key(case=case))
    with kept_in(place):
        with pytest.raises(Killed):
            observed(make, points, n=n, **words)
        resumed = observed(make, points, n=n, **words)
    assert trained == ["epoch"] * 3 + ["killed"] + ["epoch"] * 3
    assert same_bytes(whole, resumed)


@pytest.mark.parametrize("engine", ["two processes", "dask"])
def test_workers_that_share_the_card_give_the_bytes_of_one_process(engine, tmp_path):
    points = CASES["images"][1]
    network = Network(Images, recipe=Recipe(epochs=2, batch=16, device="auto"), rows=2)

    def findings(store: str, **words) -> str:
        report = ls.audit(network, points.x, points.y, n_models=8, seed=1, store=str(tmp_path / store), **words)
        return report.to_json()

    alone = findings("alone", n_jobs=1)
    if engine == "dask":
        with connected("local:2"):
            pass  # the extra is there
        assert findings("dask", cluster="local:2") == alone
    else:
        assert findings("two", n_jobs=2) == alone


class OnTheCard(Training):
    """A user's loop whose noise is drawn on the processor."""

    def update(self, gradients: torch.Tensor, normaliser: float, generator: torch.Generator) -> torch.Tensor:
        return super().update(gradients.cpu(), normaliser, generator).cuda()


@pytest.mark.parametrize("loop", ["leakbound's", "PyTorch's"])
def test_dpsgd_is_trained_and_observed_on_the_card(loop):
    rng = np.random.default_rng(0)
    points = Points(rng.normal(size=(200, 16)).astype(np.float32), np.arange(200) % 4, digest="dpsgd")
    config = DpSgd(1.0, 1.0, 0.1, 30, 0.5)
    train = OnTheCard(config, 190) if loop == "PyTorch's" else None
    release = PrivateNetwork(partial(nn.Linear, 16, 4), config, watched=tuple(range(20)), train=train, device="cuda")
    member = np.ones((2, 200), dtype=bool)
    member[:, :20] = rng.random((2, 20)) < 0.5
    want = ["loss", "step_dot", "step_noise"]
    first, second = (release.observe(points, member, np.arange(2), want) for _ in range(2))
    assert same_bytes(dict(first), dict(second))
    assert all(np.isfinite(array).all() for array in first.values())


def test_what_does_not_fit_is_trained_in_parts():
    """The card is said to be smaller than it is: fewer models are trained side by side, with the same numbers."""
    points = points_of((6,), n=4000)
    words = {"make": partial(stack, width=2048), "points": points, "n": 8, "epochs": 1, "batch": 1000}
    whole = observed(**words)
    torch.cuda.empty_cache()
    needed = torch.cuda.max_memory_allocated()
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(0.7 * needed / total)
    try:
        in_parts = observed(**words)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    for name in WANT:
        np.testing.assert_allclose(in_parts[name], whole[name], rtol=1e-3, atol=1e-4)


def test_the_kind_of_machine_names_the_card():
    assert torch.cuda.get_device_name(0).removeprefix("NVIDIA ") in " ".join(this_machine().facts["gpus"])
    assert os.environ["CUBLAS_WORKSPACE_CONFIG"]
