"""ART: its learned black-box attack on the answers of one model; it has no attack with reference models."""

import numpy as np
from art.attacks.inference.membership_inference import MembershipInferenceBlackBox
from art.estimators.classification import BlackBoxClassifier

PACKAGES = ["adversarial-robustness-toolbox", "scikit-learn"]


def learned(timed, arrays):
    n_points = int(arrays["n_points"])
    log_odds, member = arrays["log_odds"][0, :n_points], arrays["member"][0, :n_points]
    probability = 1 / (1 + np.exp(-log_odds))
    answers = np.column_stack([1 - probability, probability])
    known = np.arange(n_points) % 2 == 0
    target = BlackBoxClassifier(lambda x: x, input_shape=(2,), nb_classes=2)
    attack = MembershipInferenceBlackBox(target, input_type="prediction", attack_model_type="lr")

    def fit_and_infer():
        attack.fit(pred=answers[known & member], test_pred=answers[known & ~member])
        return attack.infer(x=None, pred=answers, probabilities=True)

    return timed(fit_and_infer)


ROWS = [
    (
        "loss attack",
        "MembershipInferenceBlackBox, lr",
        learned,
        "a classifier of the answers, trained on the membership of half of the points",
    ),
]
