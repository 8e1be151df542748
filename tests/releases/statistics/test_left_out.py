"""Statistics without each record: every formula against a plain fit of the other records."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from leakscope.core.types import Points
from leakscope.releases.statistics.features import Cells, Histogram
from leakscope.releases.statistics.left_out import left_out_values
from leakscope.releases.statistics.newton import TOLERANCE, left_out_minimisers
from leakscope.releases.statistics.statistic import Linear, named

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
    return np.linalg.lstsq(np.column_stack([np.ones(len(x)), x[:, :-1]]), x[:, -1], rcond=None)[0]


TWINS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "mean": mean,
    "sum": total,
    "second_moment": second_moment,
    "covariance": covariance,
    "quantiles": quartiles,
    "ols": least_squares,
}


@pytest.mark.parametrize("kind", list(TABLES))
@pytest.mark.parametrize("name", list(TWINS))
def test_each_value_is_the_fit_of_the_others(name, kind) -> None:
    """To rounding in units of the values of all records, from which a record's own part is subtracted."""
    x = TABLES[kind]
    found = left_out_values(named(name), Points(x))
    assert found is not None
    of_all, without = found
    expected = np.array([TWINS[name](np.delete(x, record, axis=0)) for record in range(len(x))])
    unit = np.abs(TWINS[name](x)) + np.abs(expected).max(axis=0)
    if name == "ols":
        unit = np.full(len(unit), unit.max())  # the intercept carries the errors of the slopes
    assert (np.abs(without - expected) <= 1e-9 * unit).all()
    assert (np.abs(of_all - TWINS[name](x)) <= 1e-9 * unit).all()


@pytest.mark.parametrize("kind", list(TABLES))
@pytest.mark.parametrize("probabilities", [(0.0, 1.0), (0.1, 0.5, 0.9), (1 / 3, 0.999)])
def test_quantiles_are_those_of_numpy_bit_by_bit(kind, probabilities) -> None:
    x = TABLES[kind]
    _, without = left_out_values(named("quantiles", probabilities=probabilities), Points(x)) or (None, None)
    for record in range(len(x)):
        expected = np.quantile(np.delete(x, record, axis=0), probabilities, axis=0).ravel()
        assert without is not None
        assert without[record].tolist() == expected.tolist()


def test_counts_are_whole_numbers() -> None:
    frame = pd.DataFrame({"town": list("abbcaab"), "age": [10, 20, 30, 40, 50, 60, 20]})
    cells = Linear("count", Cells.of(frame, ("town",)), "sum")
    _, without = left_out_values(cells, Points(frame)) or (None, None)
    assert without is not None
    assert without.tolist() == [[2, 3, 1], [3, 2, 1], [3, 2, 1], [3, 3, 0], [2, 3, 1], [2, 3, 1], [3, 2, 1]]
    bins = Linear("count", Histogram(("age",), ((0.0, 25.0, 100.0),)), "sum")
    of_all, without = left_out_values(bins, Points(frame[["age"]])) or (None, None)
    assert without is not None
    assert of_all is not None
    assert of_all.tolist() == [3, 4]
    assert without.tolist() == [[2, 4], [2, 4], [3, 3], [3, 3], [3, 3], [3, 3], [2, 4]]


@pytest.mark.parametrize("name", ["mean", "second_moment", "covariance", "quantiles"])
def test_without_the_only_record_there_is_nothing(name) -> None:
    _, without = left_out_values(named(name), Points(np.ones((1, 2)))) or (None, None)
    assert without is not None
    assert np.isnan(without).all()


def test_dependent_columns_are_fitted() -> None:
    """The solution of least norm; and a column that is zero but for one record is lost without it."""
    x = NORMAL[:12].copy()
    x[:, 1] = 2 * x[:, 0]
    alone = NORMAL[:12].copy()
    alone[1:, 1] = 0
    for table in (x, alone):
        _, without = left_out_values(named("ols"), Points(table)) or (None, None)
        expected = [least_squares(np.delete(table, record, axis=0)) for record in range(12)]
        np.testing.assert_allclose(without, expected, atol=1e-9)


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
        _, _, accurate = left_out_minimisers(x, y.astype(float), 100.0)
        assert accurate.all()

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


def test_a_function_takes_fits() -> None:
    assert left_out_values(named("numpy:ptp"), Points(NORMAL)) is None
