"""What an audit would do: its game, and what one model of each release takes, which is fitted to be measured."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool

from leakbound.attacks import Attack
from leakbound.attacks.attribute import strategies
from leakbound.auditing.attribute.game import imputation
from leakbound.auditing.attribute.run import of_records, signals_of
from leakbound.auditing.canaries import Setting, all_planned, attacks_on, is_private
from leakbound.auditing.private_training import promise, promise_text
from leakbound.auditing.rehearsal import Rehearsal, refuse_idle
from leakbound.auditing.run import attribute_game_of, claims_of, loaded_data, setting
from leakbound.auditing.setup import draw, queried
from leakbound.core import seeds
from leakbound.core.signals import SIGNALS
from leakbound.core.types import Points
from leakbound.data import Data
from leakbound.data.slices import refuse_without_groups
from leakbound.plans.audits import AuditPlan
from leakbound.plans.games import Attribute, Canaries, HalfSplit
from leakbound.releases.estimator import Estimator
from leakbound.releases.factory import Described
from leakbound.releases.generators.generator import SyntheticFiles
from leakbound.releases.scored import Scored

Array = np.ndarray


@dataclass(frozen=True)
class Fit:
    """What one model takes: seconds, bytes of its signals in the store, its warnings, and its signals.

    The shapes are the lengths of the axes of each signal behind (M, N).
    """

    seconds: float
    n_bytes: int
    warned: tuple[str, ...]
    shapes: Mapping[str, tuple[int, ...]]

    def lines(self, name: str, n_models: int) -> Iterator[str]:
        """Yield a line about all models, and one for each warning."""
        models = f"{n_models:,} model{'' if n_models == 1 else 's'}"
        megabytes = self.n_bytes * n_models / 1e6
        yield f"{name}: {models}, {self.seconds:,.2f} s for the first, {megabytes:,.1f} MB in the store for all"
        yield from (f"{name}: a fit warns: {warning}" for warning in self.warned)


def dry_run(plan: AuditPlan) -> Iterator[str]:
    """Say what an audit would do, a line each, and fit one model of each release to measure it."""
    releases = [_not_quiet(release) for release in all_planned(plan.releases, plan.score, plan.has_labels)]
    loaded = loaded_data(plan, releases)
    refuse_without_groups(loaded.slices)
    if isinstance(plan.game, Attribute):
        yield from _of_attribute(plan, strategies(plan.attacks), releases, loaded)
    else:
        attacks = attacks_on(releases, plan.attacks, one_run=plan.models == 1, planted=plan.planted)
        yield from _of_membership(plan, attacks, releases, loaded)


def _not_quiet(release: Described) -> Described:
    """Copy a release so that warnings of its fits are collected."""
    return replace(release, quiet=False) if isinstance(release, Estimator) else release


def _of_membership(
    plan: AuditPlan, attacks: Sequence[Attack], releases: Sequence[Described], loaded: Data
) -> Iterator[str]:
    """Yield the game, then what each release takes."""
    settings = [_quickly_set(plan, attacks, release, loaded) for release in releases]
    # of all releases before the first fit: a release that promises nothing is refused here
    promises = [promise(audited, claims_of(plan.claim, audited.release.name, audited.game)) for audited in settings]
    game, planted = settings[0].game, settings[0].planted
    if planted:
        yield (
            f"{loaded.name}: {len(loaded.points):,} points, {game.n_target_points:,} {planted} canaries, "
            "each in by a fair coin"
        )
    else:
        yield (
            f"{loaded.name}: {len(loaded.points):,} points, {game.n_target_points:,} target points, "
            f"{len(game.population):,} set aside"
        )
    yield _what_is_done(len(releases))
    rehearsals = []
    for audited, accountant_claim in zip(settings, promises, strict=True):
        points, game, name = audited.data.points, audited.game, audited.release.name
        if accountant_claim is not None:
            yield f"{name}: compared with {promise_text(accountant_claim)}"
        if audited.planted == "mahalanobis":
            yield f"{name}: the canaries are chosen in one more training"
        release = queried(audited.release, points, plan.queries, plan.seed)
        fit = _first(release, points, game.member[:1], audited.wanted(attacks), plan.seed)
        yield from fit.lines(name, game.n_models)
        if isinstance(release, Scored):
            yield f"{name}: the store knows a model by its training and its score: another score trains all models anew"
        if isinstance(release, Scored | SyntheticFiles) and release.not_stored:
            yield f"{name} is not stored: {release.not_stored}"
        rehearsals.append(Rehearsal(game, fit.shapes, points.group))
    refuse_idle(attacks, rehearsals)


def _what_is_done(n_releases: int) -> str:
    one_of_each = "one model" if n_releases == 1 else f"one model of each of {n_releases:,} kinds"
    return f"{one_of_each} is fitted now, to measure what it takes"


def _quickly_set(plan: AuditPlan, attacks: Sequence[Attack], release: Described, loaded: Data) -> Setting:
    """Draw the game of a release; in place of canaries that a training chooses, take as many random records."""
    if not is_private(release) or plan.planted != "mahalanobis":
        return setting(plan.game, plan.models, attacks, release, loaded, plan.seed)
    assert isinstance(plan.game, Canaries)
    quick = setting(replace(plan.game, kind="random"), plan.models, attacks, release, loaded, plan.seed)
    return replace(quick, planted="mahalanobis")


def _of_attribute(
    plan: AuditPlan, attacks: Sequence[Attack], releases: Sequence[Described], loaded: Data
) -> Iterator[str]:
    """Yield the candidates, then what the forests that guess without a release take, and each release."""
    attribute_game = attribute_game_of(plan, attacks, loaded)
    rows, game, n_values = attribute_game.rows, attribute_game.game, len(attribute_game.attribute.names)
    yield (
        f"{loaded.name}: {len(loaded.points):,} points, {len(attribute_game.attacked):,} attacked, "
        f"{len(attribute_game.records.population):,} set aside; "
        f"{attribute_game.attribute.name} has {n_values:,} values: "
        f"{len(attribute_game.attacked) * n_values:,} candidates"
    )
    yield _what_is_done(len(releases))
    imputer, known, outside = imputation(attribute_game)
    fit = _first(imputer, known, outside[:1], ["log_prob"], plan.seed)
    yield from fit.lines("imputation, without any release", len(outside))
    records = rows.points.take(np.flatnonzero(rows.own))  # as the releases train on them, with the attribute
    rehearsals = []
    for release in releases:
        fit = _first(of_records(release, rows), rows.points, game.member[:1], signals_of(attacks), plan.seed)
        yield from fit.lines(release.name, game.n_models)
        rehearsals.append(
            Rehearsal(draw(HalfSplit(), plan.models, records, attacks, plan.seed), fit.shapes, records.group)
        )
    refuse_idle(attacks, rehearsals)


def _first(release: Described, points: Points, member: Bool[Array, "1 N"], want: Sequence[str], seed: int) -> Fit:
    """Fit and observe the first model of a release, with its own seed."""
    first = np.array([seeds.integer(seed, "train", 0)])
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        arrays = release.observe(points, member, first, want)
    seconds = time.perf_counter() - started
    warned = tuple(sorted({str(warning.message).splitlines()[0] for warning in caught}))
    n_bytes = 4 * sum(array.size for array in arrays.values())  # the store holds single precision
    shapes = {name: array.shape[2:] for name, array in arrays.items() if name in SIGNALS}
    return Fit(seconds, n_bytes, warned, shapes)
