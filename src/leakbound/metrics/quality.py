"""How good the attacked models are: their accuracy, or R2, on the records that they were not trained on."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import stdtrit

from leakbound.core.findings import Term
from leakbound.core.intervals import Interval, clopper_pearson, cluster_t

Array = np.ndarray
ROUNDING = 1e-5  # of probabilities whose logarithms are held in single precision


def held_out_accuracy(correct: Float[Array, "T J"], member: Bool[Array, "T J"], confidence: float = 0.95) -> Interval:
    """Compute the accuracy of models on the records that are not in their training data.

    >>> member = np.tile([True, False], (1, 50))
    >>> found = held_out_accuracy(np.where(member, 1.0, np.arange(100) % 4 == 1), member)
    >>> found.value, found.detail["gap"]
    (0.5, 0.5)
    """
    test = correct.mean(axis=1, where=~member, dtype=float)
    training = correct.mean(axis=1, where=member, dtype=float)
    if len(test) > 1:
        return held_out_of_models(training, test, confidence)
    n_others = int(np.count_nonzero(~member))
    interval = clopper_pearson(float(test[0]) * n_others, n_others, confidence)
    value, mean, method = float(test[0]), float(training[0]), (Term("clopper_pearson_points"),)
    detail = {"training": mean, "gap": mean - value}
    return Interval(value, interval.low, interval.high, confidence, "points", method, detail)


def held_out_of_models(training: Float[Array, " T"], test: Float[Array, " T"], confidence: float = 0.95) -> Interval:
    """Compute `held_out_accuracy` of several models from that of each on its members and on its others.

    >>> held_out_of_models(np.array([1.0, 1.0]), np.array([0.5, 0.75])).detail["gap"]
    0.375
    """
    interval = cluster_t(test, confidence)
    mean = float(training.mean())
    detail = {"training": mean, "gap": mean - interval.value}
    return Interval(interval.value, interval.low, interval.high, confidence, "models", interval.method, detail)


def held_out_r2(
    loss: Float[Array, "T J"], member: Bool[Array, "T J"], n_responses: int = 1, confidence: float = 0.95
) -> Interval:
    """Compute the R2 of regressions on the records that are not in their training data.

    R2 = 1 - E[(y - f)^2] / s^2, with the variance s^2 of the response over all records, and the mean over the responses
    where there are several. It is 0 for the model that always predicts the mean.

    >>> member = np.tile([True, False], (2, 50))
    >>> round(held_out_r2(np.where(member, 0.05, 0.1), member).value, 2)
    0.8
    """
    score = 1.0 - 2.0 * np.asarray(loss, dtype=float) / n_responses
    test = score.mean(axis=1, where=~member)
    over = "models"
    values = test
    if len(test) == 1:
        over = "points"
        values = score[~member]
    value = float(test.mean())
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else math.inf
    half = float(stdtrit(max(len(values) - 1, 1), 0.5 + confidence / 2)) * spread / math.sqrt(len(values))
    training = float(score.mean(axis=1, where=member).mean())
    detail = {"training": training, "gap": training - value}
    method = (Term("student_t"),)
    return Interval(value, value - half, min(value + half, 1.0), confidence, over, method, detail)


def right_on_one_class(correct: Float[Array, "T J"], label: Int[Array, "T J"] | Int[Array, " J"]) -> Bool[Array, " T"]:
    """Find the models that are right about all records of one class and about no other record.

    With two classes, these are exactly the models that always predict the same class.

    >>> right_on_one_class(np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]]), np.array([0, 0, 1])).tolist()
    [True, False]
    """
    found = np.zeros(len(correct), dtype=bool)
    for model, labels in enumerate(np.broadcast_to(label, correct.shape)):
        n_records = np.bincount(labels)
        n_right = np.bincount(labels, weights=correct[model], minlength=len(n_records))
        present = n_records > 0
        all_right = present & (n_right == n_records)
        found[model] = np.count_nonzero(all_right) == 1 and bool((n_right[present & ~all_right] == 0).all())
    return found


def same_answer(loss: Float[Array, "T J"], label: Int[Array, "T J"] | Int[Array, " J"]) -> Bool[Array, " T"]:
    """Find the models that give the same probabilities to all records.

    Their loss has one value for each class, and the probabilities exp(-loss) of the classes sum to 1. They always
    predict the same class, also where ties between the most probable classes make `right_on_one_class` miss it: a tie
    counts as wrong.

    >>> same_answer(-np.log([[0.5, 0.5, 0.5], [0.9, 0.5, 0.5]]), np.array([0, 0, 1])).tolist()
    [True, False]
    """
    n_classes = int(label.max()) + 1
    found = np.zeros(len(loss), dtype=bool)
    for model, labels in enumerate(np.broadcast_to(label, loss.shape)):
        probability = np.exp(-np.asarray(loss[model], dtype=float))
        n_records = np.bincount(labels, minlength=n_classes)
        if (n_records == 0).any():
            continue
        of_class = np.bincount(labels, weights=probability, minlength=n_classes) / n_records
        is_constant = np.abs(probability - of_class[labels]).max() <= ROUNDING
        found[model] = is_constant and abs(of_class.sum() - 1) <= ROUNDING
    return found


def most_frequent(label: Int[Array, " J"]) -> float:
    """Return the fraction of the records that have the most frequent label.

    >>> most_frequent(np.array([0, 0, 1, 0]))
    0.75
    """
    return float(np.bincount(label).max() / len(label))
