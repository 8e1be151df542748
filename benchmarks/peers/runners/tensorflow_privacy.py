"""TF Privacy: LiRA and lower bounds of epsilon, of its distribution tensorflow-empirical-privacy."""

from tensorflow_privacy.privacy.privacy_tests.epsilon_lower_bound import BoundMethod, EpsilonLowerBound
from tensorflow_privacy.privacy.privacy_tests.membership_inference_attack.advanced_mia import compute_score_lira

PACKAGES = ["tensorflow-empirical-privacy", "scipy"]


def lira(option):
    def measured(timed, arrays):
        n_points = int(arrays["n_points"])
        log_odds, member = arrays["log_odds"][:, :n_points], arrays["member"][1:, :n_points]
        references = log_odds[1:]
        inside = [references[member[:, i], i, None] for i in range(n_points)]
        outside = [references[~member[:, i], i, None] for i in range(n_points)]
        # Small for members.
        return -timed(compute_score_lira, log_odds[0][:, None], inside, outside, option=option)

    return measured


def bound(method):
    def measured(timed, members, others, delta):
        found = timed(lambda: EpsilonLowerBound(members, others, alpha=0.05).compute_epsilon_lower_bound(method, k=1))
        return max(0.0, float(found[0]))

    return measured


NOTE = "at delta 0; the best threshold without a correction"
ROWS = [
    ("LiRA online", "compute_score_lira, both", lira("both"), "medians of the references"),
    ("LiRA offline", "compute_score_lira, out", lira("out"), "two-sided: the density; medians of the references"),
    ("epsilon, many runs", "EpsilonLowerBound, Clopper-Pearson", bound(BoundMethod.CLOPPER_PEARSON), NOTE),
    ("epsilon, many runs", "EpsilonLowerBound, Bailey", bound(BoundMethod.BAILEY), NOTE),
]
