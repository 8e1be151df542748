"""From signals to findings, curves and records: attacks, metrics and claims meet here."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float, Shaped

from leakscope import metrics
from leakscope.claims import Claim
from leakscope.data import Data, preview
from leakscope.intervals import Interval
from leakscope.metrics import epsilon, records
from leakscope.refuting import Trial, verdict
from leakscope.report import Curve
from leakscope.tradeoff import EpsilonDelta
from leakscope.types import Attack, Finding, NotApplicable, Scores, Side, Signals

Array = np.ndarray
SHOWN = 10  # records with a strip and a preview
BAND_RATES = 40  # where a band is drawn
DEFAULT_DELTA = 1e-5


@dataclass(frozen=True)
class Subject:
    """A release that has been observed, with what the report says about it.

    Parameters
    ----------
    name : str
        Unique in the report.
    signals : Signals
    data : Data or None
        None where scores or signals come without their points.
    claims : sequence of Claim
    facts : mapping
        What the report says about the release beyond its game.
    """

    name: str
    signals: Signals
    data: Data | None = None
    claims: Sequence[Claim] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def group(self) -> Shaped[Array, " J"] | None:
        """Unit of each judged point, where a unit has several rows."""
        points = self.signals.points
        if points is None or points.group is None:
            return None
        return points.group[self.signals.game.columns]


@dataclass(frozen=True)
class Judgement:
    """What the report holds of one release."""

    findings: Sequence[Finding]
    curves: Sequence[Curve]
    records: Mapping[str, Sequence[Any]]
    facts: Mapping[str, Any]


def judge(subject: Subject, attacks: Sequence[Attack], fpr: Sequence[float], confidence: float) -> Judgement:
    """Attack one release and measure how far the attacks get.

    An attack that does not apply becomes a finding with its reason; any other exception stops the audit.

    Parameters
    ----------
    subject : Subject
    attacks : sequence of Attack
    fpr : sequence of float
        False-alarm rates of interest.
    confidence : float
        Of the intervals.

    Returns
    -------
    Judgement
    """
    findings: list[Finding] = []
    curves: list[Curve] = []
    for attack in attacks:
        try:
            scores = by_unit(attack(subject.signals), subject.group)
        except NotApplicable as reason:
            findings.append(_finding(subject, attack.name, "success", "lower", {}, attack.source, reason))
            continue
        findings += measure(subject, attack, scores, fpr, confidence)
        if any(each.attack == attack.name and each.value is not None for each in findings):
            curves.append(measured_curve(subject, attack.name, scores, confidence))
    best = strongest(findings)
    rows: dict[str, Sequence[Any]] = {}
    games = None
    if best:
        winner = next(attack for attack in attacks if attack.name == best)
        scores = by_unit(winner(subject.signals), subject.group)
        exposed, games, rows = _exposed(subject, winner, scores, confidence)
        findings.append(exposed)
    trial = Trial.of(subject.signals, attacks, partial(by_unit, group=subject.group))
    findings.append(_epsilon(subject, trial, confidence))
    curves += [_claimed(subject, claim, trial, findings) for claim in subject.claims]
    return Judgement(findings, curves, rows, _facts(subject, best, games))


def measure(
    subject: Subject, attack: Attack, scores: Scores, fpr: Sequence[float], confidence: float
) -> Iterator[Finding]:
    """The findings of one attack."""
    prior = subject.signals.game.prior
    finding = partial(_finding, subject, attack.name, source=attack.source)
    yield finding(
        "success", "lower", {"prior": prior}, number=_try(metrics.success, scores, prior, confidence)
    )
    yield finding("advantage", "lower", {}, number=_try(metrics.advantage, scores, confidence))
    yield finding("auc", "point", {}, number=_try(metrics.auc, scores, confidence))
    for rate in fpr:
        number = _try(metrics.tpr_at_fpr, scores, rate, confidence)
        yield finding("tpr", "lower", {"fpr": rate}, number=number)
    for rate in fpr:
        number = _try(metrics.ppv, scores, rate, prior, confidence)
        yield finding("ppv", "point", {"fpr": rate, "prior": prior}, number=number)
    for inside in (True, False):
        number = _try(metrics.average_precision, scores, confidence, inside)
        yield finding("average_precision", "point", {"inside": float(inside)}, number=number)


def measured_curve(subject: Subject, name: str, scores: Scores, confidence: float) -> Curve:
    """The ROC with its band, from ten false alarms or the strictest threshold on."""
    n_nonmember = int(scores.member.size - np.count_nonzero(scores.member))
    roc = metrics.roc(scores)
    inner = np.unique(roc.at[(roc.at > 0) & (roc.at < 1)])
    if len(inner) < 2:  # a single threshold is a point, not a curve
        return Curve(name, subject.name, "measured", roc, n_nonmember=n_nonmember)
    at = np.geomspace(min(max(inner[0], 10 / n_nonmember), 0.5), 1.0, BAND_RATES + 1)[:-1]
    _, low, high = metrics.roc_band(scores, at, confidence)
    return Curve(name, subject.name, "measured", roc, at, low, high, confidence, n_nonmember)


def strongest(findings: Sequence[Finding]) -> str:
    """The attack whose success has the largest lower end; "" if none applies."""
    success = [each for each in findings if each.quantity == "success" and each.low is not None]
    return max(success, key=lambda each: each.low or 0.0).attack if success else ""


def by_unit(scores: Scores, group: Shaped[Array, " J"] | None) -> Scores:
    """Scores of units with several rows: the mean over the rows of each, in the order of the units' names."""
    if group is None:
        return scores
    _, first, unit, rows = np.unique(group, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(unit, kind="stable")
    starts = np.r_[0, np.cumsum(rows)[:-1]]
    mean = np.add.reduceat(scores.value[:, order], starts, axis=1, dtype=np.float64) / rows
    return Scores(scores.attack, mean.astype(scores.value.dtype), scores.member[:, first], scores.source)


def _try(measure: Callable[..., Interval], *given: Any) -> Interval | NotApplicable:
    """A metric, or the reason why it does not apply."""
    try:
        return measure(*given)
    except NotApplicable as reason:
        return reason


def _finding(
    subject: Subject,
    attack: str,
    quantity: str,
    side: Side,
    at: Mapping[str, float],
    source: str,
    number: Interval | NotApplicable,
) -> Finding:
    game = subject.signals.game
    played = f"{game.kind}, others from the pool" if game.others == "pool" else f"{game.kind}, others fresh"
    common = {
        "release": subject.name,
        "attack": attack,
        "game": played,
        "source": source,
        "side": side,
        "at": dict(at),
    }
    if isinstance(number, NotApplicable):
        return Finding(quantity, None, reason=str(number), **common)
    return Finding(
        quantity,
        number.value,
        number.low,
        number.high,
        confidence=number.confidence,
        averages=number.averages,
        method=number.method,
        detail=dict(number.detail),
        **common,
    )


def _exposed(
    subject: Subject, attack: Attack, scores: Scores, confidence: float
) -> tuple[Finding, dict[str, Any] | None, dict[str, Sequence[Any]]]:
    """The most exposed record, the histogram of games won, and the table of records."""
    number: Interval | NotApplicable
    try:
        if subject.signals.game.judged.ndim == 2:
            raise NotApplicable("each model has a target of its own: no record plays more than one game")
        won = records.games_won(scores, confidence)
    except NotApplicable as reason:
        return _finding(subject, attack.name, "most_exposed", "lower", {}, "", reason), None, {}
    top = _most_exposed(won)
    number = Interval(
        won.won[top[0]] / won.games,
        float(won.low[top[0]]),
        1.0,
        confidence,
        "none",
        "Clopper-Pearson, all records at once",
        {"won": int(won.won[top[0]]), "games": won.games},
    )
    exposed = np.flatnonzero(won.exposed)
    facts = {
        "won": np.bincount(won.won, minlength=won.games + 1),
        "first_exposed": int(won.won[exposed].min()) if len(exposed) else None,
        "exposed": len(exposed),
        "records": len(won.won),
        "attack": attack.name,
        "smallest_detectable": won.smallest_detectable,
        "models_needed": records.models_needed(len(won.won), confidence),
    }
    finding = _finding(subject, attack.name, "most_exposed", "lower", {}, "Clopper & Pearson 1934", number)
    return finding, facts, _table(subject, won, top[:SHOWN])


def _most_exposed(won: records.RecordGames) -> Array:
    """Records from the most exposed on: by games won, ties by the mean margin."""
    return np.lexsort((-won.margin, -won.won))


def _table(subject: Subject, won: records.RecordGames, shown: Array) -> dict[str, Sequence[Any]]:
    """One row a record; the most exposed ones with what a person would want to see of them."""
    signals, game = subject.signals, subject.signals.game
    n_units = len(won.won)
    names = game.columns if subject.group is None else np.unique(subject.group)
    strips: list[Any] = [None] * n_units
    members: list[Any] = [None] * n_units
    previews: list[Any] = [None] * n_units
    if subject.group is None:
        for place in shown:
            column = int(game.columns[place])
            if "log_odds" in signals.arrays:
                strips[place] = _short(signals.array("log_odds")[: game.n_targets, column])
                members[place] = game.member[: game.n_targets, column].astype(int)
            if subject.data is not None:
                previews[place] = preview(subject.data, column)
    y = None if signals.points is None or subject.group is not None else signals.points.y
    return {
        "release": [subject.name] * n_units,
        "record": names,
        "label": [""] * n_units if y is None else [str(value) for value in y[game.columns]],
        "games": [won.games] * n_units,
        "won": won.won,
        "low": _short(won.low),
        "exposed": won.exposed,
        "margin": _short(won.margin),
        "log_odds": strips,
        "member": members,
        "preview": previews,
    }


def _short(values: Float[Array, " n"]) -> Sequence[float]:
    """Six significant digits: enough to draw, and no noise in the bytes of the report."""
    return [float(f"{value:.6g}") for value in values]


def _epsilon(subject: Subject, trial: Trial, confidence: float) -> Finding:
    """The largest lower bound of epsilon over the attacks, corrected for their number."""
    delta = max([claim.delta for claim in subject.claims], default=0.0) or DEFAULT_DELTA
    attack, number = trial.epsilon(delta, confidence)
    return _finding(
        subject, attack, "epsilon", "lower", {"delta": delta}, epsilon.METHODS[trial.method].source, number
    )


def _claimed(subject: Subject, claim: Claim, trial: Trial, findings: Sequence[Finding]) -> Curve:
    """A claim as the ceiling of the game that was played, with the verdict of the test."""
    made = verdict(claim, subject.signals.game, trial, findings)
    try:
        ceiling = claim.ceiling(subject.signals.game)
    except NotApplicable:  # the claim says nothing of this game: everything is allowed
        ceiling = EpsilonDelta(math.inf)
    return Curve(claim.text, subject.name, "claimed", ceiling, verdict=made)


def _facts(subject: Subject, best: str, games: Mapping[str, Any] | None) -> dict[str, Any]:
    game, data = subject.signals.game, subject.data
    n_units = game.n_judged if subject.group is None else len(np.unique(subject.group))
    return {
        "name": subject.name,
        "title": subject.name,
        "description": "",
        "data": {
            "name": "" if data is None else data.name,
            "digest": "" if data is None else data.points.digest[:16],
            "records": game.member.shape[1],
        },
        "game": game.kind,
        "sampling": game.sampling,
        "models": game.n_models,
        "targets": game.n_targets,
        "references": game.n_references,
        "judged": n_units,
        "population": len(game.population),
        "prior": game.prior,
        "best": best,
        "games": games,
        **subject.facts,
    }
