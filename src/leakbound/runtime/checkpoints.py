"""Checkpoints in a store, next to the chunks that they belong to.

A checkpoint is named by the key of its chunk, by the kind of machine (another one may round differently, and a model
half of each would have the bytes of none) and by the training that wrote it. In front of its bytes are its digest and
what the training had read when it was written: while that is as it was, another process may go on from there.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress

from leakbound.runtime.chunk_file import Damaged
from leakbound.runtime.inputs import Inputs, inputs_so_far
from leakbound.runtime.machine import this_machine
from leakbound.runtime.places import CHECKPOINTS
from leakbound.runtime.store import Store

_DIGEST = 32  # bytes


class StoredCheckpoints:
    """The checkpoints of one chunk.

    >>> from leakbound.runtime.store import key
    >>> checkpoints = StoredCheckpoints(Store("memory://example-of-checkpoints"), key(seed=0))
    >>> checkpoints.write("a", b"epoch 3")
    >>> checkpoints.read("a")
    b'epoch 3'
    >>> checkpoints.remove()
    >>> checkpoints.read("a") is None
    True
    """

    def __init__(self, store: Store, key: str) -> None:
        self._store, self._key = store, key
        self._names: set[str] = set()  # of those that were read or written here

    def read(self, name: str) -> bytes | None:
        """Return a checkpoint as it was written; None where there is none, or none that is whole."""
        path, content = self._path(name), None
        with suppress(OSError, Damaged):
            content = self._store.place.read(path)
        if content is None:
            return None
        self._names.add(path)
        digest, written = content[:_DIGEST], content[_DIGEST:]
        if hashlib.sha256(written).digest() != digest:
            return None
        inputs, _, state = written.partition(b"\n")
        try:
            as_it_was = Inputs(**json.loads(inputs)).still_hold()
        except (ValueError, TypeError):  # of another version, which kept no inputs
            return None
        return state if as_it_was else None

    def write(self, name: str, content: bytes) -> None:
        """Write a checkpoint over the one before; without it the training goes on as well."""
        path = self._path(name)
        self._names.add(path)
        written = json.dumps(inputs_so_far().as_json()).encode() + b"\n" + content
        with suppress(OSError):
            self._store.place.replace(path, hashlib.sha256(written).digest() + written)

    def remove(self) -> None:
        """Remove those that were read or written here: the chunk is made."""
        for path in sorted(self._names):
            with suppress(OSError):
                self._store.place.remove(path)
        self._names.clear()

    def _path(self, name: str) -> str:
        return f"{CHECKPOINTS}/{self._key}.{this_machine().digest}.{name}.pt"
