"""
How far a promise lets a belief move
====================================

Whoever believed before the release that a person is in with the probability on the horizontal axis believes
afterwards at most what the line says.
"""

import numpy as np
from matplotlib import pyplot as plt

from leakbound.bounds import posterior_from_dp

prior = np.linspace(0.001, 0.999, 200)
for epsilon, style in ((0.5, ":"), (1.0, "--"), (3.0, "-")):
    plt.plot(prior, [posterior_from_dp(epsilon, p) for p in prior], style, label=f"ε = {epsilon:g}")
plt.plot(prior, prior, color="0.6", label="before")
plt.xlabel("probability before the release")
plt.ylabel("probability after the release, at most")
plt.legend()
