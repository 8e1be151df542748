"""Signals of several queries, one at a time: what a model says of several versions of each point.

An attack that uses them scores each query by itself, against the answers of the references to the same query, and
combines the scores; queries that were never asked for change nothing.

Axes: M models, N points, Q queries, T targets, J target points.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from leakbound.core.types import Signals

Array = np.ndarray


def with_queries(signals: Signals, *names: str) -> str:
    """Name the first of these signals that is there with an axis of queries; empty if none is.

    >>> from leakbound.core.types import Game
    >>> game = Game("signals", np.array([[True, False]]), np.array([True, True]), 1)
    >>> with_queries(Signals(game, None, {"query_loss": np.ones((1, 2, 3))}), "log_odds", "loss")
    'query_loss'
    """
    return next((f"query_{name}" for name in names if f"query_{name}" in signals.arrays), "")


def one_by_one(signals: Signals, *names: str) -> list[Signals]:
    """Return the signals of each query, as signals without that axis.

    >>> from leakbound.core.types import Game
    >>> game = Game("signals", np.array([[True, False]]), np.array([True, True]), 1)
    >>> two = Signals(game, None, {"query_loss": np.array([[[0.1, 0.2], [0.5, 0.4]]])})
    >>> [one.array("loss").tolist() for one in one_by_one(two, "log_odds", "loss")]
    [[[0.1, 0.5]], [[0.2, 0.4]]]
    """
    name = with_queries(signals, *names)
    if not name:
        return [signals]
    array, base = signals.arrays[name], name.removeprefix("query_")
    # in Fortran order the models of a point are neighbours
    queries = (np.asfortranarray(array[:, :, query]) for query in range(array.shape[2]))
    return [replace(signals, arrays={base: values}, labels=None, checked=True) for values in queries]


def mean_score(
    signals: Signals, names: tuple[str, ...], score: Callable[[Signals], Float[Array, "T J"]]
) -> Float[Array, "T J"]:
    """Compute the mean of a score over the queries."""
    queries = one_by_one(signals, *names)
    total = score(queries[0])
    for query in queries[1:]:
        total = total + score(query)
    return total if len(queries) == 1 else total / total.dtype.type(len(queries))
