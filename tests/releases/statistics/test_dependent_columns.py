"""Least squares of columns that depend on each other is refused, with their names."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from leakbound.core.types import Points
from leakbound.plans.promises import File
from leakbound.releases.statistics.dependent_columns import check_determined
from leakbound.releases.statistics.statistic import named
from tests.promising import calibrate

N = 300
RNG = np.random.default_rng(0)
TOWN = RNG.choice(["a", "b", "c"], N)
AGE, PAY = RNG.normal(40, 5, N), RNG.normal(size=N)
DUMMIES = pd.get_dummies(TOWN, dtype=float)
OLS = named("ols")


def refusal(frame: pd.DataFrame, y: np.ndarray = PAY) -> str:
    with pytest.raises(ValueError, match="determine") as refused:
        check_determined(OLS, Points(frame, y))
    return str(refused.value)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_all_dummies_of_a_category_and_the_intercept(scale) -> None:
    frame = DUMMIES.assign(age=AGE) * scale
    assert refusal(frame).startswith("the columns a, b, c and the intercept are linearly dependent")
    check_determined(OLS, Points(frame.drop(columns="b"), PAY))


def test_a_sum_of_others_names_these_alone() -> None:
    frame = pd.DataFrame({"age": AGE, "other": RNG.normal(size=N), "job": RNG.normal(100, 1, N)})
    frame["total"] = 3 * frame.age + frame.job / 7
    assert refusal(frame).startswith("the columns age, job, total are linearly dependent")
    shifted = frame.assign(total=frame.total + 5)
    assert refusal(shifted).startswith("the columns age, job, total and the intercept are linearly dependent")


@pytest.mark.parametrize("value", [0.0, 0.1, 1e6])
def test_a_constant_column_is_like_the_intercept(value) -> None:
    assert refusal(pd.DataFrame({"age": AGE, "same": value})).startswith("the column same is the same for all records")


def test_fewer_records_than_coefficients() -> None:
    frame = pd.DataFrame(RNG.normal(size=(5, 5)))
    assert refusal(frame, PAY[:5]).startswith("5 records do not determine 6 coefficients")
    check_determined(OLS, Points(pd.DataFrame(RNG.normal(size=(6, 5))), PAY[:6]))


def test_what_is_nearly_dependent_passes() -> None:
    """Digits are lost there, but the coefficients are determined: years far from zero, a column with a little noise."""
    year = RNG.integers(2000, 2003, N).astype(float)
    frame = pd.DataFrame({"year": year, "age": AGE, "nearly": AGE + 1e-6 * RNG.normal(size=N)})
    check_determined(OLS, Points(frame, PAY))


@pytest.mark.parametrize("promise", ["file", "drawn"])
def test_no_certificate_for_what_is_not_determined(promise) -> None:
    line = "the columns a, b, c and the intercept are linearly dependent, so that the coefficients are not determined"
    with pytest.raises(ValueError, match=re.escape(line)):
        calibrate("ols", DUMMIES, PAY, eta=0.1, promise=promise, games=0)


def test_a_penalty_determines_them() -> None:
    assert calibrate("ridge", DUMMIES, PAY, eta=0.1, promise=File(games=0)).noise is not None
