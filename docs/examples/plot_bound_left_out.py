"""
Leave-one-out values: how far each record moves a slope
=======================================================

A slope is fitted again without each of 300 records. How far it moves is what noise has to hide; a few records move it
far more than the others.
"""

import numpy as np
from matplotlib import pyplot as plt

import leakbound as ls
from leakbound.releases.statistics.left_out import left_out_values
from leakbound.releases.statistics.statistic import named

rng = np.random.default_rng(0)
years = rng.uniform(0, 40, 300)
wages = 20 * np.exp(0.02 * years + rng.normal(0, 0.4, 300))
of_all, without = left_out_values(named("ols"), ls.Points(years[:, None], wages))
moves = without[:, 1] - of_all[1]
plt.scatter(
    years, moves, s=10 + 200 * moves**2 / (moves**2).max(), alpha=0.6, label="a record; large: it moves the slope far"
)
plt.xlabel("years in work")
plt.ylabel("change of the slope, wage per year")
plt.legend()
