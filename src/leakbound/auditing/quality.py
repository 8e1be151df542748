"""How good an attacked model is at its task: what a reader weighs against what it reveals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
from jaxtyping import Int

from leakbound.auditing.observed import FindingSpec, ObservedRelease
from leakbound.core.findings import Finding, Scope
from leakbound.core.intervals import Interval
from leakbound.core.types import NotApplicable
from leakbound.metrics.quality import held_out_accuracy, held_out_r2, most_frequent, right_on_one_class, same_answer

Array = np.ndarray
GAMES = {"half_split", "fresh", "forgotten", "one_model", "signals"}  # in which the others are records like the members


def quality(observed: ObservedRelease, confidence: float) -> Iterator[Finding]:
    """Yield the accuracy or R2 of the models on records that are not in their training data."""
    game = observed.signals.game
    member = game.target_member
    # each model needs members, for the gap, and others, for the accuracy
    if game.kind not in GAMES or (member.all(axis=1) | ~member.any(axis=1)).any():
        return
    try:
        correct = observed.signals.targets("correct")
    # without predictions of classes: a score has no quality, a regression has its R2
    except NotApplicable:
        if observed.is_scored:
            yield observed.finding(FindingSpec("test_accuracy", "point"), NotApplicable("needs_predictions"))
        else:
            yield from _of_regression(observed, confidence)
        return
    interval = held_out_accuracy(correct, member, confidence)
    detail: dict[str, float] = dict(interval.detail)
    label = _class_codes(observed)
    if label is not None:
        at_targets = label[game.target_points]
        detail["baseline"] = most_frequent(label)
        # models that always answer with one class are counted: their accuracy is the baseline
        of_one_class = right_on_one_class(correct, at_targets)
        if "loss" in observed.signals.arrays:
            of_one_class |= same_answer(observed.signals.targets("loss"), at_targets)
        detail["models_of_one_class"] = int(np.count_nonzero(of_one_class))
        detail["classes"] = int(label.max()) + 1
    spec = FindingSpec("test_accuracy", "point", source=_source(interval), scope=Scope("average"))
    yield observed.finding(spec, replace(interval, detail=_plain(detail)))


def _of_regression(observed: ObservedRelease, confidence: float) -> Iterator[Finding]:
    """Yield the R2 of a regressor, whose loss is a squared error."""
    points = observed.signals.points
    if points is None or points.y is None or points.y.dtype.kind not in "fiu":
        return
    try:
        loss = observed.signals.targets("loss")
    except NotApplicable:
        return
    n_responses = 1 if points.y.ndim == 1 else points.y.shape[1]
    interval = held_out_r2(loss, observed.signals.game.target_member, n_responses, confidence)
    detail = _plain({**interval.detail, "baseline": 0.0})
    spec = FindingSpec("test_r2", "point", source=_source(interval), scope=Scope("average"))
    yield observed.finding(spec, replace(interval, detail=detail))


def _class_codes(observed: ObservedRelease) -> Int[Array, " N"] | None:
    """Return the number of the label of each point; of several labels, of their combination. None without labels."""
    signals = observed.signals
    if signals.points is None or signals.points.y is None:
        return None
    labels = np.asarray(signals.points.y).reshape(len(signals.points), -1)
    _, code = np.unique(labels, axis=0, return_inverse=True)
    return code.ravel()


def _source(interval: Interval) -> str:
    """Return the source of the interval."""
    return "student1908" if interval.method[0].id in ("cluster_t", "student_t") else "clopper1934"


def _plain(detail: Mapping[str, float]) -> dict[str, float]:
    """Drop the last digits of sums, which differ with the order of addition."""
    return {name: float(f"{value:.12g}") for name, value in detail.items()}
