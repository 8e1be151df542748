"""Features of records and their sums: naive twins, numpy's histogram, pandas' tables, frames as well as arrays."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from leakbound.releases.statistics.features import Cells, Columns, Features, Histogram, SecondMoments, products, sums

RNG = np.random.default_rng(3)
X = RNG.normal(size=(40, 3)).round(2)
FRAME = pd.DataFrame(
    {"age": RNG.integers(17, 90, 60), "sex": RNG.choice(["F", "M"], 60), "job": RNG.choice([1, 2, 3], 60)}
)
ALL = [
    Columns(),
    SecondMoments(),
    SecondMoments((0.5, -1.0, 2.0)),
    Histogram(("x0", "x2"), ((-1.0, 0.0, 1.0), (-3.0, 3.0))),
    Cells(("x1",), ((0.0, 1.0),)),
]


@pytest.mark.parametrize("features", ALL, ids=lambda each: type(each).__name__)
def test_a_label_for_each_number_and_each_record_alone(features):
    assert isinstance(features, Features)
    made = features(X)
    assert made.shape == (len(X), len(features.labels(X)))
    assert made.dtype == float
    assert (made == np.concatenate([features(row[None]) for row in X])).all()


def test_second_moments_are_the_products():
    centre = (0.5, -1.0, 2.0)
    shifted = X - centre
    twin = [[row[i] * row[j] for i in range(3) for j in range(i, 3)] for row in shifted]
    np.testing.assert_allclose(SecondMoments(centre)(X), twin, rtol=1e-15)
    assert SecondMoments().labels(X) == ["x0 x0", "x0 x1", "x0 x2", "x1 x1", "x1 x2", "x2 x2"]


def test_products_are_the_upper_triangle():
    whole = X[:, :, None] * X[:, None, :]
    i, j = np.triu_indices(3)
    assert (products(X) == whole[:, i, j]).all()


def test_a_histogram_is_numpys():
    edges = (20.0, 30.0, 50.0, 80.0)
    made = Histogram(("age",), (edges,))(FRAME[["age"]])
    assert made.sum(axis=0).tolist() == np.histogram(FRAME["age"], edges)[0].tolist()
    assert (made.sum(axis=1) <= 1).all()
    on_edges = np.array([[20.0], [30.0], [80.0], [19.9], [80.1]])
    assert Histogram(("x0",), (edges,))(on_edges).tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]]


def test_spanning_bins_hold_every_record():
    bins = Histogram.spanning(X, ["x0", "x1"], n_bins=7)
    assert (bins(X).sum(axis=1) == 2).all()
    assert bins.edges[0] == tuple(np.linspace(X[:, 0].min(), X[:, 0].max(), 8))
    assert Histogram.spanning(np.ones((3, 1)), ["x0"], 2)(np.ones((3, 1))).sum(axis=0).tolist() == [3, 0]


def test_a_table_is_pandas():
    cells = Cells.of(FRAME, ["sex", "job"])
    counted = dict(zip(cells.labels(FRAME), cells(FRAME).sum(axis=0), strict=True))
    twin = {f"{sex} / {job}": count for (sex, job), count in FRAME.groupby(["sex", "job"]).size().items()}
    assert counted == twin
    assert (cells(FRAME).sum(axis=1) == 1).all()


def test_levels_that_are_not_counted():
    cells = Cells(("sex", "job"), (("F",), (3, 1)))
    made = cells(FRAME)
    assert made.shape == (60, 2)
    women = FRAME["sex"] == "F"
    assert made.sum(axis=0).tolist() == [(women & (FRAME["job"] == 3)).sum(), (women & (FRAME["job"] == 1)).sum()]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n", [1, 511, 8192, 20_000])
def test_sums_are_those_of_each_row(order, n):
    table = np.random.default_rng(n).integers(-50, 50, size=(n, 2)).astype(float)  # whole numbers: exact sums
    member = np.asarray(np.random.default_rng(1).random((5, n)) < 0.5, order=order)
    total, size = sums(table, member)
    assert total.tolist() == [table[row].sum(axis=0).tolist() for row in member]
    assert size.tolist() == member.sum(axis=1).tolist()
    squares, _ = sums(table, member, lambda rows: rows**2)
    assert squares.tolist() == [(table[row] ** 2).sum(axis=0).tolist() for row in member]


@pytest.mark.parametrize(
    ("act", "line"),
    [
        (lambda: Columns()(FRAME), "column sex holds no numbers; leave it out, or encode it"),
        (lambda: Columns()(np.array([["a", "1"]])), "column x0 holds no numbers; leave it out, or encode it"),
        (lambda: Columns()(np.array([[1.0, np.nan]])), "column x1 has missing or infinite values; drop or fill them"),
        (
            lambda: Columns()(np.zeros(3)),
            "x must have a row for each record and a column for each number, got shape (3,)",
        ),
        (lambda: SecondMoments((1.0,))(X), "centre has 1 numbers, the data 3 columns"),
        (lambda: Histogram(("x0",), ()), "a histogram of 1 columns has 0 tuples of edges"),
        (
            lambda: Histogram(("x0",), ((1.0, 1.0),)),
            "edges of x0 must be at least 2 finite increasing numbers, got [1.0, 1.0]",
        ),
        (
            lambda: Histogram(("x0",), ((1.0, np.inf),)),
            "edges of x0 must be at least 2 finite increasing numbers, got [1.0, inf]",
        ),
        (lambda: Histogram(("y0",), ((0.0, 1.0),))(X), "unknown column 'y0'; known: x0, x1, x2"),
        (lambda: Cells(("sex",), ((),)), "a table by 1 columns needs levels for each, got 1"),
        (lambda: Cells((), ()), "a table by 0 columns needs levels for each, got 0"),
    ],
)
def test_bad_input(act, line):
    with pytest.raises(ValueError) as error:
        act()
    assert str(error.value) == line
