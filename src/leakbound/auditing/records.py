"""Record by record: which records the strongest attack exposes, and what a person would want to see of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from leakbound.auditing.observed import FindingSpec, ObservedRelease
from leakbound.core.findings import Finding, Scope, Term
from leakbound.core.intervals import Interval
from leakbound.core.types import Attack, NotApplicable
from leakbound.data import preview
from leakbound.metrics.records import RecordGames, games_won, models_needed
from leakbound.reports.about import GamesFacts

Array = np.ndarray
RecordTable = Callable[[int | None], Mapping[str, Sequence[Any]]]  # of so many, the most exposed, or of all records
SHOWN = 10  # records with a strip and a preview


def no_records(most: int | None = None) -> Mapping[str, Sequence[Any]]:
    """Make the table of an audit that judges no single records."""
    return {}


@dataclass(frozen=True)
class RecordRisk:
    """What the games against single records show."""

    finding: Finding
    games: GamesFacts | None = None
    records: RecordTable = no_records
    exposed: Bool[Array, " J"] | None = None


def record_risk(observed: ObservedRelease, attack: Attack | None, confidence: float) -> RecordRisk:
    """Count the games that an attack wins against each record."""
    name = "" if attack is None else attack.name
    try:
        if attack is None:
            raise NotApplicable("no_attack")
        if observed.signals.game.is_target_point.ndim == 2:
            raise NotApplicable("target_of_its_own")
        scores = observed.by_unit(attack(observed.signals))
        record_games = games_won(scores, confidence, baseline_accuracy=baseline_accuracy_of(observed))
    except NotApplicable as reason:
        return RecordRisk(most_exposed_finding(observed, name, reason))
    # the limits hold for all records at once, so that the one with most correct guesses may be picked afterwards
    n_won, low = int(record_games.won.max()), float(record_games.low.max())
    won = np.bincount(record_games.won, minlength=record_games.games + 1)
    return RecordRisk(
        most_exposed_finding(observed, name, (n_won, record_games.games, low, confidence)),
        games_facts(
            won,
            attack.name,
            int(record_games.exposed.sum()),
            record_games.smallest_detectable,
            record_games.confidence,
            baseline_accuracy_of(observed),
        ),
        partial(_table, observed, record_games),
        record_games.exposed,
    )


def most_exposed_finding(
    observed: ObservedRelease, attack: str, found: NotApplicable | tuple[int, int, float, float]
) -> Finding:
    """Report the most exposed record, or why there is none."""
    spec = FindingSpec("most_exposed", "lower", attack, "clopper1934", per_record=True, scope=Scope("worst"))
    if isinstance(found, NotApplicable):
        return observed.finding(spec, found)
    n_won, n_games, low, confidence = found
    method = (Term("clopper_pearson"), Term("all_records_at_once"))
    number = Interval(n_won / n_games, low, 1.0, confidence, "none", method, {"won": n_won, "games": n_games})
    return observed.finding(spec, number)


def baseline_accuracy_of(observed: ObservedRelease) -> float:
    """Chance to win by the better prior guess."""
    prior = observed.signals.game.prior
    return min(max(prior, 1 - prior), 1 - 1e-9)


def games_facts(
    won: Int[Array, " g"],
    attack: str,
    n_exposed: int,
    smallest_detectable: float,
    confidence: float,
    baseline_accuracy: float,
) -> GamesFacts:
    """Say how many records lost 0, 1, ... games, and how many are exposed."""
    n_games, n_records = len(won) - 1, int(won.sum())
    needed = models_needed(n_records, confidence, baseline_accuracy)
    first_exposed = None
    if n_games >= needed:  # with fewer games even a record against which all are won is not exposed
        first_exposed = round(smallest_detectable * n_games)
    return GamesFacts(
        played=n_games,
        won=won.tolist(),
        first_exposed=first_exposed,
        exposed=n_exposed,
        records=n_records,
        attack=attack,
        smallest_detectable=smallest_detectable,
        models_needed=needed,
    )


def _table(observed: ObservedRelease, record_games: RecordGames, most: int | None = None) -> dict[str, Sequence[Any]]:
    """One row a record, or of the most exposed alone; ten of these with what a person would want to see of them."""
    game, points = observed.signals.game, observed.signals.points
    order = np.lexsort((-record_games.margin, -record_games.won))  # by correct guesses, ties by the mean margin
    rows = np.sort(order[:most])
    group, single = observed.group, observed.group is None
    units = (game.target_points if group is None else np.unique(group))[rows]
    labels = None
    if single and points and points.y is not None:
        labels = [str(value) for value in points.y[units]]
    # a unit of several rows has no single strip, label or preview
    shown = order[:SHOWN] if single else order[:0]
    has_odds = {"log_odds", "loss"} <= observed.signals.arrays.keys()  # margins are no probabilities
    strips: list[Any] = [None] * len(rows)
    members, previews = strips.copy(), strips.copy()
    for place in np.searchsorted(rows, shown).tolist():
        column = int(units[place])
        if has_odds:
            strips[place] = short(observed.signals.array("log_odds")[: game.n_targets, column])
            members[place] = game.member[: game.n_targets, column].astype(int).tolist()
        if observed.data is not None:
            previews[place] = preview(observed.data, column)
    names = observed.target_names  # of single records; a unit of several rows is named by its group
    return {
        "release": [observed.name] * len(rows),
        "record": units.tolist(),
        **({} if names is None else {"name": [names[row] for row in rows.tolist()]}),
        "label": labels or [""] * len(rows),
        "games": [record_games.games] * len(rows),
        "won": record_games.won[rows].tolist(),
        "low": record_games.low[rows].tolist(),
        "exposed": record_games.exposed[rows].tolist(),
        "margin": short(record_games.margin[rows]),
        "log_odds": strips,
        "member": members,
        "preview": previews,
    }


def short(values: Float[Array, " n"]) -> list[float]:
    """Six significant digits: enough to draw, and no noise in the bytes of the report."""
    return [float(f"{value:.6g}") for value in values]
