"""Rounds of swaps without fits: the shifts of the fits within a step, never below, and a certificate that holds."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from leakbound.bounds.exact import exact_eta
from leakbound.core.grid import Grid
from leakbound.core.seeds import stream
from leakbound.core.types import Points
from leakbound.noise import GaussianNoise, Lp, Mahalanobis, SampledSwap, best_covariance, calibrate
from leakbound.protection.promises.drawn import swaps
from leakbound.protection.promises.drawn.swaps import swap_shifts
from leakbound.protection.setting.mechanism import Mechanism
from leakbound.releases.statistics.statistic import named
from leakbound.runtime.observe import DataSets, Execution
from tests.marks import nightly, nightly_but
from tests.noise.games import all_subsets

STATISTICS = {
    "covariance": named("covariance"),
    "ols": named("ols"),
    "quantiles": named("quantiles", probabilities=(0.3, 0.5)),
}
HERE = Execution(n_jobs=1)


def mechanism(name: str, n: int, k: int, c: int = 3, law: str = "normal") -> Mechanism:
    rng = stream(n, law, c)
    x = rng.standard_cauchy((n, c)) if law == "heavy" else rng.normal(size=(n, c))
    x[n - 2 :] = x[:2]  # twins
    return Mechanism(STATISTICS[name], Points(x), k, HERE)


def shape(d: int) -> np.ndarray:
    """An arbitrary one with correlations."""
    root = stream(d, "shape").normal(size=(d, d)) + 2 * np.eye(d)
    return root @ root.T


def raised(norm: Lp | Mahalanobis, d: int, step: float) -> float:
    """A bound of the length of all vectors with coordinates up to a step, of which none is above by brute force."""
    if isinstance(norm, Lp):
        bound = float(norm(np.full(d, step)))
    else:
        bound = step * float(np.sqrt(np.abs(np.linalg.inv(norm.shape)).sum()))
    signs = stream(d, "signs").choice([-1.0, 1.0], size=(2000, d))
    assert norm(step * signs).max() <= bound * (1 + 1e-12)
    return bound


@pytest.mark.by_day("covariance-12-6-heavy", "ols-12-6-heavy", "quantiles-12-6-heavy")
@pytest.mark.parametrize("law", ["normal", "heavy"])
@pytest.mark.parametrize(("n", "k"), [(12, 6), (13, 4), (20, 16), (60, 30)])
@pytest.mark.parametrize("name", STATISTICS)
def test_the_shifts_are_those_of_the_fits_within_a_step(name, n, k, law):
    made = mechanism(name, n, k, law=law)
    pairs, grid = SampledSwap(n, k, n_pairs=6, seed=3), Grid(2.0**-12)
    outputs = grid.snap(made.outputs(pairs))
    for norm in (Lp(2), Lp(1), Mahalanobis(shape(made.d))):
        fitted = pairs.shifts(outputs, norm)
        found, n_failures = swap_shifts(made, pairs, grid, norm)
        step = 0.0 if name == "quantiles" else raised(norm, made.d, grid.step)
        alike = found.values == 0
        assert (found.values >= fitted.values * (1 - 1e-12))[~alike].all()
        assert (np.abs(found.values - fitted.values) <= 2 * step * (1 + 1e-9) + 1e-12 * fitted.values).all()
        assert (fitted.values[alike] <= step).all()
        assert n_failures == 0
        assert (
            found.coupling,
            found.d,
            found.norm,
            found.prior,
            found.exact,
            found.promise,
            found.separating_fraction,
        ) == (
            (
                fitted.coupling,
                fitted.d,
                fitted.norm,
                fitted.prior,
                fitted.exact,
                fitted.promise,
                fitted.separating_fraction,
            )
        )


@pytest.mark.parametrize("norm", [Lp(2), Lp(1), Mahalanobis(shape(6))], ids=str)
def test_an_error_of_nearly_a_step_is_paid_for(norm, monkeypatch):
    """A closed form that errs by up to 0.999 steps, often to the other side of where a fit is rounded."""
    made, pairs, grid = mechanism("covariance", 30, 15), SampledSwap(30, 15, n_pairs=20), Grid(2.0**-6)
    rng, closed = stream(0, "errors"), swaps.swapped

    def erring(*arguments):
        values = closed(*arguments)
        return values + 0.999 * grid.step * rng.choice([-1.0, 1.0], size=values.shape)

    monkeypatch.setattr(swaps, "swapped", erring)
    fitted = pairs.shifts(grid.snap(made.outputs(pairs)), norm).values
    found = swap_shifts(made, pairs, grid, norm)[0].values
    step = raised(norm, made.d, grid.step)
    assert (found >= fitted - 1e-12)[found > 0].all()
    assert (found - step < fitted - 1e-12).any()  # without the step some would be too short
    assert (found <= fitted + 2 * step + 1e-12).all()


def test_twins_are_alike_and_no_others():
    made = mechanism("covariance", 12, 6)
    pairs = SampledSwap(12, 6, n_pairs=40)
    alike = swap_shifts(made, pairs, Grid(2.0**-10))[0].values == 0
    x = made.points.x
    for draw in range(pairs.n_pairs):
        leaving, entering = pairs.couples(draw)
        twins = (x[leaving] == x[entering]).all(axis=1)
        assert set(np.flatnonzero(alike[:, draw])) == {*leaving[twins], *entering[twins]}
    assert alike.any()


@pytest.mark.parametrize(("n", "k"), [(2, 1), (5, 2), (7, 5), (12, 6)])
def test_couples_are_the_swaps_of_the_pairs(n, k):
    pairs = SampledSwap(n, k, n_pairs=4, seed=1)
    for draw, sets in enumerate(pairs.member.reshape(4, -1, n)):
        leaving, entering = pairs.couples(draw)
        for row, out, into in zip(sets[1:], leaving, entering, strict=True):
            swap = sets[0].copy()
            swap[[out, into]] = [False, True]
            assert (row == swap).all()
        assert set(leaving) == set(np.flatnonzero(sets[0]))


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize("name", nightly_but(STATISTICS, "covariance"))
def test_the_certified_scale_is_hardly_larger(name):
    """At the finest grid that a pilot takes: 1,024 steps in a quarter of the least standard deviation of a shift."""
    made = mechanism(name, 40, 20)
    pilot, pairs = SampledSwap(40, 20, n_pairs=20, seed=1), SampledSwap(40, 20, n_pairs=150, seed=2)
    v = pilot.differences(made.outputs(pilot))
    flat = v.reshape(-1, v.shape[-1])
    shape = best_covariance(flat.T @ flat / len(flat), 1.0, ridge=1e-3)
    family = partial(GaussianNoise, shape=shape * len(shape) / np.trace(shape))
    rms = np.sqrt(np.square(v).mean(axis=(0, 1)).min())
    grid, norm = Grid.for_noise(rms / 4, float(np.abs(made.points.x).max())), family(1.0).norm
    fitted = pairs.shifts(grid.snap(made.outputs(pairs)), norm)
    found, _ = swap_shifts(made, pairs, grid, norm)
    needed, scale = (calibrate(shifts, 0.05, family, confidence=0.95).scale for shifts in (fitted, found))
    assert needed * (1 - 1e-8) <= scale < 1.02 * needed


@pytest.mark.slow
@pytest.mark.statistics
@pytest.mark.parametrize(("name", "n", "c"), [nightly("covariance", 8, 1), ("quantiles", 8, 1), nightly("ols", 6, 2)])
@pytest.mark.parametrize(("n_seeds", "most"), [(25, 6), pytest.param(100, 14, marks=pytest.mark.nightly)])
def test_the_certificate_holds(name, n, c, n_seeds, most):
    """Exact eta of the released mechanism above the target in at most 6 of 25, or 14 of 100, calibrations at 95 %.

    False alarm 2e-4. Failures of 38 %, or 20 %, are found in 9 of 10 cases. The largest eta of all records over all
    data sets, with the statistic on the grid; it falls with the scale, so that it is enough to look at the smallest
    scale but these.
    """
    k, eta = n // 2, 0.1
    statistic = named("quantiles", probabilities=(0.5,)) if name == "quantiles" else STATISTICS[name]
    made, grid = Mechanism(statistic, Points(stream(5, name).normal(size=(n, c))), k, HERE), Grid(2.0**-14)
    member, scales = all_subsets(n, k), []
    for seed in range(n_seeds):
        shifts, _ = swap_shifts(made, SampledSwap(n, k, n_pairs=30, seed=seed), grid)
        scales.append(calibrate(shifts, eta, GaussianNoise, confidence=0.95).scale)
    outputs = grid.snap(made.outputs(DataSets(member, np.zeros(len(member), dtype=int))))
    assert exact_eta(outputs, member, GaussianNoise(sorted(scales)[most])).max() <= eta
    assert exact_eta(outputs, member, GaussianNoise(float(np.median(scales)) / 8)).max() > eta  # not vacuous


def test_failures_are_infinite_and_counted():
    """A record whose square is beyond 2^53 steps: D fails with it, and so does the swap that takes it in."""
    x = stream(0, "off").normal(size=(12, 2))
    x[4] = 1e7
    made, pairs, grid = Mechanism(STATISTICS["covariance"], Points(x), 6, HERE), SampledSwap(12, 6, 30), Grid(2.0**-12)
    outputs = grid.snap(made.outputs(pairs))
    fitted = pairs.shifts(outputs)
    found, n_failures = swap_shifts(made, pairs, grid)
    np.testing.assert_array_equal(np.isinf(found.values), np.isinf(fitted.values))
    assert 0 < np.isfinite(found.values).sum() < np.isinf(found.values).sum()
    assert n_failures == np.isnan(outputs.reshape(30, 7, -1)[:, 0]).any(axis=1).sum() > 0


def test_a_number_off_the_grid_is_a_failure():
    made, pairs = mechanism("ols", 12, 6), SampledSwap(12, 6, 3)
    found, n_failures = swap_shifts(made, pairs, Grid(2.0**-60))
    assert np.isinf(found.values).all()
    assert n_failures == 3


def test_a_public_coordinate_that_moves_tells_the_sets_apart():
    x = stream(0, "public").normal(size=(12, 3))
    x[:, 1] = 2.5
    made, pairs, grid = Mechanism(STATISTICS["covariance"], Points(x), 6, HERE), SampledSwap(12, 6, 5), Grid(2.0**-12)
    moving = np.array([True, False, True, False, False, True])
    found, _ = swap_shifts(made, pairs, grid, noisy_coords=moving)
    assert np.isfinite(found.values).all()
    assert found.d == 3
    moving[0] = False
    assert np.isinf(swap_shifts(made, pairs, grid, noisy_coords=moving)[0].values).all()


def test_any_number_of_workers_gives_the_same():
    alone = mechanism("ols", 30, 15)
    pairs, grid = SampledSwap(30, 15, n_pairs=11), Grid(2.0**-12)
    two = Mechanism(alone.statistic, alone.points, 15, Execution(n_jobs=2))
    first, second = (swap_shifts(made, pairs, grid)[0].values for made in (alone, two))
    assert first.tobytes() == second.tobytes()


def test_more_rounds_begin_with_the_same():
    made, grid = mechanism("covariance", 12, 6), Grid(2.0**-12)
    few, many = (swap_shifts(made, SampledSwap(12, 6, rounds), grid)[0].values for rounds in (3, 10))
    np.testing.assert_array_equal(many[:, :3], few)


def test_single_precision_is_rounded_up(monkeypatch):
    made, pairs, grid = mechanism("covariance", 20, 10), SampledSwap(20, 10, 10), Grid(2.0**-40)
    double = swap_shifts(made, pairs, grid)[0].values
    monkeypatch.setattr(swaps, "_DOUBLES", 100)
    single = swap_shifts(made, pairs, grid)[0].values
    assert (double.dtype, single.dtype) == (np.float64, np.float32)
    assert (single >= double).all()
    assert (single > double).any()
    np.testing.assert_allclose(single, double, rtol=2.0**-23)
    np.testing.assert_array_equal(single == 0, double == 0)


def test_bad_input(as_users_run_it):
    made, pairs, grid = mechanism("covariance", 12, 6), SampledSwap(12, 6, 3), Grid(2.0**-12)
    with pytest.raises(ValueError, match=r"^mean has no closed form for a swap; covariance, least squares and "):
        swap_shifts(Mechanism(named("mean"), made.points, 6), pairs, grid)
    with pytest.raises(ValueError, match=r"^the pairs have n = 12, k = 5; the data 12, 6$"):
        swap_shifts(made, SampledSwap(12, 5, 3), grid)
    with pytest.raises(
        ValueError, match=r"^noisy_coords must be 6 truth values, one of them true, got \[False, False\]$"
    ):
        swap_shifts(made, pairs, grid, noisy_coords=np.zeros(2, dtype=bool))
