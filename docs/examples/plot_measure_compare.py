"""
Two models: which one reveals more?
===================================

The strongest attack on each of two forests. The printed sentence says whether the difference is more than chance.
"""

from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier

import leakbound as ls

X, y = load_digits(return_X_y=True)
models = {"deep forest": RandomForestClassifier(10), "flat forest": RandomForestClassifier(10, max_depth=4)}
deep, flat = (ls.audit({name: model}, X[:400], y[:400], n_models=16) for name, model in models.items())
comparison = ls.compare(deep, flat)
comparison.plot()
print(comparison.headline)
