"""A task for many arguments, by the pool; what is finished stays in the store, so that a killed study goes on."""

from __future__ import annotations

import hashlib
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Shaped

from leakscope import pool
from leakscope.observing import progress
from leakscope.store import Store, key
from leakscope.version import __version__

Array = np.ndarray


def repeat(
    task: Callable[..., Mapping[str, Any]],
    arguments: Sequence[tuple[Any, ...]],
    *,
    what: str = "runs",
    data: str = "",
    store: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
) -> list[dict[str, Shaped[Array, ...]]]:
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
    store : path, optional
        Folder where finished results stay, under the hash of the task's name and file, of its arguments, of the data
        and of this version of leakscope.
    jobs : int, optional
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
    >>> import leakscope as ls
    >>> [round(result["mip_from_dp"].item(), 4) for result in ls.repeat(_example, [(0.0,), (1.0,)], jobs=1)]
    [0.0, 0.2311]
    """
    shelf = Store(store) if store is not None else None
    keys = [_key(task, given, data) for given in arguments] if shelf else []
    made: dict[int, dict[str, Array]] = {}
    with progress(what, len(arguments)) as advance:
        for number, name in enumerate(keys):
            found = shelf.load(name) if shelf else None
            if found is not None:
                made[number] = found
                advance(1)
        todo = [number for number in range(len(arguments)) if number not in made]
        if shelf and todo and shelf.folder.is_dir():
            shelf.sweep()
        for position, result in pool.run(task, [arguments[number] for number in todo], jobs):
            number = todo[position]
            made[number] = {name: np.asarray(value) for name, value in result.items()}
            if shelf:
                shelf.save(keys[number], made[number])
            advance(1)
    return [made[number] for number in range(len(arguments))]


def _key(task: Callable[..., Any], given: tuple[Any, ...], data: str) -> str:
    """Everything that a result depends on; a task whose file has changed is done again."""
    file = inspect.getsourcefile(task)
    source = hashlib.sha256(Path(file).read_bytes()).hexdigest() if file and os.path.isfile(file) else ""
    try:
        name = f"{task.__module__}:{task.__qualname__}"
        return key(task=name, source=source, given=given, data=data, leakscope=__version__)
    except TypeError as error:
        raise ValueError(
            f"{task.__name__} cannot be kept in a store: {error}; give numbers and texts, and load arrays in the task"
        ) from None


def _example(epsilon: float) -> dict[str, float]:
    from leakscope.bounds import mip_from_dp

    return {"mip_from_dp": mip_from_dp(epsilon)}
