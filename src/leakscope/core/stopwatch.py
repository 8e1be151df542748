"""A training that is only timed: it is ended when its time is over, and tells how far it was.

Whoever times it opens `timed(limit)`; a training that makes steps calls `made(done, total)` after each of them. The
training may be a user's own: it is ended by a signal, as Ctrl-C ends a program, which needs no help of it.
"""

from __future__ import annotations

import _thread
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import Any

_AGAIN = 0.5  # seconds after which a training that went on is ended once more: it may have caught the first signal


class TimeIsOver(BaseException):
    """Ends what is timed; no ``Exception``, so that code which catches errors lets it pass."""


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
        with _interrupted_after(limit) as is_over:
            yield stopwatch
            stopwatch.seconds = time.perf_counter() - stopwatch._started
            stopwatch.is_whole = not is_over.is_set()
    except TimeIsOver:
        stopwatch.seconds = time.perf_counter() - stopwatch._started
    finally:
        _RUNNING.reset(token)


@contextmanager
def _interrupted_after(limit: float) -> Iterator[threading.Event]:
    """Raise `TimeIsOver` in the main thread after so many seconds, and again as long as the body goes on."""
    is_over = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield is_over
        return
    has_alarm = hasattr(signal, "setitimer")  # not on Windows, where the signal of Ctrl-C is simulated
    signum = signal.SIGALRM if has_alarm else signal.SIGINT
    is_ours = False
    is_finished = False

    def end(number: int, frame: FrameType | None) -> Any:
        if is_finished:
            return None
        if is_ours or has_alarm:
            is_over.set()
            raise TimeIsOver
        return earlier(number, frame) if callable(earlier) else None

    def simulate() -> None:
        nonlocal is_ours
        while not stopped.wait(limit if not is_ours else _AGAIN):
            is_ours = True
            _thread.interrupt_main(signum)

    earlier = signal.signal(signum, end)
    stopped = threading.Event()
    try:
        if has_alarm:
            signal.setitimer(signal.ITIMER_REAL, limit, _AGAIN)
        else:
            threading.Thread(target=simulate, daemon=True).start()
        yield is_over
    finally:
        is_finished = True
        stopped.set()
        if has_alarm:
            signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signum, signal.SIG_DFL if earlier is None else earlier)
