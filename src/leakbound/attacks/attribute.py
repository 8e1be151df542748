"""Attribute inference: each value that an attribute may have is a candidate row; the best score is the guess.

Axes: T attacked models, J attacked records, V values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np
from jaxtyping import Float

from leakbound.attacks import ATTACKS, Attack, Score, find, listed
from leakbound.attacks.threshold import confidence
from leakbound.core.checks import one_of
from leakbound.core.signals import SCORES
from leakbound.core.types import NotApplicable, Signals

Array = np.ndarray
_HERE = "leakbound.attacks.attribute"
_OWN = (
    Attack(
        "likelihood",
        "Likelihood",
        "leakbound.attacks.threshold:confidence",
        ("log_prob",),
        "delgrosso2021, Section 4.3",
        "The value with which the model is most confident, whatever it predicts.",
    ),
    Attack(
        "accuracy",
        "Accuracy",
        f"{_HERE}:accuracy",
        ("log_prob", "correct"),
        "delgrosso2021, Section 4.3",
        "The value with which the model predicts the label, most confidently.",
    ),
    Attack(
        "gradient_norm",
        "Gradient norm",
        f"{_HERE}:gradient_norm",
        ("gradient_norm",),
        "delgrosso2021, Section 4.3",
        "The value with which the gradient of the loss is shortest.",
    ),
    Attack(
        "posterior",
        "Posterior",
        "leakbound.attacks.mast:mast",
        ("loss",),
        "sablayrolles2019, eq. 29-30, corrected",
        "Imputation without the release as the prior, times the likelihood ratio of MAST.",
        needs_references=True,
    ),
)
STRATEGIES: Mapping[str, Attack] = MappingProxyType({row.name: row for row in _OWN})
DEFAULT = ("likelihood", "accuracy", "loss", "gradient_norm", "mast", "posterior")
# Attacks whose references never contain the record. Models with it were trained on its true value, and would reveal it.
OFFLINE = frozenset({"mast", "lira_offline", "rmia_offline", "posterior"})
# Log-likelihood ratios of "the record with this value was in", to which the log of a prior of the value is added.
WITH_PRIOR = frozenset({"posterior"})


def accuracy(signals: Signals) -> Float[Array, "T J"]:
    """Score by the confidence where the model predicts the label; elsewhere, below all others.

    Source: delgrosso2021, Section 4.3 (the strategy "accuracy"); Fredrikson et al. (2014).

    >>> from leakbound.core.types import Game
    >>> game = Game("candidates", np.zeros((1, 2), dtype=bool), np.array([True, True]), 1)
    >>> arrays = {"log_prob": np.log([[[0.6, 0.4], [0.1, 0.9]]]), "correct": np.array([[1.0, 0.0]])}
    >>> score = accuracy(Signals(game, None, arrays, labels=np.array([0, 0])))
    >>> bool(score[0, 0] > score[0, 1])
    True
    """
    correct = signals.targets("correct") > 0
    top = confidence(signals)
    # candidates without a right prediction are tied
    return np.where(correct, top, top.min() - 1)


def gradient_norm(signals: Signals) -> Float[Array, "T J"]:
    """Score by minus the norm of the gradient of the loss, which is short near a minimum of the training loss.

    Source: delgrosso2021, Section 4.3 (the strategy "gradient").

    >>> from leakbound.core.types import Game
    >>> game = Game("candidates", np.zeros((1, 2), dtype=bool), np.array([True, True]), 1)
    >>> gradient_norm(Signals(game, None, {"gradient_norm": np.array([[0.5, 2.0]])})).tolist()
    [[-0.5, -2.0]]
    """
    return -signals.targets("gradient_norm")


def strategies(names: str | Attack | Score | Iterable[str | Attack | Score]) -> tuple[Attack, ...]:
    """List the strategies that are asked for: those of this file, and attacks on membership.

    >>> [attack.name for attack in strategies(["likelihood", "rmia_offline"])]
    ['likelihood', 'rmia_offline']
    """
    known = {**ATTACKS, **STRATEGIES}
    groups = {"default": DEFAULT, "all": tuple(name for name in known if name not in SCORES)}
    chosen: dict[str, Attack] = {}
    for item in listed(names):
        if isinstance(item, Attack):
            chosen[item.name] = replace(item, by_name=True)
            continue
        for name in groups.get(item, (item,)):
            attack = chosen.get(name, known[one_of("attack", name, [*known, *groups])])
            chosen[name] = replace(attack, by_name=attack.by_name or item not in groups)
    return tuple(chosen.values()) or find(())


def candidate_scores(attack: Attack, signals: Signals) -> Float[Array, "T J V"]:
    """Score every candidate row of every attacked record by an attack on membership.

    The references of a record are the models that were trained without it, the same for all of its candidates. Models
    that were trained on one of the rows would reveal the true one.

    >>> from leakbound.core.types import Game
    >>> candidate_of, target_points = np.array([0, 0, 0]), np.array([False, True, True])
    >>> game = Game("candidates", np.array([[True, False, False]]), target_points, 1, candidate_of=candidate_of)
    >>> signals = Signals(game, None, {"loss": np.array([[0.1, 2.0, 0.1]])})
    >>> candidate_scores(strategies("loss")[0], signals).tolist()
    [[[-2.0, -0.1]]]
    """
    if attack.needs_references and attack.name.partition("(")[0] not in OFFLINE:
        raise NotApplicable("knows_the_answer")
    # the V candidate rows of a record are neighbours among the target points; candidate_of names the record of a row
    game = signals.game
    if game.candidate_of is None or game.is_target_point.ndim != 1:
        raise NotApplicable("needs_candidates")
    is_target = game.is_target_point
    record = np.unique(game.candidate_of, return_inverse=True)[1]  # of each row, numbered from 0
    inside = np.zeros((game.n_models, int(record.max()) + 1), dtype=bool)
    trained = np.flatnonzero(game.member.any(axis=0))  # at most one row of each record
    inside[:, record[trained]] = game.member[:, trained]
    member = inside[:, record]
    # The rows with the true values, which are no target points, must not count as the population.
    member[:, np.isin(record, record[is_target]) & ~is_target] = True
    same_references = replace(signals, game=replace(game, member=member))
    n_records = len(np.unique(record[is_target]))
    return attack(same_references).value.reshape(game.n_targets, n_records, -1)
