"""Files as promise ``anyone`` reads them: of a form that was declared, in which one line is one record.

The form is fixed beforehand, and no record decides about it: the encoding is UTF-8, the separator a comma and the first
line a header, unless they are declared. A file of another form is refused, with the number of the row (the header is
row 1). What is in a field is read by `leakbound.data.declared_content`.
"""

from __future__ import annotations

import codecs
import csv
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pandas as pd

from leakbound.data.csv_rows import CsvForm, refuse_header
from leakbound.data.files import has_column, read
from leakbound.data.points import Data, from_arrays
from leakbound.files.untrusted import Refused, in_one_line, parsing, refuse_wide_csv

_ROWS = 4096  # that are turned into columns at once
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@in_one_line
def read_declared(
    source: str | os.PathLike[str],
    drop: Sequence[str] = (),
    id: str | None = None,
    **form: Unpack[CsvForm],
) -> Data:
    """Read the records of a file by its declared form alone."""
    path = Path(source)
    if path.suffix != ".csv" or not path.is_file() or path.stat().st_size == 0:
        data = read(source, drop, id, **form)
        _refuse_no_letters(path, data.points.x)
        if id is not None and data.points.names is not None:
            _refuse_names(path, id, pd.Series(data.points.names), "record", 0)
        return data
    with parsing(path, "csv"):
        frame = declared_csv(path, form.get("separator"), form.get("encoding") or "utf-8")
    not_features = list(dict.fromkeys([*drop, id] if id is not None else drop))
    for name in not_features:
        has_column(frame, name, path)
    names = None
    if id is not None:
        names = frame[id].str.strip()
        _refuse_names(path, id, names, "row", 2)
    return Data(from_arrays(frame.drop(columns=not_features), names=names), path.name)


def declared_csv(path: Path, declared: str | None = None, encoding: str = "utf-8") -> pd.DataFrame:
    """Read the fields of a CSV file as they are written.

    Each line is a record with as many fields as the header. A field in double quotes may hold separators, and double
    quotes that are written twice; a line break ends every line.
    """
    separator = declared or ","
    refuse_wide_csv(path, separator.encode())
    encoding = _encoding(path, encoding)
    rows = _rows(path, separator, encoding)
    header = [name.strip() for name in next(rows)]
    refuse_header(path, header, declared)
    # rows become columns block by block, so that not all of them are lists in memory at once
    blocks, block = [], []
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise Refused(
                f"{path}: row {number:,} has {len(row):,} fields, and the header {len(header):,}{_cure(row, header)}"
            )
        block.append(row)
        if len(block) == _ROWS:
            blocks.append(_columns(block))
            block = []
    if block:
        blocks.append(_columns(block))
    if not blocks:
        raise Refused(f"{path}: the table has no rows")
    columns = {
        name: pd.concat([part[place] for part in blocks], ignore_index=True) for place, name in enumerate(header)
    }
    return pd.DataFrame(columns)


def _columns(rows: Sequence[Sequence[str]]) -> list[pd.Series]:
    """Turn rows into columns, which take less memory."""
    table = np.array(rows, dtype=object)
    return [pd.Series(column, dtype="str") for column in table.T]


def _rows(path: Path, separator: str, encoding: str) -> Iterator[list[str]]:
    """Split each line into its fields."""
    reader = csv.reader(_lines(path, encoding), delimiter=separator, strict=True)
    number = 0
    while True:
        number += 1
        try:
            row = next(reader)
            if reader.line_num > number:  # the reader went on with the next line
                raise csv.Error("a quote is open at its end")
        except StopIteration:
            return
        except csv.Error as error:
            raise Refused(f"{path}: row {number:,} cannot be split into fields: {error}") from None
        yield row


def _cure(row: Sequence[str], header: Sequence[str]) -> str:
    """Say what to do with a row of too many fields."""
    if len(row) == len(header) + 1:
        return ": if its first field is the name of the row, name that column in the header"
    return ": a field that holds the separator is put in double quotes" if len(row) > len(header) else ""


def _lines(path: Path, encoding: str) -> Iterator[str]:
    """Decode each line by itself, so that no letter of one can change another one."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if number == 1 and encoding == "utf-8":
                line = line.removeprefix(_BYTE_ORDER_MARK)
            try:
                text = line.decode(encoding)
            except UnicodeDecodeError:
                raise Refused(
                    f"{path}: row {number:,} is not written in {encoding}: declare it as encoding (--encoding cp1252), "
                    "or correct the row"
                ) from None
            # LF or CRLF ends a line; a carriage return anywhere else is refused
            text = text.removesuffix("\n").removesuffix("\r")
            if not text:
                raise Refused(f'{path}: row {number:,} is empty: remove it, or write "" for a missing value')
            if "\r" in text or "\n" in text:
                raise Refused(f"{path}: row {number:,} holds a line break: one line is one record")
            yield text


def _encoding(path: Path, encoding: str) -> str:
    """Refuse an encoding whose lines end otherwise than those of ASCII: a record could shift all that follow."""
    if codecs.lookup(encoding).name in ("utf-8", "utf-8-sig"):
        return "utf-8"
    if "\n".encode(encoding) != b"\n":
        raise Refused(f"{path}: under promise anyone a file is not read in {encoding}: write it in UTF-8")
    return encoding


def _refuse_no_letters(path: Path, x: Any) -> None:
    """Refuse an array of texts, of an NPZ file, with a number in it that is no letter of Unicode."""
    if not isinstance(x, np.ndarray) or x.dtype.kind != "U":
        return
    letters = np.ascontiguousarray(x).view(np.dtype(np.uint32).newbyteorder(x.dtype.byteorder)).reshape(len(x), -1)
    is_none = (letters > sys.maxunicode) | ((letters >= 0xD800) & (letters <= 0xDFFF))
    if is_none.any():
        record = int(is_none.any(axis=1).argmax())
        raise ValueError(f"{path}: record {record:,} holds a text with a number that is no letter of Unicode")


def _refuse_names(path: Path, column: str, names: pd.Series, kind: str, first: int) -> None:
    """Refuse a record without a name of its own, by its number."""
    texts = names.fillna("").astype(str).str.strip()
    aggregate = "; aggregate the rows of each person to one first"
    for is_bad, reason, cure in ((texts == "", "has no", ""), (texts.duplicated(), "repeats an earlier", aggregate)):
        if is_bad.any():
            number = int(is_bad.to_numpy().argmax()) + first
            raise ValueError(
                f"{path}: {kind} {number:,} {reason} {column}: under promise anyone each record needs its own{cure}"
            )
