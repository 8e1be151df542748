"""The shadow attack: a classifier of membership, trained on reference models.

Axes: B points of a block, T targets, R references, J target points, F features.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from jaxtyping import Bool, Float, Int
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from leakbound.attacks.blocks import Block, all_target_points, require_references, score_points
from leakbound.core.seeds import stream
from leakbound.core.types import NotApplicable, Signals

Array = np.ndarray
_LARGEST = 200_000  # (model, point) pairs that a classifier is trained on
_FOLDS = 5
_READ = ("log_odds", "loss", "correct", "log_prob")
_CLIP = 30.0  # nats; a probability of 1e-13 counts as 0


def shadow(signals: Signals) -> Float[Array, "T J"]:
    """Score by a logistic regression of membership on the signals of the reference models at the target points.

    Its features are the log-odds of the true label (else minus the loss), whether the prediction is correct, and the
    log-probabilities of the other classes in descending order, as far as the release gives them. With leave one out it
    is cross-fitted: the models are divided into 5 folds, and a model is scored by the classifier that was trained on
    the other folds. A classifier is trained on at most 200,000 pairs of model and point, drawn at random.

    Source: Shokri, Stronati, Song & Shmatikov (2017), Section V; Salem et al. (2019), Section IV (one classifier
    for all classes, on sorted outputs).

    >>> from leakbound.core.types import Game
    >>> member = np.array([[True, False], [True, False], [False, True]])
    >>> game = Game("half_split", member, np.array([True, True]), 1)
    >>> scores = shadow(Signals(game, None, {"loss": np.where(member, 0.1, 2.0)}))[0]
    >>> bool(scores[0] > scores[1])
    True
    """
    game, signal = signals.game, signals.array("log_odds", "loss")
    require_references(signals)
    fitted = [(rows, _fit(signals, others, fold)) for fold, (rows, others) in enumerate(_folds(signals))]

    def score(block: Block) -> Float[Array, "B T"]:
        features = _features(signals, block)
        value = np.empty(features.shape[:2])
        for rows, classifier in fitted:
            pairs = features[:, rows].reshape(-1, features.shape[2])
            value[:, rows] = classifier.decision_function(pairs).reshape(len(value), -1)
        return value

    return score_points(game, signal, score, game.n_targets)


def _folds(signals: Signals) -> Iterator[tuple[Int[Array, " t"], Int[Array, " r"]]]:
    """Yield targets, and the models that the classifier for them is trained on."""
    game = signals.game
    models = np.arange(game.n_models)
    if not game.leave_one_out:
        yield models[: game.n_targets], models[game.n_targets :]
        return
    for fold in range(min(_FOLDS, game.n_models)):
        yield models[models % _FOLDS == fold], models[models % _FOLDS != fold]


def _fit(signals: Signals, models: Int[Array, " r"], fold: int) -> Pipeline:
    """Fit the classifier to pairs of these models and the target points."""
    points = all_target_points(signals.game)
    n_pairs = len(models) * len(points)
    pair = np.arange(min(n_pairs, _LARGEST))
    if n_pairs > _LARGEST:
        pair = np.sort(stream(0, "shadow", fold).choice(n_pairs, _LARGEST, replace=False, shuffle=False))
    row, point = models[pair // len(points)], points[pair % len(points)]
    member: Bool[Array, " P"] = signals.game.member[row, point]
    if member.all() or not member.any():
        raise NotApplicable("references_of_one_kind")
    arrays = {name: signals.arrays[name][row, point] for name in _READ if name in signals.arrays}
    true_class = None if signals.labels is None else signals.labels[point]
    classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return classifier.fit(_stack(arrays, true_class), member)


def _features(signals: Signals, block: Block) -> Float[Array, "B T F"]:
    arrays = {name: block.targets(signals.arrays[name]) for name in _READ if name in signals.arrays}
    true_class = None
    if signals.labels is not None:
        true_class = block.targets(np.broadcast_to(signals.labels, signals.game.member.shape))
    return _stack(arrays, true_class)


def _stack(arrays: Mapping[str, Float[Array, "..."]], true_class: Int[Array, "..."] | None) -> Float[Array, "... F"]:
    """Stack the features of each pair of model and point."""
    first = arrays["log_odds"] if "log_odds" in arrays else -arrays["loss"]
    parts = [first[..., None]]
    if "correct" in arrays:
        parts.append(arrays["correct"][..., None])
    if "log_prob" in arrays and true_class is not None:
        others = np.array(arrays["log_prob"])
        np.put_along_axis(others, true_class[..., None], -np.inf, axis=-1)
        parts.append(-np.sort(-others, axis=-1)[..., :-1])  # the true class, at -inf, is the last one
    return np.clip(np.concatenate(parts, axis=-1, dtype=np.float64), -_CLIP, _CLIP)
