"""What one record adds to a step of DP-SGD: layers that are not clipped, or clipped apart, and too large norms.

Digits, a network of 64-32-10, epsilon = 4 at delta = 1e-5. A right training is accused with probability at most 1e-5.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from leakbound.auditing.claim_tests import OF_NOISE
from leakbound.auditing.noise_tests import noise_tests, record_notes
from leakbound.core.games import canaries
from leakbound.core.reasons import words
from leakbound.core.types import Points, Signals
from leakbound.dpsgd.config import DpSgd
from leakbound.dpsgd.diagnostics import StepDiagnostics
from leakbound.dpsgd.equal_records import EqualRecords, _log_tail, chosen_record
from leakbound.dpsgd.followed_steps import FollowedStep, Rounding
from leakbound.dpsgd.gradient_rows import DenseRows
from leakbound.dpsgd.network import PrivateNetwork
from leakbound.releases.networks.tensors import inputs_of
from tests.marks import nightly
from tests.networks.training_privately import Training, poisson

# of Opacus' hooks and its loader
pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook:UserWarning", "ignore:Secure RNG:UserWarning")
NOISE = 1.094835308491344  # epsilon = 4 at delta = 1e-5
CLAIMED = DpSgd(NOISE, 1.0, 0.05, 200)
SHORT = replace(CLAIMED, steps=8)  # of the training itself; that on equal records takes no more
TENSORS = (2048, 32, 320, 10)
NAMES = ["0.weight", "0.bias", "2.weight", "2.bias"]
LAYERS = (2080, 330)


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 10))


def cut(rows: Tensor, norm: float) -> Tensor:
    return rows * (norm / rows.norm(dim=1, keepdim=True).clamp(min=1e-12)).clamp(max=1.0)


def by_layers(rows: Tensor, norm: float) -> Tensor:
    """The layers of the network are clipped one by one; what was added for canaries, if anything, too."""
    sizes = [*LAYERS, rows.shape[1] - sum(LAYERS)]
    return torch.cat([cut(part, norm) for part in rows.split(sizes, dim=1)], dim=1)


def only_added(rows: Tensor, norm: float) -> Tensor:
    """The layer that is added for canaries is clipped, the network's own ones are not."""
    own, added = rows[:, : sum(LAYERS)], rows[:, sum(LAYERS) :]
    return torch.cat([own, cut(added, norm)], dim=1)


CLIPPINGS: dict[str, Callable[[Tensor, float], Tensor]] = {
    "own layers not clipped": only_added,
    "each layer at C": by_layers,
    "at 2C": lambda rows, norm: cut(rows, 2 * norm),
    "at 1.3C": lambda rows, norm: cut(rows, 1.3 * norm),
    "right": cut,
    "normalised to C": lambda rows, norm: norm * rows / rows.norm(dim=1, keepdim=True).clamp(min=1e-12),
    "at C/2": lambda rows, norm: cut(rows, norm / 2),
}
MISTAKES = ["own layers not clipped", "each layer at C", "at 2C", "at 1.3C"]
RIGHT = ["right", "normalised to C", "at C/2"]


@dataclass(frozen=True)
class Loop(Training):
    """Plain PyTorch with a clipping of its own."""

    clipping: str = "right"

    def update(self, gradients: Tensor, normaliser: float, generator: torch.Generator) -> Tensor:
        deviation = self.dpsgd.noise_multiplier * self.dpsgd.clip
        total = CLIPPINGS[self.clipping](gradients, self.dpsgd.clip).sum(0)
        return (total + deviation * torch.randn(len(total), generator=generator)) / normaliser


@dataclass(frozen=True)
class OpacusLoop:
    """Opacus, whose optimizer clips in a way of its own; it does not tell its batches."""

    dpsgd: DpSgd
    clipping: str = "right"

    def __call__(self, module: nn.Module, x: Tensor, y: Tensor, follow: Callable[..., Any], seed: int) -> None:
        from opacus import GradSampleModule
        from opacus.optimizers import DPOptimizer

        clip, clipping = self.dpsgd.clip, CLIPPINGS[self.clipping]

        class Own(DPOptimizer):
            def clip_and_accumulate(self) -> None:
                parameters: list[Any] = self.params  # each with an attribute of Opacus' own
                rows = torch.cat([each.grad_sample.flatten(1) for each in parameters], dim=1)
                sizes = [each.numel() for each in parameters]
                for parameter, part in zip(parameters, clipping(rows, clip).sum(0).split(sizes), strict=True):
                    parameter.summed_grad = part.view_as(parameter)

        generator = torch.Generator().manual_seed(seed)
        private = GradSampleModule(module)
        optimizer = Own(
            torch.optim.SGD(private.parameters(), lr=self.dpsgd.lr),
            noise_multiplier=self.dpsgd.noise_multiplier,
            max_grad_norm=clip,
            expected_batch_size=round(self.dpsgd.sample_rate * len(x)),
            generator=generator,
        )
        with follow(optimizer, optimizer.expected_batch_size):
            for chosen in poisson(len(x), self.dpsgd.sample_rate, self.dpsgd.steps, generator):
                optimizer.zero_grad()
                cross_entropy(private(x[chosen]), y[chosen]).backward()
                optimizer.step()


@dataclass(frozen=True)
class Sum:
    """The sum of leakbound's own training, with another clipping."""

    clipping: str

    def __call__(self, parts, dpsgd, noise, normaliser):
        total = dpsgd.noise_multiplier * dpsgd.clip * noise
        for rows in parts:
            dense = rows.columns(torch.arange(sum(TENSORS)))
            total = total + CLIPPINGS[self.clipping](dense, dpsgd.clip).sum(0)
        return total


@pytest.fixture(scope="module")
def digits() -> Points:
    X, y = (np.asarray(array) for array in load_digits(return_X_y=True))
    return Points(X[:1000].astype(np.float32) / 16, y[:1000], digest="digits")


def release(whose: str, clipping: str, dpsgd: DpSgd = SHORT) -> PrivateNetwork:
    """A training of 1,000 digits whose gradients are clipped in some way."""
    made = PrivateNetwork(network, dpsgd, watched=(0, 1), references=2)
    if whose == "leakbound":
        return replace(made, aggregate=Sum(clipping))
    if whose == "opacus":
        return replace(made, train=OpacusLoop(dpsgd, clipping))
    return replace(made, train=Loop(dpsgd, 1000, tells_batches=whose == "plain, told", clipping=clipping))


def seen(digits: Points, trained: PrivateNetwork, seed: int) -> StepDiagnostics:
    game = canaries(len(digits), np.array([0, 1]), 1, seed=seed)
    return StepDiagnostics.of(trained.observe(digits, game.member, np.array([seed]), ["step_records"]))


NO_SIGNALS = Signals(canaries(2, np.array([1]), 1, seed=0), None, {})


def test_of(shown: StepDiagnostics):
    (test,) = noise_tests(shown, NO_SIGNALS, CLAIMED, NAMES, OF_NOISE)
    return test


test_of.__test__ = False  # type: ignore[attr-defined]


def n_accused(digits: Points, trained: PrivateNetwork, n_runs: int, first: int = 0) -> int:
    tests = [test_of(seen(digits, trained, first + seed)) for seed in range(n_runs)]
    return sum(test.log_p < math.log(OF_NOISE) for test in tests)


class TestMistakes:
    @pytest.mark.parametrize("mistake", MISTAKES)
    @pytest.mark.parametrize("whose", ["leakbound", "plain, told"])
    def test_are_found(self, digits, whose, mistake):
        assert n_accused(digits, release(whose, mistake), 1) == 1

    @pytest.mark.slow
    @pytest.mark.parametrize("mistake", MISTAKES)
    def test_are_found_with_opacus_from_the_rows_that_pass_the_network(self, digits, mistake):
        assert n_accused(digits, release("opacus", mistake), 1) == 1

    @pytest.mark.nightly
    @pytest.mark.parametrize("mistake", MISTAKES)
    @pytest.mark.parametrize("whose", ["leakbound", "plain, told", "opacus"])
    def test_are_found_in_18_of_20_runs(self, digits, whose, mistake):
        found = n_accused(digits, release(whose, mistake, CLAIMED), 20)
        print(whose, mistake, found)
        assert found >= 18

    @pytest.mark.nightly
    @pytest.mark.parametrize(
        ("mistake", "fewest", "most"),
        [("own layers not clipped", 18, 20), ("at 2C", 18, 20), ("each layer at C", 0, 10), ("at 1.3C", 0, 10)],
    )
    def test_of_20_runs_that_do_not_tell_their_batches(self, digits, mistake, fewest, most):
        """By vmap, each record passes the network alone: how many are in a batch is not known."""
        found = n_accused(digits, release("plain", mistake, CLAIMED), 20)
        print("plain, not told", mistake, found)
        assert fewest <= found <= most

    @pytest.mark.parametrize(
        ("mistake", "added"), [("each layer at C", math.sqrt(2)), ("at 2C", 2.0), ("at 1.3C", 1.3)]
    )
    def test_the_reason_says_how_much_a_record_adds(self, digits, mistake, added):
        test = test_of(seen(digits, release("plain, told", mistake), 1))
        assert test.reason.values["added"] == pytest.approx(added, rel=0.1)
        assert "at most 1 is claimed" in words(test.reason)

    def test_it_does_not_matter_at_which_scale_the_noise_is(self, digits):
        """With twice the noise, gradients of twice the length keep the promise; with that of the claim they do not."""
        loud = replace(SHORT, noise_multiplier=2 * SHORT.noise_multiplier)
        kept = replace(release("plain, told", "at 2C"), train=Loop(loud, 1000, True, "at 2C"))
        assert n_accused(digits, kept, 2) == 0


class TestRightOnes:
    @pytest.mark.parametrize("clipping", RIGHT)
    @pytest.mark.parametrize("whose", ["leakbound", "plain", "plain, told"])
    def test_are_not_accused(self, digits, whose, clipping):
        assert n_accused(digits, release(whose, clipping), 2, 100) == 0

    @pytest.mark.nightly
    @pytest.mark.parametrize("clipping", RIGHT)
    @pytest.mark.parametrize("whose", ["leakbound", "plain", "plain, told", "opacus"])
    def test_are_accused_in_none_of_100_runs(self, digits, whose, clipping):
        """The p-value of a right training is at least that of its largest bound: uniform, but for the corrections."""
        assert n_accused(digits, release(whose, clipping), 100, 1000) == 0

    @pytest.mark.parametrize("told", [False, True])
    @pytest.mark.parametrize("n_runs", [25, nightly(4000)])
    def test_the_level_is_kept_where_every_copy_adds_the_whole_clipping_norm(self, n_runs, told):
        """A level of 5 %: more are accused than the binomial distribution allows but for 1e-6, were the level not kept.

        A record is drawn with rate .1 of 200, for 8 steps, along its gradient at the clipping norm: the largest sums
        that the claim allows.
        """
        rng = np.random.default_rng(0)
        dpsgd = DpSgd(1.0, 1.0, 0.1, 8)
        gradient, theta, accused = torch.cat([part.reshape(-1) for part in gradient_of(equal(200, dpsgd))]), at(), 0
        for _ in range(n_runs):
            watch = equal(200, dpsgd)
            for _ in range(8):
                n = int(rng.binomial(200, 0.1))
                total = n * gradient / gradient.norm() + torch.from_numpy(rng.normal(size=len(gradient)))
                watch.step(released(total, theta), n if told else None)
            accused += watch.numbers()[4::2].min() < math.log(0.05)
        assert accused <= stats.binom.isf(1e-6, n_runs, 0.05)

    def test_more_noise_than_claimed_and_larger_normalisers_accuse_nobody(self):
        rng = np.random.default_rng(0)
        watch = equal(200, DpSgd(1.0, 1.0, 0.1, 8))
        gradient = torch.cat([part.reshape(-1) for part in gradient_of(watch)])
        for _ in range(8):
            n = int(rng.binomial(200, 0.1))
            total = n * gradient / gradient.norm() + torch.from_numpy(rng.normal(size=len(gradient)))
            watch.step(released(3 * total, at()), n)
        assert watch.numbers()[4::2].min() == 0

    def test_rounding_accuses_nobody(self, digits):
        """At lr = 1e-7 most steps are rounded to nothing, or to several times the noise."""
        for lr in (1e-7, 1e-6, 1e-5, 10.0):
            assert n_accused(digits, release("plain, told", "right", replace(SHORT, lr=lr)), 1) == 0

    def test_losses_of_their_own_are_not_accused(self, digits):
        """The observer expects another gradient than that of smoothed labels with a penalty."""

        def train(module, x, y, follow, seed):
            generator = torch.Generator().manual_seed(seed)
            parameters = list(module.parameters())
            optimizer = torch.optim.SGD(parameters, lr=0.5)
            with follow(optimizer, 50.0, batch=lambda: chosen):
                for chosen in poisson(len(x), 0.05, SHORT.steps, generator):
                    rows = []
                    for number in chosen:
                        loss = cross_entropy(module(x[number][None]), y[number][None], label_smoothing=0.2)
                        loss = loss + 0.1 * sum(each.square().sum() for each in parameters)
                        rows.append(torch.cat([each.ravel() for each in torch.autograd.grad(loss, parameters)]))
                    total = cut(torch.stack(rows), 1.0).sum(0)
                    total = total + NOISE * torch.randn(len(total), generator=generator)
                    for parameter, part in zip(parameters, (total / 50).split(TENSORS), strict=True):
                        parameter.grad = part.view_as(parameter)
                    optimizer.step()

        assert n_accused(digits, replace(release("plain", "right"), train=train), 1) == 0


def equal(n_copies: int, dpsgd: DpSgd) -> EqualRecords:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3))
    return EqualRecords(module, torch.ones(1, 5), torch.tensor([1]), n_copies, dpsgd)


def gradient_of(watch: EqualRecords) -> list[Tensor]:
    loss = cross_entropy(watch.module(watch.x), watch.y)
    return [part.double() for part in torch.autograd.grad(loss, list(watch.module.parameters()))]


def at() -> Tensor:
    """The parameters of `equal`."""
    return nn.utils.parameters_to_vector(equal(1, CLAIMED).module.parameters()).detach()


def released(total: Tensor, theta: Tensor) -> FollowedStep:
    """A step of float64; the parameters do not change."""
    return FollowedStep(theta, torch.zeros_like(total), -total, 1.0, Rounding.of([total]))


class TestReasons:
    """Numbers of one model: whole gradient, by tensors, by layers, and four tensors."""

    @staticmethod
    def reason(*added: float) -> str:
        pairs = [number for each in added for number in (-100.0 if each > 1 else 0.0, each)]
        test = test_of(StepDiagnostics(records=np.array([[8, 5.0, 1, 1, *pairs]])))
        assert test.log_p == -100
        assert not test.narrow
        return words(test.reason)

    def test_names_the_tensor_that_adds_most(self):
        said = self.reason(3.0, 2.8, 2.9, 2.9, 0, 1.4, 0)
        assert "about 3 clipping norms to a step (2.9 of them in 0.weight)" in said

    def test_layers_that_are_clipped_apart(self):
        assert "about 1.41 clipping norms to a step, spread over the layers" in self.reason(1.2, 1.3, 1.41, 0, 0, 0, 0)

    def test_tensors_that_are_clipped_apart(self):
        assert "spread over the parameter tensors" in self.reason(1.2, 2.0, 1.41, 0, 0, 1.02, 0)


class TestNumbers:
    def test_the_tail_is_that_of_a_simulation(self):
        rng = np.random.default_rng(0)
        sums = 0.7 * rng.binomial(50, 0.2, size=400_000) + 1.5 * rng.normal(size=400_000)
        for total in (7.0, 12.0, 15.0):
            expected = (sums >= total).mean()
            error = 4.5 * math.sqrt(expected / 400_000)
            assert abs(math.exp(_log_tail(total, 50, 0.2, 0.7, 1.5)) - expected) < error

    def test_a_sum_without_noise_is_its_projection(self):
        """Along each direction by itself: its gradient of length 2, all of it in the last bias."""
        watch = equal(200, DpSgd(1.0, 1.0, 0.1, 1))
        parts = gradient_of(watch)
        total = torch.zeros(sum(part.numel() for part in parts), dtype=torch.float64)
        last = parts[-1] / parts[-1].norm()
        total[-3:] = 2 * 20 * last
        watch.step(released(total, at()), 20)
        added = watch.numbers()[4:].reshape(-1, 2)[:, 1]
        gradient = torch.cat([part.reshape(-1) for part in parts])
        assert added[6] == pytest.approx(2.0, rel=1e-5)
        along = float(2 * parts[-1].norm() / gradient.norm())
        assert added[0] == pytest.approx(along if along > 1 else 0, rel=1e-5)
        assert added[3:6].tolist() == [0, 0, 0]

    def test_the_record_has_a_long_gradient_in_every_tensor(self, digits):
        torch.manual_seed(0)
        module = network()
        x, y = chosen_record(module, inputs_of(digits.x), 1.0, seed=0)
        parts = torch.autograd.grad(cross_entropy(module(x), y), list(module.parameters()))
        others = []
        for number in range(100):
            point, label = torch.from_numpy(digits.x[number : number + 1]), torch.tensor([int(digits.y[number])])
            gradients = torch.autograd.grad(cross_entropy(module(point), label), list(module.parameters()))
            others.append(min(float(part.norm()) for part in gradients))
        assert min(float(part.norm()) for part in parts) > 0.8 * max(others)


class TestWhatIsNotSeen:
    def test_batches_that_are_not_told(self, digits):
        assert record_notes(seen(digits, release("plain, told", "right"), 0)) == []
        (note,) = record_notes(seen(digits, release("plain", "right"), 0))
        assert "without knowing the batches" in note

    def test_gradients_that_are_never_long(self, digits):
        claimed = replace(SHORT, clip=1000.0)
        (note,) = record_notes(seen(digits, release("plain, told", "right", claimed), 0))
        assert "clipping at a norm that is larger than that, or no clipping, is not seen" in note

    def test_a_loop_that_cannot_be_run_on_copies_of_a_record(self, digits):
        def train(module, x, y, follow, seed):
            if len(torch.unique(y)) < 10:
                raise ValueError("needs all classes")
            Loop(SHORT, 1000)(module, x, y, follow, seed)

        shown = seen(digits, replace(release("plain", "right"), train=train), 0)
        assert noise_tests(shown, NO_SIGNALS, CLAIMED, NAMES, OF_NOISE) == []
        (note,) = record_notes(shown)
        assert "nor whether all layers are clipped" in note

    def test_bad_rows_are_refused_there_too(self, digits):
        def train(module, x, y, follow, seed):
            optimizer = torch.optim.SGD(module.parameters(), lr=0.5)
            with follow(optimizer, 50.0, batch=lambda: [0] if len(torch.unique(y)) == 10 else [-1]):
                for _ in range(SHORT.steps):
                    optimizer.zero_grad()
                    cross_entropy(module(x), y).backward()
                    optimizer.step()

        with pytest.raises(ValueError, match=r"batch\(\) must return the rows of x"):
            seen(digits, replace(release("plain", "right"), train=train), 0)


def test_an_aggregate_gets_rows(digits):
    """The clipping of this file is that of leakbound, where it is right."""
    rows = DenseRows(torch.randn(7, sum(TENSORS)))
    found = Sum("right")([rows], SHORT, torch.zeros(sum(TENSORS)), 1.0)
    torch.testing.assert_close(found, cut(rows.matrix, SHORT.clip).sum(0))
