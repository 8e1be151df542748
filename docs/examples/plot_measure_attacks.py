"""
Attacks on a random forest, and what a promise would allow
==========================================================

Each line is an attack: how many members it finds, against how many non-members it takes for members. The dashed line
is the most that differential privacy with ε = 1 would allow anybody. The attacks are above it.
"""

from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier

import leakbound as ls

X, y = load_digits(return_X_y=True)
forest = RandomForestClassifier(n_estimators=10)
report = ls.audit(forest, X[:600], y[:600], n_models=32, claims="epsilon=1,adjacency=replace_one")
report.plot()
