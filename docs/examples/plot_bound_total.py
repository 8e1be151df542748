"""
Who is exposed by a total?
==========================

Each of 200 people is counted by a coin, and the total of their hours is published. How often the best attacker is
right about each of them, exactly, if the hours are rounded before they are added.
"""

import numpy as np
from matplotlib import pyplot as plt

from leakbound.bounds import exact_eta_total, on_grid

hours = np.random.default_rng(0).gamma(2, 5, 200)
for grid, style in ((1, "o"), (20, "^")):
    accuracy = 50 + 100 * exact_eta_total(on_grid(hours, grid))
    plt.plot(hours, accuracy, style, markerfacecolor="none", label=f"rounded to {grid}")
plt.xlabel("hours of the person")
plt.ylabel("accuracy of the best attacker, %")
plt.legend()
