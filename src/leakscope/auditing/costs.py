"""What an audit would do and cost, estimated from one fit before hours are spent."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool

from leakscope import data
from leakscope.attacks import Attack
from leakscope.attacks.attribute import strategies
from leakscope.auditing.attribute.game import imputation, lay_out
from leakscope.auditing.attribute.run import of_records, refuse_unanswerable, signals_of
from leakscope.auditing.canaries import Setting, all_planned, attacks_on, is_private
from leakscope.auditing.rehearsal import Rehearsal, refuse_idle
from leakscope.auditing.run import claims_of, promise, setting
from leakscope.auditing.setup import draw, queried
from leakscope.core import seeds
from leakscope.core.signals import SIGNALS
from leakscope.core.stopwatch import timed
from leakscope.core.types import Points
from leakscope.data import Data
from leakscope.data.slices import refuse_without_groups
from leakscope.plans.audits import AuditPlan
from leakscope.releases.estimator import Estimator
from leakscope.releases.factory import Described
from leakscope.runtime import pool
from leakscope.runtime.execution import Execution

Array = np.ndarray
FEW = 10  # steps of DP-SGD from which the cost of all is extrapolated
PART = 4  # of a model that takes too long, one of a quarter of the records is fitted
FEWEST_OF_A_PART = 20  # records
MOST_SECONDS = 20.0  # of all fits of a dry run together
OF_THE_FIRST = 0.6  # of that time, at most, is for the fit of all records
FASTER, SLOWER = 1.5, 2.0  # than one fit, the average of all fits may be
USEFUL = 30 * 86_400.0  # seconds: who would wait longer than that


@dataclass(frozen=True)
class Fit:
    """What one model costs.

    Parameters
    ----------
    seconds : float
        That it takes, or at least takes, or what its beginning lets expect.
    n_bytes : int or None
        Of its signals in the store; None if it was ended before they were seen.
    warned : tuple of str
        What its fit warns of.
    shapes : mapping of str to tuple of int, or None
        The signals that it gives, with the lengths of their axes behind (M, N).
    slowest : float or None
        Seconds that it takes at most, as far as one can tell; None if nobody can.
    how : str
        How it was measured.
    is_whole : bool
        Whether it came to its end.
    """

    seconds: float
    n_bytes: int | None
    warned: tuple[str, ...] = ()
    shapes: Mapping[str, tuple[int, ...]] | None = None
    slowest: float | None = None
    how: str = "one fit"
    is_whole: bool = True

    def lines(self, name: str, fits: Fits) -> Iterator[str]:
        """Yield a line about all models, and one for each warning."""
        models = f"{fits.n_models:,} model{'' if fits.n_models == 1 else 's'}"
        yield f"{name}: {models}, {self._each()}, {self._all(fits)}, {self._in_store(fits.n_models)}"
        yield from (f"{name}: a fit warns: {warning}" for warning in self.warned)

    def _each(self) -> str:
        if self.slowest is None:
            return f"more than {_duration(self.seconds)} each"
        if self.slowest == self.seconds:
            return f"{_duration(self.seconds)} each"
        return f"{_duration(self.seconds)} to {_duration(self.slowest)} each"

    def _all(self, fits: Fits) -> str:
        """Say how long all of them take, as precisely as one fit on a machine that does other things can tell."""
        with_workers = f"with {fits.workers:,} worker{'' if fits.workers == 1 else 's'}"
        least = self.seconds * fits.rounds / (FASTER * _load())
        if least > USEFUL:
            return (
                f"too long to be useful: more than {_duration(USEFUL)} {with_workers}, nearly all of it fits; "
                "shorter with fewer models (n_models, --n-models), more workers (cluster, --cluster) or a part of "
                "the records"
            )
        if self.slowest is None:
            return f"more than {_duration(least)} in all {with_workers}, and nobody can tell how much more"
        return f"between {_range(least, self.slowest * fits.rounds * SLOWER)} in all {with_workers}"

    def _in_store(self, n_models: int) -> str:
        if self.n_bytes is None:
            return f"measured on {self.how}"
        return f"{_size(self.n_bytes * n_models)} in the store; measured on {self.how}"


@dataclass(frozen=True)
class Fits:
    """How the fits of a release are divided.

    Parameters
    ----------
    n_models : int
    chunk : int
        Models that one worker makes one after another.
    most_workers : int
        That there are; fewer are used where there are fewer chunks.
    n_before : int
        Trainings that choose the canaries.
    """

    n_models: int
    chunk: int
    most_workers: int
    n_before: int = 0

    @property
    def n_chunks(self) -> int:
        """Number of tasks."""
        return math.ceil(self.n_models / self.chunk)

    @property
    def workers(self) -> int:
        """Number of workers that have something to do."""
        return min(self.most_workers, self.n_chunks)

    @property
    def rounds(self) -> int:
        """Number of fits that the busiest worker makes, after those that are made before all others."""
        return self.n_before + min(self.n_models, math.ceil(self.n_chunks / self.workers) * self.chunk)


def _load() -> float:
    """How many times as many processes want to run on this machine as can; 1 if all can, or nobody knows."""
    average = getattr(os, "getloadavg", None)  # not on Windows
    return 1.0 if average is None else max(1.0, average()[0] / pool.workers())


def _busy() -> str | None:
    """Say that other processes slow this one down."""
    if _load() == 1.0:
        return None
    average, cores = os.getloadavg()[0], pool.workers()
    return (
        f"the machine is busy: {average:.1f} processes want to run on {cores} core{'' if cores == 1 else 's'}; "
        "without them the fits take less"
    )


def _range(least: float, most: float) -> str:
    """Write two times in one unit."""
    unit, length = _unit(most)
    least_digits, most_digits = (f"{_two_digits(value / length)}" for value in (least, most))
    return f"{least_digits} and {most_digits} {unit}"


def _unit(seconds: float) -> tuple[str, float]:
    """Choose the largest unit of which there are two."""
    for unit, length in (("days", 86_400.0), ("h", 3_600.0), ("min", 60.0)):
        if seconds >= 2 * length:
            return unit, length
    return "s", 1.0


def _duration(seconds: float) -> str:
    """Write a time in the largest unit of which there are two."""
    unit, length = _unit(seconds)
    return f"{_two_digits(seconds / length)} {unit}"


def _two_digits(value: float) -> str:
    return f"{value:.2g}" if value < 10 else f"{value:,.0f}"


def _size(n_bytes: float) -> str:
    """Write a number of bytes in the largest unit of which there is one."""
    for unit, length in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if n_bytes >= length:
            return f"{_three_digits(n_bytes / length)} {unit}"
    return f"{_three_digits(n_bytes / 1e3)} kB"


def _three_digits(value: float) -> str:
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"


def cost(plan: AuditPlan, n_jobs: int | None = None, cluster: Any = None) -> Iterator[str]:
    """Estimate models, time and disk of a plan, a line each.

    One model of each release is fitted for it. All of this is ended after `MOST_SECONDS`; what was ended is
    extrapolated from its steps, or from a model of a quarter of the records. Of DP-SGD a few steps are run.

    Parameters
    ----------
    plan : AuditPlan
    n_jobs : int, optional
        Worker processes; all cores unless given.
    cluster : str, distributed.Client or concurrent.futures.Executor, optional
        Whose workers are counted instead.

    Yields
    ------
    str

    Raises
    ------
    ValueError
        For whatever the audit itself would refuse before its first fit, in one line; for an attack that was asked for
        by its name and can run on none of the releases after the fits that show it.
    """
    releases = [_not_quiet(release) for release in all_planned(plan)]
    source = plan.data or plan.dataset or "digits"
    loaded = data.load(source, plan.label, plan.group, plan.drop, plan.id, plan.slice, **plan.csv)
    refuse_without_groups(loaded.slices)
    engine = Execution(n_jobs=n_jobs, cluster=cluster).connect()
    workers = pool.workers(n_jobs) if engine is None else max(1, engine.n_workers())
    if plan.attribute is not None:
        yield from _of_attribute(plan, strategies(plan.attacks), releases, loaded, workers)
    else:
        attacks = attacks_on(releases, plan.attacks, one_run=plan.n_models == 1, planted=plan.canaries)
        yield from _of_membership(plan, attacks, releases, loaded, workers)


def _not_quiet(release: Described) -> Described:
    """Copy a release so that warnings of its fits are collected."""
    return replace(release, quiet=False) if isinstance(release, Estimator) else release


def _of_membership(
    plan: AuditPlan, attacks: Sequence[Attack], releases: Sequence[Described], loaded: Data, workers: int
) -> Iterator[str]:
    """Yield the game, then the cost of each release."""
    settings = [_quickly_set(plan, attacks, release, loaded) for release in releases]
    # of all releases before the first fit: a release that promises nothing is refused here
    promises = [promise(audited, claims_of(plan, audited.release.name, audited.game)) for audited in settings]
    rehearsals = []
    limit = MOST_SECONDS / len(releases)
    for place, (audited, accountant_claim) in enumerate(zip(settings, promises, strict=True)):
        points, game, name = audited.data.points, audited.game, audited.release.name
        if place == 0 and audited.planted:
            yield (
                f"{loaded.name}: {len(loaded.points):,} points, {game.n_target_points:,} {audited.planted} canaries, "
                "each in by a fair coin"
            )
        elif place == 0:
            yield (
                f"{loaded.name}: {len(points):,} points, {game.n_target_points:,} target points, "
                f"{len(game.population):,} set aside"
            )
        if place == 0:
            yield _what_is_done(len(releases))
        if accountant_claim is not None:
            yield f"{name}: compared with {accountant_claim.text}"
        if audited.planted == "mahalanobis":
            yield f"{name}: the canaries are chosen in one more training"
        release = queried(audited.release, points, plan)
        fit = _within(release, points, game.member[:1], audited.wanted(attacks), plan.seed, limit)
        yield from fit.lines(name, Fits(game.n_models, release.chunk, workers, int(audited.planted == "mahalanobis")))
        rehearsals.append(Rehearsal(game, fit.shapes, points.group))
    refuse_idle(attacks, rehearsals)
    busy = _busy()
    if busy is not None:
        yield busy


def _what_is_done(n_releases: int) -> str:
    one_of_each = "one model" if n_releases == 1 else f"one model of each of {n_releases:,} kinds"
    return f"to find out what this costs, {one_of_each} is fitted now, and stopped after {MOST_SECONDS:.0f} s in all"


def _quickly_set(plan: AuditPlan, attacks: Sequence[Attack], release: Described, loaded: Data) -> Setting:
    """Draw the game of a release; in place of canaries that a training chooses, take as many random records."""
    if not is_private(release) or plan.canaries != "mahalanobis":
        return setting(plan, attacks, release, loaded)
    quick = setting(plan.model_copy(update={"canaries": "random"}), attacks, release, loaded)
    return replace(quick, planted="mahalanobis")


def _with_steps(release: Described, steps: int) -> Described:
    """DP-SGD with another number of steps."""
    return replace(release, dpsgd=replace(release.dpsgd, steps=steps)) if is_private(release) else release


def _of_attribute(
    plan: AuditPlan, attacks: Sequence[Attack], releases: Sequence[Described], loaded: Data, workers: int
) -> Iterator[str]:
    """Yield the candidates, then the cost of the forests that guess without a release, and of each release."""
    refuse_unanswerable(attacks)
    attribute_game = lay_out(plan, attacks, loaded)
    rows, game, n_values = attribute_game.rows, attribute_game.game, len(attribute_game.attribute.names)
    yield (
        f"{loaded.name}: {len(loaded.points):,} points, {len(attribute_game.attacked):,} attacked, "
        f"{len(attribute_game.records.population):,} set aside; "
        f"{attribute_game.attribute.name} has {n_values:,} values: "
        f"{len(attribute_game.attacked) * n_values:,} candidates"
    )
    yield _what_is_done(len(releases))
    limit = MOST_SECONDS / (len(releases) + 1)
    imputer, known, outside = imputation(attribute_game)
    fit = _one(imputer, known, outside[:1], ["log_prob"], plan.seed, limit)
    yield from fit.lines("imputation, without any release", Fits(len(outside), imputer.chunk, workers))
    records = rows.points.take(np.flatnonzero(rows.own))  # as the releases train on them, with the attribute
    rehearsals = []
    for release in releases:
        of_rows = of_records(release, rows)
        fit = _within(of_rows, rows.points, game.member[:1], signals_of(attacks), plan.seed, limit)
        yield from fit.lines(release.name, Fits(game.n_models, of_rows.chunk, workers))
        rehearsals.append(Rehearsal(draw(plan, records, attacks), fit.shapes, records.group))
    refuse_idle(attacks, rehearsals)
    busy = _busy()
    if busy is not None:
        yield busy


def _within(
    release: Described, points: Points, member: Bool[Array, "1 N"], want: Sequence[str], seed: int, limit: float
) -> Fit:
    """Make the first model of a release in `limit` seconds; if it is stopped before it has told of steps, a part."""
    fit = _one(release, points, member, want, seed, OF_THE_FIRST * limit)
    part = _part(release, points, member)
    if fit.slowest is not None or part is None:
        return fit
    try:
        of_part = _timed(release, *part, want, seed, (1 - OF_THE_FIRST) * limit)
    except Exception:  # the model may be the user's: it may raise anything on a part
        return fit
    stopped = f"a fit that was stopped after {_duration(fit.seconds)}"
    if not of_part.is_whole:
        how = f"{stopped}, and one of a quarter of the records after {_duration(of_part.seconds)}"
        return replace(fit, warned=of_part.warned, how=how)
    times, least = len(points) / len(part[0]), fit.seconds
    return Fit(
        max(least, of_part.seconds * times),
        None if of_part.n_bytes is None else round(of_part.n_bytes * times),
        of_part.warned,
        of_part.shapes,
        max(least, of_part.seconds * times**2),
        f"{stopped} and one of a quarter of the records ({_duration(of_part.seconds)}), if time grows like n to n^2",
        is_whole=False,
    )


def _one(
    release: Described, points: Points, member: Bool[Array, "1 N"], want: Sequence[str], seed: int, limit: float
) -> Fit:
    """Make the first model of a release, with its own seed."""
    if not is_private(release) or release.train is not None or release.dpsgd.steps <= FEW + 1:
        return _timed(release, points, member, want, seed, limit)
    n_steps = release.dpsgd.steps

    # the first fit is dropped: it includes what PyTorch does only once in a process
    for n in (1, 1):
        first = _timed(_with_steps(release, n), points, member, want, seed, limit / 3)
        if not first.is_whole:
            return replace(first, how=f"the first step, which was stopped after {_duration(first.seconds)}")
    more = _timed(_with_steps(release, 1 + FEW), points, member, want, seed, limit / 3)
    step_seconds = max(0.0, more.seconds - first.seconds) / FEW
    n_bytes = None
    if first.n_bytes is not None and more.n_bytes is not None:
        n_bytes = first.n_bytes + (n_steps - 1) * ((more.n_bytes - first.n_bytes) // FEW)
    seconds = first.seconds + (n_steps - 1) * step_seconds
    slowest = None if more.slowest is None else seconds
    how = f"{1 + FEW} of {n_steps:,} steps"
    return Fit(seconds, n_bytes, more.warned, first.shapes, slowest, how, is_whole=False)


def _part(release: Described, points: Points, member: Bool[Array, "1 N"]) -> tuple[Points, Bool[Array, "1 n"]] | None:
    """Take a part of the records; None where the time is that of steps, or too few are left."""
    few = np.arange(0, len(points), PART)
    if is_private(release) or len(few) < FEWEST_OF_A_PART or not 0 < member[0, few].sum() < len(few):
        return None
    return points.take(few), member[:, few]


def _timed(
    release: Described, points: Points, member: Bool[Array, "1 N"], want: Sequence[str], seed: int, limit: float
) -> Fit:
    """Make one model, and stop after `limit` seconds."""
    first = np.array([seeds.integer(seed, "train", 0)])
    arrays: Mapping[str, Array] = {}
    with timed(limit) as stopwatch, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        arrays = release.observe(points, member, first, want)
    warned = tuple(sorted({str(warning.message).splitlines()[0] for warning in caught}))
    if not stopwatch.is_whole:
        seconds, n_steps = stopwatch.whole, stopwatch.n_steps
        if seconds is None or n_steps is None:
            how = f"a fit that was stopped after {_duration(stopwatch.seconds)}"
            return Fit(stopwatch.seconds, None, warned, how=how, is_whole=False)
        return Fit(seconds, None, warned, None, seconds, f"the first {n_steps[0]:,} of {n_steps[1]:,} steps", False)
    n_bytes = 4 * sum(array.size for array in arrays.values())  # the store holds single precision
    shapes = {name: array.shape[2:] for name, array in arrays.items() if name in SIGNALS}
    return Fit(stopwatch.seconds, n_bytes, warned, shapes, stopwatch.seconds)
