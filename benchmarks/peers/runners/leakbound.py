"""leakbound on the arrays."""

import numpy as np

from leakbound.attacks.lira import lira, lira_offline
from leakbound.attacks.rmia import rmia, rmia_offline
from leakbound.attacks.threshold import loss
from leakbound.core.tradeoff import Gaussian
from leakbound.core.types import Game, Scores, Signals
from leakbound.dpsgd import dpsgd_multiplier
from leakbound.dpsgd.accountant import dpsgd
from leakbound.metrics.epsilon import epsilon_lower, evidence, family_lower

PACKAGES = ["leakbound", "dp-accounting"]


def signals_of(arrays):
    member = arrays["member"]
    is_target_point = np.arange(member.shape[1]) < arrays["n_points"]
    log_odds = np.asfortranarray(arrays["log_odds"])
    game = Game("half_split", member, is_target_point, 1)
    return Signals(game, None, {"log_odds": log_odds, "loss": np.logaddexp(0, -log_odds)})


def attack(score, **keywords):
    return lambda timed, arrays: timed(score, signals_of(arrays), **keywords)[0]


def scores_of(members, others, one_run):
    value = np.concatenate([members, others])
    member = np.arange(len(value)) < len(members)
    # One run: one model with many points. Many runs: many models with one point.
    shape = (1, -1) if one_run else (-1, 1)
    return Scores("given", value.reshape(shape), member.reshape(shape))


def one_run(timed, members, others, delta):
    return timed(epsilon_lower, scores_of(members, others, True), delta, method="coins").value


def many_runs(timed, members, others, delta):
    scores = scores_of(members, others, False)
    return timed(epsilon_lower, scores, delta, method="many_runs", independent=True).value


def gaussian(scores, delta, method, independent):
    least = family_lower(evidence(scores, method, independent), Gaussian).value
    return Gaussian(least).epsilon(delta) if least > 0 else 0.0


def one_run_gaussian(timed, members, others, delta):
    return timed(gaussian, scores_of(members, others, True), delta, "coins", False)


def many_runs_gaussian(timed, members, others, delta):
    return timed(gaussian, scores_of(members, others, False), delta, "many_runs", True)


def epsilon_of_dpsgd(timed, noise, sample_rate, steps, delta):
    return timed(lambda: dpsgd(noise, sample_rate, steps, "add_remove").epsilon(delta))


def noise_of_dpsgd(timed, advantage, sample_rate, steps):
    return timed(dpsgd_multiplier, sample_rate, steps, advantage=advantage, adjacency="add_remove")


ROWS = [
    ("loss attack", "loss", attack(loss), ""),
    ("LiRA online", "lira", attack(lira), ""),
    ("LiRA online", "lira, variance=point", attack(lira, variance="point"), ""),
    ("LiRA offline", "lira_offline", attack(lira_offline), ""),
    ("LiRA offline", "lira_offline, variance=point", attack(lira_offline, variance="point"), ""),
    ("RMIA online", "rmia", attack(rmia), ""),
    ("RMIA offline", "rmia_offline, a=0.3", attack(rmia_offline, a=0.3), ""),
    ("epsilon, one run", "epsilon_lower, coins", one_run, ""),
    ("epsilon, one run", "family_lower, Gaussian", one_run_gaussian, "assumes a Gaussian mechanism"),
    ("epsilon, many runs", "epsilon_lower, many_runs", many_runs, ""),
    ("epsilon, many runs", "family_lower, Gaussian", many_runs_gaussian, "assumes a Gaussian mechanism"),
    ("epsilon of DP-SGD", "dpsgd(...).epsilon", epsilon_of_dpsgd, ""),
    ("noise of DP-SGD", "dpsgd_multiplier", noise_of_dpsgd, ""),
]
