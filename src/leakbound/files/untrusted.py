"""Files that anybody may have made: limits that are checked before memory is taken, one line for what is wrong.

A small file can declare that it holds much: an archive that unpacks to a thousand times its size, a header with a
billion rows. Every reader works out from headers and directories what the content would take in memory, and calls
`refuse_large` before anything is unpacked. What a parser of another project raises for bad bytes becomes one line in
`parsing`.
"""

from __future__ import annotations

import json
import math
import os
import tomllib
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import IO, Any, ParamSpec, TypeVar

import numpy as np

from leakbound.core.checks import one_line
from leakbound.files.system import free_memory

Array = np.ndarray
FREE = 256_000_000  # bytes that a file of any size may take in memory
TIMES = 100  # more than that only up to this many times its size on disk
LARGEST_TOML = 1_000_000  # bytes of a plan
JSON_TIMES = 25  # bytes in memory for a byte of JSON: empty lists and objects are the worst
MOST_COLUMNS = 100_000  # of a CSV file
LONGEST_CSV_LINE = 16_000_000  # bytes
LARGEST_HEADER = 10_000  # bytes of the header of an array
MOST_MEMBERS = 100_000  # files in an archive
_BLOCK = 1 << 20
_KINDS = "biufcSUmM"  # kinds of arrays that hold values and no objects

P = ParamSpec("P")
R = TypeVar("R")


def in_one_line(read: Callable[P, R]) -> Callable[P, R]:
    """Make a reader whose ValueErrors are lines of at most 300 characters, without what a terminal would obey.

    >>> @in_one_line
    ... def read(name):
    ...     raise ValueError("no such file: " + name)
    >>> read("a" * 1000)
    Traceback (most recent call last):
        ...
    ValueError: no such file: aaa...
    """

    @wraps(read)
    def reader(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return read(*args, **kwargs)
        except ValueError as error:
            text = str(error)
            if (line := one_line(text)) == text:
                raise
            raise ValueError(line) from None

    return reader


class Refused(ValueError):
    """What a reader of ours says of a file; `parsing` passes it on."""


@contextmanager
def parsing(path: str | os.PathLike[str], kind: str) -> Iterator[None]:
    """Turn whatever a parser raises for the content of a file into one ValueError.

    >>> with parsing("plan.xml", "xml"):
    ...     raise IndexError("no element 0")
    Traceback (most recent call last):
        ...
    leakbound.files.untrusted.Refused: plan.xml: cannot be read as xml: no element 0
    """
    try:
        yield
    except Refused:
        raise
    except FileNotFoundError:
        raise Refused(f"{path}: no such file") from None
    except (MemoryError, OverflowError):
        raise Refused(f"{path}: cannot be read as {kind}: it needs more memory than there is") from None
    except RecursionError:
        raise Refused(f"{path}: cannot be read as {kind}: it is nested too deeply") from None
    except Exception as error:  # another's parser may raise anything
        raise Refused(f"{path}: cannot be read as {kind}: {_first_line(error)}") from None


def refuse_large(path: str | os.PathLike[str], n_bytes: int, cure: str = "") -> None:
    """Refuse a file whose content would take too much memory, before any of it is read.

    A file may take 256 MB, or 100 times its size on disk if that is more, and never more than half of the memory
    that is free.
    """
    on_disk = os.path.getsize(path)
    allowed = max(FREE, TIMES * on_disk)
    if n_bytes > allowed:
        raise Refused(
            f"{path}: {megabytes(on_disk)} on disk would take {megabytes(n_bytes)} of memory; allowed are "
            f"{megabytes(allowed)}{f': {cure}' if cure else ''}"
        )
    if n_bytes > (half := free_memory() // 2):
        raise Refused(
            f"{path}: needs {megabytes(n_bytes)} of memory; allowed is half of what is free, {megabytes(half)}"
        )


def megabytes(n_bytes: int) -> str:
    """``3.2 MB``, ``12,400 MB``.

    >>> megabytes(3_200_000), megabytes(12_400_000_000)
    ('3.2 MB', '12,400 MB')
    """
    if n_bytes < 100_000_000:
        return f"{n_bytes / 1e6:.1f} MB"
    exponent = math.floor(math.log10(n_bytes))
    return f"{n_bytes // 10**6:,} MB" if exponent < 15 else f"10^{exponent - 6} MB"


def json_value(path: str | os.PathLike[str]) -> Any:
    """Read the value in a JSON file strictly: no key twice, no NaN, not nested deeper than Python reads."""
    content = _content(path, min(max(FREE, TIMES * os.path.getsize(path)), free_memory() // 2) // JSON_TIMES)
    try:
        return json.loads(content.decode("utf-8"), object_pairs_hook=_no_key_twice, parse_constant=_no_constant)
    except RecursionError:
        raise Refused(f"{path} is not JSON that can be read: it is nested too deeply") from None
    except MemoryError:
        raise Refused(f"{path} is not JSON that can be read: it needs more memory than there is") from None
    except ValueError as error:
        raise Refused(f"{path} is not JSON: {_first_line(error)}") from None


def toml_table(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the table in a TOML file of at most a megabyte."""
    content = _content(path, LARGEST_TOML)
    try:
        return tomllib.loads(content.decode("utf-8"))
    except RecursionError:
        raise Refused(f"{path}: not TOML that can be read: it is nested too deeply") from None
    except ValueError as error:  # also of a number with thousands of digits
        raise Refused(f"{path}: not TOML: {_first_line(error)}") from None


def npz_arrays(path: str | os.PathLike[str]) -> dict[str, Array]:
    """Read the arrays of an ``.npz`` file; nothing is unpickled, and headers are checked before memory is taken.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile(suffix=".npz") as file:
    ...     np.savez(file.name, x=np.arange(3))
    ...     npz_arrays(file.name)["x"].tolist()
    [0, 1, 2]
    """
    with parsing(path, "npz without pickle"), Path(path).open("rb") as file:
        if file.read(6) == b"\x93NUMPY":
            raise Refused(f"{path}: holds a single array; an .npz file of named arrays is needed")
        if not zipfile.is_zipfile(file):
            raise Refused(f"{path}: cannot be read as npz without pickle: it is no .npz file")
        with zipfile.ZipFile(file) as archive:
            refuse_archive(path, archive, "save it without compression, as numpy.savez does")
            members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
            if len(members) < len(archive.infolist()):
                raise Refused(f"{path}: holds an array of the same name twice")
            return {name: _array(path, archive, member) for name, member in members.items()}


def refuse_archive(path: str | os.PathLike[str], archive: zipfile.ZipFile, cure: str = "") -> None:
    """Refuse an archive by its directory: too many files, or more bytes than `refuse_large` allows.

    `zipfile` unpacks of each file at most what the directory says.
    """
    members = archive.infolist()
    if len(members) > MOST_MEMBERS:
        raise Refused(f"{path}: holds {len(members):,} files; allowed are {MOST_MEMBERS:,}")
    refuse_large(path, sum(member.file_size for member in members), cure)


def refuse_wide_csv(path: str | os.PathLike[str], separator: bytes = b",") -> None:
    """Refuse a CSV file by a pass over its bytes: lines and columns that would not fit, before it is parsed."""
    n_lines, begun = 1, 0
    with Path(path).open("rb") as file:
        n_columns = 1 + max((file.readline(LONGEST_CSV_LINE).count(separator) for _ in range(2)), default=0)
        file.seek(0)
        while block := file.read(_BLOCK):
            n_lines += block.count(b"\n") + block.count(b"\r")
            end = max(block.rfind(b"\n"), block.rfind(b"\r"))
            # bytes of the line that goes on in the next block: one that ends within a block is short
            begun = begun + len(block) if end < 0 else len(block) - end - 1
            if begun > LONGEST_CSV_LINE:
                raise Refused(f"{path}: a line of CSV has at most {megabytes(LONGEST_CSV_LINE)}, here is a longer one")
    if n_columns > MOST_COLUMNS:
        raise Refused(f"{path}: a CSV file has at most {MOST_COLUMNS:,} columns, here are {n_columns:,}")
    refuse_large(path, 8 * n_lines * n_columns + 3 * os.path.getsize(path))


def _array(path: str | os.PathLike[str], archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Array:
    """One array, after its header was compared with its size."""
    with archive.open(member) as stream:
        shape, dtype = _header(stream)
        n_header = stream.tell()
    name = member.filename.removesuffix(".npy")
    if dtype.hasobject:
        raise ValueError("Object arrays cannot be loaded, nothing is unpickled")
    if dtype.kind not in _KINDS:
        raise ValueError(f"the array {name!r} holds {dtype}, which is no plain type")
    n_bytes = math.prod(shape) * dtype.itemsize
    if n_bytes != member.file_size - n_header:
        raise ValueError(
            f"the header of the array {name!r} says {n_bytes:,} bytes, the archive {member.file_size - n_header:,}"
        )
    if min(shape, default=1) < 0 or n_bytes == 0:
        raise ValueError(f"the array {name!r} of shape {shape} is empty")
    with archive.open(member) as stream:
        return np.lib.format.read_array(stream, allow_pickle=False, max_header_size=LARGEST_HEADER)


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type of an array."""
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(stream, max_header_size=LARGEST_HEADER)
    elif version == (2, 0):
        shape, _, dtype = np.lib.format.read_array_header_2_0(stream, max_header_size=LARGEST_HEADER)
    else:
        raise ValueError(f"arrays of format {version} hold names of fields, not plain numbers")
    return shape, dtype


def _content(path: str | os.PathLike[str], most: int) -> bytes:
    """All bytes of a file, or of a pipe, that has at most so many."""
    with Path(path).open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise Refused(f"{path}: the file is too large; allowed are {megabytes(most)}")
    return content


def _no_key_twice(pairs: list[tuple[str, Any]]) -> Mapping[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("a key occurs twice in one object")
    return content


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is no number of JSON")


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
