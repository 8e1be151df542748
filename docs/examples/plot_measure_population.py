"""
One trained model, a population, one reference
==============================================

The quantile attack asks whether the model fits a record better than it fits records of a population that are as hard.
It needs no more than one other model of the same recipe, and with few false alarms it finds more than the loss alone.
"""

from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier

import leakbound as ls

X, y = load_digits(return_X_y=True)
recipe = RandomForestClassifier(20, random_state=0)
model = RandomForestClassifier(20, random_state=1).fit(X[:600], y[:600])
members, others = (X[:600], y[:600]), (X[600:1200], y[600:1200])
report = ls.audit_model(model, members, others, references=ls.Fitted(recipe, n=2), attacks=["quantile", "loss"])
report.plot()
