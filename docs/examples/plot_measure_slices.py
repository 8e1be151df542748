"""
Of which records is most revealed?
==================================

In one of three towns the label is a coin, so that a model can only memorise it. Intervals hold for all slices at
once.
"""

import numpy as np
import pandas as pd
from sklearn.tree import DecisionTreeClassifier

import leakbound as ls
from leakbound.reports.charts.slices import Bar, slices

rng = np.random.default_rng(0)
people = pd.DataFrame({"age": rng.integers(18, 80, 400), "town": rng.choice(["Bern", "Chur", "Zug"], 400)})
is_high = np.where(rng.random(400) < np.where(people.town == "Zug", 0.5, 0.95), people.age > 40, people.age <= 40)
report = ls.audit(
    DecisionTreeClassifier(), people[["age"]], is_high, game=ls.HalfSplit(slices={"town": people.town}), n_models=32
)
found = [f for f in report.findings if f.scope.kind == "slice" and f.quantity == "accuracy"]
ends = (100 * np.array([(f.value, f.low, f.high) for f in found])).tolist()
rows = [(f.scope.name, str(f.detail["records"]), f"{accuracy[0]:.0f}") for f, accuracy in zip(found, ends, strict=True)]
slices([Bar(*row, *accuracy, accuracy[1] > 50) for row, accuracy in zip(rows, ends, strict=True)])
