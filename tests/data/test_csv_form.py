"""How a CSV file is written."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import leakbound as ls
from leakbound.auditing.api import run
from leakbound.data import load
from leakbound.data.files import read_table

FRAME = pd.DataFrame(
    {
        "age": [30, 40, 50],
        "hours": [1.5, np.nan, -2.25],
        "town": ["Genève", "Zürich", "a,b; c"],
        "income": ["x", "y", "x"],
    }
)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1", "cp1252"])
@pytest.mark.parametrize("decimal", [".", ","])
def test_a_table_is_read_as_it_was_declared(tmp_path, separator, encoding, decimal):
    path = tmp_path / "people.csv"
    FRAME.to_csv(path, index=False, sep=separator, encoding=encoding, decimal=decimal, quoting=1)
    frame, notes = read_table(path, separator=separator, decimal=decimal, encoding=encoding)
    pd.testing.assert_frame_equal(frame, FRAME, check_dtype=False)
    assert notes == []
    if encoding == "utf-8-sig":
        assert read_table(path, separator=separator, decimal=decimal)[0].equals(frame)
    elif encoding != "utf-8":
        with pytest.raises(ValueError, match="--encoding"):
            read_table(path, separator=separator, decimal=decimal)


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("a\n1\n2\n", (2, 1)),  # one column
        ('text,b\n"one; two; three",1\n"a; b; c",2\n', (2, 2)),  # semicolons inside of texts
        ("note\na; b\nc; d; e\n", (2, 1)),  # in texts of the only column
    ],
)
def test_a_comma_separates_unless_another_sign_is_declared(tmp_path, text, shape):
    path = tmp_path / "table.csv"
    path.write_text(text, encoding="utf-8")
    assert read_table(path)[0].shape == shape


@pytest.mark.parametrize("encoding", ["shift_jis", "cp437", "utf-16", "utf-8"])
def test_an_encoding_that_was_declared(tmp_path, encoding):
    path = tmp_path / "people.csv"
    town = "東京" if encoding == "shift_jis" else "Genève"
    pd.DataFrame({"age": [30, 40], "town": [town, "Bern"]}).to_csv(path, index=False, encoding=encoding)
    assert read_table(path, encoding=encoding)[0]["town"].tolist() == [town, "Bern"]
    assert load(path, "age", encoding=encoding).points.x["town"].tolist() == [town, "Bern"]


def test_an_encoding_that_nobody_knows(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4\n")
    line = "encoding must be one that Python knows, as utf-8 or cp1252; got 'utf-9'"
    with pytest.raises(ValueError, match=line):
        ls.bound("table", data=tmp_path / "t.csv", by=("a",), encoding="utf-9")
    with pytest.raises(ValueError, match="cannot be read as csv: unknown encoding: utf-9"):
        read_table(tmp_path / "t.csv", encoding="utf-9")


def test_texts_with_commas_stay_texts(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a;b\n12,5;x\nBern, Chur;y\n", encoding="utf-8")
    frame, notes = read_table(path, separator=";")
    assert frame["a"].tolist() == ["12,5", "Bern, Chur"]
    assert notes == []


def test_the_report_says_how_the_file_was_read(tmp_path):
    path = tmp_path / "people.csv"
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"zip": rng.choice(["007", "8001"], 60), "income": rng.choice(["low", "high"], 60)})
    people.to_csv(path, index=False)
    note = "people.csv is read with codes, whose digits a number would lose, in zip"
    assert load(path, "income").notes == (note,)
    plan = ls.plans.AuditPlan(
        data=str(path), label="income", n_models=4, model=({"spec": "sklearn.tree:DecisionTreeClassifier"},)
    )
    assert note in " ".join(run(plan, n_jobs=1).about.notes)


class TestSaid:
    """Separator and decimal sign that the user gives."""

    @pytest.mark.parametrize("separator", [":", " ", ";", "~", "\t", ","])
    @pytest.mark.parametrize("decimal", [".", ","])
    def test_a_table_is_read_as_it_was_said(self, tmp_path, separator, decimal):
        path = tmp_path / "people.csv"
        FRAME.to_csv(path, index=False, sep=separator, decimal=decimal, quoting=1)
        frame, _ = read_table(path, separator=separator, decimal=decimal)
        pd.testing.assert_frame_equal(frame, FRAME, check_dtype=False)

    @pytest.mark.parametrize(("decimal", "values"), [(",", [1.234, 1000.5, 2.0]), (".", [1234.0, 10005.0, 2.0])])
    def test_the_sign_decides_what_may_be_a_thousand(self, tmp_path, decimal, values):
        path = tmp_path / "pay.csv"
        text = {",": "1,234;x\n1.000,5;y\n2;z\n", ".": "1,234;x\n10,005;y\n2;z\n"}[decimal]
        path.write_text("pay;name\n" + text, encoding="utf-8")
        frame, notes = read_table(path, separator=";", decimal=decimal)
        assert frame["pay"].tolist() == values
        assert "separators of thousands in pay" in notes[0]
        assert frame["name"].tolist() == ["x", "y", "z"]

    def test_a_table_that_may_be_read_in_two_ways_is_refused_with_the_flag(self, tmp_path):
        path = tmp_path / "pay.csv"
        path.write_text("pay;name\n1,234;x\n2,345;y\n", encoding="utf-8")
        with pytest.raises(
            ValueError, match=r"say which is the decimal sign: decimal \(--decimal , or --decimal \.\)$"
        ):
            read_table(path, separator=";")
        assert read_table(path, separator=";", decimal=",")[0]["pay"].tolist() == [1.234, 2.345]
        assert read_table(path, separator=";", decimal=".")[0]["pay"].tolist() == [1234.0, 2345.0]

    def test_text_that_is_no_number_stays_text(self, tmp_path):
        path = tmp_path / "pay.csv"
        path.write_text("version;date\n1.2.3;24.12.2020\n4.5;1.1.2021\n", encoding="utf-8")
        frame, notes = read_table(path, separator=";", decimal=",")
        assert frame["version"].tolist() == ["1.2.3", "4.5"]
        assert notes == []

    @pytest.mark.parametrize("text", ["a:b:label\n1:2:0\n3:4:1\n", "a;b;label\n1;2;0\n3;4;1;1\n"])
    def test_a_separator_that_is_not_found_is_asked_for(self, tmp_path, text):
        path = tmp_path / "odd.csv"
        path.write_text(text, encoding="utf-8")
        for label in ("label", None):
            with pytest.raises(
                ValueError, match=r"name (it|the sign between the columns) as separator \(--separator\)$"
            ):
                load(path, label)

    def test_lines_that_the_parser_refuses_ask_for_it_too(self, tmp_path):
        path = tmp_path / "odd.csv"
        path.write_text("a,b:c\n1,2:3\n3,4,5:6\n", encoding="utf-8")
        with pytest.raises(
            ValueError, match=r"another sign separates the columns, name it as separator \(--separator\)$"
        ):
            read_table(path)
        assert read_table(path, separator=":")[0].shape == (2, 2)

    def test_other_files_take_none(self, tmp_path):
        np.savez(tmp_path / "x.npz", x=np.ones((4, 2)))
        for source in (tmp_path / "x.npz", "wine"):
            with pytest.raises(ValueError, match="separator, decimal and encoding say how"):
                ls.data.read(source, separator=";")

    @pytest.mark.parametrize("separator", ["", ";;", "a", '"', "1", ".", "-", "\n", "§"])
    def test_what_is_no_separator(self, separator):
        with pytest.raises(ValueError, match="bound regression: separator must be one sign, as ; or tab"):
            ls.bound("regression", data="people.csv", separator=separator)

    @pytest.mark.parametrize("separator", ["tab", "\\t", "\t"])
    def test_a_tab_can_be_typed(self, tmp_path, separator):
        path = tmp_path / "people.csv"
        path.write_text("a\tb\n1,5\t2\n2,5\t3\n4,5\t7\n", encoding="utf-8")
        bound = ls.bound("leakage", data=path, separator=separator, decimal=",")
        assert bound.about.data.records == 3
