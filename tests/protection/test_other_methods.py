"""The noise of other methods on one statistic: closed forms, enumeration of all draws, replacing records one by one."""

from __future__ import annotations

import math
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from benchmarks.other_methods import compared, ranges_of, sensitivity, survey_wages
from scipy import special, stats

from leakbound.core.types import NotApplicable, Points
from leakbound.noise import calibrate, eta_bound, izzo, moment, noise_of_information, swap_linear
from leakbound.protection.promises.drawn.spread import Spread, total_error
from leakbound.protection.setting.mechanism import Mechanism
from leakbound.releases.statistics.features import Cells, Histogram, SecondMoments, columns_of
from leakbound.releases.statistics.statistic import Linear, named
from leakbound.runtime.observe import DataSets, Execution
from tests.marks import nightly_but

ETA = 0.05
DRAWN = np.random.default_rng(3).normal(size=(1000, 3))
NORMAL = DRAWN @ np.linalg.inv(np.linalg.cholesky(np.cov(DRAWN.T))).T  # of unit covariance, as the theory has it
NAMES = (
    "dp_laplace",
    "dp_gaussian",
    "dp_gaussian_pair",
    "pac_shape_of_sigma",
    "pac_least_noise",
    "averaged_information",
    "izzo_printed",
    "izzo_gamma",
    "moment_bound",
)
DP, SPREAD = NAMES[:3], NAMES[3:]


def average(x: np.ndarray) -> Any:
    """The mean as a function of which nothing is known."""
    return x.mean(axis=0)


def seldom(x: np.ndarray) -> Any:
    """Fails where record 0 is in."""
    return np.nan if (x == 0).any() else x.mean()


def mechanism(statistic: Any, x: np.ndarray, k: int | None = None, y: Any = None) -> Mechanism:
    statistic = named(statistic) if isinstance(statistic, str) else statistic
    return Mechanism.of(statistic, Points(x, y), k, execution=Execution(n_jobs=1))


def within(made: Mechanism, most: float | None) -> dict[str, tuple[float, float]]:
    """The same range of all columns."""
    return {} if most is None else dict.fromkeys(columns_of(made.points.x), (-most, most))


def rows(made: Mechanism, eta: float = ETA, most: float | None = None, n_draws: int = 50) -> dict[str, Any]:
    found = compared(made, eta, n_draws, seed=0, declared=within(made, most))
    assert tuple(found) == NAMES
    return found


def rms(noise: Any) -> float:
    """Root mean square over the coordinates."""
    return math.sqrt(np.square(noise).mean())


def nats(eta: float, prior: float = 0.5) -> float:
    best = max(prior, 1 - prior)
    return float(special.rel_entr([best + eta, 1 - best - eta], [best, 1 - best]).sum())


class TestOneMean:
    """n = 1000 points of N(0, I) in R^3, halves of 500, accuracy at most 0.55."""

    found = rows(mechanism("mean", NORMAL), most=4.0)
    sigma = np.cov(NORMAL.T) / 1000  # (1 - 500/1000)/500

    def test_the_numbers_of_the_theory(self):
        """Those of the swap depend on the draw: the worst record on its distance from the others."""
        for name in NAMES[3:5]:
            assert round(rms(self.found[name]), 3) == 0.547
        assert round(rms(self.found["averaged_information"]), 4) == 0.0061
        swapped = swap_linear(NORMAL, 500)
        assert calibrate(swapped, ETA).scale <= 0.036
        assert calibrate(swapped.average(), ETA).scale <= 0.018
        for name in (*NAMES[:5], *NAMES[6:]):
            assert rms(self.found[name]) > 3 * calibrate(swapped, ETA).scale, name

    def test_pac_privacy(self):
        least = self.sigma.trace() / 3 / math.expm1(2 * nats(ETA) / 3)
        assert rms(self.found["pac_shape_of_sigma"]) == pytest.approx(math.sqrt(least), rel=1e-9)
        best = noise_of_information(self.sigma, nats(ETA)).trace() / 3
        assert rms(self.found["pac_least_noise"]) == pytest.approx(math.sqrt(best), rel=1e-9)

    def test_averaged_information(self):
        sizes = np.arange(1, 1001)
        inverse = stats.binom.pmf(sizes, 1000, 0.5) @ (1 / sizes - 1 / 1000)
        best = noise_of_information(np.cov(NORMAL.T) * inverse, 1000 * nats(ETA)).trace() / 3
        assert rms(self.found["averaged_information"]) == pytest.approx(math.sqrt(best), rel=1e-6)

    def test_differential_privacy(self):
        laplace = math.sqrt(2) * (2 * 4 * 3 / 500) / (2 * math.atanh(2 * ETA))
        assert rms(self.found["dp_laplace"]) == pytest.approx(laplace, rel=1e-9)
        gaussian = 2 * 4 * math.sqrt(3) / 500 / (2 * stats.norm.ppf(0.5 + ETA))
        assert rms(self.found["dp_gaussian"]) == pytest.approx(gaussian, rel=1e-7)
        assert rms(self.found["dp_gaussian_pair"]) > gaussian

    def test_algorithm_1(self):
        """Radius b = (6.16/eta)^2, in the norm ``(mean z_j^2/sigma_j^2)^(1/2)``: E r^2 is d (d+1) b^2, or 2 b^2."""
        spread = math.sqrt(self.sigma.trace() / 3) * (6.16 / ETA) ** 2
        assert rms(self.found["izzo_gamma"]) == pytest.approx(spread * math.sqrt(12), rel=1e-9)
        assert rms(self.found["izzo_printed"]) == pytest.approx(spread * math.sqrt(2), rel=1e-9)

    def test_moment_bound(self):
        roots = np.sqrt(np.linalg.eigvalsh(self.sigma)).sum()
        expected = roots / math.sqrt(3) / stats.norm.ppf(0.5 + ETA)
        assert rms(self.found["moment_bound"]) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("statistic", ["mean", "sum"])
@pytest.mark.parametrize(("n", "k"), [(6, 2), (5, 3)])
def test_covariances_are_those_of_all_draws(statistic, n, k):
    """Fixed size: all subsets. Poisson: all 2^n, weighted; the mean of nobody stands for that of all."""
    x = np.random.default_rng(1).normal(size=(n, 2)) * [1, 5] + [3, 0]
    of = np.mean if statistic == "mean" else np.sum
    fixed = [of(x[list(each)], axis=0) for each in combinations(range(n), k)]
    sets = [np.array(each, dtype=bool) for each in product((0, 1), repeat=n)]
    weights = [np.prod(np.where(each, k / n, 1 - k / n)) for each in sets]
    outputs = [of(x[each] if each.any() or statistic == "sum" else x, axis=0) for each in sets]
    found = rows(mechanism(statistic, x, k), eta=0.1)
    least = noise_of_information(np.cov(np.array(fixed).T, bias=True), nats(0.1, k / n))
    assert rms(found["pac_least_noise"]) == pytest.approx(math.sqrt(least.trace() / 2), rel=1e-9)
    independent = np.cov(np.array(outputs).T, aweights=weights, bias=True)
    least = noise_of_information(independent, n * nats(0.1, k / n))
    assert rms(found["averaged_information"]) == pytest.approx(math.sqrt(least.trace() / 2), rel=1e-9)


@pytest.mark.slow
@pytest.mark.statistics
def test_sampled_covariances_agree_with_exact_ones():
    """Standard deviations from 2,000 draws err by 1.6 %: 8 % is 5 of them, a false alarm below 1e-5."""
    exact, made = rows(mechanism("mean", NORMAL)), mechanism("tests.protection.test_other_methods:average", NORMAL)
    sampled = rows(made, n_draws=2000)
    for name in SPREAD:
        assert rms(sampled[name]) == pytest.approx(rms(exact[name]), rel=0.08)
    assert rms(sampled["averaged_information"]) != rms(sampled["pac_least_noise"])


def test_the_draws_follow_from_the_seed():
    made = mechanism("tests.protection.test_other_methods:average", NORMAL[:50])
    first, again, other = (compared(made, ETA, 40, seed=seed) for seed in (1, 1, 2))
    for name in SPREAD:
        assert np.array_equal(first[name], again[name])
        assert not np.array_equal(first[name], other[name])


def bounds(made: Mechanism, most: float) -> tuple[Any, float, float]:
    """Units and bounds of the moves by the code."""
    found = sensitivity(made, ranges_of(made, within(made, most)))
    return found.unit, found.l1, found.l2


def moved(made: Mechanism, unit: Any = 1.0) -> tuple[float, float]:
    """Largest l1 and l2 distance of the outputs on two sets that differ in one record, in these units."""
    n, k = made.n, made.k
    sets = list(combinations(range(n), k))
    member = np.zeros((len(sets), n), dtype=bool)
    for row, each in zip(member, sets, strict=True):
        row[list(each)] = True
    outputs = dict(zip(sets, made.outputs(DataSets(member, np.zeros(len(sets), dtype=int))), strict=True))
    one = two = 0.0
    for rest in combinations(range(n), k - 1):
        others = sorted(set(range(n)) - set(rest))
        near = np.array([outputs[tuple(sorted((*rest, each)))] for each in others])
        gaps = np.abs(near[:, None] - near) / unit
        one, two = max(one, gaps.sum(axis=-1).max()), max(two, np.sqrt(np.square(gaps).sum(axis=-1)).max())
    return one, two


CLIP = 1.5
CORNERS = np.array(list(product((-CLIP, 0.0, CLIP), repeat=2)))
HISTOGRAM = Linear("histogram", Histogram(("x0", "x1"), ((-2.0, 0.0, 1.0), (-1.0, 1.0))), "sum")
TABLE = Linear("table", Cells(("x0",), ((-CLIP, 0.0),)), "sum")


class TestSensitivity:
    @pytest.mark.parametrize("statistic", ["mean", "sum", "covariance", HISTOGRAM, TABLE], ids=str)
    @pytest.mark.parametrize("k", [2, 3])
    def test_is_reached(self, statistic, k):
        """By records in the corners and the middle of the square, each k times."""
        made = mechanism(statistic, np.vstack([CORNERS] * k), k)
        found = sensitivity(made, None if statistic in (HISTOGRAM, TABLE) else ranges_of(made, within(made, CLIP)))
        np.testing.assert_allclose([found.l1, found.l2], moved(made, found.unit), rtol=1e-9)

    def test_of_products_is_reached(self):
        """In l1 by a corner and the middle, in l2 by two neighbouring corners."""
        made = mechanism("second_moment", np.vstack([CORNERS, CORNERS]), 2)
        unit, *found = bounds(made, CLIP)
        np.testing.assert_allclose(found, moved(made, unit), rtol=1e-9)
        np.testing.assert_allclose(unit, CLIP**2 / 2)
        assert found == [3.0, 2.0]

    def test_of_products_of_one_sign_is_not_exceeded(self):
        """By the two ends of a column: no entry moves by more than 1 in units of its largest product."""
        made = mechanism("second_moment", np.abs(np.vstack([CORNERS, CORNERS])), 2)
        found = sensitivity(made, ranges_of(made, declared={"x0": (0, CLIP), "x1": (0, CLIP)}))
        np.testing.assert_allclose([found.l1, found.l2], moved(made, found.unit), rtol=1e-9)
        assert found.l2 == math.sqrt(3)

    @pytest.mark.parametrize("n_columns", [1, 2, 3, 4])
    @pytest.mark.parametrize("k", [1, 2, 3])
    @pytest.mark.parametrize("seed", nightly_but(range(3), 0))
    def test_is_never_exceeded(self, n_columns, k, seed):
        """Random records, half of their numbers at an end."""
        rng = np.random.default_rng([seed, n_columns, k])
        x = rng.uniform(-CLIP, CLIP, size=(10, n_columns))
        x = np.where(rng.random(x.shape) < 0.5, np.sign(x) * CLIP, x)
        centred = Linear("second_moment", SecondMoments(tuple(rng.normal(size=n_columns))), "mean")
        for statistic in ("mean", "sum", "second_moment", "covariance", centred):
            if (statistic, k) == ("covariance", 1):
                continue
            made = mechanism(statistic, x, k)
            unit, *most = bounds(made, CLIP)
            for bound, found in zip(most, moved(made, unit), strict=True):
                assert found <= bound * (1 + 1e-12)

    def test_counts_need_no_range(self):
        made = mechanism(HISTOGRAM, CORNERS)
        found = sensitivity(made, None)
        assert (found.unit.tolist(), found.l1, found.l2) == (
            [1.0] * 3,
            3.0,
            math.sqrt(3),
        )  # two bins of x0, a single one of x1

    @pytest.mark.parametrize("statistic", ["mean", "sum", "second_moment", "covariance"])
    def test_columns_need_one(self, statistic):
        with pytest.raises(NotApplicable, match="needs the range of each column"):
            sensitivity(mechanism(statistic, CORNERS), None)

    @pytest.mark.parametrize(
        ("statistic", "what"),
        [
            ("ols", "ols coefficients"),
            ("quantiles", "quantiles"),
            ("tests.protection.test_other_methods:average", "average"),
        ],
    )
    def test_without_a_bound(self, statistic, what):
        found = rows(mechanism(statistic, NORMAL[:30]), most=1.0)
        for name in DP:
            assert str(found[name]) == (
                f"no bound of the sensitivity of {what} is known; clipping the data does not give one"
            )
        assert all(rms(found[name]) > 0 for name in SPREAD)

    def test_a_single_record_has_no_covariance(self):
        with pytest.raises(NotApplicable, match="the covariance of a single record is 0"):
            bounds(mechanism("covariance", CORNERS, 1), 1.0)

    def test_each_column_has_a_range_of_its_own(self):
        """Wages from 0 to 80 and parts from 0 to 1: noise in proportion to the range, by hand."""
        x = np.random.default_rng(0).uniform(size=(400, 2)) * [80, 1]
        found = compared(mechanism("mean", x), ETA, 50, 0, {"x0": (0.0, 80.0), "x1": (0.0, 1.0)})
        expected = np.array([80, 1]) * math.sqrt(2) / 200 / (2 * stats.norm.ppf(0.5 + ETA))
        np.testing.assert_allclose(found["dp_gaussian"], expected, rtol=1e-7)

    def test_a_column_without_a_range_has_that_of_the_data(self):
        x = np.random.default_rng(0).uniform(size=(400, 2)) * [80, 1]
        found = compared(mechanism("mean", x), ETA, 50, 0, {"x1": (0.0, 1.0)})
        expected = 2 * math.sqrt(2) * np.ptp(x[:, 0]) / 200 / (2 * math.atanh(2 * ETA))
        assert found["dp_laplace"][0] == pytest.approx(expected, rel=1e-9)

    def test_an_unknown_column_of_ranges_is_refused(self):
        with pytest.raises(ValueError, match="unknown column of ranges 'wagge'"):
            compared(mechanism("mean", NORMAL), ETA, 50, 0, {"wagge": (0.0, 1.0)})


class TestTotalErrors:
    def test_of_the_mean_wage(self):
        """Against the mean of all .581 by the half draw."""
        points = survey_wages()
        made = Mechanism.of(named("mean"), points, execution=Execution(n_jobs=1))
        noise = calibrate(swap_linear(points.x, 500), ETA).scale
        (found,) = total_error(made, Spread.over_subsets(made, 2, 0), np.array([noise]))
        assert found == pytest.approx(0.581, abs=5e-4)
        sampling = points.x.std(ddof=1) * math.sqrt((1 - 0.5) / 500)
        assert found == pytest.approx(math.hypot(sampling, noise), rel=1e-9)

    @pytest.mark.parametrize("sizes", [[500, 300, 200], [900, 90, 10]])
    def test_of_counts(self, sizes):
        """The count of a half, doubled, errs by sqrt(m (n - m)/(n - 1)) without any noise."""
        groups = np.repeat([0, 1, 2], sizes)[:, None]
        made = mechanism(Linear("table", Cells(("x0",), ((0, 1, 2),)), "sum"), groups)
        m = np.array(sizes)
        expected = np.hypot(np.sqrt(m * (1000 - m) / 999), 2 * 2.0)
        found = total_error(made, Spread.over_subsets(made, 2, 0), np.full(3, 2.0))
        np.testing.assert_allclose(found, expected, rtol=1e-9)


class TestOddData:
    def test_another_share_of_the_records(self):
        found = rows(mechanism("mean", NORMAL, 200), most=4.0)
        sigma = np.cov(NORMAL.T) / 200 * 0.8
        least = sigma.trace() / 3 / math.expm1(2 * nats(ETA, 0.2) / 3)
        assert rms(found["pac_shape_of_sigma"]) == pytest.approx(math.sqrt(least), rel=1e-9)
        roots = np.sqrt(np.linalg.eigvalsh(sigma)).sum()
        assert rms(found["moment_bound"]) == pytest.approx(roots / math.sqrt(3) / stats.norm.ppf(0.5 + ETA), rel=1e-5)

    def test_units_that_differ_by_ten_orders(self):
        """The shape of Sigma, and noise by coordinates, follow the units; the mean over all says the largest alone."""
        units = np.array([1e5, 1.0, 1e-5])
        plain, scaled = rows(mechanism("mean", NORMAL)), rows(mechanism("mean", NORMAL * units))
        for name in ("pac_shape_of_sigma", "izzo_printed", "izzo_gamma"):
            by_unit = scaled[name] / units
            np.testing.assert_allclose(by_unit, plain[name], rtol=1e-9)
        for name in SPREAD:
            noise = scaled[name]
            assert (noise > 0).all()
            assert (np.diff(noise) < 0).all()

    def test_a_coordinate_that_never_varies_needs_no_noise(self):
        found = rows(mechanism("mean", np.column_stack([NORMAL, np.full(1000, 0.1)])))
        plain = rows(mechanism("mean", NORMAL))
        for name in SPREAD[:2] + SPREAD[3:]:
            assert found[name][3] == 0
            assert rms(found[name]) == pytest.approx(rms(plain[name]) * math.sqrt(3 / 4))

    def test_the_same_for_every_draw(self):
        found = rows(mechanism("mean", np.full((20, 2), 0.1)), most=1.0)
        for name in SPREAD:
            assert str(found[name]) == "the statistic is the same for every draw of the data in use: it needs no noise"
        assert all(rms(found[name]) > 0 for name in DP)

    def test_equal_columns(self):
        found = rows(mechanism("mean", NORMAL[:, [0, 0]]))
        for name in SPREAD:
            first, second = found[name]
            assert first == pytest.approx(second)
            assert first > 0

    def test_numbers_too_large_for_a_covariance(self):
        found = rows(mechanism("mean", NORMAL * 1e200), most=1e201)
        assert {str(found[name]) for name in SPREAD} == {"the numbers are too large for a covariance"}
        assert all(np.isfinite(found[name]).all() for name in DP)

    def test_too_many_numbers(self):
        x = np.zeros((4, 2001))
        x[0] = 1.0
        found = rows(mechanism("mean", x), most=1.0)
        assert {str(found[name]) for name in SPREAD} == {
            "a covariance is made of at most 2,000 numbers, the statistic has 2,001"
        }

    def test_too_few_draws(self):
        found = rows(mechanism("covariance", NORMAL[:20]), n_draws=6)
        assert {str(found[name]) for name in SPREAD} == {"a covariance of 6 numbers needs more draws, 6 worked"}

    def test_fits_that_fail_are_left_out(self):
        """Half of the draws miss record 0, and the statistic works on them alone."""
        x = np.arange(10.0)[:, None]
        found = rows(mechanism("tests.protection.test_other_methods:seldom", x), n_draws=400)
        assert rms(found["pac_least_noise"]) > 0

    def test_many_records_on_average(self):
        """n kl = 250 nats for one number: noise e^-250 of its deviation, of which floating point keeps nothing."""
        x = np.random.default_rng(0).normal(size=(50_000, 1))
        row = rows(mechanism("mean", x))["averaged_information"]
        assert str(row) == "lost in the rounding of floating point: 50,000 records share the information"

    def test_on_average_the_noise_falls_with_the_exponential_of_the_records(self):
        """2,000 records: 10 nats for one number, e^-10 of its deviation, is a number still."""
        x = np.random.default_rng(0).normal(size=(2_000, 1))
        row = rows(mechanism("mean", x))["averaged_information"]
        assert math.log(row[0]) == pytest.approx(math.log(x.std() / math.sqrt(2_000)) - 2_000 * nats(ETA), rel=1e-3)

    def test_two_records(self):
        found = rows(mechanism("mean", np.array([[0.0], [1.0]])), most=1.0)
        assert all(rms(row) > 0 for row in found.values())

    def test_a_tiny_eta_takes_a_smaller_delta(self):
        row = rows(mechanism("mean", NORMAL), eta=1e-7, most=1.0)["dp_gaussian_pair"]
        assert rms(row) > 0  # half of eta/(1/2)

    @pytest.mark.parametrize(
        ("words", "line"),
        [
            ({"eta": 0.0}, "eta must be > 0 and < 0.5, the smaller prior; got 0"),
            ({"eta": 0.5}, "eta must be > 0 and < 0.5, the smaller prior; got 0.5"),
            ({"eta": math.nan}, "eta must be finite, got nan"),
            ({"n_draws": 1}, "n_draws must be >= 2, got 1"),
        ],
    )
    def test_bad_input_is_one_line(self, words, line):
        with pytest.raises(ValueError) as refused:
            rows(mechanism("mean", NORMAL[:10]), **words)
        assert str(refused.value) == line


@pytest.mark.parametrize("d", [1, 2, 50, 2000])
@pytest.mark.parametrize("eta", [0.4999, 0.1, 1e-3])
@pytest.mark.filterwarnings("ignore:laplace-literal")
def test_the_printed_radius_keeps_eta_for_every_covariance_that_is_made(d, eta):
    noise = izzo(np.ones(d), eta, radius="laplace-literal")
    assert eta_bound(moment(1.0, d, norm=noise.norm), noise)[0] < eta
