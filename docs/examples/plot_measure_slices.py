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
from leakbound.reports.charts.dots import parts
from leakbound.reports.results.dots import dot

rng = np.random.default_rng(0)
people = pd.DataFrame({"age": rng.integers(18, 80, 400), "town": rng.choice(["Bern", "Chur", "Zug"], 400)})
is_high = np.where(rng.random(400) < np.where(people.town == "Zug", 0.5, 0.95), people.age > 40, people.age <= 40)
report = ls.audit(
    DecisionTreeClassifier(), people[["age"]], is_high, game=ls.HalfSplit(slices={"town": people.town}), n_models=32
)
found = [f for f in report.findings if f.scope.kind == "slice" and f.quantity == "accuracy"]
rows = []
for finding in found:
    role = "best" if finding.low > 0.5 else "attack"
    rows.append(dot(finding.scope.name, finding, role, str(finding.detail["records"])))
parts(rows)
