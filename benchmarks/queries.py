"""One question to each model, or several: membership attacks on small networks for CIFAR-10. Needs PyTorch.

Run as ``LEAKBOUND_DATA=FOLDER OMP_NUM_THREADS=1 python -m benchmarks.queries STORE``: 32 networks are trained on 1,000
of 2,000 images each, mirrored and cropped at random while they are trained, and asked about 18 versions of each image.
The attacks then use one, 8 or all 18 of the answers. The models' signals stay in the folder STORE, so that a second run
only attacks. The scores of LiRA and RMIA are compared with plain loops over models: for LiRA the formula of its
authors' code with means in place of medians, for RMIA the majority vote of its authors' code over all pairs.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace

import numpy as np
from scipy.stats import norm
from torch import nn

import leakbound as ls
from leakbound.attacks import ATTACKS
from leakbound.core.findings import Finding
from leakbound.core.signals import QUERY_SIGNALS
from leakbound.core.types import Points, Signals
from leakbound.papers.data import images
from leakbound.releases.networks.network import Network
from leakbound.releases.networks.recipe import Recipe
from leakbound.releases.queries import Queried, Versions

N_MODELS, N_ATTACKED, N_ASIDE, N_QUERIES = 32, 2000, 222, (1, 8, 18)
RECIPE = Recipe(epochs=30, lr=0.002, batch=50, augment="flip_crop")
ATTACKED_BY = (
    ATTACKS["gap"],
    ATTACKS["lira"],
    ATTACKS["lira_offline"],
    ATTACKS["rmia"],
    ATTACKS["rmia"].with_parameters(vote="majority"),
    ATTACKS["rmia_offline"],
    ATTACKS["quantile"],
)
OF_LABELS = (ATTACKS["label_only"], ATTACKS["label_only_lira"])
FPR = (0.01, 0.001)
Array = np.ndarray


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


def written(finding: Finding) -> str:
    """Write a value with its interval, as far as there is one."""
    if finding.value is None:
        return "-"
    has_interval = finding.low is not None and finding.high is not None
    return f"{finding.value:.4f}" + (f" ({finding.low:.4f} to {finding.high:.4f})" if has_interval else "")


def print_table(signals: Signals) -> None:
    """Print AUC and true positive rates of each attack with one query and with several; intervals over the models."""
    for n_queries in N_QUERIES:
        attacks = [*ATTACKED_BY, *(OF_LABELS if n_queries > 1 else ())]
        report = ls.audit_signals(with_first(signals, n_queries), attacks=attacks, fpr=FPR)
        for attack in attacks:
            findings = [finding for finding in report.findings if finding.attack == attack.name]
            cells = [written(finding) for finding in findings if finding.quantity in ("auc", "tpr")]
            print(f"{attack.name:24} {n_queries:2} queries  {'  '.join(cells)}", flush=True)


def plain_lira(signals: Signals, target: int) -> Array:
    """Compute the mean over the queries of the ratio of two normal densities, at all target points of one model."""
    phi, member = signals.array("query_log_odds", "log_odds"), signals.game.member
    phi = phi.reshape(*member.shape, -1).astype(float)
    others = np.arange(len(member)) != target
    scores = []
    for point in signals.game.target_points:
        inside, outside = (phi[others & (member[:, point] == side), point] for side in (True, False))
        of_members = norm.logpdf(phi[target, point], inside.mean(axis=0), inside.std(axis=0))
        of_others = norm.logpdf(phi[target, point], outside.mean(axis=0), outside.std(axis=0))
        scores.append((of_members - of_others).mean())
    return np.array(scores)


def plain_rmia(signals: Signals, target: int) -> Array:
    """Compute the fraction of the population that each record exceeds in most queries, from all pairs."""
    loss = signals.array("query_loss", "loss").reshape(*signals.game.member.shape, -1)
    p = np.exp(-loss.astype(float))
    ratios = p[target] / np.delete(p, target, axis=0).mean(axis=0)
    records, population = ratios[signals.game.target_points], ratios[signals.game.population]
    exceeds = records[:, None] / population[None] >= 1
    return (exceeds.mean(axis=2) > 0.5).mean(axis=1)


def print_differences(signals: Signals) -> None:
    """Print how far our scores of one model are from those of plain loops, with one query and with eight."""
    point, majority = (
        ATTACKS["lira"].with_parameters(variance="point"),
        ATTACKS["rmia"].with_parameters(vote="majority"),
    )
    for n_queries in (1, 8):
        part = with_first(signals, n_queries)
        n_population = len(part.game.population)
        lira, rmia = point(part).value[0], majority(part).value[0] + 1
        n_exceeded = np.floor(rmia * (n_population + 1))  # without what breaks ties
        of_lira = np.abs(lira - plain_lira(part, 0)).max()
        of_rmia = np.abs(n_exceeded - plain_rmia(part, 0) * n_population).max()
        print(f"{n_queries} queries, against plain loops: LiRA differs by {of_lira:.1e}, RMIA's count by {of_rmia:.0f}")


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
    print_differences(signals)


if __name__ == "__main__":
    # imported by its name: a network of the module __main__ has no import path, and its signals would not be stored
    from benchmarks.queries import main as main_of_module

    main_of_module()
