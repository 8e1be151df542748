"""The game of an audit, drawn here or given by the user; and the signals that its attacks ask for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from leakbound.attacks import Attack
from leakbound.attacks.blocks import all_target_points
from leakbound.core import games
from leakbound.core.findings import Term
from leakbound.core.reasons import words
from leakbound.core.signals import QUERY_SIGNALS
from leakbound.core.types import Game, Points, Release
from leakbound.dpsgd.config import DpSgd
from leakbound.plans.choices import name_of
from leakbound.plans.games import AverageDatum, Canaries, Forgotten, Fresh, HalfSplit, PerDatum, Queries
from leakbound.plans.games import Game as PlannedGame
from leakbound.releases.factory import Described
from leakbound.releases.queries import Queried, Versions
from leakbound.releases.scored import is_scored

POPULATION = 0.1  # fraction of the points that is set aside where an attack needs draws from the population
_HARDLY = 1e-9  # chance that fair coins look so little like coins: then they are refused, for epsilon would be wrong
_FAR = 6.0  # standard deviations of a fraction of fair coins
_MANY = 100  # models; with fewer of them, more models than records are a usual design


def draw(game: PlannedGame, n_models: int, points: Points, attacks: Sequence[Attack], seed: int) -> Game:
    """Draw who is in each model, in a game of membership; an attribute is guessed in a half-split."""
    n_points = len(points)
    if isinstance(game, HalfSplit):
        return games.half_split(
            n_points,
            n_models,
            seed=seed,
            sampling=game.sampling,
            population=population_share(attacks),  # a tenth of the points, if an attack needs it
            group=points.group,
            sample=game.sample,
        )
    if isinstance(game, Fresh):
        return games.fresh(
            n_points,
            n_models,
            targets=game.targets,
            size=game.size,
            seed=seed,
            population=population_share(attacks),
            group=points.group,
            sample=game.sample,
        )
    if isinstance(game, Forgotten):
        share = population_share(attacks)
        return games.forgotten(
            n_points, n_models, targets=game.targets, kept=game.kept, seed=seed, population=share, group=points.group
        )
    if points.group is not None:
        name = name_of(type(game))
        raise ValueError(
            f"the game {name} is played by single records; use half_split, fresh or forgotten with a group column"
        )
    if isinstance(game, PerDatum):
        return games.per_datum(n_points, game.target, n_models, references=game.references, seed=seed)
    if isinstance(game, AverageDatum):
        return games.average_datum(n_points, n_models, references=game.references, seed=seed)
    assert isinstance(game, Canaries), game
    return games.canaries(n_points, np.array(game.targets), n_models, references=game.references, seed=seed)


def refuse_no_coins(game: Game) -> None:
    """Refuse memberships that are said to be fair coins and hardly can be.

    Epsilon is then computed from the number of coins that were guessed, and would be too large.

    >>> from leakbound.core.games import half_split
    >>> refuse_no_coins(half_split(100, 8, sampling="poisson"))
    """
    if game.sampling != "poisson":
        return
    member = game.target_member
    n_models, n_points = member.shape
    if abs(2 * member.mean() - 1) * math.sqrt(member.size) > _FAR:
        raise ValueError(
            f"sampling='poisson' says that each record is in a model by a fair coin, and {100 * member.mean():.3g} % "
            "of the target points are members; say sampling='fixed', which holds for any fraction"
        )
    n_members = member.sum(axis=1)
    # two models are of one size with a probability of at most that of the most likely size
    chance = min(1.0, math.sqrt(2 / (math.pi * n_points))) ** (n_models - 1)
    if n_members.min() == n_members.max() and chance < _HARDLY:
        raise ValueError(
            f"sampling='poisson' says that each record is in by a coin of its own, and all {n_models:,} models have "
            f"exactly {n_members[0]:,} members, as coins hardly ever give; say sampling='fixed'"
        )


def notes_of_game(game: Game, has_units: bool = False) -> list[str]:
    """List what a reader should check of a game that the user describes.

    >>> from leakbound.core.games import half_split
    >>> from dataclasses import replace
    >>> notes_of_game(half_split(100, 8))
    []
    >>> notes_of_game(replace(half_split(100, 8, sampling="poisson"), sampling="fixed"))[0][:68]
    'The models have 45 to 55 members among the target points: these are '
    """
    n_models, n_points = game.member.shape
    notes = []
    if n_models >= _MANY and 1 < n_points < n_models:
        notes.append(
            f"There are more models ({n_models:,}, the first axis of member) than records ({n_points:,}, the second): "
            "if it is the other way round, transpose member and the signals"
        )
    member = game.target_member
    n_members = member.sum(axis=1)
    sizes_differ = n_members.min() < n_members.max()
    looks_fair = abs(2 * member.mean() - 1) * math.sqrt(member.size) <= _FAR
    several = game.is_target_point.ndim == 1 and len(all_target_points(game)) > 1
    if several and n_models > 1:
        # records in exactly so many of the models have a note of their own: that of the design
        n_in = member.sum(axis=0)
        several = bool(n_in.min() < n_in.max())
    # with units of several records, sets of equally many units may differ in their numbers of records
    if game.sampling == "fixed" and sizes_differ and several and looks_fair and not has_units:
        notes.append(
            f"The models have {n_members.min():,} to {n_members.max():,} members among the target points: these are "
            "not sets of one size. Epsilon is of replacing a record in a set of given size, which holds for each set "
            "at its own size. If each record was in by a fair coin of its own, say sampling='poisson': then adding or "
            "removing a record is tested"
        )
    return notes


def refuse_scored(releases: Iterable[Release], what: str, instead: str) -> None:
    """Refuse a game that reads predictions, where a score sees a release."""
    for release in releases:
        if is_scored(release):
            raise ValueError(f"{release.name}: {what}: {words(Term('needs_predictions'))}; {instead}")


def queried(release: Described, points: Points, queries: Queries, seed: int) -> Described:
    """Let a release be asked about several versions of each record, where the audit says so."""
    if queries.n == 1:
        return release
    if isinstance(getattr(release, "dpsgd", None), DpSgd):
        raise ValueError(f"{release.name}: queries asks trained models; DP-SGD is observed by its steps: leave it out")
    if is_scored(release):
        raise ValueError(f"{release.name}: queries asks what models predict, and this one has a score: leave it out")
    return Queried(release, Versions.for_points(points, queries.n, queries.versions, seed))


def note_of_queries(releases: Iterable[Described]) -> list[str]:
    """Say what versions of the records the models were asked about, and which attacks use them."""
    asked = [release.versions for release in releases if isinstance(release, Queried)]
    if not asked:
        return []
    return [
        f"Each model was asked about {asked[0].n_queries} versions of each record: itself, and others "
        f"{asked[0].words}. Attacks with signals of several queries use all of them, the other attacks the record alone"
    ]


def wanted(attacks: Sequence[Attack]) -> list[str]:
    """List the signals of the attacks, the log-odds that the page shows of records, and the errors behind the gap.

    A signal with an axis of queries is asked for by its name without it; the release that is asked about several
    versions of each record gives both.
    """
    names = (QUERY_SIGNALS.get(name, name) for attack in attacks for name in attack.signals)
    return sorted({"correct", "log_odds", *names})


def population_share(attacks: Sequence[Attack]) -> float:
    """Return the fraction of the points to set aside as draws from the population."""
    return POPULATION if any(attack.needs_population for attack in attacks) else 0.0
