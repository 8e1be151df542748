"""Section 4.2 and Appendix A.1: networks for images, and three attacks that ask them once.

n of the training images are drawn, a network is trained on them, and the attacker tells them from test images. The
network is trained by the squared loss, a mean over the ten classes, and stops after an epoch that moves this by less
than .001. It is asked as it would be used: its batch norm has the means and variances of the training.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import leakscope as ls
from leakscope.papers import data
from leakscope.papers.delgrosso2021.gap import membership_results, squared_loss

SHAPES: dict[str, dict[str, Any]] = {
    "mnist": {"channels": 1, "side": 28},
    "fashion": {"channels": 1, "side": 28},
    "cifar10": {"channels": 3, "side": 32},
}
TITLES = {"mnist": "MNIST", "fashion": "Fashion-MNIST", "cifar10": "CIFAR-10 (JPEG)"}
ATTACKS = {"likelihood": "likelihood", "loss": "loss", "modified_entropy": "modified entropy"}
RECIPE = {"loss": "mse", "lr": 5e-3, "batch": 200, "epochs": 150, "stop": 1e-3}


def attacked(name: str, n: int, n_others: int, number: int, seed: int) -> dict[str, Any]:
    """Train one network and ask it about its n images and about test images.

    Parameters
    ----------
    name : {"mnist", "fashion", "cifar10"}
    n : int
        Images that it is trained on.
    n_others : int
        Test images, drawn without replacement.
    number : int
        Of the network among those of this n.
    seed : int

    Returns
    -------
    dict of str to float, or float32 array of shape (n + n_others,)
        Scores by the names of `ATTACKS`, higher for a member, the members first; and what
        `leakscope.papers.delgrosso2021.gap.seen` gives.
    """
    from leakscope.papers.delgrosso2021 import networks

    pool = data.images(name)
    rng = ls.seeds.stream(seed, "images", name, n, number)
    n_test = len(pool.y) - pool.n_train
    rows = np.r_[rng.permutation(pool.n_train)[:n], pool.n_train + rng.permutation(n_test)[:n_others]]
    signals = ls.signals_of(
        ls.releases.Network(networks.deep_cnn, ls.releases.Recipe.of(RECIPE), parameters=SHAPES[name]),
        ls.data.from_arrays(pool.x[rows], pool.y[rows]),
        ls.games.one_model(n, n_others),
        ["log_prob", "correct"],
        seed=ls.seeds.integer(seed, "network", name, n, number),
        n_jobs=1,
    )
    log_p = signals.targets("log_prob")[0]
    scores = {
        "likelihood": ls.attacks.ATTACKS["confidence"](signals).value[0],
        "loss": -squared_loss(log_p),
        "modified_entropy": ls.attacks.ATTACKS["entropy"](signals).value[0],
    }
    results = {attack: np.asarray(score, dtype=np.float32) for attack, score in scores.items()}
    return results | membership_results(log_p, signals.targets("correct")[0], n)
