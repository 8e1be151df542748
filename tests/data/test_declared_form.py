"""Files under promise ``anyone``: of a declared form, in which no record changes how another one is read."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from leakbound.core.types import Points
from leakbound.data.content import row_names
from leakbound.data.declared_content import columns_as_levels, columns_as_numbers
from leakbound.data.declared_form import read_declared
from leakbound.releases.statistics.features import columns_of
from tests.marks import nightly

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402

pytestmark = pytest.mark.usefixtures("as_users_run_it")  # many files; tests of the content execute the shapes

ROW = re.compile(r"\b(?:row|record) ([\d,]+)")
HEADER = ["id", "pay", "town", "ok"]
LEVELS = [["1", "2.5"], ["a", "b c", "Zürich", "1"], ["True", "False"]]  # of the last three columns


def written(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


REFUSED = {
    "too few fields": ("a,b\n1,2\n3\n", "row 3 has 1 fields, and the header 2"),
    "too many fields": (
        "a,b\n1,2\n3,4,5,6\n",
        "row 3 has 4 fields, and the header 2: a field that holds the separator",
    ),
    "names of rows": (
        "a,b\nr1,1,2\n",
        "row 2 has 3 fields, and the header 2: if its first field is the name of the row",
    ),
    "a decimal comma": ("a,b\n1,2\n3,5,4\n", "row 3 has 3 fields"),
    "an empty line": ("a,b\n1,2\n\n3,4\n", "row 3 is empty"),
    "an empty line at the end": ("a,b\n1,2\n3,4\n\n", "row 4 is empty"),
    "an empty first line": ("\na,b\n1,2\n3,4\n", "row 1 is empty"),
    "an open quote": ('a,b\n1,"2\n3,4\n', "row 2 cannot be split into fields"),
    "an open quote that is closed later": ('a,b\n1,"2\n3",4\n5,6\n', "row 2 cannot be split into fields"),
    "an open quote in the last line": ('a,b\n1,2\n3,"4\n', "row 3 cannot be split into fields"),
    "a quote inside of a quoted field": ('a,b\n1,2\n3,"x"y\n', "row 3 cannot be split into fields"),
    "a carriage return": ("a,b\n1,2\n3,x\ry\n", "row 3 holds a line break"),
    "Windows-1252": ("a,b\n1,2\n3,x\n4,\u00e9\n".encode("cp1252"), "row 4 is not written in utf-8"),
    "UTF-16": ("a,b\n1,2\n3,4\n".encode("utf-16"), "row 1 is not written in utf-8"),
    "no header": ("1,2\n3,4\n5,6\n", "line 1 holds numbers alone, where the names of the columns should be"),
    "a header alone": ("a,b\n", "the table has no rows"),
    "a name twice": ("a,b, a\n1,2,3\n4,5,6\n", "the columns 1 and 3 have the same name 'a'"),
    "semicolons": (
        "a;b\n1;2\n3;4\n",
        "the header has the name 'a;b': name the sign between the columns",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_file_of_another_form_is_refused_with_its_row(tmp_path, case):
    text, line = REFUSED[case]
    with pytest.raises(ValueError, match=re.escape(line)) as refusal:
        read_declared(written(tmp_path / "t.csv", text))
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("names", "line", "cure"),
    [
        (["x", "", "z"], "row 3 has no id", ""),
        (["x", "y", " x "], "row 4 repeats an earlier id", "; aggregate the rows of each person to one first"),
    ],
)
def test_ids_are_neither_empty_nor_repeated(tmp_path, names, line, cure):
    text = "id,a\n" + "".join(f"{name},1\n" for name in names)
    with pytest.raises(ValueError, match=f"{line}: under promise anyone each record needs its own{cure}$"):
        read_declared(written(tmp_path / "t.csv", text), (), "id")


def test_ids_of_parquet(tmp_path):
    pd.DataFrame({"id": [4, 5, 4], "a": [1, 2, 3]}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="record 2 repeats an earlier id"):
        read_declared(tmp_path / "t.parquet", (), "id")


FORMS = {  # text and what is declared of it; the table is the same
    "plain": ("a,b\n1,x\n2,\"y, z\"\n", {}),
    "without a last line break": ("a,b\n1,x\n2,\"y, z\"", {}),
    "of Windows": ("a,b\r\n1,x\r\n2,\"y, z\"\r\n", {}),
    "with a byte order mark": ("\ufeffa,b\n1,x\n2,\"y, z\"\n", {}),
    "with spaces in the header": ("a, b\n1,x\n2,\"y, z\"\n", {}),
    "semicolons": ("a;b\n1;x\n2;y, z\n", {"separator": ";"}),
    "tabs": ("a\tb\n1\tx\n2\ty, z\n", {"separator": "\t"}),
    "quoted": ('"a","b"\n"1","x"\n"2","y, z"\n', {}),
}  # fmt: skip


@pytest.mark.parametrize("case", FORMS)
def test_forms(tmp_path, case):
    text, declared = FORMS[case]
    x = read_declared(written(tmp_path / "t.csv", text), **declared).points.x
    assert x.to_dict("list") == {"a": ["1", "2"], "b": ["x", "y, z"]}


def test_fields_are_texts_as_they_are_written(tmp_path):
    text = 'a,b,c\nNA, 1.50 ,"say ""a"""\n007,,5"\n'
    x = read_declared(written(tmp_path / "t.csv", text)).points.x
    assert x.to_numpy().tolist() == [["NA", " 1.50 ", 'say "a"'], ["007", "", '5"']]
    assert list(x.columns) == ["a", "b", "c"]


def test_encodings_are_declared(tmp_path):
    path = written(tmp_path / "t.csv", "id,town\n1,Genève\n2,Zürich\n".encode("cp1252"))
    assert read_declared(path, encoding="cp1252").points.x["town"].tolist() == ["Genève", "Zürich"]
    path = written(tmp_path / "t.csv", "id,town\n1,東京\n2,ソ\n".encode("shift_jis"))
    assert read_declared(path, encoding="shift_jis").points.x["town"].tolist() == ["東京", "ソ"]
    for encoding in ("utf-16", "utf-32-le", "cp037"):  # a record could shift all that follow
        path = written(tmp_path / "t.csv", "id,town\n1,a\n2,b\n".encode(encoding))
        with pytest.raises(
            ValueError, match=f"under promise anyone a file is not read in {encoding}: write it in UTF-8"
        ):
            read_declared(path, encoding=encoding)


def test_a_state_of_an_encoding_ends_with_its_line(tmp_path):
    """In ISO-2022-JP a record may switch to other letters; the next line begins with those of ASCII."""
    text = b"id,town\n1,a\n2,\x1b$B\n3,EE\n"
    x = read_declared(written(tmp_path / "t.csv", text), encoding="iso2022_jp").points.x
    assert x["town"].tolist() == ["a", "", "EE"]


# ---------------------------------------------------------------------------------------------------------------------
# The test of the class: a field is replaced by random bytes


def random_bytes(rng: np.random.Generator) -> bytes:
    """Some bytes, many of which have a meaning in CSV or are no UTF-8; also without any order."""
    if rng.random() < 0.3:
        return rng.bytes(int(rng.integers(0, 9)))
    pieces = [b",", b'"', b'""', b"\n", b"\r", b"\r\n", b"\0", b"\xff", b"\xc3", b"\xc3\xa9", b"1", b"2.5", b"x", b" ",
              b"inf", b"True", b"-", b"e5", b";", b"\t", b"\xef\xbb\xbf", b"\xe2\x80\xa8",
              b"NA", b"1,2,3\n4"]  # fmt: skip
    return b"".join(pieces[place] for place in rng.integers(0, len(pieces), rng.integers(0, 6)))


def random_table(rng: np.random.Generator, n: int) -> list[list[bytes]]:
    towns = [b"a", b'"b c"', b'"x, ""y"""', "Zürich".encode(), b" a ", b"", b"1", b"1.0"]
    numbers = [b"1", b"2.5", b"-3e2", b"1_0", b"n/a", b"", b" 7 ", b"1.0"]
    truths = [b"True", b"false", b"TRUE", b"x", b""]
    return [
        [str(record).encode(), *(values[rng.integers(len(values))] for values in (numbers, towns, truths))]
        for record in range(n)
    ]


def seen(points: Points) -> list[np.ndarray]:
    """What a statistic can see of each record, and its name."""
    columns = columns_of(points.x)[-3:]
    numbers = columns_as_numbers(points, columns)[0].x.to_numpy()
    levels = (
        columns_as_levels(points, dict(zip(columns, LEVELS, strict=True)))
        .x.apply(lambda column: column.cat.codes)
        .to_numpy()
    )
    return [numbers, levels, row_names(points)[:, :8]]


def read_or_row(read: Callable[[], Points]) -> tuple[Points | None, int]:
    """Read a file; if it is refused, the row that the refusal names."""
    try:
        return read(), -1
    except ValueError as refusal:
        named = ROW.search(str(refusal))
        return None, -1 if named is None else int(named.group(1))


def check_others(before: Points, after: Points, changed: int) -> None:
    others = np.arange(len(before)) != changed
    for first, second in zip(seen(before), seen(after), strict=True):
        np.testing.assert_array_equal(first[others], second[others])


def replaced_in_csv(folder: Path, rng: np.random.Generator) -> str:
    """Replace a field of a CSV file, and tell what became of it."""
    table = random_table(rng, int(rng.integers(2, 30)))
    path = folder / "t.csv"

    def read() -> Points:
        lines = [b",".join(row) for row in [[name.encode() for name in HEADER], *table]]
        return read_declared(written(path, b"\n".join(lines) + b"\n")).points

    before = read()
    changed, field = int(rng.integers(len(table))), int(rng.integers(len(HEADER)))
    octets = random_bytes(rng)
    table[changed][field] = octets
    after, row = read_or_row(read)
    if after is None:  # the lines that the changed record is now written in; the header is row 1
        assert changed + 2 <= row <= changed + 2 + octets.count(b"\n"), octets
        return "refused"
    if len(after) > len(before):  # several whole records in place of one: no file with which this one is compared
        assert b"\n" in octets
        return "more records"
    check_others(before, after, changed)
    return "read"


def replaced_in_parquet(folder: Path, rng: np.random.Generator) -> str:
    """Replace a value of a Parquet file; its type cannot be, since it stands in the schema."""
    n, path = int(rng.integers(2, 30)), folder / "t.parquet"
    texts = [bytes(rng.choice([b"a", b"b c", "Zürich".encode(), b"1", b" a", b"True"])) for _ in range(n)]
    pay = [None if rng.random() < 0.2 else float(rng.choice([1, 2.5, -3])) for _ in range(n)]
    whole = [int(value) for value in rng.choice([1, 2, 2**60 + 1], n)]
    ok = [bool(value) for value in rng.integers(2, size=n)]
    whole_pay = rng.random() < 0.5

    def read() -> Points:
        ends = np.cumsum([0, *map(len, texts)]).astype(np.int32)
        buffers = [None, pa.py_buffer(ends.tobytes()), pa.py_buffer(b"".join(texts))]
        town = pa.Array.from_buffers(pa.string(), n, buffers)  # without a check of its bytes
        numbers = pa.array(whole, pa.int64()) if whole_pay else pa.array(pay, pa.float64())
        table = pa.table({"pay": numbers, "town": town, "ok": pa.array(ok, pa.bool_())})
        pq.write_table(table, path, row_group_size=2)
        return read_declared(path).points

    before = read()
    changed = int(rng.integers(n))
    column = rng.choice(["pay", "town", "ok"])
    if column == "town":
        texts[changed] = random_bytes(rng)
    elif column == "ok":
        ok[changed] = None
    else:
        (pay[changed],) = np.frombuffer(rng.bytes(8), dtype=float).tolist()
        whole[changed] = None if rng.random() < 0.5 else int.from_bytes(rng.bytes(8), "little", signed=True)
    after, row = read_or_row(read)
    if after is None:
        assert row == changed
        return "refused"
    check_others(before, after, changed)
    return "read"


def replaced_in_npz(folder: Path, rng: np.random.Generator) -> str:
    """Replace the bytes of a number, or of a letter of a text, of an NPZ file."""
    n, path = int(rng.integers(2, 30)), folder / "t.npz"
    kind = rng.choice(["<f8", ">f4", "<i8", "|b1", "<U3", ">U3"])
    letters = rng.choice(["1", "2.5", "a", "b c", " a"], (n, 3))
    values = letters if kind[1] == "U" else rng.integers(0, 3, (n, 3))
    x = np.ascontiguousarray(values.astype(kind))

    def read() -> Points:
        np.savez(path, x=x)
        return read_declared(path).points

    before = read()
    changed = int(rng.integers(n))
    size = min(x.itemsize, 8) if kind[1] != "b" else 1
    octets = rng.bytes(size) if kind[1] != "b" else bytes([int(rng.integers(2))])
    view = x.view(np.uint8).reshape(n, 3, -1)
    view[changed, int(rng.integers(3)), :size] = np.frombuffer(octets, dtype=np.uint8)
    after, row = read_or_row(read)
    if after is None:
        assert row == changed
        return "refused"
    check_others(before, after, changed)
    return "read"


REPLACED = {"csv": replaced_in_csv, "parquet": replaced_in_parquet, "npz": replaced_in_npz}


@pytest.mark.by_day("npz-40")
@pytest.mark.parametrize("n_files", [40, nightly(2_000)])
@pytest.mark.parametrize("format", REPLACED)
def test_a_field_of_random_bytes_changes_no_other_record(tmp_path, format, n_files):
    rng = np.random.default_rng(7)
    became = [REPLACED[format](tmp_path, rng) for _ in range(n_files)]
    assert became.count("read") > 0.2 * n_files
    assert became.count("refused") > 0.04 * n_files
    assert became.count("more records") < 0.1 * n_files
