"""
More people need less noise
===========================

The noise of a mean falls like 1/n, its standard error like 1/√n: with enough people, protection costs next to
nothing.
"""

import numpy as np
from matplotlib import pyplot as plt

import leakbound as ls

n_people = np.array([100, 300, 1_000, 3_000, 10_000])
wages = np.minimum(80, np.random.default_rng(0).lognormal(3.2, 0.5, n_people[-1]))
noise = [ls.noise.dp_gaussian_scale(eta=0.05, sensitivity=80 / n) for n in n_people]
plt.loglog(n_people, noise, "o-", label="noise, nobody is guessed right above 55 %")
plt.loglog(n_people, [wages[:n].std() / n**0.5 for n in n_people], "s--", label="standard error")
plt.xlabel("people")
plt.ylabel("standard deviation, in units of the wage")
plt.legend()
