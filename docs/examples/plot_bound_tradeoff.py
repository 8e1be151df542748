"""
The same (ε, δ), two releases
=============================

A training by DP-SGD, and all that its pair (ε, δ) says alone. The pair is a poor summary: use the curve.
"""

import numpy as np
from matplotlib import pyplot as plt

import leakbound as ls

training = ls.bounds.dpsgd_tradeoff(noise_multiplier=1.0, sample_rate=0.01, steps=1000)
epsilon, fpr = training.epsilon(1e-5), np.geomspace(1e-4, 1, 200)
plt.loglog(fpr, ls.tradeoff.EpsilonDelta(epsilon, 1e-5).tpr_at(fpr), "--", label=f"ε = {epsilon:.2f}, δ = 10⁻⁵ alone")
plt.loglog(fpr, training.tpr_at(fpr), label="DP-SGD with this ε and δ")
plt.loglog(fpr, fpr, color="0.6", linestyle=":", label="guessing")
plt.xlabel("false positive rate")
plt.ylabel("true positive rate of any attacker, at most")
plt.legend()
