"""Refuse what cannot be run before the first fit of an audit: models that fail, attacks that do not apply.

Each release is fitted once on a few points of every class (a network for one step), so that the second model that
cannot be fitted is not found after an hour of the first. The fit shows which signals the release gives, and attacks
that were asked for by name are tried on random numbers in their place.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Int, Shaped

from leakbound.attacks import Attack, AttackFailed
from leakbound.auditing.canaries import is_private
from leakbound.core import seeds
from leakbound.core.findings import Term
from leakbound.core.reasons import words
from leakbound.core.types import Game, NotApplicable, Points, Release, Signals, WrongScores
from leakbound.releases.forgetting import Forgetting
from leakbound.releases.labels import ReleasedLabels
from leakbound.releases.networks.recipe import Recipe
from leakbound.releases.queries import Queried
from leakbound.releases.scored import is_scored
from leakbound.releases.specs import first_line

Array = np.ndarray
PER_CLASS = 4  # points of each class in the trial fit
FEWEST = 24  # points of the trial fit: neighbours and folds of an estimator need some
MISTAKES = (KeyError, NameError)  # in an attack of the user's own
COLUMNS = 200  # target points, and as many of the population, on which a named attack is tried


@dataclass(frozen=True)
class Rehearsal:
    """What a trial fit of a release has shown."""

    game: Game
    # of each signal the lengths of its axes behind (M, N); None where no cheap fit is possible
    shapes: Mapping[str, tuple[int, ...]] | None
    group: Shaped[Array, " N"] | None = None


def rehearse(release: Release, points: Points, game: Game, want: Sequence[str], seed: int = 0) -> Rehearsal:
    """Fit a release on a few points of every class; on the first data set of its game if that fails.

    Some estimators need more points than a few, so that only a fit on real data refuses one. A network is trained for
    one step, or one epoch of the data set. A user-supplied training loop has no short form and is not tried.

    >>> import leakbound as ls
    >>> from sklearn.svm import LinearSVC
    >>> points = ls.data.load("wine").points
    >>> game = ls.games.half_split(len(points), 4)
    >>> sorted(rehearse(ls.releases.Estimator(LinearSVC()), points, game, ["loss", "log_odds", "correct"]).shapes)
    ['correct', 'log_odds']
    """
    if is_private(release):
        if release.train is not None:
            return Rehearsal(game, None, points.group)
        # a single step is cheap enough for all points, and a batch of a few points could be empty
        short = replace(release, dpsgd=replace(release.dpsgd, steps=1))
        return Rehearsal(game, _shapes(short, points, game.member[:1], want, seed), points.group)
    if is_scored(release):  # a score is of all records
        return Rehearsal(game, _shapes(release, points, game.member[:1], want, seed), points.group)
    short = _short(release)
    sample = points.take(few_points(points))
    shapes = None
    with suppress(Exception):  # the estimator may be the user's: it may raise anything
        shapes = _shapes(short, sample, np.ones((1, len(sample)), dtype=bool), want, seed)
    if shapes is None:
        shapes = _shapes(short, points, game.member[:1], want, seed)
    return Rehearsal(game, shapes, points.group)


def few_points(points: Points) -> Int[Array, " n"]:
    """Choose some points of every class; of a response, from its smallest to its largest value."""
    if points.y is None or points.y.ndim > 1:
        return np.arange(min(FEWEST, len(points)))
    y = np.asarray(points.y)
    classes, label = np.unique(y, return_inverse=True)
    order = np.argsort(label, kind="stable")
    if y.dtype.kind == "f" and len(classes) > FEWEST:
        return np.sort(order[np.linspace(0, len(order) - 1, FEWEST).astype(int)])
    per_class = max(PER_CLASS, -(-FEWEST // len(classes)))
    place = np.arange(len(order)) - np.searchsorted(label[order], label[order])  # rank of each point within its class
    return np.sort(order[place < per_class])


def refuse_idle(attacks: Sequence[Attack], rehearsals: Sequence[Rehearsal]) -> None:
    """Refuse an attack that was asked for by its name and can run on none of the releases."""
    for attack in attacks:
        if not attack.by_name:
            continue
        reasons = [idle_reason(attack, rehearsal) for rehearsal in rehearsals]
        idle_reasons = [reason for reason in reasons if reason is not None]
        if idle_reasons and len(idle_reasons) == len(reasons):
            raise cannot_run(attack.name, idle_reasons[0])


def cannot_run(name: str, reason: Term) -> ValueError:
    """Make the error about an attack that was asked for by its name."""
    return ValueError(
        f"attack {name!r} cannot run: {words(reason)}; give what it needs or leave it out (attacks that were not named "
        "are listed with their reason instead)"
    )


def idle_reason(attack: Attack, rehearsal: Rehearsal) -> Term | None:
    """Why an attack cannot run, found on random numbers; None where it can, or nobody can tell before the fits."""
    if rehearsal.shapes is None:
        return None
    game, rng = rehearsal.game, np.random.default_rng(0)
    target_points = np.flatnonzero(np.atleast_2d(game.is_target_point).any(axis=0))
    if game.is_target_point.ndim == 1:
        target_points = target_points[:COLUMNS]
    # target points of a model's own are not cut off: each model must keep one
    points = np.union1d(target_points, game.population[:COLUMNS])
    part = replace(
        game,
        member=game.member[:, points],
        is_target_point=game.is_target_point[..., points],
        candidate_of=None if game.candidate_of is None else game.candidate_of[points],
    )
    group = None if rehearsal.group is None else rehearsal.group[points]
    arrays = {
        name: _random(name, (*part.member.shape, *tail), rng)
        for name, tail in rehearsal.shapes.items()
        if name in attack.signals
    }
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            attack(Signals.observed(part, Points(np.zeros((len(points), 1)), group=group), arrays))
    except NotApplicable as reason:
        return reason.reason
    except WrongScores:  # of an attack of the user's own: better before the first fit than after the last
        raise
    except AttackFailed as error:
        if isinstance(error.__cause__, MISTAKES):  # which other numbers would not mend
            raise
        return None
    except Exception:  # of the same, which random numbers may surprise
        return None
    return None


def _random(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    values = rng.random(shape)
    if name == "correct":
        return np.round(values)
    return -values if name == "log_prob" else values


def _short(release: Release) -> Release:
    """Return a network with one epoch; any other release as it is."""
    if isinstance(release, Queried | ReleasedLabels):
        return replace(release, release=_short(release.release))  # pyright: ignore[reportArgumentType]
    if isinstance(release, Forgetting):  # the records that are removed are some of all, not of a few
        return release.release
    recipe = getattr(release, "recipe", None)
    if not isinstance(recipe, Recipe):
        return release
    return replace(release, recipe=replace(recipe, epochs=1, stop=None))  # pyright: ignore[reportArgumentType]


def _shapes(
    release: Release, points: Points, member: Bool[Array, "1 N"], want: Sequence[str], seed: int
) -> dict[str, tuple[int, ...]]:
    first = np.array([seeds.integer(seed, "train", 0)])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of few points; what the real fits warn of is not hidden
            arrays = release.observe(points, member, first, want)
    except Exception as error:
        message = first_line(error)
        if release.name in message:
            raise
        raise ValueError(f"{release.name}: {message}") from error
    return {name: array.shape[2:] for name, array in arrays.items()}
