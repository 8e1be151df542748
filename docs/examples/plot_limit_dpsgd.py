"""
Noise of DP-SGD for a limit on any attacker
===========================================

The least noise multiplier with which no attacker is right more often: batches of 100, 10 epochs.
"""

import numpy as np
from matplotlib import pyplot as plt

from leakbound.dpsgd.calibration import dpsgd_multiplier

accuracies = np.array([0.55, 0.65, 0.8])
for n_records, style in ((1_000, "o-"), (10_000, "s--")):
    rate, steps = 100 / n_records, 10 * n_records // 100
    noise = [dpsgd_multiplier(rate, steps, advantage=2 * accuracy - 1) for accuracy in accuracies]
    plt.plot(100 * accuracies, noise, style, label=f"{n_records:,} records")
plt.xlabel("limit of the attack accuracy, %")
plt.ylabel("noise multiplier")
plt.legend()
