"""riskcal: the noise of DP-SGD for an advantage, add/remove."""

from riskcal.calibration.dpsgd import find_noise_multiplier_for_advantage

PACKAGES = ["riskcal", "dp-accounting"]


def noise_of_dpsgd(timed, advantage, sample_rate, steps):
    return timed(find_noise_multiplier_for_advantage, advantage, sample_rate, steps)


ROWS = [("noise of DP-SGD", "find_noise_multiplier_for_advantage", noise_of_dpsgd, "")]
