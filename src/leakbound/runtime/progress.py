"""How far work is: a line on a terminal that moves with time, a bar in a notebook, and nothing elsewhere.

`progress` is the only way in. `_choose` decides once, for all work that is shown at the same time, where it is shown.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from leakbound.core.checks import printable
from leakbound.runtime import notebook

SHOWN_AFTER = 1.0  # seconds, for work whose amount is not known: most of it ends earlier
OF_NUMBERS = 32  # columns that count and times take


@dataclass(eq=False)
class Work:
    """What is done, and how fast.

    >>> seconds = iter([0.0, 10.0, 10.0, 10.0])
    >>> work = Work("models", 4, clock=lambda: next(seconds))
    >>> work.advance(1)
    >>> work.count, work.remaining
    ('1/4', 30.0)
    """

    name: str
    total: int | None = None
    clock: Callable[[], float] = time.monotonic
    done: int = 0
    _computed: int = 0  # without what was found in a store, which tells nothing of the time that the rest takes
    _started: float = field(init=False)
    _computing_since: float = field(init=False)
    _latest: float = field(init=False)

    def __post_init__(self) -> None:
        self.name = printable(self.name)
        self._started = self._computing_since = self._latest = self.clock()

    def advance(self, n: int = 1, *, stored: bool = False) -> None:
        """Count what is finished; what was found in a store does not count for the pace."""
        self.done += n
        self._latest = self.clock()
        if stored:
            self._computing_since = self._latest
        else:
            self._computed += n

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return self.clock() - self._started

    @property
    def remaining(self) -> float | None:
        """Seconds that the rest takes at the pace so far; None before anything was computed."""
        if self.total is None or not self._computed:
            return None
        pace = (self._latest - self._computing_since) / self._computed
        since_latest = self.clock() - self._latest
        return max(0.0, pace * (self.total - self.done) - since_latest)

    @property
    def count(self) -> str:
        """How many are finished, of how many."""
        return "" if self.total is None else f"{self.done}/{self.total}"

    @property
    def times(self) -> str:
        """The time so far, and what remains."""
        remaining = self.remaining
        left = "" if remaining is None else f", {_minutes(remaining)} left"
        return _minutes(self.elapsed) + left


def _minutes(seconds: float) -> str:
    """Write minutes and seconds, with hours if there are any.

    >>> _minutes(75.4), _minutes(3675)
    ('1:15', '1:01:15')
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


@runtime_checkable
class Display(Protocol):
    """Where work is shown."""

    def begin(self, work: Work) -> None:
        """Show new work."""
        ...

    def update(self, work: Work) -> None:
        """Show how far it is: called when a part is finished."""
        ...

    def end(self, work: Work) -> None:
        """Show it no longer."""
        ...


class _Nowhere:
    """Files, pipes, worker processes, and terminals on which nothing can be redrawn."""

    def begin(self, work: Work) -> None:
        pass

    def update(self, work: Work) -> None:
        pass

    def end(self, work: Work) -> None:
        pass


class _Bars:
    """Terminals: a bar for each work that is under way, redrawn by a thread, so that time moves during a fit."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn
        from rich.table import Column

        self._console = Console(stderr=True)
        # in a narrow terminal the name gives way, so that count and times are whole
        bar_width = 20 if self._console.width >= 80 else 10
        name = Column(no_wrap=True, overflow="ellipsis", max_width=max(self._console.width - bar_width - OF_NUMBERS, 8))
        self._bars = Progress(
            TextColumn("{task.description}", markup=False, table_column=name),
            BarColumn(bar_width=bar_width),
            TextColumn("{task.fields[work].count}", markup=False),
            TextColumn("{task.fields[work].times}", markup=False),
            console=self._console,
            refresh_per_second=4,
            transient=True,
            redirect_stdout=sys.stdout is not None and sys.stdout.isatty(),  # what models print into a file stays there
        )
        self._tasks: dict[Work, Any] = {}
        self._lock = threading.Lock()

    def begin(self, work: Work) -> None:
        task = self._bars.add_task(work.name, visible=False, total=work.total, work=work)
        self._tasks[work] = task
        if work.total is not None:
            self._reveal(work)
            return
        timer = threading.Timer(SHOWN_AFTER, self._reveal, [work])
        timer.daemon = True
        timer.start()

    def update(self, work: Work) -> None:
        self._bars.update(self._tasks[work], completed=work.done)

    def end(self, work: Work) -> None:
        with self._lock:
            task = self._tasks.pop(work)
            if not self._tasks:
                self._bars.stop()  # which draws the last state once more, before it is wiped
            self._bars.remove_task(task)

    def _reveal(self, work: Work) -> None:
        with self._lock:
            if work not in self._tasks:  # it has ended meanwhile
                return
            self._bars.update(self._tasks[work], visible=True)
            self._bars.start()
            self._bars.refresh()  # where bars are shown already, a new one need not wait for the next drawing
            # the bars need no hidden cursor, and a run that is killed cannot show it again
            self._console.show_cursor(True)


_is_worker = False
_lock = threading.Lock()
_under_way: list[Work] = []
_display: Display = _Nowhere()


def _choose() -> Display:
    """Choose where work is shown: in a notebook below the cell, else by what standard error is."""
    if not _is_worker and notebook.is_watched():
        return notebook.Cell()
    can_redraw = sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    return _Bars() if can_redraw and not _is_worker and not os.environ.get("CI") else _Nowhere()


def silence() -> None:
    """Show nothing in this process: for workers, whose standard error is that of the process that has the display."""
    global _is_worker
    _is_worker = True


@runtime_checkable
class Advance(Protocol):
    """Counts what is finished; ``stored`` for what needed no computing."""

    def __call__(self, n: int = 1, *, stored: bool = False) -> None:
        """Count n finished parts."""
        ...


@contextmanager
def progress(name: str, total: int | None = None) -> Iterator[Advance]:
    """Show on a terminal or in a notebook how far work is, how long it has taken, and how long the rest will take.

    Work within other work is shown below it. Nothing is shown in workers, nor where standard error is no terminal that
    can be redrawn. Nothing is ever written to standard output.

    >>> with progress("models", 2) as advance:
    ...     for _ in range(2):
    ...         advance()
    """
    global _display
    work = Work(name, total)
    with _lock:
        if not _under_way:
            _display = _choose()
        _under_way.append(work)
        display = _display
        display.begin(work)

    def advance(n: int = 1, *, stored: bool = False) -> None:
        work.advance(n, stored=stored)
        display.update(work)

    try:
        yield advance
    finally:
        with _lock:
            _under_way.remove(work)
            display.end(work)
