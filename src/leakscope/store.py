"""Finished rows by content: a chunk of arrays under the hash of everything that it depends on.

A chunk is written beside its place and renamed, so that it is whole or not there, whatever happens.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray
CHUNK = "[0-9a-f]" * 64  # the names that ``key`` makes: nothing else in the folder is ours to count or remove


class Store:
    """A folder of chunks.

    Parameters
    ----------
    folder : path
        Made on the first write, readable by its owner alone: signals of single records are in it.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from leakscope.store import Store, key
    >>> store = Store(tempfile.mkdtemp())
    >>> store.save(key(seed=0), {"loss": np.zeros(3)})
    >>> store.load(key(seed=0))["loss"].tolist()
    [0.0, 0.0, 0.0]
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"the store {self.folder} is a file; give a folder")

    def load(self, name: str) -> dict[str, Array] | None:
        """The arrays of a chunk, or None where it is missing or damaged (then it is made again)."""
        try:
            with self._path(name).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                return {array: arrays[array] for array in arrays.files}
        except (ValueError, OSError, EOFError, KeyError, RuntimeError, zipfile.BadZipFile, zlib.error):
            return None

    def save(self, name: str, arrays: Mapping[str, Array]) -> None:
        """Write a chunk beside its place, then rename it.

        Raises
        ------
        OSError
            In one line, if the folder cannot be written or the disk is full; nothing half-written stays.
        """
        target = self._path(name)
        beside = target.with_name(f".{target.stem}.{os.getpid()}.part")
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with beside.open("wb") as file:
                np.savez(file, **arrays)  # pyright: ignore[reportArgumentType]
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, target)
        except OSError as error:
            with suppress(OSError):
                beside.unlink()
            raise OSError(f"the store {self.folder} cannot be written: {error.strerror or error}") from error

    def size(self) -> tuple[int, int]:
        """Number of chunks and their bytes."""
        sizes = [path.stat().st_size for path in self.folder.glob(f"{CHUNK}.npz")]
        return len(sizes), sum(sizes)

    def clear(self) -> int:
        """Remove all chunks and what a killed run left beside them; the number of files removed."""
        found = [*self.folder.glob(f"{CHUNK}.npz"), *self.folder.glob(f".{CHUNK}.*.part")]
        for path in found:
            path.unlink(missing_ok=True)
        return len(found)

    def sweep(self) -> None:
        """Remove what runs that are no longer alive left beside their chunks."""
        for path in self.folder.glob(f".{CHUNK}.*.part"):
            process = path.name.split(".")[2]
            if not (process.isdigit() and _alive(int(process))):
                path.unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.npz"


def key(**parts: Any) -> str:
    """The name of a chunk: the SHA-256 of the canonical JSON of everything that it depends on."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), allow_nan=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
