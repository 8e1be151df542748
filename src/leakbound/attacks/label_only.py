"""Attacks on models that answer with labels alone: they count the versions of the record whose label is right.

A record that a model was trained on keeps its label under larger changes than one that it has not seen. With shifted or
slightly noisy versions the number of right labels is the attack on augmented data. With noise that grows from version
to version it measures the distance from the record to the decision boundary, for the label holds until the noise is as
large.

Axes: M models, N points, Q queries, T targets, J target points.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from leakbound.attacks.lira import lira
from leakbound.core.types import Signals

Array = np.ndarray


def label_only(signals: Signals) -> Float[Array, "T J"]:
    """Compute the fraction of the versions of the record whose label is right.

    Source: Choquette-Choo, Tramer, Carlini & Papernot (2021), the gap between labels under perturbations of the record.

    >>> from leakbound.core.types import Game
    >>> game = Game("signals", np.array([[True, False]]), np.array([True, True]), 1)
    >>> query_correct = np.array([[[1.0, 1.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0]]])
    >>> label_only(Signals(game, None, {"query_correct": query_correct})).tolist()
    [[0.75, 0.25]]
    """
    return signals.targets("query_correct").mean(axis=2)


def label_only_lira(signals: Signals, *, variance: str = "shrunk") -> Float[Array, "T J"]:
    """Compare the number of versions whose label is right with that of models with and without the record.

    The score of `lira` with ``phi = log((c + 1/2) / (Q - c + 1/2))``, c of Q versions right.

    Source: Choquette-Choo, Tramer, Carlini & Papernot (2021) for what is counted; Carlini et al. (2022), Algorithm
    1, for the comparison.
    """
    is_right = signals.array("query_correct")
    n_queries = is_right.shape[2]
    n_right = np.asfortranarray(is_right.sum(axis=2, dtype=np.result_type(is_right, np.float32)))
    phi = np.log(n_right + 0.5) - np.log(n_queries - n_right + 0.5)
    return lira(replace(signals, arrays={"log_odds": phi}, labels=None, checked=True), variance=variance)
