"""
One training run with canaries
==============================

Each canary, a record with a wrong label, is in the data by a fair coin. The coins that are guessed right prove a
lower bound of ε from a single model. Neither model has a finite ε, and more canaries prove more.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

import leakbound as ls

X, y = load_digits(return_X_y=True)
numbers, game = (25, 50, 100, 200, 400), {"game": "canaries", "canaries": "mislabelled", "n_models": 1}
for n_neighbors, style in ((3, "o-"), (9, "s--")):
    model = KNeighborsClassifier(n_neighbors)
    reports = [ls.audit(model, X, y, attacks=["loss"], n_canaries=number, **game) for number in numbers]
    epsilons = [ls.metrics.epsilon_lower(report.scores("loss"), method="coins").value for report in reports]
    plt.plot(numbers, epsilons, style, label=f"{n_neighbors} nearest neighbours")
plt.xlabel("canaries in the model")
plt.ylabel("ε is at least (95 %)")
plt.legend()
