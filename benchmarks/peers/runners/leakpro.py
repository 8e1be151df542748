"""LeakPro: the scores of its LiRA and RMIA from the outputs of reference models, from a checkout."""

import logging
import sys
from unittest.mock import MagicMock

import numpy as np

# Imported by modules beside those that are called: transformers is not among what it asks for, and torchvision may not
# fit the build of PyTorch.
for name in ("torchvision", "torchvision.datasets", "torchvision.transforms", "torchvision.utils", "transformers"):
    sys.modules[name] = MagicMock()

from leakpro.attacks.mia_attacks.abstract_mia import AbstractMIA  # noqa: E402
from leakpro.attacks.mia_attacks.lira import AttackLiRA  # noqa: E402
from leakpro.attacks.mia_attacks.rmia import AttackRMIA  # noqa: E402

PACKAGES = ["torch", "optuna", "pydantic"]
logging.disable(logging.INFO)


def of_points(attack_class, arrays, **configuration):
    """An attack as its prepare_attack leaves it, which would train models; points in the order of the arrays."""
    n_points = int(arrays["n_points"])
    member = arrays["member"][0, :n_points]
    attack = object.__new__(attack_class)
    attack.configs = attack_class.AttackConfig(num_shadow_models=len(arrays["log_odds"]) - 1, **configuration)
    for name, value in attack.configs.model_dump().items():
        setattr(attack, name, value)
    # It keeps the audited points on the class.
    AbstractMIA.audit_dataset = {"in_members": np.flatnonzero(member), "out_members": np.flatnonzero(~member)}
    attack.out_indices = ~arrays["member"][1:, :n_points]
    return attack


def in_order(attack, member):
    scores = np.empty(len(member))
    scores[member] = attack.in_member_signals.ravel()
    scores[~member] = attack.out_member_signals.ravel()
    return scores


def lira(online):
    def measured(timed, arrays):
        n_points = int(arrays["n_points"])
        attack = of_points(AttackLiRA, arrays, online=online)
        attack.fix_var_threshold = 32
        attack.target_logits = arrays["log_odds"][0, :n_points]
        attack.shadow_models_logits = arrays["log_odds"][1:, :n_points]
        timed(attack.run_attack)
        return in_order(attack, arrays["member"][0, :n_points])

    return measured


def rmia(online):
    def measured(timed, arrays):
        n_points = int(arrays["n_points"])
        attack = of_points(AttackRMIA, arrays, online=online, temperature=1.0, gamma=1.0, offline_a=0.3)
        attack.epsilon = 1e-6
        # Logits of two classes, of which the second is the true one.
        logits = [np.column_stack([np.zeros(n_points), row[:n_points]]) for row in arrays["log_odds"]]
        attack.logits_theta, attack.logits_shadow_models = logits[0], logits[1:]
        attack.ground_truth_indices = np.ones(n_points, dtype=int)
        population = 1 / (1 + np.exp(-arrays["log_odds"][:, n_points:]))

        def score():
            expected = population[1:].mean(axis=0, keepdims=True)
            if not online:
                expected = 0.5 * ((attack.offline_a + 1) * expected + (1 - attack.offline_a))
            attack.ratio_z = population[:1] / (expected + attack.epsilon)
            attack._run_attack()

        timed(score)
        return in_order(attack, arrays["member"][0, :n_points])

    return measured


SETTINGS = "temperature 1 and gamma 1 in place of its defaults, 2 and 2"
ROWS = [
    ("LiRA online", "AttackLiRA, online", lira(True), ""),
    ("LiRA offline", "AttackLiRA, offline", lira(False), ""),
    ("RMIA online", "AttackRMIA, online", rmia(True), SETTINGS),
    ("RMIA offline", "AttackRMIA, offline, a=0.3", rmia(False), SETTINGS),
]
