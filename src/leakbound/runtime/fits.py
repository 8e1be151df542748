"""Fits in chunks: what the store has is read, and the rest is made by the workers.

Rows belong to chunks by their number alone, so that a run that was interrupted finds the same chunks again, and a chunk
has the same name and the same bytes whoever makes it: a process of this machine, a worker of a cluster, or another run
on the same store.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

from leakbound.core.checkpoints import kept_in
from leakbound.core.signals import DIAGNOSTICS
from leakbound.core.types import Points, Release
from leakbound.files import temporary
from leakbound.releases.source_code import (
    NoCanonicalForm,
    UserCode,
    digest_of_classes,
    user_code,
)
from leakbound.runtime import pool
from leakbound.runtime.checkpoints import StoredCheckpoints
from leakbound.runtime.cluster import Engine, WorkerKilled
from leakbound.runtime.execution import Execution
from leakbound.runtime.inputs import NOTHING_READ, Inputs, digest_of_file, watched
from leakbound.runtime.places import local_folder
from leakbound.runtime.progress import progress, silence
from leakbound.runtime.store import Check, Saved, Store, key
from leakbound.version import __version__

if TYPE_CHECKING:
    from leakbound.releases.statistics.statistic import Statistic

Array = np.ndarray
# A worker fits one model at a time: the last bits of a result could depend on what its other threads do.
_ONE_AT_A_TIME = Lock()
_ROWS_ATTRIBUTE = "leakbound_rows"  # of an error: the rows in whose fit it was raised
_MOST_SEEDS = 4  # that an error lists
_LATEST_APPEARANCE = 90.0  # seconds after which a chunk that a worker has stored must be seen here
_POLL, _LONGEST_POLL = 0.2, 5.0  # seconds between two looks for what a worker has stored


@runtime_checkable
class Sets(Protocol):
    """Data sets to be fitted, of which not all need be in memory at once."""

    @property
    def n_fits(self) -> int:
        """How many."""
        ...

    @property
    def fit_seeds(self) -> Int[Array, " m"]:
        """A seed for each of them."""
        ...

    def rows(self, rows: slice) -> Bool[Array, "m N"]:
        """Who is in some of them."""
        ...


@runtime_checkable
class Explained(Protocol):
    """A release that says why it has no description."""

    @property
    def not_stored(self) -> str:
        """The reason; empty where it has a description."""
        ...


def describe_release(
    release: Release | Statistic, depends_on: Sequence[str] = ()
) -> tuple[Mapping[str, Any] | None, str]:
    """Describe a release for the store: by itself, and by the code of its class where that is the user's own."""
    with user_code() as reached:
        description = release.describe()
        if description is None:
            return None, release.not_stored if isinstance(release, Explained) else "it has no description"
        try:
            code = digest_of_classes([type(release)])
        except NoCanonicalForm as reason:
            return None, str(reason)
    if reached.unseen and not depends_on:
        names = ", ".join(sorted(reached.unseen))
        return None, f"files that are read with {names} cannot be seen: name them (depends_on, --depends-on FILE)"
    description = description if code is None else {"release": description, "code": code}
    if depends_on:
        files = {path: digest_of_file(path) for path in depends_on}
        return {"release": description, "depends_on": files}, ""
    return description, ""


@dataclass(frozen=True)
class FitJob:
    """One kind of fit: a release on many subsets of the points, and the signals that are kept of each."""

    release: Release | Statistic
    points: Points
    want: Sequence[str]
    dtype: Literal["float32", "float64"]
    columns: tuple[int, ...]  # shape of an array after its axis of models
    what: str  # "model" or "fit", as messages call it
    # the user's modules as they are in the process that looks for chunks
    code: UserCode = field(default_factory=UserCode)
    depends_on: tuple[str, ...] = ()

    def is_chunk(self, arrays: Mapping[str, Array], n_rows: int) -> bool:
        """Whether a chunk of so many rows has the shapes and dtypes that are made here."""
        leading = (n_rows, *self.columns)
        for name, array in arrays.items():
            # a training's numbers about itself have a row for each model, and no axis of points
            has_shape = array.ndim == 2 and len(array) == n_rows
            if name not in DIAGNOSTICS:
                has_shape = array.shape[: len(leading)] == leading
            if not has_shape or array.dtype != np.dtype(self.dtype):
                return False
        return bool(arrays)

    def key(self, description: Mapping[str, Any], member: Bool[Array, "m N"], row_seeds: Int[Array, " m"]) -> str:
        """Name a chunk of models by all that it depends on.

        The dtype follows from the signals; files that a fit reads are checked in the chunk itself.
        """
        return key(
            release=description,
            data=self.points.digest,
            member=np.packbits(member, axis=1).tobytes().hex(),
            seeds=row_seeds.tolist(),
            signals=list(self.want),
            leakbound=__version__,
        )

    def make(
        self,
        first: int,
        member: Bool[Array, "m N"],
        row_seeds: Int[Array, " m"],
        checkpoints: StoredCheckpoints | None = None,
    ) -> dict[str, Float[Array, "m ..."]]:
        """Make the rows of a chunk and observe their signals: the task of a worker."""
        try:
            with kept_in(checkpoints):
                signals = self.release.observe(self.points, member, row_seeds, self.want)
        except Exception as error:
            setattr(error, _ROWS_ATTRIBUTE, (first, row_seeds))  # it travels with the error from another process
            raise
        arrays = {name: np.asarray(array, dtype=self.dtype) for name, array in signals.items()}
        if arrays and not self.is_chunk(arrays, len(member)):
            shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
            raise ValueError(
                f"{self.release.name} gives arrays of shape {shapes}; they must begin with {len(member), *self.columns}"
            )
        if checkpoints is not None:
            checkpoints.remove()
        return arrays


@dataclass(frozen=True)
class Made:
    """A chunk with what was read while it was made."""

    arrays: dict[str, Array]
    inputs: Inputs


def make_watched(
    job: FitJob,
    first: int,
    member: Bool[Array, "m N"],
    row_seeds: Int[Array, " m"],
    checkpoints: StoredCheckpoints | None,
) -> Made:
    """Make a chunk as `FitJob.make` does, and watch what is read."""
    with watched(job.code, partial(describe_release, job.release), programs=bool(job.depends_on)) as watch:
        arrays = job.make(first, member, row_seeds, checkpoints)
    return Made(arrays, watch.inputs)


def named_rows(what: str, first: int, row_seeds: Int[Array, " m"]) -> str:
    """Name the rows of a chunk for an error, with their seeds.

    >>> named_rows("model", 4, np.array([17])), named_rows("model", 4, np.array([17, 9]))
    ('model 4 (seed 17)', 'models 4 to 5 (seeds 17, 9)')
    """
    listed = ", ".join(str(seed) for seed in row_seeds[:_MOST_SEEDS])
    more = ", ..." if len(row_seeds) > _MOST_SEEDS else ""
    if len(row_seeds) == 1:
        return f"{what} {first} (seed {listed})"
    return f"{what}s {first} to {first + len(row_seeds) - 1} (seeds {listed}{more})"


def finished_chunks(job: FitJob, sets: Sets, execution: Execution) -> Iterator[tuple[slice, Mapping[str, Array]]]:
    """Yield the chunks: those in the store first, then the others as the workers finish them."""
    run = _Run.of(job, sets, execution)
    since, n_made = time.monotonic(), 0
    with progress(f"{job.what}s of {job.release.name}", sets.n_fits) as advance:
        for number, arrays in run.chunks():
            rows = run.rows[number]
            is_stored = number in run.reused
            advance(rows.stop - rows.start, stored=is_stored)
            # the pace is that of what was made: time spent reading the store is none of it
            if is_stored:
                execution.tally.reused += rows.stop - rows.start
                since = time.monotonic()
            else:
                execution.tally.computed += rows.stop - rows.start
                n_made += rows.stop - rows.start
                execution.tally.seconds_a_model[job.release.name] = (time.monotonic() - since) / n_made
            yield rows, arrays


@dataclass(frozen=True)
class Filled:
    """What a store has of the chunks of a release."""

    n_asked: int
    n_made: int
    n_chunks: int
    n_missing: int


def n_chunks_of(release: Release | Statistic, n_fits: int) -> int:
    """Count the chunks into which the rows of a release are divided."""
    return -(-n_fits // release.chunk)


def fill_store(job: FitJob, sets: Sets, execution: Execution, chunks: Sequence[int]) -> Filled:
    """Make chunks that are not in the store, and return nothing but how many."""
    return _Run.of(job, sets, execution).fill(chunks)


@dataclass
class _Run:
    """All chunks of a job, and where they are."""

    job: FitJob
    sets: Sets
    execution: Execution
    rows: Sequence[slice]
    store: Store | None
    keys: Sequence[str]
    reused: set[int] = field(default_factory=set)
    has_made: bool = False
    fills: bool = False

    @classmethod
    def of(cls, job: FitJob, sets: Sets, execution: Execution) -> _Run:
        """Divide the rows into chunks, and name these."""
        size, n_rows = job.release.chunk, sets.n_fits
        rows = [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]
        if execution.store is None:
            return cls(job, sets, execution, rows, None, ())
        with user_code() as code:
            description = describe_release(job.release, execution.depends_on)[0]
        # a release without a description has no names for its chunks
        if description is None:
            return cls(job, sets, execution, rows, None, ())
        job = replace(job, code=code, depends_on=execution.depends_on)
        keys = [job.key(description, sets.rows(chunk), sets.fit_seeds[chunk]) for chunk in rows]
        return cls(job, sets, execution, rows, Store(execution.store), keys)

    def chunks(self) -> Iterator[tuple[int, Mapping[str, Array]]]:
        """Yield the chunks by their numbers: those in the store, then the others."""
        if self.store is None:
            yield from self._make(range(len(self.rows)))
            return
        # what the store has
        written = {entry.name: entry.changed for entry in self.store.ls()}
        todo = []
        for number, name in enumerate(self.keys):
            stored = self._load(number) if name in written else None
            if stored is None:
                todo.append(number)
            else:
                self.execution.tally.written.append(written[name])
                yield number, stored
        # the rest
        if todo and self.execution.from_store:
            self._refuse_missing(todo)
        elif todo:
            with self.store.prepared():
                yield from self._make(todo)
        self.execution.tally.other_machine += self.store.n_other_machine
        self.execution.tally.differing += self.store.n_differing

    def fill(self, wanted: Sequence[int]) -> Filled:
        """Make those of some chunks that the store does not have."""
        if self.store is None:
            raise ValueError(f"{self.job.release.name} cannot be stored: {describe_release(self.job.release)[1]}")
        self.fills = True
        absent = self.store.missing(self.keys)
        # a chunk that is damaged is made again
        todo = [number for number in wanted if self.keys[number] in absent or self._load(number) is None]
        with progress(f"{self.job.what}s of {self.job.release.name}", len(todo)) as advance:
            if todo:
                with self.store.prepared():
                    for _ in self._make(todo):
                        advance(1)
        return Filled(len(wanted), len(todo), len(self.keys), len(self.store.missing(self.keys)))

    def _refuse_missing(self, missing: Sequence[int]) -> None:
        """Refuse chunks that are not there, unless finished models are enough."""
        assert self.store is not None
        if self.execution.from_store == "finished" and len(missing) < len(self.rows):
            return
        n_models = sum(self.rows[number].stop - self.rows[number].start for number in missing)
        first = self.rows[missing[0]]
        instead = "make them (leakbound fit)"
        if len(missing) < len(self.rows):
            instead += ', or take those that are finished (--partial; in Python from_store="finished")'
        raise ValueError(
            f"{n_models:,} of {self.sets.n_fits:,} {self.job.what}s of {self.job.release.name} are not in the store "
            f"{self.store.url}, are damaged, or were made with what has changed since, "
            f"first number {first.start} in chunk {missing[0]}: {instead}"
        )

    def _load(self, number: int) -> Mapping[str, Array] | None:
        """Read a chunk that somebody has stored; None if it is not there, or is damaged."""
        assert self.store is not None
        arrays = self.store.load(self.keys[number], self._has_expected_arrays(number))
        if arrays is not None:
            self.reused.add(number)
        return arrays

    def _has_expected_arrays(self, number: int) -> Check:
        rows = self.rows[number]
        return partial(self.job.is_chunk, n_rows=rows.stop - rows.start)

    def _make(self, numbers: Sequence[int]) -> Iterator[tuple[int, Mapping[str, Array]]]:
        """Make chunks and keep them in the store."""
        engine = self.execution.connect()
        if engine is None:
            made = self._make_here(numbers)
        else:
            made = self._make_by_workers(engine, numbers)
        try:
            for number, arrays in made:
                self.has_made = True
                yield number, arrays
        except Exception as error:
            rows = getattr(error, _ROWS_ATTRIBUTE, None)
            # The rows are named only if another fit has worked: where all fail, they would mislead.
            if rows is not None and (self.has_made or self.reused):
                error.add_note(f"in {named_rows(self.job.what, *rows)}")
            raise

    def _make_here(self, numbers: Sequence[int]) -> Iterator[tuple[int, Mapping[str, Array]]]:
        """Make chunks by processes of this machine."""
        n_jobs, place, store = self.execution.n_jobs, self.execution.temporary_place, self.store
        with self._killed_in_one_line():
            if store is None:
                calls = ((number, self._arguments(number)) for number in numbers)
                yield from pool.run_numbered(self.job.make, calls, len(numbers), n_jobs, place)
                return
            keys, task = self.keys, partial(make_watched, self.job)
            calls = ((number, (*self._arguments(number), StoredCheckpoints(store, keys[number]))) for number in numbers)
            for number, made in pool.run_numbered(task, calls, len(numbers), n_jobs, place):
                arrays = made.arrays
                if self._is_followed(made.inputs) and arrays:
                    # all who share a store go on with the arrays of whoever was first
                    expected = self._has_expected_arrays(number)
                    arrays = store.keep(keys[number], arrays, expected, made.inputs)
                yield number, arrays

    def _is_followed(self, inputs: Inputs) -> bool:
        """Whether all that was read is known, so that a chunk can be stored; if not, the report says why."""
        if not inputs.unseen:
            return True
        name = self.job.release.name
        if self.fills:
            raise ValueError(f"{name} cannot be stored: {inputs.unseen}")
        self.execution.tally.not_stored.setdefault(name, inputs.unseen)
        return False

    def _arguments(self, number: int) -> tuple[int, Bool[Array, "m N"], Int[Array, " m"]]:
        rows = self.rows[number]
        # in one memory order wherever they are used: sums of floating-point numbers may depend on it
        return rows.start, np.ascontiguousarray(self.sets.rows(rows)), self.sets.fit_seeds[rows]

    def _make_by_workers(self, engine: Engine, numbers: Sequence[int]) -> Iterator[tuple[int, Mapping[str, Array]]]:
        """Make chunks by the workers of a cluster, which put them into the store themselves."""
        tally = self.execution.tally
        with self._killed_in_one_line():
            store = self.store
            folder = local_folder(self.execution.store)
            if folder is not None:  # workers may run in another folder than this process
                store = Store(os.path.abspath(folder))
            calls = ((number, self._task(number)) for number in numbers)
            for number, done in engine.run(_make_chunk, (self.job, store), calls):
                if done.arrays is not None:
                    self._is_followed(done.inputs)
                    yield number, done.arrays
                    continue
                assert self.store is not None
                assert done.saved is not None
                tally.other_machine += done.saved.other_machine
                tally.differing += done.saved.differs
                yield number, self._load_from_worker(number)

    def _load_from_worker(self, number: int) -> Mapping[str, Array]:
        """Read a chunk that a worker has stored; a network drive may show it up to a minute later."""
        assert self.store is not None
        pause, end = _POLL, time.monotonic() + _LATEST_APPEARANCE
        while True:
            # files that were read need not be the same here, as long as this worker has read them
            arrays = self.store.load(self.keys[number], self._has_expected_arrays(number), same_inputs=False)
            if arrays is not None:
                return arrays
            if time.monotonic() > end:
                raise OSError(
                    f"a worker has stored a chunk that is not in {self.store.url} here: give a folder that all "
                    "machines share, or a URL"
                )
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_POLL)
            self.store.ls()  # a listing makes the system look again

    def _task(self, number: int) -> tuple[Any, ...]:
        first, member, row_seeds = self._arguments(number)
        name = self.keys[number] if self.store is not None else ""
        return name, first, np.packbits(member, axis=1), member.shape[1], row_seeds, temporary.process_name()

    @contextmanager
    def _killed_in_one_line(self) -> Iterator[None]:
        """Say which rows killed their worker."""
        try:
            yield
        except WorkerKilled as killed:
            (number,) = killed.args
            rows = self.rows[number]
            named = named_rows(self.job.what, rows.start, self.sets.fit_seeds[rows])
            kept = "" if self.store is None else f"; what was finished is in {self.store.url}"
            raise OSError(
                f"two processes or more were killed while they made {named}, as they are when memory runs out: use "
                f"fewer workers or larger machines{kept}"
            ) from None


@dataclass(frozen=True)
class _Done:
    """What a worker returns of a chunk."""

    saved: Saved | None
    arrays: dict[str, Array] | None
    inputs: Inputs = NOTHING_READ


def _make_chunk(
    job_and_store: tuple[FitJob, Store | None],
    name: str,
    first: int,
    packed: UInt8[Array, "m bytes"],
    n_points: int,
    row_seeds: Int[Array, " m"],
    driver: str,
) -> _Done:
    """Make a chunk and put it into the store: the task of a worker of a cluster, which may run twice."""
    with _ONE_AT_A_TIME:
        if temporary.process_name() != driver:  # a thread of the process that has the display is no worker
            silence()
        job, store = job_and_store
        member = np.unpackbits(packed, axis=1, count=n_points).astype(bool)
        checkpoints = StoredCheckpoints(store, name) if store is not None else None
        made: Made = pool.alone(make_watched, (job, first, member, row_seeds, checkpoints))
        arrays, inputs = made.arrays, made.inputs
        # a release that gives none of the signals has nothing to be stored
        if store is None or not arrays or inputs.unseen:
            return _Done(None, arrays, inputs if store is not None else NOTHING_READ)
        saved = store.save(name, arrays, partial(job.is_chunk, n_rows=len(row_seeds)), inputs)
        return _Done(saved, None)
