"""
What ε allows: correct guesses, and members found
=================================================

The most that any attacker can reach under differential privacy with ε, whatever the data.
"""

import numpy as np
from matplotlib import pyplot as plt

import leakbound as ls

epsilons = np.linspace(0, 6, 61)
curves = [ls.tradeoff.EpsilonDelta(epsilon) for epsilon in epsilons]
plt.plot(epsilons, [100 * curve.accuracy() for curve in curves], label="attack accuracy, prior 1/2")
plt.plot(epsilons, [100 * curve.tpr_at(0.01) for curve in curves], "--", label="members found (TPR) at FPR 1 %")
plt.xlabel("ε")
plt.ylabel("at most, %")
plt.legend()
