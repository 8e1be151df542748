"""Statistics after a swap: the fits themselves, exact fractions, and where a formula must give way to a fit."""

from __future__ import annotations

import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakbound.core.seeds import stream
from leakbound.core.types import Points
from leakbound.releases.statistics import leave_one_out
from leakbound.releases.statistics.leave_one_out import exact, records_of, swapped
from leakbound.releases.statistics.statistic import Statistic, named

STATISTICS = {
    "covariance": named("covariance"),
    "ols": named("ols"),
    "quantiles": named("quantiles", probabilities=(0.0, 0.1, 0.25, 0.5, 0.77, 1.0)),
}
SIZES = [(60, 4, 30), (60, 4, 59), (60, 4, 1), (40, 3, 5), (13, 2, 6), (5, 2, 3), (2, 2, 1), (400, 7, 100)]
SPREAD = ["normal", "heavy", "duplicated", "far", "units", "outlier"]
LAWS = [*SPREAD, "constant", "zero", "collinear", "rare", "dummies", "tiny", "huge", "level"]


def records(law: str, n: int, c: int) -> np.ndarray:
    """n records of c columns; the last one is the response."""
    rng = stream(n, law, c)
    x = rng.standard_cauchy((n, c)) if law == "heavy" else rng.normal(size=(n, c))
    if law == "duplicated":
        x = rng.integers(0, 3, (n, c)).astype(float)
    if law == "dummies":  # with the intercept they are dependent
        x[:, 0] = rng.integers(0, 2, n)
        x[:, 1] = 1 - x[:, 0]
    if law == "rare":
        x[:, 0] = 0.1
        x[rng.permutation(n)[:2], 0] = 1.3
    if law == "outlier":
        x[0] = 1e6
    x[:, 0] = {"constant": 0.1, "zero": 0.0, "collinear": 0.3 * x[:, 1]}.get(law, x[:, 0])
    x[:, -1] = 2.5 if law == "level" else x[:, -1]
    x = x * {"tiny": 1e-200, "huge": 1e152, "units": 10.0 ** np.resize([-2, 2, 0], c)}.get(law, 1.0)
    return x + 300.0 if law == "far" else x


def couples(n: int, k: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A random D, and a swap for each record of the larger side."""
    order, size = stream(seed, "D", n, k).permutation(n), max(k, n - k)
    return np.isin(np.arange(n), order[:k]), np.resize(order[:k], size), np.resize(order[k:], size)


def refitted(statistic: Statistic, points: Points, inside, leaving, entering) -> np.ndarray:
    """The naive twin: a fit for each swap."""
    member = []
    for out, into in zip(leaving, entering, strict=True):
        row = inside.copy()
        row[out], row[into] = False, True
        member.append(row)
    return statistic.observe(points, np.array(member), np.zeros(len(member), dtype=int))["output"]


def spread(name: str, rows: np.ndarray) -> np.ndarray:
    """By which the error of each number is measured."""
    s, m = rows.std(axis=0), np.abs(rows.mean(axis=0))
    if name == "covariance":
        return np.outer(s, s)[np.triu_indices(len(s))]
    ratio = s[-1] / s[:-1]
    return np.r_[s[-1] + m[-1] + m[:-1] @ ratio, ratio]


def of_columns(x: np.ndarray) -> np.ndarray:
    """Size of a coefficient: of the response over that of the column."""
    size, s = np.abs(x[:, -1]).max(), x[:, :-1].max(axis=0) - x[:, :-1].min(axis=0)
    return np.r_[size, size / np.where(s > 0, s, 1)]


@pytest.fixture
def fits(monkeypatch) -> list[int]:
    """The records that entered the data sets that were fitted."""
    made: list[int] = []
    fit = leave_one_out._fit_each

    def noted(statistic, points, inside, leaving, entering):
        made.extend(entering.tolist())
        return fit(statistic, points, inside, leaving, entering)

    monkeypatch.setattr(leave_one_out, "_fit_each", noted)
    return made


@pytest.mark.by_day("covariance-far", "covariance-tiny", "ols-zero", "quantiles-duplicated", "quantiles-constant")
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", STATISTICS)
def test_each_swap_is_the_fit_of_its_data_set(name, law):
    """Within 1e-9 of the largest output and of the spread of all records: fits have errors of their own."""
    for n, c, k in SIZES:
        points, statistic = Points(records(law, n, c)), STATISTICS[name]
        inside, leaving, entering = couples(n, k)
        made = swapped(statistic, points, inside, leaving, entering)
        wanted = refitted(statistic, points, inside, leaving, entering)
        assert made is not None
        if name == "quantiles":
            np.testing.assert_array_equal(made, wanted)
        allowed = 1e-9 * np.nanmax(np.abs(wanted), axis=0, initial=0.0) + 1e-25  # of a constant column
        if name == "ols":
            allowed = allowed + 1e-9 * of_columns(points.x)
        np.testing.assert_array_equal(np.isnan(made), np.isnan(wanted))
        assert (np.nan_to_num(np.abs(made - wanted)) <= allowed).all()


@pytest.mark.parametrize("name", ["covariance", "ols"])
@pytest.mark.parametrize("law", SPREAD)
def test_the_error_is_small_beside_the_spread(name, law, fits):
    n, c, k = 60, 4, 25
    x = records(law, n, c)
    inside, leaving, entering = couples(n, k)
    made = swapped(STATISTICS[name], Points(x), inside, leaving, entering)
    wanted = refitted(STATISTICS[name], Points(x), inside, leaving, entering)
    if law != "outlier":
        assert not fits
    for row, (out, into) in enumerate(zip(leaving, entering, strict=True)):
        if name == "covariance":  # around the mean of these records alone
            chosen = (inside & (np.arange(n) != out)) | (np.arange(n) == into)
            wanted[row] = np.cov(x[chosen].T, bias=True)[np.triu_indices(c)]
        error = np.abs(made[row] - wanted[row])
        assert (error < 1e-9 * spread(name, np.vstack([x[inside], x[into]]))).all()


def exact_covariance(rows: list[list[Fraction]]) -> list[Fraction]:
    k, c = len(rows), len(rows[0])
    mean = [sum(row[i] for row in rows) / k for i in range(c)]
    return [sum((row[i] - mean[i]) * (row[j] - mean[j]) for row in rows) / k for i in range(c) for j in range(i, c)]


def exact_line(rows: list[list[Fraction]]) -> list[Fraction]:
    """Least squares with one explaining column, in closed form."""
    (xx, xy, _), k = exact_covariance(rows), len(rows)
    slope = xy / xx
    return [sum(y - slope * x for x, y in rows) / k, slope]


@given(
    st.integers(4, 9).flatmap(
        lambda n: st.tuples(
            st.lists(
                st.tuples(st.floats(-1e6, 1e6).map(lambda v: round(v, 4)), st.floats(-1e3, 1e3)), min_size=n, max_size=n
            ),
            st.integers(3, n - 1),
        )
    )
)
def test_covariance_and_line_against_fractions(game):
    data, k = game
    x, n = np.array(data), len(data)
    inside, leaving, entering = couples(n, k)
    for name, twin in (("covariance", exact_covariance), ("ols", exact_line)):
        made = swapped(STATISTICS[name], Points(x), inside, leaving, entering)
        for row, (out, into) in enumerate(zip(leaving, entering, strict=True)):
            chosen = (inside & (np.arange(n) != out)) | (np.arange(n) == into)
            rows, both = [[Fraction(v) for v in record] for record in x[chosen].tolist()], inside | chosen
            if name == "ols" and np.ptp(x[chosen, 0]) < 1e-2 * np.ptp(x[both, 0]):
                continue  # badly conditioned beside D: a fit, which has its own error
            if name == "ols" and np.ptp(x[chosen, 0]) <= 1e-2 * np.abs(x[both, 0]).max():
                continue
            error = np.abs(made[row] - np.array([float(number) for number in twin(rows)]))
            assert (error <= 1e-9 * spread(name, x[both]) + 1e-300).all()


@given(st.lists(st.integers(-3, 3), min_size=2, max_size=9), st.data())
def test_quantiles_are_the_same_doubles(values, data):
    x = np.array(values, dtype=float)[:, None] / 3
    k = data.draw(st.integers(1, len(x) - 1))
    q = data.draw(st.lists(st.floats(0, 1), min_size=1, max_size=4))
    inside, leaving, entering = couples(len(x), k, seed=data.draw(st.integers(0, 9)))
    statistic = named("quantiles", probabilities=tuple(q))
    made = swapped(statistic, Points(x), inside, leaving, entering)
    assert made.tolist() == refitted(statistic, Points(x), inside, leaving, entering).tolist()


def test_the_label_is_the_response():
    x = records("normal", 30, 4)
    inside, leaving, entering = couples(30, 12)
    labelled, last = Points(x[:, :3], x[:, 3]), Points(x)
    made = [swapped(STATISTICS["ols"], points, inside, leaving, entering) for points in (labelled, last)]
    np.testing.assert_array_equal(*made)


def test_a_swap_back_and_of_twins():
    """x for a twin changes nothing; the formula does not need the two records to differ."""
    x = records("normal", 20, 3)
    x[15:] = x[:5]
    inside, leaving, entering = np.arange(20) < 10, np.arange(5), np.arange(15, 20)
    for name, statistic in STATISTICS.items():
        made = swapped(statistic, Points(x), inside, leaving, entering)
        own = statistic.observe(Points(x), inside[None], np.zeros(1, dtype=int))["output"][0]
        np.testing.assert_allclose(made, np.tile(own, (5, 1)), rtol=0 if name == "quantiles" else 1e-12, atol=1e-14)


@pytest.mark.parametrize("law", ["normal", "heavy", "duplicated", "far", "units", "level"])
def test_no_fit_where_the_formula_holds(law, fits):
    points = Points(records(law, 400, 6))
    for statistic in STATISTICS.values():
        swapped(statistic, points, *couples(400, 200))
    assert not fits


def test_only_the_swap_of_a_new_direction_has_coefficients():
    """A rare category that D has not: its coefficient is determined where one of its records enters."""
    x = records("normal", 400, 5)
    x[:, 0] = 0.0
    x[[7, 299], 0] = 1.0
    inside = ~np.isin(np.arange(400), [*range(100, 301), 7])
    leaving, entering = np.flatnonzero(inside)[:190], np.flatnonzero(~inside)[:190]
    made = swapped(STATISTICS["ols"], Points(x), inside, leaving, entering)
    assert made is not None
    assert entering[np.isfinite(made).all(axis=1)].tolist() == [7]


def test_nearly_collinear_columns_are_fitted(fits):
    x = records("normal", 40, 3)
    x[:, 0] = x[:, 1] + 1e-5 * x[:, 0]
    game = couples(40, 20)
    made = swapped(STATISTICS["ols"], Points(x), *game)
    assert len(fits) == 20
    np.testing.assert_array_equal(made, refitted(STATISTICS["ols"], Points(x), *game))


def test_an_outlier_that_leaves_is_fitted(fits):
    """Its leverage on D is 1 but for 1e-8: of the coefficients of the others nothing is left in the formula."""
    x = records("normal", 40, 3)
    inside, leaving, entering = couples(40, 20)
    x[leaving[4], 0] = 1e4
    swapped(STATISTICS["ols"], Points(x), inside, leaving, entering)
    assert fits == [entering[4]]


def test_blocks_change_nothing(monkeypatch):
    points, game = Points(records("normal", 60, 4)), couples(60, 30)
    whole = {name: swapped(statistic, points, *game) for name, statistic in STATISTICS.items()}
    monkeypatch.setattr(leave_one_out, "_NUMBERS", 70)
    monkeypatch.setattr(leave_one_out, "_REFITTED", 200)
    for name, statistic in STATISTICS.items():
        np.testing.assert_allclose(swapped(statistic, points, *game), whole[name], rtol=1e-12)


@pytest.mark.slow
def test_memory_of_half_a_million_records():
    """A quarter of a million swaps: their outputs and less than 100 MB beside them."""
    points = Points(stream(0, "large").normal(size=(500_000, 3)))
    game = couples(500_000, 250_000)
    for name in ("covariance", "ols", "quantiles"):
        tracemalloc.start()
        made = swapped(named(name), points, *game)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert np.isfinite(made).all()
        assert peak - made.nbytes < 100e6


def test_other_statistics_have_no_closed_form():
    points, game = Points(records("normal", 6, 2)), couples(6, 3)
    for statistic in (named("mean"), named("logistic"), named("numpy:ptp", shape=())):
        assert swapped(statistic, points, *game) is None
        assert records_of(statistic, points) is None
    assert [exact(statistic) for statistic in STATISTICS.values()] == [False, False, True]


def test_bad_input(as_users_run_it):
    points, (inside, leaving, entering) = Points(records("normal", 6, 2)), couples(6, 3)
    with pytest.raises(ValueError, match=r"^a swap takes a record of D out and one from outside in; got others$"):
        swapped(STATISTICS["ols"], points, inside, entering, leaving)
    with pytest.raises(ValueError, match=r"^lengths differ: leaving has 3, entering has 2$"):
        swapped(STATISTICS["ols"], points, inside, leaving, entering[:2])
    with pytest.raises(ValueError, match=r"^column x0 has missing or infinite values; drop or fill them$"):
        swapped(STATISTICS["quantiles"], Points(np.full((6, 1), np.nan)), inside, leaving, entering)
