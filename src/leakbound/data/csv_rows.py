"""Rows of a CSV file: each has as many fields as the header, or the file is refused with the number of the line.

A pass over the bytes finds where fields and rows end, before anything is parsed. A quote opens a field at its
beginning and closes it at its end; between the two, a doubled quote is a quote (RFC 4180).
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import numpy as np
from jaxtyping import Bool, Int, UInt8

from leakbound.files.untrusted import Refused

Array = np.ndarray
_BLOCK = 1 << 20
_SEPARATOR, _END, _QUOTE, _ZERO_BYTE = 1, 2, 3, 4  # kinds of bytes
_LF, _CR, _QUOTE_SIGN, _DIGIT_0 = b'\n\r"0'
_NUMBER = re.compile(r"\s*[+-]?[\d.,]*\d[\d.,]*([eE][+-]?\d+)?\s*")
_OTHER_SIGNS = ";\t|"  # that often separate columns


class CsvForm(TypedDict, total=False):
    """How a CSV file is written: commas between columns, a decimal point and UTF-8, unless they are declared."""

    separator: str | None
    decimal: str | None
    encoding: str | None


@dataclass(frozen=True)
class Rows:
    """The names of the columns, how many records follow, and which columns have a field such as 007."""

    header: list[str]
    n_records: int
    padded: set[int]


@dataclass(frozen=True)
class _Boundaries:
    """Where the rows of a file end, and how many separators are before that; the same for fields such as 007."""

    ends: Int[Array, " rows"]
    n_before: Int[Array, " rows"]
    padded: Int[Array, " fields"]
    n_before_padded: Int[Array, " fields"]


def encoding_of(name: str) -> str:
    """Return Python's name of an encoding; that of UTF-8 takes a byte order mark."""
    name = codecs.lookup(name).name
    return "utf-8-sig" if name == "utf-8" else name


def rows_of(path: Path, declared: str | None, encoding: str) -> Rows:
    """Count the rows of a CSV file, and refuse a file that is no table.

    The separator is a comma unless another one was declared.
    """
    separator = declared or ","
    octets = _octets(path, encoding)
    found = _boundaries(path, octets, separator)
    widths = np.diff(found.ends, prepend=-1) - 1
    widths -= octets[np.maximum(found.ends - 1, 0)] == _CR
    (filled,) = np.nonzero(widths > 0)
    if not len(filled):
        raise Refused(f"{path}: the table has no rows or no columns")
    n_rows = int(filled[-1]) + 1  # empty lines below the table are no rows
    if n_rows > len(filled):
        empty = int(np.flatnonzero(widths[:n_rows] <= 0)[0])
        raise Refused(f"{path}: line {_line(octets, found.ends, empty)} is empty: remove it from the file")
    codec = "utf-8" if encoding.startswith("utf") else encoding
    first_row = octets[: found.ends[0]].tobytes().decode(codec)
    header = next(csv.reader(io.StringIO(first_row, newline=""), delimiter=separator))
    asked = "" if declared else "; if another sign separates the columns, name it as separator (--separator)"
    refuse_header(path, header, declared)
    _refuse_ragged(path, octets, found, n_rows, separator, asked)
    row = np.searchsorted(found.ends, found.padded)
    of_records = row > 0
    columns = found.n_before_padded[of_records] - found.n_before[row[of_records] - 1]
    return Rows(header, n_rows - 1, set(np.unique(columns).tolist()))


def _octets(path: Path, encoding: str) -> UInt8[Array, " n"]:
    """Return the bytes of a file without its byte order mark, in UTF-8 if the file is in UTF-16."""
    if path.stat().st_size == 0:
        raise Refused(f"{path}: the file is empty")
    if encoding == "utf-16":
        return np.frombuffer(path.read_bytes().decode(encoding).encode(), dtype=np.uint8)
    octets = np.asarray(np.memmap(path, dtype=np.uint8, mode="r"))
    has_mark = encoding == "utf-8-sig" and octets[:3].tobytes() == codecs.BOM_UTF8
    return octets[3:] if has_mark else octets


def _boundaries(path: Path, octets: UInt8[Array, " n"], separator: str) -> _Boundaries:
    """Find the ends of all rows, and fields that begin with a zero and a digit."""
    kind_of = np.zeros(256, dtype=np.uint8)
    kind_of[[_LF, _CR]] = _END
    kind_of[[ord(separator), _QUOTE_SIGN, 0]] = [_SEPARATOR, _QUOTE, _ZERO_BYTE]
    ends, n_before, padded, n_before_padded = [], [], [], []
    n_separators = n_quotes = 0
    opened = 0  # position of the last quote that opened a field
    for start in range(0, len(octets), _BLOCK):
        block = octets[start : start + _BLOCK + 2]  # with two bytes of the next block
        dense = np.frombuffer(block.tobytes().translate(kind_of.tobytes()), dtype=np.uint8)
        at = np.flatnonzero(dense[:_BLOCK] != 0)
        kinds = dense[at]
        if (kinds == _ZERO_BYTE).any():
            line = _line_of_byte(octets, start + int(at[kinds == _ZERO_BYTE][0]))
            raise Refused(
                f"{path}: line {line} holds a zero byte, as no text but one of UTF-16 does (encoding, --encoding "
                "utf-16)"
            )
        is_separator, is_end, is_quote = kinds == _SEPARATOR, kinds == _END, kinds == _QUOTE
        if n_quotes % 2 or is_quote.any():
            inside = (
                n_quotes + np.cumsum(is_quote)
            ) % 2 == 1  # from a quote that opens a field to the one that closes it
            _refuse_quotes(path, octets, at[is_quote] + start, inside[is_quote], kind_of)
            is_separator, is_end = is_separator & ~inside, is_end & ~inside
            n_quotes += int(is_quote.sum())
            if (is_quote & inside).any():
                opened = start + int(at[is_quote & inside][-1])
        n_in_block = np.cumsum(is_separator, dtype=np.int32)
        (end,) = np.nonzero(is_end)
        # a carriage return before a line feed ends no row of its own
        end = end[~((block[at[end]] == _CR) & (block[np.minimum(at[end] + 1, len(block) - 1)] == _LF))]
        ends.append(at[end] + start)
        n_before.append(n_separators + n_in_block[end].astype(np.int64))
        is_digit = block[2:] - np.uint8(_DIGIT_0) < 10
        zero = np.flatnonzero((dense[:-2] != 0) & (block[1:-1] == _DIGIT_0) & is_digit)
        before = np.searchsorted(at, zero)  # the separator, line end or quote before each such field
        padded.append(zero + start + 1)
        n_before_padded.append(n_separators + n_in_block[before].astype(np.int64))
        n_separators += int(is_separator.sum())
    if n_quotes % 2:
        raise Refused(f"{path}: the quote that line {_line_of_byte(octets, opened)} opens is not closed")
    of_lines = np.concatenate(ends)
    _refuse_two_ends(path, octets[of_lines])
    if not len(of_lines) or of_lines[-1] < len(octets) - 1:  # the last row needs no line end
        ends.append(np.array([len(octets)]))
        n_before.append(np.array([n_separators]))
    return _Boundaries(*map(np.concatenate, (ends, n_before, padded, n_before_padded)))


def _refuse_quotes(
    path: Path,
    octets: UInt8[Array, " n"],
    at: Int[Array, " quotes"],
    opens: Bool[Array, " quotes"],
    kind_of: UInt8[Array, " 256"],
) -> None:
    """Refuse a quote that neither opens or closes a whole field nor is one of a pair in a field in quotes.

    What such a field holds, readers disagree about: R's write.table puts a backslash before it, others nothing.
    """
    last = len(octets) - 1
    neighbour = np.where(opens, at - 1, at + 1)
    is_wrong = (kind_of[octets[np.clip(neighbour, 0, last)]] == 0) & (neighbour >= 0) & (neighbour <= last)
    if is_wrong.any():
        line = _line_of_byte(octets, int(at[is_wrong][0]))
        raise Refused(
            f"{path}: line {line} has a quote inside of a field: write the whole field in quotes, and each quote "
            "inside of it twice (in R: write.csv, or qmethod = 'double')"
        )


def _refuse_two_ends(path: Path, signs: UInt8[Array, " rows"]) -> None:
    if (signs == _CR).any() and (signs == _LF).any():
        raise Refused(
            f"{path}: some lines end with a carriage return alone, others do not: which of them end a row is not known"
        )


def _refuse_ragged(
    path: Path, octets: UInt8[Array, " n"], found: _Boundaries, n_rows: int, separator: str, asked: str
) -> None:
    """Refuse rows with more or fewer fields than the header."""
    n_fields = np.diff(found.n_before[:n_rows], prepend=0) + 1
    n_names, n_of_rows = int(n_fields[0]), n_fields[1:]
    (odd,) = np.nonzero(n_of_rows != n_names)
    if not len(odd):
        return
    row = int(odd[0]) + 1
    text = (
        f"{path}: line {_line(octets, found.ends, row)} has {n_fields[row]:,} fields where the header has {n_names:,}"
    )
    if (n_of_rows != n_names + 1).any():
        raise Refused(f"{text}{asked}")
    # all rows have one field more than the header: an empty one at the end, or row names at the beginning
    if octets[found.ends[row] - 1] == ord(separator):
        raise Refused(f"{text}, as all rows have: remove the separator at the end of each row, or name that column")
    raise Refused(
        f"{text}, as all rows have: if they begin with row names, give that column a name in the header{asked}"
    )


def refuse_header(path: Path, header: list[str], declared: str | None) -> None:
    """Refuse names that are records, empty or repeated, or hold a separator where none is declared.

    Which column a flag means, nobody could tell.
    """
    # a name with another sign that often separates columns: perhaps one line is one field
    unclear = next((name for name in header if set(name) & set(_OTHER_SIGNS)), None)
    if declared is None and unclear is not None:
        raise Refused(
            f"{path}: the header has the name {unclear!r}: name the sign between the columns as separator (--separator)"
        )
    # a file without a header
    if all(_NUMBER.fullmatch(name) for name in header):
        raise Refused(
            f"{path}: line 1 holds numbers alone, where the names of the columns should be: write them above it"
        )
    # columns that no flag could name
    names = [name.strip() for name in header]
    if "" in names:
        place = names.index("") + 1
        hint = "; if it holds row names, as R and pandas write them, name it for example id" if place == 1 else ""
        raise Refused(f"{path}: column {place:,} has no name in the header: give it one, or remove it{hint}")
    repeated = next((name for name, n in Counter(header).items() if n > 1), None)
    if repeated is not None:
        places = [str(place) for place, name in enumerate(header, start=1) if name == repeated]
        raise Refused(
            f"{path}: the columns {' and '.join(places)} have the same name {repeated!r}: give each column a name "
            "of its own in the file"
        )


def _line(octets: UInt8[Array, " n"], ends: Int[Array, " rows"], row: int) -> int:
    """Return the number of the line, from 1 on, on which a row begins."""
    return 1 if row == 0 else _line_of_byte(octets, int(ends[row - 1]) + 1)


def _line_of_byte(octets: UInt8[Array, " n"], position: int) -> int:
    before = octets[:position].tobytes()
    return 1 + before.count(b"\n") + before.count(b"\r") - before.count(b"\r\n")
