"""Attribute inference: how well a release reveals a sensitive attribute, and how well that goes without it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from leakbound.attacks import Attack
from leakbound.attacks.attribute import OFFLINE, WITH_PRIOR, candidate_scores
from leakbound.auditing.attribute.game import AttributeBaselines, AttributeGame, best_baseline, without_release
from leakbound.auditing.canaries import is_private
from leakbound.auditing.observed import FindingSpec, ObservedRelease
from leakbound.auditing.rehearsal import cannot_run, refuse_idle, rehearse
from leakbound.auditing.report import PACKAGES, described
from leakbound.auditing.setup import draw, refuse_scored
from leakbound.core.findings import Finding, Term
from leakbound.core.intervals import Interval
from leakbound.core.types import NotApplicable, Signals
from leakbound.data import Data
from leakbound.data.candidates import Candidates, Column
from leakbound.data.columns import alike_levels
from leakbound.metrics.attribute import attribute_accuracy, attribute_gain, right
from leakbound.plans.audits import JudgedPlan
from leakbound.plans.games import HalfSplit
from leakbound.releases.factory import Described, adapted, owner_notes, prepared
from leakbound.reports import Report
from leakbound.reports.about import (
    AttributeAbout,
    AttributeFacts,
    DataFacts,
    TheoremFacts,
    envelope,
)
from leakbound.runtime.observe import Execution, observe, store_notes

BASELINES: Mapping[str, TheoremFacts] = {
    "prior_guess": TheoremFacts(
        title="Prior guess",
        source="",
        summary="The most frequent value among records that the model was not trained on.",
    ),
    "imputation": TheoremFacts(
        title="Imputation",
        source="",
        summary="A random forest that has learned the value from all other columns and the label, on records that "
        "the model was not trained on, and has not seen the release.",
    ),
}


def infer(
    attribute_game: AttributeGame,
    attacks: Sequence[Attack],
    releases: Sequence[Described],
    loaded: Data,
    execution: Execution,
    plan: JudgedPlan,  # of the report
    command: str = "",
) -> Report:
    """Play the game about an attribute against each release and report what the release adds.

    Every model is trained on a random half of the records as they are. An attacker knows a record but for its
    attribute, asks the model about each value that it may have, and answers with the best one. How often that is right
    about members says little by itself: a value may be frequent, or follow from the other columns. So the same
    members are guessed without the release, and only the difference is what the release adds.

    Records of one group are in or out together, so that who imputes has seen nobody of it. Each is guessed by itself;
    a group counts once, with the mean over its records, and the intervals are over groups.

    >>> from sklearn.datasets import load_wine
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> import leakbound as ls
    >>> X, y = load_wine(return_X_y=True)
    >>> game = ls.Attribute("x0", bins=4)
    >>> report = ls.audit(DecisionTreeClassifier(), X, y, game=game, n_models=8, attacks="loss", n_jobs=1)
    >>> [finding.attack for finding in report.findings if finding.quantity == "attribute_gain"]
    ['loss']
    """
    refuse_scored(releases, "an audit of an attribute", "audit membership")
    # What can be guessed without any release comes first: every release is compared with it.
    baselines = without_release(attribute_game, execution, plan.seed)
    _refuse_idle(attribute_game, attacks, releases, plan.seed)
    findings: list[Finding] = []
    facts: list[AttributeFacts] = []
    # Each release is asked about the candidates of a record: its rows with every value of the attribute.
    adapted_releases = [
        adapted(of_records(release, attribute_game.rows), attribute_game.rows.points) for release in releases
    ]
    for release in adapted_releases:
        points, game = attribute_game.rows.points, attribute_game.game
        arrays = observe(release, points, game.member, signals_of(attacks), plan.seed, execution)
        observed = ObservedRelease(release.name, Signals.observed(game, points, arrays), loaded)
        release_findings = list(judge(observed, baselines, attacks, plan.confidence))
        findings += release_findings
        facts.append(_facts(observed, baselines, release_findings, release.description))
    notes = [
        *loaded.notes,
        *alike_levels(loaded.points),
        *_notes(baselines, len(loaded.points)),
        *filter(None, (prepared(release, attribute_game.rows.points) for release in adapted_releases)),
        *store_notes(releases, execution),
    ]
    common = envelope(
        plan.model_dump(), PACKAGES, seed=plan.seed, confidence=plan.confidence, command=command, notes=tuple(notes)
    )
    about = AttributeAbout(
        kind="attribute",
        **common,
        owner_notes=tuple(owner_notes(adapted_releases)),
        attacks={**{attack.name: described(attack) for attack in attacks}, **BASELINES},
        execution=execution.facts,
        releases=tuple(facts),
    )
    return Report(about, tuple(findings))


def refuse_unanswerable(attacks: Sequence[Attack]) -> None:
    """Refuse a strategy that was asked for by its name, and whose references would know the answer."""
    for attack in attacks:
        if attack.by_name and attack.needs_references and attack.name.partition("(")[0] not in OFFLINE:
            raise cannot_run(attack.name, Term("knows_the_answer"))


def _refuse_idle(
    attribute_game: AttributeGame, attacks: Sequence[Attack], releases: Sequence[Described], seed: int
) -> None:
    """Refuse a strategy that was asked for by its name and can run on none of the releases, before the first fit."""
    if len(releases) < 2 and not any(attack.by_name for attack in attacks):
        return
    rows = attribute_game.rows
    records = rows.points.take(np.flatnonzero(rows.own))  # as the releases train on them
    game = draw(HalfSplit(), attribute_game.records.n_models, records, attacks, seed)
    rehearsals = [rehearse(release, records, game, signals_of(attacks), seed) for release in releases]
    refuse_idle(attacks, rehearsals)


def named(column: Column) -> str:
    """Name the attribute of a column as the plan of a call does."""
    if isinstance(column, str):
        return column
    return f"x{column}" if isinstance(column, int) else "attribute"


def of_records(release: Described, rows: Candidates) -> Described:
    """Adapt a release to rows of which most are candidates: DP-SGD divides by the number of records that it expects."""
    if not is_private(release) or release.watched:
        return release
    return replace(release, watched=tuple(np.flatnonzero(rows.own).tolist()))


def signals_of(attacks: Sequence[Attack]) -> list[str]:
    """Names of the signals that these strategies look at."""
    return sorted({name for attack in attacks for name in attack.signals})


def judge(
    observed: ObservedRelease, baselines: AttributeBaselines, attacks: Sequence[Attack], confidence: float
) -> Iterator[Finding]:
    """Measure how often each strategy is right about members and others, and what it adds to the baselines."""
    member, best = baselines.unit_member, best_baseline(baselines)
    baseline = baselines.by_unit(baselines.accuracy[best]) if best else np.full(member.shape, baselines.chance)

    def of(quantity: str, attack: str, number: Interval | NotApplicable, inside: bool | None = None) -> Finding:
        at = {} if inside is None else {"inside": float(inside)}
        source = next((row.source for row in attacks if row.name == attack), "")
        bound_type = "lower" if attack not in BASELINES and inside is not False else "point"
        return observed.finding(FindingSpec(quantity, bound_type, attack, source, at), number)

    for attack in attacks:
        try:
            score = candidate_scores(attack, observed.signals)
            if attack.name.partition("(")[0] in WITH_PRIOR:  # Bayes: log-likelihood plus log-prior
                score = score + baselines.log_prior
        except NotApplicable as reason:
            yield of("attribute_gain", attack.name, reason)
            continue
        guessed = baselines.by_unit(right(score, baselines.truth))
        yield of("attribute_gain", attack.name, attribute_gain(guessed, baseline, member, confidence))
        yield of("attribute_accuracy", attack.name, attribute_accuracy(guessed, member, confidence), True)
        # the imputation was trained on the others, so that its prior would know the answer for them
        if attack.name.partition("(")[0] in WITH_PRIOR:
            yield of("attribute_accuracy", attack.name, NotApplicable("learned_from_others"), False)
        else:
            yield of("attribute_accuracy", attack.name, attribute_accuracy(guessed, ~member, confidence), False)
    for name, guessed in baselines.accuracy.items():
        yield of("attribute_accuracy", name, attribute_accuracy(baselines.by_unit(guessed), member, confidence), True)


def _notes(baselines: AttributeBaselines, n_records: int) -> Iterator[str]:
    if (n_attacked := len(baselines.truth)) < n_records:
        yield f"{n_attacked:,} of {n_records:,} records are attacked, drawn at random; the others are in the game alone"
    if (n_units := len(np.unique(baselines.attribute_game.unit))) < n_attacked:
        yield (
            f"the {n_attacked:,} attacked records are of {n_units:,} units, whose records are in or out together; each "
            "counts once, with the mean over its records, and where intervals speak of records they mean units"
        )
    if len(baselines.member) < 8:
        yield "with fewer than 8 models the intervals speak of other records, not of other models"


def _facts(
    observed: ObservedRelease, baselines: AttributeBaselines, findings: Sequence[Finding], description: str
) -> AttributeFacts:
    """Collect the facts about a release that the report states."""
    # an attack without an interval is never called the best
    gains = [finding for finding in findings if finding.quantity == "attribute_gain" and finding.low is not None]
    attribute_game, data = baselines.attribute_game, observed.data
    return AttributeFacts(
        name=observed.name,
        title=observed.name,
        description=description,
        data=DataFacts(
            name="" if data is None else data.name,
            digest="" if data is None else data.points.digest[:16],
            records=int(attribute_game.rows.own.sum()),
        ),
        attribute=attribute_game.attribute.name,
        values=len(attribute_game.attribute.names),
        chance=baselines.chance,
        # a record that stands in several units is attacked once
        attacked=len(np.unique(baselines.attribute_game.unit)),
        sampling=attribute_game.records.sampling,
        models=attribute_game.records.n_models,
        population=len(attribute_game.records.population),
        baseline=best_baseline(baselines),
        best=max(gains, key=lambda gain: gain.low or 0.0).attack if gains else "",
    )
