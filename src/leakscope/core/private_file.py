"""A JSON file for its owner alone: whole or as it was, one writer at a time, damage noticed.

The file holds a content and the SHA-256 of its bytes, which is compared whenever it is read, before they are parsed.
Its size is looked at before it is read, and its content is plain JSON: no file makes a reader take more memory than a
few times its own size.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

from filelock import FileLock, Timeout

from leakscope.core import temporary
from leakscope.core.system import OWNER_ALONE, open_new, open_there, open_to_others, sync_folder

LARGEST = 2**30  # bytes of a file
_HEAD, _TAIL = b'{"content":', b',"sha256":"%b"}'  # the canonical JSON of the content is between them
_WRITTEN = re.compile(rb'\{"content":(?P<content>\{.*\}),"sha256":"(?P<digest>[0-9a-f]{64})"\}', re.DOTALL)


def read(path: Path) -> tuple[Mapping[str, Any], str]:
    """Read the content of a file that `write` made, and its digest.

    Raises
    ------
    ValueError
        If the file is missing, larger than 1 GiB, readable or writable by others, or not as it was written.
    """
    text, digest = _verified(path)
    try:
        content = json.loads(text, parse_constant=_no_number, object_pairs_hook=_unique)
    except (ValueError, RecursionError, MemoryError):
        content = None
    if not isinstance(content, dict):
        raise ValueError(f"{path} is damaged: not the JSON that was written")
    return content, digest


def write(path: Path, content: Mapping[str, Any], replaces: str | None) -> str:
    """Write next to the file, flush to the disk, rename: a kill at any moment leaves the old file or the new one.

    Parameters
    ----------
    path : Path
    content : mapping
        Plain JSON.
    replaces : str or None
        Digest of the content that is there now; None where no file may be there.

    Returns
    -------
    str
        Digest of the new content.

    Raises
    ------
    ValueError
        If another process writes the file now, or has written it since it was read; if the file would be too large
        to be read again.
    OSError
        In one line, if the folder cannot be written.
    """
    canonical = _canonical(content)
    digest = hashlib.sha256(canonical).hexdigest()
    text = _HEAD + canonical + _TAIL % digest.encode()
    if len(text) > LARGEST:
        raise ValueError(f"{path} would have {len(text):,} bytes, allowed are {LARGEST:,}: take fewer fits")
    try:
        with _locked(path):
            there = _verified(path)[1] if path.exists() else None
            if there != replaces:
                what = "exists already" if replaces is None else "was changed since it was opened; open it again"
                raise ValueError(f"{path} {what}")
            _replace(path, text)
    except OSError as error:
        raise OSError(f"{path} cannot be written: {error.strerror or error}") from error
    return digest


def digest_of(content: Any) -> str:
    """SHA-256 of the canonical JSON."""
    return hashlib.sha256(_canonical(content)).hexdigest()


def _canonical(content: Any) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _verified(path: Path) -> tuple[bytes, str]:
    """Return the bytes of the content and their digest, which is checked."""
    text = _bytes_of(path)
    written = _WRITTEN.fullmatch(text)
    if written is None:
        raise ValueError(f"{path} is damaged: not the JSON that was written")
    content, digest = written["content"], written["digest"].decode()
    if hashlib.sha256(content).hexdigest() != digest:
        raise ValueError(f"{path} is damaged: its content does not have the digest that was written")
    return content, digest


def _bytes_of(path: Path) -> bytes:
    """Read a file, if it is a regular file, not too large, and nobody else may read it."""
    try:
        opened = open_there(path)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}") from None
    try:
        state = os.fstat(opened)
        _check_state(path, state)
        with os.fdopen(opened, "rb", closefd=False) as file:
            text = file.read(state.st_size + 1)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}") from None
    finally:
        os.close(opened)
    return text


def _check_state(path: Path, state: os.stat_result) -> None:
    """Refuse what is no file, what others may read or write, and what is too large, before it is read."""
    if stat.S_ISDIR(state.st_mode):
        raise ValueError(f"{path} cannot be read: Is a directory")
    if not stat.S_ISREG(state.st_mode):
        raise ValueError(f"{path} cannot be read: it is not a regular file")
    if mode := open_to_others(state):
        raise ValueError(f"{path} is open to others (mode {mode}); only its owner may read it: chmod 600")
    if state.st_size > LARGEST:
        raise ValueError(f"{path} has {state.st_size:,} bytes, allowed are {LARGEST:,}")


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Build a mapping in which no key occurs twice."""
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("a key occurs twice")
    return content


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Return the lock of a file, which the system releases when its holder dies."""
    if not path.parent.is_dir():  # the lock would make the folder
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    lock = FileLock(path.with_name(f".{path.name}.lock"), timeout=0, mode=OWNER_ALONE)
    try:
        lock.acquire()
    except Timeout:
        raise ValueError(f"{path} is being written by another process") from None
    try:
        yield
    finally:
        lock.release()


def _replace(path: Path, text: bytes) -> None:
    """Replace the old file by a complete new one; parts that dead writers left next to it are removed first.

    A lock on a network drive may not reach other hosts: a part file of a living writer is left alone.
    """
    temporary.sweep(path.parent, temporary.parts_of(path))
    part = temporary.part_of(path)
    try:
        with os.fdopen(open_new(part), "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise
    sync_folder(path.parent)
