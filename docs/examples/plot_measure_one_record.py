"""
One record: models that saw it, and models that did not
=======================================================

LiRA compares these two groups of models. The less they overlap, the surer an attacker who sees one more model.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

import leakbound as ls

X, y = load_digits(return_X_y=True)
report = ls.audit(LogisticRegression(), X[:300] / 16, y[:300], n_models=64, attacks=["lira"])
record = report.records().sort_values("won")["record"].iloc[-1]
log_odds, member = report.signals().array("log_odds")[:, record], report.signals().game.member[:, record]
plt.hist([log_odds[member], log_odds[~member]], 15, label=["with the record", "without it"], color=["C0", "0.7"])
plt.xlabel(f"log-odds of the true label of record {record}, nats")
plt.ylabel("models")
plt.legend()
