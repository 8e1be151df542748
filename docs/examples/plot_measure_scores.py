"""
Scores of members and of others
===============================

Where the two histograms overlap, an attacker errs. The dashed line is the threshold with the fewest errors.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import load_digits
from sklearn.tree import DecisionTreeClassifier

import leakbound as ls

X, y = load_digits(return_X_y=True)
report = ls.audit(DecisionTreeClassifier(min_samples_leaf=3), X[:600], y[:600], n_models=16, attacks=["rmia"])
scores = report.scores("rmia")
groups = [scores.value[scores.member], scores.value[~scores.member]]
plt.hist(groups, 30, label=["members", "non-members"], color=["C0", "0.7"])
plt.axvline(ls.metrics.hindsight_thresholds(scores).item(), color="black", linestyle="dashed", label="threshold")
plt.xlabel("score of RMIA (higher: more like a member)")
plt.ylabel("records, over 16 models")
plt.legend()
