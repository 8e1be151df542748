"""Audits of DP-SGD from the loss of final models alone: how much initial weights that were trained before bring.

Run as ``OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.outside``. The guarantee of DP-SGD holds
whatever the initial weights are, so an auditor may choose them (Annamalai & De Cristofaro 2024): weights that fit data
like those of the training have short gradients at all records but the canary, whose effect then adds up over the steps.

Half of the digits is private, and one blank image with a label of its own is the canary. The initial weights are random
or fit the other half. Each model is trained with or without the canary by a coin, in 100 steps of all records; only its
loss at the canary is read.
"""

from __future__ import annotations

import argparse
import time
from functools import cache

import numpy as np
import torch
from scipy.optimize import brentq
from scipy.stats import norm
from sklearn.datasets import load_digits
from torch import Tensor, nn

import leakbound as ls

Array = np.ndarray
DELTA, STEPS, BLANK_LABEL = 1e-5, 100, 9


@cache
def images() -> tuple[Array, Array, Array, Array]:
    """Images and labels of the public half, and of the private half with the blank image at its end."""
    x, y = load_digits(return_X_y=True)
    x = (x / 16).astype(np.float32)
    order = np.random.default_rng(0).permutation(len(x))
    public, private = order[: len(x) // 2], order[len(x) // 2 :]
    blank = np.zeros((1, x.shape[1]), dtype=np.float32)
    return x[public], y[public], np.concatenate([x[private], blank]), np.append(y[private], BLANK_LABEL)


def random_start() -> nn.Module:
    """Make the network as it is usually initialised."""
    return nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 10))


@cache
def fitted_weights() -> dict[str, Tensor]:
    """Fit the network to the public half."""
    x, y = (torch.from_numpy(array) for array in images()[:2])
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = random_start()
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    for _ in range(300):
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(x), y).backward()
        optimizer.step()
    return {name: value.detach() for name, value in network.state_dict().items()}


def crafted_start() -> nn.Module:
    """Make the network with the weights that fit the public half."""
    network = random_start()
    network.load_state_dict(fitted_weights())
    return network


def noise_multiplier(epsilon: float) -> float:
    """Noise of steps of all records, which together are one Gaussian mechanism: sigma = sqrt(S)/mu."""

    def excess(mu: float) -> float:
        delta = norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
        return float(delta) - DELTA

    return STEPS**0.5 / brentq(excess, 0.01, 20.0)


def audit(start: str, epsilon: float, n_models: int, seed: int = 0) -> ls.Report:
    """Audit DP-SGD from the losses of final models at the canary."""
    _, _, x, y = images()
    training = {
        "noise_multiplier": noise_multiplier(epsilon), "sample_rate": 1.0, "steps": STEPS, "clip": 1.0, "lr": 0.05,
    }  # fmt: skip
    network = {"random": random_start, "crafted": crafted_start}[start]
    return ls.audit(
        network,
        x,
        y,
        train={"dpsgd": training},
        game=ls.Canaries(targets=(len(x) - 1,)),
        n_models=n_models,
        attacks=["loss"],
        seed=seed,
        n_jobs=1,
    )


def bounds(report: ls.Report) -> dict[str, float]:
    """Read the lower bounds of epsilon at 95 %: of any mechanism, and along the accountant's curve."""
    found = {}
    for finding in report.findings:
        if finding.quantity == "epsilon" and finding.bound_type == "lower" and not finding.refused:
            is_curve = any(term.id == "whole_curve" for term in finding.method)
            found["whole curve" if is_curve else "no assumption"] = finding.value
    return found


def main() -> None:
    """Print the bounds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", type=int, default=400)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[4.0, 10.0])
    arguments = parser.parse_args()
    print(f"{arguments.models:,} final models, their loss at a blank image; lower bounds of epsilon at 95 %")
    print("epsilon  initial weights  no assumption  whole curve   CPU s")
    for epsilon in arguments.epsilon:
        for start in ("random", "crafted"):
            begun = time.process_time()
            found = bounds(audit(start, epsilon, arguments.models))
            seconds = time.process_time() - begun
            of_any, of_curve = found["no assumption"], found["whole curve"]
            print(f"{epsilon:7g}  {start:15}  {of_any:13.2f}  {of_curve:11.2f}  {seconds:6.0f}", flush=True)


if __name__ == "__main__":
    main()
