"""Which of several worker processes this one is, so that workers of one machine can share its graphics cards."""

from __future__ import annotations

import multiprocessing
import re
import sys


def worker_number() -> int | None:
    """Return the number of this worker process; None in a process that is no worker.

    The processes of joblib and of `concurrent.futures` are counted from 1, those of Dask from 0. One that replaces
    another has a number of its own, so that numbers may be larger than the number of workers.

    >>> worker_number() is None
    True
    """
    number = re.search(r"\d+$", _name_of_dask_worker() or _name_of_process())
    return None if number is None else int(number[0])


def _name_of_process() -> str:
    """Return ``LokyProcess-2``, ``SpawnProcess-2`` or the like; nothing of the process that was started first."""
    process = multiprocessing.current_process()
    return process.name if multiprocessing.parent_process() is not None or "Loky" in process.name else ""


def _name_of_dask_worker() -> str:
    """Return a number, a name that ends in one, or an address that ends in its port; nothing outside of tasks."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return ""
    try:
        return str(distributed.get_worker().name)
    except ValueError:  # this process has no worker
        return ""
