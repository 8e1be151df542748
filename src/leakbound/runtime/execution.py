"""Where models are made, and what was done there."""

from __future__ import annotations

import atexit
import os
import time
from collections.abc import Hashable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from leakbound.reports.about import ExecutionFacts
from leakbound.runtime.cluster import ALLOWED, Engine, active_client, connected
from leakbound.runtime.places import local_folder


@dataclass
class Tally:
    """How many rows of a run came from the store, and how many were computed."""

    reused: int = 0
    computed: int = 0
    other_machine: int = 0
    differing: int = 0
    not_stored: dict[str, str] = field(default_factory=dict)
    written: list[float] = field(default_factory=list)
    seconds_a_model: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Execution:
    """Where models are made."""

    store: str | os.PathLike[str] | None = None
    n_jobs: int | None = None
    cluster: Any = None  # without it, and without n_jobs, the active client of Dask is used
    from_store: Literal["", "all", "finished"] = ""  # make no model, but take all, or those that are finished
    depends_on: tuple[str, ...] = ()
    tally: Tally = field(default_factory=Tally, compare=False)

    def __post_init__(self) -> None:
        if self.cluster is not None and self.n_jobs is not None:
            raise ValueError("n_jobs are processes of this machine, and a cluster has its own: give one of them")
        if self.from_store and self.store is None:
            raise ValueError("without a store no model can come from it: name it (store)")
        for path in self.depends_on:
            if not os.path.isfile(path):
                raise ValueError(f"depends_on names files that the models depend on, and {path} is none")

    @classmethod
    def of(
        cls,
        store: str | os.PathLike[str] | None,
        n_jobs: Any = None,
        depends_on: tuple[str, ...] = (),
        from_store: Literal["", "all", "finished"] = "",
        tally: Tally | None = None,
    ) -> Execution:
        """Say where work is done by the ``n_jobs`` of a call: a number of processes here, or workers elsewhere."""
        here = n_jobs is None or isinstance(n_jobs, int)
        processes, cluster = (n_jobs, None) if here else (None, n_jobs)
        return cls(store, processes, cluster, from_store, depends_on, tally or Tally())

    @property
    def facts(self) -> ExecutionFacts | None:
        """What a report says of the run: with a store, how many models came from it; nothing without one."""
        if self.store is None:
            return None
        tally = self.tally
        return ExecutionFacts(
            reused=tally.reused,
            first_written=_minute(min(tally.written, default=0.0)),
            last_written=_minute(max(tally.written, default=0.0)),
            made=tally.computed,
            other_machine=tally.other_machine,
            differing=tally.differing,
        )

    @property
    def temporary_place(self) -> Path | None:
        """The folder of the workers' temporary files: the store; None, which is that of the system, without one."""
        return local_folder(self.store)

    def connect(self) -> Engine | None:
        """Connect to the workers of the cluster, once a process; None where this machine does the work."""
        if self.cluster is not None:
            return _ENGINES.of(self.cluster)
        client = active_client() if self.n_jobs is None else None
        return None if client is None else _ENGINES.of(client)


def _minute(seconds: float) -> str:
    """Write a time, in seconds since 1970, to the minute; empty where there is none."""
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds)) if seconds else ""


class _Engines:
    """The connections of this process, each of them made once and closed at its end."""

    def __init__(self) -> None:
        self._open: dict[Any, tuple[Engine, ExitStack]] = {}

    def of(self, cluster: Any) -> Engine:
        """Return the engine of a cluster; one whose cluster is gone is connected anew."""
        if not isinstance(cluster, Hashable):  # as no address or client is
            raise ValueError(f"cluster must be {ALLOWED}, or a distributed.Client, got {cluster!r}")
        known = self._open.get(cluster)
        if known is not None and known[0].is_alive():
            return known[0]
        if known is not None:
            self._close(cluster)
        stack = ExitStack()
        engine = stack.enter_context(connected(cluster))
        self._open[cluster] = engine, stack
        return engine

    def close(self) -> None:
        """Close all connections, and stop the processes that were started for them."""
        for cluster in list(self._open):
            self._close(cluster)

    def _close(self, cluster: Any) -> None:
        self._open.pop(cluster)[1].close()


_ENGINES = _Engines()
close_clusters = _ENGINES.close
atexit.register(close_clusters)
