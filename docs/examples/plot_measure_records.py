"""
Some records are exposed, most are not
======================================

Against each record the attacker plays one game for each model. If nothing leaked, the games won would be as the
dotted line shows. Blue records are exposed beyond chance, though many were examined.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.tree import DecisionTreeClassifier

import leakbound as ls
from leakbound.reports.charts.histograms import histogram

X, y = load_digits(return_X_y=True)
report = ls.audit(DecisionTreeClassifier(), X[:600], y[:600], n_models=64, attacks=["lira"])
games = ls.metrics.games_won(report.scores("lira"))
histogram(np.bincount(games.won, minlength=games.games + 1), games.won[games.exposed].min())
