"""Record by record: which records the strongest attack exposes, and what a person would want to see of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from leakscope.auditing.observed import FindingSpec, ObservedRelease
from leakscope.core.findings import Finding, Scope, Term
from leakscope.core.intervals import Interval
from leakscope.core.types import Attack, NotApplicable
from leakscope.data import preview
from leakscope.metrics.records import RecordGames, games_won, models_needed
from leakscope.reports.about import GamesFacts

Array = np.ndarray
SHOWN = 10  # records with a strip and a preview


@dataclass(frozen=True)
class RecordRisk:
    """What the games against single records show.

    Parameters
    ----------
    finding : Finding
        The most exposed record, or the reason why there is none.
    games : GamesFacts or None
        The histogram of games won, and how many records are exposed.
    records : mapping of str to list
        One table by columns, a row a record.
    """

    finding: Finding
    games: GamesFacts | None = None
    records: Mapping[str, Sequence[Any]] = field(default_factory=dict)


def record_risk(observed: ObservedRelease, attack: Attack | None, confidence: float) -> RecordRisk:
    """Count the games that an attack wins against each record.

    Parameters
    ----------
    observed : ObservedRelease
    attack : Attack or None
        The strongest one; None if no attack applies.
    confidence : float
        Of all records at once.

    Returns
    -------
    RecordRisk
    """
    name = "" if attack is None else attack.name
    asked = FindingSpec("most_exposed", "lower", name, "clopper1934", per_record=True, scope=Scope("worst"))
    try:
        if attack is None:
            raise NotApplicable("no_attack")
        if observed.signals.game.is_target_point.ndim == 2:
            raise NotApplicable("target_of_its_own")
        won = games_won(
            observed.by_unit(attack(observed.signals)), confidence, baseline_accuracy=_baseline_accuracy(observed)
        )
    except NotApplicable as reason:
        return RecordRisk(observed.finding(asked, reason))
    order = np.lexsort((-won.margin, -won.won))  # by games won, ties by the mean margin
    most, low = int(won.won[order[0]]), float(won.low[order[0]])
    method = (Term("clopper_pearson"), Term("all_records_at_once"))
    number = Interval(most / won.games, low, 1.0, confidence, "none", method, {"won": most, "games": won.games})
    return RecordRisk(
        observed.finding(asked, number),
        _histogram(won, attack.name, _baseline_accuracy(observed)),
        _table(observed, won, order[:SHOWN]),
    )


def _baseline_accuracy(observed: ObservedRelease) -> float:
    """Chance to win by the better prior guess."""
    prior = observed.signals.game.prior
    return min(max(prior, 1 - prior), 1 - 1e-9)


def _histogram(won: RecordGames, attack: str, baseline_accuracy: float) -> GamesFacts:
    needed = models_needed(len(won.won), won.confidence, baseline_accuracy)
    return GamesFacts(
        played=won.games,
        won=np.bincount(won.won, minlength=won.games + 1).tolist(),
        first_exposed=round(won.smallest_detectable * won.games) if won.games >= needed else None,
        exposed=int(won.exposed.sum()),
        records=len(won.won),
        attack=attack,
        smallest_detectable=won.smallest_detectable,
        models_needed=needed,
    )


def _table(observed: ObservedRelease, won: RecordGames, shown: Int[Array, " s"]) -> dict[str, Sequence[Any]]:
    """One row a record; the most exposed ones with what a person would want to see of them."""
    game, points = observed.signals.game, observed.signals.points
    n_units = len(won.won)
    group, single = observed.group, observed.group is None
    names = game.target_points if group is None else np.unique(group)
    labels = (
        [str(value) for value in points.y[game.target_points]] if single and points and points.y is not None else None
    )
    columns = {place: int(game.target_points[place]) for place in shown} if single else {}
    has_odds = {"log_odds", "loss"} <= observed.signals.arrays.keys()  # margins are no probabilities
    strips: list[Any] = [None] * n_units
    members, previews = strips.copy(), strips.copy()
    for place, column in columns.items():
        if has_odds:
            strips[place] = _short(observed.signals.array("log_odds")[: game.n_targets, column])
            members[place] = game.member[: game.n_targets, column].astype(int).tolist()
        if observed.data is not None:
            previews[place] = preview(observed.data, column)
    return {
        "release": [observed.name] * n_units,
        "record": names.tolist(),
        "label": labels or [""] * n_units,
        "games": [won.games] * n_units,
        "won": won.won.tolist(),
        "low": won.low.tolist(),
        "exposed": won.exposed.tolist(),
        "margin": _short(won.margin),
        "log_odds": strips,
        "member": members,
        "preview": previews,
    }


def _short(values: Float[Array, " n"]) -> list[float]:
    """Six significant digits: enough to draw, and no noise in the bytes of the report."""
    return [float(f"{value:.6g}") for value in values]
