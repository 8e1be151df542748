"""PrivacyGuard: LiRA, RMIA, and its lower bounds of epsilon, from a checkout."""

import math
import sys
from unittest.mock import MagicMock

import numpy as np
import pandas as pd
import torch

# Imported by modules beside those that are called; one that does not fit the build of PyTorch stops the import.
for name in ("torchvision", "torchvision.datasets", "torchvision.transforms", "torchvision.utils"):
    sys.modules[name] = MagicMock()

from privacy_guard.analysis.mia.fdp_analysis_node import FDPAnalysisNode  # noqa: E402
from privacy_guard.analysis.mia.mia_results import MIAResults  # noqa: E402
from privacy_guard.attacks.lira_attack import LiraAttack  # noqa: E402
from privacy_guard.attacks.rmia_attack import AggregationType, RmiaAttack  # noqa: E402
from privacy_guard.shadow_model_training.training import prepare_lira_data  # noqa: E402

PACKAGES = ["torch", "pandas", "scipy"]


def in_order(result, member):
    """Scores in the order of the points: it returns those of members and of others apart."""
    scores = np.empty(len(member))
    scores[member] = result.df_train_user["score"].to_numpy()
    scores[~member] = result.df_test_user["score"].to_numpy()
    return scores


def lira(online):
    def measured(timed, arrays):
        n_points = int(arrays["n_points"])
        log_odds, member = arrays["log_odds"][:, :n_points, None], arrays["member"][:, :n_points]
        references = [(None, row) for row in member[1:]]

        def attack():
            # Its own preparation is timed too: means and deviations of the references.
            frames = prepare_lira_data(log_odds[0], log_odds[1:], (None, member[0]), references)
            train, test = frames[:2] if online else frames[2:]
            return LiraAttack(
                train, test, AggregationType.NONE, online_attack=online, std_dev_type="shadows_out"
            ).run_attack()

        return in_order(timed(attack), member[0])

    return measured


def rmia(online):
    def measured(timed, arrays):
        n_points = int(arrays["n_points"])
        probability, member = 1 / (1 + np.exp(-arrays["log_odds"])), arrays["member"]
        columns = np.arange(probability.shape[1])

        def frame(chosen):
            content = {"user_id": np.arange(np.count_nonzero(chosen)), "score_orig": probability[0, chosen]}
            for model in range(1, len(probability)):
                content[f"score_ref_{model}"] = probability[model, chosen]
                content[f"member_ref_{model}"] = member[model, chosen]
            return pd.DataFrame(content)

        is_point = columns < n_points
        frames = frame(is_point & member[0]), frame(is_point & ~member[0]), frame(~is_point)
        n_used = len(probability) - 1 if online else (len(probability) - 1) // 2
        attack = RmiaAttack(*frames, AggregationType.NONE, num_reference_models=n_used, online=online)
        return in_order(timed(attack.run_attack), member[0, :n_points])

    return measured


def clopper_pearson(timed, members, others, delta):
    results = MIAResults(torch.from_numpy(members), torch.from_numpy(others))
    _, _, epsilon = timed(results.compute_acc_auc_ci_epsilon, delta)
    return max(0.0, float(epsilon))


def one_run_fdp(timed, members, others, delta):
    # Its node takes counts: a tenth of the scores, the highest, are guessed to be members.
    values = np.concatenate([members, others])
    n_guesses = math.ceil(len(values) / 10)
    highest = np.argsort(-values, kind="stable")[:n_guesses]
    n_correct = int(np.count_nonzero(highest < len(members)))

    def analysis():
        node = FDPAnalysisNode(m=len(values), c=n_correct, c_cap=n_guesses, delta=delta, threshold=0.05)
        return node.run_analysis().eps

    return timed(analysis)


ROWS = [
    ("LiRA online", "LiraAttack, online", lira(True), ""),
    ("LiRA offline", "LiraAttack, offline", lira(False), "two-sided: the density, with one deviation for all points"),
    ("RMIA online", "RmiaAttack, online", rmia(True), ""),
    ("RMIA offline", "RmiaAttack, offline, alpha=0.3", rmia(False), "averages the largest half of the signals"),
    (
        "epsilon, one run",
        "FDPAnalysisNode",
        one_run_fdp,
        "takes counts, here of the highest tenth; assumes a Gaussian mechanism",
    ),
    ("epsilon, many runs", "compute_acc_auc_ci_epsilon", clopper_pearson, "the best threshold without a correction"),
]
