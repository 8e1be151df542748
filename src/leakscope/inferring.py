"""Attribute inference: how well a release gives away a sensitive attribute, and how well that goes without it."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from leakscope import games
from leakscope.attacks import Attack
from leakscope.attacks.attribute import WITH_PRIOR, candidate_scores
from leakscope.checks import nearest
from leakscope.data import Data, arrays_of
from leakscope.data.candidates import Attribute, Candidates, Column, attribute, candidates, others
from leakscope.drawing import draw
from leakscope.findings import Finding
from leakscope.intervals import Interval
from leakscope.metrics.attribute import attribute_gain, attribute_success, right
from leakscope.observing import Workshop, observe
from leakscope.plans.audits import AuditPlan
from leakscope.releases.estimator import Estimator, from_spec
from leakscope.releases.making import Described
from leakscope.report import Report
from leakscope.seeds import stream
from leakscope.subjects import Asked, Subject
from leakscope.types import Game, NotApplicable, Signals
from leakscope.version import __version__

Array = np.ndarray
MOST_ROWS = 200_000  # candidates; of more records a random part is attacked
IMPUTER = ("sklearn.ensemble:RandomForestClassifier", {"n_estimators": 100})
BASELINES: Mapping[str, Mapping[str, str]] = {
    "prior_guess": {
        "title": "Prior guess",
        "source": "",
        "summary": "The most frequent value among records that the model was not trained on.",
    },
    "imputation": {
        "title": "Imputation",
        "source": "",
        "summary": "A random forest that has learned the value from all other columns and the label, on records that "
        "the model was not trained on, and has not seen the release.",
    },
}
LEARNED_FROM_THEM = "the imputation has learned from the records that are not in: it knows their values"


@dataclass(frozen=True, eq=False)
class Guessing:
    """The game about an attribute, with what can be guessed without any release.

    Parameters
    ----------
    attribute : Attribute
    rows : Candidates
    game : Game
        Of the rows.
    truth : int array of shape (J,)
        Number of the true value of each attacked record.
    member : bool array of shape (T, J)
        Whether it is in.
    log_prior : array of shape (T, J, V)
        Log-probability of each value, as the imputation of each model has it.
    blind : mapping of str to array of shape (T, J)
        Chance to be right by each of ``BASELINES``; about members alone, for who is not in may have been learned from.
    """

    attribute: Attribute
    rows: Candidates
    game: Game
    truth: Int[Array, " J"]
    member: Bool[Array, "T J"]
    log_prior: Float[Array, "T J V"]
    blind: Mapping[str, Float[Array, "T J"]]

    @property
    def chance(self) -> float:
        """1/V: a guess that looks at nothing."""
        return 1 / len(self.attribute.names)


def infer(
    plan: AuditPlan,
    attacks: Sequence[Attack],
    releases: Sequence[Described],
    loaded: Data,
    workshop: Workshop,
    **said: Any,
) -> Report:
    """Play the game about an attribute against each release and report what the release adds.

    Every model is trained on a random half of the records as they are. An attacker knows a record but for its
    attribute, asks the model about each value that it may have, and answers with the best one. How often that is right
    about members says little by itself: a value may be frequent, or follow from the other columns. So the same
    members are guessed without the release, and only the difference is what the release adds.

    Parameters
    ----------
    plan : AuditPlan
        With ``attribute``, and ``bins`` where numbers are to be cut.
    attacks : sequence of Attack
        Of ``leakscope.attacks.attribute.strategies``.
    releases : sequence of Described
        Estimators or networks.
    loaded : Data
    workshop : Workshop
    **said
        ``column``: the attribute where it is no name, see ``leakscope.data.candidates.attribute``; ``command``:
        printed on the page.

    Returns
    -------
    Report
        Of the kind "attribute".

    Raises
    ------
    ValueError
        In one line, for an attribute or a game that make no sense.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> import leakscope as ls
    >>> X, y = load_wine(return_X_y=True)
    >>> report = ls.audit(DecisionTreeClassifier(), X, y, models=8, attribute="x0", bins=4, attacks="loss", jobs=1)
    >>> [finding.attack for finding in report.findings if finding.quantity == "attribute_gain"]
    ['loss']
    """
    if plan.claim:
        raise ValueError("a claim is about membership; an audit of an attribute tests none")
    guessing = prepare(plan, attacks, loaded, workshop, said.get("column"))
    findings: list[Finding] = []
    facts: list[dict[str, Any]] = []
    for release in releases:
        want = sorted({name for attack in attacks for name in attack.signals})
        arrays = observe(release, guessing.rows.points, guessing.game.member, want, plan.seed, workshop)
        subject = Subject(release.name, Signals(guessing.game, guessing.rows.points, arrays), loaded)
        made = list(judge(subject, guessing, attacks, plan.confidence))
        findings += made
        facts.append(_facts(subject, guessing, made) | {"description": release.description})
    notes = list(_notes(guessing, len(loaded.points)))
    return Report(_about(plan, attacks, facts, notes, said.get("command", "")), tuple(findings))


def named(column: Column) -> str:
    """What the plan of a call calls its attribute."""
    if isinstance(column, str):
        return column
    return f"x{column}" if isinstance(column, int) else "attribute"


def column_of(plan: AuditPlan) -> Column:
    """Where the attribute of a plan stands: a column of the data, or an array of its own in an ``.npz`` file.

    Raises
    ------
    ValueError
        If it is the label, or no array of the file; in one line.
    """
    name = plan.attribute or ""
    if name == plan.label or (plan.label is None and name == "y" and plan.data is not None):
        raise ValueError(f"attribute {name!r} is the label itself, which the attacker knows; give another column")
    if name in plan.drop:
        raise ValueError(f"attribute {name!r} is no feature: it is dropped")
    if plan.data is None or Path(plan.data).suffix != ".npz":
        return name
    arrays = arrays_of(plan.data)
    if name in arrays and name != "x":
        return arrays[name]
    if name[:1] == "x" and name[1:].isdigit():
        return name
    raise ValueError(f"{plan.data}: no array {name!r}{nearest(name, arrays)}; arrays: {', '.join(arrays)}")


def prepare(
    plan: AuditPlan, attacks: Sequence[Attack], loaded: Data, workshop: Workshop, column: Column | None = None
) -> Guessing:
    """Draw the game, choose whom to attack, lay out the candidates, and guess without a release.

    Parameters
    ----------
    plan, attacks, loaded, workshop
        As in `infer`.
    column : str, int, list or array, optional
        The attribute, as in ``leakscope.data.candidates.attribute``; the plan's unless given.

    Returns
    -------
    Guessing
    """
    if plan.game != "half_split":
        raise ValueError(f"an attribute is guessed in the game half_split, got {plan.game}")
    if loaded.points.y is None:
        raise ValueError(f"{loaded.name}: an audit needs labels")
    if loaded.points.group is not None:
        raise ValueError("an attribute is guessed record by record, and the intervals count records; leave group out")
    asked = column_of(plan) if column is None else column
    found = attribute(loaded.points, asked, bins=plan.bins, name=plan.attribute or "")
    records = draw(plan, loaded.points, attacks)
    attacked = _attacked(records, max(1, MOST_ROWS // len(found.names)), plan.seed)
    rows = candidates(found, attacked)
    game = games.candidates(records, rows.record, rows.own)
    truth, member = found.value[attacked], records.member[: records.n_targets, attacked]
    log_prior = _imputed(found, records, attacked, plan.seed, workshop)
    blind = {"prior_guess": _most_frequent(found, records)[:, truth], "imputation": right(log_prior, truth)}
    return Guessing(found, rows, game, truth, member, log_prior, blind)


def judge(subject: Subject, guessing: Guessing, attacks: Sequence[Attack], confidence: float) -> Iterator[Finding]:
    """What each strategy gets right about members and about others, what it adds, and what one gets without it.

    Parameters
    ----------
    subject : Subject
    guessing : Guessing
    attacks : sequence of Attack
    confidence : float

    Yields
    ------
    Finding
    """
    member = guessing.member
    blind = (
        guessing.blind[best_baseline(guessing)] if best_baseline(guessing) else np.full(member.shape, guessing.chance)
    )

    def of(quantity: str, attack: str, number: Interval | NotApplicable, inside: bool | None = None) -> Finding:
        at = {} if inside is None else {"inside": float(inside)}
        source = next((each.source for each in attacks if each.name == attack), "")
        side = "lower" if attack not in BASELINES and inside is not False else "point"
        return subject.finding(Asked(quantity, side, attack, source, at), number)

    for attack in attacks:
        try:
            score = candidate_scores(attack, subject.signals)
            score = score + guessing.log_prior if attack.name.partition("(")[0] in WITH_PRIOR else score
        except NotApplicable as reason:
            yield of("attribute_gain", attack.name, reason)
            continue
        guessed = right(score, guessing.truth)
        yield of("attribute_gain", attack.name, attribute_gain(guessed, blind, member, confidence))
        yield of("attribute_success", attack.name, attribute_success(guessed, member, confidence), True)
        if attack.name.partition("(")[0] in WITH_PRIOR:
            yield of("attribute_success", attack.name, NotApplicable(LEARNED_FROM_THEM), False)
        else:
            yield of("attribute_success", attack.name, attribute_success(guessed, ~member, confidence), False)
    for name, guessed in guessing.blind.items():
        yield of("attribute_success", name, attribute_success(guessed, member, confidence), True)


def best_baseline(guessing: Guessing) -> str:
    """The baseline that is right most often about members; none ("") where chance is right more often.

    It is chosen once for all models and strategies, in hindsight: the gain over it errs on the small side.
    """
    means = {name: _mean(guessed, guessing.member) for name, guessed in guessing.blind.items()}
    best = max(means, key=lambda name: means[name])
    return best if means[best] >= guessing.chance else ""


def _mean(guessed: Float[Array, "T J"], member: Bool[Array, "T J"]) -> float:
    return attribute_success(guessed, member).value


def _attacked(records: Game, most: int, seed: int) -> Int[Array, " J"]:
    """Numbers of the attacked records: those that are judged, or a random part of them."""
    judged = records.columns
    if len(judged) <= most:
        return judged
    return np.sort(stream(seed, "game", "attacked").permutation(judged)[:most])


def _most_frequent(found: Attribute, records: Game) -> Float[Array, "T V"]:
    """A probability of each value: even among the most frequent ones outside of each model."""
    outside = ~records.member[: records.n_targets]
    counts = np.stack([np.bincount(found.value[row], minlength=len(found.names)) for row in outside])
    most = counts == counts.max(axis=1, keepdims=True)
    return most / most.sum(axis=1, keepdims=True)


def _imputed(
    found: Attribute, records: Game, attacked: Int[Array, " J"], seed: int, workshop: Workshop
) -> Float[Array, "T J V"]:
    """Log-probability of each value by a forest that has learned from the records outside of each model."""
    spec, settings = IMPUTER
    outside = ~records.member[: records.n_targets]
    imputer = Estimator(from_spec(spec, settings), "imputation")
    seen = observe(imputer, others(found), outside, ["logits"], seed, workshop)["logits"][:, attacked]
    value, truth = np.arange(len(found.names)), found.value[attacked][:, None]
    place = np.where(value == truth, 0, value + (value < truth))  # the true value's stands first
    return np.take_along_axis(seen, place[None], axis=2)


def _notes(guessing: Guessing, n_records: int) -> Iterator[str]:
    if (n_attacked := len(guessing.truth)) < n_records:
        yield f"{n_attacked:,} of {n_records:,} records are attacked, drawn at random; the others are in the game alone"
    if len(guessing.member) < 8:
        yield "with fewer than 8 models the intervals speak of other records, not of other models"


def _facts(subject: Subject, guessing: Guessing, made: Sequence[Finding]) -> dict[str, Any]:
    """What the page says of the release."""
    gains = [each for each in made if each.quantity == "attribute_gain" and each.low is not None]
    game, data = guessing.game, subject.data
    return {
        "name": subject.name,
        "title": subject.name,
        "data": {
            "name": "" if data is None else data.name,
            "digest": "" if data is None else data.points.digest[:16],
            "records": int(guessing.rows.own.sum()),
        },
        "attribute": guessing.attribute.name,
        "values": len(guessing.attribute.names),
        "chance": guessing.chance,
        "attacked": len(guessing.truth),
        "sampling": game.sampling,
        "models": game.n_models,
        "population": len(game.population),
        "baseline": best_baseline(guessing),
        "best": max(gains, key=lambda each: each.low or 0.0).attack if gains else "",
    }


def _about(
    plan: AuditPlan, attacks: Sequence[Attack], facts: Sequence[Mapping[str, Any]], notes: Sequence[str], command: str
) -> dict[str, Any]:
    content = plan.model_dump()
    if content["data"]:
        content["data"] = Path(content["data"]).name  # the report holds no path of this machine
    packages = ("numpy", "scipy", "scikit-learn", "pandas")
    named = {each.name: {"title": each.title, "source": each.source, "summary": each.summary} for each in attacks}
    return {
        "kind": "attribute",
        "leakscope": __version__,
        "title": plan.title,
        "unit": plan.unit,
        "date": plan.date,
        "seed": plan.seed,
        "confidence": plan.confidence,
        "attacks": named | {name: dict(words) for name, words in BASELINES.items()},
        "command": command,
        "plan": content,
        "versions": {"python": platform.python_version(), **{name: version(name) for name in packages}},
        "notes": list(notes),
        "releases": list(facts),
    }
