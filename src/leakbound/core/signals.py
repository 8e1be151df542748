"""What one can see of a release at a point.

Letters of the axes: M models, N points, K classes, Q queries, S steps; P numbers of one signal.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from leakbound.core.findings import Term

Array = np.ndarray
NORMALISED = 1e-3  # nats: how far the log of the sum of the probabilities of a point may be from 0
_ALIKE = 0.7  # how alike two names are, of 1, if one is called a misspelling of the other
# Two tools round and clip differently, so signals agree within a tolerance, and beyond these values always.
_TOLERANCE, _LARGEST_LOSS, _LARGEST_LOG_ODDS = 0.02, 15.0, 7.0


@dataclass(frozen=True)
class SignalKind:
    """What a signal means: its axes, its unit, and a sentence."""

    axes: tuple[str, ...]
    unit: str
    meaning: str


SIGNALS: Mapping[str, SignalKind] = MappingProxyType(
    {
        "loss": SignalKind(
            ("M", "N"),
            "nats",
            "-log p(true label); for a regressor (y - f)^2 / (2 s^2), s the standard deviation of y",
        ),
        "log_odds": SignalKind(
            ("M", "N"),
            "nats",
            "log p(true label) - log(1 - p(true label)); the margin of the true label where a model has no "
            "probabilities",
        ),
        "correct": SignalKind(("M", "N"), "0 or 1", "the predicted label is the true one"),
        "log_prob": SignalKind(
            ("M", "N", "K"), "nats", "log-probability of each class, in class order; the labels say which class is true"
        ),
        "query_loss": SignalKind(
            ("M", "N", "Q"),
            "nats",
            "the loss at each version of the point that a model is asked about, itself first",
        ),
        "query_log_odds": SignalKind(("M", "N", "Q"), "nats", "the log-odds at each version, the point itself first"),
        "query_correct": SignalKind(
            ("M", "N", "Q"), "0 or 1", "the predicted label is the true one, at each version, the point itself first"
        ),
        "dot": SignalKind(
            ("M", "N"),
            "squared units of the data",
            "(z - mu).(output - mu), the point and a released vector around the mean of the distribution",
        ),
        "step_dot": SignalKind(
            ("M", "N", "S"),
            "nats",
            "D^T C^-1 (u - mu) at each step: u is what was released, N(mu, C) without the point, moved by D with it",
        ),
        "step_norm": SignalKind(("M", "N", "S"), "nats", "D^T C^-1 D at each step, the square of the moved distance"),
        "step_in": SignalKind(("M", "N", "S"), "0 or 1", "the point is in the batch of the step"),
        "gradient_norm": SignalKind(
            ("M", "N"), "nats a unit of the parameters", "Euclidean norm of the gradient of the loss at the point"
        ),
        "taylor": SignalKind(
            ("M", "N", "P"),
            "nats",
            "(theta - theta0).g and g^T H^-1 g: parameters around those of models that know nothing of the game, "
            "g the gradient of the point's loss there, H the Hessian of the training loss",
        ),
        "score": SignalKind(("M", "N"), "any", "any finite number, higher = more likely in the data of the model"),
        "matches": SignalKind(("M", "N"), "0 or 1", "a published row is equal to the point"),
        "nearest": SignalKind(("M", "N"), "mean over the columns, 0 to 1", "minus the distance to the nearest row"),
        "nearest5": SignalKind(
            ("M", "N"), "mean over the columns, 0 to 1", "minus the mean distance to the five nearest published rows"
        ),
        "density_ratio": SignalKind(
            ("M", "N"), "nats", "log density of the published rows at the point, minus that of reference rows"
        ),
        "gen_lra": SignalKind(
            ("M", "N"),
            "nats",
            "log-likelihood of the published rows near the point under reference rows and the point, minus that under "
            "the reference rows alone",
        ),
    }
)

# What a release gives that is no predicted label: any number, of which a higher one is more likely of a member
SCORES = ("score", "matches", "nearest", "nearest5", "density_ratio", "gen_lra")


def precision_of(name: str) -> type[np.floating[Any]]:
    """Return the type in which a signal is kept: single precision, but for scores, whose origin may be far off."""
    return np.float64 if name in SCORES else np.float32


# What a training by DP-SGD shows of itself, and not of a point: `leakbound.dpsgd.diagnostics` says what each holds.
DIAGNOSTICS = ("step_noise", "step_tensors", "step_fresh", "step_batches", "step_records")

QUERY_SIGNALS: Mapping[str, str] = MappingProxyType(
    {name: name.removeprefix("query_") for name in SIGNALS if name.startswith("query_")}
)  # with an axis of queries, and the signal that each one is of the point itself


def why_missing(asked: Sequence[str], given: Collection[str]) -> Term:
    """Say why an attack does not get a signal that it asks for, with the name that was probably meant.

    Two names of ``SIGNALS`` are different signals, however alike they are; so one of the two names that are compared
    is no key of it.

    >>> why_missing(["loss"], ["los"])
    Term('misspelt_signal', names='loss', given='los')
    >>> why_missing(["los"], []).values["meant"], why_missing(["log_odds"], ["log_prob"]).id
    ('loss', 'missing_signal')
    """
    own_names = [name for name in given if name not in SIGNALS]
    names = " or ".join(asked)
    for name in asked:
        candidates = own_names if name in SIGNALS else [*given, *SIGNALS]
        close = get_close_matches(name, candidates, n=1, cutoff=_ALIKE)
        if close and name in SIGNALS:
            return Term("misspelt_signal", names=names, given=close[0])
        if close:
            return Term("unknown_signal", names=names, meant=close[0])
    return Term("missing_signal", names=names)


def class_indices(labels: ArrayLike, n_points: int, n_classes: int) -> Int[Array, " N"]:
    """Check the labels that say which class of ``log_prob`` is the true one.

    >>> class_indices([0, 2], n_points=2, n_classes=3).tolist()
    [0, 2]
    """
    indices = np.asarray(labels)
    if indices.shape != (n_points,):
        raise ValueError(f"labels has shape {indices.shape}; allowed: ({n_points},), the class index of each point")
    if indices.dtype.kind not in "iuf" or not np.isfinite(indices).all() or (indices != np.floor(indices)).any():
        raise ValueError("labels must be class indices: whole numbers, column k of log_prob is class k")
    if indices.min() < 0 or indices.max() >= n_classes:
        raise ValueError(
            f"labels must be class indices from 0 to {n_classes - 1}, for log_prob has {n_classes} classes; "
            f"got {indices.min():g} to {indices.max():g}"
        )
    return indices.astype(np.intp)


def of_log_prob(log_prob: Float[Array, "M N K"], labels: Int[Array, " N"]) -> dict[str, Float[Array, "M N"]]:
    """Compute loss, log-odds and correctness from the log-probabilities of all classes.

    >>> made = of_log_prob(np.log([[[0.25, 0.75]]]), np.array([1]))
    >>> {name: round(float(values[0, 0]), 4) for name, values in made.items()}
    {'loss': 0.2877, 'log_odds': 1.0986, 'correct': 1.0}
    """
    n_models, n_points, n_classes = log_prob.shape
    if n_classes < 2:
        raise ValueError("signal 'log_prob' needs at least 2 classes, got 1")
    names = ("loss", "log_odds", "correct")
    signals = {name: np.empty((n_points, n_models), dtype=log_prob.dtype).T for name in names}
    size = max(1, (1 << 20) // (n_models * n_classes))
    for start in range(0, n_points, size):
        points = slice(start, min(start + size, n_points))
        log_p = log_prob[:, points].astype(np.float64)
        _refuse_not_normalised(log_p)
        true_class = np.broadcast_to(labels[points][None, :, None], (*log_p.shape[:2], 1))
        log_p_true = np.take_along_axis(log_p, true_class, axis=2)[..., 0]
        # log(1 - p) as the sum over the other classes: 1 - p loses all digits where p is near 1.
        np.put_along_axis(log_p, true_class, -np.inf, axis=2)
        signals["loss"][:, points] = np.maximum(-log_p_true, 0)
        log_p_others = np.asarray(logsumexp(log_p, axis=2))
        signals["log_odds"][:, points] = log_p_true - log_p_others
        signals["correct"][:, points] = log_p_true > log_p.max(axis=2)
    return signals


def _refuse_not_normalised(log_p: Float[Array, "M n K"]) -> None:
    log_sum = np.asarray(logsumexp(log_p, axis=2))
    if np.abs(log_sum).max() > NORMALISED:
        raise ValueError(
            "signal 'log_prob' is not normalised: the log of the sum over the classes is from "
            f"{log_sum.min():.4g} to {log_sum.max():.4g} and must be 0 within {NORMALISED:g}; apply log_softmax over "
            "the classes to raw logits"
        )


def refuse_impossible(arrays: Mapping[str, Float[Array, "M N ..."]]) -> None:
    """Refuse values that a signal cannot have, and signals that contradict each other.

    >>> refuse_impossible({"loss": np.array([[0.1]]), "log_odds": np.array([[-2.0]])})
    Traceback (most recent call last):
    ...
    ValueError: signals 'loss' and 'log_odds' disagree: model 0, point 0 has loss 0.1, and log_odds -2 is a loss of 2.13
    """
    loss, log_odds, correct = (arrays.get(name) for name in ("loss", "log_odds", "correct"))
    if loss is not None and loss.min() < -NORMALISED:
        raise ValueError(f"signal 'loss' is -log p(true label), which is at least 0; got {loss.min():.4g}")
    if correct is not None and not ((correct == 0) | (correct == 1)).all():
        raise ValueError("signal 'correct' must hold 0 and 1: the predicted label is the true one")
    matches = arrays.get("matches")
    if matches is not None and not ((matches == 0) | (matches == 1)).all():
        raise ValueError("signal 'matches' must hold 0 and 1: a published row is equal to the point")
    if loss is not None and log_odds is not None:
        expected = np.logaddexp(0, -log_odds)  # -log p where log_odds = log p - log(1 - p)
        apart = np.abs(np.minimum(loss, _LARGEST_LOSS) - np.minimum(expected, _LARGEST_LOSS))
        # A probability of 1 or 0 may have been clipped on its way to either signal: then log(1 - p) was, or p was.
        at_one = (loss <= 0) & (log_odds >= 0)
        at_zero = (loss >= loss.max(axis=1, keepdims=True)) & (np.abs(loss + log_odds) <= _TOLERANCE)
        clipped = at_one | at_zero
        where = np.argwhere((apart > _TOLERANCE * (1 + expected)) & ~clipped)
        if len(where):
            model, point = where[0]
            raise ValueError(
                f"signals 'loss' and 'log_odds' disagree: model {model}, point {point} has loss "
                f"{loss[model, point]:.3g}, and log_odds {log_odds[model, point]:.3g} is a loss of "
                f"{expected[model, point]:.3g}"
            )
    if correct is not None and log_odds is not None:
        # a probability above 1/2 is the largest one, however many classes there are
        where = np.argwhere((log_odds > _TOLERANCE) & (correct == 0))
        if len(where):
            model, point = where[0]
            raise ValueError(
                f"signals 'correct' and 'log_odds' disagree: model {model}, point {point} gives the true label "
                f"log_odds {log_odds[model, point]:.3g}, more than 0, and correct 0"
            )


def first_queries(arrays: Mapping[str, Float[Array, "M N ..."]]) -> dict[str, Float[Array, "M N"]]:
    """Take from signals with an axis of queries what the models say of the points themselves.

    >>> first_queries({"query_loss": np.array([[[0.5, 0.25]]])})["loss"].tolist()
    [[0.5]]
    """
    given = {name: arrays[name] for name in QUERY_SIGNALS if name in arrays}
    first: dict[str, Array] = {}
    for name, array in given.items():
        base = QUERY_SIGNALS[name]
        if array.shape[2] == 0:
            raise ValueError(f"signal {name!r} has no queries; the last axis must have at least 1")
        # the first query is the point itself
        own = array[:, :, 0]
        if base not in arrays:
            first[base] = np.asfortranarray(own)
            continue
        where = np.argwhere(np.abs(arrays[base] - own) > _TOLERANCE * (1 + np.abs(own)))
        if len(where):
            model, point = where[0]
            raise ValueError(
                f"signal {base!r} is not that of the first query: model {model}, point {point} has "
                f"{arrays[base][model, point]:.3g}, and {name} begins with {own[model, point]:.3g}; the first version "
                "of a point is the point itself"
            )
    # each query is checked as if it were the only one
    for query in range(next((array.shape[2] for array in given.values()), 0)):
        try:
            refuse_impossible({QUERY_SIGNALS[name]: array[:, :, query] for name, array in given.items()})
        except ValueError as error:
            raise ValueError(f"query {query}: {error}") from None
    return first


def refuse_disagreeing(
    arrays: Mapping[str, Float[Array, "M N ..."]], derived: Mapping[str, Float[Array, "M N"]]
) -> None:
    """Refuse a given ``loss``, ``log_odds`` or ``correct`` that is not that of ``log_prob`` and the labels."""
    ends = {"loss": (0.0, _LARGEST_LOSS), "log_odds": (-_LARGEST_LOG_ODDS, _LARGEST_LOG_ODDS), "correct": (0.0, 1.0)}
    for name, (low, high) in ends.items():
        if name not in arrays:
            continue
        reported, expected = np.clip(arrays[name], low, high), np.clip(derived[name], low, high)
        wrong = np.abs(reported - expected) > _TOLERANCE * (1 + np.abs(expected))
        # of two classes that are equally likely either may be the guess
        if name == "correct":
            wrong &= _is_decided(arrays["log_prob"])
        where = np.argwhere(wrong)
        if len(where):
            model, point = where[0]
            raise ValueError(
                f"signal {name!r} disagrees with log_prob and labels: model {model} at point {point} has "
                f"{arrays[name][model, point]:.3g}, and log_prob at its label gives {derived[name][model, point]:.3g}; "
                "column k of log_prob is class k"
            )


def _is_decided(log_prob: Float[Array, "M N K"]) -> np.ndarray:
    """Where the two most probable classes are not tied, so that no rounding changes which one is predicted."""
    largest_two = np.partition(log_prob, -2, axis=2)[..., -2:]
    return largest_two[..., 1] - largest_two[..., 0] > _TOLERANCE
