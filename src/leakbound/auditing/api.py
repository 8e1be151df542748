"""Audits: from a plan, a model, signals or scores to a report."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float

from leakbound import data as data_room
from leakbound.attacks import UNKNOWN_INFLATION, Attack, Score, find
from leakbound.attacks.attribute import strategies
from leakbound.attacks.balance import design_of
from leakbound.attacks.given import Given
from leakbound.auditing.attribute.run import infer, named
from leakbound.auditing.baseline import SourceTest, same_source
from leakbound.auditing.canaries import Setting, all_planned, attacks_on, private_network
from leakbound.auditing.evaluate import GIVEN_SPLITS
from leakbound.auditing.observed import ObservedRelease
from leakbound.auditing.policy import refuse_unknown_attacks
from leakbound.auditing.rehearsal import Rehearsal, cannot_run, refuse_idle, rehearse
from leakbound.auditing.report import AuditRun, reported
from leakbound.auditing.run import attribute_game_of, claims_of, loaded_data, play, setting
from leakbound.auditing.setup import (
    note_of_queries,
    notes_of_game,
    population_share,
    queried,
    refuse_no_coins,
    wanted,
)
from leakbound.auditing.synthetic.run import attacks_on_synthetic, audit_tables
from leakbound.auditing.synthetic.tables import read_tables
from leakbound.core import games
from leakbound.core.checks import known_keywords, one_line, one_of
from leakbound.core.findings import Term
from leakbound.core.signals import SCORES
from leakbound.core.types import Game, Points, Signals
from leakbound.data import Data
from leakbound.data.columns import alike_levels, date_notes, identifier_notes, repeated_names, without_names
from leakbound.data.points import with_names
from leakbound.data.slices import Slices, by_columns, refuse_without_groups, sliced
from leakbound.dpsgd.config import DpSgd
from leakbound.dpsgd.planted import PlantedCanaries, read_game
from leakbound.plans.audits import AuditPlan, ClaimPlan, GivenPlan, SyntheticPlan, TrainedPlan
from leakbound.plans.fitted import Fitted
from leakbound.plans.games import Attribute, Forgotten, Fresh, HalfSplit, Queries, game_of, queries_of
from leakbound.plans.games import Game as PlannedGame
from leakbound.plans.moved import OF_AUDITS, keywords
from leakbound.plans.page import Page, Store, store_of
from leakbound.plans.plan import P, asked_of, read
from leakbound.plans.until import Until
from leakbound.plans.variants import Variant, variants
from leakbound.releases.factory import (
    Described,
    adapted,
    collate_in,
    family,
    owner_notes,
    prepared,
    refuse_without_labels,
    release_of,
    trained_release,
)
from leakbound.releases.model_files import SUFFIXES as MODEL_FILES
from leakbound.releases.networks.recipe import Recipe
from leakbound.releases.specs import is_dataset, is_network, only_from, own
from leakbound.releases.structure import Structure, class_and_parameters, structure_of
from leakbound.reports import Report
from leakbound.runtime.fits import Filled, n_chunks_of
from leakbound.runtime.observe import Execution, Tally, fill, observe, read_signals, store_notes, write_signals

Array = np.ndarray
Claims = str | ClaimPlan | Mapping[str, Any] | Sequence[str | ClaimPlan | Mapping[str, Any]]
NO_RECIPE = frozenset({"random_state", "n_jobs", "verbose", "warm_start", "copy_X", "device", "nthread"})
MOST_PARAMETERS = 4  # that are named where a recipe differs
MEMBERS_AND_OTHERS = "members and others"  # what the report calls the data of a trained model


_MOVED = keywords(OF_AUDITS)


@known_keywords(_MOVED)
def audit(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    score: Any = None,
    game: PlannedGame | str = HalfSplit(),
    n_models: int | Until | None = None,
    train: Recipe | DpSgd | Mapping[str, Any] | None = None,
    vary: Mapping[str, Sequence[Any]] | None = None,
    attacks: str | Attack | Score | Sequence[str | Attack | Score] = "default",
    claims: Claims = (),
    policy: Any = None,
    groups: Any = None,
    ids: Any = None,
    fpr: float | Sequence[float] = (0.01, 0.001),
    confidence: float = 0.95,
    seed: int = 0,
    page: Page = Page(),
    store: Store | str | os.PathLike[str] | None = None,
    n_jobs: Any = None,
) -> Report:
    """Fit an estimator or a network again and again and measure what the models reveal about who is in their data.

    Parameters
    ----------
    estimator : estimator, function that trains, or class or function that makes a network
        An estimator with the scikit-learn interface, not fitted; or a function ``fit(X, y, seed)`` that trains
        anything and returns an object with ``predict_proba``, a regressor, a network or a function that predicts; or
        a class or function that makes a network of PyTorch. A mapping from names makes one report with a column each.
        With ``score``, ``fit(X, y, seed)`` or ``fit(X, seed)``, the seed may be left out, returns any object. Without
        ``y`` and ``score``, a generator of synthetic records: see `Generator`.
    X : array of shape (N, ...), frame of N rows, N texts, sparse matrix, or data set of PyTorch
        An estimator and a function that trains get its rows as they are. If an estimator refuses a frame's columns,
        they are encoded in each model, and the report says so. A Dataset or DataLoader of PyTorch holds the labels,
        too. Networks also take a mapping of arrays, and rows of different lengths with a ``collate`` function.
    y : array of shape (N,) or (N, L), optional
        Labels (numbers or text) or responses; L of them for each point. Needed unless a score sees the models, or
        they are generators.
    score : function or Loss, optional
        How a model without predictions is seen: ``score(object, X)`` or ``score(object, X, y)`` returns a number for
        each of the N records, higher = more likely in. It is asked once a model, about all records in their order.
        ``Loss(fn)`` says that the numbers are losses, in nats.
    game : HalfSplit, Fresh, PerDatum, AverageDatum, Canaries, Attribute or Forgotten
        Who is in and who is out, and what is guessed.
    n_models : int or Until, optional
        Models for each release: as many as the game needs (64; with fresh data sets 128, forgotten 16; 1 if
        canaries are planted)
        unless given.
    train : Recipe, DpSgd or mapping, optional
        How networks are trained: a ``leakbound.releases.networks.recipe.Recipe`` or its fields, and ``layers``, those
        whose gradients are seen; or by DP-SGD, and compared with its accountant: a ``leakbound.dpsgd.config.DpSgd``, or
        ``{"dpsgd": words}`` as of ``leakbound.auditing.canaries.private_network``.
    vary : mapping of str to sequence, optional
        Values of a parameter of the one estimator or network, each of which is audited as a model of its own:
        ``{"max_depth": [3, 5, None]}``; of a network also ``train.epochs``, and of DP-SGD ``noise_multiplier``.
    attacks : "default", "all", a function, or sequence of str, Attack or functions
        Names of rows of ``leakbound.attacks.ATTACKS``, rows with parameters of their own, or functions from `Signals`
        to scores: see ``leakbound.attacks.from_function``.
    claims : str, ClaimPlan, mapping, or sequence of them
        What was promised, as ``"epsilon=3,delta=1e-5,adjacency=replace_one"``; each is put to the test.
    policy : path, str, mapping or PolicyPlan, optional
        Limits that give each model a verdict (release, do not release, ask): a TOML file, ``"research"``, which comes
        with leakbound, or the content of such a file.
    groups : array of shape (N,), optional
        The unit of privacy of each point, where a person has several.
    ids : column of X, or array of shape (N,), optional
        What you call the records: shown to you in the report, no feature, and without influence on any number. The
        index of a frame unless given.
    fpr : float or sequence of float
        False positive rates of interest, as fractions.
    confidence : float
        Of the intervals.
    seed : int
        Of the game and of the fits: the same seed gives the same report, byte by byte.
    page : Page
        What is shown on the page: title, unit of privacy, date, author.
    store : Store, path or URL, optional
        Where finished models' signals stay, so that a run that was killed goes on.
    n_jobs : int, str or distributed.Client, optional
        Worker processes; all cores unless given. Or workers on other machines: ``"tcp://HOST:8786"``, a scheduler of
        Dask; ``"local:4"``, four processes under one of their own; or a client. The active client is used unless
        something is given.

    Returns
    -------
    Report
        Findings, curves, verdicts on claims and a table of records; print it, ``save`` it, or read its findings.

    Raises
    ------
    ValueError
        For data or parameters that make no sense, in one line.
    OSError
        In one line: if a cluster does not answer, or a model killed two workers.
    TypeError
        For an unknown keyword, with the nearest known one.

    Examples
    --------
    >>> import leakbound as ls
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> report = ls.audit(DecisionTreeClassifier(), *load_wine(return_X_y=True), n_models=8, n_jobs=1)
    >>> sorted({finding.attack for finding in report.findings if finding.quantity == "auc"})
    ['confidence', 'entropy', 'gap', 'lira', 'loss', 'mast', 'rmia']
    """
    played, kept = game_of(game), store_of(store)
    by_name = estimator if isinstance(estimator, Mapping) else {"": estimator}
    training, collate = _Training.of(train), _collate_of(X)
    has_labels = y is not None or is_dataset(X)
    if vary:
        releases = _variants(by_name, vary, training, collate, score, has_labels)
    else:
        releases = [
            _release(model, name, training, None, collate, score, has_labels) for name, model in by_name.items()
        ]
    plan = _plan(
        AuditPlan,
        game=_in_words(played),
        n_models=n_models,
        claim=_claims(claims),
        id=ids if isinstance(ids, str) else None,
        seed=seed,
        fpr=_many(fpr),
        confidence=confidence,
        policy=policy,
        vary=dict(vary or {}),
        depends_on=kept.depends_on,
        **page.words,
    )
    if isinstance(played, Attribute):
        attack_rows = strategies(attacks)
    else:
        attack_rows = attacks_on(releases, attacks, one_run=plan.models == 1, planted=plan.planted)
        refuse_unknown_attacks(plan.policy, attack_rows)
    # the report names the attacks that were run, not "default" or "all"
    plan = plan.model_copy(update={"attacks": tuple(attack.name for attack in attack_rows)})
    X, y = _features_and_labels(X, y)
    if y is None and score is None:
        for name, model in by_name.items():
            refuse_without_labels(model, name)
    X, names = without_names(X, ids)
    points = data_room.from_arrays(X, y, groups, names)
    slices = sliced(points, played.slices) if isinstance(played, HalfSplit | Fresh) else {}
    refuse_without_groups(slices)
    loaded = Data(points, "arrays", slices=slices)
    execution = Execution.of(kept.path, n_jobs, kept.depends_on)
    if isinstance(played, Attribute):
        attribute_game = attribute_game_of(plan, attack_rows, loaded, played.column)
        return infer(attribute_game, attack_rows, releases, loaded, execution, plan)
    return play(plan, attack_rows, releases, loaded, execution, game=played)


def _in_words(game: PlannedGame) -> PlannedGame:
    """Return a game as a plan has it: columns and functions by their names."""
    if isinstance(game, Forgotten):
        return game.words
    if isinstance(game, Attribute):
        return replace(game, column=named(game.column))
    if isinstance(game, HalfSplit | Fresh):
        return replace(game, slices=_names(game.slices), queries=game.queries.words)
    return game


@known_keywords()
def run(
    plan: AuditPlan,
    *,
    store: str | os.PathLike[str] | None = None,
    n_jobs: Any = None,
    from_store: Literal["", "all", "finished"] = "",
    command: str = "",
    allow_modules: str | Sequence[str] | None = None,
    tally: Tally | None = None,
) -> Report:
    """Carry out an audit plan: what ``leakbound audit`` does.

    Parameters
    ----------
    plan : AuditPlan
    store : path or URL, optional
    n_jobs : int, str or distributed.Client, optional
        As in ``audit``.
    from_store : {"", "all", "finished"}
        Fit no model: all must be in the store, as `fill_store` puts them there; or the audit is of those that are
        finished, and says so.
    command : str
        Printed on the page.
    allow_modules : str or sequence of str, optional
        Modules, as ``"lightgbm,my_package"``, which the plan may import and call; by itself it runs classifiers and
        regressors of scikit-learn and no other code.
    tally : Tally, optional
        Counts what is done, for the caller: a report holds no times.

    Returns
    -------
    Report
        Findings, curves, verdicts on claims and a table of records; print it, ``save`` it, or read its findings.

    Raises
    ------
    ValueError
        In one line: for what makes no sense, and for a module that is not allowed.
    """
    with only_from(allow_modules):
        execution = Execution.of(store, n_jobs, plan.depends_on, from_store, tally)
        return _carried_out(plan, execution, command)


@known_keywords()
def fill_store(
    plan: AuditPlan,
    *,
    store: str | os.PathLike[str],
    chunks: range | None = None,
    signals: str | os.PathLike[str] | None = None,
    n_jobs: Any = None,
    allow_modules: str | Sequence[str] | None = None,
) -> Filled:
    """Fit models of an audit plan and leave their signals in a store: what ``leakbound fit`` does.

    The chunks of all models of a plan are numbered one after another, so that the tasks of an array job can share
    them. Chunks that are in the store are not made again.

    >>> import tempfile
    >>> plan = AuditPlan(dataset="wine", n_models=8, model=[{"spec": "sklearn.tree:DecisionTreeClassifier"}])
    >>> fill_store(plan, store=tempfile.mkdtemp(), chunks=range(1), n_jobs=1)
    Filled(n_asked=1, n_made=1, n_chunks=2, n_missing=1)
    """
    with only_from(allow_modules):
        return _filled(plan, Execution.of(store, n_jobs, plan.depends_on), chunks, signals)


def _filled(
    plan: AuditPlan, execution: Execution, chunks: range | None, folder: str | os.PathLike[str] | None
) -> Filled:
    """Make the chunks of each model that are among those asked for; write the signals of all."""
    if isinstance(plan.game, Attribute):
        raise ValueError("the store is filled for audits of membership, and the plan has an attribute")
    releases, loaded = _planned(plan)
    attacks = attacks_on(releases, plan.attacks, one_run=plan.models == 1, planted=plan.planted)
    settings = [setting(plan.game, plan.models, attacks, release, loaded, plan.seed) for release in releases]
    if folder is not None:
        _refuse_folder(folder, settings)
        if plan.queries.n > 1:
            raise ValueError("a folder of signals has no axis of queries: leave queries out, or audit in memory")
    found = _filled_chunks(plan, settings, attacks, execution, chunks)
    n_missing = sum(filled.n_missing for filled in found)
    if folder is not None and n_missing:
        raise ValueError(
            f"the signals of all models are written, and {n_missing:,} chunks are missing: make them first"
        )
    if folder is not None:
        stored = replace(execution, from_store="all", tally=Tally())
        for audited in settings:
            model_folder = Path(folder) / audited.release.name if len(settings) > 1 else Path(folder)
            points, wanted_signals = audited.data.points.unnamed, audited.wanted(attacks)
            write_signals(model_folder, audited.release, points, audited.game, wanted_signals, plan.seed, stored)
    return Filled(*(sum(counts) for counts in zip(*map(astuple, found), strict=True)))


def _filled_chunks(
    plan: AuditPlan,
    settings: Sequence[Setting],
    attacks: Sequence[Attack],
    execution: Execution,
    chunks: range | None,
) -> list[Filled]:
    """Make the chunks of each model that are among those asked for."""
    sizes = [n_chunks_of(audited.release, audited.game.n_models) for audited in settings]
    asked = range(sum(sizes)) if chunks is None else chunks
    if not asked or asked[0] < 0 or asked[-1] >= sum(sizes):
        raise ValueError(f"chunks must be from 0 to {sum(sizes) - 1}, got {asked.start} to {asked.stop - 1}")
    # the chunks of all models are numbered one after another: those of this one begin with `start`
    found, start = [], 0
    for audited, size in zip(settings, sizes, strict=True):
        of_model = [number - start for number in asked if start <= number < start + size]
        release = queried(audited.release, audited.data.points, plan.queries, plan.seed)
        what = (release, audited.data.points.unnamed, audited.game.member, audited.wanted(attacks))
        found.append(fill(*what, plan.seed, execution, of_model))
        start += size
    return found


def _refuse_folder(folder: str | os.PathLike[str], settings: Sequence[Setting]) -> None:
    """Refuse what a folder of signals cannot hold, before the first fit."""
    for audited in settings:
        if audited.planted or audited.game.is_target_point.ndim > 1:
            raise ValueError(
                "a folder of signals has the same target points for all models and no canaries; play half_split"
            )
        if audited.data.points.group is not None:
            raise ValueError("a folder of signals has no groups: leave out the group, or audit in memory")
        name = audited.release.name
        if len(settings) > 1 and (name in ("", ".", "..") or re.search(r"[/\\:]", name)):
            raise ValueError(f"the model {name!r} gets a folder of its name: give it one without / \\ :")
    if os.path.exists(folder) and (not os.path.isdir(folder) or os.listdir(folder)):
        raise ValueError(f"{folder} is not empty; name a new folder for the signals")


def _planned(plan: AuditPlan) -> tuple[Sequence[Described], Data]:
    """Make the releases of a plan, and read its data."""
    releases = all_planned(plan.releases, plan.score, plan.has_labels)
    if not releases:
        raise ValueError(
            "the plan names no model; give it as model (--model module:name), or a [[model]] table with its spec"
        )
    return releases, loaded_data(plan, releases)


def _carried_out(plan: AuditPlan, execution: Execution, command: str) -> Report:
    """Run a plan and return its report."""
    releases, loaded = _planned(plan)
    refuse_without_groups(loaded.slices)
    if isinstance(plan.game, Attribute):
        if execution.from_store == "finished":
            raise ValueError(
                "an audit of finished models alone (from_store, --partial) is one of membership, not of an attribute"
            )
        strategy_rows = strategies(plan.attacks)
        attribute_game = attribute_game_of(plan, strategy_rows, loaded)
        return infer(attribute_game, strategy_rows, releases, loaded, execution, plan, command)
    attacks = attacks_on(releases, plan.attacks, one_run=plan.models == 1, planted=plan.planted)
    refuse_unknown_attacks(plan.policy, attacks)
    return play(plan, attacks, releases, loaded, execution, command)


@known_keywords(_MOVED)
def audit_model(
    model: Any,
    members: Any,
    others: Any,
    *,
    score: Any = None,
    references: Any = None,
    train: Recipe | Mapping[str, Any] | None = None,
    classes: Any = None,
    weights: str | os.PathLike[str] | None = None,
    name: str = "model",
    queries: Queries | int = Queries(),
    slices: Slices = (),
    accept_shift: bool = False,
    ids: Any = None,
    prior: float = 0.5,
    attacks: str | Attack | Score | Sequence[str | Attack | Score] = "default",
    claims: Claims = (),
    policy: Any = None,
    fpr: float | Sequence[float] = (0.01, 0.001),
    confidence: float = 0.95,
    seed: int = 0,
    page: Page = Page(),
    store: Store | str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
) -> Report:
    """Audit ONE trained model by its answers on points that were in its training data and points that were not.

    Intervals average over the points: nothing is learned about other trainings of the same recipe. The
    result means something only if members and others come from the same source; records that are in both
    are counted, and a note says how many.

    Parameters
    ----------
    model : fitted estimator, trained network, or callable
        A fitted estimator with the scikit-learn interface; or a trained network of PyTorch, which is read in
        evaluation mode: its softmax, and its gradients where an attack asks for them; or a function from the features
        of n points to probabilities of shape (n, K), or to predictions where the labels are numbers of a regression.
        With ``score``, any object.
    members, others : (X, y), X alone where a score sees the model, or data set of PyTorch
        Points in and not in the model's training data.
    score : function or Loss, optional
        How a model without predictions is seen, as in ``audit``; about members and others at once, in a random order.
    references : estimator, class or function that makes a network, function that trains, or Fitted, optional
        The model's recipe, as the first argument of ``audit``. It is fitted on half-splits of members and others, 16
        times unless ``Fitted(recipe, n)`` says it, and the reference attacks (LiRA, RMIA, MAST) attack THIS model.
    train : Recipe or mapping, optional
        How a network of the recipe is trained, as in ``audit``. Its ``collate`` function makes the batches of the
        trained network, too: ``{"collate": pad}`` for rows of different lengths; and its ``layers`` are those of the
        trained network whose gradients are seen: ``"all"`` (unless given), ``"last"``, or names.
    classes : array of shape (K,), optional
        The label of each column of the answer.
    weights : path, optional
        The file that the model, or its weights, were read from: the report holds its name and SHA-256.
    name : str
        What the report calls the model.
    queries : Queries or int
        About how many versions of each point the model, and the references, are asked.
    slices : column of both X, sequence of them, mapping of str to array of shape (members + others,), or such an array
        Groups of records to compare, as in ``HalfSplit``; members first.
    accept_shift : bool
        Judge limits and claims also where a classifier that does not see the model tells members from others.
    ids : column of both X, or array of shape (members + others,), optional
        What you call the records, as in ``audit``; members first. The indices of two frames unless given.
    prior : float
        Fraction of members at which accuracy and precision are reported, with their baseline.
    attacks, claims, policy, fpr, confidence : see `audit`
        As there.
    seed : int
        Of the half-splits and of the fits.
    page, store, n_jobs : see `audit`
        As there.

    Returns
    -------
    Report
        Findings, curves, verdicts on claims and a table of records; print it, ``save`` it, or read its findings.

    Examples
    --------
    >>> import leakbound as ls
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = DecisionTreeClassifier(random_state=0).fit(X[::2], y[::2])
    >>> report = ls.audit_model(model.predict_proba, (X[::2], y[::2]), (X[1::2], y[1::2]))
    >>> report.about.releases[0].targets
    1
    """
    # The trained model, and the recipe of the reference models where there is one.
    training, kept, asked_often = _Training.of(train), store_of(store), queries_of(queries)
    fitted = references if isinstance(references, Fitted) else Fitted(references)
    collate = collate_in(training.recipe) or _collate_of(members, others)
    if fitted.recipe is None:
        _refuse_idle_recipe(model, training.recipe)
        if kept.depends_on:
            raise ValueError("depends_on is of reference models that are stored, and there are none: leave it out")
    audited = trained_release(model, classes, name, training.layers, collate, score)
    recipe = None
    if fitted.recipe is not None:
        recipe = release_of(fitted.recipe, train=training.recipe, collate=collate, score=score)
    # The request, checked by the same plan as on the command line.
    attack_rows = attacks_on([audited], attacks)
    plan = _plan(
        TrainedPlan,
        attack_rows,
        n_models=fitted.n,
        queries=asked_often.words,
        claim=_claims(claims),
        accept_shift=accept_shift,
        seed=seed,
        fpr=_many(fpr),
        confidence=confidence,
        prior=prior,
        policy=policy,
        id=ids if isinstance(ids, str) else None,
        slices=_names(slices),
        depends_on=kept.depends_on,
        **page.words,
    )
    # The records of both sides in one table: members first.
    inside, outside = (_side(role, part, ids, score) for role, part in (("members", members), ("others", others)))
    refuse_unknown_attacks(plan.policy, attack_rows)
    shared = data_room.shared(inside, outside)
    points = data_room.join(inside, outside)
    if ids is not None and not isinstance(ids, str):
        points = with_names(points, ids)
    compared = sliced(points, slices)
    refuse_without_groups(compared)
    # A game with one attacked model in its first row; the rows of references follow.
    asked = queried(audited, points, asked_often, seed)
    recipe = None if recipe is None else queried(adapted(recipe, points), points, asked_often, seed)
    n_references = fitted.n if recipe is not None else 0
    game = games.one_model(
        len(inside),
        len(outside),
        references=n_references,
        seed=seed,
        population=population_share(attack_rows) if n_references else 0.0,
    )
    want, execution = wanted(attack_rows), Execution.of(kept.path, n_jobs, kept.depends_on)
    # The model is asked before references are fitted, which takes longer, and what cannot be judged is refused first.
    arrays = observe(asked, points.unnamed, game.member[:1], want, execution=Execution(n_jobs=1))
    if shared == len(outside):
        raise ValueError("all of the others are among the members; others must be records that the model has not seen")
    _refuse_idle_on_model(attack_rows, arrays, recipe, points, game, want, seed)
    if recipe is not None:
        arrays = _with_references(arrays, recipe, points, game, want, seed, execution)
    # What a reader has to know of the records and of the references.
    notes = [f"{shared:,} of the others are among the members too"] if shared else []
    notes += [*identifier_notes(points), *date_notes(points), *alike_levels(points), *repeated_names(points)]
    notes += [] if recipe is None else [*store_notes([recipe], execution)]
    notes += note_of_queries([asked])
    notes += _note_of_sizes(len(inside), int(game.member[-1].sum()))
    other_recipe, note_of_recipe = _compared_recipe(model, fitted.recipe)
    notes += note_of_recipe
    structure = _structure(model, inside, points, is_limited=plan.policy is not None and bool(plan.policy.structure))
    observed = ObservedRelease(
        audited.name,
        Signals.observed(game, points, arrays),
        Data(points, MEMBERS_AND_OTHERS),
        claims_of(plan.claim, audited.name, game),
        _origin(audited, recipe, weights, points),
        sources=_sources(plan, points, game, n_jobs),
        n_shared=shared,
        structure=structure,
        other_recipe=other_recipe,
        slices=compared,
        is_scored=score is not None,
    )
    owner = () if recipe is None else tuple(owner_notes([recipe]))
    run = AuditRun([observed], notes=notes, owner_notes=owner, execution=execution.facts)
    return reported(plan, attack_rows, run)


def _structure(model: Any, members: Points, points: Points, *, is_limited: bool) -> Structure | None:
    """Read the structure of the model; without a limit on it, that it holds rows, or nothing."""
    names = None if points.names is None else points.names[: len(members)]
    try:
        structure = structure_of(model, replace(members, names=names))
    except ValueError:  # a model in another process took too long, or too much memory
        if is_limited:
            raise
        return None
    return structure if is_limited else structure.rows_alone


def _refuse_idle_on_model(
    attacks: Sequence[Attack],
    arrays: Mapping[str, Array],
    recipe: Described | None,
    points: Points,
    game: Game,
    want: Sequence[str],
    seed: int,
) -> None:
    """Refuse an attack that was asked for by its name and cannot run, before the references are fitted."""
    shapes = {name: array.shape[2:] for name, array in arrays.items()}
    if recipe is not None and any(attack.by_name for attack in attacks):
        # an attack that compares with references can use only the signals that both give
        reference_game = replace(game, member=game.member[1:], n_targets=1)
        reference_shapes = rehearse(recipe, points, reference_game, want, seed).shapes
        if reference_shapes is not None:
            shapes = {name: shape for name, shape in shapes.items() if name in reference_shapes}
    refuse_idle(attacks, [Rehearsal(game, shapes)])


def _with_references(
    arrays: Mapping[str, Array],
    recipe: Described,
    points: Points,
    game: Game,
    want: Sequence[str],
    seed: int,
    execution: Execution,
) -> dict[str, Array]:
    """Fit the references, and put their signals behind those of the audited model, which is row 0 of the game."""
    of_references = observe(recipe, points.unnamed, game.member[1:], want, seed, execution)
    return {
        name: np.concatenate([array, of_references[name]]) for name, array in arrays.items() if name in of_references
    }


def _note_of_sizes(n_members: int, n_fitted: int) -> list[str]:
    """Say that references of another size than the audited model are weaker; all are fitted on equally many points."""
    if abs(n_fitted - n_members) <= 0.1 * n_members:
        return []
    return [
        f"The references are fitted on {n_fitted:,} points, the audited model on {n_members:,}: attacks that "
        "compare with them are weaker than with references of its size"
    ]


@known_keywords(_MOVED)
def audit_signals(
    signals: Signals | str | os.PathLike[str],
    *,
    name: str = "signals",
    slices: Slices = (),
    accept_shift: bool = False,
    ids: Any = None,
    prior: float = 0.5,
    attacks: str | Attack | Score | Sequence[str | Attack | Score] = "default",
    claims: Claims = (),
    policy: Any = None,
    fpr: float | Sequence[float] = (0.01, 0.001),
    confidence: float = 0.95,
    page: Page = Page(),
    n_jobs: int | None = None,
) -> Report:
    """Audit signals from anywhere: any tool, language or model that gives a loss a model and point.

    Source: azize2024, algorithm 2.

    Parameters
    ----------
    signals : Signals or path
        With their game: who was in which model's data. With their ``points`` it is tested whether members and others
        come from one source. A path is that of an ``.npz`` file, or of a folder that `leakbound.write_blocks` made: its
        arrays are memmaps (`leakbound.open_signals`), so that it may hold more points than fit into memory.
    name : str
        What the report calls the release.
    slices : column of the points, sequence of them, mapping of str to array of shape (N,), or such an array
        Groups of records to compare, as in ``HalfSplit``.
    accept_shift : bool
        Judge limits and claims also where members and others do not come from one source.
    ids : array of shape (N,), optional
        What you call the records; the names of the ``points`` unless given.
    prior : float
        Fraction of members at which accuracy and precision are reported, with their baseline.
    attacks, claims, policy, fpr, confidence, page : see `audit`
        As in ``audit``.
    n_jobs : int, optional
        Worker processes of the test for one source; all cores unless given.

    Returns
    -------
    Report
        Findings, curves, verdicts on claims and a table of records; print it, ``save`` it, or read its findings.

    Examples
    --------
    >>> import numpy as np
    >>> import leakbound as ls
    >>> game = ls.games.half_split(200, 16)
    >>> loss = np.random.default_rng(0).exponential(np.where(game.member, 0.5, 1.0))
    >>> report = ls.audit_signals(ls.Signals(game, None, {"loss": loss}))
    >>> report.about.releases[0].best != ""
    True
    """
    if isinstance(signals, (str, os.PathLike)):
        signals = read_signals(signals)
    attack_rows = find(attacks, signals.arrays if set(SCORES) & set(signals.arrays) else ())
    plan = _plan(
        GivenPlan,
        attack_rows,
        claim=_claims(claims),
        accept_shift=accept_shift,
        fpr=_many(fpr),
        confidence=confidence,
        prior=prior,
        policy=policy,
        slices=_names(slices),
        **page.words,
    )
    records = _records_of(signals) if ids is None else with_names(_records_of(signals), ids)
    compared = sliced(records, slices)
    refuse_without_groups(compared)
    # where the game drew the members at random, they come from the source of the others by construction
    split_is_given = signals.game.kind in GIVEN_SPLITS
    sources = _sources(plan, signals.points, signals.game, n_jobs) if split_is_given else None
    notes = []
    if signals.game.kind == "signals":  # a game that the user describes, rather than one that leakbound drew
        refuse_no_coins(signals.game)
        notes = notes_of_game(signals.game, signals.points is not None and signals.points.group is not None)
    own_claims = claims_of(plan.claim, name, signals.game)
    observed = ObservedRelease(name, signals, None, own_claims, sources=sources, names=records.names, slices=compared)
    design = design_of(signals) if any(attack.needs_references for attack in attack_rows) else None
    notes += [*([] if design is None else [design.note]), *repeated_names(records)]
    report = reported(plan, attack_rows, AuditRun([observed], notes=notes))
    _refuse_idle_attacks(report, attack_rows)
    return report


def _refuse_idle_attacks(report: Report, attacks: Sequence[Attack]) -> None:
    """Refuse an audit in which an attack that was asked for by its name could not run."""
    for attack in attacks:
        # an attack that does not apply has a single finding, which holds the reason
        attack_findings = [finding for finding in report.findings if finding.attack == attack.name]
        reason = attack_findings[0].reason if len(attack_findings) == 1 else None
        if attack.by_name and reason is not None:
            raise cannot_run(attack.name, reason)


@known_keywords(_MOVED)
def audit_scores(
    value: Float[Array, "*T J"],
    member: Bool[Array, "*T J"] | PlantedCanaries | str | os.PathLike[str],
    *,
    name: str = "scores",
    references_are: Literal["targets", "separate", "none"] = "targets",
    points: Any = None,
    slices: Slices = (),
    accept_shift: bool = False,
    ids: Any = None,
    prior: float = 0.5,
    claims: Claims = (),
    policy: Any = None,
    fpr: float | Sequence[float] = (0.01, 0.001),
    confidence: float = 0.95,
    page: Page = Page(),
    n_jobs: int | None = None,
) -> Report:
    """Audit the scores of an attack of your own; higher = member.

    Parameters
    ----------
    value : array of shape (J,) or (T, J)
        Scores of J points by T attacked models.
    member : bool array of the same shape, or canaries
        The truth. For canaries that `leakbound.canaries` has planted: what it returned, or its file; the scores are
        then of one model, in the order of the canaries, and each of them was in by a fair coin.
    name : str
        What the report calls the model that was attacked.
    references_are : {"targets", "separate", "none"}
        Of several models: what the attack compared each of them with. Where these were the other attacked models, as in
        the usual LiRA and RMIA, chance counts twice, and intervals are wider: the variance is multiplied by 4.5, the
        largest that was measured of any attack; epsilon and claims are tested on the scores of the first model. It
        makes no difference for one model, for models of their own (separate), and without references (none).
    points : array or frame of J rows, or pair (X, y), optional
        The records that the scores are of. With them it is tested whether members and others come from one source.
    slices : column of the points, sequence of them, mapping of str to array of shape (J,), or such an array
        Groups of records to compare, as in ``HalfSplit``.
    accept_shift : bool
        Judge limits and claims also where members and others do not come from one source.
    ids : column of the points, or array of shape (J,), optional
        What you call the records, as in ``audit``.
    prior : float
        Fraction of members at which accuracy and precision are reported, with their baseline.
    claims, policy, fpr, confidence, page : see `audit`
        As in ``audit``.
    n_jobs : int, optional
        Worker processes of the test for one source; all cores unless given.

    Returns
    -------
    Report
        Findings, curves, verdicts on claims and a table of records; print it, ``save`` it, or read its findings.

    Examples
    --------
    >>> import numpy as np
    >>> import leakbound as ls
    >>> member = np.arange(400) < 200
    >>> report = ls.audit_scores(np.random.default_rng(0).normal(member * 1.0), member)
    >>> 0.6 < next(finding.value for finding in report.findings if finding.quantity == "auc") < 0.9
    True
    """
    game, value = _game_of_scores(value, member)
    one_of("references_are", references_are, ("targets", "separate", "none"))
    # Where the scores of a model were made with the other attacked models, they are not independent of each other.
    compares_targets = references_are == "targets" and len(value) > 1
    if compares_targets and value.shape[1] == 1:
        raise ValueError(
            f"scores of one record by {len(value):,} models that are each other's references would tell who was in by "
            "themselves: if the attack compared none of these models with another, say references_are='separate' or "
            "references_are='none'"
        )
    plan = _plan(
        GivenPlan,
        claim=_claims(claims),
        accept_shift=accept_shift,
        fpr=_many(fpr),
        confidence=confidence,
        prior=prior,
        policy=policy,
        id=ids if isinstance(ids, str) else None,
        slices=_names(slices),
        **page.words,
    )
    # Without a table of records, only their number is known: they are named by their place.
    records_behind = None if points is None else _records(points, value.shape[1], ids)
    sources = _sources(plan, records_behind, game, n_jobs)
    signals = Signals(game, None, {})
    records = _records_of(signals) if records_behind is None else records_behind
    if ids is not None and (records_behind is None or not isinstance(ids, str)):
        records = with_names(records, ids)
    compared = sliced(records, slices)
    refuse_without_groups(compared)
    own_claims = claims_of(plan.claim, name, game)
    observed = ObservedRelease(name, signals, None, own_claims, sources=sources, names=records.names, slices=compared)
    notes = [*repeated_names(records)]
    if compares_targets:
        notes.append(
            f"The intervals allow for an attack that compared the {len(value):,} attacked models with each other: the "
            f"variance between models is multiplied by {UNKNOWN_INFLATION:g}. If the scores compare with models of "
            "their own, or with none, say so (references_are), and the intervals are narrower"
        )
    given = Given(name, value, variance_inflation=UNKNOWN_INFLATION if compares_targets else 1.0)
    return reported(plan, (given,), AuditRun([observed], notes=notes))


@known_keywords(_MOVED)
def audit_synthetic(
    synthetic: Any,
    members: Any,
    others: Any,
    *,
    reference: Any = None,
    infer: str | Sequence[str] = (),
    groups: Any = None,
    drop: str | Sequence[str] = (),
    slices: Slices = (),
    accept_shift: bool = False,
    ids: Any = None,
    prior: float = 0.5,
    attacks: str | Attack | Score | Sequence[str | Attack | Score] = "default",
    claims: Claims = (),
    policy: Any = None,
    fpr: float | Sequence[float] = (0.01, 0.001),
    confidence: float = 0.95,
    seed: int = 0,
    page: Page = Page(),
    n_jobs: int | None = None,
) -> Report:
    """Audit synthetic data by records that their generator had, and records that it cannot have had.

    Each number of the controls (exact matches, singling out, linkability, inference) is that of members minus that of
    others. Records that several units have are taken out. Intervals speak of drawing other records; of the generator
    itself, fitted again and again, speaks ``audit``.

    Parameters
    ----------
    synthetic : frame, array of shape (S, p), path, or list of them
        What was published: several files are seen together. Columns are matched by name; those of an array are ``x0``,
        ``x1``, ....
    members, others : frame, array, or path
        Records that the generator was fitted on, and records of the same source that it was not.
    reference : frame, array, or path, optional
        Records of the same population that are on neither side, for the density ratio and Gen-LRA.
    infer : str or sequence of str
        Columns to guess from the nearest synthetic row.
    groups : str, or array of shape (members + others,), optional
        The unit of privacy of each record, members first; or the column that names it.
    drop : str or sequence of str
        Columns that are not compared.
    slices : column, sequence of them, mapping of str to array of shape (members + others,), or such an array
        Groups of records to compare, as in ``HalfSplit``; members first.
    accept_shift : bool
        Judge limits and claims also where a classifier that does not see the synthetic data tells members from others.
    ids : str, or array of shape (members + others,), optional
        What you call the records; or the column that names them, which is not compared.
    prior : float
        Fraction of members at which accuracy and precision are reported, with their baseline.
    attacks : "default", or as in `audit`
        ``matches``, ``nearest`` and ``nearest5``; with a reference also ``density_ratio`` and ``gen_lra``.
    claims, policy, fpr, confidence : see `audit`
        As there.
    seed : int
        Of the predicates that single out, and of the test for one source.
    page : see `audit`
        As there.
    n_jobs : int, optional
        Worker processes of the test for one source; all cores unless given.

    Returns
    -------
    Report
        Findings, curves, verdicts on claims and a table of records; print it, ``save`` it, or read its findings.

    Raises
    ------
    ValueError
        In one line: columns that a table lacks or has with another type, free text, or nothing left to compare.

    Examples
    --------
    >>> import numpy as np
    >>> import leakbound as ls
    >>> rng = np.random.default_rng(0)
    >>> members, others = rng.normal(size=(200, 3)), rng.normal(size=(200, 3))
    >>> synthetic = members[rng.integers(200, size=200)]  # a generator that copies
    >>> report = ls.audit_synthetic(synthetic, members, others)
    >>> matches = next(finding for finding in report.findings if finding.quantity == "excess_matches")
    >>> 0.5 < matches.low < 0.632 < matches.high
    True
    """
    attack_rows = attacks_on_synthetic(attacks, reference is not None)
    by_column = isinstance(groups, str)
    plan = _plan(
        SyntheticPlan,
        attack_rows,
        group=groups if by_column else None,
        infer=infer,
        drop=drop,
        claim=_claims(claims),
        accept_shift=accept_shift,
        seed=seed,
        fpr=_many(fpr),
        confidence=confidence,
        prior=prior,
        policy=policy,
        id=ids if isinstance(ids, str) else None,
        slices=_names(slices),
        **page.words,
    )
    units = None if by_column else groups
    names = None if isinstance(ids, str) else ids
    return audit_tables(
        plan, attack_rows, read_tables(synthetic, members, others, reference), units, names, slices, n_jobs
    )


def _game_of_scores(value: Any, member: Any) -> tuple[Game, Float[Array, "T J"]]:
    """Return the game that scores are of, and the scores by model and point."""
    planted = None
    if isinstance(member, PlantedCanaries):
        planted = member.game
    elif isinstance(member, str | os.PathLike):
        planted = read_game(member)
    value = np.atleast_2d(np.asarray(value, dtype=float))
    truth = np.atleast_2d(np.asarray(member if planted is None else planted.member))
    if value.shape != truth.shape:
        raise ValueError(f"value has shape {value.shape}, member {truth.shape}; both must be (T, J)")
    if truth.dtype != bool and not np.isin(truth, (0, 1)).all():
        raise ValueError("member must hold truth values, or 0 and 1")
    if planted is not None:
        return planted, value
    truth = truth.astype(bool)
    return Game("scores", truth, np.ones(truth.shape[1], dtype=bool), len(truth), float(truth.mean())), value


def _records(points: Any, n_points: int, ids: Any) -> Points:
    """Check the records that belong to scores: there must be as many as there are scores."""
    x, y = points if isinstance(points, tuple) else (points, None)
    x, names = without_names(x, ids if isinstance(ids, str) else None)
    records = data_room.from_arrays(x, y, names=names)
    if len(records) != n_points:
        raise ValueError(f"points has {len(records):,} records for {n_points:,} scores a model; give one a score")
    return records


def _sources(plan: GivenPlan, points: Points | None, game: Game, n_jobs: int | None) -> SourceTest:
    """Whether members and others come from one source."""
    return same_source(
        points, game, seed=plan.seed, confidence=plan.confidence, n_jobs=n_jobs, accepted=plan.accept_shift
    )


def _plan(kind: type[P], attacks: Sequence[Attack] = (), **fields: Any) -> P:
    """Make the plan of a call: its keywords are checked like the keys of a plan file."""
    names = {"attacks": tuple(attack.name for attack in attacks)} if attacks else {}
    return read(kind, asked_of(kind, {**fields, **names}), "audit")


def _claims(claim: Claims) -> tuple[ClaimPlan | Mapping[str, Any], ...]:
    """Claims of a call, which may be a single one."""
    claims = (claim,) if isinstance(claim, str | ClaimPlan | Mapping) else tuple(claim)
    return tuple(ClaimPlan.parse(item) if isinstance(item, str) else item for item in claims)


@dataclass(frozen=True)
class _Training:
    """How the networks of a call are trained: by a recipe, of which some layers are seen, or by DP-SGD."""

    recipe: Any = None
    layers: Any = ()
    dpsgd: Any = None

    @classmethod
    def of(cls, train: Any) -> _Training:
        if isinstance(train, DpSgd):
            return cls(dpsgd=train)
        if not isinstance(train, Mapping):
            return cls(train)
        if "dpsgd" in train:
            if len(train) > 1:
                others = ", ".join(name for name in train if name != "dpsgd")
                raise ValueError(f"train is a recipe or {{'dpsgd': {{...}}}}, not both; got dpsgd and {others}")
            return cls(dpsgd=train["dpsgd"])
        recipe = {name: value for name, value in train.items() if name != "layers"}
        return cls(recipe or None, train.get("layers", ()))

    def varied(self, variant: Variant) -> _Training:
        """Return the training of a variant, some of whose fields are changed."""
        if self.dpsgd is not None:
            return replace(self, dpsgd=_with(self.dpsgd, variant.dpsgd)) if variant.dpsgd else self
        return replace(self, recipe=_with(self.recipe, variant.train)) if variant.train else self


def _release(
    model: Any,
    name: str,
    training: _Training,
    settings: Mapping[str, Any] | None = None,
    collate: Any = None,
    score: Any = None,
    has_labels: bool = True,
) -> Described:
    """Make the release of an estimator or network of a call, with some of its parameters changed."""
    if training.dpsgd is None or score is not None:
        recipe = training.recipe or training.dpsgd
        return release_of(model, name, recipe, training.layers, settings, collate, score, has_labels)
    return private_network(model, training.dpsgd, name, settings)


def _variants(
    by_name: Mapping[str, Any],
    vary: Mapping[str, Sequence[Any]],
    training: _Training,
    collate: Any,
    score: Any,
    has_labels: bool,
) -> list[Described]:
    """Make a release of each variant of one model."""
    if len(by_name) != 1:
        raise ValueError(f"vary is of one model, and there are {len(by_name)}")
    ((name, model),) = by_name.items()
    return [
        _release(
            model, f"{name} {variant.name}".strip(), training.varied(variant), variant.set, collate, score, has_labels
        )
        for variant in variants(vary, private=training.dpsgd is not None)
    ]


def _with(settings: Recipe | DpSgd | Mapping[str, Any] | None, changed: Mapping[str, Any]) -> dict[str, Any]:
    """Change some of the fields of a recipe or of DP-SGD."""
    if isinstance(settings, Recipe):  # its fields hold defaults that depend on each other
        raise ValueError(f"vary changes {', '.join(changed)} of train; give train as a mapping, not as a Recipe")
    if isinstance(settings, DpSgd):
        settings = settings.describe()
    return {**(settings or {}), **changed}


def _origin(
    model: Described, recipe: Described | None, weights: str | os.PathLike[str] | None, points: Points
) -> dict[str, Any]:
    """Where a trained model comes from, how its references were made, and what is done to the points before."""
    sentences = [] if model.description == model.name else [model.description]
    files: dict[str, str] = {}
    if weights is not None:
        name = Path(weights).name  # the report holds no path of this machine
        with open(weights, "rb") as file:
            files[name] = hashlib.file_digest(file, "sha256").hexdigest()
        what = "read" if Path(name).suffix in MODEL_FILES else "weights"
        sentences.append(f"{what} from {name}, SHA-256 {files[name]}")
    if recipe is not None:
        sentences.append(f"references: {recipe.description}")
    facts: dict[str, Any] = {"description": "; ".join(sentences)} if sentences else {}
    facts["family"] = family(model)
    facts["prepared"] = ". ".join(filter(None, [prepared(model, points), prepared(recipe, points)]))
    return facts | ({"files": files} if files else {})


def _compared_recipe(model: Any, references: Any) -> tuple[Term | None, list[str]]:
    """Compare a trained model with the recipe of its references: why they differ in class, and a note of what differs.

    Nothing is said unless both are estimators.
    """
    if isinstance(references, Described):
        references = getattr(references, "estimator", None)
    audited, recipe = class_and_parameters(model), class_and_parameters(references)
    if audited is None or recipe is None:
        return None, []
    if recipe.classes[0] not in audited.classes and audited.classes[0] not in recipe.classes:
        note = (
            f"The references are of another class than the audited model: {recipe.name}, not {audited.name}. Attacks "
            "that compare with them are weaker than with references of its recipe"
        )
        return Term("references_of_another_class", model=audited.name, references=recipe.name), [note]
    given, wanted = recipe.parameters, audited.parameters
    differing = [
        f"{name}={one_line(given[name], 40)}, not {one_line(wanted[name], 40)}"
        for name in wanted
        if name in given and name not in NO_RECIPE and given[name] != wanted[name]
    ]
    if audited.is_searched or recipe.is_searched or not differing:
        return None, []
    named = "; ".join(differing[:MOST_PARAMETERS])
    return None, [
        f"The references have other parameters than the audited model: {named}. Attacks that compare with them are "
        "weaker than with references of its recipe"
    ]


def _features_and_labels(X: Any, y: Any) -> tuple[Any, Any]:
    """Take features and labels apart where a data set of PyTorch holds both."""
    if not is_dataset(X):
        return X, y
    if y is not None:
        raise ValueError("a data set of PyTorch holds its labels; leave y out")
    return own("leakbound.releases.networks.tensors:from_dataset")(X)


def _collate_of(*datasets: Any) -> Any:
    """Return the collate function of the DataLoaders among these; None if they have none of their own."""
    collate = None
    for dataset in datasets:
        if not is_dataset(dataset):
            continue
        other = own("leakbound.releases.networks.tensors:collate_of")(dataset)
        if None not in (collate, other) and other != collate:
            raise ValueError(
                "the DataLoaders of members and others have different collate functions; give both the same, or "
                "train={'collate': FUNCTION}"
            )
        collate = collate or other
    return collate


def _refuse_idle_recipe(model: Any, train: Recipe | Mapping[str, Any] | None) -> None:
    """Refuse a recipe where nothing is trained, apart from the collate function of a trained network."""
    if not train:
        return
    idle = sorted(set(train) - {"collate"}) if isinstance(train, Mapping) else []
    if idle or collate_in(train) is None:
        raise ValueError(
            f"train says how reference models are trained, and there are none: leave {', '.join(idle) or 'it'} out, or "
            "give the recipe as references="
        )
    if not is_network(model):
        raise ValueError(
            f"collate makes batches for a network of PyTorch; a {type(model).__name__} gets the points as they are: "
            "leave train out"
        )


def _pair(role: str, part: Any, score: Any) -> tuple[Any, Any]:
    """Features and labels of one side; without labels where a score sees the model."""
    if is_dataset(part):
        return _features_and_labels(part, None)
    if score is not None and not isinstance(part, tuple):
        return part, None
    if not isinstance(part, tuple) or len(part) != 2:
        raise ValueError(f"{role} must be a pair (X, y), got a {type(part).__name__}; X alone needs score=fn")
    return part


def _side(role: str, part: Any, ids: Any, score: Any) -> Points:
    """Return members or others as points, with the names that a column or their index gives them."""
    X, y = _pair(role, part, score)
    X, names = without_names(X, ids if isinstance(ids, str) else None)
    return data_room.from_arrays(X, y, names=names)


def _records_of(signals: Signals) -> Points:
    """Return the records behind signals; records without any column where they were not given."""
    return signals.points or Points(np.empty((signals.game.member.shape[1], 0)))


def _names(slices: Slices) -> tuple[str, ...]:
    """Names of the columns that records are sliced by, as the plan has them."""
    names = by_columns(slices)
    return (names,) if isinstance(names, str) else tuple(names)


def _many(value: float | Sequence[float]) -> tuple[float, ...]:
    """One number or several, as a tuple."""
    return tuple(np.atleast_1d(np.asarray(value)).tolist())
