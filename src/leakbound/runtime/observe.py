"""Make the releases of a game and see them: chunks of rows through the store and the pool, into signals."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from leakbound.core import seeds
from leakbound.core.checks import count, known_keywords, printable
from leakbound.core.signals import DIAGNOSTICS, SIGNALS, precision_of
from leakbound.core.types import Game, Points, Release, Signals
from leakbound.data import arrays_of
from leakbound.files.signal_files import ModelWriter, open_signals
from leakbound.files.system import writable_by_anybody
from leakbound.files.untrusted import in_one_line
from leakbound.runtime.execution import Execution, Tally
from leakbound.runtime.fits import Filled, FitJob, Sets, describe_release, fill_store, finished_chunks

if TYPE_CHECKING:
    from leakbound.releases.statistics.statistic import Statistic

Array = np.ndarray
__all__ = [
    "DataSets",
    "Execution",
    "Sets",
    "Tally",
    "fill",
    "observe",
    "observe_finished",
    "outputs",
    "read_signals",
    "signals_of",
    "store_notes",
    "write_signals",
]


def store_notes(releases: Sequence[Release | Statistic], execution: Execution) -> Iterator[str]:
    """Say what is to be known of a store: releases whose models it does not keep, and who could change the others."""
    if execution.store is None:
        return
    with suppress(OSError, ValueError):  # a URL, or a folder that is made later, for its owner alone
        if mode := writable_by_anybody(os.stat(execution.store)):
            yield (
                f"The folder of the store can be written by every user of the machine (mode {mode}): any of them could "
                "put other models there. chmod o-w closes it"
            )
    for release in releases:
        _, reason = describe_release(release, execution.depends_on)
        reason = reason or execution.tally.not_stored.get(release.name, "")
        if reason:
            yield f"{release.name} is not stored: {reason}"


@dataclass(frozen=True, eq=False)
class DataSets:
    """Data sets that are listed."""

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
) -> dict[str, Float[Array, "M ..."]]:
    """Observe the wanted signals of a release in every row of a game's ``member``.

    Rows belong to chunks by their number alone, so that a chunk is the same whatever is there already and
    whatever the number of workers.
    """
    job, sets = _models(release, points, member, want, seed)
    arrays, is_made = _observed_rows(job, sets, execution)
    if not is_made.all():  # of finished models alone `observe_finished` is asked
        raise ValueError(f"{release.name}: {np.count_nonzero(~is_made):,} models are not in the store")
    return arrays


def observe_finished(
    release: Release,
    points: Points,
    member: Bool[Array, "M N"],
    want: Sequence[str],
    seed: int,
    execution: Execution,
) -> tuple[dict[str, Float[Array, "m ..."]], Bool[Array, " M"]]:
    """Do the same with the models that are in the store, where some are not."""
    job, sets = _models(release, points, member, want, seed)
    arrays, is_made = _observed_rows(job, sets, execution)
    return {name: values[is_made] for name, values in arrays.items()}, is_made


def fill(
    release: Release,
    points: Points,
    member: Bool[Array, "M N"],
    want: Sequence[str],
    seed: int,
    execution: Execution,
    chunks: Sequence[int],
) -> Filled:
    """Make some chunks of the models that `observe` would make, and leave them in the store."""
    return fill_store(*_models(release, points, member, want, seed), execution, chunks)


def write_signals(
    folder: str | os.PathLike[str],
    release: Release,
    points: Points,
    game: Game,
    want: Sequence[str],
    seed: int,
    execution: Execution,
) -> None:
    """Write the signals that `observe` would return to a folder, some models at a time."""
    job, sets = _models(release, points, game.member, want, seed)
    with ModelWriter(folder, game.member, game.is_target_point, n_targets=game.n_targets) as writer:
        for rows, arrays in finished_chunks(job, sets, execution):
            writer.add(rows, {name: array for name, array in arrays.items() if name in SIGNALS})


def _models(
    release: Release, points: Points, member: Bool[Array, "M N"], want: Sequence[str], seed: int
) -> tuple[FitJob, DataSets]:
    """Describe what is made of each row of a game, and the rows."""
    job = FitJob(release, points, sorted(want), getattr(release, "dtype", "float32"), (len(points),), "model")
    return job, DataSets.listed(member, seed)


def _observed_rows(
    job: FitJob, sets: DataSets, execution: Execution
) -> tuple[dict[str, Float[Array, "M ..."]], Bool[Array, " M"]]:
    """Place the signals of the models, and tell which models there are."""
    arrays: dict[str, Array] = {}
    placed: dict[str, Bool[Array, " M"]] = {}
    n_models = sets.n_fits
    is_made = np.zeros(n_models, dtype=bool)
    # chunks come in any order; which models have which signal is remembered
    for rows, signals in finished_chunks(job, sets, execution):
        _place(arrays, signals, rows, n_models)
        is_made[rows] = True
        for name in signals:
            placed.setdefault(name, np.zeros(n_models, dtype=bool))[rows] = True
    for name, rows_with in placed.items():
        n_without = np.count_nonzero(is_made & ~rows_with)
        if n_without:
            raise ValueError(
                f"{job.release.name}: the signal {name!r} is missing of {n_without:,} of {n_models:,} models; a "
                "release must give the same signals of every model"
            )
    return arrays, is_made


@known_keywords()
def signals_of(
    release: Release,
    points: Points,
    game: Game,
    want: Sequence[str],
    *,
    seed: int = 0,
    store: str | os.PathLike[str] | None = None,
    n_jobs: Any = None,
) -> Signals:
    """Make the releases of a game and see them: what an audit does before it attacks.

    Source: azize2024, algorithms 2 and 4.

    Parameters
    ----------
    release : Release
        As ``leakbound.releases.Estimator(model)`` or ``leakbound.releases.Network(make)``.
    points : Points
    game : Game
        Whose ``member`` has a column for each point.
    want : sequence of str
        Names of signals; those that the release cannot give are left out.
    seed : int
    store : path or URL, optional
        Folder where finished models' signals stay, or a URL such as ``s3://bucket/folder``.
    n_jobs : int, str or distributed.Client, optional
        Worker processes, all cores unless given; or a cluster, as in `leakbound.audit`.

    Returns
    -------
    Signals
        What the attacks read, of every model of the game.

    Examples
    --------
    >>> import leakbound as ls
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> points = ls.data.from_arrays(*make_classification(60, random_state=0))
    >>> game = ls.games.half_split(60, 8, seed=0)
    >>> signals = ls.signals_of(ls.releases.Estimator(DecisionTreeClassifier()), points, game, ["loss"], n_jobs=1)
    >>> ls.metrics.auc(ls.attacks.ATTACKS["loss"](signals)).value > 0.6
    True
    """
    arrays = observe(release, points, game.member, want, seed, Execution.of(store, n_jobs))
    of_points = {name: array for name, array in arrays.items() if name not in DIAGNOSTICS}
    return Signals.observed(game, points, of_points)


def outputs(
    statistic: Statistic, points: Points, sets: Sets, execution: Execution = Execution()
) -> Float[Array, "m d"]:
    """Compute a statistic on many data sets, by the same chunks, store and workers as the models of an audit."""
    n_numbers = len(statistic.labels(points))
    values = np.full((sets.n_fits, n_numbers), np.nan)
    job = FitJob(statistic, points, ["output"], "float64", (n_numbers,), "fit")
    for rows, chunk in finished_chunks(job, sets, execution):
        values[rows] = chunk["output"]
    return values


KEYS = ("member", "is_target_point", "n_targets", "sampling", "labels")  # of a file of signals, besides the signals


@in_one_line
def read_signals(path: str | os.PathLike[str], sampling: Literal["fixed", "poisson"] | None = None) -> Signals:
    """Signals from a folder of them (`open_signals`), or from an ``.npz`` file with ``member`` (M, N) and signals.

    Optional arrays: ``is_target_point`` (N,), all points that are in some model and out of another unless given,
    ``n_targets``, all models unless given, ``sampling``, the word fixed (unless given) or poisson, and with
    ``log_prob`` (M, N, K) the class indices ``labels`` (N,).
    """
    path = os.fspath(path)
    if os.path.isdir(path):
        signals = open_signals(path)
        return signals if sampling is None else replace(signals, game=replace(signals.game, sampling=sampling))
    arrays = arrays_of(path)
    if "member" not in arrays:
        raise ValueError(f"{path}: no array 'member' (M, N); arrays: {', '.join(arrays)}")
    member = _truths(path, "member", np.atleast_2d(arrays.pop("member")))
    if member.ndim != 2:
        raise ValueError(f"{path}: member must have shape (M, N), got {member.shape}")
    n_targets = count(f"{path}: n_targets", arrays.pop("n_targets", np.array(len(member))).tolist())
    mixed = np.asarray((member != member[0]).any(axis=0)) if len(member) > 1 else np.ones(member.shape[1])
    is_target_point = _truths(path, "is_target_point", arrays.pop("is_target_point", mixed))
    sampling = _sampling(path, arrays.pop("sampling", None), sampling)
    labels = arrays.pop("labels", None)
    if not is_target_point.any():
        raise ValueError(f"{path}: there is no target point, or each one is in all models or in none: nothing to guess")
    if not arrays:
        raise ValueError(f"{path}: no signals in addition to member; known: {', '.join(SIGNALS)}")
    for name, array in arrays.items():
        # only an attack of the user's could read an unknown signal, and a file has none; logits are refused later
        if name not in {*SIGNALS, "logits"}:
            near = get_close_matches(name, [*KEYS, *SIGNALS], 1)
            steps = [signal for signal in SIGNALS if signal.startswith("step_")]
            known = [*KEYS, *(signal for signal in SIGNALS if signal not in steps)]  # the line has 300 characters
            raise ValueError(
                f"{path}: unknown array {name!r}{f' (did you mean {near[0]!r}?)' if near else ''}; known: "
                f"{', '.join(known)}, step_*"
            )
        if array.dtype.kind not in "biuf":
            raise ValueError(f"{path}: {name} must hold numbers, got {array.dtype}")
    game = Game("signals", member, is_target_point, n_targets, sampling=sampling)
    if labels is not None and labels.shape == (len(member),) != (member.shape[1],):
        raise ValueError(
            f"{path}: member has {len(member):,} models (its first axis) and {member.shape[1]:,} records (its second), "
            f"and there are {len(labels):,} labels, which are of records: transpose member and the signals"
        )
    with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, and is refused as that
        signals = {name: np.asarray(array, dtype=precision_of(name)) for name, array in arrays.items()}
    return Signals(replace(game, prior=float(game.target_member.mean())), None, signals, labels)


def _sampling(path: str, of_file: Array | None, asked: str | None) -> Literal["fixed", "poisson"]:
    """Say how members were drawn, by the file or by who reads it."""
    words = ("fixed", "poisson")
    if of_file is not None:
        word = str(of_file) if of_file.dtype.kind == "U" and of_file.ndim == 0 else None
        if word not in words:
            raise ValueError(f"{path}: sampling must be the word fixed or poisson, got {printable(str(of_file))[:40]}")
        if asked not in (None, word):
            raise ValueError(f"{path} says sampling={word}, and {asked} was asked for; leave one of them out")
        asked = word
    return "poisson" if asked == "poisson" else "fixed"


def _truths(path: str, name: str, values: Array) -> Array:
    if not np.isin(values, (0, 1)).all():
        raise ValueError(f"{path}: {name} must hold truth values, or 0 and 1")
    return values.astype(bool)


def _place(arrays: dict[str, Array], signals: Mapping[str, Array], rows: slice, n_models: int) -> None:
    """Fill a chunk's rows into the point-major arrays."""
    for name, chunk in signals.items():
        if name not in arrays:
            shape = (chunk.shape[1], n_models, *chunk.shape[2:])
            arrays[name] = np.full(shape, np.nan, dtype=chunk.dtype).swapaxes(0, 1)  # what is not placed is no number
        arrays[name][rows] = chunk
