"""Discrete Gaussian noise on counts: its total variation against a sum over all outputs, and the least scale."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import norm

from leakbound.noise import dp_discrete_scale
from leakbound.noise.discrete_gaussian import discrete_std, total_variation


def by_enumeration(s: float, n_moved: int, radius: int) -> float:
    """Half of the sum of all differences of probabilities, over all vectors of noise."""
    weight = {x: np.exp(-(x**2) / (2 * s**2)) for x in range(-radius - 1, radius + 2)}
    total = sum(weight.values())
    apart = 0.0
    for noise in product(range(-radius, radius + 1), repeat=n_moved):
        signs = [(-1) ** place for place in range(n_moved)]  # one count gains a record, the next one loses it
        without = np.prod([weight[x] / total for x in noise])
        moved = np.prod([weight[x - sign] / total for x, sign in zip(noise, signs, strict=True)])
        apart += abs(without - moved)
    return apart / 2


@pytest.mark.parametrize(("s", "n_moved", "radius"), [(0.3, 1, 8), (1.0, 1, 12), (2.5, 1, 30), (0.4, 2, 8)])
@pytest.mark.parametrize("more", [0, 1])
def test_the_total_variation_is_that_over_all_outputs(s, n_moved, radius, more) -> None:
    n_moved += more
    if n_moved == 3:
        radius = 5
    assert total_variation(s, n_moved) == pytest.approx(by_enumeration(s, n_moved, radius), abs=1e-9)


def test_one_count_needs_more_than_continuous_noise() -> None:
    """1/(s sqrt(2 pi)) = 2 eta, up to terms of e^-300; the continuous noise has 1/(2 Phi^-1(.55))."""
    assert dp_discrete_scale(0.05) == pytest.approx(1 / (0.1 * np.sqrt(2 * np.pi)), rel=1e-9)
    assert dp_discrete_scale(0.05) == pytest.approx(3.98942, abs=5e-6)
    continuous = 1 / (2 * norm.ppf(0.55))
    assert continuous == pytest.approx(3.979, abs=5e-4)
    assert total_variation(continuous) > 0.1


@pytest.mark.parametrize("eta", [0.001, 0.05, 0.2, 0.45, 0.499])
@pytest.mark.parametrize("n_moved", [1, 2, 4])
def test_the_least_scale_keeps_the_limit_and_little_less_does_not(eta, n_moved) -> None:
    scale = dp_discrete_scale(eta, n_moved)
    assert total_variation(scale, n_moved) <= 2 * eta < total_variation(scale * (1 - 1e-9), n_moved)


def test_small_eta_is_as_with_continuous_noise() -> None:
    for n_moved in (1, 2):
        continuous = np.sqrt(n_moved) / (2 * norm.ppf(0.501))
        assert dp_discrete_scale(0.001, n_moved) == pytest.approx(continuous, rel=1e-5)


def test_the_deviation() -> None:
    x = np.arange(-60, 61)
    weight = np.exp(-np.square(x) / 8)
    assert discrete_std(2.0) == pytest.approx(np.sqrt(weight @ x**2 / weight.sum()), rel=1e-12)


@pytest.mark.parametrize("eta", [0.0, 0.5, -1.0, float("nan")])
def test_an_eta_out_of_range_is_refused(eta) -> None:
    with pytest.raises(ValueError, match="eta"):
        dp_discrete_scale(eta)


def test_an_eta_that_needs_too_much_noise_is_refused() -> None:
    with pytest.raises(ValueError, match="needs discrete noise of more than 100,000 records; give a larger eta"):
        dp_discrete_scale(1e-7)
