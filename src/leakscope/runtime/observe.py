"""Make the releases of a game and see them: chunks of rows through the store and the pool, into signals."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int

from leakscope.core import seeds
from leakscope.core.checks import count, known_keywords
from leakscope.core.signals import SIGNALS
from leakscope.core.types import Game, Points, Release, Signals
from leakscope.core.untrusted import in_one_line
from leakscope.data import arrays_of
from leakscope.releases.source_code import NoCanonicalForm, digest_of_classes
from leakscope.reports.about import ExecutionFacts
from leakscope.runtime import pool
from leakscope.runtime.places import local_folder
from leakscope.runtime.progress import progress
from leakscope.runtime.store import Store, key
from leakscope.version import __version__

if TYPE_CHECKING:
    from leakscope.releases.statistics.statistic import Statistic

Array = np.ndarray


@dataclass
class Tally:
    """How many rows of a run came from the store, and how many were computed.

    Parameters
    ----------
    reused, computed : int
    retries : int
        How often a store at a URL was asked again because it did not answer.
    other_machine : int
        Chunks that another kind of machine had stored meanwhile, with other bytes: theirs were used.
    differing : int
        The same of this kind of machine: the release does not give the same bytes every time.
    """

    reused: int = 0
    computed: int = 0
    retries: int = 0
    other_machine: int = 0
    differing: int = 0


@dataclass(frozen=True)
class Execution:
    """Where models are made.

    Parameters
    ----------
    store : path or URL, optional
        Folder or URL where finished chunks stay, see `leakscope.runtime.store.Store`.
    n_jobs : int, optional
        Worker processes; all cores unless given.
    tmp : path, optional
        Where the workers' temporary files lie; in the store unless given. In the system's folder for temporary files
        without a store, and with one at a URL.
    tally : Tally
        What was done here; it grows with every row.
    """

    store: str | os.PathLike[str] | None = None
    n_jobs: int | None = None
    tmp: str | os.PathLike[str] | None = None
    tally: Tally = field(default_factory=Tally, compare=False)

    @property
    def facts(self) -> ExecutionFacts | None:
        """What a report says of the run: with a store, how many models came from it; nothing without one."""
        if self.store is None:
            return None
        tally = self.tally
        return ExecutionFacts(
            reused=tally.reused,
            made=tally.computed,
            retries=tally.retries,
            other_machine=tally.other_machine,
            differing=tally.differing,
        )

    @property
    def temporary_place(self) -> str | os.PathLike[str] | None:
        """The folder that holds the temporary one; None for that of the system."""
        return local_folder(self.store) if self.tmp is None else self.tmp


@runtime_checkable
class Explained(Protocol):
    """A release that says why it has no description."""

    @property
    def not_stored(self) -> str:
        """The reason; empty where it has a description."""
        ...


def not_stored(releases: Sequence[Release | Statistic], execution: Execution) -> Iterator[str]:
    """Say of each release whose models a store does not keep why that is so; nothing where no store is used.

    Parameters
    ----------
    releases : sequence of Release
    execution : Execution

    Yields
    ------
    str
        A sentence for the notes of a report.
    """
    if execution.store is None:
        return
    for release in releases:
        description, reason = describe_release(release)
        if description is None:
            yield f"{release.name} is not stored: {reason}"


def describe_release(release: Release | Statistic) -> tuple[Mapping[str, Any] | None, str]:
    """Describe a release for the store: by itself, and by the code of its class where that is the user's own.

    Parameters
    ----------
    release : Release

    Returns
    -------
    mapping or None
        None where two runs could not agree on it.
    str
        Why it has no description; empty where it has one.
    """
    description = release.describe()
    if description is None:
        return None, release.not_stored if isinstance(release, Explained) else "it has no description"
    try:
        code = digest_of_classes([type(release)])
    except NoCanonicalForm as reason:
        return None, str(reason)
    return (description if code is None else {"release": description, "code": code}), ""


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


@dataclass(frozen=True, eq=False)
class DataSets:
    """Data sets that are listed.

    Parameters
    ----------
    member : bool array of shape (m, N)
    fit_seeds : array of shape (m,)
    """

    member: Bool[Array, "m N"]
    fit_seeds: Int[Array, " m"]

    @classmethod
    def listed(cls, member: Bool[Array, "m N"], seed: int) -> DataSets:
        """With the seed stream ("train", row) for each row."""
        return cls(member, np.array([seeds.integer(seed, "train", row) for row in range(len(member))]))

    @property
    def n_fits(self) -> int:
        """Rows of member."""
        return len(self.member)

    def rows(self, rows: slice) -> Bool[Array, "m N"]:
        """Those rows."""
        return self.member[rows]


def observe(
    release: Release,
    points: Points,
    member: Bool[Array, "M N"],
    want: Sequence[str],
    seed: int = 0,
    execution: Execution = Execution(),
) -> dict[str, Float[Array, "M N ..."]]:
    """Observe the wanted signals of a release in every row of a game's ``member``.

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
    execution : Execution
        Store and workers.

    Returns
    -------
    mapping of str to array of shape (M, N, ...)
        float32, point-major in memory.

    Raises
    ------
    ValueError
        If the release gives a signal for some models and not for others, or of another shape.
    """
    arrays: dict[str, Array] = {}
    placed: dict[str, Bool[Array, " M"]] = {}
    sets = DataSets.listed(member, seed)
    job = _Job(release, points, sorted(want), "float32", (len(points),))
    for rows, signals in _finished(job, sets, "models", execution):
        _place(arrays, signals, rows, len(member))
        for name in signals:
            placed.setdefault(name, np.zeros(len(member), dtype=bool))[rows] = True
    for name, rows_with in placed.items():
        if not rows_with.all():
            raise ValueError(
                f"{release.name}: the signal {name!r} is missing of {np.count_nonzero(~rows_with):,} of "
                f"{len(member):,} models; a release must give the same signals of every model"
            )
    return arrays


@known_keywords()
def signals_of(
    release: Release,
    points: Points,
    game: Game,
    want: Sequence[str],
    *,
    seed: int = 0,
    store: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    tmp: str | os.PathLike[str] | None = None,
) -> Signals:
    """Make the releases of a game and see them: what an audit does before it attacks.

    Parameters
    ----------
    release : Release
        As ``leakscope.releases.Estimator(model)`` or ``leakscope.releases.Network(make)``.
    points : Points
    game : Game
        Whose ``member`` has a column for each point.
    want : sequence of str
        Names of signals; those that the release cannot give are left out.
    seed : int
    store : path or URL, optional
        Folder where finished models' signals stay, or a URL such as ``s3://bucket/folder``.
    n_jobs : int, optional
        Worker processes; all cores unless given.
    tmp : path, optional
        Where the workers' temporary files lie, among them the data; in the store unless given, if it is a folder.

    Returns
    -------
    Signals
        What the attacks read, of every model of the game.

    Examples
    --------
    >>> import leakscope as ls
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> points = ls.data.from_arrays(*make_classification(60, random_state=0))
    >>> game = ls.games.half_split(60, 8, seed=0)
    >>> signals = ls.signals_of(ls.releases.Estimator(DecisionTreeClassifier()), points, game, ["loss"], n_jobs=1)
    >>> ls.metrics.auc(ls.attacks.ATTACKS["loss"](signals)).value > 0.6
    True
    """
    arrays = observe(release, points, game.member, want, seed, Execution(store, n_jobs, tmp))
    return Signals.observed(game, points, arrays)


def outputs(
    statistic: Statistic, points: Points, sets: Sets, execution: Execution = Execution()
) -> Float[Array, "m d"]:
    """Compute a statistic on many data sets, by the same chunks, store and workers as the models of an audit.

    Parameters
    ----------
    statistic : Statistic
    points : Points
    sets : object with ``n_fits``, ``rows(slice)`` and ``fit_seeds``
        The m data sets: a sampled coupling, or `DataSets`.
    execution : Execution

    Returns
    -------
    array of shape (m, d)
        float64; NaN in the rows where the statistic could not be computed.
    """
    n_numbers = len(statistic.labels(points))
    values = np.full((sets.n_fits, n_numbers), np.nan)
    job = _Job(statistic, points, ["output"], "float64", (n_numbers,))
    for rows, chunk in _finished(job, sets, "fits", execution):
        values[rows] = chunk["output"]
    return values


@in_one_line
def read_signals(path: str | os.PathLike[str]) -> Signals:
    """Signals from an ``.npz`` file with ``member`` (M, N) and arrays named like signals.

    Optional arrays: ``is_target_point`` (N,), all points that are in some model and out of another unless given,
    ``n_targets``, all models unless given, and with ``log_prob`` (M, N, K) the class indices ``labels`` (N,).

    Raises
    ------
    ValueError
        If an array is missing, unknown, or of the wrong shape.
    """
    path = os.fspath(path)
    arrays = arrays_of(path)
    if "member" not in arrays:
        raise ValueError(f"{path}: no array 'member' (M, N); arrays: {', '.join(arrays)}")
    member = _truths(path, "member", np.atleast_2d(arrays.pop("member")))
    if member.ndim != 2:
        raise ValueError(f"{path}: member must have shape (M, N), got {member.shape}")
    n_targets = count(f"{path}: n_targets", arrays.pop("n_targets", np.array(len(member))).tolist())
    mixed = np.asarray((member != member[0]).any(axis=0)) if len(member) > 1 else np.ones(member.shape[1])
    is_target_point = _truths(path, "is_target_point", arrays.pop("is_target_point", mixed))
    labels = arrays.pop("labels", None)
    if not is_target_point.any():
        raise ValueError(f"{path}: there is no target point, or each one is in all models or in none: nothing to guess")
    if not arrays:
        raise ValueError(f"{path}: no signals in addition to member; known: {', '.join(SIGNALS)}")
    for name, array in arrays.items():
        # only an attack of the user's could read an unknown signal, and a file has none; logits are refused later
        if name not in {*SIGNALS, "logits"}:
            raise ValueError(f"unknown signal {name!r}; known: {', '.join(SIGNALS)}")
        if array.dtype.kind not in "biuf":
            raise ValueError(f"{path}: {name} must hold numbers, got {array.dtype}")
    game = Game("signals", member, is_target_point, n_targets)
    with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, and is refused as that
        signals = {name: np.asarray(array, dtype=np.float32) for name, array in arrays.items()}
    return Signals(replace(game, prior=float(game.target_member.mean())), None, signals, labels)


def _truths(path: str, name: str, values: Array) -> Array:
    if not np.isin(values, (0, 1)).all():
        raise ValueError(f"{path}: {name} must hold truth values, or 0 and 1")
    return values.astype(bool)


@dataclass(frozen=True)
class _Job:
    """What is made of every data set."""

    release: Release | Statistic
    points: Points
    want: Sequence[str]
    dtype: Literal["float32", "float64"]
    columns: tuple[int, ...]  # of every array, behind its rows; further axes are free

    def fits(self, arrays: Mapping[str, Array], n_rows: int) -> bool:
        """Whether a chunk of so many rows has the shapes and dtypes that are made here."""
        leading = (n_rows, *self.columns)
        return bool(arrays) and all(
            array.shape[: len(leading)] == leading and array.dtype == np.dtype(self.dtype) for array in arrays.values()
        )

    def key(self, description: Mapping[str, Any], member: Bool[Array, "m N"], row_seeds: Int[Array, " m"]) -> str:
        """Everything that a chunk depends on, with the description of the release."""
        return key(
            release=description,
            data=self.points.digest,
            member=np.packbits(member, axis=1).tobytes().hex(),
            seeds=row_seeds.tolist(),
            signals=list(self.want),
            leakscope=__version__,
        )

    def make(self, member: Bool[Array, "m N"], row_seeds: Int[Array, " m"]) -> dict[str, Float[Array, "m ..."]]:
        """Make the rows of a chunk and observe their signals: the task of a worker."""
        signals = self.release.observe(self.points, member, row_seeds, self.want)
        arrays = {name: np.asarray(array, dtype=self.dtype) for name, array in signals.items()}
        if arrays and not self.fits(arrays, len(member)):
            shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
            raise ValueError(
                f"{self.release.name} gives arrays of shape {shapes}; they must begin with {len(member), *self.columns}"
            )
        return arrays


@dataclass(frozen=True)
class _Tasks(Sequence[tuple[Bool[Array, "m N"], Int[Array, " m"]]]):
    """The arguments of each chunk, made when a worker takes them."""

    sets: Sets
    chunks: Sequence[slice]

    def __len__(self) -> int:
        return len(self.chunks)

    def __getitem__(self, number: Any) -> Any:
        rows = self.chunks[number]
        return self.sets.rows(rows), self.sets.fit_seeds[rows]


def _finished(job: _Job, sets: Sets, what: str, execution: Execution) -> Iterator[tuple[slice, Mapping[str, Array]]]:
    """Yield the chunks: those in the store first, then the others as the workers finish them."""
    # Rows belong to chunks by their index alone: a run that was interrupted finds the same chunks again.
    size, n_rows = job.release.chunk, sets.n_fits
    chunks = [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]
    description = describe_release(job.release)[0] if execution.store is not None else None
    store = Store(execution.store) if execution.store is not None and description is not None else None
    with progress(f"{what} of {job.release.name}", n_rows) as advance:
        names = [job.key(description or {}, *arguments) for arguments in _Tasks(sets, chunks)] if store else []
        absent = store.missing(names) if store else set()
        missing, keys = [], []
        for rows, name in zip(chunks, names, strict=False):
            fits = partial(job.fits, n_rows=rows.stop - rows.start)
            stored = store.load(name, fits) if store and name not in absent else None
            if stored is None:
                missing.append(rows)
                keys.append(name)
            else:
                advance(rows.stop - rows.start, stored=True)
                execution.tally.reused += rows.stop - rows.start
                yield rows, stored
        todo = missing if store else chunks
        with store.prepared() if store and missing else nullcontext():
            for number, signals in pool.run(job.make, _Tasks(sets, todo), execution.n_jobs, execution.temporary_place):
                rows = todo[number]
                if store:
                    # all who share a store go on with the arrays of whoever was first
                    signals = store.keep(keys[number], signals, partial(job.fits, n_rows=rows.stop - rows.start))
                advance(rows.stop - rows.start)
                execution.tally.computed += rows.stop - rows.start
                yield rows, signals
        if store:
            execution.tally.retries += store.retries
            execution.tally.other_machine += store.n_other_machine
            execution.tally.differing += store.n_differing


def _place(arrays: dict[str, Array], signals: Mapping[str, Array], rows: slice, n_models: int) -> None:
    """Fill a chunk's rows into the point-major arrays."""
    for name, chunk in signals.items():
        if name not in arrays:
            shape = (chunk.shape[1], n_models, *chunk.shape[2:])
            arrays[name] = np.full(shape, np.nan, dtype=np.float32).swapaxes(0, 1)  # what is not placed is no number
        arrays[name][rows] = chunk
