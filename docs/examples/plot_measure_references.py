"""
How many reference models does an attack need?
==============================================

RMIA, which compares each record with a population, does with few models; LiRA needs more.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import load_digits
from sklearn.tree import DecisionTreeClassifier

import leakbound as ls

X, y = load_digits(return_X_y=True)
attacks, n_models = {"lira": "o-", "rmia": "s--", "quantile": "^:"}, [3, 5, 9, 17, 33]
tree = DecisionTreeClassifier(min_samples_leaf=3)
reports = [ls.audit(tree, X[:600], y[:600], n_models=number, attacks=list(attacks)) for number in n_models]
for attack, style in attacks.items():
    areas = [ls.metrics.auc(report.scores(attack)).value for report in reports]
    plt.plot([number - 1 for number in n_models], areas, style, label=attack)
plt.xlabel("reference models")
plt.ylabel("area under the ROC curve")
plt.legend()
