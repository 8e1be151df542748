"""
How much noise for which limit?
===============================

The noise of a mean wage of 1,000 people, each between 0 and 80. With the limit η an attacker is right in at most
50 + 100 η of 100 cases. The dotted line is the standard error of the mean.
"""

import numpy as np
from matplotlib import pyplot as plt

import leakbound as ls

wages = np.minimum(80, np.random.default_rng(0).lognormal(3.2, 0.5, 1000))
without = (wages.sum() - wages[:, None]) / 999
etas = np.geomspace(0.01, 0.3, 20)
plt.loglog(etas, [ls.noise.dp_gaussian_scale(eta, 80 / 1000) for eta in etas], label="differential privacy")
plt.loglog(etas, [ls.noise.calibrate_left_out(without, eta).scale for eta in etas], "--", label="leave-one-out")
plt.axhline(wages.std() / 1000**0.5, color="black", linestyle=":", label="standard error")
plt.xlabel("limit η")
plt.ylabel("standard deviation of the noise, in units of the wage")
plt.legend()
