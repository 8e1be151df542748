"""
What the model adds to a guess of an attribute
==============================================

The attacker knows all of a person's record but the region. The orange line is the best guess without the model.
Nothing in these data depends on the region, and the tree reveals it all the same.
"""

import numpy as np
import pandas as pd
from sklearn.tree import DecisionTreeClassifier

import leakbound as ls

rng = np.random.default_rng(0)
people = pd.DataFrame({"age": rng.integers(18, 90, 300), "region": rng.choice(["north", "south", "east", "west"], 300)})
has_repaid = rng.random(300) < np.where(people.age > 40, 0.8, 0.4)
report = ls.audit(DecisionTreeClassifier(), people, has_repaid, game=ls.Attribute("region"), n_models=8)
report.plot()
