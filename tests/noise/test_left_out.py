"""What noise hides of which record was left out: bounds against plain loops, searches, reference values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from leakbound.bounds import exact_left_out
from leakbound.core.types import NotApplicable, Points
from leakbound.noise import GaussianNoise, LaplaceNoise, LeftOut, NormNoise, calibrate_left_out, least_left_out_noise
from leakbound.noise.norms import Lp
from leakbound.releases.statistics.left_out import left_out_values
from leakbound.releases.statistics.statistic import named
from tests.marks import nightly

rng = np.random.default_rng(11)


def tables(n: int, d: int) -> dict[str, np.ndarray]:
    """Leave-one-out values of several kinds."""
    normal = rng.normal(size=(n, d))
    return {
        "normal": normal,
        "heavy tails": rng.standard_t(1.5, size=(n, d)),
        "ties": normal.round(),
        "many equal": np.where(np.arange(n)[:, None] < n - 3, 0.0, normal),
        "sphere": normal / np.linalg.norm(normal, axis=1, keepdims=True),
        "far from zero": normal + 1e9,
        "one outlier": np.vstack([normal[1:], np.full((1, d), 1e6)]),
    }


def by_pairs(values: np.ndarray, scale: float) -> np.ndarray:
    """Mean total variation of two Gaussians over the other records, by a double loop."""
    n = len(values)
    told = np.zeros(n)
    for x in range(n):
        for j in range(n):
            length = math.sqrt(sum((a - b) ** 2 for a, b in zip(values[x], values[j], strict=True)))
            told[x] += 0.0 if j == x else (2 * stats.norm.cdf(length / 2 / scale) - 1) / (n - 1)
    return told


def by_pairs_of(values: np.ndarray, record: int, scale: float) -> float:
    """The same of one record and one number."""
    lengths = np.abs(values[:, 0] - values[record, 0])
    return float((2 * stats.norm.cdf(lengths / 2 / scale) - 1).sum() / (len(values) - 1))


def by_centre(values: np.ndarray, scale: float) -> np.ndarray:
    """The bound by a noise at the mean of all values, by a triple loop over records and pairs."""
    n, centred = len(values), (values - values.mean(axis=0)) / scale
    told = np.zeros(n)
    for x in range(n):
        others = [centred[j] for j in range(n) if j != x]
        chi_square = np.mean([np.exp(b @ c) for b in others for c in others]) - 1
        told[x] = 2 * stats.norm.cdf(np.linalg.norm(centred[x]) / 2) - 1 + math.sqrt(max(chi_square, 0)) / 2
    return told


@pytest.mark.parametrize("kind", list(tables(9, 2)))
@pytest.mark.parametrize("scale", [0.5, 8.0])
def test_the_lesser_of_both_bounds(kind, scale) -> None:
    values = tables(9, 2)[kind]
    with np.errstate(over="ignore"):
        expected = np.minimum(by_pairs(values, scale), by_centre(values - values[0], scale))
    np.testing.assert_allclose(LeftOut(values).advantages(GaussianNoise(scale)), expected, rtol=1e-6, atol=1e-7)


@pytest.mark.by_day("12-1")
@pytest.mark.parametrize(("n", "d"), [(12, 1), (12, 3), (12, 33), (530, 3)])
def test_the_search_finds_the_largest(n, d) -> None:
    for kind, values in tables(n, d).items():
        left_out = LeftOut(values)
        for noise in (GaussianNoise(0.3), GaussianNoise(20.0)):
            told = left_out.advantages(noise)
            worst = left_out.worst(noise)
            assert worst.advantage == pytest.approx(told.max(), rel=1e-12), kind
            assert told[worst.record] == pytest.approx(told.max(), rel=1e-12), kind


@pytest.mark.by_day("2")
@pytest.mark.parametrize("d", [2, 40])
def test_the_bound_without_pairs_is_above_the_one_with_all_pairs(d) -> None:
    """Of more than 512 distinct values moments take the place of the pairs (j, k)."""
    values = rng.normal(size=(600, d))
    centred = values - values.mean(axis=0)
    for scale in (math.sqrt(d), 5 * math.sqrt(d), 30 * math.sqrt(d)):
        kernel = np.expm1(centred @ centred.T / scale**2)
        rows = kernel.sum(axis=1)
        chi_square = (kernel.sum() - 2 * rows + np.diagonal(kernel)) / 599**2
        length = np.linalg.norm(centred, axis=1) / scale
        exact = 2 * stats.norm.cdf(length / 2) - 1 + np.sqrt(np.maximum(chi_square, 0)) / 2
        pairs = np.linalg.norm(values[:, None] - values, axis=2)
        least = np.minimum(exact, (2 * stats.norm.cdf(pairs / 2 / scale) - 1).sum(axis=1) / 599)
        told = LeftOut(values).advantages(GaussianNoise(scale))
        assert (told >= least * (1 - 1e-9)).all()
        if scale > 4 * math.sqrt(d):  # the scales of a promise
            assert (told <= 1.02 * least).all()


def test_the_bound_without_pairs_is_exact_where_all_distances_are_equal() -> None:
    """A triangle of side 1: each of the two others is told by 2 Phi(1/(2 scale)) - 1."""
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, math.sqrt(0.75)]])
    measured = LeftOut(corners).whitened
    ceiling = measured.ceiling(GaussianNoise(0.2), measured.radius)
    assert ceiling == pytest.approx(2 * stats.norm.cdf(2.5) - 1, rel=1e-12)


@pytest.mark.parametrize("d", [3, 40])
def test_fourth_moments_over_all_pairs(d) -> None:
    """Of few coordinates exactly; of many no more than the second times the largest, and no less than the fourth."""
    values = 3 * rng.normal(size=(30, d))
    linear = rng.normal(size=(d, d)) / math.sqrt(d)
    rows = (values - values.mean(axis=0)) @ linear
    products, largest = rows @ rows.T, float(np.square(rows).sum(axis=1).max())
    mean_square, mean_fourth = LeftOut(values).moments.through(linear, largest)
    exact = np.mean(products**4)
    assert mean_square == pytest.approx(np.mean(products**2), rel=1e-9)
    if d == 3:
        assert mean_fourth == pytest.approx(exact, rel=1e-9)
    else:
        assert exact <= mean_fourth <= largest**2 * mean_square * (1 + 1e-9)


@pytest.mark.parametrize(
    "noise", [LaplaceNoise(0.7), GaussianNoise(0.6), GaussianNoise(1.0, np.array([0.3]))], ids=lambda each: repr(each)
)
def test_never_below_the_best_attacker_and_the_same_in_any_place(noise) -> None:
    for values in tables(9, 1).values():
        told = LeftOut(values).advantages(noise)
        assert (told >= exact_left_out(values - values[0], noise) - 1e-9).all()
        again = LeftOut(values[::-1] * 4).advantages(GaussianNoise(4 * noise.scale, getattr(noise, "shape", None)))
        if isinstance(noise, GaussianNoise):
            np.testing.assert_allclose(again[::-1], told, rtol=1e-9)


class TestOneNumber:
    """The total variation itself, between the exact one and 1e-9 above it."""

    @pytest.mark.by_day("1000000.0")
    @pytest.mark.parametrize("scale", [1e-7, 0.02, 0.3, 2.0, 40.0, 1e6])
    def test_of_every_record(self, scale) -> None:
        for kind, values in tables(40, 1).items():
            told = LeftOut(values).advantages(GaussianNoise(scale))
            exact = exact_left_out(values - values[0], GaussianNoise(scale))
            assert (told >= exact - 1e-11).all(), kind  # that integral has an error of its own
            assert (told <= exact + 1e-9).all(), kind

    def test_never_below_sums_of_signed_masses(self) -> None:
        """Any union of intervals is a lower bound: here all cells of a fine grid in which the record is more likely."""
        draws = np.random.default_rng(8)
        for _ in range(40):
            n, scale = int(draws.integers(2, 30)), float(10 ** draws.uniform(-2, 1))
            values = draws.choice([-3.0, 0.0, 0.5, 1.0, 7.0, 1e6], size=(n, 1)) + draws.normal(0, draws.choice([0, 1]))
            ends = np.unique((np.unique(values)[:, None] + scale * np.linspace(-9, 9, 2001)).ravel())
            cells = np.diff(stats.norm.cdf((ends - values) / scale), axis=1, prepend=0, append=1)
            told = LeftOut(values).advantages(GaussianNoise(scale))
            for record in range(n):
                others = (cells.sum(axis=0) - cells[record]) / (n - 1)
                assert told[record] >= np.maximum(cells[record] - others, 0).sum() - 1e-13

    def test_a_failure_among_the_others(self) -> None:
        values = np.array([[0.0], [1.0], [np.nan], [3.0], [np.nan]])
        y = np.linspace(-12, 15, 270_001)
        density = [stats.norm.pdf(y, value, 1.5) if np.isfinite(value) else 0 * y for value in values[:, 0]]
        told = LeftOut(values).advantages(GaussianNoise(1.5))
        for record in (0, 1, 3):
            others = sum(density[j] for j in range(5) if j != record) / 4
            exact = (np.abs(density[record] - others).sum() * (y[1] - y[0]) + 2 / 4) / 2
            assert told[record] == pytest.approx(exact, abs=1e-9)

    def test_of_more_than_1000_numbers_pairs_take_its_place(self) -> None:
        values = np.random.default_rng(9).lognormal(size=(1001, 1))
        scales = [calibrate_left_out(some, 0.05).scale for some in (values, np.vstack([values[:1], values[:1000]]))]
        assert scales[0] == pytest.approx(scales[1], rel=0.02)
        worst = LeftOut(values).worst(GaussianNoise(scales[0]))
        assert worst.advantage == pytest.approx(by_pairs_of(values, worst.record, scales[0]), rel=1e-12)


def test_a_shaped_noise_is_isotropic_in_its_own_coordinates() -> None:
    values, shape = rng.normal(size=(50, 2)), np.array([[2.0, 0.7], [0.7, 1.0]])
    whitened = np.linalg.solve(np.linalg.cholesky(shape), values.T).T
    told = LeftOut(values).advantages(GaussianNoise(3.0, shape))
    np.testing.assert_allclose(told, LeftOut(whitened).advantages(GaussianNoise(3.0)), rtol=1e-9)


def test_other_norms() -> None:
    values = rng.normal(size=(30, 2))
    for p in (1.0, 3.0, math.inf):
        noise = NormNoise(2.0, Lp(p), d=2)
        lengths = np.linalg.norm(values[:, None] - values, ord=p, axis=2)
        expected = noise.shift_tv(lengths).sum(axis=1) / 29
        np.testing.assert_allclose(LeftOut(values).advantages(noise), expected, rtol=1e-12)
        assert LeftOut(values).worst(noise).advantage == pytest.approx(expected.max())


class TestFailures:
    def test_a_failure_is_seen(self) -> None:
        """Without record 2 the statistic fails: the release tells it from all others."""
        values = np.array([[0.0], [1.0], [np.nan], [1.5]])
        told = LeftOut(values).advantages(GaussianNoise(1e9))
        np.testing.assert_allclose(told, [1 / 3, 1 / 3, 1.0, 1 / 3], atol=1e-6)
        assert LeftOut(values).worst(GaussianNoise(1.0)) == (1.0, 2)
        assert np.isnan(LeftOut(values).jackknife_std).all()

    def test_no_noise_hides_it(self) -> None:
        values = np.vstack([[[np.inf]], rng.normal(size=(9, 1))])
        with pytest.raises(ValueError, match=r"fails without 1 of the 10 records, and .* no noise hides it; leave"):
            calibrate_left_out(values, 0.05)

    def test_all_fail(self) -> None:
        with pytest.raises(NotApplicable):
            calibrate_left_out(np.full((4, 1), np.nan), 0.1)


class TestCalibration:
    @pytest.mark.parametrize("d", [1, 2, 12])
    def test_the_least_scale(self, d) -> None:
        for kind, values in tables(60, d).items():
            noise = calibrate_left_out(values, 0.07)
            left_out = LeftOut(values)
            assert left_out.worst(noise).advantage <= 0.14, kind
            assert left_out.worst(GaussianNoise(noise.scale * (1 - 1e-8))).advantage > 0.14, kind

    @pytest.mark.parametrize("unit", [1e-150, 1e-3, 1e150])
    def test_in_any_unit(self, unit) -> None:
        values = rng.normal(size=(40, 2))
        scales = [calibrate_left_out(each, 0.05).scale for each in (values, unit * values)]
        assert scales[1] == pytest.approx(unit * scales[0], rel=1e-8)

    def test_equal_values_are_outside_of_the_promise(self) -> None:
        for make in (calibrate_left_out, least_left_out_noise):
            with pytest.raises(NotApplicable):
                make(np.full((5, 2), 3.0), 0.1)

    def test_so_many_are_equal_that_no_noise_is_needed(self) -> None:
        """Three and two equal values of five: as they are they tell .75 at most."""
        values = np.array([1.0, 1.0, 1.0, 2.0, 2.0])[:, None]
        with pytest.raises(NotApplicable):
            calibrate_left_out(values, 0.38)
        assert LeftOut(values).worst(calibrate_left_out(values, 0.37)).advantage <= 0.74

    @pytest.mark.parametrize("eta", [0.0, 0.5, 5.0, math.nan])
    def test_eta_out_of_range(self, eta) -> None:
        with pytest.raises(ValueError, match="eta"):
            calibrate_left_out(np.arange(4.0)[:, None], eta)

    @pytest.mark.parametrize("shape", [(4,), (1, 3), (4, 0)])
    def test_other_shapes_are_refused(self, as_users_run_it, shape) -> None:
        with pytest.raises(ValueError, match="must have shape"):
            LeftOut(np.zeros(shape))

    @pytest.mark.parametrize("d", [2, 5])
    def test_a_shape_is_never_worse_than_the_plain_ones(self, d) -> None:
        values = rng.standard_t(3, size=(300, d)) * np.logspace(0, 4, d)
        weights = np.logspace(0, -8, d)
        suited = least_left_out_noise(values, 0.05, weights)
        assert LeftOut(values).worst(suited).advantage <= 0.1
        for shape in (np.diag(1 / weights), np.cov(values.T)):
            plain = calibrate_left_out(values, 0.05, lambda scale, shape=shape: GaussianNoise(scale, shape))
            ours, theirs = (each.scale**2 * (weights * np.diagonal(each.shape)).sum() for each in (suited, plain))
            assert ours <= theirs * (1 + 1e-4)


def test_a_shape_that_was_compared_on_the_farthest_values_alone() -> None:
    """Of more than 20,000 values: the promise is to all of them."""
    values = np.random.default_rng(2).standard_t(4, size=(25_000, 2)) * [1.0, 50.0]
    suited = least_left_out_noise(values, 0.05, np.array([1.0, 1 / 2500]))
    assert LeftOut(values).worst(suited).advantage <= 0.1
    few = least_left_out_noise(values[:15_000], 0.05, np.array([1.0, 1 / 2500]))
    assert few.rms(2) == pytest.approx(suited.rms(2), rel=0.3)


@pytest.mark.parametrize("kind", ["a constant column", "a double column", "one value alone", "few values"])
def test_shapes_of_values_on_a_plane(kind) -> None:
    normal = np.random.default_rng(3).normal(size=(60, 3))
    values = {
        "a constant column": normal * [1, 0, 1],
        "a double column": normal[:, [0, 0, 1]],
        "one value alone": np.vstack([np.zeros((59, 3)), [[1.0, 2.0, 3.0]]]),
        "few values": np.repeat(normal[:4], 15, axis=0),
    }[kind]
    assert LeftOut(values).worst(least_left_out_noise(values, 0.05)).advantage <= 0.1


def wages(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """School, years and wage of the survey of the documentation."""
    draws = np.random.default_rng(seed)
    draws.choice(4, n, p=[0.4, 0.35, 0.24, 0.01])
    school, years = draws.integers(8, 19, n), draws.integers(0, 40, n)
    wage = np.minimum(80, 12 * np.exp(0.06 * school + 0.01 * years + draws.normal(0, 0.35, n))).round(2)
    return school, years, wage


class TestReferenceValues:
    """Computed beforehand by other code, to 1 %."""

    def test_the_mean_of_wages(self) -> None:
        *_, wage = wages(1000, 0)
        values = (wage.sum() - wage[:, None]) / 999
        assert LeftOut(values).jackknife_std[0] == pytest.approx(0.4505, rel=1e-3)
        scale = calibrate_left_out(values, 0.05).scale
        assert scale == pytest.approx(0.183540, rel=1e-5)
        record = LeftOut(values).worst(GaussianNoise(scale)).record
        for factor, kept in ((1 + 2e-5, True), (1 - 2e-5, False)):
            noise = GaussianNoise(0.183540 * factor)
            assert (exact_left_out(values, noise, np.array([record]))[0] <= 0.1) == kept
            # the mean over pairs alone
            assert (by_pairs_of(values, record, 0.183623 * factor) <= 0.1) == kept
        # without any pair
        radius, variance = np.abs(values - values.mean()).max(), values.var()
        longest = math.sqrt(1000 / 999 * (radius**2 + variance))
        assert longest / (2 * stats.norm.ppf(0.55)) == pytest.approx(0.1922, rel=1e-3)

    def test_without_a_left_out_record(self) -> None:
        """Of all n, with the same noise with and without x; and how often the left-out record is named right."""
        *_, wage = wages(1000, 0)
        values, mu = (wage.sum() - wage[:, None]) / 999, 2 * stats.norm.ppf(0.55)
        assert np.abs(values - wage.mean()).max() / mu == pytest.approx(0.18356, rel=1e-4)
        assert 80 / 1000 / mu == pytest.approx(0.318316, rel=1e-5)  # differential privacy, wages of 0 to 80
        told = LeftOut(values).advantages(GaussianNoise(0.183540))
        pairs = [by_pairs_of(values, record, 0.183540) for record in range(1000)]
        assert (1 - 1 / 1000) * np.mean(pairs) == pytest.approx(0.034, abs=5e-4)
        assert told.mean() < np.mean(pairs)

    @pytest.mark.parametrize(
        ("penalty", "printed"), [(5.0, [0.01055, 0.01136, 0.01086]), (1e-6, [0.01058, 0.01148, 0.01096])]
    )
    def test_logistic_regression(self, penalty, printed) -> None:
        """Wage above its median, standardised columns; the shape is the covariance of the values."""
        school, years, wage = wages(5000, 1)
        x = np.column_stack([school, years])
        points = Points((x - x.mean(axis=0)) / x.std(axis=0), wage > np.median(wage))
        _, values = left_out_values(named("logistic", penalty=1 / penalty), points) or (None, None)
        assert values is not None
        left_out, shape = LeftOut(values), np.cov(values.T)
        noise = calibrate_left_out(left_out, 0.05, lambda scale: GaussianNoise(scale, shape))
        ratio = noise.scale * np.sqrt(np.diagonal(shape)) / printed  # by pairs alone; a centre gives 2 % less
        assert (ratio <= 1.001).all()
        assert (ratio >= 0.97).all()
        by_printed = GaussianNoise(printed[0] / math.sqrt(shape[0, 0]), shape)
        farthest = np.argsort(-by_printed.norm(values - values.mean(axis=0)))[:100]
        of_pairs = [by_printed.shift_tv(by_printed.norm(values - values[record])).sum() / 4999 for record in farthest]
        assert max(of_pairs) == pytest.approx(0.1, rel=0.01)
        assert left_out.jackknife_std == pytest.approx([0.0316, 0.0341, 0.0327], rel=0.01)

    def test_quartiles_of_wages(self) -> None:
        *_, wage = wages(1000, 0)
        values = np.array([np.quantile(np.delete(wage, i), [0.25, 0.5, 0.75]) for i in range(1000)])
        assert LeftOut(values).jackknife_std[1] == pytest.approx(0.316, rel=0.01)  # which is wrong: .494
        scales = [calibrate_left_out(values[:, [column]], 0.05).scale for column in range(3)]
        assert scales == pytest.approx([0.0596, 0.0395, 0.1192], rel=0.01)

    def test_least_squares(self) -> None:
        school, years, wage = wages(5000, 1)
        x = np.column_stack([np.ones(5000), school, years])
        inverse = np.linalg.inv(x.T @ x)
        fitted = inverse @ x.T @ wage
        leverage = np.einsum("ij,jk,ik->i", x, inverse, x)
        values = fitted - (x @ inverse) * ((wage - x @ fitted) / (1 - leverage))[:, None]
        left_out = LeftOut(values)
        np.testing.assert_allclose(left_out.jackknife_std, [0.7347, 0.0547, 0.0148], rtol=2e-3)
        shape = np.cov(values.T)
        noise = calibrate_left_out(left_out, 0.05, lambda scale: GaussianNoise(scale, shape))
        printed = np.array([0.39557, 0.02945, 0.00797])  # by pairs alone; a centre gives .7 % less
        ratio = noise.scale * np.sqrt(np.diagonal(shape)) / printed
        assert (ratio <= 1.001).all()
        assert (ratio >= 0.99).all()
        best = least_left_out_noise(left_out, 0.05, left_out.jackknife_std**-2)
        found = best.scale * np.sqrt(np.diagonal(best.shape)) / left_out.jackknife_std
        reference = np.array([0.3266, 0.02261, 0.00532]) / [0.7347, 0.0547, 0.0148]
        assert np.square(found).sum() == pytest.approx(np.square(reference).sum(), rel=0.01)

    def test_normal_values(self) -> None:
        draws = np.random.default_rng(0)
        found = {d: calibrate_left_out(draws.normal(size=(1000, d)), 0.05).scale for d in (1, 2, 5, 10, 30, 100)}
        printed = {1: 15.33, 5: 17.57, 10: 23.47, 100: 50.6}
        assert {d: found[d] for d in printed} == pytest.approx(printed, rel=0.01)

    @pytest.mark.parametrize(
        ("d", "of_centre", "of_pairs"),
        [(1, 15.56, 15.33), *(nightly(*case) for case in ((5, 17.57, 18.94), (10, 23.47, 25.88), (100, 50.6, 63.7)))],
    )
    def test_both_bounds_of_normal_values(self, d, of_centre, of_pairs) -> None:
        """Each bound by itself, of all records and all pairs, without the code under test."""
        draws = np.random.default_rng(0)
        values = {each: draws.normal(size=(1000, each)) for each in (1, 2, 5, 10, 30, 100)}[d]
        lengths = np.sqrt(np.maximum(np.square(values[:, None] - values).sum(axis=2), 0))

        def by_all_pairs(scale: float) -> float:
            return float((2 * stats.norm.cdf(lengths / 2 / scale) - 1).sum(axis=1).max() / 999)

        def by_the_centre(scale: float) -> float:
            """Around the mean of the others, for each record."""
            told = []
            for record in np.argsort(-np.square(values).sum(axis=1))[:5]:
                others = np.delete(values, record, axis=0)
                centre = others.mean(axis=0)
                excess = np.expm1((others - centre) @ (others - centre).T / scale**2).mean()
                length = np.linalg.norm(values[record] - centre) / scale
                told.append(2 * stats.norm.cdf(length / 2) - 1 + math.sqrt(excess) / 2)
            return max(told)

        for bound, printed in ((by_all_pairs, of_pairs), (by_the_centre, of_centre)):
            assert bound(1.01 * printed) < 0.1 < bound(0.99 * printed)

    def test_counts(self) -> None:
        """Twelve equal cells after the total is projected out; two cells are one number."""
        twelve = 100 - np.eye(12)[np.repeat(np.arange(12), 100)]
        assert calibrate_left_out(twelve, 0.05).scale * math.sqrt(11 / 12) == pytest.approx(3.88, rel=0.01)
        n, smallest = 1200, 100
        scale = math.sqrt(2) / (2 * stats.norm.ppf(0.5 + 0.1 * (n - 1) / (n - smallest) / 2))
        assert np.abs(by_pairs(twelve[::100], scale)[0] * 11 / 12 * n / (n - 1) - 0.1) < 1e-9
        assert math.sqrt(2) / (2 * stats.norm.ppf(0.55)) == pytest.approx(5.63, rel=1e-3)  # of an only record
        one = 500.0 - (np.arange(1000) < 500)[:, None]
        assert calibrate_left_out(one, 0.05).scale == pytest.approx(1.976, rel=1e-3)

    def test_nine_values(self) -> None:
        x = np.random.default_rng(0).lognormal(size=9)
        values = (x.sum() - x[:, None]) / 8
        bound, exact = by_pairs(values, 0.3), LeftOut(values).advantages(GaussianNoise(0.3))
        assert [bound.max(), exact.max()] == pytest.approx([0.38279, 0.38040], rel=1e-4)
        assert any((bound[x], exact[x]) == pytest.approx((0.13267, 0.07498), rel=1e-3) for x in range(9))


def test_without_noise_only_equal_values_hide() -> None:
    values = np.array([[1.0, 2.0], [1.0, 2.0], [0.0, 0.0]])
    assert exact_left_out(values).tolist() == [0.5, 0.5, 1.0]
    with pytest.raises(ValueError, match="must be finite and of shape"):
        exact_left_out(np.array([[1.0], [np.nan]]))


class TestComparedWithDifferentialPrivacy:
    """What docs/which-promise.md and the recommendation say of noise for the same eta, .05: mu = 2 Phi^-1(.55)."""

    MU = 2 * stats.norm.ppf(0.55)

    @pytest.mark.parametrize(
        ("n_levels", "low", "high"), [(2, 1.95, 2.05), (3, 1.45, 1.55), (4, 1.4, 1.5), (12, 1.3, 1.5)]
    )
    def test_counts_need_twice_the_noise_or_half_more(self, n_levels, low, high) -> None:
        """A record that is replaced moves two counts by one each; here all levels are equally frequent."""
        level = np.arange(4800) % n_levels
        without = 4800 // n_levels - (level[:, None] == np.arange(n_levels)).astype(float)
        of_dp = math.sqrt(2) / self.MU
        assert low < of_dp / calibrate_left_out(without, 0.05).scale < high

    @pytest.mark.parametrize(("draw", "low", "high"), [("normal", 1.75, 1.85), ("uniform", 1.9, 2.0)])
    def test_a_later_query_needs_nearly_twice_the_noise_of_symmetric_data(self, draw, low, high) -> None:
        """Its noise hides every pair of records, and so the two farthest ones."""
        x = getattr(np.random.default_rng(0), draw)(size=1000)
        without = (x.sum() - x[:, None]) / 999
        of_all_pairs = np.ptp(without) / self.MU
        assert low < of_all_pairs / calibrate_left_out(without, 0.05).scale < high
