"""Workers: processes with one BLAS thread each, by joblib, so that any of its back-ends will do."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from multiprocessing import resource_tracker
from typing import Any

from joblib import Parallel, cpu_count, delayed
from threadpoolctl import ThreadpoolController

from leakscope.checks import count


def run(
    task: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], jobs: int | None = None
) -> Iterator[tuple[int, Any]]:
    """Do a task for each tuple of arguments and give the results as they come.

    Parameters
    ----------
    task : callable
        Must be importable by the workers.
    arguments : sequence of tuple
    jobs : int, optional
        Workers; all cores unless given. With 1 everything is done in this process.

    Yields
    ------
    (int, object)
        The position in ``arguments`` and the result, in order of completion.
    """
    n_workers = min(workers(jobs), max(len(arguments), 1))
    if n_workers == 1:
        for number, given in enumerate(arguments):
            yield number, _alone(task, given)
        return
    numbered = (delayed(_numbered)(number, task, given) for number, given in enumerate(arguments))
    parallel: Any = Parallel(n_jobs=n_workers, return_as="generator_unordered", pre_dispatch="2*n_jobs")
    with _deaf_to_ctrl_c():  # the workers stay so for life: Ctrl-C is for this process, which ends them
        results = parallel(numbered)
    yield from results


def workers(jobs: int | None = None) -> int:
    """The number of workers: as asked for, else one for each core that this process may use."""
    return count("jobs", jobs) if jobs is not None else cpu_count()


@contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """Processes that are started here do not hear SIGINT; this one hears it afterwards."""
    resource_tracker.ensure_running()  # where it starts later it lifts the mask too early
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _alone(task: Callable[..., Any], given: tuple[Any, ...]) -> Any:
    """One BLAS thread, whatever the number of workers: results do not depend on it."""
    with _threads(len(sys.modules)).limit(limits=1):
        return task(*given)


@lru_cache(maxsize=1)
def _threads(n_modules: int) -> ThreadpoolController:
    """The BLAS libraries of this process: to look for them takes longer than many a fit, and an import may add one."""
    return ThreadpoolController()


def _numbered(number: int, task: Callable[..., Any], given: tuple[Any, ...]) -> tuple[int, Any]:
    return number, _alone(task, given)
