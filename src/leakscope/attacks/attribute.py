"""Attribute inference: each value that an attribute may have is a candidate row, the best score is the guess.

Axes: T attacked models, J attacked records, V values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np
from jaxtyping import Float

from leakscope.attacks import ATTACKS, Attack, find
from leakscope.attacks.threshold import confidence
from leakscope.core.checks import one_of
from leakscope.core.types import NotApplicable, Signals

Array = np.ndarray
_HERE = "leakscope.attacks.attribute"
_OWN = (
    Attack(
        "likelihood",
        "Likelihood",
        "leakscope.attacks.threshold:confidence",
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
        "leakscope.attacks.mast:mast",
        ("loss",),
        "sablayrolles2019, eq. 29-30, corrected",
        "Imputation without the release as the prior, times the likelihood ratio of MAST.",
        needs_references=True,
    ),
)
STRATEGIES: Mapping[str, Attack] = MappingProxyType({row.name: row for row in _OWN})
DEFAULT = ("likelihood", "accuracy", "loss", "gradient_norm", "mast", "posterior")
# Attacks whose references never contain the record. Models with it were trained on its true value: whoever has them
# has been told the answer.
OFFLINE = frozenset({"mast", "lira_offline", "rmia_offline", "posterior"})
KNOW_THE_ANSWER = "compares with models that were trained on the record: they would tell its true value"
# Log-likelihood ratios of "the record with this value was in", to which the log of a prior of the value is added.
WITH_PRIOR = frozenset({"posterior"})


def accuracy(signals: Signals) -> Float[Array, "T J"]:
    """How confident the model is where it predicts the label; where it does not, less than anywhere else.

    Parameters
    ----------
    signals : Signals
        With ``log_prob`` and ``correct``.

    Returns
    -------
    array of shape (T, J)
        log max_i f_i(x) in nats where the prediction is right, else 1 less than the least of them, so that
        candidates without a right prediction are tied.

    Raises
    ------
    NotApplicable
        If a signal is missing.

    References
    ----------
    delgrosso2021, Section 4.3 (the strategy "accuracy"); Fredrikson et al. (2014).

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.attacks.attribute import accuracy
    >>> from leakscope.core.types import Game, Signals
    >>> game = Game("candidates", np.zeros((1, 2), dtype=bool), np.array([True, True]), 1)
    >>> arrays = {"log_prob": np.log([[[0.6, 0.4], [0.1, 0.9]]]), "correct": np.array([[1.0, 0.0]])}
    >>> score = accuracy(Signals(game, None, arrays, labels=np.array([0, 0])))
    >>> bool(score[0, 0] > score[0, 1])
    True
    """
    correct = signals.targets("correct") > 0
    top = confidence(signals)
    return np.where(correct, top, top.min() - 1)


def gradient_norm(signals: Signals) -> Float[Array, "T J"]:
    """Minus the norm of the gradient of the loss: near a minimum of the training loss it is short.

    Parameters
    ----------
    signals : Signals
        With ``gradient_norm``.

    Returns
    -------
    array of shape (T, J)

    Raises
    ------
    NotApplicable
        If the signal is missing.

    References
    ----------
    delgrosso2021, Section 4.3 (the strategy "gradient").

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.attacks.attribute import gradient_norm
    >>> from leakscope.core.types import Game, Signals
    >>> game = Game("candidates", np.zeros((1, 2), dtype=bool), np.array([True, True]), 1)
    >>> gradient_norm(Signals(game, None, {"gradient_norm": np.array([[0.5, 2.0]])})).tolist()
    [[-0.5, -2.0]]
    """
    return -signals.targets("gradient_norm")


def strategies(names: str | Attack | Iterable[str | Attack]) -> tuple[Attack, ...]:
    """The strategies that are meant: those of this file, and all attacks on membership by their names.

    Parameters
    ----------
    names : str, Attack, or iterable of them
        Names of ``STRATEGIES`` or ``ATTACKS``, ``"default"``, ``"all"``, or attacks with parameters of their own.

    Raises
    ------
    ValueError
        For an unknown name, with the nearest known one.

    Examples
    --------
    >>> from leakscope.attacks.attribute import strategies
    >>> [each.name for each in strategies(["likelihood", "rmia_offline"])]
    ['likelihood', 'rmia_offline']
    """
    known = {**ATTACKS, **STRATEGIES}
    groups = {"default": DEFAULT, "all": tuple(known)}
    found: dict[str, Attack] = {}
    for item in [names] if isinstance(names, (str, Attack)) else names:
        if isinstance(item, Attack):
            found[item.name] = replace(item, by_name=True)
            continue
        for name in groups.get(item, (item,)):
            attack = found.get(name, known[one_of("attack", name, [*known, *groups])])
            found[name] = replace(attack, by_name=attack.by_name or item not in groups)
    return tuple(found.values()) or find(())


def candidate_scores(attack: Attack, signals: Signals) -> Float[Array, "T J V"]:
    """The scores of an attack on membership at every candidate row of every attacked record.

    The references of all candidates of a record are the models that were trained without the record, the same for
    each of them. With the models that know one row and not another, the references alone would tell the true one.

    Parameters
    ----------
    attack : Attack
        Of `strategies`.
    signals : Signals
        Of a game of candidates: ``candidate_of`` names the record of a row, and the judged rows of a record are
        neighbours, V for each.

    Returns
    -------
    array of shape (T, J, V)
        Higher = the record, as it is.

    Raises
    ------
    NotApplicable
        If the attack does not apply, or compares with models that were trained on the record.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.attacks.attribute import candidate_scores, strategies
    >>> from leakscope.core.types import Game, Signals
    >>> of, judged = np.array([0, 0, 0]), np.array([False, True, True])
    >>> game = Game("candidates", np.array([[True, False, False]]), judged, 1, candidate_of=of)
    >>> signals = Signals(game, None, {"loss": np.array([[0.1, 2.0, 0.1]])})
    >>> candidate_scores(strategies("loss")[0], signals).tolist()
    [[[-2.0, -0.1]]]
    """
    if attack.needs_references and attack.name.partition("(")[0] not in OFFLINE:
        raise NotApplicable(KNOW_THE_ANSWER)
    game = signals.game
    if game.candidate_of is None or game.judged.ndim != 1:
        raise NotApplicable("needs a game of candidates, with the same records judged in every model")
    judged, of = game.judged, np.unique(game.candidate_of, return_inverse=True)[1]
    inside = np.zeros((game.n_models, int(of.max()) + 1), dtype=bool)
    trained = np.flatnonzero(game.member.any(axis=0))  # at most one row of a record
    inside[:, of[trained]] = game.member[:, trained]
    member = inside[:, of]
    member[:, np.isin(of, of[judged]) & ~judged] = True  # the rows as they are: no draws from the population
    fair = replace(signals, game=replace(game, member=member))
    return attack(fair).value.reshape(game.n_targets, len(np.unique(of[judged])), -1)
