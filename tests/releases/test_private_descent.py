"""Private gradient descent with full batches: its steps, its ceiling, what it refuses."""

from __future__ import annotations

import math

import numpy as np
import pytest

import leakbound as ls
from leakbound.dpsgd.accountant import dpsgd
from leakbound.releases import PrivateDescent
from leakbound.releases.statistics.private_descent import clipped_sum

X = np.random.default_rng(0).normal(size=(30, 3))


def naive(descent: PrivateDescent, seed: int) -> np.ndarray:
    """Record by record."""
    rng, theta = np.random.default_rng(seed), np.zeros(3)
    for _ in range(descent.n_steps):
        noise = rng.normal(scale=descent.clip * descent.noise_multiplier, size=3)
        total = np.zeros(3)
        for x in X:
            gradient = theta - x
            total += gradient * min(1.0, descent.clip / np.linalg.norm(gradient))
        theta = theta - descent.rate * (total + noise) / len(X)
    return theta


@pytest.mark.parametrize("noise_multiplier", [0.0, 2.0])
def test_steps_are_those_record_by_record(noise_multiplier: float) -> None:
    descent = PrivateDescent(n_steps=7, rate=0.3, clip=1.2, noise_multiplier=noise_multiplier)
    path = descent.path(lambda theta: theta - X, np.zeros(3), np.random.default_rng(5))
    assert path.shape == (8, 3)
    assert path[0].tolist() == [0, 0, 0]
    np.testing.assert_allclose(path[-1], naive(descent, 5), rtol=1e-12)


def test_without_noise_and_with_a_wide_clip_it_finds_the_minimum() -> None:
    descent = PrivateDescent(n_steps=200, rate=0.3, clip=100.0, noise_multiplier=0.0)
    path = descent.path(lambda theta: theta - X, np.ones(3), np.random.default_rng(0))
    np.testing.assert_allclose(path[-1], X.mean(axis=0), atol=1e-12)


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_the_ceiling_is_that_of_dp_sgd_in_which_every_record_is_in_every_step(adjacency: str) -> None:
    descent = PrivateDescent(n_steps=25, rate=0.1, clip=3.0, noise_multiplier=15.0)
    accountant = dpsgd(15.0, 1.0, 25, adjacency=adjacency)
    for delta in (1e-6, 1e-2):
        assert descent.ceiling(adjacency).epsilon(delta) == pytest.approx(accountant.epsilon(delta), rel=1e-3)


def test_no_attacker_exceeds_the_ceiling_and_the_best_one_reaches_it() -> None:
    """A record whose gradient is always clipped to the same vector: the sum of all steps is sufficient.

    1,500 games of each side; the advantage of the best attacker is within four standard errors of the ceiling's.
    """
    descent = PrivateDescent(n_steps=4, rate=1.0, clip=1.0, noise_multiplier=4.0)
    ends = {}
    for side in (1.0, -1.0):  # the record is replaced by its opposite
        gradients = np.array([[-50.0 * side], [0.0]])
        rng = np.random.default_rng(int(side) + 1)
        runs = [descent.path(lambda theta, g=gradients: g, np.zeros(1), rng)[-1, 0] for _ in range(1500)]
        ends[side] = np.array(runs)
    found = (ends[1.0] > 0).mean() - (ends[-1.0] > 0).mean()
    assert descent.ceiling("replace_one").mu == 1.0
    assert found == pytest.approx(descent.ceiling("replace_one").advantage(), abs=4 * math.sqrt(2 * 0.25 / 1500))


def test_a_record_whose_gradient_is_not_finite_is_not_seen() -> None:
    gradients = np.array([[np.nan, 1.0], [np.inf, 0.0], [1e300, 1e300], [0.3, 0.4]])
    np.testing.assert_allclose(clipped_sum(gradients, 1.0), [0.3, 0.4])


def test_clipped_sums() -> None:
    gradients = np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
    np.testing.assert_allclose(clipped_sum(gradients, 1.0), [0.9, 1.2])


def test_bad_input(as_users_run_it) -> None:
    with pytest.raises(ValueError, match=r"^n_steps must be >= 1, got 0$"):
        PrivateDescent(0, 0.1, 1.0, 1.0)
    with pytest.raises(ValueError, match=r"^clip must be > 0, got 0$"):
        PrivateDescent(1, 0.1, 0.0, 1.0)
    with pytest.raises(ValueError, match=r"^noise_multiplier must be >= 0, got -1$"):
        PrivateDescent(1, 0.1, 1.0, -1.0)
    with pytest.raises(ValueError, match=r"^unknown adjacency 'remove'"):
        ls.releases.PrivateDescent(1, 0.1, 1.0, 1.0).ceiling("remove")
    assert PrivateDescent(1, 0.1, 1.0, 0.0).ceiling().mu == math.inf
