"""What a plan and its attacks ask for: the game, the signals, and the points set aside."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from leakscope.attacks import Attack
from leakscope.core import games
from leakscope.core.types import Game, Points
from leakscope.plans.audits import AuditPlan

POPULATION = 0.1  # fraction of the points that is set aside where an attack needs draws from the population


def draw(plan: AuditPlan, points: Points, attacks: Sequence[Attack]) -> Game:
    """Draw the game of a plan.

    Parameters
    ----------
    plan : AuditPlan
    points : Points
    attacks : sequence of Attack
        If one of them compares with the population, a tenth of the points is set aside for it.

    Returns
    -------
    Game

    Raises
    ------
    ValueError
        If the game does not fit the points.
    """
    n_points, references, seed = len(points), plan.references, plan.seed
    if plan.game == "half_split":
        return games.half_split(
            n_points,
            plan.n_models,
            seed=seed,
            sampling=plan.sampling,
            population=population_share(attacks),
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


def wanted(attacks: Sequence[Attack]) -> list[str]:
    """List the signals of the attacks, the log-odds that the page shows of records, and the errors behind the gap."""
    return sorted({"correct", "log_odds", *(name for attack in attacks for name in attack.signals)})


def population_share(attacks: Sequence[Attack]) -> float:
    """Return the fraction of the points to set aside as draws from the population."""
    return POPULATION if any(attack.needs_population for attack in attacks) else 0.0
