"""Columns cut into levels, and where the columns come from."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from leakbound import data
from leakbound.data.slices import MISSING, MOST_LEVELS, OTHER, cut, refuse_without_groups, sliced


class TestLevels:
    def test_text_from_the_most_frequent_on(self):
        levels = cut(np.array(["b", "a", "b", "c", "a", "b"]))
        assert levels.names == ("b", "a", "c")
        assert levels.of_record.tolist() == [0, 1, 0, 2, 1, 0]
        assert levels.ends == ()

    def test_few_numbers_are_levels_in_their_order(self):
        levels = cut(np.array([10, 2, 2, 7]))
        assert levels.names == ("2", "7", "10")
        assert levels.of_record.tolist() == [2, 0, 0, 1]

    def test_many_numbers_are_cut_at_their_quartiles(self):
        values = np.random.default_rng(0).permutation(100) / 7
        levels = cut(values)
        assert levels.names == tuple(f"quarter {place} of 4" for place in (1, 2, 3, 4))
        assert np.bincount(levels.of_record).tolist() == [25, 25, 25, 25]
        for place, (low, high) in enumerate(levels.ends):
            own = values[levels.of_record == place]
            assert (low, high) == (own.min(), own.max())

    def test_equal_numbers_stay_together(self):
        values = np.r_[np.zeros(70), np.arange(1.0, 31.0)]
        levels = cut(values)
        assert levels.names == ("quarter 1 of 4", "quarter 3 of 4", "quarter 4 of 4") or len(levels.names) == 2
        assert np.unique(levels.of_record[values == 0]).tolist() == [0]
        assert levels.ends[0] == (0.0, 0.0)

    def test_of_many_levels_the_rarest_are_one(self):
        values = np.repeat([f"town {place:02d}" for place in range(30)], np.arange(31, 1, -1))
        levels = cut(values)
        assert len(levels.names) == MOST_LEVELS
        assert levels.names[:2] == ("town 00", "town 01")
        assert levels.names[-1] == OTHER
        assert np.count_nonzero(levels.of_record == MOST_LEVELS - 1) == sum(range(2, 13))  # the eleven rarest

    @pytest.mark.parametrize("values", [np.array(["a", None, "b", "a"], dtype=object), np.r_[np.arange(40.0), np.nan]])
    def test_a_missing_value_is_a_level(self, values):
        levels = cut(values)
        assert levels.names[-1] == MISSING
        assert (levels.of_record == len(levels.names) - 1).tolist() == pd.isna(values).tolist()

    @pytest.mark.parametrize(
        ("values", "names"),
        [
            (["missing", None, "missing", "a"], ("'missing'", "a", MISSING)),
            ([1, "1", "1"], ("'1'", "1")),
            (["several values", "a", "all other values"], ("'several values'", "a", "'all other values'")),
            (["'1'", 1, "1", 1.5], ("'1'", "1", "'1' (2)", "1.5")),
        ],
    )
    def test_two_levels_never_have_one_name(self, values, names):
        levels = cut(np.array(values, dtype=object))
        assert levels.names == names
        assert len(set(levels.names)) == len(levels.names)

    def test_a_town_that_is_called_as_the_rest_is(self):
        values = np.repeat([OTHER, *(f"town {place:02d}" for place in range(30))], np.arange(32, 1, -1))
        levels = cut(values)
        assert (levels.names[0], levels.names[-1]) == (f"'{OTHER}'", OTHER)
        assert len(set(levels.names)) == MOST_LEVELS

    def test_truth_values(self):
        assert cut(np.array([True, False, True])).names == ("True", "False")


class TestColumns:
    points = data.from_arrays(pd.DataFrame({"age": [30, 50], "label": ["x", "y"]}), [0, 1], ["P", "Q"])

    def test_a_column_is_before_the_words_for_label_and_group(self):
        found = sliced(self.points, ["label", "group"])
        assert found["label"].tolist() == ["x", "y"]
        assert found["group"].tolist() == ["P", "Q"]

    def test_whole_numbers_name_classes(self):
        points = data.from_arrays(np.zeros((50, 1)), np.arange(50))
        assert sliced(points, "label")["label"][7] == "7"
        points = data.from_arrays(np.zeros((200, 1)), np.arange(200))
        assert sliced(points, "label")["label"].dtype.kind == "i"

    @pytest.mark.parametrize(
        ("by", "line"),
        [
            ("aeg", r"slice: no column 'aeg' \(did you mean 'age'\?\); columns: age, label, label, group"),
            ({"town": [1, 2, 3]}, r"slice 'town' must have shape \(2,\), one value a record; got \(3,\)"),
        ],
    )
    def test_what_is_refused(self, by, line):
        with pytest.raises(ValueError, match=line):
            sliced(self.points, by)

    def test_columns_of_arrays(self):
        points = data.from_arrays(np.array([[1.0, 2.0], [3.0, 4.0]]))
        assert sliced(points, "x1")["x1"].tolist() == [2.0, 4.0]
        with pytest.raises(ValueError, match="no column 'x2'"):
            sliced(points, "x2")


@pytest.mark.parametrize(
    ("values", "line"),
    [
        (["Bern"] * 3, "slice 'town' has the same value in every record; name a column with at least 2 values"),
        ([None] * 3, "slice 'town' has the same value in every record"),
        (
            ["P-1", "P-2", "P-3"],
            "slice 'town' has another value in each record; name a column of numbers",
        ),
    ],
)
def test_columns_without_groups_are_refused(values, line):
    with pytest.raises(ValueError, match=line):
        refuse_without_groups({"town": np.array(values, dtype=object)})


def test_columns_with_groups_are_taken():
    refuse_without_groups({"age": np.arange(40), "town": np.array(["Bern", None, "Bern"], dtype=object)})


def test_columns_of_files(tmp_path):
    file = tmp_path / "people.csv"
    file.write_text("who,town,age,income\nP-1,Chur,30,0\nP-2,Bern,50,1\nP-3,Bern,40,1\n", encoding="utf-8")
    loaded = data.load(file, "income", drop=["town"], id="who", slice=["town", "income", "age"])
    assert list(loaded.points.x.columns) == ["age"]
    assert loaded.slices["town"].tolist() == ["Chur", "Bern", "Bern"]
    assert loaded.slices["income"].tolist() == ["0", "1", "1"]  # classes are names
    assert loaded.slices["age"].tolist() == [30, 50, 40]
    with pytest.raises(ValueError, match="did you mean 'town'"):
        data.load(file, "income", slice=["twon"])
    np.savez(tmp_path / "people.npz", x=np.arange(6.0).reshape(3, 2), y=[0, 1, 1], town=["Chur", "Bern", "Bern"])
    loaded = data.load(tmp_path / "people.npz", slice=["town", "x0", "label"])
    assert {name: values.tolist() for name, values in loaded.slices.items()} == {
        "town": ["Chur", "Bern", "Bern"], "x0": [0.0, 2.0, 4.0], "label": ["0", "1", "1"],
    }  # fmt: skip
    assert data.load("wine", slice=["label"]).slices["label"].tolist()[0] == "0"


@pytest.mark.parametrize("values", [pd.Series([1, 2, 1], name="side"), np.array([1, 2, 1])])
def test_the_values_of_each_record_may_be_given_by_themselves(values):
    points = data.from_arrays(np.zeros((3, 1)), [0, 1, 0])
    ((name, column),) = sliced(points, values).items()
    assert name == ("side" if isinstance(values, pd.Series) else "slice")
    np.testing.assert_array_equal(column, [1, 2, 1])


@pytest.mark.parametrize(
    ("by", "line"),
    [
        ([np.array([1, 2, 1])], r"slice takes names of columns, .* by name, .*; got a ndarray in a list$"),
        ([0], r"got a int in a list; columns of an array are 'x0', 'x1', ..., as 'x0'$"),
        ([True, False, True], r"got a bool in a list$"),
    ],
)
def test_a_list_of_anything_but_names_is_refused(by, line):
    with pytest.raises(ValueError, match=line):
        sliced(data.from_arrays(np.zeros((3, 1)), [0, 1, 0]), by)
