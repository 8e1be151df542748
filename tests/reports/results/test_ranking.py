import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakbound.reports.results.ranking import Ranking


def ranking(bound_type="upper", baseline=0.5, unit="record", **columns):
    return Ranking({name.replace("_at_", "@"): values for name, values in columns.items()}, unit, bound_type, baseline)


@pytest.mark.parametrize(
    ("bound_type", "column", "value", "printed"),
    [
        ("upper", "accuracy", 0.55001, "55.1"),
        ("lower", "accuracy", 0.55099, "55.0"),
        ("point", "accuracy", 0.55049, "55.0"),
        ("upper", "accuracy", 1.0, "100.0"),
        ("upper", "accuracy", 0.6000000000000001, "60.0"),  # rounding noise is not a hundredth of a case
        ("upper", "eta", 0.23105858, "0.2311"),
        ("lower", "advantage", 0.06249, "0.0624"),
        ("upper", "tpr@0.01", 0.02718, "2.8\u202f%"),
        ("upper", "score", 7.75123456, "7.7512"),
        ("upper", "value", 1234.0, "1,234"),
        ("upper", "records", 48842, "48,842"),
        ("upper", "value", math.inf, "infinity"),
        ("upper", "value", None, "—"),
        ("upper", "kind", "a", "a"),
    ],
)
def test_cells_are_rounded_to_the_side_of_the_bound(bound_type, column, value, printed):
    of = ranking(bound_type, record=[0], **{column: [value]})
    assert of.cell(column, 0) == printed
    numpy = ranking(bound_type, record=np.array([0]), **{column: np.array([value])})
    assert numpy.cell(column, 0) == printed


def test_headings():
    of = ranking(
        unit="person", record=[0], accuracy=[1.0], records=[2], tpr_at_0=[0.1], some_thing=[1], **{"tpr@0.01": [0]}
    )
    heads = [str(of.head(column)) for column in ("accuracy", "records", "tpr@0.01", "some_thing", "eta")]
    assert heads == ["Accuracy, %", "People", "TPR at FPR 1\u202f%", "some thing", "η"]
    assert ranking(cell=["a"]).row_word == "cell"


def test_success_comes_from_whichever_column_says_it():
    assert ranking(record=[0, 1], accuracy=[0.9, 0.6]).accuracy.tolist() == [0.9, 0.6]
    np.testing.assert_allclose(ranking(record=[0], eta=[0.05], baseline=0.8).accuracy, [0.85])
    np.testing.assert_allclose(ranking(record=[0], advantage=[0.5]).accuracy, [0.75])
    assert ranking(record=[0], score=[3.0]).accuracy is None
    assert ranking(record=[0], score=[3.0]).median is None


@given(st.lists(st.tuples(st.integers(1, 9), st.floats(0.5, 1.0)), min_size=1, max_size=12))
def test_the_median_cell_is_the_middle_of_the_cells_whatever_they_hold(cells):
    sizes, accuracy = zip(*sorted(cells, key=lambda cell: -cell[1]), strict=True)
    of = ranking(cell=[str(n) for n in range(len(sizes))], accuracy=list(accuracy), records=list(sizes))
    assert of.median == sorted(accuracy)[(len(accuracy) + 1) // 2 - 1]
    assert of.n_records == sum(sizes)


def test_names_are_cut_and_rows_are_ten():
    of = ranking(cell=["x" * 99] * 30, accuracy=[0.7] * 30)
    rows = of.shown(20)
    assert len(rows) == 10
    assert rows[0]["cell"] == "x" * 19 + "…"
    assert of.n_first == 30
    assert of.rows_word == "cells"
    assert ranking(record=[5]).rows_word == "record"
