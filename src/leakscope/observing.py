"""Make the releases of a game and see them: chunks of rows through the store and the pool, into signals."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from leakscope import pool, seeds
from leakscope.checks import count
from leakscope.data import arrays_of
from leakscope.store import Store, key
from leakscope.types import SIGNALS, Game, Points, Release, Signals
from leakscope.version import __version__

Array = np.ndarray


@dataclass(frozen=True)
class Workshop:
    """Where models are made.

    Parameters
    ----------
    store : path, optional
        Folder where finished chunks stay.
    jobs : int, optional
        Worker processes; all cores unless given.
    """

    store: str | os.PathLike[str] | None = None
    jobs: int | None = None


def observe(
    release: Release,
    points: Points,
    member: Bool[Array, "M N"],
    want: Sequence[str],
    seed: int = 0,
    workshop: Workshop = Workshop(),
) -> dict[str, Float[Array, "M N ..."]]:
    """The wanted signals of a release in every row of a game's ``member``.

    Rows belong to chunks by their number alone, so that a chunk is the same whatever is there already and
    whatever the number of workers.

    Parameters
    ----------
    release : Release
    points : Points
    member : bool array of shape (M, N)
    want : sequence of str
        Names of signals; those that the release cannot give are left out.
    seed : int
        Row m is made with the seed stream ("train", m).
    workshop : Workshop
        Store and workers.

    Returns
    -------
    mapping of str to array of shape (M, N, ...)
        float32, point-major in memory.
    """
    want, n_models = sorted(want), len(member)
    chunks = [slice(start, min(start + release.chunk, n_models)) for start in range(0, n_models, release.chunk)]
    description = release.describe()
    shelf = Store(workshop.store) if workshop.store is not None and description is not None else None
    arrays: dict[str, Array] = {}
    missing = []
    for rows in chunks:
        found = shelf.load(_key(release, points, member[rows], _row_seeds(seed, rows), want)) if shelf else None
        if found is None:
            missing.append(rows)
        else:
            _place(arrays, found, rows, n_models)
    if shelf and missing and shelf.folder.is_dir():
        shelf.sweep()
    tasks = [(release, points, member[rows], _row_seeds(seed, rows), want) for rows in missing]
    with _progress(release.name, n_models) as advance:
        advance(n_models - sum(rows.stop - rows.start for rows in missing))
        for number, made in pool.run(_chunk, tasks, workshop.jobs):
            if shelf:
                shelf.save(_key(release, points, *tasks[number][2:]), made)
            _place(arrays, made, missing[number], n_models)
            advance(missing[number].stop - missing[number].start)
    return arrays


def read_signals(path: str) -> Signals:
    """Signals from an ``.npz`` file with ``member`` (M, N) and arrays named like signals.

    Optional arrays: ``judged`` (N,), all points that are in some model and out of another unless given, and
    ``n_targets``, all models unless given.

    Raises
    ------
    ValueError
        If an array is missing, unknown, or of the wrong shape.
    """
    arrays = arrays_of(path)
    if "member" not in arrays:
        raise ValueError(f"{path}: no array 'member' (M, N); arrays: {', '.join(arrays)}")
    member = _truths(path, "member", np.atleast_2d(arrays.pop("member")))
    if member.ndim != 2:
        raise ValueError(f"{path}: member must have shape (M, N), got {member.shape}")
    n_targets = count(f"{path}: n_targets", arrays.pop("n_targets", np.array(len(member))).tolist())
    mixed = np.asarray((member != member[0]).any(axis=0)) if len(member) > 1 else np.ones(member.shape[1])
    judged = _truths(path, "judged", arrays.pop("judged", mixed))
    if not judged.any():
        raise ValueError(f"{path}: no point is judged, or each one is in all models or in none: nothing to guess")
    if not arrays:
        raise ValueError(f"{path}: no signals beside member; known: {', '.join(SIGNALS)}")
    for name, array in arrays.items():
        if array.dtype.kind not in "biuf":
            raise ValueError(f"{path}: {name} must hold numbers, got {array.dtype}")
    game = Game("signals", member, judged, n_targets)
    with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, and is refused as that
        signals = {name: np.asarray(array, dtype=np.float32) for name, array in arrays.items()}
    return Signals(replace(game, prior=float(game.target_member.mean())), None, signals)


def _truths(path: str, name: str, values: Array) -> Array:
    if not np.isin(values, (0, 1)).all():
        raise ValueError(f"{path}: {name} must hold truth values, or 0 and 1")
    return values.astype(bool)


def _chunk(
    release: Release, points: Points, member: Bool[Array, "m N"], row_seeds: Array, want: Sequence[str]
) -> dict[str, Float[Array, "m N ..."]]:
    """What a worker does: make the rows of a chunk and see them, in float32."""
    seen = release.observe(points, member, row_seeds, want)
    return {name: np.asarray(array, dtype=np.float32) for name, array in seen.items()}


def _row_seeds(seed: int, rows: slice) -> Array:
    return np.array([seeds.integer(seed, "train", row) for row in range(rows.start, rows.stop)])


def _key(release: Release, points: Points, member: Bool[Array, "m N"], row_seeds: Array, want: Sequence[str]) -> str:
    """Everything that a chunk depends on."""
    return key(
        release=release.describe(),
        data=points.digest,
        member=np.packbits(member, axis=1).tobytes().hex(),
        seeds=row_seeds.tolist(),
        signals=list(want),
        leakscope=__version__,
    )


def _place(arrays: dict[str, Array], made: Mapping[str, Array], rows: slice, n_models: int) -> None:
    """Fill a chunk's rows into the point-major arrays."""
    for name, chunk in made.items():
        if name not in arrays:
            shape = (chunk.shape[1], n_models, *chunk.shape[2:])
            arrays[name] = np.zeros(shape, dtype=np.float32).swapaxes(0, 1)
        arrays[name][rows] = chunk


@contextmanager
def _progress(name: str, total: int) -> Iterator[Callable[[int], Any]]:
    """A bar on standard error, silent where that is not a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(f"models of {name}", total=total)
        yield lambda rows: bar.update(task, advance=rows)
