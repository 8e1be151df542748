"""Loops of users with other optimizers, frozen layers, adapters, and Opacus' other ways: what is found in each.

Digits, epsilon = 4 at delta = 1e-5. A right training is accused by each of the six tests with probability at most 1e-5.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn.functional import cross_entropy

from leakbound.auditing.claim_tests import OF_NOISE, OF_STEPS
from leakbound.auditing.noise_tests import StepNoise, noise_tests, record_notes
from leakbound.core.games import canaries
from leakbound.core.types import Points
from leakbound.dpsgd.canaries import dirac
from leakbound.dpsgd.config import DpSgd
from leakbound.dpsgd.diagnostics import StepDiagnostics
from leakbound.dpsgd.network import PrivateNetwork, without_opacus_warnings
from leakbound.dpsgd.step_level import StepLevel
from tests.networks.training_privately import poisson, split

pytestmark = [
    pytest.mark.filterwarnings("ignore:Full backward hook:UserWarning"),
    pytest.mark.filterwarnings("ignore:Secure RNG:UserWarning"),
]
N_CANARIES = 200
CLAIMED = DpSgd(1.094835308491344, 1.0, 0.05, 200)  # epsilon = 4 at delta = 1e-5
SHORT = replace(CLAIMED, steps=20)
WANTED = [
    "step_dot",
    "step_norm",
    "step_in",
    "step_noise",
    "step_tensors",
    "step_fresh",
    "step_batches",
    "step_records",
]


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 10))


def frozen() -> nn.Sequential:
    """The first layer keeps its first weights."""
    made = network()
    made[0].requires_grad_(False)
    return made


class Adapter(nn.Module):
    """A frozen layer and a product of two thin matrices."""

    def __init__(self, layer: nn.Linear, rank: int = 4) -> None:
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.down = nn.Linear(layer.in_features, rank, bias=False)
        self.up = nn.Linear(rank, layer.out_features, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x) + self.up(self.down(x))


def adapters() -> nn.Sequential:
    made = network()
    return nn.Sequential(Adapter(made[0]), made[1], Adapter(made[2]))


@dataclass(frozen=True)
class Loop:
    """Plain PyTorch with an optimizer of its own."""

    optimizer: Callable[..., torch.optim.Optimizer]
    dpsgd: DpSgd = SHORT
    noise: float = 1.0  # of the claimed one
    clip: float = 1.0

    def __call__(self, module: nn.Module, x: Tensor, y: Tensor, follow: Callable[..., Any], seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        named = {name: each for name, each in module.named_parameters() if each.requires_grad}
        optimizer = self.optimizer(list(named.values()))
        normaliser = self.dpsgd.sample_rate * len(x)
        clip, deviation = self.clip * self.dpsgd.clip, self.noise * self.dpsgd.noise_multiplier * self.dpsgd.clip

        def loss(values, point, label):
            return cross_entropy(functional_call(module, values, (point[None],)), label[None])

        each = vmap(grad(loss), in_dims=(None, 0, 0))
        with follow(optimizer, normaliser, batch=lambda: chosen):
            for chosen in poisson(len(x), self.dpsgd.sample_rate, self.dpsgd.steps, generator):
                gradients = each({name: value.detach() for name, value in named.items()}, x[chosen], y[chosen])
                flat = torch.cat([value.flatten(1) for value in gradients.values()], dim=1)
                total = (flat * (clip / flat.norm(dim=1, keepdim=True)).clamp(max=1.0)).sum(0)
                total = total + deviation * torch.randn(len(total), generator=generator)
                parts = (total / normaliser).split([value.numel() for value in named.values()])
                for parameter, part in zip(named.values(), parts, strict=True):
                    parameter.grad = part.view_as(parameter)
                optimizer.step()


@dataclass(frozen=True)
class OpacusLoop:
    """Opacus with its own loader, ghost clipping or DDP of one process; it does not tell its batches."""

    ghost: bool = False
    distributed: bool = False
    dpsgd: DpSgd = SHORT
    noise: float = 1.0
    clip: float = 1.0

    def __call__(self, module: nn.Module, x: Tensor, y: Tensor, follow: Callable[..., Any], seed: int) -> None:
        with one_process() if self.distributed else nullcontext(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._train(module, x, y, follow, seed)

    def _train(self, module: nn.Module, x: Tensor, y: Tensor, follow: Callable[..., Any], seed: int) -> None:
        from opacus import PrivacyEngine
        from opacus.distributed import DifferentiallyPrivateDistributedDataParallel
        from torch.utils.data import DataLoader, TensorDataset

        torch.manual_seed(seed)
        wrapped = DifferentiallyPrivateDistributedDataParallel(module) if self.distributed else module
        optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.5)
        n_batches = round(1 / self.dpsgd.sample_rate)
        loader = DataLoader(TensorDataset(x, y), batch_size=math.ceil(len(x) / n_batches))
        criterion: Any = nn.CrossEntropyLoss()
        words: dict[str, Any] = {
            "module": wrapped,
            "optimizer": optimizer,
            "data_loader": loader,
            "noise_multiplier": self.noise * self.dpsgd.noise_multiplier / self.clip,
            "max_grad_norm": self.clip * self.dpsgd.clip,
        }
        engine = PrivacyEngine()
        if self.ghost:
            private, private_optimizer, criterion, loader = engine.make_private(
                **words, criterion=criterion, grad_sample_mode="ghost"
            )
        else:
            private, private_optimizer, loader = engine.make_private(**words)
        n_steps = 0
        with follow(private_optimizer, private_optimizer.expected_batch_size):
            while n_steps < self.dpsgd.steps:
                for features, label in loader:
                    private_optimizer.zero_grad()
                    criterion(private(features), label).backward()
                    private_optimizer.step()
                    n_steps += 1
                    if n_steps == self.dpsgd.steps:
                        break


class one_process:  # noqa: N801
    """A group of one process, without a network."""

    def __enter__(self) -> None:
        store = torch.distributed.HashStore()
        torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)

    def __exit__(self, *_: Any) -> None:
        torch.distributed.destroy_process_group()


SGD = partial(torch.optim.SGD, lr=0.5)
LOOPS: dict[str, tuple[Callable[[], nn.Module], Any]] = {
    "Adam": (network, Loop(partial(torch.optim.Adam, lr=0.01))),
    "AdamW": (network, Loop(partial(torch.optim.AdamW, lr=0.01, weight_decay=0.1))),
    "momentum": (network, Loop(partial(torch.optim.SGD, lr=0.1, momentum=0.9, weight_decay=0.01))),
    "frozen layer": (frozen, Loop(SGD)),
    "adapters": (adapters, Loop(SGD)),
    "adapters, Adam": (adapters, Loop(partial(torch.optim.Adam, lr=0.01))),
    "ghost clipping": (network, OpacusLoop(ghost=True)),
    "DDP": (network, OpacusLoop(distributed=True)),
}


@pytest.fixture(scope="module")
def digits() -> Points:
    X, y = (np.asarray(array) for array in load_digits(return_X_y=True))
    return Points(X[:600].astype(np.float32) / 16, y[:600], digest="digits")


def reasons(digits: Points, name: str, seed: int, **changed: Any) -> list[str]:
    """The ids of the reasons that one training is refused for."""
    make, train = LOOPS[name]
    train = replace(train, **changed)
    release = PrivateNetwork(make, train.dpsgd, references=2, train=train)
    chosen = dirac(digits, N_CANARIES, seed, release=release)
    game = canaries(len(chosen.points), chosen.numbers, 1, seed=seed)
    watched = chosen.watched_by(release)
    observed = watched.observe(chosen.points, game.member, np.array([seed]), WANTED)
    signals, shown = split(game, observed)
    total, steps = StepNoise.of(shown), StepLevel.of(signals, train.dpsgd)
    assert total is not None
    assert (steps is None) == isinstance(train, OpacusLoop)  # which does not tell its batches
    found = ["too_little_noise"] if total.testable and total.p_value() < OF_NOISE else []
    found += ["steps_reveal_more"] if steps is not None and steps.p_value() < OF_STEPS else []
    tests = noise_tests(shown, signals, train.dpsgd, watched.tensor_names(), OF_NOISE)
    assert len(tests) == (5 if isinstance(train, OpacusLoop) else 6)
    return found + [test.reason.id for test in tests if test.log_p < math.log(OF_NOISE)]


FEW = ["Adam", "adapters"]


def by_day_and_night(names: Any) -> list[Any]:
    return [name if name in FEW else pytest.param(name, marks=pytest.mark.slow) for name in names]


@pytest.mark.parametrize("name", by_day_and_night(LOOPS))
class TestLoops:
    def test_a_right_one_is_not_accused(self, digits, name):
        assert reasons(digits, name, 0) == []

    def test_noise_that_is_left_out_is_found(self, digits, name):
        found = reasons(digits, name, 0, noise=1e-3)
        assert {"too_little_noise", "too_little_noise_in_tensor", "noise_repeated", "noise_missing_in_step"} & {*found}

    def test_twice_the_clipping_norm_is_found(self, digits, name):
        assert {"record_adds_more", "parts_clipped_apart"} & {*reasons(digits, name, 0, clip=2.0)}


@pytest.mark.parametrize(("name", "said"), [("Adam", True), ("frozen layer", False)])
def test_what_is_read_as_a_gradient_is_said(digits, name, said):
    make, train = LOOPS[name]
    release = PrivateNetwork(make, train.dpsgd, watched=(0, 1), references=2, train=train)
    game = canaries(len(digits), np.array([0, 1]), 1, seed=0)
    seen = release.observe(digits, game.member, np.array([0]), ["step_records"])
    notes = record_notes(StepDiagnostics.of(seen))
    assert any("that nothing else changes the parameters is not tested" in note for note in notes) == said


def test_what_opacus_says_in_each_training_is_kept_back_and_other_warnings_are_not():
    with without_opacus_warnings():
        warnings.warn("Secure RNG turned off. This is perfectly fine for experimentation", stacklevel=1)
        with pytest.warns(UserWarning, match="diverges"):
            warnings.warn("the loss diverges", stacklevel=1)


def test_frozen_parameters_that_change_are_refused(digits):
    def train(module, x, y, follow, seed):
        LOOPS["frozen layer"][1](module, x, y, follow, seed)
        with torch.no_grad():
            module[0].weight += 1

    release = PrivateNetwork(frozen, SHORT, watched=(0, 1), references=2, train=train)
    with pytest.raises(ValueError, match=r"dpsgd: the training changed the frozen parameters 0\.weight"):
        release.observe(digits, np.ones((1, len(digits)), dtype=bool), np.array([0]), ["step_noise"])


@pytest.mark.nightly
@pytest.mark.parametrize(("changed", "fewest"), [({}, 0), ({"noise": 1e-3}, 20), ({"clip": 2.0}, 18)])
@pytest.mark.parametrize("name", LOOPS)
def test_in_20_runs(digits, name, changed, fewest):
    found = sum(bool(reasons(digits, name, seed, **changed)) for seed in range(20))
    print(name, changed, found)
    assert found >= fewest
    assert fewest or found == 0
