"""Play a game against releases: draw who is in, train and observe the models, and report what they reveal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from leakbound import data as data_room
from leakbound.attacks import Attack
from leakbound.auditing.adaptive import Look, Seen, look_until
from leakbound.auditing.attribute.game import AttributeGame, column_of, lay_out
from leakbound.auditing.attribute.run import refuse_unanswerable
from leakbound.auditing.canaries import Setting, plant
from leakbound.auditing.noise_tests import StepNoise, record_notes
from leakbound.auditing.observed import ObservedRelease
from leakbound.auditing.private_training import OWN_LAYERS_UNSEEN, PrivateTraining, promise
from leakbound.auditing.rehearsal import refuse_idle, rehearse
from leakbound.auditing.report import AuditRun, Criteria, assemble, judge_all
from leakbound.auditing.setup import draw, note_of_queries, queried
from leakbound.core import reasons
from leakbound.core.intervals import sampling_error
from leakbound.core.tradeoff.claims import Claim
from leakbound.core.types import Game, Points
from leakbound.data import Data
from leakbound.data.candidates import Column
from leakbound.data.columns import alike_levels, date_notes, identifier_notes, repeated_names
from leakbound.dpsgd.promise import AccountantClaim
from leakbound.plans.audits import AuditPlan, ClaimPlan, refuse_unknown
from leakbound.plans.games import Attribute, Canaries, Forgotten, Queries, queries_in
from leakbound.plans.games import Game as PlannedGame
from leakbound.plans.policies import PolicyPlan
from leakbound.releases.factory import Described, Structured, adapted, owner_notes
from leakbound.releases.forgetting import Forgetting
from leakbound.releases.scored import is_scored
from leakbound.releases.specs import first_line, imported
from leakbound.reports import Report
from leakbound.runtime.execution import Tally
from leakbound.runtime.observe import Execution, observe, observe_finished, store_notes
from leakbound.runtime.progress import progress

Array = np.ndarray


def play(
    plan: AuditPlan,
    attacks: Sequence[Attack],
    releases: Sequence[Described],
    loaded: Data,
    execution: Execution,
    command: str = "",
    game: PlannedGame | None = None,
) -> Report:
    """Draw the game, make the releases, attack them and report: all models at once, or more and more of them.

    A release that is trained by DP-SGD is compared with its accountant: the report has the curve as certified, with a
    verdict, and its epsilon next to those that the attacks prove. A game that is given may hold functions, of which the
    plan has the names.
    """
    played = plan.game if game is None else game
    names = [release.name for release in releases]
    if len(set(names)) < len(names):
        raise ValueError(
            f"two models have the same name; names: {', '.join(names)}; give each a name or parameters of its own"
        )
    refuse_unknown(plan, names)
    criteria = Criteria.of(plan)

    def see(look: Look, where: Execution) -> Seen:
        subjects = []
        for release in releases:
            audited = setting(played, look.n_models, attacks, release, loaded, plan.seed)
            subjects.append(_subject(audited, queries_in(played), plan.claim, plan.seed))
        run = _observed_all(subjects, attacks, loaded, where, plan.seed, look, criteria.policy)
        return Seen(run, judge_all(replace(criteria, confidence=look.confidence), attacks, run))

    if plan.until is None:
        look = Look(plan.models, plan.confidence)
        seen = see(look, execution)
    elif execution.store is None:
        raise ValueError("until needs a store (store=FOLDER): the models of a look stay there for the next one")
    else:
        # All looks share the seconds of a fit: a later look loads models from the store and would measure none. The
        # other counters begin anew in each look.
        seconds = execution.tally.seconds_a_model
        look, seen = look_until(
            plan.until,
            plan.confidence,
            lambda look: see(look, replace(execution, tally=Tally(seconds_a_model=seconds))),
        )
    return assemble(plan, replace(criteria, confidence=look.confidence), attacks, seen.run, seen.judgements, command)


@dataclass(frozen=True)
class _Subject:
    """A release in the setting in which it is audited, with what is claimed and promised of it."""

    setting: Setting
    queried: Described  # the release, asked about several versions of each record where the audit says so
    claims: Sequence[Claim]
    promise: AccountantClaim | None

    @property
    def name(self) -> str:
        return self.queried.name


def _subject(audited: Setting, queries: Queries, claims: Sequence[ClaimPlan], seed: int) -> _Subject:
    """Collect the claims about a release, which refuses those that are not possible."""
    own_claims = claims_of(claims, audited.release.name, audited.game)
    release = queried(audited.release, audited.data.points, queries, seed)
    return _Subject(audited, release, own_claims, promise(audited, own_claims))


def _observed_all(
    subjects: Sequence[_Subject],
    attacks: Sequence[Attack],
    loaded: Data,
    execution: Execution,
    seed: int,
    look: Look,
    policy: PolicyPlan | None,
) -> AuditRun:
    """Make and observe the models of all releases; one that cannot be fitted does not stop the others."""
    failed: dict[str, str] = {}
    # How many releases may fail before the audit stops: all but one. With from_store none may, because a missing model
    # is an error of the request and not of the model.
    most_failed = 0 if execution.from_store else len(subjects) - 1
    # Games, claims and promises are checked by now. Fit one small model of each release, so that what cannot be fitted
    # or asked is refused before hours are spent.
    if len(subjects) > 1 or any(attack.by_name for attack in attacks):
        rehearsals = []
        with progress("trial fits"):
            for subject in subjects:
                audited = subject.setting
                with _others_go_on(subject.name, failed, most_failed):
                    rehearsals.append(
                        rehearse(subject.queried, audited.data.points, audited.game, audited.wanted(attacks), seed)
                    )
        refuse_idle(attacks, rehearsals)
    observed_releases: list[ObservedRelease] = []
    trainings: dict[str, PrivateTraining] = {}
    settings: list[Setting] = []
    for subject in subjects:
        if subject.name in failed:
            continue
        with _others_go_on(subject.name, failed, most_failed):
            audited, arrays = _made(subject, attacks, seed, execution)
            observed = replace(audited.observed(arrays, subject.claims), n_looks=look.n_looks)
            if policy is not None and policy.structure is not None and isinstance(audited.release, Structured):
                # the model that would be released is fitted to the data as they were given, without canaries
                observed = replace(observed, structure=audited.release.structure(loaded.points, seed))
            observed_releases.append(observed)
            settings.append(audited)
            training = PrivateTraining.of(audited, subject.promise)
            if training is not None:
                trainings[observed.name] = training
    notes = [
        *_notes_of_finished([subject.setting for subject in subjects], observed_releases),
        *loaded.notes,
        *_notes_of_data(loaded.points, settings[0].game, look.confidence),
        *store_notes([audited.release for audited in settings], execution),
        *_notes_of_layers(trainings),
        *note_of_queries([subject.queried for subject in subjects]),
        *_notes_of_noise(observed_releases),
    ]
    owner = tuple(owner_notes(audited.release for audited in settings))
    return AuditRun(observed_releases, trainings, notes, owner, execution.facts, failed)


def _made(
    subject: _Subject, attacks: Sequence[Attack], seed: int, execution: Execution
) -> tuple[Setting, Mapping[str, Float[Array, "M ..."]]]:
    """Make the models of a release, or take those that are finished: the game is then of these alone."""
    audited = subject.setting
    job = (subject.queried, audited.data.points.unnamed, audited.game.member, audited.wanted(attacks), seed, execution)
    if execution.from_store != "finished":
        return audited, observe(*job)
    arrays, is_made = observe_finished(*job)
    if not is_made.all():
        audited = replace(audited, game=audited.game.of_models(is_made))
    return audited, arrays


def _notes_of_finished(settings: Sequence[Setting], releases: Sequence[ObservedRelease]) -> list[str]:
    """Say of which releases only a part of the models was finished."""
    planned = {audited.release.name: audited.game.n_models for audited in settings}
    return [
        f"{observed.name}: {observed.signals.game.n_models:,} of {planned[observed.name]:,} models were finished when "
        "this audit was made, and it is of these alone"
        for observed in releases
        if observed.signals.game.n_models < planned[observed.name]
    ]


@contextmanager
def _others_go_on(name: str, failed: dict[str, str], most_failed: int) -> Iterator[None]:
    """Note that a release cannot be fitted, and let the audit of the others go on; without others it is an error."""
    try:
        yield
    except (ValueError, RuntimeError, MemoryError) as error:
        if len(failed) == most_failed:
            raise
        failed[name] = first_line(error)


def loaded_data(plan: AuditPlan, releases: Sequence[Described]) -> Data:
    """Read the data of a plan; where scores or files of generators are what is seen, a table needs no label."""
    source = plan.data or plan.dataset or "digits"
    if not plan.has_labels and all(is_scored(release) for release in releases):
        return data_room.read(source, plan.drop, plan.id, plan.slices, group=plan.group, **plan.csv)
    return data_room.load(source, plan.label, plan.group, plan.drop, plan.id, plan.slices, **plan.csv)


def setting(
    game: PlannedGame, n_models: int, attacks: Sequence[Attack], release: Described, loaded: Data, seed: int = 0
) -> Setting:
    """Combine a release with the data and the game of its audit: the same for all, unless canaries are planted.

    >>> from leakbound import data
    >>> from leakbound.plans.games import HalfSplit
    >>> from leakbound.releases.factory import release_from
    >>> tree = release_from("sklearn.tree:DecisionTreeClassifier", {})
    >>> setting(HalfSplit(), 4, [], tree, data.load("wine")).game.member.shape
    (4, 178)
    """
    release = adapted(release, loaded.points)
    if isinstance(game, Canaries) and not game.targets:
        return plant(game, n_models, release, loaded, seed)
    drawn = draw(game, n_models, loaded.points, attacks, seed)
    if isinstance(game, Forgotten):
        unlearn = imported(game.unlearn) if isinstance(game.unlearn, str) else game.unlearn
        release = adapted(Forgetting(release, unlearn, drawn.is_target_point, game.kept), loaded.points)
    return Setting(release, loaded, drawn)


def claims_of(planned: Sequence[ClaimPlan], release: str, game: Game) -> list[Claim]:
    """List the claims about a release, in the game that is played."""
    baseline_accuracy = max(game.prior, 1 - game.prior)
    claims = []
    for claim in planned:
        if claim.model not in ("", release):
            continue
        if claim.epsilon is not None:
            claims.append(Claim("epsilon", claim.epsilon, claim.delta, claim.adjacency))
        elif claim.mu is not None:
            claims.append(Claim("mu", claim.mu, 0.0, claim.adjacency))
        else:
            eta = claim.eta if claim.eta is not None else (claim.accuracy or 0.0) - baseline_accuracy
            if not 0 <= eta <= 1 - baseline_accuracy:
                raise ValueError(
                    f"a claim of eta = {eta:g} is not possible where the baseline accuracy is {baseline_accuracy:.3g}; "
                    f"eta is from 0 to {1 - baseline_accuracy:.3g}, accuracy from {baseline_accuracy:.3g} to 1"
                )
            claims.append(Claim("eta", eta))
    return claims


def _notes_of_data(points: Points, game: Game, confidence: float) -> Iterator[str]:
    """Yield what a reader of the report should know of the data."""
    n_repeated = int(data_room.repeated(points).sum())
    if n_repeated:
        repeats = f"{n_repeated:,} of {len(points):,} points repeat an earlier one in all features and the label"
        what_to_do = "; if they are rows of the same unit, name its column as group (--group), else remove the repeats"
        yield repeats + (what_to_do if points.group is None else "")
    yield from identifier_notes(points)
    yield from date_notes(points)
    yield from alike_levels(points)
    yield from repeated_names(points)
    yield from _note_of_sample(points, game, confidence)


def _notes_of_layers(trainings: Mapping[str, PrivateTraining]) -> Iterator[str]:
    """Yield of which trainings the network's own layers are not seen."""
    for name, training in trainings.items():
        if training.own_layers_unseen:
            yield (
                f"{name}: {reasons.words(OWN_LAYERS_UNSEEN)}. Those are tested by the first steps of a "
                "training on copies of one record"
            )


def _note_of_sample(points: Points, game: Game, confidence: float) -> Iterator[str]:
    """Yield how far all records may be from those that were drawn to be attacked."""
    if game.sampled_from is None:
        return
    n = game.n_target_points if points.group is None else len(np.unique(points.group[game.target_points]))
    yield (
        f"The attacked records are a random sample of {n:,} of {game.sampled_from:,}. Numbers, intervals and the most "
        "exposed record are about the sample. The average over all of a quantity from 0 to 1, as the rate at which a "
        "fixed attack is right, differs from that of the sample by at most "
        f"{sampling_error(n, game.sampled_from, confidence):.2g} (confidence {confidence:g}; Serfling 1974)"
    )


def _notes_of_noise(releases: Sequence[ObservedRelease]) -> Iterator[str]:
    """Yield what could not be measured of the noise in the steps of DP-SGD."""
    for observed in releases:
        noise = StepNoise.of(observed.diagnostics)
        if noise is not None and noise.note:
            yield f"{observed.name}: {noise.note}"
        for note in record_notes(observed.diagnostics):
            yield f"{observed.name}: {note}"


def attribute_game_of(
    plan: AuditPlan, attacks: Sequence[Attack], loaded: Data, column: Column | None = None
) -> AttributeGame:
    """Lay out the game about an attribute that a plan names, or whose values a call gives."""
    assert isinstance(plan.game, Attribute), plan.game
    refuse_unanswerable(attacks)
    if plan.claim:
        raise ValueError("a claim is about membership; an audit of an attribute tests none")
    if column is None:
        column = column_of(plan.game.column, plan.data, plan.label, plan.drop)
    return lay_out(plan.game, column, plan.models, attacks, loaded, plan.seed)
