"""Finished rows by content: a chunk of arrays under the hash of everything that it depends on.

Many may write at once, on several machines. No file is shared: a chunk is one object, written as a whole by whoever
finishes it first, and the others find it there. `places` has the rule that makes this so, `chunk_file` the bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from leakbound.files import temporary
from leakbound.runtime import chunk_file
from leakbound.runtime.chunk_file import Chunk, Damaged
from leakbound.runtime.inputs import NOTHING_READ, Inputs
from leakbound.runtime.machine import this_machine
from leakbound.runtime.places import CHECKPOINTS, KEY, Entry, LocalFolder, Place, place_of

Array = np.ndarray
Check = Callable[[Mapping[str, Array]], bool]
_CHUNK = re.compile(rf"({KEY})\.npz", re.ASCII)
_CHECKPOINT = re.compile(rf"({KEY})\.[0-9a-f]+\.[0-9a-f]+\.pt", re.ASCII)
_DAY = 24 * 3600.0
_ATTEMPTS = 3
_THREADS = 16  # requests at a time where many objects are removed


@dataclass(frozen=True)
class Saved:
    """What became of a chunk that was saved."""

    key: str
    created: bool  # by this call; False where a whole chunk was there
    digest: str
    n_bytes: int
    other_machine: bool = False
    # the store has other arrays of this kind of machine: the first ones stay; the task gives other bytes each time
    differs: bool = False


@dataclass(frozen=True)
class Verified:
    """What a reading of all chunks has shown."""

    n_chunks: int = 0
    damaged: Mapping[str, str] = field(default_factory=dict)
    machines: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Collected:
    """How much `Store.gc` has removed."""

    parts: int = 0
    chunks: int = 0
    checkpoints: int = 0


class Store:
    """Chunks in a folder or under a URL.

    >>> import tempfile
    >>> store = Store(tempfile.mkdtemp())
    >>> store.save(key(seed=0), {"loss": np.zeros(3)}).created
    True
    >>> store.load(key(seed=0))["loss"].tolist()
    [0.0, 0.0, 0.0]
    >>> store.save(key(seed=0), {"loss": np.zeros(3)}).created
    False
    """

    def __init__(self, store: str | os.PathLike[str]) -> None:
        self.place: Place = place_of(store)
        self._begin()

    def _begin(self) -> None:
        self.n_other_machine = 0
        self.n_differing = 0
        self._lock = Lock()

    def __getstate__(self) -> dict[str, Any]:
        """Leave what was counted in its process."""
        return {"place": self.place}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.place = state["place"]
        self._begin()

    @property
    def url(self) -> str:
        """The folder or the URL, as messages name it."""
        return self.place.url

    @property
    def folder(self) -> Path:
        """The folder of a store on this machine."""
        if not isinstance(self.place, LocalFolder):
            raise ValueError(f"the store {self.url} is no folder of this machine")
        return self.place.folder

    def load(self, name: str, is_expected: Check | None = None, same_inputs: bool = True) -> dict[str, Array] | None:
        """Read the arrays of a chunk.

        The digest, the key, and the sizes that the chunk declares are compared before an array is allocated.
        """
        try:
            chunk = self._chunk(name)
        except Damaged:
            return None
        if chunk is None or (is_expected is not None and not is_expected(chunk.arrays)):
            return None
        # what was read while the chunk was made is not what it is now: it is made again
        if same_inputs and not chunk.inputs.still_hold():
            return None
        return chunk.arrays

    def save(
        self, name: str, arrays: Mapping[str, Array], is_expected: Check | None = None, inputs: Inputs = NOTHING_READ
    ) -> Saved:
        """Write a chunk, as a whole, unless there is one."""
        content, digest = chunk_file.serialise(name, arrays, this_machine(), inputs)
        for _ in range(_ATTEMPTS):
            if self.place.put_new(_path(name), content):
                return Saved(name, True, digest, len(content))
            try:
                there = self._chunk(name)
            except Damaged:
                return self._replace(name, content, digest)
            if there is None:  # somebody has just removed it
                continue
            fits = is_expected is None or is_expected(there.arrays)
            if not fits or not there.inputs.still_hold():
                return self._replace(name, content, digest)
            return self._compare(name, there, digest)
        raise OSError(f"the store {self.url} cannot be written: its chunks are removed while they are written")

    def keep(
        self, name: str, arrays: dict[str, Array], is_expected: Check | None = None, inputs: Inputs = NOTHING_READ
    ) -> dict[str, Array]:
        """Save a chunk and return the arrays that the store holds: those of whoever was first.

        All who use a store so go on with the same numbers, whichever machine computed them.
        """
        saved = self.save(name, arrays, is_expected, inputs)
        if not (saved.other_machine or saved.differs):
            return arrays
        return self.load(name, is_expected) or arrays

    def missing(self, names: Iterable[str]) -> set[str]:
        """Tell which chunks are not there, by one listing of the store."""
        return set(names) - {entry.name for entry in self.ls()}

    def ls(self) -> list[Entry]:
        """List the chunks: key, bytes and time of each, in the order of the keys."""
        matches = ((entry, _CHUNK.fullmatch(entry.name)) for entry in self.place.entries())
        chunks = [Entry(match[1], entry.n_bytes, entry.changed) for entry, match in matches if match is not None]
        return sorted(chunks, key=lambda entry: entry.name)

    def verify(self) -> Verified:
        """Read all chunks and compare their digests, those of the arrays alone too."""
        damaged: dict[str, str] = {}
        machines: dict[str, int] = {}
        entries = self.ls()
        for entry in entries:
            try:
                chunk = self._chunk(entry.name)
                if chunk is None:  # somebody has just removed it
                    continue
                if chunk_file.digest_of(chunk.arrays) != chunk.arrays_digest:
                    raise Damaged("its arrays do not have the digest that was written")
            except (Damaged, OSError) as reason:
                damaged[entry.name] = str(reason)
            else:
                name = f"{chunk.machine.digest}: {chunk.machine}"
                machines[name] = machines.get(name, 0) + 1
        return Verified(len(entries), damaged, machines)

    def gc(self, older_than: float | None = None) -> Collected:
        """Remove what dead writers left, and checkpoints of finished chunks or given up.

        Chunks only if asked. A checkpoint counts as given up when nobody has gone on from it for a week.
        """
        old = []
        if older_than is not None:
            newest = time.time() - older_than * _DAY
            old = [entry.name for entry in self.ls() if entry.changed < newest]
            self._remove([_path(name) for name in old])
        n_checkpoints = self._remove_checkpoints()
        return Collected(self.place.sweep(), len(old), n_checkpoints)

    @contextmanager
    def prepared(self) -> Iterator[None]:
        """Find out whether the store can be written, and sweep it; a folder that stays empty is removed at the end."""
        with self.place.prepared():
            self._remove_checkpoints()
            yield

    def size(self) -> tuple[int, int]:
        """Count the chunks and their bytes."""
        sizes = [entry.n_bytes for entry in self.ls()]
        return len(sizes), sum(sizes)

    def bytes_beside(self) -> int:
        """Count the bytes of the checkpoints of runs that are under way."""
        return sum(entry.n_bytes for entry in self.place.entries(CHECKPOINTS))

    def clear(self) -> int:
        """Remove all chunks and checkpoints, and what killed runs left; the number of things removed.

        Temporary folders of running processes stay: their workers read them.
        """
        names = [_path(entry.name) for entry in self.ls()]
        names += [f"{CHECKPOINTS}/{entry.name}" for entry in self._checkpoints()]
        self._remove(names)
        return len(names) + self.place.sweep(everything=True)

    def _chunk(self, name: str) -> Chunk | None:
        """Read a chunk, or raise `Damaged`; None where there is none."""
        content = self.place.read(_path(name))
        return None if content is None else chunk_file.read(content, name)

    def _replace(self, name: str, content: bytes, digest: str) -> Saved:
        self.place.replace(_path(name), content)
        return Saved(name, True, digest, len(content))

    def _compare(self, name: str, there: Chunk, digest: str) -> Saved:
        """Compare what was computed here with the whole chunk that was there before."""
        is_same = there.arrays_digest == digest
        is_of_this_kind = there.machine.digest == this_machine().digest
        other_machine = not is_same and not is_of_this_kind
        differs = not is_same and is_of_this_kind
        with self._lock:
            self.n_other_machine += other_machine
            self.n_differing += differs
        return Saved(name, False, there.arrays_digest, there.n_bytes, other_machine, differs)

    def _checkpoints(self) -> list[Entry]:
        return [entry for entry in self.place.entries(CHECKPOINTS) if _CHECKPOINT.fullmatch(entry.name)]

    def _remove_checkpoints(self) -> int:
        """Remove the checkpoints of chunks that are finished, and those that nobody has gone on from for a week."""
        entries = self._checkpoints()
        if not entries:
            return 0
        unfinished = self.missing(entry.name[:64] for entry in entries)
        oldest = time.time() - temporary.MAX_AGE
        left = [entry.name for entry in entries if entry.name[:64] not in unfinished or entry.changed < oldest]
        self._remove([f"{CHECKPOINTS}/{name}" for name in left])
        return len(left)

    def _remove(self, names: list[str]) -> None:
        if names:
            with ThreadPoolExecutor(_THREADS) as threads:
                list(threads.map(self.place.remove, names))


def key(**parts: Any) -> str:
    """Name a chunk by the SHA-256 of the canonical JSON of everything that it depends on."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), allow_nan=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _path(name: str) -> str:
    return f"{name}.npz"
