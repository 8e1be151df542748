"""Privacy Meter: loss attack, offline RMIA and the epsilon of one run, from a checkout."""

import numpy as np
from modules.mia.attacks.rmia import run_rmia

from attacks import run_loss

PACKAGES = ["torch", "scikit-learn"]


def probabilities(arrays):
    return 1 / (1 + np.exp(-arrays["log_odds"].T))


def loss(timed, arrays):
    # Probabilities of the labels, not losses: its get_model_signals gives these to every attack.
    return timed(run_loss, probabilities(arrays)[: int(arrays["n_points"]), 0])


def rmia(timed, arrays):
    n_points = int(arrays["n_points"])
    signals, member = probabilities(arrays), arrays["member"].T
    points, population = signals[:n_points], signals[n_points:]
    return timed(
        run_rmia,
        points[:, 0],
        points[:, 1:],
        member[:n_points, 1:],
        population[:, 0],
        population[:, 1:],
        0.3,
    )


def one_run(timed, members, others, delta):
    from audit import compute_abstain_attack_results

    scores = np.concatenate([members, others])
    member = np.arange(len(scores)) < len(members)
    # Without delta, as its own pipeline calls it: with delta a bound takes minutes.
    result = timed(compute_abstain_attack_results, scores, member)
    return float(result["eps_opt"])


ROWS = [
    ("loss attack", "run_loss", loss, "gets probabilities where it expects losses: its sign is wrong"),
    ("RMIA offline", "run_rmia, offline_a=0.3", rmia, "averages the largest half of the signals"),
    (
        "epsilon, one run",
        "compute_abstain_attack_results",
        one_run,
        "at delta 0; the best of many thresholds without a correction",
    ),
]
