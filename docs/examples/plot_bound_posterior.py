"""
What an attacker believes after a release
=========================================

A mean of half of eight wages is published with Laplace noise. The attacker knows the wages, not whose were used. Each
line is one person; before the release everybody stands at 1/2.
"""

import numpy as np
from matplotlib import pyplot as plt

from leakbound.bounds import bayes_attacker, subsets
from leakbound.noise import LaplaceNoise

wages = np.array([18.0, 20, 22, 25, 28, 31, 40, 60])
member = subsets(len(wages), len(wages) // 2)
means, released = member @ wages / 4, np.linspace(10, 50, 300)
for person, style in ((0, ":"), (4, "--"), (7, "-")):
    attacker = bayes_attacker(means, member, person, noise=LaplaceNoise(4.0))
    plt.plot(released, attacker.posterior(released), style, label=f"wage {wages[person]:.0f}")
plt.axhline(0.5, color="0.6", label="before the release")
plt.xlabel("released mean wage")
plt.ylabel("probability of being in the data")
plt.legend()
