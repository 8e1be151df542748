"""Checkpoints: what a long training keeps on its way, so that it goes on after its process was killed.

Whoever runs a task says where its checkpoints lie (`kept_in`); a training that is part of the task asks for that place
(`current_place`) and writes there from time to time (`Pace`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, runtime_checkable

EVERY = 60.0  # seconds of training between two checkpoints, at least
MOST_OF_TIME = 0.02  # fraction of the time that writing them takes, at most


@runtime_checkable
class CheckpointPlace(Protocol):
    """Where the checkpoints of one task lie."""

    def read(self, name: str) -> bytes | None:
        """Return a checkpoint as it was written; None where there is none, or none that is whole."""
        ...

    def write(self, name: str, content: bytes) -> None:
        """Write a checkpoint over the one before; a place that cannot be written is no error."""
        ...


_PLACE: ContextVar[CheckpointPlace | None] = ContextVar("checkpoint_place", default=None)


@contextmanager
def kept_in(place: CheckpointPlace | None) -> Iterator[None]:
    """Say where the checkpoints of what runs in this context lie."""
    token = _PLACE.set(place)
    try:
        yield
    finally:
        _PLACE.reset(token)


def current_place() -> CheckpointPlace | None:
    """Return where checkpoints are to be written; None where nobody keeps them."""
    return _PLACE.get()


class Pace:
    """When the next checkpoint is due: `EVERY` seconds after the last one, later where writing one takes long."""

    def __init__(self) -> None:
        self._next = time.monotonic() + EVERY

    @property
    def is_due(self) -> bool:
        """Whether a checkpoint should be written now."""
        return time.monotonic() >= self._next

    @contextmanager
    def written(self) -> Iterator[None]:
        """Measure how long it takes to write one, and set the time of the next."""
        begin = time.monotonic()
        try:
            yield
        finally:
            end = time.monotonic()
            self._next = end + max(EVERY, (end - begin) / MOST_OF_TIME)
