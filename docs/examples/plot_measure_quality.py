"""
How good is each model, and how much does it reveal?
====================================================

One audit of a decision tree with 1, 3, 10 and 30 records in the smallest leaf, as written at the dots. Guessing gives
50 of 100; the bars are 95 % intervals.
"""

from sklearn.datasets import load_digits
from sklearn.tree import DecisionTreeClassifier

import leakbound as ls
from leakbound.reports.charts.quality import quality_point, tradeoff
from leakbound.reports.results.audit.result import results

X, y = load_digits(return_X_y=True)
leaves = {"min_samples_leaf": [1, 3, 10, 30]}
report = ls.audit(DecisionTreeClassifier(), X[:600], y[:600], vary=leaves, n_models=16, attacks=["rmia"])
tradeoff([quality_point(model) for model in results(report)])
