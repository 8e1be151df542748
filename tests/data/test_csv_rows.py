"""Rows of a CSV file that are no table are refused with the line; levels that look alike are named."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from leakbound.data import from_arrays, load
from leakbound.data.columns import alike_levels
from leakbound.data.files import read_table
from leakbound.data.score_tables import read_scores


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("wage,age\n5,30,\n6,40,\n", "line 2 has 3 fields where the header has 2, as all rows have: remove the sep"),
        ("a,b,c\n1,2,3\n1,2\n3,4,5\n", "line 3 has 2 fields where the header has 3; if another sign separates"),
        ("a,b\n1,2\n1,2,3\n", "line 3 has 3 fields where the header has 2"),
        ('a,b\n"x\ny",2\n1\n', "line 4 has 1 fields where the header has 2"),
        ('"a","b"\n"1",2,3\n"2",4,5\n', "as all rows have: if they begin with row names, give that column a name"),
        (
            '"","a"\n"1",2\n"2",4\n',
            "column 1 has no name in the header: give it one, or remove it; if it holds row names",
        ),
        ("a,b,\n1,2,\n", "column 3 has no name in the header"),
        ("30,12.5\n40,13\n", "line 1 holds numbers alone, where the names of the columns should be"),
        ("a\n1\n\n2\n", "line 3 is empty"),
        ("a,b\n1,2\r3,4\n", "some lines end with a carriage return alone"),
        ('a,b\n1,5" nail\n', "line 2 has a quote inside of a field"),
        ('a,b\n"x" y,1\n', "line 2 has a quote inside of a field"),
        ('a,b\n"say \\"hi\\"",1\n', "line 2 has a quote inside of a field"),
        ('a,b\n1,2\n"x,1\n3,4\n', "the quote that line 3 opens is not closed"),
        ("a,b\n1,\0\n", "line 2 holds a zero byte"),
        (
            "sep=;\na;b\n1;2\n",
            "the header has the name 'sep=;': name the sign between the columns as separator (--separator)",
        ),
        (
            "a,b;c\n1,2;3\n",
            "the header has the name 'b;c': name the sign between the columns as separator (--separator)",
        ),
        (
            'a,b\n"1,234",1\n543,2\n',
            "column 'a' has 1,234; say which is the decimal sign: decimal (--decimal , or --decimal .)",
        ),
        (
            'a,b\n"12,5",1\n"3,25",2\n',
            "column 'a' has 12,5; say which is the decimal sign: decimal (--decimal , or --decimal .)",
        ),
        ("a,b\n1.234.567,1\n3,2\n", "column 'a' has 1.234.567; say which is the decimal sign"),
    ],
)
def test_what_is_no_table_or_leaves_open_what_it_means(tmp_path, content, line):
    path = tmp_path / "table.csv"
    path.write_bytes(content.encode())
    with pytest.raises(ValueError, match=r"table\.csv: ") as refusal:
        read_table(path)
    assert line in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("a;b\n12,5;1\n3;12.5\n", "column 'a' has 12,5; say which is the decimal sign"),
        ("a;b\n1.234;1\n543;2\n", "column 'a' may hold fractions, which files with such a separator often write with"),
    ],
)
def test_another_separator_needs_the_decimal_sign_of_fractions(tmp_path, content, line):
    path = tmp_path / "table.csv"
    path.write_text(content)
    with pytest.raises(ValueError, match=re.escape(line)):
        read_table(path, separator=";")


def test_one_letter_of_another_encoding(tmp_path):
    path = tmp_path / "towns.csv"
    path.write_bytes("town,n\nGenève,1\n".encode() + "Zürich,2\n".encode("cp1252"))
    with pytest.raises(ValueError, match=r"not written in UTF-8: declare it as encoding \(--encoding cp1252\)"):
        read_table(path)
    frame, _ = read_table(path, encoding="cp1252")
    assert frame["town"].tolist() == ["GenÃ¨ve", "Zürich"]


def test_rows_are_counted_across_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("leakbound.data.csv_rows._BLOCK", 7)
    path = tmp_path / "table.csv"
    path.write_bytes(b'name,zip\r\n"a ""b"", c",01\r\n"x\r\ny",020\r\n"",300\r\n\r\n')
    frame, _ = read_table(path)
    assert frame["name"].tolist()[:2] == ['a "b", c', "x\r\ny"]
    assert frame["zip"].tolist() == ["01", "020", "300"]
    path.write_bytes(path.read_bytes() + b"1,2,3\r\n")
    with pytest.raises(ValueError, match="line 6 is empty"):
        read_table(path)


def test_codes_keep_their_digits(tmp_path):
    path = tmp_path / "codes.csv"
    path.write_text("zip,id,n\n01234,9007199254740993,1\n1234,,2\n99,9007199254740992,3\n", encoding="utf-8")
    frame, notes = read_table(path)
    assert frame["zip"].tolist() == ["01234", "1234", "99"]
    assert frame["id"].tolist()[::2] == ["9007199254740993", "9007199254740992"]
    assert frame["n"].tolist() == [1, 2, 3]
    assert notes == ["codes.csv is read with codes, whose digits a number would lose, in zip, id"]


@pytest.mark.parametrize(
    ("content", "separator", "decimal", "wages"),
    [
        ('wage,n\n"1,234.50",1\n"12.00",2\n', None, ".", [1234.5, 12.0]),
        ("wage;n\n1.234,50;1\n12,00;2\n", ";", ",", [1234.5, 12.0]),
        ("wage;n\n1.234;0,5\n543;0,25\n", ";", ",", [1234, 543]),
        ('wage,n\n"1,234",0.5\n543,0.25\n', None, ".", [1234, 543]),
        ("wage;n\n1.234;0.5\n2.5;0.25\n", ";", ".", [1.234, 2.5]),
        ("wage,n\n5,1\nNone,2\n", None, None, [5, np.nan]),
    ],
)
def test_numbers_of_spreadsheets_of_both_continents(tmp_path, content, separator, decimal, wages):
    path = tmp_path / "wages.csv"
    path.write_text(content, encoding="utf-8")
    np.testing.assert_array_equal(read_table(path, separator=separator, decimal=decimal)[0]["wage"], wages)


def test_none_is_a_level_of_a_text(tmp_path):
    path = tmp_path / "schools.csv"
    path.write_text("school,n\nNone,1\nhigh,2\n,3\n", encoding="utf-8")
    assert read_table(path)[0]["school"].tolist()[:2] == ["None", "high"]


def test_every_reader_of_a_table_refuses_ragged_rows(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("member,score\n1,0.5,\n0,0.25,\n", encoding="utf-8")
    for read in (read_scores, lambda path: load(path, "member")):
        with pytest.raises(ValueError, match="line 2 has 3 fields where the header has 2"):
            read(path)


def test_levels_that_look_alike_are_named_with_their_counts():
    towns = ["Bern"] * 5 + ["Bern "] * 2 + ["Gen\u00e8ve", "Gene\u0300ve"] + ["1", "1.0", "x"]
    notes = alike_levels(from_arrays(pd.DataFrame({"town": towns, "age": range(12)}), np.array(["a", " a"] * 6)))
    assert len(notes) == 2
    assert "town has '1' (1 time) and '1.0' (1 time), 'Bern' (5 times) and 'Bern ' (2 times), " in notes[0]
    assert "'Gene\\u0300ve' (1 time) and 'Genève' (1 time), which are different classes" in notes[0]
    assert notes[1].startswith("the label has ' a' (6 times) and 'a' (6 times), which")
    assert alike_levels(from_arrays(pd.DataFrame({"town": ["Bern", "Basel"], "age": [1, 2]}))) == []
