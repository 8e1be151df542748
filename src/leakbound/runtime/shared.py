"""What all tasks of a run need, as the data and the model to be fitted: put into the store once, loaded once a worker.

The object is pickled, as every executor pickles what it sends. A worker unpickles nothing but the bytes whose SHA-256
came with its task: what somebody else wrote into the store is never loaded.
"""

from __future__ import annotations

import hashlib
import pickle
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import Any

import cloudpickle

from leakbound.files import temporary
from leakbound.runtime.places import SHARED
from leakbound.runtime.store import Store

_LOADED = Lock()


@dataclass(frozen=True, eq=False)
class Shared:
    """An object in a store, under its digest."""

    store: Store
    name: str
    digest: str
    n_bytes: int

    @classmethod
    def put(cls, store: Store, value: Any) -> Shared:
        """Write an object into a store."""
        try:
            content = cloudpickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
        except Exception as error:  # whatever a user's object raises
            raise ValueError(f"data or model cannot be sent to workers: {error}") from error
        digest = hashlib.sha256(content).hexdigest()
        # the owner in the name: who removes it at the end of a run takes it from nobody else
        name = f"{SHARED}/{digest}.{temporary.owner()}.pickle"
        store.place.put_new(name, content)
        return cls(store, name, digest, len(content))

    def get(self) -> tuple[Any, int]:
        """Return the object, and how many bytes this process has read for it now: 0 if it was loaded before."""
        with _LOADED:  # a second thread waits instead of reading it once more
            before = _loaded.cache_info().misses
            value = _loaded(self)
            return value, self.n_bytes if _loaded.cache_info().misses > before else 0

    def remove(self) -> None:
        """Remove the object from the store."""
        self.store.place.remove(self.name)

    def __hash__(self) -> int:
        return hash(self.digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shared) and self.digest == other.digest


@lru_cache(maxsize=2)
def _loaded(shared: Shared) -> Any:
    """Read an object; the last two stay in memory."""
    content = shared.store.place.read(shared.name)
    if content is None:
        raise OSError(
            f"a worker does not see the store {shared.store.url}: give a folder that all machines share, or a URL"
        )
    if hashlib.sha256(content).hexdigest() != shared.digest:
        raise OSError(f"the store {shared.store.url} returns other bytes for the data than were written: it is damaged")
    return pickle.loads(content)
