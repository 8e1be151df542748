"""What a plan and its attacks ask for: the game, the signals, and the points set aside."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from leakbound.attacks import Attack
from leakbound.core import games
from leakbound.core.signals import QUERY_SIGNALS
from leakbound.core.types import Game, Points
from leakbound.dpsgd.config import DpSgd
from leakbound.plans.choices import name_of
from leakbound.plans.games import AverageDatum, Canaries, HalfSplit, PerDatum, Queries
from leakbound.plans.games import Game as PlannedGame
from leakbound.releases.factory import Described
from leakbound.releases.queries import Queried, Versions

POPULATION = 0.1  # fraction of the points that is set aside where an attack needs draws from the population


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
    if points.group is not None:
        name = name_of(type(game))
        raise ValueError(f"the game {name} is played by single records; use half_split with a group column")
    if isinstance(game, PerDatum):
        return games.per_datum(n_points, game.target, n_models, references=game.references, seed=seed)
    if isinstance(game, AverageDatum):
        return games.average_datum(n_points, n_models, references=game.references, seed=seed)
    assert isinstance(game, Canaries), game
    return games.canaries(n_points, np.array(game.targets), n_models, references=game.references, seed=seed)


def queried(release: Described, points: Points, queries: Queries, seed: int) -> Described:
    """Let a release be asked about several versions of each record, where the audit says so."""
    if queries.n == 1:
        return release
    if isinstance(getattr(release, "dpsgd", None), DpSgd):
        raise ValueError(f"{release.name}: queries asks trained models; DP-SGD is observed by its steps: leave it out")
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
