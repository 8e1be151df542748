"""A JSON file for its owner alone: whole or as it was, one writer at a time, damage noticed."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

_OTHERS = 0o077


def read(path: Path) -> tuple[Mapping[str, Any], str]:
    """The content of a file that `write` made, and its digest.

    Raises
    ------
    ValueError
        If the file is missing, readable or writable by others, or not as it was written.
    """
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read()
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}") from None
    if mode & _OTHERS:
        raise ValueError(f"{path} is open to others (mode {mode & 0o777:o}); only its owner may read it: chmod 600")
    try:
        whole = json.loads(text)
        content, digest = whole["content"], whole["sha256"]
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{path} is damaged: not the JSON that was written") from None
    if digest != digest_of(content):
        raise ValueError(f"{path} is damaged: its content does not have the digest that was written")
    return content, digest


def write(path: Path, content: Mapping[str, Any], replaces: str | None) -> str:
    """Write beside the file, flush to the disk, rename: a kill at any moment leaves the old file or the new one.

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
        If another process writes the file now, or has written it since it was read.
    OSError
        In one line, if the folder cannot be written.
    """
    digest = digest_of(content)
    try:
        with _locked(path):
            there = read(path)[1] if path.exists() else None
            if there != replaces:
                what = "exists already" if replaces is None else "was changed since it was opened; open it again"
                raise ValueError(f"{path} {what}")
            _replace(path, json.dumps({"content": content, "sha256": digest}, allow_nan=False).encode())
    except OSError as error:
        raise OSError(f"{path} cannot be written: {error.strerror or error}") from error
    return digest


def digest_of(content: Any) -> str:
    """SHA-256 of the canonical JSON."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """The lock of a file, which the system gives back when its holder dies."""
    lock = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(f"{path} is being written by another process") from None
        yield
    finally:
        os.close(lock)


def _replace(path: Path, text: bytes) -> None:
    """Called with the lock held, so that what lies beside the file was left by the dead."""
    beside = path.with_name(f".{path.name}.part")
    beside.unlink(missing_ok=True)
    try:
        made = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(made, "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError:
        with suppress(OSError):
            beside.unlink()
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
