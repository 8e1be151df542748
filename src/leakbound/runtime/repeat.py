"""A task for many arguments, by the pool; what is finished stays in the store, so that a killed study goes on."""

from __future__ import annotations

import hashlib
import inspect
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Shaped

from leakbound.core.checks import known_keywords
from leakbound.files.temporary import process_name
from leakbound.releases.source_code import NoCanonicalForm, UserCode, digest_of, user_code
from leakbound.runtime import pool
from leakbound.runtime.inputs import NOTHING_READ, Inputs, watched
from leakbound.runtime.places import local_folder
from leakbound.runtime.progress import progress
from leakbound.runtime.store import Store, key
from leakbound.version import __version__

Array = np.ndarray


@known_keywords()
def repeat(
    task: Callable[..., Mapping[str, Any]],
    arguments: Sequence[tuple[Any, ...]],
    *,
    what: str = "runs",
    data: str = "",
    store: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
) -> list[dict[str, Shaped[Array, "..."]]]:
    """Do a task for each tuple of arguments, with a progress bar, worker processes and a store.

    Parameters
    ----------
    task : callable
        A function of a module: workers import it. It gives numbers or arrays by name, and draws its random numbers
        from a seed among its arguments, so that the number of workers changes nothing.
    arguments : sequence of tuple
        With a store: of numbers, texts, truth values and None, or tuples of these.
    what : str
        What they are, for the progress bar.
    data : str
        With a store: a digest of the data that the task loads by itself, if it does.
    store : path or URL, optional
        Folder, or URL as ``s3://bucket/folder``, where finished results stay, under the hash of the task's name, of
        all code of the user that it reaches, of its arguments, of the data and of this version of leakbound. A task
        whose code cannot be followed (it is interactive, compiled, or chooses what to import while it runs) is not
        stored, and a warning says why.
    n_jobs : int, optional
        Worker processes; all cores unless given.

    Returns
    -------
    list of dict of str to array
        A result for each tuple of arguments, in their order.

    Raises
    ------
    ValueError
        With a store: if an argument cannot be part of a key.

    Examples
    --------
    >>> import leakbound as ls
    >>> [round(result["mip_from_dp"].item(), 4) for result in ls.repeat(_example, [(0.0,), (1.0,)], n_jobs=1)]
    [0.0, 0.2311]
    """
    # the names of the results: a task whose code cannot be followed has none, and is not stored
    chunk_store = Store(store) if store is not None else None
    keys: list[str] = []
    reached = UserCode()
    if chunk_store:
        try:
            with user_code() as reached:
                code = _code(task)
            if reached.unseen:
                raise NoCanonicalForm(f"files that are read with {min(reached.unseen)} cannot be seen")
            keys = [_key(task, code, call, data) for call in arguments]
        except NoCanonicalForm as reason:
            warnings.warn(f"{what} of {task.__name__} are not stored: {reason}", stacklevel=2)
            chunk_store = None
    results: dict[int, dict[str, Array]] = {}
    with progress(what, len(arguments)) as advance:
        # what the store has
        absent = chunk_store.missing(keys) if chunk_store else set()
        for number, name in enumerate(keys):
            stored = chunk_store.load(name) if chunk_store and name not in absent else None
            if stored is not None:
                results[number] = stored
                advance(1, stored=True)
        # the rest, by the workers
        todo = [number for number in range(len(arguments)) if number not in results]
        prepared = chunk_store.prepared() if chunk_store and todo else nullcontext()
        with prepared:
            place = local_folder(store)
            watching = partial(_done_watched if chunk_store else _done, task, reached)
            unseen = ""
            for position, (result, inputs) in pool.run(watching, [arguments[number] for number in todo], n_jobs, place):
                number = todo[position]
                results[number] = {name: np.asarray(value) for name, value in result.items()}
                unseen = unseen or inputs.unseen
                if chunk_store and not inputs.unseen:
                    # all who share a store go on with the results of whoever was first
                    results[number] = chunk_store.keep(keys[number], results[number], inputs=inputs)
                advance(1)
    if unseen:
        warnings.warn(f"{what} of {task.__name__} are not stored: it {unseen}", stacklevel=2)
    return [results[number] for number in range(len(arguments))]


def _done(task: Callable[..., Any], code: UserCode, *call: Any) -> tuple[Any, Inputs]:
    return task(*call), NOTHING_READ


def _done_watched(task: Callable[..., Any], code: UserCode, *call: Any) -> tuple[Any, Inputs]:
    """Do a task, and watch what it reads."""
    # a function of a script is sent to workers with the values that it names, and has no module there
    is_of_script = task.__module__ == "__main__"
    with watched(replace(code, process=process_name()) if is_of_script else code, partial(_code, task)) as watch:
        result = task(*call)
    return result, watch.inputs


def _code(task: Callable[..., Any]) -> str:
    """Digest all code that a task reaches; for one of ours, whose version is in the key, of its own file."""
    if task.__module__.partition(".")[0] == "leakbound":
        return hashlib.sha256(inspect.getsource(sys.modules[task.__module__]).encode()).hexdigest()
    return digest_of(task, main=True) or ""


def _key(task: Callable[..., Any], code: str, call: tuple[Any, ...], data: str) -> str:
    """Everything that a result depends on; a task whose code has changed is done again."""
    try:
        name = f"{task.__module__}:{task.__qualname__}"
        return key(task=name, source=code, given=call, data=data, leakbound=__version__)
    except TypeError as error:
        raise ValueError(
            f"{task.__name__} cannot be kept in a store: {error}; give numbers and texts, and load arrays in the task"
        ) from None


def _example(epsilon: float) -> dict[str, float]:
    from leakbound.bounds import mip_from_dp

    return {"mip_from_dp": mip_from_dp(epsilon)}
