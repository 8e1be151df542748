"""Readers of files that anybody may have made: limits before memory is taken, one line for what is wrong."""

from __future__ import annotations

import io
import json
import struct
import zipfile

import numpy as np
import pandas as pd
import pytest

from leakbound.core.checks import one_line, printable
from leakbound.data import arrays_of, load
from leakbound.files import untrusted
from leakbound.files.untrusted import free_memory, json_value, refuse_large
from leakbound.plans import from_toml
from leakbound.plans.plan import constant
from leakbound.reports import Report
from tests.marks import slow_but
from tests.mutations import READERS, check

SHORT, LONG = 60, 5000
OF_NETWORKS = ("state", "safetensors")  # networks/test_weights.py


@pytest.mark.parametrize("kind", slow_but([kind for kind in READERS if kind not in OF_NETWORKS], "toml"))
def test_mutated_files_give_one_line(kind):
    check(kind, SHORT)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", READERS)
def test_five_thousand_mutated_files_give_one_line_each(kind):
    check(kind, LONG, first=SHORT)


def header(descr, shape):
    """An array that declares a type and a shape, and holds nothing."""
    text = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode()
    text += b" " * (63 - (len(text) + 10) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def archive(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in members.items():
            made.writestr(f"{name}.npy", content)


class TestArchives:
    @pytest.mark.slow
    def test_a_bomb_is_refused_by_its_directory(self, tmp_path, monkeypatch):
        """320 MB of zeros in 0.3 MB, that nothing unpacks."""
        path = tmp_path / "bomb.npz"
        rows = 40_000_000
        with (
            zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made,
            made.open("x.npy", "w", force_zip64=True) as member,
        ):
            member.write(header("<f8", (rows, 1)))
            block = bytes(8_000_000)
            for _ in range(rows // 1_000_000):
                member.write(block)
        monkeypatch.setattr(np.lib.format, "read_array", lambda *_, **__: pytest.fail("unpacked"))
        with pytest.raises(ValueError, match=r"bomb\.npz: .* on disk would take 320 MB of memory; allowed are 256 MB"):
            arrays_of(path)

    @pytest.mark.parametrize(
        ("descr", "shape", "line"),
        [
            ("<f8", (10**9, 2), "says 16,000,000,000 bytes, the archive 0"),
            ("<f8", (10**9, 0), "is empty"),
            ("<U0", (10**9,), "is empty"),
            ("<f8", (-1, -8), "cannot be read as npz|says 64 bytes"),
            ("|O", (2,), "Object arrays cannot be loaded"),
            ([("a", "<f8")], (0,), "which is no plain type"),
        ],
    )
    def test_headers_that_declare_what_is_not_there(self, tmp_path, descr, shape, line):
        archive(tmp_path / "a.npz", x=header(descr, shape), y=header("<f8", (0,)))
        with pytest.raises(ValueError, match=line) as refused:
            arrays_of(tmp_path / "a.npz")
        assert len(str(refused.value)) <= 300

    @pytest.mark.parametrize("text", [b"{'descr': (((((", b"'" * 30, b"{'descr': '<f8', 'shape': (" + b"1," * 2000])
    def test_headers_that_are_no_python(self, tmp_path, text):
        content = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text
        archive(tmp_path / "a.npz", x=content)
        with pytest.raises(ValueError, match=r"a\.npz: cannot be read as npz without pickle: "):
            arrays_of(tmp_path / "a.npz")

    def test_the_same_name_twice(self, tmp_path):
        with zipfile.ZipFile(tmp_path / "a.npz", "w") as made:
            for name in ("x", "x.npy"):
                made.writestr(name, header("<f8", (0,)))
        with pytest.raises(ValueError, match="an array of the same name twice"):
            arrays_of(tmp_path / "a.npz")

    def test_ordinary_arrays_come_back(self, tmp_path):
        given = {
            "x": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
            "y": np.array(["a", "bc"]),
            "n": np.array(3),
            "day": np.array(["2020-01-01"], dtype="M8[D]"),
        }
        for save in (np.savez, np.savez_compressed):
            save(tmp_path / "a.npz", **given)
            found = arrays_of(tmp_path / "a.npz")
            assert {name: (array.dtype, array.tolist()) for name, array in found.items()} == {
                name: (array.dtype, array.tolist()) for name, array in given.items()
            }


class TestTables:
    def test_a_line_without_an_end(self, tmp_path):
        (tmp_path / "a.csv").write_bytes(b"a,b\n" + b"1" * 17_000_000)
        with pytest.raises(ValueError, match=r"a\.csv: a line of CSV has at most 16\.0 MB"):
            load(str(tmp_path / "a.csv"), "b")

    def test_too_many_columns(self, tmp_path):
        (tmp_path / "a.csv").write_bytes(b"," * 100_001 + b"\n1\n")
        with pytest.raises(ValueError, match=r"a\.csv: a CSV file has at most 100,000 columns, here are 100,002"):
            load(str(tmp_path / "a.csv"), "b")

    def test_short_rows_under_many_columns(self, tmp_path):
        """200 kB that would be a table of 100,000 columns and 50,000 rows, 40 GB of gaps."""
        (tmp_path / "a.csv").write_bytes(b"," * 99_999 + b"\n" + b"1\n" * 50_000)
        with pytest.raises(ValueError, match=r"would take 40,0\d\d MB of memory; allowed are 256 MB"):
            load(str(tmp_path / "a.csv"), "b")

    def test_a_constant_column_of_parquet(self, tmp_path):
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = tmp_path / "a.parquet"
        column = pa.array(np.zeros(20_000_000))
        pq.write_table(pa.table({"a": column, "b": column}), path)
        assert path.stat().st_size < 1_000_000
        with pytest.raises(ValueError, match="would take 320 MB of memory; allowed are 256 MB"):
            load(str(path), "b")

    @pytest.mark.slow
    def test_a_long_text_in_every_row_of_parquet(self, tmp_path):
        """A megabyte of text once in the dictionary, and 300 times in the table."""
        path = tmp_path / "a.parquet"
        pd.DataFrame({"a": ["x" * 1_000_000] * 300, "b": range(300)}).to_parquet(path)
        with pytest.raises(ValueError, match=r"on disk would take .* MB of memory; allowed are 256 MB"):
            load(str(path), "b")

    @pytest.mark.parametrize(
        ("categories", "line"),
        [(False, "record 3 of column a is no UTF-8"), (True, "cannot be read as parquet: ")],
        ids=["False", "True"],
    )
    def test_a_text_that_is_no_utf_8(self, tmp_path, categories, line):
        """One byte of one text is changed in the file: the reader finds it, not whoever looks at the text later."""
        path = tmp_path / "a.parquet"
        frame = pd.DataFrame({"a": [f"city {n % 7}" for n in range(50)], "b": np.arange(50) % 2})
        (frame.astype({"a": "category"}) if categories else frame).to_parquet(path, compression=None)
        content = path.read_bytes()
        assert content.count(b"city 3") >= 1
        path.write_bytes(content.replace(b"city 3", b"c\xffty 3"))
        with pytest.raises(ValueError, match=rf"a\.parquet: {line}") as caught:
            load(str(path), "b")
        assert len(str(caught.value).splitlines()) == 1

    def test_ordinary_texts_of_parquet_come_back(self, tmp_path):
        frame = pd.DataFrame({"a": [f"city {n % 7}" for n in range(50_000)], "b": np.arange(50_000) % 2})
        frame.to_parquet(tmp_path / "a.parquet")
        assert load(str(tmp_path / "a.parquet"), "b").points.x["a"].tolist() == frame["a"].tolist()


class TestImages:
    def folder(self, path, content, name="1.png"):
        for kind in ("cats", "dogs"):
            (path / kind).mkdir()
            (path / kind / name).write_bytes(content)
        return str(path)

    def test_a_picture_of_too_many_pixels(self, tmp_path):
        from PIL import Image

        made = io.BytesIO()
        Image.new("1", (10_000, 6_000)).save(made, "PNG")
        assert len(made.getvalue()) < 100_000
        with pytest.raises(ValueError, match="the image has 60,000,000 pixels; allowed are 50,000,000"):
            load(self.folder(tmp_path, made.getvalue()))

    def test_other_formats_under_the_name_of_a_picture(self, tmp_path):
        """PostScript would start another program."""
        with pytest.raises(ValueError, match=r"1\.png: cannot be read as an image: cannot identify image file"):
            load(self.folder(tmp_path, b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n"))


class TestPlans:
    @pytest.mark.parametrize(
        ("text", "line"),
        [
            ("a = " + "[" * 5000, "nested too deeply"),
            ("seed = " + "9" * 5000, "not TOML: "),
            ("title = '" + "x" * 1_100_000 + "'", r"the file is too large; allowed are 1\.0 MB"),
            ("x" * 4000 + " = 1", r"unknown key"),
        ],
    )
    def test_odd_plans(self, tmp_path, text, line):
        (tmp_path / "plan.toml").write_text(text)
        with pytest.raises(ValueError, match=line) as refused:
            from_toml(tmp_path / "plan.toml")
        assert len(str(refused.value)) <= 300

    @pytest.mark.parametrize("text", ["9" * 5000, "[" * 5000, "1979-99-99"])
    def test_odd_values_of_flags_are_texts(self, text):
        assert constant(text) == text


def test_a_file_without_an_end_is_not_read(monkeypatch):
    monkeypatch.setattr(untrusted, "FREE", 1_000_000)
    with pytest.raises(ValueError, match="/dev/zero: the file is too large"):
        json_value("/dev/zero")


def test_half_of_the_free_memory_is_the_most(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_bytes(bytes(1000))
    monkeypatch.setattr(untrusted, "free_memory", lambda: 100_000)
    refuse_large(path, 50_000)
    with pytest.raises(ValueError, match=r"needs 0\.1 MB of memory; allowed is half of what is free, 0\.1 MB"):
        refuse_large(path, 60_000)
    assert free_memory() > 100_000_000


def test_a_report_that_is_a_folder_is_one_line(tmp_path):
    with pytest.raises(OSError, match="Is a directory"):
        Report.from_json(tmp_path)


@pytest.mark.parametrize("text", ["a\x1b[2J", "\u202egnp.exe", "a\rb", "\x9b31m", "\udcff", "\u2028", "a\x00"])
def test_what_a_terminal_obeys_is_written_out(text):
    shown = printable(text)
    assert shown.isprintable()
    assert json.loads(json.dumps(shown)) == shown
    assert len(shown) > len(text)


def test_lines_keep_both_ends():
    line = one_line("begin " + "x\n" * 1000 + " end")
    assert len(line) == 300
    assert line.startswith("begin x x")
    assert line.endswith("x end")
    assert one_line("a\n  b") == "a b"
