"""Workers beyond the processes of this machine: a Dask cluster.

Tasks may run twice, on any worker, at any time: each one is a function of its arguments alone, and what it makes is
stored under a name that follows from them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

from leakbound.files.system import python_without_current_folder
from leakbound.releases.user_modules import for_workers, look_in

Cluster = Any  # an address or a distributed.Client, which is known where it is used
ALLOWED = "tcp://HOST:PORT of a Dask scheduler, local:N for N processes of this machine"
_LOCAL = re.compile(r"local:(?P<n>[1-9]\d{0,3})")
_ADDRESS = re.compile(r"(tcp|tls|ws|wss|ucx)://\S+")
_PER_WORKER = 2  # tasks that are sent to each worker, so that it never waits for the next one
_ATTEMPTS = 3  # of a task that was lost with its scheduler
_TIMEOUT = 30.0  # seconds until a scheduler must have answered
_LOST = object()
_PATIENCE = 5.0  # seconds after which it is asked again whether it is alive


class WorkerKilled(RuntimeError):
    """Two processes of workers were killed while they did a task, whose number is the argument."""


@runtime_checkable
class _Client(Protocol):
    """What is used of a ``distributed.Client``, whose library is not imported to know one."""

    status: str
    scheduler: Any

    def get_executor(self, **kwargs: Any) -> Executor:
        """Return an executor of the cluster."""
        ...

    def scatter(self, data: Any, **kwargs: Any) -> Any:
        """Give an object to all workers."""
        ...

    def scheduler_info(self, n_workers: int = -1) -> Any:
        """Return what the scheduler knows of its workers."""
        ...


@dataclass(frozen=True)
class Engine:
    """The workers of a cluster."""

    executor: Executor
    name: str
    n_workers: Callable[[], int]
    is_alive: Callable[[], bool]
    scatter: Callable[[Any], Any]

    def run(
        self, task: Callable[..., Any], job: Any, calls: Iterable[tuple[int, tuple[Any, ...]]]
    ) -> Iterator[tuple[int, Any]]:
        """Do a task with a job, which all workers get once, and each of numbered arguments; give results as they come.

        A scheduler blames each task that was sent to a worker which was killed, also those that had not begun. So what
        it blames is done again while nothing else runs: one that kills its worker again is known by its number.
        """
        running: dict[Future[Any], _Call] = {}
        waiting = _Waiting(_Call(number, arguments) for number, arguments in calls)
        job_there = None  # with the workers
        try:
            while True:
                for call in waiting.take(running, _PER_WORKER * max(1, self.n_workers())):
                    job_there = job_there or self.scatter(job)
                    running[self.executor.submit(task, job_there, *call.arguments)] = call
                if not running:
                    return
                done, _ = wait(running, timeout=_PATIENCE, return_when=FIRST_COMPLETED)
                if not done and not self.is_alive():
                    raise self._gone()
                for future in done:
                    call = running.pop(future)
                    result = self._result_of(future, call, waiting)
                    if result is _LOST:  # and perhaps the job with it
                        job_there = None
                    else:
                        yield call.number, result
        except (OSError, RuntimeError) as error:
            raise error if self.is_alive() else self._gone() from error
        finally:
            for future in running:
                future.cancel()

    def _result_of(self, future: Future[Any], call: _Call, waiting: _Waiting) -> Any:
        """Return the result of a task; `_LOST`, and the task waits again, if it was lost with its worker."""
        if future.cancelled():  # nobody here has cancelled it: it was lost with its scheduler
            waiting.lost.append(self._next_attempt(call))
            return _LOST
        try:
            return future.result()
        except Exception as error:
            if type(error).__name__ != "KilledWorker":  # of Dask
                raise
            if call.is_alone:
                raise WorkerKilled(call.number) from error
            waiting.suspects.append(replace(call, is_alone=True))
            return _LOST

    def _next_attempt(self, call: _Call) -> _Call:
        """Send a task again that was lost, while there is somebody to send it to."""
        if call.attempt == _ATTEMPTS or not self.is_alive():
            raise self._gone()
        return replace(call, attempt=call.attempt + 1, is_alone=False)

    def _gone(self) -> OSError:
        return OSError(
            f"the cluster {self.name} is gone: what was finished is kept; start it again and repeat the command"
        )


@dataclass(frozen=True)
class _Call:
    """A task that is sent."""

    number: int
    arguments: tuple[Any, ...]
    attempt: int = 1
    is_alone: bool = False


class _Waiting:
    """What is not with the workers."""

    def __init__(self, calls: Iterator[_Call]) -> None:
        self._calls = calls
        self.lost: list[_Call] = []
        # they were with a worker that was killed, and are sent again one at a time, with no other task
        self.suspects: list[_Call] = []

    def take(self, running: Mapping[Future[Any], _Call], most: int) -> Iterator[_Call]:
        """Take what may be sent beside what is running, up to so many tasks together."""
        while len(running) < (1 if self.suspects else most) and not any(call.is_alone for call in running.values()):
            if self.suspects:
                yield self.suspects.pop()
            elif self.lost:
                yield self.lost.pop()
            else:
                call = next(self._calls, None)
                if call is None:
                    return
                yield call


def active_client() -> Any:
    """Return the ``distributed.Client`` that is active in this process; None without one, or without the library."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.default_client()
    except ValueError:
        return None


@contextmanager
def connected(cluster: Cluster) -> Iterator[Engine]:
    """Connect to a cluster; what is started here is stopped at the end."""
    # "tcp://HOST:PORT" is a scheduler of Dask, "local:4" four processes of this machine under a scheduler of their own
    if isinstance(cluster, str):
        with _client_of(cluster) as client:
            yield _dask(client, cluster)
    elif isinstance(cluster, _Client):
        if cluster.status != "running":
            raise OSError(f"the client of Dask is {cluster.status}: connect it, and repeat the command")
        yield _dask(cluster, str(cluster.scheduler.address))
    else:
        raise ValueError(f"cluster must be {ALLOWED}, or a distributed.Client, got {type(cluster).__name__}")


def check_address(cluster: str) -> str:
    """Check the address of a cluster.

    >>> check_address("tcp://10.0.0.1:8786")
    'tcp://10.0.0.1:8786'
    """
    if not _LOCAL.fullmatch(cluster) and not _ADDRESS.fullmatch(cluster):
        raise ValueError(f"cluster must be {ALLOWED}; got {cluster!r}")
    return cluster


@contextmanager
def _client_of(address: str) -> Iterator[Any]:
    """Connect to a scheduler, or start one with processes of this machine."""
    check_address(address)
    try:
        distributed = import_module("distributed")
    except ImportError:
        raise ValueError("a cluster needs Dask: pip install 'leakbound[cluster]'") from None
    local = _LOCAL.fullmatch(address)
    if local is None:
        try:
            client = distributed.Client(address, timeout=_TIMEOUT, set_as_default=False)
        except (OSError, TimeoutError) as error:
            raise OSError(f"no scheduler of Dask answers at {address}: {error or 'timeout'}") from error
        with client:
            yield client
        return

    # A task whose worker dies comes back at once, and is tried once more by `Engine.run`, alone: what kills two workers
    # would kill all of them.
    with (
        python_without_current_folder(),
        import_module("dask.config").set({"distributed.scheduler.allowed-failures": 0}),
    ):
        # with keys of its own no other user of this machine can send it tasks
        cluster = distributed.LocalCluster(
            n_workers=int(local["n"]),
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",
            host="127.0.0.1",
            protocol="tls",
            security=distributed.Security.temporary(),
        )
    try:
        with distributed.Client(cluster, set_as_default=False) as client:
            if (state := for_workers()) is not None:
                client.register_plugin(_with_user_modules(distributed.WorkerPlugin, state))
            yield client
    finally:
        # a worker that was killed may be started again just now, and Dask gives up waiting for it: everything is done
        # and stored, and its processes end with this one
        with suppress(TimeoutError):
            cluster.close()


def _with_user_modules(base: Any, state: tuple[str, tuple[str, ...]]) -> Any:
    """Make a plugin with which each worker, also one that replaces another, finds the user's modules."""

    class UserModules(base):
        def setup(self, worker: Any) -> None:
            look_in(*state)

    return UserModules()


def _dask(client: _Client, name: str) -> Engine:
    """Make an engine of a client."""

    def n_workers() -> int:
        return sum(worker["nthreads"] for worker in client.scheduler_info(n_workers=-1)["workers"].values())

    def is_alive() -> bool:
        return client.status == "running"

    def scatter(value: Any) -> Any:
        return client.scatter(value, broadcast=True, hash=False)

    return Engine(client.get_executor(pure=False), name, n_workers, is_alive, scatter)
