"""Gradients of single points in three ways, and what a step says, against naive dense twins in float64."""

from __future__ import annotations

import warnings
from math import log, sqrt

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.utils import parameters_to_vector

from leakbound.core.covariance import LowRank, LowRankGram
from leakbound.core.games import canaries
from leakbound.core.types import Points
from leakbound.dpsgd.attacker import Attacker
from leakbound.dpsgd.canaries import dirac
from leakbound.dpsgd.clipping import clipped_sum, gradients_of
from leakbound.dpsgd.config import DpSgd
from leakbound.dpsgd.followed_steps import Rounding
from leakbound.dpsgd.gradient_rows import CoordinateRows
from leakbound.dpsgd.network import PrivateNetwork
from leakbound.dpsgd.observer import Watch, _NoiseSum, _Step
from leakbound.releases.networks.tensors import inputs_of

N_FEATURES, N_CLASSES = 5, 3


def stack() -> nn.Sequential:
    """Layers with and without bias, an activation in place, and one Sequential in another."""
    hidden = nn.Sequential(nn.Linear(N_FEATURES, 4, bias=False), nn.ReLU(inplace=True))
    return nn.Sequential(nn.Flatten(), hidden, nn.Linear(4, N_CLASSES))


def convolution() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(1, 3, 3), nn.GroupNorm(1, 3), nn.Tanh(), nn.Flatten(), nn.Linear(3 * 16, N_CLASSES))


def made(factory, seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return factory()


def some(n: int, shape: tuple[int, ...] = (N_FEATURES,), seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(seed)
    return torch.from_numpy(rng.normal(size=(n, *shape))), torch.from_numpy(rng.integers(N_CLASSES, size=n))


def one_by_one(module: nn.Module, x: torch.Tensor, y: torch.Tensor) -> np.ndarray:
    """A gradient a row, by as many backward passes as there are points."""
    rows = []
    for point, label in zip(x, y, strict=True):
        module.zero_grad()
        cross_entropy(module(point[None]), label[None]).backward()
        rows.append(torch.cat([each.grad.ravel() for each in module.parameters()]).numpy().copy())
    return np.array(rows)


def flat(module: nn.Module) -> torch.Tensor:
    return parameters_to_vector(module.parameters()).detach().clone()


def cut(rows: np.ndarray, clip: float) -> np.ndarray:
    return rows * np.minimum(1, clip / np.linalg.norm(rows, axis=1, keepdims=True))


CASES = pytest.mark.parametrize(
    ("factory", "shape", "how"),
    [
        (stack, (N_FEATURES,), "layers"),
        (stack, (N_FEATURES,), "vmap"),
        (stack, (N_FEATURES,), "opacus"),
        (convolution, (1, 6, 6), "vmap"),
        (convolution, (1, 6, 6), "opacus"),
    ],
)


class TestGradients:
    @CASES
    def test_clipped_sum_is_that_of_a_loop_over_the_points(self, factory, shape, how):
        """In float32, as in use: 1e-5 of the sum."""
        module = made(factory)
        x, y = some(40, shape)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Full backward hook", category=UserWarning)
            rows = gradients_of(module, how).rows(flat(module), x.float(), y)
            found = clipped_sum([rows], 0.5, torch.zeros(len(flat(module)))).numpy()
        expected = cut(one_by_one(module.double(), x, y), 0.5).sum(axis=0)
        assert np.linalg.norm(found - expected) <= 1e-5 * np.linalg.norm(expected)

    @pytest.mark.parametrize("how", ["layers", "vmap"])
    def test_products_are_those_of_the_matrix(self, how):
        module = made(stack).double()
        x, y = some(12)
        dense, gradients = one_by_one(module, x, y), gradients_of(module, how)
        rows, others = (gradients.rows(flat(module), x[part], y[part]) for part in (slice(0, 8), slice(8, 12)))
        vector, numbers = np.random.default_rng(1).normal(size=dense.shape[1]), np.array([0, 7, 19, 20, 31, 32, 34])
        np.testing.assert_allclose(rows.squares(), (dense[:8] ** 2).sum(axis=1), rtol=1e-12)
        np.testing.assert_allclose(rows.sum(), dense[:8].sum(axis=0), rtol=1e-10, atol=1e-14)
        np.testing.assert_allclose(rows.dots(torch.from_numpy(vector)), dense[:8] @ vector, rtol=1e-10, atol=1e-14)
        np.testing.assert_allclose(rows.gram(others), dense[:8] @ dense[8:].T, rtol=1e-10, atol=1e-14)
        np.testing.assert_allclose(rows.columns(torch.from_numpy(numbers)), dense[:8, numbers], atol=1e-14)

    def test_coordinates_are_rows_of_a_matrix_too(self):
        rows = CoordinateRows(torch.tensor([2, 0]), torch.tensor([3.0, -1.0]), 4)
        dense = np.array([[0, 0, 3.0, 0], [-1.0, 0, 0, 0]])
        np.testing.assert_array_equal(rows.sum(), dense.sum(axis=0))
        np.testing.assert_array_equal(rows.squares(), (dense**2).sum(axis=1))
        np.testing.assert_array_equal(rows.dots(torch.arange(4.0)), dense @ np.arange(4))
        np.testing.assert_array_equal(rows.columns(torch.arange(4)), dense)
        np.testing.assert_array_equal(rows.gram(rows), dense @ dense.T)

    def test_an_empty_batch_has_no_gradient(self):
        module = made(stack)
        x, y = some(0)
        for how in ("layers", "vmap", "opacus"):
            assert clipped_sum([gradients_of(module, how).rows(flat(module), x, y)], 1.0, torch.zeros(35)).sum() == 0

    @pytest.mark.parametrize(
        ("factory", "line"),
        [
            (lambda: nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)), "BatchNorm1d mixes .*GroupNorm"),
            (lambda: nn.Sequential(nn.Linear(2, 2), nn.Dropout()), "Dropout makes"),
            (nn.ReLU, "ReLU has no parameters"),
            (lambda: nn.Linear(2, 2).requires_grad_(False), "only frozen parameters"),
        ],
    )
    def test_networks_without_gradients_of_single_points_are_refused(self, factory, line):
        with pytest.raises(ValueError, match=line):
            gradients_of(factory())

    def test_layers_need_a_stack(self):
        with pytest.raises(ValueError, match="use 'vmap'"):
            gradients_of(convolution(), "layers")


def test_products_known_by_inner_products_are_those_of_the_factors():
    rng = np.random.default_rng(0)
    factors, x, y = rng.normal(size=(3, 7)), rng.normal(size=(4, 7)), rng.normal(size=7)
    dense = np.linalg.inv(0.2 * np.eye(7) + factors.T @ factors)
    gram = LowRankGram(0.2, factors @ factors.T)
    np.testing.assert_allclose(gram.product(x @ y, x @ factors.T, factors @ y), x @ dense @ y, rtol=1e-10)
    np.testing.assert_allclose(LowRank(0.2, factors).solve(x), x @ dense, rtol=1e-9)


class Step:
    """One step of a tiny network, with all that a naive twin needs."""

    def __init__(self, dpsgd: DpSgd, watched: np.ndarray, known: np.ndarray, references: int = 256) -> None:
        self.dpsgd = dpsgd
        x, y = some(len(watched) + len(known))
        x = x.float().double()  # what the network reads
        module = made(stack).double()
        self.attacker = Attacker(watched, known, n_references=references)
        watch = Watch(gradients_of(module), inputs_of(x.numpy()), y, dpsgd, self.attacker)
        self.before, self.total = flat(module), torch.from_numpy(np.random.default_rng(3).normal(size=35))
        watch.step(self.before, self.before - 0.01 * self.total, 100.0)
        signals = watch.signals(len(x))
        self.dot, self.norm, self.noise = signals["step_dot"][:, 0], signals["step_norm"][:, 0], signals["step_noise"]
        self.gradient = cut(one_by_one(module, x, y), dpsgd.clip)

    def dense(self, mean: np.ndarray, covariance: np.ndarray, shift: np.ndarray) -> tuple[float, float]:
        whitened = np.linalg.solve(covariance, shift)
        return float(whitened @ (self.total.numpy() - mean)), float(whitened @ shift)


class TestOneStep:
    """Everything in units of the sum: B times mean and shift, B^2 times covariances of the mean gradient."""

    def test_poisson_batches(self):
        """mu0 and C0 from every record by itself: known ones at rate q, other watched ones at q/2."""
        watched, known, q = np.arange(6), np.arange(6, 40), 0.3
        step = Step(DpSgd(0.7, 0.4, q, 1), watched, known)
        g, rate = step.gradient, np.where(np.arange(40) < 6, q / 2, q)
        covariance = 0.28**2 * np.eye(35) + (g * (rate * (1 - rate))[:, None]).T @ g
        for number in watched:
            others = np.arange(40) != number
            expected = step.dense(rate[others] @ g[others], covariance, g[number])
            np.testing.assert_allclose([step.dot[number], step.norm[number]], expected, rtol=1e-7)
        assert (step.dot[6:] == 0).all()
        assert (step.norm[6:] == 0).all()
        np.testing.assert_allclose(step.noise, [(step.total.numpy() ** 2).sum() / 0.28**2, 35, 0])

    def test_poisson_batches_of_n_known_records_have_the_uncentred_moment(self):
        """``N q (1 - q) M2 + sigma^2 c^2 I``, and a share of the records adds the error of their mean."""
        known, q, r = np.arange(1, 41), 0.2, 15
        step = Step(DpSgd(1.1, 0.3, q, 1), np.array([0]), known, references=r)
        g = step.gradient[step.attacker.references(0)]
        assert len(g) == r
        second, centred = g.T @ g / r, np.cov(g.T, bias=True)
        error = (40 * q) ** 2 * (1 - r / 40) / (r - 1)
        covariance = 0.33**2 * np.eye(35) + 40 * q * (1 - q) * second + error * centred
        expected = step.dense(40 * q * g.mean(axis=0), covariance, step.gradient[0])
        np.testing.assert_allclose([step.dot[0], step.norm[0]], expected, rtol=1e-7)

    def test_batches_of_fixed_size(self):
        """``B (1 - B/N) N/(N - 1) C + sigma^2 c^2 I``, C centred, and the shift g - mu."""
        known = np.arange(1, 31)
        step = Step(DpSgd(0.9, 0.5, 0.2, 1, batches="fixed"), np.array([0]), known)
        g, mean = step.gradient[1:], step.gradient[1:].mean(axis=0)
        centred = 6 * (1 - 6 / 30) * 30 / 29 * np.cov(g.T, bias=True)
        expected = step.dense(6 * mean, 0.45**2 * np.eye(35) + centred, step.gradient[0] - mean)
        np.testing.assert_allclose([step.dot[0], step.norm[0]], expected, rtol=1e-7)

    def test_the_moments_of_batches_of_fixed_size_are_those_of_a_simulation(self):
        """The covariance of 20,000 batches of 6 of 30 records, per entry within 6 standard errors of about 1 %."""
        rng = np.random.default_rng(0)
        g = rng.normal(size=(30, 2))
        sums = np.array([g[rng.choice(30, 6, replace=False)].sum(axis=0) for _ in range(20_000)])
        expected = 6 * (1 - 6 / 30) * 30 / 29 * np.cov(g.T, bias=True)
        np.testing.assert_allclose(np.cov(sums.T), expected, atol=6 * 0.01 * np.abs(expected).max())

    def test_references_of_every_step_are_others(self):
        """So that the errors of the steps are independent."""
        attacker = Attacker(np.arange(20), np.arange(20, 100), n_references=30)
        first, second = attacker.references(0), attacker.references(1)
        assert (first < 20).sum() == (second < 20).sum() == round(30 * 10 / 90)
        assert set(first) != set(second)
        np.testing.assert_array_equal(first, attacker.references(0))

    @pytest.mark.parametrize(
        ("words", "line"),
        [
            ({"watched": np.arange(0)}, "at least one point"),
            ({"coordinates": np.arange(2)}, "2 coordinates for 3"),
            ({"n_references": 500}, "<= 256"),
            ({"known": np.arange(0), "watched": np.arange(1)}, "at least 2 records"),
        ],
    )
    def test_bad_attackers_are_refused(self, words, line):
        given = {"watched": np.arange(3), "known": np.arange(3, 9)} | words
        with pytest.raises(ValueError, match=line):
            Attacker(**given)

    def test_without_noise_there_is_no_ratio(self):
        with pytest.raises(ValueError, match=r"noise_multiplier is 0: .* without variance"):
            Step(DpSgd(0.0), np.arange(3), np.arange(3, 9))


def dirac_steps(rate: float, steps: int, seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Per step v of 60 Dirac canaries, whose attacker knows the others; who is in; and m."""
    points = Points(np.random.default_rng(0).normal(size=(40, 8)), np.arange(40) % 2)
    release = PrivateNetwork(lambda: nn.Linear(8, 40), DpSgd(2.0, 0.5, rate, steps, 0.1), knowledge="others")
    chosen = dirac(points, 60, seed, release=release)
    game = canaries(len(chosen.points), chosen.numbers, 1, seed=seed)
    want = ["step_dot", "step_norm", "step_noise"]
    seen = chosen.watched_by(release).observe(chosen.points, game.member, np.array([seed]), want)
    np.testing.assert_allclose(seen["step_norm"][0, chosen.numbers], 0.25, rtol=1e-6)  # 1/sigma^2
    square, n_numbers, n_coarse = seen["step_noise"][0]
    assert n_coarse == 0
    extra = 0.25 * rate * game.member[0, chosen.numbers].sum() * steps  # what is in without being known
    assert n_numbers == 360 * steps
    assert abs(square - n_numbers - extra) < 4.5 * sqrt(2 * n_numbers + 4 * extra)
    return seen["step_dot"][0, chosen.numbers] - 0.125, game.member[0, chosen.numbers], 0.25


class TestDirac:
    @pytest.mark.statistics
    def test_the_ratio_of_a_step_is_gaussian(self):
        """In every batch: N(m/2, m) in, N(-m/2, m) out; 18,000 draws. False alarm below 1e-5: 4.5 standard errors."""
        v, inside, m = dirac_steps(1.0, 300, 1)
        for group, mean in ((v[inside], m / 2), (v[~inside], -m / 2)):
            assert abs(group.mean() - mean) < 4.5 * sqrt(m / group.size)
            assert abs(group.var() / m - 1) < 4.5 * sqrt(2 / group.size)
            assert abs(((group - mean) ** 3).mean()) < 4.5 * sqrt(15 * m**3 / group.size)

    @pytest.mark.slow
    @pytest.mark.statistics
    def test_without_the_point_the_mean_likelihood_ratio_is_one(self):
        """Per step ``E(1 - q + q e^v) = 1`` with variance ``q^2 (e^m - 1)``. False alarm below 1e-5."""
        q = 0.3
        v, inside, m = dirac_steps(q, 300, 2)
        ratio = 1 - q + q * np.exp(v[~inside])
        assert abs(ratio.mean() - 1) < 4.5 * q * sqrt(np.expm1(m) / ratio.size)
        assert np.log(ratio).mean() < 0 < np.log(1 - q + q * np.exp(v[inside])).mean()
        assert -log(2) < np.log(ratio).min()


class TestNoiseSum:
    """How large the noisy sums are together, seen through parameters that are rounded; deviation of the noise 1."""

    @staticmethod
    def descent(size, dtype, lr: float, n_steps: int = 12, quiet: float = 1.0):
        """Steps ``theta - lr w/B`` with B = 500 in the arithmetic of torch: parameters, and noise in float64."""
        rng = np.random.default_rng(0)
        theta = torch.from_numpy(size * rng.normal(size=2000)).to(dtype)
        for _ in range(n_steps):
            noise = quiet * rng.normal(size=2000)
            parameter = theta.clone()
            parameter.add_(torch.from_numpy(noise / 500).to(dtype), alpha=-lr)
            yield theta, parameter, torch.from_numpy(noise)
            theta = parameter

    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
    @pytest.mark.parametrize("lr", [1e-9, 1e-7, 1e-6, 1e-5, 1e-3, 1.0, 1e3])
    @pytest.mark.parametrize("size", [0.0, 1e-30, 1e-6, 0.1, 100.0])
    def test_it_is_never_smaller_than_the_noise_that_was_added(self, dtype, lr, size):
        """By the noise itself: a sum that is too small would accuse a right training."""
        seen, kept, added = _NoiseSum(1.0, 0), None, 0.0
        for before, after, noise in self.descent(size, dtype, lr):
            if kept is None:  # the largest error of a number that is rounded to nearest: half of eps, relatively
                kept = before.double().abs() * torch.finfo(dtype).eps / 2 * 500 / lr <= 1 / 16
            seen.add(_Step(before, after, 500 / lr, (before - after) * (500 / lr), Rounding.of([before])))
            added += float(noise.to(dtype).double()[kept].square().sum())
        square, n_degrees, n_coarse = seen.numbers()
        if square > 0:
            assert square >= added * (1 - 4 * torch.finfo(dtype).eps)
        assert n_degrees + n_coarse == 12 * 2000
        assert abs(n_degrees / 12 - int(kept.sum())) <= 2  # at the border of what is too coarse

    @pytest.mark.parametrize("lr", [1e-3, 1e-1, 1.0])
    def test_at_ordinary_rates_it_is_the_sum_of_squares(self, lr):
        """The bound of the rounding error adds at most 2 e E|z| + e^2 with e = 2^-24 * .5 * 500/lr."""
        seen, added = _NoiseSum(1.0, 0), 0.0
        for before, after, noise in self.descent(0.1, torch.float32, lr):
            seen.add(_Step(before, after, 500 / lr, (before - after) * (500 / lr), Rounding.of([before])))
            added += float(noise.square().sum())
        error = 2**-24 * 0.5 * 500 / lr
        assert seen.numbers()[1:].tolist() == [24_000, 0]
        assert added <= seen.numbers()[0] <= added * (1 + 2 * error + error**2 + 1e-4)

    def test_what_becomes_too_coarse_later_counts_as_the_claimed_noise(self):
        """lr falls from .5 to 1e-9 after 6 of 12 steps: no noise in the first half is found, none in the second is not.

        The sum of 12,000 fresh squares is within 4.5 standard errors, sqrt(24,000), of 12,000 but for 1e-5.
        """
        for first, second, expected in ((0.0, 1.0, 12_000), (1.0, 0.0, 24_000)):
            seen = _NoiseSum(1.0, 0)
            for quiet, lr in ((first, 0.5), (second, 1e-9)):
                for before, after, _ in self.descent(0.1, torch.float32, lr, 6, quiet):
                    seen.add(_Step(before, after, 500 / lr, (before - after) * (500 / lr), Rounding.of([before])))
            square, n_degrees, n_coarse = seen.numbers()
            assert (n_degrees, n_coarse) == (24_000, 0)
            assert abs(square - expected) < 4.5 * sqrt(2 * expected) + 0.01 * expected

    def test_each_parameter_is_rounded_in_its_own_type(self):
        parameters = [torch.zeros(2, 1, dtype=torch.bfloat16), torch.zeros(1, dtype=torch.float32)]
        relative, absolute = Rounding.of(parameters)
        assert isinstance(relative, torch.Tensor)
        assert isinstance(absolute, torch.Tensor)
        assert relative.tolist() == [2**-8, 2**-8, 2**-24]
        assert absolute.tolist() == [2**-126] * 3
