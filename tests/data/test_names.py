"""Names of records: from the index of a frame, a column or an array; never a feature, never in the digest."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from leakbound import data
from leakbound.data.columns import repeated_names

FRAME = pd.DataFrame({"age": [30, 50, 40], "pay": [1.5, 2.5, 3.5]})


def test_an_index_that_only_counts_is_no_name():
    assert data.from_arrays(FRAME).names is None
    assert data.from_arrays(FRAME.set_axis([0, 1, 2])).names is None


@pytest.mark.parametrize(
    ("index", "names"),
    [
        (["P-3", "P-1", "P-2"], ["P-3", "P-1", "P-2"]),
        ([7, 3, 5], ["7", "3", "5"]),
        (pd.RangeIndex(0, 6, 2), ["0", "2", "4"]),
        (pd.MultiIndex.from_tuples([("A", 1), ("A", 2), ("B", 1)]), ["A / 1", "A / 2", "B / 1"]),
    ],
)
def test_an_index_names_the_records_and_is_no_part_of_the_digest(index, names):
    points = data.from_arrays(FRAME.set_axis(index))
    assert points.names.tolist() == names
    assert points.digest == data.from_arrays(FRAME).digest
    assert points.x.index.equals(pd.RangeIndex(3))


def test_models_are_fitted_on_points_without_names():
    points = data.from_arrays(FRAME, names=["a", "b", "c"])
    assert points.unnamed.names is None
    assert points.take(np.array([0, 2])).names is None
    assert points.unnamed.digest == points.digest


def test_both_sides_of_a_trained_model():
    first, second = (data.from_arrays(FRAME, names=names) for names in (["a", "b", "c"], ["d", "e", "f"]))
    assert data.join(first, second).names.tolist() == [*"abcdef"]
    assert data.join(first, data.from_arrays(FRAME)).names is None


@pytest.mark.parametrize(
    ("names", "line"),
    [
        (["a", "b"], r"id must have shape \(3,\), one value a point; got \(2,\)"),
        (["a", None, "c"], "id is missing at 1 points, first at point 1"),
    ],
)
def test_names_that_make_no_sense(names, line):
    with pytest.raises(ValueError, match=line):
        data.from_arrays(FRAME, names=names)


def test_repeated_names_are_counted():
    assert repeated_names(data.from_arrays(FRAME, names=["a", "a", "a"])) == [
        "2 of 3 names of records repeat an earlier one; if a person has several rows, name that column "
        "as group (--group)"
    ]
    assert repeated_names(data.from_arrays(FRAME, names=["a", "b", "c"])) == []
    assert repeated_names(data.from_arrays(FRAME, group=["x", "x", "y"], names=["a", "a", "b"])) == []


def test_columns_of_files(tmp_path):
    file = tmp_path / "people.csv"
    file.write_text("who,age,income\nP-1,30,a\nP-2,50,b\nP-3,40,b\n", encoding="utf-8")
    points = data.load(file, "income", id="who").points
    assert (list(points.x.columns), points.names.tolist()) == (["age"], ["P-1", "P-2", "P-3"])
    points = data.read(file, drop=["income"], id="who").points
    assert (list(points.x.columns), points.names.tolist()) == (["age"], ["P-1", "P-2", "P-3"])
    # a column may be dropped and name the records
    assert data.load(file, "income", drop=["who"], id="who").points.names.tolist() == ["P-1", "P-2", "P-3"]
    with pytest.raises(ValueError, match=r"no column 'woh' \(did you mean 'who'\?\)"):
        data.load(file, "income", id="woh")
    np.savez(tmp_path / "people.npz", x=np.zeros((3, 1)), y=[0, 1, 1], who=[7, 8, 9])
    assert data.load(tmp_path / "people.npz", id="who").points.names.tolist() == ["7", "8", "9"]
    assert data.read(tmp_path / "people.npz", id="who").points.names.tolist() == ["7", "8", "9"]
    with pytest.raises(ValueError, match="comes with its own label; label, group, drop and id are columns of files"):
        data.load("wine", id="who")
