"""Rows for every value that an attribute may have."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakbound.core.types import Points
from leakbound.data import from_arrays
from leakbound.data.candidates import attribute, candidates, others

FRAME = pd.DataFrame(
    {
        "age": [20, 31, 44, 58, 63, 70],
        "region": ["north", "south", "north", "east", "south", "north"],
        "smoker": [True, False, False, True, False, True],
        "kind": pd.Categorical(["a", "b", "a", "b", "a", "b"], categories=["b", "a", "unused"]),
    }
)
LABEL = np.array(["x", "y", "x", "y", "y", "x"])


def test_images_have_no_columns() -> None:
    class Images:
        shape = (6, 8, 8)

        def __len__(self) -> int:
            return 6

    with pytest.raises(ValueError, match="attribute 'x0': images have no columns; give a table"):
        attribute(Points(Images(), LABEL), "x0")


@pytest.mark.parametrize("column", ["age", "region", "smoker", "kind"])
def test_a_candidate_is_its_record_with_another_value_and_nothing_else(column) -> None:
    points = from_arrays(FRAME, LABEL)
    found = attribute(points, column)
    rows = candidates(found, np.array([1, 4]))
    n_values = len(found.names)
    assert rows.points.x.dtypes.equals(FRAME.dtypes)
    assert rows.points.x.iloc[:6].equals(FRAME)
    assert rows.own.tolist() == [True] * 6 + [False] * 2 * n_values
    for place, record in enumerate([1, 4]):
        block = slice(6 + place * n_values, 6 + (place + 1) * n_values)
        assert (rows.record[block] == record).all()
        assert (rows.points.y[block] == LABEL[record]).all()
        below = rows.points.x.iloc[block]
        assert [str(each) for each in below[column]] == list(found.names)
        for other in FRAME.columns.drop(column):
            assert (below[other] == FRAME[other][record]).all()
        assert below[column].iloc[found.value[record]] == FRAME[column][record]


def test_bins_have_as_many_records_and_stand_for_their_median() -> None:
    points = from_arrays(FRAME, LABEL)
    found = attribute(points, "age", bins=[3])
    assert found.names == ("20 to 31", "44 to 58", "63 to 70")
    assert found.value.tolist() == [0, 0, 1, 1, 2, 2]
    assert FRAME["age"][found.example].tolist() == [20, 44, 63]
    assert attribute(points, "age", bins=[60, 40]).names == ("20 to 31", "44 to 58", "63 to 70")
    assert attribute(points, "age", bins=[0, 40, 41, 999]).value.tolist() == [0, 0, 1, 1, 1, 1]  # empty ones left out


@given(
    st.lists(st.floats(-1e6, 1e6).filter(lambda value: abs(value) > 1e-3), min_size=3, max_size=40, unique=True),
    st.integers(2, 6),
)
def test_bins_are_the_order_of_the_numbers(values, n_bins) -> None:
    found = attribute(from_arrays(np.array(values)[:, None]), 0, bins=[n_bins])
    order = np.argsort(values)
    assert (np.diff(found.value[order]) >= 0).all()
    assert len(found.names) == min(n_bins, len(values))
    for number, record in enumerate(found.example):
        inside = np.sort(np.array(values)[found.value == number])
        assert values[record] == inside[(len(inside) - 1) // 2]


def test_a_one_hot_code_is_one_attribute() -> None:
    code = np.eye(3, dtype=np.float32)[[2, 0, 1, 1]]
    x = np.column_stack([np.arange(4, dtype=np.float32), code])
    found = attribute(from_arrays(x), [1, 2, 3])
    assert found.value.tolist() == [2, 0, 1, 1]
    assert found.names == ("1", "2", "3")
    rows = candidates(found, np.array([0]))
    assert rows.points.x[4:].tolist() == [[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    frame = pd.DataFrame(x, columns=["pen", "ann", "bob", "eve"])
    assert attribute(from_arrays(frame), ["ann", "bob", "eve"]).names == ("ann", "bob", "eve")


def test_values_beside_the_features_become_one_hot_columns_or_a_column() -> None:
    writer = np.array(["ann", "bob", "ann", "eve"])
    pens = np.arange(8.0).reshape(4, 2)
    found = attribute(from_arrays(pens, [0, 1, 0, 1]), writer, name="writer")
    assert found.names == ("ann", "bob", "eve")
    assert found.points.x.tolist() == np.column_stack([pens, np.eye(3)[[0, 1, 0, 2]]]).tolist()
    framed = attribute(from_arrays(pd.DataFrame(pens, columns=["a", "b"])), writer, name="writer")
    assert (framed.names, framed.points.x.columns[-1]) == (("ann", "bob", "eve"), "writer")
    ages = attribute(from_arrays(pens), np.array([20.0, 30.0, 40.0, 50.0]), bins=[2], name="age")
    assert (ages.columns, ages.names) == ((2,), ("20 to 30", "40 to 50"))
    images = attribute(from_arrays(np.zeros((4, 2, 2), dtype=np.uint8)), writer)
    assert images.points.x.shape == (4, 7)
    assert images.points.x.dtype == np.uint8


def test_what_is_known_without_the_release_is_all_but_the_attribute() -> None:
    known = others(attribute(from_arrays(FRAME, LABEL), "region"))
    assert list(known.x.columns) == ["x0", "x2", "x3", "label"]
    assert known.x["label"].tolist() == LABEL.tolist()
    assert known.y.tolist() == [1, 2, 1, 0, 2, 1]
    sizes = others(attribute(from_arrays(FRAME, np.linspace(0, 1, 6)), "region"))
    assert sizes.x["label"].dtype.kind == "f"
    classes = others(attribute(from_arrays(FRAME, np.arange(6)), "region"))
    assert classes.x["label"].tolist() == list("012345")


def test_other_records_other_bins_other_digest() -> None:
    points = from_arrays(FRAME, LABEL)
    made = [
        candidates(attribute(points, "age", bins=bins), np.array(attacked)).points.digest
        for bins, attacked in (([2], [0]), ([2], [1]), ([3], [0]), ([2], [0]))
    ]
    assert len(set(made)) == 3
    assert made[0] == made[3]


ODD = pd.DataFrame(
    {
        "holes": [1.0, np.nan, 2.0],
        "names": ["a", None, "b"],
        "same": [7, 7, 7],
        "infinite": [1.0, np.inf, 2.0],
        "word": ["a", "b", "c"],
    }
)


@pytest.mark.parametrize(
    ("column", "words", "line"),
    [
        ("wrod", {}, r"attribute: no column 'wrod' \(did you mean 'word'\?\)"),
        ("holes", {}, "attribute 'holes' is missing at 1 records, first at record 1; fill them or leave them out"),
        ("names", {}, "attribute 'names' is missing at 1 records"),
        ("same", {}, r"attribute 'same' has one value \(7\) in all records: there is nothing to guess"),
        ("word", {"bins": [2]}, "attribute 'word' cannot be binned: bins are for columns of finite numbers"),
        ("infinite", {"bins": [2]}, "attribute 'infinite' cannot be binned"),
        ("same", {"bins": [1]}, "bins must be >= 2, got 1"),
        ("same", {"bins": [2.5]}, "bins must be a whole number, got 2.5"),
        (["holes", "same"], {}, "must be a one-hot code"),
        (["word", "same"], {}, "must be an array of numbers"),
        (np.arange(2), {}, r"must have shape \(3,\), one value a record; got \(2,\)"),
        (np.zeros((3, 2)), {}, r"must have shape \(3,\)"),
        (np.array([1, 0, 1]), {}, "is the label itself, which the attacker knows"),
        (np.array([1.0, np.nan, 1.0]), {}, "'attribute' is missing at 1 records, first at record 1"),
        (np.array([5, 5, 5]), {}, r"has one value \(5\)"),
        (np.array([5, 6, 7]), {"name": "word"}, "'word' is a column already"),
    ],
)
def test_bad_attributes_are_refused_in_one_line(column, words, line) -> None:
    with pytest.raises(ValueError, match=line) as error:
        attribute(from_arrays(ODD, [1, 0, 1]), column, **words)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("column", ["x2", 2, -1, "age"])
def test_unknown_columns_of_an_array_are_refused(column) -> None:
    with pytest.raises(ValueError, match=r"attribute: no column .*columns: x0, x1"):
        attribute(from_arrays(np.zeros((3, 2))), column)


def test_columns_need_features_that_have_columns() -> None:
    with pytest.raises(ValueError, match=r"features of shape \(3, 2, 2\) have no columns; flatten them"):
        attribute(from_arrays(np.zeros((3, 2, 2))), 1)


def test_too_many_values_are_to_be_binned_or_merged() -> None:
    ids = np.arange(1001)
    with pytest.raises(ValueError, match="has 1,001 values, allowed are 1,000; bin it, as bins=10"):
        attribute(from_arrays(np.column_stack([ids, ids])), 1)
    with pytest.raises(ValueError, match="has 1,001 values, allowed are 1,000; merge some of them"):
        attribute(from_arrays(np.zeros((1001, 2))), ids.astype(str))
    assert len(attribute(from_arrays(np.column_stack([ids, ids])[:1000]), 1).names) == 1000
