"""A JSON file for its owner alone: whole or as it was, one writer at a time, damage noticed.

The file holds a content and the SHA-256 of its bytes, which is compared whenever it is read, before they are parsed.
Its size is looked at before it is read, and its content is plain JSON: no file makes a reader take more memory than a
few times its own size.
"""

from __future__ import annotations

import base64
import errno
import hashlib
import json
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np
from filelock import FileLock, Timeout

from leakbound.files import temporary
from leakbound.files.system import OWNER_ALONE, open_new, open_there, open_to_others, sync_folder

LARGEST = 2**30  # bytes of a file
_ATTEMPTS = 10  # to write a file that another process writes at the same time
_HEAD, _TAIL = b'{"content":', b',"sha256":"%b"}'  # the canonical JSON of the content is between them
_LENGTH_OF_TAIL = len(_TAIL % (b"0" * 64))
_BLOCK = 3 << 20  # bytes that are read or encoded at once; a multiple of 3, so that base 64 has no padding inside
_WRITTEN = re.compile(rb'\{"content":(?P<content>\{.*\}),"sha256":"(?P<digest>[0-9a-f]{64})"\}', re.DOTALL)


class ChangedMeanwhile(ValueError):
    """Another process has written the file since it was looked at."""


def read(path: Path) -> tuple[Mapping[str, Any], str]:
    """Read the content of a file that `write` made, and its digest."""
    text, digest = _verified(path)
    try:
        content = json.loads(bytes(text), parse_constant=_no_number, object_pairs_hook=_unique)
    except (ValueError, RecursionError, MemoryError):
        content = None
    if not isinstance(content, dict):
        raise ValueError(f"{path} is damaged: not the JSON that was written")
    return content, digest


def write(path: Path, content: Mapping[str, Any], replaces: str | None) -> str:
    """Write next to the file, flush to the disk, rename: a kill at any moment leaves the old file or the new one."""
    sha = hashlib.sha256()
    file = behind_link(path)
    try:
        with _locked(file):
            there = _digest_there(path) if file.exists() else None
            # replaces: digest of what the caller has read; None where no file may be there
            if there != replaces:
                what = "exists already" if replaces is None else "was changed since it was opened; open it again"
                raise ChangedMeanwhile(f"{path} {what}")
            _replace(file, _text(path, content, sha))
    except OSError as error:
        raise OSError(f"{path} cannot be written: {error.strerror or error}") from error
    return sha.hexdigest()


def behind_link(path: Path) -> Path:
    """Return the file to write: that behind a link, which stays; a new file in its place would be another one."""
    if not path.is_symlink():
        return path
    if not path.exists():
        raise ValueError(f"{path} is a link to a file that is not there: {os.readlink(path)}")
    return path.resolve()


def retried(change: Callable[[], Any]) -> None:
    """Change a file that another process may be writing at the same time: again for a few seconds, if that fails."""
    for attempt in range(1, _ATTEMPTS):
        with suppress(OSError, ValueError):
            change()
            return
        time.sleep(0.05 * attempt)
    change()


def _text(path: Path, content: Mapping[str, Any], sha: Any) -> Iterator[bytes]:
    """Make the text of a file piece by piece, and hash the content meanwhile."""
    n_bytes = len(_HEAD) + _LENGTH_OF_TAIL
    yield _HEAD
    for piece in _canonical(content):
        n_bytes += len(piece)
        if n_bytes > LARGEST:
            raise ValueError(f"{path} would have more than {LARGEST:,} bytes, which are allowed: take fewer fits")
        sha.update(piece)
        yield piece
    yield _TAIL % sha.hexdigest().encode()


def digest_of(content: Any) -> str:
    """SHA-256 of the canonical JSON."""
    sha = hashlib.sha256()
    for piece in _canonical(content):
        sha.update(piece)
    return sha.hexdigest()


def _canonical(content: Any) -> Iterator[bytes]:
    """Encode a content as JSON with sorted keys and without spaces, piece by piece, so that a file is never in memory.

    An array is the base 64 of its bytes in C order.
    """
    if isinstance(content, Mapping):
        yield b"{"
        for number, name in enumerate(sorted(content)):
            yield (b"," if number else b"") + json.dumps(name).encode() + b":"
            yield from _canonical(content[name])
        yield b"}"
    elif isinstance(content, list | tuple):
        yield b"["
        for number, item in enumerate(content):
            if number:
                yield b","
            yield from _canonical(item)
        yield b"]"
    elif isinstance(content, np.ndarray):
        yield b'"'
        # _BLOCK is a multiple of 3, so that the pieces in base 64 join without padding
        raw = np.ascontiguousarray(content).reshape(-1).view(np.uint8).data
        for start in range(0, len(raw), _BLOCK):
            yield base64.b64encode(raw[start : start + _BLOCK])
        yield b'"'
    else:
        yield json.dumps(content, allow_nan=False).encode()


def _digest_there(path: Path) -> str:
    """Return the digest of the content of a file, which is checked; only a part of the file is in memory at a time."""
    with _opened(path) as (file, size):
        left = size - len(_HEAD) - _LENGTH_OF_TAIL
        whole, sha = left > 0 and file.read(len(_HEAD)) == _HEAD, hashlib.sha256()
        while whole and left > 0:
            block = file.read(min(left, _BLOCK))
            whole = len(block) > 0
            sha.update(block)
            left -= len(block)
        if not whole or file.read() != _TAIL % sha.hexdigest().encode():
            raise ValueError(f"{path} is damaged: its content does not have the digest that was written")
        return sha.hexdigest()


def _verified(path: Path) -> tuple[memoryview, str]:
    """Return the bytes of the content and their digest, which is checked."""
    with _opened(path) as (file, size):
        text = file.read(size + 1)
    written = _WRITTEN.fullmatch(text)
    if written is None:
        raise ValueError(f"{path} is damaged: not the JSON that was written")
    content = memoryview(text)[slice(*written.span("content"))]
    digest = written["digest"].decode()
    if hashlib.sha256(content).hexdigest() != digest:
        raise ValueError(f"{path} is damaged: its content does not have the digest that was written")
    return content, digest


@contextmanager
def _opened(path: Path) -> Iterator[tuple[IO[bytes], int]]:
    """Open a file, if it is a regular file, not too large, and nobody else may read it; return also its size."""
    try:
        opened = open_there(path)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}") from None
    try:
        state = os.fstat(opened)
        _check_state(path, state)
        with os.fdopen(opened, "rb", closefd=False) as file:
            yield file, state.st_size
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}") from None
    finally:
        os.close(opened)


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


def _replace(path: Path, pieces: Iterable[bytes]) -> None:
    """Replace the old file by a complete new one; parts that dead writers left next to it are removed first.

    A lock on a network drive may not reach other hosts: a part file of a living writer is left alone.
    """
    temporary.sweep(path.parent, temporary.parts_of(path))
    part = temporary.part_of(path)
    try:
        with os.fdopen(open_new(part), "wb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise
    sync_folder(path.parent)
