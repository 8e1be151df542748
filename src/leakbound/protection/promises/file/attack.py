"""The best attack on which record was left out, on simulated releases: never a real one."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp

from leakbound.core.findings import Finding, Scope, Term
from leakbound.core.intervals import clopper_pearson
from leakbound.core.repeated_rows import Table
from leakbound.core.seeds import stream

Array = np.ndarray
_MOST = 1_000_000_000  # coordinates that are compared, over all games
_BLOCK = 1 << 22  # of them at once


def attack_left_out(whitened: Table, record: int, n_games: int, *, confidence: float, seed: int, game: Term) -> Finding:
    """Play games against a record: the likelihood ratio, which knows all n values, says whether it was left out.

    >>> found = attack_left_out(np.array([[0.0], [9.0]]), 0, 100, confidence=0.95, seed=0, game=Term("left_out", n=2))
    >>> found.value
    1.0
    """
    n, d = whitened.shape
    common: dict[str, Any] = {
        "operating_point": {"prior": 0.5},
        "attack": "likelihood_ratio",
        "bound_type": "lower",
        "scope": Scope("worst", record),
        "game": game,
        "assumptions": (Term("knows_records_and_noise"),),
    }
    if n_games * n * d > _MOST:
        return Finding("accuracy", None, reason=Term("no_games"), **common)
    whitened = np.asarray(whitened)
    rng = stream(seed, "calibrate", "left out games")
    # by a fair coin the record is left out, or one of the others, at random
    is_left_out = rng.random(n_games) < 0.5
    others = np.delete(np.arange(n), record)
    missing = np.where(is_left_out, record, rng.choice(others, n_games))
    n_correct = 0
    size = max(1, _BLOCK // (n * d))
    for start in range(0, n_games, size):
        block = slice(start, start + size)
        output = whitened[missing[block]] + rng.standard_normal((len(missing[block]), d))
        log_density = -np.square(output[:, None] - whitened).sum(axis=2) / 2
        of_record = log_density[:, record]
        of_others = logsumexp(log_density[:, others], axis=1) - np.log(n - 1)
        n_correct += int(((of_record > of_others) == is_left_out[block]).sum())
    interval = clopper_pearson(n_correct, n_games, confidence)
    return Finding(
        "accuracy",
        interval.value,
        interval.low,
        interval.high,
        confidence=confidence,
        interval_over="models",
        method=(*interval.method, Term("simulated_releases", games=n_games)),
        detail={"won": n_correct, "games": n_games},
        source="neyman1933",
        **common,
    )
