"""A statistic of a random subset: sizes, draws, and a release that lies on the grid."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leakbound.core.grid import Grid
from leakbound.data import from_arrays
from leakbound.protection.setting.mechanism import Mechanism
from leakbound.releases.statistics.algorithms import Function
from leakbound.releases.statistics.statistic import Fit, named
from leakbound.runtime.observe import DataSets

GRID = Grid(2.0**-10)


def points(n: int = 40, d: int = 2, seed: int = 0):
    return from_arrays(np.random.default_rng(seed).normal(size=(n, d)))


def test_half_of_the_records_are_drawn_unless_told():
    assert Mechanism.of(named("mean"), points(41)).k == 20
    made = Mechanism.of(named("mean"), points(40), k=10)
    assert (made.prior, made.prior_accuracy) == (0.25, 0.75)


@pytest.mark.parametrize("k", [0, 40, 41])
def test_a_size_that_leaves_nobody_in_or_out_is_refused(k):
    with pytest.raises(ValueError, match=r"k must be"):
        Mechanism.of(named("mean"), points(40), k=k)


def test_a_mean_is_divided_by_k_and_a_sum_is_not():
    assert [Mechanism.of(named(name), points(), k=7).divisor for name in ("mean", "sum", "covariance")] == [7, 1, 1]


def test_the_shape_of_a_function_is_settled_on_draws_of_the_calibration():
    made = Mechanism.of(Fit("largest", Function(lambda x: x.max(axis=0))), points(d=3))
    assert made.d == 3
    with pytest.raises(ValueError, match="cannot be computed on any of 8 data sets: division by zero"):
        Mechanism.of(Fit("never", Function(lambda x: 1 / 0)), points())


def test_draws_are_uniform_subsets_of_size_k():
    draws = Mechanism.of(named("mean"), points(6), k=2).draws(6000, 0, "test").member
    assert (draws.sum(axis=1) == 2).all()
    words, counts = np.unique(draws @ (1 << np.arange(6)), return_counts=True)
    assert len(words) == math.comb(6, 2)
    assert np.abs(counts - 400).max() < 5 * math.sqrt(400)  # five standard errors


@settings(max_examples=50)
@given(st.integers(0, 10_000), st.integers(1, 39))
def test_a_released_mean_is_a_whole_number_of_steps_over_k(seed, k):
    mechanism = Mechanism.of(named("mean"), points(seed=seed), k=k)
    rng = np.random.default_rng(seed)
    member = mechanism.draws(1, seed, "test").member[0]
    value = mechanism.release(member, rng.normal(size=2), GRID, rng)
    steps = value * k / GRID.step
    np.testing.assert_allclose(steps, np.rint(steps), rtol=1e-12)


def test_neighbouring_data_have_the_same_support():
    """What one noise makes of D another noise makes of its neighbour, bit by bit: the same whole numbers of steps."""
    rng = np.random.default_rng(0)
    for name in ("mean", "sum", "covariance"):
        mechanism = Mechanism.of(named(name), points(12), k=6)
        member = mechanism.draws(1, 0, "test").member[0]
        neighbour = member.copy()
        neighbour[[np.flatnonzero(member)[0], np.flatnonzero(~member)[0]]] = [False, True]
        zero = np.zeros(mechanism.d)
        apart = mechanism.release(member, zero, GRID, rng) - mechanism.release(neighbour, zero, GRID, rng)
        noise = rng.normal(size=mechanism.d)
        one = mechanism.release(member, noise, GRID, rng)
        moved = np.rint(noise * mechanism.divisor / GRID.step) * GRID.step / mechanism.divisor + apart
        assert (mechanism.release(neighbour, moved, GRID, rng) == one).all()


def test_a_release_without_noise_is_the_statistic_to_half_a_step():
    for name in ("mean", "sum", "covariance", "quantiles"):
        mechanism = Mechanism.of(named(name), points(), k=20)
        draws = mechanism.draws(1, 0, "test")
        value = mechanism.release(draws.member[0], np.zeros(mechanism.d), GRID, np.random.default_rng(0))
        most = GRID.step / 2 * (20 if name == "sum" else 1)  # each feature of a sum is rounded
        assert np.abs(value - mechanism.outputs(draws)[0]).max() <= most


def test_a_statistic_that_fails_on_the_draw_releases_nothing_else():
    broken = Fit("broken", Function(lambda x: x.max(axis=0) if len(x) > 3 else 1 / 0))
    mechanism = Mechanism.of(broken, points(8), k=4)
    few = np.arange(8) < 3
    assert np.isnan(mechanism.release(few, np.zeros(2), GRID, np.random.default_rng(0))).all()


def test_sampling_error_is_that_of_a_large_population():
    x = np.random.default_rng(1).normal(size=(400, 1)) * 3
    mechanism = Mechanism.of(named("mean"), from_arrays(x), k=100)
    outputs = mechanism.outputs(mechanism.draws(4000, 0, "test"))
    want = x.std(ddof=1) / math.sqrt(100)
    assert abs(mechanism.sampling_std(outputs)[0] / want - 1) < 5 / math.sqrt(2 * 4000)
    assert np.isnan(mechanism.sampling_std(np.full((3, 1), np.nan))).all()


@pytest.mark.slow
def test_outputs_are_doubles_and_the_same_with_any_number_of_workers(tmp_path):
    from leakbound.runtime.observe import Execution

    sets = Mechanism.of(named("quantiles"), points(), k=20).draws(40, 0, "test")
    made = [
        Mechanism.of(named("quantiles"), points(), 20, 0, execution).outputs(sets)
        for execution in (Execution(n_jobs=1), Execution(n_jobs=2), Execution(tmp_path, 1), Execution(tmp_path, 1))
    ]
    assert made[0].dtype == np.float64
    assert all((each == made[0]).all() for each in made[1:])


def test_an_empty_list_of_data_sets_has_no_outputs():
    mechanism = Mechanism.of(named("mean"), points(), k=20)
    assert mechanism.outputs(DataSets(np.zeros((0, 40), dtype=bool), np.zeros(0, dtype=int))).shape == (0, 2)
