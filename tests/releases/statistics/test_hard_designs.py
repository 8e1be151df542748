"""Regressions on raw columns in large units, against exact rational arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from leakbound.core.types import Points
from leakbound.plans.promises import File
from leakbound.releases.statistics.left_out import left_out_values
from leakbound.releases.statistics.statistic import named
from tests.promising import calibrate

DAY = 86_400_000.0  # milliseconds
Rows = list[list[Fraction]]


def design(name: str, n: int = 24) -> np.ndarray:
    """Explaining columns and, last, a response that depends on all of them."""
    rng = np.random.default_rng(len(name))
    noise, year = rng.normal(size=n), np.round(1.7e12 + rng.uniform(0, 365, n) * DAY)
    if name == "milliseconds":
        return np.column_stack([year, 3 + 0.1 * (year - 1.7e12) / DAY + noise])
    if name == "dollars":
        gdp, share = np.round(rng.lognormal(29, 1, n)), rng.uniform(size=n)
        return np.column_stack([gdp, share, 5 + 2e-13 * gdp + share + noise])
    if name == "mixed":
        tiny, flag = 1e-9 * rng.normal(size=n), (np.arange(n) % 5 == 0).astype(float)
        return np.column_stack([year, tiny, flag, year / DAY + 1e9 * tiny + flag + noise])
    if name == "far":
        shares = 1e6 + rng.normal(size=(n, 2))
        return np.column_stack([shares, shares @ [1.0, -2.0] + noise])
    first = rng.normal(size=n)  # "collinear": the correlation is 1 - 5e-9
    return np.column_stack([first, first + 1e-4 * rng.normal(size=n), first + noise])


DESIGNS = ["milliseconds", "dollars", "mixed", "far", "collinear"]


def solved(matrix: Rows, right: list[Fraction]) -> list[Fraction]:
    """Gauss and Jordan, with fractions."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for pivot in range(len(rows)):
        best = max(range(pivot, len(rows)), key=lambda row: abs(rows[row][pivot]))
        rows[pivot], rows[best] = rows[best], rows[pivot]
        rows[pivot] = [value / rows[pivot][pivot] for value in rows[pivot]]
        for other in range(len(rows)):
            if other != pivot:
                factor = rows[other][pivot]
                rows[other] = [a - factor * b for a, b in zip(rows[other], rows[pivot], strict=True)]
    return [row[-1] for row in rows]


def normal_equations(x: np.ndarray) -> tuple[Rows, list[Fraction], Rows, list[Fraction]]:
    rows = [[Fraction(1), *(Fraction(float(value)) for value in row[:-1])] for row in x]
    response = [Fraction(float(value)) for value in x[:, -1]]
    p = len(rows[0])
    matrix = [[sum((row[i] * row[j] for row in rows), Fraction(0)) for j in range(p)] for i in range(p)]
    right = [sum((row[i] * y for row, y in zip(rows, response, strict=True)), Fraction(0)) for i in range(p)]
    return matrix, right, rows, response


def ols(x: np.ndarray) -> list[float]:
    matrix, right, _, _ = normal_equations(x)
    return [float(value) for value in solved(matrix, right)]


def ridge(x: np.ndarray) -> list[float]:
    matrix, right, _, _ = normal_equations(x)
    for place in range(1, len(matrix)):
        matrix[place][place] += Fraction(PENALTY)
    return [float(value) for value in solved(matrix, right)]


def standard_errors(x: np.ndarray) -> list[float]:
    matrix, right, rows, response = normal_equations(x)
    p = len(matrix)
    coefficients = solved(matrix, right)
    fitted = [sum((a * b for a, b in zip(row, coefficients, strict=True)), Fraction(0)) for row in rows]
    squares = sum(((y - value) ** 2 for y, value in zip(response, fitted, strict=True)), Fraction(0))
    unit = [[Fraction(int(i == j)) for i in range(p)] for j in range(p)]
    inverse = [solved(matrix, unit[place])[place] for place in range(p)]
    return [math.sqrt(float(squares / (len(rows) - p) * variance)) for variance in inverse]


def correlation(x: np.ndarray) -> list[float]:
    columns = [[Fraction(float(value)) for value in column] for column in x.T]
    centred = [[value - sum(column) / len(column) for value in column] for column in columns]
    found = []
    for row, first in enumerate(centred):
        for second in centred[row + 1 :]:
            both = sum((a * b for a, b in zip(first, second, strict=True)), Fraction(0))
            size = sum(a * a for a in first) * sum(b * b for b in second)
            found.append(math.copysign(math.sqrt(float(both * both / size)), both))
    return found


PENALTY = 0.25
EXACT: dict[str, Callable[[np.ndarray], list[float]]] = {
    "ols": ols,
    "ridge": ridge,
    "standard_errors": standard_errors,
    "correlation": correlation,
}


@pytest.mark.by_day("ols-milliseconds", "standard_errors-milliseconds", "standard_errors-collinear")
@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize("statistic", EXACT)
def test_of_all_and_without_each_record(statistic, name) -> None:
    """Errors are relative to the change of the response over a deviation of the column; eight digits at least."""
    x = design(name)
    rule = named(statistic, **({"penalty": PENALTY} if statistic == "ridge" else {}))
    exact = EXACT[statistic]
    found = left_out_values(rule, Points(x))
    assert found is not None
    of_all, without = found
    fit = rule.observe(Points(x), np.ones((1, len(x)), dtype=bool), np.zeros(1, dtype=int))["output"][0]
    expected = [exact(x), *(exact(np.delete(x, record, axis=0)) for record in range(len(x)))]
    size = np.abs(expected).max(axis=0)
    allowed = 1e-8 * np.maximum(size, 1e-3 * size_of(x, len(size)))
    assert (np.abs(of_all - expected[0]) <= allowed).all()
    assert (np.abs(fit - expected[0]) <= allowed).all()
    assert (np.abs(np.asarray(without) - expected[1:]) <= allowed).all()


def size_of(x: np.ndarray, n_numbers: int) -> np.ndarray:
    """The deviation of the response over that of each column; correlations have no unit."""
    if n_numbers != x.shape[1]:
        return np.ones(n_numbers)
    deviation = x.std(axis=0)
    slopes = deviation[-1] / deviation[:-1]
    return np.r_[deviation[-1] + slopes @ np.abs(x[:, :-1].mean(axis=0)), slopes]


@pytest.mark.parametrize("statistic", ["logistic", "poisson"])
def test_other_regressions_do_not_depend_on_the_unit(statistic) -> None:
    """Times in milliseconds and in years since the middle of the file: the same slopes but for the unit."""
    rng = np.random.default_rng(4)
    years = np.round(rng.uniform(0, 1, 200), 3)
    response = rng.poisson(np.exp(years)) if statistic == "poisson" else (rng.uniform(size=200) < years).astype(float)
    milliseconds = 1.7e12 + years * 365 * DAY
    rule = named(statistic, penalty=1e40 if statistic == "logistic" else 0.0)
    _, in_years = left_out_values(rule, Points(years[:, None], response)) or (None, None)
    _, made = left_out_values(rule, Points(milliseconds[:, None], response)) or (None, None)
    assert made is not None
    assert in_years is not None
    np.testing.assert_allclose(np.asarray(made)[:, 1] * 365 * DAY, np.asarray(in_years)[:, 1], rtol=1e-6)


def test_the_noise_of_a_slope_in_days_is_that_in_milliseconds() -> None:
    """What is certified is the truth: .0995 a day, and not .00094."""
    x = design("milliseconds", n=300)
    days = (x[:, :1] - 1.7e12) / DAY
    scales = []
    for columns in (x[:, :1], days):
        found = calibrate("ols", columns, x[:, 1], promise=File(games=0, noise="gaussian_diagonal"), eta=0.1)
        scales.append(found.certificate.about.certificate.noise.rms[1])
    assert scales[0] * DAY == pytest.approx(scales[1], rel=0.1)  # scales have two digits
