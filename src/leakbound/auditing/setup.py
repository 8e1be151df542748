"""What a plan and its attacks ask for: the game, the signals, and the points set aside."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from leakbound.attacks import Attack
from leakbound.core import games
from leakbound.core.signals import QUERY_SIGNALS
from leakbound.core.types import Game, Points
from leakbound.dpsgd.config import DpSgd
from leakbound.plans.audits import AuditPlan
from leakbound.releases.factory import Described
from leakbound.releases.queries import Queried, Versions

POPULATION = 0.1  # fraction of the points that is set aside where an attack needs draws from the population


def draw(plan: AuditPlan, points: Points, attacks: Sequence[Attack]) -> Game:
    """Draw the game of a plan."""
    n_points, references, seed = len(points), plan.references, plan.seed
    if plan.game == "half_split":
        return games.half_split(
            n_points,
            plan.n_models,
            seed=seed,
            sampling=plan.sampling,
            population=population_share(attacks),  # a tenth of the points, if an attack needs it
            group=points.group,
            sample=plan.sample,
        )
    if points.group is not None:
        raise ValueError(f"the game {plan.game} is played by single records; use half_split with a group column")
    if plan.game == "per_datum":
        return games.per_datum(n_points, plan.target[0], plan.n_models, references=references, seed=seed)
    if plan.game == "average_datum":
        return games.average_datum(n_points, plan.n_models, references=references, seed=seed)
    return games.canaries(n_points, np.array(plan.target), plan.n_models, references=references, seed=seed)


def queried(
    release: Described, points: Points, plan: AuditPlan, function: Callable[..., Any] | None = None
) -> Described:
    """Let a release be asked about several versions of each record, where the plan says so."""
    if plan.n_queries == 1:
        return release
    if isinstance(getattr(release, "dpsgd", None), DpSgd):
        raise ValueError(
            f"{release.name}: n_queries asks trained models; DP-SGD is observed by its steps: leave it out"
        )
    how = plan.versions if function is None else function
    return Queried(release, Versions.for_points(points, plan.n_queries, how, plan.seed))


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
