"""Audits: from a plan, a model, signals or scores to a report."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from leakscope import data as data_room
from leakscope import games
from leakscope.attacks import Attack, find
from leakscope.attacks.attribute import strategies
from leakscope.attacks.given import Given
from leakscope.data import Data
from leakscope.drawing import population_share, wanted
from leakscope.inferring import infer, named
from leakscope.observing import Workshop, observe
from leakscope.plans.audits import AuditPlan, ClaimPlan
from leakscope.plans.plan import read
from leakscope.planting import attacks_on, planned, private_network
from leakscope.playing import claims_of, play
from leakscope.releases.making import OF_TRAINED, Described, release_of, trained_release
from leakscope.report import Report
from leakscope.reporting import assemble
from leakscope.subjects import Subject
from leakscope.types import Game, Signals

Array = np.ndarray
# Words of a plan that calls with arrays do not read.
OF_FILES = {"data", "dataset", "label", "drop", "model", "fail_above"}
OF_GAMES = {"game", "sampling", "target", "canaries", "n_canaries", "knowledge", "group", "attribute", "bins", "dpsgd"}


def audit(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    models: int | None = None,
    attacks: str | Sequence[str | Attack] = "default",
    seed: int = 0,
    store: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    fpr: Sequence[float] = (1e-2, 1e-3),
    confidence: float = 0.95,
    **words: Any,
) -> Report:
    """Fit an estimator or a network on random halves of the data and measure what the models reveal about who is in.

    Every model is a target, attacked with all the others as references.

    Parameters
    ----------
    estimator : scikit-learn estimator, or class of a network of PyTorch, or function that makes one
        Not fitted; a mapping from names makes one report with a column each.
    X : array of shape (N, ...) or frame of N rows
    y : array of shape (N,)
        Labels (numbers or text) or responses.
    models : int, optional
        Models for each release: 64 unless given, and 1 if canaries are planted.
    attacks : "default", "all", or sequence of str or Attack
        Names of rows of ``leakscope.attacks.ATTACKS``, or rows with parameters of their own.
    seed : int
        Of the game and of the fits: the same seed gives the same report, byte by byte.
    store : path, optional
        Folder in which finished models' signals stay, so that a run that was killed goes on.
    jobs : int, optional
        Worker processes; all cores unless given.
    fpr : sequence of float
        False-alarm rates of interest, as shares.
    confidence : float
        Of the intervals.
    **words
        Further fields of ``leakscope.plans.AuditPlan``: ``title``, ``unit``, ``claim`` (texts such as
        ``"epsilon=3,delta=1e-5,adjacency=replace_one"``), ``game``, ``sampling``, ``target``,
        ``references``; ``group``, an array with the unit of each point; and ``train``, how networks are trained: a
        ``leakscope.releases.recipe.Recipe`` or a mapping of its fields; ``layers``, whose gradients are seen of
        networks: "all", "last", or their names; or instead ``dpsgd``, a
        ``leakscope.releases.dpsgd.DpSgd`` or a mapping as of ``leakscope.planting.private_network``: they are trained
        by DP-SGD, and held against its accountant. With ``game="canaries"``, ``canaries``, ``n_canaries`` and
        ``knowledge`` canaries are planted, and one model is enough; see ``leakscope.planting.plant``.

        With ``attribute`` (a column of X by its name or number, a list of one-hot columns, or an array of shape
        (N,)) and ``bins`` the attacks guess that attribute of the members instead of who is in; see
        ``leakscope.inferring.infer``.

    Returns
    -------
    Report

    Raises
    ------
    ValueError
        For data, parameters or words that make no sense, in one line.

    Examples
    --------
    >>> import leakscope as ls
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> report = ls.audit(DecisionTreeClassifier(), *load_wine(return_X_y=True), models=8, jobs=1)
    >>> sorted({finding.attack for finding in report.findings if finding.quantity == "auc"})
    ['confidence', 'entropy', 'gap', 'lira', 'loss', 'mast', 'rmia']
    """
    group, attribute, train, dpsgd = (words.pop(word, None) for word in ("group", "attribute", "train", "dpsgd"))
    layers = words.pop("layers", ())
    by_name = estimator if isinstance(estimator, Mapping) else {"": estimator}
    releases = [_release(one, name, train, dpsgd, layers) for name, one in by_name.items()]
    words |= {} if models is None else {"models": models}
    words |= {} if attribute is None else {"attribute": named(attribute)}
    fields = {"seed": seed, "fpr": _many(fpr), "confidence": confidence, "claim": words.pop("claim", ())}
    plan = _plan((), words, OF_FILES, **fields)
    chosen = strategies(attacks) if attribute is not None else attacks_on(releases, attacks, plan.models == 1)
    plan = plan.model_copy(update={"attacks": tuple(attack.name for attack in chosen)})
    loaded, workshop = Data(data_room.from_arrays(X, y, group), "arrays"), Workshop(store, jobs)
    if attribute is not None:
        return infer(plan, chosen, releases, loaded, workshop, column=attribute)
    return play(plan, chosen, releases, loaded, workshop)


def run(
    plan: AuditPlan,
    *,
    store: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    command: str = "",
) -> Report:
    """Carry out an audit plan: what ``leakscope audit`` does.

    Parameters
    ----------
    plan : AuditPlan
    store, jobs
        As in ``audit``.
    command : str
        Printed on the page.

    Returns
    -------
    Report
    """
    releases = [planned(model) for model in plan.model]
    if not releases:
        raise ValueError("the plan names no model; give --model module:name, or a [[model]] table with its spec")
    loaded = data_room.load(plan.data or plan.dataset or "digits", plan.label, plan.group, plan.drop)
    if plan.attribute is not None:
        return infer(plan, strategies(plan.attacks), releases, loaded, Workshop(store, jobs), command=command)
    chosen = attacks_on(releases, plan.attacks, plan.models == 1)
    return play(plan, chosen, releases, loaded, Workshop(store, jobs), command)


def audit_model(
    predict_proba: Callable[[Any], Any],
    members: tuple[Any, Any],
    others: tuple[Any, Any],
    *,
    references: Any = None,
    models: int = 16,
    attacks: str | Sequence[str | Attack] = "default",
    seed: int = 0,
    jobs: int | None = None,
    store: str | os.PathLike[str] | None = None,
    **words: Any,
) -> Report:
    """Audit ONE trained model by its answers on points that were in its training data and points that were not.

    Intervals average over the points: nothing is learned about other trainings of the same recipe. The
    result means something only if members and others come from the same source; records that stand in both
    are counted and said.

    Parameters
    ----------
    predict_proba : callable
        Features of n points in, probabilities of shape (n, K) out; the method of a fitted scikit-learn
        classifier brings its classes along. A trained network of PyTorch is read by itself, in evaluation
        mode: its softmax, and its gradients where an attack asks for them.
    members, others : (X, y)
        Points in and not in the model's training data.
    references : scikit-learn estimator, or class or function that makes a network, optional
        The model's recipe, with ``train`` as in ``audit``. It is fitted on half-splits of members and others, and the
        reference attacks (LiRA, RMIA, MAST) attack THIS model.
    models : int
        Number of reference models.
    attacks, seed, jobs, store, **words
        As in ``audit``; also ``classes``, the label of each column of the answer, ``name``, and of a network
        ``layers``: whose gradients are seen, "all", "last", or their names.

    Returns
    -------
    Report

    Examples
    --------
    >>> import leakscope as ls
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = DecisionTreeClassifier(random_state=0).fit(X[::2], y[::2])
    >>> report = ls.audit_model(model.predict_proba, (X[::2], y[::2]), (X[1::2], y[1::2]))
    >>> report.about["releases"][0]["targets"]
    1
    """
    train = words.pop("train", None)
    model = trained_release(predict_proba, **{word: words.pop(word) for word in OF_TRAINED & words.keys()})
    recipe = None if references is None else release_of(references, train=train)
    chosen = find(attacks)
    plan = _plan(chosen, words, OF_FILES | OF_GAMES, models=max(models, 2), seed=seed, claim=words.pop("claim", ()))
    inside, outside = (
        data_room.from_arrays(*_pair(role, part)) for role, part in (("members", members), ("others", others))
    )
    points = data_room.join(inside, outside)
    n_references = models if recipe is not None else 0
    game = games.one_model(
        len(inside),
        len(outside),
        references=n_references,
        seed=seed,
        population=population_share(chosen) if n_references else 0.0,
    )
    want = wanted(chosen)
    arrays = observe(model, points, game.member[:1], want, workshop=Workshop(jobs=1))
    if recipe is not None:
        behind = observe(recipe, points, game.member[1:], want, seed, Workshop(store, jobs))
        arrays = {each: np.concatenate([arrays[each], behind[each]]) for each in arrays if each in behind}
    shared = data_room.shared(inside, outside)
    notes = [f"{shared:,} of the others stand among the members too"] if shared else []
    n_fitted = int(game.member[-1].sum())
    if abs(n_fitted - len(inside)) > 0.1 * len(inside):
        notes.append(
            f"The references are fitted on {n_fitted:,} points, the audited model on {len(inside):,}: attacks that "
            "compare with them are weaker than with references of its size"
        )
    subject = Subject(
        model.name, Signals(game, points, arrays), Data(points, "members and others"), claims_of(plan, model.name, game)
    )
    return assemble(plan, chosen, [subject], notes)


def audit_signals(
    signals: Signals,
    *,
    attacks: str | Sequence[str | Attack] = "default",
    name: str = "signals",
    **words: Any,
) -> Report:
    """Audit signals from anywhere: any tool, language or model that gives a loss a model and point.

    Parameters
    ----------
    signals : Signals
        With their game: who was in which model's data.
    attacks, **words
        As in ``audit``.
    name : str
        What the report calls the release.

    Returns
    -------
    Report

    Examples
    --------
    >>> import numpy as np
    >>> import leakscope as ls
    >>> game = ls.games.half_split(200, 16)
    >>> loss = np.random.default_rng(0).exponential(np.where(game.member, 0.5, 1.0))
    >>> report = ls.audit_signals(ls.Signals(game, None, {"loss": loss}))
    >>> report.about["releases"][0]["best"] != ""
    True
    """
    chosen = find(attacks)
    plan = _plan(
        chosen,
        words,
        OF_FILES | OF_GAMES | {"seed"},
        models=max(signals.game.n_models, 2),
        claim=words.pop("claim", ()),
    )
    subject = Subject(name, signals, None, claims_of(plan, name, signals.game))
    return assemble(plan, chosen, [subject])


def audit_scores(
    value: Float[Array, "*T J"], member: Bool[Array, "*T J"], *, name: str = "scores", **words: Any
) -> Report:
    """Audit the scores of an attack of your own; higher = member.

    Parameters
    ----------
    value : array of shape (J,) or (T, J)
        Scores of J points by T attacked models.
    member : bool array of the same shape
        The truth.
    name : str
        What the report calls the attack.
    **words
        As in ``audit``.

    Returns
    -------
    Report

    Examples
    --------
    >>> import numpy as np
    >>> import leakscope as ls
    >>> member = np.arange(400) < 200
    >>> report = ls.audit_scores(np.random.default_rng(0).normal(member * 1.0), member)
    >>> 0.6 < next(each.value for each in report.findings if each.quantity == "auc") < 0.9
    True
    """
    value, member = np.atleast_2d(np.asarray(value, dtype=float)), np.atleast_2d(np.asarray(member))
    if value.shape != member.shape:
        raise ValueError(f"value has shape {value.shape}, member {member.shape}; both must be (T, J)")
    if member.dtype != bool and not np.isin(member, (0, 1)).all():
        raise ValueError("member must hold truth values, or 0 and 1")
    plan = _plan((), words, OF_FILES | OF_GAMES | {"seed"}, models=max(len(value), 2), claim=words.pop("claim", ()))
    member = member.astype(bool)
    game = Game("scores", member, np.ones(member.shape[1], dtype=bool), len(member), float(member.mean()))
    subject = Subject(name, Signals(game, None, {}), None, claims_of(plan, name, game))
    return assemble(plan, (Given(name, value),), [subject])


def _plan(attacks: Sequence[Attack], words: Mapping[str, Any], idle: set[str], **fields: Any) -> AuditPlan:
    """The plan of a call: keywords are checked like the keys of a plan file; idle ones are refused."""
    if unread := sorted(idle & words.keys()):
        raise ValueError(f"audit: this call takes no {', '.join(unread)}")
    claims = tuple(ClaimPlan.parse(each) if isinstance(each, str) else each for each in _many(fields.pop("claim")))
    names = {"attacks": tuple(attack.name for attack in attacks)} if attacks else {}
    return read(AuditPlan, {**fields, **names, "claim": claims, **words}, "audit")


def _release(model: Any, name: str, train: Any, dpsgd: Any, layers: Any) -> Described:
    """The release that an object of a call stands for."""
    if dpsgd is None:
        return release_of(model, name, train, layers)
    if train is not None:
        raise ValueError("train says how a network is trained without DP-SGD; give train or dpsgd, not both")
    if layers:
        raise ValueError("layers are of networks that are trained without DP-SGD, whose steps show all of them")
    return private_network(model, dpsgd, name)


def _pair(role: str, part: Any) -> tuple[Any, Any]:
    """Features and labels of one side."""
    if not isinstance(part, tuple) or len(part) != 2:
        raise ValueError(f"{role} must be a pair (X, y), got a {type(part).__name__}")
    return part


def _many(value: Any) -> tuple[Any, ...]:
    """One value or several, as a tuple."""
    return (value,) if isinstance(value, (str, float, int, ClaimPlan)) else tuple(value)
