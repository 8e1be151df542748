"""SACRO-ML: the scores of its LiRA from log-odds of reference models; training and reports are left out."""

import logging
import tempfile

import numpy as np
from sacroml.attacks.likelihood_attack import LIRAAttack

PACKAGES = ["sacroml"]
logging.disable(logging.INFO)


def lira(mode):
    def measured(timed, arrays):
        n_points = int(arrays["n_points"])
        log_odds, member = arrays["log_odds"][:, :n_points], arrays["member"][1:, :n_points]
        references = log_odds[1:]
        outside = {i: references[~member[:, i], i].tolist() for i in range(n_points)}
        inside = {i: references[member[:, i], i].tolist() for i in range(n_points)}
        probability = 1 / (1 + np.exp(-log_odds[0]))
        label = np.ones(n_points, dtype=int)
        answers = np.column_stack([1 - probability, probability])
        with tempfile.TemporaryDirectory() as folder:
            attack = LIRAAttack(folder, write_report=False, n_shadow_models=len(references), mode=mode)
            scores, _ = timed(attack._compute_scores, label, answers, outside, inside)
        return np.array(scores)[:, 1]  # the column that its metrics take

    return measured


ROWS = [
    ("LiRA online", "LIRAAttack, online-carlini", lira("online-carlini"), "with a test of normality of each point"),
    ("LiRA offline", "LIRAAttack, offline", lira("offline"), "with a test of normality of each point"),
    (
        "LiRA offline",
        "LIRAAttack, offline-carlini",
        lira("offline-carlini"),
        "two-sided: the density; with a test of normality of each point",
    ),
]
