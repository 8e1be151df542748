"""Section 4.2 and Appendix A.1: networks for images, and three attacks that ask them once.

n of the training images are drawn, a network is trained on them, and the attacker tells them from test images. The
network is trained by the squared loss, a mean over the ten classes, and stops after an epoch that moves this by less
than .001. It is asked as it would be used: its batch norm has the means and variances of the training.

The paper's public code, of an early version, differs from that in three ways. Of n images that it draws it trains on
2n/3, in batches of 50, and keeps a third aside for validation; the attack calls all n members. The network stays in
training mode: its batch norm has the means and variances of the images that are asked, members in one batch and test
images in another. And the loss that decides when to stop is the plain mean over the batches, of which the last may be
small. `attacked_as_code` does the same. Whether the final runs of the paper used that code is not known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
from scipy.special import log_softmax

import leakbound as ls
from leakbound.papers import data
from leakbound.papers.delgrosso2021.gap import membership_results, squared_loss
from leakbound.papers.lab import Lab

SHAPES: dict[str, dict[str, Any]] = {
    "mnist": {"channels": 1, "side": 28},
    "fashion": {"channels": 1, "side": 28},
    "cifar10": {"channels": 3, "side": 32},
}
TITLES = {"mnist": "MNIST", "fashion": "Fashion-MNIST", "cifar10": "CIFAR-10 (JPEG)"}
ATTACKS = {"likelihood": "likelihood", "loss": "loss", "modified_entropy": "modified entropy"}
RECIPE = {"loss": "mse", "lr": 5e-3, "batch": 200, "epochs": 150, "stop": 1e-3}
CODE = {"lr": 5e-3, "batch": 50, "epochs": 150, "stop": 1e-3}  # the public code's, for every n
SETTINGS = ("code", "trained")  # who is called a member: all n images, or those that the network was trained on
TINIEST = 1e-12  # of a probability


def in_print(names: Iterable[str]) -> list[str]:
    """Sort sets of images as the paper's figure has them, from top to bottom.

    >>> in_print(["fashion", "mnist", "cifar10", "mnist"])
    ['cifar10', 'mnist', 'fashion']
    """
    return [name for name in ("cifar10", "mnist", "fashion") if name in set(names)]


def attacked(name: str, n: int, n_others: int, number: int, seed: int, loss: str = "mse") -> dict[str, Any]:
    """Train one network and ask it about its n images and about test images."""
    from leakbound.papers.delgrosso2021 import networks

    pixels, label = drawn(name, n, n_others, number, seed)
    signals = ls.signals_of(
        ls.releases.Network(networks.deep_cnn, ls.releases.Recipe.of(RECIPE | {"loss": loss}), parameters=SHAPES[name]),
        ls.data.from_arrays(pixels, label),
        ls.games.one_model(n, n_others),
        ["log_prob", "correct"],
        seed=ls.seeds.integer(seed, "network", name, n, number),
        n_jobs=1,
    )
    return scores_of(signals) | membership_results(signals.targets("log_prob")[0], signals.targets("correct")[0], n)


def attacked_as_code(name: str, n: int, n_others: int, number: int, seed: int) -> dict[str, Any]:
    """Train one network on two thirds of n images, and ask about all n and test images, as delgrosso2021's code."""
    from leakbound.papers.delgrosso2021 import networks

    pixels, label = drawn(name, n, n_others, number, seed)
    n_trained = n_members("trained", n)
    with networks.seeded(ls.seeds.integer(seed, "network as code", name, n, number)):
        network = networks.deep_cnn(**SHAPES[name])
        networks.train(network, networks.tensor(pixels[:n_trained]), label[:n_trained], **CODE)
        sides = [networks.ask_in_training_mode(network, networks.tensor(side)) for side in (pixels[:n], pixels[n:])]
    log_p = true_first(np.concatenate(sides), label)
    correct = log_p[:, 0] > log_p[:, 1:].max(axis=1)
    first_class = np.zeros(len(label), dtype=int)
    signals = ls.Signals(ls.games.one_model(n, n_others), None, {"log_prob": log_p[None]}, labels=first_class)
    kept = np.r_[:n_trained, n : n + n_others]
    of_all = membership_results(log_p, correct, n)
    of_trained = membership_results(log_p[kept], correct[kept], n_trained)
    results = {f"code_{what}": value for what, value in of_all.items()}
    results |= {f"trained_{what}": value for what, value in of_trained.items()}
    return scores_of(signals) | results


def runs_as_code(
    lab: Lab, settings: Collection[str], name: str, n: int, n_others: int, models: int
) -> dict[str, list[dict[str, Any]]]:
    """Train networks as the public code, once for all settings, and give their results in the form of `attacked`."""
    wanted = [setting for setting in SETTINGS if setting in settings]
    if not wanted:
        return {}
    arguments = [(name, n, n_others, number, lab.seed) for number in range(models)]
    runs = lab.repeat(attacked_as_code, arguments, f"{TITLES[name]} as the public code, n = {n}", name)
    return {setting: [called(run, setting, n) for run in runs] for setting in wanted}


def called(run: Mapping[str, Any], setting: str, n: int) -> dict[str, Any]:
    """Read the results of `attacked_as_code` as those of `attacked`."""
    count = n_members(setting, n)
    # the first count images are called members; the others of the n are left out
    scores = {attack: np.r_[run[attack][:count], run[attack][n:]] for attack in ATTACKS}
    prefix = f"{setting}_"
    return scores | {what.removeprefix(prefix): run[what] for what in run if what.startswith(prefix)}


def n_members(setting: str, n: int) -> int:
    """Count the images that are called members, of n that were drawn."""
    return 2 * n // 3 if setting == "trained" else n


def drawn(name: str, n: int, n_others: int, number: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw n training images and some test images, with their classes."""
    pool = data.images(name)
    rng = ls.seeds.stream(seed, "images", name, n, number)
    n_test = len(pool.y) - pool.n_train
    rows = np.r_[rng.permutation(pool.n_train)[:n], pool.n_train + rng.permutation(n_test)[:n_others]]
    return pool.x[rows], pool.y[rows]


def scores_of(signals: ls.Signals) -> dict[str, np.ndarray]:
    """Score by the log-probabilities of one network, the true label's first (delgrosso2021, Section 4.2)."""
    scores = {
        "likelihood": ls.attacks.ATTACKS["confidence"](signals).value[0],
        "loss": -squared_loss(signals.targets("log_prob")[0]),
        "modified_entropy": ls.attacks.ATTACKS["entropy"](signals).value[0],
    }
    return {attack: np.asarray(score, dtype=np.float32) for attack, score in scores.items()}


def true_first(logits: np.ndarray, label: np.ndarray) -> np.ndarray:
    """Compute log-probabilities with the true label's first, as the signal ``log_prob`` of leakbound has them."""
    true_class = label[:, None]
    others = np.arange(logits.shape[1])[None, :].repeat(len(logits), axis=0)
    others = others[others != true_class].reshape(len(logits), -1)
    ordered = np.take_along_axis(logits, np.hstack([true_class, others]), axis=1)
    return np.maximum(log_softmax(ordered, axis=1), np.log(TINIEST))
