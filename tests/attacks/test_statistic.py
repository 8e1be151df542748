"""Attacks on released vectors: their formulas, their optimality, and extreme values."""

from __future__ import annotations

import numpy as np
import pytest
from mpmath import exp, log, mp, mpf
from scipy.stats import norm

from leakbound.attacks import ATTACKS
from leakbound.attacks.statistic import likelihood_ratio, scalar_product
from leakbound.core.types import Game, NotApplicable, Signals


def release(n_models: int, n_points: int, n_steps: int, own_points: bool = False, seed: int = 0) -> Signals:
    rng = np.random.default_rng(seed)
    is_target_point = np.zeros((n_models, n_points) if own_points else n_points, dtype=bool)
    for row in np.atleast_2d(is_target_point):
        row[rng.choice(n_points, 3, replace=False)] = True
    game = Game("half_split", rng.random((n_models, n_points)) < 0.5, is_target_point, n_models)
    shape = (n_models, n_points, n_steps)
    arrays = {
        "step_dot": 3 * rng.normal(size=shape),
        "step_norm": rng.gamma(2.0, size=shape),
        "dot": rng.normal(size=shape[:2]),
    }
    return Signals(game, None, arrays)


def one(step_dot: list[float], step_norm: list[float]) -> Signals:
    game = Game("per_datum", np.array([[True]]), np.array([True]), 1)
    return Signals(game, None, {"step_dot": np.array([[step_dot]]), "step_norm": np.array([[step_norm]])})


@pytest.mark.parametrize("own_points", [False, True])
@pytest.mark.parametrize("rate", [1.0, 0.25, 1e-4])
def test_the_ratio_is_its_definition(own_points, rate):
    signals = release(5, 8, 4, own_points)
    expected = []
    for target in range(5):
        mask = signals.game.is_target_point
        target_points = np.flatnonzero(mask[target] if own_points else mask)
        row = []
        for point in target_points:
            steps = zip(
                signals.arrays["step_dot"][target, point], signals.arrays["step_norm"][target, point], strict=True
            )
            with mp.workdps(30):
                row.append(float(sum(log(1 - mpf(rate) + mpf(rate) * exp(mpf(a) - mpf(b) / 2)) for a, b in steps)))
        expected.append(row)
    np.testing.assert_allclose(likelihood_ratio(signals, rate=rate), expected, rtol=1e-9, atol=1e-13)


def test_the_ratio_is_that_of_two_normal_laws():
    """A release of N(mu, C) or, with probability q, N(mu + D, C): densities of scipy."""
    mu, shift, deviation, rate = 1.5, 0.8, 0.6, 0.3
    for released in (-2.0, 0.4, 1.5, 3.0, 9.0):
        signals = one([shift * (released - mu) / deviation**2], [shift**2 / deviation**2])
        without = norm.pdf(released, mu, deviation)
        mixed = (1 - rate) * without + rate * norm.pdf(released, mu + shift, deviation)
        assert likelihood_ratio(signals, rate=rate)[0, 0] == pytest.approx(np.log(mixed / without))


@pytest.mark.parametrize(
    ("step_dot", "rate", "expected"),
    [
        (5000.0, 1.0, 5000.0),
        (5000.0, 0.5, 5000.0 + np.log(0.5)),
        (-5000.0, 0.5, np.log(0.5)),
        (-5000.0, 1.0, -5000.0),
        (1e-7, 1e-6, 1e-13),
    ],
)
def test_extreme_steps(step_dot, rate, expected):
    ratio = likelihood_ratio(one([step_dot], [0.0]), rate=rate)[0, 0]
    assert ratio == pytest.approx(expected, rel=1e-9, abs=3e-16)


def test_many_steps_are_added_block_by_block():
    """More entries than one block holds."""
    rng = np.random.default_rng(1)
    game = Game("half_split", rng.random((3, 40)) < 0.5, np.ones(40, dtype=bool), 3)
    arrays = {name: rng.normal(size=(3, 40, 5000)) ** 2 for name in ("step_dot", "step_norm")}
    expected = (arrays["step_dot"] - arrays["step_norm"] / 2).sum(axis=2)
    np.testing.assert_allclose(likelihood_ratio(Signals(game, None, arrays)), expected, rtol=1e-10)


def test_the_scalar_product_is_the_signal():
    signals = release(4, 6, 1, own_points=True)
    expected = [signals.arrays["dot"][t, signals.game.is_target_point[t]] for t in range(4)]
    np.testing.assert_array_equal(scalar_product(signals), expected)


def test_rows_of_the_table():
    signals = release(4, 6, 2)
    for name in ("likelihood_ratio", "scalar_product"):
        scores = ATTACKS[name](signals)
        assert scores.value.shape == (4, 3)
        assert scores.variance_inflation == 1
    assert ATTACKS["likelihood_ratio"].with_parameters(rate=0.1).name == "likelihood_ratio(rate=0.1)"


@pytest.mark.parametrize(
    ("rate", "message"),
    [
        (0.0, "rate must be > 0, got 0"),
        (1.5, "rate is a fraction: 1.5 is out of range; did you mean 0.015? It must be >= 0 and <= 1"),
        (np.nan, "rate must be finite, got nan"),
    ],
)
def test_a_rate_is_a_probability(rate, message):
    with pytest.raises(ValueError) as caught:
        likelihood_ratio(one([1.0], [1.0]), rate=rate)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("given", "missing"), [({"step_dot"}, "step_norm"), ({"step_norm"}, "step_dot"), ({"dot"}, "step_dot")]
)
def test_both_signals_of_the_steps_are_needed(given, missing):
    signals = release(4, 6, 2)
    part = Signals(signals.game, None, {name: array for name, array in signals.arrays.items() if name in given})
    with pytest.raises(NotApplicable, match=f"^needs the signal {missing}, which this release does not give$"):
        likelihood_ratio(part)
