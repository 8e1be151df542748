"""The game about an attribute: who is in, who is attacked, what each of them might be, and guesses without a release.

Axes: N records, T attacked models, J attacked records, V values, U units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, cast

import numpy as np
from jaxtyping import Bool, Float, Int

from leakbound.attacks import Attack
from leakbound.auditing.setup import draw
from leakbound.core import games
from leakbound.core.checks import nearest
from leakbound.core.seeds import stream
from leakbound.core.types import Game, Points
from leakbound.data import Data, arrays_of
from leakbound.data.candidates import Attribute, Candidates, Column, attribute, candidates, others
from leakbound.metrics.attribute import attribute_accuracy, right
from leakbound.plans.games import Attribute as AttributeChoice
from leakbound.plans.games import HalfSplit
from leakbound.releases.estimator import Estimator
from leakbound.releases.specs import own
from leakbound.runtime.observe import Execution, observe

Array = np.ndarray
MOST_ROWS = 200_000  # candidates; of more records a random part is attacked
IMPUTER = ("sklearn.ensemble:RandomForestClassifier", {"n_estimators": 100})

BaselineName = Literal["", "prior_guess", "imputation"]


@dataclass(frozen=True, eq=False)
class AttributeGame:
    """Who is in, who is attacked, and what each of them might be."""

    attribute: Attribute
    records: Game
    attacked: Int[Array, " J"]
    rows: Candidates
    game: Game

    @cached_property
    def unit(self) -> Int[Array, " J"]:
        """Number of the unit of each attacked record: the record itself, or those that are in or out together."""
        group = self.attribute.points.group
        return np.unique(self.attacked if group is None else group[self.attacked], return_inverse=True)[1]


@dataclass(frozen=True, eq=False)
class AttributeBaselines:
    """The game about an attribute, with what can be guessed without any release."""

    attribute_game: AttributeGame
    truth: Int[Array, " J"]
    member: Bool[Array, "T J"]
    log_prior: Float[Array, "T J V"]
    # chance to be right by each of BASELINES, about members alone: the imputer learns from the others
    accuracy: Mapping[str, Float[Array, "T J"]]

    def by_unit(self, values: Float[Array, "T J"]) -> Float[Array, "T U"]:
        """Average over the attacked records of each unit."""
        unit = self.attribute_game.unit
        return np.stack([np.bincount(unit, row) for row in values]) / np.bincount(unit)

    @cached_property
    def unit_member(self) -> Bool[Array, "T U"]:
        """Which units are in."""
        return self.by_unit(self.member.astype(float)) > 0

    @property
    def chance(self) -> float:
        """1/V: a guess that looks at nothing."""
        return 1 / len(self.attribute_game.attribute.names)


def column_of(name: str, data: str | None = None, label: str | None = None, drop: Sequence[str] = ()) -> Column:
    """Find the attribute of a plan: a column of the data, or an array of its own in an ``.npz`` file."""
    if name == label or (label is None and name == "y" and data is not None):
        raise ValueError(f"attribute {name!r} is the label itself, which the attacker knows; give another column")
    if name in drop:
        raise ValueError(f"attribute {name!r} is no feature: it is dropped")
    if data is None or Path(data).suffix != ".npz":
        return name
    arrays = arrays_of(data)
    if name in arrays and name != "x":
        return arrays[name]
    if name[:1] == "x" and name[1:].isdigit():
        return name
    raise ValueError(f"{data}: no array {name!r}{nearest(name, arrays)}; arrays: {', '.join(arrays)}")


def lay_out(
    game: AttributeChoice, column: Column, n_models: int, attacks: Sequence[Attack], loaded: Data, seed: int = 0
) -> AttributeGame:
    """Draw the game, choose whom to attack, and lay out the candidates.

    >>> from leakbound import data
    >>> from leakbound.plans.games import Attribute
    >>> attribute_game = lay_out(Attribute("x0", bins=3), "x0", 4, [], data.load("wine"))
    >>> len(attribute_game.attacked), len(attribute_game.rows.points)
    (178, 712)
    """
    if loaded.points.y is None:
        raise ValueError(f"{loaded.name}: an audit needs labels")
    sensitive = attribute(loaded.points, column, bins=game.bins, name=game.column)
    records = draw(HalfSplit(), n_models, loaded.points, attacks, seed)
    # a record has a row for each value that its attribute may have
    attacked = _attacked(records, max(1, MOST_ROWS // len(sensitive.names)), seed)
    rows = candidates(sensitive, attacked)
    return AttributeGame(sensitive, records, attacked, rows, games.candidates(records, rows.record, rows.own))


def imputation(attribute_game: AttributeGame) -> tuple[Estimator, Points, Bool[Array, "T N"]]:
    """Who guesses without the release: a forest, what it learns from, and from which records, for each model."""
    spec, settings = IMPUTER
    outside = ~attribute_game.records.member[: attribute_game.records.n_targets]
    return Estimator(own(spec)(**settings), "imputation"), others(attribute_game.attribute), outside


def without_release(attribute_game: AttributeGame, execution: Execution, seed: int = 0) -> AttributeBaselines:
    """Guess without a release."""
    sensitive, records = attribute_game.attribute, attribute_game.records
    truth = sensitive.value[attribute_game.attacked]
    member = records.member[: records.n_targets, attribute_game.attacked]
    log_prior = _imputed(attribute_game, seed, execution)
    accuracy = {"prior_guess": _most_frequent(sensitive, records)[:, truth], "imputation": right(log_prior, truth)}
    return AttributeBaselines(attribute_game, truth, member, log_prior, accuracy)


def best_baseline(baselines: AttributeBaselines) -> BaselineName:
    """Name the baseline that is right most often about members, or "" if chance is right more often.

    It is chosen once for all models and strategies, in hindsight: the gain over it errs on the small side.
    """
    means = {
        name: _mean(baselines.by_unit(accuracy), baselines.unit_member) for name, accuracy in baselines.accuracy.items()
    }
    best = max(means, key=lambda name: means[name])
    return cast(BaselineName, best) if means[best] >= baselines.chance else ""


def _mean(guessed: Float[Array, "T U"], member: Bool[Array, "T U"]) -> float:
    return attribute_accuracy(guessed, member).value


def _attacked(records: Game, most: int, seed: int) -> Int[Array, " J"]:
    """Return the indices of the attacked records: the target points of the game, or a random part of them."""
    target_points = records.target_points
    if len(target_points) <= most:
        return target_points
    return np.sort(stream(seed, "game", "attacked").permutation(target_points)[:most])


def _most_frequent(sensitive: Attribute, records: Game) -> Float[Array, "T V"]:
    """Assign a probability to each value: uniform over the most frequent ones outside of each model."""
    outside = ~records.member[: records.n_targets]
    counts = np.stack([np.bincount(sensitive.value[row], minlength=len(sensitive.names)) for row in outside])
    most = counts == counts.max(axis=1, keepdims=True)
    return most / most.sum(axis=1, keepdims=True)


def _imputed(attribute_game: AttributeGame, seed: int, execution: Execution) -> Float[Array, "T J V"]:
    """Log-probability of each value by a forest that has learned from the records outside of each model."""
    sensitive = attribute_game.attribute
    imputer, other_columns, outside = imputation(attribute_game)
    arrays = observe(imputer, other_columns, outside, ["log_prob"], seed, execution)
    log_prob = arrays["log_prob"][:, attribute_game.attacked]
    # the signal has the true value first, then the others in their order: put them back in the order of the values
    value, truth = np.arange(len(sensitive.names)), sensitive.value[attribute_game.attacked][:, None]
    place = np.where(value == truth, 0, value + (value < truth))
    return np.take_along_axis(log_prob, place[None], axis=2)
