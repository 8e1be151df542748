"""What Tables 2 and 3 share: images of CIFAR-10, and the accuracy of an attack on many models."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import leakbound as ls
from leakbound.papers import data
from leakbound.papers.lab import mean_of
from leakbound.papers.printed import Ours, all_above


def cifar(n: int, rng: np.random.Generator) -> ls.Points:
    """Random training images of CIFAR-10 with their classes."""
    images = data.images("cifar10")
    drawn = rng.permutation(images.n_train)[:n]
    return ls.data.from_arrays(images.x[drawn], images.y[drawn])


def accuracy(scores: ls.Scores, threshold: float | None = None) -> Ours:
    """Fraction of correct guesses over the targets, with its standard error (sablayrolles2019, Section 5.2)."""
    return _over_targets(accuracy_by_target(scores, threshold), scores)


def lead(scores: ls.Scores, threshold: float | None, others: ls.Scores, their_threshold: float | None) -> Ours:
    """By how much more of its guesses one attack is right than another on the same targets, with its standard error."""
    return _over_targets(accuracy_by_target(scores, threshold) - accuracy_by_target(others, their_threshold), scores)


def above(leads: Mapping[str, Ours], smaller: str = "") -> Ours:
    """Tell whether all that is said to be above is, as far as three standard errors can tell."""
    detail = ", ".join(f"{name}: {lead.value:+.4f} +- {lead.error:.4f}" for name, lead in leads.items())
    return Ours.stated(all_above(leads.values()), smaller=smaller, detail=detail)


def accuracy_by_target(scores: ls.Scores, threshold: float | None) -> np.ndarray:
    """Compute the fraction of correct guesses on each target, half of whose points are members."""
    # the best one for all points of all targets together: a single number is hardly overfitted (Section 5.2)
    best = ls.metrics.hindsight_thresholds(scores) if threshold is None else threshold
    return ls.metrics.accuracy_at(scores, best)


def _over_targets(values: np.ndarray, scores: ls.Scores) -> Ours:
    mean = mean_of(values)
    return Ours(mean.value, mean.error * scores.variance_inflation**0.5)  # targets that are references of each other
