"""Files, frames and named sets become points with a digest; every bad file gets one line."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from leakbound import data

FRAME = pd.DataFrame(
    {
        "age": [31, 42, 53, 31],
        "<script>": ["a", "b", "c", "a"],
        "pay": [1.5, np.nan, 2.5, 1.5],
        "person": [1, 1, 2, 3],
        "income": ["low", "high", "low", "low"],
    }
)


class Trap:
    """Unpickling it leaves a file behind."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def write(path: Path, frame: Any) -> str:
    """A frame as a file."""
    frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_parquet(path)
    return str(path)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
class TestTables:
    def test_columns_labels_and_groups(self, tmp_path, suffix):
        loaded = data.load(write(tmp_path / f"people{suffix}", FRAME), label="income", group="person")
        points = loaded.points
        assert loaded.name == f"people{suffix}"
        assert list(points.x.columns) == ["age", "<script>", "pay"]
        assert points.y is not None
        assert points.group is not None
        assert points.y.tolist() == ["low", "high", "low", "low"]
        assert points.group.tolist() == [1, 1, 2, 3]
        assert np.isnan(points.x["pay"][1])

    def test_the_same_content_is_the_same_digest_wherever_it_lies(self, tmp_path, suffix):
        first = data.load(write(tmp_path / f"a{suffix}", FRAME), "income").points
        second = data.load(write(tmp_path / f"b{suffix}", FRAME), "income").points
        assert first.digest == second.digest

    def test_bad_columns(self, tmp_path, suffix):
        path = write(tmp_path / f"people{suffix}", FRAME)
        for label, group, message in (
            (
                None,
                None,
                "name the label column (label, --label), or the score by which a model without one is read "
                "(score, --score); columns: age, <script>, pay, person, income",
            ),
            ("incom", None, "no column 'incom' (did you mean 'income'?); columns: age, <script>, pay, person, income"),
            ("income", "zzz", "no column 'zzz'; columns: age, <script>, pay, person, income"),
        ):
            with pytest.raises(ValueError) as caught:
                data.load(path, label, group)
            assert str(caught.value) == f"{path}: {message}"

    def test_one_column(self, tmp_path, suffix):
        path = write(tmp_path / f"one{suffix}", FRAME[["income"]])
        with pytest.raises(ValueError) as caught:
            data.load(path, "income")
        assert str(caught.value) == f"{path}: no feature columns are left besides income"

    def test_no_rows(self, tmp_path, suffix):
        path = write(tmp_path / f"none{suffix}", FRAME[:0])
        with pytest.raises(ValueError) as caught:
            data.load(path, "income")
        assert str(caught.value) == f"{path}: the table has no rows or no columns"

    def test_a_missing_label(self, tmp_path, suffix):
        path = write(tmp_path / f"gap{suffix}", FRAME.assign(income=["low", None, "high", None]))
        with pytest.raises(ValueError) as caught:
            data.load(path, "income")
        assert str(caught.value) == "label is missing at 2 points, first at point 1"

    def test_not_what_its_name_says(self, tmp_path, suffix):
        path = tmp_path / f"bad{suffix}"
        path.write_bytes(b'a,b\n"\xff\xfe,1\n')
        line = {".csv": "the quote that line 2 opens is not closed", ".parquet": "cannot be read as parquet: "}
        with pytest.raises(ValueError, match=f"^{path}: {line[suffix]}") as caught:
            data.load(str(path), "b")
        assert "\n" not in str(caught.value)


class TestArchives:
    x = np.arange(12.0).reshape(4, 3)

    def save(self, path: Path, **arrays: object) -> str:
        np.savez(path, **arrays)  # pyright: ignore[reportArgumentType]
        return str(path)

    def test_arrays(self, tmp_path):
        path = self.save(tmp_path / "a.npz", x=self.x, y=[0, 1, 1, 0], other=["a", "b", "a", "b"], who=[1, 1, 2, 2])
        points = data.load(path).points
        np.testing.assert_array_equal(points.x, self.x)
        assert points.y is not None
        assert points.y.tolist() == [0, 1, 1, 0]
        named = data.load(path, "other", "who").points
        assert named.y is not None
        assert named.group is not None
        assert (named.y.tolist(), named.group.tolist()) == (["a", "b", "a", "b"], [1, 1, 2, 2])

    @pytest.mark.parametrize(
        ("arrays", "label", "message"),
        [
            (
                {"features": x},
                None,
                "the features are the array 'x', which is not there; arrays: features",
            ),
            ({"x": x}, None, "no array 'y'; arrays: x"),
            ({"x": x, "label": [0, 1, 1, 0]}, "lable", "no array 'lable' (did you mean 'label'?); arrays: x, label"),
        ],
    )
    def test_missing_arrays(self, tmp_path, arrays, label, message):
        path = self.save(tmp_path / "a.npz", **arrays)
        with pytest.raises(ValueError) as caught:
            data.load(path, label)
        assert str(caught.value) == f"{path}: {message}"

    def test_nothing_in_an_array_of_objects_is_executed(self, tmp_path):
        sprung = tmp_path / "sprung"
        path = self.save(tmp_path / "trap.npz", x=self.x, y=np.array([Trap(sprung)] * 4, dtype=object))
        with pytest.raises(ValueError, match=f"^{path}: cannot be read as npz without pickle: "):
            data.load(path)
        assert not sprung.exists()

    def test_nothing_in_a_pickle_named_npz_is_executed(self, tmp_path):
        sprung, path = tmp_path / "sprung", tmp_path / "trap.npz"
        path.write_bytes(pickle.dumps(Trap(sprung)))
        with pytest.raises(ValueError, match=f"^{path}: cannot be read as npz without pickle: "):
            data.load(str(path))
        assert not sprung.exists()
        pickle.loads(path.read_bytes())
        assert sprung.exists()  # the trap works

    def test_a_single_array_named_npz(self, tmp_path):
        path = tmp_path / "single.npz"
        with path.open("wb") as file:
            np.save(file, self.x)
        with pytest.raises(ValueError) as caught:
            data.load(str(path))
        assert str(caught.value) == f"{path}: holds a single array; an .npz file of named arrays is needed"

    def test_a_cut_off_file(self, tmp_path):
        path = Path(self.save(tmp_path / "a.npz", x=self.x, y=[0, 1, 1, 0]))
        path.write_bytes(path.read_bytes()[:-30])
        with pytest.raises(ValueError, match=f"^{path}: cannot be read as npz without pickle: "):
            data.load(str(path))


class TestNamedSets:
    @pytest.mark.parametrize(
        ("name", "shape"), [("digits", (1797, 64)), ("breast_cancer", (569, 30)), ("wine", (178, 13))]
    )
    def test_shapes(self, name, shape):
        loaded = data.load(name)
        assert loaded.points.x.shape == shape
        assert loaded.name == name
        assert (loaded.image == (8, 8)) == (name == "digits")

    def test_their_label_is_their_own(self):
        with pytest.raises(ValueError) as caught:
            data.load("wine", label="target")
        assert str(caught.value) == ("wine comes with its own label; label, group, drop and id are columns of files")

    def test_the_nearest_name(self):
        with pytest.raises(ValueError) as caught:
            data.load("digit")
        assert str(caught.value) == (
            "unknown data set 'digit' (did you mean 'digits'?); known: digits, breast_cancer, wine"
        )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent.csv", "no such file"),
        ("folder.csv", "no such file"),
        ("empty.csv", "the file is empty"),
        ("empty.npz", "the file is empty"),
        ("table.xlsx", "cannot read '.xlsx' files; allowed: .csv, .parquet, .npz"),
    ],
)
def test_the_line_that_a_bad_path_gets(tmp_path, name, message):
    (tmp_path / "folder.csv").mkdir()
    for empty in ("empty.csv", "empty.npz", "table.xlsx"):
        (tmp_path / empty).touch()
    with pytest.raises(ValueError) as caught:
        data.load(str(tmp_path / name))
    assert str(caught.value) == f"{tmp_path / name}: {message}"


class TestFromArrays:
    def test_lists(self):
        points = data.from_arrays([[1.0, 2.0], [3.0, 4.0]], ["a", "b"])
        assert points.x.shape == (2, 2)
        assert points.y is not None
        assert points.y.dtype.kind == "U"

    def test_a_column_of_labels_is_flattened(self):
        points = data.from_arrays(np.eye(3), np.array([[0], [1], [0]]))
        assert points.y is not None
        assert points.y.tolist() == [0, 1, 0]

    def test_the_index_of_a_frame_is_forgotten(self):
        points = data.from_arrays(FRAME.set_index("age", drop=False)[["age", "pay"]])
        assert points.x.index.tolist() == [0, 1, 2, 3]

    def test_missing_features_are_left_to_the_estimator(self):
        assert np.isnan(data.from_arrays(np.array([[1.0], [np.nan]])).x[1, 0])

    @pytest.mark.parametrize(
        ("x", "y", "message"),
        [
            (np.zeros(3), None, "x must have a row for each point and a column for each feature, got shape (3,)"),
            (np.zeros((1, 2)), None, "a game needs at least 2 points, got 1"),
            (
                [["a", None], ["b", 1]],
                None,
                "x is an array of objects; give numbers, or a pandas DataFrame for columns of several types",
            ),
            (np.eye(3), [0, 1], "label must have shape (3,), one value a point; got (2,)"),
            (np.eye(3), np.zeros((3, 2, 2)), "label must have shape (3,), one value a point; got (3, 2, 2)"),
            (np.eye(3), np.eye(4), "label must have 3 rows, one for each point; got (4, 4)"),
            (np.eye(3), [0.0, np.nan, np.nan], "label is missing at 2 points, first at point 1"),
            (np.eye(3), ["a", None, "b"], "label is missing at 1 points, first at point 1"),
            (np.eye(3), [0.0, np.inf, 1.0], "label has infinite values"),
        ],
    )
    def test_the_line_that_bad_arrays_get(self, x, y, message):
        with pytest.raises(ValueError) as caught:
            data.from_arrays(x, y)
        assert str(caught.value) == message


X = np.arange(6.0).reshape(3, 2)
CONTENTS = {
    "array": (X, [0, 1, 0], None),
    "one number": (np.where(X == 3, 3.5, X), [0, 1, 0], None),
    "shape": (X.reshape(3, 2, 1), [0, 1, 0], None),
    "type": (X.astype(np.float32), [0, 1, 0], None),
    "order of points": (X[::-1], [0, 1, 0], None),
    "label": (X, [0, 1, 1], None),
    "text label": (X, ["0", "1", "0"], None),
    "no label": (X, None, None),
    "group": (X, [0, 1, 0], [0, 0, 1]),
    "frame": (pd.DataFrame(X, columns=["a", "b"]), [0, 1, 0], None),
    "names": (pd.DataFrame(X, columns=["b", "a"]), [0, 1, 0], None),
    "order of columns": (pd.DataFrame(X, columns=["a", "b"])[["b", "a"]], [0, 1, 0], None),
    "text": (pd.DataFrame({"a": ["1", "2", "3"]}), [0, 1, 0], None),
    "numbers": (pd.DataFrame({"a": [1, 2, 3]}), [0, 1, 0], None),
    "missing": (pd.DataFrame({"a": [1.0, np.nan, 3.0]}), [0, 1, 0], None),
    "not missing": (pd.DataFrame({"a": [1.0, 0.0, 3.0]}), [0, 1, 0], None),
    "objects": (pd.DataFrame({"a": pd.Series([1, "2", None], dtype=object)}), [0, 1, 0], None),
    "other objects": (pd.DataFrame({"a": pd.Series(["1", "2", None], dtype=object)}), [0, 1, 0], None),
}


def test_different_content_has_different_digests():
    digests = {name: data.from_arrays(*content).digest for name, content in CONTENTS.items()}
    assert len(set(digests.values())) == len(CONTENTS)


@pytest.mark.parametrize("name", CONTENTS)
def test_equal_content_has_one_digest(name):
    x, y, group = CONTENTS[name]
    again = x.copy() if isinstance(x, pd.DataFrame) else np.asfortranarray(x)
    assert data.from_arrays(again, y, group).digest == data.from_arrays(x, y, group).digest


class TestRepeatedPoints:
    @pytest.mark.parametrize("labels", [[0, 1, 0, 1], ["a", "b", "a", "b"], [0.5, 1.5, 0.5, 1.5]])
    @pytest.mark.parametrize("frame", [False, True])
    def test_all_features_and_the_label_count(self, labels, frame):
        x = np.array([[1.0, 2.0], [1.0, 2.0], [1.0, 2.0], [2.0, 1.0]])
        points = data.from_arrays(pd.DataFrame(x) if frame else x, labels)
        assert data.repeated(points).tolist() == [False, False, True, False]

    def test_without_labels(self):
        assert data.repeated(data.from_arrays([[1.0], [2.0], [1.0]])).tolist() == [False, False, True]

    def test_missing_values_are_equal_to_each_other(self):
        assert data.repeated(data.from_arrays(FRAME, FRAME["income"])).tolist() == [False] * 4
        x = FRAME.drop(columns="person")
        assert data.repeated(data.from_arrays(x, FRAME["income"])).tolist() == [False, False, False, True]

    def test_others_that_stand_among_the_members(self):
        members = data.from_arrays([[1.0], [2.0], [2.0]], ["a", "b", "b"])
        others = data.from_arrays([[2.0], [2.0], [1.0], [3.0]], ["b", "b", "b", "a"])
        assert data.shared(members, others) == 2

    @pytest.mark.slow
    def test_adult(self, real_data):
        """52 rows repeat an earlier one; those across its two files are found by a merge too."""
        frame: Any = pd.read_parquet(real_data / "adult.parquet")
        split, x = frame["split"].to_numpy(), frame.drop(columns=["split", "income"])
        assert data.repeated(data.from_arrays(x, frame["income"])).sum() == 52
        train, test = (data.from_arrays(x[split == part], frame["income"][split == part]) for part in ("train", "test"))
        assert data.repeated(train).sum() == 24
        assert data.repeated(test).sum() == 5
        columns = [name for name in frame.columns if name != "split"]
        known = frame[split == "train"][columns].drop_duplicates()
        assert data.shared(train, test) == len(frame[split == "test"][columns].merge(known, how="inner"))


class TestJoin:
    @pytest.mark.parametrize("frame", [False, True])
    def test_one_after_the_other(self, frame):
        parts = [np.array([[1.0], [2.0]]), np.array([[3.0], [4.0], [5.0]])]
        first, second = (
            data.from_arrays(pd.DataFrame(part, columns=["a"]) if frame else part, list("abc")[: len(part)])
            for part in parts
        )
        joined = data.join(first, second)
        assert np.asarray(joined.x).ravel().tolist() == [1, 2, 3, 4, 5]
        assert joined.y is not None
        assert joined.y.tolist() == ["a", "b", "a", "b", "c"]
        assert joined.digest not in {first.digest, second.digest, ""}

    @pytest.mark.parametrize(
        ("first", "second", "message"),
        [
            ((X,), (pd.DataFrame(X),), "members are an array, others a frame; give both in the same form"),
            ((pd.DataFrame(X, columns=["a", "b"]),), (pd.DataFrame(X),), "members and others have different columns"),
            ((X,), (X[:, :1],), "members have features of shape (2,), others (1,)"),
            ((X, [0, 1, 0]), (X,), "members and others must both have labels, or neither"),
        ],
    )
    def test_what_does_not_fit(self, first, second, message):
        with pytest.raises(ValueError) as caught:
            data.join(data.from_arrays(*first), data.from_arrays(*second))
        assert str(caught.value) == message


class TestPreview:
    def test_the_picture_of_a_digit(self):
        picture = data.preview(data.load("digits"), 3)["image"]
        digits: Any = load_digits()
        pixels = digits.images[3]
        np.testing.assert_allclose(picture, pixels / pixels.max() * 255, atol=0.5)

    def test_a_black_picture(self):
        loaded = data.Data(data.from_arrays(np.zeros((2, 4))), "black", (2, 2))
        assert data.preview(loaded, 0) == {"image": [[0, 0], [0, 0]]}

    def test_the_first_fields_of_a_row_by_name(self, tmp_path):
        loaded = data.load(write(tmp_path / "people.csv", FRAME), "person")
        assert data.preview(loaded, 2) == {"fields": {"age": "53", "<script>": "c", "pay": "2.5", "income": "low"}}

    def test_the_first_numbers_of_an_array(self):
        loaded = data.Data(data.from_arrays(np.arange(12.0).reshape(2, 6) / 3), "numbers")
        assert data.preview(loaded, 1) == {"fields": {"x0": "2", "x1": "2.333", "x2": "2.667", "x3": "3"}}


def test_dropped_columns_are_no_features(tmp_path):
    file = tmp_path / "people.csv"
    file.write_text("id,age,income\n1,30,a\n2,30,a\n3,40,b\n", encoding="utf-8")
    points = data.load(str(file), "income", drop=["id"]).points
    assert list(points.x.columns) == ["age"]
    assert data.repeated(points).tolist() == [False, True, False]
    with pytest.raises(ValueError, match="no column 'idd' \\(did you mean 'id'"):
        data.load(str(file), "income", drop=["idd"])
    with pytest.raises(ValueError, match="label, group, drop and id are columns of files"):
        data.load("wine", drop=["id"])


def test_adult_repeats_52_rows(real_data):
    points = data.load(str(real_data / "adult.parquet"), "income", drop=["split"]).points
    assert int(data.repeated(points).sum()) == 52
