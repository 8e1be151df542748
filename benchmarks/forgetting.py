"""Is a removal from ridge regression complete? ``python -m benchmarks.forgetting``.

500 records of 60 standard normal features, a response with noise of 1, penalty 1. 100 records may be in the data of a
model; those that are in are removed after training, in five ways. Three are exact: training again on the kept records,
subtracting the removed ones from the normal equations, and one Sherman-Morrison step for each. The others are one and
ten steps down the gradient on the kept records, of length ``1/lambda_max``, from the model that was trained on all.

Shown are, over repeated audits of 16 models, the mean AUC of each attack, in how many its interval is above 1/2, and
in how many that of the strongest attack is: all intervals of an audit hold at once, so that any may be picked out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

import leakbound as ls
from leakbound.attacks import find
from leakbound.auditing.evaluate import area_at_once, told_apart
from leakbound.auditing.observed import ObservedRelease
from leakbound.core.types import Points
from leakbound.releases.forgetting import Forgetting
from leakbound.releases.training_function import TrainingFunction

ATTACKS = ("loss", "mast", "lira", "rmia")
PENALTY = 1.0
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Ridge:
    """The normal equations of a ridge regression, their inverse, and the solution that is used."""

    matrix: np.ndarray
    right: np.ndarray
    weights: np.ndarray

    @classmethod
    def solved(cls, matrix: np.ndarray, right: np.ndarray) -> Ridge:
        return cls(matrix, right, np.linalg.solve(matrix, right))

    def predict(self, x: np.ndarray) -> np.ndarray:
        return x @ self.weights


def fit(x: np.ndarray, y: np.ndarray, seed: int = 0) -> Ridge:
    """Train on some records; nothing is random."""
    return Ridge.solved(x.T @ x + PENALTY * np.eye(x.shape[1]), x.T @ y)


def retrain(model, x_removed, y_removed, x_kept, y_kept, seed):
    """Train again without the removed records: exact."""
    return fit(x_kept, y_kept)


def downdate(model, x_removed, y_removed, x_kept, y_kept, seed):
    """Subtract the removed records from the normal equations: exact."""
    return Ridge.solved(model.matrix - x_removed.T @ x_removed, model.right - x_removed.T @ y_removed)


def rank_one(model, x_removed, y_removed, x_kept, y_kept, seed):
    """Subtract one record after another from the inverse (Sherman and Morrison): exact."""
    inverse, right = np.linalg.inv(model.matrix), model.right.copy()
    for x, y in zip(x_removed, y_removed, strict=True):
        direction = inverse @ x
        inverse += np.outer(direction, direction) / (1 - x @ direction)
        right -= y * x
    return Ridge(model.matrix - x_removed.T @ x_removed, right, inverse @ right)


def descend(model, x_kept: np.ndarray, y_kept: np.ndarray, n_steps: int) -> Ridge:
    """Take steps down the gradient on the kept records, each of length 1 over the largest curvature."""
    matrix, right = x_kept.T @ x_kept + PENALTY * np.eye(x_kept.shape[1]), x_kept.T @ y_kept
    length, weights = 1 / np.linalg.eigvalsh(matrix)[-1], model.weights
    for _ in range(n_steps):
        weights = weights - length * (matrix @ weights - right)
    return Ridge(matrix, right, weights)


def one_step(model, x_removed, y_removed, x_kept, y_kept, seed):
    """Not exact."""
    return descend(model, x_kept, y_kept, 1)


def ten_steps(model, x_removed, y_removed, x_kept, y_kept, seed):
    """Not exact."""
    return descend(model, x_kept, y_kept, 10)


EXACT = (retrain, downdate, rank_one)


@dataclass(frozen=True)
class Found:
    """What one audit shows: AUCs, which corrected intervals are above 1/2, and which own intervals miss it."""

    auc: dict[str, float]
    alone: dict[str, bool]
    misses: dict[str, bool]
    told_apart: bool


def audited(
    unlearn: Callable, kept: Literal["half", "all"] = "half", seed: int = 0, n_points: int = 500, n_models: int = 16
) -> Found:
    """Play the game once, on data of their own."""
    rng = np.random.default_rng([39, seed])
    x = rng.normal(size=(n_points, 60))
    y = x @ rng.normal(size=60) / np.sqrt(60) + rng.normal(size=n_points)
    points = Points(x, y)
    attacks = find(ATTACKS)
    game = ls.games.forgotten(n_points, n_models, targets=100, kept=kept, seed=seed)
    release = Forgetting(TrainingFunction(fit), unlearn, game.is_target_point, kept)
    arrays = release.observe(points, game.member, np.arange(n_models), ["loss"])
    observed = ObservedRelease("ridge", ls.Signals.observed(game, points, arrays))
    at_once, auc, alone, misses = {}, {}, {}, {}
    for attack in attacks:
        scores = attack(observed.signals)
        at_once |= area_at_once(observed, scores, len(attacks), CONFIDENCE)
        area = ls.metrics.auc(scores, CONFIDENCE)
        auc[attack.name], alone[attack.name] = area.value, at_once[attack.name].low > 0.5
        misses[attack.name] = not area.low <= 0.5 <= area.high
    (strongest,) = told_apart(observed, at_once, len(attacks), CONFIDENCE)
    assert strongest.low is not None
    return Found(auc, alone, misses, strongest.low > 0.5)


def repeated(unlearn: Callable, kept: Literal["half", "all"], n_repeats: int) -> list[Found]:
    """Play the game again and again."""
    return [audited(unlearn, kept, seed) for seed in range(n_repeats)]


def line(found: Sequence[Found]) -> str:
    """Write the mean AUC of each attack with the fraction of audits that it finds alone, and that of the strongest."""
    of_attacks = []
    for name in ATTACKS:
        auc = np.mean([each.auc[name] for each in found])
        alone = np.mean([each.alone[name] for each in found])
        of_attacks.append(f"{name} {auc:.3f} ({100 * alone:.0f} %)")
    strongest = np.mean([each.told_apart for each in found])
    return f"{', '.join(of_attacks)}; strongest, corrected: {100 * strongest:.0f} %"


def main(n_repeats: int = 40) -> None:
    """Print a line for each removal."""
    for kept in ("half", "all"):
        for unlearn in (*EXACT, one_step, ten_steps):
            print(f"{kept:<5}{unlearn.__name__:<10}{line(repeated(unlearn, kept, n_repeats))}")


if __name__ == "__main__":
    main()
