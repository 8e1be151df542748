"""One question to each model, or several: membership attacks on small networks for CIFAR-10. Needs PyTorch.

Run as ``LEAKSCOPE_DATA=FOLDER OMP_NUM_THREADS=1 python -m benchmarks.queries STORE``: 32 networks are trained on 1,000
of 2,000 images each, mirrored and cropped at random while they are trained, and asked about 18 versions of each image.
The attacks then use one, 8 or all 18 of the answers. The models' signals stay in the folder STORE, so that a second run
only attacks.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace

import numpy as np
from torch import nn

import leakscope as ls
from leakscope.attacks import ATTACKS
from leakscope.core.signals import QUERY_SIGNALS
from leakscope.core.types import Points, Signals
from leakscope.papers.data import images
from leakscope.releases.networks.network import Network
from leakscope.releases.networks.recipe import Recipe
from leakscope.releases.queries import Queried, Versions

N_MODELS, N_ATTACKED, N_ASIDE, N_QUERIES = 32, 2000, 222, (1, 8, 18)
RECIPE = Recipe(epochs=30, lr=0.002, batch=50, augment="flip_crop")
ATTACKED_BY = (
    ATTACKS["lira"],
    ATTACKS["lira_offline"],
    ATTACKS["rmia"],
    ATTACKS["rmia"].with_parameters(vote="majority"),
    ATTACKS["rmia_offline"],
    ATTACKS["quantile"],
)
FPR = (0.01, 0.001)


def small_cnn() -> nn.Module:
    """Three convolutions, each pooled, and a linear layer."""
    layers: list[nn.Module] = []
    for n_in, n_out in ((3, 16), (16, 32), (32, 64)):
        layers += [nn.Conv2d(n_in, n_out, 3, padding=1), nn.MaxPool2d(2), nn.ReLU()]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(64 * 4 * 4, 10))


def points_of(n_points: int) -> Points:
    """Draw images of CIFAR-10."""
    cifar = images("cifar10")
    chosen = np.sort(np.random.default_rng(0).permutation(len(cifar.x))[:n_points])
    return ls.data.from_arrays(cifar.x[chosen], cifar.y[chosen])


def signals_of(points: Points, n_models: int, recipe: Recipe, n_queries: int, store: str | None) -> Signals:
    """Train the networks, and ask each about all versions of all images."""
    release = Queried(Network(small_cnn, recipe), Versions.for_points(points, n_queries, "shifts"))
    game = ls.games.half_split(len(points), n_models, seed=0, population=N_ASIDE / (N_ATTACKED + N_ASIDE))
    return ls.signals_of(release, points, game, ["loss", "log_odds", "correct"], store=store, n_jobs=1)


def with_first(signals: Signals, n_queries: int) -> Signals:
    """Keep the first queries; with one of them, the signals without that axis."""
    arrays = {name: array for name, array in signals.arrays.items() if name not in QUERY_SIGNALS}
    if n_queries > 1:
        arrays |= {name: signals.arrays[name][:, :, :n_queries] for name in QUERY_SIGNALS if name in signals.arrays}
    return replace(signals, arrays=arrays, checked=True)


def print_table(signals: Signals) -> None:
    """Print AUC and true positive rates of each attack with one query and with several; intervals over the models."""
    for n_queries in N_QUERIES:
        report = ls.audit_signals(with_first(signals, n_queries), attacks=list(ATTACKED_BY), fpr=FPR)
        for attack in ATTACKED_BY:
            findings = [finding for finding in report.findings if finding.attack == attack.name]
            values = [finding for finding in findings if finding.quantity in ("auc", "tpr")]
            cells = [f"{each.value:.4f} ({each.low:.4f} to {each.high:.4f})" for each in values]
            print(f"{attack.name:24} {n_queries:2} queries  {'  '.join(cells)}", flush=True)


def main() -> None:
    """Train, attack and print."""
    store = sys.argv[1] if len(sys.argv) > 1 else None
    started = time.process_time()
    signals = signals_of(points_of(N_ATTACKED + N_ASIDE), N_MODELS, RECIPE, max(N_QUERIES), store)
    print(f"{N_MODELS} networks: {time.process_time() - started:.0f} s of CPU time")
    correct, member = signals.array("correct"), signals.game.member
    print(
        f"accuracy {correct[member].mean():.3f} on members, {correct[:, signals.game.population].mean():.3f} on others"
    )
    print("AUC, true positive rates at false positive rates of", " and ".join(f"{rate:g}" for rate in FPR))
    print_table(signals)


if __name__ == "__main__":
    # imported by its name: a network of the module __main__ has no import path, and its signals would not be stored
    from benchmarks.queries import main as main_of_module

    main_of_module()
