"""Statistics without each record: every formula against a plain fit of the other records."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy import optimize
from sklearn.linear_model import LogisticRegression, PoissonRegressor

from leakbound.core.repeated_rows import RepeatedRows
from leakbound.core.types import Points
from leakbound.releases.statistics.features import Cells, Histogram
from leakbound.releases.statistics.left_out import left_out_values, left_out_values_with_error
from leakbound.releases.statistics.losses import LogisticLoss
from leakbound.releases.statistics.newton import TOLERANCE, left_out_minimisers
from leakbound.releases.statistics.statistic import Linear, named

rng = np.random.default_rng(7)
NORMAL = rng.normal(size=(40, 3))
TABLES = {
    "normal": NORMAL,
    "ties": NORMAL.round(),
    "constant column": NORMAL * [1, 0, 1],
    "all equal": np.ones((5, 2)),
    "duplicates": np.repeat(NORMAL[:6], 4, axis=0),
    "one outlier": np.vstack([NORMAL[:20], [[1e6, -1e6, 3]]]),
    "far from zero": NORMAL + 1e9,
    "small": NORMAL * 1e-150,
    "three records": NORMAL[:3],
    "two records": NORMAL[:2],
}


def mean(x):
    return np.array([np.mean(column) for column in x.T])


def total(x):
    return np.array([np.sum(column) for column in x.T])


def triangle(matrix):
    return matrix[np.triu_indices(len(matrix))]


def second_moment(x):
    return triangle(np.mean([np.outer(row, row) for row in x], axis=0))


def covariance(x):
    deviations = x - x.mean(axis=0)
    return triangle(np.mean([np.outer(row, row) for row in deviations], axis=0))


def quartiles(x):
    return np.quantile(x, [0.25, 0.5, 0.75], axis=0).ravel()


def least_squares(x):
    """Of columns that are centred and divided by their deviations; nothing where they are dependent."""
    n, p = x.shape
    centre = x[0] + (x - x[0]).mean(axis=0)
    z = x - centre
    width = z[:, :-1].std(axis=0)
    if n < p or (np.ptp(x[:, :-1], axis=0) == 0).any() or np.linalg.matrix_rank(z[:, :-1] / width) < p - 1:
        return np.full(p, np.nan)
    slopes = np.linalg.lstsq(z[:, :-1] / width, z[:, -1], rcond=None)[0] / width
    return np.r_[centre[-1] - centre[:-1] @ slopes, slopes]


def standard_errors(x):
    """Of columns that are centred and divided by their deviations, by their pseudo-inverse."""
    n, p = x.shape
    centre = x[0] + (x - x[0]).mean(axis=0)
    z = x - centre
    width = z[:, :-1].std(axis=0)
    if n <= p or (np.ptp(x[:, :-1], axis=0) == 0).any():
        return np.full(p, np.nan)
    table = np.column_stack([np.ones(n), z[:, :-1] / width])
    if np.linalg.matrix_rank(table) < p:
        return np.full(p, np.nan)
    residual = z[:, -1] - table @ np.linalg.lstsq(table, z[:, -1], rcond=None)[0]
    back = np.diag(np.r_[1, 1 / width])
    back[0, 1:] = -centre[:-1] / width
    return np.sqrt((residual**2).sum() / (n - p)) * np.linalg.norm(back @ np.linalg.pinv(table), axis=1)


def correlation(x):
    """Exactly zero deviations of a constant column make it fail."""
    deviations = x - x[0]
    deviations = deviations - deviations.mean(axis=0)
    unit = deviations / np.abs(deviations).max(axis=0)
    unit = unit / np.sqrt((unit**2).sum(axis=0))
    return (unit.T @ unit)[np.triu_indices(x.shape[1], 1)]


def ridge(x):
    """Least squares of the centred table with further rows: the root of the penalty for each column."""
    table = x - x[0]
    table = table - table.mean(axis=0)
    rows = np.vstack([table[:, :-1], np.sqrt(PENALTY) * np.eye(x.shape[1] - 1)])
    slopes = np.linalg.lstsq(rows, np.r_[table[:, -1], np.zeros(x.shape[1] - 1)], rcond=None)[0]
    return np.r_[x[:, -1].mean() - x[:, :-1].mean(axis=0) @ slopes, slopes]


def ratio(x):
    """Of each column to the last one."""
    return np.array([np.sum(column) / np.sum(x[:, -1]) for column in x.T[:-1]])


PENALTY = 0.7
TWINS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "mean": mean,
    "sum": total,
    "second_moment": second_moment,
    "covariance": covariance,
    "quantiles": quartiles,
    "ols": least_squares,
    "standard_errors": standard_errors,
    "correlation": correlation,
    "ridge": ridge,
    "ratio": ratio,
}
SETTINGS = {"ridge": {"penalty": PENALTY}}


def of_others(name, x, unit):
    """The statistic of all rows but those of each unit, by refitting."""
    with np.errstate(all="ignore"):
        rows = [TWINS[name](x[unit != left_out]) for left_out in range(unit.max() + 1)]
    values = np.array(rows)
    values[~np.isfinite(values).all(axis=1)] = np.nan
    return values


@pytest.mark.by_day(
    "mean-all equal",
    "mean-three records",
    "sum-two records",
    "second_moment-three records",
    "covariance-three records",
    "quantiles-all equal",
    "ols-all equal",
    "ols-two records",
    "standard_errors-two records",
    "correlation-three records",
    "ratio-normal",
    "ratio-all equal",
)
@pytest.mark.parametrize("kind", list(TABLES))
@pytest.mark.parametrize("name", list(TWINS))
def test_each_value_is_the_fit_of_the_others(name, kind) -> None:
    """To rounding in units of the values of all records, from which a record's own part is subtracted."""
    agrees(name, TABLES[kind], None)


@pytest.mark.parametrize("kind", list(TABLES))
@pytest.mark.parametrize("name", list(TWINS))
def test_a_unit_of_several_rows_is_left_out_as_one(name, kind) -> None:
    """In any order, with different numbers of rows, one of them large."""
    x = TABLES[kind]
    for n_units in {2, max(2, len(x) // 2)}:
        draws = np.random.default_rng(n_units)
        unit = draws.permutation(np.r_[np.arange(n_units), draws.integers(0, n_units, len(x))[: len(x) - n_units]])
        agrees(name, x, unit)
    agrees(name, x, np.where(np.arange(len(x)) < len(x) // 2, 0, np.arange(len(x)) - len(x) // 2 + 1))


def agrees(name, x, unit) -> None:
    found = left_out_values(named(name, **SETTINGS.get(name, {})), Points(x), unit)
    assert found is not None
    of_all, without = found
    expected = of_others(name, x, np.arange(len(x)) if unit is None else unit)
    with np.errstate(all="ignore"):
        of_all_expected = TWINS[name](x)
    if name == "correlation":  # it has no unit
        allowed = np.full(len(of_all), 1e-9)
    else:
        allowed = 1e-9 * (np.abs(of_all_expected) + np.nan_to_num(np.fmax.reduce(np.abs(expected), axis=0)))
    if name in ("ols", "standard_errors", "ridge"):
        allowed = np.full(len(allowed), allowed.max())  # the intercept carries the errors of the slopes
    allowed = np.nan_to_num(allowed)
    np.testing.assert_array_equal(np.isnan(without), np.isnan(expected))
    assert (np.nan_to_num(np.abs(without - expected)) <= allowed).all()
    np.testing.assert_array_equal(np.isnan(of_all), np.isnan(of_all_expected))
    assert (np.nan_to_num(np.abs(of_all - of_all_expected)) <= allowed).all()


def exact_squares(x):
    """Squared standard errors of a regression on one column, as fractions."""
    rows = [[Fraction(float(value)) for value in row] for row in x]
    n = len(rows)
    mean_x, mean_y = (sum(column) / n for column in zip(*rows, strict=True))
    spread = sum((a - mean_x) ** 2 for a, _ in rows)
    slope = sum((a - mean_x) * (b - mean_y) for a, b in rows) / spread
    variance = sum((b - mean_y - slope * (a - mean_x)) ** 2 for a, b in rows) / (n - 2)
    return [variance * (Fraction(1, n) + mean_x**2 / spread), variance / spread]


@pytest.mark.parametrize("weight", [1.0, 30.0, 300.0, 3000.0])
@pytest.mark.parametrize("mean", [0.0, 1e6])
def test_standard_errors_err_by_no_more_than_is_said(weight, mean) -> None:
    """A record outweighs the others in its column, and another in the residuals; against fractions."""
    rng = np.random.default_rng(int(weight))
    x = np.column_stack([rng.normal(size=30), rng.normal(size=30)])
    x[0, 0] = weight
    x[1, 1] = 10 * weight
    x[:, 0] += mean
    found = left_out_values_with_error(named("standard_errors"), Points(x))
    assert found is not None
    for record in range(len(x)):
        exact = np.sqrt([float(square) for square in exact_squares(np.delete(x, record, axis=0))])
        fit = named("standard_errors").observe(Points(x), (np.arange(30) != record)[None], np.zeros(1, dtype=int))
        own_error = np.abs(fit["output"][0] - exact)  # of a fit, by which the values may differ from it, too
        assert (np.abs(found.without[record] - exact) <= found.error[record] + own_error).all()


@pytest.mark.parametrize("kind", list(TABLES))
@pytest.mark.parametrize("probabilities", [(0.0, 1.0), (0.1, 0.5, 0.9), (1 / 3, 0.999)])
def test_quantiles_are_those_of_numpy_bit_by_bit(kind, probabilities) -> None:
    x = TABLES[kind]
    _, without = left_out_values(named("quantiles", probabilities=probabilities), Points(x)) or (None, None)
    for record in range(len(x)):
        expected = np.quantile(np.delete(x, record, axis=0), probabilities, axis=0).ravel()
        assert without is not None
        assert without[record].tolist() == expected.tolist()
    unit = np.random.default_rng(len(x)).integers(0, max(2, len(x) // 3), len(x))
    _, without = left_out_values(named("quantiles", probabilities=probabilities), Points(x), unit) or (None, None)
    for person in np.unique(unit) if len(set(unit)) > 1 else []:
        expected = np.quantile(x[unit != person], probabilities, axis=0).ravel()
        assert without is not None
        assert without[person].tolist() == expected.tolist()


def test_counts_are_whole_numbers() -> None:
    frame = pd.DataFrame({"town": list("abbcaab"), "age": [10, 20, 30, 40, 50, 60, 20]})
    cells = Linear("count", Cells.of(frame, ("town",)), "sum")
    _, without = left_out_values(cells, Points(frame)) or (None, None)
    assert without is not None
    assert np.asarray(without).tolist() == [[2, 3, 1], [3, 2, 1], [3, 2, 1], [3, 3, 0], [2, 3, 1], [2, 3, 1], [3, 2, 1]]
    bins = Linear("count", Histogram(("age",), ((0.0, 25.0, 100.0),)), "sum")
    of_all, without = left_out_values(bins, Points(frame[["age"]])) or (None, None)
    assert without is not None
    assert of_all is not None
    assert of_all.tolist() == [3, 4]
    assert np.asarray(without).tolist() == [[2, 4], [2, 4], [3, 3], [3, 3], [3, 3], [3, 3], [2, 4]]


@pytest.mark.parametrize("name", ["mean", "second_moment", "covariance", "quantiles"])
def test_without_the_only_record_there_is_nothing(name) -> None:
    _, without = left_out_values(named(name), Points(np.ones((1, 2)))) or (None, None)
    assert without is not None
    assert np.isnan(without).all()


def test_dependent_columns_have_no_coefficients() -> None:
    """Nor has a column that is zero but for one record, without it."""
    dependent = NORMAL[:12].copy()
    dependent[:, 1] = 2 * dependent[:, 0]
    alone = NORMAL[:12].copy()
    alone[1:, 1] = 0
    _, without = left_out_values(named("ols"), Points(dependent)) or (None, None)
    assert np.isnan(without).all()
    _, without = left_out_values(named("ols"), Points(alone)) or (None, None)
    assert without is not None
    assert np.isnan(without).all(axis=1).tolist() == [True] + [False] * 11


class TestLogistic:
    x = rng.normal(size=(300, 2))
    y = rng.random(300) < 1 / (1 + np.exp(-x[:, 0]))

    def fitted(self, x, y, penalty):
        model = LogisticRegression(C=penalty, tol=1e-12, max_iter=10_000, solver="newton-cholesky").fit(x, y)
        return np.r_[model.intercept_, model.coef_[0]]

    @pytest.mark.parametrize("penalty", [0.01, 1.0, 1e4])
    def test_each_value_is_the_fit_of_the_others(self, penalty) -> None:
        """To the stated part of a standard error, which the inverse of the Hessian gives."""
        of_all, without = left_out_values(named("logistic", penalty=penalty), Points(self.x, self.y)) or (None, None)
        assert of_all is not None
        assert without is not None
        exact = self.fitted(self.x, self.y, penalty)
        np.testing.assert_allclose(of_all, exact, atol=1e-7)
        rows = np.column_stack([np.ones(300), self.x])
        chance = 1 / (1 + np.exp(-rows @ exact))
        fisher = (rows * (chance * (1 - chance))[:, None]).T @ rows
        for record in range(0, 300, 13):
            error = without[record] - self.fitted(np.delete(self.x, record, 0), np.delete(self.y, record), penalty)
            assert np.sqrt(error @ fisher @ error) <= TOLERANCE + 1e-6

    def test_a_record_that_pulls_takes_further_steps(self) -> None:
        """One far away on the wrong side: a single Newton step errs by more than the tolerance."""
        x, y = np.vstack([self.x[:40], [[15.0, 0.0]]]), np.r_[self.y[:40], False]
        _, without = left_out_values(named("logistic", penalty=100.0), Points(x, y)) or (None, None)
        assert without is not None
        np.testing.assert_allclose(without[40], self.fitted(x[:40], y[:40], 100.0), rtol=1e-3)
        _, _, error = left_out_minimisers(x, y.astype(float), LogisticLoss(), 1 / 100.0)
        assert np.isfinite(error).all()

    def test_without_the_only_record_of_a_class_there_is_no_fit(self) -> None:
        y = np.zeros(30, dtype=int)
        y[4] = 1
        _, without = left_out_values(named("logistic"), Points(self.x[:30], y)) or (None, None)
        assert without is not None
        assert np.flatnonzero(np.isnan(without).any(axis=1)).tolist() == [4]

    def test_dependent_columns(self) -> None:
        x = np.column_stack([self.x[:30], self.x[:30, 0]])
        _, without = left_out_values(named("logistic"), Points(x, self.y[:30])) or (None, None)
        assert without is not None
        np.testing.assert_allclose(without[:, 1], without[:, 3], atol=1e-4)

    def test_three_classes_are_refused(self) -> None:
        with pytest.raises(ValueError, match="a logistic regression needs 2 classes, got 3"):
            left_out_values(named("logistic"), Points(self.x[:30], np.arange(30) % 3))


class TestOtherRegressions:
    x = rng.normal(size=(120, 2))
    counts = rng.poisson(np.exp(0.5 * x[:, 0])).astype(float)
    wages = x[:, 0] + rng.standard_t(1.5, size=120)

    def test_poisson_is_that_of_scikit_learn(self) -> None:
        """Its alpha is our penalty by the number of records."""
        _, without = left_out_values(named("poisson", penalty=3.0), Points(self.x, self.counts)) or (None, None)
        assert without is not None
        for record in range(0, 120, 7):
            model = PoissonRegressor(alpha=3.0 / 119, tol=1e-12, solver="newton-cholesky")
            model.fit(np.delete(self.x, record, 0), np.delete(self.counts, record))
            np.testing.assert_allclose(without[record], np.r_[model.intercept_, model.coef_], atol=1e-4)

    def test_huber_is_that_of_scipy(self) -> None:
        """Of people with several rows, one of them far away."""
        wages = self.wages.copy()
        wages[7] = 1e6
        person = np.random.default_rng(0).integers(0, 30, 120)
        _, without = left_out_values(named("huber", threshold=0.7), Points(self.x, wages), person) or (None, None)
        assert without is not None
        for left_out in range(30):
            rows, y = np.column_stack([np.ones(120), self.x])[person != left_out], wages[person != left_out]
            start = np.r_[np.median(y), 0.0, 0.0]
            found = optimize.least_squares(
                lambda theta, rows=rows, y=y: rows @ theta - y,
                start, loss="soft_l1", f_scale=0.7, xtol=1e-13, ftol=1e-13, gtol=1e-13,
            )  # fmt: skip
            np.testing.assert_allclose(without[left_out], found.x, atol=1e-4)

    def test_without_the_only_event_of_a_level_there_is_no_fit(self) -> None:
        level = (np.arange(40) < 6).astype(float)[:, None]
        events = np.where(np.arange(40) < 6, 0.0, self.counts[:40] + 1)
        events[3] = 2.0
        _, without = left_out_values(named("poisson"), Points(level, events)) or (None, None)
        assert without is not None
        assert np.flatnonzero(np.isnan(without).any(axis=1)).tolist() == [3]

    def test_a_rare_column_is_lost_without_its_only_record(self) -> None:
        rare = np.column_stack([self.x[:30, 0], np.arange(30) == 5])
        for name, settings in (("poisson", {}), ("huber", {"threshold": 1.0}), ("ridge", {"penalty": 0.0})):
            _, without = left_out_values(named(name, **settings), Points(rare, self.counts[:30] + 1.0)) or (None, None)
            assert without is not None
            assert np.flatnonzero(np.isnan(without).any(axis=1)).tolist() == [5]

    def test_logistic_without_people(self) -> None:
        y, person = self.counts > 0, np.random.default_rng(1).integers(0, 25, 120)
        _, without = left_out_values(named("logistic"), Points(self.x, y), person) or (None, None)
        assert without is not None
        for left_out in range(25):
            model = LogisticRegression(tol=1e-12, solver="newton-cholesky")
            model.fit(self.x[person != left_out], y[person != left_out])
            np.testing.assert_allclose(without[left_out], np.r_[model.intercept_, model.coef_[0]], atol=1e-4)

    def test_a_person_with_all_records_of_a_class(self) -> None:
        y = np.arange(30) < 3
        person = np.where(y, 0, np.arange(30) - 2)
        _, without = left_out_values(named("logistic"), Points(self.x[:30], y), person) or (None, None)
        assert without is not None
        assert np.flatnonzero(np.isnan(without).any(axis=1)).tolist() == [0]


def test_counts_without_people() -> None:
    """Whole numbers; a person with all rows leaves none, and a mean of none is no number."""
    frame = pd.DataFrame({"town": list("abbcaab"), "age": [10, 20, 30, 40, 50, 60, 20]})
    cells = Linear("count", Cells.of(frame, ("town",)), "sum")
    person = np.array([0, 1, 1, 2, 0, 2, 1])
    _, without = left_out_values(cells, Points(frame), person) or (None, None)
    assert without is not None
    assert np.asarray(without).tolist() == [[1, 3, 1], [3, 0, 1], [2, 3, 0]]
    bins = Linear("count", Histogram(("age",), ((0.0, 25.0, 100.0),)), "sum")
    _, without = left_out_values(bins, Points(frame[["age"]]), person) or (None, None)
    assert without is not None
    assert np.asarray(without).tolist() == [[2, 3], [1, 3], [3, 2]]
    everything = np.array([1, 1, 1, 1, 1, 1, 1])
    for name in ("mean", "covariance", "quantiles"):
        of_all, without = left_out_values(named(name), Points(frame[["age"]]), everything) or (None, None)
        assert of_all is not None
        assert without is not None
        np.testing.assert_allclose(without[0], of_all)
        assert np.isnan(without[1]).all()


def test_a_function_takes_fits() -> None:
    assert left_out_values(named("numpy:ptp"), Points(NORMAL)) is None


@pytest.mark.parametrize("seed", range(20))
def test_counts_without_persons_are_kept_once_for_all_that_are_alike(seed) -> None:
    """Against a loop; persons have none to five rows, in cells, in none, and several in the same one."""
    rng = np.random.default_rng(seed)
    n, n_persons = 60, 25
    x = np.column_stack([rng.integers(0, 4, n), rng.integers(0, 3, n)]).astype(float)
    person = rng.permutation(np.r_[np.arange(n_persons), rng.integers(0, n_persons, n - n_persons)])
    cells = Cells(("x0", "x1"), ((0.0, 1.0, 2.0), (0.0, 1.0)))  # records with level 3, or 2, are in no cell
    bins = Histogram(("x0",), ((0.0, 1.0, 2.0),))
    for features in (cells, bins):
        of_all, without = left_out_values(Linear("count", features, "sum"), Points(x), person)
        assert isinstance(without, RepeatedRows)
        expected = [features(x[person != left_out]).sum(axis=0) for left_out in range(n_persons)]
        np.testing.assert_array_equal(np.asarray(without), expected)
        np.testing.assert_array_equal(of_all, features(x).sum(axis=0))
        assert len(without.rows) == len(np.unique(np.array(expected), axis=0))


def test_counts_of_many_persons_need_no_row_for_each() -> None:
    """400,000 persons with one or two rows in 100 cells: a row for each would be 320 MB."""
    rng = np.random.default_rng(0)
    n = 600_000
    x = np.column_stack([rng.integers(0, 10, n), rng.integers(0, 10, n)]).astype(float)
    levels = tuple(float(level) for level in range(10))
    cells = Cells(("x0", "x1"), (levels, levels))
    tracemalloc.start()
    _, without = left_out_values(Linear("count", cells, "sum"), Points(x), np.arange(n) % 400_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert without.shape == (400_000, 100)
    assert len(without.rows) == 100 + 100 * 101 // 2  # single cells, and pairs of cells
    assert peak < 1.6e8
