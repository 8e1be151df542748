"""Networks trained by DP-SGD: ours, Opacus', one written by hand; and the hook into any of them."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
import torch
from opacus import PrivacyEngine
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from leakbound.core.games import canaries
from leakbound.core.types import Points
from leakbound.dpsgd.accountant import dpsgd
from leakbound.dpsgd.clipping import clipped_sum, gradients_of
from leakbound.dpsgd.config import DpSgd
from leakbound.dpsgd.network import PrivateNetwork
from leakbound.dpsgd.observer import Watch
from leakbound.releases.source_code import digest_of
from tests.networks.training_privately import Training

WANT = ["correct", "log_odds", "loss", "step_dot", "step_norm"]


def network(width: int = 16) -> nn.Sequential:
    return nn.Sequential(nn.Linear(64, width), nn.Tanh(), nn.Linear(width, 10))


def images() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.Tanh(), nn.Flatten(), nn.Linear(4 * 36, 10))


@pytest.fixture(scope="module")
def digits() -> Points:
    X, y = load_digits(return_X_y=True)
    return Points(X[:300].astype(np.float32) / 16, y[:300], digest="digits")


@pytest.fixture(scope="module")
def member() -> np.ndarray:
    """Two rows: the first 40 points are in by coins."""
    return canaries(300, np.arange(40), 2, seed=0).member


SMALL = DpSgd(1.0, 1.0, 0.1, 30, 0.5)


def through_opacus(module, x, y, follow, seed):
    """What a user of Opacus writes; the rate of its loader is 1 over the number of its batches."""
    torch.manual_seed(seed)
    optimizer = torch.optim.SGD(module.parameters(), lr=SMALL.lr)
    loader = DataLoader(TensorDataset(x, y), batch_size=len(x) // 10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        private, wrapped, batches = PrivacyEngine(accountant="rdp").make_private(
            module=module, optimizer=optimizer, data_loader=loader, noise_multiplier=1.0, max_grad_norm=1.0
        )
        with follow(wrapped, wrapped.expected_batch_size):
            for _ in range(3):
                for inputs, labels in batches:
                    wrapped.zero_grad()
                    cross_entropy(private(inputs), labels).backward()
                    wrapped.step()


class TestTraining:
    def test_it_learns_although_it_is_private(self, digits, member):
        release = PrivateNetwork(network, DpSgd(0.6, 1.0, 0.2, 300, 0.5))
        assert release.observe(digits, member[:1], np.array([0]), ["correct"])["correct"].mean() > 0.8

    @pytest.mark.by_day("poisson")
    @pytest.mark.parametrize("batches", ["poisson", "fixed"])
    def test_a_row_depends_on_its_seed_alone(self, digits, member, batches):
        release = PrivateNetwork(network, replace(SMALL, batches=batches), watched=tuple(range(40)))
        state = torch.random.get_rng_state()
        both = release.observe(digits, member, np.array([5, 6]), WANT)
        alone = release.observe(digits, member[1:], np.array([6]), WANT)
        assert sorted(both) == sorted(alone) == WANT
        for name, array in both.items():
            assert array[1:].tobytes() == alone[name].tobytes()
            assert not np.array_equal(array[0], array[1])
        assert torch.equal(state, torch.random.get_rng_state())

    def test_images_are_trained_point_by_point(self, digits, member):
        pictures = Points(digits.x.reshape(-1, 8, 8), digits.y)
        release = PrivateNetwork(images, replace(SMALL, steps=3), watched=(0, 1, 2), references=20)
        seen = release.observe(pictures, member[:1], np.array([0]), WANT)
        assert seen["step_norm"].shape == (1, 300, 3)
        assert (seen["step_norm"][0, :3] > 0).all()

    def test_the_ways_to_a_gradient_give_one_training(self, digits, member):
        """Three steps: rounding has no time to grow."""
        release = PrivateNetwork(network, replace(SMALL, steps=3), watched=tuple(range(40)))
        one, two = (
            replace(release, gradients=how).observe(digits, member[:1], np.array([1]), ["loss", "step_dot"])
            for how in ("layers", "vmap")
        )
        for name, array in one.items():
            np.testing.assert_allclose(array, two[name], rtol=1e-3, atol=1e-4)

    def test_batches_have_their_size(self, digits, member):
        """Counted where the sum is made: fixed ones exactly, Poisson ones on average within 6 standard errors."""
        for batches in ("fixed", "poisson"):
            sizes = []

            def count(parts, dpsgd, noise, normaliser, sizes=sizes):
                sizes.append(sum(len(rows.squares()) for rows in parts))
                return noise * 0

            claimed = replace(SMALL, batches=batches, steps=200)
            release = PrivateNetwork(network, claimed, watched=tuple(range(40)), aggregate=count)
            release.observe(digits, member[:1], np.array([0]), ["loss"])
            n = member[0].sum()
            if batches == "fixed":
                assert set(sizes) == {28}  # a tenth of 260 and half of 40
            else:
                assert abs(np.mean(sizes) - 0.1 * n) < 6 * sqrt(0.09 * n / 200)

    def test_description(self):
        made = PrivateNetwork(network, SMALL, {"width": 8}, watched=(1, 2))
        description = json.loads(json.dumps(made.describe()))
        code = digest_of(network)
        assert description["private_network"]["make"] == {"import": f"{network.__module__}:network", "code": code}
        assert code is not None
        assert description["dpsgd"]["sample_rate"] == 0.1
        assert PrivateNetwork(lambda: network(), SMALL).describe() is None
        assert made.n_parameters() == 65 * 8 + 9 * 10
        assert made.description.startswith("network(width=8), DpSgd(noise_multiplier=1.0")

    def test_the_ceiling_is_the_accountants(self):
        assert SMALL.ceiling().epsilon(1e-5) == dpsgd(1.0, 0.1, 30, "add_remove").epsilon(1e-5)
        fixed = replace(SMALL, batches="fixed").ceiling("replace_one", coarseness=2.0)
        expected = dpsgd(1.0, 0.1, 30, "replace_one", 2.0, batches="fixed")
        assert fixed.epsilon(1e-5) == expected.epsilon(1e-5) > SMALL.ceiling("replace_one").epsilon(1e-5)

    @pytest.mark.parametrize(
        ("words", "line"),
        [
            ({"watched": (1, 1)}, "twice"),
            ({"watched": (300,)}, "from 0 to 299, got 300"),
            ({"watched": (1,), "coordinates": (1, 2)}, "2 coordinates for 1"),
            ({"watched": (1,), "coordinates": (1,), "dpsgd": DpSgd(batches="fixed")}, "Poisson|poisson"),
            ({"knowledge": "others"}, "name the watched"),
            ({"knowledge": "all"}, "unknown knowledge 'all'"),
            ({"dpsgd": DpSgd(lr=1e39, steps=5)}, "smaller lr"),
            ({"dpsgd": DpSgd(batches="fixed", sample_rate=1.0)}, "lower sample_rate"),
            ({"parameters": {"widht": 3}}, "did you mean 'width'"),
            ({"gradients": "vmpa"}, "did you mean 'vmap'"),
        ],
    )
    def test_bad_words_are_refused_in_one_line(self, digits, words, line, as_users_run_it):
        inside = np.zeros((1, 300), dtype=bool)
        inside[0, ::3] = True
        with pytest.raises(ValueError, match=line) as error:
            PrivateNetwork(**{"make": network, "dpsgd": SMALL, **words}).observe(digits, inside, np.array([0]), WANT)
        assert "\n" not in str(error.value)

    @pytest.mark.parametrize(
        ("words", "line"),
        [
            ({"clip": 0.0}, "clip must be > 0"),
            ({"sample_rate": 1.5}, "sample_rate is a fraction: 1.5 is out of range"),
            ({"steps": 0}, "steps must be >= 1"),
            ({"lr": float("nan")}, "lr must be finite"),
            ({"noise_multiplier": -1}, "noise_multiplier must be >= 0"),
            ({"batches": "posson"}, "did you mean 'poisson'"),
            ({"batch": 5}, "did you mean 'batches'"),
        ],
    )
    def test_bad_recipes_are_refused(self, words, line, as_users_run_it):
        with pytest.raises(ValueError, match=line):
            DpSgd.of(words)


class TestTrainingsOfOthers:
    @pytest.mark.by_day("opacus")
    @pytest.mark.parametrize("train", [through_opacus, Training(SMALL, 280)], ids=["opacus", "by hand"])
    def test_their_steps_are_seen(self, digits, member, train):
        release = PrivateNetwork(network, SMALL, watched=tuple(range(40)), train=train)
        seen = release.observe(digits, member[:1], np.array([3]), WANT)
        assert seen["step_dot"].shape == (1, 300, 30)
        assert (seen["step_norm"][0, :40] > 0).all()
        assert (seen["step_norm"][0, 40:] == 0).all()
        again = release.observe(digits, member[:1], np.array([3]), WANT)
        assert all(again[name].tobytes() == array.tobytes() for name, array in seen.items())

    @pytest.mark.statistics
    def test_a_step_of_opacus_is_the_clipped_sum_and_its_noise(self, digits, monkeypatch):
        """Rate 1, so that the batch is known: the rest is N(0, sigma^2 c^2). False alarm below 1e-5: 4.5 errors."""
        module, residues = network(), []
        x, y = torch.from_numpy(digits.x), torch.from_numpy(digits.y)
        gradients = gradients_of(module)

        def rest(self, before, after, scale, **_):
            total = (before - after) * scale
            residues.append(total - clipped_sum([gradients.rows(before, x, y)], 0.7, torch.zeros_like(total)))

        monkeypatch.setattr(Watch, "step", rest)
        watch = Watch.of(module, digits, DpSgd(1.3, 0.7, 1.0), watched=np.arange(9), known=np.arange(9, 300))
        torch.manual_seed(0)
        optimizer = torch.optim.SGD(module.parameters(), lr=0.5)
        with watch.follow(optimizer, 300), warnings.catch_warnings():  # before Opacus wraps the optimizer
            warnings.simplefilter("ignore")
            private, wrapped, batches = PrivacyEngine(accountant="rdp").make_private(
                module=module,
                optimizer=optimizer,
                data_loader=DataLoader(TensorDataset(x, y), batch_size=300),
                noise_multiplier=1.3,
                max_grad_norm=0.7,
            )
            for _ in range(20):
                for inputs, labels in batches:
                    wrapped.zero_grad()
                    cross_entropy(private(inputs), labels).backward()
                    wrapped.step()
        noise = torch.stack(residues).double().numpy() / 0.91
        assert noise.shape == (20, 65 * 16 + 17 * 10)
        assert abs(noise.mean()) < 4.5 / sqrt(noise.size)
        assert abs(noise.var() - 1) < 4.5 * sqrt(2 / noise.size)

    def test_what_is_no_noisy_gradient_is_refused(self, digits):
        module = network()
        watch = Watch.of(module, digits, SMALL, watched=np.arange(9), known=np.arange(9, 300))
        few = list(module.parameters())[:2]
        for optimizer, line in (
            (torch.optim.LBFGS(module.parameters()), "one gradient a step .*, got LBFGS"),
            (torch.optim.SGD(few, lr=0.1), "the optimizer changes 2 parameter tensors, and the network has 4"),
        ):
            own = list(module.parameters())
            with pytest.raises(ValueError, match=line), watch.follow(optimizer, 30, parameters=own):
                pass

    def test_their_errors_are_one_line(self, digits, member):
        def broken(module, x, y, follow, seed):
            raise KeyError("first\nsecond")

        with pytest.raises(RuntimeError, match="dpsgd cannot be trained: ") as error:
            PrivateNetwork(network, SMALL, train=broken).observe(digits, member[:1], np.array([0]), ["loss"])
        assert "\n" not in str(error.value)

    @pytest.mark.parametrize("made", [5, 40])
    def test_other_steps_than_claimed_are_refused(self, digits, member, made):
        def other(module, x, y, follow, seed):
            optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
            with follow(optimizer, 15):
                for _ in range(made):
                    optimizer.zero_grad()
                    cross_entropy(module(x), y).backward()
                    optimizer.step()

        release = PrivateNetwork(network, SMALL, train=other)
        with pytest.raises(ValueError, match=f"the training made {made} steps, and {SMALL.steps} are claimed"):
            release.observe(digits, member[:1], np.array([0]), ["step_dot"])

    def test_memory_that_ends_is_one_line(self, digits, member, monkeypatch):
        def ends(*_, **__):
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes")

        monkeypatch.setattr(Watch, "step", ends)
        line = r"dpsgd: memory does not suffice for 256 reference gradients .* each of 1,210 numbers; give fewer ref"
        with pytest.raises(MemoryError, match=line):
            PrivateNetwork(network, SMALL).observe(digits, member[:1], np.array([0]), ["step_dot"])

    def test_nobody_knows_their_batches(self):
        with pytest.raises(ValueError, match="knowledge must be 'distribution'"):
            PrivateNetwork(network, SMALL, train=through_opacus, watched=(1,), knowledge="others")
