"""Finished rows by content: a chunk of arrays under the hash of everything that it depends on.

A chunk is written next to its place and then renamed, so that it is complete or not there, whatever happens. It is a
zip of uncompressed ``.npy`` files whose first member lists the key, the names, shapes and dtypes of the arrays, and
whose comment is the SHA-256 of all bytes before it. A chunk that does not agree with all of these is never used.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import struct
import tokenize
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from leakscope.core import temporary
from leakscope.core.system import OWNERS_FOLDER

Array = np.ndarray
CHUNK = "[0-9a-f]" * 64  # the names that ``key`` makes: nothing else in the folder is ours to count or remove
FORMAT = 1
CONTENTS = "chunk.json"  # the member that says what is in a chunk
_DIGEST_SIZE = 64  # hexadecimal digits at the end of a chunk
_END_SIZE = 22  # bytes of the end record of a zip, of which the last two hold the length of the comment
_ATTEMPTS = 3
_DAMAGE = (
    ValueError, OSError, EOFError, LookupError, TypeError, RuntimeError, OverflowError, MemoryError, SyntaxError,
    AttributeError, struct.error, tokenize.TokenError, zipfile.BadZipFile,
)  # fmt: skip


class Damaged(ValueError):
    """A file that is no whole chunk of its name."""


class Store:
    """A folder of chunks.

    Parameters
    ----------
    folder : path
        Made on the first write, readable by its owner alone: signals of single records are in it.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from leakscope.runtime.store import Store, key
    >>> store = Store(tempfile.mkdtemp())
    >>> store.save(key(seed=0), {"loss": np.zeros(3)})
    >>> store.load(key(seed=0))["loss"].tolist()
    [0.0, 0.0, 0.0]
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"the store {self.folder} is a file; give a folder")

    def load(self, name: str, fits: Callable[[Mapping[str, Array]], bool] | None = None) -> dict[str, Array] | None:
        """Read the arrays of a chunk.

        The digest, the key, and the sizes that the file declares are compared before an array is allocated.

        Parameters
        ----------
        name : str
            The key under which the chunk was saved.
        fits : callable, optional
            Tells whether names, shapes and dtypes of the arrays are those that the caller expects.

        Returns
        -------
        dict of str to array, or None
            None where the chunk is missing, damaged, that of another key, or does not fit; it is made again then.
        """
        try:
            with self._path(name).open("rb") as file:
                arrays = _read(file, name)
        except _DAMAGE:  # numpy and zipfile raise many kinds of errors for a file that is damaged
            return None
        if fits is not None and not fits(arrays):
            return None
        return arrays

    def save(self, name: str, arrays: Mapping[str, Array]) -> None:
        """Write a chunk next to its place, then rename it.

        Parameters
        ----------
        name : str
            Its key.
        arrays : mapping of str to array

        Raises
        ------
        ValueError
            If an array holds Python objects, which could only be kept by pickling them.
        OSError
            In one line, if the folder cannot be written or the disk is full; nothing half-written stays.
        """
        content = _written(name, arrays)
        target = self._path(name)
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=OWNERS_FOLDER)
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    _replace(target, content)
                    return
                except FileNotFoundError:  # somebody cleared the store between write and rename
                    if attempt == _ATTEMPTS:
                        raise
        except OSError as error:
            raise OSError(f"the store {self.folder} cannot be written: {error.strerror or error}") from error

    @contextmanager
    def prepared(self) -> Iterator[None]:
        """Make the folder; if nothing was saved in it at the end, remove what was made.

        What killed runs left in it is swept first.

        Raises
        ------
        OSError
            In one line, if it cannot be made.
        """
        missing = [folder for folder in (self.folder, *self.folder.parents) if not folder.exists()]
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=OWNERS_FOLDER)
        except OSError as error:
            raise OSError(f"the store {self.folder} cannot be written: {error.strerror or error}") from error
        self.sweep()
        try:
            yield
        finally:
            for folder in missing:
                with suppress(OSError):  # something is in it
                    folder.rmdir()

    def size(self) -> tuple[int, int]:
        """Count the chunks and their bytes."""
        sizes = [path.stat().st_size for path in self.folder.glob(f"{CHUNK}.npz")]
        return len(sizes), sum(sizes)

    def clear(self) -> int:
        """Remove all chunks and what killed runs left next to them; the number of files and folders removed.

        Temporary folders of running processes stay: their workers read them.
        """
        unused = [path for path in self.folder.glob(_TEMPORARY_FOLDERS) if temporary.abandoned(path)]
        paths = [*self.folder.glob(f"{CHUNK}.npz"), *self.folder.glob(_PARTS), *unused]
        for path in paths:
            temporary.remove(path)
        return len(paths)

    def sweep(self) -> None:
        """Remove what runs that are no longer alive left next to their chunks."""
        temporary.sweep(self.folder, _PARTS)
        temporary.sweep(self.folder, _TEMPORARY_FOLDERS)

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.npz"


_PARTS = f".{CHUNK}.*{temporary.PART}"
_TEMPORARY_FOLDERS = temporary.FOLDER.format(owner="*")


def key(**parts: Any) -> str:
    """Name a chunk by the SHA-256 of the canonical JSON of everything that it depends on."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), allow_nan=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _written(name: str, arrays: Mapping[str, Array]) -> memoryview:
    """Serialise a chunk: the same arrays give the same bytes."""
    listed = {array: {"shape": list(values.shape), "dtype": values.dtype.str} for array, values in arrays.items()}
    for array, values in arrays.items():
        if values.dtype.hasobject:
            raise ValueError(f"{array!r} holds Python objects and cannot be kept in a store; give numbers or texts")
    contents = {"format": FORMAT, "key": name, "arrays": listed}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(CONTENTS), json.dumps(contents))
        for array, values in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{array}.npy"), "w", force_zip64=True) as member:
                npy.write_array(member, np.asanyarray(values), allow_pickle=False)
        archive.comment = b"0" * _DIGEST_SIZE  # the place of the digest, which does not cover itself
    with file.getbuffer() as buffer:
        digest = hashlib.sha256(buffer[:-_DIGEST_SIZE]).hexdigest().encode()
        buffer[-_DIGEST_SIZE:] = digest
    return file.getbuffer()


def _replace(target: Path, content: memoryview) -> None:
    """Write next to the target, then rename: a reader sees the old file or the new one, never a part."""
    part = temporary.part_of(target)
    try:
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    except OSError:
        with suppress(OSError):
            part.unlink()
        raise


def _read(file: IO[bytes], name: str) -> dict[str, Array]:
    """Read the arrays of a chunk; nothing is allocated for them before all that the file says of itself is compared."""
    n_bytes = os.fstat(file.fileno()).st_size
    body_size = n_bytes - _DIGEST_SIZE
    if body_size < _END_SIZE:
        raise Damaged("too short")
    if _digest(file, body_size) != file.read(_DIGEST_SIZE):
        raise Damaged("other content than was written")
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        if any(member.compress_type != zipfile.ZIP_STORED for member in members):
            raise Damaged("compressed")
        if sum(member.file_size for member in members) > n_bytes:
            raise Damaged("members that are longer than the file")
        contents = json.loads(archive.read(CONTENTS))
        if contents["format"] != FORMAT or contents["key"] != name:
            raise Damaged("the chunk of another key")
        listed = contents["arrays"]
        if not listed or [member.filename for member in members] != [CONTENTS, *(f"{array}.npy" for array in listed)]:
            raise Damaged("other arrays than it lists")
        sizes = dict(zip(listed, members[1:], strict=True))
        return {array: _array(archive, sizes[array], facts) for array, facts in listed.items()}


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo, facts: Mapping[str, Any]) -> Array:
    """One array, if its header agrees with the list and with the number of bytes that are there."""
    with archive.open(member) as file:
        if npy.read_magic(file) != (1, 0):
            raise Damaged("an array in another format")
        shape, _, dtype = npy.read_array_header_1_0(file)
        if dtype.hasobject or list(shape) != facts["shape"] or dtype.str != facts["dtype"]:
            raise Damaged("an array of another shape or dtype than it lists")
        n_values = 1
        for length in shape:
            n_values *= length  # in Python's integers, which do not overflow
        if file.tell() + n_values * dtype.itemsize != member.file_size:
            raise Damaged("an array with more or fewer values than its shape says")
    with archive.open(member) as file:
        return npy.read_array(file, allow_pickle=False)


def _digest(file: IO[bytes], n_bytes: int) -> bytes:
    """SHA-256 of the next bytes of a file, in hexadecimal digits."""
    digest = hashlib.sha256()
    while n_bytes > 0:
        block = file.read(min(n_bytes, 1 << 20))
        if not block:
            raise Damaged("too short")
        digest.update(block)
        n_bytes -= len(block)
    return digest.hexdigest().encode()
