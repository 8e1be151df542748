"""What an audit would do and cost, estimated from one fit before hours are spent."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
CLUSTERS = (10, 100)  # workers
TIMES_THE_RECORDS = (10, 1_000)
PART = 4  # the growth of time is measured between a quarter of the records and all of them
FEWEST_OF_A_PART = 20  # records
MEASURED = 0.05  # seconds: shorter fits are repeated, and the shortest counts
MOST_FITS = 5
SLOPES = (0.0, 3.0)  # what a measured slope is cut to


@dataclass(frozen=True)
class Fit:
    """What one model costs.

    Parameters
    ----------
    seconds : float
    n_bytes : int
        Of its signals in the store.
    warned : tuple of str
        What its fit warns of.
    shapes : mapping of str to tuple of int
        The signals that it gives, with the lengths of their axes behind (M, N).
    """

    seconds: float
    n_bytes: int
    warned: tuple[str, ...] = ()
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def lines(self, name: str, n_models: int, workers: int) -> Iterator[str]:
        """Yield a line about all models, and one for each warning."""
        yield (
            f"{name}: {n_models} models, {self.seconds:.2g} s each, about "
            f"{self.seconds * n_models / workers:,.0f} s with {workers} workers, "
            f"{self.n_bytes * n_models / 1e6:,.0f} MB in the store"
        )
        yield from (f"{name}: a fit warns: {warning}" for warning in self.warned)

    def on_clusters(self, name: str, n_models: int, data_bytes: int) -> str:
        """Say what the same models take on clusters of `CLUSTERS` workers."""
        times = [
            f"about {_duration(self.seconds * math.ceil(n_models / n))} with {n} workers"
            for n in CLUSTERS
            if n <= n_models
        ]
        sent = f"{_size(data_bytes)} of data to each worker, {_size(self.n_bytes * n_models)} of signals to the store"
        return f"{name} on a cluster: {', '.join([*times, sent])}"


@dataclass(frozen=True)
class Growth:
    """How the time of a fit grows with the number of records n.

    Parameters
    ----------
    n_few, n_all : int
        Numbers of records between which it was measured.
    slope : float
        The time grows like n to this power there.
    """

    n_few: int
    n_all: int
    slope: float

    def line(self, name: str, fit: Fit, n_models: int, workers: int) -> str:
        """Say what `TIMES_THE_RECORDS` would cost; a fit that costs less than n is taken to cost n beyond n_all."""
        power = max(1.0, self.slope)
        seconds = [fit.seconds * times**power * n_models / workers for times in TIMES_THE_RECORDS]
        sizes = [fit.n_bytes * times * n_models for times in TIMES_THE_RECORDS]
        measured = f"n^{self.slope:.2f} from {self.n_few:,} to {self.n_all:,} records"
        beyond = " and is taken to grow like n from there" if self.slope < power else ""
        return (
            f"{name} with {' and '.join(f'{times:,}' for times in TIMES_THE_RECORDS)} times the records: "
            f"about {' and '.join(map(_duration, seconds))} with {workers} workers, "
            f"{' and '.join(map(_size, sizes))} in the store; the time of a fit grew like {measured}{beyond}"
        )


def _duration(seconds: float) -> str:
    """Write a time in the largest unit of which there are two."""
    for unit, length in (("days", 86_400.0), ("h", 3_600.0), ("min", 60.0)):
        if seconds >= 2 * length:
            return f"{_three_digits(seconds / length)} {unit}"
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"


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

    One model of each release is fitted for it, and another of a quarter of the records, which shows how the time grows.
    Of DP-SGD a few steps are run, and their cost is extrapolated. A user-supplied training loop cannot be cut short and
    runs to its end.

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
        attacks = attacks_on(releases, plan.attacks, one_run=plan.n_models == 1)
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
    rehearsals, fits = [], []
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
        if accountant_claim is not None:
            yield f"{name}: compared with {accountant_claim.text}"
        if audited.planted == "mahalanobis":
            yield f"{name}: the canaries are chosen in one more training"
        release = queried(audited.release, points, plan)
        fit = _one(release, points, game.member[:1], audited.wanted(attacks), plan.seed)
        yield from fit.lines(name, game.n_models, workers)
        yield fit.on_clusters(name, game.n_models, _data_bytes(points))
        fits.append(fit)
        rehearsals.append(Rehearsal(game, fit.shapes, points.group))
    refuse_idle(attacks, rehearsals)
    for audited, fit in zip(settings, fits, strict=True):
        member, wanted = audited.game.member[:1], audited.wanted(attacks)
        release = queried(audited.release, audited.data.points, plan)
        growth = _growth(release, audited.data.points, member, wanted, plan.seed, fit)
        if growth is not None:
            yield growth.line(audited.release.name, fit, audited.game.n_models, workers)


def _quickly_set(plan: AuditPlan, attacks: Sequence[Attack], release: Described, loaded: Data) -> Setting:
    """Draw the game of a release; canaries that a training chooses are chosen in one step: others, and as many."""
    if not is_private(release) or release.train is not None:
        return setting(plan, attacks, release, loaded)
    quick = setting(plan, attacks, _with_steps(release, 1), loaded)
    return replace(quick, release=_with_steps(quick.release, release.dpsgd.steps))


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
    imputer, known, outside = imputation(attribute_game)
    fit = _one(imputer, known, outside[:1], ["log_prob"], plan.seed)
    yield from fit.lines("imputation, without any release", len(outside), workers)
    records = rows.points.take(np.flatnonzero(rows.own))  # as the releases train on them, with the attribute
    rehearsals = []
    for release in releases:
        fit = _one(of_records(release, rows), rows.points, game.member[:1], signals_of(attacks), plan.seed)
        yield from fit.lines(release.name, game.n_models, workers)
        yield fit.on_clusters(release.name, game.n_models, _data_bytes(rows.points))
        rehearsals.append(Rehearsal(draw(plan, records, attacks), fit.shapes, records.group))
    refuse_idle(attacks, rehearsals)


def _one(release: Described, points: Points, member: Bool[Array, "1 N"], want: Sequence[str], seed: int) -> Fit:
    """Make the first model of a release, with its own seed."""
    if not is_private(release) or release.train is not None or release.dpsgd.steps <= FEW + 1:
        return _timed(release, points, member, want, seed)
    n_steps = release.dpsgd.steps

    # the first fit is dropped: it includes what PyTorch does only once in a process
    _, first, more = (_timed(_with_steps(release, n), points, member, want, seed) for n in (1, 1, 1 + FEW))
    step_seconds = max(0.0, more.seconds - first.seconds) / FEW
    step_bytes = (more.n_bytes - first.n_bytes) // FEW
    seconds = first.seconds + (n_steps - 1) * step_seconds
    return Fit(seconds, first.n_bytes + (n_steps - 1) * step_bytes, more.warned, first.shapes)


def _growth(
    release: Described, points: Points, member: Bool[Array, "1 N"], want: Sequence[str], seed: int, fit: Fit
) -> Growth | None:
    """Fit a part of the records, and all; None where the time is that of steps, or a part cannot be fitted."""
    few = np.arange(0, len(points), PART)
    if is_private(release) or len(few) < FEWEST_OF_A_PART or not 0 < member[0, few].sum() < len(few):
        return None
    part, part_member = points.take(few), member[:, few]
    try:
        cold = _timed(release, part, part_member, want, seed)
    except ValueError:  # a class of which the part has none, or fewer records than the model needs
        return None
    of_part = _shortest(release, part, part_member, want, seed, cold)
    of_all = _shortest(release, points, member, want, seed, fit)
    slope = math.log(max(of_all, 1e-9) / max(of_part, 1e-9)) / math.log(len(points) / len(few))
    return Growth(len(few), len(points), min(max(slope, SLOPES[0]), SLOPES[1]))


def _shortest(
    release: Described, points: Points, member: Bool[Array, "1 N"], want: Sequence[str], seed: int, first: Fit
) -> float:
    """Measure a short fit again, for the first one includes what is done once in a process; seconds."""
    seconds, n_fits = first.seconds, 1
    while seconds < MEASURED and n_fits < MOST_FITS:
        seconds = min(seconds, _timed(release, points, member, want, seed).seconds)
        n_fits += 1
    return seconds


def _data_bytes(points: Points) -> int:
    """Count the bytes of features and labels that a worker loads."""
    memory_usage = getattr(points.x, "memory_usage", None)  # of a frame
    of_x = int(memory_usage(deep=True).sum()) if memory_usage is not None else int(getattr(points.x, "nbytes", 0))
    return of_x + (0 if points.y is None else int(points.y.nbytes))


def _timed(release: Described, points: Points, member: Bool[Array, "1 N"], want: Sequence[str], seed: int) -> Fit:
    first = np.array([seeds.integer(seed, "train", 0)])
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        arrays = release.observe(points, member, first, want)
    seconds = time.perf_counter() - started
    warned = sorted({str(warning.message).splitlines()[0] for warning in caught})
    n_bytes = 4 * sum(array.size for array in arrays.values())  # the store holds single precision
    shapes = {name: array.shape[2:] for name, array in arrays.items() if name in SIGNALS}
    return Fit(seconds, n_bytes, tuple(warned), shapes)
