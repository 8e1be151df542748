"""What Tables 2 and 3 share: images of CIFAR-10, and the accuracy of an attack on many models."""

from __future__ import annotations

import numpy as np

import leakscope as ls
from leakscope.papers import data
from leakscope.papers.lab import mean_of
from leakscope.papers.printed import Ours


def cifar(n: int, rng: np.random.Generator) -> ls.Points:
    """Random training images of CIFAR-10 with their classes.

    Parameters
    ----------
    n : int
    rng : Generator
    """
    images = data.images("cifar10")
    drawn = rng.permutation(images.n_train)[:n]
    return ls.data.from_arrays(images.x[drawn], images.y[drawn])


def accuracy(scores: ls.Scores, threshold: float | None = None) -> Ours:
    """Share of right guesses, averaged over the targets, with its standard error.

    Parameters
    ----------
    scores : Scores
    threshold : float, optional
        From which on a point is called a member; unless given the best one for all points of all targets together
        (Section 5.2: a single number is hardly overfitted).
    """
    if threshold is None:
        threshold = float(ls.metrics.success(scores).detail["threshold"])
    found = mean_of(((scores.value >= threshold) == scores.member).mean(axis=1))
    return Ours(found.value, found.error * scores.overlap**0.5)  # targets that are references of each other
