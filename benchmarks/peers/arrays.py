"""The arrays that every package gets: made from fixed seeds, the same on every machine up to rounding.

Models. Row 0 is the target, the others are references. The log-odds of point i in model m is

    mean_i + deviation_i (shift_i member_mi + noise_mi),

with means N(3, 2^2), deviations exp(N(0, 0.4^2)), and shifts that are exponential with mean 0.35: most points are
hardly memorised, a few are strongly. A model has each point with probability 1/2. The last points are in no model: a
population for RMIA. The probability of the label is ``1 / (1 + exp(-log_odds))``, of two classes.

Bounds of epsilon. Scores N(1, 1) of members and N(0, 1) of others, and N(0, 1) of both where nothing leaks.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

Array = np.ndarray
N_REFERENCES, N_POINTS, N_POPULATION = 128, 20_000, 5_000
N_SCORES = 500  # of members, and of others
REPETITIONS, NULL_REPETITIONS = 25, 200
TRUE_EPSILON = 4.377  # of N(1, 1) against N(0, 1) at delta 1e-5


def of_models(n_references: int, n_points: int, n_population: int, seed: int) -> dict[str, Array]:
    """Log-odds, membership and the number of points whose membership is guessed."""
    rng = np.random.default_rng(seed)
    n_models, n_columns = n_references + 1, n_points + n_population
    mean = rng.normal(3.0, 2.0, n_columns)
    deviation = np.exp(rng.normal(0.0, 0.4, n_columns))
    shift = rng.exponential(0.35, n_columns)
    member = rng.random((n_models, n_columns)) < 0.5
    member[:, n_points:] = False
    noise = rng.standard_normal((n_models, n_columns))
    return {
        "log_odds": mean + deviation * (shift * member + noise),
        "member": member,
        "n_points": np.array(n_points),
    }


def of_scores(repetitions: int, null_repetitions: int, n_scores: int, seed: int) -> dict[str, Array]:
    """Scores of members and of others, and those of which nothing tells members from others."""
    rng = np.random.default_rng(seed)
    return {
        "members": rng.normal(1.0, 1.0, (repetitions, n_scores)),
        "others": rng.normal(0.0, 1.0, (repetitions, n_scores)),
        "null_members": rng.normal(0.0, 1.0, (null_repetitions, n_scores)),
        "null_others": rng.normal(0.0, 1.0, (null_repetitions, n_scores)),
    }


def arrays() -> dict[str, Array]:
    """Everything that is measured."""
    models = of_models(N_REFERENCES, N_POINTS, N_POPULATION, seed=1)
    return models | of_scores(REPETITIONS, NULL_REPETITIONS, N_SCORES, seed=2)


def warm_arrays() -> dict[str, Array]:
    """A small part of the work, for the call before those that are measured."""
    return of_models(N_REFERENCES, 500, 200, seed=3) | of_scores(1, 1, N_SCORES, seed=4)


def write(folder: Path) -> tuple[Path, Path]:
    """Write both to a folder, and return where they are."""
    paths = folder / "arrays.npz", folder / "warm.npz"
    for path, content in zip(paths, (arrays(), warm_arrays()), strict=True):
        np.savez(path, allow_pickle=False, **content)
    return paths
