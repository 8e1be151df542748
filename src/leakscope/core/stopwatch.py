"""A training that is only timed: it is ended when its time is over, and tells how far it was.

Whoever times it opens `timed(limit)`; a training that makes steps calls `made(done, total)` after each of them. The
training may be a user's own: it is ended by a signal, as Ctrl-C ends a program, which needs no help of it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from leakscope.core.system import TimeIsOver, interrupted_after


class Stopwatch:
    """What `timed` has seen."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.is_whole = False  # whether the body came to its end in time
        self.steps: list[tuple[int, int, float]] = []  # number of steps made, of all, and seconds until then
        self._started = time.perf_counter()

    def _note(self, done: int, total: int) -> None:
        self.steps.append((done, total, time.perf_counter() - self._started))

    @property
    def n_steps(self) -> tuple[int, int] | None:
        """Number of steps made and of all steps; None where fewer than two were told."""
        return self.steps[-1][:2] if len(self.steps) >= 2 else None

    @property
    def whole(self) -> float | None:
        """Seconds that all steps take, by those that were made after the first; None where there are too few."""
        if self.is_whole:
            return self.seconds
        if self.n_steps is None:
            return None
        (first, _, begin), (last, total, end) = self.steps[0], self.steps[-1]
        return begin + (total - first) * (end - begin) / (last - first)


_RUNNING: ContextVar[Stopwatch | None] = ContextVar("stopwatch", default=None)


def made(done: int, total: int) -> None:
    """Tell the stopwatch, if one runs, that so many of all steps are made."""
    stopwatch = _RUNNING.get()
    if stopwatch is not None:
        stopwatch._note(done, total)


@contextmanager
def timed(limit: float) -> Iterator[Stopwatch]:
    """Time what is done in this context, and end it after `limit` seconds.

    Only the main thread can be interrupted: elsewhere the body runs to its end. A call of a library that does not come
    back to Python is ended when it does.

    Parameters
    ----------
    limit : float
        Seconds.

    Yields
    ------
    Stopwatch

    Examples
    --------
    >>> import time
    >>> from leakscope.core.stopwatch import made, timed
    >>> with timed(0.05) as stopwatch:
    ...     for step in range(1000):
    ...         time.sleep(0.01)
    ...         made(step + 1, 1000)
    >>> stopwatch.is_whole, stopwatch.whole > 5
    (False, True)
    """
    stopwatch = Stopwatch()
    token = _RUNNING.set(stopwatch)
    try:
        with interrupted_after(limit) as is_over:
            yield stopwatch
            stopwatch.seconds = time.perf_counter() - stopwatch._started
            stopwatch.is_whole = not is_over.is_set()
    except TimeIsOver:
        stopwatch.seconds = time.perf_counter() - stopwatch._started
    finally:
        _RUNNING.reset(token)
