"""The least noise of DP-SGD: it keeps its target on the accountant's curve, and 0.1 % less does not."""

from __future__ import annotations

import math
import time

import pytest
from scipy import optimize, stats

from leakbound.core.seeds import stream
from leakbound.core.tradeoff import TradeOff
from leakbound.core.types import NotApplicable
from leakbound.dpsgd import dpsgd_multiplier
from leakbound.dpsgd.accountant import dpsgd
from leakbound.dpsgd.calibration import Target
from tests.marks import nightly

MOST_ACCOUNTANTS = 20  # curves of a noise multiplier in the time that a search may take

ADJACENCIES = ("add_remove", "replace_one")


def keeps(curve: TradeOff, target: Target) -> bool:
    """The target in the words of its definition."""
    match target:
        case {"advantage": float(advantage)}:
            return curve.advantage() <= advantage
        case {"fpr": float(fpr), "fnr": float(fnr)}:
            return bool(curve.fnr(fpr) >= fnr)
        case {"epsilon": float(epsilon), "delta": float(delta)}:
            return curve.delta(epsilon) <= delta
    raise AssertionError(target)


def assert_least(noise: float, rate: float, steps: int, adjacency, target: Target, batches="poisson") -> None:
    case = noise, rate, steps, adjacency, target, batches
    assert keeps(dpsgd(noise, rate, steps, adjacency, batches=batches), target), case
    assert not keeps(dpsgd(noise * 0.999, rate, steps, adjacency, batches=batches), target), case


@pytest.mark.parametrize(
    ("rate", "steps", "adjacency", "expected"),
    [
        nightly(0.01, 1000, "add_remove", 1.4224),
        (0.01, 1000, "replace_one", 2.5193),
        nightly(0.002, 10_000, "add_remove", 1.0249),
        nightly(0.002, 10_000, "replace_one", 1.6104),
    ],
)
def test_an_advantage_of_one_tenth(rate, steps, adjacency, expected):
    noise = dpsgd_multiplier(rate, steps, advantage=0.1, adjacency=adjacency)
    assert noise == pytest.approx(expected, rel=0.003)
    assert_least(noise, rate, steps, adjacency, {"advantage": 0.1})


@pytest.mark.parametrize(
    ("target", "adjacency"),
    [
        nightly({"fpr": 0.01, "fnr": 0.95}, "replace_one"),
        nightly({"epsilon": 1.0, "delta": 1e-5}, "add_remove"),
        ({"epsilon": 0.0, "delta": 0.2}, "replace_one"),
        pytest.param({"fpr": 0.01, "fnr": 0.95}, "add_remove", marks=pytest.mark.nightly),
        pytest.param({"epsilon": 1.0, "delta": 1e-5}, "replace_one", marks=pytest.mark.nightly),
        pytest.param({"epsilon": 0.0, "delta": 0.2}, "add_remove", marks=pytest.mark.nightly),
    ],
)
def test_other_targets_by_few_accountants(adjacency, target):
    start = time.process_time()
    dpsgd(1.0, 0.01, 1000, adjacency)
    one = time.process_time() - start
    start = time.process_time()
    noise = dpsgd_multiplier(0.01, 1000, adjacency=adjacency, **target)
    assert time.process_time() - start < MOST_ACCOUNTANTS * one
    assert_least(noise, 0.01, 1000, adjacency, target)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "adjacency"),
    [
        ({"advantage": 0.1}, "replace_one"),
        ({"fpr": 0.01, "fnr": 0.95}, "add_remove"),
        pytest.param({"epsilon": 1.0, "delta": 1e-5}, "replace_one", marks=pytest.mark.nightly),
        pytest.param({"advantage": 0.1}, "add_remove", marks=pytest.mark.nightly),
        pytest.param({"fpr": 0.01, "fnr": 0.95}, "replace_one", marks=pytest.mark.nightly),
        pytest.param({"epsilon": 1.0, "delta": 1e-5}, "add_remove", marks=pytest.mark.nightly),
    ],
)
def test_batches_of_fixed_size(adjacency, target):
    """By day one target for each game; what the third one asks of either game is asked of batches by coins."""
    noise = dpsgd_multiplier(0.01, 200, adjacency=adjacency, batches="fixed", **target)
    assert_least(noise, 0.01, 200, adjacency, target, "fixed")
    assert noise > dpsgd_multiplier(0.01, 200, adjacency="add_remove", **target)
    if adjacency == "add_remove":  # whoever takes the place is up to 2 away: as twice the noise of coins, exactly
        coins = dpsgd_multiplier(0.01, 200, adjacency=adjacency, **target)
        assert noise / 2 == pytest.approx(coins, rel=1e-3)


def test_replace_one_is_the_default_and_needs_more():
    default, alone = dpsgd_multiplier(0.01, 1000, advantage=0.1), 1.43
    assert default == dpsgd_multiplier(0.01, 1000, advantage=0.1, adjacency="replace_one") > alone


@pytest.mark.slow
@pytest.mark.parametrize("n_targets", [9, pytest.param(100, marks=pytest.mark.nightly)])
def test_random_targets(n_targets, as_users_run_it):
    """Targets, rates and numbers of steps from a fixed seed: nothing is estimated, so no false alarm.

    If 22 % of the multipliers were not the least, 9 targets would find it in 9 of 10 cases; 2.3 %, the 100. Without
    the execution of annotations, which takes most of the time of a curve.
    """
    rng = stream(0, "targets")
    for i in range(n_targets):
        rate, steps = float(10 ** rng.uniform(-1.5, -0.3)), int(10 ** rng.uniform(0, 3))
        adjacency = ADJACENCIES[i % 2]
        most = -math.expm1(steps * math.log1p(-rate))  # seen without noise
        targets: list[Target] = [
            {"advantage": float(most * rng.uniform(0.02, 0.9))},
            {
                "fpr": (fpr := float(10 ** rng.uniform(-4, -0.5))),
                "fnr": (1 - fpr) * (1 - most * rng.uniform(0.02, 0.9)),
            },
            {"epsilon": float(rng.uniform(0, 4)), "delta": float(most * 10 ** rng.uniform(-8, -1))},
        ]
        target = targets[i % 3]
        assert_least(dpsgd_multiplier(rate, steps, adjacency=adjacency, **target), rate, steps, adjacency, target)


class TestFullBatches:
    """With sample rate 1 the curve is that of one Gaussian, mu = sqrt(T)/sigma, or twice that for another record."""

    @pytest.mark.parametrize(("adjacency", "factor"), [("add_remove", 1), ("replace_one", 2)])
    def test_closed_forms(self, adjacency, factor):
        root = factor * math.sqrt(50)
        wanted = root / (2 * stats.norm.ppf(0.65))
        assert dpsgd_multiplier(1.0, 50, advantage=0.3, adjacency=adjacency) / wanted == pytest.approx(1.0004, abs=6e-4)
        wanted = root / (stats.norm.ppf(0.99) - stats.norm.ppf(0.9))
        found = dpsgd_multiplier(1.0, 50, fpr=0.01, fnr=0.9, adjacency=adjacency)
        assert found / wanted == pytest.approx(1.0004, abs=6e-4)

    def test_the_gaussian_mechanism(self):
        """One step of add/remove is the mechanism of Balle & Wang (2018): sigma = 3.730632 at (1, 1e-5)."""

        def excess(scale):
            m = 1 / scale
            return stats.norm.cdf(m / 2 - 1 / m) - math.e * stats.norm.cdf(-m / 2 - 1 / m) - 1e-5

        wanted = optimize.brentq(excess, 1, 10)
        found = dpsgd_multiplier(1.0, 1, epsilon=1.0, delta=1e-5, adjacency="add_remove")
        assert 1 < found / wanted < 1.001


class TestExtremes:
    @pytest.mark.parametrize(
        ("rate", "steps", "target"),
        [
            pytest.param(1e-4, 1000, {"advantage": 0.0951}, marks=pytest.mark.nightly),  # 0.0952 is kept without noise
            nightly(1e-4, 10**4, {"advantage": 0.01}),  # heavy tails: the coarse grid is far off
            nightly(0.01, 1, {"epsilon": 2.0, "delta": 1e-6}),
            pytest.param(0.01, 1000, {"epsilon": 8.0, "delta": 1e-10}, marks=pytest.mark.nightly),
            (0.3, 3, {"advantage": 0.65}),
            (0.2, 400, {"advantage": 1 - 1e-6}),
            (0.01, 1000, {"advantage": 1e-7}),
        ],
    )
    def test_still_the_least(self, rate, steps, target):
        assert_least(dpsgd_multiplier(rate, steps, **target), rate, steps, "replace_one", target)

    @pytest.mark.slow
    def test_a_billion_steps(self):
        noise = dpsgd_multiplier(0.5, 10**9, advantage=0.1)
        assert_least(noise, 0.5, 10**9, "replace_one", {"advantage": 0.1})


@pytest.mark.parametrize(
    ("rate", "target", "words"),
    [
        (0.01, {"advantage": 1.0}, "advantage = 1.0"),
        (1e-4, {"advantage": 0.0952}, "advantage = 0.0952"),
        (0.01, {"fpr": 0.1, "fnr": 0.0}, "fpr = 0.1, fnr = 0.0"),
        (1e-9, {"epsilon": 0.1, "delta": 1e-5}, "epsilon = 0.1, delta = 1e-05"),
        (1.0, {"epsilon": 0.0, "delta": 1.0}, "epsilon = 0.0, delta = 1.0"),
    ],
)
def test_trivial_targets_are_answered_at_once(rate, target, words):
    start = time.process_time()
    with pytest.raises(NotApplicable) as caught:
        dpsgd_multiplier(rate, 1000, **target)
    assert time.process_time() - start < 0.5
    assert str(caught.value) == f"no noise is needed for {words}"


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ({"advantage": 0.0}, "no noise is enough for advantage = 0.0: the accountant counts 1e-12 as lost"),
        (
            {"epsilon": 1.0, "delta": 1e-13},
            "no noise is enough for epsilon = 1.0, delta = 1e-13: the accountant counts 1e-12 as lost",
        ),
        ({"fpr": 0.1, "fnr": 0.9}, "fnr must be < 0.9, that of a guess at fpr = 0.1; got 0.9"),
        ({"fpr": 0.0, "fnr": 0.9}, "fpr must be > 0 and < 1, got 0"),
        (
            {"fpr": 0.1, "fnr": 1.5},
            "fnr is a fraction: 1.5 is out of range; did you mean 0.015? It must be >= 0 and <= 1",
        ),
        (
            {"advantage": 1.5},
            "advantage is a fraction: 1.5 is out of range; did you mean 0.015? It must be >= 0 and <= 1",
        ),
        ({"advantage": math.nan}, "advantage must be finite, got nan"),
        ({"epsilon": -1.0, "delta": 0.1}, "epsilon must be >= 0, got -1"),
        ({"epsilon": 1.0, "delta": -2.0}, "delta must be >= 0 and <= 1, got -2"),
        ({}, "give advantage, or fpr and fnr, or epsilon and delta; got none"),
        ({"advantage": None}, "give advantage, or fpr and fnr, or epsilon and delta; got none"),
        ({"fpr": 0.1}, "give advantage, or fpr and fnr, or epsilon and delta; got fpr"),
        (
            {"advantage": 0.1, "delta": 0.1},
            "give advantage, or fpr and fnr, or epsilon and delta; got advantage, delta",
        ),
    ],
)
def test_the_line_that_a_bad_target_gets_at_once(target, message):
    start = time.process_time()
    with pytest.raises(ValueError) as caught:
        dpsgd_multiplier(0.01, 1000, **target)
    assert time.process_time() - start < 0.5
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0, 10), "sample_rate must be > 0, got 0"),
        ((-1.5, 10), "sample_rate must be > 0, got -1.5"),
        ((0.1, 0), "steps must be >= 1, got 0"),
        ((0.1, 10**10), "steps must be <= 1,000,000,000, got 10,000,000,000"),
    ],
)
def test_the_line_that_a_bad_value_gets(arguments, message):
    with pytest.raises(ValueError) as caught:
        dpsgd_multiplier(*arguments, advantage=0.1)
    assert str(caught.value) == message


def test_the_line_that_a_bad_word_gets(as_users_run_it):
    with pytest.raises(ValueError) as caught:
        dpsgd_multiplier(0.1, 10, advantage=0.1, adjacency="replace")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="batches"):
        dpsgd_multiplier(0.1, 10, advantage=0.1, batches="sliced")  # pyright: ignore[reportArgumentType]
    expected = "unknown adjacency 'replace' (did you mean 'replace_one'?); known: add_remove, replace_one"
    assert str(caught.value) == expected
