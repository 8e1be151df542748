"""Rows of a CSV file that are no table are refused with the line; levels that look alike are named."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from leakscope.data import from_arrays, load
from leakscope.data.columns import alike_levels
from leakscope.data.files import read_table
from leakscope.data.score_tables import read_scores


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
        ("1,5;-2\n3;4\n", "line 1 holds numbers alone"),
        ("a\n1\n\n2\n", "line 3 is empty"),
        ("a,b\n1,2\r3,4\n", "some lines end with a carriage return alone"),
        ('a,b\n1,5" nail\n', "line 2 has a quote inside of a field"),
        ('a,b\n"x" y,1\n', "line 2 has a quote inside of a field"),
        ('a;b\n"say \\"hi\\"";1\n', "line 2 has a quote inside of a field"),
        ('a,b\n1,2\n"x,1\n3,4\n', "the quote that line 3 opens is not closed"),
        ("a,b\n1,\0\n", "line 2 holds a zero byte"),
        ("sep=;\na;b\n1;2\n", "column 2 has no name in the header"),
        ("a,b;c\n1,2;3\n", "commas and semicolons both split its first lines"),
        ("a;b\n12,5;1\n3;12.5\n", "column 'b' has 12.5 and column 'a' has 12,5; say which is the decimal sign"),
        ("a;b\n1.234;1\n543;2\n", "column 'a' has 1.234, which may be a decimal point or a separator of thousands"),
        ('a,b\n"1,234",1\n543,2\n', "column 'a' has 1,234, which may be a decimal comma or a separator of thousands"),
        ('a,b\n"12,5",1\n"3,25",2\n', "column 'a' has 12,5; say --decimal , if it is a number with a decimal comma"),
    ],
)
def test_what_is_no_table_or_leaves_open_what_it_means(tmp_path, content, line):
    path = tmp_path / "table.csv"
    path.write_bytes(content.encode())
    with pytest.raises(ValueError, match=r"table\.csv: ") as refusal:
        read_table(path)
    assert line in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_one_letter_of_another_encoding(tmp_path):
    """Otherwise the whole file would be read as Windows-1252, and Genève as another town."""
    path = tmp_path / "towns.csv"
    path.write_bytes("town,n\nGenève,1\n".encode() + "Zürich,2\n".encode("cp1252"))
    with pytest.raises(ValueError, match="line 3 has a letter that is not UTF-8, others have letters") as refusal:
        read_table(path)
    assert "as --encoding cp1252" in str(refusal.value)
    frame, _ = read_table(path, encoding="cp1252")
    assert frame["town"].tolist() == ["GenÃ¨ve", "Zürich"]


def test_the_file_of_one_column_is_closed(tmp_path, monkeypatch):
    """Its texts are read in parts, to see the decimal sign; the first part shows it, and the rest is not read."""
    readers = []
    read_csv = pd.read_csv

    def kept(*given, **options):
        readers.append(read_csv(*given, **options))
        return readers[-1]

    monkeypatch.setattr(pd, "read_csv", kept)
    path = tmp_path / "wages.csv"
    path.write_text("wage\n" + "12.5\n" * 3_000)
    frame, _ = read_table(path)
    assert frame["wage"].tolist() == [12.5] * 3_000
    in_parts = [reader for reader in readers if not isinstance(reader, pd.DataFrame)]
    assert [reader.handles.handle.closed for reader in in_parts] == [True]


def test_rows_are_counted_across_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("leakscope.data.csv_rows._BLOCK", 7)
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
    ("content", "wages"),
    [
        ('wage,n\n"1,234.50",1\n"12.00",2\n', [1234.5, 12.0]),
        ("wage;n\n1.234,50;1\n12,00;2\n", [1234.5, 12.0]),
        ("wage;n\n1.234;0,5\n543;0,25\n", [1234, 543]),  # the other column shows the decimal sign
        ('wage,n\n"1,234",0.5\n543,0.25\n', [1234, 543]),
        ("wage;n\n1.234;0.5\n2.5;0.25\n", [1.234, 2.5]),
        ("wage,n\n5,1\nNone,2\n", [5, np.nan]),
    ],
)
def test_numbers_of_spreadsheets_of_both_continents(tmp_path, content, wages):
    path = tmp_path / "wages.csv"
    path.write_text(content, encoding="utf-8")
    np.testing.assert_array_equal(read_table(path)[0]["wage"], wages)


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
