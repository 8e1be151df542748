"""Workers: processes with one BLAS thread each, by joblib, so that any of its back-ends will do."""

from __future__ import annotations

import errno
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from joblib import Parallel, cpu_count, delayed
from joblib.externals.loky.process_executor import TerminatedWorkerError
from threadpoolctl import ThreadpoolController

from leakbound.core.checks import count
from leakbound.files import temporary
from leakbound.files.system import python_without_current_folder, without_ctrl_c
from leakbound.releases.user_modules import for_workers, look_in
from leakbound.runtime import progress
from leakbound.runtime.cluster import WorkerKilled
from leakbound.runtime.machine import THREADS_OF_A_TASK


def run(
    task: Callable[..., Any],
    arguments: Sequence[tuple[Any, ...]],
    n_jobs: int | None = None,
    tmp: str | os.PathLike[str] | None = None,
) -> Iterator[tuple[int, Any]]:
    """Do a task for each tuple of arguments and give the results as they come."""
    # large arrays that the workers share are never in shared memory, where they would outlive a kill
    yield from run_numbered(task, enumerate(arguments), len(arguments), n_jobs, tmp)


def run_numbered(
    task: Callable[..., Any],
    calls: Iterable[tuple[int, tuple[Any, ...]]],
    n_calls: int,
    n_jobs: int | None = None,
    tmp: str | os.PathLike[str] | None = None,
) -> Iterator[tuple[int, Any]]:
    """Do a task for each of numbered arguments, which are made when a worker will soon be free.

    A worker that is killed takes others with it: what was under way is done again, each task in a process of its own,
    so that one that kills its worker again is known by its number.
    """
    n_workers = min(workers(n_jobs), max(n_calls, 1))
    if n_workers == 1:
        for number, call in calls:
            yield number, alone(task, call)
        return
    # joblib replaces a worker whose memory has grown, as networks make it: nothing is lost, and no user can act on it
    warnings.filterwarnings("ignore", "A worker stopped while some jobs were given", UserWarning)
    sent: dict[int, tuple[Any, ...]] = {}  # and not done
    failed: list[Exception] = []
    upcoming = _noted(calls, sent, failed)
    with temporary.folder(tmp) as shared, _full_disk_in_one_line(shared):
        while True:
            try:
                for number, result in _in_parallel(task, upcoming, n_workers, shared):
                    del sent[number]
                    yield number, result
            except TerminatedWorkerError:
                for number, call in list(sent.items()):
                    yield number, _in_its_own_process(task, number, call, shared)
                sent.clear()
            else:
                if failed:
                    raise failed[0]
                return


def _noted(
    calls: Iterable[tuple[int, tuple[Any, ...]]], sent: dict[int, tuple[Any, ...]], failed: list[Exception]
) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Note each call when it is sent, and the error that ends them: joblib asks in a thread where it would be lost."""
    try:
        for number, call in calls:
            sent[number] = call
            yield number, call
    except Exception as error:
        failed.append(error)


def _in_parallel(
    task: Callable[..., Any], calls: Iterable[tuple[int, tuple[Any, ...]]], n_workers: int, shared: Path
) -> Iterator[tuple[int, Any]]:
    # Workers are used again by the next call, with the folder that they began with, unless they are initialised
    # otherwise: so they belong to this folder, and no others are taken for it.
    parallel: Any = Parallel(
        n_jobs=n_workers, return_as="generator_unordered", pre_dispatch="2*n_jobs",
        temp_folder=str(shared), initializer=_begin, initargs=(str(shared), for_workers()),
    )  # fmt: skip
    with python_without_current_folder():
        with without_ctrl_c():  # the workers stay so for life: Ctrl-C is for this process, which ends them
            results = parallel(delayed(_numbered)(number, task, call) for number, call in calls)
        for result in results:
            temporary.touch(shared)
            yield result


def _in_its_own_process(task: Callable[..., Any], number: int, call: tuple[Any, ...], shared: Path) -> Any:
    """Do one task while no other runs."""
    try:
        ((_, result),) = _in_parallel(task, [(number, call)], 2, shared)
    except TerminatedWorkerError:
        raise WorkerKilled(number) from None
    return result


def workers(n_jobs: int | None = None) -> int:
    """Return the number of workers: as asked for, else one for each core that this process may use."""
    return count("n_jobs", n_jobs) if n_jobs is not None else cpu_count()


def _begin(shared: str, user_modules: tuple[str, tuple[str, ...]] | None) -> None:
    """Make the files of a worker readable by their owner alone, and let it draw nothing on the terminal."""
    if user_modules is not None:
        look_in(*user_modules)
    os.umask(0o077)
    progress.silence()


@contextmanager
def _full_disk_in_one_line(shared: Path) -> Iterator[None]:
    """Report a full disk in one line: joblib says that a task cannot be sent, and hides the reason in its cause."""
    try:
        yield
    except Exception as error:
        no_space = os.strerror(errno.ENOSPC)
        if no_space not in f"{error} {error.__cause__}":
            raise
        raise OSError(
            f"the arrays that the workers share do not fit into {shared.parent}: {no_space}; name another "
            "folder as the store, or as TMPDIR"
        ) from error


def alone(task: Callable[..., Any], call: tuple[Any, ...]) -> Any:
    """One BLAS thread, whatever the number of workers: results do not depend on it."""
    with _threads(len(sys.modules)).limit(limits=THREADS_OF_A_TASK):
        return task(*call)


@lru_cache(maxsize=1)
def _threads(n_modules: int) -> ThreadpoolController:
    """Find the BLAS libraries of this process; cached, since the search takes longer than many a fit."""
    return ThreadpoolController()


def _numbered(number: int, task: Callable[..., Any], call: tuple[Any, ...]) -> tuple[int, Any]:
    return number, alone(task, call)
